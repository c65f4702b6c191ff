"""Row weights from a column or an array."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError
from likely.sources import Frame, InMemory, Matrix, Source
from likely.sources.arrow_arrays import arrow_array

Array = NDArray[np.float64]
LARGEST_WEIGHT = 1e300  # larger ones cannot be summed
WEIGHT_COLUMN = "\0weight"  # no file can hold such a name: for weights that come as an array


def with_weights(source: Source, weights: Any) -> tuple[Source, str | None]:
    """The source with its weights as a column; an array of weights becomes a column."""
    if weights is None or isinstance(weights, str):
        return source, weights
    if not isinstance(source, InMemory):
        raise UsageError("weights for a file must be the name of one of its columns")
    w = np.asarray(weights, dtype=np.float64).reshape(-1)
    batch = source.batch
    if len(w) != batch.rows:
        raise DataError(f"there are {len(w)} weights for {batch.rows} rows")
    check_weights(w, "weights")
    if isinstance(batch, Matrix):  # whose type must not become that of the weights: 2**53 + 1 is no float
        return replace(source, batch=replace(batch, beside={WEIGHT_COLUMN: w})), WEIGHT_COLUMN
    assert isinstance(batch, Frame)
    return replace(source, batch=replace(batch, columns=batch.columns | {WEIGHT_COLUMN: arrow_array(w)})), WEIGHT_COLUMN


def check_weights(w: Array, name: str, start: int = 0) -> None:
    """Refuse weights that are negative or not finite."""
    bad = ~((w >= 0) & (w <= LARGEST_WEIGHT))
    if bad.any():
        i = int(np.argmax(bad))
        raise DataError(
            "which is too large for a weight" if np.isfinite(w[i]) and w[i] > 0 else "which is no weight",
            column=name,
            value=w[i].item(),
            row=start + i + 1,
            remedy="use numbers of zero or more" + (f", up to {LARGEST_WEIGHT:g}" if w[i] > 0 else ""),
        )
