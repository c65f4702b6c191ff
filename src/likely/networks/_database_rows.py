"""The rows of a network that a database has counted: families of complete rows, and distinct rows with their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likely.engines.grouped_rows import GroupingDatabase
from likely.errors import UsageError
from likely.networks._left_out import naming_columns
from likely.networks._row_sums import Chosen, RowSums, total
from likely.networks._table_reader import FEW, KindChangedError, TableReader
from likely.networks.family_counts import NetworkTally, count_rows
from likely.networks.graph import Graph
from likely.networks.rows import FEW_NUMBERS, Rows, Wanted, require_columns, require_weight, rows_of_batches
from likely.schema import NUMBER, Column
from likely.sources import ReadOptions


def sums_in_database(
    data: Any, wanted: Wanted, reading: ReadOptions, asked: str, *, graph: Graph | None, columns: Chosen
) -> RowSums:
    """What a database has counted of a table: the families of its complete rows, and the other rows as distinct ones."""
    if not (wanted.weights is None or isinstance(wanted.weights, str)):
        raise UsageError("weights= of a database must be the name of one of its columns")
    found = GroupingDatabase(data, reading, f"engine={asked!r} (--engine {asked})")
    there = list(found.first.names)
    names = wanted.names
    left: tuple[str, ...] = ()
    if names is None:
        aside, stay = columns
        names = [n for n in there if n not in {*aside, wanted.weights}]
        sample = rows_of_batches([found.first], replace(wanted, names=names, weights=None), found.label)
        left = tuple(naming_columns(sample, stay))
        names = [n for n in names if n not in left]
    require_columns(names, there, wanted.hidden, found.label)
    weights, wanted = wanted.weights, replace(wanted, names=names, weights=None)
    if graph is not None and set(names) <= set(there) and not _any_number(found, wanted):
        by_family = _of_families(found, wanted, weights, graph)
        if by_family is not None:
            return by_family
    groups = found.groups([n for n in names if n in there], weights)
    rows = rows_of_batches([groups.frame], wanted, found.label)
    require_weight(bool(groups.each_weight.any()))
    held = replace(rows, weights=groups.each_weight)
    return RowSums(held, None, int(groups.rows.sum()), _known(rows, groups.rows), left)


def _any_number(found: GroupingDatabase, wanted: Wanted) -> bool:
    """Whether the first rows show a column of numbers other than few whole ones."""
    reader = TableReader(wanted)
    reader.read([found.first])
    return any(column.kind == NUMBER for column in reader.columns.values())


def _of_families(found: GroupingDatabase, wanted: Wanted, weights: str | None, graph: Graph) -> RowSums | None:
    """One GROUP BY for each family over complete rows, and one over the others; None where a node holds numbers.

    None also where texts stand for missing cells, which a database does not know.
    """
    names, modes = list(wanted.names or ()), dict[str, str]()
    parts: dict[str, Rows] = {}
    number = weight = 0.0
    try:
        for node in graph.nodes:
            family = [*graph.parents[node], node]
            groups = found.groups(family, weights, names)
            reader = TableReader(replace(wanted, names=family), modes)
            rows = reader.read([groups.frame])
            if rows.numeric or not rows.n or not rows.complete:
                return None
            parts[node], modes = replace(rows, weights=groups.each_weight), modes | reader.modes
            number, weight = groups.rows.sum(), groups.each_weight.sum()
        others = found.groups(names, weights, names, complete=False)
        kept = TableReader(wanted, modes).read([others.frame])
    except KindChangedError:
        return None
    require_weight(bool(weight > 0 or others.each_weight.any()))
    values = {node: rows.columns[-1] for node, rows in parts.items()}
    tally = NetworkTally(graph, values, {node: _table(rows, graph, node) for node, rows in parts.items()}, {}, float(weight))
    full = RowSums(_no_rows([values[name] for name in names]), tally, int(number))
    sums = total([full, RowSums(replace(kept, weights=others.each_weight), None, int(others.rows.sum()))])
    many = any(modes.get(c.name) == FEW and len(c.values) > FEW_NUMBERS for c in sums.columns)
    return None if many else sums


def _table(rows: Rows, graph: Graph, node: str) -> Any:
    """The counts of one family."""
    family = tuple(c.name for c in rows.columns)
    return count_rows(rows, Graph(family, {name: graph.parents[node] if name == node else () for name in family})).tables[node]


def _no_rows(columns: Sequence[Column]) -> Rows:
    return Rows(tuple(columns), np.zeros((len(columns), 0), np.int8), np.zeros((0, 0)), np.zeros(0))


def _known(rows: Rows, number: Any) -> dict[str, int]:
    """How many cells of each column there are, where each row stands for several."""
    numeric = rows.numeric
    return {
        c.name: int(number[~np.isnan(rows.numbers[numeric[c.name]]) if c.kind == NUMBER else rows.codes[i] >= 0].sum())
        for i, c in enumerate(rows.columns)
    }
