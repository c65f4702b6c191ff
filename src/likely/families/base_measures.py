"""Base measures of linear log-likelihoods: the part of a count's log probability that is the same for all classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SMALL_COUNT = 4096  # below, the logarithms of factorials are kept in a table
LARGEST_COUNT = 1e300  # beyond, the logarithm of a factorial overflows


@dataclass(frozen=True)
class BaseMeasure:
    """No such part: log h(x) = 0."""

    of_the_columns: ClassVar[bool] = True  # whether the term is linear in the block's columns as they are

    def prepare(self, numbers: Array) -> tuple[Array, Array]:
        """Numbers that the term is linear in, and log h of each; a number that cannot be a count rules out every class."""
        return _counts(np.ascontiguousarray(numbers), np.zeros(numbers.shape))


@dataclass(frozen=True)
class PoissonMeasure(BaseMeasure):
    """Base measure of event counts: log h(x) = -log x!."""

    def prepare(self, numbers: Array) -> tuple[Array, Array]:
        """The counts, and -log x! of each."""
        return _counts(np.ascontiguousarray(numbers), -log_factorial(numbers))


@dataclass(frozen=True)
class BinomialMeasure(BaseMeasure):
    """Base measure of successes among trials: log h(k) = log (n choose k). The term is linear in successes and failures.

    Parameters
    ----------
    trials : int or None, default=None
        The number of trials of every row; None: it is in the block's second column.
    """

    trials: int | None = None

    of_the_columns: ClassVar[bool] = False

    def prepare(self, numbers: Array) -> tuple[Array, Array]:
        """Successes and failures, both missing where one number is, and log (n choose k)."""
        hits = numbers[:, 0]
        trials = numbers[:, 1] if self.trials is None else np.full(len(hits), float(self.trials))
        x = np.column_stack([hits, trials - hits])
        x[np.isnan(x).any(1)] = np.nan
        base = np.zeros_like(x)
        base[:, 0] = log_coefficients(x)
        return _counts(x, base)


@dataclass(frozen=True)
class MultinomialMeasure(BaseMeasure):
    """Base measure of events of several kinds: log h(k) = log n! / ∏ kᵢ!, with n their sum."""

    def prepare(self, numbers: Array) -> tuple[Array, Array]:
        """The counts, and the log coefficient of the row, in the first column."""
        x = np.ascontiguousarray(numbers)
        base = np.zeros_like(x)
        base[:, :1] = log_coefficients(x)[:, None]
        return _counts(x, base)


NO_BASE, POISSON, MULTINOMIAL = BaseMeasure(), PoissonMeasure(), MultinomialMeasure()


def _counts(x: Array, base: Array) -> tuple[Array, Array]:
    never = (x < 0) | (x > LARGEST_COUNT)  # not a count: probability zero in every class
    return np.where(never, 0.0, x), np.where(never, -np.inf, base)


def log_coefficients(events: Array) -> Array:
    """log n! / ∏ kᵢ! of each row of counts, n being their sum; a missing one is left out."""
    known = np.nan_to_num(events)
    found: Array = log_factorial(known.sum(1)) - log_factorial(known).sum(1)
    return found


@cache
def _small_log_factorials() -> Array:
    return np.array([math.lgamma(v + 1.0) for v in range(SMALL_COUNT)])


def log_factorial(x: Array) -> Array:
    """log x! for every number; 0 for NaN and negative ones."""
    # NumPy has no lgamma and SciPy is not a run-time dependency: counts are small or repeat, so each is done once.
    if x.size and ((x >= 0) & (x < SMALL_COUNT)).all() and ((place := x.astype(np.int64)) == x).all():
        return _small_log_factorials()[place]
    distinct, place = np.unique(x, return_inverse=True)
    values = np.array([math.lgamma(v + 1.0) if 0.0 <= v <= LARGEST_COUNT else 0.0 for v in distinct.tolist()])
    return values[place].reshape(x.shape)
