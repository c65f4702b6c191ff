"""A mergeable random sample of rows, drawn by a hash of each row.

The same rows are kept whatever their order and split: those with the lowest keys. Equal rows have one key and are kept once,
with their weights added, so that a weight is a number of copies. Rows that differ may share a key (the hash takes 1, "1" and
"01" for one value, because another table may write it so): rows of equal keys are compared cell by cell.

Never: models.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import ForgetError
from likely.kernels.keys import OPEN, Array, Cells, Ints, Words, digest, distinct, lowest, mix, weights_in_both
from likely.schema import CATEGORY, FEW_VALUES, Column

ROWS = 40_000  # 10,000 more change the log loss by less than 1e-4 nats, and take a sixth longer
CELLS = 8_000_000
FEWEST = 1_000
ROUNDING = 1e-9  # a fraction of a weight below this is rounding error
HASHED_TOGETHER = 1 << 14  # numbers of short columns


@dataclass(frozen=True, eq=False)
class Reservoir:
    """Sample of rows with class and weight: categories as codes of their columns (-1 is missing), numbers as they are."""

    keys: Ints  # ascending; rows of one key are ordered by their cells
    labels: Ints
    weights: Array
    columns: Mapping[str, NDArray[Any]]
    limit: int = OPEN  # every counted row with a lower key is in the sample

    @staticmethod
    def of(keys: Ints, labels: Ints, weights: Array, columns: Mapping[str, NDArray[Any]]) -> Reservoir:
        """The reservoir of some rows, in any order, with any repetitions."""
        rows, (merged,), limit = lowest(keys, [weights], most_rows(len(columns)), _picker(labels, columns))
        return Reservoir(keys[rows], labels[rows], merged, {name: x[rows] for name, x in columns.items()}, limit)

    @staticmethod
    def total(parts: Sequence[Reservoir]) -> Reservoir:
        """The sum of many reservoirs: only the rows that may stay are copied."""
        limit = min(part.limit for part in parts)
        most = most_rows(len(parts[0].columns))
        keys = np.concatenate([part.keys[: np.searchsorted(part.keys, limit)] for part in parts])
        if len(keys) > 2 * most:  # equal rows are one: more are taken than stay
            cut = np.partition(keys, most + most // 2)[most + most // 2]
            if len(distinct(np.sort(keys[keys <= cut]))) > most:
                limit = min(limit, int(cut) + 1)
        some = [part.take(slice(0, int(np.searchsorted(part.keys, limit)))) for part in parts]
        both = Reservoir.of(*_concatenated(some))
        return replace(both, limit=min(limit, both.limit))

    def __len__(self) -> int:
        return len(self.keys)

    def __bool__(self) -> bool:
        """True also for an empty reservoir."""
        return True

    @property
    def complete(self) -> bool:
        """Whether every row that was counted is in the sample."""
        return self.limit == OPEN

    def take(self, rows: NDArray[Any] | slice) -> Reservoir:
        """Some of the rows."""
        columns = {name: x[rows] for name, x in self.columns.items()}
        return Reservoir(self.keys[rows], self.labels[rows], self.weights[rows], columns, self.limit)

    def __add__(self, other: Reservoir) -> Reservoir:
        limit = min(self.limit, other.limit)
        parts = [part.take(np.flatnonzero(part.keys < limit)) for part in (self, other)]
        both = Reservoir.of(*_concatenated(parts))
        return replace(both, limit=min(limit, both.limit))

    def __sub__(self, other: Reservoir) -> Reservoir:
        """Subtract the weights of the other's rows. Rows that were dropped before are not restored."""
        _, labels, _, columns = _concatenated([self, other])
        both = (self.keys, other.keys), (self.weights, other.weights)
        rows, counted, removed = weights_in_both(*both, _picker(labels, columns))
        if self.complete and (removed - counted > ROUNDING * counted).any():
            raise ForgetError("a row to be forgotten was never counted: it was not learned by this model")
        left = np.flatnonzero(counted - removed > ROUNDING * counted)
        return replace(self.take(rows[left]), weights=(counted - removed)[left])

    def in_common(self, other: Reservoir) -> tuple[float, float]:
        """The weight of the other's rows that are in this sample too, and of those that could be, by their keys."""
        limit = min(self.limit, other.limit)
        parts = [part.take(np.flatnonzero(part.keys < limit)) for part in (self, other)]
        (mine, theirs), (_, labels, _, columns) = parts, _concatenated(parts)
        both = (mine.keys, theirs.keys), (mine.weights, theirs.weights)
        _, here, there = weights_in_both(*both, _picker(labels, columns))
        return float(np.minimum(here, there).sum()), float(there.sum())

    def __mul__(self, factor: float) -> Reservoir:
        return (
            replace(self, weights=self.weights * factor) if factor else replace(self.take(np.zeros(0, int)), limit=OPEN)
        )

    def moved(self, labels: NDArray[Any] | None, places: Mapping[str, NDArray[Any]]) -> Reservoir:
        """The same rows with class i recoded to labels[i] and value i of a column to places[name][i]; class -1 drops rows."""
        columns = {name: _moved(x, places[name]) if name in places else x for name, x in self.columns.items()}
        moved = replace(self, columns=columns)
        if labels is not None:
            there = np.asarray(labels)[self.labels] if len(self) else self.labels
            moved = replace(moved, labels=there)
            moved = moved if (there >= 0).all() else moved.take(np.flatnonzero(there >= 0))
        if (moved.keys[1:] == moved.keys[:-1]).any():  # equal rows are merged, rows of one key ordered by their cells
            picker = _picker(moved.labels, moved.columns)
            rows, (weights,), _ = lowest(moved.keys, [moved.weights], len(moved), picker)
            return replace(moved.take(rows), weights=weights)
        return moved

    def without_cells(self, columns: Iterable[Column]) -> Reservoir:
        """The same rows with every cell of these columns missing."""
        none = {
            c.name: np.full(len(self), -1, np.int32) if c.kind == CATEGORY else np.full(len(self), np.nan)
            for c in columns
        }
        return replace(self, columns={**self.columns, **none})

    def without(self, name: str) -> Reservoir:
        """The rows without one of their columns."""
        return replace(self, columns={n: x for n, x in self.columns.items() if n != name})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reservoir):
            return NotImplemented
        if self.columns.keys() != other.columns.keys() or self.limit != other.limit:
            return False
        pairs = [(self.keys, other.keys), (self.labels, other.labels), (self.weights, other.weights)]
        pairs += [(self.columns[name], other.columns[name]) for name in self.columns]
        return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]


def most_rows(columns: int) -> int:
    """Most rows in a sample of so many columns."""
    return max(FEWEST, min(ROWS, CELLS // max(columns, 1)))


def _picker(labels: Ints, columns: Mapping[str, NDArray[Any]]) -> Cells:
    return lambda rows: [labels[rows], *(columns[name][rows] for name in sorted(columns))]


def _concatenated(parts: Sequence[Reservoir]) -> tuple[Ints, Ints, Array, dict[str, NDArray[Any]]]:
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    keys, labels, weights = (np.concatenate([getattr(p, n) for p in parts]) for n in ("keys", "labels", "weights"))
    return keys, labels, weights, columns


def _moved(codes: NDArray[Any], places: NDArray[Any]) -> NDArray[np.int32]:
    moved: NDArray[np.int32] = np.append(places, -1)[codes].astype(np.int32)  # code -1 reads the last entry
    return moved


def hashes(values: Sequence[Any], name: str) -> Words:
    """A hash of every value, the same on every machine; equal for 1, 1.0, True and their spellings."""
    if isinstance(values, range):
        return number_hashes(np.array(values, dtype=np.float64), name)
    if isinstance(values, tuple) and len(values) <= FEW_VALUES and all(type(value) is str for value in values):
        return _hashes_of_texts(values, name)
    return _hashes(values, name)


@lru_cache(256)  # every batch of a table has the same texts
def _hashes_of_texts(values: tuple[str, ...], name: str) -> Words:
    return _hashes(values, name)


def _hashes(values: Sequence[Any], name: str) -> Words:
    numbers = [_of_text(value) if type(value) is str else _number(value) for value in values]
    return mix(np.array(numbers, dtype=np.uint64) ^ seed(name))


@lru_cache(1 << 16)  # every batch of a table has the same texts
def _of_text(value: str) -> int:
    return _number(value)


def _number(value: Any) -> int:
    """The bits of a number, or of a text that is one; of other values, a digest of their text."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        value = value.lower() == "true"
    try:
        return int.from_bytes(struct.pack("<d", float(value) + 0.0), "little")
    except (TypeError, ValueError, OverflowError):
        text = f"{type(value).__name__} {value}".encode("utf-8", "surrogatepass")
        return digest(text)


def number_hashes(x: Array, name: str) -> Words:
    """A hash of every number of a column; all NaN are equal, and so are 0.0 and -0.0."""
    return mix(np.where(np.isnan(x), np.nan, x + 0.0).view(np.uint64) ^ seed(name))


def sums_of_number_hashes(columns: Sequence[Array], names: Sequence[str]) -> Words:
    """The sum of the hashes of each row's numbers: `number_hashes` of every column, added."""
    total = np.zeros(len(columns[0]), np.uint64)
    step = max(1, HASHED_TOGETHER // max(len(total), 1))
    for a in range(0, len(columns), step):
        x, seeds = np.array(columns[a : a + step]) + 0.0, np.array([seed(name) for name in names[a : a + step]])
        x[np.isnan(x)] = np.nan
        total += mix(x.view(np.uint64) ^ seeds[:, None]).sum(0, dtype=np.uint64)
    return total


def missing_hash(name: str) -> Words:
    """The hash of a missing cell, independent of the column's kind, which may be unknown in a part of a table."""
    return number_hashes(np.array([np.nan]), name)


def seed(name: str) -> np.uint64:
    """Seed of a column, from its name."""
    return np.uint64(digest(name.encode("utf-8", "surrogatepass")))
