"""The loops that give texts their final form: letters that are not ASCII, characters, and runs of several words."""

from __future__ import annotations

from likely.tokens._blocks import eight
from likely.tokens._loops import Bytes, Ints, Loop, Triple
from likely.tokens._unicode import BLANK, CASED, IGNORABLE, LENGTH, SIGMA, SPACE

TOPS = 0x80808080808080  # what only bytes have that are not ASCII


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
