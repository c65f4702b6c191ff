"""Kernels of EM: responsibilities, and sufficient statistics weighted by them."""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import Kernel, ReorderedKernel


@Kernel
def to_responsibilities(joint, y, w, log_prior, evidence):  # type: ignore[no-untyped-def]
    """Turn the log joint of every row into its weighted responsibilities, in place; write its log-likelihood to `evidence`.

    A row of known class has responsibility one for it; a row that no class allows has the prior probabilities.
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
def weighted_moments(x, resp, n, mean, spread):  # type: ignore[no-untyped-def]
    """Weight, mean and spread of every column and class, weighted by responsibilities; arrays are columns × classes.

    The classes are adjacent in memory, so that the innermost loop runs over them. Rows without missing cells, which are
    most, need no weight of their own in every column.
    """
    # Apart from `count_moments`: there arrays are classes × columns, and each loop is fast in its own layout only.
    rows, width = x.shape
    groups = resp.shape[1]
    first = np.zeros(width)  # origin, so that a constant has no spread and large numbers keep their digits
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
                            part_n[j, c] += resp[i, c]
                            part_mean[j, c] += resp[i, c] * (v - first[j])
            else:
                for c in range(groups):
                    part_n[0, c] += resp[i, c]
                for j in range(width):
                    v = x[i, j] - first[j]
                    for c in range(groups):
                        part_mean[j, c] += resp[i, c] * v
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
                        part_spread[j, c] += resp[i, c] * d * d
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
def weighted_codes(codes, low, size, first, resp, out):  # type: ignore[no-untyped-def]
    """Counts of each value of every column in each class, weighted by responsibilities.

    `out` has one line for each value; those of column j start at line first[j].
    """
    rows, width = codes.shape
    groups = resp.shape[1]
    for i in range(rows):
        for j in range(width):
            v = codes[i, j] - low[j]
            if 0 <= v < size[j]:
                for c in range(groups):
                    out[first[j] + v, c] += resp[i, c]


@Kernel
def weighted_scatter(x, resp, n, mean, scatter):  # type: ignore[no-untyped-def]
    """Weight, mean and scatter matrix of every class, weighted by responsibilities: columns × columns × classes, two passes.

    Only the lower triangle of the symmetric scatter matrix is filled.
    """
    rows, width = x.shape
    groups = resp.shape[1]
    part_n = np.zeros(groups)
    part_mean = np.zeros((width, groups))
    part = np.zeros((width, width, groups))
    apart = np.zeros((width, groups))
    scaled = np.zeros(groups)
    for start in range(0, rows, 512):
        stop = min(rows, start + 512)
        part_n[:] = 0.0
        part_mean[:] = 0.0
        part[:] = 0.0
        for i in range(start, stop):
            for c in range(groups):
                part_n[c] += resp[i, c]
            for a in range(width):
                for c in range(groups):
                    part_mean[a, c] += resp[i, c] * x[i, a]
        for a in range(width):
            for c in range(groups):
                part_mean[a, c] = part_mean[a, c] / part_n[c] if part_n[c] > 0.0 else 0.0
        for i in range(start, stop):
            for a in range(width):
                for c in range(groups):
                    apart[a, c] = x[i, a] - part_mean[a, c]
                    scaled[c] = resp[i, c] * apart[a, c]
                for b in range(a + 1):
                    for c in range(groups):
                        part[a, b, c] += scaled[c] * apart[b, c]
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
    """Add the log density of a joint Gaussian to each class; `root` is the inverse Cholesky factor of its covariance."""
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
def gaussian_e_step(x, y, w, log_prior, mean, curve, peak, n, middle, spread, seen):  # type: ignore[no-untyped-def]
    """Fused E-step of Gaussian columns: score as in `score_parabola`, normalise, and count by the responsibilities.

    The rows are taken 256 at a time and transposed, so that every inner loop runs over them and all stays in the cache.
    Returns the log-likelihood; NaN where a number is missing or too large, or a row is excluded by every class: then
    the results must not be used.
    """
    rows, width = x.shape
    classes = mean.shape[1]
    turned, resp = np.empty((width, 256)), np.empty((classes, 256))
    high, total, first, base = np.empty(256), np.empty(256), np.empty(width), np.empty(classes)
    part_n, part_mean, part_spread = np.empty(classes), np.empty((width, classes)), np.empty((width, classes))
    powers = np.empty(61)  # of 2, from -60 to 0
    powers[60] = 1.0
    for k in range(59, -1, -1):
        powers[k] = 0.5 * powers[k + 1]
    for j in range(width):
        first[j] = x[0, j]  # origin, so that a constant has no spread and large numbers keep their digits
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
                resp[c, i] = base[c]
            for j in range(width):
                level = mean[j, c]
                bend = curve[j, c]
                for i in range(some):
                    d = turned[j, i] - level
                    resp[c, i] += bend * (d * d)
            for i in range(some):
                high[i] = max(high[i], resp[c, i])
        for i in range(some):
            known = y[start + i]
            if known >= 0:
                high[i] = resp[known, i]
                for c in range(classes):
                    resp[c, i] = high[i] if c == known else -np.inf
            usable &= high[i] > -np.inf
        if not usable:
            return np.nan
        for c in range(classes):
            for i in range(some):
                below = resp[c, i] - high[i]
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
                resp[c, i] = p
                total[i] += p
        for i in range(some):
            evidence += w[start + i] * (high[i] + np.log(total[i])) if w[start + i] > 0.0 else 0.0
            total[i] = w[start + i] / total[i]
        for c in range(classes):
            whole = 0.0
            for i in range(some):
                resp[c, i] *= total[i]
                whole += resp[c, i]
            part_n[c] = whole
            seen[c] += whole
        for j in range(width):
            for i in range(some):
                turned[j, i] -= first[j]
            for c in range(classes):
                mid = 0.0
                for i in range(some):
                    mid += resp[c, i] * turned[j, i]
                mid = mid / part_n[c] if part_n[c] > 0.0 else 0.0
                wide = 0.0
                for i in range(some):
                    d = turned[j, i] - mid
                    wide += resp[c, i] * (d * d)
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
