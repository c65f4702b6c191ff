"""The command compare: Likely and baselines on the same folds."""

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
)
from likely.cli._terminal import Terminal

if TYPE_CHECKING:
    from likely.evaluation.comparison_table import Comparison


@click.command(short_help="Compare Likely with other classifiers.")
@click.argument("data", type=FILE)
@target_option
@bins_option
@date_parts_option
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="NAME",
    help="A baseline to compare with, once for each: logistic-regression, decision-tree, knn, linear-svm, rbf-svm, "
    "neural-net, random-forest, gradient-boosting, gaussian-nb, categorical-nb, bernoulli-nb, multinomial-nb. By "
    "default all.",
)
@click.option("--quick", is_flag=True, help="Skip the slow baselines.")
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Number of cross-validation folds.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the assignment of rows to folds.")
@click.option(
    "--limit",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of each baseline; one that exceeds it is stopped and reported.",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Picture to write: .svg, .png, .pdf, or .json with the metrics; - is standard output, as SVG.",
)
@click.option("--title", metavar="TEXT", help="Title of the picture.")
@click.option("--family", multiple=True, metavar="COL=FAMILY", help="Family of a column in Likely, as for learn.")
@click.option("--joint", multiple=True, metavar="A,B", help="Columns that Likely models jointly, as for learn.")
@click.option("--smoothing", multiple=True, metavar="N|COL=N", help="Pseudocount for each value in Likely, as for learn.")
@click.option("--average", is_flag=True, help="Average Likely over all choices of columns, as for learn.")
@click.option("--select", is_flag=True, help="Feature selection in Likely, as for learn.")
@ignore_option(", for all classifiers")
@click.option("--missing", multiple=True, metavar="TOKEN", help="A missing-value token, as for learn.")
@reading_options
@json_option
@click.pass_obj
def compare(
    terminal: Terminal, /, data: str, output: str | None, title: str | None, baselines: Sequence[str], **given: Any
) -> None:
    """Compare Likely, plain and default, with scikit-learn's classifiers by cross-validation on the same folds of DATA.

    Prints accuracy, log loss, Brier score, calibration error and seconds per fold, and the differences in accuracy and log
    loss from Likely, with the 95 % interval of a paired test over the folds. Needs scikit-learn: pip install 'likely[sklearn]'.
    """
    if output is not None:
        from likely.evaluation.drawable import check_ending

        outputs.check_picture(output, data, terminal, check_ending)
    with inputs.as_file(data, terminal) as path:
        source, reading = inputs.opened_with(path, given)
        from likely.evaluation.comparison import compare as run

        settings = options.learn_arguments(given)
        with terminal.progress("comparing"):
            found = run(source, baselines=baselines or None, **settings)
        terminal.list_rejects(reading.rejects)
    writers.write_picture(found, output, title)
    written = {"output": output} if output else {}
    terminal.result(found.to_dict() | {"data": data} | written, lambda: _show(terminal, found, output))


def _show(terminal: Terminal, found: Comparison, output: str | None) -> None:
    from likely.evaluation.comparison_table import LEGEND

    terminal.line(f"Comparison on {found.target!r}: {found.how}")
    terminal.line()
    head, rows = found.table()
    terminal.table(head, rows, right=range(1, len(head) - 1))
    terminal.line()
    terminal.line(LEGEND)
    if output and output != "-":
        terminal.line()
        terminal.line(f"Picture written to {output}")
