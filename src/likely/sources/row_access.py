"""Access to rows: completing columns, selecting rows and columns, reading one cell."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.errors import LikelyWarning, SchemaError
from likely.schema import CATEGORY, NUMBER, TEXT, Column
from likely.sources.arrow_arrays import arrow_array
from likely.sources.batch import Batch, Frame, Matrix
from likely.sources.date_parts import part_of

if TYPE_CHECKING:
    from likely.sources import Source

MOST_PAIRS = 1_000


def with_detected_kinds(columns: tuple[Column, ...], source: Source) -> tuple[Column, ...]:
    """The same columns; the kinds of columns without any cell so far are inferred from the first rows of a source."""
    first = next(iter(source.batches()), None) if any(column.guessed for column in columns) else None
    if first is None:
        return columns
    kinds = {c.name: first.kind(c.name)[0] for c in columns if c.guessed and c.name in first.names}
    return tuple(replace(c, kind=kind, guessed=False) if (kind := kinds.get(c.name)) else c for c in columns)


def complete(batch: Batch, columns: Sequence[Column], source: Source, absent: str) -> Batch:
    """The batch with all requested columns; absent ones are an error, or filled with missing values."""
    names = set(batch.names)
    lacking = [column for column in columns if column.name not in names]
    if not lacking:
        return batch
    if len(lacking) == len(columns):
        unnamed = all(re.fullmatch(r"c[1-9]\d*", c.name) for c in columns)
        raise SchemaError(
            f"{source.label} has none of the columns {[c.name for c in columns][:10]}",
            remedy="pass header=False (--no-header) if its first line is a row" if unnamed else None,
        )
    if absent == "error" and not source.partial:
        names_lacking = list(dict.fromkeys(part.origin if (part := part_of(c)) else c.name for c in lacking))
        raise SchemaError(
            f"{source.label} has no column {', '.join(map(repr, names_lacking[:10]))}",
            column=names_lacking[0], remedy="add it, or pass absent='missing' (--absent missing) to treat it as missing",
        )  # fmt: skip
    _warn_of_slips([c.name for c in lacking if "/" not in c.form], sorted(names - {c.name for c in columns}))
    empty = {column.name: _nothing(column, batch.rows) for column in lacking}
    if isinstance(batch, Matrix):
        present = {name: arrow_array(batch.array[:, j]) for j, name in enumerate(batch.columns)}
        beside = {name: arrow_array(column) for name, column in batch.beside.items()}
        return Frame(present | beside | empty, batch.rows, batch.start, batch.missing)
    assert isinstance(batch, Frame)
    return replace(batch, columns=batch.columns | empty, _numbers={}, _coded={})


def _warn_of_slips(lacking: list[str], extra: list[str]) -> None:
    """Warn of unknown columns that resemble an absent one; skipped for wide tables, where it would take too long."""
    if len(lacking) * len(extra) > MOST_PAIRS:
        return
    known = {name.casefold(): name for name in lacking}
    for name in extra:
        close = difflib.get_close_matches(name.casefold(), known, 1, 0.8)
        if close:
            warnings.warn(f"column {name!r} is not known: did you mean {known[close[0]]!r}?", LikelyWarning, stacklevel=4)


def _nothing(column: Column, rows: int) -> Any:
    import pyarrow as pa

    return pa.nulls(rows, pa.float64() if column.kind == NUMBER else pa.string())


def one_row(batch: Batch, place: int) -> Batch:
    """A batch of one row, so that single rows use the same formulas."""
    start = batch.start + place
    if isinstance(batch, Matrix):
        return _picked(batch, slice(place, place + 1), start)
    assert isinstance(batch, Frame)
    columns = {name: column[place : place + 1] for name, column in batch.columns.items()}
    return replace(batch, columns=columns, rows=1, start=start, _numbers={}, _coded={})


def _picked(batch: Matrix, places: Any, start: int) -> Matrix:
    beside = {name: column[places] for name, column in batch.beside.items()}
    return replace(batch, array=batch.array[places], beside=beside, start=start)


def cell(batch: Batch, column: Column) -> Any:
    """The first cell of a column as a plain value, None if missing."""
    if column.kind in (CATEGORY, TEXT):
        coded = batch.coded(column.name)
        code = int(coded.codes[0]) - coded.low
        return coded.values[code] if 0 <= code < len(coded.values) else None
    number = batch.numbers([column.name], 0, 1)[0, 0]
    return None if np.isnan(number) else number.item()


def take_columns(batch: Batch, names: Sequence[str]) -> Frame:
    """The same rows with some of their columns; columns derived from dates are skipped."""
    assert isinstance(batch, Frame)
    held = [name for name in names if name in batch.columns or name not in batch.parts]
    return replace(batch, columns={name: batch.columns[name] for name in held})


def take(batch: Batch, places: Any) -> Batch:
    """Rows of a batch by index, in the given order."""
    if isinstance(batch, Matrix):
        return _picked(batch, places, batch.start)
    assert isinstance(batch, Frame)
    index = arrow_array(np.asarray(places))
    picked = {
        name: [column[i] for i in places] if isinstance(column, list) else column.take(index)
        for name, column in batch.columns.items()
    }
    return replace(batch, columns=picked, rows=len(places), _numbers={}, _coded={})
