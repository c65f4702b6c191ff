"""Columns of texts in the form that the tokenizer reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

    def part(self, start: int, stop: int) -> list[str | None]:
        """A range of the texts; no copy if all are requested."""
        whole = isinstance(self.texts, list) and start == 0 and stop >= len(self.texts)
        return self.texts if whole else list(self.texts[start:stop])  # type: ignore[return-value]

    def some(self, rows: NDArray[np.intp]) -> list[str | None]:
        """Some of the texts."""
        return [self.texts[i] for i in rows.tolist()]
