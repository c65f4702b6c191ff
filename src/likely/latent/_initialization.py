"""Initialization of EM: rows as points, k-means++ seeding, and each row assigned to its nearest seed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines.e_step import CachedBatch, LabelledRows
from likely.errors import DataError
from likely.families import Block
from likely.schema import CATEGORY, NUMBER, TEXT, Schema
from likely.tokenizer import Vocabulary

Array = NDArray[np.float64]
MOST_ROWS = 10_000
MOST_VALUES = 64  # a column of more values is projected at random onto so many coordinates
TEXT_WIDTH = 64
FAR = 8.0  # standard deviations: an outlier must not become a seed for its distance alone
LLOYD = 10  # most iterations of k-means after the seeding
FIRM = 0.6  # responsibility of the nearest seed in a soft initialization


@dataclass(frozen=True)
class Points:
    """A sample of the rows as points; equal rows are one point, so that a weight equals copies."""

    x: Array
    weights: Array
    known: NDArray[np.int64]  # the class of a point, -1 where it is hidden
    place: NDArray[np.int64]  # the point of each sampled row
    rows: list[NDArray[np.int64]]  # the sampled rows, batch by batch


def points(parts: Iterable[LabelledRows], schema: Schema, blocks: tuple[Block, ...], total: int, seed: int) -> Points:
    """A sample of the rows: numbers standardised, categories one-hot, texts projected onto a few coordinates."""
    rng = np.random.default_rng(seed)
    table, weights, rows, classes = [], [], [], []
    for batch, labels, w in parts:
        chosen = np.flatnonzero(w > 0)
        if total > MOST_ROWS:
            chosen = chosen[rng.random(len(chosen)) < MOST_ROWS / total]
        rows.append(chosen)
        weights.append(w[chosen])
        classes.append(labels[chosen])
        table.append(np.column_stack([np.zeros((len(chosen), 0)), *_columns(batch, schema, blocks, chosen)]))
    x, w, known = np.concatenate(table), np.concatenate(weights), np.concatenate(classes)
    names = [c.name for c in schema.columns if c.kind == NUMBER]
    x[:, : len(names)] = _standardised(x[:, : len(names)], w)
    _, first, place = np.unique(
        np.column_stack([known, np.round(x, 9)]), axis=0, return_index=True, return_inverse=True
    )
    place = place.reshape(-1)
    return Points(x[first], np.bincount(place, w, len(first)).astype(np.float64), known[first], place, rows)


def _standardised(x: Array, w: Array) -> Array:
    """Numbers less their mean, in standard deviations; a missing one is at the mean."""
    with np.errstate(all="ignore"):
        weight = np.where(np.isnan(x), 0.0, w[:, None])
        n = np.maximum(weight.sum(0), 1e-300)
        start = np.nan_to_num(np.nanmin(x, 0, initial=np.inf), posinf=0.0)  # large numbers keep their digits
        middle = start + (weight * np.nan_to_num(x - start)).sum(0) / n
        wide = np.sqrt((weight * np.nan_to_num(x - middle) ** 2).sum(0) / n)
        apart = np.nan_to_num(x - middle) / np.where(wide > 0, wide, np.inf)
    return np.asarray(np.clip(np.nan_to_num(apart), -FAR, FAR))


def _columns(batch: CachedBatch, schema: Schema, blocks: tuple[Block, ...], chosen: NDArray[np.int64]) -> list[Array]:
    """Numbers first, then categories, then texts."""
    names = [c.name for c in schema.columns if c.kind == NUMBER]
    found = [batch.numbers(names, 0, batch.rows)[chosen]]
    for column in schema.columns:
        if column.kind == CATEGORY:
            codes = batch.coded(column.name).codes[chosen]
            size = len(column.values)
            places = np.eye(size) if size <= MOST_VALUES else _signs(size, MOST_VALUES)
            found.append(np.concatenate([places, np.zeros((1, places.shape[1]))])[np.where(codes >= 0, codes, size)])
    found += [
        _text(batch, block.columns[0], block.family, chosen) for block in blocks if block.family.column_kind == TEXT
    ]
    return found


def _signs(values: int, width: int) -> Array:
    """A random direction for each value: those of different values are nearly orthogonal."""
    return np.asarray(np.random.default_rng(values).choice([-1.0, 1.0], (values, width)) / np.sqrt(width))


def _text(batch: CachedBatch, name: str, family: Any, chosen: NDArray[np.int64]) -> Array:
    """Each text as a unit vector: a random projection of its log counts times inverse document frequencies."""
    documents = batch.documents(name)
    bags = family.bags(documents.part(0, batch.rows), Vocabulary(), frozen=False)
    occurrences = np.bincount(bags.ids, minlength=len(bags.vocabulary))
    values = np.log1p(bags.counts) * np.log((1.0 + batch.rows) / (1.0 + occurrences))[bags.ids]
    owner = np.repeat(np.arange(len(bags)), np.diff(bags.indptr))
    mixed = np.empty((batch.rows, TEXT_WIDTH))
    rng = np.random.default_rng(len(occurrences))
    for j in range(TEXT_WIDTH):
        signs = rng.choice([-1.0, 1.0], len(occurrences))
        mixed[:, j] = np.bincount(owner, values * signs[bags.ids], batch.rows)
    length = np.linalg.norm(mixed, axis=1, keepdims=True)
    return np.asarray(np.divide(mixed, length, out=np.zeros_like(mixed), where=length > 0)[chosen])


def nearest_seeds(points: Points, k: int, seed: int, lloyd: int = LLOYD) -> NDArray[np.int64]:
    """Initial class of every sampled row: that of the nearest of k seeds, after some iterations of k-means.

    Points of known class keep it, and the seeds of these classes start at their means.
    """
    rng = np.random.default_rng(seed)
    x, w, known = points.x, points.weights, points.known
    if not len(x):
        raise DataError("there are no rows of positive weight: nothing can be clustered")
    seeds = _seeds(x, w, k, rng, {int(c): x[known == c].mean(0) for c in np.unique(known[known >= 0])})
    labels = np.where(known >= 0, known, _nearest(x, seeds))
    for _ in range(lloyd):
        onehot = np.zeros((k, len(x)))
        onehot[labels, np.arange(len(x))] = w
        n = onehot.sum(1, keepdims=True)
        seeds = np.where(n > 0, np.divide(onehot @ x, n, out=np.zeros_like(seeds), where=n > 0), seeds)
        before, labels = labels, np.where(known >= 0, known, _nearest(x, seeds))
        if np.array_equal(before, labels):
            break
    return labels[points.place]


def soft_responsibilities(points: Points, k: int, seed: int, lloyd: int, rng: np.random.Generator) -> Array:
    """Initial responsibilities of k classes: most for the class of the nearest seed, the rest random.

    With a zero responsibility a class might give some value no probability, which no iteration of EM could change. With
    fewer distinct rows than classes, all responsibilities are random.
    """
    found: Array = rng.dirichlet(np.ones(k), len(points.x))[points.place]
    with contextlib.suppress(DataError):
        found = FIRM * np.eye(k)[nearest_seeds(points, k, seed, lloyd)] + (1 - FIRM) * found
    known = points.known[points.place]
    found[known >= 0] = np.eye(k)[known[known >= 0]]
    return found


def _seeds(x: Array, w: Array, k: int, rng: np.random.Generator, known: Mapping[int, Array]) -> Array:
    """k-means++ seeding: each seed is drawn with probability proportional to its squared distance to those before."""
    seeds = np.empty((k, x.shape[1]))
    chance = w / w.sum()
    far = np.full(len(x), np.inf)
    for j, place in enumerate([*known, *(c for c in range(k) if c not in known)]):
        seeds[place] = known[place] if place in known else x[rng.choice(len(x), p=chance)]
        far = np.minimum(far, ((x - seeds[place]) ** 2).sum(1))
        # Rounding makes equal rows differ slightly: they are one seed all the same.
        far = np.where(far > 1e-18 * max(float((x**2).sum(1).max()), 1e-300), far, 0.0)
        mass = w * far
        if max(j + 1, len(known)) < k and not mass.sum() > 0:
            raise DataError(
                f"{k} components were asked for, but the rows are of {j + 1} different kind{'s' * (j > 0)} only: "
                f"choose k={j + 1} or less"
            )
        chance = mass / mass.sum() if mass.sum() > 0 else chance
    return seeds


def _nearest(x: Array, seeds: Array) -> NDArray[np.int64]:
    apart = (seeds**2).sum(1) - 2 * x @ seeds.T
    return np.asarray(apart.argmin(1), dtype=np.int64)
