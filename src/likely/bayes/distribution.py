"""What every distribution of one number offers, each with a default or left to the distribution."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError

Array = NDArray[Any]


class Distribution:
    """A distribution of one number (or, for `Categorical`, of one outcome)."""

    discrete = False

    @property
    def mean(self) -> float:
        """The expected value."""
        raise NotImplementedError

    @property
    def variance(self) -> float:
        """The expected squared deviation from the mean."""
        raise NotImplementedError

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.variance)

    @property
    def mode(self) -> float:
        """The most probable value; NaN where the density has no maximum."""
        raise NotImplementedError

    def log_density(self, x: float) -> float:
        """The log density of a number; of counts, its log probability.

        Parameters
        ----------
        x : float
            The number.

        Returns
        -------
        float
            The log density.
        """
        raise NotImplementedError

    def density(self, x: float) -> float:
        """The density of a number; of counts, its probability.

        Parameters
        ----------
        x : float
            The number.

        Returns
        -------
        float
            The density.
        """
        return math.exp(self.log_density(x))

    def cdf(self, x: float) -> float:
        """P(X ≤ x).

        Parameters
        ----------
        x : float
            The number.

        Returns
        -------
        float
            The probability.
        """
        raise NotImplementedError

    def upper(self, x: float) -> float:
        """P(X > x), with all its digits where it is small.

        Parameters
        ----------
        x : float
            The number.

        Returns
        -------
        float
            The probability.
        """
        return 1.0 - self.cdf(x)

    def quantile(self, p: float) -> float:
        """The smallest x with P(X ≤ x) ≥ p.

        Parameters
        ----------
        p : float
            The probability.

        Returns
        -------
        float
            The number.
        """
        raise NotImplementedError

    def between(self, low: float, high: float) -> float:
        """P(low < X < high); of counts, both ends are left out.

        Parameters
        ----------
        low : float
            Lower end.
        high : float
            Upper end.

        Returns
        -------
        float
            The probability.
        """
        if high <= low:
            return 0.0
        last = math.ceil(high) - 1 if self.discrete and math.isfinite(high) else high
        below = self.cdf(low)
        if below > 0.5:  # 1 − cdf would lose the digits of an upper tail
            return max(self.upper(low) - self.upper(last), 0.0)
        return max(self.cdf(last) - below, 0.0)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central interval that holds this share of the probability.

        Parameters
        ----------
        level : float, default=0.95
            The share of the probability.

        Returns
        -------
        (float, float)
            Both ends.
        """
        checked_level(level)
        return self.quantile((1.0 - level) / 2), self.quantile((1.0 + level) / 2)

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random values; `seed` is a number, a generator or nothing.

        Parameters
        ----------
        n : int
            Number of values.
        seed : int, numpy.random.Generator or None, default=None
            Makes the draw repeatable.

        Returns
        -------
        array
            The values.
        """
        raise NotImplementedError

    def curve(self, points: int = 201, level: float = 0.9995) -> list[tuple[float, float]]:
        """Points of the density over its central interval; of counts, the probability of each count.

        Parameters
        ----------
        points : int, default=201
            Number of points.
        level : float, default=0.9995
            The share of the probability in the interval.

        Returns
        -------
        list of (float, float)
            Numbers and their density.
        """
        low, high = self.interval(level)
        if self.discrete:
            step = max(int((high - low) // points), 1)
            return [(float(x), self.density(x)) for x in range(int(low), int(high) + 1, step)]
        return [(x, self.density(x)) for x in np.linspace(low, high, points).tolist()]


def checked_level(level: Any) -> float:
    """The probability of an interval, refused where it is none."""
    if not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
        raise UsageError(f"an interval of level {level!r}: choose a number between 0 and 1")
    return float(level)


def checked_probability(p: Any) -> float:
    """A probability, refused where it is none."""
    if not isinstance(p, Real) or not 0.0 <= float(p) <= 1.0:
        raise UsageError(f"a quantile of {p!r}: choose a probability between 0 and 1")
    return float(p)
