"""A command of Likely in a process with limits of memory, time and file size: how uploads are read.

Run as `python -m likely.web.child MEMORY SECONDS COMMAND...`. A file that crashes a parser, unpacks without end or never
finishes ends this process, and not the server.
"""

from __future__ import annotations

import sys

LARGEST_FILE = 96 << 20


def main() -> None:
    """Set the limits, then run the command."""
    import resource
    import runpy

    memory, seconds = int(sys.argv[1]), int(sys.argv[2])
    for limit, value in (
        (resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_FSIZE, LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
    ):  # fmt: skip
        hard = resource.getrlimit(limit)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (allowed, allowed))
    sys.argv[1:] = sys.argv[3:]
    runpy.run_module("likely", run_name="__main__")


if __name__ == "__main__":
    main()
