"""Where the words are: documents of UTF-8 as spans of normalised text, each span with its key."""

from __future__ import annotations

import mmap
import secrets
from collections.abc import Sequence, Sized
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from likely.tokens import _loops
from likely.tokens._blocks import BLOCK, UPPER
from likely.tokens._unicode import LEADS, entries

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[Any]

UNITS = ("word", "char", "char_wb")
SECRET = secrets.randbits(61) | 1 << 61 | 1
PADDING = 16  # bytes after a text, so that eight of them may begin at its last one
LARGE = 1 << 17  # bytes of an array
HUGE = 1 << 21  # bytes of a large page
FARTHER = "\0" * BLOCK  # what stands after a text where words are sought: it is looked at by the block


class Reading(NamedTuple):
    """How text is read: the unit, how many of them in a row count as one word, and whether case matters."""

    unit: str = "word"
    ngrams: tuple[int, int] = (1, 1)
    lowercase: bool = True

    def checked(self) -> Reading:
        """The same reading, once it is known to have a meaning."""
        if self.unit not in UNITS:
            raise ValueError(f"unit {self.unit!r} is not known: choose one of {', '.join(UNITS)}")
        shortest, longest = self.ngrams
        if not 1 <= shortest <= longest:
            raise ValueError(
                f"ngrams {self.ngrams!r} has no run: pass (shortest, longest) with 1 <= shortest <= longest"
            )
        return self


class Spans(NamedTuple):
    """Pieces of one text: where each begins, its bytes, its key; `documents` says which belong to which document."""

    text: Bytes
    begin: Ints
    size: Ints
    keys: Ints
    documents: Ints


class _Units(NamedTuple):
    """Words or characters before they are put together: spans without keys."""

    text: Bytes
    begin: Ints
    size: Ints
    documents: Ints


def zeros(size: int, dtype: Any = np.int64, whole: bool = False, paged: bool = False) -> Ints:
    """An array of zeros; a large one goes back to the system as soon as nobody looks at it.

    The allocator would keep it for later, and what it keeps adds up to a third of all that counting words takes. Memory
    is not taken before it is written, unless the array will be needed as a `whole`; then, or with `paged`, it is taken
    in large pages.
    """
    width = np.dtype(dtype).itemsize
    if size * width < LARGE:
        return np.zeros(size, dtype)
    own = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    memory = mmap.mmap(-1, size * width, **own)
    if (whole or paged) and size * width >= HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)  # a page costs the system two microseconds, whether it is large or not
    array = np.frombuffer(memory, dtype)
    if whole:
        array[:] = 0  # a page that is read before it is written is made twice, and all cores are stopped in between
    return array


class Desk:
    """Room for what documents need on their way to spans; whoever reads on with it takes the spans read before away."""

    def __init__(self) -> None:
        self._held: dict[str, Ints] = {}

    def room(self, name: str, size: int, dtype: Any = np.int64, whole: bool = False) -> Ints:
        """An array for one purpose, of any content: asking the system for fresh memory again and again takes longer."""
        held = self._held.get(name)
        if held is None or held.size < size or held.dtype != dtype:
            held = self._held[name] = zeros(size * 9 // 8, dtype, whole)
        return held[:size]


def utf8(texts: Sequence[str | None]) -> tuple[Bytes, Ints]:
    """Strings as one run of UTF-8 bytes and the places where each begins; a missing text is an empty one.

    Some zeros follow the last one, so that words can be sought right here.
    """
    try:
        if all(map(str.isascii, texts)):  # type: ignore[arg-type]  # the common case, a step of Python's for all of them
            run = "".join([*texts, FARTHER]).encode()  # type: ignore[list-item]
            return np.frombuffer(run, dtype=np.uint8), ends_of(texts)
    except TypeError:
        pass  # one is missing
    # A lone surrogate has no UTF-8; written as if it had, the reader takes it for U+FFFD, which is no letter either.
    pieces = [(text or "").encode("utf-8", "surrogatepass") for text in texts]
    return np.frombuffer(b"".join([*pieces, FARTHER.encode()]), dtype=np.uint8), ends_of(pieces)


def ends_of(pieces: Sequence[Sized | None]) -> Ints:
    """Where each piece begins and the last one ends, when they lie end to end; a missing one has no length."""
    ends = np.zeros(len(pieces) + 1, dtype=np.int64)
    try:
        sizes = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))  # type: ignore[arg-type]
    except TypeError:
        sizes = np.array([len(piece or "") for piece in pieces], dtype=np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


def checked(buffer: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> tuple[Bytes, Ints]:
    """The same arrays in the one form that the loops are compiled for; places outside the buffer are refused."""
    buffer = _read_only(np.ascontiguousarray(buffer, dtype=np.uint8))
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    if offsets.size == 0 or offsets[0] < 0 or offsets[-1] > buffer.size or bool((np.diff(offsets) < 0).any()):
        raise ValueError(f"offsets must rise from 0 or more to at most the {buffer.size:,} bytes of the buffer")
    return buffer, offsets


def spans_of_texts(buffer: Bytes, offsets: Ints, reading: Reading, desk: Desk) -> Spans:
    """The words, or runs of words or characters, of every document; `offsets` begin at zero.

    Where a block of bytes more follows the last document, ASCII is not copied.
    """
    unit, ngrams, lowercase = reading
    if unit == "word":
        words = _words(*_as_words(buffer, offsets, lowercase, desk), np.uint8(UPPER if lowercase else 0), desk)
        return words if ngrams == (1, 1) else _sealed(_grams(_joined(words), ngrams, whole=False))
    units = _characters(*_normalised(buffer, offsets, unit, lowercase, desk))
    return _sealed(_grams(units, ngrams, whole=unit == "char_wb"))


def spans_of_tokens(documents: Sequence[Sequence[str]], ngrams: tuple[int, int]) -> Spans:
    """The tokens, or runs of tokens, that somebody else found in every document."""
    pieces = [token.encode("utf-8", "surrogatepass") for tokens in documents for token in tokens]
    words = spans_of_pieces(np.frombuffer(b"".join(pieces), dtype=np.uint8), ends_of(pieces), ends_of(documents))
    return words if ngrams == (1, 1) else _sealed(_grams(_joined(words), ngrams, whole=False))


def spans_of_pieces(buffer: Bytes, ends: Ints, documents: Ints) -> Spans:
    """Words that lie end to end."""
    text = np.concatenate([buffer, np.zeros(PADDING, dtype=np.uint8)])
    return _sealed(_Units(text, ends[:-1], np.diff(ends), documents))


def _as_words(buffer: Bytes, offsets: Ints, lowercase: bool, desk: Desk) -> tuple[Bytes, Ints, Ints]:
    """Documents in which every letter is ASCII or in its final case already, and where each starts and stops."""
    end = int(offsets[-1])
    if buffer[:end].max(initial=0) >= 0x80:
        return _normalised(buffer, offsets, "word", lowercase, desk)
    if buffer.size < end + BLOCK:
        room = desk.room("source", end + BLOCK, np.uint8)
        room[:end] = buffer[:end]
        buffer = _read_only(room)
    return buffer, offsets[:-1], offsets[1:]


def _normalised(buffer: Bytes, offsets: Ints, unit: str, lowercase: bool, desk: Desk) -> tuple[Bytes, Ints, Ints]:
    """Every document in its final case, and where it starts and stops; for words, only those that are not ASCII are."""
    count = offsets.size - 1
    starts, stops = offsets[:-1].copy(), np.full(count, -1, dtype=np.int64)
    # A byte that is not UTF-8 becomes three, and blanks may be put on both sides; nothing grows more.
    wide = 3 * (np.diff(offsets) + 1)
    text = desk.room("source", int(offsets[-1] + wide.sum()) + BLOCK, np.uint8)
    if unit == "word":
        _loops.classify(buffer, offsets, starts, text, stops)
    wide[stops >= 0] = 0
    starts = np.where(stops < 0, offsets[-1] + np.cumsum(wide) - wide, starts)
    points = desk.room("points", int(wide.sum()) // 3 + count, np.int32)
    bounds = np.zeros(count + 1, dtype=np.int64)
    _loops.decode(buffer, offsets, LEADS, unit == "char_wb", stops, points, bounds)
    _loops.lower(points, bounds, entries(unit, lowercase, buffer), starts, text, stops)
    return _read_only(text), starts, stops


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same bytes, not to be written: loops are compiled for one of both."""
    view = array.view()
    view.flags.writeable = False
    return view


def _words(source: Bytes, starts: Ints, stops: Ints, small: np.uint8, desk: Desk) -> Spans:
    most = int((stops - starts).sum() + starts.size) // 3 + 1  # a word has two bytes or more, and one stands after it
    begin, size, keys = (desk.room(name, most) for name in ("begin", "size", "keys"))
    documents, text = np.zeros(starts.size + 1, dtype=np.int64), desk.room("text", source.size + PADDING, np.uint8)
    _loops.words(source, starts, stops, small, SECRET, text, (begin, size, keys), documents)
    count = int(documents[-1])
    return Spans(text, begin[:count], size[:count], keys[:count], documents)


def _characters(text: Bytes, starts: Ints, stops: Ints) -> _Units:
    most = int((stops - starts).sum())
    begin, size = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    documents = np.zeros(starts.size + 1, dtype=np.int64)
    _loops.characters(text, starts, stops, begin, size, documents)
    count = int(documents[-1])
    return _Units(text, begin[:count], size[:count], documents)


def _joined(units: Spans | _Units) -> _Units:
    """The same words in a text where one space stands between neighbours."""
    room = int(units.size.sum()) + units.size.size
    joined = np.empty(room + PADDING, dtype=np.uint8)
    places = np.empty(units.begin.size, dtype=np.int64)
    _loops.join(units.text, units.begin, units.size, joined, places)
    return _Units(joined, places, units.size, units.documents)


def _grams(units: _Units, ngrams: tuple[int, int], whole: bool) -> _Units:
    """Every run of units that stays inside a document, or with `whole` inside a word with its two blanks."""
    ends = units.documents
    groups = _padded_words(units) if whole else (ends[:-1], ends[1:], np.arange(ends.size))
    lengths = groups[1] - groups[0]
    shortest, longest = ngrams[0], min(ngrams[1], int(lengths.max(initial=0)))
    most = sum(int(np.maximum(lengths - n + 1, 0).sum()) for n in range(shortest, longest + 1))
    most += int((lengths < shortest).sum()) if whole else 0
    runs, sizes, documents = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.zeros_like(ends)
    _loops.grams(units.begin, units.size, groups, (shortest, longest), whole, (runs, sizes, documents))
    return _Units(units.text, runs, sizes, documents)


def _padded_words(units: _Units) -> tuple[Ints, Ints, Ints]:
    """From each blank to the next one of the same document: a word and its two blanks."""
    blanks = np.flatnonzero(units.text[units.begin] == 0x20)
    owner = np.searchsorted(units.documents, blanks, side="right") - 1
    inside = owner[1:] == owner[:-1]
    firsts, lasts = blanks[:-1][inside], blanks[1:][inside] + 1
    groups = np.searchsorted(owner[:-1][inside], np.arange(units.documents.size))
    return firsts, lasts, groups


def _sealed(units: _Units) -> Spans:
    keys = np.empty(units.begin.size, dtype=np.int64)
    _loops.seal(units.text, units.begin, units.size, SECRET, keys)
    return Spans(units.text, units.begin, units.size, keys, units.documents)
