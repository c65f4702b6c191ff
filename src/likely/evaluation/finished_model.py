"""A finished model under evaluation: rows that it has learned from, and settings to learn it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likely.engines.planning import AUTO
from likely.engines.targets import EACH
from likely.evaluation.evaluation import Overlap
from likely.model.model import Model
from likely.sources.date_parts import parts_of
from likely.tally import Tally

MOST_REPEATED = 0.9  # share of repeated training rows above which a common row is no evidence of overlap


def overlap(model: Model, seen: Tally | None) -> Overlap:
    """How many rows were learned from: all, where the tallies are equal; else estimated from the model's row sample."""
    if seen is None or model.schema.target.name != seen.schema.target.name:
        return Overlap(0, 0)
    rows = seen.rows
    if model.frozen and model.calibration:  # its numbers are rounded
        seen = seen.without_rows(model.calibration.edges)
    if model.tally.counted_the_same(seen):
        return Overlap(rows, rows)
    if model.tally.sample is None:
        return Overlap(0, 0)
    common, checked, repeated = model.tally.in_common(seen)
    # Where rows repeat, so many are common by chance (Good and Turing): only more than that is evidence.
    chance = repeated * checked + 3.0 * np.sqrt(repeated * (1.0 - repeated) * checked)
    return Overlap(round(common) if common > chance else 0, round(checked) if repeated < MOST_REPEATED else 0)


def settings_of(model: Model) -> dict[str, Any]:
    """Settings of `learn` that give a model like this one."""
    # Of a model that chose its families, only those that the user named are given again.
    chosen = model.tally.sample is not None or model.frozen
    asked = [b for b in model.blocks if not chosen or _asked_for(model, b.columns)]
    families = {b.columns if len(b.columns) > 1 else b.columns[0]: b.family for b in asked}
    smoothing = dict(model.prior.columns) | {"*": model.prior.default}
    ignore = [name for name, _ in model.schema.ignored]
    return {
        "families": families,
        "smoothing": smoothing,
        "class_prior": model.prior.classes,
        "ignore": ignore,
        "weights": model.weights,
        "missing": model.missing,
        "dependence": model.dependence,
        "average": model.average,
        "target_bins": model.target_edges or EACH,
        "date_parts": _date_parts(model),
    }


def _date_parts(model: Model) -> Any:
    """The date parts that the user named; otherwise they are chosen again in every fold."""
    names = list(parts_of(model.schema.columns))
    return names if all(_asked_for(model, [name]) for name in names) else AUTO


def _asked_for(model: Model, columns: Sequence[str]) -> bool:
    return any(model.schema.by_name[name].asked_for for name in columns)
