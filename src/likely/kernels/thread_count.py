"""The one setting for the number of threads: `n_jobs` of estimators, `LIKELY_THREADS`, `--threads`; else all usable cores."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

VARIABLE = "LIKELY_THREADS"
MOST_BY_DEFAULT = 16  # more threads than this are used only where they are asked for
CONTROL_GROUPS, OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_here = threading.local()  # the limit of this thread, set by `limited_to`


def threads() -> int:
    """Number of threads that may work at a time, for the calling thread.

    The first of these that is set: `limited_to` (estimators' `n_jobs`), the environment variable LIKELY_THREADS (the option
    `--threads` sets it for one command), all usable cores up to 16.
    """
    limit: int | None = getattr(_here, "limit", None)
    if limit is not None:
        return limit
    given = os.environ.get(VARIABLE, "").strip()
    if not given:
        return min(usable_cores(), MOST_BY_DEFAULT)
    if not given.isdecimal() or not int(given):
        raise ValueError(f"{VARIABLE}={given!r} is no number of threads: set it to 1, 2, 3, … or remove it")
    return int(given)


def usable_cores() -> int:
    """Number of cores that this process may use: CPU affinity, and the CPU quota of its container, rounded up."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota_at_start()
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


@cache
def _quota_at_start() -> float | None:
    return container_quota()  # read once: `threads` is called for every piece of work


def container_quota(root: Path = CONTROL_GROUPS, own: Path = OWN_GROUP) -> float | None:
    """CPU quota of the control group of this process and all groups around it, in cores; None where there is none."""
    quotas = []
    for folder in control_groups(root, own, "cpu"):
        quotas += [quota for quota in (_version_2(folder), _version_1(folder)) if quota is not None]
    return min(quotas, default=None)


def control_groups(root: Path, own: Path, controller: str) -> list[Path]:
    """The folders of the control groups that limit this process in one respect, from the outermost to its own."""
    places = {root, root / controller}
    with suppress(OSError, ValueError):
        for line in own.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or controller in controllers.split(","):
                folder = root / controller if controllers else root
                for part in Path(path.lstrip("/")).parts:
                    folder /= part
                    places.add(folder)
    return sorted(places)


def _version_2(folder: Path) -> float | None:
    """Quota in `cpu.max`: "quota period", or "max period" without a limit."""
    with suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    return None


def _version_1(folder: Path) -> float | None:
    """Quota in `cpu.cfs_quota_us`, which is -1 without a limit."""
    with suppress(OSError, ValueError, ZeroDivisionError):
        quota = int((folder / "cpu.cfs_quota_us").read_text(encoding="ascii"))
        period = int((folder / "cpu.cfs_period_us").read_text(encoding="ascii"))
        return None if quota < 0 else quota / period
    return None


def from_n_jobs(n_jobs: int | None) -> int | None:
    """Number of threads that scikit-learn's `n_jobs` means: None is the default, -1 all usable cores, -2 all but one."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} is no number of threads: pass 1, 2, 3, …, -1 for all cores, or None")
    return n_jobs if n_jobs > 0 else max(1, usable_cores() + 1 + n_jobs)


@contextmanager
def limited_to(limit: int | None) -> Iterator[None]:
    """A context in which the calling thread, and the threads that it starts here, count as `limit`; None changes nothing."""
    before = getattr(_here, "limit", None)
    _here.limit = before if limit is None else limit
    try:
        yield
    finally:
        _here.limit = before


def inherit(limit: int | None) -> None:
    """Take over the limit of the thread that started this one."""
    _here.limit = limit


def own_limit() -> int | None:
    """The limit of the calling thread, if one was set."""
    limit: int | None = getattr(_here, "limit", None)
    return limit
