"""The command that estimates one distribution: maximum likelihood, MAP, posterior and predictive distribution."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from likely.cli import _inputs as inputs
from likely.cli import _options as options
from likely.cli._completion import complete_column
from likely.cli._options import FILE, json_option, missing_option, reading_options
from likely.cli._terminal import Terminal
from likely.errors import DataError, UsageError, no_column

if TYPE_CHECKING:
    from likely.families import Family
    from likely.model.estimate import Estimate
    from likely.sources import Source

NORMAL = ("mean", "strength", "shape", "scale")


@click.command(short_help="Estimate one distribution from a column.")
@click.argument("data", type=FILE)
@click.option(
    "--column",
    "columns",
    multiple=True,
    required=True,
    metavar="COLUMN",
    shell_complete=complete_column,
    help="The column of values; once for each where the family takes several (multinomial, bernoulli, binomial: k, n).",
)
@click.option("--family", default="categorical", show_default=True, metavar="FAMILY", help="The distribution, as for learn.")
@click.option(
    "--prior",
    "given_prior",
    multiple=True,
    metavar="N|VALUE=BETA|NAME=N",
    help="A pseudocount for every value (1, 1/2), the Dirichlet parameter of each VALUE, or for a Gaussian mean, strength, "
    "shape and scale of a normal-inverse-gamma prior, for a Poisson shape and rate of a gamma prior, each as NAME=N. Without "
    "it there is none.",
)
@click.option("--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True,
              help="The probability of the credible intervals.")  # fmt: skip
@click.option("--between", nargs=2, type=float, metavar="A B", help="Print P(A < X < B) of the next value too.")
@missing_option
@reading_options
@json_option
@click.pass_obj
def estimate(
    terminal: Terminal, /, data: str, columns: Sequence[str], family: str, given_prior: Sequence[str], level: float,
    between: tuple[float, float] | None, **given: Any,
) -> None:  # fmt: skip
    """Estimate the parameters of one distribution from a column of DATA.

    Prints the maximum-likelihood and MAP estimates, the posterior mean with a credible interval for each parameter, and with
    --json the posterior and the predictive distribution. Rows where a cell is missing are left out.
    """
    from likely.families import family as family_of
    from likely.model.estimate import estimate as run

    chosen = family_of(family)
    with inputs.as_file(data, terminal) as path:
        source, reading = inputs.opened(path, None, options.how_read(given))
        values, left_out = _values(source, columns, chosen.column_kind)
        terminal.list_rejects(reading.rejects)
    found = run(values, chosen, _prior(given_prior, chosen))
    report = found.to_dict(level) | {"data": data, "columns": list(columns), "missing": left_out}
    if between is not None:
        report["between"] = {"low": between[0], "high": between[1], "probability": found.probability(*between, at="predictive")}
    terminal.result(report, lambda: _show(terminal, found, report, level))


def _values(source: Source, columns: Sequence[str], kind: str | None) -> tuple[Any, int]:
    """The values of the columns without rows that miss a cell, and how many rows these were."""
    import numpy as np

    from likely.schema import CATEGORY

    known_names = [name for batch in islice(source.batches(), 1) for name in batch.names]
    for name in columns:
        if name not in known_names:
            raise no_column(source.label, name, known_names)
    numbers, values, left_out = [], [], 0
    for batch in source.batches(dict.fromkeys(columns, kind or CATEGORY)):
        if kind == CATEGORY:
            if len(columns) > 1:
                raise UsageError("a categorical distribution has one column: give --column once")
            coded = batch.coded(columns[0])
            known = coded.codes >= coded.low
            values += [coded.values[i] for i in (coded.codes[known] - coded.low).tolist()]
            left_out += int((~known).sum())
        else:
            cells = batch.numbers(list(columns), 0, batch.rows)
            known = np.asarray(~np.isnan(cells).any(1))
            numbers.append(cells[known])
            left_out += int((~known).sum())
    if kind == CATEGORY:
        _require(len(values), source, columns)
        return values, left_out
    table = np.concatenate(numbers) if numbers else np.zeros((0, len(columns)))
    _require(len(table), source, columns)
    return {name: table[:, j] for j, name in enumerate(columns)} if len(columns) > 1 else table, left_out


def _require(rows: int, source: Source, columns: Sequence[str]) -> None:
    if not rows:
        raise DataError(f"has no values to estimate from in {source.label}", column=columns[0])


def _prior(given: Sequence[str], family: Family) -> Any:
    """A pseudocount, Dirichlet parameters by value, or a gamma or normal–inverse-gamma prior."""
    from likely.priors import Dirichlet, GammaPrior, NormalInverseGamma

    plain = [text for text in given if "=" not in text]
    if not given:
        return 0.0
    if plain:
        if len(given) > 1:
            raise UsageError("--prior: give one pseudocount, or NAME=N once for each name")
        return options.number(plain[0], "--prior")
    pairs = dict(options.pair(text, "--prior", "1/2, VALUE=2, or mean=0") for text in given)
    numbers = {name: options.number(text, "--prior") for name, text in pairs.items()}
    if family.counts_rates:
        if numbers.keys() - {"shape", "rate"}:
            raise UsageError(f"--prior {list(numbers)} is not known: a Poisson rate has shape and rate")
        return GammaPrior(**numbers)
    if not family.counts_moments:  # of mean and variance the normal–inverse-gamma is the conjugate prior
        return Dirichlet(numbers)
    odd = [name for name in numbers if name not in NORMAL]
    if odd:
        raise UsageError(f"--prior {odd[0]!r} is not known: a Gaussian has {', '.join(NORMAL)}")
    return NormalInverseGamma(**numbers)


def _show(terminal: Terminal, found: Estimate, report: dict[str, Any], level: float) -> None:
    terminal.line(f"{', '.join(report['columns'])}: {found.family}, {found.n:g} values, "
                  f"log likelihood {found.log_likelihood:.6f}")  # fmt: skip
    terminal.line()
    posterior = {row["parameter"]: row for row in (report["posterior"] or {"parameters": []})["parameters"]}
    rows = []
    for name, value in found.ml.items():
        own = posterior.get(str(name))
        between = f"{own['interval'][0]:.6g} … {own['interval'][1]:.6g}" if own else ""
        rows.append([str(name), value, found.map[name], own["mean"] if own else None, between])
    terminal.table(["parameter", "ML", "MAP", "posterior mean", f"{100 * level:g} % interval"], rows)
    if report["posterior"] is None:
        terminal.line(report["no_posterior"])
    if "between" in report:
        asked = report["between"]
        terminal.line(f"P({asked['low']:g} < X < {asked['high']:g}) = {asked['probability']:.6f}")
    if report["missing"]:
        terminal.line(f"{report['missing']:,} rows miss a cell and were left out")
