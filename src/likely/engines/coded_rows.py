"""A batch as it is counted: with the class and the weight of each row, and its categorical columns as codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from likely.sources.batch import Batch, Coded


@dataclass(frozen=True)
class CodedRows:
    """A batch, the position of each row's class (-1: none), the row weights, and the codes found so far.

    If all rows have weight one and there are many, `units` are their classes as unsigned numbers, after the last class for
    none. `sums` are those of the hashes of each row's class and cells, as far as the columns are in `hashed`.
    """

    batch: Batch
    y: NDArray[np.int64]
    w: NDArray[np.float64]
    classes: int
    codes: Mapping[str, Coded] = field(default_factory=dict)
    units: NDArray[np.uint32] | None = None
    sums: NDArray[np.uint64] | None = None
    hashed: set[str] = field(default_factory=set)
