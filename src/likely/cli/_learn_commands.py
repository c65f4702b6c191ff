"""The commands learn, update, forget and merge."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import click

from likely.cli import _inputs as inputs
from likely.cli import _model_report as model_report
from likely.cli import _options as options
from likely.cli import _outputs as outputs
from likely.cli._completion import complete_column
from likely.cli._model_output import called, checked, default_output, save, until_saved
from likely.cli._options import (
    FILE,
    bins_option,
    date_parts_option,
    ignore_option,
    json_option,
    reading_options,
    target_option,
    weights_option,
)
from likely.cli._spark_commands import check_engine, engine_options, learning_engine_options, spark_source, spark_table
from likely.cli._terminal import Terminal
from likely.errors import UsageError

if TYPE_CHECKING:
    from likely.evaluation.evaluation import Evaluation
    from likely.latent.clusters import Clusters
    from likely.model.model import Model
    from likely.sources import ReadOptions



@click.command(short_help="Learn a model from a table.")
@click.argument("data", type=FILE)
@target_option
@bins_option
@date_parts_option
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="MODEL",
    help="Model file to write: by default the data's name with the extension .likely, in the current folder "
    "(model.likely for standard input and globs); - is standard output.",
)
@click.option(
    "--family",
    "family",
    multiple=True,
    metavar="COL=FAMILY",
    shell_complete=complete_column,
    help="Family of a column: categorical, binned[:BINS|mdl], bernoulli, poisson, gaussian[:class|column|both], "
    "binomial:TRIALS; of a block: A,B=joint[:class], A,B,C=multinomial. A family alone is for every "
    "column, *=FAMILY for every column not named. What is not named is chosen from the data; where every "
    "column is named, the model is plain: nothing is fitted on top of the counts.",
)
@click.option(
    "--joint",
    multiple=True,
    metavar="A,B",
    shell_complete=complete_column,
    help="Columns that depend on each other: modelled jointly.",
)
@click.option(
    "--smoothing",
    multiple=True,
    metavar="N|COL=N",
    help="Pseudocount for each value: 0, 1/3, 1/2, 1 or any number; for one column as COL=N. By default it is chosen for "
    "each column by leave-one-out; a number for all columns implies --plain.",
)
@click.option(
    "--class-prior",
    multiple=True,
    metavar="LABEL=P|N",
    help="Prior probability of a class, once for every class; or one number, the pseudocount of each class.",
)
@ignore_option()
@weights_option
@click.option(
    "--missing",
    multiple=True,
    metavar="TOKEN",
    help="A missing-value token, once for each, instead of the default ones (?, NA, null and similar).",
)
@click.option("--classes", metavar="A,B", help="Classes that exist even if no row has them.")
@click.option("--plain", is_flag=True, help="Textbook naive Bayes: no weights, interactions or calibration.")
@click.option(
    "--dependence",
    type=click.Choice(["auto", "pairs", "none", "tree", "one-dependence"]),
    default="auto",
    show_default=True,
    help="Which interactions between columns may be added: of up to six columns, of pairs, none, "
    "the pairs of a tree (TAN), or all pairs (A1DE).",
)
@click.option("--select", is_flag=True, help="Forward feature selection by the leave-one-out log loss.")
@click.option("--average", is_flag=True, help="Bayesian model averaging over which columns depend on the class.")
@learning_engine_options
@click.option(
    "--in-database",
    is_flag=True,
    help="The same as --engine database: count a plain model by GROUP BY inside the database (DuckDB, SQLite, PostgreSQL; "
    "DuckDB over Parquet and CSV files); only the groups leave it.",
)
@click.option("--folds", type=click.IntRange(min=2), help="Also evaluate by cross-validation with this number of folds.")
@click.option(
    "--groups",
    metavar="COLUMN",
    help="With --folds: a column whose groups of equal values are kept in one fold; it is not a feature.",
)
@options.folds_by_option
@click.option(
    "--unlabelled",
    default="auto",
    show_default=True,
    metavar="auto|ignore|error|WEIGHT",
    help="Rows without a label: used by EM if that helps on held-out labels, ignored, refused, or always used with this "
    "weight relative to a labelled row (0 to 1).",
)
@options.iteration_options(0.1, " of EM")
@click.option(
    "--no-rows",
    is_flag=True,
    help="Write the model without its sample of rows (up to 40,000), from which it could be recalibrated after updates.",
)
@reading_options
@json_option
@click.pass_obj
def learn(
    terminal: Terminal, /, data: str, output: str | None, folds: int | None, class_prior: Sequence[str],
    no_rows: bool, master: str | None, **given: Any,
) -> None:  # fmt: skip
    """Learn a model of one column of DATA and write it to a file.

    DATA is a CSV, TSV, Parquet, JSON, JSON lines or Arrow file, a glob in quotes, or - for standard input; or a folder
    with one folder of texts or mails (.eml, .mbox) for each class. The report lists the number of rows, the kind and family
    of each column with the reason, and the columns that were left out.
    """
    destination = output or default_output(data)
    to_stdout = checked(destination, [data], terminal)
    with_spark = check_engine(given["engine"], master)
    with contextlib.nullcontext(data) if with_spark else inputs.as_file(data, terminal) as path:
        source, reading = spark_source(path, master, given) if with_spark else inputs.opened_with(path, given)
        model, metrics = _learned(terminal, source, class_prior, folds, given)
        reading.check_memory()
        model = model.without_rows() if no_rows else model
        digest = save(model, destination, to_stdout)
        terminal.list_rejects(reading.rejects)
    engine, _, reason = model.engine.partition(": ")
    report = model_report.model(model) | {"data": data, "model": destination, "digest": digest}
    report["engine"] = {"name": engine, "reason": reason}
    if metrics:
        report["evaluation"] = metrics.to_dict()
    terminal.result(report, lambda: _show_learned(terminal, model, report, metrics))


def _learned(
    terminal: Terminal,
    source: Any,
    class_prior: Sequence[str],
    folds: int | None,
    given: dict[str, Any],
) -> tuple[Model, Evaluation | None]:
    from likely.learning.learn import learn as learn_from
    from likely.sources import rows_in_metadata

    target, groups, folds_by = given.pop("target"), given.pop("groups"), given.pop("folds_by")
    if groups is not None:
        if folds is None:
            raise UsageError("--groups assigns rows to folds: give the number of folds with --folds")
        given["ignore"] = (*given["ignore"], groups)
    settings = options.learn_arguments(given) | {
        "unlabelled": options.unlabelled(given["unlabelled"]),
        "classes": options.names(given["classes"]) if given["classes"] else (),
        **({"reading": given["reading"]} if "reading" in given else {}),
    }
    with terminal.progress("learning", total=rows_in_metadata(source)) as progress:
        model = learn_from(source, target, **settings, progress=progress)
    if class_prior:  # labels on the command line are text: the model knows their type
        settings["class_prior"] = options.class_prior(class_prior, model)
        model = model.relearn(class_prior=settings["class_prior"])
    if folds is None:
        return model, None
    from likely.evaluation.cross_validation import SETTINGS, evaluate

    with terminal.progress("evaluating") as progress:
        kept = {name: value for name, value in settings.items() if name in SETTINGS}
        split = {"folds": folds, "groups": groups, "folds_by": folds_by}
        return model, evaluate(source, target=target, progress=progress, **split, **kept)


def _show_learned(terminal: Terminal, model: Model, report: dict[str, Any], metrics: Evaluation | None) -> None:
    from likely.engines.engine import FROM_SERVER, MEMORY

    terminal.line(f"Learned {model.schema.target.name!r} from {model.tally.rows:,} rows of {report['data']}")
    if report["engine"]["name"] != MEMORY or report["engine"]["reason"] == FROM_SERVER:
        terminal.message(f"counted by the {report['engine']['name']} engine: {report['engine']['reason']}")
    terminal.line()
    model_report.show_classes(terminal, report)
    model_report.show_columns(terminal, report)
    if metrics:
        model_report.show_metrics(terminal, metrics)
    terminal.line(f"Model written to {called(report['model'])} (sha256 {report['digest'][:12]}…)")
    terminal.line(model_report.rows_inside(report, "--no-rows learns the same model without them"))


def _change(
    terminal: Terminal,
    *,
    model: str,
    data: str,
    output: str | None,
    weights: str | None,
    recalibrate: bool,
    engine: str,
    master: str | None,
    verb: str,
    **given: Any,
) -> None:
    """Load a model, add or remove rows, and save it unless another process has changed it meanwhile."""
    from likely.learning.load import load_changeable

    with_spark = check_engine(engine, master)
    destination = output or model
    to_stdout = checked(destination, [model, data], terminal, replaceable=[model])
    in_place, how = outputs.same_place(destination, model), options.how_read(given)
    there = contextlib.nullcontext(data) if with_spark else inputs.as_file(data, terminal)
    opened = partial(_spark_opened, master) if with_spark else inputs.opened
    with inputs.as_file(model, terminal) as model_path, there as path:

        def changed() -> tuple[Model | Clusters, Model | Clusters, str, ReadOptions]:
            before, digest = load_changeable(model_path)
            source, reading = opened(path, before.reading, dict(how))
            after = getattr(before, verb)(source, weights=weights, engine=engine, reading=reading)
            after = after.recalibrate() if recalibrate else after
            reading.check_memory()
            return before, after, save(after, destination, to_stdout, digest if in_place else None), reading

        before, after, new_digest, reading = until_saved(changed)
        terminal.list_rejects(reading.rejects)
    document = {"data": data, "model": destination, "digest": new_digest} | _changes(before, after)
    terminal.result(document, lambda: _show_changed(terminal, document))


def _spark_opened(master: str | None, path: str, base: ReadOptions, how: dict[str, Any]) -> tuple[Any, ReadOptions]:
    """A Spark DataFrame of the table at a path, read with the options of a model."""
    return spark_table(path, master, inputs.reading_of(base, how))


def _changes(before: Model | Clusters, after: Model | Clusters) -> dict[str, Any]:
    """What update and forget report of a model."""
    return {
        "rows_before": before.tally.rows,
        "rows_after": after.tally.rows,
        "classes": list(after.classes),
        "new_classes": [c for c in after.classes if c not in before.classes],
        "stale": after.stale,
        "can_recalibrate": not after.frozen,
    }


def _show_changed(terminal: Terminal, report: dict[str, Any]) -> None:
    before, after = report["rows_before"], report["rows_after"]
    done = f"Counted {after - before:,}" if after >= before else f"Forgot {before - after:,}"
    terminal.line(f"{done} rows of {report['data']}; {after:,} rows are in {called(report['model'])} now")
    for label in report["new_classes"]:
        terminal.line(f"New class: {label}")
    if report["stale"] and not report["can_recalibrate"]:
        terminal.line("The calibration is older than these rows, and the model has no sample of rows to fit it again")
    elif report["stale"]:
        terminal.line("The calibration is older than these rows: --recalibrate fits it again, without the old data")


def _changing(command: Callable[..., None]) -> Callable[..., None]:
    """Arguments and options common to update and forget."""
    for decorate in reversed(
        (
            click.argument("model", type=FILE),
            click.argument("data", type=FILE),
            click.option(
                "-o",
                "--output",
                type=FILE,
                metavar="MODEL",
                help="Model file to write: by default MODEL itself; - is standard output.",
            ),
            click.option(
                "--weights", metavar="COLUMN", help="Column of row weights, if not that of the training data."
            ),
            engine_options,
            click.option("--recalibrate", is_flag=True, help="Fit the calibration again, from the model's sample of rows."),
            options.missing_option,
            reading_options,
            json_option,
            click.pass_obj,
        )
    ):
        command = decorate(command)
    return command


@click.command(short_help="Add rows to a model.")
@_changing
def update(terminal: Terminal, **given: Any) -> None:
    """Add the rows of DATA to MODEL; new values and new classes are allowed.

    The counts equal those of a model learned from all rows at once. The calibration is unchanged unless there is a new
    class; --recalibrate fits it again from the sample of rows in the model. If another process changes the file meanwhile,
    the rows are added to the changed model, so that no concurrent update is lost.
    """
    _change(terminal, **given, verb="update")


@click.command(short_help="Remove rows from a model.")
@_changing
def forget(terminal: Terminal, **given: Any) -> None:
    """Remove the rows of DATA, which must have been counted, from MODEL.

    Refused if a row was never counted, or if precision would be lost. The calibration is unchanged unless a class
    disappears or --recalibrate is given. If another process changes the file meanwhile, the rows are removed from the
    changed model.
    """
    _change(terminal, **given, verb="forget")


def _sum(terminal: Terminal, names: Sequence[str], parts: Sequence[Model | Clusters]) -> Model | Clusters:
    if any(part.prior != parts[0].prior for part in parts):
        terminal.note(f"the priors differ: that of {names[0]} is kept")
    if any(part.average != parts[0].average for part in parts):
        terminal.note(f"some models average over columns and some do not: {names[0]} decides")
    return reduce(lambda a, b: a + b, parts)


@click.command(short_help="Add models.")
@click.argument("models", nargs=-1, required=True, type=FILE)
@click.option(
    "-o", "--output", required=True, type=FILE, metavar="MODEL", help="Model file to write; - is standard output."
)
@json_option
@click.pass_obj
def merge(terminal: Terminal, models: Sequence[str], output: str) -> None:
    """Add MODELS: the result equals a model learned from all their rows at once.

    All must have the same target and the same columns. The prior of the first is kept. The sum may replace one of MODELS;
    if another process changes that file meanwhile, the models are read and added again.
    """
    from likely.learning.load import load_changeable

    if len(models) < 2:
        raise UsageError("merge needs two models or more")
    to_stdout = checked(output, models, terminal, replaceable=models)
    with contextlib.ExitStack() as stack:
        paths = [stack.enter_context(inputs.as_file(name, terminal)) for name in models]
        own = next((i for i, name in enumerate(models) if outputs.same_place(output, name)), None)

        def merged() -> tuple[Model | Clusters, str]:
            loaded = [load_changeable(path) for path in paths]
            total = _sum(terminal, models, [model for model, _ in loaded])
            return total, save(total, output, to_stdout, None if own is None else loaded[own][1])

        total, digest = until_saved(merged)
    document = {
        "model": output,
        "merged": list(models),
        "rows": total.tally.rows,
        "classes": list(total.classes),
        "digest": digest,
    }
    terminal.result(
        document,
        lambda: terminal.line(
            f"Merged {len(models)} models into {called(output)}: {total.tally.rows:,} rows, {len(total.classes)} classes"
        ),
    )
