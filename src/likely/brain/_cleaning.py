"""Detrending and standardising within runs: each run by itself, so that nothing passes from one run to another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.brain._dataset import Array, as_table, column, refuse_not_finite
from likely.errors import DataError, UsageError

MOST_DEGREE = 10
ROUNDING = 1e-12  # share of the level of a voxel below which a standard deviation is rounding


def clean(
    X: Any, groups: Any, *, detrend: bool | int = True, standardize: bool = True, baseline: Any = None
) -> Array:
    """Volumes detrended and standardised within each run.

    Parameters
    ----------
    X : array of shape (n_volumes, n_voxels)
    groups : array of shape (n_volumes,)
        The run of each volume; volumes of a run are in the order of time.
    detrend : bool or int, default=True
        The degree of the polynomial in time that is fitted to each voxel and run and subtracted; True is 1, a line.
    standardize : bool, default=True
        Whether each voxel gets mean 0 and standard deviation 1 in each run. A voxel that is constant there becomes 0.
    baseline : bool array of shape (n_volumes,), default=None
        Volumes whose mean and deviation count for that, such as rest; all volumes of the run without it.

    """
    X = as_table(X)
    refuse_not_finite(X, np.arange(len(X)))
    runs = column(groups, len(X), "runs (groups)")
    degree = int(detrend)
    if not 0 <= degree <= MOST_DEGREE:
        raise UsageError(f"detrend={detrend!r}: a degree from 0 to {MOST_DEGREE} is needed")
    rest = np.ones(len(X), bool) if baseline is None else np.asarray(baseline)
    if rest.shape != (len(X),) or rest.dtype != bool:
        raise DataError(
            f"baseline has shape {rest.shape} and type {rest.dtype}: true or false is needed for each of {len(X)} volumes"
        )
    out = np.array(X, np.float64)
    for run in np.unique(runs).tolist():
        rows = np.flatnonzero(runs == run)
        part = _detrended(out[rows], degree) if degree else out[rows]
        out[rows] = _standardized(part, rest[rows], run) if standardize else part
    return out


def _detrended(x: Array, degree: int) -> Array:
    """What is left of each voxel once a polynomial in time is subtracted; its mean stays."""
    time = np.linspace(-1.0, 1.0, len(x)) if len(x) > 1 else np.zeros(1)
    basis, _ = np.linalg.qr(np.polynomial.legendre.legvander(time, min(degree, len(x) - 1)))
    middle = x.mean(0)
    apart = x - middle
    left: Array = apart - basis @ (basis.T @ apart) + middle
    return left


def _standardized(x: Array, rest: NDArray[np.bool_], run: Any) -> Array:
    if rest.sum() < 2:
        raise DataError(
            f"run {run!r} has {int(rest.sum())} baseline volumes: two are needed to standardise",
            remedy="standardise with all volumes of the run",
        )
    middle, deviation = x[rest].mean(0), x[rest].std(0)
    varies = deviation > ROUNDING * np.abs(middle)
    return np.where(varies, (x - middle) / np.where(varies, deviation, 1.0), 0.0)
