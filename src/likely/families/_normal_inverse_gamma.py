"""Normal–inverse-gamma posterior of Gaussian means and variances: marginal likelihood and posterior predictive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.bayes.conjugate import NormalPrior
from likely.families.base import dust
from likely.families.likelihoods import GaussianTerm
from likely.families.posterior_predictive import StudentPredictive, log_gamma
from likely.families.statistics import Array, Moments
from likely.families.value_tables import improper


@dataclass(frozen=True)
class VariancePosterior:
    """Posterior of mean and variance by class: posterior mean, and half the summed squares."""

    strength: float
    shape: float
    scale: float
    n: Array
    mean: Array
    deviation: Array
    shared: bool  # whether all classes have one variance

    @classmethod
    def of(cls, prior: NormalPrior, n: Array, mean: Array, spread: Array, *, shared: bool) -> VariancePosterior:
        """Posterior from a prior (mean, strength, shape, scale) and sufficient statistics."""
        level, strength, shape, scale = prior
        k = strength + n
        drift = strength * n / k * (mean - level) ** 2
        return cls(strength, shape, scale, n, (strength * level + n * mean) / k, (spread + drift) / 2, shared)

    @property
    def _shapes(self) -> tuple[Array, Array]:
        """Posterior shape and scale of the variance."""
        n, deviation = self.n, self.deviation
        if self.shared:
            n, deviation = n.sum(keepdims=True), deviation.sum(keepdims=True)
        return self.shape + n / 2, self.scale + deviation

    @property
    def log_marginal(self) -> float:
        """Log marginal likelihood of the rows."""
        shape, scale = self._shapes
        variance = log_gamma(shape) - log_gamma(np.array(self.shape))
        variance = variance + self.shape * np.log(self.scale) - shape * np.log(scale)
        means = 0.5 * np.log(self.strength / (self.strength + self.n)) - self.n / 2 * np.log(2 * np.pi)
        return float(variance.sum() + means.sum())

    def predictive(self, classes: int) -> StudentPredictive:
        """Posterior predictive distribution: Student's t."""
        shape, scale = self._shapes
        k = self.strength + self.n
        width = np.sqrt(scale / shape * (k + 1) / k)
        mean, width, degrees = (np.broadcast_to(part, classes) for part in (self.mean, width, 2 * shape))
        return StudentPredictive(mean, width, degrees)


@dataclass(frozen=True)
class MeanPosterior:
    """Posterior of the means by class where the variance is known: rows and pseudo-rows, centre, log marginal likelihood."""

    weight: Array
    centre: Array
    variance: float
    log_marginal: float

    @classmethod
    def of(cls, prior: NormalPrior, moments: Moments, variance: float) -> MeanPosterior:
        """Posterior from a prior of the mean, Normal(mean, variance / strength), and sufficient statistics."""
        level, strength, n = prior.mean, prior.strength, moments.n
        k = strength + n
        squares = moments.spread + strength * n / k * (moments.mean - level) ** 2
        logs = 0.5 * np.log(strength / k) - n / 2 * np.log(2 * np.pi * variance) - squares / (2 * variance)
        return cls(k, (strength * level + n * moments.mean) / k, variance, float(logs.sum()))

    def predictive(self, classes: int) -> GaussianTerm:
        """Posterior predictive distribution: normal, wider by the uncertainty of the mean."""
        width = self.variance * (1.0 + 1.0 / self.weight)
        mean, width = (np.broadcast_to(part, classes) for part in (self.centre, width))
        return GaussianTerm(mean.copy(), -0.5 / width, -0.5 * np.log(2 * np.pi * width))


def proper_prior(block: Any, whole: Moments, *, known_variance: bool) -> NormalPrior:
    """Mean, strength, shape and scale of the prior: as given, else one pseudo-row with the mean and variance of all rows."""
    given: NormalPrior | None = block.prior.normal
    if given is None:
        n, mean, spread = (float(part[0]) for part in (whole.n, whole.mean, whole.spread))
        variance = spread / n if n > 0 else 0.0
        return NormalPrior(mean, 1.0, 0.5, (variance if variance > float(dust(np.array(mean))) else 1.0) / 2)
    if known_variance and given.strength <= 0:
        raise improper(block.name, "its prior is improper", "strength must be above 0")
    if not known_variance and min(given.strength, given.shape, given.scale) <= 0:
        raise improper(block.name, "its prior is improper", "strength, shape and scale must be above 0")
    return given


def shared_log_marginal(blocks: Sequence[Any], tie: str) -> float:
    """Log marginal likelihood of columns that share one variance, or one in each class, with one prior of it."""
    priors = {block.prior.normal for block in blocks}
    if len(priors) != 1 or None in priors:
        remedy = "pass one NormalInverseGamma(...) as their smoothing"
        raise improper(blocks[0].name, f"tie={tie!r} shares a variance, which needs one prior", remedy)
    n, mean, spread = (np.array([getattr(b.statistic, part) for b in blocks]) for part in ("n", "mean", "spread"))
    prior = proper_prior(blocks[0], blocks[0].statistic, known_variance=False)
    cells = [slice(None)] if tie == "both" else [slice(c, c + 1) for c in range(n.shape[1])]
    return sum(VariancePosterior.of(prior, n[:, at], mean[:, at], spread[:, at], shared=True).log_marginal for at in cells)
