"""Compressed files, unpacked block by block into a temporary file up to a size limit."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from likely.errors import DataError, did_you_mean

if TYPE_CHECKING:
    from likely.sources import ReadOptions

PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
BLOCK = 1 << 20
# Tables compress 5 to 20 times, gzip at most 1000 times: a higher ratio than this is refused unless max_unpacked allows it.
LARGEST_RATIO = 100
ALWAYS_ALLOWED = 64 * 10**6
LZMA_MEMORY = 1 << 28  # `xz -9` needs a quarter of this; a header may demand 4 GB


def most_unpacked(path: str, reading: ReadOptions) -> int:
    """Maximum unpacked size of a compressed file, in bytes."""
    return reading.max_unpacked or max(ALWAYS_ALLOWED, LARGEST_RATIO * os.path.getsize(path))


def too_large(label: str, most: int) -> DataError:
    """Error for a file that exceeds the maximum unpacked size."""
    remedy = "if that is right, allow more with max_unpacked= (--max-unpacked 20GB)"
    return DataError(f"{label} unpacks to more than {most:,} bytes", remedy=remedy)


def unpack(path: str, label: str, reading: ReadOptions) -> tuple[Any, str]:
    """The content as a temporary file, deleted with its last reference, and the inner name."""
    import lzma
    import zipfile

    most = most_unpacked(path, reading)
    try:
        name, blocks = _zipped(path, label, reading) if path.lower().endswith(".zip") else _opened(path)
        copy = tempfile.NamedTemporaryFile("wb", prefix="likely-", suffix=_ending(name))  # noqa: SIM115 - kept open
        size = 0
        for block in blocks:
            size += len(block)
            if size > most:
                raise too_large(label, most)
            _write(copy, block, label)
        _write(copy, b"", label)
    except DataError:
        raise
    except (EOFError, OSError, RuntimeError, ValueError, zipfile.BadZipFile, lzma.LZMAError, zlib.error) as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise DataError(f"{label} cannot be unpacked ({reason})", remedy="it is damaged or truncated: copy it again") from None
    return copy, name


def _ending(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _write(copy: Any, block: bytes, label: str) -> None:
    """Write a block to the temporary file; an error is one of the disk, not of the compressed file."""
    try:
        copy.write(block)
        if not block:
            copy.flush()
    except OSError as error:
        folder = os.path.dirname(copy.name)
        raise DataError(
            f"{label} cannot be unpacked into {folder!r} ({error.strerror})", remedy="set TMPDIR to a larger folder"
        ) from None


def _opened(path: str) -> tuple[str, Iterator[bytes]]:
    """The name without the extension of the compression, and the content in blocks."""
    stem, ending = os.path.splitext(path)
    if ending.lower() == ".gz":
        import gzip

        return stem, _read(lambda: gzip.open(path, "rb"))
    if ending.lower() == ".zst":
        import pyarrow as pa

        return stem, _read(lambda: pa.input_stream(path, compression="zstd"))
    return stem, _streams(path, ending.lower())


def _read(opened: Callable[[], Any]) -> Iterator[bytes]:
    with opened() as stream:
        while block := stream.read(BLOCK):
            yield block


def _streams(path: str, ending: str) -> Iterator[bytes]:
    """One or more bzip2 or xz streams; Python's file objects ignore damaged streams after the first."""
    import bz2
    import lzma

    def new() -> Any:
        return bz2.BZ2Decompressor() if ending == ".bz2" else lzma.LZMADecompressor(memlimit=LZMA_MEMORY)

    decoder = new()
    with open(path, "rb") as file:
        data = file.read(BLOCK)
        while data or not decoder.needs_input:
            yield decoder.decompress(data, BLOCK)
            if decoder.eof:
                data = (decoder.unused_data or file.read(BLOCK)).lstrip(b"\0")  # xz may pad with zeros
                if not data:
                    return
                decoder = new()
            else:
                data = file.read(BLOCK) if decoder.needs_input else b""
    raise EOFError("it ends in the middle of a stream")


def _zipped(path: str, label: str, reading: ReadOptions) -> tuple[str, Iterator[bytes]]:
    """The only member of a .zip file, or the requested one; it is never extracted under its own name."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        members = [m for m in archive.infolist() if not m.is_dir() and not _is_aside(m.filename)]
    names = [member.filename for member in members]
    if reading.table is not None:
        members = [member for member in members if member.filename == reading.table]
        if not members:
            meant = did_you_mean(reading.table, names)
            raise DataError(f"{label} has no member {reading.table!r}{meant}: it has {_listed(names)}")
    if len(members) != 1:
        what = f"contains {len(names)} files, {_listed(names)}" if names else "contains no file"
        raise DataError(f"{label} {what}", remedy="name one with table= (--table)" if names else None)
    if members[0].flag_bits & 1:
        raise DataError(f"{label} is encrypted", remedy="unpack it first")
    return members[0].filename, _member(path, members[0])


def _member(path: str, member: Any) -> Iterator[bytes]:
    import zipfile

    with zipfile.ZipFile(path) as archive:
        yield from _read(lambda: archive.open(member))


def _is_aside(name: str) -> bool:
    """Whether a member is a resource fork or a hidden file."""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith(".")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
    return ", ".join(map(repr, names[:20])) + more
