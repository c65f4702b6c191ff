"""Display of results: tables as lines of text, as HTML for notebooks, and conversion to pandas."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from likely.errors import import_optional
from likely.plots.svg import printable

MOST_ROWS = 40
MOST_COLUMNS = 14
LONGEST_CELL = 80


class ShownTable(NamedTuple):
    """A table for a notebook: a caption, and rows of plain values by name."""

    caption: str
    rows: Sequence[Mapping[str, Any]]


class Shown:
    """A result with tables: a notebook shows all of them, `to_pandas` gives the first."""

    def _shown_tables(self) -> list[ShownTable]:
        """The tables of the result, the main one first."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return html_tables(self._shown_tables())

    def to_pandas(self) -> Any:
        """The main table of the result as a pandas data frame; needs the extra `pandas`."""
        return frame(self._shown_tables()[0].rows)


def frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as a pandas data frame."""
    return import_optional("pandas", "to_pandas()").DataFrame([dict(row) for row in rows])


def html_tables(tables: Sequence[ShownTable]) -> str:
    """Tables as HTML, escaped, and cut where they are long."""
    return "".join(_table(each) for each in tables)


def text_lines(rows: Sequence[Sequence[str]], left: Container[int] = (0,)) -> list[str]:
    """Rows of cells as lines of text, the columns `left` aligned on the left, the others on the right."""
    columns = []
    for i, column in enumerate(zip(*rows, strict=True)):
        width = max(map(len, column))
        columns.append([cell.ljust(width) if i in left else cell.rjust(width) for cell in column])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def ruled(lines: Sequence[str]) -> list[str]:
    """The lines of a table with a rule under its head."""
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def _table(found: ShownTable) -> str:
    names = list(dict.fromkeys(name for row in found.rows[:MOST_ROWS] for name in row))
    head = "".join(f"<th>{escape(str(name)[:LONGEST_CELL])}</th>" for name in names[:MOST_COLUMNS])
    lines = []
    for row in found.rows[:MOST_ROWS]:
        cells = "".join(f"<td>{escape(shown_cell(row.get(name)))}</td>" for name in names[:MOST_COLUMNS])
        lines.append(f"<tr>{cells}</tr>")
    more = [f"{len(found.rows) - MOST_ROWS:,} more rows"] if len(found.rows) > MOST_ROWS else []
    more += [f"{len(names) - MOST_COLUMNS:,} more columns"] if len(names) > MOST_COLUMNS else []
    note = f"<p>… and {' and '.join(more)}</p>" if more else ""
    caption = f"<caption>{escape(found.caption)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{note}"


def shown_cell(value: Any) -> str:
    """A value in a cell: short, without control characters."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "–"
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.5g}"
    if isinstance(value, int):
        return f"{value:,}"
    text = printable(str(value))
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"
