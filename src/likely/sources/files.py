"""Tables in files: Parquet, Arrow, JSON and JSON lines here, CSV and TSV in a room of their own."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from likely.errors import DataError
from likely.sources.batch import Batch, Frame
from likely.sources.memory import rows_to_frame

if TYPE_CHECKING:
    from likely.sources import Reading, Source

BATCH_ROWS = 65_536
JSON_ROWS = 20_000
PAGE = 1 << 18  # bytes read ahead a column: whole column chunks would double the memory
MANY_CORES = (os.cpu_count() or 1) > 2  # with two, one reads while the other counts

KINDS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip


def open_files(path: str, reading: Reading) -> Source:
    """The source behind a path or a glob; several files are read one after the other."""
    # A file whose own name holds a bracket or a star is meant before a pattern is.
    paths = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    if not paths:
        raise DataError(f"there is no file {path!r}")
    sources = [_open_file(one, reading) for one in paths]
    return sources[0] if len(sources) == 1 else Several(tuple(sources), path)


def _open_file(path: str, reading: Reading) -> Source:
    if os.path.isdir(path):
        raise DataError(
            f"{path!r} is a folder: name a file in it, or a glob such as {os.path.join(path, '*.parquet')!r}"
        )
    kind = KINDS.get(os.path.splitext(path)[1].lower())
    if kind is None:
        raise DataError(f"{path!r} has an ending that is not known: use one of {', '.join(KINDS)}")
    if os.path.getsize(path) == 0:
        raise DataError(f"{path!r} is empty: nothing can be learned from it")
    if kind == "csv":
        from likely.sources.text import CsvFile

        return CsvFile(path, reading)
    return {"parquet": ParquetFile, "arrow": ArrowFile, "json": JsonFile, "jsonl": JsonLines}[kind](path, reading)


@dataclass(frozen=True)
class Several:
    """Files of the same columns, one after the other."""

    parts: tuple[Source, ...]
    label: str
    partial: bool = False

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows of all files; a file with other columns than the first is refused by name."""
        first: set[str] = set()
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
                yield replace(batch, start=before + batch.start)  # type: ignore[type-var]


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file, read batch by batch; text comes as Arrow's dictionaries, so each value is decoded once."""

    label: str
    reading: Reading
    partial: bool = False

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.label) as file:
                schema = file.schema_arrow
                _refuse_twins(schema.names, self.label)
                text = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
            with pq.ParquetFile(self.label, read_dictionary=text, pre_buffer=False, buffer_size=PAGE) as file:
                names = schema.names if kinds is None else [name for name in schema.names if name in kinds]
                for start, batch in _counted(file.iter_batches(BATCH_ROWS, columns=names, use_threads=MANY_CORES)):
                    yield _frame(batch, start, self.reading.missing)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.label!r} is no whole Parquet file: {_first_line(error)}") from None


@dataclass(frozen=True)
class ArrowFile:
    """An Arrow file or stream, mapped into memory."""

    label: str
    reading: Reading
    partial: bool = False

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        import pyarrow as pa

        try:
            with pa.memory_map(self.label) as mapped:
                try:
                    file = pa.ipc.open_file(mapped)
                    batches = (file.get_batch(i) for i in range(file.num_record_batches))
                except pa.ArrowInvalid:
                    mapped.seek(0)
                    file = pa.ipc.open_stream(mapped)
                    batches = iter(file)
                _refuse_twins(file.schema.names, self.label)
                for start, batch in _counted(batches):
                    yield _frame(batch, start, self.reading.missing)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.label!r} is no whole Arrow file: {_first_line(error)}") from None


@dataclass(frozen=True)
class JsonFile:
    """A JSON file: a list of objects, or an object of lists."""

    label: str
    reading: Reading
    partial: bool = False

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        from likely.sources.memory import from_memory

        try:
            with open(self.label, encoding=self.reading.encoding or "utf-8-sig") as file:
                data = json.load(file)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.label!r} is not JSON: {error}") from None
        if not isinstance(data, (list, dict)):
            raise DataError(
                f"{self.label!r} holds {type(data).__name__}: it must hold a list of objects or an object of lists"
            )
        yield from from_memory(data, self.reading.missing).batches()


@dataclass(frozen=True)
class JsonLines:
    """A file with one JSON object a line."""

    label: str
    reading: Reading
    partial: bool = False

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        rows: list[dict[str, Any]] = []
        start = 0
        for number, row in self._rows():
            if not isinstance(row, dict):
                self._bad(number, f"holds {type(row).__name__}, not an object")
                continue
            rows.append(row)
            if len(rows) == JSON_ROWS:
                yield rows_to_frame(rows, start, self.reading.missing)
                start, rows = start + len(rows), []
        if rows:
            yield rows_to_frame(rows, start, self.reading.missing)

    def _rows(self) -> Iterator[tuple[int, Any]]:
        try:
            with open(self.label, encoding=self.reading.encoding or "utf-8-sig") as file:
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        try:
                            yield number, json.loads(line)
                        except (ValueError, RecursionError) as error:
                            self._bad(number, f"is not JSON ({error})")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self.label!r} is not {error.encoding}: pass encoding='latin-1' or what it is in"
            ) from None

    def _bad(self, number: int, fault: str) -> None:
        if self.reading.on_bad_rows == "error":
            raise DataError(f"{self.label!r} line {number} {fault}: mend it, or pass on_bad_rows='skip'")
        self.reading.rejects.append(f"{self.label} line {number} {fault}")


def _frame(batch: Any, start: int, missing: tuple[str, ...]) -> Frame:
    return Frame(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows, start, missing)


def _counted(batches: Any) -> Iterator[tuple[int, Any]]:
    start = 0
    for batch in batches:
        yield start, batch
        start += batch.num_rows


def _refuse_twins(names: list[str], label: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"column {name!r} stands twice in {label!r}: rename one of them", column=name)
        seen.add(name)


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
