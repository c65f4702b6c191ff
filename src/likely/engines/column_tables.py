"""Tables of a model laid out for the columns of one batch: its codes are their lines, and nothing is copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.kernels.table_scores import add_bins, add_lines

Array = NDArray[np.float64]
PARTS_AN_EDGE = 16  # equal parts of the range of a column's edges: an edge lies in few of them
AT_ONCE = 4  # columns of codes


@dataclass(frozen=True)
class CodeTable:
    """A column of codes, and its table: a line for missing cells, then one for each code."""

    codes: NDArray[np.int32]
    table: Array


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
class ColumnTables:
    """The tables of a model in the order in which their terms are added, each with the column of a batch."""

    steps: Sequence[tuple[Any, ...]]  # four columns of codes, or a grid with its column of numbers

    @classmethod
    def of(cls, columns: Sequence[CodeTable | tuple[BinGrid, Array]], classes: int) -> ColumnTables:
        """Adjacent columns of codes together, as many as the kernel takes at a time."""
        steps: list[Any] = []
        group: list[CodeTable] = []
        for column in columns:
            if isinstance(column, CodeTable):
                group.append(column)
            if group and (len(group) == AT_ONCE or not isinstance(column, CodeTable)):
                steps.append(_filled(group, classes))
                group = []
            if not isinstance(column, CodeTable):
                steps.append(column)
        if group:
            steps.append(_filled(group, classes))
        return cls(steps)

    def add(self, part: tuple[int, int], out: Array, refuse: Callable[[], None]) -> None:
        """Add the terms of all tables to a range of rows; `refuse` is called if a number is infinite."""
        a, b = part
        for step in self.steps:
            if isinstance(step[0], BinGrid):
                grid, numbers = step
                if add_bins(numbers[a:b], grid.edges, grid.cells, grid.scale, grid.table, out):
                    refuse()
            else:
                add_lines(*(column.codes[a:b] for column in step), *(column.table for column in step), out)


def _filled(group: Sequence[CodeTable], classes: int) -> tuple[CodeTable, ...]:
    """Four columns: those that are not there contribute nothing."""
    nothing = CodeTable(group[0].codes, np.zeros((1, classes)))
    return (*group, *[nothing] * (AT_ONCE - len(group)))
