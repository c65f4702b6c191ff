"""Rows in the order of their sequences; repeated rows are scored once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines.e_step import CachedBatch, LabelledRows, count_weighted, log_joint
from likely.engines.scorer import Scorer
from likely.errors import DataError, UsageError, no_column
from likely.families import Block
from likely.kernels.parallel import cached_property
from likely.schema import CATEGORY
from likely.sources import Source
from likely.sources.row_access import take
from likely.tally import Tally

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
FEWEST_REPEATS = 4  # mean number of equal rows from which on each distinct row is scored once


@dataclass(frozen=True)
class SequenceRows:
    """Rows in the order of their sequences: sequence s has the rows edges[s] to edges[s + 1]."""

    parts: Sequence[LabelledRows]  # batches, known states (-1: hidden), and each row with the weight of its sequence
    edges: Whole
    order: NDArray[np.intp] | None = None  # where the rows of one sequence are not consecutive

    @property
    def rows(self) -> int:
        """Number of rows of all sequences."""
        return int(self.edges[-1])

    @cached_property
    def weights(self) -> Array:
        """Weight of every row."""
        return self.by_sequence(np.concatenate([w for _, _, w in self.parts]))

    @cached_property
    def known(self) -> Whole | None:
        """Known states, -1 where hidden; None if all are hidden."""
        known = np.concatenate([labels for _, labels, _ in self.parts])
        return self.by_sequence(known) if (known >= 0).any() else None

    def by_sequence(self, x: NDArray[Any]) -> NDArray[Any]:
        """An array in the order of the source, put into the order of the sequences."""
        return x if self.order is None else x[self.order]

    def as_read(self, x: NDArray[Any]) -> NDArray[Any]:
        """An array in the order of the sequences, put into the order of the source."""
        if self.order is None:
            return x
        back = np.empty_like(x)
        back[self.order] = x
        return back

    def log_likelihoods(self, emission: Scorer) -> Array:
        """Log-likelihood of every row in each state; a known state excludes the others."""
        scorer = replace(emission, log_prior=np.zeros(k := len(emission.log_prior)))
        each = [log_joint(b, scorer) if isinstance(b, CachedBatch) else scorer.log_joint(b) for b, _, _ in self.parts]
        found: Array = self.by_sequence(each[0] if len(each) == 1 else np.concatenate(each))
        if self.known is not None:
            found[(self.known >= 0)[:, None] & (self.known[:, None] != np.arange(k))] = -np.inf
        return found

    @cached_property
    def distinct(self) -> tuple[SequenceRows, Whole] | None:
        """The distinct rows, and which of them each row equals; None if most rows differ, or some states are known."""
        if self.known is not None or not all(isinstance(batch, CachedBatch) for batch, _, _ in self.parts):
            return None
        return _distinct(self)

    def count(self, scorer: Scorer, blocks: Sequence[Block], responsibilities: Array, complete: bool = True) -> Tally:
        """Expected counts of the emissions: the rows counted by the responsibilities of their states."""
        responsibilities, at, total = self.as_read(responsibilities), 0, None
        for batch, _, _ in self.parts:
            some = responsibilities[at : at + batch.rows]
            part = count_weighted(batch, scorer, blocks, some, complete=complete)
            total = part if total is None else total + part
            at += batch.rows
        assert total is not None
        return total


def _distinct(sequences: SequenceRows) -> tuple[SequenceRows, Whole] | None:
    """The first of the rows that are equal in all columns, and which of them each row equals."""
    schema = sequences.parts[0][0].schema
    if any(column.kind != CATEGORY for column in schema.columns):
        return None
    place = np.zeros(sequences.rows, np.int64)
    for column in schema.columns:
        codes = np.concatenate([batch.coded(column.name).codes for batch, _, _ in sequences.parts]).astype(np.int64)
        found, place = np.unique(place * (len(column.values) + 1) + codes + 1, return_inverse=True)
        if len(found) > sequences.rows // FEWEST_REPEATS:
            return None
    first = np.sort(np.unique(place, return_index=True)[1])
    rank = np.empty(len(first), np.int64)
    rank[place[first]] = np.arange(len(first))
    parts: list[LabelledRows] = []
    at = 0
    for batch, labels, weights in sequences.parts:
        chosen = first[(first >= at) & (first < at + batch.rows)] - at
        if len(chosen):
            own = CachedBatch(take(batch.batch, chosen), schema)
            parts.append(LabelledRows(own, labels[chosen], weights[chosen]))
        at += batch.rows
    return SequenceRows(parts, np.array([0, len(first)])), sequences.by_sequence(rank[place])


def in_sequences(
    parts: Iterable[LabelledRows], lengths: Any = None, by: Sequence[Any] | None = None
) -> SequenceRows:
    """Rows as sequences: of the given lengths, or those with the same name in `by`; else all are one sequence."""
    kept = list(parts)
    if by is not None:
        place: dict[Any, int] = {}
        codes = np.array([place.setdefault(name, len(place)) for name in by], np.int64)
        order = None if (np.diff(codes) >= 0).all() else np.argsort(codes, kind="stable")
        return SequenceRows(kept, np.cumsum([0, *np.bincount(codes)]), order)
    return SequenceRows(kept, np.cumsum([0, *checked_lengths(lengths, sum(batch.rows for batch, _, _ in kept))]))


def hidden_rows(batches: Iterable[Any], lengths: Any = None, by: Sequence[Any] | None = None) -> SequenceRows:
    """Rows whose states are not known, each with a weight of one, as sequences."""
    parts = [LabelledRows(batch, np.full(batch.rows, -1, np.int64), np.ones(batch.rows)) for batch in batches]
    return in_sequences(parts, lengths, by)


def check_ends(by: str | None, lengths: Any) -> None:
    """Refuse two definitions of where sequences end."""
    if by is not None and lengths is not None:
        raise UsageError("by= and lengths= both define where sequences end: pass one of them")


def checked_lengths(lengths: Any, rows: int) -> Whole:
    """Number of rows of each sequence; without lengths, all rows are one sequence."""
    each = np.array([rows] if lengths is None else lengths)
    whole = each.ndim == 1 and each.dtype.kind in "iuf" and bool((each == each // 1).all())
    if not whole or (each < 1).any() or each.sum() != rows:
        raise UsageError(f"lengths={each.tolist()!r:.80} must be whole numbers of one or more that sum to {rows} rows")
    return each.astype(np.int64)


def named_by(source: Source, by: str) -> list[Any]:
    """Name of the sequence of every row."""
    found: list[Any] = []
    for batch in source.batches({by: CATEGORY}):
        if by not in batch.names:
            raise no_column(source.label, by, batch.names)
        coded = batch.coded(by)
        places, values = coded.codes.astype(np.int64) - coded.low, list(coded.values)
        bad = (places < 0) | (places >= len(values))
        if bad.any():
            row = batch.start + int(bad.argmax()) + 1
            raise DataError("names no sequence", column=by, row=row, remedy="fill it in, or leave the row out")
        found += [values[p] for p in places.tolist()]
    return found
