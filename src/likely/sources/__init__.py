"""Anything tabular as Arrow batches: files, frames, dicts, databases, folders of text.

Never: models.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any, Protocol

from likely.errors import DataError, UsageError, did_you_mean
from likely.sources._memory_limit import batch_bytes, check_limit, check_memory
from likely.sources._read_keywords import READ_KEYWORDS, ReadKeywords, RowKeywords
from likely.sources.batch import Batch, Coded, Frame, Matrix
from likely.sources.cell_values import EMPTY
from likely.sources.date_parts import DatePart, with_parts
from likely.sources.frames import InMemory, from_memory
from likely.sources.missing_tokens import LABELS, MISSING, MissingTokens
from likely.sources.number_formats import ORDERS, NumberFormat, are_times

__all__ = [
    "EMPTY",
    "LABELS",
    "MISSING",
    "READ_KEYWORDS",
    "Batch",
    "Coded",
    "Frame",
    "InMemory",
    "Matrix",
    "MissingTokens",
    "ReadKeywords",
    "ReadOptions",
    "RowKeywords",
    "Source",
    "as_tokens",
    "for_target",
    "from_memory",
    "is_postgres",
    "is_source",
    "missing_of",
    "open_source",
    "release",
    "released",
    "require_rows",
    "rows_in_metadata",
]

# Codecs of Python that turn text into something other than a file's bytes, or refuse all text.
NO_ENCODINGS = ("", "idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape")


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a source: missing-value tokens, number and date formats, and options of the file format.

    With `header=False` the first line of a text file or sheet is a row, and the columns are named c1, c2, …
    `table` names the table of a database or the member of a .zip file, `query` is a SELECT in its place, `sheet` the sheet
    of a workbook (or its number from 1), and `max_unpacked` is the maximum size in bytes of an unpacked file.
    `memory_limit` (in bytes) bounds the size of batches; if the process exceeds it nevertheless, a ResourceError is raised.
    """

    missing: tuple[str, ...] | None = None  # None: the default tokens of the source, see docs/data.md
    encoding: str | None = None
    on_bad_rows: str = "error"
    header: bool = True
    table: str | None = None
    query: str | None = None
    sheet: str | int | None = None
    max_unpacked: int | None = None
    memory_limit: int | None = None
    short_batches: bool = False  # whether rows are scored, which is as fast in short batches, and takes less memory
    carried: bool = False  # whether rows are written again, with every digit
    rejects: list[str] = field(default_factory=list, compare=False)
    missing_labels: tuple[str, ...] | None = None  # in the target; None: as in the other columns
    target: str | None = None
    decimal: str | None = None  # the decimal sign of numbers; None: inferred from the cells
    thousands: str | None = None
    dates: str | None = None  # the order of day, month and year
    formats: Mapping[str, NumberFormat] = field(default_factory=dict)  # formats of a model's numeric columns
    parts: Mapping[str, DatePart] = field(default_factory=dict)  # columns that a model derives from dates
    # Cells read as missing: counts of tokens by column and batch.
    taken: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict, compare=False)
    _known: set[tuple[str, int]] = field(default_factory=set, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.on_bad_rows not in ("error", "skip"):
            raise UsageError(f"on_bad_rows={self.on_bad_rows!r} is not known: choose 'error' or 'skip'")
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if self.memory_limit is not None:
            check_limit(self.memory_limit)
        for name, known in (("decimal", (".", ",")), ("thousands", (",", ".", " ", "'")), ("dates", ORDERS)):
            if getattr(self, name) not in (None, *known):
                raise UsageError(
                    f"{name}={getattr(self, name)!r} is not known: choose from {', '.join(map(repr, known))}"
                )
        if self.table is not None and self.query is not None:
            raise UsageError("table= (--table) and query= (--query) exclude each other: name the table in the query")
        if self.decimal is not None and self.decimal == self.thousands:
            raise UsageError(f"decimal={self.decimal!r} and thousands={self.thousands!r} are one sign: choose two")

    @staticmethod
    def of(
        missing: Sequence[str] | str | None, how: Mapping[str, Any], base: ReadOptions | None = None, *,
        beside: Sequence[str] = (),
    ) -> ReadOptions:  # fmt: skip
        """Options from keyword arguments, on top of `base` if given; an unknown keyword is a UsageError.

        `beside` are the other keywords of the function that was called, of which one may be meant.
        """
        unknown = next((name for name in how if name not in READ_KEYWORDS), None)
        if unknown is not None:
            known, meant = ", ".join(READ_KEYWORDS), [*READ_KEYWORDS, *(name for name in beside if name != unknown)]
            raise UsageError(
                f"the setting {unknown!r} is not known{did_you_mean(unknown, meant)}: a file is read by {known}"
            )
        given = dict(how)
        if missing is not None:
            given |= {"missing": as_tokens(missing), "missing_labels": None}
        made = replace(base or ReadOptions(), **given)
        numbers, times = made.decimal or made.thousands, made.dates
        if not (numbers or times):
            return made
        # Explicit settings override the formats of a model.
        formats = {n: f for n, f in made.formats.items() if not (times if are_times(f.code) else numbers)}
        return replace(made, formats=formats)

    def gaps(self, text: bool) -> MissingTokens:
        """Missing-value tokens of delimited text, or of a typed source."""
        tokens, labels = self.missing, self.missing_labels
        if tokens is None:
            tokens, labels = (MISSING, LABELS) if text else ((), None)
        return MissingTokens(tokens, labels, self.target, text, self.taken)

    def batch_bytes(self, columns: int = 0) -> int:
        """Maximum size of a batch with so many columns, in bytes of text or of Arrow arrays."""
        return batch_bytes(self.memory_limit, columns)

    def check_memory(self) -> None:
        """Raise ResourceError if the process uses more memory than `memory_limit`."""
        check_memory(self.memory_limit)

    def reject(self, label: str, line: int, fault: str) -> None:
        """Raise an error with the line of a bad row, or record it once, however often the file is read."""
        if self.on_bad_rows == "error":
            raise DataError(
                f"{label} line {line} {fault}", remedy="correct it, or pass on_bad_rows='skip' (--on-bad-rows skip)"
            )
        if (label, line) not in self._known:
            self._known.add((label, line))
            self.rejects.append(f"{label} line {line} {fault}")


def _check_encoding(name: str) -> None:
    import codecs

    try:
        found = codecs.lookup(name).name
        "a,b\n".encode(found)
    except (LookupError, ValueError):  # includes codecs from bytes to bytes, and invalid names
        found = ""
    if found.replace("-", "_") in NO_ENCODINGS:
        raise UsageError(
            f"encoding={name[:80]!r} is not known as an encoding of text files: try 'utf-8', 'latin-1', 'cp1252' or 'utf-16'"
        )


class Source(Protocol):
    """A table that can be read repeatedly, batch by batch."""

    @property
    def label(self) -> str:
        """Name in messages."""

    @property
    def partial(self) -> bool:
        """Whether rows may omit columns, as dicts may."""

    @property
    def missing(self) -> MissingTokens:
        """Its missing-value tokens."""

    def with_target(self, target: str) -> Source:
        """The same source with a target, which may have missing-value tokens of its own."""

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order; `kinds` maps the requested columns to the kinds they are read as."""


def open_source(data: Any, reading: ReadOptions | None = None) -> Source:
    """Open a path, a glob, a frame, a dict of columns, a list of dicts or an array; a source is returned unchanged."""
    reading = reading or ReadOptions()
    if is_source(data):
        opened: Source = data
        return opened
    if isinstance(data, (str, PathLike)):
        if is_postgres(data):
            from likely.sources._postgres import open_postgres

            return with_parts(open_postgres(fspath(data), reading), reading.parts)
        from likely.sources.files import open_files

        return with_parts(open_files(fspath(data), reading), reading.parts)
    if type(data).__name__ == "DuckDBPyRelation":
        from likely.sources._relations import open_relation

        return with_parts(open_relation(data, reading), reading.parts)
    return replace(from_memory(data, reading.gaps(False)), reading=reading)


def is_source(data: Any) -> bool:
    """Whether something is a source already."""
    return callable(getattr(type(data), "batches", None))


def is_postgres(data: Any) -> bool:
    """Whether a path is the URI of a PostgreSQL database."""
    return isinstance(data, str) and data.startswith(("postgresql://", "postgres://"))


def release(source: Any) -> None:
    """Let go of what a source holds between two passes: the snapshot and the locks of a PostgreSQL table."""
    for part in getattr(source, "parts", ()) if isinstance(getattr(source, "parts", None), tuple) else ():
        release(part)
    if (inner := getattr(source, "inner", None)) is not None:
        release(inner)
    elif callable(let_go := getattr(source, "release", None)):
        let_go()


@contextlib.contextmanager
def released(source: Source | None) -> Iterator[None]:
    """A context that ends with `release`."""
    try:
        yield
    finally:
        release(source)


def for_target(source: Source, target: str | None) -> Source:
    """The same source with a target, whose missing-value tokens may differ from those of the columns."""
    with_target = getattr(source, "with_target", None)
    return source if with_target is None or target is None else with_target(target)


def missing_of(source: Source) -> MissingTokens:
    """Missing-value tokens of a source."""
    return getattr(source, "missing", None) or MissingTokens()


def rows_in_metadata(source: Any) -> int | None:
    """Number of rows of a source, where its metadata have it; None elsewhere."""
    if isinstance(several := getattr(source, "parts", None), tuple):
        counts = [rows_in_metadata(part) for part in several]
        return None if None in counts else sum(count for count in counts if count is not None)
    inner = getattr(source, "inner", None)
    count: int | None = getattr(source, "row_count", None) if inner is None else rows_in_metadata(inner)
    return count


def require_rows(seen: int, label: str) -> None:
    """Raise DataError if the table has no rows."""
    if not seen:
        raise DataError(f"{label} has no rows: nothing can be learned from it")


def as_tokens(missing: Sequence[str] | str | None) -> tuple[str, ...] | None:
    """Missing-value tokens as a tuple; None means the defaults of the source."""
    if missing is None:
        return None
    given = [missing] if isinstance(missing, str) else missing
    return tuple(str(token).strip() for token in given)
