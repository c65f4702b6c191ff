"""Text that does not pay for compiling is decoded and lower-cased by arrays, to the same bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from likely.tokenizer import _array_shaping as array_shaping
from likely.tokenizer import _shaping
from likely.tokenizer._unicode import LEADS, entries

PIECES = st.binary(max_size=20) | st.text(max_size=12).map(str.encode) | st.sampled_from([b"\xed\xa0\x80", "aİß£ é".encode()])


@settings(deadline=None)
@given(st.lists(st.tuples(PIECES, st.booleans()), max_size=5), st.booleans())
@example([(b"\xf0\x9f\x98", True), (b"ab", False), ("ÀÉ – x".encode(), True)], True)
@example([("ΑΣ".encode(), True)], True)
def test_arrays_write_what_the_loops_write(documents: list[tuple[bytes, bool]], lowercase: bool) -> None:
    buffer = np.frombuffer(b"".join(piece for piece, _ in documents), np.uint8)
    offsets = np.cumsum([0, *(len(piece) for piece, _ in documents)])
    begun = np.array([-1 if todo else 7 for _, todo in documents], np.int64)
    wide = 3 * np.where(begun < 0, np.diff(offsets) + 1, 0)
    starts, table, found = np.cumsum(wide) - wide, entries("word", lowercase, buffer), []
    for arrays in (False, True):
        points, bounds = np.zeros(len(buffer) + len(begun), np.int32), np.zeros(len(offsets), np.int64)
        text, stops = np.zeros(int(wide.sum()), np.uint8), begun.copy()
        if arrays:
            array_shaping.decode(buffer, offsets, stops, points, bounds)
            known = array_shaping.lower(points, bounds, table, starts, text=text, stops=stops)
        else:
            _shaping.decode(buffer, offsets, LEADS, False, stops, points, bounds)
            _shaping.lower(points, bounds, table, starts, text, stops)
        found.append((points, bounds, text, stops))
    for one, other in list(zip(*found, strict=True))[: 4 if known else 2]:
        np.testing.assert_array_equal(one, other)
    read = "".join(piece.decode("utf-8", "replace") for piece, todo in documents if todo)
    assert known == (not lowercase or "Σ" not in read)
