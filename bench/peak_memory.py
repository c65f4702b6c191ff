"""Peak memory of this process, and where it is measured from."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from pathlib import Path


def reset_peak() -> float:
    """Memory of this process now, in MB; the peak is measured from here.

    Memory that the allocator keeps is returned first: it would be used again, and not be counted.
    """
    gc.collect()
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    """Peak memory of this process, in MB."""
    status = Path("/proc/self/status").read_text()
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024
