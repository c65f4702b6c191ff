"""Counters of the service in the text format of Prometheus."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from likely.web._served_model import ServedModel

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class RequestMetrics:
    """Counts of requests, rows and errors since the start."""

    def __init__(self) -> None:
        self.started = time.time()
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds: Counter[str] = Counter()
        self.buckets: dict[str, list[int]] = {}
        self.rows: Counter[str] = Counter()
        self.reloads: Counter[str] = Counter()

    def finished(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        self.requests[method, route, status] += 1
        self.seconds[route] += seconds  # type: ignore[assignment]
        if route not in self.buckets:
            self.buckets[route] = [0] * (len(BOUNDS) + 1)
        self.buckets[route][bisect_left(BOUNDS, seconds)] += 1

    def text(self, models: Iterable[ServedModel], connections: int, running: int) -> str:
        """All counters."""
        lines = ["# HELP likely_requests_total Answered requests.", "# TYPE likely_requests_total counter"]
        for (method, route, status), n in sorted(self.requests.items()):
            lines.append(f'likely_requests_total{{method="{method}",route="{_escaped(route)}",status="{status}"}} {n}')
        lines += ["# HELP likely_request_seconds Time to answer.", "# TYPE likely_request_seconds histogram"]
        for route, buckets in sorted(self.buckets.items()):
            total = 0
            for bound, n in zip((*map(str, BOUNDS), "+Inf"), buckets, strict=True):
                total += n
                lines.append(f'likely_request_seconds_bucket{{route="{_escaped(route)}",le="{bound}"}} {total}')
            lines.append(f'likely_request_seconds_sum{{route="{_escaped(route)}"}} {self.seconds[route]:.6f}')
            lines.append(f'likely_request_seconds_count{{route="{_escaped(route)}"}} {total}')
        lines += ["# HELP likely_rows_total Rows predicted, explained, learned, forgotten.", "# TYPE likely_rows_total counter"]
        lines += [f'likely_rows_total{{verb="{verb}"}} {n}' for verb, n in sorted(self.rows.items())]
        lines += ["# HELP likely_reloads_total Model files loaded again.", "# TYPE likely_reloads_total counter"]
        lines += [f'likely_reloads_total{{result="{result}"}} {n}' for result, n in sorted(self.reloads.items())]
        lines += ["# HELP likely_model_info The models that are served.", "# TYPE likely_model_info gauge"]
        for served in models:
            name, version = _escaped(served.name), _escaped(served.state.version)
            lines.append(f'likely_model_info{{model="{name}",version="{version}"}} 1')
            lines.append(f'likely_model_rows_counted{{model="{name}"}} {int(served.state.model.tally.rows)}')
        lines += ["# HELP likely_jobs Requests that threads work on, or that wait for one.", "# TYPE likely_jobs gauge"]
        lines += [f"likely_jobs {running}", f"likely_connections {connections}"]
        lines += [f"likely_uptime_seconds {time.time() - self.started:.1f}"]
        lines += [f"process_resident_memory_bytes {resident_bytes()}"]
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resident_bytes() -> int:
    """Resident memory of this process; 0 where the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
