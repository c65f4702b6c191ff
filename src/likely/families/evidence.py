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

from likely.families import choosing
from likely.families.statistics import Array

# On the scale of ranks, 0 to 1.
BANDWIDTHS = (0.004, 0.008, 0.016, 0.03, 0.06, 0.12, 0.25)
PSEUDOCOUNTS = (
    0.5,
    1.0,
    2.0,
    4.0,
    8.0,
    16.0,
    32.0,
    64.0,
    128.0,
)  # rows a value, divided among the classes by their priors
REACH = 3.5  # bandwidths: beyond, the kernel is zero
SINGLE = 1e30  # rows: beyond, single precision overflows
HEAVIEST = 1e100  # rows: beyond, products of rows and densities overflow
FEWEST = 4  # different numbers for which a Gaussian density is tried
COMPILED = 4_000  # entries of the tables of all columns together, from which on compiled loops pay for their import
NARROWEST = 1e-3  # of the overall deviation: the least deviation of a class


@dataclass(frozen=True)
class Shape:
    """Smoothed counts, sets × values × classes: all rows, and with one row of that value and class left out."""

    name: str
    at: int  # among all shapes
    often: Array
    own: Array
    whole: Array  # sets × values: rows of all classes, once a row is left out

    def of(self, i: int) -> Shape:
        """The shape of one set of counts."""
        return Shape(self.name, self.at, self.often[i], self.own[i], self.whole[i])


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
    seen: Array  # rows, values × classes
    centres: Array | None  # the numbers that the values stand for

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


def weigh(seen: Array, centres: Array | None = None, compiled: bool = False) -> Evidence:
    """The evidence of a table of counts, values × classes; `centres` are the numbers that the values stand for."""
    ((at, m, gain),) = _choices(seen[None], seen, centres, compiled)
    return replace(_evidence(seen, _shape(seen, centres, at, compiled), PSEUDOCOUNTS[m], gain), centres=centres)


def nested(whole: Evidence, folds: Array, compiled: bool = False) -> list[Evidence]:
    """For each fold the evidence of all counts under the choice made without the fold, then `whole`, that of `weigh`.

    `folds` are the counts of each fold, folds × values × classes. The gain of an entry is that of the counts without the fold.
    """
    seen, centres = whole.seen, whole.centres
    choices = _choices(np.maximum(seen - folds, 0.0), seen, centres, compiled)
    made = {(whole.shape.at, whole.pseudocount): whole}
    for at, m, _ in choices:
        if (at, PSEUDOCOUNTS[m]) not in made:
            made[at, PSEUDOCOUNTS[m]] = _evidence(seen, _shape(seen, centres, at, compiled), PSEUDOCOUNTS[m], 0.0)
    return [*(replace(made[at, PSEUDOCOUNTS[m]], gain=gain) for at, m, gain in choices), whole]


def _choices(sets: Array, seen: Array, centres: Array | None, compiled: bool) -> list[tuple[int, int, float]]:
    """For each set of counts the shape, the pseudocount and the gain of the greatest leave-one-out likelihood."""
    classes = sets.sum(1)
    whole = np.maximum(classes.sum(1, keepdims=True) - 1.0, 0.0) + 0.5 * classes.shape[1]
    rest = (np.maximum(classes - 1.0, 0.0) + 0.5) / whole
    alone = (classes * np.log(rest)).sum(1)
    if compiled and centres is not None and float(classes.sum()) < SINGLE:
        scores = _compiled_scores(sets, seen, centres, rest)
    else:
        scores = _scores(sets, seen, centres, rest)
    best = scores.reshape(-1, len(sets)).argmax(0)
    at, m = np.divmod(best, len(PSEUDOCOUNTS))
    gains = scores[at, m, np.arange(len(sets))] - alone
    return list(zip(at.tolist(), m.tolist(), gains.tolist(), strict=True))


def _scores(sets: Array, seen: Array, centres: Array | None, rest: Array) -> Array:
    """Leave-one-out log likelihood, shapes × pseudocounts × sets."""
    kind: Any = np.float32 if sets.sum() < SINGLE else np.float64
    mass, pseudo = sets.sum(2), np.array(PSEUDOCOUNTS, kind)[:, None]
    some = sets.any(0)  # values × classes: where no set has a row, nothing is added
    count, share = sets[:, some], np.broadcast_to(rest[:, None], sets.shape)[:, some].astype(kind)
    scores = []
    for shape in shapes(
        sets, seen, centres
    ):  # single precision: the choice needs no more, and logs are most of the time
        own = np.log(shape.own[:, some].astype(kind)[:, None] + pseudo * share[:, None])
        others = np.log(shape.whole.astype(kind)[:, None] + pseudo)
        scores.append((np.matmul(own, count[..., None]) - np.matmul(others, mass[..., None]))[..., 0].T)
    return np.array(scores, np.float64)


def _compiled_scores(sets: Array, seen: Array, centres: Array, rest: Array) -> Array:
    """The same by compiled loops, for a table with many columns."""
    n, values, classes = sets.shape
    bandwidths = np.array(BANDWIDTHS) if values > 1 else np.zeros(0)
    often = np.zeros((len(bandwidths), values, n * classes))
    side_by_side = np.ascontiguousarray(sets.transpose(1, 0, 2)).reshape(values, -1)
    choosing.smooth.fast(side_by_side, ranks(seen), bandwidths, REACH, often)
    smoothed = np.concatenate([sets[None], often.reshape(-1, values, n, classes).transpose(0, 2, 1, 3)])
    own, whole = np.maximum(smoothed - 1.0, 0.0), np.maximum(smoothed.sum(3) - 1.0, 0.0)
    x = _standardised(sets, seen, centres)
    if x is not None and values >= FEWEST:
        densities = _compiled_densities(sets, x)
        own, whole = np.concatenate([own, densities[0]]), np.concatenate([whole, densities[1]])
    some = sets.any(0)
    base = np.concatenate([own[:, :, some], whole], axis=2, dtype=np.float32)
    count = np.concatenate([sets[:, some], -sets.sum(2)], axis=1, dtype=np.float32)
    share = np.broadcast_to(rest[:, None], sets.shape)[:, some]
    share = np.concatenate([share, np.ones((n, values))], axis=1, dtype=np.float32)
    sums = np.empty((len(own) * n, len(PSEUDOCOUNTS)))
    choosing.log_sums.fast(base.reshape(len(sums), -1), share, count, np.array(PSEUDOCOUNTS), sums)
    return sums.reshape(len(own), n, -1).transpose(0, 2, 1)


def _compiled_densities(sets: Array, x: Array) -> tuple[Array, Array]:
    """What `_gaussians` has, by compiled loops."""
    n, mean, spread = np.zeros((3, len(sets), sets.shape[2]))
    choosing.moments.fast(sets, x, n, mean, spread)
    own, whole = np.zeros((2, *sets.shape)), np.empty((2, *sets.shape[:2]))
    total = n.sum(1)
    of_all = [np.repeat(each.sum(1)[:, None], n.shape[1], axis=1) for each in (spread, n)]
    for i, (squares, rows) in enumerate(((spread, n), of_all)):
        often = np.zeros(sets.shape)
        choosing.densities.fast(x, n, mean, squares, rows, often, own[i])
        choosing.as_counts.fast(often, own[i], total, whole[i])
    return own, whole


def _shape(seen: Array, centres: Array | None, at: int, compiled: bool) -> Shape:
    """One of the shapes of a table of counts."""
    if not compiled or not 0 < at <= len(BANDWIDTHS):
        return next(shapes(seen[None], seen, centres, at)).of(0)
    often = np.zeros((1, *seen.shape))
    choosing.smooth.fast(seen, ranks(seen), np.array(BANDWIDTHS[at - 1 : at]), REACH, often)
    return _smoothed(at, often).of(0)


def _evidence(seen: Array, shape: Shape, pseudocount: float, gain: float) -> Evidence:
    classes = seen.sum(0)
    prior = (classes + 0.5) / (classes.sum() + 0.5 * len(classes))
    grown = shape.often / (classes + 0.5) + _mass(classes, pseudocount)
    level = np.log(grown @ prior)
    own = shape.own / (np.maximum(classes - 1.0, 0.0) + 0.5) + _mass(classes, pseudocount)
    table, left_out = np.log(grown) - level[:, None], np.log(own) - level[:, None]
    return Evidence(table, left_out, level, shape, classes, pseudocount, gain, seen, None)


def _mass(classes: Array, pseudocount: float) -> float:
    """The pseudocount as a relative frequency."""
    return pseudocount / (float(classes.sum()) + 0.5 * len(classes))


def shapes(sets: Array, seen: Array, centres: Array | None, only: int | None = None) -> Iterator[Shape]:
    """The counts of each set as they are, smoothed over neighbouring bins, or as Gaussian densities; all, or only one."""
    if only in (None, 0):
        yield _smoothed(0, sets)
    if centres is None or sets.shape[1] < 2:
        return
    for at, bandwidth in enumerate(BANDWIDTHS, 1):
        if only in (None, at):
            lent = np.matmul(kernel(squares_apart(seen), bandwidth), sets)
            yield _smoothed(at, lent)
    if sets.shape[1] >= FEWEST and (only is None or only > len(BANDWIDTHS)):
        yield from (each for each in _gaussians(sets, seen, centres) if only in (None, each.at))


def _smoothed(at: int, often: Array) -> Shape:
    name = f"smoothed by {BANDWIDTHS[at - 1]:g} of the rows" if at else "as counted"
    return Shape(name, at, often, np.maximum(often - 1.0, 0.0), np.maximum(often.sum(2) - 1.0, 0.0))


def ranks(seen: Array) -> Array:
    """The middle of each bin along the ranks, from 0 to 1."""
    mass = seen.sum(1)
    rank: Array = (np.cumsum(mass) - mass / 2) / max(float(mass.sum()), 1e-300)
    return rank


def squares_apart(seen: Array) -> Array:
    """Squared distances of the bins along the ranks."""
    rank = ranks(seen)
    apart: Array = (rank[:, None] - rank) ** 2
    return apart


def kernel(apart: Array, bandwidth: float) -> Array:
    """What each bin adds to each other one: a Gaussian kernel, 1 at its own bin."""
    given = apart * (-0.5 / bandwidth**2)
    near = given >= -0.5 * REACH**2
    np.exp(given, out=given, where=near)
    given *= near
    return given


def _standardised(sets: Array, seen: Array, centres: Array) -> Array | None:
    """The numbers that the values stand for, with mean 0 and variance 1; None where Gaussians make no sense."""
    n = sets.sum((1, 2))
    if not (n > 0).all() or n.max() >= HEAVIEST:
        return None
    mass = seen.sum(1)
    total = float(mass.sum())
    x = centres / max(float(np.abs(centres).max()), 1e-300)
    x = x - float((x * mass).sum()) / total
    width = float(np.sqrt((x * x * mass).sum() / total))
    return x / width if width > 0 and np.isfinite(width) else None


def _gaussians(sets: Array, seen: Array, centres: Array) -> Iterator[Shape]:
    """Each class a Gaussian density with a variance of its own, or with one variance for all."""
    standard = _standardised(sets, seen, centres)
    if standard is None:
        return
    n, x = sets.sum(1, keepdims=True), standard[None, :, None]
    mean = (sets * x).sum(1, keepdims=True) / np.maximum(n, 1e-300)
    spread = (sets * (x - mean) ** 2).sum(1, keepdims=True)
    apart, left = x - mean, np.maximum(n - 1.0, 1e-300)
    gone = np.where(n > 1, apart * apart * n / left, spread)
    mean_left = np.where(n > 1, mean - apart / left, 0.0)
    for pooled, name in enumerate(("Gaussians", "Gaussians of one variance")):
        whole = spread.sum(2, keepdims=True) if pooled else spread
        rows, rows_left = (n.sum(2, keepdims=True), n.sum(2, keepdims=True) - 1.0) if pooled else (n, left)
        variance = np.maximum(whole / np.maximum(rows, 1e-300), NARROWEST**2)
        variance_left = np.maximum((whole - gone) / np.maximum(rows_left, 1e-300), NARROWEST**2)
        density = np.where(n > 0, _density(apart, variance), 0.0)
        without = np.where(n > 1, _density(x - mean_left, variance_left), 0.0)
        yield _of_densities(name, len(BANDWIDTHS) + 1 + pooled, n, density, without)


def _of_densities(name: str, at: int, n: Array, density: Array, without: Array) -> Shape:
    """Densities as counts: scaled so that a value of average density has the rows that a bin has on average."""
    total = n.sum(2, keepdims=True)
    scale = (total / density.shape[1]) / np.maximum((density * n).sum(2, keepdims=True), 1e-300)
    often = density * n * scale
    own = without * np.maximum(n - 1.0, 0.0) * scale
    # The rows left in all classes differ with the class that the row is left out of; this is their mean.
    lost = ((often - own) * often).sum(2) / np.maximum(often.sum(2), 1e-300)
    return Shape(name, at, often, own, np.maximum(often.sum(2) - lost, 0.0))


def _density(apart: Array, variance: Array) -> Array:
    curve: Array = np.exp(-0.5 * apart * apart / variance) / np.sqrt(variance)
    return curve
