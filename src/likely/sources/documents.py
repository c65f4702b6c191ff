"""Columns of texts in the form that the tokenizer reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.schema import is_missing
from likely.sources.arrow_arrays import numpy_array

Text = tuple[NDArray[np.uint8], NDArray[np.int64]]
TextChunk = Text | list[str | None]


@dataclass(frozen=True)
class Documents:
    """A column of texts as one UTF-8 buffer with offsets, and a mask of missing texts."""

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    missing: NDArray[np.bool_]

    @property
    def ends(self) -> NDArray[np.int64]:
        """Cumulative text length by document."""
        return self.offsets

    def part(self, start: int, stop: int) -> Text:
        """A range of the texts for the tokenizer, without a copy."""
        return self.buffer, self.offsets[start : stop + 1]

    def some(self, rows: NDArray[np.intp]) -> Text:
        """Copies of some of the texts, one after the other."""
        places = zip(self.offsets[rows].tolist(), self.offsets[rows + 1].tolist(), strict=True)
        pieces = [self.buffer[a:b] for a, b in places]
        ends = np.concatenate([[0], np.cumsum(self.offsets[rows + 1] - self.offsets[rows])]).astype(np.int64)
        return np.concatenate([np.zeros(0, np.uint8), *pieces]), ends


@dataclass(frozen=True)
class Strings:
    """A column of texts as Python strings, encoded range by range so that they are never in memory twice."""

    texts: Sequence[str | None]
    missing: NDArray[np.bool_]
    ends: NDArray[np.int64]

    @staticmethod
    def of(values: Sequence[Any], missing: tuple[str, ...]) -> Strings:
        """Texts of a list; None, NaN and missing-value tokens are missing."""
        texts: Sequence[str | None] = values
        gone = np.zeros(len(values), dtype=bool)
        try:
            sizes = np.fromiter(map(str.__len__, values), np.int64, len(values))
        except TypeError:  # not all of them are strings
            texts = [None if is_missing(v) else v if isinstance(v, str) else str(v) for v in values]
            gone = np.array([text is None for text in texts], dtype=bool)
            sizes = np.fromiter((len(text or "") for text in texts), np.int64, len(texts))
        longest = max((len(token) for token in missing), default=0)
        for i in np.flatnonzero((sizes > 0) & (sizes <= longest + 2)).tolist():
            gone[i] = (texts[i] or "").strip() in missing
        return Strings(texts, gone, np.concatenate([[0], np.cumsum(sizes)]))

    def part(self, start: int, stop: int) -> list[str | None]:
        """A range of the texts; no copy if all are requested."""
        whole = isinstance(self.texts, list) and start == 0 and stop >= len(self.texts)
        return self.texts if whole else list(self.texts[start:stop])  # type: ignore[return-value]

    def some(self, rows: NDArray[np.intp]) -> list[str | None]:
        """Some of the texts."""
        return [self.texts[i] for i in rows.tolist()]


def arrow_documents(column: Any, missing: tuple[str, ...]) -> Documents:
    """Buffer and offsets of an Arrow text column; nulls and missing-value tokens are missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.cast(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column, pa.large_string())
    lengths = numpy_array(pc.binary_length(column))
    gone = np.isnan(lengths) if lengths.dtype.kind == "f" else np.zeros(len(column), bool)
    longest = max((len(token) for token in missing), default=0)
    for i in np.flatnonzero(np.nan_to_num(lengths) <= longest).tolist():
        gone[i] = gone[i] or (column[i].as_py().strip() in missing and column[i].as_py() != "")
    _, ends, data = column.buffers()
    offsets = (
        np.frombuffer(ends, np.int64)[column.offset : column.offset + len(column) + 1]
        if ends
        else np.zeros(1, np.int64)
    )
    return Documents(np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8), offsets, gone)
