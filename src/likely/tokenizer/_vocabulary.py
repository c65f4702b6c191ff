"""Vocabulary: distinct words, numbered in order of first occurrence, in a hash table of flat arrays."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from likely.tokenizer import _loops
from likely.tokenizer._block_operations import BLOCK
from likely.tokenizer.spans import (
    HUGE_PAGE,
    PADDING,
    SECRET,
    ScratchBuffers,
    Spans,
    Texts,
    checked,
    most_words,
    spans_of_pieces,
    spans_of_tokens,
    zeros,
)

Ids = npt.NDArray[np.int32]
Bagged = tuple[npt.NDArray[np.int64], Ids, Ids, npt.NDArray[np.int64]]  # indptr, ids, counts, unknown
FAST_GROWTH = 1 << 18  # words: a smaller table grows eightfold
WORDS_PER_ROOT = 28  # distinct words of a text over the root of its bytes (20 Newsgroups)


class WordTable:
    """Hash table of words in flat arrays: their bytes end to end, their offsets, their keys, and the slots.

    A slot holds some bits of the word's hash beside its number, so that other words are hardly ever compared.

    Words are only added, and a slot is never freed, so a view of the first n words stays valid while the table grows.
    """

    def __init__(self, capacity: int = 16) -> None:
        slots = 1 << max(capacity, 16).bit_length()
        self.size = 0
        self.lock = threading.Lock()
        # One tuple, replaced at once, so that a reader never mixes old and new arrays.
        self.arrays = (
            zeros(2 * slots, whole=True),
            zeros(slots),
            zeros(slots + 1),
            zeros(8 * slots + PADDING, np.uint8),
        )

    def add(self, spans: Spans, ids: Ids) -> None:
        """Write the number of every span's word, adding new words."""
        at = 0
        while at < ids.size:
            at, self.size = self._number(spans, at, self.size, True, ids)
            if at < ids.size:
                self._enlarge(int(spans.size[at]))

    def find(self, spans: Spans, size: int, ids: Ids) -> None:
        """Write the number of every span's word among the first `size`, or -1."""
        self._number(spans, 0, size, False, ids)

    def read(self, texts: Texts, size: int | None, scratch: ScratchBuffers, bags: Bagged) -> None:
        """Write the bags of texts: of the first `size` words, or of all words, adding new ones."""
        sizes = texts.stops - texts.starts
        longest = int(sizes.max(initial=0))
        text, most = scratch.array("text", longest + BLOCK + PADDING, np.uint8), most_words(longest, 1)
        spans = tuple(scratch.array(name, most) for name in ("begin", "size", "keys"))
        ids, at = scratch.array("line", most, np.int32), 0
        while at < sizes.size:
            arrays, count = self.arrays, self.size if size is None else size
            occurrences = scratch.array("occurrences", arrays[1].size + 1, np.int32)
            at, count, more = _loops.count_documents(
                *texts, at, arrays, count, SECRET, _shift(arrays[0]), size is None, (text, spans, ids, occurrences), bags
            )
            if size is None:
                self.size = count
            if at < sizes.size:
                self._enlarge(more)

    def words(self, first: int, last: int) -> Spans:
        """Spans of the words numbered `first` to `last` - 1."""
        _, keys, ends, arena = self.arrays
        return Spans(
            arena, ends[first:last], np.diff(ends[first : last + 1]), keys[first:last], np.array([0, last - first])
        )

    @property
    def capacity(self) -> int:
        """How many words fit before the table must grow."""
        return self.arrays[1].size

    def _number(self, spans: Spans, at: int, size: int, grow: bool, ids: Ids) -> tuple[int, int]:
        text, begin, sizes, keys, _ = spans
        where, some, arrays = (begin, sizes, keys), (at, begin.size), self.arrays
        found: tuple[int, int] = _loops.number_words(text, where, some, arrays, size, SECRET, _shift(arrays[0]), grow, ids)
        return found

    def copy(self, size: int) -> WordTable:
        """A copy with the first `size` words."""
        copy, words = WordTable(size), self.words(0, size)
        copy.add(words, room_for(words))
        return copy

    def clear(self) -> None:
        """Remove all words and keep the memory."""
        self.arrays[0][:] = 0
        self.size = 0

    def _enlarge(self, size: int) -> None:
        """Grow the arrays for more words, and for one of this size; memory is not touched before it is written."""
        slots, known, ends, arena = self.arrays
        if 2 * self.size >= slots.size:
            slots = zeros(2 * slots.size, whole=True)
            _loops.rehash(slots, known, self.size, SECRET, _shift(slots))
        if self.size >= known.size:
            capacity = _next_capacity(known.size)
            known, ends = longer(known, capacity), longer(ends, capacity + 1)
        used = int(ends[self.size])
        if used + size + PADDING > arena.size:
            arena = longer(arena, max(_next_capacity(arena.size), used + size + PADDING))
        self.arrays = (slots, known, ends, arena)


def room_for(spans: Spans) -> Ids:
    """An uninitialised array for the number of every span."""
    return np.empty(spans.keys.size, dtype=np.int32)


def _next_capacity(capacity: int) -> int:
    """The next capacity: a small table grows eightfold, to be copied seldom, a large one twofold."""
    return capacity * (8 if capacity < FAST_GROWTH else 2)


def _shift(slots: npt.NDArray[np.int64]) -> int:
    """Right shift from a 63-bit product to a slot: its high bits are mixed best."""
    return 64 - int(slots.size).bit_length()


def longer(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """A copy with zeros appended up to `size`."""
    roomy = zeros(size, array.dtype)
    roomy[: array.size] = array
    return roomy


class Vocabulary:
    """A frozen list of distinct words with the number of each.

    Growing returns a new vocabulary that begins with the old one; both share one table, so adding a word costs one word,
    however many there are.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, table: WordTable | None = None, size: int = 0) -> None:
        """The first `size` words of a table; without one, no words."""
        self._table = WordTable() if table is None else table
        self._size = size

    @classmethod
    def expecting(cls, size: int) -> Vocabulary:
        """An empty vocabulary with capacity for the words of so many bytes of text, which saves growing on the way.

        The number of words grows as the root of the text; no more than a huge page of slots is taken in advance.
        """
        return cls(WordTable(min(int(WORDS_PER_ROOT * size**0.5), HUGE_PAGE // 16 - 1))) if size > HUGE_PAGE else cls()

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Vocabulary:
        """The distinct words of a list in their order."""
        return cls().grow(spans_of_tokens([list(words)], (1, 1)))[0]

    @classmethod
    def from_bytes(cls, buffer: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Vocabulary:
        """The vocabulary of words that lie end to end, as `buffer` and `offsets` of another one."""
        buffer, offsets = checked(buffer, offsets)
        count = offsets.size - 1
        vocabulary, _ = cls().grow(spans_of_pieces(buffer, offsets, np.array([0, count])))
        if len(vocabulary) != count:
            raise ValueError(f"{count - len(vocabulary)} words occur twice in this vocabulary: the data is damaged")
        return vocabulary

    def __len__(self) -> int:
        return self._size

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.lookup(word) >= 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        if len(self) != len(other) or self._table is other._table:
            return len(self) == len(other)
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.buffer, other.buffer)

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self):,} words>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the words are pickled: keys depend on a secret of the process."""
        return Vocabulary.from_bytes, (self.buffer.copy(), self.offsets.copy())

    @property
    def buffer(self) -> npt.NDArray[np.uint8]:
        """The words end to end, as UTF-8."""
        return self._table.arrays[3][: int(self.offsets[-1])]

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each word begins in `buffer`, and where the last one ends."""
        return self._table.arrays[2][: self._size + 1]

    def words(self) -> list[str]:
        """The words, in the order of their numbers."""
        data, ends = self.buffer.tobytes(), self.offsets.tolist()
        if data.isascii():
            text = data.decode()
            return [text[a:b] for a, b in pairwise(ends)]
        return [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]

    def lookup(self, word: str) -> int:
        """The number of a word, or -1."""
        return int(self.find(spans_of_tokens([[word]], (1, 1)))[0])

    def find(self, spans: Spans, ids: Ids | None = None) -> Ids:
        """The number of every span's word, or -1; written into `ids` if given."""
        ids = room_for(spans) if ids is None else ids
        self._table.find(spans, self._size, ids)
        return ids

    def read(self, texts: Texts, scratch: ScratchBuffers, bags: Bagged) -> None:
        """Write the bags of texts, of the words of this vocabulary."""
        self._table.read(texts, self._size, scratch, bags)

    def shares_numbers(self, other: Vocabulary) -> bool:
        """Whether common words have the same numbers, because both share one table."""
        return self._table is other._table

    def find_all(self, other: Vocabulary) -> Ids:
        """The number here of every word of another vocabulary, or -1."""
        return self.find(other._table.words(0, other._size))

    def grow(self, spans: Spans) -> tuple[Vocabulary, Ids]:
        """The vocabulary with the words of these spans added, and the number of each."""
        table, ids = self._table, room_for(spans)
        # If another thread holds the lock, it adds other words to the table: waiting would end with a copy all the same,
        # and in a forked process the thread that holds it may not exist.
        if table.lock.acquire(blocking=False):
            try:
                if table.size == self._size:
                    table.add(spans, ids)
                    return Vocabulary(table, table.size), ids
            finally:
                table.lock.release()
        copy = table.copy(self._size)  # other words have been added to this table
        copy.add(spans, ids)
        return Vocabulary(copy, copy.size), ids

    def union(self, other: Vocabulary) -> tuple[Vocabulary, tuple[Ids, Ids]]:
        """The words of both, this one's first, and the number there of each word of the two."""
        mine = np.arange(self._size, dtype=np.int32)
        if self._table is other._table:
            longer = self if self._size >= other._size else other
            return longer, (mine, np.arange(other._size, dtype=np.int32))
        grown, theirs = self.grow(other._table.words(0, other._size))
        return grown, (mine, theirs)

    def keep(self, ids: npt.NDArray[Any]) -> Vocabulary:
        """Only the words with these numbers, in this order."""
        _, keys, ends, arena = self._table.arrays
        table = WordTable(ids.size)
        spans = Spans(arena, ends[ids], ends[ids + 1] - ends[ids], keys[ids], np.array([0, ids.size]))
        table.add(spans, room_for(spans))
        return Vocabulary(table, table.size)
