"""Unpacked sizes of the compressed batches of an Arrow file, from its metadata.

Arrow unpacks a complete batch at a time, so a few kilobytes could fill the memory. Each compressed buffer begins with its
unpacked length, and Arrow refuses a buffer of any other length. The metadata are flatbuffers; only the fields with the
positions of the buffers are parsed.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO

MAGIC = b"ARROW1"
CONTINUES = 0xFFFFFFFF
DICTIONARY, BATCH = 2, 3  # types of messages
BLOCK = 24  # bytes of a footer entry: offset of a message, length of its metadata, length of its body
LARGEST_METADATA = 1 << 28


def unpacked_sizes(path: str) -> Iterator[int]:
    """Unpacked size of each compressed batch of an Arrow file or stream; ValueError if the metadata are damaged."""
    try:
        with open(path, "rb") as file:
            for start in _message_offsets(file, os.path.getsize(path)):
                yield _message(file, start)[0]
    except (struct.error, OverflowError, MemoryError) as error:
        raise ValueError(f"its metadata are damaged ({error})") from None


def _message_offsets(file: BinaryIO, size: int) -> Iterator[int]:
    """Offsets of the messages: from the footer of a file, or one after the other in a stream."""
    if file.read(len(MAGIC)) == MAGIC:
        file.seek(size - len(MAGIC) - 4)
        (length,) = struct.unpack("<i", file.read(4))
        file.seek(size - len(MAGIC) - 4 - length)
        footer = file.read(length)
        for field in (2, 3):  # dictionaries, then batches
            at, count = _vector(footer, _field(footer, _root(footer), field))
            yield from (struct.unpack_from("<q", footer, at + BLOCK * i)[0] for i in range(count))
        return
    start = 0
    while start < size:
        yield start
        end = _message(file, start)[1]
        if end <= start:
            return
        start = end


def _message(file: BinaryIO, start: int) -> tuple[int, int]:
    """Unpacked size of a message and the offset of the next one; 0 where there is none."""
    file.seek(start)
    head = file.read(8)
    if len(head) < 4:
        return 0, 0
    (length,) = struct.unpack_from("<I", head)
    body = start + 4
    if length == CONTINUES:
        (length,) = struct.unpack_from("<I", head, 4)
        body = start + 8
    if not 0 < length <= LARGEST_METADATA:
        return 0, 0
    file.seek(body)
    data, body = file.read(length), body + length
    table = _root(data)
    long = _field(data, table, 3)
    end = body + (struct.unpack_from("<q", data, long)[0] if long else 0)
    kind, header = _field(data, table, 1), _field(data, table, 2)
    if not kind or not header or data[kind] not in (DICTIONARY, BATCH):
        return 0, end
    batch = _follow(data, header)
    if data[kind] == DICTIONARY:
        inner = _field(data, batch, 1)
        if not inner:
            return 0, end
        batch = _follow(data, inner)
    return _unpacked(file, data, batch, body), end


def _unpacked(file: BinaryIO, data: bytes, batch: int, body: int) -> int:
    """Total unpacked length of the buffers of a batch."""
    if not _field(data, batch, 3):  # no compression
        return 0
    at, count = _vector(data, _field(data, batch, 2))
    total = 0
    for i in range(count):
        offset, length = struct.unpack_from("<qq", data, at + 16 * i)
        if length >= 8:
            file.seek(body + offset)
            (unpacked,) = struct.unpack("<q", file.read(8))
            length = unpacked if unpacked >= 0 else length  # -1: this buffer is not compressed
        total += max(length, 0)
    return total


def _root(data: bytes) -> int:
    return _follow(data, 0)


def _follow(data: bytes, at: int) -> int:
    """Target of an offset."""
    return int(at + struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Position of a field of a table; 0 if it has the default value."""
    listed = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", data, listed)[0]:
        return 0
    (offset,) = struct.unpack_from("<H", data, listed + 4 + 2 * number)
    return int(table + offset) if offset else 0


def _vector(data: bytes, field: int) -> tuple[int, int]:
    """Position of the first element of a vector, and the number of elements."""
    if not field:
        return 0, 0
    at = _follow(data, field)
    return at + 4, int(struct.unpack_from("<I", data, at)[0])
