"""A model as a header and arrays, and back: what the model file holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families import FAMILIES, Block
from likely.families.curve import Curve
from likely.families.statistics import STATISTICS, Statistic
from likely.families.words import Words
from likely.prior import PRIORS, Prior, Priors
from likely.schema import Column, Schema
from likely.store import from_json, to_json
from likely.tally import Tally

Array = NDArray[np.float64]
Parts = tuple[Tally, Priors, dict[str, Any], dict[str, Curve]]


def to_file(
    tally: Tally, prior: Priors, settings: Mapping[str, Any], stages: Mapping[str, Curve]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a model."""
    schema = tally.schema
    header = {
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
    arrays = {"classes": tally.classes}
    for i, statistic in enumerate(tally.statistics):
        arrays.update({f"{i}.{name}": array for name, array in statistic.arrays().items()})
    for name, stage in stages.items():
        i = [block.name for block in tally.blocks].index(name)
        arrays.update({f"stage{i}.{part}": array for part, array in stage.arrays().items()})
    return header, arrays


def from_file(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Parts:
    """Tally, prior and settings from a header and arrays; ValueError where they do not fit together."""
    schema = Schema(
        _column_in(header["target"]),
        tuple(_column_in(column) for column in header["columns"]),
        tuple((name, reason) for name, reason in header["ignored"]),
    )
    blocks, statistics = [], []
    for i, written in enumerate(header["blocks"]):
        blocks.append(Block(FAMILIES[written["family"]](**written["settings"]), tuple(written["columns"])))
        statistics.append(_statistic(written["statistic"], _part(arrays, f"{i}.")))
    tally = Tally(schema, tuple(blocks), arrays["classes"], tuple(statistics), int(header["rows"]))
    _check(tally)
    written = header["prior"]
    own = {name: _prior_in(one) for name, one in written["columns"].items()}
    prior = Priors(_prior_in(written["default"]), own, _class_prior_in(written["classes"]))
    found = {block.name: _part(arrays, f"stage{i}.") for i, block in enumerate(blocks)}
    stages = {name: Curve.of(parts) for name, parts in found.items() if parts}
    if any(len(stage.bias) != len(schema.classes) for stage in stages.values()):
        raise ValueError("the second stage does not fit the classes")
    return tally, prior, {name: _setting_in(value) for name, value in header["settings"].items()}, stages


def _part(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _statistic(name: str, parts: Mapping[str, Any]) -> Statistic:
    made: Statistic = Words.of(parts) if name == "Words" else STATISTICS[name](**parts)
    return made


def _check(tally: Tally) -> None:
    """Counts are never negative and every axis is as long as its domain."""
    classes = len(tally.schema.classes)
    if tally.classes.shape != (classes,) or (tally.classes < 0).any():
        raise ValueError("the class counts do not fit the classes")
    for block, statistic in zip(tally.blocks, tally.statistics, strict=True):
        weight = statistic.weight()
        domains = [
            len(tally.schema.by_name[n].values) for n in block.columns if tally.schema.by_name[n].kind == "category"
        ]
        if weight.shape[: 1 + len(domains)] != (classes, *domains) or (weight < 0).any():
            raise ValueError(f"the counts of {block.name!r} do not fit its values")


def _column_out(column: Column) -> dict[str, Any]:
    values = [to_json(value, column.name) for value in column.values]
    return {"name": column.name, "kind": column.kind, "values": values, "reason": column.reason}


def _column_in(written: Mapping[str, Any]) -> Column:
    values = tuple(from_json(value) for value in written["values"])
    return Column(str(written["name"]), str(written["kind"]), values, str(written["reason"]))


def _prior_out(prior: Prior) -> dict[str, Any]:
    written: dict[str, Any] = {"type": type(prior).__name__}
    for name, value in vars(prior).items():
        written[name] = _shares_out(value) if isinstance(value, Mapping) else value
    return written


def _prior_in(written: Mapping[str, Any]) -> Prior:
    fields = {
        name: _shares_in(value) if isinstance(value, list) else value
        for name, value in written.items()
        if name != "type"
    }
    made: Prior = PRIORS[written["type"]](**fields)
    return made


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


def _setting_in(value: Any) -> Any:
    return tuple(from_json(part) for part in value) if isinstance(value, list) else value
