"""Bins of numeric columns for one interaction table: finer ones, or adaptive ones, cut where the residuals change.

Finer bins of equal weight are taken where leave-one-out prefers them. Bins of equal weight blur every edge that lies within a
bin; adaptive ones are cut from the narrow bins of a column, greedily by gain, with the other columns grouped as before. A cut
must gain more than the best of all its positions gains by chance. An edge may lie within a narrow bin, half of whose rows would
then get the evidence of the wrong side: such bins as groups of their own are tried as well, and the table with the larger
leave-one-out gain is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from likely.calibration import _calibration_loops as loops
from likely.calibration._interaction_search import CELLS, RIDGE, GroupedColumn, Groups, Single, to_cells
from likely.calibration._interaction_tables import ResidualTable, ScoredRows, Threshold, make_table
from likely.kernels.kernel import worth_compiling

Array = NDArray[np.float64]
MOST_CUTS = 15  # of a column
ROUNDS = 2  # over all columns of a table
CHANCE = 2.0  # nats that a cut must gain beyond the logarithm of the number of its positions
EDGE = 5.0  # nats for each column that bins at edges must gain as groups of their own: they are many small cells
ENTRIES = 1 << 20  # narrow bins times cells of the other columns times classes
GAIN_ARRAYS, CUT_ARRAYS = 5e-8, 1e-7  # seconds that a row takes longer with arrays, for each class and table


def compiled_for(entries: int) -> tuple[bool, bool]:
    """Whether compiled loops are worth using for gains, and for cuts: rows times classes times tables."""
    gains = worth_compiling(GAIN_ARRAYS * entries, loops.add_gains)
    return gains, worth_compiling(CUT_ARRAYS * entries, loops.add_residuals, loops.cut_bins)


def best_table(
    parts: Sequence[GroupedColumn],
    rows: ScoredRows,
    threshold: Threshold,
    residuals: Single | None,
    *,
    compiled: bool,
    cut_compiled: bool = False,
) -> tuple[ResidualTable, Single] | None:
    """Residual table of some columns and its leave-one-out evidence; None where it gains too little.

    Numbers are in bins of equal weight or, with residuals, in finer or adaptive bins where these gain more.
    """
    usual = tuple(part.groups(len(parts)) for part in parts)
    axes, cells = GroupedColumn.together(parts, usual)
    table = make_table(axes, cells, rows, threshold, compiled)
    if table is None:
        return None
    for groups, price in [] if residuals is None else [*_finer(parts, usual), *adaptive(parts, residuals, cut_compiled)]:
        axes, anew = GroupedColumn.together(parts, groups)
        other = make_table(axes, anew, rows, threshold, compiled)
        if other is not None and other.gain > table.gain + price:
            table, cells = replace(other, groups=groups), anew
    return table, table.left_out(cells, rows)


def _finer(parts: Sequence[GroupedColumn], usual: tuple[Groups, ...]) -> list[tuple[tuple[Groups, ...], float]]:
    """Finer bins of equal weight; none if they are the usual ones, or if the table is too large."""
    fine = tuple(part.fine_groups(len(parts)) for part in parts)
    sizes = [int(each[-1]) + 1 for each in fine]
    return [(fine, 0.0)] if sizes != [int(each[-1]) + 1 for each in usual] and np.prod(sizes) <= CELLS else []


def adaptive(
    parts: Sequence[GroupedColumn], residuals: Single, compiled: bool = False
) -> list[tuple[tuple[Groups, ...], float]]:
    """Groups of the values of every column of a table; none without a numeric column, or if the table is too large.

    If there are two, the second has a narrow bin beside every cut as a group of its own, and must gain more.
    """
    groups = [part.groups(len(parts)) for part in parts]
    apart = list(groups)
    if not any(part.numeric for part in parts):
        return []
    for _ in range(ROUNDS):
        for i, part in enumerate(parts):
            others = [j for j in range(len(parts)) if j != i]
            sizes = [int(groups[j][-1]) + 1 for j in others]
            values = len(part.of_pairs) - 1
            if not part.numeric or values < 2:
                continue
            if values * int(np.prod(sizes)) * residuals.shape[1] > ENTRIES:
                return []
            cells = to_cells([groups[j][parts[j].codes] for j in others], sizes)
            cut = _compiled_cut if compiled else _cut_numbers
            cuts, before = cut(part.codes, values, cells, int(np.prod(sizes)), residuals)
            groups[i], apart[i] = _grouped(cuts, values), _grouped(_with_edges(cuts, before), values)
    sizes = [int(each[-1]) + 1 for each in apart]
    more = sizes != [int(each[-1]) + 1 for each in groups] and np.prod(sizes) <= CELLS
    return [(tuple(groups), 0.0), *([(tuple(apart), EDGE * len(parts))] if more else [])]


def _cut_numbers(codes: Groups, values: int, cells: Groups, size: int, residuals: Single) -> tuple[list[int], Array]:
    """Cuts of the narrow bins, and the cumulative sums of residuals that they follow from."""
    sums = _summed(codes, values, cells, size, residuals)
    before = np.concatenate([np.zeros((1, *sums.shape[1:])), np.cumsum(sums, axis=0)])
    return _cut(before), before


def _compiled_cut(codes: Groups, values: int, cells: Groups, size: int, residuals: Single) -> tuple[list[int], Array]:
    """`_cut_numbers` by compiled loops; the cells of the other columns are as if they were classes."""
    sums, cuts = np.zeros((2, values + 1, size * (residuals.shape[1] // 2))), np.empty(MOST_CUTS, np.int64)
    loops.add_residuals.fast(codes, cells, size, residuals, sums)
    parts, gains = np.zeros((4, MOST_CUTS + 1), np.int64), np.zeros(MOST_CUTS + 1)
    found = cuts[: loops.cut_bins.fast(sums, RIDGE, CHANCE + np.log(values), parts, gains, cuts)]
    return found.tolist(), np.concatenate([sums[0], sums[1]], axis=1)[:, None, :]


def _with_edges(cuts: Sequence[int], before: Array) -> list[int]:
    """The cuts, and another beside each, on the side that gains more: the narrow bin between them is a group of its own."""
    found, ends = set(cuts), [0, *sorted(cuts), len(before) - 1]
    for low, at, high in zip(ends, ends[1:], ends[2:], strict=False):
        tried = [(_gain_of_cut(before, low, at - 1, at), at - 1), (_gain_of_cut(before, at, at + 1, high), at + 1)]
        gained, beside = max(tried)
        if np.isfinite(gained):
            found.add(beside)
    return sorted(found)


def _gain_of_cut(before: Array, a: int, at: int, b: int) -> float:
    """Gain of the cut of a range of narrow bins at a position within it."""
    if not a < at < b:
        return -np.inf
    left, right, whole = before[at] - before[a], before[b] - before[at], before[b] - before[a]
    one, other, both = _gain(np.stack([left, right, whole])).tolist()
    return float(one + other - both)


def _grouped(cuts: Sequence[int], values: int) -> Groups:
    group = np.searchsorted(np.sort(cuts), np.arange(values), side="right")
    return np.append(group, len(cuts) + 1).astype(np.int32)


def _summed(codes: Groups, values: int, cells: Groups, size: int, residuals: Single) -> Array:
    """Sums of the residuals and their squares, bins × cells of the other columns × 2 classes; missing numbers are skipped."""
    known = np.flatnonzero(codes < values)
    place = codes[known].astype(np.int64) * size + cells[known]
    sums = [np.bincount(place, each[known], values * size).astype(np.float64) for each in residuals.T]
    return np.stack(sums, axis=1).reshape(values, size, -1)


def _cut(before: Array) -> list[int]:
    """Positions of the cuts, greedily by gain, from cumulative sums."""
    price = CHANCE + np.log(len(before) - 1)
    parts = [(0, len(before) - 1)]
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
    return cuts


def _best(before: Array, a: int, b: int) -> tuple[float, int]:
    """Best cut of a range of narrow bins in two, and its gain."""
    if b - a < 2:
        return -np.inf, a
    inside = before[a + 1 : b]
    gained = _gain(inside - before[a]) + _gain(before[b] - inside) - _gain(before[b : b + 1] - before[a])
    i = int(np.argmax(gained))
    return float(gained[i]), a + 1 + i


def _gain(sums: Array) -> Array:
    """Gain of the cells of each range by one ridge-penalised Newton step, leave-one-out (see `search_gains`)."""
    classes = sums.shape[2] // 2
    d, v = sums[:, :, :classes] ** 2, sums[:, :, classes:]
    gained: Array = ((d - v) / (v + RIDGE) - 0.5 * d * v / (v + RIDGE) ** 2).sum((1, 2))
    return gained
