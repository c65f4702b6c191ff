"""Commands that ask a model: predict, explain, evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from likely.cli import describe, export, options, outputs
from likely.cli.completing import complete_column
from likely.cli.options import FILE, absent_option, excel_option, json_option, missing_option, reading_options
from likely.cli.terminal import Terminal, shown, standard_output
from likely.errors import UsageError

if TYPE_CHECKING:
    from likely.ledger import Ledger
    from likely.model import Model


@click.command(short_help="Predict the label of every row.")
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@click.option(
    "-o",
    "--output",
    type=FILE,
    default="-",
    metavar="OUT",
    help="Where the answers go: .csv, .tsv, .jsonl or .parquet; by default CSV on standard output (-).",
)
@click.option("--probabilities", is_flag=True, help="Add a column p_<class> with the probability of each class.")
@click.option("--prefix", default="", metavar="TEXT", help="Put before the names of the added columns.")
@excel_option
@absent_option
@missing_option
@reading_options
@json_option
@click.pass_obj
def predict(
    terminal: Terminal,
    /,
    model: str,
    data: str,
    output: str,
    probabilities: bool,
    prefix: str,
    excel_safe: bool,
    absent: str,
    **given: Any,
) -> None:
    """Predict the label of every row of DATA.

    All columns of DATA are written, then `label` and, if asked for, `p_<class>` for each class. A file appears when it
    is whole. The labels and the cells of DATA are written unchanged; --excel-safe escapes formulas in CSV and TSV.
    """
    from likely.model import load

    as_written = export.format_of(output, excel_safe) in ("csv", "tsv")
    outputs.check({"-o": output}, [model, data])
    with options.as_file(model, terminal) as model_path, options.as_file(data, terminal) as path:
        known = load(model_path)
        source, reading = options.opened(path, known.reading, options.how_read(given))
        answers = export.predictions(known, source, absent, as_written=as_written)
        if output == "-" and terminal.json:
            said = export.print_json(answers, standard_output().write)
        else:
            with export.writer(output, excel_safe=excel_safe) as out:
                said = export.write_predictions(answers, out, prefix, probabilities)
        terminal.list_rejects(reading.rejects)
    _say_predicted(terminal, output, known.schema.target.name, export.counted(said, known.classes))


def _say_predicted(terminal: Terminal, output: str, target: str, labels: dict[str, int]) -> None:
    """How often each label was said: a message if the answers went to standard output, else the result itself."""
    rows = sum(labels.values())
    if output == "-":
        terminal.say(f"{rows:,} rows predicted: {', '.join(f'{name} {n:,}' for name, n in labels.items())}")
        return

    def show() -> None:
        terminal.table([target, "rows"], [[name, n] for name, n in labels.items()])
        terminal.line()
        terminal.line(f"{rows:,} rows written to {output}")

    terminal.result({"output": output, "rows": rows, "labels": labels}, show)


def _names_to_type(known: Model) -> list[str]:
    """The columns of a model, and the dates that some of them are derived from."""
    dates = [part.origin for part in known.reading.parts.values()]
    return list(dict.fromkeys([*(column.name for column in known.schema.columns), *dates]))


@click.command(short_help="Show the sum behind one prediction.")
@click.argument("model", type=FILE)
@click.argument("data", type=FILE, required=False)
@click.option("--row", type=click.IntRange(min=1), metavar="N", help="Which row of DATA, counted from 1 (the default).")
@click.option(
    "--set",
    "cells",
    multiple=True,
    metavar="COL=VALUE",
    shell_complete=complete_column,
    help="A cell of a row typed in, instead of DATA.",
)
@click.option(
    "--page", type=FILE, metavar="OUT.html", help="Where the account goes as a page, with a text's words shaded."
)
@click.option(
    "--top", type=click.IntRange(min=1), metavar="N", help="Name the N strongest columns (and words); the rest in one line."
)
@absent_option
@missing_option
@reading_options
@json_option
@click.pass_obj
def explain(
    terminal: Terminal,
    /,
    model: str,
    data: str | None,
    row: int | None,
    cells: Sequence[str],
    page: str | None,
    top: int | None,
    absent: str,
    **given: Any,
) -> None:
    """Explain the prediction for one row: what each column says for each class, and what it adds up to.

    Every line is a natural logarithm; the prior and the columns add up to the sum. Name DATA, or type the row in with
    --set, where columns left out are missing.
    """
    from likely.model import load

    if (data is None) == (not cells):
        raise UsageError("name DATA, or type a row in with --set COLUMN=VALUE, one of the two")
    if cells and row is not None:
        raise UsageError("--row picks a row of DATA: it has no meaning with --set")
    if page is not None:
        outputs.check_page(page, "--page")
        outputs.check({"--page": page}, [model, data])
    with options.as_file(model, terminal) as model_path:
        known = load(model_path)
        if data is None:
            typed = options.assignments(cells, _names_to_type(known))
            ledger, of = known.explain(typed), "the row typed in"
        else:
            with options.as_file(data, terminal) as path:
                source, reading = options.opened(path, known.reading, options.how_read(given))
                ledger, of = known.explain(source, number=row or 1, absent=absent), f"row {row or 1} of {data}"
                terminal.list_rejects(reading.rejects)
    if page is not None:
        export.write_page(page, ledger.page(_verdict(ledger, of)))
    terminal.result(ledger.to_dict(), lambda: show_ledger(terminal, ledger, of, top))


def _verdict(ledger: Ledger, of: str) -> str:
    return f"{ledger.target} of {of}: {shown(ledger.label)}, with probability {ledger.posterior[ledger.label]:.4f}"


def show_ledger(terminal: Terminal, ledger: Ledger, of: str, top: int | None = None) -> None:
    """The account of one row, and its verdict."""
    from likely.ledger import WORDS_LISTED, cut_note, marked, word_lines

    terminal.line(_verdict(ledger, of))
    terminal.line()
    head = ledger.head()
    terminal.table(head, ledger.lines(top), right=range(2, len(head) - 1))
    for entry in ledger.entries:
        if entry.words:
            terminal.line()
            if terminal.highlighted(marked(entry), ledger.classes) and (note := cut_note(entry)):
                terminal.line(note)
            for line in word_lines(entry, ledger.classes, top or WORDS_LISTED):
                terminal.line(line)
    for note in ledger.notes:
        terminal.line(f"note: {note}")


@click.command(short_help="Judge a model on rows with known labels.")
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@click.option(
    "--folds", type=click.IntRange(min=2), help="Learn from DATA anew as MODEL was, and judge over so many folds."
)
@click.option("--groups", metavar="COLUMN", help="Judge over folds that keep the rows of one value of COLUMN together.")
@missing_option
@reading_options
@json_option
@click.pass_obj
def evaluate(
    terminal: Terminal, /, model: str, data: str, folds: int | None, groups: str | None, **given: Any
) -> None:
    """Judge MODEL on DATA, rows with known labels; it says so if they are rows that it has learned from.

    Prints accuracy, log loss, Brier score, calibration error and AUC, what the class frequencies alone would reach, the
    figures of each class and who was taken for whom. With --folds or --groups the settings of MODEL are judged by
    cross-validation on DATA instead.
    """
    from likely.evaluate import evaluate as judge
    from likely.model import load

    with options.as_file(model, terminal) as model_path, options.as_file(data, terminal) as path:
        known = load(model_path)
        source, reading = options.opened(path, known.reading, options.how_read(given))
        with terminal.progress("judging") as progress:
            figures = judge(source, model=known, folds=folds, groups=groups, progress=progress)
        terminal.list_rejects(reading.rejects)
    terminal.result(figures.to_dict(), lambda: describe.show_evaluation(terminal, figures))
