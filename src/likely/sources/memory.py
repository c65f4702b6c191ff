"""Tables that are in memory already: frames of any library, dicts, lists of dicts, arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.errors import DataError
from likely.sources.batch import Batch, Frame, Matrix, to_arrow


@dataclass(frozen=True)
class InMemory:
    """A table in memory: one batch."""

    batch: Batch
    label: str = "the table"
    partial: bool = False

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The one batch."""
        yield self.batch


def from_memory(data: Any, missing: tuple[str, ...]) -> InMemory:
    """A source from whatever a person has in memory."""
    if isinstance(data, np.ndarray):
        return _from_array(data, missing)
    if isinstance(data, Mapping):
        return _from_dict(data, missing)
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _from_rows(data, missing)
    return _from_frame(data, missing)


def _from_array(array: Any, missing: tuple[str, ...]) -> InMemory:
    if array.dtype.names:
        return _from_dict({name: array[name] for name in array.dtype.names}, missing)
    if array.ndim != 2:
        raise DataError(f"an array of {array.ndim} dimensions is no table: pass rows × columns")
    names = tuple(f"x{j}" for j in range(array.shape[1]))
    if array.dtype.kind in "biuf":
        return InMemory(Matrix(array, names), "the array")
    return InMemory(
        Frame({n: to_arrow(array[:, j].tolist(), n) for j, n in enumerate(names)}, len(array), 0, missing), "the array"
    )


def _from_dict(data: Mapping[Any, Any], missing: tuple[str, ...]) -> InMemory:
    """A dict of columns; a dict of plain values is one row."""
    if data and not any(_is_column(value) for value in data.values()):
        return _from_rows([data], missing)
    lengths = {str(name): len(column) for name, column in data.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns are of different length: {lengths}")
    columns = {name: _column(column, name) for name, column in zip(lengths, data.values(), strict=True)}
    return InMemory(Frame(columns, next(iter(lengths.values()), 0), 0, missing))


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, tuple))


def _column(column: Any, name: str) -> Any:
    if hasattr(column, "__arrow_array__") or type(column).__module__.startswith("pyarrow"):
        return _one_chunk(column)
    if isinstance(column, np.ndarray) and column.dtype.kind not in "biufMU":
        column = column.tolist()
    return to_arrow(column if hasattr(column, "__len__") else list(column), name)


def _from_rows(rows: Sequence[Any], missing: tuple[str, ...]) -> InMemory:
    """A list of dicts; a key that a row has not is a missing cell."""
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"row {i + 1} is {type(row).__name__}, not a dict: pass a list of dicts, a frame or a file")
    return InMemory(rows_to_frame(rows, 0, missing), "the rows", partial=True)


def rows_to_frame(rows: Sequence[Mapping[str, Any]], start: int, missing: tuple[str, ...]) -> Frame:
    """Dicts side by side as columns."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return Frame({str(n): to_arrow([row.get(n) for row in rows], str(n)) for n in names}, len(rows), start, missing)


def _from_frame(data: Any, missing: tuple[str, ...]) -> InMemory:
    """A pandas, polars or Arrow frame, through narwhals."""
    import narwhals as nw

    try:
        frame: Any = nw.from_native(data)
    except TypeError:
        kind = type(data).__name__
        raise DataError(
            f"{kind} is no table: pass a path, a frame, a dict of columns, a list of dicts or an array"
        ) from None
    except nw.exceptions.NarwhalsError as error:
        raise DataError(f"the frame cannot be read: {error}") from None
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    names = [str(name) for name in frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"column {twice[0]!r} stands twice in the table: rename one of them", column=twice[0])
    columns = {name: _series(series, name) for name, series in zip(names, frame.iter_columns(), strict=True)}
    return InMemory(Frame(columns, len(frame), 0, missing))


def _series(series: Any, name: str) -> Any:
    native = series.to_native()
    if getattr(native, "dtype", None) == object:  # pandas: anything may be in there
        return to_arrow(native.tolist(), name)
    try:
        return _one_chunk(series.to_arrow())
    except (TypeError, ValueError):
        return to_arrow(series.to_list(), name)


def _one_chunk(column: Any) -> Any:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            return column.chunk(0)
        return (
            column.unify_dictionaries().combine_chunks()
            if pa.types.is_dictionary(column.type)
            else column.combine_chunks()
        )
    return column if isinstance(column, pa.Array) else pa.array(column)
