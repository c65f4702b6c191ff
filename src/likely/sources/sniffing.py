"""What a file is by its first bytes, where no name says it: standard input, and compressed files without an inner name."""

from __future__ import annotations

SNIFFED = 1 << 20
MAGIC = (
    (b"LIKELY\r\n", ".likely"),
    (b"PAR1", ".parquet"),
    (b"ARROW1", ".arrow"),
    (b"\xff\xff\xff\xff", ".arrow"),
    (b"SQLite format 3\0", ".sqlite"),
    (b"\x1f\x8b", ".gz"),
    (b"BZh", ".bz2"),
    (b"\xfd7zXZ\0", ".xz"),
    (b"\x28\xb5\x2f\xfd", ".zst"),
)
DUCKDB = b"DUCK"  # after the checksum of the first block


def ending_of(path: str) -> str:
    """The ending that the file would have: of a model, a table, a workbook, a database or a packer; else .csv."""
    with open(path, "rb") as file:
        start = file.read(SNIFFED)
    for magic, ending in MAGIC:
        if start.startswith(magic):
            return ending
    if start[8:12] == DUCKDB:
        return ".duckdb"
    if start.startswith(b"PK\x03\x04"):
        return _zip_kind(path)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        return ".json"
    if text.startswith(b"{"):
        return ".jsonl" if _is_row(text) else ".json"
    return ".csv"


def _zip_kind(path: str) -> str:
    """Workbooks are .zip files, too."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return ".zip"
    if "xl/workbook.xml" in names:
        return ".xlsx"
    return ".ods" if {"mimetype", "content.xml"} <= names else ".zip"


def _is_row(text: bytes) -> bool:
    """Whether the first line is a whole object of cells, and not one of columns or the start of one."""
    import json

    try:
        row = json.loads(text.split(b"\n", 1)[0])
    except ValueError:
        return b"\n" not in text  # a first line longer than what was looked at
    return not any(isinstance(cell, list) for cell in row.values())
