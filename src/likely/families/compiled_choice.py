"""Smoothed evidence of many columns by compiled loops: several columns of as many values in each call.

`smoothing_choice` has the formulas, over the arrays of one column at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families import _smoothing_loops
from likely.families.smoothing_choice import (
    BANDWIDTHS,
    FEWEST,
    NAMES,
    PSEUDOCOUNTS,
    REACH,
    SINGLE,
    SmoothedCounts,
    SmoothedEvidence,
    choose_smoothing,
    gains_of,
)
from likely.families.statistics import Array
from likely.kernels.parallel import in_parallel
from likely.kernels.thread_count import threads

Single = NDArray[np.float32]
Whole = NDArray[np.int64]

COMPILED = 4_000  # entries of the tables of all columns from which compiled loops are worth their import
TOGETHER = 200_000  # smoothed counts of the columns of one call: more would not stay in the processor's cache
ALL_BANDWIDTHS, ALL_PSEUDOCOUNTS = np.array((0.0, *BANDWIDTHS)), np.array(PSEUDOCOUNTS)


def choose_all(seen: Sequence[Array], centres: Sequence[Array | None]) -> list[SmoothedEvidence]:
    """Weight of evidence of the counts of each column, values × classes; see `choose_smoothing`."""
    found: list[Any] = [None] * len(seen)
    usual = [i for i in range(len(seen)) if seen[i].sum() < SINGLE]
    for i in set(range(len(seen))).difference(usual):
        found[i] = choose_smoothing(seen[i], centres[i])

    def work(some: Sequence[int]) -> list[SmoothedEvidence]:
        return _Columns.of([seen[i] for i in some], [centres[i] for i in some]).best()

    parts = alike([(seen[i].shape, centres[i] is None) for i in usual], 1)
    for part, made in zip(parts, in_parallel(lambda part: work([usual[i] for i in part]), parts), strict=True):
        for i, each in zip(part, made, strict=True):
            found[usual[i]] = each
    return found


def gains_of_sets(sets: Sequence[Array], centres: Sequence[Array | None], compiled: bool) -> Array:
    """Gains of the best choices for each column and each of its sets of counts, columns × sets.

    `sets` are the counts of each column, sets × values × classes, which differ only in the classes of the rows.
    """
    found = np.zeros((len(sets), len(sets[0])))
    if not compiled or max(each[0].sum() for each in sets) >= SINGLE:
        for i, (each, numbers) in enumerate(zip(sets, centres, strict=True)):
            found[i] = gains_of(each, each[0], numbers)
        return found

    def work(part: Sequence[int]) -> Array:
        columns = _Columns.of([sets[i][0] for i in part], [centres[i] for i in part])
        lines = np.array([sets[i].transpose(0, 2, 1) for i in part], order="C")
        _, own, whole = columns._shapes(lines)
        return columns._choices(lines, own, whole, len(sets[0]))[1]

    parts = alike([(each.shape, numbers is None) for each, numbers in zip(sets, centres, strict=True)], 1)
    for part, gains in zip(parts, in_parallel(work, parts), strict=True):
        found[part] = gains
    return found


def alike(kinds: Sequence[tuple[tuple[int, ...], bool]], sets: int) -> list[list[int]]:
    """Columns whose tables have the same shape and kind, as many together as one call takes."""
    groups: dict[Any, list[int]] = {}
    for i, kind in enumerate(kinds):
        groups.setdefault(kind, []).append(i)
    parts = []
    for (shape, _), members in groups.items():
        step = TOGETHER // max(len(NAMES) * sets * int(np.prod(shape)), 1)
        step = max(1, min(step, len(members) // (4 * threads())))  # no thread waits long for another
        parts += [members[a : a + step] for a in range(0, len(members), step)]
    return parts


@dataclass(frozen=True)
class _Columns:
    """Counts of columns of the same shape."""

    seen: Array  # columns × values × classes
    lines: Array  # columns × one set × classes × values
    centres: Sequence[Array | None]
    totals: Array  # columns × classes
    ranks: Array  # columns × values
    x: Array  # columns × values: the representative numbers standardised, or nothing
    varies: NDArray[np.bool_]  # of each column: whether Gaussians make sense

    @staticmethod
    def of(seen: Sequence[Array], centres: Sequence[Array | None]) -> _Columns:
        """Counts of each column, values × classes, and the numbers that represent the values."""
        table = np.array(seen, order="C")
        columns, values, classes = table.shape
        wanted = centres[0] is not None and values >= FEWEST
        lines, totals, ranks = np.empty((columns, classes, values)), np.zeros((columns, classes)), np.empty((columns, values))
        x, varies = np.empty((columns, values if wanted else 0)), np.empty(columns, np.bool_)
        numbers = np.array(centres, np.float64) if wanted else x
        _smoothing_loops.standardise.fast(table, numbers, lines, totals, np.empty(values), ranks, x, varies)
        return _Columns(table, lines[:, None], centres, totals, ranks, x, varies & wanted)

    def best(self) -> list[SmoothedEvidence]:
        """Evidence of each column under its best choice."""
        columns = np.arange(len(self.seen))
        often, own, whole = self._shapes(self.lines)
        best, gains = self._choices(self.lines, own, whole, 1)
        at, m = np.divmod(best[:, 0], len(PSEUDOCOUNTS))
        chosen = np.stack([at, columns], axis=1)
        tables, levels = self._tables(often, own, 0, chosen, self._masses(m, columns))
        counts, left_out = (each[at, columns, 0].transpose(0, 2, 1).copy() for each in (often, own))
        rest, names = whole[at, columns, 0], at.tolist()
        return [
            SmoothedEvidence(
                tables[0, k], tables[1, k], levels[k], SmoothedCounts(NAMES[i], i, counts[k], left_out[k], rest[k]),
                self.totals[k], PSEUDOCOUNTS[p], gain, self.seen[k], self.centres[k],
            )
            for k, (i, p, gain) in enumerate(zip(names, m.tolist(), gains[:, 0].tolist(), strict=True))
        ]  # fmt: skip

    def _masses(self, m: Whole, columns: Whole) -> Array:
        """The chosen pseudocounts as relative frequencies."""
        masses: Array = ALL_PSEUDOCOUNTS[m] / (self.totals[columns].sum(1) + 0.5 * self.totals.shape[1])
        return masses

    def _shapes(self, sets: Array) -> tuple[Array, Array, Array]:
        """All shapes of all sets: smoothed counts, the same with one row left out, and the rows left in all classes."""
        columns, sizes, classes, values = sets.shape
        smoothed = len(ALL_BANDWIDTHS) if self.centres[0] is not None and values > 1 else 1
        shapes = len(NAMES) if self.x.size else smoothed
        often, own = np.empty((2, shapes, *sets.shape))
        whole = np.empty((shapes, columns, sizes, values))
        lines, near = sets.reshape(columns, -1, values), np.empty((values, values))
        a, b = (each.reshape(shapes, *lines.shape) for each in (often, own))
        _smoothing_loops.smooth.fast(lines, self.ranks, ALL_BANDWIDTHS[:smoothed], REACH, near, a, b, whole)
        moments, (exponent, bits) = np.empty((3, classes)), np.empty((2, 2 * values))
        scratch, lines = (moments, exponent, bits, bits.view(np.int64)), sets.reshape(-1, classes, values)
        for at in range(smoothed, shapes):
            out = (often[at].reshape(lines.shape), own[at].reshape(lines.shape), whole[at].reshape(-1, values))
            _smoothing_loops.densities.fast(lines, self.x, self.varies, at == len(NAMES) - 1, *scratch, *out)
        return often, own, whole

    def _choices(self, sets: Array, own: Array, whole: Array, n: int) -> tuple[Whole, Array]:
        """Choices of the first n sets of each column, and their gains."""
        columns, sizes, classes, values = sets.shape
        places = np.full((columns, n, (classes + 1) * values, 4), -1, np.int32)
        counts, shares, alone = np.zeros(places.shape[:3]), np.zeros(places.shape), np.zeros((columns, n))
        scratch = np.empty(_smoothing_loops.OPEN), np.empty((2, _smoothing_loops.OPEN), np.int64), np.empty(classes + values)
        most, best, gains = np.zeros(columns, np.int64), np.empty((columns, n), np.int64), np.empty((columns, n))
        _smoothing_loops.pack.fast(sets, *scratch, places, counts, shares, alone, most)
        logs = int(most.max())
        factors, x = np.empty((9, logs), np.float32), np.empty(2 * logs, np.float32)
        # Gaussian densities are the last two shapes.
        shapes = np.where(self.varies, len(own), len(own) - 2) if self.x.size else np.full(columns, len(own))
        _smoothing_loops.choose.fast(
            own.reshape(len(own), columns, sizes, -1), whole, shapes, most, places, counts, shares, alone, ALL_PSEUDOCOUNTS,
            factors, x, x.view(np.int32), best, gains,
        )  # fmt: skip
        return best, gains

    def _tables(self, often: Array, own: Array, place: int, chosen: Whole, masses: Array) -> tuple[Array, Array]:
        """Evidence of the chosen shapes of columns, with all rows and leave-one-out, and its levels."""
        _, values, classes = self.seen.shape
        tables, levels = np.empty((2, len(chosen), values, classes)), np.empty((len(chosen), values))
        _smoothing_loops.to_tables.fast(often, own, place, chosen, self.totals, masses, tables, levels)
        return tables, levels


@dataclass(frozen=True)
class TableRows:
    """Rows of a table of counts: class, weight, and the weight that is left out."""

    labels: NDArray[np.int64]
    weights: Array
    left: Array

    def evidence(
        self, codes: Sequence[NDArray[np.int32]], wholes: Sequence[SmoothedEvidence], folds: int, lowest: float
    ) -> list[tuple[Single, Array | None]]:
        """Leave-one-out evidence for every row, under the choice made without its fold, and all gains; for each column.

        `codes` are the values of the rows. Tables of all columns have the same shape.
        """
        rows = np.array(codes)
        out = np.empty((*rows.shape, wholes[0].seen.shape[1]), np.float32)
        if not folds:
            self._fill(rows, np.arange(len(rows))[:, None], _as_chosen(wholes), lowest, out)
            return [(each, None) for each in out]
        bins = _Columns.of([each.seen for each in wholes], [each.centres for each in wholes])
        sets = np.zeros((len(rows), folds + 1, *bins.lines.shape[2:]))
        _smoothing_loops.without_folds.fast(rows, self.labels, self.weights, bins.seen, sets)
        often, own, whole = bins._shapes(sets)
        best, gains = bins._choices(sets, own, whole, folds)
        columns = np.arange(len(rows))
        distinct, which = np.unique(best * len(rows) + columns[:, None], return_inverse=True)
        choice, column = np.divmod(distinct, len(rows))
        at, m = np.divmod(choice, len(PSEUDOCOUNTS))
        chosen, masses = np.stack([at, column], axis=1), bins._masses(m, column)
        tables = bins._tables(often, own, folds, chosen, masses)
        self._fill(rows, which.reshape(best.shape), (often, own, folds, chosen, bins.totals, masses, *tables), lowest, out)
        every = np.column_stack([gains, [each.gain for each in wholes]])
        return list(zip(out, every, strict=True))

    def _fill(self, rows: NDArray[np.int32], which: Whole, tables: tuple[Any, ...], lowest: float, out: Single) -> None:
        _smoothing_loops.fill_rows.fast(rows, self.labels, self.left, which, *tables, lowest, out)


def _as_chosen(wholes: Sequence[SmoothedEvidence]) -> tuple[Any, ...]:
    """Evidence of columns as `fill_rows` takes it."""
    counts, left = (
        np.array([np.ascontiguousarray(getattr(each.shape, name).T) for each in wholes])[None, :, None]
        for name in ("counts", "left_out")
    )
    chosen = np.stack([np.zeros(len(wholes), np.int64), np.arange(len(wholes))], axis=1)
    tables = np.array([[each.table for each in wholes], [each.left_out for each in wholes]])
    return (
        counts, left, 0, chosen, np.array([each.totals for each in wholes]), np.array([each.mass for each in wholes]),
        tables, np.array([each.level for each in wholes]),
    )  # fmt: skip
