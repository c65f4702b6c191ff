"""The command that sets Likely beside other learners."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
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
)
from likely.cli.terminal import Terminal, is_terminal

if TYPE_CHECKING:
    from likely.comparison import Comparison


@click.command(short_help="Set Likely beside other learners.")
@click.argument("data", type=FILE)
@target_option
@bins_option
@date_parts_option
@click.option(
    "--rival",
    "rivals",
    multiple=True,
    metavar="NAME",
    help="A learner to compare with, once for each: logistic-regression, decision-tree, knn, linear-svm, rbf-svm, "
    "neural-net, random-forest, gradient-boosting, gaussian-nb, categorical-nb, bernoulli-nb, multinomial-nb. All if "
    "nothing is said.",
)
@click.option("--quick", is_flag=True, help="Leave the slow learners out.")
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Into how many parts rows go.")
@click.option("--seed", type=int, default=0, show_default=True, help="How rows are dealt into folds.")
@click.option(
    "--limit",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="A learner that needs more is given up and reported.",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Where the picture goes: .svg, or .json with the figures; - is standard output, as SVG.",
)
@click.option("--title", metavar="TEXT", help="What stands above the picture.")
@click.option("--family", multiple=True, metavar="COL=FAMILY", help="Family of a column for Likely, as for learn.")
@click.option("--joint", multiple=True, metavar="A,B", help="Columns that Likely models together.")
@click.option("--smoothing", multiple=True, metavar="N|COL=N", help="Imagined rows for each value, as for learn.")
@click.option("--average", is_flag=True, help="Likely averages over all choices of columns, as for learn.")
@click.option("--select", is_flag=True, help="Likely selects columns, as for learn.")
@ignore_option(", for everybody")
@click.option("--missing", multiple=True, metavar="TOKEN", help="A text that stands for a missing cell, as for learn.")
@reading_options
@json_option
@click.pass_obj
def compare(
    terminal: Terminal, /, data: str, output: str | None, title: str | None, rivals: Sequence[str], **given: Any
) -> None:
    """Learn DATA with Likely, plain and as it comes, and with scikit-learn's learners, and judge all on the same folds.

    Prints accuracy, log loss, Brier score, calibration error, seconds of a fold, and how much accuracy and log loss differ
    from Likely's, with the 95 % interval of a test for paired folds. Needs scikit-learn: pip install 'likely[sklearn]'.
    """
    if output is not None:
        from likely.comparison import check_ending

        outputs.check_picture(output, data, terminal, check_ending)
    with options.as_file(data, terminal) as path:
        source, reading = options.opened_with(path, given)
        from likely.compare import compare as run

        settings = options.as_for_learn(given)
        found = run(source, rivals=rivals or None, **settings, progress=_progress(terminal))
        terminal.list_rejects(reading.rejects)
    export.write_picture(found, output, title)
    written = {"output": output} if output else {}
    terminal.result(found.to_dict() | {"data": data} | written, lambda: _show(terminal, found, output))


def _progress(terminal: Terminal) -> Callable[[str], None] | None:
    """Who is at it now, on standard error, if a person is there."""
    return terminal.say if is_terminal(sys.stderr) else None


def _show(terminal: Terminal, found: Comparison, output: str | None) -> None:
    from likely.comparison import LEGEND

    terminal.line(f"Comparison on {found.target!r}: {found.how}")
    terminal.line()
    head, rows = found.table()
    terminal.table(head, rows, right=range(1, len(head) - 1))
    terminal.line()
    terminal.line(LEGEND)
    if output and output != "-":
        terminal.line()
        terminal.line(f"Picture written to {output}")
