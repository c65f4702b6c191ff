"""Bayes' rule in logs, row by row: the one place where log joint scores are normalised, or compared with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.decisions import Costs, by_threshold
from likely.errors import DataError, UsageError, import_optional
from likely.kernels.parallel import cached_property
from likely.plots.shown import Shown, ShownTable
from likely.plots.svg import Svg

Floats = NDArray[np.float64]
Labels = Sequence[Any] | NDArray[Any]

LONGEST_LABEL = 64  # a NumPy string array gives every cell the size of its longest label
CLASSES_SHOWN = 10
ROWS_SHOWN = 20  # in a notebook
CLASSES_DRAWN = 20

FEW_CLASSES = 8  # fewer are summed in the same order by rows and by classes


def normalise(log_joint: Floats, log_prior: Floats) -> tuple[Floats, Floats]:
    """Log probabilities of the classes of each row, and its log evidence; a row impossible in every class gets the prior.

    A class with an infinite score is certain; several such classes have equal probability. A score of NaN is refused.
    """
    scores, peak = _below_peak(log_joint, log_prior)
    with np.errstate(over="ignore", under="ignore"):
        log_total = np.log(np.exp(scores).sum(axis=0))
        scores -= log_total
        return scores.T, peak + log_total


def softmax(log_joint: Floats, log_prior: Floats) -> Floats:
    """Probabilities of the classes of each row: as `normalise` without the logs, in half the time."""
    scores, _ = _below_peak(log_joint, log_prior)
    with np.errstate(over="ignore", under="ignore"):
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=0)
        return scores.T


def log_losses(scores: NDArray[Any], labels: NDArray[Any]) -> Floats:
    """Log loss of each row, rows × classes: -log of the probability of its class."""
    if scores.shape[1] < FEW_CLASSES:  # NumPy reduces many rows of few classes in a fraction of the time, once transposed
        by_class = np.ascontiguousarray(scores.T)
        top = by_class.max(0)
        total = np.exp(by_class - top).sum(0)
    else:
        top = scores.max(1)
        total = np.exp(scores - top[:, None]).sum(1)
    lost: Floats = np.log(total) + top - scores[np.arange(len(scores)), labels]
    return lost


def paired_gain(before: Floats, after: Floats, weights: Floats) -> tuple[float, float]:
    """Nats that rows lose less after than before, in all, and the standard error of that sum."""
    gain = before - after
    total = float(weights @ gain)
    mean = total / max(float(weights.sum()), 1e-300)
    return total, float(np.sqrt(weights @ (gain - mean) ** 2))


def _below_peak(log_joint: Floats, log_prior: Floats) -> tuple[Floats, Floats]:
    """Scores minus the maximum of their row, and that maximum; transposed to classes × rows."""
    # Transposed, NumPy's reductions over the few classes are vectorised along the rows.
    scores = np.array(np.transpose(log_joint), dtype=np.float64, order="C")
    peak = scores.max(axis=0)
    base = peak if np.isfinite(peak).all() else _settle_extremes(scores, peak, log_prior)
    with np.errstate(over="ignore", under="ignore"):  # scores 1e308 apart: the smaller probability is 0
        scores -= base
    return scores, peak


def _settle_extremes(scores: Floats, peak: Floats, log_prior: Floats) -> Floats:
    """Give impossible rows the prior's scores and infinite scores 0 against minus infinity; returns the new maxima."""
    _refuse_nan(peak)
    prior = np.asarray(log_prior, dtype=np.float64)
    if not np.isfinite(prior.max()):
        prior = np.zeros(len(scores))
    impossible, certain = np.isneginf(peak), np.isposinf(peak)
    scores[:, impossible] = prior[:, None]
    scores[:, certain] = np.where(np.isposinf(scores[:, certain]), 0.0, -np.inf)
    return np.where(impossible, prior.max(), np.where(certain, 0.0, peak))


def _refuse_nan(peak: Floats) -> None:
    if np.isnan(peak).any():
        raise DataError(
            "a score is not a number", row=int(np.isnan(peak).argmax()) + 1, remedy="check the model for NaN"
        )


def labels_array(classes: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """The labels as a NumPy array of their own type; labels of several types as objects."""
    if isinstance(classes, np.ndarray):
        return classes
    kinds = {_label_kind(label) for label in classes}
    if len(kinds) == 1 and kinds != {"O"}:
        labels = np.asarray(classes)
        if labels.dtype.kind in kinds or (kinds == {"i"} and labels.dtype.kind == "u"):
            return labels
    labels = np.empty(len(classes), dtype=object)
    for place, label in enumerate(classes):  # one by one: a label that is a tuple must not become a row
        labels[place] = label
    return labels


def _label_kind(label: Any) -> str:
    """NumPy's kind of an array that keeps such a label unchanged, or O for an array of objects."""
    if isinstance(label, str):  # NumPy's strings drop a closing NUL
        return "O" if len(label) > LONGEST_LABEL or label.endswith("\0") else "U"
    if isinstance(label, np.generic):
        return "i" if label.dtype.kind == "u" else label.dtype.kind
    return {bool: "b", int: "i", float: "f"}.get(type(label), "O")


def least_cost(probabilities: Floats, classes: Sequence[Any] | NDArray[Any], costs: Any) -> NDArray[Any]:
    """The decision of lowest expected cost for each row, in the type of the classes where all decisions are classes."""
    names = tuple(labels_array(classes).tolist())
    table = Costs.of(costs, names)
    of = classes if len(table.decisions) == len(names) else table.decisions
    return np.asarray(labels_array(of)[table.decide(probabilities)])


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Shown):
    """Posterior of the classes for every row, derived from the joint log scores.

    Attributes
    ----------
    classes : sequence
        The labels.
    log_joint : array
        Joint log scores, rows × classes.
    log_prior : array
        Log prior of the classes, which is the answer where a row is impossible under every class.
    no_evidence : str
        Why the scores are not log P(class, row), where they are not.
    """

    classes: Sequence[Any] | NDArray[Any]
    log_joint: Floats
    log_prior: Floats
    no_evidence: str = ""  # why the scores are not log P(class, row); empty where they are

    @cached_property
    def _normalised(self) -> tuple[Floats, Floats]:
        return normalise(self.log_joint, self.log_prior)

    @property
    def log_probabilities(self) -> Floats:
        """Log probabilities, rows × classes."""
        return self._normalised[0]

    @property
    def log_evidence(self) -> Floats:
        """log P(x) of each row x, summed over the classes; only for generative models."""
        if self.no_evidence:
            raise UsageError(f"there is no log_evidence: {self.no_evidence}")
        return self._normalised[1]

    @cached_property
    def probabilities(self) -> Floats:
        """Probabilities, rows × classes; every row sums to one."""
        return softmax(self.log_joint, self.log_prior)

    @cached_property
    def impossible(self) -> NDArray[np.bool_]:
        """Whether each row is impossible under every class, so that its probabilities are those of the prior."""
        nothing: NDArray[np.bool_] = np.isneginf(self.log_joint.max(axis=1))
        return nothing

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The most probable label of each row, in the labels' own type; the first of equals."""
        labels: NDArray[Any] = labels_array(self.classes)[self._best]
        return labels

    @cached_property
    def _best(self) -> NDArray[np.int64]:
        """The index of the most probable class of each row."""
        scores = self.log_joint
        if scores.shape[1] == 2:  # a comparison takes a fifth of the time
            best = (scores[:, 1] > scores[:, 0]).astype(np.int64)
            peak = np.maximum(scores[:, 0], scores[:, 1])
        else:
            best = scores.argmax(axis=1)
            peak = scores[np.arange(len(best)), best]
        _refuse_nan(peak)
        best[np.isneginf(peak)] = self.log_prior.argmax()
        return best

    def decide(self, *, costs: Any = None, threshold: Any = None) -> NDArray[Any]:
        """The decision for each row: of lowest expected loss, by a threshold, or the most probable label.

        Parameters
        ----------
        costs : {true class: {decision: cost}}, optional
            "*" stands for all true classes; a decision that is no class rejects the row.
        threshold : float or {class: probability}, optional
            The probability from which a class is predicted; one number is for the second of two classes.

        Returns
        -------
        array
            One decision a row.
        """
        codes, decisions = self.decision_codes(costs=costs, threshold=threshold)
        return np.asarray(labels_array(decisions)[codes])

    def decision_codes(self, *, costs: Any = None, threshold: Any = None) -> tuple[NDArray[np.int64], Labels]:
        """The decisions as `decide` makes them, as positions in the list of possible ones.

        Parameters
        ----------
        costs : {true class: {decision: cost}}, optional
            As for `decide`.
        threshold : float or {class: probability}, optional
            As for `decide`.

        Returns
        -------
        codes : array
            The position of each row's decision.
        decisions : sequence
            The possible decisions: the classes, then those of `costs` that are no class.
        """
        if costs is None and threshold is None:
            return self._best, self.classes
        if costs is not None and threshold is not None:
            raise UsageError("give costs or a threshold, not both: costs imply the thresholds")
        names = tuple(labels_array(self.classes).tolist())
        if costs is None:
            return by_threshold(self.probabilities, names, threshold), self.classes
        table = Costs.of(costs, names)
        return table.decide(self.probabilities), self.classes if len(table.decisions) == len(names) else table.decisions

    def expected_loss(self, costs: Any) -> Floats:
        """The expected cost of each decision.

        Parameters
        ----------
        costs : {true class: {decision: cost}}
            As for `decide`.

        Returns
        -------
        array
            Rows × decisions: the classes, then the decisions that are no class.
        """
        return Costs.of(costs, tuple(labels_array(self.classes).tolist())).expected(self.probabilities)

    def __len__(self) -> int:
        return len(self.log_joint)

    def __repr__(self) -> str:
        names = labels_array(self.classes).tolist()
        few = "classes " + ", ".join(map(repr, names)) if len(names) <= CLASSES_SHOWN else f"{len(names)} classes"
        return f"Posterior({len(self)} row{'' if len(self) == 1 else 's'}, {few})"

    def _shown_tables(self) -> list[ShownTable]:
        """One line a row: its most probable label, and the probability of each class."""
        names = [str(name) for name in labels_array(self.classes).tolist()]
        few = Posterior(self.classes, self.log_joint[:ROWS_SHOWN], self.log_prior)
        lines = zip(few.labels.tolist(), few.probabilities.tolist(), strict=True)
        rows = [{"row": i, "label": label} | dict(zip(names, p, strict=True)) for i, (label, p) in enumerate(lines, 1)]
        return [ShownTable(repr(self) + (f", the first {ROWS_SHOWN}" if len(self) > ROWS_SHOWN else ""), rows)]

    def to_pandas(self) -> Any:
        """One line a row, as a pandas data frame: its label, and the probability of each class."""
        names = labels_array(self.classes).tolist()
        probabilities = {f"p_{name}": self.probabilities[:, c] for c, name in enumerate(names)}
        return import_optional("pandas", "to_pandas()").DataFrame({"label": self.labels} | probabilities)

    def to_dict(self) -> dict[str, Any]:
        """Classes, labels and probabilities as plain data."""
        names = labels_array(self.classes).tolist()
        return {"classes": names, "labels": self.labels.tolist(), "probabilities": self.probabilities.tolist()}

    def plot(self, row: int = 1) -> Svg:
        """Bar chart of the posterior of one row.

        Parameters
        ----------
        row : int, default=1
            Which row, from 1.

        Returns
        -------
        Svg
            A picture that notebooks show and `.save("x.svg")` writes; also .png and .pdf.
        """
        from likely.plots.bars import Bar, BarChart, bars_svg

        if not 1 <= row <= len(self):
            raise UsageError(f"there is no row {row}: choose one from 1 to {len(self)}")
        pairs = zip(labels_array(self.classes).tolist(), self.probabilities[row - 1].tolist(), strict=True)
        ranked = sorted(pairs, key=lambda pair: -pair[1])[:CLASSES_DRAWN]
        bars = [(str(name), [Bar(p, value=f"{100 * p:.1f} %")]) for name, p in ranked]
        title, more = f"Posterior of row {row}", f"the {len(ranked)} most probable of {len(self.classes)} classes"
        return bars_svg(BarChart(title, more, "probability", bars, percent=True, x=(0.0, 1.0)))

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict per row: its label and the probability of each class."""
        names = labels_array(self.classes).tolist()
        rows = zip(self.labels.tolist(), self.probabilities.tolist(), strict=True)
        return [{"label": label, "probabilities": dict(zip(names, row, strict=True))} for label, row in rows]
