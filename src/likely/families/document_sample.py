"""Mergeable random sample of documents: those with the lowest keys, as in the sample of rows.

A key is a hash of the text. Beside other columns it is the key of the complete row: so the documents that are kept are those of
the rows with the lowest keys, and each can be matched to its row. Documents of one key and class are copies, as two texts are
never equal by chance: they are one document, with their weights added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import ForgetError
from likely.families.copy_weights import left_together, mean_of_classes
from likely.kernels.keys import OPEN, Array, Ints, lowest, to_keys, weights_in_both
from likely.tokenizer import Bags, Vocabulary, text_hashes, word_order
from likely.tokenizer.documents import Documents, Strings, TextChunk

SIZE = 8_000  # documents: more hardly change the hundred or so weights that are fitted on them
LONGEST = 2_000  # words of a document whose order is kept
ORDER, LIMIT = ("order_ends", "order"), "limit"  # arrays that a sample may lack
ROUNDING = 1e-9  # a fraction of a weight below this is rounding error


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
    limit: int = OPEN  # every counted document with a lower key is in the sample

    @staticmethod
    def empty() -> DocumentSample:
        """No documents."""
        none, start, words = np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32)
        return DocumentSample(none, none, np.zeros(0), start, words, words, start, words)

    @staticmethod
    def of(bags: Bags, keys: Ints, labels: Ints, weights: Array) -> DocumentSample:
        """The sample of a batch of documents."""
        no_ends, none = np.zeros(len(keys) + 1, np.int64), np.zeros(0, np.int32)
        every = DocumentSample(keys, labels, weights, bags.indptr, bags.ids, bags.counts, no_ends, none)
        return every._lowest(np.flatnonzero((labels >= 0) & (weights > 0)))

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

    def _lowest(self, some: NDArray[np.intp] | None = None) -> DocumentSample:
        """At most SIZE of the documents, or of some of them, by key and class; copies are merged."""
        below = np.flatnonzero(self.keys < self.limit) if some is None else some
        keys, labels = self.keys[below], self.labels[below]
        rows, (weights,), beyond = lowest(keys, [self.weights[below]], SIZE, lambda chosen: [labels[chosen]])
        return replace(self.take(below[rows]), weights=weights, limit=min(self.limit, beyond))

    def take(self, rows: NDArray[Any]) -> DocumentSample:
        """A subset of the documents."""
        indptr, ids, counts = _taken(self.indptr, self.ids, self.counts, rows=rows)
        ends, order = _taken(self.order_ends, self.order, rows=rows)
        keys, labels, weights = self.keys[rows], self.labels[rows], self.weights[rows]
        return DocumentSample(keys, labels, weights, indptr, ids, counts, ends, order, self.limit)

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
        moved = moved if (moved.labels >= 0).all() else moved.take(np.flatnonzero(moved.labels >= 0))
        return moved._lowest() if (moved.keys[1:] == moved.keys[:-1]).any() else moved  # of one class by now, perhaps

    def copies(self, classes: int) -> tuple[Array, Array] | None:
        """Weight of each document that is left out with it, and its mean by class; None where all have weight 1."""
        if (self.weights == 1.0).all():
            return None
        left = left_together(self.weights, self.weights, self.labels)
        return left, mean_of_classes(left, self.weights / self.weights.max(), self.labels, classes)  # scaled against overflow

    def __add__(self, other: DocumentSample) -> DocumentSample:
        if other.limit >= self.limit and not (other.keys < self.limit).any():
            return self
        return DocumentSample.together([self, other])

    @staticmethod
    def together(parts: Sequence[DocumentSample]) -> DocumentSample:
        """The sample of the union of several samples, each document moved once."""
        keys, labels, weights, ids, counts, order = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("keys", "labels", "weights", "ids", "counts", "order")
        )
        indptr, ends = (_continued([getattr(part, name) for part in parts]) for name in ("indptr", "order_ends"))
        limit = min(part.limit for part in parts)
        return DocumentSample(keys, labels, weights, indptr, ids, counts, ends, order, limit)._lowest()

    def __sub__(self, other: DocumentSample) -> DocumentSample:
        """Subtract the weights of the other's documents. Documents that were dropped before are not restored."""
        labels = np.append(self.labels, other.labels)
        both = (self.keys, other.keys), (self.weights, other.weights)
        rows, counted, removed = weights_in_both(*both, lambda chosen: [labels[chosen]])
        if self.limit == OPEN and (removed - counted > ROUNDING * counted).any():
            raise ForgetError("holds a document that was never counted: it was not learned by this model")
        left = np.flatnonzero(counted - removed > ROUNDING * counted)
        return replace(self.take(rows[left]), weights=(counted - removed)[left])

    def __mul__(self, factor: float) -> DocumentSample:
        if not factor:
            return DocumentSample.empty()
        return replace(self, weights=self.weights * factor)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name; those of the order only where it is kept."""
        kept = {name: array for name, array in vars(self).items() if len(self.order) or name not in ORDER}
        return kept | {LIMIT: np.array([self.limit])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], words: int, classes: int) -> DocumentSample:
        """The sample from its arrays; ValueError where they do not fit the words and classes."""
        names = ("keys", "labels", "weights", "indptr", "ids", "counts")
        unordered = np.zeros(len(arrays["keys"]) + 1, np.int64), np.zeros(0, np.int32)
        ends, order = (arrays[name] for name in ORDER) if ORDER[0] in arrays else unordered
        keys = arrays["keys"]  # files of older versions have no limit
        limit = int(arrays[LIMIT][0]) if LIMIT in arrays else int(keys[-1]) if len(keys) >= SIZE else OPEN
        made = cls(**{name: arrays[name] for name in names}, order_ends=ends, order=order, limit=limit)
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
        return made if LIMIT in arrays else made._lowest()  # older versions kept copies apart


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
        keys = np.concatenate(self._keys)[rows]
        order = np.argsort(keys, kind="stable")
        rows = rows[order[np.searchsorted(keys[order], sample.keys)]]
        return sample.in_order(*word_order(documents.some(rows), vocabulary, lowercase=self._lowercase, most=LONGEST))


def document_keys(text: TextChunk) -> Ints:
    """Key of every document, from its bytes alone."""
    return to_keys(text_hashes(text))


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
