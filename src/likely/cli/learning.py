"""Commands that make models: learn, update, forget, merge."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from likely.cli import describe, options, outputs
from likely.cli.completing import complete_column
from likely.cli.options import (
    FILE,
    bins_option,
    date_parts_option,
    ignore_option,
    json_option,
    reading_options,
    target_option,
    weights_option,
)
from likely.cli.terminal import Terminal, standard_output
from likely.errors import ChangedError, UsageError

if TYPE_CHECKING:
    from likely.figures import Evaluation
    from likely.model import Model
    from likely.sources import Reading, Source

ATTEMPTS = 100  # whenever one is lost, another process has saved its own: that many others may be at work at a time


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
    help="Where the model goes: by default the data's name with the ending .likely, in the current folder "
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
    "column. What is not named is chosen from the data.",
)
@click.option(
    "--joint",
    multiple=True,
    metavar="A,B",
    shell_complete=complete_column,
    help="Columns that depend on each other: modelled together.",
)
@click.option(
    "--smoothing",
    multiple=True,
    metavar="N|COL=N",
    help="Imagined rows for each value: 0, 1/3, 1/2, 1, any; for one column as COL=N. Without it each column chooses; "
    "given for all columns, they are counted as with --plain.",
)
@click.option(
    "--class-prior",
    multiple=True,
    metavar="LABEL=P|N",
    help="Share of a class, once for every class; or one number, the imagined rows of each class.",
)
@ignore_option()
@weights_option
@click.option(
    "--missing",
    multiple=True,
    metavar="TOKEN",
    help="A text that stands for a missing cell, instead of the usual ones (?, NA, null and the like).",
)
@click.option("--classes", metavar="A,B", help="Labels that exist even if no row has them.")
@click.option("--plain", is_flag=True, help="The textbook's model: nothing but counting.")
@click.option(
    "--dependence",
    type=click.Choice(["auto", "pairs", "none", "tree", "one-dependence"]),
    default="auto",
    show_default=True,
    help="Which columns may speak together beyond what each says alone: sets of up to four, pairs, none, "
    "the pairs of a tree (TAN), or all pairs (A1DE).",
)
@click.option("--select", is_flag=True, help="Keep only columns that lower the leave-one-out log loss, best first.")
@click.option("--average", is_flag=True, help="Average over all choices of which columns depend on the class.")
@click.option("--engine", default="auto", show_default=True, metavar="NAME", help="What counts: auto or memory.")
@click.option("--folds", type=click.IntRange(min=2), help="Judge the model by cross-validation over so many folds.")
@click.option(
    "--groups",
    metavar="COLUMN",
    help="With --folds: a column whose rows of one value stay in one fold; it is not learned.",
)
@click.option(
    "--unlabelled",
    default="auto",
    show_default=True,
    metavar="auto|ignore|error|WEIGHT",
    help="What happens to rows without a label: they are counted by their shares (EM) if that helps to predict labels set "
    "aside, never, refused, or always, each weighing so much of a labelled row (0 to 1).",
)
@options.rounds_options(0.1, " of EM")
@click.option(
    "--no-rows",
    is_flag=True,
    help="Write the same model without the sample of rows (up to 40,000) that a default model holds to be calibrated on "
    "again after updates.",
)
@reading_options
@json_option
@click.pass_obj
def learn(
    terminal: Terminal, /, data: str, output: str | None, folds: int | None, class_prior: Sequence[str],
    no_rows: bool, **given: Any,
) -> None:  # fmt: skip
    """Learn a model of one column of DATA and write it to a file.

    DATA is a CSV, TSV, Parquet, JSON, JSON lines or Arrow file, a glob in quotes, or - for standard input; or a folder
    with one folder of texts or mails (.eml, .mbox) for each class. The report says how many rows were counted, what each
    column was taken for and why, and which columns were left out.
    """
    destination = output or default_output(data)
    to_stdout = checked(destination, [data], terminal)
    with options.as_file(data, terminal) as path:
        source, reading = options.opened_with(path, given)
        model, figures = _learned(terminal, source, class_prior, folds, given)
        reading.check_memory()
        model = model.without_rows() if no_rows else model
        digest = save(model, destination, to_stdout)
        terminal.list_rejects(reading.rejects)
    report = describe.model(model) | {"data": data, "model": destination, "digest": digest}
    if figures:
        report["evaluation"] = figures.to_dict()
    terminal.result(report, lambda: _show_learned(terminal, model, report, figures))


def _learned(
    terminal: Terminal,
    source: Source,
    class_prior: Sequence[str],
    folds: int | None,
    given: dict[str, Any],
) -> tuple[Model, Evaluation | None]:
    from likely.learn import learn as learn_from

    target, groups = given.pop("target"), given.pop("groups")
    if groups is not None:
        if folds is None:
            raise UsageError("--groups says how rows are dealt out to folds: name their number with --folds")
        given["ignore"] = (*given["ignore"], groups)
    settings = options.as_for_learn(given) | {
        "unlabelled": options.unlabelled(given["unlabelled"]),
        "classes": options.names(given["classes"]) if given["classes"] else (),
    }
    with terminal.progress("learning") as progress:
        model = learn_from(source, target, **settings, progress=progress)
    if class_prior:  # labels are typed as text: the model knows what type they are
        settings["class_prior"] = options.class_prior(class_prior, model)
        model = model.relearn(class_prior=settings["class_prior"])
    if folds is None:
        return model, None
    from likely.evaluate import SETTINGS, evaluate

    with terminal.progress("judging") as progress:
        judged = {name: value for name, value in settings.items() if name in SETTINGS}
        return model, evaluate(source, target=target, folds=folds, groups=groups, progress=progress, **judged)


def default_output(data: str) -> str:
    """The data's own name as a model file in the current folder."""
    packed = Path(data).suffix.lower() in (".gz", ".bz2", ".xz", ".zst", ".zip")
    stem = (Path(Path(data).stem).stem if packed else Path(data).stem) or "model"
    return "model.likely" if data == "-" or set(stem) & set("*?[]") else f"{stem}.likely"


def checked(destination: str, inputs: Sequence[str], terminal: Terminal, replaceable: Sequence[str] = ()) -> bool:
    """Whether the model goes to standard output; refused if it would replace anything but a model."""
    outputs.check({"-o": destination}, inputs, replaceable=replaceable)
    outputs.check_model("-o", destination)
    return outputs.stdout_is_taken(destination, terminal, "model")


Done = TypeVar("Done")


def until_saved(work: Callable[[], Done]) -> Done:
    """Read, change and save a model; again from the start when another process has replaced the file meanwhile."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(ChangedError):
            return work()
    return work()


def save(model: Model, destination: str, to_stdout: bool, replacing: str | None = None) -> str:
    """The model in its file, or on standard output, and the digest of it."""
    if not to_stdout:
        return model.save(destination, replacing=replacing)
    stream = standard_output()
    with tempfile.TemporaryDirectory(prefix="likely-") as folder:
        path = Path(folder, "model.likely")
        digest = model.save(path)
        with path.open("rb") as file:
            shutil.copyfileobj(file, stream.buffer)
        stream.buffer.flush()
    return digest


def called(path: str) -> str:
    """What a path is called in a message."""
    return "standard output" if path == "-" else path


def _show_learned(terminal: Terminal, model: Model, report: dict[str, Any], figures: Evaluation | None) -> None:
    terminal.line(f"Learned {model.schema.target.name!r} from {model.tally.rows:,} rows of {report['data']}")
    terminal.line()
    describe.show_classes(terminal, report)
    describe.show_columns(terminal, report)
    if figures:
        describe.show_figures(terminal, figures)
    terminal.line(f"Model written to {called(report['model'])} (sha256 {report['digest'][:12]}…)")
    terminal.line(describe.rows_inside(report, "--no-rows learns the same model without them"))


def _change(
    terminal: Terminal,
    model: str,
    data: str,
    output: str | None,
    weights: str | None,
    recalibrate: bool,
    verb: str,
    **given: Any,
) -> None:
    """Read a model, let it see or forget rows, and write it back if nobody else has meanwhile."""
    from likely.model import load_with_digest

    destination = output or model
    to_stdout = checked(destination, [model, data], terminal, replaceable=[model])
    in_place, how = outputs.same_place(destination, model), options.how_read(given)
    with options.as_file(model, terminal) as model_path, options.as_file(data, terminal) as path:

        def changed() -> tuple[Model, Model, str, Reading]:
            before, digest = load_with_digest(model_path)
            source, reading = options.opened(path, before.reading, dict(how))
            after = getattr(before, verb)(source, weights=weights)
            after = after.recalibrate() if recalibrate else after
            reading.check_memory()
            return before, after, save(after, destination, to_stdout, digest if in_place else None), reading

        before, after, new_digest, reading = until_saved(changed)
        terminal.list_rejects(reading.rejects)
    document = {
        "data": data,
        "model": destination,
        "rows_before": before.tally.rows,
        "rows_after": after.tally.rows,
        "digest": new_digest,
        "classes": list(after.classes),
        "new_classes": [c for c in after.classes if c not in before.classes],
        "stale": after.stale,
        "can_recalibrate": not after.frozen,
    }
    terminal.result(document, lambda: _show_changed(terminal, document))


def _show_changed(terminal: Terminal, report: dict[str, Any]) -> None:
    before, after = report["rows_before"], report["rows_after"]
    done = f"Counted {after - before:,}" if after >= before else f"Forgot {before - after:,}"
    terminal.line(f"{done} rows of {report['data']}; {after:,} rows are in {called(report['model'])} now")
    for label in report["new_classes"]:
        terminal.line(f"New class: {label}")
    if report["stale"] and not report["can_recalibrate"]:
        terminal.line("The calibration is from before these rows, and the model holds no rows to fit it again")
    elif report["stale"]:
        terminal.line("The calibration is from before these rows: --recalibrate fits it again, without the old data")


def _changing(command: Callable[..., None]) -> Callable[..., None]:
    """The arguments that update and forget share."""
    for decorate in reversed(
        (
            click.argument("model", type=FILE),
            click.argument("data", type=FILE),
            click.option(
                "-o",
                "--output",
                type=FILE,
                metavar="MODEL",
                help="Where the changed model goes: by default the file it came from; - is standard output.",
            ),
            click.option(
                "--weights", metavar="COLUMN", help="The column of weights, if not the one the model was learned with."
            ),
            click.option("--recalibrate", is_flag=True, help="Fit anew what is fitted on top of the counts."),
            options.missing_option,
            reading_options,
            json_option,
            click.pass_obj,
        )
    ):
        command = decorate(command)
    return command


@click.command(short_help="Let a model see more rows.")
@_changing
def update(terminal: Terminal, **given: Any) -> None:
    """Let MODEL see the rows of DATA as well; unseen values and unseen classes are welcome.

    The counts equal those of a model learned from all rows at once. What is fitted on top of them, the calibration, stays
    as it was, unless a class is new; --recalibrate fits it anew from the sample of rows in the model. If another process
    changes the file meanwhile, the rows are counted again on top of that change: of several updates at a time none is lost.
    """
    _change(terminal, **given, verb="update")


@click.command(short_help="Let a model forget rows.")
@_changing
def forget(terminal: Terminal, **given: Any) -> None:
    """Let MODEL forget the rows of DATA, which it must have seen.

    Refused where a row was never counted, or where digits would be lost. The calibration stays as it was, unless a class
    is gone or --recalibrate is given. If another process changes the file meanwhile, the rows are taken out of the changed
    model.
    """
    _change(terminal, **given, verb="forget")


def _sum(terminal: Terminal, names: Sequence[str], parts: Sequence[Model]) -> Model:
    if any(part.prior != parts[0].prior for part in parts):
        terminal.note(f"the priors differ: that of {names[0]} is kept")
    if any(part.average != parts[0].average for part in parts):
        terminal.note(f"some average over columns and some do not: {names[0]} decides")
    return reduce(lambda a, b: a + b, parts)


@click.command(short_help="Add models up.")
@click.argument("models", nargs=-1, required=True, type=FILE)
@click.option(
    "-o", "--output", required=True, type=FILE, metavar="MODEL", help="Where the sum goes; - is standard output."
)
@json_option
@click.pass_obj
def merge(terminal: Terminal, models: Sequence[str], output: str) -> None:
    """Add up MODELS, as if one model had been learned from all their rows at once.

    All must have the same target and the same columns. The prior of the first is kept. The sum may replace one of MODELS;
    if another process changes that file meanwhile, the models are read and added up again.
    """
    from likely.model import load_with_digest

    if len(models) < 2:
        raise UsageError("merge needs two models or more")
    to_stdout = checked(output, models, terminal, replaceable=models)
    with contextlib.ExitStack() as stack:
        paths = [stack.enter_context(options.as_file(name, terminal)) for name in models]
        own = next((i for i, name in enumerate(models) if outputs.same_place(output, name)), None)

        def merged() -> tuple[Model, str]:
            loaded = [load_with_digest(path) for path in paths]
            whole = _sum(terminal, models, [model for model, _ in loaded])
            return whole, save(whole, output, to_stdout, None if own is None else loaded[own][1])

        whole, digest = until_saved(merged)
    document = {
        "model": output,
        "merged": list(models),
        "rows": whole.tally.rows,
        "classes": list(whole.classes),
        "digest": digest,
    }
    terminal.result(
        document,
        lambda: terminal.line(
            f"Merged {len(models)} models into {called(output)}: {whole.tally.rows:,} rows, {len(whole.classes)} classes"
        ),
    )
