"""Options as people type them, turned into the library's own words."""

from __future__ import annotations

import csv
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from likely.cli.completing import complete_column
from likely.cli.terminal import Terminal
from likely.errors import ConvergenceWarning, UsageError, did_you_mean

if TYPE_CHECKING:
    from likely.model import Model
    from likely.sources import Reading, Source

Command = TypeVar("Command", bound=Callable[..., Any])


def _ask_for_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Terminal).json = True


json_option = click.option(
    "--json", is_flag=True, expose_value=False, callback=_ask_for_json, help="Print the result as one JSON document."
)
excel_option = click.option(
    "--excel-safe",
    is_flag=True,
    help="In CSV and TSV, put an apostrophe before text that a spreadsheet would run as a formula: it starts with "
    "= + - @, tab or carriage return and is no number. Without it every value is written unchanged.",
)


def _gate(_: click.Context, __: click.Parameter, value: bool) -> None:
    """From here on the library's warning is an error; the command runs with filters of its own."""
    if value:
        warnings.simplefilter("error", ConvergenceWarning)


convergence_option = click.option(
    "--require-convergence",
    is_flag=True,
    expose_value=False,
    callback=_gate,
    help="Exit with code 5 and write nothing if EM has not converged; without it that is a note.",
)


def rounds_options(tol: float, of: str = "") -> Callable[[Command], Command]:
    """When EM ends: --tol, --max-iter and whether it has to converge."""
    near = "How near the maximum must be, in nats of log likelihood in all; below 0: --max-iter plain rounds."

    def add(command: Command) -> Command:
        most, said = click.IntRange(min=1), f"The most rounds{of}."
        rounds = click.option("--max-iter", type=most, default=1000, show_default=True, help=said)
        command = rounds(convergence_option(command))
        return click.option("--tol", type=float, default=tol, show_default=True, help=near)(command)

    return add


FILE = click.Path()  # what is there and can be read is found out by the library, which has better words for it


def _lists(_: click.Context, __: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for text in given for name in names(text))


def ignore_option(more: str = "") -> Callable[[Command], Command]:
    """Columns to leave out: a list, or the option again and again."""
    said = f"Columns to leave out{more}; a name that holds a comma stands in double quotes."
    return click.option(
        "--ignore", multiple=True, metavar="A,B", callback=_lists, shell_complete=complete_column, help=said
    )


def shares_options(command: Command) -> Command:
    """The options of commands that count rows by their shares: --family, --joint, --smoothing, and those of EM."""
    said = "Imagined rows for each value and for each width; 1 if nothing is said."
    for option in (
        rounds_options(1e-4),
        click.option("--smoothing", multiple=True, metavar="N|COL=N", help=said),
        click.option(
            "--joint",
            multiple=True,
            metavar="A,B",
            shell_complete=complete_column,
            help="Columns that depend on each other: modelled together.",
        ),
        click.option(
            "--family",
            multiple=True,
            metavar="COL=FAMILY",
            shell_complete=complete_column,
            help="Family of a column or block, as for learn.",
        ),
    ):
        command = option(command)
    return command


NUMBERS_AND_DATES = (
    click.option(
        "--dates",
        type=click.Choice(["dmy", "mdy", "ymd"]),
        help="The order of day, month and year in dates; without it, as the cells of the column say.",
    ),
    click.option(
        "--thousands", metavar="SIGN", help="The sign between thousands: a comma, point, blank or apostrophe."
    ),
    click.option(
        "--decimal", metavar="SIGN", help="The decimal sign, a point or a comma; without it, as the cells say."
    ),
)


def reading_options(command: Command) -> Command:
    """How a data file is read."""
    bad_rows = click.option(
        "--on-bad-rows",
        type=click.Choice(["error", "skip"]),
        default="error",
        show_default=True,
        help="What happens to a row with too few or too many cells; skipped ones are counted and listed.",
    )
    for option in (
        click.option(
            "--memory-limit",
            metavar="SIZE",
            callback=_size,
            help="The most memory that the command may take, such as 600MB: files are read in smaller parts, and exit code 6 "
            "says that it is not enough.",
        ),
        click.option(
            "--max-unpacked",
            metavar="SIZE",
            callback=_size,
            help="The most that a compressed file may unpack to, such as 500MB or 20GB; by default 100 times its own size, "
            "and at least 64MB.",
        ),
        click.option("--sheet", metavar="NAME|N", help="The sheet of a workbook (.xlsx, .ods), by name or number."),
        click.option("--table", metavar="NAME", help="The table of a database, or the member of a .zip file."),
        click.option(
            "--no-header", is_flag=True, help="The first line is a row, not the names of the columns: c1, c2, …"
        ),
        *NUMBERS_AND_DATES,
        click.option("--encoding", metavar="NAME", help="Encoding of a text file; UTF-8 if nothing is said."),
        bad_rows,
    ):
        command = option(command)
    return command


UNITS = {"": 1, "B": 1, "K": 10**3, "KB": 10**3, "M": 10**6, "MB": 10**6, "G": 10**9, "GB": 10**9, "TB": 10**12}


def _size(_: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """A size in bytes, as people write it."""
    if text is None:
        return None
    figures = text.strip().upper()
    unit = figures.lstrip("0123456789.")
    size = number(figures.removesuffix(unit).strip() or "-", option.opts[0]) if unit.strip() in UNITS else -1.0
    if size <= 0:
        raise UsageError(f"{option.opts[0]} {text!r} is no size: write it as 500MB or 20GB")
    return int(size * UNITS[unit.strip()])


def how_read(given: dict[str, Any]) -> dict[str, Any]:
    """The options of `reading_options`, and --missing, in the library's own words, taken out of what was given."""
    header = not given.pop("no_header")
    reading = (
        "encoding",
        "on_bad_rows",
        "table",
        "sheet",
        "max_unpacked",
        "memory_limit",
        "decimal",
        "thousands",
        "dates",
    )
    names = ("missing", *reading)
    return {name: given.pop(name) for name in names if name in given} | {"header": header}


missing_option = click.option(
    "--missing",
    multiple=True,
    metavar="TOKEN",
    help="A text that stands for a missing cell, instead of those that the model was learned with.",
)


def _bins(_: click.Context, __: click.Parameter, text: str | None) -> Any:
    """A number of bins, edges parted by commas, or the word for no bins."""
    if text is None or text == "none":
        return text
    parts = [part for part in text.split(",") if part.strip()]
    if "," not in text and text.strip().isdecimal():
        return int(text)
    return [number(part, "--target-bins") for part in parts]


target_option = click.option(
    "--target",
    metavar="COLUMN",
    shell_complete=complete_column,
    help="The column to predict; for folders of texts, the folder's name.",
)
weights_option = click.option(
    "--weights",
    metavar="COLUMN",
    shell_complete=complete_column,
    help="The column that says how many rows each row counts for.",
)
bins_option = click.option(
    "--target-bins",
    metavar="N|EDGES|none",
    callback=_bins,
    help="Cut a target of numbers into N bins of about equally many rows, or at the edges (10,20); none: a class a number.",
)
date_parts_option = click.option(
    "--date-parts",
    default="auto",
    show_default=True,
    metavar="auto|none|A,B",
    callback=lambda _, __, text: text if text in ("auto", "none") else names(text),
    help="Weekday, month and hour of dates as columns of their own: those that tell the class something, none, or those "
    "named (weekday,hour, or ordered.weekday for one column).",
)


absent_option = click.option(
    "--absent",
    type=click.Choice(["error", "missing"]),
    default="error",
    show_default=True,
    help="What to do when the data lack a column of the model: refuse, or take its cells for missing.",
)


def names(text: str) -> tuple[str, ...]:
    """Names parted by commas; one that holds a comma itself stands in double quotes."""
    found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not all(found):
        raise UsageError(f"{text!r} has an empty name: write names parted by commas, such as a,b")
    return tuple(found)


def pair(text: str, option: str, example: str) -> tuple[str, str]:
    """What stands before and after the last equals sign."""
    name, sign, value = text.rpartition("=")
    if not sign or not name or not value:
        raise UsageError(f"{option} {text!r} is not understood: write it as {example}")
    return name, value


def families(given: Sequence[str]) -> Any:
    """`age=gaussian`, `a,b=joint:class`, `hits=binomial:shots`; a family alone is for every column."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    chosen: dict[Any, str] = {}
    for text in given:
        columns, family = pair(text, "--family", "COLUMN=gaussian, or A,B=joint")
        key = names(columns)
        chosen[key if len(key) > 1 else key[0]] = family
    return chosen or None


def as_for_learn(given: dict[str, Any], otherwise: Any = "auto") -> dict[str, Any]:
    """What was given, in the library's own words: --family, --joint, and --smoothing or what it is `otherwise`."""
    rest = {name: value for name, value in given.items() if name != "family"}
    return rest | {
        "families": families(given["family"]),
        "joint": [names(block) for block in given["joint"]],
        "smoothing": smoothing(given["smoothing"], otherwise),
    }


def number(text: str, option: str) -> float:
    """A decimal or a fraction such as 1/3."""
    try:
        return float(Fraction(text.strip()))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise UsageError(f"{option} {text!r} is no number: write it as 1, 0.5 or 1/3") from None


def smoothing(given: Sequence[str], otherwise: Any = "auto") -> Any:
    """One pseudocount for all columns, others for the columns named; `otherwise` where nothing is said."""
    if not given:
        return otherwise
    own = dict(pair(text, "--smoothing", "1/3, or COLUMN=1/3") for text in given if "=" in text)
    general = [number(text, "--smoothing") for text in given if "=" not in text]
    if len(general) > 1:
        raise UsageError("--smoothing is given twice for all columns: give it once, or name a column (COLUMN=1)")
    if not own:
        return general[0]
    return {name: number(text, "--smoothing") for name, text in own.items()} | {
        "*": general[0] if general else otherwise
    }


def how_many(given: str, what: str) -> int | str:
    """A number of clusters or states, or the word that has them tried."""
    if given != "auto" and not (given.isdecimal() and int(given) > 0):
        raise UsageError(f"-k {given!r} is no number of {what}: write 1, 2, 3, … or auto")
    return given if given == "auto" else int(given)


def unlabelled(given: str) -> str | float:
    """A word, or the weight of a row without a label."""
    return given if given.isalpha() else number(given, "--unlabelled")


def class_prior(given: Sequence[str], model: Model) -> Any:
    """`yes=0.5 no=0.5` with the labels in their own type, or one pseudocount for every class."""
    if len(given) == 1 and "=" not in given[0]:
        return number(given[0], "--class-prior")
    found = [pair(text, "--class-prior", "LABEL=0.5 for every class, or one pseudocount") for text in given]
    target = model.schema.target
    return {target.canonical(label): number(share, "--class-prior") for label, share in found}


def assignments(given: Sequence[str], known: Sequence[str]) -> dict[str, str | None]:
    """A row as typed in: `Outlook=Sunny`; nothing after the sign is a missing cell."""
    row: dict[str, str | None] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"--set {text!r} is not understood: write it as COLUMN=VALUE")
        if name not in known:
            longest = next((k for k in sorted(known, key=len, reverse=True) if text.startswith(f"{k}=")), None)
            if longest is None:
                meant = did_you_mean(name, known)
                raise UsageError(f"the model has no column {name!r}{meant}: it has {', '.join(known[:20])}")
            name, value = longest, text[len(longest) + 1 :]
        row[name] = value or None
    return row


@contextmanager
def as_file(path: str, terminal: Terminal) -> Iterator[str]:
    """The path itself; for `-`, a temporary file with what comes on standard input."""
    if path != "-":
        yield path
        return
    if terminal.stand_ins:
        raise UsageError("standard input (-) can be read only once: name a file for the other")
    from likely.sources.sniffing import ending_of

    with tempfile.TemporaryDirectory(prefix="likely-") as folder:
        copy = Path(folder, "stdin")
        with copy.open("wb") as file:
            if sys.stdin is not None:
                shutil.copyfileobj(sys.stdin.buffer, file)
        copy = copy.rename(copy.with_suffix(ending_of(str(copy))))
        terminal.stand_ins[str(copy)] = "standard input"
        yield str(copy)


def opened_with(path: str, given: dict[str, Any]) -> tuple[Source, Reading]:
    """The source behind a path, read as the options say, which are taken out of what was given."""
    return opened(path, None, how_read(given))


def opened(path: str, base: Reading | None, how: dict[str, Any]) -> tuple[Source, Reading]:
    """The source behind a path, and the reading that collects its rejects; `base` is how a model reads."""
    from likely.sources import Reading, open_source

    if how["encoding"] is not None:
        _check_encoding(how["encoding"])
    reading = Reading.of(how.pop("missing", ()) or None, how, base)
    return open_source(path, reading), reading


def _check_encoding(name: str) -> None:
    import codecs

    try:
        codecs.lookup(name)
    except LookupError:
        raise UsageError(f"--encoding {name!r} is not known: try utf-8, latin-1, cp1252 or utf-16") from None
