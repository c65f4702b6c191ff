"""Bags of one slab of documents, with word numbers of the thread that counted it."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from likely.tokenizer import _loops
from likely.tokenizer._vocabulary import Bagged, Ids, Vocabulary, WordTable, longer
from likely.tokenizer.spans import (
    Bytes,
    Ints,
    ScratchBuffers,
    Spans,
    TokenizerOptions,
    most_words,
    spans_of_texts,
    texts_of,
)

MAX_WORDS = 3 << 12  # of a thread's vocabulary, about: its slots and keys then fit the cache of its core


class ThreadVocabulary:
    """The vocabulary of one thread, and the number in the common vocabulary of each word that has one already.

    Slabs are renumbered in their order, and a thread counts slabs in their order: when a slab is renumbered, all words that
    its thread found before it have their common numbers.
    """

    def __init__(self, capacity: int) -> None:
        self.table = WordTable(capacity)
        self._common = np.zeros(self.table.capacity, dtype=np.int32)
        self._renumbered = 0
        self._counted = self._finished = 0  # slabs counted by this thread, and slabs renumbered by the consumer

    @property
    def finished(self) -> bool:
        """Whether every slab counted with it has been renumbered."""
        return self._counted == self._finished

    def new_words(self, before: int) -> Spans:
        """The words that the slab just counted added; `before` is the number of words before it."""
        self._counted += 1
        return self.table.words(before, self.table.size)

    def renumber(self, numbers: Ids, ids: Ids) -> None:
        """Replace the ids of the next slab by common ones; `numbers` are those of its new words."""
        last = self._renumbered + numbers.size
        if last > self._common.size:
            self._common = longer(self._common, 2 * last)
        self._common[self._renumbered : last] = numbers
        self._renumbered = last
        _loops.renumber(ids, self._common)
        self._finished += 1

    def clear(self) -> None:
        """Remove all words and keep the memory; allowed only if `finished`."""
        self.table.clear()
        self._renumbered = 0


class SlabBags(NamedTuple):
    """Bags of one slab; `own` is the thread's vocabulary and its new words, where ids are not common ones yet."""

    indptr: npt.NDArray[np.int64]
    ids: Ids
    counts: npt.NDArray[np.int32]
    unknown: npt.NDArray[np.int64]
    own: tuple[ThreadVocabulary, Spans] | None


class SlabCounter:
    """Counts slabs on any thread; each thread keeps its scratch buffers and vocabulary from slab to slab."""

    def __init__(self, words: Vocabulary | None, lend: bool = False) -> None:
        """Count only the words of a vocabulary, under its numbers; without one, all words.

        With `lend`, the arrays of a slab are overwritten when the same thread counts the next one.
        """
        self._words = words
        self._lend = lend
        self._own = threading.local()
        self._retired: list[ThreadVocabulary] = []
        self._lock = threading.Lock()

    def of_texts(self, buffer: Bytes, offsets: Ints, options: TokenizerOptions) -> SlabBags:
        """Bags of texts; `offsets` begin at zero."""
        if options.unit != "word" or options.ngrams != (1, 1):
            return self.of_spans(spans_of_texts(buffer, offsets, options, self._scratch))
        scratch, texts = self._scratch, texts_of(buffer, offsets, options.lowercase, self._scratch)
        most = most_words(int((texts.stops - texts.starts).sum()), texts.starts.size)
        bags = self._bag_arrays(texts.starts.size, scratch.array("ids", most, np.int32))
        if self._words is not None:
            self._words.read(texts, scratch, bags)
            return self._slab_bags(bags, None)
        own_words = self._thread_vocabulary(most)
        before = own_words.table.size
        own_words.table.read(texts, None, scratch, bags)
        return self._slab_bags(bags, (own_words, own_words.new_words(before)))

    def of_spans(self, spans: Spans) -> SlabBags:
        """Bags of documents whose words are given as spans."""
        ids, own, count = self._scratch.array("ids", spans.keys.size, np.int32), None, spans.documents.size - 1
        if self._words is not None:
            self._words.find(spans, ids)
            known = len(self._words)
        else:
            own_words = self._thread_vocabulary(spans.keys.size)
            before = own_words.table.size
            own_words.table.add(spans, ids)
            own, known = (own_words, own_words.new_words(before)), own_words.table.size
        occurrences, bags = self._scratch.array("occurrences", known + 1, np.int32), self._bag_arrays(count, ids)
        _loops.make_bags(ids, spans.documents, occurrences, bags)
        return self._slab_bags(bags, own)

    def _bag_arrays(self, documents: int, ids: Ids) -> Bagged:
        """Arrays for the bags, with capacity for as many words as `ids`."""
        counts = self._scratch.array("counts", ids.size, np.int32)
        return np.zeros(documents + 1, dtype=np.int64), ids, counts, np.zeros(documents, dtype=np.int64)

    def _slab_bags(self, bags: Bagged, own: tuple[ThreadVocabulary, Spans] | None) -> SlabBags:
        """The bags that were written, copied unless lent."""
        indptr, ids, counts, unknown = bags
        ids, counts = ids[: indptr[-1]], counts[: indptr[-1]]
        return SlabBags(indptr, ids if self._lend else ids.copy(), counts if self._lend else counts.copy(), unknown, own)

    @property
    def _scratch(self) -> ScratchBuffers:
        if not hasattr(self._own, "scratch"):
            self._own.scratch = ScratchBuffers()
        scratch: ScratchBuffers = self._own.scratch
        return scratch

    def _thread_vocabulary(self, words: int) -> ThreadVocabulary:
        """The vocabulary of this thread; a full one is replaced, and reused once it is finished."""
        own_words: ThreadVocabulary | None = getattr(self._own, "vocabulary", None)
        if own_words is None:
            own_words = self._own.vocabulary = ThreadVocabulary(min(words, MAX_WORDS))
        elif own_words.table.size > MAX_WORDS:
            with self._lock:
                fresh = next((each for each in self._retired if each.finished), None)
                if fresh is not None:
                    self._retired.remove(fresh)
                    fresh.clear()
                self._retired.append(own_words)
            own_words = self._own.vocabulary = fresh or ThreadVocabulary(MAX_WORDS)
        return own_words
