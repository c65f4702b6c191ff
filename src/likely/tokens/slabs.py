"""Some documents at a time: a slab of text becomes bags under the numbers of the thread that reads it."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from likely.tokens import _loops
from likely.tokens.spans import Bytes, Desk, Ints, Reading, Spans, most_words, spans_of_texts, texts_of
from likely.tokens.vocabulary import Bagged, Ids, Table, Vocabulary, longer

MOST = 3 << 12  # words in a notebook, about: its slots and keys then stay near the core that looks them up


class Notebook:
    """The words that one thread has met lately, and the common number of each that has been given one.

    Slabs are given common numbers in their order, and a thread reads slabs in their order: when it is the turn of a slab,
    all words that its thread met before it have their common numbers.
    """

    def __init__(self, room: int) -> None:
        self.table = Table(room)
        self._names = np.zeros(self.table.room, dtype=np.int32)
        self._named = 0
        self._given = self._taken = 0  # parts: the first is counted by who writes here, the second by who settles

    @property
    def settled(self) -> bool:
        """Whether nothing that was counted with it waits for common numbers."""
        return self._given == self._taken

    def given(self, before: int) -> Spans:
        """The words that a part has brought, once it is written here."""
        self._given += 1
        return self.table.words(before, self.table.size)

    def settle(self, names: Ids, ids: Ids) -> None:
        """The new words of the next part have these common numbers: write them instead of the numbers here."""
        last = self._named + names.size
        if last > self._names.size:
            self._names = longer(self._names, 2 * last)
        self._names[self._named : last] = names
        self._named = last
        _loops.rename(ids, self._names)
        self._taken += 1

    def clear(self) -> None:
        """Begin anew, where there is room already; only if it is settled."""
        self.table.clear()
        self._named = 0


class Part(NamedTuple):
    """Bags of some of the documents; those under the numbers of a notebook have it with them, and its new words."""

    indptr: npt.NDArray[np.int64]
    ids: Ids
    counts: npt.NDArray[np.int32]
    unknown: npt.NDArray[np.int64]
    own: tuple[Notebook, Spans] | None


class Counter:
    """Counts slabs on any thread: each has a desk and a notebook of its own, which it keeps from slab to slab."""

    def __init__(self, words: Vocabulary | None, lend: bool = False) -> None:
        """Only these words are counted, under their numbers; without them, all words.

        What is lent is written over when the same thread counts the next slab.
        """
        self._words = words
        self._lend = lend
        self._own = threading.local()
        self._aside: list[Notebook] = []
        self._lock = threading.Lock()

    def of_texts(self, buffer: Bytes, offsets: Ints, reading: Reading) -> Part:
        """The bags of texts; `offsets` begin at zero."""
        if reading.unit != "word" or reading.ngrams != (1, 1):
            return self.of_spans(spans_of_texts(buffer, offsets, reading, self._desk))
        desk, texts = self._desk, texts_of(buffer, offsets, reading.lowercase, self._desk)
        most = most_words(int((texts.stops - texts.starts).sum()), texts.starts.size)
        bags = self._room(texts.starts.size, desk.room("ids", most, np.int32))
        if self._words is not None:
            self._words.read(texts, desk, bags)
            return self._part(bags, None)
        book = self._notebook(most)
        before = book.table.size
        book.table.read(texts, None, desk, bags)
        return self._part(bags, (book, book.given(before)))

    def of_spans(self, spans: Spans) -> Part:
        """The bags of documents whose words are at hand."""
        ids, own, count = self._desk.room("ids", spans.keys.size, np.int32), None, spans.documents.size - 1
        if self._words is not None:
            self._words.find(spans, ids)
            known = len(self._words)
        else:
            book = self._notebook(spans.keys.size)
            before = book.table.size
            book.table.add(spans, ids)
            own, known = (book, book.given(before)), book.table.size
        often, bags = self._desk.room("often", known + 1, np.int32), self._room(count, ids)
        _loops.bag(ids, spans.documents, often, bags)
        return self._part(bags, own)

    def _room(self, documents: int, ids: Ids) -> Bagged:
        """Where bags are written, as many words as there are numbers."""
        counts = self._desk.room("counts", ids.size, np.int32)
        return np.zeros(documents + 1, dtype=np.int64), ids, counts, np.zeros(documents, dtype=np.int64)

    def _part(self, bags: Bagged, own: tuple[Notebook, Spans] | None) -> Part:
        """What was written, and where it can stay."""
        indptr, ids, counts, unknown = bags
        ids, counts = ids[: indptr[-1]], counts[: indptr[-1]]
        return Part(indptr, ids if self._lend else ids.copy(), counts if self._lend else counts.copy(), unknown, own)

    @property
    def _desk(self) -> Desk:
        if not hasattr(self._own, "desk"):
            self._own.desk = Desk()
        desk: Desk = self._own.desk
        return desk

    def _notebook(self, words: int) -> Notebook:
        """The notebook that this thread writes in; a full one is put aside, for whoever needs one once it is settled."""
        book: Notebook | None = getattr(self._own, "book", None)
        if book is None:
            book = self._own.book = Notebook(min(words, MOST))
        elif book.table.size > MOST:
            with self._lock:
                fresh = next((each for each in self._aside if each.settled), None)
                if fresh is not None:
                    self._aside.remove(fresh)
                    fresh.clear()
                self._aside.append(book)
            book = self._own.book = fresh or Notebook(MOST)
        return book
