"""Search for interactions by score tests: all pairs of columns, and the sets found before with one more column."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.calibration import _calibration_loops as loops
from likely.calibration._interaction_tables import CellCodes, ScoredRows, TableAxis, Threshold
from likely.calibration.calibration import Interaction
from likely.kernels.kernel import Kernel, ReorderedKernel, worth_compiling
from likely.kernels.parallel import cached_property, in_parallel

Array = NDArray[np.float64]
Groups = NDArray[np.int32]
Single = NDArray[np.float32]

# Bins of a number: in a table of two columns, in one of more, in the search, and finer ones of two and of more, which
# are taken where leave-one-out prefers them.
BINS = (24, 12, 8, 48, 18)
VALUES = 48  # of a category in a table: rarer values are one group
CELLS = 1 << 14
ENTRIES = 1 << 20  # cells times classes of one table
COLUMNS = 64  # maximum number searched: those with the largest gains alone
RIDGE = 4.0  # ridge penalty of the Newton step in the search
LEVEL = 0.05  # of the test that a table must pass
FEW_ROWS = 50  # below, standard errors are too uncertain for that level
MANY_ROWS = 600  # with so many, one table may pass by chance among all candidates; with more rows it does less harm
# Seconds that an entry of the sets takes longer with arrays, each set having so many entries more.
ARRAYS, EACH = 4e-9, 15_000
CHUNK = 2048  # rows
NEGLIGIBLE = 1e-3  # a weight
PORTION = 1 << 17  # entries of the tables that a thread fills at a time
SCREENED = 100_000_000  # residual entries over all sets that are summed in a round
FEWEST_ROWS = 1_000  # that sets are tested on
TRIPLE_ROWS = 300  # from which all sets of three columns are tested
RETESTED = 600  # sets that are tested again
RETESTED_FACTOR = 4  # times as many sets as requested are tested on all rows
ColumnSet = tuple[int, ...]


@dataclass(frozen=True)
class GroupedColumn:
    """One column in the search: its codes for the rows of the sample, and the groups of its values in tables."""

    codes: Groups  # values or bins, then (one further) missing
    numeric: bool
    of_pairs: Groups  # the group of every value or bin, and last of a missing cell
    of_more: Groups
    of_search: Groups
    fine_pairs: Groups
    fine_more: Groups

    @cached_property
    def in_search(self) -> NDArray[np.uint8]:
        """Group of every row while searching."""
        return self.of_search.astype(np.uint8)[self.codes]

    def groups(self, columns: int) -> Groups:
        """Groups in a table of so many columns."""
        return self.of_pairs if columns == 2 else self.of_more

    def fine_groups(self, columns: int) -> Groups:
        """Finer groups in a table of so many columns; the same groups for a category."""
        return self.fine_pairs if columns == 2 else self.fine_more

    def size(self, columns: int) -> int:
        """Number of groups in such a table, missing included."""
        return int(self.groups(columns)[-1]) + 1

    @staticmethod
    def together(parts: Sequence[GroupedColumn], groups: Sequence[Groups]) -> tuple[list[TableAxis], CellCodes]:
        """Axes of the table of some columns under these groups, and the cell of every row."""
        axes = [TableAxis(int(each[-1]) + 1, part.numeric) for each, part in zip(groups, parts, strict=True)]
        codes = [each[part.codes] for each, part in zip(groups, parts, strict=True)]
        return axes, to_cells(codes, [axis.size for axis in axes])


def group_column(codes: NDArray[np.int32], values: int, numeric: bool, weights: Array, compiled: bool = False) -> GroupedColumn:
    """A column with its groups; `codes` are values or bins, then unseen (no row of a sample), then missing."""
    if numeric and compiled:
        known, groups_of = np.empty(len(codes), np.int32), np.empty((len(BINS), values + 1), np.int32)
        loops.group_numbers.fast(codes, weights, np.array(BINS), known, groups_of)
        return GroupedColumn(known, True, *groups_of)
    codes = np.where(codes >= values, values, codes).astype(np.int32)
    mass = np.bincount(codes, weights, values + 1)[:values].astype(np.float64)
    groups = [_neighbours(mass, size) for size in BINS] if numeric else [_most_frequent(mass, VALUES)] * len(BINS)
    return GroupedColumn(codes, numeric, *(np.append(g, g.max(initial=-1) + 1).astype(np.int32) for g in groups))


def _neighbours(mass: Array, most: int) -> NDArray[np.int64]:
    """Bins merged with their neighbours to at most so many of about equal weight."""
    if len(mass) <= most:
        return np.arange(len(mass))
    middle = (np.cumsum(mass) - mass / 2) / max(float(mass.sum()), 1e-300)
    place = np.minimum((middle * most).astype(np.int64), most - 1)  # non-decreasing
    return np.concatenate([[0], np.cumsum(place[1:] != place[:-1])])


def _most_frequent(mass: Array, most: int) -> NDArray[np.int64]:
    """The most frequent values each by itself, all others as one group."""
    if len(mass) <= most:
        return np.arange(len(mass))
    group = np.full(len(mass), most - 1)
    group[np.argsort(-mass, kind="stable")[: most - 1]] = np.arange(most - 1)
    return group


def to_cells(codes: Sequence[Groups], sizes: Sequence[int]) -> CellCodes:
    """Cell of every row: the codes of the columns as the digits of one number."""
    cell = codes[0].astype(np.int32)
    for more, size in zip(codes[1:], sizes[1:], strict=True):
        cell = cell * np.int32(size) + more
    return cell


class InteractionSearch:
    """Search for interactions in several rounds.

    The first round tests all pairs of columns. Later rounds test the best candidates again, and each table added last with one
    more column.
    """

    def __init__(self, columns: Mapping[int, GroupedColumn], terms: int, order: int) -> None:
        self.columns, self._order = columns, order
        self._near = list(columns)[:COLUMNS]
        self._wanted = max(2, -(-min(terms, COLUMNS) // 2))
        self._gains: dict[ColumnSet, float] = {}  # per row, when last tested
        self._grown: set[ColumnSet] = set()
        self._triples = order > 2  # whether they are still to be tested
        self.tested = 0  # number of sets

    def widen(self, rows: ScoredRows) -> bool:
        """Also test all sets of three columns in the next round: some have a pattern that no pair shows.

        Returns whether there are enough rows, and not too many sets.
        """
        n, width = len(self._near), 2 * rows.probabilities.shape[1]
        sets = n * (n - 1) * (n - 2) // 6
        wanted, self._triples = self._triples, False
        enough = float(rows.weights.sum()) >= TRIPLE_ROWS  # equal rows are one row with their weights summed
        return wanted and enough and 0 < sets * width * FEWEST_ROWS <= SCREENED

    def best(self, have: Iterable[ColumnSet], rows: ScoredRows, triples: bool = False) -> tuple[list[ColumnSet], Threshold]:
        """Column sets with the largest estimated gains, the best first, and the threshold of their tables.

        The best of many candidates gains something by chance: the threshold grows with their number (Bonferroni).
        """
        residuals = residuals_of(rows)
        limit = min(CELLS, max(256, ENTRIES // rows.probabilities.shape[1]))
        candidates = self._all_triples(set(have), limit) if triples else self._candidates(set(have), limit)
        some = max(FEWEST_ROWS, SCREENED // max(1, len(candidates) * residuals.shape[1]))
        gains = np.array(search_gains(self.columns, candidates, residuals[:some])) / max(min(some, len(residuals)), 1)
        self._gains |= dict(zip(candidates, gains.tolist(), strict=True))
        self.tested = max(self.tested, len(self._gains))
        ranked = [each for _, each in sorted(zip((-gains).tolist(), candidates, strict=True))]
        if some < len(residuals):  # the best of them are tested again on all rows
            ranked = ranked[: RETESTED_FACTOR * self._wanted]
            gains_of_all = dict(zip(ranked, search_gains(self.columns, ranked, residuals), strict=True))
            ranked.sort(key=lambda each: (-gains_of_all[each], each))
        n = float(rows.weights.sum())
        level = min(LEVEL, LEVEL * (n / FEW_ROWS) ** 2, (n / MANY_ROWS) ** 2 / max(len(self._gains), 1))
        return [each for each in ranked[: self._wanted] if self._gains[each] > 0], Threshold.of(level, LEVEL)

    def _all_triples(self, have: set[ColumnSet], limit: int) -> list[ColumnSet]:
        known, size = have | self._gains.keys(), {i: float(self.columns[i].size(3)) for i in self._near}
        return [each for each in combinations(self._near, 3) if each not in known and prod(size[i] for i in each) <= limit]

    def _candidates(self, have: set[ColumnSet], limit: int) -> list[ColumnSet]:
        """Sets tested in this round whose tables are small enough."""
        of_two, of_more = ({i: float(self.columns[i].size(n)) for i in self._near} for n in (2, 3))
        if not self._gains:
            return [p for p in combinations(self._near, 2) if p not in have and of_two[p[0]] * of_two[p[1]] <= limit]
        for each in have:
            self._gains.pop(each, None)
        before = [each for _, each in heapq.nlargest(RETESTED, zip(self._gains.values(), self._gains.keys(), strict=True))]
        last = [each for each in have - self._grown if len(each) < self._order]
        self._grown |= have
        grown = {tuple(sorted((*each, more))) for each in last for more in self._near if more not in each}
        new = sorted(grown - have - self._gains.keys())
        if max(of_more.values()) ** self._order <= limit:
            return before + new
        return before + [each for each in new if prod(of_more[i] for i in each) <= limit]


def residuals_of(rows: ScoredRows) -> Single:
    """Residuals (label indicator minus probability), class by class, and then their squares."""
    residual = -rows.probabilities
    residual[np.arange(len(residual)), rows.labels] += 1.0
    squared = residual * residual * rows.weights[:, None]
    residual *= rows.weights[:, None]
    if residual.shape[1] == 2:  # the residuals of two classes differ only in sign
        residual, squared = residual[:, 1:], squared[:, 1:]
    return np.concatenate([residual, squared], axis=1, dtype=np.float32)


def search_gains(columns: Mapping[int, GroupedColumn], sets: Sequence[ColumnSet], residuals: Single) -> list[float]:
    """Estimated gain of the table of each set: one ridge-penalised Newton step from zero on its cells, leave-one-out."""
    if not sets:
        return []
    places = np.zeros(max(columns) + 1, np.int64)
    places[list(columns)] = np.arange(len(columns))
    codes = np.stack([each.in_search[: len(residuals)] for each in columns.values()])
    sizes = np.array([*(int(each.of_search[-1]) + 1 for each in columns.values()), 1])  # the last: no column
    lengths = np.fromiter(map(len, sets), np.int64, len(sets))
    which = np.full((len(sets), lengths.max()), -1)
    which[np.arange(which.shape[1]) < lengths[:, None]] = places[np.fromiter(chain.from_iterable(sets), np.int64)]
    cells = np.prod(sizes[which], axis=1)
    if not worth_compiling(ARRAYS * len(sets) * (EACH + residuals.size), add_up, judge):
        return [_gain(np.ravel_multi_index(tuple(codes[w[:k]]), tuple(sizes[w[:k]])), residuals)
                for w, k in zip(which, lengths.tolist(), strict=True)]  # fmt: skip
    add_up.prepare()
    judge.prepare()

    def work(part: tuple[int, int]) -> Array:
        a, b = part
        ends = np.concatenate([[0], np.cumsum(cells[a:b])])
        gains, sums = np.zeros(b - a), np.zeros((ends[-1], residuals.shape[1]))
        add_up.fast(residuals, codes, which[a:b], sizes, ends, sums)
        judge.fast(sums, ends, gains)
        return gains

    found: list[float] = np.concatenate(in_parallel(work, _portions(cells * residuals.shape[1]))).tolist()
    return found


def _portions(entries: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Slices of the sets whose tables fit the cache together; at least one set each."""
    starts = np.flatnonzero(np.diff((np.cumsum(entries) - entries) // PORTION, prepend=-1))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(entries)], strict=True))


def _gain(cells: NDArray[np.int64], residuals: Single) -> float:
    """Estimated gain of one table: `add_up` and `judge` for few rows."""
    sums = np.stack([np.bincount(cells, x) for x in residuals.T])
    sums = sums[:, sums[len(sums) // 2 :].any(0)]
    d, v = np.split(sums, 2)
    d = d * d
    return float(((d - v) / (v + RIDGE) - 0.5 * d * v / (v + RIDGE) ** 2).sum())


@Kernel
def add_up(residuals, codes, sets, sizes, starts, sums):  # type: ignore[no-untyped-def]
    """Sums of the residuals over the cells of every set; a chunk of rows stays in the cache for all sets."""
    rows, width = residuals.shape
    cells = np.empty(CHUNK, np.uint32)  # unsigned: no check for negative indices
    for a in range(0, rows, CHUNK):
        some = residuals[a : a + CHUNK]
        n = len(some)
        for s in range(len(sets)):
            first = codes[sets[s, 0], a : a + n]
            for r in range(n):
                cells[r] = first[r]
            for k in range(1, sets.shape[1]):
                if sets[s, k] >= 0:
                    size, more = np.uint32(sizes[sets[s, k]]), codes[sets[s, k], a : a + n]
                    for r in range(n):
                        cells[r] = cells[r] * size + np.uint32(more[r])
            table = sums[starts[s] : starts[s + 1]]
            for r in range(n):
                cell = cells[r]
                if width == 2:
                    table[cell, 0] += some[r, 0]
                    table[cell, 1] += some[r, 1]
                else:
                    for c in range(width):
                        table[cell, c] += some[r, c]


@ReorderedKernel
def judge(sums, starts, gains):  # type: ignore[no-untyped-def]
    """Estimated gain of each table; most cells of a large one are empty."""
    classes = sums.shape[1] // 2
    for s in range(len(gains)):
        total = 0.0
        for cell in range(starts[s], starts[s + 1]):
            rows = 0.0
            for c in range(classes):
                rows += sums[cell, classes + c]
            if rows > 0.0:
                for c in range(classes):
                    d, v = sums[cell, c] ** 2, sums[cell, classes + c]
                    one = 1.0 / (v + RIDGE)
                    total += ((d - v) - 0.5 * d * v * one) * one
        gains[s] = total


def kept_interactions(
    names: Sequence[str], columns: Mapping[int, GroupedColumn], tables: Mapping[tuple[int, ...], Any], weights: Array
) -> tuple[Interaction, ...]:
    """Interactions whose weight is not negligible, from the tables and the names of their columns."""
    found = []
    for (members, table), weight in zip(tables.items(), weights.tolist(), strict=True):
        if weight > NEGLIGIBLE:
            groups = table.groups or tuple(columns[i].groups(len(members)) for i in members)
            own = tuple(names[i] for i in members)
            found.append(Interaction(own, groups, table.evidence(), weight, table.gain, table.error))
    return tuple(found)
