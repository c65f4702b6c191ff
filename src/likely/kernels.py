"""The inner loops: counting and scoring over plain arrays.

A kernel is an ordinary Python function. Small inputs run it as it is, so a small job never waits for a compiler nor
imports one; the first large input compiles the same text with Numba. There is one formula either way.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from likely.threads import held_at_fork

# Below this many cells in all, interpreting costs less than importing the compiler (measured: about 0.4 s).
LARGE = 100_000
# A call this small is quicker interpreted than dispatched with a signature that may not be compiled yet.
TINY = 512

# One lock for all kernels, held while the compiler is imported: a process that forks meanwhile waits for it.
COMPILING = held_at_fork(threading.RLock(), 3)


def announce(message: str) -> None:
    """Tell the person who waits what they wait for; doors may replace it."""
    print(f"likely: {message}", file=sys.stderr, flush=True)


class Kernel:
    """A function of arrays that is compiled once enough cells have passed through it."""

    tiny = TINY
    reordered = False  # whether the compiler may sum in another order, several numbers at a time

    def __init__(self, function: Callable[..., Any]) -> None:
        self.plain = function
        self.__doc__ = function.__doc__
        self._cells = 0
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, first: Any, *rest: Any) -> Any:
        """Run on arrays; the size of the first one says how large the work is."""
        size = first.size
        if size < self.tiny or (self._compiled is None and self._cells + size < LARGE):
            self._cells += size
            with np.errstate(all="ignore"):
                return self.plain(first, *rest)
        return self._fast()(first, *rest)

    def prepare(self) -> None:
        """More work is coming than the first call will show: do not interpret any of it."""
        self._fast()

    def fast(self, *arrays: Any) -> Any:
        """Run the compiled function, however small the arrays: there are many of them, always of the same types."""
        return self._fast()(*arrays)

    def _fast(self) -> Callable[..., Any]:
        if self._compiled is None:
            with COMPILING:
                if self._compiled is None:
                    self._compiled = self._compile()
        return self._compiled

    def _compile(self) -> Callable[..., Any]:
        from likely.compiling import compiled

        return compiled(self.plain, lambda message: announce(message), reordered=self.reordered)


class ReorderedKernel(Kernel):
    """A kernel whose sums may be added up in any order: several numbers at a time, products and sums in one step."""

    reordered = True


@Kernel
def count_moments(x, y, w, n, mean, spread):  # type: ignore[no-untyped-def]
    """Weight, mean and summed squared deviation of every column in every class, merged chunk by chunk.

    Each chunk is read twice, first for its means and then for the deviations from them, and merged pairwise: raw sums
    of squares would lose every digit of a timestamp's variance. Both passes work on differences from the mean so far, or
    from the first number of a class: a constant has a spread of exactly zero, and a small deviation beside a large mean
    keeps its digits.
    """
    rows, width = x.shape
    groups = n.shape[0]
    lacking = np.zeros(groups, np.int64)  # columns of which the class has seen no number
    for c in range(groups):
        for j in range(width):
            lacking[c] += n[c, j] == 0.0
    part_n = np.zeros((groups, width))
    part_mean = np.zeros((groups, width))
    part_spread = np.zeros((groups, width))
    for start in range(0, rows, 512):
        stop = min(rows, start + 512)
        part_n[:] = 0.0
        part_mean[:] = 0.0
        part_spread[:] = 0.0
        for i in range(start, stop):
            c = y[i]
            weight = w[i]
            if c >= 0 and weight > 0.0:
                if lacking[c] > 0:
                    for j in range(width):
                        v = x[i, j]
                        if v == v and n[c, j] == 0.0 and part_n[c, j] == 0.0:
                            mean[c, j] = v
                            lacking[c] -= 1
                for j in range(width):
                    v = x[i, j]
                    seen = v == v
                    part_n[c, j] += weight if seen else 0.0
                    part_mean[c, j] += weight * (v - mean[c, j]) if seen else 0.0
        for c in range(groups):
            for j in range(width):
                part_mean[c, j] = part_mean[c, j] / part_n[c, j] if part_n[c, j] > 0.0 else 0.0
        for i in range(start, stop):
            c = y[i]
            weight = w[i]
            if c >= 0 and weight > 0.0:
                for j in range(width):
                    v = x[i, j]
                    d = v - mean[c, j] - part_mean[c, j]
                    part_spread[c, j] += weight * d * d if v == v else 0.0
        for c in range(groups):
            for j in range(width):
                more = part_n[c, j]
                if more > 0.0:
                    total = n[c, j] + more
                    d = part_mean[c, j]
                    mean[c, j] += d * (more / total)
                    spread[c, j] += part_spread[c, j] + d * d * (n[c, j] * (more / total))
                    n[c, j] = total


@Kernel
def count_codes(codes, low, size, first, y, w, out):  # type: ignore[no-untyped-def]
    """How much weight each value of every column has in each class; returns how many cells lay outside the tables.

    `out` has a line a class, with the values of column j from place first[j] on.
    """
    rows, width = codes.shape
    outside = 0
    for i in range(rows):
        c = y[i]
        weight = w[i]
        if c >= 0 and weight > 0.0:
            for j in range(width):
                v = codes[i, j] - low[j]
                if 0 <= v < size[j]:
                    out[c, first[j] + v] += weight
                else:
                    outside += 1
    return outside


@Kernel
def count_column(codes, low, size, y, w, out):  # type: ignore[no-untyped-def]
    """The same for one column where it stands; `out` has a line a class and a place a value."""
    outside = 0
    for i in range(codes.shape[0]):
        c = y[i]
        weight = w[i]
        if c >= 0 and weight > 0.0:
            v = codes[i] - low
            if 0 <= v < size:
                out[c, v] += weight
            else:
                outside += 1
    return outside


@Kernel
def weave(out, j, first, second, third, fourth):  # type: ignore[no-untyped-def]
    """Four columns side by side from place j on: done one by one, every line of memory would be fetched four times."""
    for i in range(out.shape[0]):
        out[i, j] = first[i]
        out[i, j + 1] = second[i]
        out[i, j + 2] = third[i]
        out[i, j + 3] = fourth[i]


@Kernel
def score_lookup(codes, low, size, start, place, outside, table, out):  # type: ignore[no-untyped-def]
    """Add to each class the log probability of the value in every column.

    The line of a value is place[start[j] + code - low[j]]; codes beyond the places have the line outside[j]. The last
    line of the table is zero.
    """
    rows, width = codes.shape
    classes = out.shape[1]
    line = np.empty(width + 1, np.int64)
    line[width] = table.shape[0] - 1
    for i in range(rows):
        for j in range(width):
            v = codes[i, j] - low[j]
            line[j] = place[start[j] + v] if 0 <= v < size[j] else outside[j]
        for j in range(0, width, 2):  # two columns at a time, or half the work is fetching and storing the sums
            one = line[j]
            two = line[j + 1]
            for c in range(classes):
                out[i, c] = out[i, c] + table[one, c] + table[two, c]


@Kernel
def score_cells(codes, low, size, start, place, outside, member, end, shift, maps, table, out):  # type: ignore[no-untyped-def]
    """Add to each class what some columns say together: their lines add up to a place in the table, or to nowhere.

    Lines are found as in `score_lookup`. Set t has the columns member[end[t - 1]:end[t]]; line v of its m-th member has
    the share maps[shift[m] + v]; a place below zero says nothing.
    """
    rows, width = codes.shape
    classes = out.shape[1]
    line = np.empty(width, np.int64)
    for i in range(rows):
        for j in range(width):
            v = codes[i, j] - low[j]
            line[j] = place[start[j] + v] if 0 <= v < size[j] else outside[j]
        m = 0
        for t in range(end.shape[0]):
            cell = 0
            while m < end[t]:
                cell += maps[shift[m] + line[member[m]]]
                m += 1
            if cell >= 0:
                for c in range(classes):
                    out[i, c] += table[cell, c]


@Kernel
def find_bins(x, edges, start, missing, out):  # type: ignore[no-untyped-def]
    """The bin of every number: how many of its column's edges, edges[start[j]:start[j + 1]], are not above it."""
    rows, width = x.shape
    for i in range(rows):
        for j in range(width):
            v = x[i, j]
            if v != v:
                out[i, j] = missing[j]
                continue
            low = start[j]
            left = start[j + 1] - low
            while left > 0:
                half = left >> 1
                if edges[low + half] <= v:
                    low += half + 1
                    left -= half + 1
                else:
                    left = half
            out[i, j] = low - start[j]


@Kernel
def score_parabola(x, mean, curve, peak, out):  # type: ignore[no-untyped-def]
    """Add to each class the log density of the number in every column: peak + curve * (x - mean)**2."""
    rows, width = x.shape
    classes = out.shape[1]
    turned = np.empty((width, 128))  # some rows on their side: the innermost loop then runs along them
    total = np.empty(128)
    for start in range(0, rows, 128):
        some = min(128, rows - start)
        for i in range(some):
            for j in range(width):
                turned[j, i] = x[start + i, j]
        for c in range(classes):
            for i in range(some):
                total[i] = out[start + i, c]
            for j in range(width):
                level = mean[j, c]
                bend = curve[j, c]
                top = peak[j, c]
                for i in range(some):
                    v = turned[j, i]
                    d = v - level
                    total[i] += top + bend * (d * d) if v == v else 0.0
            for i in range(some):
                out[start + i, c] = total[i]


@Kernel
def score_line(x, base, slope, level, start, out):  # type: ignore[no-untyped-def]
    """Add to each class, block by block, the sum of base + level + x * slope over the block's columns."""
    rows = x.shape[0]
    classes = out.shape[1]
    term = np.zeros(classes)
    for i in range(rows):
        for b in range(start.shape[0] - 1):
            term[:] = 0.0
            for j in range(start[b], start[b + 1]):
                v = x[i, j]
                if v == v:
                    for c in range(classes):
                        term[c] += base[i, j] + level[j, c]
                        if v != 0.0:  # nothing seen is no evidence, even where the slope is minus infinity
                            term[c] += v * slope[j, c]
            for c in range(classes):
                out[i, c] += term[c]
