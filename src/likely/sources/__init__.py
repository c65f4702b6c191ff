"""Anything tabular as a stream of batches: files, globs, frames, dicts, lists of dicts and arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any, Protocol

from likely.errors import DataError, UsageError, did_you_mean
from likely.sources.batch import Batch, Coded, Frame, Matrix
from likely.sources.cells import EMPTY
from likely.sources.dateparts import Part, with_parts
from likely.sources.forms import ORDERS, Form, are_times
from likely.sources.gaps import LABELS, MISSING, Gaps
from likely.sources.limits import batch_bytes, check_limit, check_memory
from likely.sources.memory import InMemory, from_memory

__all__ = [
    "EMPTY",
    "HOW",
    "LABELS",
    "MISSING",
    "Batch",
    "Coded",
    "Frame",
    "Gaps",
    "InMemory",
    "Matrix",
    "Reading",
    "Source",
    "as_tokens",
    "for_target",
    "from_memory",
    "missing_of",
    "open_source",
    "require_rows",
]

# Codecs of Python that turn text into something other than a file's bytes, or refuse all text.
NO_ENCODINGS = ("", "idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape")


@dataclass(frozen=True)
class Reading:
    """How sources are read: what stands for missing, and the options that depend on the format of a file.

    `header=False` says that the first line of a text file or sheet is a row; its columns are then called c1, c2, …
    `table` names the table of a database or the member of a .zip file, `sheet` the sheet of a workbook (or its number
    from 1), and `max_unpacked` is the largest number of bytes that a compressed file may unpack to. `memory_limit` (in
    bytes) bounds the batches that are read; a process that takes more all the same ends in a ResourceError.
    """

    missing: tuple[str, ...] | None = None  # None: what is usual for the source, see docs/data.md
    encoding: str | None = None
    on_bad_rows: str = "error"
    header: bool = True
    table: str | None = None
    sheet: str | int | None = None
    max_unpacked: int | None = None
    memory_limit: int | None = None
    rejects: list[str] = field(default_factory=list, compare=False)
    missing_labels: tuple[str, ...] | None = None  # in the target; None: as in the other columns
    target: str | None = None
    decimal: str | None = None  # the decimal sign of numbers; None: as the cells say
    thousands: str | None = None
    dates: str | None = None  # the order of day, month and year
    forms: Mapping[str, Form] = field(default_factory=dict)  # how a model reads its columns of numbers
    parts: Mapping[str, Part] = field(default_factory=dict)  # columns that a model derives from dates
    taken: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict, compare=False)  # for missing, by batch
    _known: set[tuple[str, int]] = field(default_factory=set, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.on_bad_rows not in ("error", "skip"):
            raise UsageError(f"on_bad_rows={self.on_bad_rows!r} is not known: choose 'error' or 'skip'")
        if self.encoding is not None:
            _check_encoding(self.encoding)
        check_limit(self.memory_limit)
        for name, known in (("decimal", (".", ",")), ("thousands", (",", ".", " ", "'")), ("dates", ORDERS)):
            if getattr(self, name) not in (None, *known):
                raise UsageError(
                    f"{name}={getattr(self, name)!r} is not known: choose from {', '.join(map(repr, known))}"
                )
        if self.decimal is not None and self.decimal == self.thousands:
            raise UsageError(f"decimal={self.decimal!r} and thousands={self.thousands!r} are one sign: choose two")

    @staticmethod
    def of(missing: Sequence[str] | str | None, how: Mapping[str, Any], base: Reading | None = None) -> Reading:
        """The reading that keywords ask for, or another one changed by them; a keyword that is not known is refused."""
        unknown = next((name for name in how if name not in HOW), None)
        if unknown is not None:
            known = ", ".join(HOW)
            raise UsageError(
                f"the setting {unknown!r} is not known{did_you_mean(unknown, HOW)}: a file is read by {known}"
            )
        given = dict(how)
        if missing is not None:
            given |= {"missing": as_tokens(missing), "missing_labels": None}
        made = replace(base or Reading(), **given)
        numbers, times = made.decimal or made.thousands, made.dates
        forms = {n: f for n, f in made.forms.items() if not (times if are_times(f.form) else numbers)}
        return made if len(forms) == len(made.forms) else replace(made, forms=forms)  # what is said now holds

    def gaps(self, text: bool) -> Gaps:
        """What stands for missing in delimited text, or in a source whose cells have types."""
        tokens, labels = self.missing, self.missing_labels
        if tokens is None:
            tokens, labels = (MISSING, LABELS) if text else ((), None)
        return Gaps(tokens, labels, self.target, text, self.taken)

    def batch_bytes(self, columns: int = 0) -> int:
        """How large a batch of so many columns may be: of the text it is read from, or of its arrays."""
        return batch_bytes(self.memory_limit, columns)

    def check_memory(self) -> None:
        """Refuse to go on where the process takes more memory than `memory_limit` allows."""
        check_memory(self.memory_limit)

    def reject(self, label: str, line: int, fault: str) -> None:
        """A bad row is an error with its line; or it is skipped and listed, once however often the file is read."""
        if self.on_bad_rows == "error":
            raise DataError(
                f"{label} line {line} {fault}", remedy="mend it, or pass on_bad_rows='skip' (--on-bad-rows skip)"
            )
        if (label, line) not in self._known:
            self._known.add((label, line))
            self.rejects.append(f"{label} line {line} {fault}")


# What keywords may say.
HOW = ("encoding", "on_bad_rows", "header", "table", "sheet", "max_unpacked", "memory_limit", "decimal", "thousands", "dates")


def _check_encoding(name: str) -> None:
    import codecs

    try:
        found = codecs.lookup(name).name
        "a,b\n".encode(found)
    except (LookupError, ValueError):  # also of those that turn bytes into bytes, and of names that are none
        found = ""
    if found.replace("-", "_") in NO_ENCODINGS:
        raise UsageError(
            f"encoding={name[:80]!r} is not known as an encoding of text files: try 'utf-8', 'latin-1', 'cp1252' or 'utf-16'"
        )


class Source(Protocol):
    """Rows that can be read again and again, batch by batch."""

    @property
    def label(self) -> str:
        """What to call it in messages."""

    @property
    def partial(self) -> bool:
        """Whether a row may leave out columns, as a dict may."""

    @property
    def missing(self) -> Gaps:
        """What stands for missing in it."""

    def aimed(self, target: str) -> Source:
        """The same source with a target, which may have a list of its own of what stands for missing."""

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order; `kinds` names the columns that are wanted and what they are wanted as."""


def open_source(data: Any, reading: Reading | None = None) -> Source:
    """The source behind a path, a glob, a frame, a dict of columns, a list of dicts or an array; a source is itself."""
    reading = reading or Reading()
    if callable(getattr(type(data), "batches", None)):
        opened: Source = data
        return opened
    if isinstance(data, (str, PathLike)):
        from likely.sources.files import open_files

        return with_parts(open_files(fspath(data), reading), reading.parts)
    return replace(from_memory(data, reading.gaps(False)), reading=reading)


def for_target(source: Source, target: str | None) -> Source:
    """The same source, read with a target; labels may be missing by a list of their own."""
    aimed = getattr(source, "aimed", None)
    return source if aimed is None or target is None else aimed(target)


def missing_of(source: Source) -> Gaps:
    """What stands for missing in a source."""
    return getattr(source, "missing", None) or Gaps()


def require_rows(seen: int, label: str) -> None:
    """An empty table teaches nothing."""
    if not seen:
        raise DataError(f"{label} has no rows: nothing can be learned from it")


def as_tokens(missing: Sequence[str] | str | None) -> tuple[str, ...] | None:
    """The texts that stand for missing, as they were given; None leaves it to the source."""
    if missing is None:
        return None
    given = [missing] if isinstance(missing, str) else missing
    return tuple(str(token).strip() for token in given)
