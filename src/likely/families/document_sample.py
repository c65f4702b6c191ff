"""Mergeable random sample of documents: those with the lowest keys.

A key is a hash of the text. Beside other columns it is the key of the complete row, as in the sample of rows: so the documents
that are kept are those of the rows with the lowest keys, and each can be matched to its row.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.copy_weights import left_together, mean_of_classes
from likely.families.statistics import Array
from likely.kernels.hashing import mix_fast
from likely.tokenizer import Bags, Vocabulary, word_order
from likely.tokenizer.documents import Documents, Strings, TextChunk

SIZE = 8_000  # documents: more hardly change the hundred or so weights that are fitted on them
LONGEST = 2_000  # words of a document whose order is kept
ORDER = ("order_ends", "order")  # arrays that a sample may lack
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DocumentSample:
    """Documents as bags of words with class and weight; the same for any order and split of the rows."""

    keys: Ints
    labels: Ints
    weights: Array
    indptr: Ints
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    order_ends: Ints  # of the words of each document in their order, where these are kept
    order: NDArray[np.int32]  # -1: a word that was dropped

    @staticmethod
    def empty() -> DocumentSample:
        """No documents."""
        none, start, words = np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32)
        return DocumentSample(none, none, np.zeros(0), start, words, words, start, words)

    @staticmethod
    def of(bags: Bags, keys: Ints, labels: Ints, weights: Array) -> DocumentSample:
        """The sample of a batch of documents."""
        rows = np.flatnonzero((labels >= 0) & (weights > 0))
        keys = keys[rows]
        indptr, ids, counts = _taken(bags.indptr, bags.ids, bags.counts, rows=rows)
        no_ends, none = np.zeros(len(rows) + 1, np.int64), np.zeros(0, np.int32)
        return DocumentSample(keys, labels[rows], weights[rows], indptr, ids, counts, no_ends, none).lowest()

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def ordered(self) -> bool:
        """Whether the order of the words is kept of all documents."""
        return bool(((np.diff(self.order_ends) > 0) | (np.diff(self.indptr) == 0)).all())

    def in_order(self, ends: Ints, ids: NDArray[np.int32]) -> DocumentSample:
        """The same documents with the order of their words."""
        return replace(self, order_ends=ends, order=ids)

    def __bool__(self) -> bool:
        """True, even for an empty sample."""
        return True

    def lowest(self) -> DocumentSample:
        """At most SIZE documents, in the order of their keys."""
        return self.take(np.argsort(self.keys, kind="stable")[:SIZE])

    def take(self, rows: NDArray[Any]) -> DocumentSample:
        """A subset of the documents."""
        indptr, ids, counts = _taken(self.indptr, self.ids, self.counts, rows=rows)
        ends, order = _taken(self.order_ends, self.order, rows=rows)
        return DocumentSample(self.keys[rows], self.labels[rows], self.weights[rows], indptr, ids, counts, ends, order)

    def renamed(self, ids: NDArray[Any]) -> DocumentSample:
        """The same documents in a vocabulary where word i has id ids[i]."""
        order = np.where(self.order < 0, -1, ids[self.order]) if len(ids) else self.order
        return replace(self, ids=ids[self.ids].astype(np.int32), order=order.astype(np.int32))

    def known_only(self) -> DocumentSample:
        """The same documents without the words whose id is negative."""
        kept = self.ids >= 0
        ends = np.concatenate([[0], np.cumsum(kept)])[self.indptr].astype(np.int64)
        return replace(self, indptr=ends, ids=self.ids[kept], counts=self.counts[kept])

    def with_labels(self, places: NDArray[Any]) -> DocumentSample:
        """The same documents with class i at places[i]; a negative place drops its documents."""
        moved = replace(self, labels=places[self.labels])
        return moved if (moved.labels >= 0).all() else moved.take(np.flatnonzero(moved.labels >= 0))

    def copies(self, classes: int) -> tuple[Array, Array] | None:
        """Weight of each document that is left out with it, and its mean by class; None where all have weight 1.

        Documents of one key and class are copies: two texts are never equal by chance.
        """
        order = np.lexsort((self.labels, self.keys))
        keys, labels = self.keys[order], self.labels[order]
        new = np.append(True, (keys[1:] != keys[:-1]) | (labels[1:] != labels[:-1]))
        if new.all() and (self.weights == 1.0).all():
            return None
        first = np.flatnonzero(new)
        whole = np.add.reduceat(self.weights[order], first)
        left = np.empty(len(self))
        left[order] = left_together(whole, whole, labels[first])[np.cumsum(new) - 1]
        mean = mean_of_classes(left, self.weights / self.weights.max(), self.labels, classes)  # scaled against overflow
        return None if (left == 1.0).all() and (self.weights == 1.0).all() else (left, mean)

    def __add__(self, other: DocumentSample) -> DocumentSample:
        if not len(other) or (len(self) >= SIZE and other.keys.min() > self.keys.max()):
            return self
        return DocumentSample.together([self, other])

    @staticmethod
    def together(parts: Sequence[DocumentSample]) -> DocumentSample:
        """The sample of the union of several samples, each document moved once."""
        arrays = zip(*(vars(part).values() for part in parts), strict=True)
        keys, labels, weights, _, ids, counts, _, order = (np.concatenate(several) for several in arrays)
        indptr, ends = (_continued(each) for each in ([part.indptr for part in parts], [part.order_ends for part in parts]))
        return DocumentSample(keys, labels, weights, indptr, ids, counts, ends, order).lowest()

    def __sub__(self, other: DocumentSample) -> DocumentSample:
        """Without the documents of the other, each removed as often as it occurs there."""
        gone: dict[tuple[int, int], int] = {}
        for pair in zip(other.keys.tolist(), other.labels.tolist(), strict=True):
            gone[pair] = gone.get(pair, 0) + 1
        kept = []
        for i, pair in enumerate(zip(self.keys.tolist(), self.labels.tolist(), strict=True)):
            if gone.get(pair, 0):
                gone[pair] -= 1
            else:
                kept.append(i)
        return self if len(kept) == len(self) else self.take(np.array(kept, dtype=np.int64))

    def __mul__(self, factor: float) -> DocumentSample:
        if not factor:
            return DocumentSample.empty()
        return replace(self, weights=self.weights * factor)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name; those of the order only where it is kept."""
        return {name: array for name, array in vars(self).items() if len(self.order) or name not in ORDER}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], words: int, classes: int) -> DocumentSample:
        """The sample from its arrays; ValueError where they do not fit the words and classes."""
        names = ("keys", "labels", "weights", "indptr", "ids", "counts")
        unordered = np.zeros(len(arrays["keys"]) + 1, np.int64), np.zeros(0, np.int32)
        order = tuple(arrays[name] for name in ORDER) if ORDER[0] in arrays else unordered
        made = cls(*(arrays[name] for name in names), *order)
        documents, cells = len(made.keys), len(made.ids)
        sound = (
            len(made.labels) == len(made.weights) == documents and len(made.indptr) == documents + 1
            and len(made.counts) == cells and made.indptr[0] == 0 and made.indptr[-1] == cells
            and (np.diff(made.indptr) >= 0).all() and (made.weights >= 0).all()
            and ((made.labels >= 0) & (made.labels < classes)).all() and ((made.ids >= 0) & (made.ids < words)).all()
            and len(made.order_ends) == documents + 1 and made.order_ends[0] == 0 and made.order_ends[-1] == len(made.order)
            and (np.diff(made.order_ends) >= 0).all() and ((made.order >= -1) & (made.order < words)).all()
        )  # fmt: skip
        if not sound:
            raise ValueError("the sample of documents does not fit")
        return made


class SampledOrder:
    """Order of the words of the documents in a sample, read again from the text once it is known which documents these are."""

    def __init__(self, lowercase: bool) -> None:
        self._lowercase, self._keys, self._counted = lowercase, [np.zeros(0, np.int64)], [np.zeros(0, bool)]

    def see(self, keys: Ints, counted: NDArray[np.bool_]) -> None:
        """Note the keys of the next documents, and which of them were counted."""
        self._keys.append(keys)
        self._counted.append(counted)

    def of(self, sample: DocumentSample, documents: Documents | Strings, vocabulary: Vocabulary) -> DocumentSample:
        """The sample of these documents with the order of the words, up to `LONGEST` of each."""
        rows = np.flatnonzero(np.concatenate(self._counted))
        rows = rows[np.argsort(np.concatenate(self._keys)[rows], kind="stable")[:SIZE]]
        return sample.in_order(*word_order(documents.some(rows), vocabulary, lowercase=self._lowercase, most=LONGEST))


def document_keys(text: TextChunk) -> Ints:
    """Hash of every document, from its bytes alone."""
    if isinstance(text, list):
        sums = [zlib.crc32((document or "").encode("utf-8", "surrogatepass")) for document in text]
    else:
        view = np.ascontiguousarray(text[0]).data
        sums = [zlib.crc32(view[a:b]) for a, b in pairwise(text[1].tolist())]
    return (mix_fast(np.array(sums, dtype=np.uint64)) >> np.uint64(2)).astype(np.int64)


def _taken(indptr: NDArray[Any], *arrays: NDArray[Any], rows: NDArray[Any]) -> tuple[Any, ...]:
    """The bags of some documents, concatenated."""
    sizes = np.diff(indptr)[rows]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    places = np.arange(ends[-1]) - np.repeat(ends[:-1] - indptr[:-1][rows], sizes)
    return ends, *(each[places] for each in arrays)


def _continued(several: Sequence[Ints]) -> Ints:
    """Ends of documents that are put one after the other."""
    starts = np.cumsum([0, *(ends[-1] for ends in several)])
    moved = [ends[1:] + start for ends, start in zip(several, starts[:-1], strict=True)]
    return np.concatenate([np.zeros(1, np.int64), *moved])
