"""Quadratic discriminant: a joint Gaussian of all numeric columns for each class.

Each class has its own mean and covariance, shrunk towards the covariance within classes. Numbers enter like those of the linear
discriminant: standardised, bounded, as normal scores where they are skewed, a missing one as the mean. The rows of a fold are
scored by the statistics of all other folds.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from likely.calibration.calibration import LOWEST, JointGaussian
from likely.calibration.discriminant import FOLDS, Features, feature_matrix, make_features
from likely.calibration.terms import CalibrationData, Term
from likely.families.likelihoods import log_densities, relative
from likely.kernels.parallel import in_parallel
from likely.tally.row_sample import Reservoir

Array = NDArray[np.float64]
Single = NDArray[np.float32]

COLUMNS = 100  # maximum number of those that vary
MOST_COLUMNS = 10 * COLUMNS  # with more, it is not even looked which of them vary
OPERATIONS = 3e9  # rows times classes times squared columns: beyond, the term is not fitted
SHRINKS = (1.0, 4.0, 16.0)  # pseudocounts of the pooled covariance, per column
DIAGONAL = 0.05  # shrinkage of the pooled correlations


@dataclass(frozen=True)
class _ClassMoments:
    """Sufficient statistics of quadratic discriminant analysis: weight, sum and second moments by class."""

    n: Array
    sums: Array
    squares: Array

    @staticmethod
    def of(x: Array, labels: NDArray[np.int64], weights: Array, classes: int) -> _ClassMoments:
        rows = [np.flatnonzero(labels == c) for c in range(classes)]
        heavy = [x[r] * weights[r, None] for r in rows]
        squares = [h.T @ x[r] for h, r in zip(heavy, rows, strict=True)]
        return _ClassMoments(
            np.bincount(labels, weights, classes).astype(np.float64), np.array([h.sum(0) for h in heavy]), np.array(squares)
        )

    def __add__(self, other: _ClassMoments) -> _ClassMoments:
        return _ClassMoments(self.n + other.n, self.sums + other.sums, self.squares + other.squares)

    def __sub__(self, other: _ClassMoments) -> _ClassMoments:
        return _ClassMoments(self.n - other.n, self.sums - other.sums, self.squares - other.squares)

    def gaussians(self, shrink: float) -> tuple[Array, Array]:
        """Means and inverse Cholesky factors; the pooled covariance has a pseudocount of `shrink` rows for each column."""
        width, total = self.sums.shape[1], max(float(self.n.sum()), 1e-300)
        overall = self.sums.sum(0) / total
        mean = (self.sums + overall) / (self.n + 1.0)[:, None]  # shrunk by one pseudo-row of the overall mean
        own = self.sums / np.maximum(self.n, 1e-300)[:, None]
        spread = self.squares - self.n[:, None, None] * own[:, :, None] * own[:, None, :]
        common = spread.sum(0) / max(total - len(self.n), 1.0)
        flat = np.diag(np.diag(common))
        common = (1.0 - DIAGONAL) * common + DIAGONAL * flat + 1e-4 * np.eye(width)
        rows = shrink * width
        covariance = (spread + rows * common) / (self.n + rows)[:, None, None]
        root = np.linalg.inv(np.linalg.cholesky(covariance))
        return mean, root


def fit_joint_gaussian(data: CalibrationData, terms: Sequence[Term]) -> tuple[JointGaussian, Single] | None:
    """Joint Gaussian of a sample, and its evidence for every row, its fold left out; None with fewer than two numbers."""
    numeric = [term for term in terms if term.column is not None and term.column.numeric]
    if len(numeric) > MOST_COLUMNS:
        return None
    features = [each for term in numeric if (each := make_features(term, data.sample.weights)) is not None]
    classes, rows, width = len(data.tally.schema.classes), len(data.sample), len(features)
    if not 2 <= width <= COLUMNS or rows < 2 * FOLDS or rows * classes * width**2 > OPERATIONS:
        return None
    x, labels = feature_matrix(features, rows), data.sample.labels
    parts = [
        _ClassMoments.of(x[f::FOLDS], labels[f::FOLDS], data.sample.weights[f::FOLDS], classes) for f in range(FOLDS)
    ]
    tried = _left_out(x, data.sample, parts)
    shrink, (_, evidence) = max(zip(SHRINKS, tried, strict=True), key=lambda each: each[1][0])
    return _made(features, _sum(parts).gaussians(shrink)), evidence


def _sum(parts: Sequence[_ClassMoments]) -> _ClassMoments:
    """Statistics of all folds together."""
    return reduce(operator.add, parts)


def _made(features: Sequence[Features], fitted: tuple[Array, Array]) -> JointGaussian:
    names = tuple(each.name for each in features)
    return JointGaussian(names, tuple(each.table[:-1, 0].copy() for each in features), *fitted)


def _left_out(x: Array, sample: Reservoir, parts: Sequence[_ClassMoments]) -> list[tuple[float, Single]]:
    """For each pseudocount the log density of the rows in their own classes, and the evidence for every class.

    Each fold is left out of the statistics that its rows are scored by.
    """
    total, folds = _sum(parts), len(parts)
    density = np.empty((len(SHRINKS), len(x), len(total.n)))

    def work(at: tuple[int, int]) -> None:
        s, f = at
        density[s, f::folds] = log_densities(x[f::folds], *(total - parts[f]).gaussians(SHRINKS[s]))

    in_parallel(work, [(s, f) for s in range(len(SHRINKS)) for f in range(folds)])
    own = density[:, np.arange(len(x)), sample.labels] @ sample.weights
    return [(float(each), relative(found, LOWEST).astype(np.float32)) for each, found in zip(own, density, strict=True)]
