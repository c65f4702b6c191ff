"""Tables in memory: frames of any library, dicts, lists of dicts, arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.errors import DataError, UsageError
from likely.kernels.parallel import cached_property
from likely.sources.arrow_arrays import DAMAGED, validated
from likely.sources.batch import Batch, Frame, Matrix, to_arrow, with_missing
from likely.sources.cell_values import name_columns
from likely.sources.missing_tokens import MissingTokens


@dataclass(frozen=True)
class InMemory:
    """A table in memory, as one batch."""

    batch: Batch
    label: str = "the table"
    partial: bool = False
    reading: Any = None  # options for text columns; None: they are not parsed as numbers

    @property
    def missing(self) -> MissingTokens:
        """Its missing-value tokens."""
        return getattr(self.batch, "missing", None) or MissingTokens()

    def with_target(self, target: str) -> InMemory:
        """The same table with a target, which may have missing-value tokens of its own."""
        if self.missing.labels in (None, self.missing.tokens):
            return self
        return replace(self, batch=with_missing(self.batch, replace(self.missing, target=target)))

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The batch; none if there are neither rows nor columns, as in an empty list."""
        if not (self.batch.rows or self.batch.names):
            return
        if self.reading is None or not isinstance(self.batch, Frame):
            yield self.batch
        else:
            for batch in self._text.batches(kinds, self._declared):
                yield replace(batch, parts=self.reading.parts) if self.reading.parts else batch

    @cached_property
    def _text(self) -> Any:
        """Number formats of the text columns."""
        from likely.sources.text_columns import TextAsNumbers

        batch = self.batch  # and not `self`, which would keep its rows until the garbage collector finds the cycle
        return TextAsNumbers(self.reading, self.label, lambda _: iter([batch]))

    @property
    def _declared(self) -> list[str]:
        """Text columns with a categorical type."""
        import pyarrow as pa

        assert isinstance(self.batch, Frame)
        columns = self.batch.columns.items()
        return [name for name, c in columns if not isinstance(c, list) and pa.types.is_dictionary(c.type)]


def from_memory(data: Any, missing: MissingTokens) -> InMemory:
    """Source of an array, a dict, a list of dicts or a frame."""
    if isinstance(data, np.ndarray):
        return _from_array(data, missing)
    if isinstance(data, Mapping):
        return _from_dict(data, missing)
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _from_rows(data, missing)
    return _from_frame(data, missing)


def _from_array(array: Any, missing: MissingTokens) -> InMemory:
    if array.dtype.names:
        return _from_dict({name: array[name] for name in array.dtype.names}, missing)
    if array.ndim != 2:
        raise DataError(f"an array of {array.ndim} dimensions is not a table: pass rows × columns")
    names = tuple(f"x{j}" for j in range(array.shape[1]))
    if array.dtype.kind in "biuf":
        return InMemory(Matrix(array, names, 0, missing), "the array")
    return InMemory(
        Frame({n: to_arrow(array[:, j].tolist(), n) for j, n in enumerate(names)}, len(array), 0, missing), "the array"
    )


def _from_dict(data: Mapping[Any, Any], missing: MissingTokens) -> InMemory:
    """A dict of columns; a dict of scalars is one row."""
    if data and not any(_is_column(value) for value in data.values()):
        return _from_rows([data], missing)
    names = name_columns(list(data), "the dict")
    columns = dict(zip(names, data.values(), strict=True))
    _check_lengths(columns)
    rows = len(next(iter(columns.values()), ()))
    return InMemory(Frame({name: _column(column, name) for name, column in columns.items()}, rows, 0, missing))


def _check_lengths(columns: Mapping[str, Any]) -> None:
    """Raise DataError unless every value is a column and all have one length."""
    first, rows = next(iter(columns), ""), None
    for name, column in columns.items():
        if not (_is_column(column) or isinstance(column, tuple)):
            kind = type(column).__name__
            raise DataError(f"is {kind}, while others are lists", column=name, remedy="make each a list, or none")
        rows = len(column) if rows is None else rows
        if len(column) != rows:
            raise DataError(
                f"has {len(column)} rows, but {first!r} has {rows}", column=name, remedy="make them of equal length"
            )


def _is_column(value: Any) -> bool:
    """Whether a value is a column; text, tuples and sets are values of one cell."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, tuple, set, frozenset, Mapping))


def _column(column: Any, name: str) -> Any:
    try:
        if hasattr(column, "__arrow_array__") or type(column).__module__.startswith("pyarrow"):
            return _converted(column, name)
        if isinstance(column, np.ndarray) and column.dtype.kind not in "biufMU":
            column = column.tolist()
        return to_arrow(column if hasattr(column, "__len__") else list(column), name)
    except IndexError:
        raise _unknown_code(column, name) from None


def _converted(column: Any, name: str) -> Any:
    """An Arrow column, or a column convertible to Arrow, validated."""
    import pyarrow as pa

    return validated(column if isinstance(column, (pa.Array, pa.ChunkedArray)) else pa.array(column), name)


def _from_rows(rows: Sequence[Any], missing: MissingTokens) -> InMemory:
    """A list of dicts; an absent key is a missing cell."""
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"row {i + 1} is {type(row).__name__}, not a dict: pass a list of dicts, a frame or a file")
    return InMemory(rows_to_frame(rows, 0, missing), "the rows", partial=True)


def rows_to_frame(rows: Sequence[Mapping[str, Any]], start: int, missing: MissingTokens) -> Frame:
    """A frame of columns from dicts."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    pairs = zip(name_columns(keys, "the rows"), keys, strict=True)
    columns = {name: to_arrow([row.get(key) for row in rows], name, start) for name, key in pairs}
    return Frame(columns, len(rows), start, missing)


def _from_frame(data: Any, missing: MissingTokens) -> InMemory:
    """A pandas, polars or Arrow frame, through narwhals."""
    import narwhals as nw

    if type(data).__module__.startswith("pyspark."):
        remedy = "learn from it and score it where it is, or pass frame.toArrow() if it fits in the memory of this process"
        raise UsageError("a Spark table cannot be read here as a whole", remedy=remedy)
    if type(data).__module__.startswith("pyarrow") and type(data).__name__ == "RecordBatch":
        import pyarrow as pa

        data = pa.Table.from_batches([data])
    try:
        frame: Any = nw.from_native(data)
    except TypeError:
        kind = type(data).__name__
        raise DataError(
            f"{kind} is not a table: pass a path, a frame, a dict of columns, a list of dicts or an array"
        ) from None
    except (nw.exceptions.NarwhalsError, ValueError) as error:
        name_columns(_names(data), "the table")  # duplicate names are the usual reason, and can be reported
        raise DataError(f"the frame cannot be read: {error}") from None
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    names = name_columns(_names(frame), "the table")
    columns = {name: _series(series, name) for name, series in zip(names, frame.iter_columns(), strict=True)}
    return InMemory(Frame(columns, len(frame), 0, missing))


def _names(frame: Any) -> list[Any]:
    """Column names of a frame of any library; `columns` of Arrow are the columns themselves."""
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def _series(series: Any, name: str) -> Any:
    native = series.to_native()
    if str(getattr(native, "dtype", "")) == "object":  # pandas: values of any type
        return to_arrow(native.tolist(), name)
    try:
        column = series.to_arrow()
    except IndexError:
        raise _unknown_code(native, name) from None
    except (TypeError, ValueError):
        return to_arrow(series.to_list(), name)
    return validated(column, name)


def _unknown_code(column: Any, name: str) -> DataError:
    """Error for a categorical column with a code out of range."""
    held = getattr(column, "cat", column)  # codes of a pandas Series
    codes = np.asarray(getattr(held, "codes", ()))
    bad = (codes >= len(getattr(held, "categories", ()))) | (codes < -1)
    row = int(bad.argmax()) + 1 if bad.any() else None
    return DataError("has a code that is none of its categories", column=name, row=row, remedy=DAMAGED)
