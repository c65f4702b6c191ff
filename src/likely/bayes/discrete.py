"""Distributions of counts and of named outcomes, with probability, distribution function, quantile and draws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from likely.bayes import special
from likely.bayes.distribution import Array, Distribution, checked_probability
from likely.errors import UsageError
from likely.kernels.parallel import cached_property

FARTHEST = 1e13  # counts that a quantile is searched over
PRECISE = 1e-9  # by which probabilities may miss the sum of one


class _Counts(Distribution):
    """A distribution of counts: quantiles are searched from the mean."""

    discrete = True

    def _largest_count(self) -> float:
        return math.inf

    def quantile(self, p: float) -> float:
        """The smallest count with P(X ≤ x) ≥ p."""
        if checked_probability(p) == 1.0:
            return self._largest_count()
        low, high = -1, max(int(self.mean), 1)
        while self.cdf(high) < p:
            low, high = high, 2 * high
            if high > FARTHEST:
                raise UsageError(f"the quantile {p} lies beyond {high:.0e}")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.cdf(middle) >= p else (middle, high)
        return float(high)


@dataclass(frozen=True)
class Poisson(_Counts):
    """Poisson distribution.

    Parameters
    ----------
    rate : float
        The expected count.
    """

    rate: float

    @property
    def mean(self) -> float:
        """The rate."""
        return self.rate

    @property
    def variance(self) -> float:
        """The rate."""
        return self.rate

    @property
    def mode(self) -> float:
        """The rate rounded down."""
        return float(math.floor(self.rate))

    def log_density(self, x: float) -> float:
        """x log λ − λ − log x!."""
        if x < 0 or x != math.floor(x):
            return -math.inf
        if self.rate == 0:
            return 0.0 if x == 0 else -math.inf
        return special.log_gamma_density(x + 1.0, self.rate) - math.log(self.rate)

    def cdf(self, x: float) -> float:
        """The upper tail of a gamma variable."""
        if x < 0:
            return 0.0
        return 1.0 if self.rate == 0 or x == math.inf else special.gamma_cdf(math.floor(x) + 1.0, self.rate)[1]

    def upper(self, x: float) -> float:
        """The lower tail of a gamma variable."""
        if x < 0 or self.rate == 0:
            return float(x < 0)
        return special.gamma_cdf(math.floor(x) + 1.0, self.rate)[0] if math.isfinite(x) else 0.0

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random counts."""
        return np.random.default_rng(seed).poisson(self.rate, n)


@dataclass(frozen=True)
class Binomial(_Counts):
    """Binomial distribution: successes among n trials. One trial is a Bernoulli variable.

    Parameters
    ----------
    n : int
        Number of trials.
    p : float
        Probability of success.
    """

    n: int
    p: float

    @property
    def mean(self) -> float:
        """np."""
        return self.n * self.p

    @property
    def variance(self) -> float:
        """np(1 − p)."""
        return self.n * self.p * (1 - self.p)

    @property
    def mode(self) -> float:
        """(n + 1)p rounded down."""
        return float(min(math.floor((self.n + 1) * self.p), self.n))

    def _largest_count(self) -> float:
        return float(self.n)

    def log_density(self, x: float) -> float:
        """log (n choose k) pᵏ (1 − p)ⁿ⁻ᵏ."""
        if not 0 <= x <= self.n or x != math.floor(x):
            return -math.inf
        if self.p in (0.0, 1.0):
            return 0.0 if x == self.n * self.p else -math.inf
        whole = special.log_beta_density(x + 1.0, self.n - x + 1.0, self.p)
        return whole - math.log(self.p) - math.log1p(-self.p) - math.log(self.n + 1.0)

    def cdf(self, x: float) -> float:
        """The upper tail of a beta variable."""
        if x < 0 or x >= self.n:
            return 0.0 if x < 0 else 1.0
        k = math.floor(x)
        return special.beta_cdf(k + 1.0, self.n - k, self.p)[1]

    def upper(self, x: float) -> float:
        """The lower tail of a beta variable."""
        if x < 0 or x >= self.n:
            return float(x < 0)
        return special.beta_cdf(math.floor(x) + 1.0, self.n - math.floor(x), self.p)[0]

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random counts."""
        return np.random.default_rng(seed).binomial(self.n, self.p, n)


def bernoulli(p: float) -> Binomial:
    """Bernoulli distribution: 1 with probability p, else 0; one trial of a binomial variable.

    Parameters
    ----------
    p : float
        Probability of 1.

    Returns
    -------
    Binomial
        The distribution of one trial.
    """
    return Binomial(1, p)


@dataclass(frozen=True)
class NegativeBinomial(_Counts):
    """Counts at a rate that is gamma distributed: the posterior predictive of a Poisson variable.

    Parameters
    ----------
    shape : float
        Shape of the gamma distribution of the rate.
    rows : float
        Its rate: number of rows behind it.
    """

    shape: float
    rows: float

    @property
    def mean(self) -> float:
        """shape / rows."""
        return self.shape / self.rows

    @property
    def variance(self) -> float:
        """shape / rows + shape / rows²."""
        return self.mean * (1 + 1 / self.rows)

    @property
    def mode(self) -> float:
        """(shape − 1) / rows rounded down, or zero."""
        return float(math.floor((self.shape - 1) / self.rows)) if self.shape > 1 else 0.0

    def log_density(self, x: float) -> float:
        """The log probability."""
        if x < 0 or x != math.floor(x):
            return -math.inf
        p = 1.0 / (1.0 + self.rows)
        return special.log_beta_density(x + 1.0, self.shape, p) - math.log(p) - math.log(self.shape + x)

    def cdf(self, x: float) -> float:
        """The incomplete beta function."""
        if x < 0 or x == math.inf:
            return float(x > 0)
        return special.beta_cdf(self.shape, math.floor(x) + 1.0, self.rows / (1.0 + self.rows))[0]

    def upper(self, x: float) -> float:
        """The complement of the incomplete beta function."""
        if x < 0 or not math.isfinite(x):
            return float(x < 0)
        return special.beta_cdf(self.shape, math.floor(x) + 1.0, self.rows / (1.0 + self.rows))[1]

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random counts."""
        rng = np.random.default_rng(seed)
        return rng.poisson(rng.gamma(self.shape, 1.0 / self.rows, n))


@dataclass(frozen=True)
class BetaBinomial(_Counts):
    """Successes among n trials whose probability is Beta(a, b): the posterior predictive of a binomial variable.

    Parameters
    ----------
    n : int
        Number of trials.
    a : float
        First parameter of the Beta distribution of the probability.
    b : float
        Second parameter.
    """

    n: int
    a: float
    b: float

    @property
    def mean(self) -> float:
        """na / (a + b)."""
        return self.n * self.a / (self.a + self.b)

    @property
    def variance(self) -> float:
        """nab(a + b + n) / (a + b)²(a + b + 1)."""
        whole = self.a + self.b
        return self.n * self.a * self.b * (whole + self.n) / (whole * whole * (whole + 1))

    @property
    def mode(self) -> float:
        """The most probable count."""
        return float(np.argmax(self._probabilities))

    def _largest_count(self) -> float:
        return float(self.n)

    def log_density(self, x: float) -> float:
        """log (n choose k) B(k + a, n − k + b) / B(a, b)."""
        if not 0 <= x <= self.n or x != math.floor(x):
            return -math.inf
        if min(self.a, self.b) == 0:  # an improper prior and successes, or failures, alone
            return 0.0 if x == (self.n if self.b == 0 else 0) else -math.inf
        ways = -math.log(self.n + 1.0) - special.log_beta(self.n - x + 1.0, x + 1.0)
        return ways + special.log_beta(x + self.a, self.n - x + self.b) - special.log_beta(self.a, self.b)

    @cached_property
    def _probabilities(self) -> Array:
        return np.exp([self.log_density(k) for k in range(self.n + 1)])

    def cdf(self, x: float) -> float:
        """The sum of the probabilities of all counts up to x."""
        if x < 0 or x >= self.n:
            return 0.0 if x < 0 else 1.0
        return min(float(self._probabilities[: math.floor(x) + 1].sum()), 1.0)

    def upper(self, x: float) -> float:
        """The sum of the probabilities of all counts above x."""
        if x < 0 or x >= self.n:
            return float(x < 0)
        return min(float(self._probabilities[math.floor(x) + 1 :].sum()), 1.0)

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random counts."""
        rng = np.random.default_rng(seed)
        p = rng.beta(self.a, self.b, n) if min(self.a, self.b) > 0 else np.full(n, self.mean / max(self.n, 1))
        return rng.binomial(self.n, p)


@dataclass(frozen=True)
class Categorical:
    """Probabilities of named outcomes.

    Parameters
    ----------
    probabilities : dict
        Outcome → probability.
    """

    probabilities: Mapping[Any, float] = field(default_factory=dict)

    def density(self, outcome: Any) -> float:
        """The probability of an outcome; zero for one that is not named.

        Parameters
        ----------
        outcome : object
            The outcome.

        Returns
        -------
        float
            The probability.
        """
        return self.probabilities.get(outcome, 0.0)

    @property
    def mode(self) -> Any:
        """The most probable outcome."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    def between(self, low: float, high: float) -> float:
        """P(low < X < high), both ends left out, where all outcomes are numbers.

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
        return math.fsum(p for x, p in self._ordered() if low < x < high)

    def quantile(self, p: float) -> float:
        """The smallest outcome with P(X ≤ x) ≥ p, where all outcomes are numbers.

        Parameters
        ----------
        p : float
            The probability.

        Returns
        -------
        float
            The outcome.
        """
        below, found = 0.0, self._ordered()
        checked_probability(p)
        for x, own in found:
            below += own
            if below >= p - PRECISE and own > 0:
                return x
        return found[-1][0]

    def _ordered(self) -> list[tuple[float, float]]:
        names = [x for x in self.probabilities if isinstance(x, bool) or not isinstance(x, Real)]
        if names:
            raise UsageError(f"the outcome {names[0]!r} is no number: named outcomes have no order, only .density(outcome)")
        return sorted(self.probabilities.items())

    def draw(self, n: int, seed: Any = None) -> list[Any]:
        """Random outcomes.

        Parameters
        ----------
        n : int
            Number of values.
        seed : int, numpy.random.Generator or None, default=None
            Makes the draw repeatable.

        Returns
        -------
        list
            The outcomes.
        """
        outcomes, p = list(self.probabilities), np.array(list(self.probabilities.values()))
        return [outcomes[i] for i in np.random.default_rng(seed).choice(len(outcomes), n, p=p / p.sum())]
