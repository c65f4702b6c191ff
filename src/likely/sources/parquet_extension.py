"""A Parquet file with columns added: its content is copied unchanged, and only the new columns are encoded.

Parquet stores every column of a row group by itself, and where it stands in metadata at the end of the file. So the file is
copied up to its metadata, a file of the new columns with the same row groups is written behind it, and the metadata of both
are merged. Pages, indexes and filters of the copied part stay where they were.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import struct
import threading
from dataclasses import dataclass
from typing import Any, BinaryIO, Self

from likely.errors import DataError
from likely.sources._thrift_compact import Decoder, Fields, encode

MAGIC = b"PAR1"
LARGEST_METADATA = 4 << 20  # bytes: of more, decoding takes longer than writing the columns would
AT_ONCE = 8 << 20  # bytes copied between two looks at whether to stop
ARROW = b"ARROW:schema"
# Numbers of fields in the metadata, see parquet.thrift.
SCHEMA, GROUPS, PAIRS, ORDERS, ENCRYPTION = 2, 4, 5, 7, 8  # of a file
CHILDREN = 5  # of an element of the schema
COLUMNS, BYTES, ROWS, COMPRESSED = 1, 2, 3, 6  # of a row group
ELSEWHERE, CONTENT, ENCRYPTED, ENCRYPTED_TOO = 1, 3, 8, 9  # of a column
COLUMN_OFFSETS, PAGE_OFFSETS = (2, 4, 6), (9, 10, 11, 14)  # of a column, and of its content


class NotExtendableError(Exception):
    """Columns cannot be added to a copy of the file; all columns must be written anew."""


@dataclass(frozen=True)
class ParquetLayout:
    """Layout of an open Parquet file: its metadata, their offset, and the rows of every row group."""

    path: str
    file: BinaryIO
    label: str  # in messages
    names: list[str]  # of the columns
    metadata: Fields
    end: int
    group_rows: tuple[int, ...]
    state: tuple[int, ...]

    @classmethod
    def of(cls, path: str, label: str, names: list[str], most_rows: int) -> Self:
        """The layout of a file; NotExtendableError if it cannot be copied as it is, or a row group has more rows."""
        file = open(path, "rb")  # noqa: SIM115 -- closed by `close`
        try:
            state = _state(os.fstat(file.fileno()))
            metadata, end = read_metadata(file)
            groups: list[Fields] = metadata[GROUPS][1][1]
            if ENCRYPTION in metadata or any(_is_odd(column) for group in groups for column in group[COLUMNS][1][1]):
                raise NotExtendableError("columns are encrypted, or in other files")
            group_rows = tuple(group[ROWS][1] for group in groups)
            if not all(0 < rows <= most_rows for rows in group_rows):
                raise NotExtendableError("a row group is empty, or too long to be held in memory")
            return cls(path, file, label, names, metadata, end, group_rows, state)
        except (ValueError, LookupError, TypeError, OSError) as error:
            file.close()
            raise NotExtendableError(str(error)) from None
        except BaseException:
            file.close()
            raise

    def check_unchanged(self) -> None:
        """Raise DataError if the path has become another file, or the file was written to."""
        if _state(os.stat(self.path)) != self.state:
            raise DataError(f"{self.label} has changed while it was read: run again when nothing writes to it")

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def _state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _is_odd(column: Fields) -> bool:
    return not column.keys().isdisjoint((ELSEWHERE, ENCRYPTED, ENCRYPTED_TOO))


def read_metadata(file: BinaryIO) -> tuple[Fields, int]:
    """The metadata of a Parquet file, and their offset."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    length, magic = struct.unpack("<I4s", file.read(8))
    end = size - 8 - length
    if magic != MAGIC or end < len(MAGIC) or length > LARGEST_METADATA:
        raise NotExtendableError("no metadata, or too large ones")
    file.seek(end)
    return Decoder(file.read(length)).struct(), end


class ParquetCopy:
    """The first part of a new file: that of an existing one up to its metadata, copied by a thread."""

    def __init__(self, layout: ParquetLayout, path: str) -> None:
        self.layout, self.path = layout, path
        self.stopped, self.error = threading.Event(), list[OSError]()
        os.truncate(path, layout.end)  # what follows may be written at once
        self.thread = threading.Thread(target=self._run, name="likely-copy", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with open(self.path, "r+b", buffering=0) as out:
                at = 0
                while at < self.layout.end and not self.stopped.is_set():
                    at += _copy(self.layout.file.fileno(), out.fileno(), at, min(AT_ONCE, self.layout.end - at))
                if not self.stopped.is_set():
                    os.fsync(out.fileno())  # while rows are still scored, rather than at the end
        except OSError as error:
            self.error.append(error)

    def finish(self) -> None:
        """Wait for the end; raises the error of the copying."""
        self.thread.join()
        if self.error:
            raise self.error[0]
        self.layout.check_unchanged()

    def stop(self) -> None:
        """Stop copying."""
        self.stopped.set()
        self.thread.join()


def _copy(source: int, target: int, at: int, size: int) -> int:
    """Copy bytes at an offset to the same offset of another file; returns how many were copied."""
    with contextlib.suppress(OSError, AttributeError):  # not on every system, nor between all file systems
        if copied := os.copy_file_range(source, target, size, at, at):
            return copied
    if hasattr(os, "pread"):
        data = os.pread(source, size, at)
        copied = os.pwrite(target, data, at)
    else:
        os.lseek(target, at, os.SEEK_SET)
        with open(os.dup(source), "rb") as file:
            file.seek(at)
            copied = os.write(target, file.read(size))
    if not copied:
        raise OSError(errno.EIO, "a file has become shorter while it was read")
    return copied


def merge_metadata(layout: ParquetLayout, path: str, fields: Any) -> None:
    """Give a file, of a copy and a Parquet file of more columns behind it, the metadata of both.

    Parameters
    ----------
    layout : ParquetLayout
        Of the file that was copied.
    path : str
        The copy, behind which a Parquet file with the same row groups was written.
    fields : pyarrow.Schema
        The columns of that file.
    """
    with open(path, "r+b") as file:
        added, end = read_metadata(file)
        merged = encode(_merged(layout.metadata, _shifted(added, layout.end), fields))
        file.seek(end)
        file.truncate()
        file.write(merged + struct.pack("<I", len(merged)) + MAGIC)


def _shifted(metadata: Fields, by: int) -> Fields:
    """The metadata of a file that is embedded at an offset in another one."""
    groups = [
        group | {COLUMNS: _list_of(group[COLUMNS], [_shifted_column(column, by) for column in group[COLUMNS][1][1]])}
        for group in metadata[GROUPS][1][1]
    ]
    return metadata | {GROUPS: _list_of(metadata[GROUPS], groups)}


def _shifted_column(column: Fields, by: int) -> Fields:
    inner = _with_offsets_moved(column[CONTENT][1], PAGE_OFFSETS, by)
    return _with_offsets_moved(column, COLUMN_OFFSETS, by) | {CONTENT: (column[CONTENT][0], inner)}


def _with_offsets_moved(fields: Fields, offsets: tuple[int, ...], by: int) -> Fields:
    """The same fields with those that are offsets moved; 0 stands for none."""
    return fields | {k: (fields[k][0], fields[k][1] + by) for k in offsets if k in fields and fields[k][1]}


def _merged(first: Fields, more: Fields, fields: Any) -> Fields:
    root, *elements = first[SCHEMA][1][1]
    leaves = more[SCHEMA][1][1][1:]
    root = root | {CHILDREN: (root[CHILDREN][0], root[CHILDREN][1] + len(leaves))}
    merged = first | {SCHEMA: _list_of(first[SCHEMA], [root, *elements, *leaves])}
    groups = zip(first[GROUPS][1][1], more[GROUPS][1][1], strict=True)
    merged[GROUPS] = _list_of(first[GROUPS], [_merged_group(*pair) for pair in groups])
    if ORDERS in first and ORDERS in more:
        merged[ORDERS] = _list_of(first[ORDERS], first[ORDERS][1][1] + more[ORDERS][1][1])
    if PAIRS in first:
        merged[PAIRS] = _list_of(first[PAIRS], [_with_fields(pair, fields) for pair in first[PAIRS][1][1]])
    return merged


def _list_of(field: tuple[int, Any], values: list[Any]) -> tuple[int, Any]:
    """A field of a list with other values."""
    return field[0], (field[1][0], values)


def _merged_group(one: Fields, other: Fields) -> Fields:
    if one[ROWS] != other[ROWS]:
        raise ValueError("row groups differ")
    sums = {key: (one[key][0], one[key][1] + other[key][1]) for key in (BYTES, COMPRESSED) if key in one and key in other}
    return one | sums | {COLUMNS: _list_of(one[COLUMNS], one[COLUMNS][1][1] + other[COLUMNS][1][1])}


def _with_fields(pair: Fields, fields: Any) -> Fields:
    """A pair of key and value; the Arrow schema with the new columns, as one that lacks columns would be ignored."""
    if pair[1][1] != ARROW or 2 not in pair:
        return pair
    import pyarrow as pa

    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(pair[2][1])))
    for field in fields:
        schema = schema.append(field)
    return pair | {2: (pair[2][0], base64.b64encode(schema.serialize().to_pybytes()))}
