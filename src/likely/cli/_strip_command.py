"""The command strip: models without rows."""

from __future__ import annotations

import click

from likely.cli import _inputs as inputs
from likely.cli import _outputs as outputs
from likely.cli._model_output import called, checked, save, until_saved
from likely.cli._options import FILE, json_option
from likely.cli._terminal import Terminal


@click.command(short_help="Remove the sample of rows from a model.")
@click.argument("model", type=FILE)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="MODEL",
    help="Model file to write: by default MODEL itself; - is standard output.",
)
@json_option
@click.pass_obj
def strip(terminal: Terminal, model: str, output: str | None) -> None:
    """Remove the sample of rows and documents from MODEL; its predictions do not change.

    The model cannot be recalibrated afterwards. Counts by class remain: of categories, of words and their pairs, and of numbers
    rounded to about 1/4,096 of their range.
    """
    from likely.learning.load import load_changeable

    destination = output or model
    to_stdout = checked(destination, [model], terminal, replaceable=[model])
    in_place = outputs.same_place(destination, model)
    with inputs.as_file(model, terminal) as path:

        def stripped() -> tuple[int, str]:
            known, digest = load_changeable(path)
            return known.tally.rows_kept, save(known.without_rows(), destination, to_stdout, digest if in_place else None)

        removed, digest = until_saved(stripped)
    report = {"model": destination, "rows_removed": removed, "rows_inside": 0, "digest": digest}

    def show() -> None:
        what = f"Removed {removed:,} rows from" if removed else "There were no rows in"
        terminal.line(f"{what} {called(model)}; model written to {called(destination)}")

    terminal.result(report, show)
