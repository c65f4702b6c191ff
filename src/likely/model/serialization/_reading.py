"""A model from the validated header and arrays of its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.calibration import Calibration
from likely.families import REGISTRY, Block
from likely.families.histogram import Histogram
from likely.families.statistics import STATISTICS, Statistic
from likely.families.text_calibration import TextCalibration
from likely.families.word_counts import Words
from likely.model.model_file import from_json
from likely.model.serialization._calibration_part import calibration_in, sample_in
from likely.model.serialization._validator import grouped, validate
from likely.model.serialization.values import from_arrays
from likely.priors import PRIORS, ByClass, Prior, Priors, priors
from likely.schema import Column, Schema
from likely.tally import Tally

Array = NDArray[np.float64]
Parts = tuple[Tally, Priors, dict[str, Any], dict[str, TextCalibration], Calibration | None]


def from_file(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Parts:
    """Tally, prior, settings and second stages from a header and arrays; ValueError where they are no model."""
    try:
        validate(header, arrays)
        return _parts(header, grouped(arrays))
    except Exception as error:  # settings of families and priors are checked by these themselves, each in its own way
        raise ValueError(f"{error}"[:300] or type(error).__name__) from None


def _parts(header: Mapping[str, Any], groups: dict[str, dict[str, Array]]) -> Parts:
    target, *columns = (
        _column_in(column, groups.pop(f"values{i}", {}))
        for i, column in enumerate([header["target"], *header["columns"]])
    )
    schema = Schema(target, tuple(columns), tuple((name, reason) for name, reason in header["ignored"]))
    blocks, statistics, stages = [], [], {}
    for i, written in enumerate(header["blocks"]):
        block = Block(REGISTRY[written["family"]](**written["settings"]), tuple(written["columns"]))
        blocks.append(block)
        statistics.append(_statistic(written["statistic"], groups.pop(f"{i}")))
        if f"stage{i}" in groups:
            stages[block.name] = TextCalibration.of(groups.pop(f"stage{i}"), statistics[-1])
    sample = sample_in(header["sample"], groups["sample"]) if "sample" in header else None
    fitted = calibration_in(header["calibration"], groups["calibration"], schema) if "calibration" in header else None
    tally = Tally(schema, tuple(blocks), groups["classes"][""], tuple(statistics), header["rows"], sample)
    return tally, _priors_in(header["prior"]), _settings_in(header["settings"]), stages, fitted


def _statistic(name: str, parts: Mapping[str, Any]) -> Statistic:
    special: dict[str, Any] = {"Words": Words.of, "Histogram": Histogram.from_arrays}
    made: Statistic = special[name](parts) if name in special else STATISTICS[name](**parts)
    return made


def _settings_in(written: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model; lists are tuples of labels or texts."""
    settings = {name: _setting_in(value) for name, value in written.items()}
    return {"dependence": "auto"} | settings


def _priors_in(written: Mapping[str, Any]) -> Priors:
    own = {name: _prior_in(one) for name, one in written["columns"].items()}
    given = _class_prior_in(written["classes"])
    shares = priors(1.0, given).classes if isinstance(given, Mapping) else given  # which checks that they sum to 1
    return Priors(_prior_in(written["default"]), own, shares)


def _column_in(written: Mapping[str, Any], texts: Mapping[str, NDArray[Any]]) -> Column:
    given = written["values"]
    values = from_arrays(texts) if isinstance(given, int) else tuple(from_json(value) for value in given)
    taken = tuple((token, count) for token, count in written.get("taken", ()))
    asked_for = written.get("asked_for", written["reason"].endswith("as asked for"))  # older files have no flag
    return Column(written["name"], written["kind"], values, written["reason"], written.get("guessed", False), taken,
                  written.get("form", ""), asked_for)  # fmt: skip


def _prior_in(written: Mapping[str, Any]) -> Prior:
    if written["type"] == "ByClass":
        return ByClass({from_json(label): _prior_in(own) for label, own in written["by_class"]})
    fields = {
        name: _shares_in(value) if isinstance(value, list) and name != "variance" else value
        for name, value in written.items()
        if name != "type"
    }
    made: Prior = PRIORS[written["type"]](**fields)
    return made


def _class_prior_in(written: Any) -> Prior | Mapping[Any, float] | None:
    if written is None:
        return None
    return _shares_in(written) if isinstance(written, list) else _prior_in(written)


def _shares_in(written: list[list[Any]]) -> dict[Any, float]:
    return {from_json(value): float(share) for value, share in written}


def _setting_in(value: Any) -> Any:
    return tuple(from_json(part) for part in value) if isinstance(value, list) else value
