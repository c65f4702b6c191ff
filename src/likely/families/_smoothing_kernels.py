"""Compiled choice of smoothing for one column: all shapes, the best pseudocount, and the evidence of every row.

`smoothing_choice` has the array versions. One call a column: with thousands of columns the calls are most of the time.
"""

from __future__ import annotations

import numpy as np

from likely.families._smoothing_loops import (
    choose,
    densities,
    fill_rows,
    pack,
    smooth,
    standardise,
    to_tables,
    without_folds,
)
from likely.kernels.kernel import ComposedKernel, piece


@piece
def fill_shapes(sets, ranks, x, bandwidths, reach, often, own, whole):  # type: ignore[no-untyped-def]
    """All shapes of each set: smoothed by every bandwidth, and the two kinds of Gaussian densities unless `x` is empty."""
    n = len(bandwidths)
    smooth(sets, ranks, bandwidths, reach, often[:n], own[:n], whole[:n])
    if len(x):
        densities(sets, x, False, often[n], own[n], whole[n])
        densities(sets, x, True, often[n + 1], own[n + 1], whole[n + 1])


@piece
def choose_sets(sets, own, whole, pseudocounts, best, gains):  # type: ignore[no-untyped-def]
    """Best shape and pseudocount of the first sets, as many as `best` has, and their gains."""
    n, cells = len(best), (sets.shape[1] + 1) * sets.shape[2]
    places, counts = np.full((n, cells, 4), -1, np.int32), np.zeros((n, cells))
    shares, alone = np.zeros((n, cells, 4)), np.zeros(n)
    logs = pack(sets, places, counts, shares, alone)
    choose(own, whole, logs, places, counts, shares, alone, pseudocounts, best, gains)


@ComposedKernel
def choose_column(seen, centres, gaussians, bandwidths, reach, pseudocounts, totals, tables, lines):  # type: ignore[no-untyped-def]
    """Best shape and pseudocount of a table of counts, values × classes: their index, and the gain.

    `tables` gets the smoothed counts, the same with one row left out, the evidence, and the same with one row left out;
    `lines` the level of the evidence, and the rows of all classes once a row is left out; `totals`, of zeros, the rows of
    each class.
    """
    values, classes = seen.shape
    sets, ranks, x = np.empty((1, classes, values)), np.empty(values), np.empty(values if gaussians else 0)
    if not standardise(seen, centres, sets[0], totals, ranks, x):
        x = x[:0]
    shapes = len(bandwidths) + (2 if len(x) else 0)
    often, own = np.empty((shapes, 1, classes, values)), np.empty((shapes, 1, classes, values))
    whole, best, gains = np.empty((shapes, 1, values)), np.empty(1, np.int64), np.empty(1)
    fill_shapes(sets, ranks, x, bandwidths, reach, often, own, whole)
    choose_sets(sets, own, whole, pseudocounts, best, gains)
    at, mass = best[0] // len(pseudocounts), pseudocounts[best[0] % len(pseudocounts)]
    rows = 0.5 * classes
    for c in range(classes):
        rows += totals[c]
        for v in range(values):
            tables[0, v, c], tables[1, v, c] = often[at, 0, c, v], own[at, 0, c, v]
    for v in range(values):
        lines[1, v] = whole[at, 0, v]
    to_tables(often[at, 0], own[at, 0], totals, mass / rows, tables[2], tables[3], lines[0])
    return best[0], gains[0]


@ComposedKernel
def nested_rows(codes, labels, weights, left, seen, centres, gaussians, bandwidths, reach, pseudocounts, lowest, gains, out):  # type: ignore[no-untyped-def]
    """Leave-one-out evidence of every row under the choice made without its fold; `gains` gets those of the choices."""
    values, classes = seen.shape
    folds = len(gains)
    # The last set are all rows: its shapes are those that the evidence is made of.
    sets, ranks, x = np.zeros((folds + 1, classes, values)), np.empty(values), np.empty(values if gaussians else 0)
    totals = np.zeros(classes)
    if not standardise(seen, centres, sets[folds], totals, ranks, x):
        x = x[:0]
    without_folds(codes, labels, weights, seen, sets[:folds])
    shapes = len(bandwidths) + (2 if len(x) else 0)
    often, own = np.empty((shapes, folds + 1, classes, values)), np.empty((shapes, folds + 1, classes, values))
    whole, best = np.empty((shapes, folds + 1, values)), np.empty(folds, np.int64)
    fill_shapes(sets, ranks, x, bandwidths, reach, often, own, whole)
    choose_sets(sets, own, whole, pseudocounts, best, gains)
    rows = 0.5 * classes
    for c in range(classes):
        rows += totals[c]
    table, left_out, level = np.empty((values, classes)), np.empty((values, classes)), np.empty(values)
    marked = np.empty(folds, np.bool_)
    for f in range(folds):
        first = True
        for g in range(folds):
            marked[g] = best[g] == best[f]
            first = first and (g >= f or not marked[g])
        if not first:
            continue
        at, mass = best[f] // len(pseudocounts), pseudocounts[best[f] % len(pseudocounts)] / rows
        to_tables(often[at, folds], own[at, folds], totals, mass, table, left_out, level)
        fill_rows(
            codes, labels, left, marked, often[at, folds], own[at, folds], totals, mass, table, left_out, level, lowest, out
        )  # fmt: skip


@ComposedKernel
def rows_of_table(codes, labels, left, marked, often, own, totals, mass, table, left_out, level, lowest, out):  # type: ignore[no-untyped-def]
    """Leave-one-out evidence of every row under one choice."""
    fill_rows(codes, labels, left, marked, often, own, totals, mass, table, left_out, level, lowest, out)
