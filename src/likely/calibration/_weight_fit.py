"""Weights by penalised conditional likelihood: projected Newton's method with weights >= 0.

The loss of row r is -log softmax(base + bias + Σ weight · evidence)[label], with leave-one-out evidence. A ridge penalty
shrinks the weights to a centre, and they are never negative: evidence may be discounted, but not reversed. A solver of its
own because of the bounds, and because with a few dozen to a few hundred weights each Newton step is one small linear system,
many times faster than a general optimiser.

Threads of the package take chunks of rows that stay in the cache; the linear algebra beneath uses one thread
(`one_blas_thread`), so that the sums are made in the same order whatever the number of cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likely.calibration import _calibration_loops as loops
from likely.kernels.kernel import worth_compiling
from likely.kernels.parallel import cached_property, in_parallel, side_by_side

Array = NDArray[np.float64]
Single = NDArray[np.float32]

WEIGHT_STRENGTH = 4.0  # ridge penalty of the weight of a column or text
OWN_WEIGHTS = 512  # terms with the largest gains have a weight of their own, all others one common weight
STEPS = 25
TOLERANCE = 1e-10  # of the loss: small enough that the order of rows and columns makes no difference
# A step so short is taken without a line search: the remaining error is quadratic in it. Larger with many rows.
TRUSTED, TRUSTED_OF_MANY = 1e-4, 3e-3
SMALLEST_STEP = 1e-3
CHUNK = 1 << 18  # entries of a chunk
FIRST_ROWS = 6_000  # of a first fit, where there are many more
ARRAYS = 1e-8  # seconds that an entry of the evidence takes longer with arrays, in all steps of a fit


@dataclass(frozen=True)
class Problem:
    """Evidence of each term (rows × classes), base scores, labels, and the ridge penalty of the weights."""

    evidence: Sequence[Single]
    base: Single
    labels: NDArray[np.int64]
    weights: Array  # of the rows
    centre: Array  # of the ridge penalty, by term
    strength: Array  # of the ridge penalty, by term
    bias_strength: float

    def solve(self, weight: Array, bias: Array, trusted: float | None = None) -> tuple[Array, Array]:
        """Weights and biases that minimise the loss, from a start; with many rows, a subset of them first."""
        many = len(self.base) > 4 * FIRST_ROWS
        if many:
            weight, bias = self._subsample(FIRST_ROWS).solve(weight, bias, trusted)
        enough = trusted or (TRUSTED_OF_MANY if many else TRUSTED)
        at = np.concatenate([weight, bias])
        now = self.evaluate(at)
        for _ in range(STEPS):
            step = _step(now.hessian, now.gradient, at, len(weight))
            if np.abs(step).max() <= enough:
                at = self._project(at + step)
                break
            tried, new = self._line_search(at, step, now)
            done = abs(now.loss - new.loss) <= TOLERANCE * (1 + abs(now.loss))
            if new.loss <= now.loss:
                at, now = tried, new
            if done:
                break
        return at[: len(weight)], at[len(weight) :]

    def effective_parameters(self, weight: Array, bias: Array) -> Array:
        """Effective number of parameters of each weight at a solution: 1 if the labels decide it, 0 if the penalty does."""
        at = np.concatenate([weight, bias])
        free = np.flatnonzero(np.append(weight > 0, np.ones(len(bias), bool)))
        inverse = np.linalg.inv(self.evaluate(at).hessian[np.ix_(free, free)])
        found = np.zeros(len(at))
        found[free] = 1.0 - self._penalty(len(at))[free] * np.diag(inverse)
        return found[: len(weight)]

    def _penalty(self, unknowns: int) -> Array:
        """Strength of the ridge penalty of weights and biases."""
        return np.concatenate([self.strength, np.full(unknowns - len(self.evidence), self.bias_strength)])

    def _subsample(self, rows: int) -> Problem:
        """The problem on the first rows, a random subset, reweighted to the total weight."""
        some = self.weights[:rows]
        more = self.weights.sum() / max(float(some.sum()), 1e-300)
        evidence = [each[:rows] for each in self.evidence]
        return replace(self, evidence=evidence, base=self.base[:rows], labels=self.labels[:rows], weights=some * more)

    def _project(self, at: Array) -> Array:
        """Project onto weight >= 0."""
        terms = len(self.evidence)
        return np.concatenate([np.maximum(at[:terms], 0.0), at[terms:]])

    def _line_search(self, at: Array, step: Array, now: Evaluated) -> tuple[Array, Evaluated]:
        """Backtracking line search (Armijo)."""
        length = 1.0
        while True:
            tried = self._project(at + length * step)
            new = self.evaluate(tried)
            if new.loss <= now.loss + 1e-4 * min(0.0, float(now.gradient @ (tried - at))) or length < SMALLEST_STEP:
                return tried, new
            length /= 2

    @cached_property
    def transposed(self) -> TransposedRows:
        """The rows transposed; with two classes, the differences of their scores."""
        rows, classes = self.base.shape

        def wide(x: Single) -> Single:
            return x[:, 1:].T - x[:, :1].T if classes == 2 else x.T

        evidence = np.empty((len(self.evidence), 1 if classes == 2 else classes, rows), np.float32)

        def transpose(t: int) -> None:
            evidence[t] = wide(self.evidence[t])

        side_by_side(transpose, range(len(self.evidence)), rows)
        return TransposedRows(evidence, np.ascontiguousarray(wide(self.base)), self.labels, self.weights)

    @cached_property
    def compiled(self) -> bool:
        """Whether the compiled loop is worth using, with three classes or more."""
        return worth_compiling(ARRAYS * len(self.evidence) * self.base.size, loops.add_rows)

    def evaluate(self, at: Array) -> Evaluated:
        """Loss, gradient and Hessian, with the penalty."""
        rows, terms = self.transposed, len(self.evidence)
        step = max(64, CHUNK // rows.evidence[:, :, 0].size)
        chunks = [(a, min(a + step, len(rows.labels))) for a in range(0, len(rows.labels), step)]
        add_up = _binary_derivatives if self.base.shape[1] == 2 else _compiled if self.compiled else _derivatives
        parts = in_parallel(lambda part: add_up(rows, part, at[:terms], at[terms:]), chunks)
        loss, gradient, hessian = (sum(each) for each in zip(*parts, strict=True))
        penalty = self._penalty(len(at))
        deviation = at - np.concatenate([self.centre, np.zeros(len(at) - terms)])
        loss += 0.5 * float((penalty * deviation * deviation).sum())
        return Evaluated(loss, gradient + penalty * deviation, _mirrored(hessian) + np.diag(penalty + 1e-9))


@dataclass(frozen=True)
class TransposedRows:
    """Rows as the last axis: evidence of the terms, base scores, labels and weights."""

    evidence: Single  # terms × classes × rows
    base: Single  # classes × rows
    labels: NDArray[np.int64]
    weights: Array

    def some(self, part: tuple[int, int]) -> TransposedRows:
        """A slice of the rows."""
        some = slice(*part)
        return TransposedRows(self.evidence[..., some], self.base[:, some], self.labels[some], self.weights[some])


@dataclass(frozen=True)
class Evaluated:
    """Loss, gradient and Hessian."""

    loss: float
    gradient: Array
    hessian: Array


def _binary_derivatives(every: TransposedRows, part: tuple[int, int], weight: Array, bias: Array) -> tuple[float, Array, Array]:
    """Loss, gradient and upper half of the Hessian for two classes, from the difference of their scores."""
    rows = every.some(part)
    terms, y, w = len(weight), rows.labels, rows.weights
    single = rows.evidence[:, 0]
    evidence = single.astype(np.float64)
    score = rows.base[0] + (bias[1] - bias[0]) + weight @ evidence
    decayed = np.exp(-np.abs(score))
    losses = np.maximum(score, 0.0) + np.log1p(decayed) - y * score
    probability = np.where(score >= 0, 1.0, decayed) / (1.0 + decayed)
    residual, variance = (probability - y) * w, probability * (1.0 - probability) * w
    weighted = single * np.sqrt(variance).astype(np.float32)
    hessian = np.zeros((terms + 2, terms + 2))
    hessian[:terms, :terms] = weighted @ weighted.T
    gradient, hessian[:terms, terms + 1] = (evidence @ np.stack([residual, variance], axis=1)).T
    hessian[:terms, terms] = -hessian[:terms, terms + 1]
    hessian[terms:, terms:] = variance.sum() * np.array([[1.0, -1.0], [-1.0, 1.0]])
    up = residual.sum()
    return float(losses @ w), np.concatenate([gradient, [-up, up]]), hessian


def _compiled(rows: TransposedRows, part: tuple[int, int], weight: Array, bias: Array) -> tuple[float, Array, Array]:
    """`_derivatives` by a compiled loop."""
    terms, classes, n = len(weight), len(bias), part[1] - part[0]
    gradient, hessian = np.zeros(terms + classes), np.zeros((terms + classes, terms + classes))
    centred = np.empty((terms, classes, n), np.float32)
    logits, shares = np.empty((2, classes + 1, n))
    loss = loops.add_rows.fast(
        rows.evidence, rows.base, rows.labels, rows.weights, part[0], weight, bias,
        logits, shares, np.empty((2 * classes + 1, n), np.float32), centred, gradient, hessian,
    )  # fmt: skip
    flat = centred.reshape(terms, -1)
    hessian[:terms, :terms] = flat @ flat.T
    return float(loss), gradient, hessian


def _derivatives(every: TransposedRows, part: tuple[int, int], weight: Array, bias: Array) -> tuple[float, Array, Array]:
    """Loss, gradient and upper half of the Hessian: the covariance of the evidence under the probabilities."""
    rows = every.some(part)
    terms, classes, y, w = len(weight), len(bias), rows.labels, rows.weights
    single = np.array(rows.evidence, order="C")  # modified in place below
    evidence = single.reshape(terms, -1).astype(np.float64)
    score = rows.base + bias[:, None] + (weight @ evidence).reshape(classes, -1)
    top = score.max(0)
    probability = np.exp(score - top)
    whole = probability.sum(0)
    probability /= whole
    losses = np.log(whole) + top - score[y, np.arange(len(y))]
    weighted = probability * w
    residual = weighted.copy()
    residual[y, np.arange(len(y))] -= w
    root = np.sqrt(weighted).astype(np.float32)
    single -= np.einsum("tcr,cr->tr", single, probability.astype(np.float32))[:, None]
    single *= root
    hessian = np.zeros((terms + classes, terms + classes))
    hessian[:terms, terms:] = np.einsum("tcr,cr->tc", single, root)
    flat = single.reshape(terms, -1)
    hessian[:terms, :terms] = flat @ flat.T
    hessian[terms:, terms:] = np.diag(weighted.sum(1)) - weighted @ probability.T
    return float(losses @ w), np.concatenate([evidence @ residual.ravel(), residual.sum(1)]), hessian


def _mirrored(hessian: Array) -> Array:
    """Symmetric matrix from its upper half."""
    upper: Array = np.triu(hessian)
    return upper + np.triu(hessian, 1).T


def _step(hessian: Array, gradient: Array, at: Array, terms: int) -> Array:
    """Newton step of the weights that are not held at their bound by the gradient."""
    bounded = np.arange(len(at)) < terms
    free = ~(bounded & (at <= 0) & (gradient > 0))
    step = np.zeros(len(at))
    for _ in range(8):
        step[:] = 0.0
        moving = np.flatnonzero(free)
        step[moving] = -np.linalg.solve(hessian[np.ix_(moving, moving)], gradient[moving])
        out = free & bounded & (at <= 0) & (step < 0)
        if not out.any():
            break
        free &= ~out
    return step
