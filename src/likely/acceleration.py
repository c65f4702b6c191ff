"""Rounds of EM until the maximum is near: slow rounds are extrapolated, and the distance left is estimated.

A round of EM maps what was counted to what is counted next. Where rounds become slow, the differences of the last few
points show the curvature of the objective, and so where it is highest (L-BFGS with the EM step as its gradient: Jamshidian
and Jennrich 1997). A predicted point is kept only if its objective is no lower than that of the point before; otherwise the
plain round is taken, so the objective never falls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from likely.families.statistics import Counts, Moments, Scatter
from likely.tally import Tally

Array = NDArray[np.float64]
Coordinates = tuple[Array, Array]  # a point, and the weight of each coordinate in a distance
Point = TypeVar("Point")
Seen = TypeVar("Seen")

FALL = 1e-9  # relative: an objective that falls by less has only been rounded
ROUNDED = 1e-14  # relative: a gain that is smaller cannot be told from rounding
PLAIN = 20  # the first rounds are plain: most is gained in them, and they are what a textbook shows
FEWEST = 3  # plain rounds in a row that the distance left is judged by
CONCAVE = 1e-8  # the least cosine between a step and the change of the gradient along it
MEMORY = 8  # points that an extrapolation looks back on
REACH = 1.0  # of a jump, in standard errors of parameters as if the classes of all rows were known
FARTHEST = 20.0  # that a jump may reach once jumps have proved good
PATIENT = 200  # rounds within which gains that grow are left to plain rounds
SLOW = 0.02  # nats that a round gains: where it gains more, the way may still turn
FLOOR = 1e-14  # counts below this share of their sum are left to the plain rounds
DOWN, UP = -2.0, 50.0  # jumps of a logarithm are no larger: a count that is lost takes many rounds to come back
RAISED = (1.0, 0.1, 1.0, 0.01)  # rows, to which counts are raised that are next to nothing but grow
GROWING = 1e-3  # by so much in a round, relatively
NARROW = 1e-6  # of a column's variance: the least that a class's is taken for when coordinates are weighed


@dataclass(frozen=True)
class Climb(Generic[Point, Seen]):
    """Where a run ended: the point, what a look at the rows gave there, and the way."""

    point: Point
    seen: Seen
    trace: tuple[float, ...]
    converged: bool
    distance_left: float  # nats of the objective between this point and its local maximum, as estimated


@dataclass(frozen=True)
class Rounds(Generic[Point, Seen]):
    """How rounds are made: the objective at a point with the next point, and the coordinates of points."""

    look: Callable[[Point], tuple[float, Point, Seen]]
    coordinates: Callable[[Point], Coordinates | None]
    at: Callable[[Point, Array], Point]  # the point nearest to the first one that has these coordinates


@dataclass
class QuasiNewton:
    """The last few points, where a plain round led from each, and the curvature of the objective that they show.

    A plain round is a step along the gradient, measured in the information of rows whose classes are known (Jamshidian and
    Jennrich 1997). Only pairs of points between which the objective is concave are used: unlike a method that looks for a
    point at which rounds stand still, this one is not drawn to saddle points.
    """

    _x: list[Array] = field(default_factory=list)
    _g: list[Array] = field(default_factory=list)

    def add(self, x: Array, g: Array) -> None:
        """One point more; the oldest is dropped."""
        self._x, self._g = [*self._x[-MEMORY:], x], [*self._g[-MEMORY:], g]

    def clear(self) -> None:
        """Forget all points."""
        self._x, self._g = [], []

    def propose(self, weights: Array) -> Array | None:
        """The maximum of the objective as its curvature predicts it (L-BFGS), None where no curvature is known."""
        x, moved = np.array(self._x) * weights, (np.array(self._g) - np.array(self._x)) * weights
        steps, bends = np.diff(x, axis=0), -np.diff(moved, axis=0)
        pairs = [
            (s, y, float(s @ y)) for s, y in zip(steps, bends, strict=True) if s @ y > CONCAVE * np.sqrt((s @ s) * (y @ y))
        ]
        if not pairs:
            return None
        ahead, parts = moved[-1].copy(), []
        for s, y, bend in reversed(pairs):
            part = float(s @ ahead) / bend
            parts.append(part)
            ahead -= part * y
        _, y, bend = pairs[-1]
        ahead *= max(bend / float(y @ y), 1.0)
        for (s, y, bend), part in zip(pairs, reversed(parts), strict=True):
            ahead += s * (part - float(y @ ahead) / bend)
        found: Array = self._x[-1] + np.divide(ahead, weights, out=np.zeros_like(ahead), where=weights > 0)
        return found if np.isfinite(found).all() else None


def distance_left(gains: list[float], rounded: float) -> float:
    """What the next rounds will gain in all, as Aitken extrapolates the gains of the last two plain rounds."""
    if len(gains) < 2 or (len(gains) < FEWEST and gains[-1] > rounded):
        return float("inf")
    last = gains[-1]
    if last <= rounded:
        return max(last, 0.0)
    ratio = max(b / a if a > 0.0 else np.inf for a, b in pairwise(gains[-FEWEST:]))
    return last * ratio / (1.0 - ratio) if ratio < 1.0 else float("inf")


class _Way(Generic[Point, Seen]):
    """The state of a run between rounds."""

    def __init__(self, rounds: Rounds[Point, Seen], tol: float, done: int) -> None:
        self.rounds, self.tol, self.done = rounds, tol, done
        self.trace: list[float] = []
        self.best: tuple[Point, Point, Seen] | None = None  # a point, the next one, what was seen
        # The last point that was not extrapolated, and how many rounds led to it.
        self.counted: tuple[int, tuple[Point, Point, Seen] | None] = (0, None)
        self.gains: list[float] = []  # of consecutive plain rounds
        self.left = float("inf")
        self.memory = QuasiNewton()
        self.accelerated = tol >= 0  # a negative tol asks for so many plain rounds
        self.jumped = False
        self.reach = REACH
        self.slow = False  # whether the last round gained so little that a maximum is near
        self.checks = 0  # plain rounds to go before the distance left can be judged
        self.raises = list(RAISED)  # what is left to try where counts grow from next to nothing

    def refused(self, value: float) -> bool:
        """Whether an extrapolated point is worse than the point before."""
        return self.jumped and not value >= self.trace[-1]

    def fell(self, value: float) -> bool:
        """Whether a plain round made the objective smaller, by more than rounding does."""
        return bool(self.trace) and not value >= self.trace[-1] - FALL * max(abs(self.trace[-1]), 1.0)

    @property
    def led_astray(self) -> bool:
        """Whether extrapolation came between the last counted point and the last one."""
        return self.accelerated and self.counted[0] < len(self.trace)

    def plain_again(self) -> Point:
        """Where the plain round leads instead of a refused extrapolation, the next of which is shorter."""
        assert self.best is not None
        self.reach *= 0.25
        self.jumped, self.gains = False, []
        self.trace.append(self.trace[-1])
        return self.best[1]

    def back(self) -> Point:
        """The round after the last counted point, from which plain rounds go on."""
        length, self.best = self.counted
        assert self.best is not None
        del self.trace[length:]
        self.accelerated, self.gains = False, []
        return self.best[1]

    def taken(self, value: float, best: tuple[Point, Point, Seen]) -> None:
        """Note a point that is kept, and its objective."""
        gain = value - self.trace[-1] if self.trace else np.inf
        # Where rounds gain more and more, the way leads off a saddle point, and which way is for the plain rounds to say.
        growing = not self.jumped and bool(self.gains) and gain > self.gains[-1] and len(self.trace) + self.done < PATIENT
        self.slow = gain < SLOW and not growing
        if self.jumped:
            self.reach = min(1.5 * self.reach, FARTHEST)
            self.gains = []
            if gain <= max(self.tol, ROUNDED * abs(value)):
                self.checks = FEWEST
        elif self.trace:
            self.gains.append(gain)
        self.trace.append(value)
        self.best = best
        if not self.jumped:
            self.counted = len(self.trace), best
        self.left = distance_left(self.gains, ROUNDED * abs(value))

    def raised(self) -> Point | None:
        """The best point with counts raised that are next to nothing, and grow; None where there are none.

        Such a point is no maximum, though a round gains next to nothing there, and goes on so for thousands of rounds.
        """
        assert self.best is not None
        here, there = self.rounds.coordinates(self.best[0]), self.rounds.coordinates(self.best[1])
        if here is None or there is None or not self.raises or not self.accelerated:
            return None
        x, weights = here
        counts = np.isclose(x, 2 * np.log(np.maximum(weights, 1e-300)))  # of which only these have such a weight
        grow = counts & (weights > 0) & (weights < 1) & (there[0] - x > GROWING)
        if not grow.any():
            return None
        self.jumped = True
        wanted = np.where(grow, np.maximum(there[0], np.log(self.raises.pop(0))), there[0])
        self.memory.clear()
        return self.rounds.at(self.best[1], wanted)

    def next_point(self, point: Point, after: Point, last: bool) -> Point:
        """Where to look next: at an extrapolated point, or where the plain round led."""
        self.jumped = False
        if self.accelerated and len(self.trace) + self.done > PLAIN - MEMORY:
            here, there = self.rounds.coordinates(point), self.rounds.coordinates(after)
            if here is None or there is None:
                self.memory.clear()
                return after
            self.memory.add(here[0], there[0])
            ripe = len(self.trace) + self.done >= PLAIN and not last and not self.checks and self.slow
            proposed = self.memory.propose(there[1]) if ripe else None
            if proposed is not None:
                self.jumped = True
                jump = proposed - there[0]
                length = float(np.linalg.norm(jump * there[1]))
                return self.rounds.at(after, there[0] + jump * min(1.0, self.reach / max(length, 1e-300)))
        self.checks = max(self.checks - 1, 0)
        return after


def climb(
    first: Point,
    rounds: Rounds[Point, Seen],
    *,
    max_iter: int,
    tol: float,
    done: int = 0,
    note: Callable[[float, Point], None] | None = None,
) -> Climb[Point, Seen]:
    """Round after round until the estimated distance to the maximum is at most `tol` nats; the best point is kept.

    `done` says how many rounds came before. A round whose extrapolation is refused has gained nothing, and is noted so.
    """
    way = _Way(rounds, tol, done)
    point, most, converged = first, max(max_iter, 1), False
    for i in range(most):
        value, after, seen = rounds.look(point)
        if way.refused(value):
            point = way.plain_again()
        elif way.fell(value):
            if not way.led_astray:
                break  # without a prior a variance can vanish and is then borrowed: what came before was better
            point = way.back()
            continue
        else:
            way.taken(value, (point, after, seen))
            converged = bool(way.left <= tol)
            if not converged:
                point = way.next_point(point, after, i + 2 >= most)
            elif i + 2 < most and (raised := way.raised()) is not None:
                point, converged = raised, False
        if note and way.best is not None:
            note(way.trace[-1], way.best[0])
        if converged:
            break
    length, kept = way.counted
    assert kept is not None
    return Climb(kept[0], kept[2], tuple(way.trace[:length]), converged, way.left)


def coordinates(tally: Tally, *beside: Array) -> Coordinates | None:
    """Counts beside a tally, then the tally, as a point; None where it holds words or a singular covariance."""
    parts = [_logs(counts) for counts in (*beside, tally.classes)]
    for statistic in tally.statistics:
        if isinstance(statistic, Counts):
            parts.append(_logs(statistic.seen))
        elif isinstance(statistic, Moments):
            parts += _of_moments(statistic)
        elif isinstance(statistic, Scatter) and (found := _of_scatter(statistic)) is not None:
            parts += found
        else:
            return None
    return np.concatenate([x for x, _ in parts]), np.concatenate([w for _, w in parts])


def at(tally: Tally, point: Array) -> Tally:
    """The tally with these coordinates; what is summed over the classes stays as it is in `tally`."""
    reader = Reader(point)
    classes = reader.counts(tally.classes)
    statistics: list[Any] = []
    parts: tuple[Any, ...] = tally.statistics
    for statistic in parts:
        if isinstance(statistic, Counts):
            statistics.append(Counts(reader.counts(statistic.seen)))
        elif isinstance(statistic, Moments):
            n, mean = reader.counts(statistic.n), reader.take(statistic.mean.shape)
            statistics.append(Moments(n, mean, n * reader.widths(_variance(statistic))))
        else:
            statistics.append(reader.scatter(statistic))
    return replace(tally, classes=classes, statistics=tuple(statistics))


def _logs(counts: Array) -> Coordinates:
    return log_counts(counts).ravel(), np.sqrt(counts).ravel()


def log_counts(counts: Array) -> Array:
    """Logarithms of counts, the smallest of which are not told apart."""
    return np.asarray(np.log(np.maximum(counts, _floor(counts))))


def _floor(counts: Array) -> float:
    return max(FLOOR * float(counts.sum()), 1e-300)


def _variance(moments: Moments) -> Array:
    return np.divide(moments.spread, moments.n, out=np.zeros_like(moments.n), where=moments.n > 0)


def _of_moments(moments: Moments) -> list[Coordinates]:
    n, variance = moments.n, _variance(moments)
    whole = Moments(n[:, None], moments.mean[:, None], moments.spread[:, None]).summed()
    overall = float(whole.spread[0] / whole.n[0]) if whole.n[0] > 0 else 0.0
    wide = np.maximum(variance, max(NARROW * overall, 1e-300))
    return [_logs(n), (moments.mean, np.sqrt(n / wide)), (log_counts(variance), np.sqrt(0.5 * n))]


def _of_scatter(cloud: Scatter) -> list[Coordinates] | None:
    some, width = cloud.n > 0, cloud.mean.shape[-1]
    if not width:
        return [_logs(cloud.n)]
    n = cloud.n[some]
    try:
        root = np.linalg.cholesky(cloud.scatter[some] / n[:, None, None])
    except np.linalg.LinAlgError:
        return None
    diagonal = np.einsum("nii->ni", root)
    weight = np.sqrt(n)[:, None] / diagonal
    below = np.tril_indices(width, -1)
    off = (root[:, below[0], below[1]].ravel(), weight[:, below[0]].ravel())
    logs = (np.log(diagonal).ravel(), np.repeat(np.sqrt(2 * n), width))
    return [_logs(cloud.n), (cloud.mean[some].ravel(), weight.ravel()), logs, off]


class Reader:
    """Coordinates, taken off one after the other."""

    def __init__(self, point: Array) -> None:
        self.rest = point

    def take(self, shape: tuple[int, ...]) -> Array:
        """As many of them as an array of this shape has."""
        size = int(np.prod(shape))
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken.reshape(shape)

    def counts(self, known: Array) -> Array:
        """Counts whose sums over the classes are those of `known`."""
        found = self.widths(known)
        whole = found.sum(0)
        return np.asarray(found * np.divide(known.sum(0), whole, out=np.ones_like(whole), where=whole > 0))

    def widths(self, known: Array) -> Array:
        """Positive numbers, none too far from `known`; what is next to nothing there stays so."""
        jump = np.clip(self.take(known.shape) - log_counts(known), DOWN, UP)
        return np.where(known > _floor(known), known * np.exp(jump), known)

    def scatter(self, known: Scatter) -> Scatter:
        """Weights, means and covariances; a cell without rows stays as it is."""
        n, some, width = self.counts(known.n), known.n > 0, known.mean.shape[-1]
        if not width:
            return replace(known, n=n)
        cells = int(some.sum())
        mean, scatter = known.mean.copy(), known.scatter.copy()
        mean[some] = self.take((cells, width))
        root = np.zeros((cells, width, width))
        np.einsum("nii->ni", root)[:] = np.exp(np.clip(self.take((cells, width)), -350.0, 350.0))
        below = np.tril_indices(width, -1)
        root[:, below[0], below[1]] = self.take((cells, len(below[0])))
        scatter[some] = root @ root.transpose(0, 2, 1) * n[some][:, None, None]
        return Scatter(n, mean, scatter)
