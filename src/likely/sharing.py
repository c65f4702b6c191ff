"""The inner loops of EM: rows shared out among the classes, and counted by their shares."""

from __future__ import annotations

import numpy as np

from likely.kernels import Kernel


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
