"""Compiled loops of the searchlight: statistics of parts merged by class, and scores summed over neighbourhoods."""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import Kernel


@Kernel
def merge_parts(part_mean, part_spread, weight, group, mean, spread):  # type: ignore[no-untyped-def]
    """Mean and summed squared deviation of every voxel in every class, from those of the parts of each class.

    Arrays are voxels × parts in, voxels × classes out; a part whose group is negative is left out. Parts are added, never
    subtracted, and relative to the first part of a class: a constant has a spread of exactly zero.
    """
    voxels, parts = part_mean.shape
    classes = mean.shape[1]
    total = np.zeros(classes)
    first = np.zeros(classes, np.int64)
    for p in range(parts):
        g = group[p]
        if g >= 0 and weight[p] > 0.0:
            if total[g] == 0.0:
                first[g] = p
            total[g] += weight[p]
    for v in range(voxels):
        for g in range(classes):
            mean[v, g] = 0.0
            spread[v, g] = 0.0
        for p in range(parts):
            g = group[p]
            if g >= 0:
                mean[v, g] += weight[p] * (part_mean[v, p] - part_mean[v, first[g]])
        for g in range(classes):
            if total[g] > 0.0:
                mean[v, g] = part_mean[v, first[g]] + mean[v, g] / total[g]
        for p in range(parts):
            g = group[p]
            if g >= 0:
                d = part_mean[v, p] - mean[v, g]
                spread[v, g] += part_spread[v, p] + weight[p] * d * d


@Kernel
def sum_neighbours(values, start, neighbour, out):  # type: ignore[no-untyped-def]
    """The sum over every neighbourhood of one number per voxel and class."""
    classes = values.shape[1]
    for c in range(out.shape[0]):
        for k in range(classes):
            out[c, k] = 0.0
        for p in range(start[c], start[c + 1]):
            v = neighbour[p]
            for k in range(classes):
                out[c, k] += values[v, k]


@Kernel
def count_correct(x, truth, mean, curve, start, neighbour, offset, factor, terms, correct):  # type: ignore[no-untyped-def]
    """Add to `correct` how many of some volumes each neighbourhood classifies correctly.

    The score of class k around voxel c is offset[c, k] - factor[c, k] * sum over v of curve[v, k] * (x[v] - mean[v, k])**2.
    `terms` is scratch space of voxels × (volumes × classes): the inner loops run along it without a gap.
    """
    rows, voxels = x.shape
    classes = mean.shape[1]
    width = rows * classes
    for v in range(voxels):
        for i in range(rows):
            value = x[i, v]
            for k in range(classes):
                d = value - mean[v, k]
                terms[v, i * classes + k] = curve[v, k] * (d * d)
    total = np.empty(width)
    for c in range(correct.shape[0]):
        for j in range(width):
            total[j] = 0.0
        p = start[c]
        while p + 3 <= start[c + 1]:  # three at a time: the sums are read and written a third as often
            u, v, w = neighbour[p], neighbour[p + 1], neighbour[p + 2]
            for j in range(width):
                total[j] += terms[u, j] + terms[v, j] + terms[w, j]
            p += 3
        while p < start[c + 1]:
            v = neighbour[p]
            for j in range(width):
                total[j] += terms[v, j]
            p += 1
        for i in range(rows):
            # Correct unless another class scores higher, or as high and stands first: no branch that depends on the data.
            true = truth[i]
            own = offset[c, true] - factor[c, true] * total[i * classes + true]
            better = 0
            for k in range(classes):
                score = offset[c, k] - factor[c, k] * total[i * classes + k]
                better += (score > own) | ((score == own) & (k < true))
            correct[c] += better == 0
