"""Decisions from probabilities: costs, expected loss, reject option, thresholds, ROC and precision–recall curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError, did_you_mean

Array = NDArray[np.float64]
NEVER = 1.01  # a threshold that no probability reaches, not even a rounded one
ANY = "*"  # a true class that stands for all that are not named


@dataclass(frozen=True)
class Costs:
    """What each decision costs in each true class. A decision that is no class, such as "ask", is a reject option."""

    classes: tuple[Any, ...]
    decisions: tuple[Any, ...]
    matrix: Array  # true classes × decisions

    @classmethod
    def of(cls, given: Any, classes: Sequence[Any]) -> Costs:
        """From {true: {decision: cost}}; "*" stands for all true classes.

        A decision for the true class costs nothing unless a cost is given, one for another class costs 1.
        """
        if isinstance(given, Costs):
            return given
        if not isinstance(given, Mapping) or not all(isinstance(line, Mapping) for line in given.values()):
            raise UsageError(f"costs={given!r}: pass {{true class: {{decision: cost}}}}")
        classes = tuple(classes)
        for label in given:
            if label not in classes and label != ANY:
                names = [str(known) for known in classes]
                raise UsageError(f"costs name the class {label!r}{did_you_mean(str(label), names)}: the classes are {names}")
        extra = [d for line in given.values() for d in line if d not in classes]
        decisions = (*classes, *dict.fromkeys(extra))
        matrix = np.array([[_cost(given, true, decision, classes) for decision in decisions] for true in classes])
        return cls(classes, decisions, matrix)

    def expected(self, probabilities: Array) -> Array:
        """The expected loss of each decision for each row: Σ P(class | row) · cost."""
        return np.asarray(probabilities @ self.matrix)

    def decide(self, probabilities: Array) -> NDArray[np.int64]:
        """The index of the decision with the lowest expected loss for each row; of equals the first."""
        return np.asarray(self.expected(probabilities).argmin(axis=1))

    def total(self, labels: NDArray[np.int64], decisions: NDArray[np.int64], weights: Array) -> float:
        """The summed cost of decisions where the true classes are known."""
        return float((self.matrix[labels, decisions] * weights).sum())


def _cost(given: Mapping[Any, Any], true: Any, decision: Any, classes: Sequence[Any]) -> float:
    line = given.get(true, given.get(ANY, {}))
    if decision not in line and ANY in given:
        line = given[ANY]
    if decision in line:
        value = line[decision]
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise UsageError(f"the cost of {decision!r} for {true!r} is {value!r}: pass a finite number")
        return float(value)
    if decision not in classes:
        raise UsageError(f"the decision {decision!r} has no cost for {true!r}: name it, or give one for '*'")
    return 0.0 if decision == true else 1.0


def by_threshold(probabilities: Array, classes: Sequence[Any], thresholds: Any) -> NDArray[np.int64]:
    """The most probable class among those that reach their threshold; where none does, the most probable of the others.

    `thresholds` is {class: threshold}, or for two classes one number for the second.
    """
    classes = tuple(classes)
    if not isinstance(thresholds, Mapping):
        if len(classes) != 2:
            raise UsageError(f"threshold={thresholds!r}: with {len(classes)} classes pass {{class: threshold}}")
        thresholds = {classes[1]: thresholds}
    unknown = [label for label in thresholds if label not in classes]
    if unknown:
        names = [str(c) for c in classes]
        raise UsageError(f"threshold names the class {unknown[0]!r}{did_you_mean(str(unknown[0]), names)}: choose from {names}")
    wanted = np.zeros(len(classes))
    for label, value in thresholds.items():
        share = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
        if not (0.0 <= share <= 1.0 or share == NEVER):
            raise UsageError(
                f"the threshold of {label!r} is {value!r}: pass a probability between 0 and 1, or {NEVER} for never"
            )
        wanted[classes.index(label)] = share
    named = np.array([label in thresholds for label in classes])
    reached = named & (probabilities >= wanted)
    score = np.where(reached, 2.0 + probabilities, np.where(named, probabilities - 1.0, probabilities))
    return np.asarray(score.argmax(axis=1))


@dataclass(frozen=True)
class Ranking:
    """Rows ranked by the probability of one class: the counts of positives and negatives above each threshold."""

    thresholds: Array  # falling; the first is above all rows
    true_positives: Array
    false_positives: Array

    @classmethod
    def of(cls, scores: Array, positive: NDArray[np.bool_], weights: Array | None = None) -> Ranking:
        """From the probability of the class for each row, and whether the row is of it."""
        w = np.ones(len(scores)) if weights is None else weights
        order = np.argsort(-scores, kind="stable")
        s, hits, misses = scores[order], np.where(positive, w, 0.0)[order], np.where(positive, 0.0, w)[order]
        last = np.flatnonzero(np.append(np.diff(s) != 0, True)) if len(s) else np.zeros(0, np.int64)
        first = np.zeros(1)
        return cls(
            np.concatenate([[np.inf], s[last]]),
            np.concatenate([first, np.cumsum(hits)[last]]),
            np.concatenate([first, np.cumsum(misses)[last]]),
        )

    @property
    def positives(self) -> float:
        """The weight of the rows of the class."""
        return float(self.true_positives[-1])

    @property
    def negatives(self) -> float:
        """The weight of the other rows."""
        return float(self.false_positives[-1])

    @property
    def roc(self) -> tuple[Array, Array]:
        """False-positive rate and true-positive rate at each threshold."""
        return self.false_positives / max(self.negatives, 1e-300), self.true_positives / max(self.positives, 1e-300)

    @property
    def roc_area(self) -> float:
        """The area under the ROC curve: the probability that a row of the class is ranked above another row."""
        x, y = self.roc
        return float(np.trapezoid(y, x)) if self.positives and self.negatives else math.nan

    @property
    def precision_recall(self) -> tuple[Array, Array]:
        """Recall and precision at each threshold."""
        taken = self.true_positives + self.false_positives
        precision = np.divide(self.true_positives, taken, out=np.ones_like(taken), where=taken > 0)
        return self.true_positives / max(self.positives, 1e-300), precision

    @property
    def average_precision(self) -> float:
        """Σ (rise of recall) · precision, the area under the precision–recall steps."""
        recall, precision = self.precision_recall
        return float((np.diff(recall) * precision[1:]).sum()) if self.positives else math.nan

    def costs(self, false_positive: float, false_negative: float) -> Array:
        """The mean cost of a row at each threshold."""
        missed = self.positives - self.true_positives
        whole = max(self.positives + self.negatives, 1e-300)
        return np.asarray((self.false_positives * false_positive + missed * false_negative) / whole)

    def best_threshold(self, false_positive: float = 1.0, false_negative: float = 1.0) -> tuple[float, float]:
        """The threshold with the lowest mean cost, midway to the next row below, and that cost.

        Where no row should be taken and a score reaches 1, it is 1.01, which `threshold=` takes for never.
        """
        costs = self.costs(false_positive, false_negative)
        i = int(costs.argmin())
        here = min(float(self.thresholds[i]), 1.0) if i else 1.0
        below = float(self.thresholds[i + 1]) if i + 1 < len(self.thresholds) else 0.0
        midway = (here + below) / 2
        above = midway if midway > below else here  # of two neighbouring floats the mean may be the lower
        return (above if i or below < 1.0 else NEVER), float(costs[i])

    def cost_curve(self, points: int = 101) -> list[tuple[float, float]]:
        """Lowest mean cost against the share of a false positive in both costs, from 0 to 1."""
        return [(x, float(self.costs(x, 1.0 - x).min())) for x in np.linspace(0.0, 1.0, points).tolist()]
