"""The few shapes a likelihood can take. Kernels and exporters know these, never the families behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import kernels, sharing
from likely.threads import cached_property

Array = NDArray[np.float64]
Codes = NDArray[Any]
LARGE = 1e120  # a number whose square is far from any bound, whatever the scale of the others
LARGEST_COUNT = 1e300  # beyond, the logarithm of a factorial overflows
FARTHEST = 1e300  # beyond, squares are told by their logarithm: the sum over 100,000 columns is then still finite


def beyond(log_square: Array) -> Array:
    """A square too large for a float, told by its logarithm: it is still larger than every smaller one."""
    return FARTHEST * (1.0 + log_square - math.log(FARTHEST))


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
class Steps(Lookup):
    """A table over the bins of a number: bin b lies between edges b - 1 and b; beyond the edges are the end bins."""

    edges: Array
    low: float = np.nan  # the lowest and highest number seen
    high: float = np.nan

    def codes(self, numbers: Array) -> Codes:
        """The bin of every number; missing ones have the last line of the table."""
        place = np.searchsorted(self.edges, numbers, side="right").astype(np.int32)
        place[np.isnan(numbers)] = len(self.table) - 1
        return place


@dataclass(frozen=True)
class Cells:
    """A table over the cells that several columns make together; each code of a column adds its share to a cell's place."""

    maps: tuple[NDArray[np.int64], ...]  # a column: one number a code, far below zero where the code was not known
    table: Array  # cells × classes

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        cell = np.zeros(len(codes), np.int64)
        for j, own in enumerate(self.maps):
            cell += own[codes[:, j]]
        known = np.flatnonzero(cell >= 0)
        out[known] += self.table[cell[known]]


@dataclass(frozen=True)
class Scaled:
    """A form that is believed only so far."""

    form: Any
    weight: float

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        term = np.zeros_like(out)
        self.form.add(codes, numbers, term)
        out += self.weight * term


@dataclass(frozen=True)
class Parabola:
    """A quadratic in one number: peak + curve * (x - mean)**2, per class."""

    mean: Array
    curve: Array
    peak: Array

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        term = np.zeros_like(out)
        kernels.score_parabola(numbers, self.mean[None], self.curve[None], self.peak[None], term)
        lost = ~np.isfinite(term).all(1)
        if lost.any():
            term[lost] = self.of(numbers[lost, 0])
        out += term

    def of(self, x: Array) -> Array:
        """The term of every number and class, however far away: the class that is least far wins, as it does nearby."""
        with np.errstate(all="ignore"):
            apart = np.abs(x[:, None] - self.mean)
            square = -self.curve * (apart * apart)
            far = beyond(np.log(-self.curve) + 2 * np.log(apart))
        square = np.where(square > FARTHEST, far, square)
        return np.where(np.isnan(x)[:, None], 0.0, self.peak - square)

    @property
    def reach(self) -> float:
        """How large a number may be before its square has to be told by its logarithm."""
        widest = float(np.abs(self.mean).max(initial=0.0))
        return math.sqrt(FARTHEST / max(1.0, float(-self.curve.min(initial=0.0)))) - widest


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
            gaps = ~(np.abs(numbers) < LARGE).all(1)  # missing, or so large that the square could overflow
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
        apart = x - self.mean[c, cell, seen]
        with np.errstate(all="ignore"):
            z = np.linalg.solve(root, apart.T)
            square = 0.5 * (z * z).sum(0)
            far = ~(square <= FARTHEST)
            if far.any():
                size = np.abs(apart[far]).max(1)
                unit = np.linalg.solve(root, (apart[far] / size[:, None]).T)
                square[far] = beyond(np.log(0.5 * (unit * unit).sum(0)) + 2 * np.log(size))
        density: Array = constant - square
        return density


Form = Lookup | Steps | Cells | Scaled | Parabola | Line | Quadratic


def log_factorial(x: Array) -> Array:
    """log x! for every number, NaN and negative ones giving 0."""
    from math import lgamma

    # NumPy has no lgamma and SciPy is not a run-time dependency: counts repeat, so each distinct one is done once.
    distinct, place = np.unique(x, return_inverse=True)
    values = np.array([lgamma(v + 1.0) if 0.0 <= v <= LARGEST_COUNT else 0.0 for v in distinct.tolist()])
    return values[place].reshape(x.shape)
