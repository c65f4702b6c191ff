"""Keys of rows and documents, and the lowest of them: what makes a random sample mergeable.

A key is a hash of all that a row holds, the same on every machine. A sample keeps the rows with the lowest keys, so that it
does not depend on their order or split; equal rows are one, with their weights added.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Key = TypeVar("Key", bound=np.integer)
Cells = Callable[[NDArray[np.intp]], list[NDArray[Any]]]  # all that distinguishes some rows of one key

OPEN = np.iinfo(np.int64).max  # limit of a sample that holds every row


def mix(x: Words) -> Words:
    """Mix bits by the finaliser of splitmix64: all bits are well mixed."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def digest(text: bytes) -> int:
    """64 bits of a digest (BLAKE2b)."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def to_keys(total: Words) -> Ints:
    """The keys of rows from the sums of their cells' hashes, which do not depend on the order of the columns."""
    return (mix(total) >> np.uint64(1)).astype(np.int64)


def distinct(rising: NDArray[Key]) -> NDArray[Key]:
    """Sorted keys, each once; not `np.unique`, which hashes and takes longer where keys nearly rise."""
    return rising[np.append(True, rising[1:] != rising[:-1])] if len(rising) else rising


def merged(some: NDArray[Key], others: NDArray[Key]) -> NDArray[Key]:
    """The keys of two sorted arrays, each once: a stable sort merges two runs that rise."""
    return distinct(np.sort(np.concatenate([some, others]), kind="stable"))


def lowest(keys: Ints, weights: Sequence[Array], most: int, cells: Cells) -> tuple[NDArray[np.intp], list[Array], int]:
    """The rows of the lowest keys, equal rows merged with their weights added; and the lowest key that is dropped."""
    if not len(keys):
        return np.zeros(0, np.intp), list(weights), OPEN
    order = _ranked(keys, cells)
    first = np.flatnonzero(np.append(True, ~_equals_previous(keys, order, cells)))
    limit = OPEN
    kept = len(first)
    if len(first) > most:
        limit = int(keys[order[first[most]]])
        kept = int(np.searchsorted(keys[order[first]], limit))  # rows of one key are kept all or none
    return order[first[:kept]], [np.add.reduceat(w[order], first)[:kept] for w in weights], limit


def weights_in_both(
    keys: tuple[Ints, Ints], weights: tuple[Array, Array], cells: Cells
) -> tuple[NDArray[np.intp], Array, Array]:
    """All rows of two samples, each once, and their weights in one and in the other; rows of the first come first."""
    here = np.append(weights[0], np.zeros(len(keys[1])))
    there = np.append(np.zeros(len(keys[0])), weights[1])
    both = np.concatenate(keys)
    rows, (here, there), _ = lowest(both, [here, there], max(len(both), 1), cells)
    return rows, here, there


def _ranked(keys: Ints, cells: Cells) -> NDArray[np.intp]:
    """The order of the rows by key; where rows of one key differ, by their cells."""
    order = np.argsort(keys)
    rising = keys[order]
    new = np.append(True, rising[1:] != rising[:-1]) if len(keys) else np.zeros(0, bool)
    if new.all():
        return order
    order = np.argsort(keys, kind="stable")  # which takes several times as long
    start = np.maximum.accumulate(np.where(new, np.arange(len(keys)), 0))
    again = np.flatnonzero(~new)
    odd = again[~_equal(cells(order[again]), cells(order[start[again]]))]
    if len(odd):  # equal spellings, or a collision: only the rows of these keys are sorted by their cells
        ambiguous = np.flatnonzero(np.isin(start, start[odd]))
        rows = order[ambiguous]
        order[ambiguous] = rows[np.lexsort((*cells(rows)[::-1], keys[rows]))]
    return order


def _equals_previous(keys: Ints, order: NDArray[np.intp], cells: Cells) -> NDArray[np.bool_]:
    """Whether each row but the first equals the one before it, in this order."""
    same: NDArray[np.bool_] = keys[order[1:]] == keys[order[:-1]]
    at = np.flatnonzero(same)
    if len(at):
        same[at] = _equal(cells(order[at + 1]), cells(order[at]))
    return same


def _equal(some: list[NDArray[Any]], others: list[NDArray[Any]]) -> NDArray[np.bool_]:
    """Which rows have equal cells; two missing cells are equal."""
    same = np.ones(len(some[0]), bool)
    for a, b in zip(some, others, strict=True):
        same &= (a == b) | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else a == b
    return same
