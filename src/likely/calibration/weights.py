"""Weights by conditional likelihood: Newton's method, with walls at zero.

The loss of row r is -log softmax(base + bias + sum of weight times evidence)[label], the evidence being that of the row left
out of the counts. Weights are pulled to where they are expected and never fall below zero: evidence may be believed less, but
never turned round. Written out here because the walls and the few dozen weights make one small linear system a step, which is
many times faster than a general optimiser.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Single = NDArray[np.float32]

STEPS = 25
TOLERANCE = 1e-10  # of the loss: so near to the best that the order of rows and columns leaves no trace
CHUNK = 1 << 15  # rows times classes that are worked on at a time
SMALLEST_STEP = 1e-3


@dataclass(frozen=True)
class Problem:
    """The evidence (terms × rows × classes), what stands before it, the labels, and what is expected of the weights."""

    evidence: Single
    base: Single
    labels: NDArray[np.int64]
    weights: Array  # of the rows
    centre: Array  # of the weights of the terms
    strength: Array  # with which they are pulled there
    bias_strength: float

    def solve(self, weight: Array, bias: Array) -> tuple[Array, Array]:
        """The best weights and biases, from a start."""
        terms = len(self.evidence)
        at = np.concatenate([weight, bias])
        loss, shares = self._loss(at)
        for _ in range(STEPS):
            slope = self._slope(at, shares)
            step = _step(self._bend(shares), slope, at, terms)
            tried, new_loss, new_shares = self._walk(at, step, slope, loss)
            done = abs(loss - new_loss) <= TOLERANCE * (1 + abs(loss))
            if new_loss <= loss:
                at, loss, shares = tried, new_loss, new_shares
            if done:
                break
        return at[:terms], at[terms:]

    def _loss(self, at: Array) -> tuple[float, Array]:
        """The loss, and the probability of every class for every row."""
        terms, rows = self.evidence.shape[:2]
        weight, bias = at[:terms], at[terms:]
        score = self.base.astype(np.float64) + bias
        for much, said in zip(weight.tolist(), self.evidence, strict=True):
            if much:
                score += np.multiply(said, much, dtype=np.float64)
        top = score.max(1)
        grown = np.exp(score - top[:, None])
        whole = grown.sum(1)
        lost = np.log(whole) + top - score[np.arange(rows), self.labels]
        pull = (self.strength * (weight - self.centre) ** 2).sum() + self.bias_strength * (bias * bias).sum()
        return float(self.weights @ lost + 0.5 * pull), grown / whole[:, None]

    def _slope(self, at: Array, shares: Array) -> Array:
        terms, rows = self.evidence.shape[:2]
        wrong = shares.copy()
        wrong[np.arange(rows), self.labels] -= 1.0
        wrong *= self.weights[:, None]
        of_weight = np.array([np.einsum("rc,rc->", said, wrong) for said in self.evidence])
        pull = self.strength * (at[:terms] - self.centre)
        return np.concatenate([of_weight + pull, wrong.sum(0) + self.bias_strength * at[terms:]])

    def _bend(self, shares: Array) -> Array:
        """The second derivatives: the covariance of the evidence under the present probabilities."""
        terms, rows, classes = self.evidence.shape
        bend = np.zeros((terms + classes, terms + classes))
        heavy = (shares * self.weights[:, None]).astype(np.float32)
        light, step = shares.astype(np.float32), max(1, CHUNK // classes)
        for a in range(0, rows, step):
            part, p, q = (x[..., a : a + step, :] for x in (self.evidence, light, heavy))
            if classes == 2:  # then the difference of the two says it all, in half the work
                apart = part[:, :, 1] - part[:, :, 0]
                spread = apart * (q[:, 0] * p[:, 1])
                bend[:terms, :terms] += spread @ apart.T
                summed = spread.sum(1)
                bend[:terms, terms] -= summed
                bend[:terms, terms + 1] += summed
            else:
                root = np.sqrt(q)
                centred = (part - (part * p).sum(2)[:, :, None]) * root
                bend[:terms, terms:] += (centred * root).sum(1)
                centred = centred.reshape(terms, -1)
                bend[:terms, :terms] += centred @ centred.T
        bend[terms:, :terms] = bend[:terms, terms:].T
        bend[terms:, terms:] = np.diag(heavy.sum(0, dtype=float)) - (shares * self.weights[:, None]).T @ shares
        pull = np.concatenate([self.strength, np.full(classes, self.bias_strength)])
        return bend + np.diag(pull + 1e-9)

    def _walk(self, at: Array, step: Array, slope: Array, loss: float) -> tuple[Array, float, Array]:
        """As far along the step as the loss truly falls."""
        terms, length = len(self.evidence), 1.0
        while True:
            tried = at + length * step
            tried[:terms] = np.maximum(tried[:terms], 0.0)
            new_loss, shares = self._loss(tried)
            if new_loss <= loss + 1e-4 * min(0.0, float(slope @ (tried - at))) or length < SMALLEST_STEP:
                return tried, new_loss, shares
            length /= 2


def _step(bend: Array, slope: Array, at: Array, terms: int) -> Array:
    """Newton's step, of the weights that are not pressed against their wall at zero."""
    walled = np.arange(len(at)) < terms
    free = ~(walled & (at <= 0) & (slope > 0))
    step = np.zeros(len(at))
    for _ in range(8):
        step[:] = 0.0
        moving = np.flatnonzero(free)
        step[moving] = -np.linalg.solve(bend[np.ix_(moving, moving)], slope[moving])
        out = free & walled & (at <= 0) & (step < 0)
        if not out.any():
            break
        free &= ~out
    return step
