"""The distinct rows of a table in a database, and how often each occurs: one GROUP BY over all columns.

For whatever counts rows in ways that a database does not know; only groups come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines._database_cells import ELSEWHERE, CellWriter
from likely.engines._database_checks import check_weight_column, free_name, refuse_text_cells
from likely.engines.in_database import FirstRows, database_of
from likely.engines.memory import Plan
from likely.errors import ResourceError, UsageError, no_column
from likely.schema import CATEGORY, NUMBER, Column
from likely.sources import Batch, Frame, ReadOptions, open_source, require_rows
from likely.sources.duckdb_files import FilesInDuckdb
from likely.sources.table_names import quoted
from likely.sources.text_columns import TypedFile

MOST_CELLS = 1 << 25  # of all groups

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GroupedRows:
    """The distinct rows of a table.

    Attributes
    ----------
    frame : Frame
        One row for each group of equal rows.
    rows : array
        How many rows are in each group.
    weights : array or None
        Their summed weights, if the table has weights.
    """

    frame: Frame
    rows: Array
    weights: Array | None

    @property
    def each_weight(self) -> Array:
        """The weight of each group."""
        return self.rows if self.weights is None else self.weights


class GroupingDatabase:
    """A database that groups the rows of one table.

    Parameters
    ----------
    data : source
        A table of a database, or Parquet or CSV files, which DuckDB groups.
    reading : ReadOptions
        How it is read.
    asked : str
        What has asked for a database, for messages.

    Attributes
    ----------
    first : Batch
        The first rows, from which names and kinds of the columns are known.
    """

    def __init__(self, data: Any, reading: ReadOptions, asked: str) -> None:
        self.database = database_of(open_source(data, reading), asked)
        rows = None if isinstance(self.database, FilesInDuckdb) else FirstRows(self.database)
        planned = self.database if rows is None else TypedFile(rows, reading)
        found = next(iter(planned.batches()), None)
        self.label = self.database.label
        require_rows(0 if found is None else found.rows, self.label)
        assert found is not None
        self.first: Batch = found
        self._checked: set[str] = set()
        self._texts = frozenset() if rows is None else rows.texts

    def groups(
        self, names: Sequence[str], weights: str | None, within: Sequence[str] = (), *, complete: bool = True
    ) -> GroupedRows:
        """The distinct rows of some columns; of those rows only in which no cell of `within`, or else one of them, is null."""
        for name in (*names, *([weights] if weights else [])):
            if name not in self.first.names:
                raise no_column(self.label, name, self.first.names)
        columns = tuple(self._column(name) for name in dict.fromkeys([*names, *within]))
        cells = CellWriter(self.database, Plan(names[0], (), columns))
        self._refuse_texts(cells, columns, weights)
        written = {c.name: quoted(c.name) if c.kind == CATEGORY else cells.number(c.name) for c in columns}
        selected = [f"{written[name]} as {quoted(name)}" for name in names]
        n, w = (free_name(name, self.first.names) for name in "nw")
        selected.append(f"count(*) as {n}")
        if weights is not None:
            selected.append(f"cast(sum(cast({quoted(weights)} as double precision)) as double precision) as {w}")
        full = " and ".join(f"({written[name]}) is not null" for name in within)
        where = f"where {full}" if complete else f"where not ({full})"
        most = max(MOST_CELLS // len(names), 1)
        rest = f"{where if within else ''} group by {', '.join(written[name] for name in names)} limit {most + 1}"
        answer = self.database.ask(lambda rows: f"select {', '.join(selected)} from {rows} {rest}")
        if answer.rows > most:
            raise ResourceError(
                f"{self.label} has more than {most:,} different rows, which the database would hand over one by one",
                remedy=f"leave out columns, merge their values or cut numbers into bins; {ELSEWHERE}",
            )
        frame = Frame({name: answer.columns[name] for name in names}, answer.rows, 0, cells.missing)
        held = answer.lists()
        return GroupedRows(frame, np.array(held[n], float), None if weights is None else np.array(held[w], float))

    def _column(self, name: str) -> Column:
        kind, _ = self.first.kind(name)
        form = getattr(self.first, "format_code", lambda _: "")(name)
        return Column(name, NUMBER if kind == NUMBER else CATEGORY, form=form)

    def _refuse_texts(self, cells: CellWriter, columns: Sequence[Column], weights: str | None) -> None:
        """Refuse numbers that are stored as text, which a database casts in its own way, and weights that are none; once."""
        new = [c.name for c in columns if c.kind == NUMBER and c.name not in self._checked]
        odd = next((name for name in new if name in self._texts), None)
        if odd is not None:
            raise UsageError(f"column {odd!r} holds numbers or dates stored as text, which are not read in a database",
                             remedy=f"cast it in a view or in query= (--query); {ELSEWHERE}")  # fmt: skip
        if weights is not None and weights not in self._checked:
            check_weight_column(self.database, cells, weights)
        refuse_text_cells(self.database, cells, new)
        self._checked |= {*new, *([weights] if weights else [])}
