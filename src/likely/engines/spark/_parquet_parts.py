"""Spark tables stored as plain Parquet files: their row groups are parts that tasks read directly.

Rows then never cross the border between the Java machine and Python, which costs more than counting them. A table is read so
only where its optimized plan is a scan of local files and a choice of columns, and every file has the columns of the table in
the types in which Spark would send them. In any doubt Spark sends the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from likely.errors import DataError
from likely.sources import ReadOptions
from likely.sources.files import parquet_batches

MOST_FILES = 1_000  # whose footers are read before counting
MOST_COLUMNS = 1_000  # of a choice of columns: every one is a question to the Java machine
PART_BYTES = 1 << 28  # of a part, unpacked: a task that is lost is repeated from its start
EXECUTION = "org.apache.spark.sql.execution.datasources."
CATALYST = "org.apache.spark.sql.catalyst."
SCAN, PROJECT = EXECUTION + "LogicalRelation", CATALYST + "plans.logical.Project"
ATTRIBUTE, ALIAS = CATALYST + "expressions.AttributeReference", CATALYST + "expressions.Alias"
PARQUET, LISTED = EXECUTION + "parquet.ParquetFileFormat", EXECUTION + "InMemoryFileIndex"
LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
VERSION = b"org.apache.spark.version"
# Settings with which Spark reads a file otherwise than it is written.
CHANGING = {"spark.sql.parquet.fieldId.read.enabled": "true", "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}


class UnreadablePartError(DataError):
    """A part of the files cannot be read where the task runs: Spark has to send the rows."""


class _OtherwiseError(Exception):
    """Raised with the reason why the rows are not read from files."""


@dataclass(frozen=True)
class Piece:
    """Row groups of one file.

    Attributes
    ----------
    path : str
        The file.
    size : int
        Its size in bytes: a file of another size is not the one that was planned.
    groups : tuple of int
        Row groups, in order.
    """

    path: str
    size: int
    groups: tuple[int, ...]


@dataclass(frozen=True)
class ParquetParts:
    """A Spark table as row groups of Parquet files.

    Attributes
    ----------
    columns : dict of str to (str, Arrow type)
        From the name of a column to that in the files, and the type in which Spark would hand it over.
    pieces : tuple of (Piece, int)
        Every row group, and its unpacked size in bytes.
    rows : int
        Number of rows.
    """

    columns: dict[str, tuple[str, Any]]
    pieces: tuple[tuple[Piece, int], ...]
    rows: int

    def parts(self, at_once: int) -> list[list[Piece]]:
        """The row groups in parts of about equal size: as many as tasks run at a time, or a multiple of it."""
        total = sum(size for _, size in self.pieces)
        wanted = at_once * max(1, round(total / (at_once * PART_BYTES)))
        found: list[list[Piece]] = [[] for _ in range(wanted)]
        before = 0
        for piece, size in self.pieces:
            part = found[min(wanted - 1, (before + size // 2) * wanted // max(1, total))]
            if part and part[-1].path == piece.path:
                part[-1] = Piece(piece.path, piece.size, part[-1].groups + piece.groups)
            else:
                part.append(piece)
            before += size
        return [part for part in found if part]

    def chosen(self, wanted: Iterable[str] | None) -> dict[str, tuple[str, Any]]:
        """Some of the columns, in the order of the table."""
        known = None if wanted is None else set(wanted)
        return {name: each for name, each in self.columns.items() if known is None or name in known}

    def first_rows(self, most: int) -> tuple[Any, bool]:
        """The first rows as an Arrow table, and whether they are all."""
        import pyarrow as pa

        held, rows = [], 0
        for batch in read_pieces([piece for piece, _ in self.pieces], self.columns, most, text_as_codes=False):
            held.append(batch)
            rows += batch.num_rows
            if rows >= most:
                break
        return pa.Table.from_batches(held).slice(0, most), self.rows <= most

    def batches(self, wanted: Iterable[str] | None) -> Iterator[Any]:
        """All rows as record batches, read by this process."""
        yield from read_pieces([piece for piece, _ in self.pieces], self.chosen(wanted))


def read_pieces(
    pieces: Sequence[Piece], columns: dict[str, tuple[str, Any]], most: int | None = None, *, text_as_codes: bool = True
) -> Iterator[Any]:
    """The rows of some row groups as record batches of at most `most` rows, with the names and types of the table."""
    import os

    import pyarrow as pa

    for piece in pieces:
        try:
            if os.path.getsize(piece.path) != piece.size:
                raise UnreadablePartError(f"{piece.path!r} is not the file that the table was planned from")
            names = [name for name, _ in columns.values()]
            reading = parquet_batches(piece.path, names, ReadOptions(), piece.groups, most, text_as_codes=text_as_codes)
            for batch in reading:
                yield pa.record_batch([_typed(batch[name], kind) for name, kind in columns.values()], list(columns))
        except (OSError, pa.ArrowException) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
            raise UnreadablePartError(f"{piece.path!r} cannot be read: {reason}") from None


def _typed(column: Any, kind: Any) -> Any:
    import pyarrow as pa

    return column if pa.types.is_dictionary(column.type) or column.type == kind or _nested(kind) else column.cast(kind)


def parquet_parts(frame: Any) -> tuple[ParquetParts | None, str]:
    """The files of a Spark table stored as plain Parquet files, or None and the reason why they are not read directly."""
    try:
        return _parts_of(frame), ""
    except _OtherwiseError as error:
        return None, str(error)
    except Exception as error:  # whatever another version of Spark, or a file that Arrow cannot read, may raise
        return None, f"its files could not be examined ({type(error).__name__})"


def _parts_of(frame: Any) -> ParquetParts:
    if not hasattr(frame, "_jdf"):
        raise _OtherwiseError("Spark Connect does not show where a table is stored")
    session = frame.sparkSession
    for setting, value in CHANGING.items():
        if str(session.conf.get(setting)).lower() == value.lower():
            raise _OtherwiseError(f"{setting} is {value}")
    scan, stored = _scan(frame)
    relation = scan.relation()
    for each, known in ((relation.fileFormat(), PARQUET), (relation.location(), LISTED)):
        if each.getClass().getName() != known:
            raise _OtherwiseError(f"{each.getClass().getSimpleName()} is not a list of Parquet files")
    if relation.partitionSchema().size():
        raise _OtherwiseError("it has partition columns, which its files do not hold")
    paths = [_local(path) for path in relation.location().inputFiles()]
    if not 0 < len(paths) <= MOST_FILES:
        raise _OtherwiseError(f"it has {len(paths):,} files; up to {MOST_FILES:,} are examined")
    kinds = _arrow_types(frame)
    columns = {name: (stored[name], kinds[name]) for name in frame.columns}
    found = _examined(paths, columns)
    if not found.rows:
        raise _OtherwiseError("its files have no rows")
    return found


def _scan(frame: Any) -> tuple[Any, dict[str, str]]:
    """The scan that is all of the optimized plan, and the names of the columns in it."""
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - Python has no other way to the plan
    names = {name: name for name in frame.columns}
    if plan.getClass().getName() == PROJECT:
        if len(frame.columns) > MOST_COLUMNS:
            raise _OtherwiseError(f"it chooses more than {MOST_COLUMNS:,} columns of a table")
        chosen = plan.projectList()
        names = {each: _source(chosen.apply(i)) for i, each in enumerate(frame.columns)}
        plan = plan.child()
    if plan.getClass().getName() != SCAN:
        raise _OtherwiseError(f"it is no plain table of files but made by {plan.getClass().getSimpleName()}")
    if plan.relation().getClass().getName() != EXECUTION + "HadoopFsRelation":
        raise _OtherwiseError(f"{plan.relation().getClass().getSimpleName()} is not a list of Parquet files")
    return plan, names


def _source(expression: Any) -> str:
    """The name of the column that an expression takes as it is."""
    if expression.getClass().getName() == ALIAS:
        expression = expression.child()
    if expression.getClass().getName() != ATTRIBUTE:
        raise _OtherwiseError("some of its columns are computed")
    return str(expression.name())


def _local(path: str) -> str:
    parts = urlsplit(path)
    if parts.scheme != "file" or parts.netloc:
        raise _OtherwiseError(f"its files are on {parts.scheme or 'an unknown file system'}, not on a local one")
    return unquote(parts.path)


def _arrow_types(frame: Any) -> dict[str, Any]:
    """The Arrow types in which Spark would send the columns."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    # Instants are read as such, whatever the zone of the session; what is inside of nested cells is not read.
    own = {"TimestampType": pa.timestamp("us", "UTC")}
    own |= dict.fromkeys(("ArrayType", "MapType", "StructType"), pa.list_(pa.null()))
    named = {field.name: (type(field.dataType).__name__, field.dataType) for field in frame.schema.fields}
    return {name: own[word] if word in own else to_arrow_type(kind) for name, (word, kind) in named.items()}


def _examined(paths: Sequence[str], columns: dict[str, tuple[str, Any]]) -> ParquetParts:
    """The row groups of all files, after a look at the columns of every file."""
    import os

    import pyarrow.parquet as pq

    pieces: list[tuple[Piece, int]] = []
    rows = 0
    for path in paths:
        with pq.ParquetFile(path) as file:
            about, size = file.metadata, os.path.getsize(path)
            _check_columns(path, file.schema_arrow, columns)
            written = about.metadata or {}
            if any(key in written for key in LEGACY) or written.get(VERSION, b"").startswith((b"1.", b"2.")):
                raise _OtherwiseError(f"{path!r} has dates in the calendar of old versions of Spark")
            groups = range(about.num_row_groups)
            pieces += [(Piece(path, size, (i,)), int(about.row_group(i).total_byte_size)) for i in groups]
            rows += int(about.num_rows)
    return ParquetParts(columns, tuple(pieces), rows)


def _check_columns(path: str, schema: Any, columns: dict[str, tuple[str, Any]]) -> None:
    for name, kind in columns.values():
        places = schema.get_all_field_indices(name)
        if len(places) != 1:
            raise _OtherwiseError(f"{path!r} has no column {name!r}, or several")
        if not _same_values(schema.field(places[0]).type, kind):
            raise _OtherwiseError(f"column {name!r} of {path!r} is {schema.field(places[0]).type}, which Spark reads as {kind}")


def _same_values(stored: Any, given: Any) -> bool:
    """Whether a column of one type has the same values as the type in which Spark sends it."""
    import pyarrow as pa

    t = pa.types
    if t.is_timestamp(stored) and t.is_timestamp(given):
        return stored.unit in ("ms", "us") and bool(stored.tz) == bool(given.tz)
    if t.is_string(given):
        return bool(t.is_string(stored) or t.is_large_string(stored))
    return bool(stored == given) or (_nested(stored) and _nested(given))


def _nested(kind: Any) -> bool:
    """Whether cells hold several values: such a column is left out, whatever is in it."""
    import pyarrow as pa

    return bool(pa.types.is_nested(kind) and not pa.types.is_dictionary(kind))
