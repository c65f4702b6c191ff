"""Smoothed weight of evidence of each value, its bandwidth and pseudocount chosen by leave-one-out.

The evidence of value x for class c is log(f[x, c] + m), relative to the average class; f[x, c] is the smoothed relative
frequency of the value in the class and m a pseudocount that is the same for all classes, so that rare values have little
evidence and unseen ones none. Bins of a number are smoothed along the ranks by a Gaussian kernel of some bandwidth, or the
classes are Gaussian densities. Shape and pseudocount maximise the leave-one-out likelihood of the labels, which has a closed
form: only the count of the row's own value and class decreases by one.

A choice made on the labels that are then left out is optimistic, and over many columns the optimism adds up. `nested`
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
# Per value, divided among the classes by their priors.
PSEUDOCOUNTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
REACH = 3.5  # bandwidths: beyond, the kernel is zero
SINGLE = 1e30  # rows: beyond, single precision overflows
HEAVIEST = 1e100  # rows: beyond, products of rows and densities overflow
FEWEST = 4  # distinct numbers from which Gaussian densities are tried
NARROWEST = 1e-3  # of the overall standard deviation: minimum of a class
SMOOTHED = [f"smoothed by {each:g} of the rows" for each in BANDWIDTHS]
NAMES = ("as counted", *SMOOTHED, "Gaussians", "Gaussians of one variance")  # of the shapes


@dataclass(frozen=True)
class SmoothedCounts:
    """Smoothed counts, sets × values × classes: with all rows, and with one row of that value and class left out."""

    name: str
    at: int  # among all shapes
    counts: Array
    left_out: Array
    total_left: Array  # sets × values: rows of all classes, once a row is left out

    def of(self, i: int) -> SmoothedCounts:
        """Smoothed counts of one set."""
        return SmoothedCounts(self.name, self.at, self.counts[i], self.left_out[i], self.total_left[i])


@dataclass(frozen=True, eq=False)
class SmoothedEvidence:
    """Weight of evidence of each value for each class, and the same for a row's own class with the row left out."""

    table: Array  # values × classes
    left_out: Array  # values × classes
    level: Array  # log frequency of each value in the average class
    shape: SmoothedCounts
    totals: Array  # rows of each class
    pseudocount: float
    gain: float  # in leave-one-out log likelihood over the class frequencies
    seen: Array  # rows, values × classes
    centres: Array | None  # the numbers that represent the values

    @property
    def how(self) -> str:
        """The choice in words."""
        return f"{self.shape.name}, {self.pseudocount:g} pseudocount{'' if self.pseudocount == 1 else 's'} a value"

    def probabilities(self) -> Array:
        """Smoothed relative frequency of each value in each class, classes × values."""
        grown = np.exp(self.table + self.level[:, None])
        shares: Array = (grown / np.maximum(grown.sum(0), 1e-300)).T
        return shares

    def without(self, values: NDArray[Any], labels: NDArray[Any], amount: Array) -> Array:
        """Evidence for each row's own class with `amount` of the row left out."""
        often, own = self.shape.counts[values, labels], self.shape.left_out[values, labels]
        rest = np.maximum(often - amount * (often - own), 0.0) / (np.maximum(self.totals[labels] - amount, 0.0) + 0.5)
        found: Array = np.log(rest + self.mass) - self.level[values]
        return found

    @property
    def mass(self) -> float:
        """The pseudocount as a relative frequency."""
        return _mass(self.totals, self.pseudocount)


def choose_smoothing(seen: Array, centres: Array | None = None) -> SmoothedEvidence:
    """Weight of evidence of a table of counts, values × classes; `centres` are the numbers that represent the values."""
    ((at, m, gain),) = _choices(seen[None], seen, centres)
    return replace(_evidence(seen, _shape(seen, centres, at), PSEUDOCOUNTS[m], gain), centres=centres)


def nested(whole: SmoothedEvidence, folds: Array) -> list[SmoothedEvidence]:
    """For each fold the evidence of all counts under the choice made without the fold, and last `whole`.

    `folds` are the counts of each fold, folds × values × classes. The gain of an entry is that of the counts without the fold.
    """
    seen, centres = whole.seen, whole.centres
    choices = _choices(np.maximum(seen - folds, 0.0), seen, centres)
    made = {(whole.shape.at, whole.pseudocount): whole}
    for at, m, _ in choices:
        if (at, PSEUDOCOUNTS[m]) not in made:
            made[at, PSEUDOCOUNTS[m]] = _evidence(seen, _shape(seen, centres, at), PSEUDOCOUNTS[m], 0.0)
    return [*(replace(made[at, PSEUDOCOUNTS[m]], gain=gain) for at, m, gain in choices), whole]


def gains_of(sets: Array, seen: Array, centres: Array | None) -> list[float]:
    """Gain of the best choice for each set of counts, sets × values × classes."""
    return [gain for _, _, gain in _choices(sets, seen, centres)]


def _choices(sets: Array, seen: Array, centres: Array | None) -> list[tuple[int, int, float]]:
    """For each set of counts the shape, the pseudocount and the gain of the maximum leave-one-out likelihood."""
    classes = sets.sum(1)
    whole = np.maximum(classes.sum(1, keepdims=True) - 1.0, 0.0) + 0.5 * classes.shape[1]
    rest = (np.maximum(classes - 1.0, 0.0) + 0.5) / whole
    alone = (classes * np.log(rest)).sum(1)
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
    for shape in shapes(sets, seen, centres):  # single precision: enough for the choice, and logs are most of the time
        own = np.log(shape.left_out[:, some].astype(kind)[:, None] + pseudo * share[:, None])
        others = np.log(shape.total_left.astype(kind)[:, None] + pseudo)
        scores.append((np.matmul(own, count[..., None]) - np.matmul(others, mass[..., None]))[..., 0].T)
    return np.array(scores, np.float64)


def _shape(seen: Array, centres: Array | None, at: int) -> SmoothedCounts:
    """One of the shapes of a table of counts."""
    return next(shapes(seen[None], seen, centres, at)).of(0)


def _evidence(seen: Array, shape: SmoothedCounts, pseudocount: float, gain: float) -> SmoothedEvidence:
    classes = seen.sum(0)
    prior = (classes + 0.5) / (classes.sum() + 0.5 * len(classes))
    grown = shape.counts / (classes + 0.5) + _mass(classes, pseudocount)
    level = np.log(grown @ prior)
    own = shape.left_out / (np.maximum(classes - 1.0, 0.0) + 0.5) + _mass(classes, pseudocount)
    table, left_out = np.log(grown) - level[:, None], np.log(own) - level[:, None]
    return SmoothedEvidence(table, left_out, level, shape, classes, pseudocount, gain, seen, None)


def _mass(classes: Array, pseudocount: float) -> float:
    """The pseudocount as a relative frequency."""
    return pseudocount / (float(classes.sum()) + 0.5 * len(classes))


def shapes(sets: Array, seen: Array, centres: Array | None, only: int | None = None) -> Iterator[SmoothedCounts]:
    """Counts of each set without smoothing, kernel-smoothed over bins, or as Gaussian densities; all, or only one."""
    if only in (None, 0):
        yield _smoothed(0, sets)
    if centres is None or sets.shape[1] < 2:
        return
    apart = squared_distances(seen)
    for at, bandwidth in enumerate(BANDWIDTHS, 1):
        if only in (None, at):
            yield _smoothed(at, np.matmul(kernel(apart, bandwidth), sets))
    if sets.shape[1] >= FEWEST and (only is None or only > len(BANDWIDTHS)):
        yield from (each for each in _gaussians(sets, seen, centres) if only in (None, each.at))


def _smoothed(at: int, often: Array) -> SmoothedCounts:
    return SmoothedCounts(NAMES[at], at, often, np.maximum(often - 1.0, 0.0), np.maximum(often.sum(2) - 1.0, 0.0))


def squared_distances(seen: Array) -> Array:
    """Squared distances of the middles of the bins along the ranks, from 0 to 1."""
    mass = seen.sum(1)
    rank = (np.cumsum(mass) - mass / 2) / max(float(mass.sum()), 1e-300)
    apart: Array = (rank[:, None] - rank) ** 2
    return apart


def kernel(apart: Array, bandwidth: float) -> Array:
    """Gaussian kernel weights between bins, 1 on the diagonal."""
    given = apart * (-0.5 / bandwidth**2)
    near = given >= -0.5 * REACH**2
    np.exp(given, out=given, where=near)
    given *= near
    return given


def _standardised(sets: Array, seen: Array, centres: Array) -> Array | None:
    """Representative numbers with mean 0 and variance 1; None where Gaussians cannot be fitted."""
    n = sets.sum((1, 2))
    if not (n > 0).all() or n.max() >= HEAVIEST:
        return None
    mass = seen.sum(1)
    total = float(mass.sum())
    x = centres / max(float(np.abs(centres).max()), 1e-300)
    x = x - float((x * mass).sum()) / total
    width = float(np.sqrt((x * x * mass).sum() / total))
    return x / width if width > 0 and np.isfinite(width) else None


def _gaussians(sets: Array, seen: Array, centres: Array) -> Iterator[SmoothedCounts]:
    """Gaussian densities by class, with a variance of their own, or with one variance for all."""
    standard = _standardised(sets, seen, centres)
    if standard is None:
        return
    n, x = sets.sum(1, keepdims=True), standard[None, :, None]
    mean = (sets * x).sum(1, keepdims=True) / np.maximum(n, 1e-300)
    spread = (sets * (x - mean) ** 2).sum(1, keepdims=True)
    apart, left = x - mean, np.maximum(n - 1.0, 1e-300)
    gone = np.where(n > 1, apart * apart * n / left, spread)
    mean_left = np.where(n > 1, mean - apart / left, 0.0)
    for pooled, name in enumerate(NAMES[-2:]):
        whole = spread.sum(2, keepdims=True) if pooled else spread
        rows, rows_left = (n.sum(2, keepdims=True), n.sum(2, keepdims=True) - 1.0) if pooled else (n, left)
        variance = np.maximum(whole / np.maximum(rows, 1e-300), NARROWEST**2)
        variance_left = np.maximum((whole - gone) / np.maximum(rows_left, 1e-300), NARROWEST**2)
        density = np.where(n > 0, _density(apart, variance), 0.0)
        without = np.where(n > 1, _density(x - mean_left, variance_left), 0.0)
        yield _of_densities(name, len(BANDWIDTHS) + 1 + pooled, n, density, without)


def _of_densities(name: str, at: int, n: Array, density: Array, without: Array) -> SmoothedCounts:
    """Densities as counts, scaled so that a value of average density has the average count."""
    total = n.sum(2, keepdims=True)
    scale = (total / density.shape[1]) / np.maximum((density * n).sum(2, keepdims=True), 1e-300)
    often = density * n * scale
    own = without * np.maximum(n - 1.0, 0.0) * scale
    # The rows left in all classes differ with the class that the row is left out of; this is their mean.
    lost = ((often - own) * often).sum(2) / np.maximum(often.sum(2), 1e-300)
    return SmoothedCounts(name, at, often, own, np.maximum(often.sum(2) - lost, 0.0))


def _density(apart: Array, variance: Array) -> Array:
    curve: Array = np.exp(-0.5 * apart * apart / variance) / np.sqrt(variance)
    return curve
