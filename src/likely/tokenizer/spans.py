"""Spans of words: UTF-8 documents as normalised text, with start, size and key of every word."""

from __future__ import annotations

import mmap
import secrets
from collections.abc import Sequence, Sized
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from likely.tokenizer import _array_shaping as array_shaping
from likely.tokenizer import _loops, _shaping
from likely.tokenizer._block_operations import BLOCK, LOWERCASE_BIT
from likely.tokenizer._unicode import LEADS, entries
from likely.tokenizer.documents import TextChunk

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[Any]

UNITS = ("word", "char", "char_wb")
SECRET = secrets.randbits(61) | 1 << 61 | 1
COMMON = 0x1E3779B97F4A7C15  # in place of the secret where hashes are stored: bits of the golden ratio
HASHED_BYTES = 1 << 20  # that are copied at a time, with padding
PADDING = 16  # bytes after a text that loads of eight bytes may read (memory contract in `_simd`)
MMAP_BYTES = 1 << 17  # an array of this size is mapped by itself
HUGE_PAGE = 1 << 21  # bytes
BLOCK_PADDING = "\0" * BLOCK  # after a text that is read in blocks (memory contract in `_simd`)
EMPTY = np.frombuffer(b"", dtype=np.uint8)


class TokenizerOptions(NamedTuple):
    """Options of the tokenizer: unit, shortest and longest n-gram, and whether text is lower-cased."""

    unit: str = "word"
    ngrams: tuple[int, int] = (1, 1)
    lowercase: bool = True

    def checked(self) -> TokenizerOptions:
        """The same options; invalid ones raise ValueError."""
        if self.unit not in UNITS:
            raise ValueError(f"unit {self.unit!r} is not known: choose one of {', '.join(UNITS)}")
        shortest, longest = self.ngrams
        if not 1 <= shortest <= longest:
            raise ValueError(
                f"ngrams {self.ngrams!r} has no run: pass (shortest, longest) with 1 <= shortest <= longest"
            )
        return self


class Texts(NamedTuple):
    """Documents ready to be scanned: start and stop of each, in `buffer` or, beyond its size, in `other`.

    Documents in `buffer` are ASCII, and `case_bit` folds their case; those in `other` are in final case already.
    """

    buffer: Bytes
    other: Bytes
    starts: Ints
    stops: Ints
    case_bit: np.uint8


class Spans(NamedTuple):
    """Spans of one text: start, size and key; spans `documents[d]:documents[d + 1]` belong to document d."""

    text: Bytes
    begin: Ints
    size: Ints
    keys: Ints
    documents: Ints


class _Units(NamedTuple):
    """Spans of words or characters, before n-grams are formed and keys computed."""

    text: Bytes
    begin: Ints
    size: Ints
    documents: Ints


def zeros(size: int, dtype: Any = np.int64, whole: bool = False, paged: bool = False) -> Ints:
    """An array of zeros; a large one is mapped by itself, and returned to the system when it is freed.

    The allocator would keep it, which adds up to a third of the memory for counting words. Memory is not touched before it is
    written, unless all of the array will be used (`whole`); then, or with `paged`, huge pages are requested.
    """
    width = np.dtype(dtype).itemsize
    if size * width < MMAP_BYTES:
        return np.zeros(size, dtype)
    private = hasattr(mmap, "MAP_PRIVATE")  # not on Windows
    memory = mmap.mmap(-1, size * width, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) if private else mmap.mmap(-1, size * width)
    if (whole or paged) and size * width >= HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)  # a page fault costs two microseconds, for a huge page as well
    array = np.frombuffer(memory, dtype)
    if whole:
        array[:] = 0  # a page that is read before it is written is mapped twice, with a TLB shootdown between
    return array


class ScratchBuffers:
    """Reusable arrays of one thread: the next slab overwrites what the last one left in them."""

    def __init__(self) -> None:
        self._held: dict[str, Ints] = {}

    def array(self, name: str, size: int, dtype: Any = np.int64, whole: bool = False) -> Ints:
        """An uninitialised array for one purpose; reused, because fresh memory for every slab takes longer."""
        held = self._held.get(name)
        if held is None or held.size < size or held.dtype != dtype:
            held = self._held[name] = zeros(size * 9 // 8, dtype, whole)
        return held[:size]


def utf8(texts: Sequence[str | None], ends: Ints | None = None) -> tuple[Bytes, Ints]:
    """Strings as one array of UTF-8 bytes and the offset of each; a missing text is an empty one.

    `BLOCK` zeros follow the last one, so that the array can be scanned without a copy. `ends` are offsets in characters.
    """
    pieces: Sequence[Any] = texts
    try:
        run = "".join([*pieces, BLOCK_PADDING])
    except TypeError:  # one is missing
        pieces = [text or "" for text in texts]
        run = "".join([*pieces, BLOCK_PADDING])
    if not run.isascii():
        # Bytes as Latin-1 characters are joined and encoded unchanged, in a third of the time. A lone surrogate has no
        # UTF-8; encoded with surrogatepass, it is decoded as U+FFFD, which is not a letter either.
        pieces = [
            text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1") for text in pieces
        ]
        run, ends = "".join([*pieces, BLOCK_PADDING]), None
    return np.frombuffer(run.encode("latin-1"), dtype=np.uint8), ends_of(pieces) if ends is None else ends


def ends_of(pieces: Sequence[Sized | None]) -> Ints:
    """Offsets of pieces that lie end to end; a missing piece has length 0."""
    ends = np.zeros(len(pieces) + 1, dtype=np.int64)
    try:
        sizes = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))  # type: ignore[arg-type]
    except TypeError:
        sizes = np.array([len(piece or "") for piece in pieces], dtype=np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


def checked(buffer: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> tuple[Bytes, Ints]:
    """The arrays in the layout and type that the loops are compiled for; offsets outside the buffer raise ValueError."""
    buffer = _read_only(np.ascontiguousarray(buffer, dtype=np.uint8))
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    if offsets.size == 0 or offsets[0] < 0 or offsets[-1] > buffer.size or bool((np.diff(offsets) < 0).any()):
        raise ValueError(f"offsets must rise from 0 or more to at most the {buffer.size:,} bytes of the buffer")
    return buffer, offsets


def texts_of(buffer: Bytes, offsets: Ints, lowercase: bool, scratch: ScratchBuffers) -> Texts:
    """The documents of a buffer; `offsets` begin at zero. ASCII is not copied where `BLOCK` more bytes follow."""
    end, other = int(offsets[-1]), EMPTY
    if buffer.size < end + BLOCK:
        padded = scratch.array("source", end + BLOCK, np.uint8)
        padded[:end] = buffer[:end]
        buffer = _read_only(padded)
    starts, stops = offsets[:-1], offsets[1:]
    if buffer[:end].max(initial=0) >= 0x80:
        non_ascii = np.diff(np.searchsorted(np.flatnonzero(buffer[:end] >= 0x80), offsets)) > 0
        stops = np.where(non_ascii, -1, stops)  # those must be decoded
        other, elsewhere, stops = _normalised(buffer, offsets, stops, TokenizerOptions(lowercase=lowercase), scratch)
        starts = np.where(non_ascii, elsewhere + buffer.size, starts)
        stops[non_ascii] += buffer.size
    return Texts(buffer, other, starts, stops, np.uint8(LOWERCASE_BIT if lowercase else 0))


def spans_of_texts(buffer: Bytes, offsets: Ints, options: TokenizerOptions, scratch: ScratchBuffers) -> Spans:
    """Spans of the words, or n-grams of words or characters, of every document; `offsets` begin at zero."""
    if options.unit == "word":
        words = _words(texts_of(buffer, offsets, options.lowercase, scratch), scratch)
        return _hashed(_grams(_joined(words), options.ngrams, whole=False))
    nowhere = np.full(offsets.size - 1, -1, dtype=np.int64)
    units = _characters(*_normalised(buffer, offsets, nowhere, options, scratch))
    return _hashed(_grams(units, options.ngrams, whole=options.unit == "char_wb"))


def spans_of_words(buffer: Bytes, offsets: Ints, lowercase: bool) -> Spans:
    """Spans of the words of every document, in their order; `offsets` begin at zero."""
    scratch = ScratchBuffers()
    return _words(texts_of(buffer, offsets, lowercase, scratch), scratch)


def spans_of_tokens(documents: Sequence[Sequence[str]], ngrams: tuple[int, int]) -> Spans:
    """Spans of tokens, or n-grams of tokens, that the caller found in every document."""
    pieces = [token.encode("utf-8", "surrogatepass") for tokens in documents for token in tokens]
    words = spans_of_pieces(np.frombuffer(b"".join(pieces), dtype=np.uint8), ends_of(pieces), ends_of(documents))
    return words if ngrams == (1, 1) else _hashed(_grams(_joined(words), ngrams, whole=False))


def spans_of_pieces(buffer: Bytes, ends: Ints, documents: Ints) -> Spans:
    """Spans of words that lie end to end."""
    text = np.concatenate([buffer, np.zeros(PADDING, dtype=np.uint8)])
    return _hashed(_Units(text, ends[:-1], np.diff(ends), documents))


def _normalised(
    buffer: Bytes, offsets: Ints, stops: Ints, options: TokenizerOptions, scratch: ScratchBuffers
) -> tuple[Bytes, Ints, Ints]:
    """Text, start and stop of every document whose stop is -1, in final case; for words, all other bytes are zero."""
    todo = stops < 0
    # A byte that is not UTF-8 becomes three, and one blank may be added on each side: the largest growth.
    wide = 3 * np.where(todo, np.diff(offsets) + 1, 0)
    starts = np.cumsum(wide) - wide
    text = scratch.array("other", int(wide.sum()) + BLOCK, np.uint8)
    points = scratch.array("points", int(wide.sum()) // 3 + todo.size, np.int32)
    bounds = np.zeros(offsets.size, dtype=np.int64)
    table = entries(options.unit, options.lowercase, buffer)
    arrays = options.unit == "word" and array_shaping.enough(offsets, stops)
    if arrays:
        array_shaping.decode(buffer, offsets, stops, points, bounds)
    else:
        _shaping.decode(buffer, offsets, LEADS, options.unit == "char_wb", stops, points, bounds)
    if not (arrays and array_shaping.lower(points, bounds, table, starts, text=text, stops=stops)):
        _shaping.lower(points, bounds, table, starts, text, stops)
    return _read_only(text), starts, stops


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view: the loops are compiled for one of the two types."""
    view = array.view()
    view.flags.writeable = False
    return view


def most_words(size: int, documents: int) -> int:
    """Upper bound of the number of words, plus one: a word has two bytes or more, and one separator follows it."""
    return (size + documents) // 3 + 1


def _words(texts: Texts, scratch: ScratchBuffers) -> Spans:
    buffer, other, starts, stops, _ = texts
    most = most_words(int((stops - starts).sum()), starts.size)
    spans = tuple(scratch.array(name, most) for name in ("begin", "size", "keys"))
    text = scratch.array("text", buffer.size + other.size + PADDING, np.uint8)
    documents = np.zeros(starts.size + 1, dtype=np.int64)
    _loops.tokenize(*texts, SECRET, text, spans, documents)
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
    """The same words joined by single spaces."""
    size = int(units.size.sum()) + units.size.size
    joined = np.empty(size + PADDING, dtype=np.uint8)
    places = np.empty(units.begin.size, dtype=np.int64)
    _shaping.join(units.text, units.begin, units.size, joined, places)
    return _Units(joined, places, units.size, units.documents)


def _grams(units: _Units, ngrams: tuple[int, int], whole: bool) -> _Units:
    """All n-grams of units inside a document, or with `whole` inside a word and the blanks on its two sides."""
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
    """Groups from each blank to the next one of the same document: a word and its two blanks."""
    blanks = np.flatnonzero(units.text[units.begin] == 0x20)
    owner = np.searchsorted(units.documents, blanks, side="right") - 1
    inside = owner[1:] == owner[:-1]
    firsts, lasts = blanks[:-1][inside], blanks[1:][inside] + 1
    groups = np.searchsorted(owner[:-1][inside], np.arange(units.documents.size))
    return firsts, lasts, groups


def _hashed(units: _Units) -> Spans:
    keys = np.empty(units.begin.size, dtype=np.int64)
    _loops.hash_spans(units.text, units.begin, units.size, SECRET, keys)
    return Spans(units.text, units.begin, units.size, keys, units.documents)


def text_hashes(documents: TextChunk) -> npt.NDArray[np.uint64]:
    """A hash of the bytes of every document, the same in every process; a missing one is empty."""
    text, ends = utf8(documents) if isinstance(documents, list) else documents
    keys = np.empty(ends.size - 1, dtype=np.int64)
    cuts = np.searchsorted(ends, np.arange(ends[0], ends[-1], HASHED_BYTES))
    for a, b in pairwise(np.unique([0, *cuts.tolist(), ends.size - 1]).tolist()):
        padded = np.append(text[ends[a] : ends[b]], np.zeros(PADDING, dtype=np.uint8))
        _loops.hash_spans(padded, ends[a:b] - ends[a], np.diff(ends[a : b + 1]), COMMON, keys[a:b])
    return keys.view(np.uint64)
