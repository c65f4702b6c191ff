"""Memory limits: batch size, and the memory of the process."""

from __future__ import annotations

import os
import sys

from likely.errors import ResourceError, UsageError

BATCH_BYTES = 8 << 20  # maximum size of a batch, in bytes of text or of Arrow arrays
SMALLEST_BATCH = 1 << 18
SMALLEST_DATABASE = 1 << 26
BYTES_A_COLUMN = 512  # minimum of a batch: some work is done once for each batch and column
BASE = 200 << 20  # the interpreter with its libraries and a model of typical size
AT_ONCE = 40  # batches' worth of memory: several are processed at a time, each with codes and numbers


def check_limit(limit: int) -> None:
    """Raise UsageError unless the limit is a positive number of bytes."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0:
        raise UsageError(f"memory_limit={limit!r} is not valid: pass a number of bytes, such as 600_000_000")


def batch_bytes(limit: int | None, columns: int = 0) -> int:
    """Maximum size of a batch with so many columns, so that reading and counting stay within a limit.

    Batches of wide tables are larger: with a constant size, twice the columns would mean twice the batches with twice
    the work each.
    """
    usual = max(BATCH_BYTES, columns * BYTES_A_COLUMN)
    return usual if limit is None else min(usual, max(SMALLEST_BATCH, (limit - BASE) // AT_ONCE))


def database_bytes(limit: int) -> int:
    """Memory that a database inside this process may use, so that reading and counting its rows stay within a limit too."""
    return max(SMALLEST_DATABASE, (limit - BASE) // 2)


def check_memory(limit: int | None) -> None:
    """Raise ResourceError if the process uses more memory than the limit."""
    if limit is None:
        return
    used = resident()
    if used > limit:
        raise ResourceError(
            f"the memory limit of {_size_text(limit)} is exceeded: {_size_text(used)} are in use",
            remedy="raise memory_limit (--memory-limit), leave columns out with ignore (--ignore), or learn with "
            "plain=True (--plain)",
        )


def resident() -> int:
    """Resident memory of the process in bytes; the peak where the system reports only that."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource
    except ImportError:
        raise UsageError("memory_limit (--memory-limit) cannot be checked on this system: leave it out") from None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _size_text(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 10**9 else f"{size / 1e6:.0f} MB"
