"""Letters, digits and underscores by code point, for databases whose functions know those of ASCII alone.

The tables are derived from the running interpreter (`str.lower` and `re`), as that of the tokenizer is.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
CODES = 0x110000
GROWING = "İ"  # the only character whose lower case is several
LetterRun = tuple[int, int, int, int]  # first and last code point; the letter of c in between is c + shift + step · (c mod 2)


@cache
def letter_runs(lowercase: bool) -> tuple[LetterRun, ...]:
    """Runs of code points that are parts of words, each with its letter, in lower case if wanted.

    Where each second letter of a run is the capital of the one beside it, the run is one.
    """
    codes = np.arange(CODES)
    text = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    lowered = text.replace(GROWING, "\0").replace("Σ", "σ").lower() if lowercase else text
    to = np.frombuffer(lowered.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
    inside = np.zeros(CODES, bool)
    for run in re.finditer(r"\w+", lowered):
        inside[run.start() : run.end()] = True
    shifts = np.where(inside, to - codes, CODES)
    odd = inside & (to == codes + 1 - codes % 2)
    even = inside & (to == codes + codes % 2)
    ends = [_ends(kept) for kept in (shifts, odd, even)]
    found: list[LetterRun] = []
    at = 0
    while at < CODES:
        settings = [(int(ends[0][at]), int(shifts[at]), 0)]
        settings += [(int(ends[1][at]), 1, -1)] if odd[at] else []
        settings += [(int(ends[2][at]), 0, 1)] if even[at] else []
        end, shift, step = max(settings, key=lambda setting: setting[0])
        if inside[at]:
            found.append((at, end - 1, shift, step))
        at = end
    return tuple(found)


@cache
def word_edges() -> tuple[int, ...]:
    """Code points from which on characters are parts of words, and are not, by turns."""
    found: list[int] = []
    for first, last, *_ in letter_runs(lowercase=False):
        if found and found[-1] == first:
            found[-1] = last + 1
        else:
            found += [first, last + 1]
    return tuple(found)


def _ends(values: NDArray[np.generic]) -> Ints:
    """For each place, where the run of equal values that it is in ends."""
    edges = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    lengths = [end - start for start, end in pairwise(edges)]
    return np.repeat(np.array(edges[1:], np.int64), lengths)
