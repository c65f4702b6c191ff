"""Kernels that normalise text: decode and lower-case non-ASCII text, find characters, form n-grams."""

from __future__ import annotations

from likely.tokenizer._loops import Bytes, Ints, SimdKernel, Triple
from likely.tokenizer._unicode import BLANK, CASED, IGNORABLE, LENGTH, SIGMA, SPACE


@SimdKernel
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


@SimdKernel
def lower(points: Ints, bounds: Ints, table: Ints, starts: Ints, text: Bytes, stops: Ints) -> None:
    """Write each code point as its table entry; runs of blanks become one space; sigma depends on its neighbours.

    A sigma after a cased letter is written as final, and corrected when a cased letter follows.
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


@SimdKernel
def characters(text: Bytes, starts: Ints, stops: Ints, begin: Ints, size: Ints, documents: Ints) -> None:
    """Start and size in bytes of every character."""
    u = 0
    for d in range(starts.size):
        for p in range(starts[d], stops[d]):
            if text[p] & 0xC0 != 0x80:
                begin[u] = p
                size[u] = 0
                u += 1
            size[u - 1] += 1
        documents[d + 1] = u


@SimdKernel
def join(text: Bytes, begin: Ints, size: Ints, joined: Bytes, places: Ints) -> None:
    """Join the words with single spaces, so that a run of words is a span of bytes."""
    o = 0
    for u in range(begin.size):
        places[u] = o
        for p in range(begin[u], begin[u] + size[u]):
            joined[o] = text[p]
            o += 1
        joined[o] = 0x20
        o += 1


@SimdKernel
def grams(begin: Ints, size: Ints, groups: Triple, ngrams: tuple[int, int], whole: bool, out: Triple) -> None:
    """All n-grams of units inside each group; with `whole`, a group shorter than the shortest n-gram is one itself."""
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
