"""Weights by penalised conditional likelihood: projected Newton's method with weights >= 0.

The loss of row r is -log softmax(base + bias + sum of weight times evidence)[label], the evidence being that of the row left
out of the counts. A ridge penalty pulls weights to a centre, and they never fall below zero: evidence may be discounted, but
not reversed. Written out here because of the bounds and because the few dozen to few hundred weights make one small linear
system a step, which is many times faster than a general optimiser.

Rows are worked on in blocks so small that no product of two is given to several threads by the linear algebra beneath, whose
threads wait for each other on a busy machine; our own threads take many blocks at a time. So the same sums are made in the
same order everywhere, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.threads import cached_property, in_parallel, side_by_side

Array = NDArray[np.float64]
Single = NDArray[np.float32]

STEPS = 25
TOLERANCE = 1e-10  # of the loss: so near to the best that the order of rows and columns leaves no trace
# A step so short is taken without a look: what is left after it is its square. Many rows are not looked at for less.
TRUSTED, TRUSTED_OF_MANY = 1e-4, 3e-3
SMALLEST_STEP = 1e-3
VECTOR, MATRIX = 9_000, 250_000  # entries, and products, of a block: of more, linear algebra takes its own threads
TAKEN = 1 << 18  # entries that a thread takes at a time
FIRST_ROWS = 6_000  # on which a start is found, where there are many times more


@dataclass(frozen=True)
class Problem:
    """What each term says of every row (rows × classes), what stands before it, the labels, what is expected of weights."""

    evidence: Sequence[Single]
    base: Single
    labels: NDArray[np.int64]
    weights: Array  # of the rows
    centre: Array  # of the weights of the terms
    strength: Array  # with which they are pulled there
    bias_strength: float

    def solve(self, weight: Array, bias: Array, trusted: float | None = None) -> tuple[Array, Array]:
        """The best weights and biases, from a start; where there are many rows, some of them bring it near."""
        many = len(self.base) > 4 * FIRST_ROWS
        if many:
            weight, bias = self._first(FIRST_ROWS).solve(weight, bias, trusted)
        enough = trusted or (TRUSTED_OF_MANY if many else TRUSTED)
        at = np.concatenate([weight, bias])
        now = self.evaluate(at)
        for _ in range(STEPS):
            step = _step(now.hessian, now.gradient, at, len(weight))
            if np.abs(step).max() <= enough:
                at = self._within(at + step)
                break
            tried, new = self._walk(at, step, now)
            done = abs(now.loss - new.loss) <= TOLERANCE * (1 + abs(now.loss))
            if new.loss <= now.loss:
                at, now = tried, new
            if done:
                break
        return at[: len(weight)], at[len(weight) :]

    def _first(self, rows: int) -> Problem:
        """The problem of some of the rows, which count for all: their order is random."""
        some = self.weights[:rows]
        more = self.weights.sum() / max(float(some.sum()), 1e-300)
        said = [each[:rows] for each in self.evidence]
        return replace(self, evidence=said, base=self.base[:rows], labels=self.labels[:rows], weights=some * more)

    def _within(self, at: Array) -> Array:
        """Project onto weight >= 0."""
        terms = len(self.evidence)
        return np.concatenate([np.maximum(at[:terms], 0.0), at[terms:]])

    def _walk(self, at: Array, step: Array, now: Evaluated) -> tuple[Array, Evaluated]:
        """Backtracking line search (Armijo)."""
        length = 1.0
        while True:
            tried = self._within(at + length * step)
            new = self.evaluate(tried)
            if new.loss <= now.loss + 1e-4 * min(0.0, float(now.gradient @ (tried - at))) or length < SMALLEST_STEP:
                return tried, new
            length /= 2

    @cached_property
    def laid_out(self) -> Rows:
        """The rows side by side, filled up with some that weigh nothing; of two classes, how much more for the second."""
        classes = self.base.shape[1]
        rows = -(-len(self.base) // self._block) * self._block

        def wide(x: Single) -> Single:
            return x[:, 1:].T - x[:, :1].T if classes == 2 else x.T

        said = np.zeros((len(self.evidence), 1 if classes == 2 else classes, rows), np.float32)

        def lay(t: int) -> None:
            said[t, :, : len(self.base)] = wide(self.evidence[t])

        side_by_side(lay, range(len(self.evidence)), rows)
        more = (0, rows - len(self.base))
        base = np.pad(wide(self.base), ((0, 0), more))
        return Rows(said, base, np.pad(self.labels, more), np.pad(self.weights, more))

    @cached_property
    def _block(self) -> int:
        """How many entries a product is made of at a time: a power of two, of which the rows are a multiple."""
        terms = len(self.evidence)
        small = min(VECTOR // terms, MATRIX // (terms * terms))
        most = max(8, min(max(small, terms), len(self.base)))  # or the products would hold more than what they are of
        return 1 << (most.bit_length() - 1)

    def evaluate(self, at: Array) -> Evaluated:
        """Loss, gradient and Hessian, with the penalty."""
        rows, terms, block = self.laid_out, len(self.evidence), self._block
        step = max(1, TAKEN // (rows.said[:, :, 0].size * block)) * block
        stretches = [rows.some(a, a + step) for a in range(0, len(rows.labels), step)]
        add_up = _two if self.base.shape[1] == 2 else _many
        parts = in_parallel(lambda part: add_up(part, at[:terms], at[terms:], block), stretches)
        loss, gradient, hessian = (sum(each) for each in zip(*parts, strict=True))
        pull = np.concatenate([self.strength, np.full(len(at) - terms, self.bias_strength)])
        apart = at - np.concatenate([self.centre, np.zeros(len(at) - terms)])
        loss += 0.5 * float((pull * apart * apart).sum())
        return Evaluated(loss, gradient + pull * apart, hessian + np.diag(pull + 1e-9))


@dataclass(frozen=True)
class Rows:
    """Rows side by side: what the terms say of them, what stands before it, their labels and weights."""

    said: Single  # terms × classes × rows
    base: Single  # classes × rows
    labels: NDArray[np.int64]
    weights: Array

    def some(self, start: int, stop: int) -> Rows:
        """Some of the rows."""
        some = slice(start, stop)
        return Rows(self.said[..., some], self.base[:, some], self.labels[some], self.weights[some])


@dataclass(frozen=True)
class Evaluated:
    """Loss, gradient and Hessian."""

    loss: float
    gradient: Array
    hessian: Array


def _two(rows: Rows, weight: Array, bias: Array, block: int) -> tuple[float, Array, Array]:
    """Loss, gradient and Hessian of some rows of two classes, from the difference of their scores."""
    terms, y, w = len(weight), rows.labels, rows.weights
    rough = rows.said[:, 0]
    said = _blocks(rough.astype(np.float64), block)
    score = rows.base[0] + (bias[1] - bias[0]) + np.matmul(weight, said).ravel()
    shrunk = np.exp(-np.abs(score))
    lost = np.maximum(score, 0.0) + np.log1p(shrunk) - y * score
    share = np.where(score >= 0, 1.0, shrunk) / (1.0 + shrunk)
    wrong, spread = (share - y) * w, share * (1.0 - share) * w
    hessian = np.zeros((terms + 2, terms + 2))
    hessian[:terms, :terms] = _product(_blocks(rough * spread.astype(np.float32), block), _blocks(rough, block))
    gradient, hessian[:terms, terms + 1] = _product(said, _blocks(np.stack([wrong, spread]), block)).T
    hessian[:terms, terms] = -hessian[:terms, terms + 1]
    hessian[terms:, terms:] = spread.sum() * np.array([[1.0, -1.0], [-1.0, 1.0]])
    up = wrong.sum()
    return float(lost @ w), np.concatenate([gradient, [-up, up]]), _mirrored(hessian)


def _many(rows: Rows, weight: Array, bias: Array, block: int) -> tuple[float, Array, Array]:
    """Loss, gradient and Hessian of some rows; the Hessian is the covariance of the evidence under the probabilities."""
    terms, classes, y, w = len(weight), len(bias), rows.labels, rows.weights
    rough = np.array(rows.said, order="C")  # which is worked on in place below
    said = _blocks(rough.astype(np.float64), block)
    score = rows.base + bias[:, None] + np.matmul(weight, said).reshape(classes, -1)
    top = score.max(0)
    share = np.exp(score - top)
    whole = share.sum(0)
    share /= whole
    own = np.arange(classes)[:, None] == y
    lost = np.log(whole) + top - score[y, np.arange(len(y))]
    heavy = share * w
    wrong = heavy - own * w
    root = np.sqrt(heavy).astype(np.float32)
    rough -= (rough * share.astype(np.float32)).sum(1, keepdims=True)
    rough *= root
    hessian = np.zeros((terms + classes, terms + classes))
    hessian[:terms, terms:] = np.einsum("tcr,cr->tc", rough, root)
    hessian[:terms, :terms] = _product(_blocks(rough, block), _blocks(rough, block))
    hessian[terms:, terms:] = np.diag(heavy.sum(1)) - _product(_blocks(heavy, block), _blocks(share, block))
    gradient = _product(said, _blocks(wrong.reshape(1, -1), block))[:, 0]
    return float(lost @ w), np.concatenate([gradient, wrong.sum(1)]), _mirrored(hessian)


def _blocks(x: NDArray[Any], size: int) -> NDArray[Any]:
    """Lines of numbers cut into blocks of so many: blocks × lines × numbers."""
    return x.reshape(len(x), -1, size).transpose(1, 0, 2)


def _product(a: NDArray[Any], b: NDArray[Any]) -> Array:
    """The product of every line of one with every line of the other, block by block."""
    summed: Array = np.matmul(a, b.transpose(0, 2, 1)).sum(0, dtype=np.float64)
    return summed


def _mirrored(hessian: Array) -> Array:
    """The whole of a symmetric matrix of which the upper half is filled in."""
    upper: Array = np.triu(hessian)
    return upper + np.triu(hessian, 1).T


def _step(hessian: Array, gradient: Array, at: Array, terms: int) -> Array:
    """Newton's step of the weights that are not held at their bound by the gradient."""
    walled = np.arange(len(at)) < terms
    free = ~(walled & (at <= 0) & (gradient > 0))
    step = np.zeros(len(at))
    for _ in range(8):
        step[:] = 0.0
        moving = np.flatnonzero(free)
        step[moving] = -np.linalg.solve(hessian[np.ix_(moving, moving)], gradient[moving])
        out = free & walled & (at <= 0) & (step < 0)
        if not out.any():
            break
        free &= ~out
    return step
