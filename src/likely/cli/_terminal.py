"""Terminal output: data on standard output, messages on standard error, colour and progress only on a terminal."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from likely.cli._progress_meter import ProgressBar, ProgressLines
from likely.kernels.progress import listening

PROGRESS_VARIABLE = "LIKELY_PROGRESS"
MOST_REJECTS_LISTED = 20
MOST_LINES = 100  # of a table in a report


COLOURS = ("green", "red", "blue", "magenta", "cyan", "yellow")


class Terminal:
    """Standard output and error of one command, with the notes and rejects printed so far."""

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        self.notes: list[str] = []
        self.rejects: list[str] = []
        self.given_names: dict[str, str] = {}  # temporary file: name given by the user
        self.report_on_stderr = False  # when standard output is used for a file

    def line(self, text: str = "") -> None:
        """Print a line of data."""
        click.echo(clean_lines(self.with_given_names(text)), err=self.report_on_stderr)

    def message(self, text: str) -> None:
        """Print a message to standard error."""
        click.echo(clean_lines(self.with_given_names(text)), err=True)

    def note(self, text: str) -> None:
        """Print a note to standard error, once."""
        text = clean_lines(self.with_given_names(text)).replace("\n", " ")
        if text not in self.notes:
            self.notes.append(text)
            click.echo(f"note: {text}", err=True)

    def highlighted(self, pieces: Sequence[tuple[str, Any]], classes: Sequence[Any]) -> bool:
        """Print a text with its words in the colour of the class they support, bold for large weights; only on a terminal."""
        from likely.model.ledger import word_weight

        if self.report_on_stderr or not is_terminal(sys.stdout):
            return False
        largest = max((word_weight(word)[1] for _, word in pieces if word), default=0.0)
        for piece, word in pieces:
            if word is None:
                click.echo(clean_lines(piece), nl=False)
                continue
            best, weight = word_weight(word)
            colour = COLOURS[best % len(COLOURS)] if weight > largest / 10 else None
            click.secho(clean_lines(piece), nl=False, fg=colour, bold=weight > largest / 3)
        legend = ", ".join(click.style(shown(c), fg=COLOURS[i % len(COLOURS)]) for i, c in enumerate(classes[:20]))
        click.echo(f"\n({legend})")
        return True

    def with_given_names(self, text: str) -> str:
        """The text with paths of temporary files replaced by the names given by the user."""
        for path, name in self.given_names.items():
            text = text.replace(repr(path), name).replace(path, name)
        return text

    def list_rejects(self, rejects: Sequence[str]) -> None:
        """Print the skipped rows: the first ones, and the number of others."""
        rejects = list(dict.fromkeys(rejects))  # a file may be read more than once
        if not rejects:
            return
        self.rejects += rejects
        self.message(f"{len(rejects):,} bad rows were skipped:")
        for reject in rejects[:MOST_REJECTS_LISTED]:
            self.message(f"  {reject}")
        if len(rejects) > MOST_REJECTS_LISTED:
            self.message(f"  and {len(rejects) - MOST_REJECTS_LISTED:,} more")

    def result(self, document: dict[str, Any], show: Callable[[], None]) -> None:
        """Print the result of a command, as JSON document or as text."""
        if not self.json:
            show()
            return
        extra: dict[str, Any] = {"rejects": self.rejects} if self.rejects else {}
        extra |= {"notes": self.notes} if self.notes else {}
        click.echo(to_json(document | extra, indent=2))

    def table(
        self,
        head: Sequence[str],
        rows: Sequence[Sequence[Any]],
        right: Sequence[int] | None = None,
        most: int | None = MOST_LINES,
    ) -> None:
        """Print a table: by rich on a terminal, as aligned text otherwise; numbers are right-aligned.

        Of more rows than `most`, the first are printed with the number of others.
        """
        more = 0 if most is None else max(0, len(rows) - most)
        rows = rows[:most] if more else rows
        stream = sys.stderr if self.report_on_stderr else sys.stdout
        cells = [[shown(cell) for cell in row] for row in rows]
        if right is None:
            right = [i for i in range(len(head)) if rows and all(_is_number(row[i]) for row in rows)]
        if is_terminal(stream):
            _rich_table(stream, [shown(name) for name in head], cells, right)
        else:
            from likely.plots.shown import ruled, text_lines

            left = set(range(len(head))).difference(right)
            for text in ruled(text_lines([[shown(name) for name in head], *cells], left)):
                self.line(text)
        if more:
            self.line(f"… and {more:,} more (--json has all)")

    @contextlib.contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Print Python warnings as notes of one line."""
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            for quiet in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
                warnings.simplefilter("ignore", quiet)
            warnings.showwarning = lambda message, *_, **__: self.note(str(message))
            yield

    @contextlib.contextmanager
    def progress(
        self, doing: str, unit: str = "rows", total: int | None = None
    ) -> Iterator[Callable[[int], None] | None]:
        """Progress in rows or other units, on standard error if that is a terminal, after a short delay.

        A program that runs a command sets LIKELY_PROGRESS=json, and gets lines of JSON there instead.
        """
        lines = os.environ.get(PROGRESS_VARIABLE) == "json"
        if not lines and not is_terminal(sys.stderr):
            yield None
            return
        meter = ProgressLines(doing, unit, total) if lines else ProgressBar(doing, unit, total)
        try:
            with listening(meter.step):
                yield meter.advance
        finally:
            meter.stop()


def standard_output() -> Any:
    """Standard output; OSError if it is closed."""
    if sys.stdout is None:
        raise OSError("standard output is closed")
    return sys.stdout


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal."""
    return bool(stream is not None and stream.isatty())


def _rich_table(stream: Any, head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    columns = zip(head, *rows, strict=True)
    words = [max((len(word) for cell in column for word in cell.split()), default=1) for column in columns]
    fits = sum(words) + 2 * len(words) <= console.width  # no word has to be broken
    for i, name in enumerate(head):
        width = words[i] if fits else None
        table.add_column(Text(name), justify="right" if i in right else "left", overflow="fold", min_width=width)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text, so that brackets are not markup
    console.print(table)


def shown(value: Any) -> str:
    """A value as printed: short numbers, no control characters."""
    from likely.model.ledger import clean

    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e15:
            return f"{value:,.0f}"
        if abs(value) < 1:
            return f"{value:.4f}" if abs(value) >= 1e-3 else f"{value:.4g}"
        return f"{value:.6g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(part) for part in value)
    return clean(str(value))


def clean_lines(text: str) -> str:
    """Text without control characters except line breaks."""
    from likely.model.ledger import clean

    return "\n".join(clean(line) for line in text.split("\n"))


def to_json(document: Any, indent: int | None = None) -> str:
    """Strict JSON in ASCII: no NaN, no control sequences."""
    return json.dumps(plain(document), allow_nan=False, indent=indent)


def plain(value: Any) -> Any:
    """Any value as JSON types; numbers that are not finite are null."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
