"""The inner loops of EM: rows shared out among the classes, and counted by their shares."""

from __future__ import annotations

import numpy as np

from likely.kernels import Kernel, ReorderedKernel


@Kernel
def share_out(joint, y, w, log_prior, evidence):  # type: ignore[no-untyped-def]
    """Turn the log joint of every row into its weighted share in each class, in place, and note its log evidence.

    A row whose class is known belongs to it alone; a row that no class allows is shared out as the prior says.
    """
    rows, classes = joint.shape
    for i in range(rows):
        weight = w[i]
        known = y[i]
        if known >= 0:
            evidence[i] = joint[i, known]
            for c in range(classes):
                joint[i, c] = weight if c == known else 0.0
        else:
            peak = -np.inf
            for c in range(classes):
                peak = max(peak, joint[i, c])
            evidence[i] = peak
            if peak == -np.inf:
                for c in range(classes):
                    joint[i, c] = log_prior[c]
                    peak = max(peak, log_prior[c])
            total = 0.0
            for c in range(classes):
                below = joint[i, c] - peak
                joint[i, c] = np.exp(below) if below > -40.0 else 0.0  # beyond, it would not change the last digit
                total += joint[i, c]
            evidence[i] += np.log(total) if evidence[i] > -np.inf else 0.0
            scale = weight / total
            for c in range(classes):
                joint[i, c] *= scale


@Kernel
def share_moments(x, share, n, mean, spread):  # type: ignore[no-untyped-def]
    """The same as `count_moments` where a row belongs to every class by a share; arrays are columns × classes.

    The classes lie side by side in memory, so that the innermost loop runs along them. Rows without gaps, which are most,
    need no count of their own in every column.
    """
    # Not one with `count_moments`: there classes × columns, here columns × classes, and each is fast only its own way round.
    rows, width = x.shape
    groups = share.shape[1]
    first = np.zeros(width)  # stands for zero, so that a constant has no spread and large numbers keep their digits
    for j in range(width):
        i = 0
        while i < rows - 1 and x[i, j] != x[i, j]:
            i += 1
        if rows > 0 and x[i, j] == x[i, j]:
            first[j] = x[i, j]
    part_n = np.zeros((width, groups))
    part_mean = np.zeros((width, groups))
    part_spread = np.zeros((width, groups))
    for start in range(0, rows, 512):
        stop = min(rows, start + 512)
        part_n[:] = 0.0
        part_mean[:] = 0.0
        part_spread[:] = 0.0
        gaps = False
        for i in range(start, stop):
            for j in range(width):
                gaps |= x[i, j] != x[i, j]
        for i in range(start, stop):
            if gaps:
                for j in range(width):
                    v = x[i, j]
                    if v == v:
                        for c in range(groups):
                            part_n[j, c] += share[i, c]
                            part_mean[j, c] += share[i, c] * (v - first[j])
            else:
                for c in range(groups):
                    part_n[0, c] += share[i, c]
                for j in range(width):
                    v = x[i, j] - first[j]
                    for c in range(groups):
                        part_mean[j, c] += share[i, c] * v
        for j in range(width):
            for c in range(groups):
                part_n[j, c] = part_n[j, c] if gaps else part_n[0, c]
                part_mean[j, c] = part_mean[j, c] / part_n[j, c] if part_n[j, c] > 0.0 else 0.0
        for i in range(start, stop):
            for j in range(width):
                v = x[i, j] - first[j]
                if not gaps or v == v:
                    for c in range(groups):
                        d = v - part_mean[j, c]
                        part_spread[j, c] += share[i, c] * d * d
        for j in range(width):
            for c in range(groups):
                more = part_n[j, c]
                if more > 0.0:
                    total = n[j, c] + more
                    d = first[j] - mean[j, c] + part_mean[j, c] if n[j, c] > 0.0 else 0.0
                    mean[j, c] = mean[j, c] + d * (more / total) if n[j, c] > 0.0 else first[j] + part_mean[j, c]
                    spread[j, c] += part_spread[j, c] + d * d * (n[j, c] * (more / total))
                    n[j, c] = total


@Kernel
def share_codes(codes, low, size, first, share, out):  # type: ignore[no-untyped-def]
    """How much of each value of every column falls to each class, where a row belongs to every class by a share.

    `out` has a line a value, those of column j from line first[j] on.
    """
    rows, width = codes.shape
    groups = share.shape[1]
    for i in range(rows):
        for j in range(width):
            v = codes[i, j] - low[j]
            if 0 <= v < size[j]:
                for c in range(groups):
                    out[first[j] + v, c] += share[i, c]


@Kernel
def share_scatter(x, share, n, mean, scatter):  # type: ignore[no-untyped-def]
    """Weight, mean and scatter of rows that belong to every class by a share: numbers × numbers × classes, by two passes.

    Only one half of the scatter is filled, for it is symmetric.
    """
    rows, width = x.shape
    groups = share.shape[1]
    part_n = np.zeros(groups)
    part_mean = np.zeros((width, groups))
    part = np.zeros((width, width, groups))
    apart = np.zeros((width, groups))
    weighed = np.zeros(groups)
    for start in range(0, rows, 512):
        stop = min(rows, start + 512)
        part_n[:] = 0.0
        part_mean[:] = 0.0
        part[:] = 0.0
        for i in range(start, stop):
            for c in range(groups):
                part_n[c] += share[i, c]
            for a in range(width):
                for c in range(groups):
                    part_mean[a, c] += share[i, c] * x[i, a]
        for a in range(width):
            for c in range(groups):
                part_mean[a, c] = part_mean[a, c] / part_n[c] if part_n[c] > 0.0 else 0.0
        for i in range(start, stop):
            for a in range(width):
                for c in range(groups):
                    apart[a, c] = x[i, a] - part_mean[a, c]
                    weighed[c] = share[i, c] * apart[a, c]
                for b in range(a + 1):
                    for c in range(groups):
                        part[a, b, c] += weighed[c] * apart[b, c]
        for c in range(groups):
            more = part_n[c]
            if more > 0.0:
                total = n[c] + more
                for a in range(width):
                    apart[a, c] = part_mean[a, c] - mean[a, c]
                    mean[a, c] += apart[a, c] * (more / total)
                    for b in range(a + 1):
                        between = apart[a, c] * apart[b, c] * (n[c] * (more / total))
                        scatter[a, b, c] += part[a, b, c] + between
                n[c] = total


@Kernel
def score_quadratic(x, mean, root, peak, out):  # type: ignore[no-untyped-def]
    """Add to each class the log density of a joint Gaussian; `root` is the inverse of the root of its covariance."""
    rows, width = x.shape
    classes = out.shape[1]
    apart = np.zeros((width, classes))
    z = np.zeros(classes)
    total = np.zeros(classes)
    for i in range(rows):
        total[:] = 0.0
        for a in range(width):
            v = x[i, a]
            for c in range(classes):
                apart[a, c] = v - mean[a, c]
                z[c] = 0.0
            for b in range(a + 1):
                for c in range(classes):
                    z[c] += root[a, b, c] * apart[b, c]
            for c in range(classes):
                total[c] += z[c] * z[c]
        for c in range(classes):
            term = peak[c] - 0.5 * total[c]
            out[i, c] += term if term == term else -np.inf  # numbers of 1e300 have no density worth the name


@ReorderedKernel
def share_bells(x, y, w, log_prior, mean, curve, peak, n, middle, spread, seen):  # type: ignore[no-untyped-def]
    """One round of EM over columns of numbers: scored as in `score_parabola`, shared out, and counted by the shares.

    The rows are taken 256 at a time and lie on their side, so that every inner loop runs along them and all stays in the
    cache. Returns the log evidence; NaN where a number is missing or too large, or a row is ruled out by every class: then
    nothing of the result is to be used.
    """
    rows, width = x.shape
    classes = mean.shape[1]
    turned, share = np.empty((width, 256)), np.empty((classes, 256))
    high, total, first, base = np.empty(256), np.empty(256), np.empty(width), np.empty(classes)
    part_n, part_mean, part_spread = np.empty(classes), np.empty((width, classes)), np.empty((width, classes))
    powers = np.empty(61)  # of 2, from -60 to 0
    powers[60] = 1.0
    for k in range(59, -1, -1):
        powers[k] = 0.5 * powers[k + 1]
    for j in range(width):
        first[j] = x[0, j]  # stands for zero, so that a constant has no spread and large numbers keep their digits
    for c in range(classes):
        base[c] = log_prior[c]
        for j in range(width):
            base[c] += peak[j, c]
    evidence = 0.0
    for start in range(0, rows, 256):
        some = min(256, rows - start)
        usable = True
        for i in range(some):
            for j in range(width):
                turned[j, i] = x[start + i, j]
                usable &= abs(turned[j, i]) < 1e150
            high[i] = -np.inf
            total[i] = 0.0
        for c in range(classes):
            for i in range(some):
                share[c, i] = base[c]
            for j in range(width):
                level = mean[j, c]
                bend = curve[j, c]
                for i in range(some):
                    d = turned[j, i] - level
                    share[c, i] += bend * (d * d)
            for i in range(some):
                high[i] = max(high[i], share[c, i])
        for i in range(some):
            known = y[start + i]
            if known >= 0:
                high[i] = share[known, i]
                for c in range(classes):
                    share[c, i] = high[i] if c == known else -np.inf
            usable &= high[i] > -np.inf
        if not usable:
            return np.nan
        for c in range(classes):
            for i in range(some):
                below = share[c, i] - high[i]
                v = max(below, -40.0)  # beyond, it would not change the last digit
                # The exponential, as 2**k * exp(r) with |r| < 0.35 and its series: a call of the library is not vectorised.
                k = np.floor(v * 1.4426950408889634 + 0.5)
                r = v - k * 0.6931471803691238 - k * 1.9082149292705877e-10
                p = 1.0 / 479001600.0 + r / 6227020800.0
                p = 1.0 / 39916800.0 + r * p
                p = 1.0 / 3628800.0 + r * p
                p = 1.0 / 362880.0 + r * p
                p = 1.0 / 40320.0 + r * p
                p = 1.0 / 5040.0 + r * p
                p = 1.0 / 720.0 + r * p
                p = 1.0 / 120.0 + r * p
                p = 1.0 / 24.0 + r * p
                p = 1.0 / 6.0 + r * p
                p = 0.5 + r * p
                p = 1.0 + r * p
                p = 1.0 + r * p
                p = p * powers[np.int32(k) + 60] if below > -40.0 else 0.0
                share[c, i] = p
                total[i] += p
        for i in range(some):
            evidence += w[start + i] * (high[i] + np.log(total[i])) if w[start + i] > 0.0 else 0.0
            total[i] = w[start + i] / total[i]
        for c in range(classes):
            whole = 0.0
            for i in range(some):
                share[c, i] *= total[i]
                whole += share[c, i]
            part_n[c] = whole
            seen[c] += whole
        for j in range(width):
            for i in range(some):
                turned[j, i] -= first[j]
            for c in range(classes):
                mid = 0.0
                for i in range(some):
                    mid += share[c, i] * turned[j, i]
                mid = mid / part_n[c] if part_n[c] > 0.0 else 0.0
                wide = 0.0
                for i in range(some):
                    d = turned[j, i] - mid
                    wide += share[c, i] * (d * d)
                part_mean[j, c] = mid
                part_spread[j, c] = wide
        for j in range(width):
            for c in range(classes):
                more = part_n[c]
                if more > 0.0:
                    whole = n[j, c] + more
                    d = first[j] - middle[j, c] + part_mean[j, c] if n[j, c] > 0.0 else 0.0
                    middle[j, c] = middle[j, c] + d * (more / whole) if n[j, c] > 0.0 else first[j] + part_mean[j, c]
                    spread[j, c] += part_spread[j, c] + d * d * (n[j, c] * (more / whole))
                    n[j, c] = whole
    return evidence
