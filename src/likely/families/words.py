"""What was counted of words: a growing table of words × classes that adds in time of the smaller side.

A document has a hundred words, a corpus a hundred thousand. Adding the one to the other must not copy the other. So the
newest sum takes the table over and writes into it, and the summand keeps only what was overwritten (Baker's trick for
persistent arrays): every value stays what it was, and the common case, going on with the sum, costs the document alone.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import ForgetError
from likely.families.sample import Sample
from likely.families.statistics import Array, Index, subtract_counts
from likely.threads import held_at_fork
from likely.tokens import Vocabulary
from likely.tokens.spans import zeros

Ids = NDArray[Any]
_LOCK = held_at_fork(threading.RLock(), 1)
RESERVE = 1 << 27  # bytes of room at most for words that are only expected


class Words:
    """How much of each word was seen in each class and, where it is wanted, in how many documents it stood."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        vocabulary: Vocabulary,
        table: Array,
        documents: Array,
        sample: Sample | None = None,
        total: Array | None = None,
        all_known: bool = False,
    ) -> None:
        """`table` is words × classes, once for what was seen and once more for documents, if they are counted.

        Whoever has counted knows the `total` of each class, and whether every word was counted.
        """
        self.vocabulary = vocabulary
        self.documents = documents  # the weight of the documents of each class
        self.sample = sample  # some whole documents, where a second stage wants to leave them out
        self._table: Array | None = table
        self._newer: tuple[Words, Ids, Array] | None = None
        self._lent = False  # somebody reads the table where it stands: a sum must not write into it
        mine = table[: len(vocabulary)]
        self.total = mine[:, : len(documents)].sum(0) if total is None else total
        # Nothing is negative: no sum, no word. Linear algebra would be no faster, and its threads linger on the cores.
        self.known = len(mine) if all_known else int(np.count_nonzero(np.einsum("wc->w", mine)))

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.documents)

    @property
    def table(self) -> Array:
        """All that was counted of each word; the next sum copies it, so that this one stays what it is."""
        with _LOCK:
            self._lent = True
            return self._own()[: len(self.vocabulary)]

    def rows(self, ids: Ids, columns: slice = slice(None)) -> Array:
        """What was counted of some words, as a copy: the next sum may take the table over."""
        with _LOCK:
            rows: Array = self._own()[:, columns][ids]
            return rows

    def seen_of(self, ids: Ids) -> Array:
        """How much of each of these words was seen in each class."""
        return self.rows(ids, slice(self.classes))

    def holders_of(self, ids: Ids) -> Array:
        """The weight of the documents of each class that hold each of these words."""
        return self.rows(ids, slice(-self.classes, None))

    @property
    def seen(self) -> Array:
        """How much of each word was seen in each class."""
        return self.table[:, : self.classes]

    @property
    def holders(self) -> Array:
        """The weight of the documents of each class that hold the word; what was seen, if nothing else was counted."""
        return self.table[:, -self.classes :] if self.classes else self.table

    def _own(self) -> Array:
        """The table of this value; made anew from a newer one's if that has taken it over."""
        with _LOCK:
            chain, at = [], self
            while at._table is None:
                assert at._newer is not None
                chain.append(at)
                at = at._newer[0]
            if chain:
                table = at._table[: len(at.vocabulary)].copy()
                for old in reversed(chain):
                    assert old._newer is not None
                    table[old._newer[1]] = old._newer[2]
                self._table, self._newer, self._lent = table, None, False
            assert self._table is not None
            return self._table

    def _moved(self, vocabulary: Vocabulary, ids: Ids, rows: Array, documents: Array, sample: Sample | None) -> Words:
        """The value in which some words have other numbers; it takes the table over, unless somebody reads it."""
        own = self._own()
        table = roomy(own, len(vocabulary))
        if self._lent and table is own:
            table = own.copy()
        before = table[ids]
        new = Words.__new__(Words)
        new.vocabulary, new.documents, new.sample = vocabulary, documents, sample
        new._table, new._newer, new._lent = table, None, False
        new.total = self.total + (rows - before)[:, : self.classes].sum(0)
        new.known = self.known + int(rows.any(1).sum()) - int(before.any(1).sum())
        table[ids] = rows
        if table is own:
            self._table, self._newer = None, (new, ids, before)
        return new

    def __add__(self, other: Words) -> Words:
        if not other.documents.any():  # rows without a label: their classes, and so the width of the table, are not known
            return self
        if not self.documents.any():
            return other
        with _LOCK:
            vocabulary, (_, ids) = self.vocabulary.union(other.vocabulary)
            own = self._own()
            table = roomy(own, len(vocabulary))
            self._table, self._lent = table, self._lent and table is own
            sample = self.sample and other.sample and self.sample + other.sample.renamed(ids)
            more = other._own()[: len(other.vocabulary)]
            return self._moved(vocabulary, ids, table[ids] + more, self.documents + other.documents, sample)

    def __sub__(self, other: Words) -> Words:
        if not other.documents.any():
            return self
        with _LOCK:
            ids, rows = self._places(other)
            if ids is None:
                raise ForgetError("holds words that were never counted: these documents were not learned by this model")
            left = subtract_counts(self.rows(ids), rows)
            sample = self.sample and other.sample and self.sample - other.sample
            return self._moved(self.vocabulary, ids, left, subtract_counts(self.documents, other.documents), sample)

    def _places(self, other: Words) -> tuple[Ids | None, Array]:
        """Where the words that another has counted stand here, and their numbers there; None if one is unknown."""
        with _LOCK:
            table = other._own()[: len(other.vocabulary)]
            alive = np.flatnonzero(table.any(1))
            rows = table[alive]
        ids = self.vocabulary.find_all(other.vocabulary)[alive]
        return (None if (ids < 0).any() else ids), rows

    def __mul__(self, factor: float) -> Words:
        return Words(
            self.vocabulary, self.table * factor, self.documents * factor, self.sample and self.sample * factor
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Words):
            return NotImplemented
        if self.known != other.known or not np.array_equal(self.documents, other.documents):
            return False
        ids, rows = self._places(other)
        return ids is not None and np.array_equal(self.rows(ids), rows)

    def expand(self, maps: Sequence[Index], sizes: Sequence[int]) -> Words:
        """The same words with more classes."""
        (places,), (size,) = maps, sizes
        if size == self.classes and np.array_equal(places, np.arange(size)):
            return self
        parts = self.table.shape[1] // self.classes if self.classes else 1
        table, documents = np.zeros((len(self.vocabulary), parts * size)), np.zeros(size)
        for part in range(parts):
            table[:, places + part * size] = self.table[:, part * self.classes : (part + 1) * self.classes]
        documents[places] = self.documents
        return Words(self.vocabulary, table, documents, self.sample and self.sample.with_labels(places))

    def pick(self, maps: Sequence[Index]) -> Words:
        """The same words with fewer classes."""
        (places,) = maps
        if np.array_equal(places, np.arange(self.classes)):
            return self
        parts = self.table.shape[1] // self.classes
        columns = np.concatenate([places + part * self.classes for part in range(parts)])
        moved = np.full(self.classes, -1)
        moved[places] = np.arange(len(places))
        sample = self.sample and self.sample.with_labels(moved)
        return Words(self.vocabulary, self.table[:, columns], self.documents[places], sample)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The numbers themselves, by name; words that were forgotten are left out."""
        alive = self.table.any(1)
        kept = self.vocabulary if alive.all() else self.vocabulary.keep(np.flatnonzero(alive))
        found: dict[str, NDArray[Any]] = {"table": self.table[alive], "documents": self.documents}
        found |= {"buffer": kept.buffer.copy(), "offsets": kept.offsets.copy()}
        if self.sample:
            found |= {f"sample.{n}": a for n, a in self.sample.renamed(np.cumsum(alive) - 1).arrays().items()}
        return found

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Words:
        """The statistic that `arrays` was taken from."""
        vocabulary = Vocabulary.from_bytes(arrays["buffer"], arrays["offsets"])
        table, documents = arrays["table"], arrays["documents"]
        if (
            table.ndim != 2
            or len(table) != len(vocabulary)
            or table.shape[1] not in (len(documents), 2 * len(documents))
        ):
            raise ValueError("the words do not fit their counts")
        own = {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith("sample.")}
        sample = Sample.from_arrays(own, len(vocabulary), len(documents)) if own else None
        return cls(vocabulary, table.copy(), documents, sample)

    def capped(self, limit: int) -> Words:
        """No more words than `limit`: those that most documents hold (the weightiest, where documents are not counted).

        Among equals the earlier learnt stay. What a dropped word was seen is gone; should it come again it counts anew.
        """
        if len(self.vocabulary) <= limit:
            return self
        kept = np.sort(np.argsort(-self.holders.sum(1), kind="stable")[:limit])
        names = np.full(len(self.vocabulary), -1)
        names[kept] = np.arange(limit)
        sample = self.sample and self.sample.renamed(names).known_only()
        return Words(self.vocabulary.keep(kept), self.table[kept], self.documents, sample)

    def without_sample(self) -> Words:
        """The same counts, and no document."""
        return self if self.sample is None else Words(self.vocabulary, self.table, self.documents)

    def weight(self) -> Array:
        """How much weight was counted: documents per class."""
        return self.documents

    def __reduce__(self) -> tuple[Any, ...]:
        return Words.of, (self.arrays(),)


def roomy(table: Array, size: int, most: int = 0) -> Array:
    """The same table with room for more words; it grows by half, so that each word is moved a few times at most.

    Whoever knows how many words there will be at `most` gets room for them: memory is not taken before it is written.
    """
    if len(table) >= size:
        return table
    reserved = min(most, RESERVE // (8 * max(table.shape[1], 1)))
    shape = max(size, len(table) * 3 // 2, reserved), table.shape[1]
    room = zeros(shape[0] * shape[1], np.float64, paged=True).reshape(shape)
    room[: len(table)] = table
    return room
