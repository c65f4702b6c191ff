"""The search for columns that speak together: all pairs, and what was found before with one column more."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from likely.calibration.tables import Axis, Cells, Rows
from likely.kernels import Kernel
from likely.threads import cached_property, in_parallel

Array = NDArray[np.float64]
Groups = NDArray[np.int32]
Single = NDArray[np.float32]

PAIR_BINS, DEEP_BINS, SEARCH_BINS = 24, 12, 8  # of a number: in a table of two columns, of more, and while searching
VALUES = 48  # of a category in a table: the rare rest is one value
CELLS = 1 << 14
ENTRIES = 1 << 20  # cells times classes of one table
COLUMNS = 64  # that are searched: those that say most by themselves
RIDGE = 4.0  # imagined spread in the search
LEVEL = 0.05  # of the test that a table must pass
FEW_ROWS = 50  # below, standard errors are too uncertain for that level
MANY_ROWS = 600  # with so many, one table may pass by chance among all candidates; with more rows it does less harm
# From so many entries of a set on, or in all with so many more for each set, the compiled loop pays for its import.
COMPILED, EACH, IN_ALL = 20_000, 15_000, 20_000_000
STRETCH = 2048  # rows
PORTION = 1 << 17  # entries of the tables that a thread fills at a time
SCREENED = 100_000_000  # entries of surprise, over all sets, that are added up in a round
FEWEST_ROWS = 1_000  # by which sets are judged
KEPT = 600  # sets that are judged again
AGAIN = 4  # times as many as are wanted are judged by all rows
Set = tuple[int, ...]


@dataclass(frozen=True)
class Searched:
    """One column as the search sees it: its codes for the sample's rows, and how its values are grouped in tables."""

    codes: Groups  # values or bins, then (one further) missing
    numeric: bool
    of_pairs: Groups  # the group of every value or bin, and last of a missing cell
    of_more: Groups
    of_search: Groups

    @cached_property
    def in_search(self) -> NDArray[np.uint8]:
        """The group of every row while searching: there are few."""
        return self.of_search.astype(np.uint8)[self.codes]

    def groups(self, columns: int) -> Groups:
        """The groups in a table of so many columns."""
        return self.of_pairs if columns == 2 else self.of_more

    def size(self, columns: int) -> int:
        """How many groups there are in such a table, missing being one."""
        return int(self.groups(columns)[-1]) + 1

    @staticmethod
    def together(parts: Sequence[Searched], groups: Sequence[Groups]) -> tuple[list[Axis], Cells]:
        """The axes of the table of some columns, their values grouped like this, and the cell of every row."""
        axes = [Axis(int(each[-1]) + 1, part.numeric) for each, part in zip(groups, parts, strict=True)]
        codes = [each[part.codes] for each, part in zip(groups, parts, strict=True)]
        return axes, to_cells(codes, [axis.size for axis in axes])


def grouped(codes: NDArray[np.int32], values: int, numeric: bool, weights: Array) -> Searched:
    """A column with its groups; `codes` have values or bins, then unseen (which no row of a sample is), then missing."""
    codes = np.where(codes >= values, values, codes).astype(np.int32)
    mass = np.bincount(codes, weights, values + 1)[:values].astype(np.float64)
    sizes = (PAIR_BINS, DEEP_BINS, SEARCH_BINS) if numeric else (VALUES, VALUES, VALUES)
    cut = _neighbours if numeric else _most_frequent
    groups = (cut(mass, size) for size in sizes)
    return Searched(codes, numeric, *(np.append(g, g.max(initial=-1) + 1).astype(np.int32) for g in groups))


def _neighbours(mass: Array, most: int) -> NDArray[np.int64]:
    """Bins joined to at most so many, of about equal weight."""
    if len(mass) <= most:
        return np.arange(len(mass))
    middle = (np.cumsum(mass) - mass / 2) / max(float(mass.sum()), 1e-300)
    return np.unique(np.minimum((middle * most).astype(np.int64), most - 1), return_inverse=True)[1]


def _most_frequent(mass: Array, most: int) -> NDArray[np.int64]:
    """Each of the most frequent values by itself, all others as one."""
    if len(mass) <= most:
        return np.arange(len(mass))
    group = np.full(len(mass), most - 1)
    group[np.argsort(-mass, kind="stable")[: most - 1]] = np.arange(most - 1)
    return group


def to_cells(codes: Sequence[Groups], sizes: Sequence[int]) -> Cells:
    """The cell of every row: the codes of the columns as the digits of one number."""
    cell = codes[0].astype(np.int32)
    for more, size in zip(codes[1:], sizes[1:], strict=True):
        cell = cell * np.int32(size) + more
    return cell


class Search:
    """The search for interactions, round after round of one fit.

    The first round judges all pairs of columns. Later ones judge again what came near before, and each table that was made
    last with one column more.
    """

    def __init__(self, columns: Mapping[int, Searched], terms: int, order: int) -> None:
        self.columns, self._order = columns, order
        self._near = list(columns)[:COLUMNS]
        self._wanted = max(2, -(-min(terms, COLUMNS) // 2))
        self._gains: dict[Set, float] = {}  # a row, when last judged
        self._grown: set[Set] = set()
        self._triples = order > 2  # whether they are still to be judged

    def widen(self, rows: Rows) -> bool:
        """Judge all sets of three columns, too, in the next round: some have a pattern that no pair shows.

        Whether there are rows enough, and not too many sets.
        """
        n, width = len(self._near), 2 * rows.shares.shape[1]
        sets = n * (n - 1) * (n - 2) // 6
        wanted, self._triples = self._triples, False
        return wanted and len(rows.labels) >= FEWEST_ROWS and 0 < sets * width * FEWEST_ROWS <= SCREENED

    def best(self, have: Iterable[Set], rows: Rows, triples: bool = False) -> tuple[list[Set], float]:
        """The sets of columns whose table would gain most, the best first, and the standard errors that each must gain.

        The best of many candidates gains something by chance: the more there are, the more is asked for (Bonferroni).
        """
        surprise = surprises(rows)
        limit = min(CELLS, max(256, ENTRIES // rows.shares.shape[1]))
        candidates = self._all_triples(set(have), limit) if triples else self._candidates(set(have), limit)
        some = max(FEWEST_ROWS, SCREENED // max(1, len(candidates) * surprise.shape[1]))
        gains = np.array(search_gains(self.columns, candidates, surprise[:some])) / max(min(some, len(surprise)), 1)
        self._gains |= dict(zip(candidates, gains.tolist(), strict=True))
        ranked = sorted(candidates, key=lambda each: (-self._gains[each], each))
        if some < len(surprise):  # the best of them are judged again by all rows
            ranked = ranked[: AGAIN * self._wanted]
            judged = dict(zip(ranked, search_gains(self.columns, ranked, surprise), strict=True))
            ranked.sort(key=lambda each: (-judged[each], each))
        n = float(rows.weights.sum())
        level = min(LEVEL, LEVEL * (n / FEW_ROWS) ** 2, (n / MANY_ROWS) ** 2 / max(len(self._gains), 1))
        sureness = NormalDist().inv_cdf(1.0 - max(level, 1e-9))
        return [each for each in ranked[: self._wanted] if self._gains[each] > 0], sureness

    def _all_triples(self, have: set[Set], limit: int) -> list[Set]:
        known, size = have | self._gains.keys(), {i: float(self.columns[i].size(3)) for i in self._near}
        return [each for each in combinations(self._near, 3) if each not in known and prod(size[i] for i in each) <= limit]

    def _candidates(self, have: set[Set], limit: int) -> list[Set]:
        """Sets that are judged in this round, as far as their tables are small enough."""
        of_two, of_more = ({i: float(self.columns[i].size(n)) for i in self._near} for n in (2, 3))
        if not self._gains:
            return [p for p in combinations(self._near, 2) if p not in have and of_two[p[0]] * of_two[p[1]] <= limit]
        for each in have:
            self._gains.pop(each, None)
        before = heapq.nlargest(KEPT, self._gains, key=lambda each: (self._gains[each], each))
        last = [each for each in have - self._grown if len(each) < self._order]
        self._grown |= have
        grown = {tuple(sorted((*each, more))) for each in last for more in self._near if more not in each}
        new = sorted(grown - have - self._gains.keys())
        return before + [each for each in new if prod(of_more[i] for i in each) <= limit]


def surprises(rows: Rows) -> Single:
    """The truth less the probability, class by class, and then the square of it."""
    wrong = -rows.shares
    wrong[np.arange(len(wrong)), rows.labels] += 1.0
    squared = wrong * wrong * rows.weights[:, None]
    wrong *= rows.weights[:, None]
    if wrong.shape[1] == 2:  # the two classes mirror each other
        wrong, squared = wrong[:, 1:], squared[:, 1:]
    return np.concatenate([wrong, squared], axis=1, dtype=np.float32)


def search_gains(columns: Mapping[int, Searched], sets: Sequence[Set], surprise: Single) -> list[float]:
    """What the table of each set would gain, by one careful step from nothing: surprises that add up in its cells.

    Each cell's step is judged with the row's own surprise left out.
    """
    if not sets:
        return []
    names = {i: place for place, i in enumerate(columns)}
    codes = np.stack([each.in_search[: len(surprise)] for each in columns.values()])
    sizes = np.array([*(int(each.of_search[-1]) + 1 for each in columns.values()), 1])  # the last: no column
    most = max(map(len, sets))
    which = np.array([[names[i] for i in each] + [-1] * (most - len(each)) for each in sets])
    cells = np.prod(sizes[which], axis=1)
    if surprise.size < COMPILED and len(sets) * (EACH + surprise.size) < IN_ALL:
        return [_gain(np.ravel_multi_index(tuple(codes[w[:k]]), tuple(sizes[w[:k]])), surprise)
                for w, k in zip(which, map(len, sets), strict=True)]  # fmt: skip
    add_up.prepare()
    judge.prepare()

    def work(part: tuple[int, int]) -> Array:
        a, b = part
        ends = np.concatenate([[0], np.cumsum(cells[a:b])])
        gains, sums = np.zeros(b - a), np.zeros((ends[-1], surprise.shape[1]))
        add_up.fast(surprise, codes, which[a:b], sizes, ends, sums)
        judge.fast(sums, ends, gains)
        return gains

    found: list[float] = np.concatenate(in_parallel(work, _portions(cells * surprise.shape[1]))).tolist()
    return found


def _portions(entries: NDArray[np.int64]) -> list[tuple[int, int]]:
    """The sets in portions whose tables fit the cache together; one is never too large to be one."""
    starts = np.flatnonzero(np.diff((np.cumsum(entries) - entries) // PORTION, prepend=-1))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(entries)], strict=True))


def _gain(cells: NDArray[np.int64], surprise: Single) -> float:
    """What one table would gain: `add_up` and `judge` for few rows."""
    sums = np.stack([np.bincount(cells, x) for x in surprise.T])
    sums = sums[:, sums[len(sums) // 2 :].any(0)]
    d, v = np.split(sums, 2)
    d = d * d
    return float(((d - v) / (v + RIDGE) - 0.5 * d * v / (v + RIDGE) ** 2).sum())


@Kernel
def add_up(surprise, codes, sets, sizes, starts, sums):  # type: ignore[no-untyped-def]
    """The surprises added up by the cells of every set; a stretch of rows stays at hand for all of them."""
    rows, width = surprise.shape
    cells = np.empty(STRETCH, np.uint32)  # unsigned: a place that cannot be negative is not looked at twice
    for a in range(0, rows, STRETCH):
        some = surprise[a : a + STRETCH]
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


@Kernel
def judge(sums, starts, gains):  # type: ignore[no-untyped-def]
    """What each table gains; most cells of a large one are empty."""
    classes = sums.shape[1] // 2
    for s in range(len(gains)):
        for cell in range(starts[s], starts[s + 1]):
            for c in range(classes):
                v = sums[cell, classes + c]
                if v > 0.0:
                    d = sums[cell, c] ** 2
                    gains[s] += (d - v) / (v + RIDGE) - 0.5 * d * v / (v + RIDGE) ** 2
