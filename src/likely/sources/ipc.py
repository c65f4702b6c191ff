"""How much the compressed batches of an Arrow file unpack to, read from its metadata before Arrow unpacks one.

A batch is unpacked as a whole, so a few kilobytes could fill the memory. Each compressed buffer begins with its length
unpacked, and Arrow refuses a buffer that does not unpack to just that. The metadata are flatbuffers, of which only the
few fields are read that say where the buffers are.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO

MAGIC = b"ARROW1"
CONTINUES = 0xFFFFFFFF
DICTIONARY, BATCH = 2, 3  # types of messages
BLOCK = 24  # bytes: where a message of a file begins, the length of its metadata and of its body
LARGEST_METADATA = 1 << 28


def unpacked_sizes(path: str) -> Iterator[int]:
    """The bytes that each compressed batch of an Arrow file or stream unpacks to; ValueError where the metadata are damaged."""
    try:
        with open(path, "rb") as file:
            for start in _places(file, os.path.getsize(path)):
                yield _message(file, start)[0]
    except (struct.error, OverflowError, MemoryError) as error:
        raise ValueError(f"its metadata are damaged ({error})") from None


def _places(file: BinaryIO, size: int) -> Iterator[int]:
    """Where the messages begin: as the end of a file lists them, or one after the other in a stream."""
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
    """The bytes of a message unpacked, and where the next one begins; 0 where there is none."""
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
    """The sum of the lengths that the buffers of a batch unpack to."""
    if not _field(data, batch, 3):  # nothing is compressed
        return 0
    at, count = _vector(data, _field(data, batch, 2))
    total = 0
    for i in range(count):
        offset, length = struct.unpack_from("<qq", data, at + 16 * i)
        if length >= 8:
            file.seek(body + offset)
            (unpacked,) = struct.unpack("<q", file.read(8))
            length = unpacked if unpacked >= 0 else length  # -1: this one is not compressed
        total += max(length, 0)
    return total


def _root(data: bytes) -> int:
    return _follow(data, 0)


def _follow(data: bytes, at: int) -> int:
    """Where an offset leads to."""
    return int(at + struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table is; 0 where it has the default value."""
    listed = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", data, listed)[0]:
        return 0
    (offset,) = struct.unpack_from("<H", data, listed + 4 + 2 * number)
    return int(table + offset) if offset else 0


def _vector(data: bytes, field: int) -> tuple[int, int]:
    """Where the parts of a vector begin, and how many there are."""
    if not field:
        return 0, 0
    at = _follow(data, field)
    return at + 4, int(struct.unpack_from("<I", data, at)[0])
