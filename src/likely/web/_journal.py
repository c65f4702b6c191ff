"""Journal of accepted updates: each is on disk before it is acknowledged, and is applied once.

A journal is a file beside the model file. Its first line names the digest of the model file that the others build on; every
other line is one update, with a checksum in front. After a crash the journal is applied to the model file again. A last line
that is not complete was never acknowledged, and is removed. To fold the journal into the model file, the digest of the new
file is first written to the journal, then the model file is replaced, then the journal: whatever happens in between, each
line is either in the model file or applied to it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from likely.errors import ConflictError, DataError

KEPT_IDS = 100_000  # identifiers of updates that are remembered, so that none is applied twice


@dataclass(frozen=True)
class JournalEntry:
    """One accepted update."""

    identifier: str
    verb: str  # "update" or "forget"
    rows: list[dict[str, Any]]


def journal_path(model: Path) -> Path:
    """The journal of a model file."""
    return model.with_name(model.name + ".journal")


class Journal:
    """The open journal of a model file, locked against other processes.

    Parameters
    ----------
    model : Path
        The model file.
    digest : str
        Digest of the model file as it was loaded.
    """

    def __init__(self, model: Path, digest: str) -> None:
        self.path = journal_path(model)
        self.entries: list[JournalEntry] = []
        self.identifiers: dict[str, None] = {}
        self._lock = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise ConflictError(f"{str(model)!r} is served with --writable by another process: stop that one") from None
        try:
            self._open(digest)
        except BaseException:
            os.close(self._lock)
            raise

    def _open(self, digest: str) -> None:
        lines, whole = self._read()
        if not lines:
            self._start(digest)
            return
        base, first = lines[0].get("base"), 0
        if base != digest:
            folded = [i for i, line in enumerate(lines) if line.get("folded") == digest]
            if not folded:
                raise DataError(
                    f"{str(self.path)!r} has updates of another version of the model file",
                    remedy="put that file back, or remove the journal if its rows are not wanted",
                )
            first = folded[-1]
        for line in lines:
            self._remember(line.get("ids", []))
            if "id" in line:
                self._remember([line["id"]])
        self.entries = [JournalEntry(e["id"], e["verb"], e["rows"]) for e in lines[first:] if "id" in e]
        if base != digest:  # stopped between the two replacements: what was folded is not applied again
            self._start(digest)
            return
        os.truncate(self.path, whole)
        self._file = open(self.path, "ab")  # noqa: SIM115 - it stays open as long as the server runs

    def _read(self) -> tuple[list[dict[str, Any]], int]:
        """The complete lines, and how many bytes they have; only the last line may be incomplete."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return [], 0
        found: list[dict[str, Any]] = []
        whole = 0
        for line in data.splitlines(keepends=True):
            text = line[9:-1]
            sound = line.endswith(b"\n") and line[8:9] == b" " and f"{zlib.crc32(text):08x}".encode() == line[:8]
            if not sound:
                if whole + len(line) < len(data):
                    raise DataError(f"{str(self.path)!r} is damaged in line {len(found) + 1}", remedy="restore it")
                break
            found.append(msgspec.json.decode(text))
            whole += len(line)
        return found, whole

    def _remember(self, identifiers: list[str]) -> None:
        self.identifiers.update(dict.fromkeys(identifiers))
        for old in list(self.identifiers)[: max(0, len(self.identifiers) - KEPT_IDS)]:
            del self.identifiers[old]

    def _start(self, digest: str) -> None:
        """Replace the journal by an empty one that builds on another model file."""
        new = self.path.with_name(self.path.name + ".new")
        with open(new, "wb") as file:
            file.write(_line({"base": digest, "ids": list(self.identifiers)}))
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.path)
        _sync_folder(self.path)
        self.entries = []
        self._file = open(self.path, "ab")  # noqa: SIM115 - as above

    def append(self, entries: list[JournalEntry]) -> None:
        """Write updates and wait until the disk has them."""
        self._write([{"id": e.identifier, "verb": e.verb, "rows": e.rows} for e in entries])
        self.entries += entries
        self._remember([e.identifier for e in entries])

    def _write(self, documents: list[dict[str, Any]]) -> None:
        end = os.fstat(self._file.fileno()).st_size
        try:
            self._file.write(b"".join(map(_line, documents)))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError:
            with contextlib.suppress(OSError):  # a full disk: half a line must not stand before the next one
                os.ftruncate(self._file.fileno(), end)
            raise

    def fold(self, model: Any, target: Path) -> str:
        """Save the model of all entries in place of the model file, and start an empty journal; returns the new digest."""
        new = target.with_name(f".{target.name}.folding")
        digest: str = model.save(new)
        self._write([{"folded": digest}])
        os.replace(new, target)
        _sync_folder(target)
        self._file.close()
        self._start(digest)
        return digest

    def close(self) -> None:
        """Close the file and release the lock."""
        self._file.close()
        os.close(self._lock)


def _line(document: dict[str, Any]) -> bytes:
    text = msgspec.json.encode(document)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _sync_folder(path: Path) -> None:
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
