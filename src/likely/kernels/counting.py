"""Kernels for counting into sufficient statistics and for scoring with the likelihood forms.

Each takes plain arrays and writes into the last ones. `kernel.py` explains when they are interpreted and when compiled.
"""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import Kernel


@Kernel
def count_moments(x, y, w, n, mean, spread):  # type: ignore[no-untyped-def]
    """Weight, mean and summed squared deviation of every column in every class, merged chunk by chunk.

    Each chunk is read twice, first for its means and then for the deviations from them, and merged pairwise: raw sums
    of squares would lose every digit of a timestamp's variance. Both passes work on differences from the mean so far, or
    from the first number of a class: a constant has a sum of squared deviations of exactly zero, and small deviations
    beside a large mean keep their digits.
    """
    rows, width = x.shape
    groups = n.shape[0]
    lacking = np.zeros(groups, np.int64)  # columns without a number in the class so far
    for c in range(groups):
        for j in range(width):
            lacking[c] += n[c, j] == 0.0
    part_n = np.zeros((groups, width))
    part_mean = np.zeros((groups, width))
    part_spread = np.zeros((groups, width))
    for start in range(0, rows, 512):
        stop = min(rows, start + 512)
        part_n[:] = 0.0
        part_mean[:] = 0.0
        part_spread[:] = 0.0
        for i in range(start, stop):
            c = y[i]
            weight = w[i]
            if c >= 0 and weight > 0.0:
                if lacking[c] > 0:
                    for j in range(width):
                        v = x[i, j]
                        if v == v and n[c, j] == 0.0 and part_n[c, j] == 0.0:
                            mean[c, j] = v
                            lacking[c] -= 1
                for j in range(width):
                    v = x[i, j]
                    seen = v == v
                    part_n[c, j] += weight if seen else 0.0
                    part_mean[c, j] += weight * (v - mean[c, j]) if seen else 0.0
        for c in range(groups):
            for j in range(width):
                part_mean[c, j] = part_mean[c, j] / part_n[c, j] if part_n[c, j] > 0.0 else 0.0
        for i in range(start, stop):
            c = y[i]
            weight = w[i]
            if c >= 0 and weight > 0.0:
                for j in range(width):
                    v = x[i, j]
                    d = v - mean[c, j] - part_mean[c, j]
                    part_spread[c, j] += weight * d * d if v == v else 0.0
        for c in range(groups):
            for j in range(width):
                more = part_n[c, j]
                if more > 0.0:
                    total = n[c, j] + more
                    d = part_mean[c, j]
                    mean[c, j] += d * (more / total)
                    spread[c, j] += part_spread[c, j] + d * d * (n[c, j] * (more / total))
                    n[c, j] = total


@Kernel
def count_codes(codes, low, size, first, y, w, out):  # type: ignore[no-untyped-def]
    """Count the values of every column by class, with row weights; returns the number of cells outside the tables.

    `out` has a row for each class, with the values of column j from first[j] on.
    """
    rows, width = codes.shape
    outside = 0
    for i in range(rows):
        c = y[i]
        weight = w[i]
        if c >= 0 and weight > 0.0:
            for j in range(width):
                v = codes[i, j] - low[j]
                if 0 <= v < size[j]:
                    out[c, first[j] + v] += weight
                else:
                    outside += 1
    return outside


@Kernel
def count_column(codes, low, size, y, w, out):  # type: ignore[no-untyped-def]
    """The same for one column in its own array; `out` is classes × values."""
    outside = 0
    for i in range(codes.shape[0]):
        c = y[i]
        weight = w[i]
        if c >= 0 and weight > 0.0:
            v = codes[i] - low
            if 0 <= v < size:
                out[c, v] += weight
            else:
                outside += 1
    return outside


@Kernel
def interleave(out, j, first, second, third, fourth):  # type: ignore[no-untyped-def]
    """Interleave four columns in a matrix from column j on: one by one, every cache line would be loaded four times."""
    for i in range(out.shape[0]):
        out[i, j] = first[i]
        out[i, j + 1] = second[i]
        out[i, j + 2] = third[i]
        out[i, j + 3] = fourth[i]


@Kernel
def score_lookup(codes, low, size, start, place, outside, table, out):  # type: ignore[no-untyped-def]
    """Add to each class the log probability of the value in every column.

    The table row of a value is place[start[j] + code - low[j]]; codes beyond have the row outside[j]. The last row of the
    table is zero.
    """
    rows, width = codes.shape
    classes = out.shape[1]
    line = np.empty(width + 1, np.int64)
    line[width] = table.shape[0] - 1
    for i in range(rows):
        for j in range(width):
            v = codes[i, j] - low[j]
            line[j] = place[start[j] + v] if 0 <= v < size[j] else outside[j]
        for j in range(0, width, 2):  # two columns at a time: fewer loads and stores of the sums
            one = line[j]
            two = line[j + 1]
            for c in range(classes):
                out[i, c] = out[i, c] + table[one, c] + table[two, c]


@Kernel
def score_cells(codes, low, size, start, place, outside, member, end, shift, maps, table, out):  # type: ignore[no-untyped-def]
    """Add to each class the terms of interaction tables: the codes of the columns add up to a cell.

    Codes are found as in `score_lookup`. Table t has the columns member[end[t - 1]:end[t]]; code v of its m-th member adds
    maps[shift[m] + v] to the cell; a cell below zero contributes nothing.
    """
    rows, width = codes.shape
    classes = out.shape[1]
    line = np.empty(width, np.int64)
    for i in range(rows):
        for j in range(width):
            v = codes[i, j] - low[j]
            line[j] = place[start[j] + v] if 0 <= v < size[j] else outside[j]
        m = 0
        for t in range(end.shape[0]):
            cell = 0
            while m < end[t]:
                cell += maps[shift[m] + line[member[m]]]
                m += 1
            if cell >= 0:
                for c in range(classes):
                    out[i, c] += table[cell, c]


@Kernel
def find_bins(x, edges, start, missing, out):  # type: ignore[no-untyped-def]
    """The bin of every number: how many of its column's edges, edges[start[j]:start[j + 1]], are not above it."""
    rows, width = x.shape
    number = np.empty(256)
    place = np.empty(256, np.int32)
    for first in range(0, rows, 256):  # every step of the search for 256 numbers at a time, without a branch
        some = min(256, rows - first)
        for j in range(width):
            for i in range(some):
                number[i] = x[first + i, j]
                place[i] = start[j]
            left = start[j + 1] - start[j]
            while left > 1:
                half = np.int32(left >> 1)
                for i in range(some):
                    place[i] += half if edges[np.uint32(place[i] + half - 1)] <= number[i] else np.int32(0)
                left -= half
            for i in range(some):
                found = place[i] - start[j] + (left > 0 and edges[place[i]] <= number[i])
                out[first + i, j] = found if number[i] == number[i] else missing[j]


@Kernel
def score_parabola(x, mean, curve, peak, out):  # type: ignore[no-untyped-def]
    """Add to each class the log density of the number in every column: peak + curve * (x - mean)**2."""
    rows, width = x.shape
    classes = out.shape[1]
    transposed = np.empty((width, 128))  # a transposed block of rows: the innermost loop then runs along them
    total = np.empty(128)
    for start in range(0, rows, 128):
        some = min(128, rows - start)
        for i in range(some):
            for j in range(width):
                transposed[j, i] = x[start + i, j]
        for c in range(classes):
            for i in range(some):
                total[i] = out[start + i, c]
            for j in range(width):
                level = mean[j, c]
                bend = curve[j, c]
                top = peak[j, c]
                for i in range(some):
                    v = transposed[j, i]
                    d = v - level
                    total[i] += top + bend * (d * d) if v == v else 0.0
            for i in range(some):
                out[start + i, c] = total[i]


@Kernel
def score_line(x, base, slope, level, start, out):  # type: ignore[no-untyped-def]
    """Add to each class, block by block, the sum of base + level + x * slope over the block's columns."""
    rows = x.shape[0]
    classes = out.shape[1]
    term = np.zeros(classes)
    for i in range(rows):
        for b in range(start.shape[0] - 1):
            term[:] = 0.0
            for j in range(start[b], start[b + 1]):
                v = x[i, j]
                if v == v:
                    for c in range(classes):
                        term[c] += base[i, j] + level[j, c]
                        if v != 0.0:  # a count of zero contributes nothing, even where the slope is minus infinity
                            term[c] += v * slope[j, c]
            for c in range(classes):
                out[i, c] += term[c]
