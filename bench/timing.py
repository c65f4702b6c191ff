"""How long work takes, as every bench here measures it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any


def median(work: Callable[[], Any], repeats: int = 5) -> float:
    """The median time of several runs, after one that warms up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
