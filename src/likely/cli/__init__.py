"""The shell's door: each command is a verb of the library."""

from __future__ import annotations

import click

from likely import __version__
from likely.cli.asking import evaluate, explain, predict
from likely.cli.clusters import cluster
from likely.cli.comparing import compare
from likely.cli.curving import curve
from likely.cli.door import MEANINGS, Door
from likely.cli.learning import forget, learn, merge, update
from likely.cli.sequencing import sequences
from likely.cli.showing import completion, examples, inspect
from likely.cli.stripping import strip

__all__ = ["main"]


EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in MEANINGS.items())


@click.group(cls=Door, context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(__version__, prog_name="likely", message="%(prog)s %(version)s")
def main() -> None:
    """Likely learns from a table by counting, predicts with Bayes' rule, and shows the sum behind every prediction."""


for command in (
    learn,
    predict,
    explain,
    evaluate,
    compare,
    curve,
    cluster,
    sequences,
    update,
    forget,
    merge,
    strip,
    inspect,
    examples,
    completion,
):
    main.add_command(command)
