"""The command report: a model as an HTML page or a JSON document."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from likely.cli import _inputs as inputs
from likely.cli import _options as options
from likely.cli import _outputs as outputs
from likely.cli import _writers as writers
from likely.cli._decision_options import cost_option
from likely.cli._decision_options import costs as costs_of
from likely.cli._options import FILE, json_option, missing_option, reading_options
from likely.cli._terminal import Terminal, standard_output
from likely.errors import UsageError
from likely.kernels.progress import announce

STEPS = 7  # about how many a report has


@click.command(short_help="Write a report of a model as one HTML page.")
@click.argument("model", type=FILE, required=False)
@click.option(
    "--data", type=FILE, metavar="DATA", help="Rows with labels that the model has not learned from, to evaluate it on."
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="R.html",
    help="Report to write: .html, or .json for the document; - is standard output, as HTML.",
)
@click.option("--target", metavar="COLUMN", help="The column with the true labels, if it is named differently in DATA.")
@click.option("--title", metavar="TEXT", help="Title of the report.")
@click.option("--positive", metavar="CLASS", help="The class that views of one class begin with.")
@click.option("--surface", metavar="A,B", help="Two columns of numbers for the decision surface.")
@click.option("--columns", metavar="A,B", help="Columns whose pictures come first; else those with the most evidence.")
@click.option("--curve", is_flag=True, help="Add a learning curve, for which many models are learned from DATA.")
@click.option(
    "--no-rows", is_flag=True, help="Show no rows of DATA: no single predictions, no rows behind the confusion matrix."
)
@cost_option
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the document and stop.")
@missing_option
@reading_options
@json_option
@click.pass_obj
def report(
    terminal: Terminal, /, model: str | None, data: str | None, output: str | None, schema: bool, **given: Any
) -> None:
    """Write a report of MODEL: columns, effects, nomogram, single predictions, quality, calibration, thresholds, model card.

    Of a Bayesian network: drawing, strongest arcs, parameters, and the log-likelihood of DATA.

    The page is one file that loads nothing from elsewhere. With --json, or with an output that ends in .json, the document
    behind it is written instead; --schema prints its JSON Schema.
    """
    if schema:
        from likely.report.json_schema import SCHEMA

        click.echo(json.dumps(SCHEMA, indent=2))
        return
    if model is None:
        raise UsageError(
            "name the MODEL to report on, as in: likely report model.likely --data test.csv -o report.html"
        )
    if output is None and not terminal.json:
        raise UsageError("name the output with -o report.html, or pass --json for the document on standard output")
    _write(terminal, model, data, output, given)


def _write(terminal: Terminal, model: str, data: str | None, output: str | None, given: dict[str, Any]) -> None:
    from likely.learning.load import load
    from likely.report.document import check_ending
    from likely.report.document import report as made

    to_stdout = False
    if output is not None:
        if output != "-":
            check_ending(Path(output).suffix.lower())
        outputs.check({"-o": output}, [model, data])
        to_stdout = outputs.stdout_is_taken(output, terminal, "report")
    surface, columns = (_names(given.pop(name)) for name in ("surface", "columns"))
    wanted = {name: given.pop(name) for name in ("target", "title", "positive", "curve")}
    rows, cost = not given.pop("no_rows"), given.pop("cost")
    with inputs.as_file(model, terminal) as path:
        known = load(path)
        inner = getattr(known, "model", known)
        with _data(terminal, data, getattr(inner, "reading", None), given) as table, _steps(terminal) as step:
            costs = costs_of(cost, inner) if cost else None
            found = made(
                known, table, surface=surface, columns=columns, rows=rows, costs=costs, progress=step, **wanted
            )
    if to_stdout:
        standard_output().write(found.html())
        return
    if output is not None:
        writers.write_page(output, found.to_json(2) + "\n" if output.endswith(".json") else found.html())
    document = {"output": output} if output else found.to_dict()
    terminal.result(document, lambda: terminal.line(f"Report written to {output}"))


def _names(given: str | None) -> list[str]:
    return [name.strip() for name in given.split(",")] if given else []


@contextlib.contextmanager
def _data(terminal: Terminal, data: str | None, reading: Any, given: dict[str, Any]) -> Iterator[Any]:
    if data is None:
        yield None
        return
    with inputs.as_file(data, terminal) as path:
        source, own = inputs.opened(path, reading, options.how_read(given))
        yield source
        terminal.list_rejects(own.rejects)


@contextlib.contextmanager
def _steps(terminal: Terminal) -> Iterator[Callable[[str], None] | None]:
    with terminal.progress("report", "steps", total=STEPS) as advance:
        yield None if advance is None else lambda name: _announced(name, advance)


def _announced(name: str, advance: Callable[[int], None]) -> None:
    announce(name)
    advance(1)
