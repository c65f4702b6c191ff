"""Columns of whole texts, as the tokeniser reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Documents:
    """A column of texts: all of them end to end as UTF-8, where each ends, and which are missing."""

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    missing: NDArray[np.bool_]

    @property
    def text(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The texts as the tokeniser takes them."""
        return self.buffer, self.offsets


def arrow_documents(column: Any, missing: tuple[str, ...]) -> Documents:
    """The bytes and ends of an Arrow column of text; null is missing, and so is what stands for it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.cast(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column, pa.large_string())
    lengths = pc.binary_length(column).to_numpy(zero_copy_only=False)
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
