"""How much each column tells of the class: mutual information, the probability of its arc, and what its loss would cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.families import Bernoulli, Categorical, Joint, Poisson
from likely.families.forms import Line, Parabola, Steps
from likely.families.predictive import log_gamma
from likely.families.statistics import Scatter
from likely.model import Model
from likely.selecting import LeftOut
from likely.sources import open_source

Array = NDArray[np.float64]
POINTS, REACH = 801, 9.0  # a bell curve is integrated over so many points, so many deviations to either side
MOST_EVENTS = 100_000


def importance(model: Model, data: Any = None, *, weights: str | None = None) -> list[dict[str, Any]]:
    """For every block of columns, what it tells of the class, read off the tally.

    `mutual_information` is in nats, between the block alone and the class: of tables from the counts as they are, of
    Gaussian and Poisson columns by integration over the fitted curves; None for other families. `arc_probability` is how
    probable it is that the block depends on the class at all. With the rows that were learned from as `data`,
    `log_loss_rise` is how much the leave-one-out log loss of the whole model rises when the block is left out; None where
    a row cannot be left out in closed form. A calibrated model knows that from its own sample, and how far it believes
    each block (`weight`); what columns say together is silent without each of them.
    """
    fitted = model.calibration
    found = [
        {
            "column": block.name,
            "mutual_information": mutual_information(model, i),
            "arc_probability": model.arc_probability[block.name],
        }
        | ({"weight": fitted.weights.get(block.name), "log_loss_rise": fitted.gains.get(block.name)} if fitted else {})
        for i, block in enumerate(model.blocks)
    ]
    if data is None or fitted:
        return found
    rises = _rises(model, data, model.weights if weights is None else weights)
    return [entry | {"log_loss_rise": rise} for entry, rise in zip(found, rises, strict=True)]


def mutual_information(model: Model, i: int) -> float | None:
    """How many nats block i alone tells of the class on average; None where its family has no sum or integral for it."""
    block, statistic = model.blocks[i], model.tally.statistics[i]
    counted: Any = statistic
    if isinstance(block.family, Categorical | Bernoulli):
        return of_table(counted.seen)
    if isinstance(block.family, Joint) and isinstance(statistic, Scatter) and not statistic.mean.shape[-1]:
        return of_table(statistic.n.reshape(len(model.classes), -1))
    form = model.plain_parameters[i].form
    if isinstance(form, Steps):
        return _of_bins(form, counted.cut(form.edges), model.tally.classes)
    if isinstance(form, Parabola):
        return _of_curves(form, statistic.weight())
    if isinstance(block.family, Poisson) and isinstance(form, Line):
        return _of_rates(np.exp(form.slope[0]), counted.seen[:, 0])
    return None


def of_table(seen: Array) -> float:
    """Σ p(c,v) log p(c,v) / p(c) p(v), from a table of counts."""
    whole = seen.sum()
    if not whole > 0:
        return 0.0
    expected = seen.sum(1, keepdims=True) * seen.sum(0, keepdims=True) / whole
    cells = seen > 0
    return max(float((seen[cells] * np.log(seen[cells] / expected[cells])).sum() / whole), 0.0)


def _of_bins(form: Steps, seen: Array, classes: Array) -> float:
    """Σ p(b) Σ p(c|b) log p(c|b) / p(c), bins lending to each other as the evidence has it."""
    share = _shares(classes)
    said = form.table[: len(seen)]
    grown = share * np.exp(said - said.max(1, keepdims=True))
    posterior = grown / grown.sum(1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(posterior > 0, posterior * np.log(posterior / share), 0.0).sum(1)
    return max(float(_shares(seen.sum(1)) @ each), 0.0)


def _of_curves(form: Parabola, seen: Array) -> float:
    """Σ p(c) ∫ p(x|c) log p(x|c) / p(x) dx, each class's curve integrated where it lies."""
    share = _shares(seen)
    deviation = np.sqrt(-0.5 / form.curve)
    z = np.linspace(-REACH, REACH, POINTS)
    density = np.exp(-z * z / 2)
    density /= density.sum()
    total = 0.0
    for c in np.flatnonzero(share > 0):
        x = form.mean[c] + deviation[c] * z
        with np.errstate(over="ignore", under="ignore"):
            logs = form.peak + form.curve * (x[:, None] - form.mean) ** 2
        total += share[c] * float(density @ (logs[:, c] - _log_mean(logs, share)))
    return max(total, 0.0)


def _of_rates(rates: Array, seen: Array) -> float | None:
    """The same for Poisson columns, summed over the numbers of events that can occur at all."""
    share = _shares(seen)
    most = rates.max() + 12 * np.sqrt(rates.max()) + 20
    if not most < MOST_EVENTS:
        return None
    x = np.arange(int(most) + 1.0)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(x > 0, x * np.log(rates), 0.0) - rates - log_gamma(x + 1)
        terms = np.exp(logs) * np.where(np.isneginf(logs), 0.0, logs - _log_mean(logs, share)[:, None])
    return max(float(share @ np.where(share > 0, np.nan_to_num(terms), 0.0).sum(0)), 0.0)


def _shares(seen: Array) -> Array:
    return seen / seen.sum() if seen.sum() > 0 else np.full(len(seen), 1 / max(len(seen), 1))


def _log_mean(logs: Array, share: Array) -> Array:
    """The log of the weighted mean of what all classes say."""
    top = logs.max(1, keepdims=True)
    return np.asarray(top[:, 0] + np.log(np.exp(logs - top) @ share))


def _rises(model: Model, data: Any, weights: str | None) -> list[float | None]:
    """How much the leave-one-out log loss rises without each block."""
    source = model.aimed(open_source(data, model.reading), model.schema.target.name)
    kinds = {column.name: column.kind for column in model.schema.columns} | {model.schema.target.name: "category"}
    try:
        left = LeftOut.of(model, source.batches(kinds), weights)
    except UsageError:
        return [None] * len(model.blocks)
    whole = left.log_prior + sum(left.terms)
    with_all = left.log_loss(whole)
    return [left.log_loss(whole - term) - with_all for term in left.terms]
