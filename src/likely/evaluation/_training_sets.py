"""Nested training sets of a learning curve: the rows in memory or read again, and their stratified order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.engines import Plan
from likely.evaluation._folds import Groups, Progress, Split, assign_folds, scrambled
from likely.sources import Batch, Coded, Frame, Matrix, Source

CACHE_BYTES = 1 << 28  # bytes of rows that are kept between passes; a larger table is read again for every size


@dataclass(frozen=True)
class CurveRows:
    """The rows, kept in memory if they are few, and the class code of each, -1 where it has none."""

    source: Source
    plan: Plan
    kept: tuple[Batch, ...] | None
    classes: tuple[Any, ...]
    labels: Groups

    @staticmethod
    def of(source: Source, plan: Plan, progress: Progress) -> CurveRows:
        """Read all rows once."""
        known: dict[Any, int] = {}
        labels: list[Groups] = []
        kept: list[Batch] | None = []
        budget = CACHE_BYTES
        for batch in source.batches(plan.kinds()):
            labels.append(_numbered(batch.coded(plan.target), known))
            budget -= _size(batch)
            if kept is not None and budget >= 0:
                kept.append(batch)
            else:
                kept = None
            if progress:
                progress(batch.rows)
        numbers = np.concatenate(labels) if labels else np.zeros(0, np.int64)
        return CurveRows(source, plan, None if kept is None else tuple(kept), tuple(known), numbers)

    def batches(self, parts: Groups) -> Iterator[tuple[Batch, Groups]]:
        """The rows again, each batch with the part of each row."""
        start = 0
        for batch in self.source.batches(self.plan.kinds()) if self.kept is None else self.kept:
            yield batch, parts[start : start + batch.rows]
            start += batch.rows


def _numbered(coded: Coded, known: dict[Any, int]) -> Groups:
    """Class codes in the order of first occurrence, which is the order of `evaluate`."""
    codes = coded.codes.astype(np.int64) - coded.low
    codes[(codes < 0) | (codes >= len(coded.values))] = -1
    move = np.full(len(coded.values) + 1, -1)
    for code in np.unique(codes[codes >= 0]).tolist():
        move[code] = known.setdefault(coded.values[code], len(known))
    return np.asarray(move[codes])


def _size(batch: Batch) -> int:
    """Approximate size of a batch in bytes."""
    if isinstance(batch, Matrix):
        return int(batch.array.nbytes)
    assert isinstance(batch, Frame)
    return sum(64 * len(c) if isinstance(c, list) else int(c.nbytes) for c in batch.columns.values())


@dataclass(frozen=True)
class TrainingOrder:
    """The rows that are held out, and the others in training order."""

    rows: int
    held_out: Groups
    learned: Groups

    @staticmethod
    def of(labels: Groups, split: Split) -> TrainingOrder:
        """Hold out the rows that `evaluate` holds out, and order the others so that each prefix is stratified.

        The j-th of n shuffled rows of a class comes at a random position in the j-th of n equal intervals; the first row of
        every class is moved to the front, so that no training set lacks a class.
        """
        parts = assign_folds(Coded(labels, range(int(labels.max(initial=-1)) + 1)), {}, split)
        rows = np.flatnonzero(parts == 1)
        keys = scrambled(rows.astype(np.uint64) + np.uint64((split.seed + 1) % 2**20) * np.uint64(2**43 + 29))
        shuffled = np.lexsort((keys, labels[rows]))  # class by class
        rows, keys = rows[shuffled], keys[shuffled]
        of_class = np.bincount(labels[rows]) if len(rows) else np.zeros(0, np.int64)
        turn = np.arange(len(rows)) - np.repeat(np.cumsum(of_class) - of_class, of_class)
        place = (turn + scrambled(keys) / 2.0**64) / of_class[labels[rows]]
        return TrainingOrder(len(labels), np.flatnonzero(parts == 0), rows[np.argsort(np.where(turn == 0, place - 1, place))])

    def sizes(self, steps: Sequence[int]) -> tuple[int, ...]:
        """The sizes, the last one limited to the rows available."""
        return tuple(min(step, len(self.learned)) for step in steps)

    def parts(self, sizes: Sequence[int]) -> Groups:
        """For every row the index of the smallest training set with it; -1 if in none, -2 if it is held out."""
        found = np.full(self.rows, -1, np.int64)
        found[self.held_out] = -2
        found[self.learned[: sizes[-1]]] = np.searchsorted(sizes, np.arange(sizes[-1]), side="right")
        return found
