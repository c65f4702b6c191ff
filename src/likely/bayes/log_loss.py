"""Log loss of labels under scores of the classes, and how much less it is under other scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def log_losses(scores: NDArray[Any], labels: NDArray[Any]) -> Array:
    """Log loss of each row, rows × classes: -log of the probability of its class."""
    top = scores.max(1)
    lost: Array = np.log(np.exp(scores - top[:, None]).sum(1)) + top - scores[np.arange(len(scores)), labels]
    return lost


def paired_gain(before: Array, after: Array, weights: Array) -> tuple[float, float]:
    """Nats that rows lose less after than before, in all, and the standard error of that sum."""
    gain = before - after
    total = float(weights @ gain)
    mean = total / max(float(weights.sum()), 1e-300)
    return total, float(np.sqrt(weights @ (gain - mean) ** 2))
