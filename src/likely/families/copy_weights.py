"""Copies of rows and documents: the part of a weight that is left out together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likely.families.statistics import Array

OFTEN, ODD = 0.25, 0.01  # fractions of rows, repeated or fractionally weighted, from which they count as copies


def left_together(beyond: Array, weights: Array, labels: NDArray[np.int64]) -> Array:
    """The part of each row's weight that is left out with it; `beyond` is the part that chance repeats do not explain.

    A few repeated rows are natural, and new rows will repeat them too: where most rows of a class have one weight, only that
    much is left out of the others as well.
    """
    copies = beyond.copy()
    for c in np.unique(labels).tolist():
        own = np.flatnonzero(labels == c)
        usual = float(np.partition(beyond[own], (len(own) - 1) // 2)[(len(own) - 1) // 2])
        times = beyond[own] / usual
        weighted = np.abs(weights[own] / usual - np.round(weights[own] / usual)) > 1e-6
        if (times > 1.5).mean() < OFTEN and weighted.mean() < ODD:
            copies[own] = np.minimum(beyond[own], usual)
    return copies


def mean_of_classes(copies: Array, weights: Array, labels: NDArray[np.int64], classes: int) -> Array:
    """Mean number of copies of a row by class; one for a class without rows."""
    total = np.bincount(labels, weights, classes)
    mean = np.bincount(labels, weights * copies, classes) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, mean, 1.0)
