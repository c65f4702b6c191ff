"""Writers of tables, batch by batch; a file is complete or absent."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from likely.cli._parquet_writer import ParquetWriter, is_text
from likely.cli._terminal import is_terminal, plain, standard_output
from likely.errors import FULL, LikelyError, ResourceError, UsageError

if TYPE_CHECKING:
    from likely.sources.parquet_extension import ParquetLayout

FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
FORMULA = r"^[=+\-@\t\r]"
Columns = dict[str, Any]


class Writer(Protocol):
    """A table to which rows can be appended."""

    def write(self, columns: Columns) -> None:
        """Append rows, given as columns of equal length."""

    def close(self) -> None:
        """Finish the table."""


def format_of(path: str, excel_safe: bool = False) -> str:
    """Format by the extension of a path; CSV for standard output. `excel_safe` requires CSV or TSV."""
    from likely.sources.table_writing import DATABASES, is_database

    if path == "-":
        return "csv"
    kind = "database" if is_database(path) else FORMATS.get(Path(path).suffix.lower())
    if kind is None:
        known = ", ".join((*FORMATS, *DATABASES))
        raise UsageError(f"-o {path!r} has an unknown extension: use one of {known}")
    if excel_safe and kind not in ("csv", "tsv"):
        raise UsageError(f"--excel-safe is for .csv and .tsv: {path!r} cannot contain formulas, omit the option")
    return kind


def beside(columns: Columns, answers: Columns) -> Columns:
    """Columns followed by predictions; duplicate names are refused."""
    twice = sorted(answers.keys() & columns.keys())
    if twice:
        raise UsageError(f"the data already have a column {twice[0]!r}: rename the new ones with --prefix TEXT")
    return columns | answers


@contextlib.contextmanager
def table_writer(path: str, table: str, *, replace: bool = False) -> Iterator[Writer]:
    """Writer of a table of a database: rows are collected in a temporary file, and the table is complete or absent."""
    from likely.sources.table_writing import write_table

    with tempfile.TemporaryDirectory(prefix="likely-") as folder:
        collected = str(Path(folder, "rows.parquet"))
        made = ParquetWriter(collected)
        try:
            yield made
            made.close()
        except OSError as error:
            if error.errno not in FULL or isinstance(error, LikelyError):
                raise
            message = f"there is no disk space in {tempfile.gettempdir()!r} to collect the rows: {os.strerror(error.errno)}"
            raise ResourceError(message, remedy="free some, or name another folder by TMPDIR") from None
        write_table(collected, path, table, replace=replace)


@contextlib.contextmanager
def writer(path: str, *, excel_safe: bool = False, extending: ParquetLayout | None = None) -> Iterator[Writer]:
    """Writer of a table to a path, which is complete or absent, or to standard output.

    Values are written unchanged; `excel_safe` escapes formulas in CSV and TSV. To a Parquet file that is
    `extending` another one, only the columns that are added are written.
    """
    from likely.sources.atomic_write import whole_file

    kind = format_of(path, excel_safe)
    if path == "-":
        stream = standard_output()
        yield DelimitedWriter(stream, ",", to_terminal=is_terminal(stream), excel_safe=excel_safe)
        return
    with whole_file(path) as temporary:
        if kind == "parquet":
            if extending is not None:
                from likely.cli._parquet_extender import ParquetExtender

                with ParquetExtender(temporary, extending) as extender:
                    yield extender
                return
            made = ParquetWriter(temporary)
            yield made
            made.close()
            return
        with open(temporary, "w", encoding="utf-8", newline="") as file:
            delimiter = "\t" if kind == "tsv" else ","
            yield JsonLinesWriter(file) if kind == "jsonl" else DelimitedWriter(file, delimiter, excel_safe=excel_safe)


def write_page(path: str, page: str) -> None:
    """Write a page or a picture; the file is complete or absent."""
    from likely.sources.atomic_write import whole_file

    with whole_file(path) as temporary:
        Path(temporary).write_text(page, encoding="utf-8")


def write_picture(found: Any, output: str | None, *how: Any) -> None:
    """Write a picture, drawn with the arguments `how`, to a path or standard output; nothing if `output` is None."""
    from likely.sources.atomic_write import whole_file

    if output == "-":
        standard_output().write(found.svg(*how))
    elif output:
        with whole_file(output) as temporary:
            Path(temporary).write_bytes(found.drawn(Path(output).suffix.lower(), *how))


class DelimitedWriter:
    """CSV or TSV writer whose values are read back unchanged.

    With `excel_safe`, an apostrophe is put before text that a spreadsheet would run as a formula.
    """

    def __init__(self, stream: Any, delimiter: str, *, to_terminal: bool = False, excel_safe: bool = False) -> None:
        self.rows = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        # Before Python 3.13 a carriage return is quoted only if lines end in one; unquoted it would end the row.
        self.quoting_returns = csv.writer(_LineFeedStream(stream), delimiter=delimiter, lineterminator="\r\n")
        self.to_terminal, self.excel_safe, self.started = to_terminal, excel_safe, False

    def write(self, columns: Columns) -> None:
        """Append rows."""
        if not self.started:
            self.quoting_returns.writerow(self._cells([*columns]))
            self.started = True
        out = self.quoting_returns if any(_may_match(c, r"\r") for c in columns.values()) else self.rows
        out.writerows(zip(*map(self._cells, columns.values()), strict=True))

    def _cells(self, column: Any) -> list[Any]:
        cells = values(column)
        if self.excel_safe and _may_match(column, FORMULA):
            starts = re.compile(FORMULA).match
            cells = [guarded(cell) if isinstance(cell, str) and starts(cell) else cell for cell in cells]
        if self.to_terminal:
            from likely.model.ledger import clean

            cells = [clean(cell) if isinstance(cell, str) else cell for cell in cells]
        return cells

    def close(self) -> None:
        """Nothing to do."""


class _LineFeedStream:
    """A stream that replaces CRLF at the end of rows by a line feed."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, line: str) -> None:
        """Write one row."""
        self.stream.write(line.removesuffix("\r\n") + "\n")


def _may_match(column: Any, pattern: str) -> bool:
    """Whether a pattern may match a cell: one search of a column is much faster than testing every cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, list):
        return True
    text = column.dictionary if pa.types.is_dictionary(column.type) else column
    if not is_text(text.type):
        return False
    return bool(pc.any(pc.match_substring_regex(text, pattern)).as_py())


def guarded(cell: str) -> str:
    """The cell with an apostrophe before it, unless it is a number."""
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell if cell[0] not in "\t\r" else f"'{cell}"


class JsonLinesWriter:
    """JSON lines writer."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, columns: Columns) -> None:
        """Append rows."""
        cells = zip(*(values(column) for column in columns.values()), strict=True)
        for row in cells:
            record = dict(zip(columns, map(plain, row), strict=True))
            self.stream.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")

    def close(self) -> None:
        """Nothing to do."""


def values(column: Any) -> list[Any]:
    """Cells of a column as Python values."""
    if isinstance(column, list):
        return column
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    numeric = column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind))
    if numeric or is_text(kind):  # the faster way, for most columns
        found: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return found
    return list(column.to_pylist())
