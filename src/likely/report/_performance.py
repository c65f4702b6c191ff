"""Quality of a model on the rows of a report: metrics, confusion, ranking, calibration and thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.decisions import Costs, Ranking
from likely.evaluation.evaluation import Evaluation
from likely.report._scored_rows import JudgedRows

Array = NDArray[np.float64]
POINTS = 101  # of a curve
BINS = 12  # of a calibration curve
MOST_CLASSES = 8  # with curves of their own
ROWS_A_CELL = 3  # shown behind a cell of the confusion matrix
MOST_CELLS = 30
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def performance(scored: JudgedRows, evaluation: Evaluation, costs: Any, positive: int) -> dict[str, Any]:
    """The quality of the predictions, as plain data."""
    classes = scored.model.classes
    known = scored.known
    p, truth = scored.probabilities[known], scored.truth[known]
    ranked = _ranked_classes(truth, len(classes))
    found: dict[str, Any] = evaluation.to_dict() | {"positive": str(classes[positive])}
    found["classes"] = [str(label) for label in classes]
    found["curves"] = [_curves(Ranking.of(p[:, c], truth == c), str(classes[c])) for c in ranked]
    found["calibration"] = _calibration(scored, positive)
    if len(classes) == 2:
        found["thresholds"] = _thresholds(Ranking.of(p[:, positive], truth == positive), costs, classes, positive)
    return found


def _ranked_classes(truth: NDArray[np.int64], k: int) -> list[int]:
    """Classes with curves: of two the second, of many the most frequent."""
    if k == 2:
        return [1, 0]
    counts = np.bincount(truth, minlength=k)
    return sorted(np.argsort(-counts, kind="stable")[:MOST_CLASSES].tolist())


def _evenly_spaced(size: int, most: int = POINTS) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, size - 1, min(size, most)).astype(np.int64))


def _curves(ranking: Ranking, label: str) -> dict[str, Any]:
    x, y = ranking.roc
    recall, precision = ranking.precision_recall
    at = _evenly_spaced(len(x))
    whole = max(ranking.positives + ranking.negatives, 1e-300)
    taken = (ranking.true_positives + ranking.false_positives) / whole
    lift = np.divide(recall, taken, out=np.ones_like(taken), where=taken > 0)
    return {
        "class": label, "rows": ranking.positives, "share": ranking.positives / whole, "roc_area": ranking.roc_area,
        "average_precision": ranking.average_precision,
        "roc": {"false_positive_rate": x[at], "true_positive_rate": y[at]},
        "precision_recall": {"recall": recall[at][1:], "precision": precision[at][1:]},
        "lift": {"share_of_rows": taken[at][1:], "recall": recall[at][1:], "lift": lift[at][1:]},
    }  # fmt: skip


def _calibration(scored: JudgedRows, positive: int) -> dict[str, Any]:
    """Predicted against observed share, in bins of predicted probability, after and before calibration."""
    two = len(scored.model.classes) == 2
    known = scored.known
    truth = scored.truth[known]

    def curve(p: Array | None) -> list[dict[str, Any]] | None:
        if p is None:
            return None
        own = p[known]
        if two:
            return _bins(own[:, positive], truth == positive)
        return _bins(own.max(1) if len(own) else np.zeros(0), own.argmax(1) == truth if len(own) else truth > 0)

    of = str(scored.model.classes[positive]) if two else "the predicted class"
    return {"of": of, "after": curve(scored.probabilities), "before": curve(scored.uncalibrated)}


def _bins(p: Array, hit: NDArray[np.bool_]) -> list[dict[str, Any]]:
    place = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    found = []
    for b in range(BINS):
        inside = place == b
        n = int(inside.sum())
        if n:
            share = float(hit[inside].mean())
            low, high = _wilson(share, n)
            found.append({"from": b / BINS, "to": (b + 1) / BINS, "rows": n, "predicted": float(p[inside].mean()),
                          "observed": share, "low": low, "high": high})  # fmt: skip
    return found


def _wilson(share: float, n: int) -> tuple[float, float]:
    """95 % interval of a share."""
    z = 1.96
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)))
    return middle - half, middle + half


def _thresholds(ranking: Ranking, costs: Any, classes: tuple[Any, ...], positive: int) -> dict[str, Any]:
    """Counts and rates at some thresholds, and the one of lowest cost."""
    matrix = Costs.of({} if costs is None else costs, classes).matrix
    false_positive, false_negative = float(matrix[1 - positive, positive]), float(matrix[positive, 1 - positive])
    best, least = ranking.best_threshold(false_positive, false_negative)
    rows = []
    for threshold in sorted({*THRESHOLDS, round(best, 4)}):
        i = int(np.searchsorted(-ranking.thresholds, -threshold, side="right")) - 1
        hits, alarms = float(ranking.true_positives[i]), float(ranking.false_positives[i])
        missed, whole = ranking.positives - hits, ranking.positives + ranking.negatives
        rows.append({
            "threshold": threshold, "true_positives": hits, "false_positives": alarms, "false_negatives": missed,
            "true_negatives": ranking.negatives - alarms, "precision": hits / (hits + alarms) if hits + alarms else None,
            "recall": hits / ranking.positives if ranking.positives else None,
            "flagged": (hits + alarms) / whole if whole else None,
            "mean_cost": (alarms * false_positive + missed * false_negative) / whole if whole else None,
        })  # fmt: skip
    at = _evenly_spaced(len(ranking.thresholds), 3 * POINTS)[1:]
    curve = {"threshold": ranking.thresholds[at], "true_positives": ranking.true_positives[at],
             "false_positives": ranking.false_positives[at]}  # fmt: skip
    return {
        "class": str(classes[positive]), "false_positive_cost": false_positive, "false_negative_cost": false_negative,
        "best": best, "cost_at_best": least, "positives": ranking.positives, "negatives": ranking.negatives,
        "rows": rows, "curve": curve,
    }  # fmt: skip


def confusion_examples(scored: JudgedRows) -> dict[tuple[int, int], list[int]]:
    """For each cell of the confusion matrix off the diagonal, the rows predicted with the most confidence."""
    known = np.flatnonzero(scored.known)
    truth, predicted = scored.truth[known], scored.predicted[known]
    k = len(scored.model.classes)
    wrong = truth != predicted
    cells = np.bincount(truth[wrong] * k + predicted[wrong], minlength=k * k)
    confidence = scored.probabilities[known].max(1) if len(known) else np.zeros(0)
    found = {}
    for cell in np.argsort(-cells, kind="stable")[:MOST_CELLS].tolist():
        if cells[cell]:
            inside = np.flatnonzero((truth == cell // k) & (predicted == cell % k))
            best = inside[np.argsort(-confidence[inside], kind="stable")[:ROWS_A_CELL]]
            found[(cell // k, cell % k)] = known[best].tolist()
    return found
