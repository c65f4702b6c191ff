"""What a value says of the classes, as strongly as leaving each row out shows that it may.

The evidence of value x for class c is log(f[x, c] + share), read against the average class; f is how often the value occurs
there. The share is imagined: every value occurs a little in every class alike, so rare values say little and a value never seen
says nothing. Numbers in bins take one of several shapes: each bin lends weight to its neighbours along the ranks, more or less
far, or the classes are bell curves. Shape and share are chosen by the likelihood of the labels when each row is left out of the
counts, which is a closed form: its own class has one row less there, and nothing else moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likely.families.statistics import Array

# On the scale of ranks, 0 to 1: how far a bin lends to its neighbours.
BANDWIDTHS = (0.004, 0.008, 0.016, 0.03, 0.06, 0.12, 0.25)
IMAGINED = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # rows a value, spread over the classes as they occur
REACH = 3.5  # bandwidths: further away, nothing is lent
HEAVIEST = 1e100  # rows: beyond, products of rows and densities overflow
FEWEST = 4  # different numbers that can show a bell curve
NARROWEST = 1e-3  # of the whole deviation: a class is not narrower for having been seen seldom


@dataclass(frozen=True)
class Shape:
    """How often each value occurs in each class under one way to see it, as it stands and with one row left out of it."""

    name: str
    often: Array  # values × classes, of rows
    own: Array  # the same once a row of that value and class is left out
    whole: Array  # values: of rows in all classes, once a row is left out


@dataclass(frozen=True, eq=False)
class Evidence:
    """A table of what each value says of each class, and of what it says of a row's own class once the row is left out."""

    table: Array  # values × classes
    left_out: Array  # values × classes
    level: Array  # log of how often each value occurs in the average class
    shape: str
    imagined: float
    gain: float  # of log likelihood by leave-one-out, against the shares of the classes alone

    @property
    def how(self) -> str:
        """What was chosen, in words."""
        return f"{self.shape}, {self.imagined:g} imagined row{'' if self.imagined == 1 else 's'} a value"

    def probabilities(self) -> Array:
        """How often each value occurs in each class, classes × values."""
        grown = np.exp(self.table + self.level[:, None])
        shares: Array = (grown / np.maximum(grown.sum(0), 1e-300)).T
        return shares


def weigh(seen: Array, centres: Array | None = None) -> Evidence:
    """The evidence of a table of counts, values × classes; `centres` are the numbers that the values stand for."""
    classes, whole = seen.sum(0), float(seen.sum())
    prior = (classes + 0.5) / (whole + 0.5 * len(classes))
    rest = (np.maximum(classes - 1.0, 0.0) + 0.5) / (max(whole - 1.0, 0.0) + 0.5 * len(classes))
    shape, imagined, gain = _choose(seen, rest, shapes(seen, centres))
    share = imagined / (whole + 0.5 * len(classes))
    grown = shape.often / (classes + 0.5) + share
    level = np.log(grown @ prior)
    own = shape.own / (np.maximum(classes - 1.0, 0.0) + 0.5) + share
    gain -= float((classes * np.log(rest)).sum())
    table, left_out = np.log(grown) - level[:, None], np.log(own) - level[:, None]
    return Evidence(table, left_out, level, shape.name, imagined, gain)


def _choose(seen: Array, rest: Array, ways: Iterator[Shape]) -> tuple[Shape, float, float]:
    """The shape and the number of imagined rows under which the left-out labels are most likely."""
    values, labels = np.nonzero(seen)
    count, share, mass = seen[values, labels], rest[labels], seen.sum(1)
    m = np.array(IMAGINED)[:, None]
    best: tuple[Shape, float, float] | None = None
    for way in ways:
        scores = np.log(way.own[values, labels] + m * share) @ count - np.log(way.whole + m) @ mass
        i = int(np.argmax(scores))
        if best is None or scores[i] > best[2]:
            best = (way, IMAGINED[i], float(scores[i]))
    assert best is not None
    return best


def shapes(seen: Array, centres: Array | None) -> Iterator[Shape]:
    """The ways to see a column: as values of their own, as bins that lend to each other, or as bell curves."""
    yield _lent("as counted", seen)
    if centres is None or len(seen) < 2:
        return
    apart = squares_apart(seen)
    for bandwidth in BANDWIDTHS:
        yield _lent(f"smoothed by {bandwidth:g} of the rows", lend(seen, apart, bandwidth))
    if len(seen) >= FEWEST:
        yield from _bells(seen, centres)


def _lent(name: str, often: Array) -> Shape:
    return Shape(name, often, np.maximum(often - 1.0, 0.0), np.maximum(often.sum(1) - 1.0, 0.0))


def squares_apart(seen: Array) -> Array:
    """How far every bin lies from every other along the ranks, squared."""
    mass = seen.sum(1)
    rank = (np.cumsum(mass) - mass / 2) / max(float(mass.sum()), 1e-300)
    apart: Array = (rank[:, None] - rank) ** 2
    return apart


def lend(seen: Array, apart: Array, bandwidth: float) -> Array:
    """The counts once every bin has lent to its neighbours; to itself a bin gives all it has."""
    given = apart * (-0.5 / bandwidth**2)
    near = given >= -0.5 * REACH**2
    np.exp(given, out=given, where=near)
    given *= near
    lent: Array = given @ seen
    return lent


def _bells(seen: Array, centres: Array) -> Iterator[Shape]:
    """Each class a bell curve, of its own width or of one width for all; a value has the rows that the curves give it."""
    n = seen.sum(0)
    if not 0 < n.sum() < HEAVIEST:
        return
    middle = float(np.average(centres, weights=seen.sum(1)))
    x = centres - middle
    width = float(np.sqrt(np.average(x * x, weights=seen.sum(1))))
    if not (width > 0 and np.isfinite(width)):
        return
    x = (x / width)[:, None]
    mean = (seen * x).sum(0) / np.maximum(n, 1e-300)
    spread = (seen * (x - mean) ** 2).sum(0)
    apart, left = x - mean, np.maximum(n - 1.0, 1e-300)
    gone = np.where(n > 1, apart * apart * n / left, spread)
    mean_left = np.where(n > 1, mean - apart / left, 0.0)
    for name, pooled in (("bell curves", False), ("bell curves of one width", True)):
        whole, left_over = (spread.sum(), n.sum() - 1.0) if pooled else (spread, left)
        variance = np.maximum(whole / np.maximum(n.sum() if pooled else n, 1e-300), NARROWEST**2)
        variance_left = np.maximum((whole - gone) / np.maximum(left_over, 1e-300), NARROWEST**2)
        density = np.where(n > 0, _bell(apart, variance), 0.0)
        without = np.where(n > 1, _bell(x - mean_left, variance_left), 0.0)
        yield _of_densities(name, n, density, without)


def _of_densities(name: str, n: Array, density: Array, without: Array) -> Shape:
    """Densities as rows a value: scaled so that a value of average density has the rows that a bin has on average."""
    scale = (n.sum() / max(len(density), 1)) / np.maximum(density @ n, 1e-300)[:, None]
    often = density * n * scale
    own = without * np.maximum(n - 1.0, 0.0) * scale
    # The rows left in all classes differ with the class that the row is left out of; on average it is this many.
    whole = np.maximum(often.sum(1) - ((often - own) * often).sum(1) / np.maximum(often.sum(1), 1e-300), 0.0)
    return Shape(name, often, own, whole)


def _bell(apart: Array, variance: Array) -> Array:
    curve: Array = np.exp(-0.5 * apart * apart / variance) / np.sqrt(variance)
    return curve
