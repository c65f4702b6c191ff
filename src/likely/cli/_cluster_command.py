"""The command cluster: finite mixtures fitted by EM."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likely.cli import _inputs as inputs
from likely.cli import _model_report as model_report
from likely.cli import _options as options
from likely.cli import _outputs as outputs
from likely.cli import _predicted_rows as predicted_rows
from likely.cli import _writers as writers
from likely.cli._options import (
    FILE,
    em_options,
    excel_option,
    ignore_option,
    json_option,
    reading_options,
    starts_option,
    weights_option,
)
from likely.cli._spark_commands import check_engine, engine_options, spark_source
from likely.cli._terminal import Terminal
from likely.errors import UsageError

if TYPE_CHECKING:
    from likely.latent.clusters import Clusters


def start_option(what: str) -> Callable[[options.Command], options.Command]:
    """The option --start: initial means of the clusters or states."""
    text = f"Initial mean of a {what}, one number a column; once for each {what}, which keep this order."
    return click.option("--start", multiple=True, metavar="A,B,…", help=text)


def first_means(given: Sequence[str], k: str | None, what: str, otherwise: str = "auto") -> tuple[int | str, Any]:
    """Number of clusters or states, and their initial means if given; -k is then optional."""
    means = [[options.number(cell, "--start") for cell in mean.split(",")] for mean in given]
    if not means:
        return options.how_many(k or otherwise, f"{what}s"), None
    if k not in (None, "auto", str(len(means))) or len({len(mean) for mean in means}) > 1:
        wanted = f" for -k {k}" if k else ""
        raise UsageError(f"--start gives {len(means)} means{wanted}: give one for each {what}, all of equal length")
    return len(means), means


@click.command(short_help="Find clusters: a mixture fitted by EM.")
@click.argument("data", type=FILE)
@click.option(
    "-k", "k", default="auto", show_default=True, metavar="N|auto", help="Number of clusters; auto chooses it by --criterion."
)
@click.option("-o", "--output", type=FILE, metavar="MODEL", help="Model file to write, for predict and explain.")
@click.option(
    "--labels", type=FILE, metavar="OUT", help="File to write the rows with their cluster to: .csv, .tsv, .jsonl or .parquet."
)
@excel_option
@click.option("--picture", type=FILE, metavar="OUT.svg", help="Picture to write: the clusters and the path of EM.")
@click.option("--steps", type=FILE, metavar="OUT.html", help="HTML page to write: EM as an animation, step by step.")
@click.option(
    "--draw", metavar="A[,B]", help="One or two columns to draw; by default the first two numeric ones."
)
@em_options
@click.option(
    "--criterion", type=click.Choice(["bic", "icl"]), default="bic", show_default=True, help="Criterion of -k auto."
)
@starts_option
@start_option("cluster")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random starts.")
@ignore_option()
@weights_option
@engine_options
@click.option("--missing", multiple=True, metavar="TOKEN", help="A missing-value token, as for learn.")
@reading_options
@json_option
@click.pass_obj
def cluster(terminal: Terminal, /, data: str, k: str, output: str | None, labels: str | None, picture: str | None,
            steps: str | None, draw: str | None, excel_safe: bool, master: str | None, **given: Any) -> None:  # fmt: skip
    """Find clusters in DATA: a finite mixture over columns of any kind, fitted by EM; missing cells are allowed.

    Clusters are numbered by size, the largest first. Leave a label column out with --ignore.
    """
    if labels is not None:
        writers.format_of(labels, excel_safe)
    _check(data, output, labels, picture, steps)
    with_spark = check_engine(given["engine"], master)
    if with_spark and (labels or picture or steps):
        raise UsageError("--labels, --picture and --steps read the rows in this process, and --engine spark does not: "
                         "write the model with -o, then `likely predict MODEL DATA --engine spark`")  # fmt: skip
    with contextlib.nullcontext(data) if with_spark else inputs.as_file(data, terminal) as path:
        from likely.sources import open_source

        source, reading = spark_source(path, master, given) if with_spark else inputs.opened_with(path, given)
        with terminal.progress("clusters"):
            found = _found(source, k, given | {"reading": reading, "steps": steps is not None})
        engine, _, reason = found.model.engine.partition(": ")
        report = _report(found) | {"data": data, "engine": {"name": engine, "reason": reason}}
        # Pictures are drawn before anything is written, so that an error leaves no output.
        drawn = _pictures(found, source, {"picture": picture, "steps": steps}, options.names(draw) if draw else (), data)
        if output:
            report |= {"model": output, "digest": found.save(output)}
        if labels:
            _write_labels(found, open_source(path, reading), labels, excel_safe)
            report["labels"] = labels
        for what, (path_to, text) in drawn.items():
            writers.write_page(path_to, text)
            report[what] = path_to
        terminal.list_rejects(reading.rejects)
    terminal.result(report, lambda: _show(terminal, found, report))


def _check(data: str, output: str | None, labels: str | None, picture: str | None, steps: str | None) -> None:
    """Check all output paths before the work starts."""
    if "-" in (output, picture, steps):
        raise UsageError("-o, --picture and --steps need the name of a file")
    if steps is not None:
        outputs.check_page(steps, "--steps")
    outputs.check({"-o": output, "--labels": labels, "--picture": picture, "--steps": steps}, [data])
    if output is not None:
        outputs.check_model("-o", output)


def _found(source: Any, k: str, given: dict[str, Any]) -> Clusters:
    from likely.latent.mixtures import cluster as find

    wanted, means = first_means(given.pop("start"), k, "cluster")
    return find(source, wanted, **options.learn_arguments(given, 1.0), start=means)


def _report(found: Clusters) -> dict[str, Any]:
    tables = {
        name: list(rows)
        for name, rows in found.parameters.items()
        if name != found.schema.target.name and len(rows) < 500
    }
    return model_report.model(found.model) | model_report.em_summary(found) | {"clusters": tables}


def _write_labels(found: Clusters, source: Any, path: str, excel_safe: bool) -> None:
    as_written = writers.format_of(path) in ("csv", "tsv")
    answers = predicted_rows.predictions(found.model, source, "error", as_written=as_written)
    with writers.writer(path, excel_safe=excel_safe) as out:
        predicted_rows.write_predictions(answers, out, "", True)


def _pictures(
    found: Clusters, source: Any, wanted: dict[str, str | None], columns: Sequence[str], data: str
) -> dict[str, tuple[str, str]]:
    """The requested picture and page: path and content of each."""
    made = {}
    if path := wanted["picture"]:
        from likely.latent.component_picture import picture

        made["picture"] = (path, picture(found, source, columns))
    if path := wanted["steps"]:
        from likely.teaching import lesson

        name = "standard input" if data == "-" else Path(data).name
        made["steps"] = (path, lesson.page(found, source, columns, title=f"{lesson.TITLE}: {name}"))
    return made


def _show(terminal: Terminal, found: Clusters, report: dict[str, Any]) -> None:
    many = "1 cluster" if len(found.classes) == 1 else f"{len(found.classes):,} clusters"
    terminal.line(f"{many} in {found.tally.rows:,} rows of {report['data']}")
    terminal.line()
    model_report.show_classes(terminal, report)
    model_report.show_columns(terminal, report)
    for name, rows in report["clusters"].items():
        model_report.show_parameters(terminal, name, rows)
    if found.tried:
        terminal.table(["clusters", "criterion"], [[k, value] for k, value in found.tried.items()])
        terminal.line()
    end = "" if found.converged else " (not converged: more iterations would increase it)"
    end += f"; the maximum is about {found.distance_left:.2g} nats away" if isfinite(found.distance_left) else ""
    terminal.line(f"log-likelihood {found.log_likelihood:,.2f} after {len(found.trace)} iterations{end}")
    terminal.line(f"BIC {found.bic:,.2f}, ICL {found.icl:,.2f}, AIC {found.aic:,.2f} (lower is better)")
    for what, key in (("Model", "model"), ("Rows with their clusters", "labels"), ("Picture", "picture"),
                      ("Steps", "steps")):  # fmt: skip
        if key in report:
            terminal.line(f"{what} written to {report[key]}")
