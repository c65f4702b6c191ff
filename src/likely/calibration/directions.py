"""Linear discriminant over all columns at once: evidence that no column has by itself.

Many small correlated effects add up along a direction that is parallel to no axis. Numbers enter as they are, or as normal
scores of their ranks where they are skewed, categories as indicators; the classes are Gaussians with one covariance, shrunk
towards its diagonal (Schäfer and Strimmer 2005). Its evidence is linear in these features and therefore a sum over the
columns: it is stored, scored and explained as an addition to each column's own table. The rows of a fold are scored by the
statistics of all other folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from likely.calibration.terms import Data, Term

Array = NDArray[np.float64]
Single = NDArray[np.float32]

FOLDS = 5
FEATURES = 200  # at most: of more, those of the columns that gain most by themselves
OPERATIONS = 4e8  # rows times squared features: fewer rows are looked at where features are many
FEWEST_ROWS = 2_000
VALUES = 12  # of a category: the most frequent ones
RARE = 5.0  # rows: a rarer value has no indicator
SKEWED = 1.0  # skewness from which on numbers are replaced by normal scores
OUTLYING = 4.0  # deviations


@dataclass(frozen=True)
class Direction:
    """A linear discriminant: for each column what is added to its table, for each class a constant."""

    columns: dict[str, Array]  # values or bins × classes
    constant: Array
    evidence: Single  # for every row of the sample, its fold left out


@dataclass(frozen=True)
class _Features:
    """The features of one column: one row for each value or bin, and zeros for a missing cell."""

    name: str
    codes: NDArray[np.int32]
    table: Array


@dataclass(frozen=True)
class _Moments:
    """Sufficient statistics of some rows: weight and sum of each class, and the second moments of all.

    The features are standardised and bounded, so raw second moments keep their digits.
    """

    n: Array  # classes
    sums: Array  # classes × features
    squares: Array  # features × features

    def __sub__(self, other: _Moments) -> _Moments:
        return _Moments(self.n - other.n, self.sums - other.sums, self.squares - other.squares)

    def discriminant(self) -> tuple[Array, Array]:
        """Coefficients, features × classes, and the constant of each class."""
        total = max(float(self.n.sum()), 1e-300)
        mean = self.sums / np.maximum(self.n, 1e-300)[:, None]
        overall = self.sums.sum(0) / total
        within = (self.squares - (mean.T * self.n) @ mean) / max(total - len(self.n), 1.0)
        deviation = np.sqrt(np.maximum(np.diag(within), 1e-6))
        correlation = _shrunk(within / np.outer(deviation, deviation), total)
        mean = (
            overall + (mean - overall) * (self.n / (self.n + 1.0))[:, None]
        )  # a class of few rows has an uncertain mean
        solved = np.linalg.solve(correlation, ((mean - overall) / deviation).T)
        coefficients: Array = solved / deviation[:, None]
        return coefficients, -0.5 * ((mean + overall) * coefficients.T).sum(1)


def _shrunk(correlation: Array, rows: float) -> Array:
    """The correlation matrix shrunk towards the identity by the estimated error of its entries."""
    apart = ~np.eye(len(correlation), dtype=bool)
    r = np.clip(correlation[apart], -1.0, 1.0)
    share = float(np.clip(((1.0 - r * r) ** 2 / rows).sum() / max(float((r * r).sum()), 1e-300), 1e-3, 1.0))
    out: Array = np.where(apart, (1.0 - share) * correlation, 1.0)
    return out


def make_direction(data: Data, terms: Sequence[Term], worth: Sequence[float]) -> Direction | None:
    """The linear discriminant of a sample; None where there are not two features."""
    made = [_features(term, data.sample.weights) for term in terms]
    order = sorted((i for i, each in enumerate(made) if each is not None), key=lambda i: (-worth[i], terms[i].name))
    features: list[_Features] = []
    for i in order:
        each = made[i]
        if each is not None and sum(f.table.shape[1] for f in features) + each.table.shape[1] <= FEATURES:
            features.append(each)
    width = sum(each.table.shape[1] for each in features)
    if len(features) < 2 or len(data.sample) < 2 * FOLDS:
        return None
    rows = int(min(len(data.sample), max(FEWEST_ROWS, OPERATIONS // width**2)))
    x = np.concatenate([each.table[each.codes] for each in features], axis=1)
    labels, weights = data.sample.labels, data.sample.weights
    classes = len(data.tally.schema.classes)
    parts = [_count(x[f:rows:FOLDS], labels[f:rows:FOLDS], weights[f:rows:FOLDS], classes) for f in range(FOLDS)]
    whole = _Moments(*(sum(getattr(part, name) for part in parts) for name in ("n", "sums", "squares")))
    coefficients, constant = whole.discriminant()
    evidence = np.empty((len(x), classes), np.float32)
    evidence[rows:] = x[rows:] @ coefficients + constant
    for f, part in enumerate(parts):
        own, base = (whole - part).discriminant()
        evidence[f:rows:FOLDS] = x[f:rows:FOLDS] @ own + base
    ends = np.cumsum([each.table.shape[1] for each in features])[:-1]
    found = {e.name: e.table[:-1] @ part for e, part in zip(features, np.split(coefficients, ends), strict=True)}
    return Direction(found, constant, evidence)


def _count(x: Array, labels: NDArray[np.int64], weights: Array, classes: int) -> _Moments:
    n = np.bincount(labels, weights, classes).astype(np.float64)
    rows = np.bincount(labels, minlength=classes)
    order = np.argsort(labels, kind="stable")  # a class after the other: each is one stretch to sum over
    x = x[order]
    heavy = x * weights[order, None]
    sums = np.zeros((classes, x.shape[1]))
    sums[rows > 0] = np.add.reduceat(heavy, (np.cumsum(rows) - rows)[rows > 0], axis=0)
    return _Moments(n, sums, heavy.T @ x)


def _features(term: Term, weights: Array) -> _Features | None:
    """The bins of a number as one feature, the frequent values of a category as indicators; standardised."""
    searched = term.searched
    if searched is None:
        return None
    values = len(searched.of_pairs) - 1
    mass = np.bincount(searched.codes, weights, values + 1)[:values].astype(np.float64)
    total = float(mass.sum())
    if values < 2 or total <= 0:
        return None
    share = mass / total
    if searched.numeric:
        table = _numbers(term, share, total)[:, None]
    else:
        frequent = np.argsort(-mass, kind="stable")[: min(VALUES, values - 1 if values <= VALUES else VALUES)]
        table = (np.arange(values)[:, None] == frequent[mass[frequent] >= RARE]).astype(np.float64)
    table -= share @ table
    deviation = np.sqrt(share @ (table * table))
    table = table[:, deviation > 1e-6] / deviation[deviation > 1e-6]
    if not table.shape[1]:
        return None
    return _Features(term.name, searched.codes, np.concatenate([table, np.zeros((1, table.shape[1]))]))


def _numbers(term: Term, share: Array, total: float) -> Array:
    """The numbers that the bins stand for; normal scores of their ranks where the numbers are skewed."""
    if term.centres is not None:
        x = term.centres / max(float(np.abs(term.centres).max()), 1e-300)
        x = x - share @ x
        deviation = float(np.sqrt(share @ (x * x)))
        if deviation > 1e-12 and abs(float(share @ (x / deviation) ** 3)) < SKEWED:
            return np.clip(x / deviation, -OUTLYING, OUTLYING)
    normal, edge = NormalDist(), min(0.5 / total, 0.5)
    rank = np.clip(np.cumsum(share) - share / 2, edge, 1 - edge)
    return np.array([normal.inv_cdf(float(p)) for p in rank])
