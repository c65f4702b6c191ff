"""Maps of a model: means, weights and evidence of each voxel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likely.brain._dataset import Array, Volumes, as_table, column, refuse_not_finite, unpacked
from likely.brain._voxel_tally import VoxelTally, check_tie, tally_runs, variances
from likely.errors import DataError, UsageError
from likely.families.statistics import Moments

Maps = dict[Any, Array]


def mean_maps(X: Any, y: Any = None, *, classes: Sequence[Any] | None = None) -> Maps:
    """The mean of every voxel in each class: one map of shape (n_voxels,) per label.

    Parameters
    ----------
    X : Dataset or array of shape (n_volumes, n_voxels)
        The volumes; a Dataset brings its labels along.
    y : array of shape (n_volumes,), default=None
        The label of each volume.
    classes : sequence, default=None
        The labels that are used; all by default.
    """
    names, moments = _moments(X, y, classes)
    return {name: moments.mean[:, k].copy() for k, name in enumerate(names)}


def weight_maps(X: Any, y: Any = None, *, tie: str | None = "class", classes: Sequence[Any] | None = None) -> Maps:
    """The weight of every voxel in the linear discriminant of each class against the others.

    With a variance shared by the classes (`tie` "class" or "both") the log-odds of a class are linear in the voxels; the
    weight is (mean of the class - mean of the other classes) / variance.

    Parameters
    ----------
    X : Dataset or array of shape (n_volumes, n_voxels)
        The volumes; a Dataset brings its labels along.
    y : array of shape (n_volumes,), default=None
        The label of each volume.
    tie : "class" or "both", default="class"
        What shares a variance: the classes, or classes and voxels.
    classes : sequence, default=None
        The labels that are used; all by default.
    """
    if tie not in ("class", "both"):
        raise UsageError(f"tie={tie!r}: only with 'class' or 'both' is the discriminant linear; evidence_maps takes the others")
    names, moments = _moments(X, y, classes)
    precise = 1.0 / variances(moments, tie)
    others = _mean_of_others(moments)
    return {name: (moments.mean[:, k] - others[:, k]) * precise[:, k] for k, name in enumerate(names)}


def evidence_maps(
    X: Any, y: Any = None, *, tie: str | None = None, classes: Sequence[Any] | None = None, volume: Any = None
) -> Maps:
    """The weight of evidence of every voxel for each class against the others, in nats.

    Of a `volume` (array of shape (n_voxels,)): its log-likelihood under the class less the mean of those under the others.
    Without one: the expected value of that where the class is the true one, which is the mean Kullback-Leibler divergence
    of the class from the others; it is never negative, and is 0 where a voxel is the same in all classes.

    Parameters
    ----------
    X : Dataset or array of shape (n_volumes, n_voxels)
        The volumes; a Dataset brings its labels along.
    y : array of shape (n_volumes,), default=None
        The label of each volume.
    tie : None, "class", "column" or "both", default=None
        What shares a variance.
    classes : sequence, default=None
        The labels that are used; all by default.
    volume : array of shape (n_voxels,), default=None
        One volume; without it, the expected evidence.
    """
    check_tie(tie)
    names, moments = _moments(X, y, classes)
    variance = variances(moments, tie)
    k = len(names)
    if volume is None:
        mean = moments.mean
        apart = (mean[:, :, None] - mean[:, None, :]) ** 2
        ratio = variance[:, :, None] / variance[:, None, :]
        divergence = 0.5 * (ratio - 1.0 - np.log(ratio) + apart / variance[:, None, :])
        return {name: divergence[:, i].sum(1) / (k - 1) for i, name in enumerate(names)}
    x = np.asarray(volume, float)
    if x.shape != (len(moments.mean),):
        raise DataError(f"the volume has shape {x.shape}: one value for each of {len(moments.mean)} voxels is needed")
    scores = -0.5 * (np.log(variance) + (x[:, None] - moments.mean) ** 2 / variance)
    total = scores.sum(1)
    return {name: scores[:, i] - (total - scores[:, i]) / (k - 1) for i, name in enumerate(names)}


def _mean_of_others(moments: Moments) -> Array:
    """The mean over the volumes of all other classes."""
    weighted = moments.n * moments.mean
    found: Array = (weighted.sum(1, keepdims=True) - weighted) / (moments.n.sum(1, keepdims=True) - moments.n)
    return found


def _moments(X: Any, y: Any, classes: Sequence[Any] | None) -> tuple[tuple[Any, ...], Moments]:
    """Statistics of voxels × classes over all volumes."""
    X, y, _ = unpacked(X, y, None)
    if y is None:
        raise UsageError("y is needed: a label for each volume")
    X = as_table(X)
    labels = column(y, len(X), "labels")
    rows = np.arange(len(X)) if classes is None else np.flatnonzero(np.isin(labels, list(classes)))
    names, codes = np.unique(labels[rows], return_inverse=True)
    if len(names) < 2:
        raise DataError(f"two classes are needed, and there are {names.tolist()}")
    refuse_not_finite(X, rows)
    one_run = np.zeros(len(rows), np.int64)
    tally: VoxelTally = tally_runs(Volumes(X, rows, codes.astype(np.int64), tuple(names.tolist()), one_run, (0,)))
    return tuple(names.tolist()), tally.training(())
