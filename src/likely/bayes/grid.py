"""Posterior of a continuous parameter θ on a grid, integrated by the trapezoid rule."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes._exact import count
from likely.bayes._frozen_values import changed
from likely.errors import DataError, LikelyWarning
from likely.kernels.parallel import cached_property

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, repr=False)
class GridHypotheses:
    """A continuous parameter θ on a grid, with the counts of observed outcomes; from `Hypotheses.grid`.

    Parameters
    ----------
    low, high : float
        Ends of the grid.
    points : int
        Number of points, both ends included.
    likelihood : callable
        Function (outcome, θ) that returns P(outcome | θ), or its density.
    prior : callable or None, default=None
        Function of θ that returns its prior density, up to a factor; uniform by default.

    Attributes
    ----------
    seen : dict
        How often each outcome was observed.
    """

    low: float
    high: float
    points: int
    likelihood: Callable[[Any, float], float]
    prior: Callable[[float], float] | None = None
    seen: Mapping[Any, int] = field(default_factory=dict, init=False)
    _known: dict[Any, Array] = field(default_factory=dict, init=False, compare=False)  # likelihood of each outcome
    _prior_density: Array = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise DataError(f"the grid goes from {self.low} to {self.high}", remedy="give finite numbers, low < high")
        for name, function in (("likelihood", self.likelihood), ("prior", self.prior)):
            if not callable(function) and (name, function) != ("prior", None):
                raise DataError(f"the {name} is {function!r:.60}, not a function", remedy="give a function of θ")
        points: Any = self.points
        if isinstance(points, bool) or not isinstance(points, int | np.integer) or points < 3:
            raise DataError(f"a grid of {self.points!r} points", value=self.points, remedy="give 3 points or more")
        object.__setattr__(self, "_prior_density", self._normalised_prior())
        if not self._prior_density.any():
            raise DataError("the prior density is 0 everywhere", remedy="give a prior that is positive on the grid")

    @cached_property
    def theta(self) -> Array:
        """The points of the grid."""
        return np.linspace(self.low, self.high, self.points)

    @property
    def prior_density(self) -> Array:
        """Prior density at each point, normalised."""
        return self._prior_density

    def _normalised_prior(self) -> Array:
        prior = self.prior
        if prior is None:
            return np.full(self.points, 1.0 / (self.high - self.low))
        found = self._evaluated(prior, "the prior density")
        whole = self._integral(found)
        return found / whole if whole else found

    @property
    def density(self) -> Array:
        """Posterior density p(θ | data) at each point."""
        return self._posterior

    @property
    def map(self) -> float:
        """The point with the highest posterior density."""
        return float(self.theta[self._log_weights.argmax()])

    @property
    def ml(self) -> float:
        """The point with the highest likelihood, the prior ignored."""
        return float(self.theta[self._log_likelihood.argmax()])

    @property
    def mean(self) -> float:
        """Posterior mean of θ."""
        return self._integral(self.theta * self._posterior)

    @property
    def deviation(self) -> float:
        """Posterior standard deviation of θ."""
        return math.sqrt(self._integral((self.theta - self.mean) ** 2 * self._posterior))

    @property
    def log_evidence(self) -> float:
        """log P(data), the likelihood integrated over the prior."""
        peak = float(self._log_weights.max())
        return peak + math.log(self._integral(np.exp(self._log_weights - peak)))

    def observe(self, observations: Any) -> GridHypotheses:
        """Update on observed outcomes; their order does not matter.

        Parameters
        ----------
        observations : outcome, iterable of outcomes, or dict
            One outcome, several, or a dict from outcomes to counts.

        Returns
        -------
        GridHypotheses
            A new grid; this one is unchanged.
        """
        if isinstance(observations, Mapping):
            counts = {outcome: count(n, outcome) for outcome, n in observations.items()}
        else:
            counts = dict(Counter(self._observations(observations)))
        seen = {**self.seen, **{o: self.seen.get(o, 0) + n for o, n in counts.items() if n}}
        after: GridHypotheses = changed(self, seen=seen)
        if after._log_weights.max() == -math.inf:
            raise DataError("the data are impossible at every point of the grid", remedy="check them, or widen the grid")
        after._warn_if_coarse()
        return after

    def trace(self, observations: Iterable[Any]) -> Iterator[GridHypotheses]:
        """Update on one outcome after the other.

        Parameters
        ----------
        observations : iterable of outcomes
            The outcomes in order.

        Yields
        ------
        GridHypotheses
            The grid before the data, then after each outcome.
        """
        current = self
        yield current
        for outcome in self._observations(observations):
            current = current.observe({outcome: 1})
            yield current

    def between(self, low: float, high: float) -> float:
        """P(low < θ < high | data).

        Parameters
        ----------
        low, high : float
            Ends of the interval.

        Returns
        -------
        float
            The posterior probability.
        """
        ends = np.interp([low, high], self.theta, self._cumulative)
        return float(max(ends[1] - ends[0], 0.0))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Central credible interval of θ.

        Parameters
        ----------
        level : float, default=0.95
            Its posterior probability.

        Returns
        -------
        tuple of float
            Lower and upper end, interpolated between the points.
        """
        if not 0 < level < 1:
            raise DataError(f"a level of {level!r}", value=level, remedy="give a number between 0 and 1")
        low, high = np.interp([(1 - level) / 2, (1 + level) / 2], self._cumulative, self.theta)
        return float(low), float(high)

    def predict(self, outcome: Any) -> float:
        """P(outcome | data), the likelihood averaged over the posterior.

        Parameters
        ----------
        outcome : object
            A possible next outcome.

        Returns
        -------
        float
            Its probability, or density.
        """
        return self._integral(self._of(outcome) * self._posterior)

    def predict_map(self, outcome: Any) -> float:
        """P(outcome | θ_MAP).

        Parameters
        ----------
        outcome : object
            A possible next outcome.

        Returns
        -------
        float
            Its probability, or density.
        """
        return float(self.likelihood(outcome, self.map))

    def _observations(self, observations: Any) -> Iterable[Any]:
        if isinstance(observations, np.ndarray):
            return list(observations.tolist())
        one = isinstance(observations, (str, bytes)) or not isinstance(observations, Iterable)
        return [observations] if one else observations

    def _evaluated(self, function: Callable[[float], float], of: str) -> Array:
        found = np.array([float(function(float(t))) for t in self.theta])
        bad = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
        if len(bad):
            at = self.theta[bad[0]]
            raise DataError(f"{of} is {found[bad[0]]} at θ = {at:g}", value=float(found[bad[0]]),
                            remedy="return a finite number, 0 or more, or move the ends of the grid inwards")  # fmt: skip
        return found

    def _of(self, outcome: Any) -> Array:
        if outcome not in self._known:
            self._known[outcome] = self._evaluated(lambda t: self.likelihood(outcome, t), f"the likelihood of {outcome!r}")
        return self._known[outcome]

    def _integral(self, values: Array) -> float:
        step = (self.high - self.low) / (self.points - 1)
        return float(step * (values.sum() - 0.5 * (values[0] + values[-1])))

    @cached_property
    def _log_likelihood(self) -> Array:
        with np.errstate(divide="ignore"):
            terms = [n * np.log(self._of(outcome)) for outcome, n in self.seen.items()]
        found: Array = np.sum(terms, axis=0) if terms else np.zeros(self.points)
        return found

    @cached_property
    def _log_weights(self) -> Array:
        with np.errstate(divide="ignore"):
            found: Array = np.log(self.prior_density) + self._log_likelihood
        return found

    @cached_property
    def _posterior(self) -> Array:
        weights = np.exp(self._log_weights - self._log_weights.max())
        found: Array = weights / self._integral(weights)
        return found

    def _warn_if_coarse(self) -> None:
        """Warn where the posterior is narrower than a cell of the grid: the trapezoid rule is then wrong."""
        step = (self.high - self.low) / (self.points - 1)
        if self._cells_wide >= 1.0:
            return
        i = int(self._log_weights.argmax())
        low, high = self.theta[max(i - 2, 0)], self.theta[min(i + 2, self.points - 1)]
        warnings.warn(
            f"the posterior is narrower than the cells of the grid, which are {step:g} wide: its mean, deviation, interval "
            f"and evidence are wrong; use more points, or a grid from {low:g} to {high:g}",
            LikelyWarning, stacklevel=3,
        )  # fmt: skip

    @property
    def _cells_wide(self) -> float:
        """Standard deviation of the posterior in cells, from the curvature of its logarithm at the peak."""
        logs, i = self._log_weights, int(self._log_weights.argmax())
        falls = [float(logs[i] - logs[j]) for j in (i - 1, i + 1) if 0 <= j < self.points]
        finite = [fall for fall in falls if math.isfinite(fall)]
        if not finite:
            return 0.0
        bend = sum(finite) * (2 / len(finite))  # beside an edge, where one side falls to zero, as if both sides were alike
        return math.inf if bend <= 0 else 1.0 / math.sqrt(bend)

    @cached_property
    def _cumulative(self) -> Array:
        """P(θ ≤ point) for each point."""
        parts = (self._posterior[1:] + self._posterior[:-1]) / 2
        sums: Array = np.concatenate([[0.0], np.cumsum(parts)])
        found: Array = sums / sums[-1]
        return found

    def __repr__(self) -> str:
        low, high = self.interval()
        seen = ", ".join(f"{outcome} {n}" for outcome, n in self.seen.items()) or "nothing"
        shown = f"MAP {self.map:.6g}, mean {self.mean:.6g}, 95 % {low:.6g} to {high:.6g}"
        return f"GridHypotheses({self.points} points from {self.low:g} to {self.high:g}, seen: {seen}, {shown})"
