"""Effect of each column: its evidence for each class, value by value or bin by bin, with counts and standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.families.base import log
from likely.families.likelihood_form import ScoringLoop
from likely.kernels.parallel import cached_property
from likely.schema import CATEGORY, TEXT

if TYPE_CHECKING:
    from likely.model.model import Model

Array = NDArray[np.float64]
MOST_VALUES = 40  # of a categorical column, the most frequent ones
POINTS = 61  # at which a density is evaluated
LOWEST = -30.0  # log-likelihoods below are drawn here
HALF = 0.5  # added to counts in standard errors, which are then finite


@dataclass(frozen=True, eq=False)
class Effect:
    """Evidence of one column for each class.

    Attributes
    ----------
    column : str
        The column.
    kind : str
        "category" or "number".
    family : str
        Name of its family.
    labels : tuple of str
        Values, or bins or points of a number.
    values : tuple
        The same as cells of a row.
    low, high : array or None
        Lower and upper edges of the bins of a number; None for categories and densities.
    terms : array
        Log-likelihood term, levels × classes, as rows are scored by it.
    errors : array
        Standard errors of the terms, levels × classes.
    counts : array or None
        Weight of the rows learned from, levels × classes; None where the family counts no values.
    shares : array
        Probability of each value in each class, or density at each point, before calibration.
    missing_terms : array
        Term of a missing cell, by class.
    missing_counts : array
        Weight of the rows with a missing cell, by class.
    log_prior : array
        Log prior of the classes.
    others : int
        Number of values that are not listed.
    """

    column: str
    kind: str
    family: str
    labels: tuple[str, ...]
    values: tuple[Any, ...]
    low: Array | None
    high: Array | None
    terms: Array
    errors: Array
    counts: Array | None
    shares: Array
    missing_terms: Array
    missing_counts: Array
    log_prior: Array
    others: int = 0

    @cached_property
    def weights(self) -> Array:
        """Weight of evidence of each level for each class against the others, in nats."""
        return contrasts(self.terms, self.log_prior)

    @cached_property
    def weight_errors(self) -> Array:
        """Standard errors of the weights of evidence."""
        return contrast_errors(self.terms, self.errors, self.log_prior)

    @cached_property
    def missing_weights(self) -> Array:
        """Weight of evidence of a missing cell."""
        return np.asarray(contrasts(self.missing_terms[None], self.log_prior)[0])

    @cached_property
    def span(self) -> float:
        """Mean absolute weight of evidence over the rows learned from; over the levels where there are no counts."""
        size = np.abs(self.weights).max(1)
        mass = self.counts.sum(1) if self.counts is not None else self.shares @ np.exp(self.log_prior)
        return float((size * mass).sum() / mass.sum()) if mass.sum() > 0 else 0.0


def contrasts(terms: Array, log_prior: Array) -> Array:
    """Each class against the mean of the others, weighted by their prior: levels × classes, in nats."""
    top = terms.max(1, keepdims=True).clip(min=LOWEST)
    bounded = np.maximum(np.nan_to_num(terms, neginf=LOWEST), LOWEST + top)
    share = np.exp(log_prior)
    others = _of_the_others(share[None])[0]
    there = np.isfinite(others) & (others > 0)
    mean = _of_the_others(np.exp(bounded - top) * share) / np.where(there, others, 1.0)
    return np.asarray(np.where(there, bounded - top - log(mean), 0.0))


def contrast_errors(terms: Array, errors: Array, log_prior: Array) -> Array:
    """Standard errors of the contrasts, by the delta method."""
    joint = np.maximum(terms, LOWEST) + log_prior
    share = np.exp(joint - joint.max(1, keepdims=True))
    whole = _of_the_others(share)
    spread = _of_the_others(share**2 * errors**2) / np.where(whole > 0, whole, 1.0) ** 2
    return np.asarray(np.sqrt(errors**2 + spread))


def _of_the_others(parts: Array) -> Array:
    """For each class the sum over all others, added from both ends: nothing is subtracted, so no digits are lost."""
    before, after = np.zeros_like(parts), np.zeros_like(parts)
    before[:, 1:] = np.cumsum(parts[:, :-1], 1)
    after[:, :-1] = np.cumsum(parts[:, :0:-1], 1)[:, ::-1]
    return before + after


def effects(model: Model) -> dict[str, Effect]:
    """The effect of every column that is modelled alone, texts excepted.

    Parameters
    ----------
    model : Model
        The model.

    Returns
    -------
    dict
        Column → Effect, in the order of the model.
    """
    found = {}
    for i, block in enumerate(model.blocks):
        column = model.schema.by_name[block.columns[0]]
        if len(block.columns) == 1 and column.kind != TEXT and (effect := _effect(model, i)) is not None:
            found[block.name] = effect
    return found


def _effect(model: Model, i: int) -> Effect | None:
    form: Any = model.block_parameters[i].likelihood
    plain: Any = model.plain_parameters[i].likelihood
    if form.loop is ScoringLoop.LOOKUP:
        return _table_effect(model, i, form)
    points = _points(model.parameters[model.blocks[i].name], whole=hasattr(plain, "base"))
    return None if points is None else _curve_effect(model, i, points)


def _table_effect(model: Model, i: int, form: Any) -> Effect:
    """Effect of values or bins, from the table that rows are scored by."""
    name = model.blocks[i].name
    column = model.schema.by_name[name]
    levels = len(form.table) - 2
    counts, shares = _counted(model, i, levels)
    edges = form.bin_edges
    low = high = None
    values: Sequence[Any] = column.values if column.kind == CATEGORY else (False, True)
    labels = [str(value) for value in values]
    if edges is not None:
        ends = _ends(np.asarray(edges), *map(float, form.extent))
        low, high = ends[:-1], ends[1:]
        labels, values = _ranges(ends), ((low + high) / 2).tolist()
    kept, others = _listed_levels(counts, levels, column.kind)
    weight = model.calibration.weights.get(name, 1.0) if model.calibration else 1.0
    whole = counts.sum(0) + HALF
    errors = abs(weight) * np.sqrt(np.maximum(1.0 / (counts + HALF) - 1.0 / whole, 0.0))
    return Effect(
        name, column.kind, model.blocks[i].family.name, tuple(labels[j] for j in kept), tuple(values[j] for j in kept),
        low, high, form.table[:levels][kept], errors[kept], counts[kept], shares[kept], form.table[-1],
        _missing(model, i), model.scorer.log_prior, others,
    )  # fmt: skip


def _counted(model: Model, i: int, levels: int) -> tuple[Array, Array]:
    """Counts and probabilities of the levels, levels × classes."""
    k = len(model.classes)
    counts, shares = np.zeros((levels, k)), np.zeros((levels, k))
    place = {label: c for c, label in enumerate(model.classes)}
    seen = [0] * k
    for row in model.parameters[model.blocks[i].name]:
        c = place[row["class"]]
        if seen[c] < levels:
            counts[seen[c], c], shares[seen[c], c] = row["count"], row["probability"]
            seen[c] += 1
    return counts, shares


def _missing(model: Model, i: int) -> Array:
    """Weight of the rows without a cell in the column, by class."""
    held = np.asarray(model.tally.statistics[i].weight())
    return np.asarray(np.maximum(model.tally.classes - held.reshape(len(model.classes), -1).sum(1), 0.0))


def _listed_levels(counts: Array, levels: int, kind: str) -> tuple[list[int], int]:
    """The levels to list: all of a number, the most frequent of a category."""
    if kind != CATEGORY or levels <= MOST_VALUES:
        return list(range(levels)), 0
    return sorted(np.argsort(-counts.sum(1), kind="stable")[:MOST_VALUES].tolist()), levels - MOST_VALUES


def _ends(edges: Array, low: float, high: float) -> Array:
    """Edges of all bins, the outer ones closed at the lowest and highest number seen."""
    step = float(np.diff(edges).mean()) if len(edges) > 1 else 1.0
    first = low if math.isfinite(low) and len(edges) and low < edges[0] else (edges[0] if len(edges) else 0.0) - step
    last = (
        high if math.isfinite(high) and len(edges) and high > edges[-1] else (edges[-1] if len(edges) else 0.0) + step
    )
    return np.array([first, *edges, last])


def _ranges(ends: Array) -> list[str]:
    last = len(ends) - 2
    if last < 1:
        return ["all numbers"] * (last + 1)
    middle = [f"{a:.6g} to {b:.6g}" for a, b in pairwise(ends[1:-1])]
    return [f"below {ends[1]:.6g}", *middle, f"{ends[last]:.6g} or more"]


def _points(rows: Sequence[dict[str, Any]], *, whole: bool) -> Array | None:
    """Numbers at which a density is shown: where its parameters put most of its mass."""
    if rows and {"mean", "deviation"} <= rows[0].keys():
        ends = [(r["mean"] - 3.2 * r["deviation"], r["mean"] + 3.2 * r["deviation"]) for r in rows]
    elif rows and "rate" in rows[0]:
        ends = [
            (max(0.0, r["rate"] - 4 * math.sqrt(r["rate"])), r["rate"] + 4 * math.sqrt(r["rate"]) + 1) for r in rows
        ]
    else:
        return None
    kept = [(a, b) for a, b in ends if math.isfinite(a) and math.isfinite(b)]
    if not kept:
        return None
    low, high = min(a for a, _ in kept), max(b for _, b in kept)
    if high <= low:
        low, high = low - 1.0, high + 1.0
    points = np.linspace(low, high, POINTS)
    return np.unique(np.round(points)) if whole else points


def _curve_effect(model: Model, i: int, points: Array) -> Effect:
    """Effect of a number with a density, at some points."""
    name = model.blocks[i].name
    terms, plain = (_at(parameters[i].likelihood, points, len(model.classes))
                    for parameters in (model.block_parameters, model.plain_parameters))  # fmt: skip
    weight = model.calibration.weights.get(name, 1.0) if model.calibration else 1.0
    errors = abs(weight) * _density_errors(model.parameters[name], points)
    with np.errstate(over="ignore"):
        shares = np.exp(np.minimum(plain, 700.0))
    labels = tuple(f"{x:.6g}" for x in points)
    missing = _at(model.block_parameters[i].likelihood, np.array([np.nan]), len(model.classes))[0]
    return Effect(
        name, model.schema.by_name[name].kind, model.blocks[i].family.name, labels, tuple(points.tolist()), None, None,
        terms, errors, None, shares, missing, _missing(model, i), model.scorer.log_prior,
    )  # fmt: skip


def _at(form: Any, points: Array, classes: int) -> Array:
    out = np.zeros((len(points), classes))
    form.add(np.zeros((len(points), 0), np.int32), points[:, None].copy(), out)
    return out


def _density_errors(rows: Sequence[dict[str, Any]], points: Array) -> Array:
    """Standard errors of log densities from those of mean, deviation or rate, by the delta method."""
    columns = []
    for row in rows:
        n = max(float(row["count"]), 1.0)
        if "rate" in row:
            columns.append(np.abs(points - row["rate"]) / math.sqrt(max(row["rate"], 1e-12) * n))
        else:
            z = (points - row["mean"]) / max(row["deviation"], 1e-300)
            columns.append(np.sqrt(z**2 / n + (z**2 - 1) ** 2 / (2 * n)))
    return np.stack(columns, 1)
