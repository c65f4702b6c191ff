"""The command that draws a learning curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from likely.cli import export, options, outputs
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
from likely.cli.terminal import Terminal
from likely.errors import UsageError

if TYPE_CHECKING:
    from likely.curve import LearningCurve


@click.command(short_help="Draw accuracy against rows learned from.")
@click.argument("data", type=FILE)
@target_option
@bins_option
@date_parts_option
@click.option(
    "--sizes", metavar="N,N", help="How many rows to learn from; by default twice as many each time, up to all."
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="How often rows are dealt anew."
)
@click.option(
    "--holdout", default="1/3", show_default=True, metavar="SHARE", help="The share of rows that is withheld."
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Where the picture goes: .svg, .png (needs matplotlib), or .json with the figures; - is standard output, as SVG.",
)
@click.option(
    "--figure",
    type=click.Choice(["accuracy", "log_loss"]),
    default="accuracy",
    show_default=True,
    help="Which figure is drawn.",
)
@click.option("--title", metavar="TEXT", help="What stands above the picture.")
@click.option("--family", multiple=True, metavar="COL=FAMILY", help="Family of a column or block, as for learn.")
@click.option("--joint", multiple=True, metavar="A,B", help="Columns that depend on each other: modelled together.")
@click.option("--smoothing", multiple=True, metavar="N|COL=N", help="Imagined rows for each value, as for learn.")
@ignore_option()
@weights_option
@click.option("--missing", multiple=True, metavar="TOKEN", help="A text that stands for a missing cell, as for learn.")
@click.option("--plain", is_flag=True, help="The textbook's model: nothing but counting.")
@reading_options
@json_option
@click.pass_obj
def curve(terminal: Terminal, /, data: str, output: str | None, figure: str, title: str | None, **given: Any) -> None:
    """Learn from ever more rows of DATA and judge each model on rows that were withheld.

    Prints accuracy and log loss for every size: the mean over the seeds, the lowest and the highest. Each seed withholds
    other rows; its training sets hold one another. -o draws the curve over a logarithmic axis.
    """
    if output is not None:
        from likely.curve import check_ending

        outputs.check_picture(output, data, terminal, check_ending)
    with options.as_file(data, terminal) as path:
        source, reading = options.opened_with(path, given)
        from likely.curve import curve as learn_and_judge

        settings = _settings(given)
        with terminal.progress("learning") as progress:
            found = learn_and_judge(source, **settings, progress=progress)
        terminal.list_rejects(reading.rejects)
    export.write_picture(found, output, figure, title)
    written = {"output": output} if output else {}
    terminal.result(found.to_dict() | {"data": data} | written, lambda: _show(terminal, found, output))


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """The options in the library's own words."""
    return options.as_for_learn(given) | {
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
            f"--sizes {text!r} is not understood: write whole numbers parted by commas, as 50,500"
        ) from None


def _show(terminal: Terminal, found: LearningCurve, output: str | None) -> None:
    terminal.line(str(found))
    if output and output != "-":
        terminal.line()
        terminal.line(f"Curve written to {output}")
