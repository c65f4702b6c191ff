"""What batches that were counted before tell the next ones: what their sum will drop need not be counted."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from likely.families.statistics import Statistic
from likely.kernels.rising_keys import merged
from likely.tally.row_sample import OPEN

Ints = NDArray[np.int64]


@dataclass
class CountedBefore:
    """Shared by the batches of one sum, which is the same with and without it.

    Attributes
    ----------
    limit : int
        The key from which on no row is kept: it decreases while rows are counted, so that most rows need not be read.
    statistics : mapping from str to Statistic
        Of the columns of some batch: the sum of a column is nowhere finer.
    """

    limit: int = OPEN
    statistics: Mapping[str, Statistic] = field(default_factory=dict)
    _keys: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add_keys(self, keys: Ints, most: int) -> None:
        """Lower the limit by the rising keys of the sample of a batch, of which `most` stay."""
        with self._lock:
            both = merged(self._keys, keys[: np.searchsorted(keys, self.limit)])
            if len(both) > most:
                self.limit = int(both[most])
            self._keys = both[:most]
