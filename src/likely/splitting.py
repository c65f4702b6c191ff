"""How rows are dealt out to folds: by class, or by groups that stay together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError
from likely.sources import Batch, Coded

Groups = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """How rows are dealt out: `parts` piles of which `tested` are tried, all of them or only the first ones together."""

    parts: int
    tested: int
    seed: int

    @staticmethod
    def of(folds: int | None, holdout: float | None, seed: int) -> Split:
        """The split that folds or a hold-out share ask for."""
        if holdout is not None:
            if folds is not None or not 0 < holdout < 1:
                raise UsageError("holdout must be a share between 0 and 1, and stands instead of folds")
            share = Fraction(holdout).limit_denominator(100)
            if share in (0, 1):
                raise UsageError(f"holdout={holdout} is too near to 0 or 1")
            return Split(share.denominator, share.numerator, seed)
        folds = 5 if folds is None else folds
        if folds < 2:
            raise UsageError(f"folds={folds}: at least two are needed")
        return Split(folds, 0, seed)

    def deal(self, place: Groups, label: int) -> Groups:
        """The pile of the i-th, (i+1)-th ... row of one class: each run of `parts` rows is dealt in a random order.

        The order depends on the seed, the class and the place alone, so it is the same for any size of batch.
        """
        first = int(place[0]) // self.parts
        last = int(place[-1]) // self.parts
        slots = np.arange(first * self.parts, (last + 1) * self.parts, dtype=np.uint64)
        keys = scrambled(slots + np.uint64((label * 1_000_003 + self.seed * 7_919) % 2**40) * np.uint64(2**20 + 7))
        piles = np.argsort(np.argsort(keys.reshape(-1, self.parts), axis=1), axis=1).reshape(-1)
        dealt = piles[place - first * self.parts]
        return dealt if not self.tested else (dealt >= self.tested).astype(np.int64)

    @property
    def piles(self) -> int:
        """How many piles there are in the end."""
        return 2 if self.tested else self.parts

    @property
    def tries(self) -> Sequence[int]:
        """The piles that are tried on the model of all others."""
        return (0,) if self.tested else range(self.parts)


def scrambled(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: a well-mixed number for every place."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def deal(coded: Coded, seen: dict[Any, int], split: Split) -> Groups:
    """The pile of every row of a batch; rows without a label are in none."""
    piles = np.full(len(coded.codes), -1, dtype=np.int64)
    for code, label in enumerate(coded.values):
        rows = np.flatnonzero(coded.codes == code + coded.low)
        if len(rows):
            number = list(seen).index(label) if label in seen else len(seen)
            before = seen.get(label, 0)
            piles[rows] = split.deal(np.arange(before, before + len(rows)), number)
            seen[label] = before + len(rows)
    return piles


def deal_groups(batches: Iterable[Batch], groups: Any, target: str, split: Split) -> Callable[[Batch], Groups]:
    """What gives the pile of every labelled row of a batch: all rows of a group are in one, and the piles about equal.

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
    piles = _piles(sizes, split)

    def deal_batch(batch: Batch) -> Groups:
        found = np.array([piles[group] for group in _groups(batch, groups, given)], np.int64)
        return np.where(_labelled(batch, target), found, -1)

    return deal_batch


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


def _piles(sizes: dict[Any, int], split: Split) -> dict[Any, int]:
    """The pile of each group: the largest group first, always to the pile that has the fewest rows so far."""
    keys = scrambled(np.arange(len(sizes), dtype=np.uint64) + np.uint64(split.seed % 2**40) * np.uint64(2**20 + 7))
    order = sorted(zip(sizes, keys.tolist(), strict=True), key=lambda pair: (-sizes[pair[0]], pair[1]))
    load = np.zeros(split.parts)
    piles = {}
    for group, _ in order:
        part = int(np.argmin(load))
        load[part] += sizes[group]
        piles[group] = part if not split.tested else int(part >= split.tested)
    if len(set(piles.values())) < split.piles:
        raise UsageError(
            f"there are {len(sizes)} groups: too few for {split.parts} folds that keep each group together"
        )
    return piles
