"""Commands that compare models by their marginal likelihood, draw rows from them, and check them against a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from likely.cli import _inputs as inputs
from likely.cli import _options as options
from likely.cli import _outputs as outputs
from likely.cli import _writers as writers
from likely.cli._options import FILE, excel_option, json_option, missing_option, reading_options
from likely.cli._terminal import Terminal, standard_output, to_json
from likely.errors import UsageError


@click.command("compare-models", short_help="Compare models of the same rows by marginal likelihood.")
@click.argument("models", nargs=-1, required=True, type=FILE, metavar="MODEL MODEL...")
@json_option
@click.pass_obj
def compare_models(terminal: Terminal, /, models: Sequence[str]) -> None:
    """Compare plain models of the same rows: log P(data), Bayes factors, posterior probabilities and BIC.

    The models may differ in families, priors or columns. Learn them with --plain or --smoothing: a calibrated model has no
    marginal likelihood.
    """
    from likely.learning.load import load_model
    from likely.model.evidence import compare_models as run

    if len(models) < 2 or len(set(models)) < len(models):
        raise UsageError("name two or more different model files")
    found = run(*(load_model(path) for path in models), names=models)

    def show() -> None:
        head = ["model", "log P(data)", "log Bayes factor", "probability", "BIC"]
        terminal.table(head, [list(row.values()) for row in found.to_dict()["models"]])
        terminal.line(found.verdict)

    terminal.result(found.to_dict() | {"best": found.best, "verdict": found.verdict}, show)


@click.command(short_help="Draw rows from a model.")
@click.argument("model", type=FILE)
@click.option("-n", "rows", type=click.IntRange(min=1), default=100, show_default=True, help="How many rows.")
@click.option("--class", "label", metavar="LABEL", help="Draw rows of this class only.")
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the draw.")
@click.option(
    "-o", "--output", type=FILE, default="-", metavar="OUT",
    help="File to write the rows to: .csv, .tsv, .jsonl or .parquet; by default CSV on standard output (-).",
)  # fmt: skip
@excel_option
@json_option
@click.pass_obj
def sample(
    terminal: Terminal, /, model: str, rows: int, label: str | None, seed: int, output: str, excel_safe: bool
) -> None:
    """Draw rows from MODEL: a class, then every column from its class-conditional distribution.

    A calibrated model draws from the distributions before calibration, where columns are independent given the class.
    """
    from likely.learning.load import load_model

    writers.format_of(output, excel_safe)
    outputs.check({"-o": output}, [model])
    with inputs.as_file(model, terminal) as path:
        known = load_model(path)
    wanted = None if label is None else known.schema.target.canonical(label)
    table = known.sample(rows, seed, label=wanted)
    if output == "-" and terminal.json:
        standard_output().write(to_json({"rows": rows, "columns": table}) + "\n")
        return
    with writers.writer(output, excel_safe=excel_safe) as out:
        out.write(dict(table))
    if output != "-":
        report = {"output": output, "rows": rows, "seed": seed}
        terminal.result(report, lambda: terminal.line(f"{rows:,} rows written to {output}"))


@click.command(short_help="Check which columns a model can reproduce.")
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@click.option("--replicates", type=click.IntRange(min=20), default=200, show_default=True, metavar="N",
              help="Number of tables drawn from the model.")  # fmt: skip
@click.option("--prior", is_flag=True, help="Draw the parameters from the prior instead of the posterior.")
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the draws.")
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Picture to write: .svg, .png, .pdf, or .json with the statistics; - is standard output, as SVG.",
)
@missing_option
@reading_options
@json_option
@click.pass_obj
def check(
    terminal: Terminal, /, model: str, data: str, replicates: int, prior: bool, seed: int, output: str | None, **given: Any
) -> None:
    """Check MODEL against DATA: list the statistics that tables drawn from the model do not reproduce.

    For every column and class the mean, deviation, skewness, share of zeros or of the most frequent value, and for every
    pair of columns their association within the class, are compared with those of tables drawn from the model (posterior
    predictive checks). A statistic is listed where it lies so far out that a true model would show any such statistic with
    a probability of 5 %.
    """
    from likely.evaluation.drawable import check_ending
    from likely.evaluation.predictive_check import predictive_check
    from likely.learning.load import load_model

    if output is not None:
        outputs.check_picture(output, data, terminal, check_ending)
        outputs.check({"-o": output}, [model])
    with inputs.as_file(model, terminal) as model_path, inputs.as_file(data, terminal) as path:
        known = load_model(model_path)
        source, reading = inputs.opened(path, known.reading, options.how_read(given))
        found = predictive_check(known, source, replicates=replicates, prior=prior, seed=seed)
        terminal.list_rejects(reading.rejects)
    writers.write_picture(found, output)

    def show() -> None:
        terminal.line(str(found))
        if output and output != "-":
            terminal.line(f"Picture written to {output}")

    terminal.result(found.to_dict(), show)
