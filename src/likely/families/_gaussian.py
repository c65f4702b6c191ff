"""Gaussian columns: a mean per class, and a variance of its own or shared by classes, columns or both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely.bayes import continuous
from likely.bayes.conjugate import FLAT, REFERENCE, NormalInverseGammaPosterior, NormalPosterior
from likely.bayes.distribution import Distribution
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.errors import UsageError
from likely.families._normal_inverse_gamma import MeanPosterior, VariancePosterior, proper_prior, shared_log_marginal
from likely.families.base import (
    SHARED,
    SMALLEST,
    BlockPrior,
    Encoded,
    Labels,
    Parameters,
    Readable,
    dust,
    first_bad,
    overall_mean,
    weighted_responsibilities,
    wider_variance,
)
from likely.families.family import Family, FittedBlock, LeftOutRows, SampledCells, Totals
from likely.families.likelihoods import GaussianTerm
from likely.families.posterior_predictive import Arc
from likely.families.statistics import LARGEST, Array, Moments, Statistic
from likely.families.value_tables import improper, log_mixture, shares_of
from likely.kernels import counting, em_loops
from likely.schema import Column

CHUNK = 8_192  # rows: a multiple of the chunks that the kernel merges, so that the sums are the same
NOTHING = 1e-12  # a fraction of a spread or a weight below this is rounding error
POINTS, REACH = 801, 9.0  # of numerical integration: points, and standard deviations to either side


@dataclass(frozen=True)
class Gaussian(Family):
    """Gaussian distribution: a mean and a variance per class.

    Parameters
    ----------
    tie : None, "class", "column" or "both"
        What shares a variance: nothing (σᵢₖ), the classes (σᵢ), the columns (σₖ), or both (one σ).
    variance : float, optional
        A variance that is known beforehand: then only the means are estimated.
    unbiased : bool
        Whether sums of squares are divided by n − 1 (with shared variances by n less the number of means) instead of n, which
        is the maximum-likelihood estimate. It has no meaning beside a prior of the variance.
    """

    tie: str | None = None
    variance: float | None = None
    unbiased: bool = False

    name: ClassVar[str] = "gaussian"
    shorthand: ClassVar[str] = "tie"
    reads_columns: ClassVar[bool] = True
    counts_moments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.tie not in SHARED:
            raise UsageError(f"Gaussian(tie={self.tie!r}) is not known: choose None, 'class', 'column' or 'both'")
        if self.variance is not None and not (self.variance > SMALLEST and np.isfinite(self.variance)):
            raise UsageError(f"Gaussian(variance={self.variance!r}): a known variance is a number above zero")

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """Weight, mean and spread of every column in every class, in one pass."""
        if labels.ndim == 2:
            turned = [np.zeros((rows.numbers.shape[1], classes)) for _ in range(3)]
            em_loops.weighted_moments(rows.numbers, weighted_responsibilities(labels, weights), *turned)
            return [Moments(*column) for column in zip(*turned, strict=True)]
        shape = (classes, len(rows.columns) or rows.numbers.shape[1])
        n, mean, spread = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for x, y, w in _side_by_side(rows, labels, weights):
            counting.count_moments(x, y, w, n, mean, spread)
        return [Moments(*column) for column in zip(n.T.copy(), mean.T.copy(), spread.T.copy(), strict=True)]

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        statistics: Sequence[Moments],
        priors: Sequence[BlockPrior],
        classes: Sequence[Any],
        edges: Sequence[Array | None] | None = None,
    ) -> list[Parameters]:
        """Mean and variance by column and class; the variance is the mean squared deviation over the cells that share it."""
        n, mean, spread = (np.array([getattr(m, part) for m in statistics]) for part in ("n", "mean", "spread"))
        estimate = estimate_gaussian(n, mean, spread, priors, self.tie, unbiased=self.unbiased)
        free = _free(len(classes), len(blocks), self.tie)
        if self.variance is not None:
            variance, borrowed = np.full_like(estimate.variance, self.variance), np.zeros_like(estimate.borrowed)
            estimate, free = GaussianEstimate(estimate.mean, variance, borrowed), [len(classes)] * len(blocks)
        return [_parameters(column.name, estimate.of(i), n[i], classes, free[i]) for i, (column,) in enumerate(blocks)]

    def joint_settings(self) -> dict[str, Any] | None:
        """Whether the classes share the covariance of a joint block; None where the variance is known or unbiased."""
        return None if self.variance or self.unbiased else {"tie": "class" if self.tie in ("class", "both") else None}

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """Finite numbers whose squares do not overflow."""
        found = first_bad(np.isinf(numbers), "is not a finite number")
        return found or first_bad(np.abs(numbers) > LARGEST, "is too large to be squared")

    def settings(self) -> dict[str, Any]:
        """Settings that make this family again."""
        own = {"tie": self.tie} | ({} if self.variance is None else {"variance": self.variance})
        return own | ({"unbiased": True} if self.unbiased else {})

    @classmethod
    def from_shorthand(cls, text: str) -> dict[str, Any]:
        """What shares a variance, or that its estimate is unbiased."""
        return {"unbiased": True} if text == "unbiased" else super().from_shorthand(text)

    def log_prior_density(self, block: FittedBlock) -> float:
        """The log density of a normal–inverse-gamma prior."""
        if block.prior.normal is None:
            return 0.0
        mean, strength, shape, scale = block.prior.normal
        if self.variance is not None:
            return float((-strength * (block.likelihood.mean - mean) ** 2 / (2 * self.variance)).sum())
        variance = -0.5 / block.likelihood.curve
        apart = 2 * scale + strength * (block.likelihood.mean - mean) ** 2
        return float((-(shape + 1.5) * np.log(variance) - apart / (2 * variance)).sum())

    def arc(self, block: FittedBlock) -> Arc | None:
        """Normal–inverse-gamma marginal likelihoods; without a prior, one pseudo-row with the mean and variance of all rows.

        Where the variance is known, only the mean is integrated out.
        """
        if self.variance is None and self.tie in ("column", "both"):
            remedy = "use tie=None or tie='class'"
            raise improper(block.name, f"tie={self.tie!r} shares a variance with other columns", remedy)
        moments: Moments = block.statistic
        whole = Moments(*(part[:, None] for part in (moments.n, moments.mean, moments.spread))).summed()
        prior = proper_prior(block, whole, known_variance=self.variance is not None)
        if self.variance is not None:
            by_class, one = (MeanPosterior.of(prior, m, self.variance) for m in (moments, whole))
            both = (each.predictive(block.classes) for each in (by_class, one))
            return Arc(by_class.log_marginal, one.log_marginal, *both)
        own = VariancePosterior.of(prior, moments.n, moments.mean, moments.spread, shared=self.tie == "class")
        alike = VariancePosterior.of(prior, whole.n, whole.mean, whole.spread, shared=False)
        return Arc(own.log_marginal, alike.log_marginal, own.predictive(block.classes), alike.predictive(block.classes))

    def prior_from_data(self, block: FittedBlock) -> str:
        """Without a prior, mean and variance of all rows are taken for one."""
        return "no prior of its own, but the mean and variance of all rows" if block.prior.normal is None else ""

    def log_marginal_together(self, blocks: Sequence[FittedBlock]) -> float:
        """Columns that share a variance have one inverse-gamma prior of it, and are integrated out together."""
        if self.variance is not None or self.tie in (None, "class"):
            return super().log_marginal_together(blocks)
        return shared_log_marginal(blocks, self.tie)

    def totals(self, block: FittedBlock) -> dict[tuple[str, str], Totals]:
        """Rows, sum and spread."""
        name, m = block.name, block.statistic
        return {(name, "rows"): m.n, (name, "sum"): m.n * m.mean, (name, "spread"): m.spread}

    @property
    def leaves_out(self) -> bool:
        """Moments without a row have a closed form, unless other columns share the variance."""
        return self.tie in (None, "class")

    def leave_one_out(self, block: FittedBlock, cells: NDArray[Any], rows: LeftOutRows) -> Array:
        """Log density of each row's number in every class, the row left out; 0 where it is missing."""
        moments, known = block.statistic, np.flatnonzero(~np.isnan(cells))
        out = np.zeros((len(cells), len(moments.n)))
        value, own = cells[known, None], rows.take(known).own(len(moments.n))
        n = moments.n - own
        alone = n <= NOTHING * moments.n
        n = np.where(alone, 0.0, n)
        apart, safe = value - moments.mean, np.where(alone, 1.0, n)
        mean = np.where(alone, 0.0, moments.mean - apart * own / safe)
        spread = moments.spread - own * apart * apart * moments.n / safe
        spread = np.where(alone | (spread <= NOTHING * moments.spread), 0.0, spread)
        mean, variance, _ = estimate_gaussian(n, mean, spread, [block.prior], self.tie, unbiased=self.unbiased)
        variance = variance if self.variance is None else np.full_like(variance, self.variance)
        out[known] = -0.5 * (np.log(2 * np.pi * variance) + (value - mean) ** 2 / variance)
        return out

    def mutual_information(self, block: FittedBlock) -> float | None:
        """Σ p(c) ∫ p(x|c) log p(x|c) / p(x) dx, integrated numerically by class."""
        likelihood, shares = block.likelihood, shares_of(block.statistic.weight())
        deviation = np.sqrt(-0.5 / likelihood.curve)
        z = np.linspace(-REACH, REACH, POINTS)
        density = np.exp(-z * z / 2)
        density /= density.sum()
        total = 0.0
        for c in np.flatnonzero(shares > 0):
            x = likelihood.mean[c] + deviation[c] * z
            with np.errstate(over="ignore", under="ignore"):
                logs = likelihood.peak + likelihood.curve * (x[:, None] - likelihood.mean) ** 2
            total += shares[c] * float(density @ (logs[:, c] - log_mixture(logs, shares)))
        return max(total, 0.0)

    def sample(self, block: FittedBlock, classes: NDArray[np.int64], rng: np.random.Generator) -> SampledCells:
        """Numbers drawn from the density of the class."""
        likelihood = block.likelihood
        return {block.columns[0].name: rng.normal(likelihood.mean[classes], np.sqrt(-0.5 / likelihood.curve)[classes])}

    def with_known_variance(self, variance: float | None) -> Self:
        """The same family with a known variance."""
        return replace(self, variance=None if variance is None else float(variance))

    def variance_prior(self, rows: float, variances: Sequence[float], parts: int) -> dict[str, Any] | None:
        """Pseudo-rows with the variance of one of so many equal parts of the column's range."""
        return {"rows": rows, "variance": variances[0] / parts**2}

    def parameter_posteriors(self, block: FittedBlock) -> list[ParameterPosterior]:
        """Normal–inverse-gamma; without a prior, the reference prior p(μ, σ²) ∝ 1/σ². Normal where the variance is known."""
        m: Moments = block.statistic
        parts = list(zip(m.n.tolist(), m.mean.tolist(), m.spread.tolist(), strict=True))
        if self.variance is not None:
            level, strength = (0.0, 0.0) if block.prior.normal is None else block.prior.normal[:2]
            centres = [(strength * level + n * mean) / max(strength + n, SMALLEST) for n, mean, _ in parts]
            return [NormalPosterior(c, strength + n, self.variance) for c, (n, _, _) in zip(centres, parts, strict=True)]
        if self.tie in ("column", "both"):
            self.cannot(f"give a posterior in closed form with tie={self.tie!r}, which shares a variance among columns")
        found = [NormalInverseGammaPosterior.of(n, mean, spread, block.prior.normal) for n, mean, spread in parts]
        if self.tie is None or not found:
            return list(found)
        prior = block.prior.normal or REFERENCE
        shape = prior.shape + sum(each.shape - prior.shape for each in found)
        scale = prior.scale + sum(each.scale - prior.scale for each in found)
        return [replace(each, shape=shape, scale=scale) for each in found]

    def marginals(self, posterior: ParameterPosterior, line: Mapping[str, Any]) -> dict[str, Distribution]:
        """Student's t for the mean; for the deviation the root of an inverse-gamma variable."""
        found = posterior.marginals
        variance = found.pop("variance", None)
        if isinstance(variance, continuous.InverseGamma):
            found["deviation"] = continuous.RootInverseGamma(variance.shape, variance.scale)
        return found

    def with_parameters(self, block: FittedBlock, by_class: Sequence[Mapping[Any, Any]]) -> FittedBlock:
        """The block with other means and variances; a known variance stays."""
        mean = np.array([float(each["mean"]) for each in by_class])
        variance = np.array([float(each.get("variance", self.variance)) for each in by_class])
        return replace(block, parameters=replace(block.parameters, likelihood=_gaussian_term(mean, variance)))

    def distribution(self, parameters: Mapping[Any, float]) -> Any:
        """One number."""
        if not parameters["variance"] > 0:
            self.cannot("give the distribution of a value where the variance is zero; pass NormalInverseGamma(...) as prior")
        return continuous.Normal(parameters["mean"], parameters["variance"])

    def named_parameters(self, rows: Sequence[Mapping[str, Any]]) -> dict[Any, float]:
        """`mean` and `variance`."""
        return {"mean": rows[0]["mean"], "variance": rows[0]["deviation"] ** 2}

    def estimated(self, rows: Sequence[Mapping[str, Any]], statistic: Moments, prior: BlockPrior) -> dict[Any, float]:
        """Values that do not vary have a variance of zero; a classifier borrows another one for them."""
        found = self.named_parameters(rows)
        n, mean, spread = (np.atleast_2d(part) for part in (statistic.n, statistic.mean, statistic.spread))
        made = estimate_gaussian(n, mean, spread, [prior], self.tie, unbiased=self.unbiased)
        if self.variance is None and made.borrowed.any():
            found["variance"] = math.nan if self.unbiased and statistic.n[0] <= 1 else 0.0
        return found

    def is_possible(self, name: Any, value: Any) -> bool:
        """Any mean, and a variance above zero."""
        return math.isfinite(value) and (name == "mean" or value > 0)

    def log_likelihood(
        self, counted: Mapping[str, Array], columns: Sequence[Column], numbers: Array, weights: Array
    ) -> Callable[[Mapping[Any, float]], float]:
        """−n/2 log 2πσ² − Σ (x − μ)² / 2σ²."""
        n, mean, spread = (float(counted[part][0]) for part in ("n", "mean", "spread"))

        def at(p: Mapping[Any, float]) -> float:
            if not p["variance"] > 0:  # the density of a constant grows without limit
                return math.nan if math.isnan(p["variance"]) else math.inf if p["mean"] == mean else -math.inf
            return -0.5 * (n * math.log(2 * math.pi * p["variance"]) + (spread + n * (mean - p["mean"]) ** 2) / p["variance"])

        return at

    def parameter_range(self, name: Any, at: Mapping[Any, float], n: float) -> tuple[float, float]:
        """Four standard errors around the mean; from a tenth to three times the variance."""
        if name == "mean":
            wide = 4 * math.sqrt((at["variance"] or 1.0) / n)
            return at[name] - wide, at[name] + wide
        return at[name] / 10 + 1e-12, 3 * at[name] + 1e-12


class GaussianEstimate(NamedTuple):
    """Mean and variance, and which variances were replaced by those of a wider group of rows."""

    mean: Array
    variance: Array
    borrowed: NDArray[np.bool_]

    def of(self, i: int) -> GaussianEstimate:
        """Estimate of one column."""
        return GaussianEstimate(self.mean[i], self.variance[i], self.borrowed[i])


def estimate_gaussian(
    n: Array, mean: Array, spread: Array, priors: Sequence[BlockPrior], tie: str | None, *, unbiased: bool = False
) -> GaussianEstimate:
    """Mean and variance of every cell of columns × classes, at the mode of the normal–inverse-gamma posterior.

    Without rows and without a prior, the mean is that of all rows.
    """
    given, axes = [prior.normal for prior in priors], SHARED[tie]
    m0, k0, a0, b0 = (np.array([[p[part]] for p in (q or FLAT for q in given)]) for part in range(4))
    whole = k0 + n
    otherwise = np.broadcast_to(overall_mean(n, mean), mean.shape).copy()
    estimated = np.divide(k0 * m0 + n * mean, whole, out=otherwise, where=whole > 0)
    drift = np.divide(k0 * n, whole, out=np.zeros_like(mean), where=whole > 0) * (mean - m0) ** 2
    deviation, degrees = 2 * b0 + spread + drift, 2 * a0 + n + 3.0
    if unbiased:
        free = np.array([[normal is None] for normal in given])
        degrees = np.where(free, np.maximum(degrees - 1.0, 0.0), degrees)
    if axes:
        # Every cell has its own pseudo-rows: they are pooled like rows.
        deviation = np.broadcast_to(deviation.sum(axes, keepdims=True), deviation.shape)
        degrees = np.broadcast_to(degrees.sum(axes, keepdims=True), degrees.shape)
    variance = np.divide(deviation, degrees, out=np.zeros(deviation.shape), where=degrees > 0)
    borrowed = variance <= dust(np.abs(mean).max(axes, keepdims=True, initial=0.0))
    variance = np.where(borrowed, wider_variance(mean, n, spread), variance) if borrowed.any() else variance
    return GaussianEstimate(estimated, variance, borrowed)


def _side_by_side(rows: Encoded, labels: Labels, weights: Array) -> Iterator[tuple[Array, Labels, Array]]:
    """Chunks of the rows as a matrix; separate columns are interleaved a chunk at a time, which stays in the cache."""
    if not rows.columns:
        yield rows.numbers, labels, weights
        return
    width = len(rows.columns)
    table = np.empty((CHUNK, width))
    for a in range(0, len(labels), CHUNK):
        x, columns = table[: len(labels) - a], [column[a : a + CHUNK] for column in rows.columns]
        for j in range(0, width, 4) if width >= 4 else ():
            first = min(j, width - 4)
            counting.interleave(x, first, *columns[first : first + 4])
        for j in range(width if width < 4 else 0):
            x[:, j] = columns[j]
        yield x, labels[a : a + CHUNK], weights[a : a + CHUNK]


def _free(classes: int, columns: int, tie: str | None) -> list[int]:
    """Free parameters by column: a mean per class, and the variances, shared ones counted for the first column."""
    each = {None: classes, "class": 1, "column": 0, "both": 0}[tie]
    shared = {None: 0, "class": 0, "column": classes, "both": 1}[tie]
    return [classes + each + (shared if i == 0 else 0) for i in range(columns)]


def _gaussian_term(mean: Array, variance: Array) -> GaussianTerm:
    return GaussianTerm(mean, -0.5 / variance, -0.5 * np.log(2 * np.pi * variance))


@dataclass(frozen=True, eq=False)
class MomentTable(Readable):
    """Readable table with one row for each class, made on access: EM derives parameters that nobody reads."""

    column: str
    classes: Sequence[Any]
    counts: Array
    means: Array
    variances: Array

    def __len__(self) -> int:
        return len(self.classes)

    def line(self, number: int) -> dict[str, Any]:
        """Count, mean and standard deviation of one class."""
        return {
            "column": self.column,
            "class": self.classes[number],
            "count": float(self.counts[number]),
            "mean": float(self.means[number]),
            "deviation": float(np.sqrt(self.variances[number])),
        }


def _parameters(name: str, estimate: GaussianEstimate, n: Array, classes: Sequence[Any], free: int) -> Parameters:
    mean, variance, borrowed = estimate
    rows = MomentTable(name, classes, n, mean, variance)
    alone = [str(label) for label, one in zip(classes, (borrowed & (n > 0)).tolist(), strict=True) if one]
    notes = (f"column {name!r} does not vary in {', '.join(alone[:5])}: a variance is borrowed",) if alone else ()
    return Parameters((name,), _gaussian_term(mean, variance), rows, 2 * len(classes), free, notes)
