"""The command that draws a learned model: densities of a column, or the decision surface of two."""

from __future__ import annotations

import click

from likely.cli import _outputs as outputs
from likely.cli import _writers as writers
from likely.cli._inputs import as_file
from likely.cli._options import FILE, json_option
from likely.cli._terminal import Terminal, standard_output
from likely.errors import UsageError


@click.command(short_help="Draw class densities or a decision surface.")
@click.argument("model", type=FILE)
@click.argument("data", type=FILE, required=False)
@click.option("--columns", required=True, metavar="A[,B]", help="One column: its density in each class; two: the surface.")
@click.option("-o", "--output", type=FILE, default="-", show_default=True, metavar="OUT.svg", help="Picture to write.")
@click.option("--title", default="", help="Title of the picture.")
@json_option
@click.pass_obj
def draw(terminal: Terminal, model: str, data: str | None, columns: str, output: str, title: str) -> None:
    """Draw MODEL along one or two columns of numbers as SVG; DATA are the rows drawn over a decision surface.

    One column must be Gaussian (likely learn --family 'age=gaussian'). The plane of two columns is where the rows of DATA lie.
    `likely network draw` draws a plain model as a network.
    """
    from likely.learning.load import load
    from likely.report import pictures

    names = [name.strip() for name in columns.split(",")]
    if not 1 <= len(names) <= 2 or not all(names):
        raise UsageError(f"--columns {columns!r}: name one column, or two with a comma between them")
    if len(names) == 1 and data is not None:
        raise UsageError("the density of one column is drawn from the model alone: leave DATA out")
    outputs.check({"-o": output}, [model, data])
    to_stdout = outputs.stdout_is_taken(output, terminal, "picture")
    with as_file(model, terminal) as path:
        known = load(path)
        if len(names) == 1:
            svg = pictures.class_densities(known, names[0], title=title)
        else:
            svg = pictures.decision_surface(known, names[0], names[1], data, title=title)
    if to_stdout:
        standard_output().write(svg)
        return
    writers.write_page(output, svg)
    report = {"picture": output, "columns": names, "classes": [str(label) for label in known.classes]}
    terminal.result(report, lambda: terminal.line(f"Picture of {' and '.join(names)} written to {output}"))
