"""The command that finds clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likely.cli import describe, export, options, outputs
from likely.cli.options import (
    FILE,
    excel_option,
    ignore_option,
    json_option,
    reading_options,
    shares_options,
    weights_option,
)
from likely.cli.terminal import Terminal
from likely.errors import UsageError

if TYPE_CHECKING:
    from likely.clustering import Clusters


def start_option(what: str) -> Callable[[options.Command], options.Command]:
    """Where EM starts: the first mean of each cluster or state."""
    said = f"The first mean of a {what}, column by column; once for each of -k, in the order they keep."
    return click.option("--start", multiple=True, metavar="A,B,…", help=said)


def first_means(given: Sequence[str], k: str | None, what: str, otherwise: str = "auto") -> tuple[int | str, Any]:
    """How many clusters or states there are, and their first means, if they were given; -k may then be left out."""
    means = [[options.number(cell, "--start") for cell in mean.split(",")] for mean in given]
    if not means:
        return options.how_many(k or otherwise, f"{what}s"), None
    if k not in (None, "auto", str(len(means))) or len({len(mean) for mean in means}) > 1:
        wanted = f" for -k {k}" if k else ""
        raise UsageError(f"--start gives {len(means)} means{wanted}: give one for each {what}, all of equal length")
    return len(means), means


@click.command(short_help="Find clusters in a table without labels.")
@click.argument("data", type=FILE)
@click.option(
    "-k", "k", default="auto", show_default=True, metavar="N|auto", help="How many clusters; auto tries them."
)
@click.option("-o", "--output", type=FILE, metavar="MODEL", help="Where the model goes, for predict and explain.")
@click.option(
    "--labels", type=FILE, metavar="OUT", help="Where the rows go with their cluster: .csv, .jsonl, .parquet."
)
@excel_option
@click.option("--picture", type=FILE, metavar="OUT.svg", help="Where the picture of clusters and of EM's way goes.")
@click.option("--steps", type=FILE, metavar="OUT.html", help="Where the page goes that plays EM step by step.")
@click.option(
    "--draw", metavar="A[,B]", help="The one or two columns of the pictures; by default the first two numbers."
)
@shares_options
@click.option(
    "--criterion", type=click.Choice(["bic", "icl"]), default="bic", show_default=True, help="What -k auto judges by."
)
@click.option("--restarts", type=click.IntRange(min=1), default=5, show_default=True, help="Starts that are tried.")
@start_option("cluster")
@click.option("--seed", type=int, default=0, show_default=True, help="Where the starts come from.")
@ignore_option()
@weights_option
@click.option("--missing", multiple=True, metavar="TOKEN", help="A text that stands for a missing cell, as for learn.")
@reading_options
@json_option
@click.pass_obj
def cluster(terminal: Terminal, /, data: str, k: str, output: str | None, labels: str | None, picture: str | None,
            steps: str | None, draw: str | None, excel_safe: bool, **given: Any) -> None:  # fmt: skip
    """Find clusters in DATA by EM: a mixture of any columns, with missing cells as they are.

    The clusters are numbered, the largest first. A label column, if there is one, should be left out with --ignore.
    """
    if labels is not None:
        export.format_of(labels, excel_safe)
    _check(data, output, labels, picture, steps)
    with options.as_file(data, terminal) as path:
        from likely.sources import open_source

        source, reading = options.opened_with(path, given)
        found = _found(source, k, given | {"reading": reading, "steps": steps is not None})
        report = _report(found) | {"data": data}
        # What cannot be drawn is said before anything is written.
        drawn = _drawn(found, source, {"picture": picture, "steps": steps}, options.names(draw) if draw else (), data)
        if output:
            report |= {"model": output, "digest": found.save(output)}
        if labels:
            _write_labels(found, open_source(path, reading), labels, excel_safe)
            report["labels"] = labels
        for what, (path_to, text) in drawn.items():
            export.write_page(path_to, text)
            report[what] = path_to
        terminal.list_rejects(reading.rejects)
    terminal.result(report, lambda: _show(terminal, found, report))


def _check(data: str, output: str | None, labels: str | None, picture: str | None, steps: str | None) -> None:
    """Whether all that is asked for can be written: said before the work, not after it."""
    if "-" in (output, picture, steps):
        raise UsageError("-o, --picture and --steps need the name of a file")
    if steps is not None:
        outputs.check_page(steps, "--steps")
    outputs.check({"-o": output, "--labels": labels, "--picture": picture, "--steps": steps}, [data])
    if output is not None:
        outputs.check_model("-o", output)


def _found(source: Any, k: str, given: dict[str, Any]) -> Clusters:
    from likely.clustering import cluster as find

    wanted, means = first_means(given.pop("start"), k, "cluster")
    return find(source, wanted, **options.as_for_learn(given, 1.0), start=means)


def _report(found: Clusters) -> dict[str, Any]:
    way = {"rounds": len(found.trace), "converged": found.converged, "log_likelihood": found.log_likelihood}
    way["distance_left"] = found.distance_left
    judged = {"bic": found.bic, "icl": found.icl, "aic": found.aic, "trace": list(found.trace)}
    tables = {
        name: list(rows)
        for name, rows in found.parameters.items()
        if name != found.schema.target.name and len(rows) < 500
    }
    tried = {"tried": {str(k): value for k, value in found.tried.items()}} if found.tried else {}
    return describe.model(found) | way | judged | tried | {"clusters": tables}


def _write_labels(found: Clusters, source: Any, path: str, excel_safe: bool) -> None:
    as_written = export.format_of(path) in ("csv", "tsv")
    answers = export.predictions(found, source, "error", as_written=as_written)
    with export.writer(path, excel_safe=excel_safe) as out:
        export.write_predictions(answers, out, "", True)


def _drawn(
    found: Clusters, source: Any, wanted: dict[str, str | None], columns: Sequence[str], data: str
) -> dict[str, tuple[str, str]]:
    """The picture and the page that are wanted: where each goes, and its text."""
    made = {}
    if path := wanted["picture"]:
        from likely.pictures import picture

        made["picture"] = (path, picture(found, source, columns))
    if path := wanted["steps"]:
        from likely import lesson

        name = "standard input" if data == "-" else Path(data).name
        made["steps"] = (path, lesson.page(found, source, columns, title=f"{lesson.TITLE}: {name}"))
    return made


def _show(terminal: Terminal, found: Clusters, report: dict[str, Any]) -> None:
    terminal.line(f"{len(found.classes)} clusters in {found.tally.rows:,} rows of {report['data']}")
    terminal.line()
    describe.show_classes(terminal, report)
    describe.show_columns(terminal, report)
    for name, rows in report["clusters"].items():
        describe.show_parameters(terminal, name, rows)
    if found.tried:
        terminal.table(["clusters", "cost"], [[k, value] for k, value in found.tried.items()])
        terminal.line()
    end = "" if found.converged else " (the end was not reached: more rounds would climb on)"
    end += f"; the maximum is about {found.distance_left:.2g} nats away" if isfinite(found.distance_left) else ""
    terminal.line(f"log likelihood {found.log_likelihood:,.2f} after {len(found.trace)} rounds{end}")
    terminal.line(f"BIC {found.bic:,.2f}, ICL {found.icl:,.2f}, AIC {found.aic:,.2f}: the lower the better")
    for what, key in (("Model", "model"), ("Rows with their clusters", "labels"), ("Picture", "picture"),
                      ("Steps", "steps")):  # fmt: skip
        if key in report:
            terminal.line(f"{what} written to {report[key]}")
