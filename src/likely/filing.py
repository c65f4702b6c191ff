"""A model as a header and arrays, and back: what the model file holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.calibration import DEPENDENCE, Calibration
from likely.calibration.filed import calibration_in, calibration_out, sample_in, sample_out
from likely.families import FAMILIES, Block
from likely.families.curve import Curve
from likely.families.histogram import Histogram
from likely.families.statistics import STATISTICS, Moments, Scatter, Statistic
from likely.families.words import Words
from likely.prior import PRIORS, Prior, Priors, priors
from likely.schema import CATEGORY, NUMBER, TEXT, Column, Schema, is_missing
from likely.store import from_json, to_json
from likely.tally import Tally

Array = NDArray[np.float64]
Parts = tuple[Tally, Priors, dict[str, Any], dict[str, Curve], Calibration | None]


def to_file(
    tally: Tally,
    prior: Priors,
    settings: Mapping[str, Any],
    stages: Mapping[str, Curve],
    calibration: Calibration | None = None,
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a model."""
    header, arrays = _header(tally, prior, settings), {"classes": tally.classes}
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
        header["calibration"], fitted = calibration_out(calibration)
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


def from_file(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Parts:
    """Tally, prior, settings and second stages from a header and arrays; ValueError where they do not fit together."""
    try:
        return _parts(header, _grouped(arrays))
    except Exception as error:  # a header can be wrong in any way at all: whatever it breaks, it is no model
        raise ValueError(f"{type(error).__name__}: {error}"[:300]) from None


def _grouped(arrays: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """The arrays of each block and stage; the first part of a name says whose they are."""
    groups: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        owner, _, part = name.partition(".")
        groups.setdefault(owner, {})[part] = array
    return groups


def _parts(header: Mapping[str, Any], groups: dict[str, dict[str, Array]]) -> Parts:
    schema = Schema(
        _column_in(header["target"]),
        tuple(_column_in(column) for column in header["columns"]),
        tuple((str(name), str(reason)) for name, reason in header["ignored"]),
    )
    blocks, statistics, stages = [], [], {}
    for i, written in enumerate(header["blocks"]):
        block = Block(FAMILIES[written["family"]](**written["settings"]), tuple(written["columns"]))
        blocks.append(block)
        statistics.append(_statistic(written["statistic"], groups.pop(f"{i}")))
        if f"stage{i}" in groups:
            stages[block.name] = Curve.of(groups.pop(f"stage{i}"), statistics[-1])
    sample = sample_in(header["sample"], groups.pop("sample"), schema) if "sample" in header else None
    fitted = (
        calibration_in(header["calibration"], groups.pop("calibration"), schema) if "calibration" in header else None
    )
    tally = Tally(schema, tuple(blocks), groups.pop("classes")[""], tuple(statistics), header["rows"], sample)
    if groups or any(len(stage.bias) != len(schema.classes) for stage in stages.values()):
        raise ValueError("there are arrays that belong to no column, or do not fit the classes")
    check_schema(tally)
    check_counts(tally)
    return tally, _priors_in(header["prior"]), _settings_in(header["settings"]), stages, fitted


def _statistic(name: str, parts: Mapping[str, Any]) -> Statistic:
    special: dict[str, Any] = {"Words": Words.of, "Histogram": Histogram.from_arrays}
    made: Statistic = special[name](parts) if name in special else STATISTICS[name](**parts)
    return made


def check_schema(tally: Tally) -> None:
    """Every column has a name of its own, a known kind, different values and exactly one block."""
    columns = [tally.schema.target, *tally.schema.columns]
    named = Counter(column.name for column in columns)
    blocked = Counter(name for block in tally.blocks for name in block.columns)
    if max(named.values()) > 1 or blocked != Counter(column.name for column in tally.schema.columns):
        raise ValueError("the columns are not those of the blocks")
    for column in columns:
        if column.kind not in (CATEGORY, NUMBER, TEXT) or (column.values and column.kind != CATEGORY):
            raise ValueError(f"column {column.name!r} is of no known kind")
        if len(column.code) < len(column.values) or any(is_missing(value) for value in column.values):
            raise ValueError(f"column {column.name!r} has a value twice, or one that is none")
    if tally.schema.target.kind != CATEGORY:
        raise ValueError("the target has no classes")


def check_counts(tally: Tally) -> None:
    """Counts are never negative, and every array is of the shape that it has before a row is counted."""
    classes = len(tally.schema.classes)
    if tally.classes.shape != (classes,) or not (tally.classes >= 0).all() or not _is_count(tally.rows):
        raise ValueError("the class counts do not fit the classes")
    empty: dict[Any, Statistic] = {}
    for block, statistic in zip(tally.blocks, tally.statistics, strict=True):
        columns = [tally.schema.by_name[name] for name in block.columns]
        domains = tuple(len(column.values) for column in columns if column.kind == CATEGORY)
        numbers = sum(column.kind == NUMBER for column in columns)
        weight = statistic.weight()
        fits = weight.shape[: 1 + len(domains)] == (classes, *domains)
        key = (block.family, domains, numbers)
        if fits and key not in empty:  # looked at first: an empty table is never larger than the file
            empty[key] = block.nothing(columns, classes)
        if not fits or not _alike(statistic, empty[key]) or not (weight >= 0).all():
            raise ValueError(f"the counts of {block.name!r} do not fit its values")


def _is_count(given: Any) -> bool:
    return type(given) is int and given >= 0


def _alike(statistic: Statistic, empty: Statistic) -> bool:
    """Whether two statistics have arrays of the same names, types and shapes, and no spread is negative."""
    if type(statistic) is not type(empty):
        return False
    if isinstance(statistic, Words) and isinstance(empty, Words):  # whose words come and go
        return statistic.table.shape[1] == empty.table.shape[1] and bool((statistic.table >= 0).all())
    if isinstance(statistic, Histogram):  # whose cells come and go
        return bool(np.isfinite(statistic.seen).all() and (statistic.seen >= 0).all())
    found, expected = statistic.arrays(), empty.arrays()
    same = {n: (a.dtype, a.shape) for n, a in found.items()} == {n: (a.dtype, a.shape) for n, a in expected.items()}
    if isinstance(statistic, Moments):
        return same and bool((statistic.spread >= 0).all())
    if isinstance(statistic, Scatter):
        return same and bool((np.einsum("...ii->...i", statistic.scatter) >= 0).all())
    return same


def _settings_in(written: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model: what stands for missing, the column of weights, the declared classes, averaging."""
    settings = {name: _setting_in(value) for name, value in written.items()}
    missing, weights, declared = (settings[name] for name in ("missing", "weights", "declared"))
    if settings.setdefault("dependence", "auto") not in DEPENDENCE:
        raise ValueError("the settings are not those of a model")
    texts = isinstance(missing, tuple) and all(isinstance(token, str) for token in missing)
    known = isinstance(settings.get("average", False), bool)
    if not (texts and known) or not isinstance(weights, (str, type(None))) or not isinstance(declared, tuple):
        raise ValueError("the settings are not those of a model")
    return settings


def _priors_in(written: Mapping[str, Any]) -> Priors:
    own = {str(name): _prior_in(one) for name, one in written["columns"].items()}
    given = _class_prior_in(written["classes"])
    shares = priors(1.0, given).classes if isinstance(given, Mapping) else given  # which checks that they sum to 1
    return Priors(_prior_in(written["default"]), own, shares)


def _column_out(column: Column) -> dict[str, Any]:
    values = [to_json(value, column.name) for value in column.values]
    written = {"name": column.name, "kind": column.kind, "values": values, "reason": column.reason}
    return written | ({"guessed": True} if column.guessed else {})


def _column_in(written: Mapping[str, Any]) -> Column:
    name, kind, reason = (written[part] for part in ("name", "kind", "reason"))
    if not all(isinstance(part, str) for part in (name, kind, reason)) or not isinstance(written["values"], list):
        raise ValueError(f"a column is called {name!r}, or has no list of values")
    guessed = written.get("guessed", False) is True
    return Column(name, kind, tuple(from_json(value) for value in written["values"]), reason, guessed)


def _prior_out(prior: Prior) -> dict[str, Any]:
    written: dict[str, Any] = {"type": type(prior).__name__}
    for name, value in vars(prior).items():
        written[name] = _shares_out(value) if isinstance(value, Mapping) else value
    return written


def _prior_in(written: Mapping[str, Any]) -> Prior:
    fields = {
        name: _shares_in(value) if isinstance(value, list) and name != "variance" else value
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
