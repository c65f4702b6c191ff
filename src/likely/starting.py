"""Where EM starts: rows as points, seeds far apart (k-means++), and each row with the nearest seed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.engines.shares import Held
from likely.errors import DataError
from likely.families import Block, Text
from likely.schema import CATEGORY, NUMBER, Schema
from likely.tokens import Vocabulary

Array = NDArray[np.float64]
Part = tuple[Held, NDArray[np.int64], Array]
MOST_ROWS = 10_000
MOST_VALUES = 64  # a column of more values has its values mixed into so many numbers
TEXT_WIDTH = 64
FAR = 8.0  # deviations: a wild number must not be a cluster of its own for its wildness alone
STEPS = 10
FIRM = 0.6  # what the nearest seed has of a row in a soft start


@dataclass(frozen=True)
class Points:
    """Some of the rows as points of a space; equal rows are one point, so that a weight is as good as copies."""

    x: Array
    weights: Array
    known: NDArray[np.int64]  # the class of a point, -1 where it is hidden
    place: NDArray[np.int64]  # which point each of the rows is
    rows: list[NDArray[np.int64]]  # the rows that were taken, part by part


def points(parts: Iterable[Part], schema: Schema, blocks: tuple[Block, ...], whole: int, seed: int) -> Points:
    """A sample of the rows: numbers in deviations, a category as one place of many, a text as a few numbers."""
    rng = np.random.default_rng(seed)
    table, weights, rows, classes = [], [], [], []
    for batch, labels, w in parts:
        chosen = np.flatnonzero(w > 0)
        if whole > MOST_ROWS:
            chosen = chosen[rng.random(len(chosen)) < MOST_ROWS / whole]
        rows.append(chosen)
        weights.append(w[chosen])
        classes.append(labels[chosen])
        table.append(np.column_stack([np.zeros((len(chosen), 0)), *_columns(batch, schema, blocks, chosen)]))
    x, w, known = np.concatenate(table), np.concatenate(weights), np.concatenate(classes)
    names = [c.name for c in schema.columns if c.kind == NUMBER]
    x[:, : len(names)] = _in_deviations(x[:, : len(names)], w)
    _, first, place = np.unique(
        np.column_stack([known, np.round(x, 9)]), axis=0, return_index=True, return_inverse=True
    )
    place = place.reshape(-1)
    return Points(x[first], np.bincount(place, w, len(first)).astype(np.float64), known[first], place, rows)


def _in_deviations(x: Array, w: Array) -> Array:
    """Numbers less their mean, in standard deviations; a missing one stands in the middle."""
    with np.errstate(all="ignore"):
        weight = np.where(np.isnan(x), 0.0, w[:, None])
        n = np.maximum(weight.sum(0), 1e-300)
        start = np.nan_to_num(np.nanmin(x, 0, initial=np.inf), posinf=0.0)  # large numbers keep their digits
        middle = start + (weight * np.nan_to_num(x - start)).sum(0) / n
        wide = np.sqrt((weight * np.nan_to_num(x - middle) ** 2).sum(0) / n)
        apart = np.nan_to_num(x - middle) / np.where(wide > 0, wide, np.inf)
    return np.asarray(np.clip(np.nan_to_num(apart), -FAR, FAR))


def _columns(batch: Held, schema: Schema, blocks: tuple[Block, ...], chosen: NDArray[np.int64]) -> list[Array]:
    """The numbers first, then the categories, then the texts."""
    names = [c.name for c in schema.columns if c.kind == NUMBER]
    found = [batch.numbers(names, 0, batch.rows)[chosen]]
    for column in schema.columns:
        if column.kind == CATEGORY:
            codes = batch.coded(column.name).codes[chosen]
            size = len(column.values)
            places = np.eye(size) if size <= MOST_VALUES else _signs(size, MOST_VALUES)
            found.append(np.concatenate([places, np.zeros((1, places.shape[1]))])[np.where(codes >= 0, codes, size)])
    found += [
        _text(batch, block.columns[0], block.family, chosen) for block in blocks if isinstance(block.family, Text)
    ]
    return found


def _signs(values: int, width: int) -> Array:
    """A random direction for each value: different values are nearly at right angles."""
    return np.asarray(np.random.default_rng(values).choice([-1.0, 1.0], (values, width)) / np.sqrt(width))


def _text(batch: Held, name: str, family: Text, chosen: NDArray[np.int64]) -> Array:
    """Each text as the direction of its words, rare ones weighed up, mixed into a few numbers."""
    documents = batch.documents(name)
    bags = family.bags(documents.part(0, batch.rows), Vocabulary(), frozen=False)
    held = np.bincount(bags.ids, minlength=len(bags.vocabulary))
    values = np.log1p(bags.counts) * np.log((1.0 + batch.rows) / (1.0 + held))[bags.ids]
    owner = np.repeat(np.arange(len(bags)), np.diff(bags.indptr))
    mixed = np.empty((batch.rows, TEXT_WIDTH))
    rng = np.random.default_rng(len(held))
    for j in range(TEXT_WIDTH):
        signs = rng.choice([-1.0, 1.0], len(held))
        mixed[:, j] = np.bincount(owner, values * signs[bags.ids], batch.rows)
    length = np.linalg.norm(mixed, axis=1, keepdims=True)
    return np.asarray(np.divide(mixed, length, out=np.zeros_like(mixed), where=length > 0)[chosen])


def nearest_seeds(points: Points, k: int, seed: int, steps: int = STEPS) -> NDArray[np.int64]:
    """A first class for every row: that of the nearest of k seeds, moved to the middle of their points a few times.

    Points whose class is known keep it, and the first seeds of these classes are the middles of them.
    """
    rng = np.random.default_rng(seed)
    x, w, known = points.x, points.weights, points.known
    if not len(x):
        raise DataError("there are no rows of positive weight: nothing can be clustered")
    seeds = _seeds(x, w, k, rng, {int(c): x[known == c].mean(0) for c in np.unique(known[known >= 0])})
    labels = np.where(known >= 0, known, _nearest(x, seeds))
    for _ in range(steps):
        onehot = np.zeros((k, len(x)))
        onehot[labels, np.arange(len(x))] = w
        n = onehot.sum(1, keepdims=True)
        seeds = np.where(n > 0, np.divide(onehot @ x, n, out=np.zeros_like(seeds), where=n > 0), seeds)
        before, labels = labels, np.where(known >= 0, known, _nearest(x, seeds))
        if np.array_equal(before, labels):
            break
    return labels[points.place]


def soft_shares(points: Points, k: int, seed: int, steps: int, rng: np.random.Generator) -> Array:
    """First shares of k classes in every row: most of it falls to the nearest seed, the rest is random.

    With zero shares a class would give some value no probability, and no round of EM could change that. Where there are
    fewer kinds of rows than classes, all shares are random.
    """
    shares: Array = rng.dirichlet(np.ones(k), len(points.x))[points.place]
    with contextlib.suppress(DataError):
        shares = FIRM * np.eye(k)[nearest_seeds(points, k, seed, steps)] + (1 - FIRM) * shares
    known = points.known[points.place]
    shares[known >= 0] = np.eye(k)[known[known >= 0]]
    return shares


def _seeds(x: Array, w: Array, k: int, rng: np.random.Generator, known: Mapping[int, Array]) -> Array:
    """Rows far from each other: each next one is drawn by its squared distance to those before (k-means++)."""
    seeds = np.empty((k, x.shape[1]))
    chance = w / w.sum()
    far = np.full(len(x), np.inf)
    for j, place in enumerate([*known, *(c for c in range(k) if c not in known)]):
        seeds[place] = known[place] if place in known else x[rng.choice(len(x), p=chance)]
        far = np.minimum(far, ((x - seeds[place]) ** 2).sum(1))
        # Rounding makes equal rows differ by a hair: they are one seed all the same.
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
