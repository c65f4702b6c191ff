"""The inner loops over bags of words: counting into classes, scoring, and what each word would say left out."""

from __future__ import annotations

import math

import numpy as np

from likely.kernels import Kernel
from likely.tokens._blocks import SOON, add_rows, fetch
from likely.tokens._loops import Loop


@Loop
def count_words(ids, indptr, values, y, w, table, documents, total):  # type: ignore[no-untyped-def]
    """Add each word of each document to its class; where the table is twice as wide, count the document too."""
    classes = documents.shape[0]
    width = table.shape[1]
    twice = width > classes
    last = ids.shape[0] - SOON
    for d in range(indptr.shape[0] - 1):
        c = y[d]
        weight = w[d]
        if c >= 0 and weight > 0.0:
            documents[c] += weight
            whole = 0.0
            for j in range(indptr[d], indptr[d + 1]):
                if j < last:
                    fetch(table, int(ids[j + SOON]) * width + c)
                table[ids[j], c] += weight * values[j]
                whole += values[j]
                if twice:
                    table[ids[j], classes + c] += weight
            total[c] += weight * whole


@Loop
def score_words(ids, indptr, values, table, out):  # type: ignore[no-untyped-def]
    """Add to each class, for every word of each document, what the word adds there."""
    classes = out.shape[1]
    fours = classes // 4 * 4
    last = ids.shape[0] - SOON - 1
    for d in range(indptr.shape[0] - 1):
        first = indptr[d]
        if (indptr[d + 1] - first) % 2 == 1:
            for c in range(classes):
                out[d, c] += values[first] * table[ids[first], c]
            first += 1
        for j in range(first, indptr[d + 1], 2):  # two words at a time, or half the work is fetching and storing sums
            if j < last:
                for k in range(j + SOON, j + SOON + 2):
                    for c in range(0, classes, 8):
                        fetch(table, int(ids[k]) * classes + c)
                    fetch(table, int(ids[k]) * classes + classes - 1)
            one = int(ids[j])
            two = int(ids[j + 1])
            for c in range(0, fours, 4):
                add_rows(table, one * classes + c, values[j], two * classes + c, values[j + 1], out, d * classes + c)
            for c in range(fours, classes):
                out[d, c] = out[d, c] + values[j] * table[one, c] + values[j + 1] * table[two, c]


@Kernel
def count_shares(ids, indptr, values, share, table):  # type: ignore[no-untyped-def]
    """Add each word of each document to every class by the document's share in it: of its weight, or of a surprise."""
    classes = table.shape[1]
    for d in range(indptr.shape[0] - 1):
        for j in range(indptr[d], indptr[d + 1]):
            for c in range(classes):
                table[ids[j], c] += values[j] * share[d, c]


@Kernel
def surprise_left_out(ids, indptr, values, left, surprise, table, holders, octaves, features):  # type: ignore[no-untyped-def]
    """What the surprise at all other documents says of each one, by how frequent the words are.

    `left` is how much of each document is left out, with its copies.
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
                    said = v * (table[ids[j], c] - v * left[d] * surprise[d, c])
                    features[d, c, g] += said * (1.0 - (t - g))
                    features[d, c, g + 1] += said * (t - g)


@Kernel
def left_out(ids, indptr, values, y, left, seen, holders, total, low, bits, octaves, imagined, features, length):  # type: ignore[no-untyped-def]
    """Where each word of each document falls on the evidence curve of every class, its own document left out.

    `left` is how much of each document is left out, with its copies.

    `features` is documents × classes × frequencies × ratios: how much of the document's words lies at each knot of the
    curve, cumulated from above, so that a curve is the running sum of weights and rises where they are not negative.
    """
    classes = seen.shape[1]
    tall = features.shape[2]
    wide = features.shape[3]
    share = np.zeros(classes)
    whole = total.sum()
    for d in range(indptr.shape[0] - 1):
        k = y[d]
        one = left[d]
        own = 0.0
        for j in range(indptr[d], indptr[d + 1]):
            own += one * values[j]
        for c in range(classes):
            rest = total[c] - own if c == k else total[c]
            share[c] = min(max(max(rest, 1e-9) / max(whole - own, 1e-9), 1e-9), 1.0 - 1e-9)
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
                    if rest < 1e-6 * everywhere:
                        rest = 0.0
                    prior = imagined * everywhere
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
