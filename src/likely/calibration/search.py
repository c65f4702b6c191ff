"""The search for columns that speak together: all pairs, and what was found before with one column more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from likely.calibration.tables import COMPILED, Axis, Cells, Rows, search_gain
from likely.threads import in_parallel

Array = NDArray[np.float64]
Groups = NDArray[np.int32]
Single = NDArray[np.float32]

PAIR_BINS, DEEP_BINS, SEARCH_BINS = 24, 12, 8  # of a number: in a table of two columns, of more, and while searching
VALUES = 48  # of a category in a table: the rare rest is one value
CELLS = 1 << 14
ENTRIES = 1 << 20  # cells times classes of one table
COLUMNS = 64  # that are searched: those that say most by themselves
Set = tuple[int, ...]


@dataclass(frozen=True)
class Searched:
    """One column as the search sees it: its codes for the sample's rows, and how its values are grouped in tables."""

    codes: Groups  # values or bins, then (one further) missing
    numeric: bool
    of_pairs: Groups  # the group of every value or bin, and last of a missing cell
    of_more: Groups
    of_search: Groups

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


def best_sets(columns: Mapping[int, Searched], have: Iterable[Set], rows: Rows, order: int, terms: int) -> list[Set]:
    """The sets of columns whose table would gain most, the best first."""
    wrong = -rows.shares
    wrong[np.arange(len(wrong)), rows.labels] += 1.0
    squared = wrong * wrong * rows.weights[:, None]
    wrong *= rows.weights[:, None]
    if wrong.shape[1] == 2:  # the two classes mirror each other
        wrong, squared = wrong[:, 1:], squared[:, 1:]
    seen = np.ascontiguousarray(wrong, np.float32), np.ascontiguousarray(squared, np.float32)
    limit = min(CELLS, max(256, ENTRIES // rows.shares.shape[1]))
    candidates = _candidates(columns, set(have), order, limit)
    codes = {i: column.of_search[column.codes] for i, column in columns.items()}
    sizes = {i: int(column.of_search[-1]) + 1 for i, column in columns.items()}

    def work(candidate: Set) -> float:
        held = [sizes[i] for i in candidate]
        return search_gain(_cells([codes[i] for i in candidate], held), int(np.prod(held)), *seen)

    few = seen[0].size < COMPILED  # then handing a candidate to a thread takes longer than the work
    gains = [work(candidate) for candidate in candidates] if few else in_parallel(work, candidates)
    ranked = sorted(zip(gains, candidates, strict=True), key=lambda pair: (-pair[0], pair[1]))
    wanted = max(2, -(-terms // 2))
    return [candidate for gained, candidate in ranked[:wanted] if gained > 0]


def _candidates(columns: Mapping[int, Searched], have: set[Set], order: int, limit: int) -> list[Set]:
    """All pairs, and every set that there is with one column more, as far as their tables are small enough."""
    near = list(columns)[:COLUMNS]
    found = [pair for pair in combinations(near, 2) if pair not in have and _size(columns, pair) <= limit]
    grown = {tuple(sorted((*each, more))) for each in have if len(each) < order for more in near if more not in each}
    return found + sorted(each for each in grown - have if _size(columns, each) <= limit)


def _size(columns: Mapping[int, Searched], chosen: Set) -> int:
    """How many cells the table of these columns has."""
    return int(np.prod([columns[i].size(len(chosen)) for i in chosen], dtype=np.float64))
