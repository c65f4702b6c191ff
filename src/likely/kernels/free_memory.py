"""How much memory this process may still take: of the machine, of its container, and of its own limit."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from likely.kernels.thread_count import CONTROL_GROUPS, OWN_GROUP, control_groups

MACHINE = Path("/proc/meminfo")


def available_memory(root: Path = CONTROL_GROUPS, own: Path = OWN_GROUP, machine: Path = MACHINE) -> float:
    """The bytes that are free; infinite where the system does not tell."""
    found = [math.inf, *_of_process()]
    with suppress(OSError, ValueError, IndexError):
        line = next(line for line in machine.read_text(encoding="ascii").splitlines() if line.startswith("MemAvailable:"))
        found.append(float(line.split()[1]) * 1024)
    for folder in control_groups(root, own, "memory"):
        for most, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            with suppress(OSError, ValueError):  # "max": without a limit
                limit = int((folder / most).read_text(encoding="ascii"))
                found.append(max(limit - int((folder / used).read_text(encoding="ascii")) + _cached(folder), 0.0))
    return float(min(found))


def _of_process() -> Iterator[float]:
    """What is left of the limit of the address space (`ulimit -v`)."""
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            yield float(max(limit - pages * os.sysconf("SC_PAGE_SIZE"), 0))


def _cached(folder: Path) -> float:
    """Files that a control group holds in memory and would give up."""
    with suppress(OSError, ValueError, IndexError):
        for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines():
            if line.startswith("inactive_file "):
                return float(line.split()[1])
    return 0.0
