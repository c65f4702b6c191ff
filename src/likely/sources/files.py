"""Opening of files, globs and folders; Parquet and Arrow files. Other formats have their own modules."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from likely.errors import DataError, UsageError
from likely.kernels.parallel import cached_property
from likely.kernels.thread_count import threads
from likely.schema import NUMBER
from likely.sources._arrow_sizes import unpacked_sizes
from likely.sources._compressed import PACKED, most_unpacked, too_large, unpack
from likely.sources._parquet_indices import TextIndices
from likely.sources._single_file import SingleFile
from likely.sources._table_folders import PartitionedFile, partition_values, tables_of
from likely.sources._text_folders import ENDINGS, TextFolders, are_texts
from likely.sources.batch import Batch, Frame
from likely.sources.cell_values import name_columns
from likely.sources.file_type import ending_of
from likely.sources.missing_tokens import LABELS, MISSING, MissingTokens
from likely.sources.number_formats import NumberFormat

if TYPE_CHECKING:
    from likely.sources import ReadOptions, Source

BATCH_ROWS = 131_072
LONG_BATCH = 1 << 18  # rows of a Parquet file, whose codes and numbers are used as they are read
SHORT_BATCH = 1 << 16  # rows of a Parquet file that is scored
FEW_COLUMNS = 100  # of a table that is read in longer batches
LARGEST_READ = 1 << 28  # bytes: a larger Arrow file is memory-mapped
PAGE = 1 << 18  # bytes read ahead for each column: full column chunks would double the memory

KINDS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".xlsx": "sheet", ".xlsm": "sheet", ".ods": "sheet", ".sqlite": "database", ".sqlite3": "database",
    ".db": "database", ".duckdb": "database", ".ddb": "database",
}  # fmt: skip
# File types that each option applies to: an option that would be ignored is refused.
MEANT_FOR = {
    "table": (("database",), "databases and .zip files"),
    "query": (("database",), "databases"),
    "sheet": (("sheet",), "workbooks (.xlsx, .ods)"),
    "encoding": (("csv", "json", "jsonl"), "text files"),
}


def open_files(path: str, reading: ReadOptions) -> Source:
    """Open a path, a glob or a folder; several files are read one after the other, folders without tables as texts."""
    # An existing file takes precedence over a pattern, even if its name contains a bracket or a star.
    paths = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    if not paths:
        raise DataError(f"there is no file {path!r}")
    if len(paths) == 1 and os.path.isdir(path) and (tables := tables_of(path)):
        paths = tables
    if are_texts(paths):
        return TextFolders(tuple(paths), reading, repr(path))
    if reading.missing is None and len(paths) > 1 and any(map(_is_text, paths)):
        reading = replace(reading, missing=MISSING, missing_labels=LABELS)  # the same tokens for all files, typed or not
    sources = [_partitioned(_open_file(one, reading), partition_values(one, path), reading) for one in paths]
    return sources[0] if len(sources) == 1 else FileSequence(tuple(sources), repr(path))


def _partitioned(source: Source, values: Mapping[str, str | None], reading: ReadOptions) -> Source:
    """The source with the columns that its folders are named after."""
    from likely.sources.text_columns import TypedFile

    if not values:
        return source
    if not isinstance(source, TypedFile):
        one = next(iter(values))
        remedy = "write it as Parquet, or name the files of one folder"
        message = f"{source.label} is in a folder named after a column, {one!r}, and has no types"
        raise DataError(message, column=one, remedy=remedy)
    return TypedFile(PartitionedFile(source.inner, values), reading)


def _is_text(path: str) -> bool:
    """Whether a file is delimited text, compressed or not."""
    stem, ending = os.path.splitext(path)
    plain = stem if ending.lower() in PACKED else path
    return KINDS.get(os.path.splitext(plain)[1].lower()) == "csv"


def _open_file(path: str, reading: ReadOptions) -> Source:
    if are_texts([path]):
        return TextFolders((path,), reading, repr(path))
    ending = os.path.splitext(path)[1].lower()
    if ending not in KINDS and ending not in PACKED:
        known = ", ".join((*KINDS, *PACKED, *ENDINGS))
        raise DataError(f"{path!r} has an unknown extension: use one of {known}")
    if not os.path.isfile(path):
        raise DataError(f"{path!r} is not a regular file: copy its content to one")
    if os.path.getsize(path) == 0:
        raise DataError(f"{path!r} is empty: nothing can be learned from it")
    if ending in PACKED:
        return _open_packed(path, reading)
    return _open_table(path, KINDS[ending], reading)


def _open_packed(path: str, reading: ReadOptions) -> Source:
    """Open the table in a compressed file; its type is determined by the inner name, else by the content."""
    copy, name = unpack(path, repr(path), reading)
    if os.path.getsize(copy.name) == 0:
        raise DataError(f"{path!r} is empty: nothing can be learned from it")
    ending = os.path.splitext(name)[1].lower()
    ending = ending if ending in KINDS or ending in PACKED else ending_of(copy.name)
    if ending not in KINDS:
        raise DataError(f"{path!r} contains a {ending} file, not a table", remedy="unpack it first")
    inner = replace(reading, table=None) if path.lower().endswith(".zip") else reading
    return _open_table(copy.name, KINDS[ending], inner, called=path, keep=copy)


def _open_table(path: str, kind: str, reading: ReadOptions, **named: Any) -> Source:
    label = repr(named.get("called", path))
    for option, (kinds, what) in MEANT_FOR.items():
        if getattr(reading, option) is not None and kind not in kinds:
            raise UsageError(f"{option}= (--{option}) is for {what}: {label} is none")
    if not reading.header and kind not in ("csv", "sheet"):
        raise UsageError(f"header=False (--no-header) is for text files and workbooks: {label} names its columns")
    if kind == "csv":
        from likely.sources.csv_files import CsvFile

        return CsvFile(path, reading, **named)
    from likely.sources.text_columns import TypedFile

    return TypedFile(_typed_file(kind, path, reading, named), reading)


def _typed_file(kind: str, path: str, reading: ReadOptions, named: dict[str, Any]) -> Source:
    if kind in ("json", "jsonl"):
        from likely.sources._json_files import JsonFile, JsonLines

        return (JsonFile if kind == "json" else JsonLines)(path, reading, **named)
    if kind == "database":
        from likely.sources.databases import open_database

        return open_database(path, reading, **named)
    if kind == "sheet":
        from likely.sources._workbooks import WorkbookSheet

        return WorkbookSheet(path, reading, **named)
    return (ParquetFile if kind == "parquet" else ArrowFile)(path, reading, **named)


@dataclass(frozen=True)
class FileSequence:
    """Files with the same columns, read one after the other."""

    parts: tuple[Source, ...]
    label: str
    partial: bool = False

    @property
    def missing(self) -> MissingTokens:
        """Missing-value tokens, the same for all files."""
        return self.parts[0].missing

    def with_target(self, target: str) -> FileSequence:
        """The same files with a target, which may have missing-value tokens of its own."""
        return replace(self, parts=tuple(part.with_target(target) for part in self.parts))

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows of all files; a file whose columns or types differ from the first is refused by name."""
        numbers = [name for name, kind in (kinds or {}).items() if kind == NUMBER]
        first: set[str] = set()
        formats: dict[str, NumberFormat] = {}
        rows = 0
        for part in self.parts:
            before = rows
            for batch in part.batches(kinds):
                first = first or set(batch.names)
                odd = sorted(first ^ set(batch.names))
                if odd:
                    raise DataError(
                        f"{part.label} differs from {self.parts[0].label} in column {odd[0]!r}", column=odd[0]
                    )
                rows = before + batch.start + batch.rows
                assert isinstance(batch, Frame)
                formats = formats or dict(batch.formats)  # the formats of the first file apply to all
                read = replace(batch, formats={**batch.formats, **formats})
                _check_numbers(read, numbers, part.label)
                yield replace(read, start=before + batch.start)


def _check_numbers(batch: Batch, names: list[str], label: str) -> None:
    """Raise DataError, with the file, if a numeric column has a cell that is not a number; the result is cached."""
    for name in names:
        if name in batch.names:
            try:
                batch.numbers([name], 0, batch.rows)
            except DataError as error:
                raise DataError(f"{label}: {error}", column=error.column, value=error.value, row=error.row) from None


@dataclass(frozen=True)
class ParquetFile(SingleFile):
    """A Parquet file, read batch by batch; text is read as Arrow dictionaries, so each value is decoded once."""

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema, read once: for many columns that takes as long as reading the rows."""
        import pyarrow.parquet as pq

        with self.as_arrow("Parquet"), pq.ParquetFile(self.path) as file:
            return file.schema_arrow

    @property
    def row_count(self) -> int:
        """Number of rows, from the metadata."""
        import pyarrow.parquet as pq

        with self.as_arrow("Parquet"):
            return int(pq.read_metadata(self.path).num_rows)

    @cached_property
    def declared(self) -> list[str]:
        """Columns with a dictionary (categorical) type in the file."""
        import pyarrow as pa

        return [field.name for field in self.schema if pa.types.is_dictionary(field.type)]

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        every = name_columns(self.schema.names, self.label)
        names = [name for name in every if kinds is None or name in kinds]
        with self.as_arrow("Parquet"):
            yield from self.frames(parquet_batches(self.path, names, self.reading, schema=self.schema), names)


def parquet_batches(
    path: str, names: list[str], reading: ReadOptions, groups: Sequence[int] | None = None, most: int | None = None,
    *, schema: Any = None, text_as_codes: bool = True,
) -> Iterator[Any]:  # fmt: skip
    """Record batches of some columns of a Parquet file, or of some of its row groups; text as Arrow dictionaries."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if schema is None and text_as_codes:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
    text = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)] if text_as_codes else []
    with pq.ParquetFile(path, read_dictionary=text, pre_buffer=False, buffer_size=PAGE) as file:
        long = reading.memory_limit is None and len(names) <= FEW_COLUMNS
        rows = most or _batch_rows(file.metadata, len(names), 2 * reading.batch_bytes(len(names)), long)
        rows = min(rows, SHORT_BATCH) if reading.short_batches else rows
        many = threads() > 2  # of two threads, one reads while the other counts
        with open(path, "rb", buffering=0) as stored:
            indices = TextIndices(stored, file, text, many) if reading.memory_limit is None else None
            for some, part in _even_parts(file.metadata, rows, groups):
                each = range(file.num_row_groups) if part is None else part
                if indices is not None and indices.can_read(each):
                    for group in each:  # where a batch of dictionary codes ends anyway
                        yield from indices.batches(group, some, names)
                else:
                    yield from file.iter_batches(some, row_groups=part, columns=names, use_threads=many)


@dataclass(frozen=True)
class ArrowFile(SingleFile):
    """An Arrow file or stream, one record batch at a time.

    Only very large files are memory-mapped: truncating a mapped file while it is read kills the process, and a mapped
    file may change after it was validated.
    """

    def check_size(self) -> None:
        """Refuse a batch that would exceed the maximum unpacked size; Arrow unpacks a complete batch at a time."""
        with self.as_arrow("Arrow"):
            most = most_unpacked(self.path, self.reading)
            if any(size > most for size in unpacked_sizes(self.path)):
                raise too_large(self.label, most)

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        import pyarrow as pa

        self.check_size()
        large = os.path.getsize(self.path) > LARGEST_READ
        with self.as_arrow("Arrow"), pa.memory_map(self.path) if large else pa.OSFile(self.path) as opened:
            try:
                file = pa.ipc.open_file(opened)
                batches = (file.get_batch(i) for i in range(file.num_record_batches))
            except pa.ArrowInvalid:
                opened.seek(0)
                file = pa.ipc.open_stream(opened)
                batches = iter(file)
            names = name_columns(file.schema.names, self.label)
            yield from self.frames(batches, [name for name in names if kinds is None or name in kinds])


def _batch_rows(metadata: Any, columns: int, most_bytes: int, long: bool) -> int:
    """Rows of a Parquet batch: fewer where rows are wide or contain long texts, almost four times as many if `long`."""
    size: int = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    own = size // max(1, int(metadata.num_rows))
    wide = max(8 * columns, own)
    most = 15 * most_bytes // 4 if long and own <= wide // 2 else most_bytes
    return max(1, min(LONG_BATCH, most // max(1, wide)))


def _even_parts(metadata: Any, most: int, groups: Sequence[int] | None) -> Iterator[tuple[int, Sequence[int] | None]]:
    """Rows of a batch, at most so many, with the row groups that are read so: large ones each in equal batches.

    Arrow ends a batch of dictionary codes with its row group, and would leave short batches between the others.
    """
    every = range(metadata.num_row_groups) if groups is None else groups
    sizes = [metadata.row_group(i).num_rows for i in every]
    first = max(sizes[:1], default=0)
    if first <= most:
        yield most - most % first if first else most, groups
        return
    for i, size in zip(every, sizes, strict=True):
        if size:
            yield -(-size // -(-size // most)), [i]
