"""Model card and warnings: training data, settings and limits of the model."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from likely.evaluation.evaluation import Evaluation
from likely.model.effects import Effect
from likely.model.model import Model
from likely.report._scored_rows import JudgedRows
from likely.schema import look_alikes

FEW = 20  # rows of a class below which its parameters are uncertain
MUCH = 0.1  # difference of missing shares that is worth a warning
POOR = 0.05  # calibration error that is worth a warning, where chance alone does not explain half of it


def card(model: Model, scored: JudgedRows | None, shown: int) -> dict[str, Any]:
    """Data, counts, date, versions, and whether rows of the table are inside the model file or this report."""
    count = model.parameter_count
    fitted = model.calibration
    return {
        "target": model.schema.target.name, "classes": len(model.classes), "columns": len(model.schema.columns),
        "rows_learned_from": model.tally.rows, "weight_learned_from": float(model.tally.classes.sum()),
        "columns_left_out": [{"name": name, "reason": reason} for name, reason in model.schema.ignored],
        "kind": "calibrated" if fitted or model.stages else "plain",
        "interactions": len(fitted.interactions) if fitted else 0,
        "calibration_is_stale": model.stale, "free_parameters": count.free, "table_entries": count.table_entries,
        "rows_inside_the_model": model.tally.rows_kept, "rows_shown_in_this_report": shown,
        "data": file_name(scored.source.label) if scored else None, "data_rows": scored.rows if scored else None,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }  # fmt: skip


def file_name(label: str) -> str:
    """The name of the data without its folders: a report is passed on."""
    return label.strip("'\"").replace("\\", "/").rsplit("/", 1)[-1] or "data"


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that a report depends on."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": ".".join(map(str, sys.version_info[:3])), "numpy": np.__version__}
    try:
        found["likely"] = version("likely")
    except PackageNotFoundError:
        found["likely"] = "not installed"
    return found


def warnings_of(
    model: Model, effects: Mapping[str, Effect], scored: JudgedRows | None, evaluation: Evaluation | None
) -> list[str]:
    """Warnings for the reader of the report."""
    found = []
    if evaluation is not None:
        if evaluation.learned_from:
            found.append(f"{evaluation.title}. Give rows that the model has not seen.")
        if evaluation.accuracy <= evaluation.baseline["accuracy"]:
            found.append("The model is not more accurate than always predicting the most frequent class.")
        if evaluation.calibration_error > max(POOR, 2 * evaluation.calibration_error_by_chance):
            found.append(f"The probabilities are off by {100 * evaluation.calibration_error:.1f} points on average.")
        if evaluation.total.unknown:
            found.append(
                f"{evaluation.total.unknown:,.0f} rows have a class that the model does not know; they count as errors."
            )
    if model.stale:
        found.append("Rows were counted since the calibration was fitted: recalibrate the model.")
    few = [str(c) for c, n in zip(model.classes, model.tally.classes, strict=True) if n < FEW]
    if few:
        found.append(f"Fewer than {FEW} rows were learned from: {', '.join(few[:10])}{' …' if len(few) > 10 else ''}.")
    found += _domain_warnings(model)
    if scored is not None:
        found += _data_warnings(model, effects, scored)
    return found


def _domain_warnings(model: Model) -> list[str]:
    found = []
    for column in (model.schema.target, *model.schema.columns):
        for alike in look_alikes(column.values)[:2]:
            names = " and ".join(map(repr, alike[:3]))
            found.append(f"Column {column.name}: {names} differ only by case or blanks and count as different values.")
    return found[:6]


def _data_warnings(model: Model, effects: Mapping[str, Effect], scored: JudgedRows) -> list[str]:
    found: list[str] = []
    if not scored.labelled:
        found.append(f"The data have no column {scored.target!r}: predictions are shown, but cannot be evaluated.")
    for name, check in scored.checks.items():
        if check.unseen:
            listed: Sequence[str] = list(check.examples)[:3]
            share = 100 * check.unseen / max(scored.rows, 1)
            found.append(f"Column {name}: {check.unseen:,} rows ({share:.1f} %) have a value that was never learned, such as "
                         f"{', '.join(map(repr, listed))}.")  # fmt: skip
        before = missing_share(model, effects, name)
        now = check.missing / max(scored.rows, 1)
        if before is not None and abs(now - before) > MUCH:
            found.append(
                f"Column {name}: {100 * now:.1f} % of the cells are missing here, {100 * before:.1f} % in learning."
            )
    return found


def missing_share(model: Model, effects: Mapping[str, Effect], name: str) -> float | None:
    """Share of the rows learned from without a cell in a column; None where it is not known."""
    effect = effects.get(name)
    whole = float(model.tally.classes.sum())
    return None if effect is None or whole <= 0 else float(effect.missing_counts.sum()) / whole
