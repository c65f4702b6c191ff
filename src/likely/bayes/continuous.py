"""Continuous distributions with density, distribution function, quantile, interval and draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.bayes import special
from likely.bayes.distribution import Array, Distribution, checked_probability


@dataclass(frozen=True)
class Normal(Distribution):
    """Normal distribution of this mean and variance.

    Parameters
    ----------
    location : float
        The mean.
    scale_squared : float
        The variance.
    """

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
    """Student's t with location and scale.

    Parameters
    ----------
    degrees : float
        Degrees of freedom.
    location : float, default=0.0
        The middle.
    scale : float, default=1.0
        The scale.
    """

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
    """Beta distribution of a probability.

    Parameters
    ----------
    a : float
        First parameter: the weight of successes.
    b : float
        Second parameter: that of failures.
    """

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
    """Gamma distribution of a rate: `shape` events in `rate` units of time.

    Parameters
    ----------
    shape : float
        Number of events.
    rate : float
        Units of time.
    """

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
    """Inverse-gamma distribution of a variance.

    Parameters
    ----------
    shape : float
        The shape.
    scale : float
        The scale.
    """

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
