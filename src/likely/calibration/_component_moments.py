"""Sufficient statistics of Gaussian components in classes, their covariances, and densities with each row left out.

A row is left out of its component in closed form. With n, m and S the weight, mean and scatter of the component, u the row's
weight in it and d = x - m, the scatter without the row is S - u n / (n - u) d dᵀ: a rank-one downdate, so that its inverse and
determinant follow from the squared distance alone (Sherman and Morrison). The pooled covariance is downdated along with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.families.likelihoods import GaussianComponents
from likely.kernels.parallel import cached_property, in_parallel, slabs

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

DIAGONAL = 0.05  # shrinkage of the pooled correlations
LEAST_LEFT = 0.25  # rows of a component without the row that is left out, at least
LEAST_DETERMINANT = 1e-6  # of the downdate, relative to the covariance with the row


@dataclass(frozen=True)
class ClassRows:
    """The rows of a class, and their weights in its components: rows × components."""

    rows: Ints
    shares: Array


@dataclass(frozen=True)
class Regularisation:
    """How covariances are shrunk: pseudocounts of the pooled covariance for each column, and a ridge."""

    pooled: float
    ridge: float


@dataclass(frozen=True)
class ComponentMoments:
    """Weight, sum and second moments of every component, ordered by class.

    The features are standardised and bounded, so raw second moments keep their digits.
    """

    owner: Ints
    n: Array
    sums: Array
    squares: Array
    regularisation: Regularisation

    @staticmethod
    def of(x: Array, members: Sequence[ClassRows], regularisation: Regularisation, pseudo: float = 0.0) -> ComponentMoments:
        """Statistics of all components; each has `pseudo` rows more at the overall mean, which is 0."""

        def moments(each: ClassRows) -> tuple[Array, Array, Array]:
            own = x[each.rows]
            squares = np.array([(own * share[:, None]).T @ own for share in each.shares.T])
            return each.shares.sum(0) + pseudo, each.shares.T @ own, squares

        n, sums, squares = (np.concatenate(part) for part in zip(*in_parallel(moments, members), strict=True))
        owner = np.repeat(np.arange(len(members)), [each.shares.shape[1] for each in members])
        return ComponentMoments(owner, n, sums, squares, regularisation)

    @cached_property
    def mean(self) -> Array:
        """Mean of every component."""
        return self.sums / np.maximum(self.n, 1e-300)[:, None]

    @property
    def _pseudocount(self) -> float:
        return self.regularisation.pooled * float(self.sums.shape[1])

    @cached_property
    def covariances(self) -> Array:
        """Covariance of every component, shrunk towards the pooled one, with the ridge."""
        scatter = self.squares - self.n[:, None, None] * self.mean[:, :, None] * self.mean[:, None, :]
        total = float(self.n.sum())
        pooled = scatter.sum(0) / max(total - len(self.n), 1.0)
        one = np.eye(self.sums.shape[1])
        pooled = (1.0 - DIAGONAL) * pooled + DIAGONAL * np.diag(np.diag(pooled)) + 1e-4 * one
        own = (scatter + self._pseudocount * pooled) / (self.n + self._pseudocount)[:, None, None]
        return np.asarray(own + self.regularisation.ridge * one)

    @cached_property
    def components(self) -> GaussianComponents:
        """The components as a likelihood scores them."""
        by_class = np.bincount(self.owner, self.n)
        log_share = np.log(np.maximum(self.n, 1e-300) / np.maximum(by_class, 1e-300)[self.owner])
        root = np.linalg.inv(np.linalg.cholesky(self.covariances))
        return GaussianComponents(self.mean, root, log_share, self.owner)

    def of_class(self, c: int) -> Ints:
        """The components of a class."""
        return np.flatnonzero(self.owner == c)

    def left_out(self, x: Array, members: Sequence[ClassRows], most: int) -> Array:
        """Log densities of the first `most` rows by class, each row left out of the components of its own class."""
        held = self.components
        squares, found = np.empty((most, len(self.owner))), np.empty((most, len(members)))

        def measure(part: tuple[int, int]) -> None:
            some = slice(*part)
            squares[some] = held.squares(x[some])
            found[some] = held.by_class(held.constant - 0.5 * squares[some])

        in_parallel(measure, slabs(most, 8 * len(self.owner)))
        for c, each in enumerate(members):
            near = each.rows < most
            rows, own = each.rows[near], self.of_class(c)
            found[rows, c] = self._without_row(own, squares[np.ix_(rows, own)], each.shares[near])
        return found

    def _without_row(self, own: Ints, square: Array, u: Array) -> Array:
        """Log density of rows in components that are left out of; `u` are their weights in them."""
        n, a, width = self.n[own], self._pseudocount, self.sums.shape[1]
        left = np.maximum(n - u, LEAST_LEFT)
        pooled = 1.0 + a / np.maximum(float(self.n.sum()) - u, 1.0)
        wider = (n + a) / (left + a)
        taken = u * (n / left) * pooled / (n + a)
        rest = np.maximum(1.0 - taken * square, LEAST_DETERMINANT)
        away = (n / left) ** 2 * square / (wider * rest)
        share = np.log(left / np.maximum(n.sum() - u.sum(1, keepdims=True), LEAST_LEFT))
        constant = self.components.constant[own] - self.components.log_share[own]
        density = constant + share - 0.5 * (width * np.log(wider) + np.log(rest) + away)
        return np.asarray(np.logaddexp.reduce(density, axis=1))
