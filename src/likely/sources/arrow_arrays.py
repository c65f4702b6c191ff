"""Conversion between Python values, NumPy arrays and Arrow arrays, and validation of Arrow columns.

`pyarrow.array` imports pandas only to test for a Series; small inputs are converted here without that import.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError

SMALL = 20_000  # above this, pyarrow.array is faster even with 0.25 s for importing pandas
# What databases give as an infinite time or date: DuckDB the ends of the range, PostgreSQL's driver less than thirty years from
# them (and with the other sign). In nanoseconds, the end of the range is a date that tables do have.
ENDLESS, ENDLESS_DAYS = 9_222_425_352_054_775_808, 2_147_472_691
LONGEST_TEXT = (1 << 31) - 1  # maximum bytes of an Arrow string array with 32-bit offsets
DAMAGED = "the data are damaged: write them again from their origin"


def arrow_array(values: Any, kind: Any = None) -> Any:
    """Convert values to an Arrow array with None and NaN as nulls, of the given or the inferred type."""
    import pyarrow as pa

    made = None
    if "pandas" not in sys.modules:  # a Series implies that pandas is imported already
        if isinstance(values, np.ndarray):
            made = _from_numbers(values)
        elif isinstance(values, list | tuple) and len(values) <= SMALL:
            made = _from_values(values)
    if made is None:
        return one_chunk(pa.array(values, kind, from_pandas=True))
    return made if kind is None or made.type == kind else made.cast(kind)


def _from_numbers(values: NDArray[Any]) -> Any:
    """A one-dimensional numeric array without a copy; None for any other array."""
    if values.ndim != 1 or values.dtype.kind not in "iuf" or values.dtype.itemsize > 8 or not values.dtype.isnative:
        return None
    there = ~np.isnan(values) if values.dtype.kind == "f" else None
    return _built(np.ascontiguousarray(values), there)


def _from_values(values: Sequence[Any]) -> Any:
    """A list of values of one plain type; None for any other list."""
    import pyarrow as pa

    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return pa.nulls(len(values))
    there = np.array([value is not None for value in values]) if None in values else None
    if kinds == {bool}:
        yes = np.packbits([value is True for value in values], bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [_bits(there), pa.py_buffer(yes)])
    if kinds == {float}:
        numbers = np.array(values, np.float64)  # None becomes NaN
        known = ~np.isnan(numbers)
        return _built(numbers, known) if known.any() else pa.nulls(len(values))
    if kinds == {int}:
        try:
            return _built(np.array([value or 0 for value in values], np.int64), there)
        except OverflowError:
            return None
    return _from_text(values, there) if kinds == {str} else None


def _from_text(values: Sequence[str | None], there: NDArray[np.bool_] | None) -> Any:
    import pyarrow as pa

    encoded = [value.encode() if value else b"" for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        return None
    buffers = [_bits(there), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def _built(values: NDArray[Any], there: NDArray[np.bool_] | None) -> Any:
    import pyarrow as pa

    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [_bits(there), pa.py_buffer(values)])


def _bits(there: NDArray[np.bool_] | None) -> Any:
    """Validity bitmap of Arrow; None if all cells are valid."""
    import pyarrow as pa

    return None if there is None or there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))


def one_chunk(column: Any) -> Any:
    """An Arrow column as one array; chunked arrays are combined."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.unify_dictionaries()
    elif (pa.types.is_string(kind) or pa.types.is_binary(kind)) and column.nbytes > LONGEST_TEXT:
        column = column.cast(pa.large_string() if pa.types.is_string(kind) else pa.large_binary())
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else combined.chunk(0)


def validated(column: Any, name: str, start: int = 0) -> Any:
    """Validate an Arrow column from outside in full and return it as one array.

    Arrow does not check offsets and dictionary indices by itself; a kernel that uses a wrong one accesses arbitrary memory.
    """
    import pyarrow as pa

    try:
        if not _is_valid_dictionary(column):
            column.validate(full=True)
    except (pa.ArrowException, UnicodeError) as error:
        _refuse_index(column, name, start)
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise DataError(f"cannot be read ({reason})", column=name, remedy=DAMAGED) from None
    return one_chunk(column)


def _is_valid_dictionary(column: Any) -> bool:
    """Whether this is a dictionary array of valid values and indices; the indices are checked faster than by Arrow."""
    import pyarrow as pa

    if not isinstance(column, pa.DictionaryArray) or column.null_count or column.type.index_type != pa.int32():
        return False
    column.validate()
    column.dictionary.validate(full=True)
    indices = numpy_array(column.indices).view(np.uint32)  # in which negative numbers are above every size
    return not len(indices) or bool(indices.max() < len(column.dictionary))


def is_text_dictionary(column: Any) -> bool:
    """Whether an Arrow array is a dictionary of texts."""
    import pyarrow as pa

    return isinstance(column, pa.DictionaryArray) and bool(pa.types.is_string(column.type.value_type))


def dictionary_indices(column: Any) -> NDArray[np.int32]:
    """Indices of a dictionary array, -1 for a missing cell."""
    import pyarrow as pa

    indices = column.indices.cast(pa.int32())  # polars uses unsigned indices, which cannot be -1
    return numpy_array(indices.fill_null(arrow_scalar(-1, pa.int32())) if indices.null_count else indices)


def _refuse_index(column: Any, name: str, start: int) -> None:
    """Raise DataError with the first row whose dictionary index is out of range, if there is one."""
    import pyarrow as pa

    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if not pa.types.is_dictionary(chunk.type):
            return
        try:
            chunk.indices.validate(full=True)
        except pa.ArrowException:
            return
        values = len(chunk.dictionary)
        for i, index in enumerate(chunk.indices.to_pylist()):
            if index is not None and not 0 <= index < values:
                raise DataError(
                    f"has dictionary index {index}, but its dictionary has {values} values",
                    column=name, row=start + i + 1, remedy=DAMAGED,
                ) from None  # fmt: skip
        start += len(chunk)


def arrow_scalar(value: Any, kind: Any) -> Any:
    """Arrow scalar of a numeric type; `pyarrow.scalar` would import pandas."""
    import pyarrow as pa

    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(np.array([value], kind.to_pandas_dtype()))])[0]


def numpy_array(column: Any) -> NDArray[Any]:
    """An Arrow column of numbers as NumPy array, without a copy; with nulls, as floats with NaN."""
    bits, data = column.buffers()
    dtype = np.dtype(column.type.to_pandas_dtype())
    end = column.offset + len(column)
    if data is None:
        return np.zeros(0, dtype)
    values: NDArray[Any] = np.frombuffer(data, dtype, end)[column.offset :]
    if not column.null_count:
        return values
    there = np.unpackbits(np.frombuffer(bits, np.uint8), count=end, bitorder="little")[column.offset :]
    return np.where(there, values.astype(np.float64, copy=False), np.nan)


def seconds(column: Any) -> NDArray[np.float64]:
    """A column of dates, times or durations in seconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    t, kind = pa.types, column.type
    per = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
    if t.is_date(kind):
        column, unit = pc.cast(column, pa.timestamp("s")), 1.0
    else:
        unit = per[kind.unit]
    ticks = pc.cast(column, pa.int32() if t.is_time32(kind) else pa.int64())
    found = np.asarray(numpy_array(ticks), dtype=np.float64) / unit
    last = ENDLESS_DAYS * 86400.0 if t.is_date(kind) else ENDLESS / unit
    if unit != per["ns"] and np.fmax.reduce(np.abs(found), initial=0.0) >= last:
        found = np.where(np.abs(found) >= last, np.copysign(np.inf, found), found)
    return found
