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

from likely.calibration import _calibration_loops as loops
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
    def transposed_probabilities(self) -> Array:
        """Probabilities, classes × rows."""
        return np.ascontiguousarray(self.probabilities.T)

    @cached_property
    def weighted_probabilities(self) -> Array:
        """Probabilities times the weights of the rows, classes × rows."""
        return self.transposed_probabilities * self.weights

    @cached_property
    def squared_residuals(self) -> Array:
        """Squares of label indicator minus probability times the weights of the rows, classes × rows; one class of two."""
        residual = -self.transposed_probabilities
        residual[self.labels, np.arange(len(self.labels))] += 1.0
        some = residual[1:] if len(residual) == 2 else residual
        return some * some * self.weights

    def first(self, rows: int) -> ScoredRows:
        """The first rows, which are a random subset."""
        if rows >= len(self.labels):
            return self
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
        own, rest = _left_out_counts(self.seen, self.expected, cells, rows)
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
    counted = count_cells(cells, rows, int(np.prod([axis.size for axis in axes])))
    few = rows.first(CHOOSING_ROWS)
    some, gains = cells[: len(few.labels)], _compiled_gains if compiled else _gains
    blurs = BLURS if any(axis.numeric for axis in axes) else BLURS[:1]
    blurred = np.array([blur(counted, axes, s) for s in blurs])
    best = int(np.argmax(gains(blurred, some, few, USUAL_SHRINKS)[:, 0, 0])) if len(blurs) > 1 else 0
    one = blurred[best : best + 1]
    tried, squares = gains(one, some, few, SHRINKS)[0]
    at = int(np.argmax(tried))
    whole, squared = tried[at], squares[at]
    if len(few.labels) < len(rows.labels):
        ((whole,), (squared,)) = gains(one, cells, rows, SHRINKS[at : at + 1])[0]
    table = ResidualTable(one[0, 0].copy(), one[0, 1].copy(), SHRINKS[at], float(whole), float(np.sqrt(squared)))
    if not threshold.passed(table.gain, table.error):
        return None
    by_chance = chance_error(table, axes, cells=cells, rows=rows, expected=counted[1], next_weight=blurs[best])
    return table if threshold.passed(table.gain, by_chance) else None


def chance_error(
    table: ResidualTable, axes: Sequence[TableAxis], *, cells: CellCodes, rows: ScoredRows, expected: Array, next_weight: float,
) -> float:  # fmt: skip
    """Standard error of the gain of such a table without any interaction: two rows of a cell gain, or lose, together.

    The gain is about the sum of the products of the residuals of all pairs of rows that share a cell, itself or through the
    kernel, over the expected rows and the pseudocount, less half the square of that. The standard error that is estimated from
    the rows one by one is too small where most cells have few of them.

    Parameters
    ----------
    table : ResidualTable
        The table, smoothed by the kernel.
    axes : list of TableAxis
        Its columns.
    cells : array
        Cell of each row.
    rows : ScoredRows
        The rows.
    expected : array, cells × classes
        Expected rows before smoothing.
    next_weight : float
        Kernel weight of the next bin.
    """
    place, classes = cells.astype(np.int64), expected.shape[1]
    squares: Array = np.stack([np.bincount(place, each, len(expected)) for each in rows.squared_residuals], axis=1)
    number = np.maximum(expected.sum(1, keepdims=True), 1.0)
    rest = np.maximum(table.expected - expected / number, 0.0) + table.shrink
    near, share = blur(squares, axes, next_weight**2), classes / (classes - 1.0)
    pairs = squares * np.maximum(near - squares / number, 0.0) / (rest * rest)
    others = 1.0 - 2.0 / np.maximum(table.expected.sum(1, keepdims=True), 2.0)  # of a pair in the square
    kept = 1.0 - 0.5 * np.minimum(share * near / rest, 1.0) * others
    return float(np.sqrt(2.0 * share * (pairs * kept * kept).sum()))


def count_cells(cells: CellCodes, rows: ScoredRows, number: int) -> Array:
    """Observed and expected rows of every cell and class, 2 × cells × classes."""
    classes = rows.probabilities.shape[1]
    counted, place = np.empty((2, number, classes)), cells.astype(np.int64)
    counted[0] = np.bincount(place * classes + rows.labels, rows.weights, number * classes).reshape(number, classes)
    for c, weighed in enumerate(rows.weighted_probabilities):
        counted[1, :, c] = np.bincount(place, weighed, number)
    return counted


def blur(table: Array, axes: Sequence[TableAxis], next_weight: float) -> Array:
    """A table, or several, smoothed by a kernel along every numeric axis; missing cells stay apart, and the total is kept."""
    if not next_weight:
        return table
    shape, after = table.shape, table.shape[-2] * table.shape[-1]
    for axis in axes:
        after //= axis.size
        if axis.numeric:
            table = np.matmul(_bin_kernel(axis.size, next_weight), table.reshape(-1, axis.size, after))
    return table.reshape(shape)


@cache
def _bin_kernel(size: int, next_weight: float) -> Array:
    """Kernel weights between bins."""
    place = np.arange(size)
    near: Array = np.exp(np.log(next_weight) * (place[:, None] - place) ** 2.0)
    near[-1, :-1] = near[:-1, -1] = 0.0
    return near


def _left_out_counts(seen: Array, expected: Array, cells: CellCodes, rows: ScoredRows) -> tuple[Array, Array]:
    """Observed and expected rows in the cell of every row, the row left out."""
    one = rows.left
    index = np.arange(len(cells))
    own = seen.take(cells, axis=0)
    own[index, rows.labels] = np.maximum(own[index, rows.labels] - one, 0.0)
    rest = expected.take(cells, axis=0)
    rest -= one[:, None] * rows.probabilities
    return own, np.maximum(rest, 0.0, out=rest)


def _gains(tables: Array, cells: CellCodes, rows: ScoredRows, shrinks: Sequence[float]) -> Array:
    """For each table (observed and expected rows) and pseudocount the gain in leave-one-out log likelihood with the table.

    Also the sum of its squares: tables × 2 × pseudocounts.
    """
    found = np.zeros((len(tables), 2, len(shrinks)))
    for t, table in enumerate(tables):
        own, rest = _left_out_counts(table[0], table[1], cells, rows)
        for s, shrink in enumerate(shrinks):
            ratios = (own + shrink) / (rest + shrink)
            each = np.log(ratios[np.arange(len(ratios)), rows.labels] / np.einsum("rc,rc->r", rows.probabilities, ratios))
            found[t, :, s] = (rows.weights * each).sum(), (rows.weights * each * each).sum()
    return found


def _compiled_gains(tables: Array, cells: CellCodes, rows: ScoredRows, shrinks: Sequence[float]) -> Array:
    """`_gains` by compiled loops."""
    found, classes = np.zeros((len(tables), 2, len(shrinks))), tables.shape[3]
    own, rest = np.empty((2, classes, loops.BLOCK))
    x: Array = np.empty((4, loops.BLOCK))
    loops.add_gains.fast(
        rows.transposed_probabilities, rows.labels, rows.weights, rows.left, cells, tables, np.array(shrinks),
        own, rest, x, x.view(np.uint64), found,
    )  # fmt: skip
    return found
