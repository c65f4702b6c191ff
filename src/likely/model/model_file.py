"""The model file: data only, checked by SHA-256, versioned, written completely or not at all.

Layout: magic (8 bytes), version (u32), header length (u64), SHA-256 of all the rest (32 bytes), header (JSON), arrays.
All numbers are little-endian; arrays are in C order, one after the other as the header lists them with type and shape.

A file is replaced atomically (`likely.sources.atomic_write`): readers find the old file or the new one, even if a process dies.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import math
import os
import stat
import struct
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from likely.errors import ChangedError, ModelFileError, SaveError, UsageError
from likely.sources.atomic_write import failed, whole_file

MAGIC = b"LIKELY\r\n"
VERSION = 2  # 1 had all values of a column, however many, in the header
TYPES = ("<f8", "<i8", "<i4", "|u1")
LONGEST_HEADER = 1 << 26  # bytes: a file that claims a longer one is refused
SHORT_HEADER = 1 << 16  # bytes
MOST_PARTS = 4_000_000  # lists and objects in a header: each takes twenty times the memory that it takes in the file
BLOCK = 1 << 20
_FIXED = struct.Struct("<8sIQ32s")

Array = NDArray[np.float64]
Check = Callable[[Mapping[str, Any], Mapping[str, Array]], Any]  # ValueError where they are no model


def write(
    path: str | Path,
    header: Mapping[str, Any],
    arrays: Mapping[str, Array],
    replacing: str | None = None,
    check: Check | None = None,
) -> str:
    """Write a model file atomically and return its digest.

    `replacing` is the digest the old file must still have. The new file is read back, and shown to `check`, before it takes
    the place of the old one: what could not be read again is never written.
    """
    parts, digest = _encoded(header, arrays)
    with whole_file(path, partial(_check_unchanged, str(path), replacing)) as temporary:
        try:
            with open(temporary, "wb") as file:
                file.writelines(parts)
        except OSError as error:
            raise failed(path, error) from None
        _verify(check, temporary)
    return digest


def to_bytes(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """The content of a model file, to be sent to another process."""
    return b"".join(_encoded(header, arrays)[0])


def _encoded(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> tuple[tuple[Any, ...], str]:
    """The pieces of a model file in their order, and its digest."""
    # Unlike np.ascontiguousarray, this leaves a single number a single number.
    arrays = {name: np.asarray(array, dtype=_type(array), order="C") for name, array in arrays.items()}
    listed = {name: [_type(array), *array.shape] for name, array in arrays.items()}
    try:
        text = json.dumps(
            {"arrays": listed, **header}, ensure_ascii=True, allow_nan=False, separators=(",", ":")
        ).encode()
    except ValueError as error:
        raise UsageError(f"the model cannot be written: {error}") from None
    if len(text) > LONGEST_HEADER or _parts(text) > MOST_PARTS:
        raise UsageError(f"the model cannot be written: its values fill {len(text):,} bytes, too many for a header")
    blobs = [array.reshape(-1).view(np.uint8).data for array in arrays.values()]  # no copies: they may be large
    digest = _digest(VERSION, text, blobs)
    return (_FIXED.pack(MAGIC, VERSION, len(text), digest), text, *blobs), digest.hex()


def _check_unchanged(path: str, digest: str | None, target: Path) -> None:
    if digest is not None and (not target.exists() or _stored_digest(target) != digest):
        raise ChangedError(
            f"{path!r} was changed by another process meanwhile: nothing was written", remedy="run again"
        )


def _verify(check: Check | None, temporary: str) -> None:
    """Read back what was written; what would be refused later is refused now."""
    try:
        header, arrays, _ = read(temporary)
        if check:
            check(header, arrays)
    except ValueError as error:
        refused = SaveError(
            f"the model was not saved: read back, its file would be refused ({error})",
            remedy="the file that was there before is unchanged; please report this with the data that led to it",
        )
        refused.exit_code = 1  # a fault of Likely: more space or another place would not help
        raise refused from None


def _parts(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, Array], str]:
    """Header, arrays and digest of a model file; an incomplete or changed file is refused."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # before it is opened: a pipe would wait for a writer
            raise ModelFileError(f"{str(path)!r} is not a Likely model file: it is no ordinary file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size  # of this very file: another may take its place any moment
            return _read(file, size, path)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def from_bytes(content: bytes, label: str) -> tuple[dict[str, Any], dict[str, Array], str]:
    """Header, arrays and digest of the content of a model file, called `label` in messages."""
    return _read(io.BytesIO(content), len(content), label)


def _read(file: BinaryIO, size: int, path: str | Path) -> tuple[dict[str, Any], dict[str, Array], str]:
    start = file.read(_FIXED.size)
    length = _header_length(start, size, path)
    if length <= SHORT_HEADER:  # cheap to parse: a claim that does not fit the file is refused before it is hashed
        _header(file.read(length), size - _FIXED.size - length, path)
        file.seek(_FIXED.size)
    _check_digest(file, start, path)  # before a long header is parsed
    file.seek(_FIXED.size)
    header, listed = _header(file.read(length), size - _FIXED.size - length, path)
    return header, _arrays(listed, file, path), _FIXED.unpack(start)[3].hex()


def _check_digest(file: BinaryIO, start: bytes, path: str | Path) -> None:
    """Refuse what is damaged; read in blocks, so that a huge file takes no memory for it."""
    _, version, length, digest = _FIXED.unpack(start)
    hasher = hashlib.sha256(MAGIC + struct.pack("<IQ", version, length))
    while block := file.read(BLOCK):
        hasher.update(block)
    if hasher.digest() != digest:
        raise ModelFileError(f"{str(path)!r} is damaged: its checksum does not fit its content")


def _header(text: bytes, rest: int, path: str | Path) -> tuple[dict[str, Any], dict[str, tuple[str, list[int]]]]:
    """The header, and type and shape of each array; refused before more is read if they do not fill the file."""
    try:
        if _parts(text) > MOST_PARTS:
            raise ValueError("its header has more parts than any model")
        header = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_twice)
        listed = {name: (str(kind), [_whole(n) for n in shape]) for name, (kind, *shape) in header["arrays"].items()}
        sizes = [_size(*each) for each in listed.values()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = "its header is nested too deeply" if isinstance(error, RecursionError) else error
        raise ModelFileError(f"{str(path)!r} is damaged, or no model: {reason}") from None
    if sum(sizes) != rest:
        raise ModelFileError(f"{str(path)!r} is damaged or cut off: its arrays do not fill it")
    return header, listed


def _no_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an entry of its header is there twice")
    return made


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _whole(given: Any) -> int:
    if type(given) is not int or given < 0:
        raise ValueError(f"{given!r} is no length")
    return given


def _size(kind: str, shape: list[int]) -> int:
    if kind not in TYPES:
        raise ValueError(f"{kind!r} is no type of numbers")
    return int(np.dtype(kind).itemsize * math.prod(shape))


def _header_length(start: bytes, size: int, path: str | Path) -> int:
    if len(start) < _FIXED.size or not start.startswith(MAGIC):
        raise ModelFileError(f"{str(path)!r} is not a Likely model file")
    _, version, length, _ = _FIXED.unpack(start)
    if version < 1:
        raise ModelFileError(f"{str(path)!r} is of version {version}, which does not exist: it is damaged, or no model")
    if version > VERSION:
        raise ModelFileError(
            f"{str(path)!r} is of version {version}, this library reads up to {VERSION}: install a newer Likely"
        )
    if length > min(size - _FIXED.size, LONGEST_HEADER):
        raise ModelFileError(f"{str(path)!r} is cut off or damaged: its header is longer than the file, or than any")
    return int(length)


def _arrays(listed: Mapping[str, tuple[str, list[int]]], file: BinaryIO, path: str | Path) -> dict[str, Array]:
    """The arrays of a file; neighbours of one type are read and checked together, as a wide table has very many."""
    arrays: dict[str, Array] = {}
    for kind, run in itertools.groupby(listed.items(), lambda item: item[1][0]):
        parts = [(name, shape, math.prod(shape)) for name, (_, shape) in run]
        numbers = np.empty(sum(size for _, _, size in parts), kind)
        if file.readinto(numbers.view(np.uint8).data) < numbers.nbytes:  # type: ignore[attr-defined]
            raise ModelFileError(f"{str(path)!r} was changed while it was read", remedy="try again")
        numbers = numbers.astype(np.dtype(kind).newbyteorder("="), copy=False)
        sound, start = bool(np.isfinite(numbers).all()), 0
        for name, shape, size in parts:
            arrays[name] = numbers[start : start + size].reshape(shape)
            start += size
            if not sound and not np.isfinite(arrays[name]).all():
                raise ModelFileError(f"{str(path)!r} is no model: array {name!r} holds numbers that are not finite")
    return arrays


def _type(array: NDArray[Any]) -> str:
    """How an array is written: numbers of eight bytes, or of the one or four bytes that they already have."""
    return {"u1": "|u1", "i4": "<i4", "i8": "<i8"}.get(array.dtype.str[1:], "<f8")


def _digest(version: int, text: bytes, blobs: list[memoryview]) -> bytes:
    hasher = hashlib.sha256(MAGIC + struct.pack("<IQ", version, len(text)) + text)
    for blob in blobs:
        hasher.update(blob)
    return hasher.digest()


def _stored_digest(path: Path) -> str:
    with open(path, "rb") as file:
        start = file.read(_FIXED.size)
    return _FIXED.unpack(start)[3].hex() if len(start) == _FIXED.size else ""


# Values that JSON cannot hold are written as {"type": ..., "value": ...}.
TAGS: dict[str, tuple[type, Any, Any]] = {
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "timedelta": (timedelta, lambda v: v.total_seconds(), lambda s: timedelta(seconds=s)),
    "decimal": (Decimal, str, Decimal),
    "fraction": (Fraction, str, Fraction),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "float": (float, str, float),  # an infinite one, which JSON cannot hold
}


def to_json(value: Any, column: str) -> Any:
    """A label or a category as JSON that keeps its type."""
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, tuple):
        return {"type": "tuple", "value": [to_json(part, column) for part in value]}
    for tag, (kind, write_value, _) in TAGS.items():
        if isinstance(value, kind):
            return {"type": tag, "value": write_value(value)}
    kind_name = type(value).__name__
    raise UsageError(
        f"column {column!r} has values of type {kind_name}, which a model file cannot hold: turn them into text"
    )


def from_json(value: Any) -> Any:
    """The label or category that `to_json` wrote."""
    if not isinstance(value, dict):
        return value
    if value["type"] == "tuple":
        return tuple(from_json(part) for part in value["value"])
    return TAGS[value["type"]][2](value["value"])
