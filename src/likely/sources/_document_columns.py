"""Columns of texts as documents for the tokenizer, from Python values and from Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likely.schema import is_missing
from likely.sources.arrow_arrays import numpy_array
from likely.tokenizer.documents import Documents, Strings


def string_documents(values: Sequence[Any], missing: tuple[str, ...]) -> Strings:
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
