"""Log loss of labels under scores of the classes, and how much less it is under other scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


FEW_CLASSES = 8  # fewer are summed in the same order by rows and by classes


def log_losses(scores: NDArray[Any], labels: NDArray[Any]) -> Array:
    """Log loss of each row, rows × classes: -log of the probability of its class."""
    if scores.shape[1] < FEW_CLASSES:  # NumPy reduces many rows of few classes in a fraction of the time, once transposed
        by_class = np.ascontiguousarray(scores.T)
        top = by_class.max(0)
        total = np.exp(by_class - top).sum(0)
    else:
        top = scores.max(1)
        total = np.exp(scores - top[:, None]).sum(1)
    lost: Array = np.log(total) + top - scores[np.arange(len(scores)), labels]
    return lost


def paired_gain(before: Array, after: Array, weights: Array) -> tuple[float, float]:
    """Nats that rows lose less after than before, in all, and the standard error of that sum."""
    gain = before - after
    total = float(weights @ gain)
    mean = total / max(float(weights.sum()), 1e-300)
    return total, float(np.sqrt(weights @ (gain - mean) ** 2))
