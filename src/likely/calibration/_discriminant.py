"""Linear discriminant over all columns: evidence of correlated effects that no single column shows.

Numbers enter standardised, or as normal scores of their ranks where they are skewed, categories as indicators; the classes are
Gaussians with one covariance, shrunk towards its diagonal (Schäfer and Strimmer 2005). The discriminant is linear in these
features and therefore a sum over the columns: it is stored, scored and explained as an addition to each column's table. The
rows of a fold are scored by the statistics of all other folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from likely.calibration._terms import CalibrationData, Term
from likely.kernels.parallel import side_by_side

Array = NDArray[np.float64]
Single = NDArray[np.float32]

FOLDS = 5
FEATURES = 200  # maximum number: of more, those of the columns with the largest gains alone
OPERATIONS = 4e8  # rows times squared features: fewer rows are used where features are many
FEWEST_ROWS = 2_000
VALUES = 12  # of a category: the most frequent ones
RARE = 5.0  # rows: a rarer value has no indicator
SKEWED = 1.0  # skewness from which on numbers are replaced by normal scores
OUTLYING = 4.0  # standard deviations at which numbers are clipped


@dataclass(frozen=True)
class LinearDiscriminant:
    """Linear discriminant: an addition to the table of each column, and a constant for each class."""

    columns: dict[str, Array]  # values or bins × classes
    constant: Array
    evidence: Single  # for every row of the sample, its fold left out


@dataclass(frozen=True)
class Features:
    """Standardised features of one column: one row for each value or bin, and zeros for a missing cell."""

    name: str
    codes: NDArray[np.int32]
    table: Array


@dataclass(frozen=True)
class _PooledMoments:
    """Sufficient statistics of linear discriminant analysis: weight and sum by class, pooled second moments.

    The features are standardised and bounded, so raw second moments keep their digits.
    """

    n: Array  # classes
    sums: Array  # classes × features
    squares: Array  # features × features

    def __sub__(self, other: _PooledMoments) -> _PooledMoments:
        return _PooledMoments(self.n - other.n, self.sums - other.sums, self.squares - other.squares)

    def discriminant(self) -> tuple[Array, Array]:
        """Coefficients, features × classes, and the constant of each class."""
        total = max(float(self.n.sum()), 1e-300)
        mean = self.sums / np.maximum(self.n, 1e-300)[:, None]
        overall = self.sums.sum(0) / total
        within = (self.squares - (mean.T * self.n) @ mean) / max(total - len(self.n), 1.0)
        deviation = np.sqrt(np.maximum(np.diag(within), 1e-6))
        correlation = _shrunk(within / np.outer(deviation, deviation), total)
        # The mean of a class with few rows is shrunk towards the overall mean.
        mean = overall + (mean - overall) * (self.n / (self.n + 1.0))[:, None]
        solved = np.linalg.solve(correlation, ((mean - overall) / deviation).T)
        coefficients: Array = solved / deviation[:, None]
        return coefficients, -0.5 * ((mean + overall) * coefficients.T).sum(1)


def _shrunk(correlation: Array, rows: float) -> Array:
    """Correlation matrix shrunk towards the identity by the estimated variance of its entries (Ledoit-Wolf type)."""
    off_diagonal = ~np.eye(len(correlation), dtype=bool)
    r = np.clip(correlation[off_diagonal], -1.0, 1.0)
    share = float(np.clip(((1.0 - r * r) ** 2 / rows).sum() / max(float((r * r).sum()), 1e-300), 1e-3, 1.0))
    out: Array = np.where(off_diagonal, (1.0 - share) * correlation, 1.0)
    return out


def fit_discriminant(data: CalibrationData, terms: Sequence[Term], gains_alone: Array) -> LinearDiscriminant | None:
    """Linear discriminant of a sample; None with fewer than two features.

    `gains_alone` is the gain of each term alone: terms × 1, or terms × (folds + 1), without each fold and last with all rows.
    """
    candidates = _Candidates(terms, gains_alone, data.sample.weights)
    features, complete = candidates.best(-1)
    if len(features) < 2 or len(data.sample) < 2 * FOLDS:
        return None
    width = sum(each.table.shape[1] for each in features)
    rows = int(min(len(data.sample), max(FEWEST_ROWS, OPERATIONS // width**2)))
    x, labels, weights = feature_matrix(features, rows), data.sample.labels, data.sample.weights
    classes = len(data.tally.schema.classes)
    folds = [slice(f, rows, FOLDS) for f in range(FOLDS)]
    parts = side_by_side(lambda own: _count(x[own], labels[own], weights[own], classes), folds, rows)
    whole = _PooledMoments(*(sum(getattr(part, name) for part in parts) for name in ("n", "sums", "squares")))
    coefficients, constant = whole.discriminant()
    ends = np.cumsum([each.table.shape[1] for each in features])[:-1]
    tables = [each.table @ part for each, part in zip(features, np.split(coefficients, ends), strict=True)]
    evidence = np.empty((len(data.sample), classes), np.float32)
    evidence[rows:] = constant + sum(t.take(each.codes[rows:], 0) for each, t in zip(features, tables, strict=True))
    if complete or gains_alone.shape[1] == 1:

        def score(f: int) -> None:
            own, base = (whole - parts[f]).discriminant()
            evidence[folds[f]] = x[folds[f]] @ own + base

        side_by_side(score, range(FOLDS), rows)
    else:
        _choose_by_fold(candidates, data, rows, evidence)
    found = {each.name: table[:-1] for each, table in zip(features, tables, strict=True)}
    return LinearDiscriminant(found, constant, evidence)


class _Candidates:
    """Features of all terms, made when they are first needed: with thousands of columns few are."""

    def __init__(self, terms: Sequence[Term], gains: Array, weights: Array) -> None:
        self._terms, self._gains, self._weights = terms, gains, weights
        self._made: dict[int, Features | None] = {}

    def best(self, fold: int) -> tuple[list[Features], bool]:
        """Features of the columns with the largest gains alone, without a fold (-1: with all rows); whether these are all."""
        features: list[Features] = []
        width, complete = 0, True
        for i in sorted(range(len(self._terms)), key=lambda i: (-self._gains[i, fold], self._terms[i].name)):
            if width == FEATURES:
                return features, False
            if i not in self._made:
                self._made[i] = make_features(self._terms[i], self._weights)
            each = self._made[i]
            if each is not None and width + each.table.shape[1] <= FEATURES:
                features.append(each)
                width += each.table.shape[1]
            elif each is not None:
                complete = False
        return features, complete


def _choose_by_fold(candidates: _Candidates, data: CalibrationData, rows: int, evidence: Single) -> None:
    """Fill in the evidence of each fold by a discriminant whose columns are also chosen without the fold.

    Chosen by all labels, the best of many columns of noise would predict the left-out labels.
    """
    labels, weights, classes = data.sample.labels, data.sample.weights, evidence.shape[1]
    fold = data.fold[:rows]
    for f in range(data.folds):
        x = feature_matrix(candidates.best(f)[0], rows)
        rest, own = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        coefficients, constant = _count(x[rest], labels[rest], weights[rest], classes).discriminant()
        evidence[own] = x[own] @ coefficients + constant


def feature_matrix(features: Sequence[Features], rows: int) -> Array:
    """Feature matrix of the first rows of the sample."""
    ends = np.cumsum([0, *(each.table.shape[1] for each in features)])
    out = np.empty((rows, int(ends[-1])))
    for each, a, b in zip(features, ends[:-1], ends[1:], strict=True):  # one by one: it is the largest array of all
        out[:, a:b] = each.table.take(each.codes[:rows], 0)
    return out


def _count(x: Array, labels: NDArray[np.int64], weights: Array, classes: int) -> _PooledMoments:
    n = np.bincount(labels, weights, classes).astype(np.float64)
    rows = np.bincount(labels, minlength=classes)
    order = np.argsort(labels, kind="stable")  # by class, so that each sum is over one contiguous slice
    x = x[order]
    weighted = x * weights[order, None]
    sums = np.zeros((classes, x.shape[1]))
    sums[rows > 0] = np.add.reduceat(weighted, (np.cumsum(rows) - rows)[rows > 0], axis=0)
    return _PooledMoments(n, sums, weighted.T @ x)


def make_features(term: Term, weights: Array) -> Features | None:
    """Features of one term: the bins of a number as one feature, the frequent values of a category as indicators."""
    column = term.column
    if column is None:
        return None
    values = len(column.of_pairs) - 1
    mass = np.bincount(column.codes, weights, values + 1)[:values].astype(np.float64)
    total = float(mass.sum())
    if values < 2 or total <= 0:
        return None
    share = mass / total
    if column.numeric:
        table = _numbers(term, share, total)[:, None]
    else:
        frequent = np.argsort(-mass, kind="stable")[: min(VALUES, values - 1 if values <= VALUES else VALUES)]
        table = (np.arange(values)[:, None] == frequent[mass[frequent] >= RARE]).astype(np.float64)
    table -= share @ table
    deviation = np.sqrt(share @ (table * table))
    table = table[:, deviation > 1e-6] / deviation[deviation > 1e-6]
    if not table.shape[1]:
        return None
    return Features(term.name, column.codes, np.concatenate([table, np.zeros((1, table.shape[1]))]))


def _numbers(term: Term, share: Array, total: float) -> Array:
    """Standardised numbers that represent the bins; normal scores of their ranks where the numbers are skewed."""
    if term.centres is not None:
        x = term.centres / max(float(np.abs(term.centres).max()), 1e-300)
        x = x - share @ x
        deviation = float(np.sqrt(share @ (x * x)))
        if deviation > 1e-12 and abs(float(share @ (x / deviation) ** 3)) < SKEWED:
            return np.clip(x / deviation, -OUTLYING, OUTLYING)
    normal, edge = NormalDist(), min(0.5 / total, 0.5)
    rank = np.clip(np.cumsum(share) - share / 2, edge, 1 - edge)
    return np.array([normal.inv_cdf(float(p)) for p in rank])
