"""What a parent with many values gains by chance: the log-likelihood of tables that have about as many cells as rows.

Of independent columns, one explains the other the better the fewer rows each of its values has: in a single row, completely.
The regret of a multinomial does not cover that where its cells are about as many as the rows.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FEW = 64  # counts up to this are summed one by one
LEAST_EXPECTED = 8.0  # the expected count from which on an expansion in its inverse is as exact
SURE = 4.0  # standard deviations of the gain by chance: thousands of families are tried


def chance_gain(of_parents: Array, of_node: Array) -> float:
    """The most that a node's log-likelihood gains from independent parents, but for chances of about 1 in 30,000.

    Parameters
    ----------
    of_parents, of_node : array
        How many rows have each configuration of the parents, and each value of the node.

    """
    rows, row_times = np.unique(of_parents[of_parents > 0], return_counts=True)
    columns, column_times = np.unique(of_node[of_node > 0], return_counts=True)
    total = float(of_node.sum())
    joint = row_times @ _expected(rows[:, None], columns[None, :], total) @ column_times
    expected = joint - row_times @ (rows * np.log(rows)) - column_times @ (columns * np.log(columns)) + total * np.log(total)
    free = min(float((row_times.sum() - 1) * (column_times.sum() - 1)), total)
    return float(expected + SURE * np.sqrt(free / 2))


def _expected(one: Array, other: Array, total: float) -> Array:
    """E[n log n] of the rows that two values share if they fall independently: binomial, from the rarer of the two."""
    draws = np.round(np.minimum(one, other))
    p = np.minimum(np.maximum(one, other) / total, 1.0)
    mean = draws * p
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.asarray(mean * np.log(mean) + (1 - p) / 2)
        few, rare = draws <= FEW, (draws > FEW) & (mean < LEAST_EXPECTED)
        k, logs = np.arange(FEW + 1.0), _log_factorials()
        if few.any():
            n, q = draws[few][:, None], p[few][:, None]
            ways = logs[n.astype(np.int64)] - logs - logs[np.maximum(n - k, 0).astype(np.int64)]
            # 0 log 0 is 0: a value that every row has
            log_p = ways + k * np.log(q) + np.where(n > k, (n - k) * np.log1p(-q), 0.0)
            found[few] = np.where(k <= n, np.exp(log_p), 0.0) @ _n_log_n()
    if rare.any():
        found[rare] = np.exp(k * np.log(mean[rare][:, None]) - mean[rare][:, None] - logs) @ _n_log_n()
    return found


@cache
def _log_factorials() -> Array:
    return np.concatenate([[0.0], np.log(np.arange(1, FEW + 1)).cumsum()])


@cache
def _n_log_n() -> Array:
    k = np.arange(FEW + 1.0)
    made: Array = k * np.log(np.maximum(k, 1))
    return made
