"""Bayes' rule in logs, row by row: the one place where scores become probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError
from likely.threads import cached_property

Floats = NDArray[np.float64]

LONGEST_LABEL = 64  # a NumPy string array gives every cell the room of its longest label
CLASSES_SHOWN = 10


def normalise(log_joint: Floats, log_prior: Floats) -> tuple[Floats, Floats]:
    """Each row shared out among its classes, in logs, with the log evidence; an impossible row falls back on the prior.

    An infinite score is certain, and several share. A score that is not a number is refused.
    """
    shares, peak = _below_peak(log_joint, log_prior)
    with np.errstate(over="ignore", under="ignore"):
        log_total = np.log(np.exp(shares).sum(axis=0))
        shares -= log_total
        return shares.T, peak + log_total


def share_out(log_joint: Floats, log_prior: Floats) -> Floats:
    """Each row shared out among its classes: the same as `normalise` without the logs, for half the price."""
    shares, _ = _below_peak(log_joint, log_prior)
    with np.errstate(over="ignore", under="ignore"):
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=0)
        return shares.T


def _below_peak(log_joint: Floats, log_prior: Floats) -> tuple[Floats, Floats]:
    """Every score less the best of its row, and that best one; one class a line."""
    # NumPy's reductions over the short axis are then vectorised along the rows.
    shares = np.array(np.transpose(log_joint), dtype=np.float64, order="C")
    peak = shares.max(axis=0)
    base = peak if np.isfinite(peak).all() else _settle_extremes(shares, peak, log_prior)
    with np.errstate(over="ignore", under="ignore"):  # scores 1e308 apart: the lesser is 0, as it should be
        shares -= base
    return shares, peak


def _settle_extremes(shares: Floats, peak: Floats, log_prior: Floats) -> Floats:
    """Impossible rows take the prior's scores, infinite ones 0 against minus infinity; the rows' new peaks."""
    _refuse_nan(peak)
    prior = np.asarray(log_prior, dtype=np.float64)
    if not np.isfinite(prior.max()):
        prior = np.zeros(len(shares))
    impossible, certain = np.isneginf(peak), np.isposinf(peak)
    shares[:, impossible] = prior[:, None]
    shares[:, certain] = np.where(np.isposinf(shares[:, certain]), 0.0, -np.inf)
    return np.where(impossible, prior.max(), np.where(certain, 0.0, peak))


def _refuse_nan(peak: Floats) -> None:
    if np.isnan(peak).any():
        raise DataError(
            "a score is not a number", row=int(np.isnan(peak).argmax()) + 1, remedy="look for NaN in the model"
        )


def labels_array(classes: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """The labels as a NumPy array of their own type; labels of several types stay as they are."""
    if isinstance(classes, np.ndarray):
        return classes
    kinds = {_label_kind(label) for label in classes}
    if len(kinds) == 1 and kinds != {"O"}:
        labels = np.asarray(classes)
        if labels.dtype.kind in kinds or (kinds == {"i"} and labels.dtype.kind == "u"):
            return labels
    labels = np.empty(len(classes), dtype=object)
    for place, label in enumerate(classes):  # one by one, or a label that is a tuple would become a row
        labels[place] = label
    return labels


def _label_kind(label: Any) -> str:
    """NumPy's letter for an array that keeps such a label whole, or O for an array of objects."""
    if isinstance(label, str):  # NumPy's strings drop a closing NUL
        return "O" if len(label) > LONGEST_LABEL or label.endswith("\0") else "U"
    if isinstance(label, np.generic):
        return "i" if label.dtype.kind == "u" else label.dtype.kind
    return {bool: "b", int: "i", float: "f"}.get(type(label), "O")


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """What is believed of each row: the classes' log joint scores, and everything that is read off them."""

    classes: Sequence[Any] | NDArray[Any]
    log_joint: Floats
    log_prior: Floats
    no_evidence: str = ""  # why the scores are no log P(class, row), where they are not

    @cached_property
    def _normalised(self) -> tuple[Floats, Floats]:
        return normalise(self.log_joint, self.log_prior)

    @property
    def log_probabilities(self) -> Floats:
        """The log of each class's share, rows by classes."""
        return self._normalised[0]

    @property
    def log_evidence(self) -> Floats:
        """log P(x) of each row x: how probable it is under all classes together. Only a generative model has one."""
        if self.no_evidence:
            raise UsageError(f"there is no log_evidence: {self.no_evidence}")
        return self._normalised[1]

    @cached_property
    def probabilities(self) -> Floats:
        """Each class's share, rows by classes; every row sums to one."""
        return share_out(self.log_joint, self.log_prior)

    @cached_property
    def impossible(self) -> NDArray[np.bool_]:
        """The rows that no class allows, so that the prior speaks alone."""
        nothing: NDArray[np.bool_] = np.isneginf(self.log_joint.max(axis=1))
        return nothing

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The most probable label of each row, in the labels' own type; of equals the first."""
        best = self.log_joint.argmax(axis=1)
        peak = self.log_joint[np.arange(len(best)), best]
        _refuse_nan(peak)
        best[np.isneginf(peak)] = self.log_prior.argmax()
        labels: NDArray[Any] = labels_array(self.classes)[best]
        return labels

    def __len__(self) -> int:
        return len(self.log_joint)

    def __repr__(self) -> str:
        names = labels_array(self.classes).tolist()
        few = "classes " + ", ".join(map(repr, names)) if len(names) <= CLASSES_SHOWN else f"{len(names)} classes"
        return f"Posterior({len(self)} row{'' if len(self) == 1 else 's'}, {few})"

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict a row: its label and the probability of each class."""
        names = labels_array(self.classes).tolist()
        rows = zip(self.labels.tolist(), self.probabilities.tolist(), strict=True)
        return [{"label": label, "probabilities": dict(zip(names, row, strict=True))} for label, row in rows]
