"""The command that removes the rows that a model holds."""

from __future__ import annotations

import click

from likely.cli import options, outputs
from likely.cli.learning import called, checked, save, until_saved
from likely.cli.options import FILE, json_option
from likely.cli.terminal import Terminal


@click.command(short_help="Remove the rows that a model holds.")
@click.argument("model", type=FILE)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="MODEL",
    help="Where the model without rows goes: by default the file it came from; - is standard output.",
)
@json_option
@click.pass_obj
def strip(terminal: Terminal, model: str, output: str | None) -> None:
    """Remove from MODEL the sample of rows and documents that it holds; it predicts the same.

    Its calibration cannot be fitted again afterwards. Counts remain: of the categories, of the words, and of numbers rounded
    to about 1/4,096 of their range, each with how often it occurred in each class.
    """
    from likely.model import load_with_digest

    destination = output or model
    to_stdout = checked(destination, [model], terminal, replaceable=[model])
    in_place = outputs.same_place(destination, model)
    with options.as_file(model, terminal) as path:

        def stripped() -> tuple[int, str]:
            known, digest = load_with_digest(path)
            return known.tally.rows_kept, save(known.without_rows(), destination, to_stdout, digest if in_place else None)

        removed, digest = until_saved(stripped)
    report = {"model": destination, "rows_removed": removed, "rows_inside": 0, "digest": digest}

    def show() -> None:
        what = f"Removed {removed:,} rows from" if removed else "There were no rows in"
        terminal.line(f"{what} {called(model)}; model written to {called(destination)}")

    terminal.result(report, show)
