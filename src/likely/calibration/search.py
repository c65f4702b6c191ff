"""The search for columns that speak together: all pairs, and what was found before with one column more."""

from __future__ import annotations

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
PORTION = 1 << 15  # entries of the tables that a thread fills at a time
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
    def together(parts: Sequence[Searched]) -> tuple[list[Axis], Cells]:
        """The axes of the table of some columns, and the cell of every row."""
        axes = [Axis(part.size(len(parts)), part.numeric) for part in parts]
        return axes, _cells([part.groups(len(parts))[part.codes] for part in parts], [axis.size for axis in axes])


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


def _cells(codes: Sequence[Groups], sizes: Sequence[int]) -> Cells:
    """The cell of every row: the codes of the columns as the digits of one number."""
    cell = codes[0].astype(np.int32)
    for more, size in zip(codes[1:], sizes[1:], strict=True):
        cell = cell * np.int32(size) + more
    return cell


def best_sets(
    columns: Mapping[int, Searched], have: Iterable[Set], rows: Rows, order: int, terms: int
) -> tuple[list[Set], float]:
    """The sets of columns whose table would gain most, the best first, and the standard errors that each must gain.

    The best of many candidates gains something by chance: the more there are, the more is asked for (Bonferroni).
    """
    wrong = -rows.shares
    wrong[np.arange(len(wrong)), rows.labels] += 1.0
    squared = wrong * wrong * rows.weights[:, None]
    wrong *= rows.weights[:, None]
    if wrong.shape[1] == 2:  # the two classes mirror each other
        wrong, squared = wrong[:, 1:], squared[:, 1:]
    limit = min(CELLS, max(256, ENTRIES // rows.shares.shape[1]))
    candidates = _candidates(columns, set(have), order, limit)
    gains = search_gains(columns, candidates, np.concatenate([wrong, squared], axis=1, dtype=np.float32))
    ranked = sorted(zip(gains, candidates, strict=True), key=lambda pair: (-pair[0], pair[1]))
    wanted = max(2, -(-min(terms, COLUMNS) // 2))
    n = float(rows.weights.sum())
    level = min(LEVEL, LEVEL * (n / FEW_ROWS) ** 2, (n / MANY_ROWS) ** 2 / max(len(candidates), 1))
    sureness = NormalDist().inv_cdf(1.0 - max(level, 1e-9))
    return [candidate for gained, candidate in ranked[:wanted] if gained > 0], sureness


def search_gains(columns: Mapping[int, Searched], sets: Sequence[Set], surprise: Single) -> list[float]:
    """What the table of each set would gain, by one careful step from nothing: surprises that add up in its cells.

    A row's surprise is the truth less the probability, class by class, and then the square of it. Each cell's step is
    judged with the row's own surprise left out.
    """
    names = list(columns)
    codes = np.stack([columns[i].in_search for i in names])
    sizes = np.array([int(columns[i].of_search[-1]) + 1 for i in names])
    places = [[names.index(i) for i in each] for each in sets]
    compiled = surprise.size >= COMPILED or len(sets) * (EACH + surprise.size) >= IN_ALL
    if compiled:
        add_up.prepare()
        judge.prepare()

    def work(part: Sequence[list[int]]) -> list[float]:
        if not compiled:
            return [_gain(np.ravel_multi_index(tuple(codes[each]), tuple(sizes[each])), surprise) for each in part]
        most = max(map(len, part))
        which = np.array([each + [-1] * (most - len(each)) for each in part])
        ends = np.cumsum([0, *(int(np.prod(sizes[each])) for each in part)])
        gains, sums = np.zeros(len(part)), np.zeros((ends[-1], surprise.shape[1]))
        add_up(surprise, codes, which, sizes, ends, sums)
        judge(sums, ends, gains)
        return gains.tolist()

    parts = _portions(places, [int(np.prod(sizes[each])) * surprise.shape[1] for each in places])
    found = in_parallel(work, parts) if compiled else map(work, parts)
    return [gained for part in found for gained in part]


def _portions(sets: Sequence[list[int]], entries: Sequence[int]) -> list[list[list[int]]]:
    """The sets in portions whose tables fit the cache together; one is never too large to be one."""
    parts: list[list[list[int]]] = []
    held = PORTION
    for each, more in zip(sets, entries, strict=True):
        if held + more > PORTION:
            parts.append([])
            held = 0
        parts[-1].append(each)
        held += more
    return parts


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


def _candidates(columns: Mapping[int, Searched], have: set[Set], order: int, limit: int) -> list[Set]:
    """All pairs, and every set that there is with one column more, as far as their tables are small enough."""
    near = list(columns)[:COLUMNS]
    of_two, of_more = ({i: float(columns[i].size(n)) for i in near} for n in (2, 3))
    found = [pair for pair in combinations(near, 2) if pair not in have and of_two[pair[0]] * of_two[pair[1]] <= limit]
    grown = {tuple(sorted((*each, more))) for each in have if len(each) < order for more in near if more not in each}
    return found + sorted(each for each in grown - have if prod(of_more[i] for i in each) <= limit)
