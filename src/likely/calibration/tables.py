"""What columns say together, beyond what they say alone: rows seen in a cell against rows expected there.

A cell's evidence for a class is log((seen + a) / (expected + a)). Expected is what the model so far gives the rows of the
cell, each left out of its own counts; so nothing is counted twice, and a cell that holds no surprise says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from likely.kernels import Kernel
from likely.threads import cached_property

Array = NDArray[np.float64]
Cells = NDArray[np.int32]

BLURS = (0.0, 0.3, 0.6, 0.8)  # what the next bin lends
SHRINKS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # imagined rows, a
USUAL_SHRINKS = (8.0,)
CHOOSING_ROWS = 8_000  # by which blur and shrink are chosen


@dataclass(frozen=True)
class Rows:
    """The sample that everything is fitted on: labels, weights, and the left-out probabilities of the model so far."""

    labels: NDArray[np.int64]
    weights: Array
    left: Array  # how much of each row is left out with it
    shares: Array

    @cached_property
    def weighed_shares(self) -> Array:
        """The probabilities times the weights of the rows, classes × rows."""
        return np.ascontiguousarray((self.shares * self.weights[:, None]).T)

    def first(self, rows: int) -> Rows:
        """The first of them, which are as good as any: their order is random."""
        return Rows(self.labels[:rows], self.weights[:rows], self.left[:rows], self.shares[:rows])


@dataclass(frozen=True)
class Axis:
    """One column in a table of several: how many codes it has, the last for missing, and whether neighbours are alike."""

    size: int
    numeric: bool


@dataclass(frozen=True)
class Table:
    """Rows seen and rows expected in every cell, and the imagined rows that keep small cells quiet."""

    seen: Array
    expected: Array
    shrink: float
    gain: float
    error: float
    groups: tuple[NDArray[np.int32], ...] | None = None  # of the values of each column, where they are not the usual ones

    def evidence(self) -> Array:
        """What each cell says of each class."""
        return np.log((self.seen + self.shrink) / (self.expected + self.shrink))

    def left_out(self, cells: Cells, rows: Rows) -> NDArray[np.float32]:
        """What the cell of every row says, once the row itself is taken out of what was seen and expected."""
        own, rest = _others(self.seen, self.expected, cells, rows)
        return np.log((own + self.shrink) / (rest + self.shrink)).astype(np.float32)


def make_table(axes: Sequence[Axis], cells: Cells, rows: Rows, sureness: float, compiled: bool = False) -> Table | None:
    """The table of some columns, smoothed as leave-one-out asks; None where it gains less than so many standard errors."""
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
    return Table(seen, expected, shrink, float(whole), error) if whole > sureness * error else None


def count_cells(cells: Cells, rows: Rows, number: int) -> tuple[Array, Array]:
    """Rows seen in every cell and class, and rows expected there."""
    classes = rows.shares.shape[1]
    place = cells.astype(np.int64) * classes
    seen = np.bincount(place + rows.labels, rows.weights, number * classes).astype(np.float64)
    columns = [np.bincount(cells, weighed, number) for weighed in rows.weighed_shares]
    return seen.reshape(number, classes), np.stack(columns, axis=1)


def blur(table: Array, axes: Sequence[Axis], lent: float) -> Array:
    """The table once neighbouring bins have lent along every numeric axis; missing stands alone, and nothing is lost."""
    if not lent:
        return table
    shape, after = table.shape, table.size
    for axis in axes:
        after //= axis.size
        if axis.numeric:
            table = np.matmul(_near(axis.size, lent), table.reshape(-1, axis.size, after))
    return table.reshape(shape)


@cache
def _near(size: int, lent: float) -> Array:
    """What each bin lends to each other one."""
    place = np.arange(size)
    near: Array = np.exp(np.log(lent) * (place[:, None] - place) ** 2.0)
    near[-1, :-1] = near[:-1, -1] = 0.0
    return near


def _others(seen: Array, expected: Array, cells: Cells, rows: Rows) -> tuple[Array, Array]:
    """Rows seen and rows expected in the cell of every row, the row itself taken out."""
    one = rows.left
    whose = np.arange(len(cells))
    own = seen.take(cells, axis=0)
    own[whose, rows.labels] = np.maximum(own[whose, rows.labels] - one, 0.0)
    rest = expected.take(cells, axis=0)
    rest -= one[:, None] * rows.shares
    return own, np.maximum(rest, 0.0, out=rest)


def _gains(seen: Array, expected: Array, cells: Cells, rows: Rows, shrinks: Sequence[float]) -> tuple[Array, Array]:
    """For each shrink, by how much the left-out labels grow more likely with the table, and the sum of the squares of that."""
    own, rest = _others(seen, expected, cells, rows)
    found = np.zeros((2, len(shrinks)))
    for s, shrink in enumerate(shrinks):
        ratios = (own + shrink) / (rest + shrink)
        each = np.log(ratios[np.arange(len(ratios)), rows.labels] / np.einsum("rc,rc->r", rows.shares, ratios))
        found[:, s] = (rows.weights * each).sum(), (rows.weights * each * each).sum()
    return found[0], found[1]


def _compiled_gains(
    seen: Array, expected: Array, cells: Cells, rows: Rows, shrinks: Sequence[float]
) -> tuple[Array, Array]:
    """The same for many rows or tables."""
    found = np.zeros((2, len(shrinks)))
    add_gains.fast(rows.shares, rows.labels, rows.weights, rows.left, cells, seen, expected, np.array(shrinks), found)
    return found[0], found[1]


@Kernel
def add_gains(shares, labels, weights, left, cells, seen, expected, shrinks, found):  # type: ignore[no-untyped-def]
    """What `_gains` adds up, row by row."""
    rows, classes = shares.shape
    own, rest = np.empty(classes), np.empty(classes)
    for r in range(rows):
        cell, y = cells[r], labels[r]
        for c in range(classes):
            own[c] = seen[cell, c]
            rest[c] = max(expected[cell, c] - left[r] * shares[r, c], 0.0)
        own[y] = max(own[y] - left[r], 0.0)
        for s in range(len(shrinks)):
            total = 0.0
            for c in range(classes):
                total += shares[r, c] * ((own[c] + shrinks[s]) / (rest[c] + shrinks[s]))
            each = np.log((own[y] + shrinks[s]) / (rest[y] + shrinks[s]) / total)
            found[0, s] += weights[r] * each
            found[1, s] += weights[r] * each * each
