"""A batch encoded for counting: class and weight of each row, and categorical columns as codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from likely.families import Encoded
from likely.families.statistics import Statistic
from likely.sources.batch import Batch, Coded, Frame

FEW_CLASSES = 8  # which are found one by one sooner than all are counted


@dataclass(frozen=True)
class CodedRows:
    """A batch, the position of each row's class (-1: none), the row weights, and the codes found so far.

    If all rows have weight one and there are many, `units` are their classes as unsigned numbers, after the last class for
    none. `sums` are those of the hashes of each row's class and cells, as far as the columns are in `hashed`. `before` are
    statistics of columns in another batch of the same sum.
    """

    batch: Batch
    y: NDArray[np.int64]
    w: NDArray[np.float64]
    classes: int
    codes: Mapping[str, Coded] = field(default_factory=dict)
    units: NDArray[np.uint32] | None = None
    sums: NDArray[np.uint64] | None = None
    hashed: set[str] = field(default_factory=set)
    before: Mapping[str, Statistic] = field(default_factory=dict)

    def of_weight_one(self, sums: NDArray[np.uint64] | None) -> CodedRows:
        """The same rows, which all have weight one, with the hashes of their classes if hashes are summed."""
        units = np.where(self.y < 0, self.classes, self.y).astype(np.uint32)
        return replace(self, units=units, sums=sums)

    def columns(self, names: Sequence[str], start: int, stop: int) -> Encoded | None:
        """Columns of numbers of a range of rows without a copy; None if the rows have weights, or are few."""
        if self.units is None or not isinstance(self.batch, Frame):
            return None
        none, empty = np.zeros(0, np.int64), np.zeros((0, 0))
        columns = tuple(self.batch.column(name)[start:stop] for name in names)
        before = tuple(self.before.get(name) for name in names)
        return Encoded(empty, none, none, empty, columns=columns, units=self.units[start:stop], before=before)

    def by_class(self) -> tuple[NDArray[np.float64], int, NDArray[np.float64]]:
        """Weight of each class, number of rows with a class and a weight, and row weights with zero for all others."""
        if self.units is not None:
            if self.classes < FEW_CLASSES:
                seen = np.array([np.count_nonzero(self.units == c) for c in range(self.classes + 1)])
            else:
                seen = np.bincount(self.units, minlength=self.classes + 1)
            own = self.w if not seen[self.classes] else np.where(self.y >= 0, 1.0, 0.0)
            return seen[: self.classes].astype(np.float64), int(seen[: self.classes].sum()), own
        used = (self.y >= 0) & (self.w > 0)
        some = slice(None) if used.all() else used
        by_class = np.bincount(self.y[some], self.w[some], self.classes).astype(np.float64)
        return by_class, int(used.sum()), np.where(used, self.w, 0.0)
