"""Structures of the Thrift compact protocol, in which Parquet files store their metadata: decoded and encoded unchanged.

A structure is a dict from the number of a field to its type and value, a list its element type and values. Nothing of what
the fields mean is known here, so that fields of later versions of a format are kept.
"""

from __future__ import annotations

import struct
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
Fields = dict[int, tuple[int, Any]]
DEEPEST = 32  # structures within structures; Parquet has about ten


class Decoder:
    """Reads values from bytes; ValueError or IndexError if they are none."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def struct(self, depth: int = 0) -> Fields:
        """A structure."""
        fields: Fields = {}
        number = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            number = number + step if step else self._signed()
            fields[number] = kind, kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth + 1)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > DEEPEST:
            raise ValueError("too deeply nested")
        if kind in (I32, I64, I16):
            return self._signed()
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind == STRUCT:
            return self.struct(depth)
        if kind in (LIST, SET):
            return self._list(depth)
        if kind in (BYTE, TRUE, FALSE):  # a truth value in a list is a byte
            return self._byte()
        if kind == DOUBLE:
            return self._bytes(8)
        raise ValueError(f"type {kind} is not known")

    def _list(self, depth: int) -> tuple[int, list[Any]]:
        head = self._byte()
        kind, size = head & 15, head >> 4
        size = self._varint() if size == 15 else size
        return kind, [self._value(kind, depth + 1) for _ in range(size)]

    def _byte(self) -> int:
        byte = self.data[self.at]
        self.at += 1
        return byte

    def _bytes(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise ValueError("incomplete")
        found = self.data[self.at : end]
        self.at = end
        return found

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift

    def _signed(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


def encode(fields: Fields) -> bytes:
    """The bytes of a structure."""
    out = bytearray()
    _put_struct(out, fields)
    return bytes(out)


def _put_struct(out: bytearray, fields: Fields) -> None:
    before = 0
    for number in sorted(fields):
        kind, value = fields[number]
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        step = number - before
        if 0 < step < 16:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _put_signed(out, number)
        if kind not in (TRUE, FALSE):
            _put_value(out, kind, value)
        before = number
    out.append(0)


def _put_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (I32, I64, I16):
        _put_signed(out, value)
    elif kind == BINARY:
        _put_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _put_struct(out, value)
    elif kind in (LIST, SET):
        inner, values = value
        out.append(min(len(values), 15) << 4 | inner)
        if len(values) >= 15:
            _put_varint(out, len(values))
        for each in values:
            _put_value(out, inner, each)
    elif kind == DOUBLE:
        out += value
    else:
        out += struct.pack("B", value)


def _put_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _put_signed(out: bytearray, value: int) -> None:
    _put_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)
