"""Copies of rows and documents: how much of a weight is left out together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likely.families.statistics import Array

OFTEN, ODD = 0.25, 0.01  # shares of rows: repeated so often, or weighted by such numbers, that it is no accident


def left_together(beyond: Array, weights: Array, labels: NDArray[np.int64]) -> Array:
    """Of each row's weight, the part that is left out with it; `beyond` is what chance repeats do not explain of it.

    A table has a few repeated rows by nature, and new rows will repeat them too: where most rows of a class have one weight,
    only so much is left out of the others as well.
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
    """The mean number of copies of a row of each class; one where there is no row."""
    total = np.bincount(labels, weights, classes)
    mean = np.bincount(labels, weights * copies, classes) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, mean, 1.0)
