"""Compiled loops of the second stage; `interaction_cuts`, `interaction_tables` and `weight_fit` have the array versions."""

from __future__ import annotations

import math

import numpy as np

from likely.kernels.kernel import Kernel, ReorderedKernel

BLOCK = 128  # rows
# Of the logarithm of double precision (Sun's fdlibm): bits of √½ and of 2⁵², the exponent's bits, and coefficients.
ROOT_HALF, WHOLE_BITS = np.uint64(0x3FE6A09E667F3BCD), np.uint64(0x4330000000000000)
MANTISSA, EXPONENT_BIAS, WHOLE, LN2 = np.uint64(52), np.uint64(2048 << 52), 2.0**52 + 2048.0, math.log(2.0)
L1, L2, L3, L4 = 0.6666666666666735130, 0.3999999999940941908, 0.2857142874366239149, 0.2222219843214978396
L5, L6, L7 = 0.1818357216161805012, 0.1531383769920937332, 0.1479819860511658591


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


@ReorderedKernel
def add_gains(probabilities, labels, weights, left, cells, tables, shrinks, own, rest, x, bits, found):  # type: ignore[no-untyped-def]
    """Sums of `_gains` of each table; `probabilities` are classes × rows.

    The rows are handled in blocks, so that the innermost loops are long and use several numbers at a time. Scratch memory for
    a block: `own` and `rest` (classes ×), `x` (4 ×) and `bits`, which are the same bits as integers.
    """
    classes, rows = probabilities.shape
    block = own.shape[1]
    ratio, exponent, mine, others, ratio_bits, exponent_bits = x[0], x[1], x[2], x[3], bits[0], bits[1]
    blocks = (rows + block - 1) // block
    for k in range(len(tables) * blocks):
        table, a = k // blocks, k % blocks * block
        n = min(block, rows - a)
        some, y, w, gone = cells[a : a + n], labels[a : a + n], weights[a : a + n], left[a : a + n]
        for i in range(n):
            cell = some[i]
            for c in range(classes):
                own[c, i], rest[c, i] = tables[table, 0, cell, c], tables[table, 1, cell, c]
            own[y[i], i] = max(own[y[i], i] - gone[i], 0.0)
        for c in range(classes):
            p, left_over = probabilities[c, a : a + n], rest[c]
            for i in range(n):
                left_over[i] = max(left_over[i] - gone[i] * p[i], 0.0)
        for s in range(len(shrinks)):
            shrink = shrinks[s]
            for i in range(n):
                ratio[i], mine[i], others[i] = 0.0, own[y[i], i] + shrink, rest[y[i], i] + shrink
            for c in range(0, classes - 1, 2):  # two quotients by one division
                p, over, under = probabilities[c, a : a + n], own[c], rest[c]
                q, over_too, under_too = probabilities[c + 1, a : a + n], own[c + 1], rest[c + 1]
                for i in range(n):
                    d, e = under[i] + shrink, under_too[i] + shrink
                    ratio[i] += (p[i] * (over[i] + shrink) * e + q[i] * (over_too[i] + shrink) * d) / (d * e)
            if classes % 2:
                p, over, under = probabilities[classes - 1, a : a + n], own[classes - 1], rest[classes - 1]
                for i in range(n):
                    ratio[i] += p[i] * (over[i] + shrink) / (under[i] + shrink)
            for i in range(n):
                ratio[i] = mine[i] / (others[i] * ratio[i])
            for i in range(n):  # the logarithm up to the last digits: a power of two and a number near 1
                power = (ratio_bits[i] - ROOT_HALF + EXPONENT_BIAS) >> MANTISSA
                exponent_bits[i] = power | WHOLE_BITS
                ratio_bits[i] = ratio_bits[i] + EXPONENT_BIAS - (power << MANTISSA)
            for i in range(n):  # a loop of its own: reordered with the product below, digits would be lost
                exponent[i] -= WHOLE
            total, squared = 0.0, 0.0
            for i in range(n):
                f = ratio[i] - 1.0
                h = f / (2.0 + f)
                z, half = h * h, 0.5 * f * f
                g = z * (L1 + z * (L2 + z * (L3 + z * (L4 + z * (L5 + z * (L6 + z * L7))))))
                each = exponent[i] * LN2 + (f - (half - h * (half + g)))
                total += w[i] * each
                squared += w[i] * each * each
            found[table, 0, s] += total
            found[table, 1, s] += squared


@ReorderedKernel
def add_rows(evidence, base, labels, row_weights, start, weight, bias, logits, shares, single, centred, gradient, hessian):  # type: ignore[no-untyped-def]
    """Loss of the rows from `start` on; their gradient, and the part of the Hessian that has biases, are added to those given.

    `evidence` is terms × classes × rows, `base` classes × rows. `centred` becomes the evidence minus its mean under the
    probabilities, times the root of the probability: its products are the rest of the Hessian. Scratch memory: `logits` and
    `shares` (one more than classes × rows), and `single` (twice that plus one × rows), which is of single precision.
    """
    terms, classes, n = centred.shape
    stop = start + n  # contiguous slices: the loops over rows use several numbers at a time
    y, w = labels[start:stop], row_weights[start:stop]
    top, whole, mean = logits[classes], shares[classes], single[2 * classes]
    for r in range(n):
        top[r], whole[r] = -math.inf, 0.0
    for c in range(classes):
        score, first = logits[c], base[c, start:stop]
        for r in range(n):
            score[r] = first[r] + bias[c]
        for t in range(terms):
            factor, each = weight[t], evidence[t, c, start:stop]
            if factor != 0.0:
                for r in range(n):
                    score[r] += factor * each[r]
        for r in range(n):
            top[r] = max(top[r], score[r])
    loss = 0.0
    for r in range(n):
        loss += w[r] * (top[r] - logits[y[r], r])
    for c in range(classes):
        score, share = logits[c], shares[c]
        for r in range(n):
            share[r] = math.exp(score[r] - top[r])
            whole[r] += share[r]
    for r in range(n):
        loss += w[r] * math.log(whole[r])
    for c in range(classes):
        share, residual, probability, root, total = shares[c], logits[c], single[c], single[classes + c], 0.0
        for r in range(n):
            share[r] /= whole[r]
            probability[r] = share[r]
            residual[r] = share[r] * w[r]
            root[r] = math.sqrt(residual[r])
            total += residual[r]
        hessian[terms + c, terms + c] += total
    for c in range(classes):
        for d in range(classes):
            one, other, total = logits[c], shares[d], 0.0
            for r in range(n):
                total += one[r] * other[r]
            hessian[terms + c, terms + d] -= total
    for r in range(n):
        logits[y[r], r] -= w[r]
    for c in range(classes):
        residual, total = logits[c], 0.0
        for r in range(n):
            total += residual[r]
        gradient[terms + c] += total
    for t in range(terms):
        for r in range(n):
            mean[r] = 0.0
        for c in range(classes):
            each, probability = evidence[t, c, start:stop], single[c]
            for r in range(n):
                mean[r] += each[r] * probability[r]
        slope = 0.0
        for c in range(classes):
            each, root, residual, out, total = evidence[t, c, start:stop], single[classes + c], logits[c], centred[t, c], 0.0
            for r in range(n):
                out[r] = (each[r] - mean[r]) * root[r]
                total += out[r] * root[r]
                slope += each[r] * residual[r]
            hessian[t, terms + c] += total
        gradient[t] += slope
    return loss
