"""One common weight for all columns of tables with very many classes, and one factor for all terms of others.

A weight for each column and a bias for each class need a linear system of columns + classes unknowns, whose memory grows with
the square of the classes and whose time with their cube. One temperature costs rows × classes a Newton step.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import log_losses, paired_gain
from likely.calibration._terms import CalibrationData, base_scores, make_terms
from likely.calibration.calibration import Calibration
from likely.errors import LikelyWarning
from likely.families.base import Parameters, edges_by_column
from likely.tally.row_sample import Reservoir

Array = NDArray[np.float64]
Single = NDArray[np.float32]

MANY_CLASSES = 1_000  # beyond which all columns have one common weight
ENTRIES = 1 << 22  # rows × classes that the temperature is fitted on
FEWEST_ROWS = 200
STEPS = 30
TOLERANCE = 1e-6
STRENGTH = 10.0  # ridge penalty of the temperature towards 0
FACTOR_STRENGTH, LARGEST_FACTOR = 1.0, 8.0  # of the common factor: ridge penalty towards 1, and upper bound


def rows_for(classes: int) -> int:
    """Number of rows that the temperature is fitted on."""
    return max(FEWEST_ROWS, ENTRIES // classes)


def one_weight(data: CalibrationData, parameters: Sequence[Parameters]) -> Calibration | None:
    """Calibration with one weight for all columns: no biases and no interactions."""
    names: list[str] = []

    def evidence() -> Iterator[Single]:
        for block in enumerate(parameters):  # one by one: the evidence of all together would take too much memory
            for term in make_terms(data, [block]):
                names.append(term.name)
                yield term.evidence

    classes, rows = len(data.tally.schema.classes), data.sample
    weight = temperature(base_scores(data), evidence(), rows.labels, rows.weights, STRENGTH)
    if not names:
        return None
    warnings.warn(
        f"{classes:,} classes: all columns share one weight ({weight:.2f}); columns are weighted one by one, and searched "
        f"for interactions, up to {MANY_CLASSES:,} classes",
        LikelyWarning,
        stacklevel=6,
    )
    weights, counted = dict.fromkeys(names, weight), float(data.tally.classes.sum())
    return Calibration(
        weights, absent={}, bias=np.zeros(classes), temperature=weight, interactions=(),
        edges=edges_by_column(parameters), values={}, counted=counted, copies=data.rows.copies,
    )  # fmt: skip


def common_factor(base: Single, scores: Array, sample: Reservoir, least: float) -> float:
    """Factor of all evidence that maximises the leave-one-out likelihood of the labels.

    1 unless it gains more than `least` nats in all, and more than the standard error of the gain.

    Parameters
    ----------
    base : array, rows × classes
        Log class frequencies.
    scores : array, rows × classes
        Leave-one-out log joint.
    sample : Reservoir
        Labels and weights of these rows, and of more.
    least : float
        Nats that it must gain.
    """
    labels, w = sample.labels[: len(base)], sample.weights[: len(base)]
    evidence = scores - base
    found = temperature(base, [evidence], labels, w, FACTOR_STRENGTH, highest=LARGEST_FACTOR)
    gain, error = paired_gain(log_losses(scores, labels), log_losses(base + found * evidence, labels), w)
    return found if gain > max(least, error) else 1.0


def temperature(
    base: Single,
    evidence: Iterable[NDArray[Any]],
    labels: NDArray[np.int64],
    w: Array,
    strength: float,
    *,
    highest: float = 2.0,
) -> float:
    """Weight of the summed evidence that maximises the penalised conditional likelihood, with a ridge penalty towards 1.

    The loss is convex in one unknown with a cheap second derivative, so Newton steps, safeguarded by bisection of the bracket
    of the minimum, need fewer passes over the rows than the optimiser of `kernels`.
    """
    total = np.zeros(base.shape, np.float64)
    for each in evidence:
        total += each
    own, low, high, at = np.arange(len(total)), 0.0, highest, 0.5
    for _ in range(STEPS):
        score = base + at * total
        probability = np.exp(score - score.max(1, keepdims=True))
        probability /= probability.sum(1, keepdims=True)
        mean = (probability * total).sum(1)
        gradient = float(w @ (mean - total[own, labels])) + strength * (at - 1.0)
        hessian = float(w @ ((probability * total * total).sum(1) - mean * mean)) + strength
        low, high = (low, at) if gradient > 0 else (at, high)
        step = at - gradient / hessian
        step = step if low <= step <= high else (low + high) / 2
        if abs(step - at) < TOLERANCE:
            break
        at = step
    return at
