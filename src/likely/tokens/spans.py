"""Where the words are: documents of UTF-8 as spans of normalised text, each span with its key."""

from __future__ import annotations

import mmap
import secrets
from collections.abc import Sequence, Sized
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from likely.tokens import _loops, _shaping
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
NOTHING = np.frombuffer(b"", dtype=np.uint8)


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


class Texts(NamedTuple):
    """Documents in which words can be sought: where each starts and stops, in a buffer or, behind it, in the other one.

    There every letter is ASCII, or in its final case already; the former are made small by `small`.
    """

    buffer: Bytes
    other: Bytes
    starts: Ints
    stops: Ints
    small: np.uint8


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
    private = hasattr(mmap, "MAP_PRIVATE")  # not on Windows
    memory = mmap.mmap(-1, size * width, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) if private else mmap.mmap(-1, size * width)
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


def utf8(texts: Sequence[str | None], ends: Ints | None = None) -> tuple[Bytes, Ints]:
    """Strings as one run of UTF-8 bytes and the places where each begins; a missing text is an empty one.

    Some zeros follow the last one, so that words can be sought right here. `ends` has where each begins in characters.
    """
    pieces: Sequence[Any] = texts
    try:
        run = "".join([*pieces, FARTHER])
    except TypeError:  # one is missing
        pieces = [text or "" for text in texts]
        run = "".join([*pieces, FARTHER])
    if not run.isascii():
        # Every byte as a letter: then all of them are joined and written as they are, which takes a third of the time.
        # A lone surrogate has no UTF-8; written as if it had, the reader takes it for U+FFFD, which is no letter either.
        pieces = [
            text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1") for text in pieces
        ]
        run, ends = "".join([*pieces, FARTHER]), None
    return np.frombuffer(run.encode("latin-1"), dtype=np.uint8), ends_of(pieces) if ends is None else ends


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


def texts_of(buffer: Bytes, offsets: Ints, lowercase: bool, desk: Desk) -> Texts:
    """The documents of a buffer; `offsets` begin at zero. Where a block of bytes more follows them, ASCII is not copied."""
    end, other = int(offsets[-1]), NOTHING
    if buffer.size < end + BLOCK:
        room = desk.room("source", end + BLOCK, np.uint8)
        room[:end] = buffer[:end]
        buffer = _read_only(room)
    starts, stops = offsets[:-1], offsets[1:]
    if buffer[:end].max(initial=0) >= 0x80:
        stops = stops.copy()
        _shaping.mark_foreign(buffer, offsets, stops)
        foreign = stops < 0
        other, elsewhere, stops = _normalised(buffer, offsets, stops, "word", lowercase, desk)
        starts = np.where(foreign, elsewhere + buffer.size, starts)
        stops[foreign] += buffer.size
    return Texts(buffer, other, starts, stops, np.uint8(UPPER if lowercase else 0))


def spans_of_texts(buffer: Bytes, offsets: Ints, reading: Reading, desk: Desk) -> Spans:
    """The words, or runs of words or characters, of every document; `offsets` begin at zero."""
    unit, ngrams, lowercase = reading
    if unit == "word":
        words = _words(texts_of(buffer, offsets, lowercase, desk), desk)
        return _sealed(_grams(_joined(words), ngrams, whole=False))
    nowhere = np.full(offsets.size - 1, -1, dtype=np.int64)
    units = _characters(*_normalised(buffer, offsets, nowhere, unit, lowercase, desk))
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


def _normalised(
    buffer: Bytes, offsets: Ints, stops: Ints, unit: str, lowercase: bool, desk: Desk
) -> tuple[Bytes, Ints, Ints]:
    """Every document that stops nowhere yet, in its final case, and where it starts and stops; for words, all else is zero."""
    todo = stops < 0
    # A byte that is not UTF-8 becomes three, and blanks may be put on both sides; nothing grows more.
    wide = 3 * np.where(todo, np.diff(offsets) + 1, 0)
    starts = np.cumsum(wide) - wide
    text = desk.room("other", int(wide.sum()) + BLOCK, np.uint8)
    points = desk.room("points", int(wide.sum()) // 3 + todo.size, np.int32)
    bounds = np.zeros(offsets.size, dtype=np.int64)
    _shaping.decode(buffer, offsets, LEADS, unit == "char_wb", stops, points, bounds)
    _shaping.lower(points, bounds, entries(unit, lowercase, buffer), starts, text, stops)
    return _read_only(text), starts, stops


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same bytes, not to be written: loops are compiled for one of both."""
    view = array.view()
    view.flags.writeable = False
    return view


def most_words(size: int, documents: int) -> int:
    """How many words there can be in so many bytes, and one: a word has two bytes or more, and one stands after it."""
    return (size + documents) // 3 + 1


def _words(texts: Texts, desk: Desk) -> Spans:
    buffer, other, starts, stops, _ = texts
    most = most_words(int((stops - starts).sum()), starts.size)
    spans = tuple(desk.room(name, most) for name in ("begin", "size", "keys"))
    text = desk.room("text", buffer.size + other.size + PADDING, np.uint8)
    documents = np.zeros(starts.size + 1, dtype=np.int64)
    _loops.words(*texts, SECRET, text, spans, documents)
    begin, size, keys = (each[: documents[-1]] for each in spans)
    return Spans(text, begin, size, keys, documents)


def _characters(text: Bytes, starts: Ints, stops: Ints) -> _Units:
    most = int((stops - starts).sum())
    begin, size = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    documents = np.zeros(starts.size + 1, dtype=np.int64)
    _shaping.characters(text, starts, stops, begin, size, documents)
    count = int(documents[-1])
    return _Units(text, begin[:count], size[:count], documents)


def _joined(units: Spans | _Units) -> _Units:
    """The same words in a text where one space stands between neighbours."""
    room = int(units.size.sum()) + units.size.size
    joined = np.empty(room + PADDING, dtype=np.uint8)
    places = np.empty(units.begin.size, dtype=np.int64)
    _shaping.join(units.text, units.begin, units.size, joined, places)
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
    _shaping.grams(units.begin, units.size, groups, (shortest, longest), whole, (runs, sizes, documents))
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
