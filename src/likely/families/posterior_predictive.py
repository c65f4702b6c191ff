"""Posterior predictive distributions, and their average over models with and without dependence on the class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.base import Parameters, Readable
from likely.families.base_measures import POISSON, BaseMeasure
from likely.families.likelihood_form import LikelihoodForm
from likely.families.likelihoods import LookupTable

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StudentPredictive(LikelihoodForm):
    """Student's t: posterior predictive of a Gaussian with unknown mean and variance."""

    mean: Array
    scale: Array
    degrees: Array

    def add(self, codes: Any, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        x = numbers[:, :1]
        peak = log_gamma((self.degrees + 1) / 2) - log_gamma(self.degrees / 2)
        peak = peak - 0.5 * np.log(np.pi * self.degrees) - np.log(self.scale)
        deviation = (x - self.mean) / (self.scale * np.sqrt(self.degrees))
        with np.errstate(over="ignore"):  # numbers of 1e300 have a density of zero
            term = peak - (self.degrees + 1) / 2 * np.log1p(deviation * deviation)
        out += np.where(np.isnan(x), 0.0, term)


@dataclass(frozen=True)
class NegativeBinomialPredictive(LikelihoodForm):
    """Negative binomial: posterior predictive of a Poisson whose rate has a gamma(`shape`, `rows`) distribution."""

    shape: Array
    rows: Array

    def add(self, codes: Any, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        x, base = POISSON.prepare(numbers)
        known = np.nan_to_num(x[:, :1])
        term = log_gamma(known + self.shape) - log_gamma(self.shape) + self.shape * np.log(self.rows / (self.rows + 1))
        term = term - known * np.log1p(self.rows) + base[:, :1]
        out += np.where(np.isnan(x[:, :1]), 0.0, term)


@dataclass(frozen=True)
class Polya(LikelihoodForm):
    """Pólya (Dirichlet–multinomial) distribution: posterior predictive of a multinomial."""

    shape: Array  # columns × classes
    base: BaseMeasure

    def add(self, codes: Any, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        x, base = self.base.prepare(numbers)
        known = np.nan_to_num(x)
        whole, total = known.sum(1, keepdims=True), self.shape.sum(0)
        term = log_gamma(total) - log_gamma(whole + total)
        for j, shape in enumerate(self.shape):
            term = term + log_gamma(known[:, j : j + 1] + shape) - log_gamma(shape)
        out += term + base.sum(1, keepdims=True)


@dataclass(frozen=True)
class Averaged(LikelihoodForm):
    """Average of two predictions, with and without dependence on the class, by their posterior probabilities."""

    dependent: LikelihoodForm
    independent: LikelihoodForm
    log_on: float
    log_off: float

    def add(self, codes: Any, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        on, off = np.zeros_like(out), np.zeros_like(out)
        self.dependent.add(codes, numbers, on)
        self.independent.add(codes, numbers, off)
        out += mixed(on, off, self.log_on, self.log_off)


@dataclass(frozen=True)
class Arc:
    """Dependence of a block on the class: marginal likelihoods and predictions with and without it."""

    log_dependent: float
    log_independent: float
    dependent: LikelihoodForm
    independent: LikelihoodForm

    @property
    def log_on(self) -> float:
        """Log posterior probability of dependence; both models are equally probable a priori."""
        return -float(np.logaddexp(0.0, self.log_independent - self.log_dependent))

    @property
    def log_off(self) -> float:
        """Log posterior probability of independence."""
        return -float(np.logaddexp(0.0, self.log_dependent - self.log_independent))

    @property
    def probability(self) -> float:
        """Posterior probability that the block depends on the class."""
        return float(np.exp(self.log_on))

    def average(self, parameters: Parameters) -> Parameters:
        """Parameters with the averaged prediction; tables also show the averaged probabilities."""
        if not (isinstance(self.dependent, LookupTable) and isinstance(self.independent, LookupTable)):
            likelihood: Any = Averaged(self.dependent, self.independent, self.log_on, self.log_off)
            return replace(parameters, likelihood=likelihood)
        table = mixed(self.dependent.table, self.independent.table, self.log_on, self.log_off)
        rows = parameters.rows.with_log_probabilities(table) if isinstance(parameters.rows, Readable) else parameters.rows
        return replace(parameters, likelihood=replace(self.dependent, table=table), rows=rows)


def mixed(on: Array, off: Array, log_on: float, log_off: float) -> Array:
    """Log of the weighted mean of two predictions; exact where they are equal."""
    with np.errstate(invalid="ignore"):  # two logs of zero
        return np.where(on == off, on, np.logaddexp(log_on + on, log_off + off))


def log_gamma(x: Array) -> Array:
    """log Γ(x) for positive numbers; counts repeat, so each distinct one is computed once."""
    distinct, place = np.unique(np.asarray(x, dtype=np.float64), return_inverse=True)
    values = np.array([lgamma(v) for v in distinct.tolist()], dtype=np.float64)
    return values[place].reshape(np.shape(x))
