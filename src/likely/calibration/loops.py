"""Compiled loops over interaction tables; `interaction_cuts` and `interaction_tables` have the array versions."""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import Kernel, ReorderedKernel


@Kernel
def group_numbers(codes, weights, sizes, known, groups):  # type: ignore[no-untyped-def]
    """Bins merged to at most so many of about equal weight, for each size, and last a missing cell by itself.

    `known` are the codes with one code for everything that is not a bin.
    """
    values = groups.shape[1] - 1
    mass, total = np.zeros(values), 0.0
    for r in range(len(codes)):
        known[r] = min(codes[r], values)
        if codes[r] < values:
            mass[codes[r]] += weights[r]
    for v in range(values):
        total += mass[v]
    for k in range(len(sizes)):
        group, before, last = -1, 0.0, -1
        for v in range(values):
            before += mass[v]
            place = min(int((before - mass[v] / 2) / max(total, 1e-300) * sizes[k]), sizes[k] - 1)
            if place != last or values <= sizes[k]:
                group, last = group + 1, place
            groups[k, v] = group
        groups[k, values] = group + 1


@Kernel
def label_loss(base, evidence, weight, labels, row_weights):  # type: ignore[no-untyped-def]
    """Weighted log loss of the labels at scores base + weight * evidence."""
    rows, classes = base.shape
    total = 0.0
    for r in range(rows):
        top = -np.inf
        for c in range(classes):
            top = max(top, base[r, c] + weight * evidence[r, c])
        whole = 0.0
        for c in range(classes):
            whole += np.exp(base[r, c] + weight * evidence[r, c] - top)
        own = labels[r]
        total += row_weights[r] * (np.log(whole) + top - (base[r, own] + weight * evidence[r, own]))
    return total


@Kernel
def add_residuals(codes, cells, size, residuals, sums):  # type: ignore[no-untyped-def]
    """Cumulative sums of residuals and their squares over the narrow bins: 2 × (bins + 1) × (cells × classes).

    Cells are those of the other columns; rows without the number are skipped.
    """
    values, classes = sums.shape[1] - 1, residuals.shape[1] // 2
    for r in range(len(codes)):
        v = codes[r]
        if v < values:
            place = cells[r] * classes
            for c in range(classes):
                sums[0, v + 1, place + c] += residuals[r, c]
                sums[1, v + 1, place + c] += residuals[r, classes + c]
    for k in range(2):
        for v in range(values):
            for j in range(size * classes):
                sums[k, v + 1, j] += sums[k, v, j]


@ReorderedKernel
def cut_bins(sums, ridge, price, parts, gains, cuts):  # type: ignore[no-untyped-def]
    """Cuts of a number, greedily by gain, while a cut gains more than its price; returns their number.

    `parts` (4 × one more than cuts, zeros) and `gains` are scratch memory: start, end, best cut and whether that is known.
    """
    values, width = sums.shape[1] - 1, sums.shape[2]
    most = len(cuts)
    parts[1, 0] = values
    for made in range(most):
        for part in range(made + 1):
            if parts[3, part]:
                continue
            a, b, best_gain, place = parts[0, part], parts[1, part], -np.inf, 0
            for i in range(a + 1, b):
                gained = 0.0
                for j in range(width):
                    middle, middle_square = sums[0, i, j], sums[1, i, j]
                    d, v = (middle - sums[0, a, j]) ** 2, middle_square - sums[1, a, j]
                    s = 1.0 / (v + ridge)
                    gained += ((d - v) - 0.5 * d * v * s) * s
                    d, v = (sums[0, b, j] - middle) ** 2, sums[1, b, j] - middle_square
                    s = 1.0 / (v + ridge)
                    gained += ((d - v) - 0.5 * d * v * s) * s
                if gained > best_gain:
                    best_gain, place = gained, i
            for j in range(width):
                d, v = (sums[0, b, j] - sums[0, a, j]) ** 2, sums[1, b, j] - sums[1, a, j]
                s = 1.0 / (v + ridge)
                best_gain -= ((d - v) - 0.5 * d * v * s) * s
            gains[part], parts[2, part], parts[3, part] = best_gain, place, 1
        best = 0
        for part in range(made + 1):
            if gains[part] > gains[best]:
                best = part
        if gains[best] <= price:
            return made
        at = parts[2, best]
        cuts[made] = at
        parts[0, made + 1], parts[1, made + 1], parts[1, best], parts[3, best] = at, parts[1, best], at, 0
    return most
