"""A model as a header of JSON and arrays of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.calibration import Calibration
from likely.families.text_calibration import TextCalibration
from likely.model.model_file import to_json
from likely.model.serialization._calibration_part import calibration_out, sample_out
from likely.model.serialization.values import as_arrays
from likely.priors import ByClass, Prior, Priors
from likely.schema import Column
from likely.tally import Tally

Array = NDArray[np.float64]


SETTINGS = ("missing", "missing_labels", "weights", "declared", "average", "dependence")


def model_to_file(model: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a `Model`."""
    settings = {name: getattr(model, name) for name in SETTINGS}
    settings |= {"target_edges": model.target_edges} if model.target_edges else {}
    return to_file(model.tally, model.prior, settings, model.stages, model.calibration)


def to_file(
    tally: Tally,
    prior: Priors,
    settings: Mapping[str, Any],
    stages: Mapping[str, TextCalibration],
    calibration: Calibration | None = None,
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a model."""
    header, arrays = _header(tally, prior, settings), {"classes": tally.classes}
    for i, column in enumerate([tally.schema.target, *tally.schema.columns]):
        if (texts := as_arrays(column.values)) is not None:
            arrays.update({f"values{i}.{name}": array for name, array in texts.items()})
    for i, statistic in enumerate(tally.statistics):
        arrays.update({f"{i}.{name}": array for name, array in statistic.arrays().items()})
    for name, stage in stages.items():
        i = [block.name for block in tally.blocks].index(name)
        words: Any = tally.statistics[i]
        arrays.update({f"stage{i}.{part}": array for part, array in stage.arrays(words).items()})
    if tally.sample is not None:
        header["sample"], kept = sample_out(tally.sample)
        arrays.update({f"sample.{name}": array for name, array in kept.items()})
    if calibration is not None:
        header["calibration"], fitted = calibration_out(calibration, tally.schema)
        arrays.update({f"calibration.{name}": array for name, array in fitted.items()})
    return header, arrays


def _header(tally: Tally, prior: Priors, settings: Mapping[str, Any]) -> dict[str, Any]:
    schema = tally.schema
    return {
        "target": _column_out(schema.target),
        "columns": [_column_out(column) for column in schema.columns],
        "ignored": [list(pair) for pair in schema.ignored],
        "blocks": [
            {
                "family": b.family.name,
                "settings": b.family.settings(),
                "columns": list(b.columns),
                "statistic": type(s).__name__,
            }
            for b, s in zip(tally.blocks, tally.statistics, strict=True)
        ],
        "rows": tally.rows,
        "prior": {
            "default": _prior_out(prior.default),
            "columns": {name: _prior_out(own) for name, own in prior.columns.items()},
            "classes": _class_prior_out(prior.classes),
        },
        "settings": {name: _setting_out(value) for name, value in settings.items()},
    }


def _column_out(column: Column) -> dict[str, Any]:
    """A column; of very many texts only the number stands in the header."""
    many = as_arrays(column.values) is not None
    values: Any = len(column.values) if many else [to_json(value, column.name) for value in column.values]
    written = {"name": column.name, "kind": column.kind, "values": values, "reason": column.reason}
    taken = {"taken": [list(pair) for pair in column.taken]} if column.taken else {}
    flags = {name: True for name in ("guessed", "asked_for") if getattr(column, name)}
    return written | flags | taken | ({"form": column.form} if column.form else {})


def _prior_out(prior: Prior) -> dict[str, Any]:
    written: dict[str, Any] = {"type": type(prior).__name__}
    if isinstance(prior, ByClass):
        return written | {"by_class": [[to_json(label, "prior"), _prior_out(own)] for label, own in prior.by_class.items()]}
    for name, value in vars(prior).items():
        written[name] = _shares_out(value) if isinstance(value, Mapping) else value
    return written


def _class_prior_out(given: Prior | Mapping[Any, float] | None) -> Any:
    if given is None:
        return None
    return _shares_out(given) if isinstance(given, Mapping) else _prior_out(given)


def _shares_out(shares: Mapping[Any, float]) -> list[list[Any]]:
    return [[to_json(value, "prior"), share] for value, share in shares.items()]


def _setting_out(value: Any) -> Any:
    return [to_json(part, "settings") for part in value] if isinstance(value, tuple) else value
