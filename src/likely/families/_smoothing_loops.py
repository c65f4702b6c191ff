"""Compiled loops that score every bandwidth and pseudocount of a column by leave-one-out.

`smoothing_choice` has the same formulas over arrays, for tables with few columns. Counts are columns × sets × classes ×
values here: a call is for many columns of as many values, and the innermost loops run along the values. Exponentials and
logarithms are most of the work, and those of the standard library are called one by one; polynomials that the compiler
vectorises replace them. That of the exponential is exact but for the last digit. That of the logarithm is in single
precision, with an error below 2e-7: only the choice between candidates depends on it. Scratch memory, views and other shapes
of arrays are made by the caller: compiling those takes longer than compiling the loops.
"""

from __future__ import annotations

import math

import numpy as np

from likely.kernels.kernel import Kernel

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
SQRT2 = math.sqrt(2.0)
NARROWEST = 1e-3  # of the overall standard deviation: minimum of a class


@Kernel
def standardise(seen, centres, lines, totals, mass, ranks, x, varies):  # type: ignore[no-untyped-def]
    """Mid-ranks of the bins of each column, and the numbers that represent them with mean 0 and variance 1.

    Also fills the counts as classes × values, the rows of each class (added to zeros), and whether the numbers vary. Scratch
    memory: `mass` (values).
    """
    columns, values, classes = seen.shape
    numbers = x.shape[1]
    for k in range(columns):
        for v in range(values):
            mass[v] = 0.0
            for c in range(classes):
                lines[k, c, v] = seen[k, v, c]
                mass[v] += seen[k, v, c]
                totals[k, c] += seen[k, v, c]
        total, scale = 0.0, 1e-300
        for v in range(values):
            ranks[k, v] = total + mass[v] / 2
            total += mass[v]
        for v in range(numbers):
            scale = max(scale, abs(centres[k, v]))
        mean, square = 0.0, 0.0
        for v in range(values):
            ranks[k, v] /= max(total, 1e-300)
        for v in range(numbers):
            mean += centres[k, v] / scale * mass[v]
        mean /= max(total, 1e-300)
        for v in range(numbers):
            x[k, v] = centres[k, v] / scale - mean
            square += x[k, v] * x[k, v] * mass[v]
        width = math.sqrt(square / max(total, 1e-300))
        varies[k] = 0.0 < width < math.inf
        for v in range(numbers if varies[k] else 0):
            x[k, v] /= width


@Kernel
def smooth(lines, ranks, bandwidths, reach, near, often, own, whole):  # type: ignore[no-untyped-def]
    """Counts smoothed along the ranks by a Gaussian kernel of each bandwidth; a bandwidth of zero keeps them.

    The same with one row of that value and class left out; whole: the rows left in all classes. Counts are columns × (sets ×
    classes) × values; `near` is scratch memory for the kernel, which columns with equal ranks share. All pairs of values at
    one distance are handled together, so that the innermost loops are long.
    """
    columns, rows, values = lines.shape
    sizes = whole.shape[2]
    classes = rows // sizes
    farthest = 0.25 * reach / SQRT2
    for b in range(len(bandwidths)):
        scale, distances = 0.25 / max(bandwidths[b], 1e-300) / SQRT2, 1
        for k in range(columns):
            for i in range(rows):
                for v in range(values):
                    often[b, k, i, v] = lines[k, i, v]
            known = k > 0
            if known:
                for v in range(values):
                    known = known and ranks[k, v] == ranks[k - 1, v]
            for d in range(1, values if bandwidths[b] > 0.0 and not known else 1):
                within = 0
                for v in range(values - d):
                    a = (ranks[k, v + d] - ranks[k, v]) * scale
                    t = -a * a
                    y = (((((E13 * t + E12) * t + E11) * t + E10) * t + E9) * t + E8) * t + E7
                    y = ((((((y * t + E6) * t + E5) * t + E4) * t + E3) * t + E2) * t + 1.0) * t + 1.0
                    y *= y
                    y *= y
                    y *= y
                    near[d, v] = y * y if a <= farthest else 0.0
                    within += 1 if a <= farthest else 0
                distances = d + 1 if within else d
                if not within:
                    break
            for d in range(1, distances):
                for i in range(rows):
                    for v in range(values - d):
                        often[b, k, i, v] += near[d, v] * lines[k, i, v + d]
                    for v in range(values - d):
                        often[b, k, i, v + d] += near[d, v] * lines[k, i, v]
            for s in range(sizes):
                for v in range(values):
                    whole[b, k, s, v] = -1.0
                for i in range(s * classes, (s + 1) * classes):
                    for v in range(values):
                        own[b, k, i, v] = max(often[b, k, i, v] - 1.0, 0.0)
                        whole[b, k, s, v] += often[b, k, i, v]
                for v in range(values):
                    whole[b, k, s, v] = max(whole[b, k, s, v], 0.0)


@Kernel
def densities(sets, numbers, varies, pooled, moments, exponent, bits, whole_bits, often, own, whole):  # type: ignore[no-untyped-def]
    """Gaussian densities by class as counts, with all rows and with one row of that value and class left out.

    Each class has its own variance or, pooled, all have one. Densities are scaled so that each value has the average count;
    whole: the rows left in all classes. The sets, as many for each column, follow each other; columns that do not vary are
    skipped. Scratch memory: `moments` (3 × classes), `exponent` and `bits` (twice the values), and `whole_bits`, which are the
    same bits as integers.
    """
    sizes, classes, values = sets.shape
    for s in range(sizes):
        column = s * len(numbers) // sizes
        if not varies[column]:
            continue
        x = numbers[column]
        total, spreads = 0.0, 0.0
        for c in range(classes):
            n, mean, spread = 0.0, 0.0, 0.0
            for v in range(values):
                n += sets[s, c, v]
                mean += sets[s, c, v] * x[v]
            mean /= max(n, 1e-300)
            for v in range(values):
                spread += sets[s, c, v] * (x[v] - mean) ** 2
            moments[0, c], moments[1, c], moments[2, c] = n, mean, spread
            total += n
            spreads += spread
        for c in range(classes):
            n, mean = moments[0, c], moments[1, c]
            rest = n - 1.0
            squares, rows = (spreads, total) if pooled else (moments[2, c], n)
            variance = max(squares / max(rows, 1e-300), NARROWEST**2)
            away = (1.0 + 1.0 / max(rest, 1e-300)) ** 2  # of the mean of the other rows, relative to that of all
            for v in range(values):  # all rows, then those without one
                apart = (x[v] - mean) * (x[v] - mean)
                less = max((squares - apart * n / max(rest, 1e-300)) / max(rows - 1.0, 1e-300), NARROWEST**2)
                exponent[v], exponent[values + v] = -0.5 * apart / variance, -0.5 * apart * away / less
                often[s, c, v] = n / math.sqrt(variance)
                own[s, c, v] = max(rest, 0.0) / math.sqrt(less)
            for v in range(2 * values):  # exp of exponents <= 0 up to the last digits; 0 below -700
                t = max(exponent[v], -700.0)
                bits[v] = t * (1.0 / LN2_HIGH) + ROUNDING  # the nearest integer, in the low bits
                k = bits[v] - ROUNDING
                t = (t - k * LN2_HIGH) - k * LN2_LOW
                y = (((((E13 * t + E12) * t + E11) * t + E10) * t + E9) * t + E8) * t + E7
                y = ((((((y * t + E6) * t + E5) * t + E4) * t + E3) * t + E2) * t + 1.0) * t + 1.0
                exponent[v] = y if exponent[v] >= -700.0 else 0.0
            for v in range(2 * values):
                whole_bits[v] = (whole_bits[v] + 1023) << 52  # 2 to that power; the sign and all higher bits are shifted out
            for v in range(values):
                often[s, c, v] *= exponent[v] * bits[v]
                own[s, c, v] *= exponent[values + v] * bits[values + v]
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
def pack(sets, by_count, opened, mass, places, counts, shares, alone, most):  # type: ignore[no-untyped-def]
    """The logarithms that the leave-one-out likelihood of a set is a sum of, for the first sets of each column.

    Up to four cells of equal count have one logarithm of their product. `places` are those of the factors, columns × sets ×
    logarithms × 4, among classes × values and then values (of all classes), -1 for none (as all are at first; the other arrays
    are zeros); `shares` are their parts of a pseudocount. `alone` gets the log likelihood of the class frequencies, `most` the
    greatest number of logarithms of a set of the column. Scratch memory: `by_count` (OPEN), `opened` (2 × OPEN), `mass`
    (classes and values).
    """
    first = alone.shape[1]
    _, _, classes, values = sets.shape
    for j in range(alone.size):
        column, s = j // first, j % first
        total, logs, known = 0.0, 0, 0
        for v in range(classes + values):
            mass[v] = 0.0
        for c in range(classes):
            for v in range(values):
                mass[c] += sets[column, s, c, v]
                mass[classes + v] += sets[column, s, c, v]
            total += mass[c]
        for c in range(classes + 1):
            rest = 1.0
            if c < classes:
                rest = (max(mass[c] - 1.0, 0.0) + 0.5) / (max(total - 1.0, 0.0) + 0.5 * classes)
                alone[column, s] += mass[c] * math.log(rest)
            for v in range(values):
                count = sets[column, s, c, v] if c < classes else -mass[classes + v]
                if count == 0.0:
                    continue
                i = 0
                while i < known and by_count[i] != count:
                    i += 1
                if i == known or opened[1, i] == 4 or total > MANY:
                    if i == known and known < OPEN:
                        known += 1
                    i = min(i, OPEN - 1)
                    by_count[i], opened[0, i], opened[1, i] = count, logs, 0
                    counts[column, s, logs] = count
                    logs += 1
                at, k = opened[0, i], opened[1, i]
                places[column, s, at, k], shares[column, s, at, k] = c * values + v, rest
                opened[1, i] = k + 1
        most[column] = max(most[column], logs)


@Kernel
def choose(own, whole, shapes, most, places, counts, shares, alone, pseudocounts, factors, x, bits, best, gains):  # type: ignore[no-untyped-def]
    """Shape and pseudocount of the maximum leave-one-out likelihood of the first sets of each column, and its gain.

    `own` is shapes × columns × sets × (classes × values), of which each column has the first `shapes`; `best` is the index
    among shapes × pseudocounts; others are those of `pack`. Scratch memory for the most logarithms: `factors` (9 ×), `x` (2 ×)
    and `bits`, which are the same bits as integers.
    """
    chosen, cells = best.shape[1], own.shape[3]
    for i in range(best.size):
        column, s = i // chosen, i % chosen
        n, top, highest = most[column], 0, -math.inf
        for j in range(n):
            factors[8, j] = counts[column, s, j]
            for k in range(4):
                factors[4 + k, j] = shares[column, s, j, k]
        for shape in range(shapes[column]):
            for j in range(n):
                for k in range(4):
                    at = places[column, s, j, k]
                    factors[k, j] = ONE
                    if at >= cells:
                        factors[k, j] = whole[shape, column, s, at - cells]
                    elif at >= 0:
                        factors[k, j] = own[shape, column, s, at]
            for p in range(len(pseudocounts)):
                pseudo = np.float32(pseudocounts[p])
                for j in range(n):
                    first = (factors[0, j] + pseudo * factors[4, j]) * (factors[1, j] + pseudo * factors[5, j])
                    second = (factors[2, j] + pseudo * factors[6, j]) * (factors[3, j] + pseudo * factors[7, j])
                    x[j] = first * second
                for j in range(n):
                    exponent = (bits[j] - HALF) >> 23
                    bits[n + j] = exponent
                    bits[j] = ((bits[j] - HALF) & MANTISSA) + HALF
                for j in range(n):
                    f = x[j] - ONE
                    y = (((P0 * f + P1) * f + P2) * f + P3) * f + P4
                    y = (((y * f + P5) * f + P6) * f + P7) * f + P8
                    y = (y * f + MINUS_HALF) * f * f + f
                    x[j] = factors[8, j] * (y + np.float32(bits[n + j]) * LN2)
                one, two, three, four = 0.0, 0.0, 0.0, 0.0  # independent sums, for instruction-level parallelism
                for j in range(0, n - 3, 4):
                    one += x[j]
                    two += x[j + 1]
                    three += x[j + 2]
                    four += x[j + 3]
                for j in range(n - n % 4, n):
                    one += x[j]
                score = (one + two) + (three + four) - alone[column, s]
                if score > highest:
                    top, highest = shape * len(pseudocounts) + p, score
        best[column, s], gains[column, s] = top, highest


@Kernel
def to_tables(counts, left, place, chosen, totals, masses, tables, levels):  # type: ignore[no-untyped-def]
    """Weight of evidence from counts, shapes × columns × sets × classes × values, for each chosen shape and column, and level.

    `place` is that of the set; tables are values × classes, with all rows and leave-one-out.
    """
    classes, values = counts.shape[3], counts.shape[4]
    for t in range(len(chosen)):
        shape, column, mass, whole = chosen[t, 0], chosen[t, 1], masses[t], 0.5 * classes
        for c in range(classes):
            whole += totals[column, c]
        for v in range(values):
            average = 0.0
            for c in range(classes):
                total = totals[column, c]
                rate = counts[shape, column, place, c, v] / (total + 0.5) + mass
                tables[0, t, v, c] = rate
                tables[1, t, v, c] = left[shape, column, place, c, v] / (max(total - 1.0, 0.0) + 0.5) + mass
                average += rate * ((total + 0.5) / whole)
            level = math.log(average)
            levels[t, v] = level
            for c in range(classes):
                tables[0, t, v, c] = math.log(tables[0, t, v, c]) - level
                tables[1, t, v, c] = math.log(tables[1, t, v, c]) - level


@Kernel
def without_folds(codes, labels, weights, seen, sets):  # type: ignore[no-untyped-def]
    """Counts of each column without each fold of its rows (`sets` are zeros at first), and last all.

    Rows are scaled to the counts, values × classes.
    """
    columns, sizes, classes, values = sets.shape
    folds = sizes - 1
    for k in range(columns):
        total, whole = 0.0, 0.0
        for r in range(codes.shape[1]):
            v = codes[k, r]
            if v < values:
                sets[k, r % folds, labels[r], v] += weights[r]
                total += weights[r]
        for v in range(values):
            for c in range(classes):
                sets[k, folds, c, v] = seen[k, v, c]
                whole += seen[k, v, c]
        scale = whole / max(total, 1e-300)
        for f in range(folds):
            for c in range(classes):
                for v in range(values):
                    sets[k, f, c, v] = max(seen[k, v, c] - sets[k, f, c, v] * scale, 0.0)


@Kernel
def fill_rows(codes, labels, left, which, counts, left_counts, place, chosen, totals, masses, tables, levels, lowest, out):  # type: ignore[no-untyped-def]
    """Evidence of each column for its rows, each left out of its own value and class.

    `which` is the table of each fold of the rows, columns × folds; unseen values and missing cells have no evidence. Others
    are those of `to_tables`.
    """
    _, _, values, classes = tables.shape
    folds = which.shape[1]
    for k in range(len(codes)):
        for r in range(codes.shape[1]):
            v, y, t = codes[k, r], labels[r], which[k, r % folds]
            if v >= values:
                for c in range(classes):
                    out[k, r, c] = 0.0
                continue
            for c in range(classes):
                out[k, r, c] = max(tables[0, t, v, c], lowest)
            if left[r] == 1.0:
                out[k, r, y] = max(tables[1, t, v, y], lowest)
            else:
                often = counts[chosen[t, 0], k, place, y, v]
                rest = max(often - left[r] * (often - left_counts[chosen[t, 0], k, place, y, v]), 0.0)
                rest = rest / (max(totals[k, y] - left[r], 0.0) + 0.5)
                out[k, r, y] = max(math.log(rest + masses[t]) - levels[t, v], lowest)
