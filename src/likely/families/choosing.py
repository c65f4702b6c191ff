"""Compiled loops that score every bandwidth and pseudocount of a column by leave-one-out.

`evidence` has the same formulas over whole arrays, for tables with few columns. Logarithms are most of the work; those of the
standard library are called one by one, so a polynomial in single precision stands here that the compiler vectorises. Its
error is below 2e-7 of a logarithm, and only the choice between candidates depends on it.
"""

from __future__ import annotations

import numpy as np

from likely.kernels import Kernel

HALF = np.int32(0x3F3504F3)  # the bits of sqrt(1/2): mantissas are taken from there up to sqrt(2)
MANTISSA = np.int32(0x7FFFFF)
ONE, LN2 = np.float32(1.0), np.float32(0.6931471805599453)
# The minimax polynomial of (log(1 + f) - f + f²/2) / f³ for f from sqrt(1/2) - 1 to sqrt(2) - 1, highest power first.
P0, P1, P2 = np.float32(7.0376836292e-2), np.float32(-1.1514610310e-1), np.float32(1.1676998740e-1)
P3, P4, P5 = np.float32(-1.2420140846e-1), np.float32(1.4249322787e-1), np.float32(-1.6668057665e-1)
P6, P7, P8 = np.float32(2.0000714765e-1), np.float32(-2.4999993993e-1), np.float32(3.3333331174e-1)
MINUS_HALF = np.float32(-0.5)
NARROWEST = 1e-3  # of the overall deviation: the least deviation of a class


@Kernel
def smooth(sets, ranks, bandwidths, reach, often):  # type: ignore[no-untyped-def]
    """Counts, values × anything, smoothed along the ranks by a Gaussian kernel of each bandwidth."""
    values, width = sets.shape
    for b in range(len(bandwidths)):
        for v in range(values):
            for j in range(width):
                often[b, v, j] += sets[v, j]
            for u in range(v + 1, values):
                apart = (ranks[u] - ranks[v]) / bandwidths[b]
                if apart > reach:
                    break
                near = np.exp(-0.5 * apart * apart)
                for j in range(width):
                    often[b, v, j] += near * sets[u, j]
                    often[b, u, j] += near * sets[v, j]


@Kernel
def log_sums(base, share, count, pseudocounts, sums):  # type: ignore[no-untyped-def]
    """The sum of count · log(base + pseudocount · share) over each line, for every pseudocount."""
    lines, n = base.shape
    x, exponent = np.empty(n, np.float32), np.empty(n, np.int32)
    bits = x.view(np.int32)
    for i in range(lines):
        of = i % len(count)  # the lines are shapes × sets, and counts and shares are those of the sets
        for p in range(len(pseudocounts)):
            pseudo = np.float32(pseudocounts[p])
            for j in range(n):
                x[j] = base[i, j] + pseudo * share[of, j]
            for j in range(n):
                exponent[j] = (bits[j] - HALF) >> 23
                bits[j] = ((bits[j] - HALF) & MANTISSA) + HALF
            total = 0.0
            for j in range(n):
                f = x[j] - ONE
                y = (((P0 * f + P1) * f + P2) * f + P3) * f + P4
                y = (((y * f + P5) * f + P6) * f + P7) * f + P8
                y = (y * f + MINUS_HALF) * f * f + f
                x[j] = count[of, j] * (y + np.float32(exponent[j]) * LN2)
            for j in range(n):
                total += x[j]
            sums[i, p] = total


@Kernel
def moments(sets, x, n, mean, spread):  # type: ignore[no-untyped-def]
    """Weight, mean and summed squared deviation of x in each set and class; x is standardised."""
    for s in range(len(sets)):
        for c in range(sets.shape[2]):
            for v in range(len(x)):
                n[s, c] += sets[s, v, c]
                mean[s, c] += sets[s, v, c] * x[v]
            mean[s, c] /= max(n[s, c], 1e-300)
            for v in range(len(x)):
                spread[s, c] += sets[s, v, c] * (x[v] - mean[s, c]) ** 2


@Kernel
def densities(x, n, mean, spread, rows, often, own):  # type: ignore[no-untyped-def]
    """Gaussian densities times rows, with all rows and with one row of that value and class left out.

    `spread` and `rows` are those of the class, or of all classes where they have one variance.
    """
    for s in range(len(n)):
        for c in range(n.shape[1]):
            if n[s, c] <= 0.0:
                continue
            rest = n[s, c] - 1.0
            variance = max(spread[s, c] / rows[s, c], NARROWEST**2)
            for v in range(len(x)):
                apart = x[v] - mean[s, c]
                often[s, v, c] = np.exp(-0.5 * apart * apart / variance) / np.sqrt(variance) * n[s, c]
                if rest > 0.0:
                    gone = apart * apart * n[s, c] / rest
                    less = max((spread[s, c] - gone) / max(rows[s, c] - 1.0, 1e-300), NARROWEST**2)
                    away = apart + apart / rest
                    own[s, v, c] = np.exp(-0.5 * away * away / less) / np.sqrt(less) * rest


@Kernel
def as_counts(often, own, total, whole):  # type: ignore[no-untyped-def]
    """Densities scaled so that each value has the rows that a value has on average; whole: the rows left in all classes."""
    sets, values, classes = often.shape
    for s in range(sets):
        for v in range(values):
            summed, lost = 0.0, 0.0
            for c in range(classes):
                summed += often[s, v, c]
                lost += (often[s, v, c] - own[s, v, c]) * often[s, v, c]
            scale = total[s] / values / max(summed, 1e-300)
            whole[s, v] = max(scale * (summed - lost / max(summed, 1e-300)), 0.0)
            for c in range(classes):
                own[s, v, c] *= scale
