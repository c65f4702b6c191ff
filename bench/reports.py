"""`likely report` on Adult as a user runs it: seconds on the wall, seconds of CPU, and the size of the page."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from serving import TARGET, adult

ROWS = 48_842
Print = Callable[..., None]


def report_section(small: bool, plain: Print) -> None:
    """Learn once, then write the report twice: the second run finds the compiled loops on disk."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import likely

    table, _, _ = adult(2_000 if small else ROWS)
    with tempfile.TemporaryDirectory() as folder:
        data, model, page = (str(Path(folder, name)) for name in ("test.parquet", "m.likely", "report.html"))
        pq.write_table(pa.table(table), data)
        likely.learn(data, target=TARGET).save(model)
        command = [sys.executable, "-m", "likely", "report", model, "--data", data, "-o", page]
        for _ in range(2):
            wall, before = time.perf_counter(), os.times()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            wall, after = time.perf_counter() - wall, os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        rows = f"{len(table[TARGET]):,} rows"
        plain("report", f"likely report with evaluation, {rows}: wall", wall, "s", "< 5 s")
        plain("report", f"likely report with evaluation, {rows}: CPU", spent, "s", "< 5 s")
        plain("report", "size of the page", Path(page).stat().st_size / 1000, "kB", "< 500 kB")
