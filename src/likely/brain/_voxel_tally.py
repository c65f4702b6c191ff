"""The sufficient statistics of the searchlight: (n, mean, spread) of every voxel in every part of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.brain import _voxel_loops
from likely.brain._dataset import Array, Codes, Volumes
from likely.errors import UsageError
from likely.families.base import SHARED, dust, wider_variance
from likely.families.statistics import Moments
from likely.kernels import counting
from likely.kernels.kernel import LARGE
from likely.kernels.parallel import in_parallel

SLAB = 1024  # voxels that are counted at a time

__all__ = ["SLAB", "VoxelTally", "check_tie", "tally_blocks", "tally_runs", "tally_volumes", "variances"]


@dataclass(frozen=True, eq=False)
class VoxelTally:
    """Statistics of parts, each of one run and one class: whole classes of a run, or blocks of volumes.

    Training statistics are the sum of the parts of all other runs. Nothing is subtracted, so no digit is lost.
    """

    weight: Array  # parts
    mean: Array  # voxels × parts
    spread: Array  # voxels × parts
    run: Codes  # parts
    label: Codes  # parts
    part: Codes  # of every volume
    classes: int

    def counts(self, left_out: tuple[int, ...], label: Codes | None = None) -> Array:
        """How many volumes each class has in all runs but those left out."""
        label, keep = self.label if label is None else label, self._kept(left_out)
        return np.bincount(label[keep], self.weight[keep], self.classes).astype(np.float64)

    def training(self, left_out: tuple[int, ...], label: Codes | None = None) -> Moments:
        """Statistics of voxels × classes over all runs but those left out; `label` may be another label of each part."""
        label = self.label if label is None else label
        group = np.where(self._kept(left_out), label, -1)
        shape = (len(self.mean), self.classes)
        mean, spread = np.empty(shape), np.empty(shape)
        _voxel_loops.merge_parts(self.mean, self.spread, self.weight, group, mean, spread)
        return Moments(np.broadcast_to(self.counts(left_out, label), shape), mean, spread)

    def _kept(self, left_out: tuple[int, ...]) -> NDArray[np.bool_]:
        keep = np.ones(len(self.run), bool)
        for run in left_out:
            keep &= self.run != run
        return keep


def tally_runs(volumes: Volumes) -> VoxelTally:
    """One part for each class of each run."""
    return _tally(volumes, volumes.runs * len(volumes.classes) + volumes.labels)


def tally_blocks(volumes: Volumes) -> VoxelTally:
    """One part for each block: volumes of one run and label that follow one another."""
    edge = (np.diff(volumes.runs) != 0) | (np.diff(volumes.labels) != 0) | (np.diff(volumes.rows) != 1)
    return _tally(volumes, np.concatenate([[0], np.cumsum(edge)]))


def tally_volumes(volumes: Volumes) -> VoxelTally:
    """One part for each volume."""
    return _tally(volumes, np.arange(len(volumes.rows)))


def _tally(volumes: Volumes, codes: Codes) -> VoxelTally:
    _, first, part = np.unique(codes, return_index=True, return_inverse=True)
    part = part.astype(np.int64)
    ones, parts, width = np.ones(len(part)), len(first), volumes.n_voxels
    mean, spread = np.empty((width, parts)), np.empty((width, parts))

    def count(slab: tuple[int, int]) -> None:
        x = np.ascontiguousarray(volumes.X[volumes.rows, slab[0] : slab[1]], np.float64)
        n, middle, square = (np.zeros((parts, x.shape[1])) for _ in range(3))
        counting.count_moments(x, part, ones, n, middle, square)
        mean[slab[0] : slab[1]], spread[slab[0] : slab[1]] = middle.T, square.T

    if len(part) * width > LARGE:
        counting.count_moments.prepare()
    in_parallel(count, [(a, min(a + SLAB, width)) for a in range(0, width, SLAB)])
    weight = np.bincount(part, minlength=parts).astype(np.float64)
    return VoxelTally(weight, mean, spread, volumes.runs[first], volumes.labels[first], part, len(volumes.classes))


def check_tie(tie: str | None) -> None:
    """Refuse a tying that is not known."""
    if tie not in SHARED:
        raise UsageError(f"tie={tie!r} is not known: choose None, 'class', 'column' or 'both'")


def variances(moments: Moments, tie: str | None) -> Array:
    """Maximum-likelihood variances of voxels × classes, shared as `tie` specifies, and never zero.

    Where a class does not vary, the variance is that within all classes, else that of all volumes, else 1: a voxel that is
    constant contributes the same to every class.
    """
    axes = SHARED[tie]
    spread, n = moments.spread, moments.n
    if axes:
        spread = np.broadcast_to(spread.sum(axes, keepdims=True), moments.spread.shape)
        n = np.broadcast_to(n.sum(axes, keepdims=True), moments.n.shape)
    variance = np.divide(spread, n, out=np.zeros(spread.shape), where=n > 0)
    constant = variance <= dust(np.abs(moments.mean).max(axes, keepdims=True, initial=0.0))
    if constant.any():
        variance = np.where(constant, wider_variance(moments.mean, moments.n, moments.spread), variance)
    return variance


def log_frequencies(counts: Array, uniform: bool) -> Array:
    """The log prior of each class: its frequency among the training volumes, or the same for all; -inf where it has none."""
    share = (counts > 0).astype(float) if uniform else counts
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(share / share.sum()))


