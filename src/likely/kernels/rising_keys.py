"""Sorted keys without repetitions. Not `np.unique` and `np.union1d`: they hash, which takes longer where keys nearly rise."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key", bound=np.integer)


def distinct(rising: NDArray[Key]) -> NDArray[Key]:
    """Sorted keys, each once."""
    return rising[np.append(True, rising[1:] != rising[:-1])] if len(rising) else rising


def merged(some: NDArray[Key], others: NDArray[Key]) -> NDArray[Key]:
    """The keys of two sorted arrays, each once: a stable sort merges two runs that rise."""
    return distinct(np.sort(np.concatenate([some, others]), kind="stable"))
