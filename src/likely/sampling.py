"""Rows drawn from what a model believes: first a class, then every block as that class has it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.families import Bernoulli, Categorical, Gaussian, Joint, Parameters, Poisson
from likely.families.base import Block
from likely.families.forms import Lookup, Quadratic
from likely.model import Model
from likely.schema import CATEGORY, Column

Cells = dict[str, NDArray[Any]]


def sample(model: Model, rows: int, seed: Any = None) -> tuple[Cells, NDArray[np.int64]]:
    """Columns of so many rows, and the place of the class of each."""
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
        raise UsageError(f"{rows!r} rows cannot be drawn: pass a whole number, one or more")
    rng = np.random.default_rng(seed)
    classes = rng.choice(len(model.classes), rows, p=model.class_prior / model.class_prior.sum())
    return sample_classes(model, classes, rng), classes


def sample_classes(model: Model, classes: NDArray[np.int64], rng: np.random.Generator) -> Cells:
    """A row of each of the classes, column by column."""
    cells: Cells = {}
    for block, parameters in zip(model.blocks, model.block_parameters, strict=True):
        columns = [model.schema.by_name[name] for name in block.columns]
        cells |= _block(block, columns, parameters, classes, rng)
    return {column.name: cells[column.name] for column in model.schema.columns}


def _block(
    block: Block, columns: list[Column], parameters: Parameters, classes: NDArray[np.int64], rng: np.random.Generator
) -> Cells:
    form: Any = parameters.form
    name = block.columns[0]
    if isinstance(block.family, Gaussian):
        return {name: rng.normal(form.mean[classes], np.sqrt(-0.5 / form.curve)[classes])}
    if isinstance(block.family, Poisson):
        return {name: rng.poisson(-form.level[0][classes]).astype(np.float64)}
    if isinstance(block.family, Bernoulli):
        return {name: (rng.random(len(classes)) < np.exp(form.table[1])[classes]).astype(np.float64)}
    if isinstance(block.family, Categorical):
        values = columns[0].values
        return {name: _values(columns[0], _drawn(np.exp(form.table[: len(values)]), classes, rng))}
    if isinstance(block.family, Joint):
        return _joint(columns, form, classes, rng)
    raise UsageError(f"column {block.name!r}: no rows can be drawn from the family {block.family.name}")


def _drawn(chance: NDArray[np.float64], classes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """A place for every row, by the chances of its class (places × classes)."""
    edges = np.cumsum(chance / chance.sum(0), axis=0)
    return np.asarray(np.minimum((edges[:, classes] < rng.random(len(classes))).sum(0), len(chance) - 1))


def _values(column: Column, places: NDArray[np.int64]) -> NDArray[Any]:
    values = np.empty(len(column.values), dtype=object)
    values[:] = column.values
    return np.asarray(values[places])


def _joint(
    columns: list[Column], form: Lookup | Quadratic, classes: NDArray[np.int64], rng: np.random.Generator
) -> Cells:
    categories = [c for c in columns if c.kind == CATEGORY]
    numbers = [c for c in columns if c.kind != CATEGORY]
    size = tuple(len(c.values) for c in categories)
    extra = 2 if isinstance(form, Lookup) else 1
    logs = form.table.T if isinstance(form, Lookup) else form.weight
    padded = np.arange(logs.shape[1]).reshape(tuple(s + extra for s in size) or (1,))
    inner = padded[tuple(slice(0, s) for s in size) or (slice(None),)].reshape(-1)
    place = _drawn(np.exp(logs[:, inner].T), classes, rng)
    at = np.unravel_index(place, size) if size else ()
    cells = {c.name: _values(c, np.asarray(p)) for c, p in zip(categories, at, strict=True)}
    if isinstance(form, Quadratic):
        roots = np.linalg.cholesky(form.covariance[:, inner])
        z = rng.normal(size=(len(classes), len(numbers)))
        x = form.mean[:, inner][classes, place] + np.einsum("nij,nj->ni", roots[classes, place], z)
        cells |= {c.name: x[:, j] for j, c in enumerate(numbers)}
    return cells
