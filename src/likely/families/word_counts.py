"""Word counts by class: a growing table of words × classes that adds in time proportional to the smaller summand.

A document has a hundred words, a corpus a hundred thousand. Adding the one to the other must not copy the other. So the newest
sum takes the table over and writes into it, and the summand keeps only what was overwritten (Baker's trick for persistent
arrays): every value stays unchanged, and the common case, adding to the latest sum, costs the document alone.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import ForgetError
from likely.families.document_sample import DocumentSample
from likely.families.statistics import Array, Index, subtract_counts
from likely.kernels.parallel import held_at_fork
from likely.tokenizer import Vocabulary
from likely.tokenizer.spans import zeros

Ids = NDArray[Any]
_LOCK = held_at_fork(threading.RLock(), 1)
RESERVE = 1 << 27  # maximum bytes reserved for expected words


class Words:
    """Count of each word by class and, if wanted, the number of documents that have it."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        vocabulary: Vocabulary,
        table: Array,
        documents: Array,
        sample: DocumentSample | None = None,
        *,
        total: Array | None = None,
        all_known: bool = False,
    ) -> None:
        """`table` is words × classes, once for counts and once more for documents, if they are counted.

        The caller may pass the `total` of each class, and whether every word was counted.
        """
        self.vocabulary = vocabulary
        self.documents = documents  # weight of the documents by class
        self.sample = sample  # complete documents, for leave-one-out in the second stage
        self._table: Array | None = table
        self._newer: tuple[Words, Ids, Array] | None = None
        self._lent = False  # another value reads the table without a copy: a sum must not write into it
        mine = table[: len(vocabulary)]
        self.total = mine[:, : len(documents)].sum(0) if total is None else total
        # Counts are not negative: a sum of zero means no word. BLAS would be no faster, and its threads linger on the cores.
        self.known = len(mine) if all_known else int(np.count_nonzero(np.einsum("wc->w", mine)))

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.documents)

    @property
    def table(self) -> Array:
        """All counts; the next sum copies them, so that this value stays unchanged."""
        with _LOCK:
            self._lent = True
            return self._own()[: len(self.vocabulary)]

    def rows(self, ids: Ids, columns: slice = slice(None)) -> Array:
        """Counts of some words, as a copy: the next sum may take the table over."""
        with _LOCK:
            rows: Array = self._own()[:, columns][ids]
            return rows

    def seen_of(self, ids: Ids) -> Array:
        """Counts of these words by class."""
        return self.rows(ids, slice(self.classes))

    def holders_of(self, ids: Ids) -> Array:
        """Document frequencies of these words by class."""
        return self.rows(ids, slice(-self.classes, None))

    @property
    def seen(self) -> Array:
        """Count of each word by class."""
        return self.table[:, : self.classes]

    @property
    def holders(self) -> Array:
        """Document frequency of each word by class; the counts, if documents are not counted."""
        return self.table[:, -self.classes :] if self.classes else self.table

    def _own(self) -> Array:
        """The table of this value; rebuilt from a newer one's if that has taken it over."""
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

    def _moved(self, vocabulary: Vocabulary, ids: Ids, rows: Array, documents: Array, sample: DocumentSample | None) -> Words:
        """The value with other counts of some words; it takes the table over, unless another value reads it."""
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
        if not other.documents.any():  # rows without a label: the width of the table is not known
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
        """Ids here of the words that another has counted, and their counts there; None if one is unknown."""
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

    def nearly(self, other: Words) -> bool:
        """Whether both have the same counts up to the rounding of sums of logarithms."""
        if self.known != other.known or not np.allclose(self.documents, other.documents, rtol=1e-9):
            return False
        ids, rows = self._places(other)
        return ids is not None and np.allclose(self.rows(ids), rows, rtol=1e-9)

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
        """The arrays by name, without words that were forgotten."""
        alive = self.table.any(1)
        kept = self.vocabulary if alive.all() else self.vocabulary.keep(np.flatnonzero(alive))
        found: dict[str, NDArray[Any]] = {"table": self.table[alive], "documents": self.documents}
        found |= {"buffer": kept.buffer.copy(), "offsets": kept.offsets.copy()}
        if self.sample:
            found |= {f"sample.{n}": a for n, a in self.sample.renamed(np.cumsum(alive) - 1).arrays().items()}
        return found

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Words:
        """The statistic from its arrays."""
        vocabulary = Vocabulary.from_bytes(arrays["buffer"], arrays["offsets"])
        table, documents = arrays["table"], arrays["documents"]
        if (
            table.ndim != 2
            or len(table) != len(vocabulary)
            or table.shape[1] not in (len(documents), 2 * len(documents))
        ):
            raise ValueError("the words do not fit their counts")
        own = {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith("sample.")}
        sample = DocumentSample.from_arrays(own, len(vocabulary), len(documents)) if own else None
        return cls(vocabulary, table.copy(), documents, sample)

    def capped(self, limit: int) -> Words:
        """At most `limit` words: those of the highest document frequency (or count, where documents are not counted).

        Among equals the earlier learned are kept. The counts of a dropped word are lost; if it occurs again, it starts at zero.
        """
        if len(self.vocabulary) <= limit:
            return self
        kept = np.sort(np.argsort(-self.holders.sum(1), kind="stable")[:limit])
        names = np.full(len(self.vocabulary), -1)
        names[kept] = np.arange(limit)
        sample = self.sample and self.sample.renamed(names).known_only()
        return Words(self.vocabulary.keep(kept), self.table[kept], self.documents, sample)

    def without_sample(self) -> Words:
        """The same counts without the sample of documents."""
        return self if self.sample is None else Words(self.vocabulary, self.table, self.documents)

    def weight(self) -> Array:
        """Weight of the documents by class."""
        return self.documents

    def __reduce__(self) -> tuple[Any, ...]:
        return Words.of, (self.arrays(),)


def roomy(table: Array, size: int, most: int = 0) -> Array:
    """The same table with capacity for more words; it grows by half, so that each word is moved only a few times.

    `most` is the expected number of words, for which memory is reserved: memory is not used before it is written.
    """
    if len(table) >= size:
        return table
    reserved = min(most, RESERVE // (8 * max(table.shape[1], 1)))
    shape = max(size, len(table) * 3 // 2, reserved), table.shape[1]
    larger = zeros(shape[0] * shape[1], np.float64, paged=True).reshape(shape)
    larger[: len(table)] = table
    return larger
