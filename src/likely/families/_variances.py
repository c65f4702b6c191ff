"""Variances that cannot be estimated from the rows of a class: back-off to wider groups of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likely.families.statistics import MEAN_DIGITS, Array

# Axes of columns × classes that share a variance.
SHARED: dict[str | None, tuple[int, ...]] = {None: (), "class": (1,), "column": (0,), "both": (0, 1)}
# A standard deviation below this fraction of the mean is rounding error: about four units in the last place.
ROUNDING = 1e-15
SMALLEST = 1e-290  # a variance below this overflows when it divides


def back_off(
    variance: Array, mean: Array, n: Array, spread: Array, tie: str | None = None
) -> tuple[Array, NDArray[np.bool_]]:
    """Variances with those of zero replaced by the pooled one, then that of all rows, then 1; and which were replaced."""
    level = overall_mean(n, mean)
    total_n = n.sum(1, keepdims=True)
    within = np.divide(spread.sum(1, keepdims=True), total_n, out=np.zeros_like(total_n), where=total_n > 0)
    between = (n * (mean - level) ** 2).sum(1, keepdims=True)
    total = within + np.divide(between, total_n, out=np.zeros_like(total_n), where=total_n > 0)
    size = np.abs(mean)
    own = np.broadcast_to(size.max(SHARED[tie], keepdims=True, initial=0.0), size.shape) if SHARED[tie] else size
    widest = size.max(1, keepdims=True, initial=0.0)
    floored = variance <= dust(own)
    wider = np.where(within > dust(widest), within, np.where(total > dust(widest, MEAN_DIGITS), total, 1.0))
    return np.where(floored, wider, variance), floored


def dust(mean: Array, share: float = ROUNDING) -> Array:
    """Variance that rounding alone can give to numbers of this size; to means of them, with MEAN_DIGITS."""
    return np.maximum((share * np.abs(mean)) ** 2, SMALLEST)


def overall_mean(n: Array, mean: Array) -> Array:
    """Mean over all classes, relative to the mean of one, so that equal means give exactly that."""
    whole = n.sum(1, keepdims=True)
    start = np.take_along_axis(mean, (n > 0).argmax(1)[:, None], 1) if n.shape[1] else np.zeros_like(whole)
    apart = (n * (mean - start)).sum(1, keepdims=True)
    level: Array = start + np.divide(apart, whole, out=np.zeros_like(whole), where=whole > 0)
    return level
