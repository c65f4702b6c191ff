"""Rows in the order of their sequences, and rows that are alike as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines.score import Scorer
from likely.engines.shares import Held, count_given, log_joint
from likely.errors import DataError, UsageError
from likely.families import Block
from likely.schema import CATEGORY
from likely.sources import Source
from likely.sources.rows import take
from likely.tally import Tally
from likely.threads import cached_property

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Part = tuple[Held, Whole, Array]  # rows, the place of their state (-1: hidden), their weights
ALIKE = 4  # rows of a kind, in the mean, from which on they are looked at as one


@dataclass(frozen=True)
class Steps:
    """Rows in the order of their sequences: sequence s is the stretch from edges[s] to edges[s + 1]."""

    parts: Sequence[Part]  # batches, known states (-1: hidden), and each row with the weight of its sequence
    edges: Whole
    order: NDArray[np.intp] | None = None  # where the rows of one sequence do not stand together

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return int(self.edges[-1])

    @cached_property
    def weights(self) -> Array:
        """The weight of every row."""
        return self.along(np.concatenate([w for _, _, w in self.parts]))

    @cached_property
    def known(self) -> Whole | None:
        """The known states, -1 where hidden; None where all are."""
        known = np.concatenate([labels for _, labels, _ in self.parts])
        return self.along(known) if (known >= 0).any() else None

    def along(self, x: NDArray[Any]) -> NDArray[Any]:
        """Rows as they were read, in the order of their sequences."""
        return x if self.order is None else x[self.order]

    def as_read(self, x: NDArray[Any]) -> NDArray[Any]:
        """The way back."""
        if self.order is None:
            return x
        back = np.empty_like(x)
        back[self.order] = x
        return back

    def logs(self, emission: Scorer) -> Array:
        """The log likelihood of every row in each state; a known state rules the others out."""
        scorer = replace(emission, log_prior=np.zeros(k := len(emission.log_prior)))
        each = [log_joint(b, scorer) if isinstance(b, Held) else scorer.log_joint(b) for b, _, _ in self.parts]
        found: Array = self.along(each[0] if len(each) == 1 else np.concatenate(each))
        if self.known is not None:
            found[(self.known >= 0)[:, None] & (self.known[:, None] != np.arange(k))] = -np.inf
        return found

    @cached_property
    def kinds(self) -> tuple[Steps, Whole] | None:
        """One row of each kind, and of which kind each row is; None where most rows differ, or some states are known."""
        if self.known is not None or not all(isinstance(batch, Held) for batch, _, _ in self.parts):
            return None
        return _kinds(self)

    def count(self, scorer: Scorer, blocks: Sequence[Block], shares: Array, complete: bool = True) -> Tally:
        """What each state shows: the rows counted by their shares."""
        shares, at, total = self.as_read(shares), 0, None
        for batch, _, _ in self.parts:
            some = shares[at : at + batch.rows]
            part = count_given(batch, scorer, blocks, some, complete=complete)
            total = part if total is None else total + part
            at += batch.rows
        assert total is not None
        return total


def _kinds(steps: Steps) -> tuple[Steps, Whole] | None:
    """Rows that are alike in all columns, as one: each kind by the first row that is of it."""
    schema = steps.parts[0][0].schema
    if any(column.kind != CATEGORY for column in schema.columns):
        return None
    place = np.zeros(steps.rows, np.int64)
    for column in schema.columns:
        codes = np.concatenate([batch.coded(column.name).codes for batch, _, _ in steps.parts]).astype(np.int64)
        found, place = np.unique(place * (len(column.values) + 1) + codes + 1, return_inverse=True)
        if len(found) > steps.rows // ALIKE:
            return None
    first = np.sort(np.unique(place, return_index=True)[1])
    rank = np.empty(len(first), np.int64)
    rank[place[first]] = np.arange(len(first))
    parts: list[Part] = []
    at = 0
    for batch, labels, weights in steps.parts:
        chosen = first[(first >= at) & (first < at + batch.rows)] - at
        if len(chosen):
            parts.append((Held(take(batch.batch, chosen), schema), labels[chosen], weights[chosen]))
        at += batch.rows
    return Steps(parts, np.array([0, len(first)])), steps.along(rank[place])


def in_sequences(parts: Iterable[Part], lengths: Any = None, by: Sequence[Any] | None = None) -> Steps:
    """Rows as sequences: of the given lengths, or those with the same name in `by`; else all are one sequence."""
    held = list(parts)
    if by is not None:
        place: dict[Any, int] = {}
        codes = np.array([place.setdefault(name, len(place)) for name in by], np.int64)
        order = None if (np.diff(codes) >= 0).all() else np.argsort(codes, kind="stable")
        return Steps(held, np.cumsum([0, *np.bincount(codes)]), order)
    return Steps(held, np.cumsum([0, *checked_lengths(lengths, sum(batch.rows for batch, _, _ in held))]))


def checked_lengths(lengths: Any, rows: int) -> Whole:
    """How many rows each sequence has; where nothing is said, all are one sequence."""
    each = np.array([rows] if lengths is None else lengths)
    whole = each.ndim == 1 and each.dtype.kind in "iuf" and bool((each == each // 1).all())
    if not whole or (each < 1).any() or each.sum() != rows:
        raise UsageError(f"lengths={each.tolist()!r:.80} must be whole numbers of one or more that sum to {rows} rows")
    return each.astype(np.int64)


def named_by(source: Source, by: str) -> list[Any]:
    """The name of the sequence of every row."""
    found: list[Any] = []
    for batch in source.batches({by: CATEGORY}):
        coded = batch.coded(by)
        places, values = coded.codes.astype(np.int64) - coded.low, list(coded.values)
        bad = (places < 0) | (places >= len(values))
        if bad.any():
            row = batch.start + int(bad.argmax()) + 1
            raise DataError("names no sequence", column=by, row=row, remedy="fill it in, or leave the row out")
        found += [values[p] for p in places.tolist()]
    return found
