"""Metrics of predicted probabilities, kept as sums over rows: those of folds and batches add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes import Posterior
from likely.errors import UsageError
from likely.evaluation.decision_figures import Curves, DecisionFigures, Scores, curves_of, decided, place_of
from likely.evaluation.drawable import confusion_svg
from likely.kernels.parallel import cached_property
from likely.plots.shown import Shown, ShownTable
from likely.plots.svg import Svg

Array = NDArray[np.float64]
BINS = 15
MAIN = ("accuracy", "log_loss", "brier", "calibration_error", "auc")
MOST_SCORES = 20_000_000  # rows × classes that are kept for the area under the ROC curve


@dataclass(frozen=True, eq=False)
class Metrics:
    """Sums over rows from which the metrics are computed: weights, losses, confusion, bins of confidence."""

    classes: tuple[Any, ...]
    confusion: dict[tuple[Any, Any], float]  # (true, predicted): weight
    loss: float  # summed -log P(true class)
    squares: float  # summed Brier score
    bins: Array  # by bin of confidence: weight, summed confidence, weight predicted right
    rows: int
    unknown: float = 0.0  # weight of rows of classes that the model does not know
    base_loss: float = 0.0  # summed -log of the true class's frequency among the rows learned from
    base_right: float = 0.0  # weight of the rows whose class is the most frequent one there
    scores: tuple[Scores, ...] | None = ()  # None where there were too many, or of different classes

    @staticmethod
    def zero(classes: Sequence[Any]) -> Metrics:
        """The metrics of no rows."""
        return Metrics(tuple(classes), {}, 0.0, 0.0, np.zeros((BINS, 3)), 0)

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
        """The mean of -log P(true class), in nats, over rows whose class the model knows."""
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
        p, true, w = (np.concatenate(parts) for parts in zip(*self.scores, strict=True))
        return {label: _auc(p[:, c], true == c, w) for c, label in enumerate(self.classes)}

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


def _joined(one: Metrics, other: Metrics) -> tuple[Scores, ...] | None:
    if not one.scores or not other.scores:
        return None if one.scores is None or other.scores is None else one.scores or other.scores
    together = (*one.scores, *other.scores)
    held = sum(p.size for p, _, _ in together)
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
    parts = (w, w * confidence, w * (predicted == true))
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
        ((p, true, w),) if p.size <= MOST_SCORES else None,
    )


@dataclass(frozen=True)
class Overlap:
    """How many of the evaluated rows the model was learned from, of those that could be checked."""

    learned: int
    checked: int

    def describe(self, how: str, rows: int) -> str:
        """The title of an evaluation on such rows."""
        if not self.checked:
            return f"{rows:,} rows; whether the model learned from them is not known"
        if self.learned >= self.checked:
            return f"{rows:,} rows: these rows were learned from, so the metrics are optimistic"
        if self.learned:
            return f"{rows:,} rows, of which {self.learned:,} of {self.checked:,} checked were learned from"
        return f"{how}, {rows:,} rows"


@dataclass(frozen=True)
class Evaluation(Shown):
    """Metrics on rows that were not learned from, in all and of every fold; from `evaluate`.

    Attributes
    ----------
    total : Metrics
        Metrics over all rows.
    parts : tuple of Metrics
        Metrics of every fold.
    how : str
        How it was evaluated: "hold-out", "5-fold cross-validation", ...
    overlap : Overlap or None
        How many of the rows a finished model has learned from.
    costs : dict or None
        Cost of each decision in each true class, as given.
    threshold : float, dict or None
        The probability from which a class is predicted, as given.
    """

    total: Metrics
    parts: tuple[Metrics, ...]
    how: str
    overlap: Overlap | None = None  # of the evaluated rows with those that a finished model was learned from
    costs: Any = None
    threshold: Any = None
    accuracy = property(lambda self: self.total.accuracy)
    log_loss = property(lambda self: self.total.log_loss)
    brier = property(lambda self: self.total.brier)
    calibration_error = property(lambda self: self.total.calibration_error)
    rows = property(lambda self: self.total.rows)
    baseline = property(lambda self: self.total.baseline)

    @property
    def learned_from(self) -> int | None:
        """How many of these rows a finished model has learned from; None where that is not known, or no model was given."""
        return self.overlap.learned if self.overlap and self.overlap.checked else None

    @property
    def title(self) -> str:
        """How it was evaluated, and on how many rows."""
        return self.overlap.describe(self.how, self.rows) if self.overlap else f"{self.how}, {self.rows:,} rows"

    @property
    def auc(self) -> float:
        """The area under the ROC curve, one class against the rest, averaged over classes; and over folds."""
        found = [part.auc for part in self.parts or (self.total,) if not math.isnan(part.auc)]
        return math.fsum(found) / len(found) if found else math.nan

    def class_auc(self, label: Any) -> float:
        """Area under the ROC curve of one class against all others.

        Parameters
        ----------
        label : object
            The class.

        Returns
        -------
        float
            The area, averaged over folds; NaN where it is not defined.
        """
        known, parts = self.classes[place_of(label, self.classes)], self.parts or (self.total,)
        found = [area for part in parts if not math.isnan(area := part.class_auc.get(known, math.nan))]
        return math.fsum(found) / len(found) if found else math.nan

    @property
    def _scores(self) -> Scores:
        if not self.total.scores:
            raise UsageError(f"probabilities of rows were not kept: more than {MOST_SCORES:,}, or folds of other classes")
        p, true, weights = (np.concatenate(parts) for parts in zip(*self.total.scores, strict=True))
        return p, true, weights

    @cached_property
    def decisions(self) -> DecisionFigures:
        """Mean cost, rejected rows and confusion of the decisions that `costs` or `threshold` call for."""
        return decided(self._scores, self.classes, self.costs, self.threshold)

    @property
    def mean_cost(self) -> float:
        """The mean cost of a row; without costs, an error costs 1."""
        return self.decisions.mean_cost

    def curves(self, label: Any = None) -> Curves:
        """ROC, precision–recall and cost curve of a class against the others.

        Parameters
        ----------
        label : class, optional
            The class; of two classes the second by default.

        Returns
        -------
        Curves
            Areas, best threshold, points and a picture.
        """
        return curves_of(self._scores, self.classes, label, self.costs)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes, in the order of the confusion matrix."""
        return self.total.classes

    @property
    def folds(self) -> int:
        """Number of folds; 0 for a finished model."""
        return len(self.parts)

    @property
    def confusion(self) -> Array:
        """Rows: the true class; columns: the predicted one."""
        k = range(len(self.classes))
        return np.array([[self.total.confusion.get((self.classes[i], self.classes[j]), 0.0) for j in k] for i in k])

    def average_precision(self, label: Any) -> float:
        """The area under the precision–recall steps of one class, over all rows.

        Parameters
        ----------
        label : class
            The class.

        Returns
        -------
        float
            Σ (rise of recall) · precision.
        """
        return self.curves(label).ranking.average_precision if self.total.scores else math.nan

    @property
    def per_class(self) -> list[dict[str, Any]]:
        """Rows (support), precision, recall, F1, AUC and average precision of every class."""
        table = self.confusion
        found = []
        for i, label in enumerate(self.classes):
            hit, true, predicted = table[i, i], table[i].sum(), table[:, i].sum()
            precision, recall = (float(hit / n) if n else math.nan for n in (predicted, true))
            f1 = float(2 * hit / (true + predicted)) if true + predicted else math.nan
            found.append(
                {
                    "class": label, "rows": float(true), "support": float(true), "precision": precision, "recall": recall,
                    "f1": f1, "auc": self.class_auc(label), "average_precision": self.average_precision(label),
                }
            )  # fmt: skip
        return found

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as plain data; what has no finite value is null."""
        return {
            "how": self.how, "title": self.title, "learned_from": self.learned_from,
            "rows": self.rows, "folds": self.folds, "unknown_labels": self.total.unknown,
            **{name: finite(getattr(self.total, name)) for name in ("accuracy", "log_loss", "brier", "calibration_error")},
            "auc": finite(self.auc), "baseline": {name: finite(value) for name, value in self.baseline.items()},
            "classes": [label if isinstance(label, (str, int, float, bool)) else str(label) for label in self.classes],
            "confusion": self.confusion.tolist(),
            "per_class": [{k: finite(v) if isinstance(v, float) else v for k, v in row.items()} for row in self.per_class],
            "fold_accuracy": [finite(part.accuracy) for part in self.parts],
            "fold_log_loss": [finite(part.log_loss) for part in self.parts],
        } | self._decisions_dict()  # fmt: skip

    def _shown_tables(self) -> list[ShownTable]:
        """Metrics of the classes, metrics of all rows, and the confusion matrix."""
        metrics = [{"metric": name.replace("_", " "), "value": getattr(self, name)} for name in MAIN]
        names = [str(label) for label in self.classes]
        rows = [{"true": a} | dict(zip(names, n, strict=True)) for a, n in zip(names, self.confusion.tolist(), strict=True)]
        tables = (("Each class", self.per_class), (self.title, metrics), ("Confusion matrix: true classes in the rows", rows))
        return [ShownTable(*table) for table in tables]

    def plot(self, label: Any = None) -> Svg:
        """ROC, precision–recall and cost curve of a class; of more than two classes and no label, the confusion matrix.

        Parameters
        ----------
        label : class or None, default=None
            The class of the curves.

        Returns
        -------
        Svg
            A picture that notebooks show and `.save("x.svg")` writes; also .png and .pdf.
        """
        if label is not None or len(self.classes) == 2:
            return self.curves(label).plot()
        return confusion_svg(self.confusion, [str(name) for name in self.classes], self.title)

    def __repr__(self) -> str:
        return f"<Evaluation: {self.title}, accuracy {self.accuracy:.4f}, log loss {self.log_loss:.4f}>"

    def _decisions_dict(self) -> dict[str, Any]:
        """What was asked for of decisions; of two classes, the threshold that would have cost least."""
        found: dict[str, Any] = {}
        if self.costs is not None or self.threshold is not None:
            found["decisions"] = self.decisions.to_dict()
        if len(self.classes) == 2 and self.total.scores:
            threshold, cost = self.curves().best_threshold
            found["best_threshold"] = {"class": str(self.classes[1]), "threshold": threshold, "mean_cost": cost}
        return found

    def __str__(self) -> str:
        lines = [
            self.title,
            f"accuracy           {self.accuracy:.4f}{_spread([part.accuracy for part in self.parts])}",
            f"log loss           {self.log_loss:.4f}{_spread([part.log_loss for part in self.parts])}",
            f"Brier score        {self.brier:.4f}",
            f"calibration error  {self.calibration_error:.4f}",
            f"AUC                {self.auc:.4f}{_spread([part.auc for part in self.parts])}",
            f"class frequencies  accuracy {self.baseline['accuracy']:.4f}, log loss {self.baseline['log_loss']:.4f}",
        ]
        if self.costs is not None or self.threshold is not None:
            lines.append(str(self.decisions))
            if best := self._decisions_dict().get("best_threshold"):
                least = f"{best['class']} {best['threshold']:.4f}, mean cost {best['mean_cost']:.4f} on these rows"
                lines.append(f"best threshold     {least}")
        return "\n".join(lines)


def _spread(values: Sequence[float]) -> str:
    return f"  (folds {min(values):.4f} to {max(values):.4f})" if len(values) > 1 else ""


def finite(value: float) -> float | None:
    """The number, or None where it is not finite: JSON has no such numbers."""
    return value if math.isfinite(value) else None
