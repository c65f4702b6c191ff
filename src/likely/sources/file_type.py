"""File type detection by content, for standard input and compressed files without an inner name."""

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
    """Extension for the detected type: model, table, workbook, database or compressed file; otherwise .csv."""
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
    """Extension for a .zip file, which may be a workbook."""
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
    """Whether the first line is a complete JSON object with scalar values: a row of JSON lines, not an object of columns."""
    import json

    try:
        row = json.loads(text.split(b"\n", 1)[0])
    except ValueError:
        return b"\n" not in text  # the first line is longer than the bytes read
    return not any(isinstance(cell, list) for cell in row.values())
