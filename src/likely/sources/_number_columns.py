"""Columns of any type as numbers: NaN where missing, an error with the row where a cell is not a number."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, LikelyWarning, asked_family
from likely.schema import is_missing
from likely.sources.arrow_arrays import numpy_array, seconds
from likely.sources.cell_values import cleaned, is_missing_token, number_or_truth, record_missing, text_to_numbers
from likely.sources.number_formats import PLAIN, TYPED_TIMES, NumberFormat, read

if TYPE_CHECKING:
    from likely.sources.batch import Frame

Array = NDArray[np.float64]
EXACT = 2.0**53  # beyond this, distinct integers may be equal as float64
EXACT_POWER = 22  # 10 to this power is a float64


def arrow_numbers(column: Any, name: str, batch: Frame) -> Array:
    """An Arrow column as float64; text is parsed, times are converted to seconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    t = pa.types
    if t.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        found = text_numbers(column, name, batch)
        warn_of_rounding(column, found, name)
        return found
    if t.is_timestamp(kind) or t.is_duration(kind) or t.is_time(kind) or t.is_date(kind):
        return seconds(column)
    if t.is_decimal(kind):
        return decimals(column)
    if t.is_boolean(kind) or t.is_null(kind):
        column = pc.cast(column, pa.float64())
    elif not (t.is_integer(kind) or t.is_floating(kind)):
        raise DataError(f"contains {kind}, which is not a number", column=name, remedy="ignore it or turn it into numbers")
    found = np.asarray(numpy_array(column), dtype=np.float64)
    if t.is_integer(kind):
        warn_of_rounding(column, found, name)
    return found


def decimals(column: Any) -> Array:
    """A column of decimals as the nearest float64: Arrow's cast is off by one unit in the last place for one in seven."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= EXACT_POWER and len(column):
        words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)[column.offset : column.offset + len(column)]
        there = np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False))
        low = np.where(there, words[:, 0], 0)
        if ((words[there, 1] == low[there] >> 63) & (np.abs(low[there]) <= EXACT)).all():
            return np.where(there, low / 10.0**kind.scale, np.nan)  # both exact, so the quotient is rounded once
    texts = pc.cast(column, pa.string())
    return np.asarray(numpy_array(pc.cast(texts, pa.float64())), dtype=np.float64)


def warn_of_rounding(column: Any, numbers: Array, name: str) -> None:
    """Warn if different integers, typed or as text, are rounded to the same float64."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if max(np.fmax.reduce(numbers, initial=0.0), -np.fmin.reduce(numbers, initial=0.0)) <= EXACT:
        return
    large = np.flatnonzero(np.abs(numbers) > EXACT)
    exact = pc.utf8_trim_whitespace(pc.cast(column.take(pa.array(large)), pa.large_string()))
    whole = exact.filter(pc.match_substring_regex(exact, r"^-?[1-9]\d*$")).unique().to_pylist()
    first: dict[float, str] = {}
    pair = next(((first[x], text) for text in whole if first.setdefault(x := float(text), text) != text), None)
    if pair:
        warnings.warn(
            f"column {name!r}: whole numbers beyond 2^53 are rounded, and {pair[0]} and {pair[1]} become one; "
            f"{asked_family(name, 'categorical')} keeps them apart",
            LikelyWarning,
            stacklevel=2,
        )


def text_numbers(column: Any, name: str, batch: Frame) -> Array:
    """Parse text as numbers in the format of its column; tokens are missing, anything else is an error with its row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string_view(column.type):  # which Arrow cannot strip
        column = pc.cast(column, pa.large_string())
    known = batch.formats.get(name, NumberFormat())
    found = _in_format(column, known, name, batch)
    if found is None and batch.resolve is not None:
        other = batch.resolve.format(name)
        found = None if other is None else _in_format(column, other, name, batch)
    return found if found is not None else _one_by_one(column, name, batch)


def _in_format(column: Any, number_format: NumberFormat, name: str, batch: Frame) -> Array | None:
    """Numbers of a column in a format; None if a cell does not match it."""
    import pyarrow as pa

    missing = (*batch.missing.in_numbers(name), *number_format.non_numeric)
    if number_format.code in (PLAIN, TYPED_TIMES):
        try:
            numbers = text_to_numbers(column, missing)
        except pa.ArrowInvalid:
            return None
        record_missing(column, numbers, name, batch.start, batch.missing)
        if batch.resolve is not None and number_format.code == PLAIN:
            batch.resolve.plain.add(name)
        return np.asarray(numpy_array(numbers), dtype=np.float64)
    kept = cleaned(column, missing)
    x = read(kept, number_format.code)
    if int(np.isnan(x).sum()) > kept.null_count:
        return None
    record_missing(column, kept, name, batch.start, batch.missing)
    return x


def _one_by_one(column: Any, name: str, batch: Frame) -> Array:
    values, codes = distinct(column)
    try:
        each = list_numbers(values, name, batch)
    except DataError:
        return list_numbers(column.to_pylist(), name, batch)  # reports the row
    return np.asarray(np.append(each, np.nan)[codes])  # code -1 reads the last entry


def distinct(column: Any) -> tuple[list[Any], NDArray[Any]]:
    """Distinct values of an Arrow column, and the code of each cell; -1 where null."""
    encoded = column.dictionary_encode()
    codes = np.nan_to_num(numpy_array(encoded.indices), nan=-1).astype(np.int64)
    return encoded.dictionary.to_pylist(), codes


def list_numbers(column: Sequence[Any], name: str, batch: Frame) -> Array:
    """Convert values to numbers one by one, so that the first invalid one can be reported."""
    out = np.empty(len(column))
    missing = batch.missing.in_numbers(name)
    for i, value in enumerate(column):
        if is_missing(value) or is_missing_token(value, missing):
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
