"""Kernels of the tokenizer: bytes to spans of text, spans to word numbers, word numbers to bags.

Text lies in flat arrays of bytes, read in blocks or as eight bytes in one number (`_block_operations`). The *key* of a span
is what the hash table compares. A span of up to seven bytes is its own key (the bytes, and their number above them), so equal
keys mean equal spans; a longer one has a hash with the bit `LONG` set, and its bytes are compared as well. All numbers stay
below 2**63, so that interpreted and compiled loops agree.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from likely.kernels import kernel
from likely.kernels.kernel import Kernel
from likely.tokenizer._block_operations import (
    PREFETCH_DISTANCE,
    copy_u64,
    fold_block,
    load_u64,
    prefetch,
    trailing_zeros,
)

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[Any]
Triple = tuple[Ints, Ints, Ints]
Quadruple = tuple[Ints, Ints, Ints, Ints]
Function = TypeVar("Function", bound=Callable[..., Any])

SEVEN_BYTES = 0xFFFFFFFFFFFFFF
BLOCK_STEP = 63  # bytes of a block that are used: the sign bit stays free
LONG = 1 << 62
CACHED_SLOTS = 1 << 12  # slots that fit the cache: beyond, they are prefetched
POSITIVE = 0x7FFFFFFFFFFFFFFF
TAG_BITS, NUMBER_BITS = 0x7FFFFFFF, 0xFFFFFFFF  # a slot: the number of a word, and above it some bits of its hash
WIDTHS = np.array(
    [1] * 0xC0 + [2] * 0x20 + [3] * 0x10 + [4] * 0x10, dtype=np.int64
)  # bytes of a UTF-8 character, by its first byte


_subroutines: list[Callable[..., Any]] = []


def subroutine(function: Function) -> Function:
    """Register a function that is compiled into the kernels that call it.

    Passing an array counts its references, so a subroutine is called for each document, not for each word.
    """
    _subroutines.append(function)
    return function


@subroutine
def scan_words(
    source: Bytes, first: int, length: int, case_bit: np.uint8, secret: int, text: Bytes, to: int, spans: Triple, u: int
) -> int:
    """Write the span and key of every word of one document, its text in final case; returns the number of spans.

    A branch per letter would be mispredicted at every word. So a block becomes a bit mask, one bit for every byte of a
    word, and the loop runs over the positions where the bits change. The span of a word of one character is overwritten by
    the next.
    """
    begin, size, keys = spans
    before = at = 0
    for p in range(0, length + 1, BLOCK_STEP):
        bits = fold_block(source, first + p, case_bit, text, to + p) & POSITIVE
        if length - p < BLOCK_STEP:
            bits &= (1 << length - p) - 1
        after = (bits << 1 | before) & POSITIVE
        starts, stops = bits & ~after, after & ~bits
        if not before:
            at = to + p + trailing_zeros(starts)
            starts &= starts - 1
        before = bits >> BLOCK_STEP - 1
        while stops:
            place = to + p + trailing_zeros(stops)
            stops &= stops - 1
            n = place - at
            key = load_u64(text, at) & SEVEN_BYTES
            u &= POSITIVE  # tells the compiler that the index is not negative
            begin[u] = at
            size[u] = n
            width = WIDTHS[key & 0xFF]
            chunk = load_u64(text, at + 7) & (1 << 8 * min(max(n - 7, 0), 7)) - 1
            mixed = (key ^ 7 << 56 ^ chunk) * secret & LONG - 1
            mixed = mixed ^ mixed >> 31 | LONG
            key = mixed if n > 7 else key & (1 << 8 * min(n, 7)) - 1 | n << 56
            for q in range(at + 14, place, 7):
                chunk = load_u64(text, q) & (1 << 8 * min(place - q, 7)) - 1
                key = (key ^ chunk) * secret & LONG - 1
                key = key ^ key >> 31 | LONG
            keys[u] = key
            u += n > width
            at = to + p + trailing_zeros(starts)
            starts &= starts - 1
    return u


@subroutine
def find_words(
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
    """Write the word number of each span; a new word gets the next number with `grow`, else -1.

    Returns the next span and the number of words: it stops early when the table is full. A word numbered `count` or higher
    was added after this view of the table was taken, and does not belong to it.
    """
    begin, size, keys = spans
    slots, known, ends, letters = table
    mask = slots.size - 1
    last = some[1] - PREFETCH_DISTANCE if slots.size > CACHED_SLOTS else 0
    for u in range(*some):
        if u < last:
            prefetch(slots, (int(keys[u + PREFETCH_DISTANCE]) * secret & POSITIVE) >> shift)
        key = int(keys[u])
        mixed = key * secret & POSITIVE
        slot, tag = mixed >> shift, mixed >> 16 & TAG_BITS
        while True:
            found = slots[slot & mask]
            w = (found & NUMBER_BITS) - 1
            if w < 0 or w >= count:
                w = -1
                break
            if found >> 32 == tag and known[w] == key:
                if key < LONG:
                    break
                at, there, n = int(begin[u]), int(ends[w]), int(size[u])
                if ends[w + 1] - there == n:
                    other = load_u64(text, at) ^ load_u64(letters, there)
                    other |= (load_u64(text, at + 8) ^ load_u64(letters, there + 8)) & (1 << 8 * min(n - 8, 7)) - 1
                    for k in range(15, n, 7):
                        other |= (load_u64(text, at + k) ^ load_u64(letters, there + k)) & (1 << 8 * min(n - k, 7)) - 1
                    if not other:
                        break
            slot += 1
        if w < 0 and grow:
            at, there, n = int(begin[u]), int(ends[count]), int(size[u])
            if 2 * count >= slots.size or count >= known.size or there + n + 8 > letters.size:
                return u, count
            for k in range(0, n, 8):
                copy_u64(text, at + k, letters, there + k)
            known[count] = key
            ends[count + 1] = there + n
            w = count
            count += 1
            slots[slot & mask] = tag << 32 | count
        ids[u] = w
    return some[1], count


@subroutine
def fill_bag(ids: Ints, first: int, last: int, occurrences: Ints, bags: Quadruple, d: int) -> None:
    """Append the bag of one document. A negative word number is counted as unknown.

    `occurrences` is zero for every word, before and after. Whether a word is new in its document cannot be predicted, so
    there is no branch on it.
    """
    indptr, out, counts, unknown = bags
    begin = o = indptr[d] & POSITIVE
    for u in range(first & POSITIVE, last):
        w = int(ids[u])
        if w < 0:
            unknown[d] += 1
            continue
        out[o & POSITIVE] = w
        seen = occurrences[w]
        occurrences[w] = seen + 1
        o += seen == 0
    for i in range(begin, o):
        counts[i] = occurrences[out[i]]
        occurrences[out[i]] = 0
    indptr[d + 1] = o


@functools.cache
def register_operations() -> str:
    """Register block operations and subroutines with the compiler; returns which implementation compiled loops use.

    "simd" is the hand-written vector code; "scalar" are plain loops, used where the environment variable `LIKELY_NO_SIMD` is
    set (to anything but 0) or the vector code cannot be registered.
    """
    from numba.extending import register_jitable

    implementation = "scalar" if os.environ.get("LIKELY_NO_SIMD", "0") not in ("", "0") else "simd"
    if implementation == "simd":
        try:
            from likely.tokenizer._simd import register_intrinsics

            register_intrinsics()
        except Exception as error:  # whatever llvmlite and Numba change, words can still be counted
            kernel.announce(f"the tokenizer's vector instructions cannot be used ({error}): plain loops are compiled instead")
            implementation = "scalar"
    if implementation == "scalar":
        from likely.tokenizer._scalar import register_loops

        register_loops()
    for function in _subroutines:
        register_jitable(function)
    return implementation


class SimdKernel(Kernel):
    """A kernel that calls block operations and subroutines."""

    tiny = 0  # the argument types never vary, so a short text uses the compiled loop as well

    def _compile(self) -> Callable[..., Any]:
        self.variant = register_operations()
        return super()._compile()


@SimdKernel
def tokenize(
    buffer: Bytes,
    other: Bytes,
    starts: Ints,
    stops: Ints,
    case_bit: np.uint8,
    secret: int,
    text: Bytes,
    spans: Triple,
    documents: Ints,
) -> None:
    """Write the span and key of every word of at least two characters, its text in final case.

    `text` is as long as both buffers together; a document that starts beyond `buffer` lies in `other`.
    """
    u = 0
    for d in range(starts.size):
        source = buffer if starts[d] < buffer.size else other
        first = starts[d] if starts[d] < buffer.size else starts[d] - buffer.size
        u = scan_words(source, first, stops[d] - starts[d], case_bit, secret, text, starts[d], spans, u)
        documents[d + 1] = u


@SimdKernel
def count_documents(
    buffer: Bytes,
    other: Bytes,
    starts: Ints,
    stops: Ints,
    case_bit: np.uint8,
    first: int,
    table: Quadruple,
    count: int,
    secret: int,
    shift: int,
    grow: bool,
    scratch: tuple[Bytes, Triple, Ints, Ints],
    bags: Quadruple,
) -> tuple[int, int, int]:
    """Write the bags of documents from `first` on, one document at a time, so that all data stay in the cache.

    Returns the next document, the number of words, and the length of the word that did not fit into the table.
    """
    text, spans, ids, occurrences = scratch
    for d in range(first, starts.size):
        source = buffer if starts[d] < buffer.size else other
        begin = starts[d] if starts[d] < buffer.size else starts[d] - buffer.size
        n = scan_words(source, begin, stops[d] - starts[d], case_bit, secret, text, 0, spans, 0)
        u, count = find_words(text, spans, (0, n), table, count, secret, shift, grow, ids)
        if u < n:
            return d, count, spans[1][u]
        fill_bag(ids, 0, n, occurrences, bags, d)
    return starts.size, count, 0


@SimdKernel
def hash_spans(text: Bytes, begin: Ints, size: Ints, secret: int, keys: Ints) -> None:
    """The key of every span, as `scan_words` computes it; the secret prevents crafted words that collide."""
    for u in range(begin.size):
        p = int(begin[u])
        n = int(size[u])
        key = load_u64(text, p) & (1 << 8 * min(n, 7)) - 1 | min(n, 7) << 56
        for q in range(p + 7, p + n, 7):
            chunk = load_u64(text, q) & (1 << 8 * min(p + n - q, 7)) - 1
            key = (key ^ chunk) * secret & LONG - 1
            key = key ^ key >> 31 | LONG
        keys[u] = key


number_words = SimdKernel(find_words)


@SimdKernel
def rehash(slots: Ints, known: Ints, count: int, secret: int, shift: int) -> None:
    """Insert the words into a larger, empty table in the order of their numbers."""
    mask = slots.size - 1
    for w in range(count):
        mixed = int(known[w]) * secret & POSITIVE
        slot = mixed >> shift
        while slots[slot] > 0:
            slot = slot + 1 & mask
        slots[slot] = (mixed >> 16 & TAG_BITS) << 32 | w + 1


@SimdKernel
def make_bags(ids: Ints, documents: Ints, occurrences: Ints, bags: Quadruple) -> None:
    """Bags of documents whose words are numbered; the bags may overwrite the word numbers."""
    for d in range(documents.size - 1):
        fill_bag(ids, documents[d], documents[d + 1], occurrences, bags, d)


@SimdKernel
def renumber(ids: Ints, names: Ints) -> None:
    """Replace each word number by its number in another vocabulary."""
    for i in range(ids.size):
        ids[i] = names[ids[i]]
