"""Continuous distributions with density, distribution function, quantile, interval and draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes import special
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
        """The log density of a number; of counts, its log probability."""
        raise NotImplementedError

    def density(self, x: float) -> float:
        """The density of a number; of counts, its probability."""
        return math.exp(self.log_density(x))

    def cdf(self, x: float) -> float:
        """P(X ≤ x)."""
        raise NotImplementedError

    def upper(self, x: float) -> float:
        """P(X > x), with all its digits where it is small."""
        return 1.0 - self.cdf(x)

    def quantile(self, p: float) -> float:
        """The smallest x with P(X ≤ x) ≥ p."""
        raise NotImplementedError

    def between(self, low: float, high: float) -> float:
        """P(low < X < high); of counts, both ends are left out."""
        if high <= low:
            return 0.0
        last = math.ceil(high) - 1 if self.discrete and math.isfinite(high) else high
        below = self.cdf(low)
        if below > 0.5:  # 1 − cdf would lose the digits of an upper tail
            return max(self.upper(low) - self.upper(last), 0.0)
        return max(self.cdf(last) - below, 0.0)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central interval that holds this share of the probability."""
        checked_level(level)
        return self.quantile((1.0 - level) / 2), self.quantile((1.0 + level) / 2)

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random values; `seed` is a number, a generator or nothing."""
        raise NotImplementedError

    def curve(self, points: int = 201, level: float = 0.9995) -> list[tuple[float, float]]:
        """Points of the density over its central interval; of counts, the probability of each count."""
        low, high = self.interval(level)
        if self.discrete:
            step = max(int((high - low) // points), 1)
            return [(float(x), self.density(x)) for x in range(int(low), int(high) + 1, step)]
        return [(x, self.density(x)) for x in np.linspace(low, high, points).tolist()]


def checked_level(level: Any) -> float:
    """Check the probability of an interval and return it."""
    if not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
        raise UsageError(f"an interval of level {level!r}: choose a number between 0 and 1")
    return float(level)


def checked_probability(p: Any) -> float:
    """Check a probability and return it."""
    if not isinstance(p, Real) or not 0.0 <= float(p) <= 1.0:
        raise UsageError(f"a quantile of {p!r}: choose a probability between 0 and 1")
    return float(p)


@dataclass(frozen=True)
class Normal(Distribution):
    """Normal distribution of this mean and variance."""

    location: float
    scale_squared: float

    @property
    def mean(self) -> float:
        """The location."""
        return self.location

    @property
    def variance(self) -> float:
        """The scale squared."""
        return self.scale_squared

    @property
    def mode(self) -> float:
        """The location."""
        return self.location

    def log_density(self, x: float) -> float:
        """−½ log 2πσ² − (x − μ)² / 2σ²."""
        apart = (x - self.location) ** 2 / self.scale_squared
        return -0.5 * (math.log(2 * math.pi * self.scale_squared) + apart)

    def cdf(self, x: float) -> float:
        """By the complementary error function."""
        return special.normal_cdf((x - self.location) / self.deviation)

    def upper(self, x: float) -> float:
        """By symmetry."""
        return special.normal_cdf((self.location - x) / self.deviation)

    def quantile(self, p: float) -> float:
        """By Wichura's rational approximation."""
        return self.location + self.deviation * special.normal_quantile(checked_probability(p))

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random values."""
        return np.random.default_rng(seed).normal(self.location, self.deviation, n)


@dataclass(frozen=True)
class Student(Distribution):
    """Student's t with location and scale."""

    degrees: float
    location: float = 0.0
    scale: float = 1.0

    @property
    def mean(self) -> float:
        """The location, where there are more than one degree of freedom."""
        return self.location if self.degrees > 1 else math.nan

    @property
    def variance(self) -> float:
        """Infinite up to two degrees of freedom."""
        return self.scale**2 * self.degrees / (self.degrees - 2) if self.degrees > 2 else math.inf

    @property
    def mode(self) -> float:
        """The location."""
        return self.location

    def log_density(self, x: float) -> float:
        """The log density."""
        z, half = (x - self.location) / self.scale, self.degrees / 2
        constant = -special.log_beta(half, 0.5) - 0.5 * math.log(self.degrees) - math.log(self.scale)
        return constant - (half + 0.5) * math.log1p(z * z / self.degrees)

    def cdf(self, x: float) -> float:
        """By the incomplete beta function."""
        return special.student_cdf(self.degrees, (x - self.location) / self.scale)

    def upper(self, x: float) -> float:
        """By symmetry."""
        return special.student_cdf(self.degrees, (self.location - x) / self.scale)

    def quantile(self, p: float) -> float:
        """The inverse of the distribution function."""
        return self.location + self.scale * special.student_quantile(self.degrees, checked_probability(p))

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random values."""
        return self.location + self.scale * np.random.default_rng(seed).standard_t(self.degrees, n)


@dataclass(frozen=True)
class Beta(Distribution):
    """Beta distribution of a probability."""

    a: float
    b: float

    @property
    def mean(self) -> float:
        """a / (a + b)."""
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> float:
        """ab / (a + b)² (a + b + 1)."""
        whole = self.a + self.b
        return self.a * self.b / (whole * whole * (whole + 1))

    @property
    def mode(self) -> float:
        """(a − 1) / (a + b − 2); the end with the infinite density where a or b is below one."""
        if self.a >= 1 and self.b >= 1 and self.a + self.b > 2:
            return (self.a - 1) / (self.a + self.b - 2)
        return math.nan if self.a == self.b else float(self.a > self.b)

    def log_density(self, x: float) -> float:
        """The log density."""
        if not 0.0 < x < 1.0:
            return -math.inf
        return special.log_beta_density(self.a, self.b, x) - math.log(x) - math.log1p(-x)

    def cdf(self, x: float) -> float:
        """The regularised incomplete beta function."""
        return special.beta_cdf(self.a, self.b, min(max(x, 0.0), 1.0))[0]

    def upper(self, x: float) -> float:
        """The complement of the regularised incomplete beta function."""
        return special.beta_cdf(self.a, self.b, min(max(x, 0.0), 1.0))[1]

    def quantile(self, p: float) -> float:
        """The inverse of the distribution function."""
        return special.beta_quantile(self.a, self.b, checked_probability(p))

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random values."""
        return np.random.default_rng(seed).beta(self.a, self.b, n)


@dataclass(frozen=True)
class Gamma(Distribution):
    """Gamma distribution of a rate: `shape` events in `rate` units of time."""

    shape: float
    rate: float

    @property
    def mean(self) -> float:
        """shape / rate."""
        return self.shape / self.rate

    @property
    def variance(self) -> float:
        """shape / rate²."""
        return self.shape / self.rate**2

    @property
    def mode(self) -> float:
        """(shape − 1) / rate, or zero."""
        return max(self.shape - 1, 0.0) / self.rate

    def log_density(self, x: float) -> float:
        """The log density."""
        return special.log_gamma_density(self.shape, self.rate * x) - math.log(x) if x > 0 else -math.inf

    def cdf(self, x: float) -> float:
        """The regularised incomplete gamma function."""
        return special.gamma_cdf(self.shape, self.rate * x)[0] if math.isfinite(x) else float(x > 0)

    def upper(self, x: float) -> float:
        """The complement of the regularised incomplete gamma function."""
        return special.gamma_cdf(self.shape, self.rate * x)[1] if math.isfinite(x) else float(x < 0)

    def quantile(self, p: float) -> float:
        """The inverse of the distribution function."""
        return special.gamma_quantile(self.shape, checked_probability(p)) / self.rate

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random values."""
        return np.random.default_rng(seed).gamma(self.shape, 1.0 / self.rate, n)


@dataclass(frozen=True)
class InverseGamma(Distribution):
    """Inverse-gamma distribution of a variance."""

    shape: float
    scale: float

    @property
    def mean(self) -> float:
        """scale / (shape − 1), infinite up to a shape of one."""
        return self.scale / (self.shape - 1) if self.shape > 1 else math.inf

    @property
    def variance(self) -> float:
        """Infinite up to a shape of two."""
        a = self.shape
        return self.scale**2 / ((a - 1) ** 2 * (a - 2)) if a > 2 else math.inf

    @property
    def mode(self) -> float:
        """scale / (shape + 1)."""
        return self.scale / (self.shape + 1)

    def log_density(self, x: float) -> float:
        """The log density."""
        return special.log_gamma_density(self.shape, self.scale / x) - math.log(x) if x > 0 else -math.inf

    def cdf(self, x: float) -> float:
        """The upper tail of a gamma variable."""
        return special.gamma_cdf(self.shape, self.scale / x)[1] if x > 0 else 0.0

    def upper(self, x: float) -> float:
        """The lower tail of a gamma variable."""
        return special.gamma_cdf(self.shape, self.scale / x)[0] if x > 0 else 1.0

    def quantile(self, p: float) -> float:
        """The inverse of the distribution function."""
        below = special.gamma_quantile(self.shape, 1.0 - checked_probability(p))
        return self.scale / below if below > 0 else math.inf

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random values."""
        return self.scale / np.random.default_rng(seed).gamma(self.shape, 1.0, n)


@dataclass(frozen=True)
class RootInverseGamma(Distribution):
    """Distribution of a standard deviation whose variance is inverse-gamma."""

    shape: float
    scale: float

    @property
    def mean(self) -> float:
        """√scale Γ(shape − 1/2) / Γ(shape), infinite up to a shape of one half."""
        if self.shape <= 0.5:
            return math.inf
        return math.sqrt(self.scale) * math.exp(math.lgamma(self.shape - 0.5) - math.lgamma(self.shape))

    @property
    def variance(self) -> float:
        """The mean of the variance, less the squared mean."""
        return InverseGamma(self.shape, self.scale).mean - self.mean**2 if self.shape > 1 else math.inf

    @property
    def mode(self) -> float:
        """√(scale / (shape + 1/2))."""
        return math.sqrt(self.scale / (self.shape + 0.5))

    def log_density(self, x: float) -> float:
        """The density of the variance at x², times 2x."""
        return InverseGamma(self.shape, self.scale).log_density(x * x) + math.log(2 * x) if x > 0 else -math.inf

    def cdf(self, x: float) -> float:
        """The distribution function of the variance at x²."""
        return InverseGamma(self.shape, self.scale).cdf(x * x) if x > 0 else 0.0

    def upper(self, x: float) -> float:
        """The upper tail of the variance at x²."""
        return InverseGamma(self.shape, self.scale).upper(x * x) if x > 0 else 1.0

    def quantile(self, p: float) -> float:
        """The root of the quantile of the variance."""
        return math.sqrt(InverseGamma(self.shape, self.scale).quantile(p))

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random values."""
        return np.sqrt(InverseGamma(self.shape, self.scale).draw(n, seed))
