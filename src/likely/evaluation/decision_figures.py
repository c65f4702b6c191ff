"""Figures of decisions: mean cost, rejected rows, ROC, precision–recall and cost curves, best threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.decisions import Costs, Ranking, by_threshold
from likely.errors import UsageError, did_you_mean
from likely.evaluation.drawable import Drawable
from likely.plots.curves import Curve, CurvePanel, panels_svg

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scores:
    """Probabilities of rows with known class."""

    probabilities: Array  # rows × classes
    true: NDArray[np.int64]  # place of the true class
    weights: Array

    @staticmethod
    def together(parts: Sequence[Scores]) -> Scores:
        """Those of all parts, one after the other."""
        probabilities = np.concatenate([part.probabilities for part in parts])
        true, weights = (np.concatenate([getattr(part, name) for part in parts]) for name in ("true", "weights"))
        return Scores(probabilities, true, weights)
MOST_POINTS = 201


@dataclass(frozen=True, eq=False)
class DecisionFigures:
    """Costs of the decisions, by a cost matrix or a threshold, on the evaluated rows.

    Attributes
    ----------
    by : str
        "costs" or "threshold".
    costs : Costs
        Cost of each decision in each true class.
    confusion : array
        Weight of rows, true classes × decisions.
    most_probable : float
        Mean cost of deciding for the most probable class.
    """

    by: str  # "costs" or "threshold"
    costs: Costs
    confusion: Array  # true classes × decisions
    most_probable: float  # mean cost of deciding for the most probable class

    @property
    def mean_cost(self) -> float:
        """The mean cost of a row."""
        whole = float(self.confusion.sum())
        return float((self.confusion * self.costs.matrix).sum()) / whole if whole else math.nan

    @property
    def rejected(self) -> float:
        """The share of rows whose decision is no class."""
        whole = float(self.confusion.sum())
        return float(self.confusion[:, len(self.costs.classes) :].sum()) / whole if whole else math.nan

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {
            "by": self.by,
            "mean_cost": self.mean_cost,
            "mean_cost_of_the_most_probable_class": self.most_probable,
            "rejected": self.rejected,
            "decisions": [str(decision) for decision in self.costs.decisions],
            "confusion": self.confusion.tolist(),
        }

    def __str__(self) -> str:
        more = f", {100 * self.rejected:.1f} % rejected" if len(self.costs.decisions) > len(self.costs.classes) else ""
        return f"mean cost          {self.mean_cost:.4f}{more}  (most probable class {self.most_probable:.4f})"


def decided(scores: Scores, classes: Sequence[Any], costs: Any, threshold: Any) -> DecisionFigures:
    """The figures of decisions by `threshold`, or else of lowest expected cost; without costs an error costs 1."""
    p, true, weights = scores.probabilities, scores.true, scores.weights
    table = Costs.of({} if costs is None else costs, classes)
    places = by_threshold(p, classes, threshold) if threshold is not None else table.decide(p)
    wide = len(table.decisions)
    table_of_both = np.bincount(true * wide + places, weights, len(classes) * wide)
    confusion = table_of_both.reshape(len(classes), wide).astype(np.float64)
    whole = max(float(weights.sum()), 1e-300)
    plain = table.total(true, np.asarray(p.argmax(1)), weights) / whole if len(p) else math.nan
    return DecisionFigures("costs" if threshold is None else "threshold", table, confusion, plain)


@dataclass(frozen=True, eq=False)
class Curves(Drawable):
    """ROC, precision–recall and cost curve of one class against the others.

    Attributes
    ----------
    label : class
        The class.
    ranking : Ranking
        Rows ranked by the probability of the class: `.roc`, `.roc_area`, `.precision_recall`, `.average_precision`.
    false_positive : float
        What a false positive costs.
    false_negative : float
        What a false negative costs.
    """

    label: Any
    ranking: Ranking
    false_positive: float = 1.0
    false_negative: float = 1.0

    @property
    def best_threshold(self) -> tuple[float, float]:
        """The threshold with the lowest mean cost on these rows, and that cost."""
        return self.ranking.best_threshold(self.false_positive, self.false_negative)

    def to_dict(self) -> dict[str, Any]:
        """Areas, best threshold and points of the curves, thinned where there are many."""
        threshold, cost = self.best_threshold
        x, y = self.ranking.roc
        recall, precision = self.ranking.precision_recall
        at = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_POINTS)).astype(np.int64))
        thresholds = [None if math.isinf(t) else t for t in self.ranking.thresholds[at].tolist()]
        return {
            "class": self.label, "roc_area": _finite(self.ranking.roc_area),
            "average_precision": _finite(self.ranking.average_precision),
            "best_threshold": threshold, "cost_at_best_threshold": cost, "thresholds": thresholds,
            "roc": {"false_positive_rate": x[at].tolist(), "true_positive_rate": y[at].tolist()},
            "precision_recall": {"recall": recall[at].tolist(), "precision": precision[at].tolist()},
            "cost_curve": [list(point) for point in self.ranking.cost_curve()],
        }  # fmt: skip

    def svg(self) -> str:
        """The three curves side by side."""
        found = self.to_dict()
        roc, pr = found["roc"], found["precision_recall"]
        share = self.ranking.positives / max(self.ranking.positives + self.ranking.negatives, 1e-300)
        cost = found["cost_curve"]
        shares, least_cost = [x for x, _ in cost], [y for _, y in cost]
        always = [min(x * (1 - share), (1 - x) * share) for x in shares]
        panels = [
            CurvePanel(f"ROC, area {self.ranking.roc_area:.4f}", "false-positive rate", "true-positive rate",
                  [Curve(roc["false_positive_rate"], roc["true_positive_rate"]), Curve([0, 1], [0, 1], faint=True)]),
            CurvePanel(f"Average precision {self.ranking.average_precision:.4f}", "recall", "precision",
                  [Curve(pr["recall"], pr["precision"]), Curve([0, 1], [share, share], faint=True)]),
            CurvePanel("Cost curve", "share of a false positive in both costs", "mean cost",
                  [Curve(shares, least_cost), Curve(shares, always, faint=True)]),
        ]  # fmt: skip
        threshold, least = self.best_threshold
        subtitle = f"best threshold {threshold:.4f} (mean cost {least:.4f}); faint: without looking at any column"
        return panels_svg(f"{self.label} against the rest", subtitle, panels)


def place_of(label: Any, classes: Sequence[Any]) -> int:
    """The index of a class among the classes; an unknown class is an error."""
    if label not in classes:
        names = [str(known) for known in classes]
        raise UsageError(f"{label!r} is no class{did_you_mean(str(label), names)}: choose from {names}")
    return list(classes).index(label)


def curves_of(scores: Scores, classes: Sequence[Any], label: Any, costs: Any) -> Curves:
    """The curves of one class against the others; of two classes the second, unless another is named."""
    if label is None:
        if len(classes) != 2:
            raise UsageError(f"there are {len(classes)} classes: name the one whose curves are wanted")
        label = classes[1]
    p, true, weights = scores.probabilities, scores.true, scores.weights
    place = place_of(label, classes)
    ranking = Ranking.of(p[:, place], true == place, weights)
    if costs is None or len(classes) != 2:
        return Curves(label, ranking)
    matrix = Costs.of(costs, classes).matrix
    wrong = [float(matrix[c, 1 - c] - matrix[c, c]) for c in range(2)]  # what an error adds, in each true class
    return Curves(label, ranking, wrong[1 - place], wrong[place])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
