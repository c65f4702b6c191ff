"""The command curve: learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from likely.cli import _inputs as inputs
from likely.cli import _options as options
from likely.cli import _outputs as outputs
from likely.cli import _writers as writers
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
from likely.cli._terminal import Terminal
from likely.errors import UsageError

if TYPE_CHECKING:
    from likely.evaluation.learning_curve import LearningCurve


@click.command(short_help="Learning curve: accuracy by training rows.")
@click.argument("data", type=FILE)
@target_option
@bins_option
@date_parts_option
@click.option(
    "--sizes", metavar="N,N", help="Numbers of training rows; by default doubling up to all rows."
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Number of random splits."
)
@click.option(
    "--holdout", default="1/3", show_default=True, metavar="FRACTION", help="Fraction of rows held out for testing."
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Picture to write: .svg, .png, .pdf, or .json with the metrics; - is standard output, as SVG.",
)
@click.option(
    "--metric",
    type=click.Choice(["accuracy", "log_loss"]),
    default="accuracy",
    show_default=True,
    help="Metric to draw.",
)
@click.option("--title", metavar="TEXT", help="Title of the picture.")
@click.option("--family", multiple=True, metavar="COL=FAMILY", help="Family of a column or block, as for learn.")
@click.option("--joint", multiple=True, metavar="A,B", help="Columns that depend on each other: modelled jointly.")
@click.option("--smoothing", multiple=True, metavar="N|COL=N", help="Pseudocount for each value, as for learn.")
@ignore_option()
@weights_option
@click.option("--missing", multiple=True, metavar="TOKEN", help="A missing-value token, as for learn.")
@click.option("--plain", is_flag=True, help="Textbook naive Bayes: no weights, interactions or calibration.")
@reading_options
@json_option
@click.pass_obj
def curve(terminal: Terminal, /, data: str, output: str | None, metric: str, title: str | None, **given: Any) -> None:
    """Learn from increasing numbers of rows of DATA and evaluate each model on held-out rows.

    Prints mean, minimum and maximum of accuracy and log loss over the seeds, for every size. Each seed holds out
    other rows; its training sets are nested. -o draws the curve over a logarithmic axis.
    """
    if output is not None:
        from likely.evaluation.drawable import check_ending

        outputs.check_picture(output, data, terminal, check_ending)
    with inputs.as_file(data, terminal) as path:
        source, reading = inputs.opened_with(path, given)
        from likely.evaluation.learning_curve import curve as learn_and_judge

        settings = _settings(given)
        with terminal.progress("learning") as progress:
            found = learn_and_judge(source, **settings, progress=progress)
        terminal.list_rejects(reading.rejects)
    writers.write_picture(found, output, metric, title)
    written = {"output": output} if output else {}
    terminal.result(found.to_dict() | {"data": data} | written, lambda: _show(terminal, found, output))


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of the library from the options."""
    return options.learn_arguments(given) | {
        "sizes": _sizes(given["sizes"]),
        "holdout": options.number(given["holdout"], "--holdout"),
    }


def _sizes(text: str | None) -> Sequence[int] | None:
    if text is None:
        return None
    try:
        return [int(size) for size in options.names(text)]
    except ValueError:
        raise UsageError(
            f"--sizes {text!r} is not understood: write integers separated by commas, such as 50,500"
        ) from None


def _show(terminal: Terminal, found: LearningCurve, output: str | None) -> None:
    terminal.line(str(found))
    if output and output != "-":
        terminal.line()
        terminal.line(f"Curve written to {output}")
