"""Kernels that add the terms of tables to the scores of rows, from columns as they are stored."""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import Kernel


@Kernel
def add_lines(first, second, third, fourth, one, two, three, four, out):  # type: ignore[no-untyped-def]
    """Add to each class the terms of the values of four columns, in this order.

    Code v reads line v + 1 of the table of its column; code -1, and any that the table does not have, reads line 0.
    """
    a, b, c, d = np.uint32(len(one)), np.uint32(len(two)), np.uint32(len(three)), np.uint32(len(four))
    none = np.uint32(0)
    classes = out.shape[1]
    for i in range(first.shape[0]):
        v = np.uint32(first[i] + 1)
        w = np.uint32(second[i] + 1)
        x = np.uint32(third[i] + 1)
        y = np.uint32(fourth[i] + 1)
        v = v if v < a else none
        w = w if w < b else none
        x = x if x < c else none
        y = y if y < d else none
        if classes == 2:
            out[i, 0] = out[i, 0] + one[v, 0] + two[w, 0] + three[x, 0] + four[y, 0]
            out[i, 1] = out[i, 1] + one[v, 1] + two[w, 1] + three[x, 1] + four[y, 1]
        else:
            for k in range(classes):
                out[i, k] = out[i, k] + one[v, k] + two[w, k] + three[x, k] + four[y, k]


@Kernel
def add_bins(numbers, edges, cells, scale, table, out):  # type: ignore[no-untyped-def]
    """Add to each class the term of the bin of every number; returns whether any number is infinite.

    The bin is the number of edges that are not above the number. `cells` divides the range of the edges into equal parts:
    cells[p] edges lie in parts before part p, and are not above any number in it; only those within it are compared. With a
    scale of 0 there is one part.
    """
    count = edges.shape[0]
    low, high = edges[0], edges[count - 1]
    classes = out.shape[1]
    infinite = False
    for i in range(numbers.shape[0]):
        x = numbers[i]
        if x >= high:
            place = count
        elif x >= low:
            part = np.int64((x - low) * scale) if scale > 0.0 else 0
            place = np.int64(cells[part])
            while edges[place] <= x:
                place += 1
        else:
            place = 0 if x < low else table.shape[0] - 1
        infinite |= abs(x) == np.inf
        if classes == 2:
            out[i, 0] += table[place, 0]
            out[i, 1] += table[place, 1]
        else:
            for k in range(classes):
                out[i, k] += table[place, k]
    return infinite


@Kernel
def find_bins_by_grid(numbers, edges, cells, scale, missing, out):  # type: ignore[no-untyped-def]
    """The bin of every number, found as in `add_bins`; `missing` for a missing one.

    The search is written out in both: as a function that both call, it was 40 to 60 % slower.
    """
    count = edges.shape[0]
    low, high = edges[0], edges[count - 1]
    for i in range(numbers.shape[0]):
        x = numbers[i]
        if x >= high:
            place = count
        elif x >= low:
            part = np.int64((x - low) * scale) if scale > 0.0 else 0
            place = np.int64(cells[part])
            while edges[place] <= x:
                place += 1
        else:
            place = 0 if x < low else missing
        out[i] = place


@Kernel
def add_places(codes, adds, place):  # type: ignore[no-untyped-def]
    """Add to the cell index of each row the offset of its code: entry v + 1 for code v; the first for any other code."""
    size = np.uint32(len(adds))
    for i in range(codes.shape[0]):
        v = np.uint32(codes[i] + 1)
        place[i] += adds[v if v < size else np.uint32(0)]


@Kernel
def add_cells(place, table, out):  # type: ignore[no-untyped-def]
    """Add to each class the table row at the cell index of each row; a negative index contributes nothing."""
    for i in range(place.shape[0]):
        if place[i] >= 0:
            for k in range(out.shape[1]):
                out[i, k] += table[place[i], k]
