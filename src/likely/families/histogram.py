"""Mergeable histogram of a numeric column by class: exact for few distinct numbers, then in cells of halving precision.

A cell is the leading bits of a number, read as an integer that grows with it. The level, the number of trailing bits that are
dropped, is the lowest at which at most `MOST` cells are needed. It depends on the numbers alone, never on their order or split,
so histograms add exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families import _histogram_loops
from likely.families.statistics import Array, Index, subtract_counts
from likely.kernels.cells import SLOTS, count_cells
from likely.kernels.kernel import worth_compiling
from likely.kernels.keys import merged
from likely.kernels.unit_counts import cells_of_window, count_window

MOST = 2048  # cells: eight for each of the 256 bins that are made of them
COARSE = 4096  # cells over the range of the bins, in a model without rows
MANY = 4096  # rows: from here on a compiled loop is faster than sorting, if that is worth compiling
SORTED_TOGETHER = 1 << 15  # numbers of short columns
SORTED = 1e-7  # seconds that a row takes longer where it is sorted
WINDOW, FEWEST = 1 << 15, 1 << 10  # adjacent cells × classes that are counted as an array, and the fewest cells
DENSE = 1 << 16  # range of keys that is always handled as an array
Keys = NDArray[np.int64]
SIGN = np.int64(-(1 << 63))
INFINITY = np.array(np.inf).view(np.int64).item()


@dataclass(frozen=True, eq=False)
class Histogram:
    """Weight of every cell of numbers, by class."""

    seen: Array  # classes × cells
    keys: Keys  # of the cells, rising
    level: int  # trailing bits that are dropped

    @staticmethod
    def of(
        x: Array, labels: NDArray[Any], weights: Array, classes: int, units: NDArray[np.uint32] | None = None,
        *, before: Histogram | None = None,
    ) -> Histogram:
        """Histogram of one column; NaN, rows without a class and rows without weight are skipped.

        `labels` may be responsibilities, rows × classes. `units` are the labels again, if all weights are one. `before` is
        a histogram to which this one is added: its cells may be as wide.
        """
        if labels.ndim == 1 and len(x) >= MANY and worth_compiling(SORTED * len(x), count_cells):
            return _counted(np.ascontiguousarray(x, dtype=np.float64), labels, weights, classes, units, before=before)
        used = ~np.isnan(x) & (labels >= 0 if labels.ndim == 1 else labels.any(1)) & (weights > 0)
        if not used.all():
            x, labels, weights = x[used], labels[used], weights[used]
        if not len(x):
            return Histogram(np.zeros((classes, 0)), np.zeros(0, np.int64), 0)
        keys = to_keys(x)
        if not -INFINITY < keys.min() <= keys.max() < INFINITY:
            return Histogram(np.full((classes, 1), np.nan), keys[:1], 0)  # the caller reports numbers that are not finite
        level = _floor(keys)
        found, place = _distinct(keys >> level)
        if len(found) > MOST:  # before the cells are allocated for each class
            wider = _needed(found)
            found, cell = np.unique(found >> wider, return_inverse=True)
            level, place = level + wider, cell.reshape(-1)[place]
        if labels.ndim == 2:
            by_class = [np.bincount(place, weights * labels[:, c], len(found)) for c in range(classes)]
            return Histogram(np.array(by_class, dtype=np.float64).reshape(classes, -1), found, level)._settled()
        counts: Array = np.bincount(place * classes + labels, weights, len(found) * classes).astype(np.float64)
        return Histogram(counts.reshape(-1, classes).T.copy(), found, level)._settled()

    @staticmethod
    def of_columns(
        columns: Sequence[Array], labels: NDArray[Any], weights: Array, classes: int, units: NDArray[np.uint32] | None = None,
        *, before: Sequence[Histogram | None] = (),
    ) -> list[Histogram]:
        """Histograms of several columns; short ones without a missing or infinite number are sorted together."""
        n = len(labels)
        if not (0 < n <= MOST and len(columns) > 1 and labels.ndim == 1 and labels.min() >= 0 and weights.min() > 0):
            pairs = zip(columns, before or [None] * len(columns), strict=True)
            return [Histogram.of(x, labels, weights, classes, units, before=other) for x, other in pairs]
        step, found = max(1, SORTED_TOGETHER // n), []
        for a in range(0, len(columns), step):
            x = np.array(columns[a : a + step], np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                plain = np.isfinite(x.sum(1))  # else a number is missing or infinite, or the sum overflows
            made = _sorted_together(x[plain], labels, weights, classes)
            found += [next(made) if one else Histogram.of(y, labels, weights, classes) for one, y in zip(plain, x, strict=True)]
        return found

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Histogram:
        """The histogram from its arrays; ValueError where they do not fit together."""
        seen, keys, level = arrays["seen"], arrays["keys"], int(arrays["level"][0])
        if seen.ndim != 2 or keys.dtype != np.int64 or keys.shape != seen.shape[1:] or not 0 <= level < 64:
            raise ValueError("the cells of a histogram do not fit")
        if len(keys) > MOST or (keys[1:] <= keys[:-1]).any():  # a difference of two keys may overflow
            raise ValueError("the cells of a histogram are not in order")
        return Histogram(seen, keys, level)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {"seen": self.seen, "keys": self.keys, "level": np.array([self.level], np.int64)}

    def weight(self) -> Array:
        """Weight by class."""
        total: Array = self.seen.sum(1)
        return total

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        same = self.level == other.level and np.array_equal(self.keys, other.keys)
        return same and np.array_equal(self.seen, other.seen)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Histogram) -> Histogram:
        a, b = self._alike(other)
        keys = merged(a.keys, b.keys)
        seen = np.zeros((len(a.seen), len(keys)))
        seen[:, np.searchsorted(keys, a.keys)] = a.seen
        seen[:, np.searchsorted(keys, b.keys)] += b.seen
        return Histogram(seen, keys, a.level)._settled()

    def __sub__(self, other: Histogram) -> Histogram:
        a, b = self._alike(other)
        keys = merged(a.keys, b.keys)
        seen, gone = np.zeros((len(a.seen), len(keys))), np.zeros((len(a.seen), len(keys)))
        seen[:, np.searchsorted(keys, a.keys)] = a.seen
        gone[:, np.searchsorted(keys, b.keys)] = b.seen
        return Histogram(subtract_counts(seen, gone), keys, a.level)._settled()

    def __mul__(self, factor: float) -> Histogram:
        if not factor:
            return Histogram(self.seen[:, :0], self.keys[:0], 0)
        return Histogram(self.seen * factor, self.keys, self.level)

    def expand(self, maps: Sequence[Index], sizes: Sequence[int]) -> Histogram:
        """The same histogram with more classes."""
        seen = np.zeros((sizes[0], len(self.keys)))
        seen[maps[0]] = self.seen
        return Histogram(seen, self.keys, self.level)

    def pick(self, maps: Sequence[Index]) -> Histogram:
        """The histogram of some of the classes."""
        return Histogram(self.seen[maps[0]], self.keys, self.level)._settled()

    def _alike(self, other: Histogram) -> tuple[Histogram, Histogram]:
        level = max(self.level, other.level)
        return self._at(level), other._at(level)

    def _at(self, level: int) -> Histogram:
        """The same histogram in wider cells."""
        if level == self.level or not len(self.keys):
            return Histogram(self.seen, self.keys, level)
        keys, first = np.unique(self.keys >> (level - self.level), return_index=True)
        return Histogram(np.add.reduceat(self.seen, first, axis=1), keys, level)

    def _settled(self) -> Histogram:
        """Without empty cells, and in at most `MOST` cells."""
        there = self.seen.any(0)
        held = self if there.all() else Histogram(self.seen[:, there], self.keys[there], self.level)
        return held._at(held.level + _needed(held.keys)) if len(held.keys) > MOST else held

    def edges(self, bins: int, compiled: bool = False) -> Array:
        """Edges of at most so many bins of about equal weight; few distinct numbers get a bin each."""
        if compiled:
            edges = np.empty(max(min(bins, len(self.keys)) - 1, 0))
            return edges[: _histogram_loops.quantile_edges.fast(self.seen, self.keys, self.level, bins, edges)]
        mass = self.seen.sum(0)
        first = np.arange(1, len(mass))
        if len(mass) > bins:
            before = np.concatenate([[0.0], np.cumsum(mass)])
            # Responsibilities sum to the weight only up to rounding, which must not move an edge.
            cuts = np.searchsorted(before - 1e-12 * before[-1], before[-1] * np.arange(1, bins) / bins, side="right") - 1
            first = np.unique(cuts[cuts > 0])
        return self.between(first)

    def between(self, cells: NDArray[Any]) -> Array:
        """Numbers half way between each of these cells and the one before it."""
        above = to_numbers(self.keys[cells] << self.level)
        below = to_numbers(((self.keys[cells - 1] + 1) << self.level) - 1)
        middle = below / 2 + above / 2
        # Adjacent floats have no number between them: the upper one is then the edge.
        return np.where((middle > below) & (middle <= above), middle, above)

    def range(self) -> tuple[float, float]:
        """Lowest and highest number, up to the width of a cell; NaN where there are none."""
        if not len(self.keys):
            return (np.nan, np.nan)
        ends = to_numbers(np.array([self.keys[0] << self.level, ((self.keys[-1] + 1) << self.level) - 1]))
        return float(ends[0]), float(ends[1])

    def middles(self) -> Array:
        """Middle of every cell."""
        low = to_numbers(self.keys << self.level)
        return low / 2 + to_numbers(((self.keys + 1) << self.level) - 1) / 2 if self.level else low

    def centres(self, edges: Array) -> Array:
        """Mean of the numbers in each bin; the midpoint of an empty one."""
        return self.binned(edges)[1]

    def binned(self, edges: Array, compiled: bool = False) -> tuple[Array, Array]:
        """Weight of each bin, bins × classes, and the mean of its numbers; the midpoint of an empty one.

        The numbers are rounded as in a model without rows, so that both give the same parameters.
        """
        if compiled:
            out, means = np.zeros((len(edges) + 1, len(self.seen))), np.empty(len(edges) + 1)
            coarse = _coarse_level(edges)
            _histogram_loops.bin_cells.fast(self.seen, self.keys, self.level, coarse, edges, out, means)
            return out, means
        middles, mass = self.middles(), self.seen.sum(0)
        place, level = np.searchsorted(edges, middles, side="right"), max(self.level, _coarse_level(edges))
        x = middles if level == self.level else Histogram(self.seen, self.keys >> (level - self.level), level).middles()
        weight = np.bincount(place, mass, len(edges) + 1)
        scale = max(float(np.abs(x).max(initial=0.0)), 1e-300)
        mean = np.bincount(place, mass * (x / scale), len(edges) + 1) / np.maximum(weight, 1e-300) * scale
        if len(edges):
            ends = np.concatenate([edges[:1], edges, edges[-1:]])
            mean = np.where(weight > 0, mean, ends[:-1] / 2 + ends[1:] / 2)
        return self._summed(place, len(edges) + 1), mean

    def coarse(self, edges: Array) -> Histogram:
        """The same histogram in cells of about 1/4,096 of its range, finer where the bins between the edges need it."""
        bins = np.searchsorted(edges, self.middles(), side="right")
        for level in range(_coarse_level(edges), self.level, -1):
            keys = self.keys >> (level - self.level)
            middles = Histogram(self.seen, keys, level).middles()
            if np.array_equal(np.searchsorted(edges, middles, side="right"), bins):
                return self._at(level)
        return self

    def cut(self, edges: Array) -> Array:
        """Weight of each bin, bins × classes."""
        return self._summed(np.searchsorted(edges, self.middles(), side="right"), len(edges) + 1)

    def _summed(self, place: NDArray[Any], bins: int) -> Array:
        """Weight of the cells of each bin, bins × classes."""
        out = np.zeros((bins, len(self.seen)))
        np.add.at(out, place, self.seen.T)
        return out


def total_histogram(parts: Sequence[Histogram]) -> Histogram:
    """The sum of histograms of the same classes: their cells are counted as rows are."""
    held = [part for part in parts if len(part.keys)]
    if len(held) < 2:
        return held[0] if held else parts[0]
    level = max(part.level for part in held)
    x = np.concatenate([to_numbers(part.keys << part.level) for part in held])
    seen = np.concatenate([part.seen for part in held], axis=1)
    if not np.isfinite(seen).all():
        return Histogram(np.full((len(seen), 1), np.nan), np.zeros(1, np.int64), 0)  # the caller reports it
    labels = np.repeat(np.arange(len(seen)), len(x))
    return _cells(np.tile(x, len(seen)), labels, seen.reshape(-1), len(seen), level)


def _sorted_together(x: Array, labels: NDArray[Any], weights: Array, classes: int) -> Iterator[Histogram]:
    """Histograms of columns × rows, of which each number has a cell of its own; every row has a class and a weight."""
    keys = to_keys(x)
    order = np.argsort(keys, axis=1, kind="stable")  # weights of equal numbers are added in the order of the rows
    keys = np.take_along_axis(keys, order, 1)
    first = np.ones(keys.shape, bool)
    first[:, 1:] = keys[:, 1:] != keys[:, :-1]
    ends = np.cumsum(first.sum(1)).tolist()
    place = (np.cumsum(first) - 1) * classes
    size = (ends[-1] if ends else 0) * classes
    counts = np.bincount(place + labels[order].ravel(), weights[order].ravel(), size).astype(np.float64, copy=False)
    cells, seen = keys[first], counts.reshape(-1, classes)
    bounds = zip([0, *ends[:-1]], ends, strict=True) if ends else iter(())
    return (Histogram(seen[a:b].T.copy(), cells[a:b].copy(), 0) for a, b in bounds)


def _counted(
    x: Array, labels: NDArray[Any], weights: Array, classes: int, units: NDArray[np.uint32] | None = None,
    *, before: Histogram | None = None,
) -> Histogram:
    """The same histogram by a compiled loop, which finds the level on its way."""
    if before is not None and len(before.keys):
        keys, level = before.keys << before.level, before.level
    else:
        some = slice(None, None, max(1, len(x) // (2 * MOST)))
        used = np.isfinite(x[some]) & (labels[some] >= 0) & (weights[some] > 0)
        keys = np.sort(to_keys(x[some][used]))
        level = _needed(keys)  # all rows need no lower level
    window = _window(keys, level, classes) if units is not None else None
    if units is None or window is None:
        return _cells(x, labels, weights, classes, level)
    shift, low, zero, span = window
    rest, counts = np.empty(len(x), np.int64), np.zeros((classes + 1, 2 * span + 4), np.uint32)
    bits = x.view(np.uint64)
    bits.flags.writeable = False  # as those of Arrow: a kernel is compiled for one of both
    listed = rest[: count_window.fast(bits, units, np.array([shift, low, zero]), rest, counts)]
    keys, seen = np.empty(2 * span + 1, np.int64), np.empty((classes, 2 * span + 1))
    n = cells_of_window.fast(counts, low, keys, seen)
    found = Histogram(seen[:, :n].copy(), keys[:n] << (shift if zero else 0), 0 if zero else shift)
    if len(listed):
        others = _cells(x[listed], labels[listed], weights[listed], classes, level, compiled=True)
        return others if np.isnan(others.seen).any() else found + others  # the caller reports numbers that are not finite
    return found._settled() if n > MOST else found


def _window(keys: Keys, level: int, classes: int) -> tuple[int, int, int, int] | None:
    """Dropped bits, first cell, bits that are zero, and number of adjacent cells that hold most numbers; None if few do.

    Cells are those of absolute values. Where each number has its own cell, trailing bits that are zero in all are dropped.
    """
    sizes = np.abs(keys)
    bits = int(np.bitwise_or.reduce(sizes))
    shift = level or ((bits & -bits).bit_length() - 1 if bits else 0)
    zero = 0 if level else (1 << shift) - 1
    most = WINDOW // (classes + 1)
    cells = sizes >> shift
    last = min(int(cells.max(initial=0)) + most // 8, (INFINITY >> shift) - 1)  # larger numbers may come
    first = int(cells.min(where=sizes > 0, initial=last))  # zero has a place of its own
    low = max(last - most + 1, first - most // 8, 0)
    span = last - low + 1
    inside = int((cells >= low).sum())
    return (shift, low, zero, span) if most >= FEWEST and inside >= 0.9 * max(len(cells), 1) else None


def _cells(
    x: Array, labels: NDArray[Any], weights: Array, classes: int, level: int, *, compiled: bool = False
) -> Histogram:
    """Weight of the cells of these numbers, from a level on that is not too high."""
    state, slots = np.array([level, 0, 0], np.int64), np.full(SLOTS, -1, np.int32)
    cells, counts = np.zeros(MOST + 1, np.int64), np.zeros((MOST + 1, classes))
    (count_cells.fast if compiled else count_cells)(x.view(np.int64), labels, weights, state, slots, cells, counts)
    level, n, infinite = (int(number) for number in state)
    if infinite:
        return Histogram(np.full((classes, 1), np.nan), np.zeros(1, np.int64), 0)  # the caller reports it
    order = np.argsort(cells[:n])
    return Histogram(np.ascontiguousarray(counts[order].T), cells[order], level)


def _coarse_level(edges: Array) -> int:
    """Level at which cells are about 1/4,096 of the range of the bins; 0 without a range."""
    if len(edges) < 2:
        return 0
    low, high = float(edges[0]), float(edges[-1])
    cells = 2 * (high / 2 - low / 2) / COARSE / math.ulp(max(abs(low), abs(high)))
    return min(math.frexp(cells)[1] - 1, 51) if cells > 1 else 0


def to_keys(x: Array) -> Keys:
    """Integers in the order of the numbers, equal where those are equal: 0.0 and -0.0 are one."""
    bits = np.ascontiguousarray(x).view(np.int64)
    return np.where(bits < 0, SIGN - bits, bits)


def to_numbers(keys: Keys) -> Array:
    """Numbers of these keys."""
    kept = np.minimum(np.maximum(keys, -INFINITY + 1), INFINITY - 1)  # np.clip takes five times as long for few
    return np.where(kept < 0, SIGN - kept, kept).view(np.float64)


def _needed(keys: Keys) -> int:
    """Fewest trailing bits to drop so that at most `MOST` of these rising keys stay distinct."""
    low, high = 0, 63
    while low < high:
        middle = (low + high) // 2
        cells = keys >> middle
        if int((cells[1:] != cells[:-1]).sum()) < MOST:
            high = middle
        else:
            low = middle + 1
    return low


def _floor(keys: Keys) -> int:
    """Lower bound of the level, from a subset of the keys."""
    if len(keys) <= 4 * MOST:
        return 0
    return _needed(np.sort(keys[:: len(keys) // (4 * MOST)]))


def _distinct(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Distinct keys, rising, and the index of each key; without a sort where they are dense."""
    low = keys.min()
    offsets = (keys - low).view(np.uint64)  # the difference of two keys can overflow a signed integer
    steps = int(np.bitwise_or.reduce(offsets))
    shift = (steps & -steps).bit_length() - 1 if steps else 0
    width = int(offsets.max() >> np.uint64(shift)) + 1
    if width > max(DENSE, 2 * len(keys)):
        found, place = np.unique(keys, return_inverse=True)
        return found, place.reshape(-1)
    offset = (offsets >> np.uint64(shift)).astype(np.int64)
    there = np.zeros(width, bool)
    there[offset] = True
    return (np.flatnonzero(there) << shift) + low, (np.cumsum(there) - 1)[offset]
