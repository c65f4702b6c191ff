"""Likelihood terms: the few functional forms that all families compile to, and that kernels and exporters implement."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.kernels import counting, em_loops
from likely.kernels.parallel import cached_property, one_blas_thread

Array = NDArray[np.float64]
Codes = NDArray[Any]
LARGE = 1e120  # a number whose square cannot overflow, whatever the scale of the others
SMALL_COUNT = 4096  # below, the logarithms of factorials are kept in a table
LARGEST_COUNT = 1e300  # beyond, the logarithm of a factorial overflows
FEW_ROWS = 100
AT_ONCE = 1 << 16  # numbers that are made of some rows at a time
FARTHEST = 1e300  # beyond, squares are replaced by a function of their logarithm: the sum over 100,000 columns is finite


def beyond(log_square: Array) -> Array:
    """Bounded stand-in for a square that overflows, from its logarithm; increasing in the square."""
    return FARTHEST * (1.0 + log_square - math.log(FARTHEST))


@dataclass(frozen=True)
class LookupTable:
    """Table of log-likelihoods, codes × classes: the values, then one row for unseen and one for missing."""

    table: Array  # codes × classes

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        missing = len(self.table) - 1
        none, all_lines = np.zeros(1, np.int64), np.arange(len(self.table))
        table = np.concatenate([self.table, np.zeros((1, out.shape[1]))])
        counting.score_lookup(codes, none, none + len(self.table), none, all_lines, none + missing, table, out)


@dataclass(frozen=True)
class BinnedTable(LookupTable):
    """Table over the bins of a number: bin b lies between edges b - 1 and b, the first and last are open."""

    edges: Array
    low: float = np.nan  # the lowest and highest number seen
    high: float = np.nan

    def codes(self, numbers: Array) -> Codes:
        """Bin of every number; the last row of the table for a missing one."""
        place = np.searchsorted(self.edges, numbers, side="right").astype(np.int32)
        place[np.isnan(numbers)] = len(self.table) - 1
        return place


@dataclass(frozen=True)
class YesNoTable(LookupTable):
    """Table over no and yes: a number above zero is yes."""

    def codes(self, numbers: Array) -> Codes:
        """Row of the table for every number."""
        return yes_or_no(numbers)

    def linear(self) -> tuple[Array, Array] | None:
        """Slopes (1 × classes) and intercept by class for a cell of 0 or 1; None where a probability is zero."""
        no, yes = self.table[:2]
        return ((yes - no)[None], no) if np.isfinite(self.table[:2]).all() else None


def yes_or_no(numbers: Array) -> Codes:
    """0 for no, 1 for yes, 3 for missing: the rows of a table of two values."""
    return np.where(np.isnan(numbers), 3, numbers > 0).astype(np.int32)


@dataclass(frozen=True)
class InteractionTable:
    """Table over the cells of several columns; the index of a cell is a sum of one offset for each code."""

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
class ScaledTerm:
    """Likelihood term times a weight."""

    likelihood: Any
    weight: float

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        term = np.zeros_like(out)
        self.likelihood.add(codes, numbers, term)
        out += self.weight * term


@dataclass(frozen=True)
class GaussianTerm:
    """Gaussian log density of one number by class: peak + curve * (x - mean)**2."""

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

    @property
    def reach(self) -> float:
        """Largest number whose square cannot overflow."""
        widest = float(np.abs(self.mean).max(initial=0.0))
        return math.sqrt(FARTHEST / max(1.0, float(-self.curve.min(initial=0.0)))) - widest


@dataclass(frozen=True)
class LinearTerm:
    """Log-likelihood linear in each number of the block, plus a part that is the same for all classes (`base`)."""

    slope: Array  # columns × classes
    level: Array  # columns × classes
    base: str  # "none", "poisson", "multinomial", "binomial" (trials in the second column) or "binomial 20" (trials of all)

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        x, base = self.prepare(numbers)
        counting.score_line(x, base, self.slope, self.level, np.array([0, x.shape[1]]), out)

    def linear(self) -> tuple[Array, Array] | None:
        """Slopes (columns × classes) and intercept by class; None of a binomial variable, or where a probability is zero."""
        known = not self.base.startswith("binomial") and np.isfinite(self.slope).all()
        return (self.slope, self.level.sum(0)) if known else None

    def prepare(self, numbers: Array) -> tuple[Array, Array]:
        """Numbers that the term is linear in, and the part that is the same for all classes."""
        if self.base.startswith("binomial"):
            hits = numbers[:, 0]
            trials = numbers[:, 1] if self.base == "binomial" else np.full(len(hits), float(self.base.split()[1]))
            x = np.column_stack([hits, trials - hits])
            x[np.isnan(x).any(1)] = np.nan
            base = np.zeros_like(x)
            base[:, 0] = log_coefficients(x)
        else:
            x = np.ascontiguousarray(numbers)
            base = -log_factorial(x) if self.base == "poisson" else np.zeros_like(x)
            if self.base == "multinomial":
                base[:, :1] = log_coefficients(x)[:, None]
        never = (x < 0) | (x > LARGEST_COUNT)  # not a count: probability zero in every class
        return np.where(never, 0.0, x), np.where(never, -np.inf, base)


@dataclass(frozen=True)
class JointGaussianTerm:
    """Joint Gaussian log density of several numbers, one for each class and cell of the block's categories.

    The cells are laid out like a LookupTable's codes: values, then unseen. A missing category is summed out over the cells,
    a missing number is left out of the Gaussian: both are exact marginals.
    """

    mean: Array  # classes × cells × numbers
    covariance: Array  # classes × cells × numbers × numbers
    weight: Array  # classes × cells: log probability of the cell
    lines: tuple[int, ...]  # codes per categorical column, without the missing one

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        if not self.lines:
            gaps = ~(np.abs(numbers) < LARGE).all(1)  # missing, or so large that the square could overflow
            if not gaps.any():
                em_loops.score_quadratic(np.ascontiguousarray(numbers), *self._roots, out)
                return
            whole = np.flatnonzero(~gaps)
            terms = np.zeros((len(whole), out.shape[1]))
            em_loops.score_quadratic(np.ascontiguousarray(numbers[whole]), *self._roots, terms)
            out[whole] += terms
            rest = np.flatnonzero(gaps)
            out[rest] += self._by_pattern(codes[rest], numbers[rest], out.shape[1])
            return
        out += self._by_pattern(codes, numbers, out.shape[1])

    @cached_property
    def _roots(self) -> tuple[Array, Array, Array]:
        """Means, inverse Cholesky factors of the covariances and peaks, with the classes as the last axis."""
        width = self.mean.shape[-1]
        root = np.linalg.cholesky(self.covariance[:, 0])
        inverse = np.linalg.solve(root, np.broadcast_to(np.eye(width), root.shape))
        peak = -0.5 * width * np.log(2 * np.pi) - np.log(np.einsum("kii->ki", root)).sum(1)
        return np.ascontiguousarray(self.mean[:, 0].T), np.ascontiguousarray(inverse.transpose(1, 2, 0)), peak

    def linear(self) -> tuple[Array, Array] | None:
        """Slopes Σ⁻¹μ (numbers × classes) and intercept by class where all classes share a covariance; None elsewhere."""
        if self.lines or (self.covariance != self.covariance[0]).any():
            return None
        mean, (_, _, peak) = self.mean[:, 0].T, self._roots
        slope: Array = np.linalg.solve(self.covariance[0, 0], mean)
        return slope, peak - 0.5 * (mean * slope).sum(0)

    def _by_pattern(self, codes: Codes, numbers: Array, classes: int) -> Array:
        """Log densities, computed together for rows with the same missing cells."""
        out = np.zeros((len(numbers), classes))
        pattern = np.column_stack([np.isnan(numbers), self._missing(codes)])
        kinds, place = np.unique(pattern, axis=0, return_inverse=True)
        place = place.reshape(-1)
        for kind, flags in enumerate(kinds):
            rows = np.flatnonzero(place == kind)
            seen = np.flatnonzero(~flags[: numbers.shape[1]])
            hidden = flags[numbers.shape[1] :]
            out[rows] = self.densities(codes[rows], numbers[np.ix_(rows, seen)], seen, hidden)
        return out

    def _missing(self, codes: Codes) -> NDArray[np.bool_]:
        return np.column_stack(
            [codes[:, a] > size - 1 for a, size in enumerate(self.lines)] or [np.zeros((len(codes), 0), bool)]
        )

    def densities(self, codes: Codes, numbers: Array, seen: NDArray[np.intp], hidden: NDArray[np.bool_]) -> Array:
        """Log density of rows with the same missing cells: summed over the hidden categories."""
        classes = self.mean.shape[0]
        cells = np.arange(self.weight.shape[1]).reshape(self.lines or (1,))
        terms = np.full((len(numbers), classes), -np.inf)
        wanted = np.zeros(len(numbers), np.int64)
        for axis, size in enumerate(self.lines):
            wanted = wanted * size + (0 if hidden[axis] else codes[:, axis])
        # An unseen value has no probability of its own: it is summed over only if there is no other.
        last = np.array([size - 1 if size > 1 else 1 for size in self.lines])
        for cell in cells.reshape(-1).tolist():
            place = np.array(np.unravel_index(cell, self.lines)) if self.lines else np.zeros(0, int)
            if np.any(hidden & (place == last)):
                continue
            key = int(np.ravel_multi_index(tuple(np.where(hidden, 0, place)), self.lines)) if self.lines else 0
            rows = np.flatnonzero(wanted == key)
            if len(rows):
                for c in range(classes):
                    density = self.weight[c, cell] + self.density(numbers[rows], seen, c, cell)
                    terms[rows, c] = np.logaddexp(terms[rows, c], density)
        return terms

    def density(self, x: Array, seen: NDArray[np.intp], c: int, cell: int) -> Array:
        """Log density of the observed numbers under the Gaussian of one class and cell."""
        if not len(seen):
            return np.zeros(len(x))
        root = np.linalg.cholesky(self.covariance[c, cell][np.ix_(seen, seen)])
        constant = -0.5 * len(seen) * np.log(2 * np.pi) - np.log(np.diag(root)).sum()
        deviation = x - self.mean[c, cell, seen]
        with np.errstate(all="ignore"):
            z = np.linalg.solve(root, deviation.T)
            square = 0.5 * (z * z).sum(0)
            far = ~(square <= FARTHEST)
            if far.any():
                size = np.abs(deviation[far]).max(1)
                unit = np.linalg.solve(root, (deviation[far] / size[:, None]).T)
                square[far] = beyond(np.log(0.5 * (unit * unit).sum(0)) + 2 * np.log(size))
        density: Array = constant - square
        return density


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
class BinnedGaussian:
    """Joint Gaussian log density of binned numbers by class, relative to the best class."""

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
    bounded: Array = np.maximum(log_density - log_density.max(1, keepdims=True), lowest)
    return bounded


Likelihood = (
    LookupTable | BinnedTable | YesNoTable | InteractionTable | ScaledTerm | GaussianTerm | LinearTerm | JointGaussianTerm
    | BinnedGaussian
)  # fmt: skip


def log_coefficients(events: Array) -> Array:
    """log n! / ∏ kᵢ! of each row of counts, n being their sum; a missing one is left out."""
    known = np.nan_to_num(events)
    found: Array = log_factorial(known.sum(1)) - log_factorial(known).sum(1)
    return found


@cache
def _small_log_factorials() -> Array:
    from math import lgamma

    return np.array([lgamma(v + 1.0) for v in range(SMALL_COUNT)])


def log_factorial(x: Array) -> Array:
    """log x! for every number; 0 for NaN and negative ones."""
    from math import lgamma

    # NumPy has no lgamma and SciPy is not a run-time dependency: counts are small or repeat, so each is done once.
    if x.size and ((x >= 0) & (x < SMALL_COUNT)).all() and ((place := x.astype(np.int64)) == x).all():
        return _small_log_factorials()[place]
    distinct, place = np.unique(x, return_inverse=True)
    values = np.array([lgamma(v + 1.0) if 0.0 <= v <= LARGEST_COUNT else 0.0 for v in distinct.tolist()])
    return values[place].reshape(x.shape)
