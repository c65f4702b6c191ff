"""One weight for all columns: the second stage where classes are so many that a weight for each would not fit.

A weight for each column and a bias for each class make a linear system of columns + classes unknowns, whose memory grows
with the square of the classes and whose time with their cube. One temperature costs rows × classes a step.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Single = NDArray[np.float32]

MANY_CLASSES = 1_000  # beyond which all columns share one weight
ENTRIES = 1 << 22  # rows × classes that the temperature is fitted on
FEWEST_ROWS = 200
STEPS = 30
TOLERANCE = 1e-6


def rows_for(classes: int) -> int:
    """On how many rows the temperature is fitted."""
    return max(FEWEST_ROWS, ENTRIES // classes)


def temperature(
    base: Single, evidence: Iterable[Single], labels: NDArray[np.int64], w: Array, strength: float
) -> float:
    """The weight of the summed evidence that maximises the penalised conditional likelihood; it is pulled to 1.

    The loss is convex in one unknown: Newton's steps within the interval that is known to hold the minimum.
    """
    said = np.zeros(base.shape, np.float64)
    for each in evidence:
        said += each
    own, low, high, at = np.arange(len(said)), 0.0, 2.0, 0.5
    for _ in range(STEPS):
        score = base + at * said
        share = np.exp(score - score.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        mean = (share * said).sum(1)
        slope = float(w @ (mean - said[own, labels])) + strength * (at - 1.0)
        bend = float(w @ ((share * said * said).sum(1) - mean * mean)) + strength
        low, high = (low, at) if slope > 0 else (at, high)
        step = at - slope / bend
        step = step if low <= step <= high else (low + high) / 2
        if abs(step - at) < TOLERANCE:
            break
        at = step
    return at
