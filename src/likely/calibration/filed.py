"""The sample and the calibration as a header and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.calibration.parts import Calibration, Interaction
from likely.reservoir import Reservoir
from likely.schema import CATEGORY, NUMBER, Schema
from likely.store import from_json, to_json

Arrays = dict[str, NDArray[Any]]
Written = Mapping[str, Any]


def sample_out(sample: Reservoir) -> tuple[dict[str, Any], Arrays]:
    """The rows that are kept: a header with the names of the columns, and their arrays."""
    arrays: Arrays = {"keys": sample.keys, "labels": sample.labels, "weights": sample.weights}
    for i, x in enumerate(sample.columns.values()):
        gaps = np.flatnonzero(np.isnan(x)) if x.dtype.kind == "f" else np.zeros(0, np.int64)
        arrays[str(i)] = np.where(np.isnan(x), 0.0, x) if len(gaps) else x  # a file holds no number that is none
        arrays[f"gaps{i}"] = gaps.astype(np.int64)
    return {"columns": list(sample.columns), "limit": sample.limit}, arrays


def sample_in(written: Written, arrays: Arrays, schema: Schema) -> Reservoir:
    """The rows that were kept; ValueError where they do not fit the columns."""
    names = written["columns"]
    columns = {name: _with_gaps(arrays.pop(str(i)), arrays.pop(f"gaps{i}")) for i, name in enumerate(names)}
    made = Reservoir(arrays.pop("keys"), arrays.pop("labels"), arrays.pop("weights"), columns, int(written["limit"]))
    expected = [c.name for c in schema.columns if c.kind in (CATEGORY, NUMBER)]
    rows = (len(made),)
    sound = not arrays and sorted(names) == sorted(expected) and made.keys.dtype == np.int64
    sound = sound and made.labels.shape == made.weights.shape == rows and bool((made.weights > 0).all())
    sound = sound and bool((np.diff(made.keys) > 0).all()) and _within(made.labels, 0, len(schema.classes))
    for name, x in columns.items() if sound else ():
        values = schema.by_name[name].values
        numbers = schema.by_name[name].kind == NUMBER
        sound = sound and x.shape == rows and (x.dtype == np.float64 if numbers else _within(x, -1, len(values)))
    if not sound:
        raise ValueError("the sample of rows does not fit the columns")
    return made


def _with_gaps(x: NDArray[Any], gaps: NDArray[Any]) -> NDArray[Any]:
    if not _within(gaps, 0, len(x)) or (len(gaps) and x.dtype != np.float64):
        raise ValueError("the gaps of a column do not fit it")
    if len(gaps):
        x = x.copy()
        x[gaps] = np.nan
    return x


def calibration_out(fitted: Calibration) -> tuple[dict[str, Any], Arrays]:
    """The calibration: readable numbers in the header, tables in the arrays."""
    header: dict[str, Any] = {
        "weights": dict(fitted.weights),
        "absent": {name: weight for name, (weight, _) in fitted.absent.items()},
        "temperature": fitted.temperature,
        "counted": fitted.counted,
        "gains": dict(fitted.gains),
        "edges": list(fitted.edges),
        "values": {name: [to_json(v, name) for v in values] for name, values in fitted.values.items()},
        "interactions": [
            {"columns": list(each.columns), "weight": each.weight, "gain": each.gain, "error": each.error}
            for each in fitted.interactions
        ],
    }
    arrays: Arrays = {"bias": fitted.bias}
    arrays |= {f"absent{i}": table for i, (_, table) in enumerate(fitted.absent.values())}
    arrays |= {f"edges{i}": edges for i, edges in enumerate(fitted.edges.values())}
    for i, each in enumerate(fitted.interactions):
        arrays[f"table{i}"] = each.table
        arrays |= {f"groups{i}.{j}": groups for j, groups in enumerate(each.groups)}
    return header, arrays


def calibration_in(written: Written, arrays: Arrays, schema: Schema) -> Calibration:
    """The calibration that was written; ValueError where it does not fit together."""
    classes = len(schema.classes)
    values = {name: tuple(from_json(v) for v in listed) for name, listed in written["values"].items()}
    edges = {name: arrays.pop(f"edges{i}") for i, name in enumerate(written["edges"])}
    absent = {n: (float(w), arrays.pop(f"absent{i}")) for i, (n, w) in enumerate(written["absent"].items())}
    interactions = []
    for i, each in enumerate(written["interactions"]):
        groups = tuple(arrays.pop(f"groups{i}.{j}") for j in range(len(each["columns"])))
        numbers = (float(each[part]) for part in ("weight", "gain", "error"))
        interactions.append(Interaction(tuple(each["columns"]), groups, arrays.pop(f"table{i}"), *numbers))
    weights = {str(name): float(weight) for name, weight in written["weights"].items()}
    bias, temperature = arrays.pop("bias"), float(written["temperature"])
    gains = {str(name): float(gain) for name, gain in written["gains"].items()}
    made = Calibration(
        weights, absent, bias, temperature, tuple(interactions), edges, values, float(written["counted"]), gains
    )
    tables = [table for _, table in absent.values()]
    sound = not arrays and bias.shape == (classes,) and all(table.shape == (2, classes) for table in tables)
    sound = sound and all((np.diff(cut) > 0).all() and np.isfinite(cut).all() for cut in edges.values())
    if not sound or not all(_fits(each, made, classes) for each in interactions):
        raise ValueError("the calibration does not fit the columns")
    return made


def _fits(each: Interaction, fitted: Calibration, classes: int) -> bool:
    """Whether a table has a cell for each combination of its columns' groups."""
    cells = 1
    for name, groups in zip(each.columns, each.groups, strict=True):
        codes = len(fitted.edges[name]) + 1 if name in fitted.edges else len(fitted.values[name])
        if groups.shape != (codes + 1,) or not _within(groups, 0, int(groups[-1]) + 1):
            return False
        cells *= int(groups[-1]) + 1
    return each.table.shape == (cells, classes)


def _within(x: NDArray[Any], low: int, high: int) -> bool:
    return x.dtype.kind == "i" and bool(((x >= low) & (x < high)).all())
