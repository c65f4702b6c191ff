"""What columns say together, beyond what they say alone: rows seen in a cell against rows expected there.

A cell's evidence for a class is log((seen + a) / (expected + a)). Expected is what the model so far gives the rows of the
cell, each left out of its own counts; so nothing is counted twice, and a cell that holds no surprise says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Cells = NDArray[np.int32]

BLURS = (0.0, 0.3, 0.6, 0.8)  # what the next bin lends
SHRINKS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # imagined rows, a
USUAL_SHRINK = 8.0
CHOOSING_ROWS = 8_000  # by which blur and shrink are chosen


@dataclass(frozen=True)
class Rows:
    """The sample that everything is fitted on: labels, weights, and the left-out probabilities of the model so far."""

    labels: NDArray[np.int64]
    weights: Array
    left: Array  # how much of each row is left out with it
    shares: Array

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

    def evidence(self) -> Array:
        """What each cell says of each class."""
        return np.log((self.seen + self.shrink) / (self.expected + self.shrink))

    def left_out(self, cells: Cells, rows: Rows) -> NDArray[np.float32]:
        """What the cell of every row says, once the row itself is taken out of what was seen and expected."""
        own, rest = _others(self.seen, self.expected, cells, rows)
        return np.log((own + self.shrink) / (rest + self.shrink)).astype(np.float32)


def make_table(axes: Sequence[Axis], cells: Cells, rows: Rows, sureness: float) -> Table | None:
    """The table of some columns, smoothed as leave-one-out asks; None where it gains less than so many standard errors."""
    seen, expected = count_cells(cells, rows, int(np.prod([axis.size for axis in axes])))
    some, few = cells[:CHOOSING_ROWS], rows.first(CHOOSING_ROWS)
    blurs = BLURS if any(axis.numeric for axis in axes) else BLURS[:1]
    blurred = [(blur(seen, axes, s), blur(expected, axes, s)) for s in blurs]
    others = [_others(n, e, some, few) for n, e in blurred]
    best = int(np.argmax([_gain(*left, USUAL_SHRINK, few)[0] for left in others]))
    seen, expected = blurred[best]
    shrink = SHRINKS[int(np.argmax([_gain(*others[best], a, few)[0] for a in SHRINKS]))]
    whole, squared = _gain(*_others(seen, expected, cells, rows), shrink, rows)
    error = float(np.sqrt(squared))
    return Table(seen, expected, shrink, whole, error) if whole > sureness * error else None


def count_cells(cells: Cells, rows: Rows, number: int) -> tuple[Array, Array]:
    """Rows seen in every cell and class, and rows expected there."""
    classes = rows.shares.shape[1]
    place = cells.astype(np.int64) * classes
    seen = np.bincount(place + rows.labels, rows.weights, number * classes).astype(np.float64)
    columns = [np.bincount(cells, rows.weights * rows.shares[:, c], number) for c in range(classes)]
    return seen.reshape(number, classes), np.stack(columns, axis=1)


def blur(table: Array, axes: Sequence[Axis], lent: float) -> Array:
    """The table once neighbouring bins have lent along every numeric axis; missing stands alone, and nothing is lost."""
    if not lent:
        return table
    classes = table.shape[1]
    wide = table.reshape([axis.size for axis in axes] + [classes])
    for i, axis in enumerate(axes):
        if axis.numeric:
            place = np.arange(axis.size)
            near = lent ** ((place[:, None] - place) ** 2.0)
            near[-1, :-1] = near[:-1, -1] = 0.0
            wide = np.moveaxis(np.tensordot(near, wide, (1, i)), 0, i)
    return np.ascontiguousarray(wide).reshape(-1, classes)


def _others(seen: Array, expected: Array, cells: Cells, rows: Rows) -> tuple[Array, Array]:
    """Rows seen and rows expected in the cell of every row, the row itself taken out."""
    one = rows.left
    whose = np.arange(len(cells))
    own = seen.take(cells, axis=0)
    own[whose, rows.labels] = np.maximum(own[whose, rows.labels] - one, 0.0)
    rest = expected.take(cells, axis=0)
    rest -= one[:, None] * rows.shares
    return own, np.maximum(rest, 0.0, out=rest)


def _gain(own: Array, rest: Array, shrink: float, rows: Rows) -> tuple[float, float]:
    """By how much the left-out labels grow more likely if the table is believed, and the sum of the squares of that."""
    ratios = (own + shrink) / (rest + shrink)
    each = np.log(ratios[np.arange(len(ratios)), rows.labels] / np.einsum("rc,rc->r", rows.shares, ratios))
    weighed = rows.weights * each  # no linear algebra of many rows: its threads would linger on the cores
    return float(weighed.sum()), float((weighed * each).sum())
