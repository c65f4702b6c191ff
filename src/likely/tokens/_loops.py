"""The inner loops of counting words: bytes to spans of text, spans to numbers, numbers to bags.

Text lies in flat arrays of bytes. A *window* is the eight bytes from a place on, read as one integer, so that seven
letters are looked at in one step. The *key* of a span is what the tables compare: a span of up to seven bytes is its
own key (the bytes, and their number above them), so equal keys mean equal spans; a longer one has a mixed key marked
`LONG`, and its bytes are compared as well. Numbers stay below 2**63, so that interpreted and compiled loops agree.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from likely.kernels import Kernel
from likely.tokens._unicode import BLANK, CASED, IGNORABLE, LENGTH, SIGMA, SPACE

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[Any]
Triple = tuple[Ints, Ints, Ints]
Quadruple = tuple[Ints, Ints, Ints, Ints]

SEVEN = 0xFFFFFFFFFFFFFF  # seven bytes
TOPS = 0x80808080808080
LOWS = 0x7F7F7F7F7F7F7F
GATHER = sum(1 << 48 - 7 * k for k in range(7))  # times bits eight apart has them side by side from place 48 on
BRUIJN = 0x03F79D71B4CB0A89  # every six bits of it differ: a power of two times this has its exponent's mark on top
PLACES = np.argsort([(BRUIJN << k & (1 << 64) - 1) >> 58 for k in range(64)])  # the exponent, by its mark
LONG = 1 << 62
POSITIVE = 0x7FFFFFFFFFFFFFFF
MARKS, NUMBERS = 0x7FFFFFFF, 0xFFFFFFFF  # a slot holds the number of a word, and above it a mark of its key
MASKS = np.array([(1 << 8 * n) - 1 for n in range(8)], dtype=np.int64)
WIDTHS = np.array(
    [1] * 0xC0 + [2] * 0x20 + [3] * 0x10 + [4] * 0x10, dtype=np.int64
)  # bytes of a character, by its first


def windows(text: Bytes) -> Ints:
    """The integer that begins at every place of a text; a text ends in bytes of padding."""
    return np.ndarray((text.size - 7,), dtype="<i8", buffer=text.data, strides=(1,))


def mix(key: int, chunk: int, secret: int) -> int:
    """A key stirred with the next seven bytes; the multiplier is secret, so nobody can prepare words that collide."""
    key = (key ^ chunk) * secret & LONG - 1
    return key ^ key >> 31


def same(text: Ints, at: int, other: Ints, there: int, size: int) -> bool:
    """Whether two spans hold the same bytes."""
    k = 0
    while k < size and not (text[at + k] ^ other[there + k]) & MASKS[min(7, size - k)]:
        k += 7
    return k >= size


@functools.cache
def _teach_compiler() -> None:
    from numba.extending import register_jitable

    for function in (mix, same):
        register_jitable(function)


class Loop(Kernel):
    """A kernel that may call the small functions above.

    The loops themselves are in one piece: to hand an array to a function costs something, because its owners are counted,
    and word by word that took twice as long.
    """

    _teaching = threading.Lock()

    def _fast(self) -> Callable[..., Any]:
        with self._teaching:
            _teach_compiler()
        return super()._fast()


@Loop
def classify(buffer: Bytes, offsets: Ints, fold: np.uint8, starts: Ints, text: Bytes, stops: Ints) -> None:
    """The words of every ASCII document in their final case, zeros between; other documents are left for `lower`.

    Capitals are joined with the bits of `fold`. Arithmetic of bytes alone, so that many of them are done in one step.
    """
    case, digit, capital, letter = np.uint8(0x20), np.uint8(0x30), np.uint8(0x41), np.uint8(0x61)
    for d in range(offsets.size - 1):
        source = buffer[offsets[d] : offsets[d + 1]]
        every = 0
        for i in range(source.size):
            every |= source[i]
        if every < 0x80:
            target = text[starts[d] : starts[d] + source.size]
            for i in range(source.size):
                byte = np.uint8(source[i])
                word = np.uint8(np.uint8(byte | case) - letter) < np.uint8(26)
                word |= np.uint8(byte - digit) < np.uint8(10)
                word |= byte == np.uint8(0x5F)
                large = np.uint8(byte - capital) < np.uint8(26)
                folded = np.uint8(byte | (fold if large else np.uint8(0)))
                target[i] = folded if word else np.uint8(0)
            text[starts[d] + source.size] = 0
            stops[d] = starts[d] + source.size


@Loop
def decode(buffer: Bytes, offsets: Ints, leads: Ints, pad: bool, stops: Ints, points: Ints, bounds: Ints) -> None:
    """The code points of UTF-8; what is not UTF-8 becomes U+FFFD, as with `bytes.decode(errors="replace")`."""
    o = 0
    for d in range(offsets.size - 1):
        i = offsets[d]
        end = offsets[d + 1] if stops[d] < 0 else i
        if pad:
            points[o] = 0x20
            o += 1
        while i < end:
            byte = int(buffer[i])
            i += 1
            more, low, high = leads[byte, 0], leads[byte, 1], leads[byte, 2]
            point = byte & leads[byte, 3]
            while more > 0 and i < end and low <= buffer[i] <= high:
                point = point << 6 | int(buffer[i]) & 0x3F
                low, high = 0x80, 0xBF
                more -= 1
                i += 1
            points[o] = 0xFFFD if more > 0 else point
            o += 1
        if pad:
            points[o] = 0x20
            o += 1
        bounds[d + 1] = o


@Loop
def lower(points: Ints, bounds: Ints, table: Ints, starts: Ints, text: Bytes, stops: Ints) -> None:
    """Each code point as its table entry says; runs of blanks become one space; a sigma looks at its neighbours.

    A sigma after a cased letter is written as final and taken back when a cased letter turns out to follow.
    """
    for d in range(bounds.size - 1):
        o = starts[d]
        cased = 0
        final = -1
        blank = -1
        for i in range(bounds[d], bounds[d + 1]):
            entry = int(table[points[i]])
            if not entry & IGNORABLE:
                if final >= 0 and entry & CASED:
                    text[final] = 0x83
                final = o + 1 if entry & SIGMA and cased else -1
                cased = entry & CASED
            if entry & BLANK and blank >= 0:
                o = blank
                entry = SPACE
            blank = o if entry & BLANK else -1
            for k in range(entry >> LENGTH & 7):
                text[o + k] = entry >> 8 * k & 0xFF
            if final == o + 1:
                text[final] = 0x82
            o += entry >> LENGTH & 7
        if stops[d] < 0:
            text[o] = 0
            stops[d] = o


@Loop
def words(window: Ints, starts: Ints, stops: Ints, secret: int, spans: Triple, documents: Ints) -> None:
    """Every run of at least two characters between zeros, and its key.

    A branch per letter would be mispredicted at every word. So 63 bytes become the bits of a number, one where a byte is
    not zero, and only the places where the bits change are looked at; the last bit only says whether a run goes on. What
    is written of a single long character is overwritten.
    """
    begin, size, keys = spans
    u = 0
    for d in range(starts.size):
        p = starts[d] & POSITIVE  # tells the compiler that no index counts from the end
        before = kept = 0
        at = -1
        while p <= stops[d]:
            bits = 0
            for k in range(9):
                chunk = int(window[p + 7 * k]) & SEVEN
                tops = (((chunk & LOWS) + LOWS | chunk) & TOPS) >> 7
                bits |= (tops * GATHER >> 48 & 0x7F) << 7 * k
            if stops[d] - p < 63:
                bits &= (1 << stops[d] - p) - 1
            long = bits & (bits << 1 | before | bits >> 1) & LONG - 1
            change = (long ^ (long << 1 | kept)) & LONG - 1
            while change:
                place = p + PLACES[(change & -change) * BRUIJN >> 58 & 63]
                change &= change - 1
                if at < 0:
                    at = place
                    continue
                n = place - at
                u &= POSITIVE
                begin[u] = at
                size[u] = n
                chunk = int(window[at & POSITIVE]) & SEVEN
                if n > 7:
                    key = chunk | 7 << 56
                    for q in range(at + 7, place, 7):
                        key = mix(key, int(window[q & POSITIVE]) & MASKS[min(place - q, 7)], secret) | LONG
                else:
                    key = chunk & MASKS[n & 7] | n << 56
                keys[u] = key
                first = chunk & 0xFF
                u += 1
                if first >= 0x80 and n <= WIDTHS[first]:
                    u -= 1
                at = -1
            before, kept = bits >> 61 & 1, long >> 61 & 1
            p += 62
        documents[d + 1] = u


@Loop
def characters(text: Bytes, starts: Ints, stops: Ints, begin: Ints, size: Ints, documents: Ints) -> None:
    """Where every character begins, and how many bytes it has."""
    u = 0
    for d in range(starts.size):
        for p in range(starts[d], stops[d]):
            if text[p] & 0xC0 != 0x80:
                begin[u] = p
                size[u] = 0
                u += 1
            size[u - 1] += 1
        documents[d + 1] = u


@Loop
def join(text: Bytes, begin: Ints, size: Ints, joined: Bytes, places: Ints) -> None:
    """The words one after the other with a space between, so that a run of words is a span of bytes."""
    o = 0
    for u in range(begin.size):
        places[u] = o
        for p in range(begin[u], begin[u] + size[u]):
            joined[o] = text[p]
            o += 1
        joined[o] = 0x20
        o += 1


@Loop
def grams(begin: Ints, size: Ints, groups: Triple, ngrams: tuple[int, int], whole: bool, out: Triple) -> None:
    """Every run of so many units inside a group; with `whole`, a group too short counts as one run."""
    firsts, lasts, owners = groups
    shortest, longest = ngrams
    runs, sizes, documents = out
    o = 0
    for d in range(documents.size - 1):
        for g in range(owners[d], owners[d + 1]):
            first, last = firsts[g], lasts[g]
            least = min(shortest, last - first) if whole else shortest
            for n in range(least, min(longest, last - first) + 1):
                for u in range(first, last - n + 1):
                    runs[o] = begin[u]
                    sizes[o] = begin[u + n - 1] + size[u + n - 1] - begin[u]
                    o += 1
        documents[d + 1] = o


@Loop
def seal(window: Ints, begin: Ints, size: Ints, secret: int, keys: Ints) -> None:
    """The key of every span."""
    for u in range(begin.size):
        p = int(begin[u])
        n = int(size[u])
        key = int(window[p]) & MASKS[min(n, 7)] | min(n, 7) << 56
        for q in range(p + 7, p + n, 7):
            key = mix(key, int(window[q]) & MASKS[min(p + n - q, 7)], secret) | LONG
        keys[u] = key


@Loop
def number(
    window: Ints,
    spans: Triple,
    table: Quadruple,
    first: int,
    count: int,
    secret: int,
    shift: int,
    grow: bool,
    ids: Ints,
) -> tuple[int, int]:
    """The number of every span's word; a new word gets the next number, or -1 where nothing may be learnt.

    Returns how far it came and how many words there are: it stops short when the tables have no room left.
    A word numbered `count` or higher was learnt after this view of the table was taken: older words lie before it.
    """
    begin, size, keys = spans
    slots, known, ends, letters = table
    mask = slots.size - 1
    for u in range(first, keys.size):
        key = int(keys[u])
        mixed = key * secret & POSITIVE
        slot, mark = mixed >> shift, mixed >> 16 & MARKS
        while True:
            w = (slots[slot] & NUMBERS) - 1
            if w < 0 or w >= count:
                w = -1
                break
            if (
                slots[slot] >> 32 == mark
                and known[w] == key
                and (
                    key < LONG
                    or (ends[w + 1] - ends[w] == size[u] and same(window, begin[u], letters, ends[w], size[u]))
                )
            ):
                break
            slot = slot + 1 & mask
        if w < 0 and grow:
            at, there = int(begin[u]), int(ends[count])
            if 2 * count >= slots.size or count >= known.size or there + size[u] + 8 > letters.size:
                return u, count
            for k in range(0, int(size[u]), 8):
                letters[there + k] = window[at + k]
            known[count] = key
            ends[count + 1] = there + size[u]
            w = count
            count += 1
            slots[slot] = mark << 32 | count
        ids[u] = w
    return keys.size, count


@Loop
def rehash(slots: Ints, known: Ints, count: int, secret: int, shift: int) -> None:
    """Every word's number at its place in a larger, empty table, the older word first."""
    mask = slots.size - 1
    for w in range(count):
        mixed = int(known[w]) * secret & POSITIVE
        slot = mixed >> shift
        while slots[slot] > 0:
            slot = slot + 1 & mask
        slots[slot] = (mixed >> 16 & MARKS) << 32 | w + 1


@Loop
def bag(ids: Ints, documents: Ints, often: Ints, indptr: Ints, counts: Ints, unknown: Ints) -> None:
    """How often each word stands in each document; the words of a bag replace the words of the text.

    A word below zero is only counted as unknown. `often` is zero for every word, before and after. Whether a word is new
    in its document is anybody's guess, so nothing branches on it.
    """
    o = 0
    for d in range(documents.size - 1):
        first = o
        for u in range(documents[d] & POSITIVE, documents[d + 1]):
            w = int(ids[u])
            if w < 0:
                unknown[d] += 1
                continue
            ids[o & POSITIVE] = w
            seen = often[w]
            often[w] = seen + 1
            o += seen == 0
        for i in range(first & POSITIVE, o):
            counts[i] = often[ids[i]]
            often[ids[i]] = 0
        indptr[d + 1] = o


@Loop
def rename(ids: Ints, names: Ints) -> None:
    """The name of every word instead of its number."""
    for i in range(ids.size):
        ids[i] = names[ids[i]]
