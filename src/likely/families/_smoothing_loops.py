"""Compiled loops that score every bandwidth and pseudocount of a column by leave-one-out.

`smoothing_choice` has the same formulas over arrays, for tables with few columns. Counts are sets × classes × values here, so
that the innermost loops run along the values. Exponentials and logarithms are most of the work, and those of the standard
library are called one by one; polynomials that the compiler vectorises replace them. That of the exponential is exact but for
the last digit. That of the logarithm is in single precision, with an error below 2e-7: only the choice between candidates
depends on it.
"""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import ComposedKernel, Kernel, piece

HALF = np.int32(0x3F3504F3)  # the bits of sqrt(1/2): mantissas are taken from there up to sqrt(2)
MANTISSA = np.int32(0x7FFFFF)
ONE, LN2 = np.float32(1.0), np.float32(0.6931471805599453)
# The minimax polynomial of (log(1 + f) - f + f²/2) / f³ for f from sqrt(1/2) - 1 to sqrt(2) - 1, highest power first.
P0, P1, P2 = np.float32(7.0376836292e-2), np.float32(-1.1514610310e-1), np.float32(1.1676998740e-1)
P3, P4, P5 = np.float32(-1.2420140846e-1), np.float32(1.4249322787e-1), np.float32(-1.6668057665e-1)
P6, P7, P8 = np.float32(2.0000714765e-1), np.float32(-2.4999993993e-1), np.float32(3.3333331174e-1)
MINUS_HALF = np.float32(-0.5)
# The series of exp(t) for t from -0.4 to 0; its 16th power is the kernel up to 3.5 bandwidths away.
E2, E3, E4, E5, E6, E7 = 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040
E8, E9, E10, E11, E12, E13 = 1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800, 1 / 479001600, 1 / 6227020800
# log 2 in two parts, the first with trailing zeros, and the number whose sum with a small one rounds that to an integer.
LN2_HIGH, LN2_LOW, ROUNDING = 6.93147180369123816490e-01, 1.90821492927058770002e-10, 6755399441055744.0
OPEN = 32  # distinct counts whose cells are still being collected
MANY = 1e7  # rows: beyond, the product of four factors could overflow single precision
NARROWEST = 1e-3  # of the overall standard deviation: minimum of a class


@Kernel
def standardise(seen, centres, lines, totals, ranks, x):  # type: ignore[no-untyped-def]
    """Mid-ranks of the bins, and the numbers that represent them with mean 0 and variance 1.

    Also fills the counts as classes × values, and the rows of each class (added to zeros). Returns False for constant numbers.
    """
    values, classes = seen.shape
    mass = np.zeros(values)
    for v in range(values):
        for c in range(classes):
            lines[c, v] = seen[v, c]
            mass[v] += seen[v, c]
            totals[c] += seen[v, c]
    total, scale = 0.0, 1e-300
    for v in range(values):
        ranks[v] = total + mass[v] / 2
        total += mass[v]
    for v in range(len(x)):
        scale = max(scale, abs(centres[v]))
    mean, square = 0.0, 0.0
    for v in range(values):
        ranks[v] /= max(total, 1e-300)
    for v in range(len(x)):
        mean += centres[v] / scale * mass[v]
    mean /= max(total, 1e-300)
    for v in range(len(x)):
        x[v] = centres[v] / scale - mean
        square += x[v] * x[v] * mass[v]
    width = np.sqrt(square / max(total, 1e-300))
    if not (width > 0.0 and np.isfinite(width)):
        return False
    for v in range(len(x)):
        x[v] /= width
    return True


@Kernel
def smooth(sets, ranks, bandwidths, reach, often, own, whole):  # type: ignore[no-untyped-def]
    """Counts smoothed along the ranks by a Gaussian kernel of each bandwidth; a bandwidth of zero keeps them.

    The same with one row of that value and class left out; whole: the rows left in all classes. All pairs of values at one
    distance are handled together, so that the innermost loops are long.
    """
    sizes, classes, values = sets.shape
    lines, near = sets.reshape(sizes * classes, values), np.empty(values)
    for b in range(len(bandwidths)):
        smoothed = often[b].reshape(sizes * classes, values)
        for i in range(sizes * classes):
            for v in range(values):
                smoothed[i, v] = lines[i, v]
        scale = 0.25 / max(bandwidths[b], 1e-300) / np.sqrt(2.0)
        farthest = 0.25 * reach / np.sqrt(2.0)
        for d in range(1, values if bandwidths[b] > 0.0 else 1):
            first, second, within = ranks[: values - d], ranks[d:], 0
            for v in range(values - d):
                a = (second[v] - first[v]) * scale
                t = -a * a
                y = (((((E13 * t + E12) * t + E11) * t + E10) * t + E9) * t + E8) * t + E7
                y = ((((((y * t + E6) * t + E5) * t + E4) * t + E3) * t + E2) * t + 1.0) * t + 1.0
                y *= y
                y *= y
                y *= y
                near[v] = y * y if a <= farthest else 0.0
                within += 1 if a <= farthest else 0
            if not within:
                break
            for i in range(sizes * classes):
                line, out = lines[i], smoothed[i]
                low, high = line[: values - d], line[d:]
                out_low, out_high = out[: values - d], out[d:]
                for v in range(values - d):
                    out_low[v] += near[v] * high[v]
                for v in range(values - d):
                    out_high[v] += near[v] * low[v]
        for k in range(sizes):
            for v in range(values):
                whole[b, k, v] = -1.0
            for c in range(classes):
                for v in range(values):
                    own[b, k, c, v] = max(often[b, k, c, v] - 1.0, 0.0)
                    whole[b, k, v] += often[b, k, c, v]
            for v in range(values):
                whole[b, k, v] = max(whole[b, k, v], 0.0)


@piece
def exponential(exponent, bits, out):  # type: ignore[no-untyped-def]
    """exp of exponents <= 0, which are modified, up to the last digits; 0 below -700. `bits` is scratch memory."""
    whole = bits.view(np.int64)
    for v in range(len(exponent)):
        t = max(exponent[v], -700.0)
        bits[v] = t * (1.0 / LN2_HIGH) + ROUNDING  # the nearest integer, in the low bits
        k = bits[v] - ROUNDING
        t = (t - k * LN2_HIGH) - k * LN2_LOW
        y = (((((E13 * t + E12) * t + E11) * t + E10) * t + E9) * t + E8) * t + E7
        out[v] = ((((((y * t + E6) * t + E5) * t + E4) * t + E3) * t + E2) * t + 1.0) * t + 1.0
    for v in range(len(exponent)):
        whole[v] = (whole[v] + 1023) << 52  # 2 to that power; the sign and all higher bits are shifted out
    for v in range(len(exponent)):
        out[v] = out[v] * bits[v] if exponent[v] >= -700.0 else 0.0


@ComposedKernel
def densities(sets, x, pooled, often, own, whole):  # type: ignore[no-untyped-def]
    """Gaussian densities by class as counts, with all rows and with one row of that value and class left out.

    Each class has its own variance or, pooled, all have one. Densities are scaled so that each value has the average count;
    whole: the rows left in all classes.
    """
    sizes, classes, values = sets.shape
    n, mean, spread = np.zeros(classes), np.zeros(classes), np.zeros(classes)
    exponent, less, bits = np.empty(values), np.empty(values), np.empty(values)
    for s in range(sizes):
        total, spreads = 0.0, 0.0
        for c in range(classes):
            n[c], mean[c], spread[c] = 0.0, 0.0, 0.0
            for v in range(values):
                n[c] += sets[s, c, v]
                mean[c] += sets[s, c, v] * x[v]
            mean[c] /= max(n[c], 1e-300)
            for v in range(values):
                spread[c] += sets[s, c, v] * (x[v] - mean[c]) ** 2
            total += n[c]
            spreads += spread[c]
        for c in range(classes):
            for v in range(values):
                often[s, c, v], own[s, c, v] = 0.0, 0.0
            if n[c] <= 0.0:
                continue
            rest = n[c] - 1.0
            squares, rows = (spreads, total) if pooled else (spread[c], n[c])
            variance = max(squares / rows, NARROWEST**2)
            bend = -0.5 / variance
            for v in range(values):
                exponent[v] = bend * (x[v] - mean[c]) * (x[v] - mean[c])
            exponential(exponent, bits, often[s, c])
            height = n[c] / np.sqrt(variance)
            for v in range(values):
                often[s, c, v] *= height
            if rest <= 0.0:
                continue
            away = 1.0 + 1.0 / rest  # of the mean of the other rows, relative to that of all
            for v in range(values):
                apart = x[v] - mean[c]
                less[v] = max((squares - apart * apart * n[c] / rest) / max(rows - 1.0, 1e-300), NARROWEST**2)
                exponent[v] = -0.5 * (apart * away) * (apart * away) / less[v]
            exponential(exponent, bits, own[s, c])
            for v in range(values):
                own[s, c, v] *= rest / np.sqrt(less[v])
        for v in range(values):
            summed, lost = 0.0, 0.0
            for c in range(classes):
                summed += often[s, c, v]
                lost += (often[s, c, v] - own[s, c, v]) * often[s, c, v]
            scale = total / values / max(summed, 1e-300)
            whole[s, v] = max(scale * (summed - lost / max(summed, 1e-300)), 0.0)
            for c in range(classes):
                often[s, c, v] *= scale
                own[s, c, v] *= scale


@Kernel
def pack(sets, places, counts, shares, alone):  # type: ignore[no-untyped-def]
    """The logarithms that the leave-one-out likelihood of each of the first sets is a sum of, four factors to a logarithm.

    Cells of equal count have one logarithm of their product. `places` are those of the factors, sets × logarithms × 4, among
    classes × values and then values (of all classes), -1 for none (as all are at first; the other arrays are zeros); `shares`
    are their parts of a pseudocount. Returns the greatest number of logarithms of a set; `alone` gets the log likelihood of
    the class frequencies.
    """
    sizes = len(alone)
    _, classes, values = sets.shape
    open_count, open_at, open_used = np.empty(OPEN), np.empty(OPEN, np.int64), np.empty(OPEN, np.int64)
    rows_of, mass, most = np.empty(classes), np.empty(values), 0
    for s in range(sizes):
        total, logs, known = 0.0, 0, 0
        for v in range(values):
            mass[v] = 0.0
        for c in range(classes):
            rows_of[c] = 0.0
            for v in range(values):
                rows_of[c] += sets[s, c, v]
                mass[v] += sets[s, c, v]
            total += rows_of[c]
        for c in range(classes + 1):
            rest = 1.0
            if c < classes:
                rows = rows_of[c]
                rest = (max(rows - 1.0, 0.0) + 0.5) / (max(total - 1.0, 0.0) + 0.5 * classes)
                alone[s] += rows * np.log(rest)
            for v in range(values):
                count = sets[s, c, v] if c < classes else -mass[v]
                if count == 0.0:
                    continue
                i = 0
                while i < known and open_count[i] != count:
                    i += 1
                if i == known or open_used[i] == 4 or total > MANY:
                    if i == known and known < OPEN:
                        known += 1
                    i = min(i, OPEN - 1)
                    open_count[i], open_at[i], open_used[i] = count, logs, 0
                    counts[s, logs] = count
                    logs += 1
                places[s, open_at[i], open_used[i]], shares[s, open_at[i], open_used[i]] = c * values + v, rest
                open_used[i] += 1
        most = max(most, logs)
    return most


@Kernel
def choose(own, whole, n, places, counts, shares, alone, pseudocounts, best, gains):  # type: ignore[no-untyped-def]
    """Shape and pseudocount of the maximum leave-one-out likelihood of each of the first sets, and its gain.

    `best` is the index among shapes × pseudocounts; the other arguments are those of `pack`.
    """
    sizes = len(best)
    shapes, _, classes, values = own.shape
    cells = classes * values
    base, share = np.empty((4, n), np.float32), np.empty((4, n), np.float32)
    x, exponent = np.empty(n, np.float32), np.empty(n, np.int32)
    bits, count = x.view(np.int32), np.empty(n, np.float32)
    for s in range(sizes):
        best[s], gains[s] = 0, -np.inf
        for j in range(n):
            count[j] = counts[s, j]
            for k in range(4):
                share[k, j] = shares[s, j, k]
        for shape in range(shapes):
            by_class, of_all = own[shape, s].reshape(cells), whole[shape, s]
            for j in range(n):
                for k in range(4):
                    at = places[s, j, k]
                    base[k, j] = 1.0
                    if at >= cells:
                        base[k, j] = of_all[at - cells]
                    elif at >= 0:
                        base[k, j] = by_class[at]
            for p in range(len(pseudocounts)):
                pseudo = np.float32(pseudocounts[p])
                for j in range(n):
                    first = (base[0, j] + pseudo * share[0, j]) * (base[1, j] + pseudo * share[1, j])
                    x[j] = first * ((base[2, j] + pseudo * share[2, j]) * (base[3, j] + pseudo * share[3, j]))
                for j in range(n):
                    exponent[j] = (bits[j] - HALF) >> 23
                    bits[j] = ((bits[j] - HALF) & MANTISSA) + HALF
                for j in range(n):
                    f = x[j] - ONE
                    y = (((P0 * f + P1) * f + P2) * f + P3) * f + P4
                    y = (((y * f + P5) * f + P6) * f + P7) * f + P8
                    y = (y * f + MINUS_HALF) * f * f + f
                    x[j] = count[j] * (y + np.float32(exponent[j]) * LN2)
                one, two, three, four = 0.0, 0.0, 0.0, 0.0  # independent sums, for instruction-level parallelism
                for j in range(0, n - 3, 4):
                    one += x[j]
                    two += x[j + 1]
                    three += x[j + 2]
                    four += x[j + 3]
                for j in range(n - n % 4, n):
                    one += x[j]
                score = (one + two) + (three + four) - alone[s]
                if score > gains[s]:
                    best[s], gains[s] = shape * len(pseudocounts) + p, score


@Kernel
def to_tables(often, own, totals, mass, table, left_out, level):  # type: ignore[no-untyped-def]
    """Weight of evidence from counts, classes × values: values × classes, with all rows and leave-one-out, and its level."""
    classes, values = often.shape
    whole = 0.5 * classes
    for c in range(classes):
        whole += totals[c]
    for v in range(values):
        average = 0.0
        for c in range(classes):
            table[v, c] = often[c, v] / (totals[c] + 0.5) + mass
            left_out[v, c] = own[c, v] / (max(totals[c] - 1.0, 0.0) + 0.5) + mass
            average += table[v, c] * ((totals[c] + 0.5) / whole)
        level[v] = np.log(average)
        for c in range(classes):
            table[v, c] = np.log(table[v, c]) - level[v]
            left_out[v, c] = np.log(left_out[v, c]) - level[v]


@Kernel
def without_folds(codes, labels, weights, seen, sets):  # type: ignore[no-untyped-def]
    """Counts without each fold of the rows (`sets` are zeros at first); rows are scaled to the counts, values × classes."""
    folds, classes, values = sets.shape
    total, whole = 0.0, 0.0
    for r in range(len(codes)):
        if codes[r] < values:
            sets[r % folds, labels[r], codes[r]] += weights[r]
            total += weights[r]
    for v in range(values):
        for c in range(classes):
            whole += seen[v, c]
    scale = whole / max(total, 1e-300)
    for f in range(folds):
        for c in range(classes):
            for v in range(values):
                sets[f, c, v] = max(seen[v, c] - sets[f, c, v] * scale, 0.0)


@Kernel
def fill_rows(codes, labels, left, folds, often, own, totals, mass, table, left_out, level, lowest, out):  # type: ignore[no-untyped-def]
    """Evidence of a table for some of the rows, each left out of its own value and class.

    Only the marked folds of the rows are filled; unseen values and missing cells have no evidence. The counts are classes ×
    values.
    """
    values, classes = table.shape
    for r in range(len(codes)):
        if not folds[r % len(folds)]:
            continue
        v, y = codes[r], labels[r]
        if v >= values:
            for c in range(classes):
                out[r, c] = 0.0
            continue
        for c in range(classes):
            out[r, c] = max(table[v, c], lowest)
        if left[r] == 1.0:
            out[r, y] = max(left_out[v, y], lowest)
        else:
            rest = max(often[y, v] - left[r] * (often[y, v] - own[y, v]), 0.0)
            out[r, y] = max(np.log(rest / (max(totals[y] - left[r], 0.0) + 0.5) + mass) - level[v], lowest)
