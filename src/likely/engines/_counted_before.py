"""Skip cells that merging would discard, using the statistics of batches counted earlier."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from likely.families.statistics import Statistic
from likely.kernels.keys import OPEN, merged

Ints = NDArray[np.int64]


@dataclass
class CountedBefore:
    """Limits from the batches of one sum counted so far; the sum is the same with and without them.

    Attributes
    ----------
    limit : int
        The key from which on no row is kept: it decreases while rows are counted, so that most rows need not be read.
    statistics : mapping from str to Statistic
        Those of one batch: the histogram of the sum is nowhere finer than that of a batch.
    """

    limit: int = OPEN
    statistics: Mapping[str, Statistic] = field(default_factory=dict)
    _keys: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add_keys(self, keys: Ints, most: int) -> None:
        """Lower the limit with the sorted keys of a batch's sample; the sample of the sum keeps at most `most` rows."""
        with self._lock:
            both = merged(self._keys, keys[: np.searchsorted(keys, self.limit)])
            if len(both) > most:
                self.limit = int(both[most])
            self._keys = both[:most]
