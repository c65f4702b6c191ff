"""Smoothed evidence of a value for the classes, its bandwidth and pseudocount chosen by leave-one-out.

The evidence of value x for class c is log(f[x, c] + m), relative to the average class; f[x, c] is the smoothed relative
frequency of the value in the class and m a pseudocount that is the same for all classes, so that rare values have little
evidence and unseen ones none. Bins of a number are smoothed along the ranks by a Gaussian kernel of some bandwidth, or the
classes are Gaussian densities. Shape and pseudocount maximise the leave-one-out likelihood of the labels, which is a closed
form: the row's own class has one row less in its value, and nothing else changes.

A choice made on the very labels that are then left out is optimistic, and over many columns the optimism adds up. `nested`
therefore makes the choice once more for each fold of the rows from the counts without that fold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.statistics import Array

# On the scale of ranks, 0 to 1.
BANDWIDTHS = (0.004, 0.008, 0.016, 0.03, 0.06, 0.12, 0.25)
PSEUDOCOUNTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # rows a value, divided among the classes by their priors
REACH = 3.5  # bandwidths: beyond, the kernel is zero
SINGLE = 1e30  # rows: beyond, single precision overflows
HEAVIEST = 1e100  # rows: beyond, products of rows and densities overflow
FEWEST = 4  # different numbers for which a Gaussian density is tried
NARROWEST = 1e-3  # of the overall deviation: the least deviation of a class


@dataclass(frozen=True)
class Shape:
    """Smoothed counts, sets × values × classes: all rows, and with one row of that value and class left out."""

    name: str
    often: Array
    own: Array
    whole: Array  # sets × values: rows of all classes, once a row is left out

    def of(self, i: int) -> Shape:
        """The shape of one set of counts."""
        return Shape(self.name, self.often[i], self.own[i], self.whole[i])


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of each value for each class, and the same for a row's own class with the row left out."""

    table: Array  # values × classes
    left_out: Array  # values × classes
    level: Array  # log of how often each value occurs in the average class
    shape: Shape
    totals: Array  # rows of each class
    pseudocount: float
    gain: float  # of leave-one-out log likelihood over the class frequencies

    @property
    def how(self) -> str:
        """The choice in words."""
        return f"{self.shape.name}, {self.pseudocount:g} pseudocount{'' if self.pseudocount == 1 else 's'} a value"

    def probabilities(self) -> Array:
        """The smoothed relative frequency of each value in each class, classes × values."""
        grown = np.exp(self.table + self.level[:, None])
        shares: Array = (grown / np.maximum(grown.sum(0), 1e-300)).T
        return shares

    def without(self, values: NDArray[Any], labels: NDArray[Any], amount: Array) -> Array:
        """Evidence for each row's own class with `amount` of the row left out."""
        often, own = self.shape.often[values, labels], self.shape.own[values, labels]
        rest = np.maximum(often - amount * (often - own), 0.0) / (np.maximum(self.totals[labels] - amount, 0.0) + 0.5)
        found: Array = np.log(rest + self._mass) - self.level[values]
        return found

    @property
    def _mass(self) -> float:
        return _mass(self.totals, self.pseudocount)


def weigh(seen: Array, centres: Array | None = None) -> Evidence:
    """The evidence of a table of counts, values × classes; `centres` are the numbers that the values stand for."""
    (choice,), full = _choices(seen[None], centres)
    return _evidence(seen, full[choice[0]].of(0), PSEUDOCOUNTS[choice[1]], choice[2])


def nested(seen: Array, centres: Array | None, folds: Array) -> list[Evidence]:
    """For each fold the evidence of all counts under the choice made without the fold, then the evidence of `weigh`.

    `folds` are the counts of each fold, folds × values × classes. The gain of an entry is that of the counts without the fold.
    """
    sets = np.concatenate([np.maximum(seen - folds, 0.0), seen[None]])
    choices, full = _choices(sets, centres)
    made: dict[tuple[int, int], Evidence] = {}
    for at, m, _ in choices:
        if (at, m) not in made:
            made[at, m] = _evidence(seen, full[at].of(len(folds)), PSEUDOCOUNTS[m], 0.0)
    return [replace(made[at, m], gain=gain) for at, m, gain in choices]


def _choices(sets: Array, centres: Array | None) -> tuple[list[tuple[int, int, float]], list[Shape]]:
    """For each set of counts the shape, the pseudocount and the gain of the greatest leave-one-out likelihood."""
    classes = sets.sum(1)
    whole = np.maximum(classes.sum(1, keepdims=True) - 1.0, 0.0) + 0.5 * classes.shape[1]
    rest = (np.maximum(classes - 1.0, 0.0) + 0.5) / whole
    alone = (classes * np.log(rest)).sum(1)
    full = list(shapes(sets, centres))
    kind: Any = np.float32 if classes.sum() < SINGLE else np.float64
    mass, pseudo = sets.sum(2), np.array(PSEUDOCOUNTS, kind)[:, None]
    scores = np.empty((len(full), len(sets), len(PSEUDOCOUNTS)))
    some = sets.any(0)  # values × classes: where no set has a row, nothing is added
    count, share = sets[:, some], np.broadcast_to(rest[:, None], sets.shape)[:, some].astype(kind)
    for s, shape in enumerate(full):  # single precision: the choice needs no more, and logs are most of the time
        own = np.log(shape.own[:, some].astype(kind)[:, None] + pseudo * share[:, None])
        others = np.log(shape.whole.astype(kind)[:, None] + pseudo)
        scores[s] = (np.matmul(own, count[..., None]) - np.matmul(others, mass[..., None]))[..., 0]
    scores = scores.swapaxes(1, 2)
    best = scores.reshape(-1, len(sets)).argmax(0)
    at, m = np.divmod(best, len(PSEUDOCOUNTS))
    gains = scores[at, m, np.arange(len(sets))] - alone
    return list(zip(at.tolist(), m.tolist(), gains.tolist(), strict=True)), full


def _evidence(seen: Array, shape: Shape, pseudocount: float, gain: float) -> Evidence:
    classes = seen.sum(0)
    prior = (classes + 0.5) / (classes.sum() + 0.5 * len(classes))
    grown = shape.often / (classes + 0.5) + _mass(classes, pseudocount)
    level = np.log(grown @ prior)
    own = shape.own / (np.maximum(classes - 1.0, 0.0) + 0.5) + _mass(classes, pseudocount)
    table, left_out = np.log(grown) - level[:, None], np.log(own) - level[:, None]
    return Evidence(table, left_out, level, shape, classes, pseudocount, gain)


def _mass(classes: Array, pseudocount: float) -> float:
    """The pseudocount as a relative frequency."""
    return pseudocount / (float(classes.sum()) + 0.5 * len(classes))


def shapes(sets: Array, centres: Array | None) -> Iterator[Shape]:
    """The counts of each set as they are, smoothed over neighbouring bins, or as Gaussian densities."""
    yield _smoothed("as counted", sets)
    if centres is None or sets.shape[1] < 2:
        return
    apart = squares_apart(sets[-1])
    for bandwidth in BANDWIDTHS:  # set by set: of larger products, linear algebra takes threads of its own
        yield _smoothed(f"smoothed by {bandwidth:g} of the rows", np.matmul(kernel(apart, bandwidth), sets))
    if sets.shape[1] >= FEWEST:
        yield from _gaussians(sets, centres)


def _smoothed(name: str, often: Array) -> Shape:
    return Shape(name, often, np.maximum(often - 1.0, 0.0), np.maximum(often.sum(2) - 1.0, 0.0))


def squares_apart(seen: Array) -> Array:
    """Squared distances of the bins along the ranks."""
    mass = seen.sum(1)
    rank = (np.cumsum(mass) - mass / 2) / max(float(mass.sum()), 1e-300)
    apart: Array = (rank[:, None] - rank) ** 2
    return apart


def kernel(apart: Array, bandwidth: float) -> Array:
    """What each bin adds to each other one: a Gaussian kernel, 1 at its own bin."""
    given = apart * (-0.5 / bandwidth**2)
    near = given >= -0.5 * REACH**2
    np.exp(given, out=given, where=near)
    given *= near
    return given


def _gaussians(sets: Array, centres: Array) -> Iterator[Shape]:
    """Each class a Gaussian density with a variance of its own, or with one variance for all."""
    n = sets.sum(1, keepdims=True)
    if not (n.sum((1, 2)) > 0).all() or n.max() >= HEAVIEST:
        return
    mass = sets[-1].sum(1)
    scale = max(float(np.abs(centres).max()), 1e-300)
    x = centres / scale
    x = x - np.average(x, weights=mass)
    width = float(np.sqrt(np.average(x * x, weights=mass)))
    if not (width > 0 and np.isfinite(width)):
        return
    x = (x / width)[None, :, None]
    mean = (sets * x).sum(1, keepdims=True) / np.maximum(n, 1e-300)
    spread = (sets * (x - mean) ** 2).sum(1, keepdims=True)
    apart, left = x - mean, np.maximum(n - 1.0, 1e-300)
    gone = np.where(n > 1, apart * apart * n / left, spread)
    mean_left = np.where(n > 1, mean - apart / left, 0.0)
    for name, pooled in (("Gaussians", False), ("Gaussians of one variance", True)):
        whole = spread.sum(2, keepdims=True) if pooled else spread
        rows, rows_left = (n.sum(2, keepdims=True), n.sum(2, keepdims=True) - 1.0) if pooled else (n, left)
        variance = np.maximum(whole / np.maximum(rows, 1e-300), NARROWEST**2)
        variance_left = np.maximum((whole - gone) / np.maximum(rows_left, 1e-300), NARROWEST**2)
        density = np.where(n > 0, _density(apart, variance), 0.0)
        without = np.where(n > 1, _density(x - mean_left, variance_left), 0.0)
        yield _of_densities(name, n, density, without)


def _of_densities(name: str, n: Array, density: Array, without: Array) -> Shape:
    """Densities as counts: scaled so that a value of average density has the rows that a bin has on average."""
    total = n.sum(2, keepdims=True)
    scale = (total / density.shape[1]) / np.maximum((density * n).sum(2, keepdims=True), 1e-300)
    often = density * n * scale
    own = without * np.maximum(n - 1.0, 0.0) * scale
    # The rows left in all classes differ with the class that the row is left out of; this is their mean.
    lost = ((often - own) * often).sum(2) / np.maximum(often.sum(2), 1e-300)
    return Shape(name, often, own, np.maximum(often.sum(2) - lost, 0.0))


def _density(apart: Array, variance: Array) -> Array:
    curve: Array = np.exp(-0.5 * apart * apart / variance) / np.sqrt(variance)
    return curve
