"""Options common to several commands, and their conversion to arguments of the library."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import click

from likely.cli._completion import complete_column
from likely.cli._terminal import Terminal
from likely.errors import ConvergenceWarning, UsageError, did_you_mean

if TYPE_CHECKING:
    from likely.model.model import Model

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
    "= + - @, tab or carriage return and is not a number. Without it every value is written unchanged.",
)

folds_by_option = click.option(
    "--folds-by",
    type=click.Choice(["auto", "position", "hash"]),
    default="auto",
    show_default=True,
    help="How --folds assigns rows: stratified by class and position, or by a hash of the row, equal on every engine; auto is "
    "hash for Spark and PostgreSQL.",
)


def _convergence_required(_: click.Context, __: click.Parameter, value: bool) -> None:
    """Turn ConvergenceWarning into an error; the filters are restored after the command."""
    if value:
        warnings.simplefilter("error", ConvergenceWarning)


convergence_option = click.option(
    "--require-convergence",
    is_flag=True,
    expose_value=False,
    callback=_convergence_required,
    help="Exit with code 5 and write nothing if EM does not converge; by default that is a note.",
)


def iteration_options(tol: float, of: str = "", most: int = 1000) -> Callable[[Command], Command]:
    """Stopping rules of EM: --tol, --max-iter and --require-convergence."""
    near = "Tolerance: distance to the maximum of the log-likelihood, in nats; below 0: always --max-iter iterations."

    def add(command: Command) -> Command:
        least, text = click.IntRange(min=1), f"Maximum number of iterations{of}."
        iterations = click.option("--max-iter", type=least, default=most, show_default=True, help=text)
        command = iterations(convergence_option(command))
        return click.option("--tol", type=float, default=tol, show_default=True, help=near)(command)

    return add


FILE = click.Path()  # existence is checked by the library, with better messages


def _lists(_: click.Context, __: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for text in given for name in names(text))


starts_option = click.option(
    "--n-init",
    "--restarts",
    "n_init",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Number of random starts; the best one is kept.",
)


def ignore_option(more: str = "") -> Callable[[Command], Command]:
    """The option --ignore: a list, or given repeatedly."""
    text = f"Columns to leave out{more}; a name with a comma must be in double quotes."
    return click.option(
        "--ignore", multiple=True, metavar="A,B", callback=_lists, shell_complete=complete_column, help=text
    )


def em_options(command: Command) -> Command:
    """Options of commands that fit by EM: --family, --joint, --smoothing, and the stopping rules."""
    text = "Pseudocount for each value and for each variance; 1 by default."
    for option in (
        iteration_options(1e-4),
        click.option("--smoothing", multiple=True, metavar="N|COL=N", help=text),
        click.option(
            "--joint",
            multiple=True,
            metavar="A,B",
            shell_complete=complete_column,
            help="Columns that depend on each other: modelled jointly.",
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
        help="Order of day, month and year in dates; by default inferred from the cells.",
    ),
    click.option(
        "--thousands", metavar="SIGN", help="Thousands separator: a comma, point, blank or apostrophe."
    ),
    click.option(
        "--decimal", metavar="SIGN", help="Decimal sign: a point or a comma; by default inferred from the cells."
    ),
)


def reading_options(command: Command) -> Command:
    """Options for reading a data file."""
    bad_rows = click.option(
        "--on-bad-rows",
        type=click.Choice(["error", "skip"]),
        default="error",
        show_default=True,
        help="Rows with too few or too many cells: an error, or skipped, counted and listed.",
    )
    for option in (
        click.option(
            "--memory-limit",
            metavar="SIZE",
            callback=_size,
            help="Maximum memory of the command, such as 600MB: files are read in smaller batches; exit code 6 if it is "
            "exceeded.",
        ),
        click.option(
            "--max-unpacked",
            metavar="SIZE",
            callback=_size,
            help="Maximum unpacked size of a compressed file, such as 500MB or 20GB; by default 100 times its size, "
            "and at least 64MB.",
        ),
        click.option("--sheet", metavar="NAME|N", help="Sheet of a workbook (.xlsx, .ods), by name or number from 1."),
        click.option("--query", metavar="SELECT", help="Query of a database, instead of a table."),
        click.option("--table", metavar="NAME", help="Table of a database, or member of a .zip file."),
        click.option(
            "--no-header", is_flag=True, help="The first line is a row; columns are named c1, c2, …"
        ),
        *NUMBERS_AND_DATES,
        click.option("--encoding", metavar="NAME", help="Encoding of a text file; by default UTF-8."),
        bad_rows,
    ):
        command = option(command)
    return command


UNITS = {"": 1, "B": 1, "K": 10**3, "KB": 10**3, "M": 10**6, "MB": 10**6, "G": 10**9, "GB": 10**9, "TB": 10**12}


def _size(_: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """Parse a size in bytes, such as 500MB."""
    if text is None:
        return None
    size_text = text.strip().upper()
    unit = size_text.lstrip("0123456789.")
    size = number(size_text.removesuffix(unit).strip() or "-", option.opts[0]) if unit.strip() in UNITS else -1.0
    if size <= 0:
        raise UsageError(f"{option.opts[0]} {text!r} is not a size: write it as 500MB or 20GB")
    return int(size * UNITS[unit.strip()])


def how_read(given: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments for reading a source, removed from the given options."""
    header = not given.pop("no_header")
    reading = (
        "encoding",
        "on_bad_rows",
        "table",
        "query",
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
    help="A missing-value token, once for each, instead of those stored in the model.",
)


def _bins(_: click.Context, __: click.Parameter, text: str | None) -> Any:
    """Parse --target-bins: a number of bins, edges separated by commas, or none."""
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
    help="The column to predict; for folders of texts, the folder by default.",
)
weights_option = click.option(
    "--weights",
    metavar="COLUMN",
    shell_complete=complete_column,
    help="Column of row weights.",
)
bins_option = click.option(
    "--target-bins",
    metavar="N|EDGES|none",
    callback=_bins,
    help="Bin a numeric target into N quantile bins, or at the edges (10,20); none: one class for each number.",
)
date_parts_option = click.option(
    "--date-parts",
    default="auto",
    show_default=True,
    metavar="auto|none|A,B",
    callback=lambda _, __, text: text if text in ("auto", "none") else names(text),
    help="Weekday, month and hour of dates as derived columns: those informative about the class, none, or those "
    "named (weekday,hour, or ordered.weekday for one column).",
)


absent_option = click.option(
    "--absent",
    type=click.Choice(["error", "missing"]),
    default="error",
    show_default=True,
    help="Columns of the model that are absent from the data: an error, or treated as missing.",
)


def names(text: str) -> tuple[str, ...]:
    """Names separated by commas; a name with a comma must be in double quotes."""
    found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not all(found):
        raise UsageError(f"{text!r} has an empty name: write names separated by commas, such as a,b")
    return tuple(found)


def pair(text: str, option: str, example: str) -> tuple[str, str]:
    """Split at the last equals sign."""
    name, sign, value = text.rpartition("=")
    if not sign or not name or not value:
        raise UsageError(f"{option} {text!r} is not understood: write it as {example}")
    return name, value


def families(given: Sequence[str]) -> Any:
    """Parse --family: `age=gaussian`, `a,b=joint:class`, `hits=binomial:shots`, or one family for every column."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    chosen: dict[Any, str] = {}
    for text in given:
        columns, family = pair(text, "--family", "COLUMN=gaussian, or A,B=joint")
        key = names(columns)
        chosen[key if len(key) > 1 else key[0]] = family
    return chosen or None


def learn_arguments(given: dict[str, Any], otherwise: Any = "auto") -> dict[str, Any]:
    """Keyword arguments of the library from the options; `otherwise` is the default of --smoothing."""
    rest = {name: value for name, value in given.items() if name != "family"}
    return rest | {
        "families": families(given["family"]),
        "joint": [names(block) for block in given["joint"]],
        "smoothing": smoothing(given["smoothing"], otherwise),
    }


def number(text: str, option: str) -> float:
    """Parse a decimal or a fraction such as 1/3."""
    try:
        return float(Fraction(text.strip()))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise UsageError(f"{option} {text!r} is not a number: write it as 1, 0.5 or 1/3") from None


def smoothing(given: Sequence[str], otherwise: Any = "auto") -> Any:
    """Parse --smoothing: one pseudocount for all columns, others for named columns; `otherwise` by default."""
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
    """Parse -k: a number of clusters or states, or auto."""
    if given != "auto" and not (given.isdecimal() and int(given) > 0):
        raise UsageError(f"-k {given!r} is not a number of {what}: write 1, 2, 3, … or auto")
    return given if given == "auto" else int(given)


def unlabelled(given: str) -> str | float:
    """Parse --unlabelled: a word, or the weight of unlabelled rows."""
    return given if given.isalpha() else number(given, "--unlabelled")


def class_prior(given: Sequence[str], model: Model) -> Any:
    """Parse --class-prior: `yes=0.5 no=0.5` with labels in their type, or one pseudocount for every class."""
    if len(given) == 1 and "=" not in given[0]:
        return number(given[0], "--class-prior")
    found = [pair(text, "--class-prior", "LABEL=0.5 for every class, or one pseudocount") for text in given]
    target = model.schema.target
    return {target.canonical(label): number(share, "--class-prior") for label, share in found}


def assignments(given: Sequence[str], known: Sequence[str]) -> dict[str, str | None]:
    """Parse --set: `Outlook=Sunny`; an empty value is a missing cell."""
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
