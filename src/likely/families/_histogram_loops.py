"""Compiled loops over the cells of a histogram: edges of bins, and the weight and mean of each bin.

`histogram` has the array versions, which give the same numbers to the last digit.
"""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import ComposedKernel, piece

INFINITY = 0x7FF0000000000000  # the key of infinity
SIGN = -(1 << 63)


@piece
def ends_of_cells(keys, level, low, high):  # type: ignore[no-untyped-def]
    """Lowest and highest number of each cell."""
    low_bits, high_bits = low.view(np.int64), high.view(np.int64)
    for i in range(len(keys)):
        for k in range(2):
            key = keys[i] << level if k == 0 else ((keys[i] + 1) << level) - 1
            key = min(max(key, -INFINITY + 1), INFINITY - 1)
            key = SIGN - key if key < 0 else key
            if k == 0:
                low_bits[i] = key
            else:
                high_bits[i] = key


@ComposedKernel
def quantile_edges(seen, keys, level, bins, edges):  # type: ignore[no-untyped-def]
    """Edges of at most so many bins of about equal weight; returns their number."""
    classes, cells = seen.shape
    before, low, high = np.zeros(cells + 1), np.empty(cells), np.empty(cells)
    ends_of_cells(keys, level, low, high)
    for i in range(cells):
        mass = 0.0
        for c in range(classes):
            mass += seen[c, i]
        before[i + 1] = before[i] + mass
    # Responsibilities sum to the weight only up to rounding, which must not move an edge.
    total, made, place, last = before[cells], 0, 0, 0
    for k in range(1, bins if cells > bins else cells):
        cell = k
        if cells > bins:
            wanted = total * k / bins
            while place <= cells and before[place] - 1e-12 * total <= wanted:
                place += 1
            cell = place - 1
        if cell <= last:
            continue
        last, below, above = cell, high[cell - 1], low[cell]
        middle = below / 2 + above / 2
        edges[made] = middle if below < middle <= above else above
        made += 1
    return made


@ComposedKernel
def bin_cells(seen, keys, level, coarse, edges, binned, means):  # type: ignore[no-untyped-def]
    """Weight of each bin, bins × classes, of zeros at first, and the mean of its numbers; the midpoint of an empty one.

    The numbers are rounded to cells of the level `coarse`, if that is coarser.
    """
    classes, cells = seen.shape
    bins = len(edges) + 1
    low, high, place, mass = np.empty(cells), np.empty(cells), np.empty(cells, np.int64), np.zeros(cells)
    ends_of_cells(keys, level, low, high)
    b = 0
    for i in range(cells):
        middle = low[i] / 2 + high[i] / 2 if level else low[i]
        while b < bins - 1 and edges[b] <= middle:
            b += 1
        place[i] = b
        for c in range(classes):
            binned[b, c] += seen[c, i]
            mass[i] += seen[c, i]
    if coarse > level:
        ends_of_cells(keys >> (coarse - level), coarse, low, high)
    scale, weight = 1e-300, np.zeros(bins)
    for i in range(cells):
        low[i] = low[i] / 2 + high[i] / 2 if max(coarse, level) else low[i]
        scale = max(scale, abs(low[i]))
    for b in range(bins):
        means[b] = 0.0
    for i in range(cells):
        weight[place[i]] += mass[i]
        means[place[i]] += mass[i] * (low[i] / scale)
    for b in range(bins):
        if weight[b] > 0 or bins == 1:
            means[b] = means[b] / max(weight[b], 1e-300) * scale
        else:
            means[b] = edges[max(b - 1, 0)] / 2 + edges[min(b, bins - 2)] / 2

