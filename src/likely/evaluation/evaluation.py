"""The evaluation of a model: metrics of rows that were not learned from, in all and of every fold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.evaluation.decision_figures import Curves, DecisionFigures, Scores, curves_of, decided, place_of
from likely.evaluation.drawable import confusion_svg
from likely.evaluation.metrics import MOST_SCORES, Metrics, finite
from likely.kernels.parallel import cached_property
from likely.plots.shown import Shown, ShownTable
from likely.plots.svg import Svg

Array = NDArray[np.float64]
OF_ALL = ("accuracy", "log_loss", "brier", "calibration_error", "calibration_error_by_chance")  # from sums over all rows


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


def _of_all(name: str) -> property:
    """A metric over all rows."""
    return property(attrgetter(f"total.{name}"), doc=getattr(Metrics, name).__doc__)


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
    accuracy = _of_all("accuracy")
    log_loss = _of_all("log_loss")
    brier = _of_all("brier")
    calibration_error = _of_all("calibration_error")
    calibration_error_by_chance = _of_all("calibration_error_by_chance")
    baseline = _of_all("baseline")
    rows = property(attrgetter("total.rows"), doc="Number of evaluated rows.")

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
        return Scores.together(self.total.scores)

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
            **{name: finite(getattr(self.total, name)) for name in OF_ALL},
            "auc": finite(self.auc), "baseline": {name: finite(value) for name, value in self.baseline.items()},
            "classes": [label if isinstance(label, (str, int, float, bool)) else str(label) for label in self.classes],
            "confusion": self.confusion.tolist(),
            "per_class": [{k: finite(v) if isinstance(v, float) else v for k, v in row.items()} for row in self.per_class],
            "fold_accuracy": [finite(part.accuracy) for part in self.parts],
            "fold_log_loss": [finite(part.log_loss) for part in self.parts],
        } | self._decisions_dict()  # fmt: skip

    def _shown_tables(self) -> list[ShownTable]:
        """Metrics of the classes, metrics of all rows, and the confusion matrix."""
        metrics = [{"metric": name.replace("_", " "), "value": getattr(self, name)} for name in (*OF_ALL, "auc")]
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
        """The requested figures of decisions; of two classes, the threshold that would have cost least."""
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
            f"accuracy           {self.accuracy:.4f}{_fold_range([part.accuracy for part in self.parts])}",
            f"log loss           {self.log_loss:.4f}{_fold_range([part.log_loss for part in self.parts])}",
            f"Brier score        {self.brier:.4f}",
            f"calibration error  {self.calibration_error:.4f}  (by chance alone {self.calibration_error_by_chance:.4f})",
            f"AUC                {self.auc:.4f}{_fold_range([part.auc for part in self.parts])}",
            f"class frequencies  accuracy {self.baseline['accuracy']:.4f}, log loss {self.baseline['log_loss']:.4f}",
        ]
        if self.costs is not None or self.threshold is not None:
            lines.append(str(self.decisions))
            if best := self._decisions_dict().get("best_threshold"):
                least = f"{best['class']} {best['threshold']:.4f}, mean cost {best['mean_cost']:.4f} on these rows"
                lines.append(f"best threshold     {least}")
        return "\n".join(lines)


def _fold_range(values: Sequence[float]) -> str:
    return f"  (folds {min(values):.4f} to {max(values):.4f})" if len(values) > 1 else ""
