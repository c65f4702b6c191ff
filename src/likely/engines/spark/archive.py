"""The archive of this package for executors that do not have it: a .zip for --py-files."""

from __future__ import annotations

import zipfile
from pathlib import Path

from likely.sources.atomic_write import whole_file

PACKAGE = Path(__file__).resolve().parents[2]
SKIPPED = {"__pycache__"}
MODULES = "numpy, numba, pyarrow, narwhals, threadpoolctl"


def write_archive(path: str) -> int:
    """Write the package to a .zip file, and return the number of its files."""
    folder = PACKAGE
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not SKIPPED.intersection(p.parts))
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            stamp = zipfile.ZipInfo(str(Path("likely") / file.relative_to(folder)), (1980, 1, 1, 0, 0, 0))
            archive.writestr(stamp, file.read_bytes(), zipfile.ZIP_DEFLATED)  # the same bytes whenever it is made
    return len(files)
