"""Anything tabular as a stream of batches: files, globs, frames, dicts, lists of dicts and arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from likely.errors import DataError, UsageError
from likely.sources.batch import EMPTY, MISSING, Batch, Coded, Frame, Matrix
from likely.sources.memory import InMemory, from_memory

__all__ = ["EMPTY", "MISSING", "Batch", "Coded", "Frame", "InMemory", "Matrix", "Reading", "Source", "open_source"]


@dataclass(frozen=True)
class Reading:
    """How sources are read: what stands for missing, the encoding of text files, what happens to bad rows."""

    missing: tuple[str, ...] = MISSING
    encoding: str | None = None
    on_bad_rows: str = "error"
    rejects: list[str] = field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        if self.on_bad_rows not in ("error", "skip"):
            raise UsageError(f"on_bad_rows={self.on_bad_rows!r} is not known: choose 'error' or 'skip'")


class Source(Protocol):
    """Rows that can be read again and again, batch by batch."""

    label: str  # what to call it in messages
    partial: bool  # whether a row may leave out columns, as a dict may

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order; `kinds` names the columns that are wanted and what they are wanted as."""


def open_source(data: Any, reading: Reading | None = None) -> Source:
    """The source behind a path, a glob, a frame, a dict of columns, a list of dicts or an array; a source is itself."""
    reading = reading or Reading()
    if callable(getattr(type(data), "batches", None)):
        opened: Source = data
        return opened
    if isinstance(data, (str, Path)):
        from likely.sources.files import open_files

        return open_files(str(data), reading)
    return from_memory(data, reading.missing)


def require_rows(seen: int, label: str) -> None:
    """An empty table teaches nothing."""
    if not seen:
        raise DataError(f"{label} has no rows: nothing can be learned from it")


def as_tokens(missing: Sequence[str] | str | None) -> tuple[str, ...]:
    """The texts that stand for missing: the given ones, or the usual ones."""
    if missing is None:
        return MISSING
    return (missing,) if isinstance(missing, str) else tuple(str(token).strip() for token in missing)
