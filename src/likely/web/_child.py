"""A command of Likely in a process with limits of memory, time and file size: how uploads are read.

Run as `python -m likely.web.child MEMORY SECONDS COMMAND...`. A file that crashes a parser, unpacks without end or never
finishes ends this process, and not the server.
"""

from __future__ import annotations

import sys

LARGEST_FILE = 96 << 20
MOST_ROWS = LARGEST_FILE // 32  # of a table whose length is known before it is read: the answer would be a larger file
TOO_LARGE = 6  # exit code


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
    for path in sys.argv[1:] if sys.argv[1] == "predict" else ():
        if path.endswith((".parquet", ".pq")):
            _refuse_long(path)
    runpy.run_module("likely", run_name="__main__")


def _refuse_long(path: str) -> None:
    """End this process if the metadata of a Parquet file give too many rows: repeated rows take no space in a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_metadata(path).num_rows
    except (OSError, pa.ArrowException):  # damaged: the command reports what is wrong
        return
    if rows > MOST_ROWS:
        sys.stderr.write(f"error: the file has {rows:,} rows: send at most {MOST_ROWS:,}\n")
        sys.exit(TOO_LARGE)


if __name__ == "__main__":
    main()
