"""Likelihood terms: the few functional forms that all families compile to, and that kernels and exporters implement."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import FEW_CLASSES
from likely.families.base_measures import NO_BASE, BaseMeasure
from likely.families.likelihood_form import Array, Codes, LikelihoodForm, ScoringLoop
from likely.kernels import counting
from likely.kernels.parallel import one_blas_thread

FEW_ROWS = 100
AT_ONCE = 1 << 16  # numbers that are made of some rows at a time
FAR_DEVIATIONS = 5.0
FARTHEST = 1e300  # beyond, squares are replaced by a function of their logarithm: the sum over 100,000 columns is finite


def beyond(log_square: Array) -> Array:
    """Bounded stand-in for a square that overflows, from its logarithm; increasing in the square."""
    return FARTHEST * (1.0 + log_square - math.log(FARTHEST))


@dataclass(frozen=True)
class LookupTable(LikelihoodForm):
    """Table of log-likelihoods, codes × classes: the values, then one row for unseen and one for missing."""

    loop = ScoringLoop.LOOKUP
    table: Array  # codes × classes

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        missing = len(self.table) - 1
        none, all_lines = np.zeros(1, np.int64), np.arange(len(self.table))
        table = np.concatenate([self.table, np.zeros((1, out.shape[1]))])
        counting.score_lookup(codes, none, none + len(self.table), none, all_lines, none + missing, table, out)

    def weighted(self, weight: float) -> Self:
        """The same table times a weight; a count of zero without a prior rules a class out, unless the weight is zero."""
        return replace(self, table=weight * self.table if weight else np.zeros_like(self.table))


@dataclass(frozen=True)
class BinnedTable(LookupTable):
    """Table over the bins of a number: bin b lies between edges b - 1 and b, the first and last are open."""

    reads = "bins"
    edges: Array
    low: float = np.nan  # the lowest and highest number seen
    high: float = np.nan

    def codes(self, numbers: Array) -> Codes:
        """Bin of every number; the last row of the table for a missing one."""
        place = np.searchsorted(self.edges, numbers, side="right").astype(np.int32)
        place[np.isnan(numbers)] = len(self.table) - 1
        return place

    @property
    def bin_edges(self) -> Array:
        """Edges of the bins."""
        return self.edges

    @property
    def extent(self) -> tuple[float, float]:
        """Lowest and highest number seen."""
        return self.low, self.high

    def far(self, value: Any) -> bool:
        """Whether a number lies outside the range of those seen."""
        return not self.low <= value <= self.high


@dataclass(frozen=True)
class YesNoTable(LookupTable):
    """Table over no and yes: a number above zero is yes."""

    reads = "yes"

    def codes(self, numbers: Array) -> Codes:
        """Row of the table for every number."""
        return yes_or_no(numbers)

    def code(self, number: float) -> int:
        """Row of the table for one number."""
        return 3 if math.isnan(number) else int(number > 0)

    def linear(self) -> tuple[Array, Array] | None:
        """Slopes (1 × classes) and intercept by class for a cell of 0 or 1; None where a probability is zero."""
        no, yes = self.table[:2]
        return ((yes - no)[None], no) if np.isfinite(self.table[:2]).all() else None


def yes_or_no(numbers: Array) -> Codes:
    """0 for no, 1 for yes, 3 for missing: the rows of a table of two values."""
    return np.where(np.isnan(numbers), 3, numbers > 0).astype(np.int32)


@dataclass(frozen=True)
class InteractionTable(LikelihoodForm):
    """Table over the cells of several columns; the index of a cell is a sum of one offset for each code."""

    loop = ScoringLoop.CELLS
    maps: tuple[NDArray[np.int64], ...]  # by column: the offset of each code, far below zero for an unknown code
    table: Array  # cells × classes

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        cell = np.zeros(len(codes), np.int64)
        for j, own in enumerate(self.maps):
            cell += own[codes[:, j]]
        known = np.flatnonzero(cell >= 0)
        out[known] += self.table[cell[known]]


@dataclass(frozen=True)
class GaussianTerm(LikelihoodForm):
    """Gaussian log density of one number by class: peak + curve * (x - mean)**2."""

    loop = ScoringLoop.PARABOLA
    mean: Array
    curve: Array
    peak: Array

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        term = np.zeros_like(out)
        counting.score_parabola(numbers, self.mean[None], self.curve[None], self.peak[None], term)
        lost = ~np.isfinite(term).all(1)
        if lost.any():
            term[lost] = self.of(numbers[lost, 0])
        out += term

    def linear(self) -> tuple[Array, Array] | None:
        """Slopes (1 × classes) and intercept by class where all share a variance, so that x² cancels; None elsewhere."""
        if (self.curve != self.curve[0]).any():
            return None
        return (-2.0 * self.curve * self.mean)[None], self.peak + self.curve * self.mean**2

    def of(self, x: Array) -> Array:
        """Log density of every number and class, also where the square overflows."""
        with np.errstate(all="ignore"):
            deviation = np.abs(x[:, None] - self.mean)
            square = -self.curve * (deviation * deviation)
            far = beyond(np.log(-self.curve) + 2 * np.log(deviation))
        square = np.where(square > FARTHEST, far, square)
        return np.where(np.isnan(x)[:, None], 0.0, self.peak - square)

    def moments(self) -> tuple[Array, Array]:
        """Mean and variance of the number by class."""
        return self.mean[:, None], (-0.5 / self.curve)[:, None, None]

    def far(self, value: Any) -> bool:
        """Whether a number is many deviations away from the mean of every class."""
        with np.errstate(over="ignore"):
            deviations = np.abs(value - self.mean) * np.sqrt(-2 * self.curve)
        return bool((deviations > FAR_DEVIATIONS).all())

    @property
    def reach(self) -> float:
        """Largest number whose square cannot overflow."""
        widest = float(np.abs(self.mean).max(initial=0.0))
        return math.sqrt(FARTHEST / max(1.0, float(-self.curve.min(initial=0.0)))) - widest


@dataclass(frozen=True)
class LinearTerm(LikelihoodForm):
    """Log-likelihood linear in each number of the block, plus a part that is the same for all classes (`base`)."""

    loop = ScoringLoop.LINE
    slope: Array  # columns × classes
    level: Array  # columns × classes
    base: BaseMeasure = NO_BASE

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        x, base = self.prepare(numbers)
        counting.score_line(x, base, self.slope, self.level, np.array([0, x.shape[1]]), out)

    def linear(self) -> tuple[Array, Array] | None:
        """Slopes (columns × classes) and intercept by class; None of a binomial variable, or where a probability is zero."""
        known = self.base.of_the_columns and np.isfinite(self.slope).all()
        return (self.slope, self.level.sum(0)) if known else None

    def prepare(self, numbers: Array) -> tuple[Array, Array]:
        """Numbers that the term is linear in, and the part that is the same for all classes."""
        return self.base.prepare(numbers)


@dataclass(frozen=True)
class GaussianComponents:
    """Joint Gaussians of several numbers, one for each class or several: a mixture."""

    mean: Array  # components × columns
    root: Array  # components × columns × columns: inverse Cholesky factors of the covariances
    log_share: Array  # of each component in its class
    owner: NDArray[np.int64]  # the class of each component, ascending

    @property
    def constant(self) -> Array:
        """Log of the highest density of each component, times its share, up to a constant of all."""
        found: Array = np.log(np.einsum("kii->ki", self.root)).sum(1) + self.log_share
        return found

    def squares(self, x: Array) -> Array:
        """Squared Mahalanobis distances, rows × components."""
        many, width = self.mean.shape
        turned, moved = self.root.reshape(many * width, width).T, np.einsum("kij,kj->ki", self.root, self.mean).reshape(-1)
        out = np.empty((len(x), many))
        step = max(1, AT_ONCE // (many * width))  # what is made of a few rows stays in the cache
        for a in range(0, len(x), step):
            z = (x[a : a + step] @ turned - moved).reshape(-1, many, width)
            out[a : a + step] = np.einsum("rkp,rkp->rk", z, z)
        return out

    def log_densities(self, x: Array) -> Array:
        """Log densities, rows × classes, up to a constant; every class has a component."""
        return self.by_class(self.constant - 0.5 * self.squares(x))

    def by_class(self, log_density: Array) -> Array:
        """Log of the sum of the densities of each class."""
        first = np.flatnonzero(np.diff(self.owner, prepend=-1))
        if len(first) == len(self.owner):
            return log_density
        top = np.maximum.reduceat(log_density, first, axis=1)
        inside: Array = np.exp(log_density - top[:, self.owner])
        return np.asarray(top + np.log(np.add.reduceat(inside, first, axis=1)))


@dataclass(frozen=True)
class BinnedGaussian(LikelihoodForm):
    """Joint Gaussian log density of binned numbers by class, relative to the best class."""

    all_numbers = True
    edges: tuple[Array, ...]  # of the bins of each column
    numbers: tuple[Array, ...]  # by column: the number that represents each bin, and last a missing cell
    components: GaussianComponents
    lowest: float  # bound of the relative log density
    weight: float

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this term for every row and class."""
        x = np.empty(numbers.shape)
        for j, (edges, centres) in enumerate(zip(self.edges, self.numbers, strict=True)):
            place = np.searchsorted(edges, numbers[:, j], side="right")
            place[np.isnan(numbers[:, j])] = len(centres) - 1
            x[:, j] = centres[place]
        # Threads of this package share the work; for a few rows, setting the number of BLAS threads takes longer than the sums.
        with one_blas_thread() if len(x) > FEW_ROWS else contextlib.nullcontext():
            out += self.weight * relative(self.components.log_densities(x), self.lowest)


def relative(log_density: Array, lowest: float) -> Array:
    """Log densities relative to that of the best class, bounded below."""
    few = log_density.shape[1] < FEW_CLASSES  # NumPy reduces many rows of them sooner, once transposed
    best = np.ascontiguousarray(log_density.T).max(0)[:, None] if few else log_density.max(1, keepdims=True)
    bounded: Array = np.maximum(log_density - best, lowest)
    return bounded


