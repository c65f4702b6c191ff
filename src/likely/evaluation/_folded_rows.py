"""The rows of a source with the fold of each: by position, stratified by class, or by a hash of the row or group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likely.engines import Plan
from likely.engines.row_hashes import row_hashes
from likely.errors import UsageError
from likely.evaluation._folds import Groups, Split, assign_folds, assign_groups, hash_groups
from likely.schema import CATEGORY
from likely.sources import Batch, Source

AUTO, POSITION, HASH = "auto", "position", "hash"


@dataclass(frozen=True)
class Assignment:
    """How rows are assigned to folds.

    Attributes
    ----------
    by : str
        "auto", "position" or "hash".
    groups : str, array or None
        A column, or one value a row: all rows of a group are in one fold.
    """

    by: str = AUTO
    groups: Any = None

    @staticmethod
    def of(by: str, groups: Any) -> Assignment:
        """The assignment; UsageError for a word that is not known."""
        if by not in (AUTO, POSITION, HASH):
            raise UsageError(f"folds_by={by!r} is not known: choose one of {AUTO}, {POSITION}, {HASH}")
        return Assignment(by, groups)

    @property
    def column(self) -> tuple[str, ...]:
        """The column of the groups, which is no feature; empty if there is none."""
        return (self.groups,) if isinstance(self.groups, str) else ()

    def by_hash(self, source: Source) -> bool:
        """Whether the folds of a source are assigned by a hash; rows without an order cannot be assigned by position."""
        unordered = _unordered(source)
        if unordered and self.by == POSITION:
            raise UsageError(f"the rows of {source.label} have no order: use folds_by='hash' (--folds-by hash)")
        return unordered or self.by == HASH


def _unordered(source: Any) -> bool:
    """Whether a source, or the one inside it, may give its rows in another order each time."""
    inner = getattr(source, "inner", None)
    return bool(getattr(source, "unordered", False)) or (inner is not None and _unordered(inner))


@dataclass
class FoldedRows:
    """The rows of a source, batch by batch, with the fold of each; `classes` are those seen in the first pass."""

    source: Source
    plan: Plan
    assign: Callable[[Batch, int], Groups]
    column: tuple[str, ...] = ()
    classes: list[Any] = field(default_factory=list)

    @staticmethod
    def of(source: Source, plan: Plan, split: Split, assignment: Assignment) -> FoldedRows:
        """The rows of a source as they are split."""
        kinds = plan.kinds() | dict.fromkeys(assignment.column, CATEGORY)
        by_hash, groups = assignment.by_hash(source), assignment.groups
        if by_hash:
            assign = _by_hash(plan, split, groups)
        elif groups is not None:
            by_group = assign_groups(source.batches(kinds), groups, plan.target, split)
            assign = lambda batch, _: by_group(batch)  # noqa: E731
        else:
            assign = _by_position(plan, split)
        return FoldedRows(source, plan, assign, assignment.column)

    def batches(self) -> Iterator[tuple[Batch, Groups]]:
        """Each batch with the folds of its rows; -1 for rows without a label."""
        kinds = self.plan.kinds() | dict.fromkeys(self.column, CATEGORY)
        known = set(self.classes)
        for number, batch in enumerate(self.source.batches(kinds)):
            coded = batch.coded(self.plan.target)
            there = np.unique(coded.codes[coded.codes >= coded.low] - coded.low).tolist()
            new = [coded.values[i] for i in there if coded.values[i] not in known]
            self.classes += new
            known.update(new)
            yield batch, self.assign(batch, number)


def _by_position(plan: Plan, split: Split) -> Callable[[Batch, int], Groups]:
    """Folds by the position of a row among those of its class; those of the first pass are kept for the others."""
    seen: dict[Any, int] = {}
    kept: list[Groups] = []

    def assign(batch: Batch, number: int) -> Groups:
        if number == len(kept):
            kept.append(assign_folds(batch.coded(plan.target), seen, split))
        return kept[number]

    return assign


def _by_hash(plan: Plan, split: Split, groups: Any) -> Callable[[Batch, int], Groups]:
    """Folds by a hash of each row, or of its group."""

    def assign(batch: Batch, _: int) -> Groups:
        folds = split.by_hash(row_hashes(batch, plan)) if groups is None else hash_groups(batch, groups, split)
        coded = batch.coded(plan.target)
        return np.where(coded.codes >= coded.low, folds, -1)

    return assign
