"""A model as a header of JSON and arrays of numbers, and back: every part is written beside where it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.calibration import Calibration
from likely.calibration.calibration import Interaction, JointGaussian
from likely.families import REGISTRY, Block
from likely.families.histogram import Histogram
from likely.families.likelihoods import GaussianComponents
from likely.families.statistics import STATISTICS, Statistic
from likely.families.text_calibration import TextCalibration
from likely.families.word_counts import Words
from likely.model.model_file import from_json, to_json
from likely.model.serialization._header import check_header
from likely.model.serialization._validator import check_arrays, grouped
from likely.model.serialization.values import as_arrays, from_arrays
from likely.priors import PRIORS, ByClass, Prior, Priors, priors
from likely.schema import Column, Schema
from likely.tally import Tally
from likely.tally.row_sample import Reservoir

Array = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
Written = Mapping[str, Any]
Parts = tuple[Tally, Priors, dict[str, Any], dict[str, TextCalibration], Calibration | None]
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
        header["sample"], kept = _sample_out(tally.sample)
        arrays.update({f"sample.{name}": array for name, array in kept.items()})
    if calibration is not None:
        header["calibration"], fitted = _calibration_out(calibration, tally.schema)
        arrays.update({f"calibration.{name}": array for name, array in fitted.items()})
    return header, arrays


def from_file(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Parts:
    """Tally, prior, settings and second stages from a header and arrays; ValueError where they are no model."""
    try:
        check_header(header)
        check_arrays(header, arrays)
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
    sample = _sample_in(header["sample"], groups["sample"]) if "sample" in header else None
    fitted = _calibration_in(header["calibration"], groups["calibration"], schema) if "calibration" in header else None
    tally = Tally(schema, tuple(blocks), groups["classes"][""], tuple(statistics), header["rows"], sample)
    return tally, _priors_in(header["prior"]), _settings_in(header["settings"]), stages, fitted


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


def _statistic(name: str, parts: Mapping[str, Any]) -> Statistic:
    special: dict[str, Any] = {"Words": Words.of, "Histogram": Histogram.from_arrays}
    made: Statistic = special[name](parts) if name in special else STATISTICS[name](**parts)
    return made


def _column_out(column: Column) -> dict[str, Any]:
    """A column; of very many texts only the number stands in the header."""
    many = as_arrays(column.values) is not None
    values: Any = len(column.values) if many else [to_json(value, column.name) for value in column.values]
    written = {"name": column.name, "kind": column.kind, "values": values, "reason": column.reason}
    taken = {"taken": [list(pair) for pair in column.taken]} if column.taken else {}
    flags = {name: True for name in ("guessed", "asked_for") if getattr(column, name)}
    return written | flags | taken | ({"form": column.form} if column.form else {})


def _column_in(written: Mapping[str, Any], texts: Mapping[str, NDArray[Any]]) -> Column:
    given = written["values"]
    values = from_arrays(texts) if isinstance(given, int) else tuple(from_json(value) for value in given)
    taken = tuple((token, count) for token, count in written.get("taken", ()))
    asked_for = written.get("asked_for", written["reason"].endswith("as asked for"))  # older files have no flag
    return Column(written["name"], written["kind"], values, written["reason"], written.get("guessed", False), taken,
                  written.get("form", ""), asked_for)  # fmt: skip


def _prior_out(prior: Prior) -> dict[str, Any]:
    written: dict[str, Any] = {"type": type(prior).__name__}
    if isinstance(prior, ByClass):
        return written | {"by_class": [[to_json(label, "prior"), _prior_out(own)] for label, own in prior.by_class.items()]}
    for name, value in vars(prior).items():
        written[name] = _shares_out(value) if isinstance(value, Mapping) else value
    return written


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


def _priors_in(written: Mapping[str, Any]) -> Priors:
    own = {name: _prior_in(one) for name, one in written["columns"].items()}
    given = _class_prior_in(written["classes"])
    shares = priors(1.0, given).classes if isinstance(given, Mapping) else given  # which checks that they sum to 1
    return Priors(_prior_in(written["default"]), own, shares)


def _class_prior_out(given: Prior | Mapping[Any, float] | None) -> Any:
    if given is None:
        return None
    return _shares_out(given) if isinstance(given, Mapping) else _prior_out(given)


def _class_prior_in(written: Any) -> Prior | Mapping[Any, float] | None:
    if written is None:
        return None
    return _shares_in(written) if isinstance(written, list) else _prior_in(written)


def _shares_out(shares: Mapping[Any, float]) -> list[list[Any]]:
    return [[to_json(value, "prior"), share] for value, share in shares.items()]


def _shares_in(written: list[list[Any]]) -> dict[Any, float]:
    return {from_json(value): float(share) for value, share in written}


def _setting_out(value: Any) -> Any:
    return [to_json(part, "settings") for part in value] if isinstance(value, tuple) else value


def _settings_in(written: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model; lists are tuples of labels or texts."""
    settings = {name: _setting_in(value) for name, value in written.items()}
    return {"dependence": "auto"} | settings


def _setting_in(value: Any) -> Any:
    return tuple(from_json(part) for part in value) if isinstance(value, list) else value


def _sample_out(sample: Reservoir) -> tuple[dict[str, Any], Arrays]:
    """The row sample: a header with the names of the columns, and their arrays."""
    arrays: Arrays = {"keys": sample.keys, "labels": sample.labels, "weights": sample.weights}
    for i, x in enumerate(sample.columns.values()):
        gaps = np.flatnonzero(np.isnan(x)) if x.dtype.kind == "f" else np.zeros(0, np.int64)
        arrays[str(i)] = np.where(np.isnan(x), 0.0, x) if len(gaps) else x  # a file holds no number that is none
        arrays[f"gaps{i}"] = gaps.astype(np.int64)
    return {"columns": list(sample.columns), "limit": sample.limit}, arrays


def _sample_in(written: Written, arrays: Arrays) -> Reservoir:
    """The row sample."""
    columns = {n: _with_gaps(arrays[str(i)], arrays[f"gaps{i}"]) for i, n in enumerate(written["columns"])}
    return Reservoir(arrays["keys"], arrays["labels"], arrays["weights"], columns, written["limit"])


def _with_gaps(x: NDArray[Any], gaps: NDArray[Any]) -> NDArray[Any]:
    if len(gaps):
        x = x.copy()
        x[gaps] = np.nan
    return x


def _calibration_out(fitted: Calibration, schema: Schema) -> tuple[dict[str, Any], Arrays]:
    """The calibration: readable numbers in the header, tables in the arrays; values as indexes into the present values."""
    header: dict[str, Any] = {
        "weights": dict(fitted.weights),
        "absent": {name: weight for name, (weight, _) in fitted.absent.items()},
        "temperature": fitted.temperature,
        "counted": fitted.counted,
        "gains": dict(fitted.gains),
        "edges": list(fitted.edges),
        "values": list(fitted.values),
        "directions": list(fitted.directions),
        "interactions": [
            {"columns": list(each.columns), "weight": each.weight, "gain": each.gain, "error": each.error}
            for each in fitted.interactions
        ],
    }
    arrays: Arrays = {"bias": fitted.bias}
    if fitted.copies is not None:
        arrays["copies"] = fitted.copies
    arrays |= {f"direction{i}": table for i, table in enumerate(fitted.directions.values())}
    arrays |= {f"absent{i}": table for i, (_, table) in enumerate(fitted.absent.values())}
    arrays |= {f"edges{i}": edges for i, edges in enumerate(fitted.edges.values())}
    for i, (name, values) in enumerate(fitted.values.items()):
        place = schema.by_name[name].code
        arrays[f"values{i}"] = np.array([place.get(value, -1) for value in values], np.int64)
    if fitted.joint is not None:
        header["joint"] = {"columns": list(fitted.joint.columns), "weight": fitted.joint.weight}
        held = fitted.joint.components
        arrays |= {"joint_mean": held.mean, "joint_root": held.root}
        if len(held.owner) > len(fitted.bias):  # several for a class
            arrays |= {"joint_share": held.log_share, "joint_owner": held.owner}
        arrays |= {f"joint{i}": numbers for i, numbers in enumerate(fitted.joint.numbers)}
    for i, each in enumerate(fitted.interactions):
        arrays[f"table{i}"] = each.table
        arrays |= {f"groups{i}.{j}": groups for j, groups in enumerate(each.groups)}
    return header, arrays


def _calibration_in(written: Written, arrays: Arrays, schema: Schema) -> Calibration:
    """The calibration that was written."""
    edges = {name: arrays[f"edges{i}"] for i, name in enumerate(written["edges"])}
    absent = {n: (float(w), arrays[f"absent{i}"]) for i, (n, w) in enumerate(written["absent"].items())}
    interactions = []
    for i, each in enumerate(written["interactions"]):
        groups = tuple(arrays[f"groups{i}.{j}"] for j in range(len(each["columns"])))
        numbers = (float(each[part]) for part in ("weight", "gain", "error"))
        interactions.append(Interaction(tuple(each["columns"]), groups, arrays[f"table{i}"], *numbers))
    directions = {name: arrays[f"direction{i}"] for i, name in enumerate(written.get("directions", ()))}
    weights = {name: float(weight) for name, weight in written["weights"].items()}
    gains = {name: float(gain) for name, gain in written["gains"].items()}
    return Calibration(
        weights, absent, arrays["bias"], float(written["temperature"]), tuple(interactions), edges,
        _values_in(written["values"], arrays, schema), float(written["counted"]), gains, arrays.get("copies"), directions,
        _joint_in(written["joint"], arrays) if "joint" in written else None,
    )  # fmt: skip


def _joint_in(written: Written, arrays: Arrays) -> JointGaussian:
    """The joint Gaussians of all numbers."""
    names = tuple(written["columns"])
    numbers = tuple(arrays[f"joint{i}"] for i in range(len(names)))
    mean, alone = arrays["joint_mean"], np.arange(len(arrays["joint_mean"]))
    share, owner = arrays.get("joint_share", np.zeros(len(mean))), arrays.get("joint_owner", alone)
    components = GaussianComponents(mean, arrays["joint_root"], share, owner)
    return JointGaussian(names, numbers, components, float(written["weight"]))


def _values_in(written: Any, arrays: Arrays, schema: Schema) -> dict[str, tuple[Any, ...]]:
    """The categories at the time the calibration was fitted: None for one that was forgotten."""
    if isinstance(written, dict):  # as files of version 1 have them
        return {name: tuple(from_json(value) for value in listed) for name, listed in written.items()}
    today = {name: (*schema.by_name[name].values, None) for name in written}
    return {name: tuple(today[name][i] for i in arrays[f"values{j}"].tolist()) for j, name in enumerate(written)}
