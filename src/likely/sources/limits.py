"""How much memory reading may take: the size of a batch, and a limit on the whole process."""

from __future__ import annotations

import os
import sys

from likely.errors import ResourceError, UsageError

BATCH_BYTES = 8 << 20  # of text, or of Arrow arrays: what one batch of rows may take
SMALLEST_BATCH = 1 << 18
BYTES_A_COLUMN = 512  # at least, of a batch: some work is done once for each batch and column, however few rows it has
BASE = 200 << 20  # the interpreter with its libraries, and a model of ordinary size
AT_ONCE = 40  # batches' worth of memory: several are read and counted at a time, each with its codes and numbers


def check_limit(limit: int | None) -> None:
    """Whether a limit is one: a number of bytes above zero."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0):
        raise UsageError(f"memory_limit={limit!r} is no limit: pass a number of bytes, such as 600_000_000")


def batch_bytes(limit: int | None, columns: int = 0) -> int:
    """How large a batch of so many columns may be so that reading and counting stay within a limit.

    Batches of a wide table are larger: with a size that does not depend on the number of columns, twice the columns would
    make twice the batches of twice the work each.
    """
    usual = max(BATCH_BYTES, columns * BYTES_A_COLUMN)
    return usual if limit is None else min(usual, max(SMALLEST_BATCH, (limit - BASE) // AT_ONCE))


def check_memory(limit: int | None) -> None:
    """Refuse to go on where the process takes more memory than it may."""
    if limit is None:
        return
    taken = resident()
    if taken > limit:
        raise ResourceError(
            f"the memory limit of {_shown(limit)} cannot be kept: {_shown(taken)} are in use",
            remedy="raise memory_limit (--memory-limit), leave columns out with ignore (--ignore), or learn with "
            "plain=True (--plain)",
        )


def resident() -> int:
    """The memory that the process takes now, in bytes; where the system does not say, the most it has taken."""
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


def _shown(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 10**9 else f"{size / 1e6:.0f} MB"
