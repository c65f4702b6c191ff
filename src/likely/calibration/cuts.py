"""Cuts of numbers for one interaction table: few bins, whose edges lie where the residuals change.

A table of bins of equal weight blurs every edge that lies within a bin. Here each numeric column of a table is cut anew from
its narrow bins, the cut that gains most first, while the other columns stay grouped as they are. A cut must gain more than
what the best of all its places gains by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from likely.calibration.search import RIDGE, Groups, Searched, Single, to_cells
from likely.calibration.tables import Rows, Table, make_table

Array = NDArray[np.float64]
MOST_CUTS = 15  # of a column
ROUNDS = 2  # in which all columns of a table are cut
CHANCE = 2.0  # nats that a cut must gain beyond the logarithm of the number of its places
ENTRIES = 1 << 20  # narrow bins times cells of the other columns times classes


def best_table(
    parts: Sequence[Searched], rows: Rows, sureness: float, residuals: Single | None, compiled: bool
) -> tuple[Table, Single] | None:
    """The table of some columns and its left-out evidence; None where it gains too little.

    Numbers are in bins of equal weight or, with residuals, cut anew where that gains more.
    """
    usual = tuple(part.groups(len(parts)) for part in parts)
    axes, cells = Searched.together(parts, usual)
    table = make_table(axes, cells, rows, sureness, compiled)
    if table is None:
        return None
    for groups in [] if residuals is None else adaptive(parts, residuals):
        axes, anew = Searched.together(parts, groups)
        other = make_table(axes, anew, rows, sureness, compiled)
        if other is not None and other.gain > table.gain:
            table, cells = replace(other, groups=groups), anew
    return table, table.left_out(cells, rows)


def adaptive(parts: Sequence[Searched], surprise: Single) -> list[tuple[Groups, ...]]:
    """Groups of the values of every column of a table; none where no column is numeric, or the table is too large for it."""
    groups = [part.groups(len(parts)) for part in parts]
    if not any(part.numeric for part in parts):
        return []
    for _ in range(ROUNDS):
        for i, part in enumerate(parts):
            others = [j for j in range(len(parts)) if j != i]
            sizes = [int(groups[j][-1]) + 1 for j in others]
            values = len(part.of_pairs) - 1
            if not part.numeric or values < 2:
                continue
            if values * int(np.prod(sizes)) * surprise.shape[1] > ENTRIES:
                return []
            cells = to_cells([groups[j][parts[j].codes] for j in others], sizes)
            groups[i] = _cut(_summed(part.codes, values, cells, int(np.prod(sizes)), surprise))
    return [tuple(groups)]


def _summed(codes: Groups, values: int, cells: Groups, size: int, surprise: Single) -> Array:
    """Surprises added up, narrow bins × cells of the other columns × classes twice; rows without the number are left out."""
    known = np.flatnonzero(codes < values)
    place = codes[known].astype(np.int64) * size + cells[known]
    sums = [np.bincount(place, each[known], values * size).astype(np.float64) for each in surprise.T]
    return np.stack(sums, axis=1).reshape(values, size, -1)


def _cut(sums: Array) -> Groups:
    """The group of every narrow bin, and last of a missing cell."""
    before = np.concatenate([np.zeros((1, *sums.shape[1:])), np.cumsum(sums, axis=0)])
    price = CHANCE + np.log(len(sums))
    parts = [(0, len(sums))]
    best = {parts[0]: _best(before, *parts[0])}
    cuts: list[int] = []
    while len(cuts) < MOST_CUTS:
        part = max(best, key=lambda each: best[each][0])
        gained, at = best.pop(part)
        if gained <= price:
            break
        cuts.append(at)
        for new in ((part[0], at), (at, part[1])):
            best[new] = _best(before, *new)
    group = np.searchsorted(np.sort(cuts), np.arange(len(sums)), side="right")
    return np.append(group, len(cuts) + 1).astype(np.int32)


def _best(before: Array, a: int, b: int) -> tuple[float, int]:
    """Where a stretch of narrow bins is best cut in two, and what that gains."""
    if b - a < 2:
        return -np.inf, a
    inside = before[a + 1 : b]
    gained = _gain(inside - before[a]) + _gain(before[b] - inside) - _gain(before[b : b + 1] - before[a])
    i = int(np.argmax(gained))
    return float(gained[i]), a + 1 + i


def _gain(sums: Array) -> Array:
    """What the cells of each stretch gain, by one careful step, each row left out of its own (see `search_gains`)."""
    classes = sums.shape[2] // 2
    d, v = sums[:, :, :classes] ** 2, sums[:, :, classes:]
    gained: Array = ((d - v) / (v + RIDGE) - 0.5 * d * v / (v + RIDGE) ** 2).sum((1, 2))
    return gained
