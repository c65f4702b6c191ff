"""Checks of output paths, before any work is done."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from likely.cli._terminal import Terminal
from likely.errors import UsageError

Inode = tuple[int, int]
OTHERS = {
    ".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".arrow", ".feather", ".ipc", ".xlsx", ".ods",
    ".db", ".sqlite", ".duckdb", ".gz", ".bz2", ".xz", ".zst", ".zip", ".svg", ".png", ".html", ".htm", ".pdf", ".eml", ".mbox",
}  # fmt: skip


def check(
    outputs: Mapping[str, str | None], inputs: Sequence[str | None] = (), *, replaceable: Sequence[str] = ()
) -> None:
    """Refuse an output that cannot be a file, is an input, or is another output; errors name the option.

    `replaceable` are inputs that a command may replace in place: under their own name or through a symbolic link, but
    not under a second name (a hard link), after which the two names would be different models.
    """
    wanted = {option: path for option, path in outputs.items() if path is not None}
    for option, path in wanted.items():
        if path != "-":
            _check_file(option, path)
    _check_apart(wanted)
    for option, path in wanted.items():
        own = {name for name in replaceable if same_place(path, name)}
        _check_no_input(option, path, [name for name in inputs if name is not None and name not in own])


def check_table(output: str, table: str | None, inputs: Sequence[str | None]) -> None:
    """Check an output that may be a database, which may also be read: a new table takes nothing from the others."""
    from likely.sources.table_writing import is_database

    if table is None and is_database(output):
        raise UsageError(f"-o {output!r} is a database: name the table to make with --output-table")
    if table is not None and not is_database(output):
        raise UsageError(f"--output-table names a table of a database: -o {output!r} is none")
    if table is None:
        check({"-o": output}, inputs)
    elif "://" not in output:
        _check_file("-o", output)


def check_model(option: str, path: str) -> None:
    """Refuse a path for a model that is another kind of file, or has the extension of one."""
    if path != "-" and os.path.isfile(path) and os.path.getsize(path) and not _is_model(path):
        raise UsageError(
            f"{option} {path!r} is a file other than a Likely model, and is not replaced",
            remedy="choose another name, or remove the file first",
        )
    ending = Path(path).suffix.lower()
    if ending in OTHERS:
        message = f"{option} {path!r} has the extension {ending}, which is not that of a model"
        raise UsageError(message, remedy="use the extension .likely")


def _is_model(path: str) -> bool:
    from likely.model.model_file import MAGIC

    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def same_place(path: str, other: str) -> bool:
    """Whether both paths are the same name in the same folder, even if another process replaces the file."""
    from likely.sources.atomic_write import place

    if "-" in (path, other):
        return False
    try:
        return place(path) == place(other)
    except OSError:  # a folder that does not exist
        return False


def _check_file(option: str, path: str) -> None:
    if Path(path).is_dir():
        raise UsageError(f"{option} {path!r} is a folder: name a file in it")
    if not Path(path).parent.is_dir():
        raise UsageError(f"{option} {path!r}: there is no folder {str(Path(path).parent)!r}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise UsageError(f"{option} {path!r} is not a regular file: name one, or - for standard output where that is allowed")


def _check_apart(outputs: Mapping[str, str]) -> None:
    options = list(outputs)
    for i, option in enumerate(options):
        for other in options[:i]:
            if same_place(outputs[option], outputs[other]) or _inode(outputs[option]) in {*_inodes(outputs[other])}:
                raise UsageError(f"{other} and {option} name the same file: {outputs[option]!r}")


def _check_no_input(option: str, path: str, inputs: Sequence[str]) -> None:
    written = _inode(path)
    if written is None:
        return
    for given in inputs:
        if written in _inodes(given):
            called = "standard input" if given == "-" else repr(given)
            written_to = f"{option} {path!r}" if path != "-" else "standard output"
            raise UsageError(
                f"{written_to} is a file that is read ({called}): it would be overwritten",
                remedy="name another file for the output",
            )


def _inode(path: str) -> Inode | None:
    """Inode of an existing output file."""
    return _of_stream(sys.stdout) if path == "-" else _identity(lambda: os.stat(path))


def _inodes(path: str) -> Iterator[Inode]:
    """Inodes of the input files: one file, the matches of a pattern, or all files of a folder except models."""
    paths = [path] if os.path.exists(path) or path == "-" else glob.glob(path, recursive=True)
    for one in paths:
        if one == "-":
            found = [_of_stream(sys.stdin)]
        elif os.path.isdir(one):
            within = (Path(folder, name) for folder, _, names in os.walk(one) for name in names)
            found = [_identity(file.stat) for file in within if file.suffix != ".likely"]
        else:
            found = [_identity(Path(one).stat)]
        yield from filter(None, found)


def _of_stream(stream: Any) -> Inode | None:
    return _identity(lambda: os.fstat(stream.fileno()))


def _identity(status: Callable[[], os.stat_result]) -> Inode | None:
    """Device and inode of a regular file; None otherwise."""
    try:
        found = status()
    except (OSError, ValueError, AttributeError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def stdout_is_taken(output: str, terminal: Terminal, what: str) -> bool:
    """Whether the output is written to standard output; the report then goes to standard error."""
    if output != "-":
        return False
    if terminal.json:
        raise UsageError(f"-o - and --json both use standard output: name a file for the {what}")
    terminal.report_on_stderr = True
    return True


def check_picture(output: str | None, data: str, terminal: Terminal, check_ending: Callable[[str], None]) -> None:
    """Check the path and the format of a picture before the work starts."""
    if output is None:
        return
    if output != "-":
        check_ending(Path(output).suffix.lower())
    check({"-o": output}, [data])
    stdout_is_taken(output, terminal, "picture")


def check_page(path: str, option: str, remedy: str = "it is an HTML page: use the extension .html") -> None:
    """Refuse a path for an HTML page with another extension."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{option} {path!r} cannot be written: {remedy}")
