"""Predictive checks: statistics of a table beside those of tables drawn from a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from likely.bayes.special import normal_quantile
from likely.calibration.averaging import at_posterior_mean
from likely.errors import DataError, UsageError
from likely.evaluation._check_statistics import (
    Table,
    column_statistics,
    labelled_table,
    pair_statistics,
    table_of_cells,
)
from likely.evaluation.drawable import Drawable
from likely.families import FittedBlock
from likely.model.model import Model
from likely.plots import charts
from likely.sources import RowKeywords

Array = NDArray[np.float64]
CHANCE = 0.05  # probability that a true model is reported to miss any statistic at all
MOST_ROWS, MOST_ROWS_OF_TEXT = 5_000, 300
SHOWN = 25


@dataclass(frozen=True)
class CheckedStatistic:
    """One statistic of one class: observed, and in the tables drawn from the model.

    Attributes
    ----------
    statistic : str
        Which statistic.
    columns : tuple of str
        The columns that it is of.
    label : class
        The class.
    observed : float
        Its value in the data.
    expected : float
        Its mean over the tables drawn.
    deviation : float
        Its standard deviation over the tables drawn.
    p : float
        Two-sided p-value: how often drawn tables lie as far out.
    missed : bool
        Whether the model does not reproduce it.
    """

    statistic: str
    columns: tuple[str, ...]
    label: Any
    observed: float
    expected: float
    deviation: float
    p: float
    missed: bool

    @property
    def distance(self) -> float:
        """Distance of the observed value from the expected one, in standard deviations of the tables drawn."""
        apart = self.observed - self.expected
        return apart / self.deviation if self.deviation > 0 else (0.0 if abs(apart) < 1e-12 else math.copysign(math.inf, apart))

    def __str__(self) -> str:
        return (
            f"{self.statistic} of {' and '.join(self.columns)} in {self.label}: {self.observed:.4g} in the data, "
            f"{self.expected:.4g} ± {self.deviation:.2g} in the model"
        )


@dataclass(frozen=True)
class PredictiveCheck(Drawable):
    """Which statistics of a table the model reproduces; prints those it does not.

    Attributes
    ----------
    statistics : tuple of CheckedStatistic
        All statistics: observed, expected, deviation, p and whether it is missed.
    rows : int
        Number of rows checked.
    replicates : int
        Number of tables drawn.
    prior : bool
        Whether parameters were drawn from the prior.
    plugged_in : tuple of str
        Columns whose parameters were at their estimates.
    left_out : tuple of pairs
        Columns that could not be drawn, each with the reason.
    """

    statistics: tuple[CheckedStatistic, ...]
    rows: int
    replicates: int
    prior: bool
    plugged_in: tuple[str, ...] = ()  # columns whose parameters are at their estimates in all tables drawn
    left_out: tuple[tuple[str, str], ...] = ()  # columns that could not be drawn, and why

    @property
    def missed(self) -> tuple[CheckedStatistic, ...]:
        """The statistics that the model does not reproduce, the farthest first."""
        return tuple(sorted((s for s in self.statistics if s.missed), key=lambda s: -abs(s.distance)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with a statistic of their own, or of a pair, that the model does not reproduce."""
        return tuple(dict.fromkeys(name for each in self.missed for name in each.columns))

    def to_dict(self) -> dict[str, Any]:
        """The check as plain data."""
        return {
            "check": "prior predictive" if self.prior else "posterior predictive",
            "rows": self.rows, "replicates": self.replicates, "columns_missed": list(self.columns),
            "statistics": [
                {
                    "statistic": s.statistic, "columns": list(s.columns), "class": s.label, "observed": _finite(s.observed),
                    "expected": _finite(s.expected), "deviation": _finite(s.deviation), "distance": _finite(s.distance),
                    "p": s.p, "missed": s.missed,
                }
                for s in self.statistics
            ],
            "at_the_estimates": list(self.plugged_in), "left_out": [list(pair) for pair in self.left_out],
        }  # fmt: skip

    def __str__(self) -> str:
        kind = "prior" if self.prior else "posterior"
        lines = [f"{self.rows:,} rows against {self.replicates} tables drawn from the {kind} predictive distribution"]
        missed = self.missed
        if not missed:
            lines.append(f"the model reproduces all {len(self.statistics):,} statistics")
        else:
            lines.append(f"{len(missed):,} of {len(self.statistics):,} statistics are not reproduced:")
            lines += [f"  {each} (p = {each.p:.3g})" for each in missed[:SHOWN]]
            if len(missed) > SHOWN:
                lines.append(f"  … and {len(missed) - SHOWN:,} more")
        if self.plugged_in:
            lines.append(f"at their estimates, not drawn: {', '.join(self.plugged_in)}")
        lines += [f"left out: {name} ({why})" for name, why in self.left_out]
        return "\n".join(lines)

    def svg(self) -> str:
        """For each column how far its most distant statistic is from the model: its own, and those of pairs it is in."""
        names = dict.fromkeys(name for s in self.statistics for name in s.columns)
        bad = set(self.columns)

        def farthest(name: str, of_pairs: bool) -> float:
            found = [abs(s.distance) for s in self.statistics if name in s.columns and (len(s.columns) > 1) == of_pairs]
            return max(found, default=math.nan)

        order = sorted(names, key=lambda name: -max(farthest(name, False), np.nan_to_num(farthest(name, True))))[:SHOWN]
        labels = {False: "own statistics", True: "association with others"}
        panels = [
            charts.Dots(text, [charts.Dot(name, farthest(name, pairs), math.nan, name in bad) for name in order], whole=True)
            for pairs, text in labels.items()
        ]
        kind = "Prior" if self.prior else "Posterior"
        subtitle = f"distance from the model in standard deviations of {self.replicates} drawn tables; bold: not reproduced"
        return charts.dots_svg(f"{kind} predictive check", subtitle, panels)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def predictive_check(
    model: Model, data: Any, *, replicates: int = 200, prior: bool = False, seed: Any = 0,
    **how: Unpack[RowKeywords],
) -> PredictiveCheck:
    """Compare statistics of a table with those of tables drawn from the model, and list those that it cannot reproduce.

    For each column and class: mean, deviation, skewness and share of zeros, or share of the most frequent value; of texts
    those of the number of known words; for each pair of columns the association within the class. Drawn tables have the
    classes and the gaps of `data`, and parameters drawn from their posterior (or prior) where it has a closed form.

    Parameters
    ----------
    model : Model
        Any model; a calibrated one is checked as what it is built on, independent columns given the class.
    data : table
        Rows with labels: those learned from, or others. Of many rows a random sample is taken.
    replicates : int
        Number of tables drawn.
    prior : bool
        Draw parameters from the prior, which must be proper, instead of the posterior.
    seed : int
        Makes the draws repeatable.
    **how
        How a file is read, as for `learn`.

    Returns
    -------
    PredictiveCheck
        A statistic is missed where a true model would show any that is so far out with a probability of 5 %.
    """
    if isinstance(replicates, bool) or not isinstance(replicates, int) or replicates < 20:
        raise UsageError(f"replicates={replicates!r}: pass a whole number, 20 or more")
    rng = np.random.default_rng(seed)
    text = any(column.kind == "text" for column in model.schema.columns)
    table = labelled_table(model, data, how, MOST_ROWS_OF_TEXT if text else MOST_ROWS, rng)
    if not table.rows:
        raise DataError("no row has a label that the model knows: nothing can be checked")
    drawers, plugged_in, left_out = _drawers(model, prior, replicates, rng)
    statistics = _statistics(table.only([name for each in drawers for name in each.names]), drawers, replicates, rng)
    return PredictiveCheck(statistics, table.rows, replicates, prior, tuple(plugged_in), tuple(left_out))


def _statistics(
    table: Table, drawers: Sequence[_Drawer], replicates: int, rng: np.random.Generator
) -> tuple[CheckedStatistic, ...]:
    observed, pairs, of_all = _observed(table)
    drawn = np.empty((replicates, len(observed)))
    for r in range(replicates):
        cells: dict[str, Any] = {}
        for each in drawers:
            cells |= each.draw(r, table.classes, rng)
        again = table_of_cells(table, cells)
        drawn[r] = [*column_statistics(again).values(), *pair_statistics(again, pairs).values()]
    return _judged(observed, drawn, of_all, table.labels)


def _observed(table: Table) -> tuple[dict[tuple[Any, ...], float], list[tuple[Any, ...]], int]:
    """The statistics of the table, the pairs of columns among them, and how many there would be with all pairs."""
    alone, pairs = column_statistics(table), pair_statistics(table)
    strongest = sorted(pairs, key=lambda key: -abs(pairs[key]))[: table.most_pairs]
    return alone | {key: pairs[key] for key in strongest}, strongest, len(alone) + len(pairs)


def _judged(
    observed: dict[tuple[Any, ...], float], drawn: Array, of_all: int, labels: Sequence[Any]
) -> tuple[CheckedStatistic, ...]:
    far = normal_quantile(1.0 - CHANCE / (2 * max(of_all, 1)))
    found = []
    for j, ((name, columns, c), value) in enumerate(observed.items()):
        here = drawn[:, j]
        below, above = ((1 + int(side.sum())) / (len(here) + 1) for side in (here <= value, here >= value))
        p = min(1.0, 2 * min(below, above))
        each = CheckedStatistic(name, columns, labels[c], value, float(here.mean()), float(here.std()), p, False)
        found.append(replace(each, missed=abs(each.distance) > far and p <= CHANCE))
    return tuple(found)


@dataclass(frozen=True)
class _Drawer:
    """Draws the cells of one block, with other parameters for every table if it has posterior draws of them."""

    family: Any
    block: FittedBlock
    draws: tuple[dict[Any, Array], ...] = ()  # one for each class

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.block.columns)

    def draw(self, r: int, classes: NDArray[np.int64], rng: np.random.Generator) -> dict[str, Any]:
        block = self.block
        if self.draws:
            block = self.family.with_parameters(block, [{name: x[r] for name, x in each.items()} for each in self.draws])
        cells: dict[str, Any] = self.family.sample(block, classes, rng)
        return cells


def _drawers(
    model: Model, prior: bool, replicates: int, rng: np.random.Generator
) -> tuple[list[_Drawer], list[str], list[tuple[str, str]]]:
    drawers, plugged_in, left_out = [], [], []
    for i, block in enumerate(model.blocks):
        fitted = at_posterior_mean(model, i)
        weighted = fitted.columns[0].kind == "text" and block.family.not_generative(fitted.prior)
        try:
            if weighted:
                raise UsageError(f"it {weighted}")
            if block.family.columns_have_roles and len(block.columns) > 1:
                raise UsageError(f"the model does not describe its trials {block.columns[1]!r}")
            if prior:
                fitted = replace(fitted, statistic=fitted.statistic * 0.0)
            drawers.append(_drawer(block.family, fitted, replicates, rng, must_draw=prior))
        except UsageError as error:
            left_out.append((block.name, str(error)))
            continue
        if not drawers[-1].draws:
            plugged_in.append(block.name)
    return drawers, plugged_in, left_out


def _drawer(family: Any, fitted: FittedBlock, replicates: int, rng: np.random.Generator, *, must_draw: bool) -> _Drawer:
    """Drawer with parameters from their posterior; at the estimates if there is none, unless draws are required."""
    one = np.arange(fitted.classes)
    try:
        if fitted.prior.chosen:
            family.cannot("have a posterior of parameters whose pseudocounts were chosen by leave-one-out")
        draws = tuple(each.draw(replicates, rng) for each in family.parameter_posteriors(fitted))
        made = _Drawer(family, fitted, draws)
        made.draw(0, one, rng)
    except UsageError:
        if must_draw:
            raise
        made = _Drawer(family, fitted)
        made.draw(0, one, rng)
    return made
