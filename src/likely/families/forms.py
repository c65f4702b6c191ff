"""The few shapes a likelihood can take. Kernels and exporters know these, never the families behind them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import kernels, sharing

Array = NDArray[np.float64]
Codes = NDArray[Any]
LARGEST_COUNT = 1e300  # beyond, the logarithm of a factorial overflows


@dataclass(frozen=True)
class Lookup:
    """A table: one row of class terms per code. Past the values stand one row for unseen and one for missing."""

    table: Array  # codes × classes

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        missing = len(self.table) - 1
        none, all_lines = np.zeros(1, np.int64), np.arange(len(self.table))
        table = np.concatenate([self.table, np.zeros((1, out.shape[1]))])
        kernels.score_lookup(codes, none, none + len(self.table), none, all_lines, none + missing, table, out)


@dataclass(frozen=True)
class Parabola:
    """A quadratic in one number: peak + curve * (x - mean)**2, per class."""

    mean: Array
    curve: Array
    peak: Array

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        kernels.score_parabola(numbers, self.mean[None], self.curve[None], self.peak[None], out)


@dataclass(frozen=True)
class Line:
    """A straight line in each number of the block, plus what depends on the number alone (`base`)."""

    slope: Array  # columns × classes
    level: Array  # columns × classes
    base: str  # "none", "poisson", "binomial" (of the second column) or "binomial 20" (of so many)

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        x, base = self.prepare(numbers)
        kernels.score_line(x, base, self.slope, self.level, np.array([0, x.shape[1]]), out)

    def prepare(self, numbers: Array) -> tuple[Array, Array]:
        """The numbers the line is drawn over, and the part of each term that no class can change."""
        if self.base.startswith("binomial"):
            hits = numbers[:, 0]
            trials = numbers[:, 1] if self.base == "binomial" else np.full(len(hits), float(self.base.split()[1]))
            x = np.column_stack([hits, trials - hits])
            x[np.isnan(x).any(1)] = np.nan
            base = np.zeros_like(x)
            base[:, 0] = log_factorial(trials) - log_factorial(hits) - log_factorial(trials - hits)
        else:
            x = np.ascontiguousarray(numbers)
            base = -log_factorial(x) if self.base == "poisson" else np.zeros_like(x)
        never = (x < 0) | (x > LARGEST_COUNT)  # no count at all: every class rules it out
        return np.where(never, 0.0, x), np.where(never, -np.inf, base)


@dataclass(frozen=True)
class Quadratic:
    """A joint Gaussian in several numbers, one for each class and cell of the block's categories.

    The cells are laid out like a Lookup's codes: values, then unseen. A missing category is summed out over the cells,
    a missing number is left out of the Gaussian: both are exact marginals.
    """

    mean: Array  # classes × cells × numbers
    covariance: Array  # classes × cells × numbers × numbers
    weight: Array  # classes × cells: log probability of the cell
    lines: tuple[int, ...]  # codes per categorical column, without the missing one

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        if not self.lines:
            gaps = np.isnan(numbers).any(1)
            if not gaps.any():
                sharing.score_quadratic(np.ascontiguousarray(numbers), *self._roots, out)
                return
            whole = np.flatnonzero(~gaps)
            terms = np.zeros((len(whole), out.shape[1]))
            sharing.score_quadratic(np.ascontiguousarray(numbers[whole]), *self._roots, terms)
            out[whole] += terms
            rest = np.flatnonzero(gaps)
            out[rest] += self._by_pattern(codes[rest], numbers[rest], out.shape[1])
            return
        out += self._by_pattern(codes, numbers, out.shape[1])

    @cached_property
    def _roots(self) -> tuple[Array, Array, Array]:
        """Means, inverse roots of the covariances and peaks, the classes side by side."""
        width = self.mean.shape[-1]
        root = np.linalg.cholesky(self.covariance[:, 0])
        inverse = np.linalg.solve(root, np.broadcast_to(np.eye(width), root.shape))
        peak = -0.5 * width * np.log(2 * np.pi) - np.log(np.einsum("kii->ki", root)).sum(1)
        return np.ascontiguousarray(self.mean[:, 0].T), np.ascontiguousarray(inverse.transpose(1, 2, 0)), peak

    def _by_pattern(self, codes: Codes, numbers: Array, classes: int) -> Array:
        """Rows that miss the same cells together."""
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
        """The log density of rows that miss the same cells: summed over the categories that are hidden."""
        classes = self.mean.shape[0]
        cells = np.arange(self.weight.shape[1]).reshape(self.lines or (1,))
        terms = np.full((len(numbers), classes), -np.inf)
        wanted = np.zeros(len(numbers), np.int64)
        for axis, size in enumerate(self.lines):
            wanted = wanted * size + (0 if hidden[axis] else codes[:, axis])
        # An unseen value is not summed over, having no probability of its own, unless there is no other.
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
        """The log density of the numbers that are seen, under the Gaussian of one class and cell."""
        if not len(seen):
            return np.zeros(len(x))
        root = np.linalg.cholesky(self.covariance[c, cell][np.ix_(seen, seen)])
        constant = -0.5 * len(seen) * np.log(2 * np.pi) - np.log(np.diag(root)).sum()
        with np.errstate(all="ignore"):  # numbers of 1e300 have no density worth the name: minus infinity, never NaN
            z = np.linalg.solve(root, (x - self.mean[c, cell, seen]).T)
            density: Array = constant - 0.5 * (z * z).sum(0)
        return np.where(np.isnan(density), -np.inf, density)


Form = Lookup | Parabola | Line | Quadratic


def log_factorial(x: Array) -> Array:
    """log x! for every number, NaN and negative ones giving 0."""
    from math import lgamma

    # NumPy has no lgamma and SciPy is not a run-time dependency: counts repeat, so each distinct one is done once.
    distinct, place = np.unique(x, return_inverse=True)
    values = np.array([lgamma(v + 1.0) if 0.0 <= v <= LARGEST_COUNT else 0.0 for v in distinct.tolist()])
    return values[place].reshape(x.shape)
