"""The rows of a network that a database has grouped: distinct ones, with their weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from likely.engines.grouped_rows import GroupingDatabase
from likely.errors import UsageError
from likely.networks._left_out import naming_columns
from likely.networks._row_sums import Chosen, RowSums
from likely.networks.rows import Rows, Wanted, require_columns, require_weight, rows_of_batches
from likely.schema import NUMBER
from likely.sources import ReadOptions


def sums_in_database(data: Any, wanted: Wanted, reading: ReadOptions, asked: str, columns: Chosen) -> RowSums:
    """The distinct rows of a table, grouped by the database that the table is in."""
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
    groups = found.groups([n for n in names if n in there], wanted.weights)
    rows = rows_of_batches([groups.frame], replace(wanted, names=names, weights=None), found.label)
    weights = groups.rows if groups.weights is None else groups.weights
    require_weight(bool(weights.any()))
    return RowSums(replace(rows, weights=weights), None, int(groups.rows.sum()), _known(rows, groups.rows), left)


def _known(rows: Rows, number: Any) -> dict[str, int]:
    """How many cells of each column there are, where each row stands for several."""
    numeric = rows.numeric
    return {
        c.name: int(number[~np.isnan(rows.numbers[numeric[c.name]]) if c.kind == NUMBER else rows.codes[i] >= 0].sum())
        for i, c in enumerate(rows.columns)
    }
