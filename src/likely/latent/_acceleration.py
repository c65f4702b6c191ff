"""EM iterations until the maximum is near: slow iterations are extrapolated, and the distance left is estimated.

An EM iteration maps expected counts to expected counts. Far from the maximum, iterations that go in one direction are
stretched, so that the run follows the path of plain EM and ends in the same basin. Near it, the differences of the last few
points give the curvature of the objective, and so an estimate of its maximum (L-BFGS). A predicted point is kept only if its
objective is no lower than that of the point before; otherwise the plain iteration is taken, so the objective never decreases.
Where a direction is nearly flat, longer steps along it are tried before the run counts as converged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from likely.families.statistics import Counts, Moments, Scatter
from likely.kernels.progress import announce
from likely.latent._quasi_newton import MEMORY, QuasiNewton
from likely.tally import Tally

Array = NDArray[np.float64]
Coordinates = tuple[Array, Array]  # a point, and the weight of each coordinate in a distance
Point = TypeVar("Point")
Expected = TypeVar("Expected")

FALL = 1e-9  # relative: a smaller decrease of the objective is rounding
ROUNDED = 1e-14  # relative: a smaller gain is rounding
# The first iterations are plain: most of the gain is in them, and they are what a textbook shows. Extrapolated from the 20th
# on, a run in twenty ended in another, mostly lower, basin than plain EM.
PLAIN = 100
FEWEST = 3  # consecutive plain iterations from which the distance left is estimated
REACH = 1.0  # longest jump, in standard errors of the parameters as if the classes of all rows were known
FARTHEST = 20.0  # longest jump after jumps have been accepted
SLOW = 0.02  # gain of an iteration in nats: where it is larger, the direction may still change
NEAR = 0.1  # estimated nats to the maximum from which on curvature is trusted; before, the direction of the iterations
STRETCH, LONGEST = 4.0, 64.0  # factor of a stretched iteration, at first and at most
LENGTHS = (2.0, -2.0, 8.0, -8.0)  # of the steps that try to leave a flat region, in the same standard errors
FLAT = 0.02  # largest curvature of a flat direction, relative to that of rows whose classes are known
TRIED = 3  # plain iterations after each of these steps
ESCAPES = 6  # how often a run may leave a flat region
FLOOR = 1e-14  # counts below this fraction of their sum are left to the plain iterations
DOWN, UP = -2.0, 50.0  # bounds on the jump of a logarithm: a count that is lost takes many iterations to come back
RAISED = (1.0, 0.1, 1.0, 0.01)  # rows, to which nearly vanished but growing counts are raised
GROWING = 1e-3  # relative growth in one iteration
NARROW = 1e-6  # of a column's variance: lower bound for the variance of a class in the weights of coordinates


@dataclass(frozen=True)
class Maximum(Generic[Point, Expected]):
    """The end of a run: the point, the expected counts there, and the trace of the objective."""

    point: Point
    expected: Expected
    trace: tuple[float, ...]
    converged: bool
    distance_left: float  # nats of the objective between this point and its local maximum, as estimated


@dataclass(frozen=True)
class Iteration(Generic[Point, Expected]):
    """One EM iteration: the objective at a point with the next point, and the coordinates of points."""

    evaluate: Callable[[Point], tuple[float, Point, Expected]]
    coordinates: Callable[[Point], Coordinates | None]
    at: Callable[[Point, Array], Point]  # the point nearest to the first one that has these coordinates


@dataclass(frozen=True)
class Iterated(Generic[Point, Expected]):
    """A point, the one after one EM iteration from it, and the expected counts between them."""

    point: Point
    after: Point
    expected: Expected


def distance_left(gains: list[float], rounded: float) -> float:
    """Total gain still to come, extrapolated from the gains of the last plain iterations (Aitken)."""
    if len(gains) < 2 or (len(gains) < FEWEST and gains[-1] > rounded):
        return float("inf")
    last = gains[-1]
    if last <= rounded:
        return max(last, 0.0)
    ratio = max(b / a if a > 0.0 else np.inf for a, b in pairwise(gains[-FEWEST:]))
    return last * ratio / (1.0 - ratio) if ratio < 1.0 else float("inf")


class _Run(Generic[Point, Expected]):
    """The state of a run between iterations."""

    def __init__(self, iteration: Iteration[Point, Expected], tol: float, done: int) -> None:
        self.iteration, self.tol, self.done = iteration, tol, done
        self.trace: list[float] = []
        self.best: Iterated[Point, Expected] | None = None
        # The last point that was not extrapolated, and the length of the trace up to it.
        self.plain_point: tuple[int, Iterated[Point, Expected] | None] = (0, None)
        self.gains: list[float] = []  # of consecutive plain iterations
        self.left, self.memory = float("inf"), QuasiNewton()
        self.accelerated = tol >= 0  # a negative tol asks for plain iterations only
        self.jumped, self.reach, self.stretch = False, REACH, STRETCH
        self.checks = 0  # plain iterations to go before the distance left can be estimated
        self.raises = list(RAISED)  # values left to try for nearly vanished counts
        self.near = False  # whether jumps follow the curvature; else iterations are stretched
        self.evaluations, self.escapes = 0, ESCAPES

    def evaluate(self, point: Point) -> tuple[float, Iterated[Point, Expected]]:
        """The objective at a point, and the iteration from there."""
        self.evaluations += 1
        value, after, expected = self.iteration.evaluate(point)
        return value, Iterated(point, after, expected)

    def rejected(self, value: float) -> bool:
        """Whether an extrapolated point is worse than the point before."""
        return self.jumped and not value >= self.trace[-1]

    def fell(self, value: float) -> bool:
        """Whether a plain iteration decreased the objective by more than rounding."""
        return bool(self.trace) and not value >= self.trace[-1] - FALL * max(abs(self.trace[-1]), 1.0)

    @property
    def extrapolated_since(self) -> bool:
        """Whether an extrapolation lies between the last plain point and the last one."""
        return self.accelerated and self.plain_point[0] < len(self.trace)

    def plain_again(self) -> Point:
        """The plain iteration instead of a rejected extrapolation; the next extrapolation is shorter."""
        assert self.best is not None
        if self.near:
            self.reach *= 0.25
        else:
            self.stretch = max(0.25 * self.stretch, 2.0)
        self.jumped, self.gains = False, []
        self.trace.append(self.trace[-1])
        return self.best.after

    def roll_back(self) -> Point:
        """The iteration after the last plain point, from which the run continues without extrapolation."""
        length, self.best = self.plain_point
        assert self.best is not None
        del self.trace[length:]
        self.accelerated, self.gains = False, []
        return self.best.after

    def accept(self, value: float, best: Iterated[Point, Expected]) -> None:
        """Record a point that is kept, and its objective."""
        gain = value - self.trace[-1] if self.trace else np.inf
        # Gains that grow lead away from a saddle point, in a direction that only plain iterations show.
        growing = not self.jumped and bool(self.gains) and gain > self.gains[-1]
        self.near = self.near and gain < SLOW and not growing
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
            self.plain_point = len(self.trace), best
        self.left = distance_left(self.gains, ROUNDED * abs(value))
        self.near = self.near or self.left < NEAR

    def raised(self) -> Point | None:
        """The best point with nearly vanished but growing counts raised; None if there are none.

        Such a point is no maximum, though an iteration gains almost nothing there for thousands of iterations.
        """
        assert self.best is not None
        here, there = self.iteration.coordinates(self.best.point), self.iteration.coordinates(self.best.after)
        if here is None or there is None or not self.raises or not self.accelerated:
            return None
        x, weights = here
        counts = np.isclose(x, 2 * np.log(np.maximum(weights, 1e-300)))  # only counts have such a weight
        grow = counts & (weights > 0) & (weights < 1) & (there[0] - x > GROWING)
        if not grow.any():
            return None
        self.jumped = True
        wanted = np.where(grow, np.maximum(there[0], np.log(self.raises.pop(0))), there[0])
        self.memory.clear()
        return self.iteration.at(self.best.after, wanted)

    def advance(self, found: Iterated[Point, Expected], left: int) -> tuple[Point, bool]:
        """The next point to evaluate with so many evaluations left, and whether the run has converged."""
        if not self.left <= self.tol:
            return self.next_point(found.point, found.after, left < 2), False
        further = self.raised() if left > 1 else None
        if further is None and left > TRIED * len(LENGTHS) + 1:
            further = self.escaped()
        return (found.after, True) if further is None else (further, False)

    def escaped(self) -> Point | None:
        """A higher point along the flattest direction; None if there is none, or no direction is flat.

        The estimate of the distance left is dominated by directions in which iterations converge fast. Where two components
        overlap completely, the objective is flat, and iterations gain almost nothing for thousands of iterations, and then
        much.
        """
        assert self.best is not None
        there = self.iteration.coordinates(self.best.after)
        found = self.memory.flattest(there[1]) if there is not None and self.escapes and self.accelerated else None
        if there is None or found is None or found[0] > FLAT:
            return None
        self.escapes -= 1
        for wanted in LENGTHS:
            length = np.divide(wanted, there[1], out=np.zeros_like(there[1]), where=there[1] > 0)
            point = self.iteration.at(self.best.after, there[0] + length * found[1])
            for _ in range(TRIED):
                value, tried = self.evaluate(point)
                self.trace.append(self.trace[-1])
                if value > self.trace[-1] + max(self.tol, FALL * abs(value)):
                    self.jumped, self.near, self.gains = True, False, []
                    self.memory.clear()
                    return point
                point = tried.after
        return None

    def next_point(self, point: Point, after: Point, last: bool) -> Point:
        """The next point to evaluate: an extrapolated one, or the plain iteration."""
        self.jumped = False
        if self.accelerated and len(self.trace) + self.done > PLAIN - MEMORY:
            here, there = self.iteration.coordinates(point), self.iteration.coordinates(after)
            if here is None or there is None:
                self.memory.clear()
                return after
            self.memory.add(here[0], there[0])
            ripe = len(self.trace) + self.done >= PLAIN and not last and not self.checks
            jump = self._jump(here[0], there) if ripe else None
            if jump is not None:
                self.jumped = True
                return self.iteration.at(after, there[0] + jump)
        self.checks = max(self.checks - 1, 0)
        return after

    def _jump(self, here: Array, there: Coordinates) -> Array | None:
        """Jump beyond the plain iteration: by curvature or, far from the maximum, along the iteration."""
        point, weights = there
        if self.near:
            proposed = self.memory.propose(weights)
            if proposed is None:
                return None
            length = float(np.linalg.norm((proposed - point) * weights))
            return np.asarray((proposed - point) * min(1.0, self.reach / max(length, 1e-300)))
        if len(self.gains) < FEWEST:
            return None
        straight = self.memory.straight(weights)
        self.stretch = min(2.0 * self.stretch, LONGEST) if straight else max(0.5 * self.stretch, 2.0)
        return np.asarray((point - here) * self.stretch) if straight else None


def maximise(
    first: Point,
    iteration: Iteration[Point, Expected],
    *,
    max_iter: int,
    tol: float,
    done: int = 0,
    note: Callable[[float, Point], None] | None = None,
) -> Maximum[Point, Expected]:
    """Iterate until the estimated distance to the maximum is at most `tol` nats; the best point is kept.

    `done` is the number of iterations before this run. A rejected extrapolation counts as an iteration without gain.
    """
    run = _Run(iteration, tol, done)
    point, most, converged = first, max(max_iter, 1), False
    while run.evaluations < most and not converged:
        announce(f"EM iteration {done + run.evaluations + 1:,}")
        value, found = run.evaluate(point)
        if run.rejected(value):
            point = run.plain_again()
        elif run.fell(value):
            if not run.extrapolated_since:
                break  # without a prior a variance can vanish and is then replaced: the point before was better
            point = run.roll_back()
            continue
        else:
            run.accept(value, found)
            point, converged = run.advance(found, most - run.evaluations)
        if note and run.best is not None:
            note(run.trace[-1], run.best.point)
    length, kept = run.plain_point
    assert kept is not None
    return Maximum(kept.point, kept.expected, tuple(run.trace[:length]), converged, run.left)


def coordinates(tally: Tally, *beside: Array) -> Coordinates | None:
    """Counts beside a tally, then the tally, as a point; None if it holds words or a singular covariance."""
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
    """Logarithms of counts, bounded below."""
    return np.asarray(np.log(np.maximum(counts, _lower_bound(counts))))


def _lower_bound(counts: Array) -> float:
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
    """Reads coordinates one after the other."""

    def __init__(self, point: Array) -> None:
        self.rest = point

    def take(self, shape: tuple[int, ...]) -> Array:
        """The next coordinates, as an array of this shape."""
        size = int(np.prod(shape))
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken.reshape(shape)

    def counts(self, known: Array) -> Array:
        """Counts whose sums over the classes are those of `known`."""
        found = self.widths(known)
        whole = found.sum(0)
        return np.asarray(found * np.divide(known.sum(0), whole, out=np.ones_like(whole), where=whole > 0))

    def widths(self, known: Array) -> Array:
        """Positive numbers, none too far from `known`; nearly vanished ones stay as they are."""
        jump = np.clip(self.take(known.shape) - log_counts(known), DOWN, UP)
        return np.where(known > _lower_bound(known), known * np.exp(jump), known)

    def scatter(self, known: Scatter) -> Scatter:
        """Weights, means and covariances; those without rows stay as they are."""
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
