"""Likelihood term of a joint block: Gaussian of its numbers in each cell of its categories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.families.likelihood_form import Array, Codes, LikelihoodForm
from likely.families.likelihoods import FARTHEST, beyond
from likely.kernels import em_loops
from likely.kernels.parallel import cached_property

LARGE = 1e120  # a number whose square cannot overflow, whatever the scale of the others


@dataclass(frozen=True)
class JointGaussianTerm(LikelihoodForm):
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

    def moments(self) -> tuple[Array, Array]:
        """Means and covariances of the numbers by class, over all cells of the categories, which the last one holds."""
        return self.mean[:, -1], self.covariance[:, -1]

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
