"""Options of reading as keyword arguments, so that a type checker knows them behind `**how`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class ReadKeywords(TypedDict, total=False):
    """How a file is read: the fields of `ReadOptions` that users give by name."""

    encoding: str | None
    on_bad_rows: str
    header: bool
    table: str | None
    query: str | None
    sheet: str | int | None
    max_unpacked: int | None
    memory_limit: int | None
    decimal: str | None
    thousands: str | None
    dates: str | None


class RowKeywords(ReadKeywords, total=False):
    """The same, with the texts that stand for a missing cell."""

    missing: Sequence[str] | str | None


# Options that may be given as keyword arguments.
READ_KEYWORDS = tuple(ReadKeywords.__annotations__)
