"""Conjugate posteriors of parameters: Beta, Dirichlet, gamma and normal–inverse-gamma, exact."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.bayes import continuous, discrete, outcomes
from likely.bayes.distribution import Distribution
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.errors import UsageError
from likely.kernels.parallel import cached_property

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DirichletPosterior(ParameterPosterior):
    """Dirichlet posterior of probabilities that sum to one; with two outcomes, a Beta distribution of each probability."""

    alpha: Mapping[Any, float]
    shown: tuple[Any, ...] = ()  # parameters that are shown, where not all are: `p` of a yes/no variable is "p"
    names: Mapping[Any, Any] | None = None  # another name for an outcome
    predicts: Any = None  # the predictive distribution, where it is not that of one outcome

    def __post_init__(self) -> None:
        if not self.alpha or min(self.alpha.values()) < 0 or sum(self.alpha.values()) <= 0:
            raise UsageError("this posterior is improper: no outcome has a positive count; use a prior with pseudocounts")

    @property
    def family(self) -> str:  # type: ignore[override]
        """Beta where there are two outcomes."""
        return "Dirichlet" if len(self.alpha) > 2 or not self.shown else "Beta"

    @property
    def marginals(self) -> dict[Any, Distribution]:
        """Each probability has a Beta marginal."""
        total = self._total
        wanted = self.shown or tuple(self.alpha)
        called = self.names or {}
        return {called.get(name, name): _beta(self.alpha[name], total - self.alpha[name]) for name in wanted}

    def marginal(self, name: Any) -> Distribution:
        """The Beta marginal of one probability."""
        if self.names or self.shown or name not in self.alpha:
            return super().marginal(name)
        return _beta(self.alpha[name], self._total - self.alpha[name])

    @cached_property
    def _total(self) -> float:
        return sum(self.alpha.values())

    @property
    def mode(self) -> dict[Any, float]:
        """(α − 1) / Σ(α − 1) where every α is one or more and one is above; else NaN: the density has no maximum inside."""
        less = {name: a - 1.0 for name, a in self.alpha.items()}
        total, called = sum(less.values()), self.names or {}
        inside = min(less.values()) >= 0 and total > 0
        wanted = self.shown or tuple(self.alpha)
        return {called.get(name, name): less[name] / total if inside else math.nan for name in wanted}

    @property
    def predictive(self) -> Any:
        """The probability of each outcome for the next value: the posterior mean."""
        if self.predicts is not None:
            return self.predicts
        total = self._total
        return discrete.Categorical({name: a / total for name, a in self.alpha.items()})

    def draw(self, n: int, seed: Any = None) -> dict[Any, Array]:
        """Random vectors of probabilities, by outcome."""
        drawn = np.random.default_rng(seed).gamma(np.array(list(self.alpha.values())), size=(n, len(self.alpha)))
        drawn /= drawn.sum(1, keepdims=True)
        called, wanted = self.names or {}, self.shown or tuple(self.alpha)
        return {called.get(k, k): drawn[:, j] for j, k in enumerate(self.alpha) if k in wanted}


@dataclass(frozen=True)
class IndependentPosterior(ParameterPosterior):
    """Parameters that are independent in the posterior: a multivariate Bernoulli has a Beta for each column."""

    parts: Mapping[Any, Distribution]
    family = "independent"

    @property
    def marginals(self) -> dict[Any, Distribution]:
        """One distribution for each parameter."""
        return dict(self.parts)

    @property
    def predictive(self) -> Any:
        """The next row of yes/no answers: each is yes with the mean of its probability."""
        return outcomes.MultivariateBernoulli({name: each.mean for name, each in self.parts.items()})

    def draw(self, n: int, seed: Any = None) -> dict[Any, Array]:
        """Random parameters, by name."""
        rng = np.random.default_rng(seed)
        return {name: each.draw(n, rng) for name, each in self.parts.items()}


def beta_of(yes: float, no: float) -> Distribution:
    """The Beta distribution of a probability from counts with pseudocounts; refused where there are none."""
    if yes + no <= 0:
        raise UsageError("this posterior is improper: nothing was counted; use a prior with pseudocounts")
    return _beta(yes, no)


def _beta(a: float, b: float) -> Distribution:
    """A Beta marginal; where all counts lie on one side, all probability does."""
    return continuous.Beta(a, b) if a > 0 and b > 0 else _Point(float(a > 0))


@dataclass(frozen=True)
class _Point(Distribution):
    """All probability at one value."""

    at: float

    @property
    def mean(self) -> float:
        return self.at

    @property
    def variance(self) -> float:
        return 0.0

    @property
    def mode(self) -> float:
        return self.at

    def log_density(self, x: float) -> float:
        return math.inf if x == self.at else -math.inf

    def density(self, x: float) -> float:
        return math.inf if x == self.at else 0.0

    def cdf(self, x: float) -> float:
        return float(x >= self.at)

    def quantile(self, p: float) -> float:  # noqa: ARG002
        return self.at

    def draw(self, n: int, seed: Any = None) -> Array:  # noqa: ARG002
        return np.full(n, self.at)


@dataclass(frozen=True)
class OneMinus(Distribution):
    """1 − X: the probability of no, where X is that of yes."""

    of: Distribution

    @property
    def mean(self) -> float:
        """One less the mean."""
        return 1.0 - self.of.mean

    @property
    def variance(self) -> float:
        """The same variance."""
        return self.of.variance

    @property
    def mode(self) -> float:
        """One less the mode."""
        return 1.0 - self.of.mode

    def log_density(self, x: float) -> float:
        """The density at the mirrored point."""
        return self.of.log_density(1.0 - x)

    def cdf(self, x: float) -> float:
        """The upper tail at the mirrored point."""
        return 1.0 - self.of.cdf(1.0 - x)

    def quantile(self, p: float) -> float:
        """The mirrored quantile."""
        return 1.0 - self.of.quantile(1.0 - p)

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random values."""
        return 1.0 - self.of.draw(n, seed)


@dataclass(frozen=True)
class GammaPosterior(ParameterPosterior):
    """Gamma posterior of a Poisson rate."""

    shape: float
    rows: float
    family = "gamma"

    def __post_init__(self) -> None:
        if self.shape <= 0 or self.rows <= 0:
            raise UsageError("this posterior is improper: no event was seen; use a prior with pseudocounts")

    @property
    def marginals(self) -> dict[Any, Distribution]:
        """`rate`."""
        return {"rate": continuous.Gamma(self.shape, self.rows)}

    @property
    def predictive(self) -> Any:
        """The number of events in the next row: negative binomial."""
        return discrete.NegativeBinomial(self.shape, self.rows)

    def draw(self, n: int, seed: Any = None) -> dict[Any, Array]:
        """Random rates."""
        return {"rate": self.marginals["rate"].draw(n, seed)}


class NormalPrior(NamedTuple):
    """Normal–inverse-gamma prior of a mean and a variance, proper or not."""

    mean: float
    strength: float  # pseudo-rows behind the mean
    shape: float
    scale: float


REFERENCE = NormalPrior(0.0, 0.0, -0.5, 0.0)  # p(μ, σ²) ∝ 1/σ²
FLAT = NormalPrior(0.0, 0.0, -1.5, 0.0)  # its mode is the maximum-likelihood estimate


@dataclass(frozen=True)
class NormalInverseGammaPosterior(ParameterPosterior):
    """Normal–inverse-gamma posterior of a mean and a variance."""

    location: float
    strength: float
    shape: float
    scale: float
    family = "normal–inverse-gamma"

    def __post_init__(self) -> None:
        if min(self.strength, self.shape, self.scale) <= 0:
            raise UsageError(
                "this posterior is improper: a variance needs two different values, or a prior NormalInverseGamma(...)"
            )

    @classmethod
    def of(cls, n: float, mean: float, spread: float, prior: NormalPrior | None) -> NormalInverseGammaPosterior:
        """From sufficient statistics; without a prior, the reference prior p(μ, σ²) ∝ 1/σ²."""
        level, strength, shape, scale = prior or REFERENCE
        whole = strength + n
        drift = strength * n / whole * (mean - level) ** 2 if whole > 0 else 0.0
        location = (strength * level + n * mean) / whole if whole > 0 else level
        return cls(location, whole, shape + n / 2, scale + (spread + drift) / 2)

    @property
    def marginals(self) -> dict[Any, Distribution]:
        """The mean has Student's t, the variance an inverse-gamma distribution."""
        wide = math.sqrt(self.scale / (self.shape * self.strength))
        return {
            "mean": continuous.Student(2 * self.shape, self.location, wide),
            "variance": continuous.InverseGamma(self.shape, self.scale),
        }

    @property
    def mode(self) -> dict[Any, float]:
        """The joint mode: the variance at scale / (shape + 3/2)."""
        return {"mean": self.location, "variance": self.scale / (self.shape + 1.5)}

    @property
    def predictive(self) -> Any:
        """The distribution of the next value: Student's t."""
        wide = math.sqrt(self.scale / self.shape * (1.0 + 1.0 / self.strength))
        return continuous.Student(2 * self.shape, self.location, wide)

    def draw(self, n: int, seed: Any = None) -> dict[Any, Array]:
        """Random pairs of mean and variance."""
        rng = np.random.default_rng(seed)
        variance = continuous.InverseGamma(self.shape, self.scale).draw(n, rng)
        return {"mean": rng.normal(self.location, np.sqrt(variance / self.strength)), "variance": variance}


@dataclass(frozen=True)
class NormalPosterior(ParameterPosterior):
    """Normal posterior of a mean whose variance is known."""

    location: float
    rows: float
    known_variance: float
    family = "normal"

    def __post_init__(self) -> None:
        if self.rows <= 0:
            raise UsageError("this posterior is improper: no value was seen")

    @property
    def marginals(self) -> dict[Any, Distribution]:
        """`mean`."""
        return {"mean": continuous.Normal(self.location, self.known_variance / self.rows)}

    @property
    def predictive(self) -> Any:
        """The distribution of the next value."""
        return continuous.Normal(self.location, self.known_variance * (1.0 + 1.0 / self.rows))

    def draw(self, n: int, seed: Any = None) -> dict[Any, Array]:
        """Random means."""
        return {"mean": self.marginals["mean"].draw(n, seed)}
