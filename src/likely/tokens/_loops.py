"""The inner loops of counting words: bytes to spans of text, spans to numbers, numbers to bags.

Text lies in flat arrays of bytes, looked at by the block or by eight bytes as one number (`_blocks`). The *key* of a
span is what the tables compare: a span of up to seven bytes is its own key (the bytes, and their number above them), so
equal keys mean equal spans; a longer one has a mixed key marked `LONG`, and its bytes are compared as well. Numbers stay
below 2**63, so that interpreted and compiled loops agree.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from likely.kernels import Kernel
from likely.tokens._blocks import SOON, copy_eight, eight, fetch, fold, lowest

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[Any]
Triple = tuple[Ints, Ints, Ints]
Quadruple = tuple[Ints, Ints, Ints, Ints]
Function = TypeVar("Function", bound=Callable[..., Any])

SEVEN = 0xFFFFFFFFFFFFFF  # seven bytes
STEP = 63  # bytes of a block that are looked at: one bit stays free
LONG = 1 << 62
NEAR = 1 << 12  # slots that stay near the core by themselves
POSITIVE = 0x7FFFFFFFFFFFFFFF
MARKS, NUMBERS = 0x7FFFFFFF, 0xFFFFFFFF  # a slot holds the number of a word, and above it a mark of its key
WIDTHS = np.array(
    [1] * 0xC0 + [2] * 0x20 + [3] * 0x10 + [4] * 0x10, dtype=np.int64
)  # bytes of a character, by its first


_pieces: list[Callable[..., Any]] = []


def piece(function: Function) -> Function:
    """A part of a loop, compiled into those that call it.

    To hand an array to it costs something, because its owners are counted: it is called document by document, not word by
    word.
    """
    _pieces.append(function)
    return function


@piece
def scan(
    source: Bytes, first: int, length: int, small: np.uint8, secret: int, text: Bytes, to: int, spans: Triple, u: int
) -> int:
    """Write every word of one document, in its final case in `text`, and its key; how many words there are then.

    A branch per letter would be mispredicted at every word. So a block becomes the bits of a number, one for every byte
    of a word, and only the places where the bits change are looked at. What is written of a single character is
    overwritten.
    """
    begin, size, keys = spans
    before = at = 0
    for p in range(0, length + 1, STEP):
        bits = fold(source, first + p, small, text, to + p) & POSITIVE
        if length - p < STEP:
            bits &= (1 << length - p) - 1
        after = (bits << 1 | before) & POSITIVE
        starts, stops = bits & ~after, after & ~bits
        if not before:
            at = to + p + lowest(starts)
            starts &= starts - 1
        before = bits >> STEP - 1
        while stops:
            place = to + p + lowest(stops)
            stops &= stops - 1
            n = place - at
            key = eight(text, at) & SEVEN
            u &= POSITIVE  # tells the compiler that no index counts from the end
            begin[u] = at
            size[u] = n
            width = WIDTHS[key & 0xFF]
            chunk = eight(text, at + 7) & (1 << 8 * min(max(n - 7, 0), 7)) - 1
            mixed = (key ^ 7 << 56 ^ chunk) * secret & LONG - 1
            mixed = mixed ^ mixed >> 31 | LONG
            key = mixed if n > 7 else key & (1 << 8 * min(n, 7)) - 1 | n << 56
            for q in range(at + 14, place, 7):
                chunk = eight(text, q) & (1 << 8 * min(place - q, 7)) - 1
                key = (key ^ chunk) * secret & LONG - 1
                key = key ^ key >> 31 | LONG
            keys[u] = key
            u += n > width
            at = to + p + lowest(starts)
            starts &= starts - 1
    return u


@piece
def find(
    text: Bytes,
    spans: Triple,
    some: tuple[int, int],
    table: Quadruple,
    count: int,
    secret: int,
    shift: int,
    grow: bool,
    ids: Ints,
) -> tuple[int, int]:
    """Write the number of the word of some spans; a new word gets the next number, or -1 where nothing may be learnt.

    Returns how far it came and how many words there are: it stops short when the tables have no room left.
    A word numbered `count` or higher was learnt after this view of the table was taken: older words lie before it.
    """
    begin, size, keys = spans
    slots, known, ends, letters = table
    mask = slots.size - 1
    last = some[1] - SOON if slots.size > NEAR else 0
    for u in range(*some):
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
                    other = eight(text, at) ^ eight(letters, there)
                    other |= (eight(text, at + 8) ^ eight(letters, there + 8)) & (1 << 8 * min(n - 8, 7)) - 1
                    for k in range(15, n, 7):
                        other |= (eight(text, at + k) ^ eight(letters, there + k)) & (1 << 8 * min(n - k, 7)) - 1
                    if not other:
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
    return some[1], count


@piece
def fill(ids: Ints, first: int, last: int, often: Ints, bags: Quadruple, d: int) -> None:
    """Write the bag of one document behind those before it. A word below zero is only counted as unknown.

    `often` is zero for every word, before and after. Whether a word is new in its document is anybody's guess, so nothing
    branches on it.
    """
    indptr, out, counts, unknown = bags
    begin = o = indptr[d] & POSITIVE
    for u in range(first & POSITIVE, last):
        w = int(ids[u])
        if w < 0:
            unknown[d] += 1
            continue
        out[o & POSITIVE] = w
        seen = often[w]
        often[w] = seen + 1
        o += seen == 0
    for i in range(begin, o):
        counts[i] = often[out[i]]
        often[out[i]] = 0
    indptr[d + 1] = o


@functools.cache
def _teach_compiler() -> None:
    from numba.extending import register_jitable

    from likely.tokens._machine import teach

    teach()
    for function in _pieces:
        register_jitable(function)


class Loop(Kernel):
    """A kernel that may call the pieces above, and look at many bytes at once."""

    tiny = 0  # these are always called with arrays of the same kinds: once it is compiled, a short text profits as well

    def _compile(self) -> Callable[..., Any]:
        _teach_compiler()
        return super()._compile()


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
    """
    u = 0
    for d in range(starts.size):
        source = buffer if starts[d] < buffer.size else other
        first = starts[d] if starts[d] < buffer.size else starts[d] - buffer.size
        u = scan(source, first, stops[d] - starts[d], small, secret, text, starts[d], spans, u)
        documents[d + 1] = u


@Loop
def read(
    buffer: Bytes,
    other: Bytes,
    starts: Ints,
    stops: Ints,
    small: np.uint8,
    first: int,
    table: Quadruple,
    count: int,
    secret: int,
    shift: int,
    grow: bool,
    desk: tuple[Bytes, Triple, Ints, Ints],
    bags: Quadruple,
) -> tuple[int, int, int]:
    """The bags of texts, from the first one on: document by document, so that all of it stays near the core.

    Returns how far it came, how many words there are, and how long a word is for which the tables have no room left.
    """
    text, spans, ids, often = desk
    for d in range(first, starts.size):
        source = buffer if starts[d] < buffer.size else other
        begin = starts[d] if starts[d] < buffer.size else starts[d] - buffer.size
        n = scan(source, begin, stops[d] - starts[d], small, secret, text, 0, spans, 0)
        u, count = find(text, spans, (0, n), table, count, secret, shift, grow, ids)
        if u < n:
            return d, count, spans[1][u]
        fill(ids, 0, n, often, bags, d)
    return starts.size, count, 0


@Loop
def seal(text: Bytes, begin: Ints, size: Ints, secret: int, keys: Ints) -> None:
    """The key of every span, as `scan` makes it; the secret is so that nobody can prepare words that collide."""
    for u in range(begin.size):
        p = int(begin[u])
        n = int(size[u])
        key = eight(text, p) & (1 << 8 * min(n, 7)) - 1 | min(n, 7) << 56
        for q in range(p + 7, p + n, 7):
            chunk = eight(text, q) & (1 << 8 * min(p + n - q, 7)) - 1
            key = (key ^ chunk) * secret & LONG - 1
            key = key ^ key >> 31 | LONG
        keys[u] = key


number = Loop(find)


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
def bag(ids: Ints, documents: Ints, often: Ints, bags: Quadruple) -> None:
    """How often each word stands in each document; bags may be written over the words of the text."""
    for d in range(documents.size - 1):
        fill(ids, documents[d], documents[d + 1], often, bags, d)


@Loop
def rename(ids: Ints, names: Ints) -> None:
    """The name of every word instead of its number."""
    for i in range(ids.size):
        ids[i] = names[ids[i]]
