"""Writer of Parquet files."""

from __future__ import annotations

from typing import Any

from likely.errors import DataError

WRITTEN_AT_ONCE = 1 << 16  # values of a column
Columns = dict[str, Any]


class ParquetWriter:
    """Parquet writer with the column types of the first batch.

    Texts in dictionaries, as Parquet files are read, are written so: decoding them and finding them again would take longer
    than all the rest. Without the Arrow schema in the file they are read as texts; types that need it are kept by it.
    """

    def __init__(self, path: Any) -> None:
        self.path = path
        self.file: Any = None
        self.plain = False  # whether every type is one of Parquet's own
        self.fields: Any = None  # the columns, as they are read

    def write(self, columns: Columns) -> None:
        """Append rows."""
        import pyarrow as pa

        if self.file is None:
            self.file = self._opened(columns)
        typed = [_cast(self._dictionary_encoded(columns[field.name]), field) for field in self.file.schema]
        self.put(pa.record_batch(typed, schema=self.file.schema))

    def put(self, batch: Any) -> None:
        """Append rows of the columns of the file, as a row group."""
        import pyarrow as pa

        self.file.write_table(pa.Table.from_batches([batch]))

    def _opened(self, columns: Columns) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        arrays = {name: _arrow(column) for name, column in columns.items()}
        self.fields = schema = pa.schema([(name, _kind(array.type)) for name, array in arrays.items()])
        self.plain = all(_is_plain(kind) for kind in schema.types)
        texts = [name for name, array in arrays.items() if is_text(array.type)]
        numbers = [name for name in arrays if name not in texts]
        stored = [field.with_type(pa.dictionary(pa.int32(), field.type)) if self.plain and field.name in texts else field
                  for field in schema]  # fmt: skip
        try:
            return pq.ParquetWriter(
                self.path, pa.schema(stored), use_dictionary=texts,  # of numbers it would be built in vain
                write_statistics=numbers, write_batch_size=WRITTEN_AT_ONCE, store_schema=not self.plain,
                compression=self.compression(),
            )  # fmt: skip
        except pa.ArrowNotImplementedError:
            raise _refused(schema) from None

    def compression(self) -> Any:
        """Compression of the columns: of all, or of each."""
        return "snappy"

    def _dictionary_encoded(self, column: Any) -> Any:
        """A column as it is written: texts as a dictionary, if they may be."""
        import pyarrow as pa

        array = arrow_or_list(column)
        if self.plain and isinstance(array, pa.DictionaryArray) and not array.dictionary.null_count:
            return array
        array = _arrow(array)
        return array.dictionary_encode() if self.plain and is_text(array.type) else array

    def close(self) -> None:
        """Write the footer."""
        if self.file is not None:
            self.file.close()


def _refused(schema: Any) -> DataError:
    """The error of a column whose type Parquet does not have."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    for field in schema:
        try:
            pq.ParquetWriter(io.BytesIO(), pa.schema([field])).close()
        except pa.ArrowNotImplementedError:
            remedy = "write .csv or .jsonl, or leave the column out of the data"
            return DataError(f"contains {field.type}, which no Parquet file holds", column=field.name, remedy=remedy)
    return DataError("the columns have types that no Parquet file holds", remedy="write .csv or .jsonl instead")


def _arrow(column: Any) -> Any:
    import pyarrow as pa

    column = arrow_or_list(column)
    if isinstance(column, list):  # values of several types
        return pa.array([None if value is None else str(value) for value in column])
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def arrow_or_list(column: Any) -> Any:
    """A column as Arrow array, or as a list if its values have several types."""
    import pyarrow as pa

    if not isinstance(column, list):
        return column
    try:
        return pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return column


def _is_plain(kind: Any) -> bool:
    """Whether a column of this type is read from Parquet as it was written, without the Arrow schema."""
    from pyarrow import types as t

    return bool(t.is_string(kind) or t.is_float64(kind) or t.is_int64(kind) or t.is_int32(kind) or t.is_boolean(kind))


def _kind(kind: Any) -> Any:
    import pyarrow as pa

    return pa.string() if pa.types.is_null(kind) else kind


def _cast(array: Any, field: Any) -> Any:
    import pyarrow as pa

    try:
        return array.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(
            f"contains {array.type} after rows of {field.type}", column=field.name, remedy="write .csv or .jsonl instead"
        ) from None


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
