"""Sampling rows from a model: first a class, then every block from its class-conditional distribution."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import LikelyWarning, UsageError, did_you_mean
from likely.families.family import SampledCells
from likely.model.model import Model

NOT_CALIBRATED = (
    "rows are drawn from the class-conditional distributions of the columns, which are independent of each other given the "
    "class: the weights and interactions of the calibration have no part in it"
)


def sample(model: Model, rows: int, seed: Any = None) -> tuple[SampledCells, NDArray[np.int64]]:
    """Columns of n rows, and the index of the class of each."""
    _check_number(rows)
    rng = np.random.default_rng(seed)
    classes = rng.choice(len(model.classes), rows, p=model.class_prior / model.class_prior.sum())
    return sample_classes(model, classes, rng), classes


def sample_table(model: Model, rows: int, seed: Any = None, label: Any = None) -> dict[str, list[Any]]:
    """A table of n rows, the target as its last column; with `label`, all rows of that class."""
    if model.calibration is not None or model.stages:
        warnings.warn(NOT_CALIBRATED, LikelyWarning, stacklevel=3)
    if label is None:
        cells, classes = sample(model, rows, seed)
    else:
        if label not in model.classes:
            names = [str(known) for known in model.classes]
            meant = did_you_mean(str(label), names)
            raise UsageError(f"label={label!r} is no class{meant}: choose from {list(model.classes)}")
        _check_number(rows)
        classes = np.full(rows, model.classes.index(label))
        cells = sample_classes(model, classes, np.random.default_rng(seed))
    table = {name: column.tolist() for name, column in cells.items()}
    return table | {model.schema.target.name: [model.classes[c] for c in classes]}


def _check_number(rows: Any) -> None:
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
        raise UsageError(f"{rows!r} rows cannot be drawn: pass a whole number, one or more")


def sample_classes(model: Model, classes: NDArray[np.int64], rng: np.random.Generator) -> SampledCells:
    """A row of each of the classes, column by column, from the distributions before any calibration."""
    cells: SampledCells = {}
    for i, block in enumerate(model.blocks):
        cells |= block.family.sample(model.fitted(i), classes, rng)
    return {column.name: cells[column.name] for column in model.schema.columns}
