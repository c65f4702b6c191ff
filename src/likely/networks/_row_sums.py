"""What is kept of the rows of a table: counts of complete rows, and the other rows, alike ones as one with their weight.

Sums add, so that a table may be counted chunk by chunk, or part by part in several processes.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from likely.networks._merged_rows import cells_known, joined, merged, recoded
from likely.networks.family_counts import NetworkTally, count_rows
from likely.networks.graph import Graph
from likely.networks.rows import Rows
from likely.schema import CATEGORY, NUMBER, Column

MOST_APART = 1 << 23  # rows with a missing cell that each stay a row
FEWEST_MERGED = 1 << 17  # rows that are collected before alike ones are looked for

Chosen = tuple[Collection[str], Collection[Any]]  # columns that are not read, and columns that stay even if they name the rows


@dataclass(frozen=True)
class RowSums:
    """The sum of some rows of a table.

    Parameters
    ----------
    rows : Rows
        The rows that are kept.
    counted : NetworkTally or None
        The counts of all others, which are complete.
    number : int
        How many rows there were.
    known : mapping of str to int
        How many cells of each column there were.
    left_out : tuple of str
        Columns that were not read, because they name the rows.

    """

    rows: Rows
    counted: NetworkTally | None = None
    number: int = 0
    known: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @staticmethod
    def of(rows: Rows) -> RowSums:
        """All rows as they are."""
        return RowSums(rows, None, rows.n)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns."""
        return self.rows.columns

    @property
    def complete(self) -> bool:
        """Whether no cell was missing."""
        return self.rows.n == 0 or self.rows.complete

    def each_incomplete_row(self) -> Rows:
        """The rows, with a row of its own for each one that lacks a cell, where these are not too many.

        What a cell may have held is drawn row by row.
        """
        rows = self.rows
        if rows.complete or not len(rows.weights) or len(rows.numbers):
            return rows
        times = np.where((rows.codes < 0).any(0), rows.weights, 1.0)
        if times.sum() > MOST_APART or (times != np.floor(times)).any():
            return rows
        copies = times.astype(np.int64)
        weights = np.repeat(np.where(copies > 1, 1.0, rows.weights), copies)
        return replace(rows.take(np.repeat(np.arange(rows.n), copies)), weights=weights)

    def within(self, columns: Sequence[Column]) -> RowSums:
        """The same sum in columns that may have more values."""
        tally = self.counted
        if tally is not None:
            tally = tally.within({c.name: c for c in columns})
        return replace(self, rows=recoded(self.rows, columns), counted=tally)

    def tally(self, graph: Graph) -> NetworkTally:
        """The counts of complete families, over all rows."""
        if self.counted is None:
            return count_rows(self.rows, graph)
        return self.counted + count_rows(self.rows, graph) if self.rows.n else self.counted


class RowSum:
    """Adds up chunks of rows.

    Parameters
    ----------
    graph : Graph or None
        The arcs under which complete rows are counted; None keeps all rows.
    merging : bool
        Whether kept rows that are alike become one.

    """

    def __init__(self, graph: Graph | None, *, merging: bool) -> None:
        self.graph, self.merging = graph, merging
        self._counted: NetworkTally | None = None
        self._pieces: list[Rows] = []
        self._held, self._merge_at, self._number = 0, FEWEST_MERGED, 0
        self._known: dict[str, int] = {}

    def add(self, rows: Rows) -> None:
        """Add a chunk, whose columns have the values of all chunks before it."""
        self._number += rows.n
        for name, cells in cells_known(rows).items():
            self._known[name] = self._known.get(name, 0) + cells
        if self.graph is not None:
            rows = self._without_complete(rows, self.graph)
        if not rows.n and self._pieces:
            return
        self._pieces.append(rows.distinct() if self.merging else rows)
        self._held += self._pieces[-1].n
        if self.merging and self._held > self._merge_at:
            self._merge(rows.columns)

    def _without_complete(self, rows: Rows, graph: Graph) -> Rows:
        """The rows with a missing cell; the others are counted."""
        if not _has_tables(graph, rows.columns):  # a later chunk shows that the node holds numbers, or it is refused
            return rows.take(np.zeros(0, np.int64))
        if rows.complete:
            self._count(rows, graph)
            return rows.take(np.zeros(0, np.int64))
        full = np.asarray((rows.codes >= 0).all(0) & ~np.isnan(rows.numbers).any(0))
        if full.any():
            self._count(rows.take(np.flatnonzero(full)), graph)
        return rows.take(np.flatnonzero(~full))

    def _count(self, rows: Rows, graph: Graph) -> None:
        found = count_rows(rows, graph)
        self._counted = found if self._counted is None else self._counted + found

    def _merge(self, columns: Sequence[Column]) -> None:
        self._pieces = [merged(joined(self._pieces, columns))]
        self._held = self._pieces[0].n
        self._merge_at = max(FEWEST_MERGED, 2 * self._held)

    def total(self, columns: Sequence[Column]) -> RowSums:
        """The sum of all chunks, in the columns of the whole table."""
        rows = joined(self._pieces, columns)
        found = RowSums(merged(rows) if self.merging else rows, self._counted, self._number, self._known)
        return found.within(columns)


def _has_tables(graph: Graph, columns: Sequence[Column]) -> bool:
    """Whether no node of categories has a numeric parent."""
    kinds = {c.name: c.kind for c in columns}
    return not any(kinds[n] == CATEGORY and any(kinds[p] == NUMBER for p in graph.parents[n]) for n in graph.nodes)


def total(sums: Sequence[RowSums]) -> RowSums:
    """The sum of several parts of a table; their columns are united."""
    columns = tuple(_united([each.columns[i] for each in sums]) for i in range(len(sums[0].columns)))
    same = [each.within(columns) for each in sums]
    tallies = [each.counted for each in same if each.counted is not None]
    counted = reduce(operator.add, tallies) if tallies else None
    known = {c.name: sum(each.known.get(c.name, 0) for each in sums) for c in columns}
    rows = merged(joined([each.rows for each in same], columns))
    return RowSums(rows, counted, sum(each.number for each in sums), known)


def _united(same: Sequence[Column]) -> Column:
    """The column with the values of all; one without any value takes the kind of the others."""
    some = [c for c in same if not (c.kind == CATEGORY and not c.values)]
    found = some[0] if some else same[0]
    for other in some[1:]:
        found = found.union(other)
    return found
