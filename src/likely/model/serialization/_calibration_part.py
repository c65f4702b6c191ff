"""The sample and the calibration as a header and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.calibration.calibration import Calibration, Interaction, JointGaussian
from likely.families.likelihoods import GaussianComponents
from likely.model.model_file import from_json
from likely.schema import Schema
from likely.tally.row_sample import Reservoir

Arrays = dict[str, NDArray[Any]]
Written = Mapping[str, Any]


def sample_out(sample: Reservoir) -> tuple[dict[str, Any], Arrays]:
    """The row sample: a header with the names of the columns, and their arrays."""
    arrays: Arrays = {"keys": sample.keys, "labels": sample.labels, "weights": sample.weights}
    for i, x in enumerate(sample.columns.values()):
        gaps = np.flatnonzero(np.isnan(x)) if x.dtype.kind == "f" else np.zeros(0, np.int64)
        arrays[str(i)] = np.where(np.isnan(x), 0.0, x) if len(gaps) else x  # a file holds no number that is none
        arrays[f"gaps{i}"] = gaps.astype(np.int64)
    return {"columns": list(sample.columns), "limit": sample.limit}, arrays


def sample_in(written: Written, arrays: Arrays) -> Reservoir:
    """The row sample."""
    columns = {n: _with_gaps(arrays[str(i)], arrays[f"gaps{i}"]) for i, n in enumerate(written["columns"])}
    return Reservoir(arrays["keys"], arrays["labels"], arrays["weights"], columns, written["limit"])


def _with_gaps(x: NDArray[Any], gaps: NDArray[Any]) -> NDArray[Any]:
    if len(gaps):
        x = x.copy()
        x[gaps] = np.nan
    return x


def calibration_out(fitted: Calibration, schema: Schema) -> tuple[dict[str, Any], Arrays]:
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


def calibration_in(written: Written, arrays: Arrays, schema: Schema) -> Calibration:
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
