"""Kernels over bags of words: counting by class, scoring, and leave-one-out features of documents."""

from __future__ import annotations

import math

from likely.kernels.kernel import Kernel
from likely.tokenizer._block_operations import PREFETCH_DISTANCE, add_rows, prefetch
from likely.tokenizer._loops import SimdKernel


@SimdKernel
def count_words(ids, indptr, values, y, w, table, documents, total):  # type: ignore[no-untyped-def]
    """Count the words of each document in its class; a table of twice as many columns also counts documents by word."""
    classes = documents.shape[0]
    width = table.shape[1]
    twice = width > classes
    last = ids.shape[0] - PREFETCH_DISTANCE
    for d in range(indptr.shape[0] - 1):
        c = y[d]
        weight = w[d]
        if c >= 0 and weight > 0.0:
            documents[c] += weight
            words = 0.0
            for j in range(indptr[d], indptr[d + 1]):
                if j < last:
                    prefetch(table, int(ids[j + PREFETCH_DISTANCE]) * width + c)
                table[ids[j], c] += weight * values[j]
                words += values[j]
                if twice:
                    table[ids[j], classes + c] += weight
            total[c] += weight * words


@SimdKernel
def score_words(ids, indptr, values, table, out):  # type: ignore[no-untyped-def]
    """Add to each class of each document the count of every word times its table entry."""
    classes = out.shape[1]
    fours = classes // 4 * 4
    last = ids.shape[0] - PREFETCH_DISTANCE - 1
    for d in range(indptr.shape[0] - 1):
        first = indptr[d]
        if (indptr[d + 1] - first) % 2 == 1:
            for c in range(classes):
                out[d, c] += values[first] * table[ids[first], c]
            first += 1
        for j in range(first, indptr[d + 1], 2):  # two words at a time: fewer loads and stores of the sums
            if j < last:
                for k in range(j + PREFETCH_DISTANCE, j + PREFETCH_DISTANCE + 2):
                    for c in range(0, classes, 8):
                        prefetch(table, int(ids[k]) * classes + c)
                    prefetch(table, int(ids[k]) * classes + classes - 1)
            one = int(ids[j])
            two = int(ids[j + 1])
            for c in range(0, fours, 4):
                add_rows(table, one * classes + c, values[j], two * classes + c, values[j + 1], out, d * classes + c)
            for c in range(fours, classes):
                out[d, c] = out[d, c] + values[j] * table[one, c] + values[j + 1] * table[two, c]


@Kernel
def count_shares(ids, indptr, values, share, table):  # type: ignore[no-untyped-def]
    """Count the words of each document in every class, weighted by its responsibility or its residual there."""
    classes = table.shape[1]
    for d in range(indptr.shape[0] - 1):
        for j in range(indptr[d], indptr[d + 1]):
            for c in range(classes):
                table[ids[j], c] += values[j] * share[d, c]


@Kernel
def surprise_left_out(ids, indptr, values, left, residual, table, holders, octaves, features):  # type: ignore[no-untyped-def]
    """Leave-one-out features: summed residuals of each document's words over the other documents, by word frequency.

    `left` is the weight of each document and its copies, which is left out.
    """
    classes = table.shape[1]
    tall = features.shape[2]
    for d in range(indptr.shape[0] - 1):
        for j in range(indptr[d], indptr[d + 1]):
            others = holders[ids[j]] - left[d]
            if others > 0.5 * left[d]:
                v = values[j]
                t = min(max(math.log2(max(others, 1.0)) / octaves, 0.0), tall - 1.0001)
                g = int(t)
                for c in range(classes):
                    term = v * (table[ids[j], c] - v * left[d] * residual[d, c])
                    features[d, c, g] += term * (1.0 - (t - g))
                    features[d, c, g + 1] += term * (t - g)


@Kernel
def left_out(ids, indptr, values, y, left, seen, holders, total, share, low, bits, octaves, pseudo, features, length):  # type: ignore[no-untyped-def]
    """Leave-one-out features: position of each word of each document on the calibration curve of every class.

    `left` is the weight of each document and its copies, which is left out; `pseudo` the pseudocount as a share of the
    word's own rate. `features` is documents × classes × frequencies × ratios: the count of words at each knot of the curve,
    cumulated from above, so that a curve is the running sum of weights and rises where they are not negative. `share` is
    scratch memory: compiling an allocation takes longer than all of the loops.
    """
    classes = seen.shape[1]
    tall = features.shape[2]
    wide = features.shape[3]
    for d in range(indptr.shape[0] - 1):
        k = y[d]
        one = left[d]
        own, words = 0.0, 0.0
        for j in range(indptr[d], indptr[d + 1]):
            own += one * values[j]
        for c in range(classes):
            words += total[c]
        for c in range(classes):
            rest = total[c] - own if c == k else total[c]
            share[c] = min(max(max(rest, 1e-9) / max(words - own, 1e-9), 1e-9), 1.0 - 1e-9)
        for j in range(indptr[d], indptr[d + 1]):
            word = ids[j]
            v = values[j]
            others = holders[word] - one
            everywhere = -one * v
            for c in range(classes):
                everywhere += seen[word, c]
            if others > 0.5 * one and everywhere > 1e-9 * v:
                length[d] += v
                t = min(max(math.log2(max(others, 1.0)) / octaves, 0.0), tall - 1.0001)
                g = int(t)
                rest_t = t - g
                for c in range(classes):
                    here = seen[word, c] - one * v if c == k else seen[word, c]
                    if here < 1e-6 * everywhere:
                        here = 0.0
                    rest = (everywhere - here) / (1.0 - share[c])
                    rest = rest if rest >= 1e-6 * everywhere else 0.0
                    prior = pseudo * everywhere
                    u = (math.log2((here / share[c] + prior) / (rest + prior)) - low) / bits
                    u = min(max(u, 0.0), wide - 1.0001)
                    h = int(u)
                    rest_u = u - h
                    a = v * (1.0 - rest_t)
                    features[d, c, g, h] += a * (1.0 - rest_u)
                    features[d, c, g, h + 1] += a * rest_u
                    a = v * rest_t
                    features[d, c, g + 1, h] += a * (1.0 - rest_u)
                    features[d, c, g + 1, h + 1] += a * rest_u
        for c in range(classes):
            for g in range(tall):
                for h in range(wide - 2, 0, -1):
                    features[d, c, g, h] += features[d, c, g, h + 1]
