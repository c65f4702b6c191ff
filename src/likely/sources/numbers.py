"""Columns of any type read as numbers: NaN where a cell is missing, and an error with its row where it is no number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError
from likely.schema import is_missing
from likely.sources.arrays import numpy_array, seconds
from likely.sources.cells import cleaned, note_gaps, number_or_truth, stands_for_missing, text_to_numbers
from likely.sources.forms import PLAIN, TYPED_TIMES, Form, read

if TYPE_CHECKING:
    from likely.sources.batch import Frame

Array = NDArray[np.float64]


def arrow_numbers(column: Any, name: str, batch: Frame) -> Array:
    """An Arrow column as float64; text is read as numbers, times as seconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    t = pa.types
    if t.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return text_numbers(column, name, batch)
    if t.is_timestamp(kind) or t.is_duration(kind) or t.is_time(kind) or t.is_date(kind):
        return seconds(column)
    if t.is_boolean(kind) or t.is_decimal(kind) or t.is_null(kind):
        column = pc.cast(column, pa.float64())
    elif not (t.is_integer(kind) or t.is_floating(kind)):
        raise DataError(f"holds {kind}, which is no number", column=name, remedy="ignore it or turn it into numbers")
    return np.asarray(numpy_array(column), dtype=np.float64)


def text_numbers(column: Any, name: str, batch: Frame) -> Array:
    """Text read as numbers in the form of its column; what stands for missing is missing, all else an error with its row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string_view(column.type):  # which Arrow cannot trim
        column = pc.cast(column, pa.large_string())
    known = batch.forms.get(name, Form())
    found = _in_form(column, known, name, batch)
    if found is None and batch.resolve is not None:
        other = batch.resolve.form(name)
        found = None if other is None else _in_form(column, other, name, batch)
    return found if found is not None else _one_by_one(column, name, batch)


def _in_form(column: Any, form: Form, name: str, batch: Frame) -> Array | None:
    """The numbers of a column in a form; None if a cell is not in it."""
    import pyarrow as pa

    missing = (*batch.missing.in_numbers(name), *form.odd)
    if form.form in (PLAIN, TYPED_TIMES):
        try:
            numbers = text_to_numbers(column, missing)
        except pa.ArrowInvalid:
            return None
        note_gaps(column, numbers, name, batch.start, batch.missing)
        if batch.resolve is not None and form.form == PLAIN:
            batch.resolve.plain.add(name)
        return np.asarray(numpy_array(numbers), dtype=np.float64)
    kept = cleaned(column, missing)
    x = read(kept, form.form)
    if int(np.isnan(x).sum()) > kept.null_count:
        return None
    note_gaps(column, kept, name, batch.start, batch.missing)
    return x


def _one_by_one(column: Any, name: str, batch: Frame) -> Array:
    values, codes = distinct(column)
    try:
        each = list_numbers(values, name, batch)
    except DataError:
        return list_numbers(column.to_pylist(), name, batch)  # which finds the row
    return np.asarray(np.append(each, np.nan)[codes])  # code -1 reads the last entry


def distinct(column: Any) -> tuple[list[Any], NDArray[Any]]:
    """The different values of an Arrow column, and which of them each cell holds; -1 where it is null."""
    encoded = column.dictionary_encode()
    codes = np.nan_to_num(numpy_array(encoded.indices), nan=-1).astype(np.int64)
    return encoded.dictionary.to_pylist(), codes


def list_numbers(column: Sequence[Any], name: str, batch: Frame) -> Array:
    """Any values read as numbers one by one, so that the first bad one can be named."""
    out = np.empty(len(column))
    missing = batch.missing.in_numbers(name)
    for i, value in enumerate(column):
        if is_missing(value) or stands_for_missing(value, missing):
            out[i] = np.nan
            continue
        try:
            out[i] = number_or_truth(value)
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                "which is not a number", column=name, value=value, row=batch.start + i + 1,
                remedy=f"pass missing=[{_short(value)}], clean it, or make the column categorical",
            ) from None  # fmt: skip
    return out


def _short(value: Any) -> str:
    return repr(value) if len(str(value)) <= 40 else "..."
