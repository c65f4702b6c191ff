"""The words that are known, each with a number, in the order of first sight."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from likely.tokens import _loops
from likely.tokens._blocks import BLOCK
from likely.tokens.spans import (
    HUGE,
    PADDING,
    SECRET,
    Desk,
    Spans,
    Texts,
    checked,
    most_words,
    spans_of_pieces,
    spans_of_tokens,
    zeros,
)

Ids = npt.NDArray[np.int32]
Bagged = tuple[npt.NDArray[np.int64], Ids, Ids, npt.NDArray[np.int64]]  # ends, words, counts, unknown words
FEW = 1 << 18
WORDS_PER_ROOT = 28  # words in a text of so many bytes, over the root of them: 20 Newsgroups


class Table:
    """Words in flat arrays: their bytes end to end, where each ends, their keys, and the slots that find them.

    A slot holds a mark of the word's key beside its number, so that hardly any other word is ever looked at.

    Words are only ever added, and a slot once taken stays taken, so whoever knows how many words there were at some
    moment goes on seeing the table of that moment.
    """

    def __init__(self, room: int = 16) -> None:
        slots = 1 << max(room, 16).bit_length()
        self.size = 0
        self.lock = threading.Lock()
        # One tuple, so that a reader never mixes the arrays of two moments.
        self.arrays = (
            zeros(2 * slots, whole=True),
            zeros(slots),
            zeros(slots + 1),
            zeros(8 * slots + PADDING, np.uint8),
        )

    def add(self, spans: Spans, ids: Ids) -> None:
        """Write the number of every span's word, new ones being given the next."""
        at = 0
        while at < ids.size:
            at, self.size = self._number(spans, at, self.size, True, ids)
            if at < ids.size:
                self._enlarge(int(spans.size[at]))

    def find(self, spans: Spans, size: int, ids: Ids) -> None:
        """Write the number of every span's word among the first `size`, or -1."""
        self._number(spans, 0, size, False, ids)

    def read(self, texts: Texts, size: int | None, desk: Desk, bags: Bagged) -> None:
        """Write the bags of texts: of the first `size` words, or of all words, new ones being given the next number."""
        sizes = texts.stops - texts.starts
        longest = int(sizes.max(initial=0))
        text, most = desk.room("text", longest + BLOCK + PADDING, np.uint8), most_words(longest, 1)
        spans = tuple(desk.room(name, most) for name in ("begin", "size", "keys"))
        ids, at = desk.room("line", most, np.int32), 0
        while at < sizes.size:
            arrays, count = self.arrays, self.size if size is None else size
            often = desk.room("often", arrays[1].size + 1, np.int32)
            at, count, more = _loops.read(
                *texts, at, arrays, count, SECRET, _shift(arrays[0]), size is None, (text, spans, ids, often), bags
            )
            if size is None:
                self.size = count
            if at < sizes.size:
                self._enlarge(more)

    def words(self, first: int, last: int) -> Spans:
        """The words of some numbers themselves."""
        _, keys, ends, arena = self.arrays
        return Spans(
            arena, ends[first:last], np.diff(ends[first : last + 1]), keys[first:last], np.array([0, last - first])
        )

    @property
    def room(self) -> int:
        """How many words fit before the table must grow."""
        return self.arrays[1].size

    def _number(self, spans: Spans, at: int, size: int, grow: bool, ids: Ids) -> tuple[int, int]:
        text, begin, sizes, keys, _ = spans
        where, some, arrays = (begin, sizes, keys), (at, begin.size), self.arrays
        found: tuple[int, int] = _loops.number(text, where, some, arrays, size, SECRET, _shift(arrays[0]), grow, ids)
        return found

    def copy(self, size: int) -> Table:
        """Another table with the first `size` words."""
        copy, words = Table(size), self.words(0, size)
        copy.add(words, room_for(words))
        return copy

    def clear(self) -> None:
        """Forget all words and keep the room."""
        self.arrays[0][:] = 0
        self.size = 0

    def _enlarge(self, size: int) -> None:
        """Room for more words, and for one of this size; memory is not taken before it is written."""
        slots, known, ends, arena = self.arrays
        if 2 * self.size >= slots.size:
            slots = zeros(2 * slots.size, whole=True)
            _loops.rehash(slots, known, self.size, SECRET, _shift(slots))
        if self.size >= known.size:
            room = _more(known.size)
            known, ends = longer(known, room), longer(ends, room + 1)
        used = int(ends[self.size])
        if used + size + PADDING > arena.size:
            arena = longer(arena, max(_more(arena.size), used + size + PADDING))
        self.arrays = (slots, known, ends, arena)


def room_for(spans: Spans) -> Ids:
    """An array for the number of every span."""
    return np.empty(spans.keys.size, dtype=np.int32)


def _more(room: int) -> int:
    """How much room there is next: a small table is seldom moved, a large one does not ask for the moon."""
    return room * (8 if room < FEW else 2)


def _shift(slots: npt.NDArray[np.int64]) -> int:
    """How many low bits of a 63-bit product are not part of a slot's number: the high ones are mixed best."""
    return 64 - int(slots.size).bit_length()


def longer(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """The same array with room behind it."""
    roomy = zeros(size, array.dtype)
    roomy[: array.size] = array
    return roomy


class Vocabulary:
    """A frozen list of distinct words that knows each word's number.

    Growing gives a new vocabulary that begins with the old one; both look at the same table, so one more word costs
    one word, however many there are.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, table: Table | None = None, size: int = 0) -> None:
        """The first `size` words of a table; without one, no words."""
        self._table = Table() if table is None else table
        self._size = size

    @classmethod
    def expecting(cls, size: int) -> Vocabulary:
        """No words yet, and room for those of so many bytes of text: to grow on the way takes longer.

        Words become more as the root of the text; more than a large page of slots is not taken before it is needed.
        """
        return cls(Table(min(int(WORDS_PER_ROOT * size**0.5), HUGE // 16 - 1))) if size > HUGE else cls()

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Vocabulary:
        """The distinct words of a list in their order."""
        return cls().grow(spans_of_tokens([list(words)], (1, 1)))[0]

    @classmethod
    def from_bytes(cls, buffer: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Vocabulary:
        """The vocabulary whose words lie end to end, as `buffer` and `offsets` of another give them."""
        buffer, offsets = checked(buffer, offsets)
        count = offsets.size - 1
        vocabulary, _ = cls().grow(spans_of_pieces(buffer, offsets, np.array([0, count])))
        if len(vocabulary) != count:
            raise ValueError(f"{count - len(vocabulary)} words stand twice in this vocabulary: the data is damaged")
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
        """Only the words travel: keys are secret to a process."""
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
        """The words, each at its number."""
        data, ends = self.buffer.tobytes(), self.offsets.tolist()
        if data.isascii():
            text = data.decode()
            return [text[a:b] for a, b in pairwise(ends)]
        return [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]

    def lookup(self, word: str) -> int:
        """The number of a word, or -1."""
        return int(self.find(spans_of_tokens([[word]], (1, 1)))[0])

    def find(self, spans: Spans, ids: Ids | None = None) -> Ids:
        """The number of every span's word, or -1; written where there is room, if it is given."""
        ids = room_for(spans) if ids is None else ids
        self._table.find(spans, self._size, ids)
        return ids

    def read(self, texts: Texts, desk: Desk, bags: Bagged) -> None:
        """Write the bags of texts, of the words that are known."""
        self._table.read(texts, self._size, desk, bags)

    def shares_numbers(self, other: Vocabulary) -> bool:
        """Whether the words that both know have the same numbers, because both look at one table."""
        return self._table is other._table

    def find_all(self, other: Vocabulary) -> Ids:
        """The number here of every word of another vocabulary, or -1."""
        return self.find(other._table.words(0, other._size))

    def grow(self, spans: Spans) -> tuple[Vocabulary, Ids]:
        """The vocabulary that also has the words of these spans, and the number of each."""
        table, ids = self._table, room_for(spans)
        # Whoever holds the lock grows the table in another direction: waiting would end with a copy all the same, and in
        # a forked process the thread that holds it may not exist.
        if table.lock.acquire(blocking=False):
            try:
                if table.size == self._size:
                    table.add(spans, ids)
                    return Vocabulary(table, table.size), ids
            finally:
                table.lock.release()
        copy = table.copy(self._size)  # somebody else has grown this table in another direction
        copy.add(spans, ids)
        return Vocabulary(copy, copy.size), ids

    def union(self, other: Vocabulary) -> tuple[Vocabulary, tuple[Ids, Ids]]:
        """The words of both, this one's first, and the number there of each word here and of each word of the other."""
        mine = np.arange(self._size, dtype=np.int32)
        if self._table is other._table:
            longer = self if self._size >= other._size else other
            return longer, (mine, np.arange(other._size, dtype=np.int32))
        grown, theirs = self.grow(other._table.words(0, other._size))
        return grown, (mine, theirs)

    def keep(self, ids: npt.NDArray[Any]) -> Vocabulary:
        """Only the words with these numbers, in this order."""
        _, keys, ends, arena = self._table.arrays
        table = Table(ids.size)
        spans = Spans(arena, ends[ids], ends[ids + 1] - ends[ids], keys[ids], np.array([0, ids.size]))
        table.add(spans, room_for(spans))
        return Vocabulary(table, table.size)
