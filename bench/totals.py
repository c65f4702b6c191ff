"""Time of default fits over the real tables of docs/quality.md, in sum, beside LightGBM at its default settings."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
REPEATS, TARGET = 3, "the class"


def compare(small: bool, row: Callable[..., None], _plain: Callable[..., None]) -> None:
    """A line for each table, all rows of it, and last the sums: seconds of the clock and of the processors."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import pyarrow as pa

    import likely
    import quality_boosters as boosters
    from quality_tables import real

    if "lightgbm" not in boosters.installed():
        print("totals       LightGBM is not installed: left out", flush=True)
        return
    warnings.simplefilter("ignore")
    sums = [[0.0, 0.0], [0.0, 0.0]]
    for data in real(SHARED, ["wdbc", "digits"] if small else []):
        table = data.columns.append_column(TARGET, pa.array([data.classes[i] for i in data.labels]))
        fits: tuple[Callable[[], Any], ...] = (
            lambda table=table: likely.learn(table, TARGET),
            lambda data=data: boosters.Boosted("lightgbm", data.matrix).fit(data.matrix.X, data.labels),
        )
        found = _best(fits)
        row("totals", f"{data.name}, {len(data.labels):,} x {len(data.columns.column_names)}", found[0][0], found[1][0], "")
        sums = [[total + one for total, one in zip(*pair, strict=True)] for pair in zip(sums, found, strict=True)]
    row("totals", "all tables, in sum", sums[0][0], sums[1][0], ">= 1x")
    row("totals", "all tables, in sum, processor seconds", sums[0][1], sums[1][1], "")


def _best(fits: tuple[Callable[[], Any], ...]) -> list[list[float]]:
    """For each fit the shortest time by the clock and by the processors, in turns, after one fit that warms up."""
    found: list[list[tuple[float, float]]] = [[] for _ in fits]
    for turn in range(REPEATS + 1):
        for times, fit in zip(found, fits, strict=True):
            wall, cpu = time.perf_counter(), time.process_time()
            fit()
            if turn:
                times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return [[min(each) for each in zip(*times, strict=True)] for times in found]
