"""The inner loops of counting words: bytes to spans of text, spans to numbers, numbers to bags.

Text lies in flat arrays of bytes, looked at by the block or by eight bytes as one number (`_blocks`). The *key* of a
span is what the tables compare: a span of up to seven bytes is its own key (the bytes, and their number above them), so
equal keys mean equal spans; a longer one has a mixed key marked `LONG`, and its bytes are compared as well. Numbers stay
below 2**63, so that interpreted and compiled loops agree.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from likely.kernels import Kernel
from likely.tokens._blocks import SOON, copy_eight, eight, fetch, fold, lowest
from likely.tokens._unicode import BLANK, CASED, IGNORABLE, LENGTH, SIGMA, SPACE

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[Any]
Triple = tuple[Ints, Ints, Ints]
Quadruple = tuple[Ints, Ints, Ints, Ints]

SEVEN = 0xFFFFFFFFFFFFFF  # seven bytes
TOPS = 0x80808080808080  # what only bytes have that are not ASCII
STEP = 63  # bytes of a block that are looked at: one bit stays free
LONG = 1 << 62
NEAR = 1 << 17  # slots that stay near a core
POSITIVE = 0x7FFFFFFFFFFFFFFF
MARKS, NUMBERS = 0x7FFFFFFF, 0xFFFFFFFF  # a slot holds the number of a word, and above it a mark of its key
WIDTHS = np.array(
    [1] * 0xC0 + [2] * 0x20 + [3] * 0x10 + [4] * 0x10, dtype=np.int64
)  # bytes of a character, by its first


class Loop(Kernel):
    """A kernel that looks at bytes by the block.

    The loops are in one piece: to hand an array to another compiled function costs something, because its owners are
    counted, and word by word that took twice as long. What `_blocks` has is written in place.
    """

    tiny = 0  # these are always called with arrays of the same kinds: once it is compiled, a short text profits as well
    _teaching = threading.Lock()

    def _fast(self) -> Callable[..., Any]:
        if self._compiled is None:
            with self._teaching:
                from likely.tokens._machine import teach

                teach()
        return super()._fast()


@Loop
def mark_foreign(buffer: Bytes, offsets: Ints, stops: Ints) -> None:
    """A document that is not ASCII stops nowhere yet."""
    for d in range(offsets.size - 1):
        every = 0
        for p in range(offsets[d], offsets[d + 1], 7):
            every |= eight(buffer, p) & (1 << 8 * min(offsets[d + 1] - p, 7)) - 1
        if every & TOPS:
            stops[d] = -1


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
            stops[d] = o


@Loop
def words(
    buffer: Bytes,
    other: Bytes,
    starts: Ints,
    stops: Ints,
    small: np.uint8,
    secret: int,
    text: Bytes,
    spans: Triple,
    documents: Ints,
) -> None:
    """Every word of at least two characters, in its final case in `text`, and its key.

    `text` has room for the buffer and behind it for the other one, where documents are that start there.

    A branch per letter would be mispredicted at every word. So a block becomes the bits of a number, one for every byte
    of a word, and only the places where the bits change are looked at. What is written of a single character is
    overwritten.
    """
    begin, size, keys = spans
    u = 0
    for d in range(starts.size):
        before = 0
        at = -1
        source = buffer if starts[d] < buffer.size else other
        skip = 0 if starts[d] < buffer.size else buffer.size
        for p in range(starts[d], stops[d] + 1, STEP):
            bits = fold(source, p - skip, small, text, p) & POSITIVE
            if stops[d] - p < STEP:
                bits &= (1 << stops[d] - p) - 1
            change = (bits ^ (bits << 1 | before)) & POSITIVE
            before = bits >> STEP - 1
            while change:
                place = p + lowest(change)
                change &= change - 1
                if at < 0:
                    at = place
                    continue
                n = place - at
                key = eight(text, at) & SEVEN
                first = key & 0xFF
                if n > 7:
                    key |= 7 << 56
                    for q in range(at + 7, place, 7):
                        chunk = eight(text, q) & (1 << 8 * min(place - q, 7)) - 1
                        key = (key ^ chunk) * secret & LONG - 1
                        key = key ^ key >> 31 | LONG
                else:
                    key = key & (1 << 8 * n) - 1 | n << 56
                u &= POSITIVE  # tells the compiler that no index counts from the end
                begin[u] = at
                size[u] = n
                keys[u] = key
                u += n > WIDTHS[first]
                at = -1
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
def seal(text: Bytes, begin: Ints, size: Ints, secret: int, keys: Ints) -> None:
    """The key of every span, as `words` makes it; the secret is so that nobody can prepare words that collide."""
    for u in range(begin.size):
        p = int(begin[u])
        n = int(size[u])
        key = eight(text, p) & (1 << 8 * min(n, 7)) - 1 | min(n, 7) << 56
        for q in range(p + 7, p + n, 7):
            chunk = eight(text, q) & (1 << 8 * min(p + n - q, 7)) - 1
            key = (key ^ chunk) * secret & LONG - 1
            key = key ^ key >> 31 | LONG
        keys[u] = key


@Loop
def number(
    text: Bytes,
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
    last = keys.size - SOON if slots.size > NEAR else 0
    for u in range(first, keys.size):
        if u < last:
            fetch(slots, (int(keys[u + SOON]) * secret & POSITIVE) >> shift)
        key = int(keys[u])
        mixed = key * secret & POSITIVE
        slot, mark = mixed >> shift, mixed >> 16 & MARKS
        while True:
            found = slots[slot & mask]
            w = (found & NUMBERS) - 1
            if w < 0 or w >= count:
                w = -1
                break
            if found >> 32 == mark and known[w] == key:
                if key < LONG:
                    break
                at, there, n = int(begin[u]), int(ends[w]), int(size[u])
                if ends[w + 1] - there == n:
                    k = 0
                    while (
                        k < n and not (eight(text, at + k) ^ eight(letters, there + k)) & (1 << 8 * min(n - k, 7)) - 1
                    ):
                        k += 7
                    if k >= n:
                        break
            slot += 1
        if w < 0 and grow:
            at, there, n = int(begin[u]), int(ends[count]), int(size[u])
            if 2 * count >= slots.size or count >= known.size or there + n + 8 > letters.size:
                return u, count
            for k in range(0, n, 8):
                copy_eight(text, at + k, letters, there + k)
            known[count] = key
            ends[count + 1] = there + n
            w = count
            count += 1
            slots[slot & mask] = mark << 32 | count
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
