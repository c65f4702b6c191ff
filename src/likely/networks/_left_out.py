"""Columns of which no arcs can be learned: those with a single value, and those that name rows."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping

import numpy as np

from likely.errors import LikelyWarning
from likely.networks.rows import Rows
from likely.schema import CATEGORY, Column

FEWEST_ROWS_FOR_ID = 8  # as for the columns of `likely.learn`


def naming_columns(rows: Rows, asked: Collection[str]) -> set[str]:
    """The columns that name the first rows of a table, of which a warning tells; those that are asked for stay."""
    open_ = [(i, c) for i, c in enumerate(rows.columns) if c.name not in asked]
    names = {c.name: why for i, c in open_ if (why := _naming(rows, i, c))}
    if not names or len(rows.columns) - len(names) < 2:
        return set()
    warnings.warn(f"left out of the network: {_naming_in_words(rows, names)}", LikelyWarning, stacklevel=6)
    return set(names)


def without_idle_columns(rows: Rows, asked: Collection[str], known: Mapping[str, int] | None = None) -> Rows:
    """The rows without columns that hold a single value or name the rows, of which a warning tells; all if one would be left.

    Parameters
    ----------
    rows : Rows
        The rows.
    asked : collection of str
        Columns that stay, whatever they hold.
    known : mapping of str to int, optional
        How many cells of each column there are, where a row stands for several.

    """
    open_ = [(i, c) for i, c in enumerate(rows.columns) if c.name not in asked]
    alone = {c.name: why for i, c in open_ if (why := _single(rows, c))}
    names = {c.name: why for i, c in open_ if c.name not in alone and (why := _naming(rows, i, c, (known or {}).get(c.name)))}
    left = [c.name for c in rows.columns if c.name not in alone and c.name not in names]
    if len(left) == len(rows.columns) or len(left) < 2:
        return rows
    parts = []
    if alone:
        listed = _listed(alone)
        parts.append(f"{listed} cannot depend on anything: to keep such a column, name the values it can take (values=)")
    if names:
        parts.append(_naming_in_words(rows, names))
    warnings.warn("left out of the network: " + "; ".join(parts), LikelyWarning, stacklevel=5)
    return rows.only(left)


def _naming_in_words(rows: Rows, names: dict[str, str]) -> str:
    first = next(iter(names))
    kind = rows.columns[[c.name for c in rows.columns].index(first)].kind
    kinds = f"kinds={{{first!r}: {'categorical' if kind == CATEGORY else 'gaussian'!r}}}"
    return f"{_listed(names)} would be a parent of everything: {kinds} keeps it"


def _listed(why: dict[str, str]) -> str:
    return ", ".join(f"{name!r} ({reason})" for name, reason in why.items())


def _single(rows: Rows, column: Column) -> str:
    """Why a column tells nothing; empty if it has two values."""
    if column.kind == CATEGORY:
        held = list(column.values)
    else:
        x = rows.numbers[rows.numeric[column.name]]
        held = [] if np.isnan(x).all() else list({float(np.nanmin(x)), float(np.nanmax(x))})
    return "" if len(held) > 1 else f"only one value, {held[0]!r}" if held else "no value"


def _naming(rows: Rows, i: int, column: Column, known: int | None = None) -> str:
    """Why a column names rows rather than describing them, by the rule of `likely.learn`; empty if it does not."""
    if column.kind == CATEGORY:
        seen = int((rows.codes[i] >= 0).sum()) if known is None else known
        many = len(column.values) == seen if seen < 100 else len(column.values) > seen / 2
        found = f"{len(column.values):,} different values in {seen:,} rows"
        return f"an ID or a name: {found}" if many and seen >= FEWEST_ROWS_FOR_ID else ""
    x = rows.numbers[rows.numeric[column.name]]
    x = np.sort(x[~np.isnan(x)])
    in_a_row = len(x) >= FEWEST_ROWS_FOR_ID and x[0] == np.floor(x[0]) and bool((np.diff(x) == 1).all())
    return f"an ID: {len(x):,} different whole numbers in a row" if in_a_row else ""
