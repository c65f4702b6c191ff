"""CSV and TSV files: header, survey of the bytes, then parsing by Arrow, or by Python for irregular files.

No dialect is guessed: every row must have as many cells as the header, and the number of parsed rows is checked against
the survey.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from likely.errors import DataError, LikelyWarning, ResourceError
from likely.kernels.parallel import cached_property
from likely.schema import NUMBER
from likely.sources import _csv_arrow as csv_arrow
from likely.sources import _csv_python as csv_python
from likely.sources._csv_survey import CsvSurvey, TextCheck, encoding_of, survey
from likely.sources._number_columns import warn_of_rounding
from likely.sources._single_file import SingleFile
from likely.sources.arrow_arrays import numpy_array
from likely.sources.batch import Batch, Frame
from likely.sources.cell_values import (
    DECIMAL,
    NOTHING,
    TEXT,
    WHOLE,
    detect_text_type,
    is_text,
    name_columns,
    numbered,
    record_missing,
    text_to_numbers,
    text_to_whole_numbers,
    to_number,
)
from likely.sources.number_formats import PLAIN, TYPED_TIMES, FormatResolver, NumberFormat, may_be_numbers

DELIMITERS = (",", ";", "\t", "|")
NO_HEADER = "rename one of them, or pass header=False (--no-header) if the first line is a row"
BATCH_ROWS = 65_536
BLOCK = 1 << 20
LONGEST_HEADER = 1 << 26
HEADER_CHECK_ROWS = 1_000  # rows in which the names of the header are searched for
LONGEST_ROW = 1 << 24  # bytes: Arrow keeps several blocks in memory, and each must contain a complete row
KEPT_CELLS = 1 << 22  # a file of one batch with at most this many cells is cached after parsing

Table = tuple[int, list[Any]]


@dataclass
class KeptTable:
    """A small file after parsing, so that it is parsed once: its columns as text, and those that were read as numbers."""

    parsed: Table | None = None
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CsvFile(SingleFile):
    """A file of delimited text."""

    blanks: ClassVar[bool] = True

    @cached_property
    def checked(self) -> CheckedCsv:
        """The file as UTF-8, with header, delimiter and survey; computed once."""
        with self.as_text():
            encoding = encoding_of(self.path, self.label, self.reading.encoding)
            return _check(self.path, self.label, encoding, self.reading.header)

    @cached_property
    def _kept(self) -> KeptTable:
        return KeptTable()

    @cached_property
    def text_types(self) -> dict[str, int]:
        """Type of each column: numeric if every cell that is not missing parses as a number."""
        names = self.checked.names
        found = [NOTHING] * len(names)
        read: list[Table] = []
        numeric_candidates: set[int] = set()  # text columns that may be numbers in another format
        for rows, columns in self._tables(list(range(len(names)))):
            read.append((rows, columns) if not read else (rows, []))
            for i, column in enumerate(columns):
                if found[i] < TEXT:
                    found[i] = max(found[i], detect_text_type(column, self.missing.of(names[i])))
                    if found[i] >= DECIMAL and i not in numeric_candidates and may_be_numbers(column):
                        numeric_candidates.add(i)
        if len(read) == 1 and read[0][0] * len(names) <= KEPT_CELLS:
            self._kept.parsed = read[0]
        if self.reading.header and read:
            warn_of_missing_header(names, found, read[0][1], self.label)
        signs = self.reading.decimal == "," or self.reading.thousands == "."  # then 1.520 may be 1520
        aside = {self.reading.target, *self.reading.formats}  # those of a model are handled by `redetected`
        wanted = [i for i in sorted(numeric_candidates) if found[i] == TEXT or (signs and found[i] == DECIMAL)]
        decimals = [i for i in sorted(numeric_candidates) if found[i] == DECIMAL and i not in wanted]
        self._survey(*([names[i] for i in some if names[i] not in aside] for some in (wanted, decimals)))
        return dict(zip(names, found, strict=True))

    def _survey(self, names: list[str], decimals: Sequence[str] = ()) -> None:
        """Detect the formats of text columns over all rows; `decimals` are re-examined where others have decimal commas."""
        from likely.sources.text_columns import detect_formats

        signs: dict[str, Any] = {"semicolons": self._semicolons, "decimals": decimals}
        found = detect_formats(self._text_batches, names, self.reading, self.label, **signs)
        for name in {*names, *found}:
            self.detected_formats[name] = found[name].as_number_format() if name in found else None

    @property
    def _semicolons(self) -> bool:
        return self.checked.delimiter == ";"

    def _text_batches(self, names: Sequence[str]) -> Iterator[tuple[Frame, dict[str, Any]]]:
        place_of = {name: place for place, name in enumerate(self.checked.names)}  # a search per name is quadratic in columns
        start, places = 0, [place_of[name] for name in names]
        for rows, columns in self._tables(places) if places else ():
            named = dict(zip(names, columns, strict=True))
            yield Frame(named, rows, start, self.missing), named
            start += rows

    @cached_property
    def redetected(self) -> dict[str, NumberFormat]:
        """Formats of columns that differ from those of the rows the model was learned from."""
        from likely.sources.text_columns import redetect_formats, warn_of_formats

        names = [name for name in self.checked.names if name in self.reading.formats]
        first = next(iter(self._text_batches(names)), None)
        if first is None:
            return {}
        found = redetect_formats(first[1], self.missing, self.reading, self._text_batches, self._semicolons)
        warn_of_formats(found, self.label)
        return {name: each.as_number_format() for name, each in found.items()}

    @cached_property
    def detected_formats(self) -> dict[str, NumberFormat | None]:
        """Formats of columns other than plain numbers; None where no format was detected."""
        return {}

    @cached_property
    def resolver(self) -> FormatResolver:
        """Resolver for columns that are not in the expected format."""
        return FormatResolver(self._resolve)

    def _resolve(self, name: str) -> NumberFormat | None:
        """Format of a column that differs from that of the rows the model was learned from."""
        if name not in self.detected_formats:
            self._survey([name])
        return self.detected_formats[name]

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order; a row with too few or too many cells is an error with its line, or a recorded reject."""
        # For prediction text is sufficient: the model knows the numeric columns. For learning, types were detected before.
        text_types = self.text_types if kinds is None or "text_types" in self.__dict__ else {}
        wanted = [(i, name) for i, name in enumerate(self.checked.names) if kinds is None or name in kinds]
        as_numbers = {name for _, name in wanted if (kinds or {}).get(name, NUMBER) == NUMBER}
        detected = {name: each for name, each in self.detected_formats.items() if each and text_types}
        formats = dict(self.reading.formats) | self.redetected | detected
        written = {name for name, each in formats.items() if each.code not in (PLAIN, TYPED_TIMES)}
        numbers = {name for name in as_numbers - written if text_types.get(name) in (WHOLE, DECIMAL)}
        spelled = frozenset(n for _, n in wanted if text_types.get(n) == WHOLE and n not in numbers)
        start = 0
        for rows, columns in self._tables([i for i, _ in wanted]):
            named = {name: column for (_, name), column in zip(wanted, columns, strict=True)}
            typed = {n: self._typed(n, c, text_types[n], start) if n in numbers else c for n, c in named.items()}
            for name in (n for n in named if kinds is not None and n in numbers and text_types[n] == DECIMAL):
                floats = np.asarray(numpy_array(typed[name]), dtype=np.float64)
                warn_of_rounding(named[name], floats, name)  # includes integers beyond 64 bits
            self.reading.check_memory()
            yield Frame(typed, rows, start, self.missing, spelled, formats, self.resolver)
            start += rows

    def _typed(self, name: str, column: Any, found: int, start: int) -> Any:
        """A column as numbers; cached if the parsed file is cached."""
        kept: dict[str, Any] = self._kept.numbers if self._kept.parsed else {}
        if name not in kept:
            read = text_to_numbers if found == DECIMAL else text_to_whole_numbers
            kept[name] = read(column, self.missing.of(name))
            record_missing(column, kept[name], name, start, self.missing)
        return kept[name]

    def _tables(self, places: list[int]) -> Iterator[Table]:
        """Batches of text columns, from the cache, from Arrow or from Python's parser."""
        parsed = self._kept.parsed
        if parsed:
            yield parsed[0], [parsed[1][i] for i in places]
        elif self.checked.regular and self.checked.survey.rows > self.reading.header:
            yield from self._by_arrow(places)
        else:
            checked, cells = self.checked, len(self.checked.names)
            found = csv_python.rows(
                checked.readable, checked.delimiter, cells, self._reject,
                spaced=checked.survey.spaced, header=self.reading.header,
            )  # fmt: skip
            yield from csv_python.tables(found, places, cells, BATCH_ROWS, self.reading.batch_bytes(cells))

    def _reject(self, line: int, fault: str) -> None:
        self.reading.reject(self.label, line, fault)

    def _by_arrow(self, places: list[int]) -> Iterator[Table]:
        import pyarrow as pa

        seen, expected = 0, self.checked.survey.rows - self.reading.header
        try:
            for rows, columns in csv_arrow.tables(
                self.checked, places, self.reading.header, BATCH_ROWS, self.reading.batch_bytes(len(places))
            ):
                seen += rows
                yield rows, columns
        except MemoryError as error:
            raise ResourceError(f"{self.label} cannot be read: {str(error).splitlines()[0][:200]}") from None
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.label} cannot be read: {str(error).splitlines()[0][:200]}") from None
        if seen != expected:
            raise DataError(
                f"{self.label} has {expected:,} rows, but {seen:,} were parsed",
                remedy="do not change a file while it is read; if it was not changed, please report this",
            )


@dataclass(frozen=True)
class CheckedCsv:
    """A file known to be UTF-8 text, with its header."""

    readable: str
    names: tuple[str, ...]
    delimiter: str
    survey: CsvSurvey
    keep: Any = None  # reference that keeps a temporary file alive

    @property
    def regular(self) -> bool:
        """Whether Arrow may parse this file: the survey found no irregularity, and no row is very long."""
        fits = self.survey.longest <= min(LONGEST_ROW, csv_python.LONGEST_CELL)
        return fits and self.survey.flawless and is_text(self.readable)  # a path may be arbitrary bytes


def _check(path: str, label: str, encoding: str, header: bool) -> CheckedCsv:
    keep = None if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig") else _copy(path, encoding)
    readable = keep.name if keep else os.path.abspath(path)
    tabs = path.lower().endswith(".tsv")
    delimiter, names = _header(readable, label, tabs=tabs, spaced=False, header=header)
    found = survey(readable, label, delimiter, len(names))
    if found.spaced:  # the header is parsed like the rows
        delimiter, names = _header(readable, label, tabs=tabs, spaced=True, header=header)
    return CheckedCsv(readable, names, delimiter, found, keep)


def _copy(path: str, encoding: str) -> Any:
    """Copy the text as UTF-8 to a temporary file, deleted with its last reference."""
    copy = tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".csv", newline="")  # noqa: SIM115 - kept open
    with open(path, encoding=encoding, newline="") as file:
        while block := file.read(BLOCK):
            copy.write(block)
    copy.flush()
    return copy


def _header(readable: str, label: str, *, tabs: bool, spaced: bool, header: bool) -> tuple[str, tuple[str, ...]]:
    """Delimiter and column names; c1, c2, … without a header. A quoted name may span lines."""
    size = BLOCK
    while True:
        with open(readable, "rb") as file:
            head = file.read(size)
        TextCheck(readable, label).update(head)
        text = head.decode("utf-8-sig", errors="ignore")  # at most the last character is incomplete
        delimiter = "\t" if tabs else _delimiter(re.split("[\r\n]", text, maxsplit=1)[0])
        try:
            names = _first_row(text, delimiter, spaced=spaced, whole=len(head) < size)
        except csv.Error as error:
            raise DataError(f"{label} has no readable header line: {error}") from None
        if names is not None:
            break
        size *= 4
        if size > LONGEST_HEADER:
            raise DataError(f"{label} has no header line: its first line does not end")
    if not header:
        return delimiter, tuple(numbered(len(names)))
    if not any(name.strip() for name in names):
        raise DataError(f"{label} has no header line", remedy="its first line must name the columns")
    return delimiter, tuple(name_columns(names, f"the header of {label}", NO_HEADER))


def header_of(path: str, header: bool) -> tuple[str, ...]:
    """Column names of a UTF-8 file, from its first line only."""
    return _header(path, repr(path), tabs=path.lower().endswith(".tsv"), spaced=False, header=header)[1]


def _first_row(text: str, delimiter: str, *, spaced: bool, whole: bool) -> list[str] | None:
    """Cells of the first row; None if the text ends before the row does."""
    found = io.StringIO(text, newline="")
    try:
        names = next(csv_python.read_csv(found, delimiter, spaced), [])
    except csv.Error:
        if whole:
            raise
        return None
    return names if whole or next(found, None) is not None else None


def _delimiter(line: str) -> str:
    """The most frequent delimiter of the header outside quotes."""
    outside = line.split('"')[::2]
    return max(DELIMITERS, key=lambda sign: sum(part.count(sign) for part in outside))


def warn_of_missing_header(names: Sequence[str], types: Sequence[int], columns: Sequence[Any], label: str) -> None:
    """Warn if most column names look like cells: numbers above numbers, or texts that also occur below."""
    numbers = [name for name, found in zip(names, types, strict=True) if found in (WHOLE, DECIMAL) and _reads(name)]
    if all(name.isdecimal() for name in numbers) and sorted(numbers, key=int) == numbers:
        numbers = []  # column numbers 0, 1, 2, … of another program, or years
    texts = [
        name
        for name, found, column in zip(names, types, columns, strict=True)
        if found == TEXT and name in column[:HEADER_CHECK_ROWS].to_pylist()
    ]
    if 2 * (len(numbers) + len(texts)) > len(names):
        shown = ", ".join(repr(name) for name in (numbers + texts)[:3])
        message = f"the first line of {label} looks like a row ({shown}): pass header=False (--no-header) if it is one"
        warnings.warn(message, LikelyWarning, stacklevel=4)


def _reads(name: str) -> bool:
    try:
        to_number(name)
    except ValueError:
        return False
    return True
