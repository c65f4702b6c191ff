"""Metrics of predicted probabilities, kept as sums over rows: those of folds and batches add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes import Posterior
from likely.evaluation.decision_figures import Scores
from likely.kernels.parallel import cached_property

Array = NDArray[np.float64]
BINS = 15
MOST_SCORES = 20_000_000  # rows × classes that are kept for the area under the ROC curve


@dataclass(frozen=True, eq=False)
class Metrics:
    """Sums over rows from which the metrics are computed: weights, losses, confusion, bins of confidence."""

    classes: tuple[Any, ...]
    confusion: dict[tuple[Any, Any], float]  # (true, predicted): weight
    loss: float  # summed -log P(true class)
    squares: float  # summed Brier score
    bins: Array  # by bin of confidence: weight, summed confidence, weight predicted right, variance of that if calibrated
    rows: int
    unknown: float = 0.0  # weight of rows of classes unknown to the model
    base_loss: float = 0.0  # summed -log of the true class's frequency among the rows learned from
    base_right: float = 0.0  # weight of the rows whose class is the most frequent one there
    scores: tuple[Scores, ...] | None = ()  # None where there were too many, or of different classes

    @staticmethod
    def zero(classes: Sequence[Any]) -> Metrics:
        """The metrics of no rows."""
        return Metrics(tuple(classes), {}, 0.0, 0.0, np.zeros((BINS, 4)), 0)

    def __add__(self, other: Metrics) -> Metrics:
        """The metrics of both sets of rows together."""
        confusion = dict(self.confusion)
        for pair, weight in other.confusion.items():
            confusion[pair] = confusion.get(pair, 0.0) + weight
        classes = tuple(dict.fromkeys((*self.classes, *other.classes)))
        return Metrics(
            classes, confusion, self.loss + other.loss, self.squares + other.squares, self.bins + other.bins,
            self.rows + other.rows, self.unknown + other.unknown, self.base_loss + other.base_loss,
            self.base_right + other.base_right, _joined(self, other),
        )  # fmt: skip

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        return math.fsum(self.confusion.values()) + self.unknown

    @property
    def accuracy(self) -> float:
        """The share of rows whose most probable class is the true one."""
        right = math.fsum(w for (true, predicted), w in self.confusion.items() if true == predicted)
        return right / self.weight if self.weight else math.nan

    @property
    def log_loss(self) -> float:
        """The mean of -log P(true class), in nats, over rows of classes that the model has learned."""
        return self.loss / (self.weight - self.unknown) if self.weight > self.unknown else math.nan

    @property
    def brier(self) -> float:
        """The mean squared distance between the probabilities and the truth, summed over the classes."""
        return self.squares / (self.weight - self.unknown) if self.weight > self.unknown else math.nan

    @property
    def baseline(self) -> dict[str, float]:
        """Accuracy and log loss of the training rows' class frequencies, without any column."""
        known = self.weight - self.unknown
        right = self.base_right / self.weight if self.weight else math.nan
        return {"accuracy": right, "log_loss": self.base_loss / known if known else math.nan}

    @cached_property
    def class_auc(self) -> dict[Any, float]:
        """The area under the ROC curve of each class against all others; NaN where one of the two sides has no rows."""
        if not self.scores:
            return dict.fromkeys(self.classes, math.nan)
        every = Scores.together(self.scores)
        return {label: _auc(every.probabilities[:, c], every.true == c, every.weights) for c, label in enumerate(self.classes)}

    @property
    def auc(self) -> float:
        """The mean of these areas over the classes that have one: of two classes, the area of either."""
        found = [area for area in self.class_auc.values() if not math.isnan(area)]
        return math.fsum(found) / len(found) if found else math.nan

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: mean |accuracy − confidence| over fifteen bins of confidence."""
        whole = self.bins[:, 0].sum()
        return float(np.abs(self.bins[:, 1] - self.bins[:, 2]).sum() / whole) if whole else math.nan

    @property
    def calibration_error_by_chance(self) -> float:
        """The calibration error to be expected of these probabilities if they were right: labels are drawn, and bins finite.

        The weight predicted right in a bin then has its summed confidence as mean, and a normal variable of variance V differs
        from its mean by √(2V/π) on average. An error below this is no evidence against the probabilities.
        """
        whole = self.bins[:, 0].sum()
        return float(np.sqrt(2 / math.pi * self.bins[:, 3]).sum() / whole) if whole else math.nan


def _joined(one: Metrics, other: Metrics) -> tuple[Scores, ...] | None:
    if not one.scores or not other.scores:
        return None if one.scores is None or other.scores is None else one.scores or other.scores
    together = (*one.scores, *other.scores)
    held = sum(part.probabilities.size for part in together)
    return together if one.classes == other.classes and held <= MOST_SCORES else None


def _auc(score: Array, positive: NDArray[np.bool_], weights: Array) -> float:
    """The probability that a row of the class scores higher than one of another class; equal scores count half."""
    values, place = np.unique(score, return_inverse=True)
    hits = np.bincount(place, weights * positive, len(values))
    rest = np.bincount(place, weights * ~positive, len(values))
    pairs = hits.sum() * rest.sum()
    return float((hits * (np.cumsum(rest) - rest / 2)).sum() / pairs) if pairs > 0 else math.nan


def metrics_of(posterior: Posterior, truth: NDArray[np.int64], weights: Array, counted: Array | None = None) -> Metrics:
    """Metrics of rows with known class; `truth` is its code, past the last where it is new, -1 where missing.

    `counted` is how often each class occurred among the rows learned from.
    """
    k = len(posterior.classes)
    used = (truth >= 0) & (weights > 0)
    known = used & (truth < k)
    p, w, true = posterior.probabilities[known], weights[known], truth[known]
    predicted = np.argmax(posterior.log_probabilities[known], axis=1) if len(p) else np.zeros(0, np.int64)
    logs = posterior.log_probabilities[known][np.arange(len(true)), true]
    squares = (p * p).sum(1) - 2 * p[np.arange(len(true)), true] + 1.0
    table = np.bincount(true * k + predicted, w, k * k).reshape(k, k)
    pairs = {(posterior.classes[i], posterior.classes[j]): float(table[i, j]) for i, j in np.argwhere(table > 0)}
    confidence = p[np.arange(len(true)), predicted]
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    parts = (w, w * confidence, w * (predicted == true), w * w * confidence * (1 - confidence))
    bins = np.column_stack([np.bincount(place, part, BINS) for part in parts]).astype(np.float64)
    new = float(weights[used & (truth >= k)].sum())
    seen = np.maximum(np.ones(k) if counted is None else counted, 0.5)  # finite for a class without training rows
    frequency = seen / seen.sum()
    return Metrics(
        tuple(posterior.classes),
        pairs,
        float(-(w * logs).sum()),
        float((w * squares).sum()),
        bins,
        int(used.sum()),
        new,
        float(-(w * np.log(frequency[true])).sum()),
        float(w[true == int(np.argmax(seen))].sum()),
        (Scores(p, true, w),) if p.size <= MOST_SCORES else None,
    )


def finite(value: float) -> float | None:
    """The number, or None where it is not finite: JSON has no such numbers."""
    return value if math.isfinite(value) else None
