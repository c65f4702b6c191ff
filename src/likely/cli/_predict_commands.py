"""The commands predict, explain and evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likely.cli import _inputs as inputs
from likely.cli import _model_report as model_report
from likely.cli import _options as options
from likely.cli import _outputs as outputs
from likely.cli import _predicted_rows as predicted_rows
from likely.cli import _writers as writers
from likely.cli._completion import complete_column
from likely.cli._decision_options import cost_option, threshold_option, wanted
from likely.cli._options import (
    FILE,
    absent_option,
    excel_option,
    json_option,
    missing_option,
    reading_options,
)
from likely.cli._spark_commands import check_engine, counted_labels, engine_options, predict_with_spark
from likely.cli._terminal import Terminal, shown, standard_output
from likely.errors import UsageError

if TYPE_CHECKING:
    from likely.model.ledger import Ledger
    from likely.model.model import Model


@click.command(short_help="Predict the label of every row.")
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@click.option(
    "-o",
    "--output",
    type=FILE,
    default="-",
    metavar="OUT",
    help="File to write the predictions to: .csv, .tsv, .jsonl or .parquet, or with --output-table a database (.duckdb, "
    ".sqlite, a postgresql:// URI); by default CSV on standard output (-).",
)
@click.option("--output-table", metavar="NAME", help="Table to make in the database of -o; it is complete or absent.")
@click.option("--replace-table", is_flag=True, help="Replace the table of --output-table if there is one.")
@click.option("--probabilities", is_flag=True, help="Add a column p_<class> with the posterior probability of each class.")
@click.option("--prefix", default="", metavar="TEXT", help="Prefix of the names of the added columns.")
@cost_option
@threshold_option
@excel_option
@engine_options
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
    output_table: str | None,
    replace_table: bool,
    probabilities: bool,
    prefix: str,
    excel_safe: bool,
    absent: str,
    cost: Sequence[str],
    threshold: Sequence[str],
    engine: str,
    master: str | None,
    **given: Any,
) -> None:
    """Predict the label of every row of DATA.

    All columns of DATA are written, then `label` and, with --probabilities, `p_<class>` for each class. An output file is
    complete or absent. Labels and cells are written unchanged; --excel-safe escapes formulas in CSV and TSV. With
    --cost each row gets the decision of lowest expected cost, with --threshold the class that reaches its threshold.
    """
    from likely.learning.load import load_model

    if check_engine(engine, master):
        wishes = {"prefix": prefix, "probabilities": probabilities, "absent": absent}
        _on_spark(terminal, model, data, output, master=master, cost=cost, threshold=threshold, given=given, how=wishes)
        return
    kind = writers.format_of(output, excel_safe)
    outputs.check_table(output, output_table, [model, data])
    with inputs.as_file(model, terminal) as model_path, inputs.as_file(data, terminal) as path:
        known = load_model(model_path)
        source, reading = inputs.opened(path, replace(known.reading, short_batches=True, carried=True), options.how_read(given))
        extending = predicted_rows.layout_of(source, kind, 1 + len(known.classes) * probabilities)
        how: Any = {"as_written": kind in ("csv", "tsv"), "few_columns": extending is not None, "probabilities": probabilities}
        answers = predicted_rows.predictions(known, source, absent, decisions=wanted(cost, threshold, known), **how)
        if output == "-" and terminal.json:
            labels = predicted_rows.print_json(answers, standard_output().write)
        else:
            table = output_table and writers.table_writer(output, output_table, replace=replace_table)
            with table or writers.writer(output, excel_safe=excel_safe, extending=extending) as out:
                labels = predicted_rows.write_predictions(answers, out, prefix, probabilities)
        terminal.list_rejects(reading.rejects)
    _report_predicted(terminal, output, known.schema.target.name, predicted_rows.counted(labels, known.classes))


def _on_spark(
    terminal: Terminal, model: str, data: str, output: str, *, master: str | None,
    cost: Sequence[str], threshold: Sequence[str], given: dict[str, Any], how: dict[str, Any],
) -> None:  # fmt: skip
    from likely.learning.load import load_model
    from likely.sources import ReadOptions

    with inputs.as_file(model, terminal) as model_path:
        known = load_model(model_path)
        reading = options.how_read(given)
        options_of_cells = ReadOptions.of(reading.pop("missing", ()) or None, reading, known.reading)
        costs = wanted(cost, threshold, known)
        counts = predict_with_spark(known, data, output, master, options_of_cells, **how, **costs)
    _report_predicted(terminal, output, known.schema.target.name, counted_labels(counts, known.classes))


def _report_predicted(terminal: Terminal, output: str, target: str, labels: dict[str, int]) -> None:
    """Print the number of predictions of each label, to standard error if standard output has the predictions."""
    rows = sum(labels.values())
    if output == "-":
        terminal.message(f"{rows:,} rows predicted: {', '.join(f'{name} {n:,}' for name, n in labels.items())}")
        return

    def show() -> None:
        terminal.table([target, "rows"], [[name, n] for name, n in labels.items()])
        terminal.line()
        terminal.line(f"{rows:,} rows written to {output}")

    terminal.result({"output": output, "rows": rows, "labels": labels}, show)


def _names_to_type(known: Model) -> list[str]:
    """Columns of a model, and the dates from which some of them are derived."""
    dates = [part.origin for part in known.reading.parts.values()]
    return list(dict.fromkeys([*(column.name for column in known.schema.columns), *dates]))


@click.command(short_help="Explain one prediction column by column.")
@click.argument("model", type=FILE)
@click.argument("data", type=FILE, required=False)
@click.option("--row", type=click.IntRange(min=1), metavar="N", help="Number of the row of DATA, from 1 (the default).")
@click.option(
    "--set",
    "cells",
    multiple=True,
    metavar="COL=VALUE",
    shell_complete=complete_column,
    help="A cell of the row, instead of DATA; once for each column.",
)
@click.option(
    "--page", type=FILE, metavar="OUT.html", help="HTML page to write, with the words of texts shaded by their weight."
)
@click.option(
    "--top", type=click.IntRange(min=1), metavar="N", help="Print the N largest columns (and words); the rest in one line."
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
    """Explain the prediction for one row: the contribution of each column to the log-probability of each class.

    All values are natural logarithms; prior and columns add up to the unnormalised log-posterior. Name DATA, or give the
    row with --set, where omitted columns are missing.
    """
    from likely.learning.load import load_model

    if (data is None) == (not cells):
        raise UsageError("name DATA, or give a row with --set COLUMN=VALUE: one of the two")
    if cells and row is not None:
        raise UsageError("--row selects a row of DATA: it cannot be used with --set")
    if page is not None:
        outputs.check_page(page, "--page")
        outputs.check({"--page": page}, [model, data])
    with inputs.as_file(model, terminal) as model_path:
        known = load_model(model_path)
        if data is None:
            typed = options.assignments(cells, _names_to_type(known))
            ledger, of = known.explain(typed), "the given row"
        else:
            with inputs.as_file(data, terminal) as path:
                source, reading = inputs.opened(path, known.reading, options.how_read(given))
                ledger, of = known.explain(source, number=row or 1, absent=absent), f"row {row or 1} of {data}"
                terminal.list_rejects(reading.rejects)
    if page is not None:
        writers.write_page(page, ledger.page(_headline(ledger, of)))
    terminal.result(ledger.to_dict(), lambda: show_ledger(terminal, ledger, of, top))


def _headline(ledger: Ledger, of: str) -> str:
    return f"{ledger.target} of {of}: {shown(ledger.label)}, with probability {ledger.posterior[ledger.label]:.4f}"


def show_ledger(terminal: Terminal, ledger: Ledger, of: str, top: int | None = None) -> None:
    """Print the explanation of one row, and its prediction."""
    from likely.model.ledger import WORDS_LISTED, cut_note, marked, word_lines

    terminal.line(_headline(ledger, of))
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


@click.command(short_help="Evaluate a model on labelled rows.")
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@click.option(
    "--folds", type=click.IntRange(min=2), help="Cross-validate on DATA with the settings of MODEL and this number of folds."
)
@click.option("--groups", metavar="COLUMN", help="Cross-validate with folds that keep rows of equal values of COLUMN together.")
@options.folds_by_option
@cost_option
@threshold_option
@click.option(
    "--curves", type=FILE, metavar="FILE", help="Picture of ROC, precision-recall and cost curve: .svg, .png, .pdf or .json."
)
@click.option("--class", "label", metavar="LABEL", help="The class of the curves; of two classes the second by default.")
@missing_option
@reading_options
@json_option
@click.pass_obj
def evaluate(
    terminal: Terminal, /, model: str, data: str, folds: int | None, groups: str | None, cost: Sequence[str],
    threshold: Sequence[str], curves: str | None, label: str | None, **given: Any,
) -> None:  # fmt: skip
    """Evaluate MODEL on the labelled rows of DATA, with a warning if they are its training rows.

    Prints accuracy, log loss, Brier score, calibration error (and what chance alone gives) and AUC, the baseline of the
    class frequencies, the metrics of each class and the confusion matrix. With --folds or --groups the settings of MODEL
    are evaluated by cross-validation on DATA instead. --cost and --threshold add the mean cost of their decisions.
    """
    from likely.evaluation.cross_validation import evaluate as evaluate_model
    from likely.evaluation.drawable import check_ending
    from likely.learning.load import load_model

    if curves is not None:
        check_ending(Path(curves).suffix.lower())
        outputs.check({"--curves": curves}, [model, data])
    with inputs.as_file(model, terminal) as model_path, inputs.as_file(data, terminal) as path:
        known = load_model(model_path)
        source, reading = inputs.opened(path, known.reading, options.how_read(given))
        decisions = wanted(cost, threshold, known)
        split = {"folds": folds, "groups": groups, "folds_by": given["folds_by"]}
        with terminal.progress("evaluating") as progress:
            metrics = evaluate_model(source, model=known, progress=progress, **split, **decisions)
        terminal.list_rejects(reading.rejects)
    if curves is not None:
        writers.write_picture(metrics.curves(None if label is None else known.schema.target.canonical(label)), curves)
    terminal.result(metrics.to_dict(), lambda: model_report.show_evaluation(terminal, metrics))
