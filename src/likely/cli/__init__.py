"""The command line: each command is one verb of the library.

Never: formulas; anything that the library cannot do by itself.
"""

from __future__ import annotations

import click

from likely import __version__
from likely.cli._brain_command import brain
from likely.cli._cluster_command import cluster
from likely.cli._compare_command import compare
from likely.cli._curve_command import curve
from likely.cli._draw_command import draw
from likely.cli._entry_point import MEANINGS, CommandGroup
from likely.cli._estimate_command import estimate
from likely.cli._export_commands import export, sql
from likely.cli._independence_command import independence
from likely.cli._inspect_commands import completion, examples, inspect
from likely.cli._learn_commands import forget, learn, merge, update
from likely.cli._model_commands import check, compare_models, sample
from likely.cli._network_commands import network
from likely.cli._predict_commands import evaluate, explain, predict
from likely.cli._report_command import report
from likely.cli._sequences_command import sequences
from likely.cli._serve_command import serve
from likely.cli._spark_commands import spark_archive
from likely.cli._strip_command import strip

__all__ = ["main"]


EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in MEANINGS.items())
SETTINGS = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}


@click.group(cls=CommandGroup, context_settings=SETTINGS, epilog=EXIT_CODES)
@click.version_option(__version__, prog_name="likely", message="%(prog)s %(version)s")
def main() -> None:
    """Learn a Bayesian classifier from a table by counting, predict with Bayes' rule, and explain every prediction."""


for command in (
    learn,
    predict,
    explain,
    evaluate,
    report,
    check,
    compare,
    compare_models,
    curve,
    cluster,
    sequences,
    brain,
    network,
    independence,
    draw,
    update,
    forget,
    merge,
    strip,
    export,
    sql,
    sample,
    estimate,
    serve,
    inspect,
    examples,
    completion,
    spark_archive,
):
    main.add_command(command)
