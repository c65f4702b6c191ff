"""Data files of a command: standard input as a file, and sources opened with the reading options."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likely.cli._options import how_read
from likely.cli._terminal import Terminal
from likely.errors import UsageError

if TYPE_CHECKING:
    from likely.sources import ReadOptions, Source


@contextmanager
def as_file(path: str, terminal: Terminal) -> Iterator[str]:
    """The path itself; for `-`, a temporary file with the content of standard input."""
    if path != "-":
        yield path
        return
    if terminal.given_names:
        raise UsageError("standard input (-) can be read only once: name a file for the other")
    from likely.sources.file_type import ending_of

    with tempfile.TemporaryDirectory(prefix="likely-") as folder:
        copy = Path(folder, "stdin")
        with copy.open("wb") as file:
            if sys.stdin is not None:
                shutil.copyfileobj(sys.stdin.buffer, file)
        copy = copy.rename(copy.with_suffix(ending_of(str(copy))))
        terminal.given_names[str(copy)] = "standard input"
        yield str(copy)


def opened_with(path: str, given: dict[str, Any]) -> tuple[Source, ReadOptions]:
    """Open a path with the reading options, which are removed from the given options."""
    return opened(path, None, how_read(given))


def opened(path: str, base: ReadOptions | None, how: dict[str, Any]) -> tuple[Source, ReadOptions]:
    """Open a path; returns the source and its options, which collect rejects. `base` are the options of a model."""
    from likely.sources import open_source

    reading = reading_of(base, how)
    return open_source(path, reading), reading


def reading_of(base: ReadOptions | None, how: dict[str, Any]) -> ReadOptions:
    """The reading options of a command, on top of those of a model."""
    from likely.sources import ReadOptions

    if how["encoding"] is not None:
        _check_encoding(how["encoding"])
    return ReadOptions.of(how.pop("missing", ()) or None, how, base)


def _check_encoding(name: str) -> None:
    import codecs

    try:
        codecs.lookup(name)
    except LookupError:
        raise UsageError(f"--encoding {name!r} is not known: try utf-8, latin-1, cp1252 or utf-16") from None
