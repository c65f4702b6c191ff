"""Lookup tables indexed by a batch's codes: the columns of the batch are used without a copy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.kernels.table_scores import add_bins, add_cells, add_lines, add_places, find_bins_by_grid

Array = NDArray[np.float64]
Places = NDArray[np.int64]
PARTS_AN_EDGE = 16  # equal parts of the range of a column's edges: an edge lies in few of them
AT_ONCE = 4  # columns of codes
ENOUGH = 300_000  # cells of a batch: interpreting these loops would take as long as loading compiled ones


@dataclass(frozen=True)
class CodeTable:
    """A column of codes, and its table: a row for missing cells, then one for each code.

    `lines` are the indexes of these rows in the table of all columns.
    """

    codes: NDArray[np.int32]
    table: Array
    lines: Places

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class BinGrid:
    """The edges of the bins of a number, and how many of them are before each of many equal parts of their range."""

    edges: Array
    cells: NDArray[np.int32]
    scale: float
    table: Array

    @classmethod
    def of(cls, edges: Array, table: Array) -> BinGrid:
        """The grid of a table over bins."""
        parts = PARTS_AN_EDGE * len(edges)
        with np.errstate(all="ignore"):
            scale = float(parts / (edges[-1] - edges[0]))
        if not 0.0 < scale < np.inf:  # one edge, or edges too far apart: all are compared
            return cls(edges, np.zeros(1, np.int32), 0.0, table)
        # Computed as in the kernel: the part of a larger number is never a smaller one, however it is rounded.
        part = ((edges - edges[0]) * scale).astype(np.int64)
        before = np.searchsorted(part, np.arange(part[-1] + 1), side="left")
        return cls(edges, before.astype(np.int32), scale, table)


@dataclass(frozen=True)
class BinColumn:
    """A column of numbers with its grid; `lines` are those of its bins in the table of all columns, after one for no bin."""

    grid: BinGrid
    numbers: Array
    lines: Places

    def __len__(self) -> int:
        return len(self.numbers)

    def bins(self, a: int, b: int) -> NDArray[np.int32]:
        """The bins of a range of rows."""
        out = np.empty(b - a, np.int32)
        find_bins_by_grid(self.numbers[a:b], self.grid.edges, self.grid.cells, self.grid.scale, len(self.grid.table) - 1, out)
        return out


@dataclass(frozen=True)
class CellTable:
    """An interaction table: the index of each of its columns, with the offset that each code adds to the index of the cell."""

    members: Sequence[tuple[int, Places]]
    table: Array


@dataclass(frozen=True)
class ColumnTables:
    """The tables of a model in the order in which their terms are added, each with the column of a batch."""

    columns: Sequence[CodeTable | BinColumn]
    steps: Sequence[BinColumn | tuple[CodeTable, ...]]
    interactions: Sequence[CellTable]

    @classmethod
    def of(cls, columns: Sequence[CodeTable | BinColumn], interactions: tuple[Any, ...], classes: int) -> ColumnTables:
        """Adjacent columns of codes together, as many as the kernel takes; interactions as the scorer lays them out."""
        if sum(map(len, columns)) >= ENOUGH:
            for kernel in (add_lines, add_bins, find_bins_by_grid, add_places, add_cells):
                kernel.prepare()
        steps: list[BinColumn | tuple[CodeTable, ...]] = []
        for coded, some in itertools.groupby(columns, lambda column: isinstance(column, CodeTable)):
            group: Any = list(some)
            groups = (group[k : k + AT_ONCE] for k in range(0, len(group), AT_ONCE))
            steps += [_filled(each, classes) for each in groups] if coded else group
        return cls(columns, steps, _cell_tables(columns, interactions) if interactions else ())

    def add(self, part: tuple[int, int], out: Array, refuse: Callable[[], None]) -> None:
        """Add the terms of all tables to a range of rows; `refuse` is called if a number is infinite."""
        a, b = part
        for step in self.steps:
            if isinstance(step, BinColumn):
                grid = step.grid
                if add_bins(step.numbers[a:b], grid.edges, grid.cells, grid.scale, grid.table, out):
                    refuse()
            else:
                add_lines(*(column.codes[a:b] for column in step), *(column.table for column in step), out)
        codes: dict[int, NDArray[np.int32]] = {}
        for each in self.interactions:
            place = np.zeros(b - a, np.int64)
            for j, adds in each.members:
                if j not in codes:
                    column = self.columns[j]
                    codes[j] = column.bins(a, b) if isinstance(column, BinColumn) else column.codes[a:b]
                add_places(read_only(codes[j]), adds, place)
            add_cells(place, each.table, out)


def _cell_tables(columns: Sequence[CodeTable | BinColumn], interactions: tuple[Any, ...]) -> list[CellTable]:
    member, end, shift, maps, table = interactions
    found, m = [], 0
    for stop in end.tolist():
        of = [(int(member[k]), maps[shift[k] + columns[member[k]].lines]) for k in range(m, stop)]
        found.append(CellTable(of, table))
        m = stop
    return found


def _filled(group: Sequence[CodeTable], classes: int) -> tuple[CodeTable, ...]:
    """Four columns: those that are not there contribute nothing."""
    nothing = CodeTable(group[0].codes, np.zeros((1, classes)), np.zeros(1, np.int64))
    return (*group, *[nothing] * (AT_ONCE - len(group)))


def read_only(column: NDArray[Any]) -> NDArray[Any]:
    """A view as those of Arrow: a kernel is compiled for one of both."""
    view = column.view()
    view.flags.writeable = False
    return view


class LineIndex(NamedTuple):
    """Index for the kernel: code v of column j is at line place[start[j] + v - low[j]], or at outside[j]."""

    low: NDArray[np.int64]
    size: NDArray[np.int64]
    start: NDArray[np.int64]
    place: NDArray[np.int64]
    outside: NDArray[np.int64]

    @classmethod
    def of(cls, columns: Sequence[tuple[int, Any, Any]]) -> LineIndex:
        """The index of several columns, each with its lowest code, its lines and the line of all other codes."""
        low, lines, outside = zip(*columns, strict=True) if columns else ((), (), ())
        size = np.array([len(line) for line in lines], np.int64)
        place = np.concatenate([np.zeros(0, np.int64), *lines]).astype(np.int64)
        return cls(np.array(low, np.int64), size, np.cumsum(size) - size, place, np.array(outside, np.int64))
