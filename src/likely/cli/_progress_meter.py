"""Progress of a command: a line on a terminal, or lines of JSON for the program that runs it."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from likely.kernels.progress import Step

PATIENCE = 0.5  # seconds before a bar is shown
APART = 0.2  # seconds between lines of JSON, at least


class _Meter:
    """Count of rows or steps done, the current activity and, if the number of steps is known, the estimated time left."""

    def __init__(self, doing: str, unit: str, total: int | None = None) -> None:
        self.doing, self.unit, self.rows, self.total = doing, unit, 0, total
        self.began, self.steps, self.detail = time.monotonic(), 0, ""

    def advance(self, rows: int) -> None:
        """Record rows or steps that were done."""
        self.rows += rows
        if self.total:
            self.steps = min(self.rows, self.total)
        self._show()

    def step(self, step: Step) -> None:
        """Record an announced step: one of a known number, or a detail."""
        if step.total:
            self.steps, self.total, self.detail = step.done, step.total, step.what
        else:
            self.detail = step.what
        self._show()

    @property
    def seconds_left(self) -> float | None:
        """Estimate from the steps done so far; None where there is none."""
        if not self.total or not self.steps:
            return None
        return (time.monotonic() - self.began) / self.steps * (self.total - self.steps)

    def _show(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """End the progress: the work is done."""


class ProgressBar(_Meter):
    """A line on a terminal, after a short delay."""

    def __init__(self, doing: str, unit: str, total: int | None = None) -> None:
        super().__init__(doing, unit, total)
        self.bar: Any = None
        self.timer = threading.Timer(PATIENCE, self._start)  # work that announces nothing is shown as well
        self.timer.daemon = True
        self.timer.start()

    def _state(self) -> dict[str, Any]:
        name = f"{self.doing}: {self.detail}" if self.detail else self.doing
        if not self.total:
            return {"description": name, "count": f"{self.rows:,} {self.unit}" if self.rows else "", "left": ""}
        left = self.seconds_left
        more = f"about {left:,.0f} s left" if left is not None and left >= 1 else ""
        state = {"completed": self.steps, "total": self.total}
        return state | {"description": name, "count": f"{self.steps:,} of {self.total:,}", "left": more}

    def _show(self) -> None:
        if self.bar is not None:
            self.bar.update(0, **self._state())

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=Console(file=sys.stderr),
            transient=True,
        )
        bar.add_task(self.doing, total=None, count="", left="")
        bar.start()
        self.bar = bar
        self._show()

    def stop(self) -> None:
        """Remove the line."""
        self.timer.cancel()
        if self.timer.is_alive():
            self.timer.join()  # it may just be starting the line
        if self.bar is not None:
            self.bar.stop()


class ProgressLines(_Meter):
    """Lines of JSON on standard error, a few a second: {"progress": {"doing": ..., "done": ..., "total": ...}}."""

    def __init__(self, doing: str, unit: str, total: int | None = None) -> None:
        super().__init__(doing, unit, total)
        self.written = float("-inf")
        self._show()

    def step(self, step: Step) -> None:
        """Record an announced step, and write it at once."""
        self.written = float("-inf")
        super().step(step)

    def _show(self) -> None:
        now = time.monotonic()
        if now - self.written < APART:
            return
        self.written = now
        done = self.steps if self.total else self.rows
        told = {"doing": self.doing, "detail": self.detail, "done": done, "total": self.total, "unit": self.unit,
                "seconds_left": self.seconds_left}  # fmt: skip
        sys.stderr.write(json.dumps({"progress": told}) + "\n")
        sys.stderr.flush()
