"""Interaction tables: observed against expected rows in the cells of several columns.

A cell's evidence for a class is log((observed + a) / (expected + a)) with a pseudocount a. The expected rows are the summed
probabilities of the current model for the rows of the cell, each left out of its own counts; so no evidence counts twice, and a
cell without residuals has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import log
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from likely.kernels.kernel import ReorderedKernel
from likely.kernels.parallel import cached_property

Array = NDArray[np.float64]
CellCodes = NDArray[np.int32]

BLURS = (0.0, 0.3, 0.6, 0.8)  # kernel weights of the next bin
SHRINKS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # pseudocounts a
USUAL_SHRINKS = (8.0,)
CHOOSING_ROWS = 8_000  # on which kernel and pseudocount are chosen


@dataclass(frozen=True)
class ScoredRows:
    """Rows of the sample: labels, weights, and the leave-one-out probabilities of the current model."""

    labels: NDArray[np.int64]
    weights: Array
    left: Array  # weight of each row that is left out
    probabilities: Array  # rows × classes

    @cached_property
    def weighted_probabilities(self) -> Array:
        """Probabilities times the weights of the rows, classes × rows."""
        return np.ascontiguousarray((self.probabilities * self.weights[:, None]).T)

    def first(self, rows: int) -> ScoredRows:
        """The first rows, which are a random subset."""
        return ScoredRows(self.labels[:rows], self.weights[:rows], self.left[:rows], self.probabilities[:rows])


@dataclass(frozen=True)
class TableAxis:
    """One column of a table: its number of codes, the last for missing, and whether neighbouring codes are smoothed."""

    size: int
    numeric: bool


@dataclass(frozen=True)
class ResidualTable:
    """Observed and expected rows of every cell, and the pseudocount that shrinks small cells."""

    seen: Array
    expected: Array
    shrink: float
    gain: float
    error: float
    groups: tuple[NDArray[np.int32], ...] | None = None  # of the values of each column, where they are not the default ones

    def evidence(self) -> Array:
        """Weight of evidence of each cell for each class."""
        return np.log((self.seen + self.shrink) / (self.expected + self.shrink))

    def left_out(self, cells: CellCodes, rows: ScoredRows) -> NDArray[np.float32]:
        """Weight of evidence of the cell of every row, the row left out of observed and expected rows."""
        own, rest = _others(self.seen, self.expected, cells, rows)
        return np.log((own + self.shrink) / (rest + self.shrink)).astype(np.float32)


@dataclass(frozen=True)
class Threshold:
    """Minimum gain of a table: so many standard errors, and so many nats."""

    errors: float
    nats: float

    @staticmethod
    def of(level: float, usual: float) -> Threshold:
        """Threshold that a table of noise passes with a probability of about `level`.

        Noise gains more than g nats with a probability of about exp(-g), while the standard error is estimated from the same
        gains: with few rows it is too uncertain for a level far below the usual one.
        """
        level = max(level, 1e-9)
        return Threshold(NormalDist().inv_cdf(1.0 - level), -log(level / usual))

    def passed(self, gain: float, error: float) -> bool:
        """Whether a gain with this standard error is large enough."""
        return gain > self.errors * error and gain > self.nats


def make_table(
    axes: Sequence[TableAxis], cells: CellCodes, rows: ScoredRows, threshold: Threshold, compiled: bool = False
) -> ResidualTable | None:
    """Residual table of some columns, smoothed as chosen by leave-one-out; None where it gains less than the threshold."""
    seen, expected = count_cells(cells, rows, int(np.prod([axis.size for axis in axes])))
    some, few = cells[:CHOOSING_ROWS], rows.first(CHOOSING_ROWS)
    blurs = BLURS if any(axis.numeric for axis in axes) else BLURS[:1]
    blurred = [(blur(seen, axes, s), blur(expected, axes, s)) for s in blurs]
    gains = _compiled_gains if compiled else _gains
    best = int(np.argmax([gains(*each, some, few, USUAL_SHRINKS)[0][0] for each in blurred])) if len(blurs) > 1 else 0
    seen, expected = blurred[best]
    shrink = SHRINKS[int(np.argmax(gains(seen, expected, some, few, SHRINKS)[0]))]
    (whole,), (squared,) = gains(seen, expected, cells, rows, (shrink,))
    error = float(np.sqrt(squared))
    return ResidualTable(seen, expected, shrink, float(whole), error) if threshold.passed(float(whole), error) else None


def count_cells(cells: CellCodes, rows: ScoredRows, number: int) -> tuple[Array, Array]:
    """Observed and expected rows of every cell and class."""
    classes = rows.probabilities.shape[1]
    place = cells.astype(np.int64) * classes
    seen = np.bincount(place + rows.labels, rows.weights, number * classes).astype(np.float64)
    columns = [np.bincount(cells, weighed, number) for weighed in rows.weighted_probabilities]
    return seen.reshape(number, classes), np.stack(columns, axis=1)


def blur(table: Array, axes: Sequence[TableAxis], next_weight: float) -> Array:
    """The table smoothed by a kernel along every numeric axis; missing cells stay apart, and the total is kept."""
    if not next_weight:
        return table
    shape, after = table.shape, table.size
    for axis in axes:
        after //= axis.size
        if axis.numeric:
            table = np.matmul(_near(axis.size, next_weight), table.reshape(-1, axis.size, after))
    return table.reshape(shape)


@cache
def _near(size: int, next_weight: float) -> Array:
    """Kernel weights between bins."""
    place = np.arange(size)
    near: Array = np.exp(np.log(next_weight) * (place[:, None] - place) ** 2.0)
    near[-1, :-1] = near[:-1, -1] = 0.0
    return near


def _others(seen: Array, expected: Array, cells: CellCodes, rows: ScoredRows) -> tuple[Array, Array]:
    """Observed and expected rows in the cell of every row, the row left out."""
    one = rows.left
    index = np.arange(len(cells))
    own = seen.take(cells, axis=0)
    own[index, rows.labels] = np.maximum(own[index, rows.labels] - one, 0.0)
    rest = expected.take(cells, axis=0)
    rest -= one[:, None] * rows.probabilities
    return own, np.maximum(rest, 0.0, out=rest)


def _gains(seen: Array, expected: Array, cells: CellCodes, rows: ScoredRows, shrinks: Sequence[float]) -> tuple[Array, Array]:
    """For each pseudocount the gain in leave-one-out log likelihood with the table, and the sum of its squares."""
    own, rest = _others(seen, expected, cells, rows)
    found = np.zeros((2, len(shrinks)))
    for s, shrink in enumerate(shrinks):
        ratios = (own + shrink) / (rest + shrink)
        each = np.log(ratios[np.arange(len(ratios)), rows.labels] / np.einsum("rc,rc->r", rows.probabilities, ratios))
        found[:, s] = (rows.weights * each).sum(), (rows.weights * each * each).sum()
    return found[0], found[1]


def _compiled_gains(
    seen: Array, expected: Array, cells: CellCodes, rows: ScoredRows, shrinks: Sequence[float]
) -> tuple[Array, Array]:
    """`_gains` by compiled loops."""
    found = np.zeros((2, len(shrinks)))
    add_gains.fast(rows.probabilities, rows.labels, rows.weights, rows.left, cells, seen, expected, np.array(shrinks), found)
    return found[0], found[1]


@ReorderedKernel
def add_gains(probabilities, labels, weights, left, cells, seen, expected, shrinks, found):  # type: ignore[no-untyped-def]
    """Sums of `_gains`, row by row."""
    rows, classes = probabilities.shape
    own, rest = np.empty(classes), np.empty(classes)
    for r in range(rows):
        cell, y = cells[r], labels[r]
        for c in range(classes):
            own[c] = seen[cell, c]
            rest[c] = max(expected[cell, c] - left[r] * probabilities[r, c], 0.0)
        own[y] = max(own[y] - left[r], 0.0)
        for s in range(len(shrinks)):
            total = 0.0
            for c in range(classes):
                total += probabilities[r, c] * ((own[c] + shrinks[s]) / (rest[c] + shrinks[s]))
            each = np.log((own[y] + shrinks[s]) / (rest[y] + shrinks[s]) / total)
            found[0, s] += weights[r] * each
            found[1, s] += weights[r] * each * each
