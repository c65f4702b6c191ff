"""Assignment of rows to folds: stratified by class, or by groups that stay together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError
from likely.kernels.keys import mix
from likely.sources import Batch, Coded
from likely.tally.row_sample import hashes

Groups = NDArray[np.int64]
Progress = Callable[[int], None] | None


@dataclass(frozen=True)
class Split:
    """Split of rows into `parts`: each part is a test fold, or the first `tested` parts together are the held-out rows."""

    parts: int
    tested: int
    seed: int

    @staticmethod
    def of(folds: int | None, holdout: float | None, seed: int) -> Split:
        """The split for a number of folds or a held-out fraction."""
        if holdout is not None:
            if folds is not None or not 0 < holdout < 1:
                raise UsageError("holdout must be a fraction between 0 and 1, and replaces folds")
            share = Fraction(holdout).limit_denominator(100)
            if share in (0, 1):
                raise UsageError(f"holdout={holdout} is too near to 0 or 1")
            return Split(share.denominator, share.numerator, seed)
        folds = 5 if folds is None else folds
        if folds < 2:
            raise UsageError(f"folds={folds}: at least two are needed")
        return Split(folds, 0, seed)

    def assign(self, place: Groups, label: int) -> Groups:
        """The fold of the i-th, (i+1)-th ... row of one class: a random permutation for each run of `parts` rows.

        It depends on the seed, the class and the position alone, so it is the same for any size of batch.
        """
        first = int(place[0]) // self.parts
        last = int(place[-1]) // self.parts
        slots = np.arange(first * self.parts, (last + 1) * self.parts, dtype=np.uint64)
        keys = scrambled(slots + np.uint64((label * 1_000_003 + self.seed * 7_919) % 2**40) * np.uint64(2**20 + 7))
        folds = np.argsort(np.argsort(keys.reshape(-1, self.parts), axis=1), axis=1).reshape(-1)
        found = folds[place - first * self.parts]
        return found if not self.tested else (found >= self.tested).astype(np.int64)

    def by_hash(self, keys: Groups) -> Groups:
        """The fold of rows or groups with these hashes; equal ones are in one fold, and the folds have about equal size."""
        start = np.uint64(self.seed % 2**40) * np.uint64(2**20 + 7)
        found = (scrambled(keys.astype(np.uint64) + start) % np.uint64(self.parts)).astype(np.int64)
        return found if not self.tested else (found >= self.tested).astype(np.int64)

    @property
    def fold_count(self) -> int:
        """Number of folds; 2 with held-out rows."""
        return 2 if self.tested else self.parts

    @property
    def tested_folds(self) -> Sequence[int]:
        """The folds on which the model of all others is evaluated."""
        return (0,) if self.tested else range(self.parts)


scrambled = mix  # a well-mixed number for every position


def assign_folds(coded: Coded, seen: dict[Any, int], split: Split) -> Groups:
    """The fold of every row of a batch; -1 for rows without a label."""
    folds = np.full(len(coded.codes), -1, dtype=np.int64)
    for code, label in enumerate(coded.values):
        rows = np.flatnonzero(coded.codes == code + coded.low)
        if len(rows):
            number = list(seen).index(label) if label in seen else len(seen)
            before = seen.get(label, 0)
            folds[rows] = split.assign(np.arange(before, before + len(rows)), number)
            seen[label] = before + len(rows)
    return folds


def hash_groups(batch: Batch, groups: Any, split: Split) -> Groups:
    """The fold of every row of a batch by the hash of its group, which is the value of a column."""
    if not isinstance(groups, str):
        raise UsageError("folds by a hash need groups= as the name of a column: the rows have no order")
    values = _groups(batch, groups, None)
    known = {group: i for i, group in enumerate(dict.fromkeys(values))}
    folds = split.by_hash(hashes(tuple(known), "\0group").astype(np.int64))
    return folds[[known[group] for group in values]] if values else folds


def assign_groups(batches: Iterable[Batch], groups: Any, target: str, split: Split) -> Callable[[Batch], Groups]:
    """A function from batch to the fold of each row: all rows of a group are in one, and the folds have about equal size.

    `groups` is the name of a column, or one value a row.
    """
    given = None if isinstance(groups, str) else np.asarray(groups, dtype=object).reshape(-1)
    sizes: dict[Any, int] = {}
    rows = 0
    for batch in batches:
        rows += batch.rows
        labelled = _labelled(batch, target)
        for group, label in zip(_groups(batch, groups, given), labelled.tolist(), strict=True):
            sizes[group] = sizes.get(group, 0) + label
    if given is not None and len(given) != rows:
        raise DataError(f"there are {len(given)} groups for {rows} rows: pass one a row")
    folds = _folds_of_groups(sizes, split)

    def assign_batch(batch: Batch) -> Groups:
        found = np.array([folds[group] for group in _groups(batch, groups, given)], np.int64)
        return np.where(_labelled(batch, target), found, -1)

    return assign_batch


def _labelled(batch: Batch, target: str) -> NDArray[np.bool_]:
    coded = batch.coded(target)
    there: NDArray[np.bool_] = coded.codes >= coded.low
    return there


def _groups(batch: Batch, groups: Any, given: NDArray[Any] | None) -> list[Any]:
    """The group of every row of a batch."""
    if given is not None:
        part = given[batch.start : batch.start + batch.rows].tolist()
        return [*part, *[None] * (batch.rows - len(part))]
    if groups not in batch.names:
        raise DataError(f"there is no column {groups!r} of groups: there are {list(batch.names)[:20]}", column=groups)
    coded = batch.coded(groups)
    values = [*coded.values, None]
    found = [values[code] if code >= 0 else None for code in (coded.codes - coded.low).tolist()]
    if None in found:
        row = batch.start + found.index(None) + 1
        raise DataError("is missing: every row needs a group", column=groups, row=row, remedy="fill it in")
    return found


def _folds_of_groups(sizes: dict[Any, int], split: Split) -> dict[Any, int]:
    """The fold of each group: the largest group first, each to the fold with the fewest rows so far."""
    keys = scrambled(np.arange(len(sizes), dtype=np.uint64) + np.uint64(split.seed % 2**40) * np.uint64(2**20 + 7))
    order = sorted(zip(sizes, keys.tolist(), strict=True), key=lambda pair: (-sizes[pair[0]], pair[1]))
    load = np.zeros(split.parts)
    folds = {}
    for group, _ in order:
        part = int(np.argmin(load))
        load[part] += sizes[group]
        folds[group] = part if not split.tested else int(part >= split.tested)
    if len(set(folds.values())) < split.fold_count:
        raise UsageError(
            f"there are {len(sizes)} groups: too few for {split.parts} folds that keep each group together"
        )
    return folds
