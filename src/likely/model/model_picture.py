"""Notebook display of a model: its classes and columns, and the nomogram of a class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likely.errors import UsageError, did_you_mean
from likely.model.effects import Effect, contrasts, effects
from likely.plots.nomogram import Nomogram, Scale, nomogram_svg
from likely.plots.svg import Svg

if TYPE_CHECKING:
    from likely.model.model import Model

MOST_LEVELS = 12  # of a number in the nomogram


def described(model: Model) -> dict[str, Any]:
    """Target, classes and columns as plain data."""
    found = effects(model)
    classes = zip(model.classes, model.tally.classes, model.class_prior, strict=True)
    weights = model.calibration.weights if model.calibration else {}
    return {
        "target": model.schema.target.name, "rows": model.tally.rows,
        "classes": [{"class": str(label), "rows": float(n), "prior": float(p)} for label, n, p in classes],
        "columns": [
            {"column": b.name, "kind": model.schema.by_name[b.columns[0]].kind, "family": b.family.name,
             "weight": weights.get(b.name), "mean evidence": found[b.name].span if b.name in found else None}
            for b in model.blocks
        ],
    }  # fmt: skip


def nomogram(model: Model, label: Any, top: int) -> Svg:
    """The nomogram of one class, as a picture."""
    return nomogram_svg(nomogram_of(model, label, top))


def nomogram_of(model: Model, label: Any, top: int) -> Nomogram:
    """The nomogram of one class: the scales of the columns with the most evidence, and the prior log-odds."""
    names = [str(each) for each in model.classes]
    if label is not None and label not in model.classes:
        raise UsageError(f"{label!r} is no class{did_you_mean(str(label), names)}: choose from {names[:20]}")
    two = len(names) == 2
    c = model.classes.index(label) if label is not None else int(two)
    found = sorted(effects(model).values(), key=lambda effect: -effect.span)[:top]
    if not found:
        raise UsageError("there is no column with values of its own: a nomogram is of columns that are modelled alone")
    scorer = model.scorer
    start = scorer.log_prior if scorer.bias is None else scorer.log_prior + scorer.bias
    subtitle = f"weight of evidence of each value, in nats; prior {100 * model.class_prior[c]:.1f} %"
    prior = float(start[c] - start[1 - c]) if two else 0.0
    scales = [_nomogram_scale(effect, c) for effect in found]
    return Nomogram(f"{model.schema.target.name} = {names[c]}", subtitle, scales, prior, probabilities=two)


def _nomogram_scale(effect: Effect, c: int) -> Scale:
    """One line: all values, of a number some of them."""
    weights = contrasts(effect.terms, effect.log_prior)[:, c].tolist()
    places = list(range(len(weights)))
    labels = list(effect.labels)
    if effect.kind == "number" and len(weights) > MOST_LEVELS:
        step = (len(weights) - 1) / (MOST_LEVELS - 1)
        ends = {weights.index(min(weights)), weights.index(max(weights))}
        places = sorted({*(round(i * step) for i in range(MOST_LEVELS)), *ends})
        labels = [f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}" for value in effect.values]
    return Scale(effect.column, [labels[i] for i in places], [weights[i] for i in places])
