"""CSV and TSV, parsed by DuckDB under our own header, so that no row is lost without a word.

DuckDB's sniffer may take half of a ragged file for a preamble and skip it silently. Here the header is read first, each
column is declared as text under a plain name of our own, and every row must have as many cells as the header.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from likely.errors import DataError
from likely.schema import CATEGORY, NUMBER
from likely.sources.batch import Batch, Frame

if TYPE_CHECKING:
    from likely.sources import Reading

DELIMITERS = (",", ";", "\t", "|")
BATCH_ROWS = 65_536
BLOCK = 1 << 22
BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
LONGEST_HEADER = 1 << 26


@dataclass(frozen=True)
class CsvFile:
    """A file of delimited text with a header line."""

    label: str
    reading: Reading
    partial: bool = False

    @cached_property
    def checked(self) -> _Checked:
        """The file as UTF-8 without NUL bytes, with its header and delimiter."""
        return _check(self.label, self.reading.encoding)

    @cached_property
    def natural(self) -> dict[str, str]:
        """What each column holds: numbers, if every cell that is not missing reads as one."""
        names = self.checked.names
        tests = ", ".join(
            f"count({self._clean(i)}), count(try_cast({self._clean(i)} as double))" for i in range(len(names))
        )
        (found,) = self._select(tests).fetchall()
        pairs = zip(names, found[::2], found[1::2], strict=True)
        return {name: NUMBER if cells == numbers and cells else CATEGORY for name, cells, numbers in pairs}

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order; a wrong number of cells is an error with its line, or a counted reject."""
        import duckdb
        import pyarrow as pa

        places = {name: i for i, name in enumerate(self.checked.names) if kinds is None or name in kinds}
        picks = []
        for name, i in places.items():
            number = self.natural[name] == NUMBER and (kinds or {}).get(name, NUMBER) == NUMBER
            picks.append(f"{self._clean(i)}::double" if number else f"c{i}")
        start = 0
        try:
            for batch in self._select(", ".join(picks) or "1").to_arrow_reader(BATCH_ROWS):
                yield Frame(dict(zip(places, batch.columns, strict=False)), batch.num_rows, start, self.reading.missing)
                start += batch.num_rows
        except (pa.ArrowException, duckdb.Error, OSError) as error:
            raise self._fault(error) from None
        self._list_rejects()

    def _clean(self, i: int) -> str:
        """A cell without blanks around it, null where it stands for missing."""
        tokens = ", ".join(_quoted(token) for token in sorted({*self.reading.missing, ""}))
        return f"(case when trim(c{i}) in ({tokens}) then null else trim(c{i}) end)"

    def _select(self, picks: str) -> Any:
        import duckdb

        try:
            return self._connection.sql(f"select {picks} from {self._table}")
        except duckdb.Error as error:
            raise self._fault(error) from None

    @cached_property
    def _connection(self) -> Any:
        import duckdb

        settings = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        return duckdb.connect(":memory:", config=settings)

    @cached_property
    def _table(self) -> str:
        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(self.checked.names)))
        skip = ", store_rejects=true, rejects_limit=0" if self.reading.on_bad_rows == "skip" else ""
        return (
            f"read_csv({_quoted(self.checked.path)}, auto_detect=false, header=true, delim={_quoted(self.checked.delimiter)}, "
            f"quote='\"', escape='\"', nullstr='', columns={{{columns}}}, strict_mode=true, max_line_size={LONGEST_HEADER}{skip})"
        )

    def _list_rejects(self) -> None:
        """What was skipped, each line once however often the file is read."""
        if self.reading.on_bad_rows == "skip":
            found = self._connection.execute(
                "select distinct line, error_message from reject_errors order by line"
            ).fetchall()
            for line, message in found:
                said = f"{self.label} line {line}: {message}"
                if said not in self.reading.rejects:
                    self.reading.rejects.append(said)

    def _fault(self, error: Exception) -> DataError:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        where = next((line.split("Line:")[1].strip() for line in lines if "Line:" in line), "?")
        what = next(
            (line for line in lines if line.startswith(("Expected", "Value with unterminated", "Invalid", "Error"))),
            lines[0],
        )
        return DataError(
            f"{self.label!r} line {where}: {what[:200]}: mend the line, or pass on_bad_rows='skip' (--on-bad-rows skip)"
        )


@dataclass(frozen=True)
class _Checked:
    path: str
    names: tuple[str, ...]
    delimiter: str
    keep: Any = None  # a temporary file lives as long as this does


def _check(path: str, encoding: str | None) -> _Checked:
    with open(path, "rb") as file:
        head = file.read(4)
    found = next((name for bom, name in BOMS if head.startswith(bom)), None)
    encoding = encoding or found
    keep = None
    readable = path
    if encoding and codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig"):
        keep = _transcoded(path, encoding)
        readable = keep.name
    elif set(path) & set("*?[]{}"):  # DuckDB would take the name for a pattern
        keep = tempfile.TemporaryDirectory()
        readable = os.path.join(keep.name, "data.csv")
        os.symlink(os.path.abspath(path), readable)
    _refuse_bad_bytes(readable, path)
    names, delimiter = _header(readable, path)
    return _Checked(readable, names, delimiter, keep)


def _transcoded(path: str, encoding: str) -> Any:
    """The same text as UTF-8 in a temporary file, which vanishes with its last user."""
    copy = tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".csv", newline="")  # noqa: SIM115 - kept open
    try:
        with open(path, encoding=encoding, newline="") as file:
            while block := file.read(BLOCK):
                copy.write(block)
    except UnicodeError as error:
        raise DataError(f"{path!r} is not {encoding}: {error}") from None
    copy.flush()
    return copy


def _refuse_bad_bytes(readable: str, path: str) -> None:
    """UTF-8 without NUL bytes is read alike everywhere; anything else is refused with its line."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    with open(readable, "rb") as file:
        while block := file.read(BLOCK):
            if b"\0" in block:
                line += block[: block.index(b"\0")].count(b"\n")
                raise DataError(
                    f"{path!r} has a NUL byte in line {line}: it is binary, or text in another encoding (--encoding utf-16)"
                )
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                line += block[: error.start].count(b"\n")
                raise DataError(
                    f"{path!r} is not UTF-8 in line {line}: pass encoding='latin-1' (--encoding latin-1) or what it is in"
                ) from None
            line += block.count(b"\n")
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise DataError(f"{path!r} ends in the middle of a character: it was cut off") from None


def _header(readable: str, path: str) -> tuple[tuple[str, ...], str]:
    with open(readable, encoding="utf-8-sig", newline="") as file:
        head = file.read(LONGEST_HEADER if os.path.getsize(readable) < LONGEST_HEADER else BLOCK)
    first = head.split("\n", 1)[0]
    delimiter = "\t" if path.lower().endswith(".tsv") else max(DELIMITERS, key=lambda d: _outside_quotes(first, d))
    csv.field_size_limit(LONGEST_HEADER)
    try:
        names = next(csv.reader(io.StringIO(head), delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise DataError(f"{path!r} has no readable header line: {error}") from None
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(
            f"column {twice[0]!r} stands twice in the header of {path!r}: rename one of them", column=twice[0]
        )
    if not any(name.strip() for name in names):
        raise DataError(f"{path!r} has no header line")
    return tuple(names), delimiter


def _outside_quotes(line: str, delimiter: str) -> int:
    return sum(part.count(delimiter) for part in line.split('"')[::2])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
