"""Rounds of EM until the maximum is near: Anderson's extrapolation of slow rounds, and an estimate of the distance left.

A round of EM maps what was counted to what is counted next. Where rounds become slow, the differences of the last few
points predict where they lead (Anderson 1965; for EM: Henderson and Varadhan 2019). A predicted point is kept only if its
objective is no lower than that of the point before; otherwise the plain round is taken, so the objective never falls.
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
MEMORY = 8  # points that an extrapolation looks back on
REACH = 1.0  # of a jump, in standard errors of parameters as if the classes of all rows were known
FARTHEST = 20.0  # that a jump may reach once jumps have proved good
SLOW = 0.02  # nats that a round gains: where it gains more, the way may still turn
FLOOR = 1e-14  # counts below this share of their sum are left to the plain rounds
LARGEST_JUMP = 5.0  # of a logarithm
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
class Anderson:
    """The last few points and where a plain round led from each."""

    _x: list[Array] = field(default_factory=list)
    _g: list[Array] = field(default_factory=list)

    def add(self, x: Array, g: Array) -> None:
        """One point more; the oldest is dropped."""
        self._x, self._g = [*self._x[-MEMORY:], x], [*self._g[-MEMORY:], g]

    def clear(self) -> None:
        """Forget all points."""
        self._x, self._g = [], []

    def propose(self, weights: Array) -> Array | None:
        """The point at which a round would change least, if rounds were linear."""
        if len(self._x) < 2:
            return None
        g, moved = np.array(self._g), np.array(self._g) - np.array(self._x)
        differences = ((moved[-1] - moved[:-1]) * weights).T
        size = np.linalg.norm(differences, axis=0)
        size[size == 0.0] = 1.0
        mixed = np.linalg.lstsq(differences / size, moved[-1] * weights, rcond=1e-7)[0] / size
        found: Array = g[-1] - mixed @ (g[-1] - g[:-1])
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
        self.memory = Anderson()
        self.accelerated = tol >= 0  # a negative tol asks for so many plain rounds
        self.jumped = False
        self.reach = REACH
        self.slow = False  # whether the last round gained so little that a maximum is near
        self.checks = 0  # plain rounds to go before the distance left can be judged

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
        self.slow = gain < SLOW
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
            point = point if converged else way.next_point(point, after, i + 2 >= most)
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
        jump = np.clip(self.take(known.shape) - log_counts(known), -LARGEST_JUMP, LARGEST_JUMP)
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
