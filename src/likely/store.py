"""The model file: data only, checked by SHA-256, versioned, written whole or not at all.

Layout: magic (8 bytes), version (u32), header length (u64), SHA-256 of everything else (32 bytes), header (JSON), arrays.
All numbers are little-endian; arrays are in C order, one after the other as the header lists them with type and shape.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import LikelyError, ModelFileError, UsageError

MAGIC = b"LIKELY\r\n"
VERSION = 1
TYPES = ("<f8", "<i8", "<i4", "|u1")
_FIXED = struct.Struct("<8sIQ32s")

Array = NDArray[np.float64]


def write(
    path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, Array], replacing: str | None = None
) -> str:
    """Write a model file atomically and return its digest; `replacing` is the digest the old file must still have."""
    arrays = {name: np.ascontiguousarray(array, dtype=_type(array)) for name, array in arrays.items()}
    listed = {name: [_type(array), *array.shape] for name, array in arrays.items()}
    try:
        text = json.dumps(
            {"arrays": listed, **header}, ensure_ascii=True, allow_nan=False, separators=(",", ":")
        ).encode()
    except ValueError as error:
        raise UsageError(f"the model cannot be written: {error}") from None
    blobs = [array.tobytes() for array in arrays.values()]
    digest = _digest(VERSION, text, blobs)
    target = Path(os.path.realpath(path))
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name[:64]}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_FIXED.pack(MAGIC, VERSION, len(text), digest))
            for part in (text, *blobs):
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(target))
        with _only_writer(target.parent):
            if replacing is not None and _stored_digest(target) != replacing:
                raise LikelyError(
                    f"{str(path)!r} was changed by another process meanwhile: nothing was written; run again"
                )
            os.replace(temporary, target)
    except BaseException:  # Ctrl-C too: the old file stays, the new one leaves no trace
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return digest.hex()


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, Array], str]:
    """Header, arrays and digest of a model file; anything but a whole, untouched file is refused."""
    try:
        size = os.stat(path).st_size
        with open(path, "rb") as file:
            start = file.read(_FIXED.size)
            length = _header_length(start, size, path)
            text = file.read(length)
            body = file.read(size - _FIXED.size - length)
    except OSError as error:
        raise ModelFileError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    _, version, _, digest = _FIXED.unpack(start)
    if _digest(version, text, [body]) != digest:
        raise ModelFileError(f"{str(path)!r} is damaged: its checksum does not fit its content")
    try:
        header = json.loads(text)
        arrays = _arrays(header["arrays"], body)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{str(path)!r} is no model: {error}") from None
    return header, arrays, digest.hex()


def _header_length(start: bytes, size: int, path: str | Path) -> int:
    if len(start) < _FIXED.size or not start.startswith(MAGIC):
        raise ModelFileError(f"{str(path)!r} is not a Likely model file")
    _, version, length, _ = _FIXED.unpack(start)
    if version > VERSION:
        raise ModelFileError(
            f"{str(path)!r} is of version {version}, this library reads up to {VERSION}: install a newer Likely"
        )
    if length > size - _FIXED.size:
        raise ModelFileError(f"{str(path)!r} is cut off or damaged: its header is longer than the file")
    return int(length)


def _arrays(listed: Mapping[str, Any], body: bytes) -> dict[str, Array]:
    arrays, at = {}, 0
    for name, (kind, *shape) in listed.items():
        if kind not in TYPES or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise ValueError(f"array {name!r} has the type {kind} and the shape {shape}")
        cells = 1
        for n in shape:
            cells *= n
        size = np.dtype(kind).itemsize * cells
        if at + size > len(body):
            raise ValueError(f"array {name!r} is longer than the file")
        array = np.frombuffer(body, kind, cells, at).reshape(shape).astype(np.dtype(kind).newbyteorder("="))
        if not np.isfinite(array).all():
            raise ValueError(f"array {name!r} holds numbers that are not finite")
        arrays[name] = array
        at += size
    if at != len(body):
        raise ValueError("there is more in the file than its header lists")
    return arrays


def _type(array: NDArray[Any]) -> str:
    """How an array is written: numbers of eight bytes, or of the one or four bytes that they already have."""
    return {"u1": "|u1", "i4": "<i4", "i8": "<i8"}.get(array.dtype.str[1:], "<f8")


def _digest(version: int, text: bytes, blobs: list[bytes]) -> bytes:
    hasher = hashlib.sha256(MAGIC + struct.pack("<IQ", version, len(text)) + text)
    for blob in blobs:
        hasher.update(blob)
    return hasher.digest()


def _stored_digest(path: Path) -> str:
    with open(path, "rb") as file:
        start = file.read(_FIXED.size)
    return _FIXED.unpack(start)[3].hex() if len(start) == _FIXED.size else ""


def _mode(target: Path) -> int:
    """The rights of the file that is replaced, or those of any new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextlib.contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """One writer at a time in a folder, where the system can tell; the last complete writer wins elsewhere."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Values that JSON has no word for are written as {"type": ..., "value": ...}.
_TAGS: dict[str, tuple[type, Any, Any]] = {
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "timedelta": (timedelta, lambda v: v.total_seconds(), lambda s: timedelta(seconds=s)),
    "decimal": (Decimal, str, Decimal),
    "fraction": (Fraction, str, Fraction),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
}


def to_json(value: Any, column: str) -> Any:
    """A label or a category as JSON that keeps its type."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, tuple):
        return {"type": "tuple", "value": [to_json(part, column) for part in value]}
    for tag, (kind, write_value, _) in _TAGS.items():
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
    return _TAGS[value["type"]][2](value["value"])
