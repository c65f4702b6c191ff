"""Cells that a database would sum up otherwise than memory reads them: each is refused with its column and its value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from likely.engines._database_cells import CellWriter
from likely.engines.row_weights import LARGEST_WEIGHT, check_weights
from likely.errors import DataError
from likely.sources.table_names import quoted

AT_ONCE = 400  # columns of a query: PostgreSQL gives at most 1,664 results, SQLite 2,000, and a column needs up to four


def one_row(database: Any, selected: Sequence[str], rest: str = "") -> list[Any]:
    """The cells of queries that give one row, of as many columns as a database allows."""
    found: list[Any] = []
    for some in (selected[i : i + AT_ONCE] for i in range(0, len(selected), AT_ONCE)):
        listed = ", ".join(f"{each} as c{i}" for i, each in enumerate(some))
        answer = database.ask(lambda rows, listed=listed: f"select {listed} from {rows} {rest}")
        found += [cell for (cell,) in answer.lists().values()]
    return found


def free_name(name: str, taken: Collection[str]) -> str:
    """A name for a result that is no column's."""
    known = {each.casefold() for each in taken}
    while (made := f"likely__{name}").casefold() in known:
        name += "_"
    return made


def refuse_text_cells(database: Any, cells: CellWriter, names: Sequence[str]) -> None:
    """Refuse text among numbers in SQLite, which has no types of columns and casts text to 0."""
    if database.dialect != "sqlite":
        return
    found = one_row(database, [f"max(case when {cells.is_text(name)} then {quoted(name)} end)" for name in names])
    for name, value in zip(names, found, strict=True):
        if value is not None:
            raise DataError(
                "which is not a number", column=name, value=value,
                remedy=f"pass missing=[{value!r}], clean it, or make the column categorical",
            )  # fmt: skip


def check_weight_column(database: Any, cells: CellWriter, name: str) -> None:
    """Refuse row weights that are missing, negative, too large, or text."""
    refuse_text_cells(database, cells, [name])
    w = f"cast({quoted(name)} as double precision)"
    where = f"{w} is null or not ({w} >= 0 and {w} <= {LARGEST_WEIGHT!r})"
    bad = database.ask(lambda rows: f"select {w} as w from {rows} where {where} limit 1").lists()["w"]
    if bad:
        check_weights(np.array([np.nan if bad[0] is None else bad[0]]), name)
