"""Words decoded and lower-cased by arrays, as by `decode` and `lower` of `_shaping`: for text that is not worth compiling."""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import worth_compiling
from likely.tokenizer import _shaping
from likely.tokenizer._loops import Bytes, Ints
from likely.tokenizer._unicode import BLANK, LENGTH, SIGMA

ARRAYS, EACH = 6e-8, 2e-6  # seconds that a byte and that a document take longer with arrays


def enough(offsets: Ints, stops: Ints) -> bool:
    """Whether arrays are fast enough for the documents whose stop is -1."""
    todo = stops < 0
    seconds = ARRAYS * int(np.diff(offsets)[todo].sum()) + EACH * int(todo.sum())
    return not worth_compiling(seconds, _shaping.decode, _shaping.lower)


def decode(buffer: Bytes, offsets: Ints, stops: Ints, points: Ints, bounds: Ints) -> None:
    """The code points of every document whose stop is -1; what is not UTF-8 becomes U+FFFD."""
    todo = np.flatnonzero(stops < 0)
    pieces = [
        buffer[a:b].tobytes().decode("utf-8", "replace").encode("utf-32-le")
        for a, b in zip(offsets[todo].tolist(), offsets[todo + 1].tolist(), strict=True)
    ]
    sizes = np.zeros(len(stops), np.int64)
    sizes[todo] = [len(each) // 4 for each in pieces]
    bounds[1:] = np.cumsum(sizes)
    points[: bounds[-1]] = np.frombuffer(b"".join(pieces), "<i4")


def lower(points: Ints, bounds: Ints, table: Ints, starts: Ints, *, text: Bytes, stops: Ints) -> bool:
    """Write each code point as its table entry; returns False, and writes nothing, where neighbours decide on an entry."""
    entry = table[points[: bounds[-1]]]
    if (entry & (SIGMA | BLANK)).any():
        return False
    sizes = entry >> LENGTH & 7
    written = np.concatenate([[0], np.cumsum(sizes)])
    at = written[:-1] + np.repeat(starts - written[bounds[:-1]], np.diff(bounds))
    for k in range(int(sizes.max(initial=0))):
        some = np.flatnonzero(sizes > k)
        text[at[some] + k] = entry[some] >> 8 * k & 0xFF
    stops[:] = np.where(stops < 0, starts + written[bounds[1:]] - written[bounds[:-1]], stops)
    return True
