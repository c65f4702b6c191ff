"""CSV and TSV: the header is read first, the bytes are surveyed, then Arrow or, where anything is odd, Python parses.

Nothing is sniffed: columns are text under plain names of our own, every row must have as many cells as the header, and
the rows that come out are counted against those that the survey has seen.
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
from dataclasses import dataclass
from typing import Any, ClassVar

from likely.errors import DataError, LikelyWarning, ResourceError
from likely.schema import NUMBER
from likely.sources import blocks, lines
from likely.sources.batch import Batch, Frame
from likely.sources.cells import (
    DECIMAL,
    NOTHING,
    TEXT,
    WHOLE,
    is_text,
    name_columns,
    nature,
    note_gaps,
    numbered,
    text_to_numbers,
    text_to_whole_numbers,
    to_number,
)
from likely.sources.forms import PLAIN, TYPED_TIMES, Form, Resolver, promising
from likely.sources.onefile import OneFile
from likely.sources.survey import Survey, TextCheck, encoding_of, survey
from likely.threads import cached_property

DELIMITERS = (",", ";", "\t", "|")
NO_HEADER = "rename one of them, or pass header=False (--no-header) if the first line is a row"
BATCH_ROWS = 65_536
BLOCK = 1 << 20
LONGEST_HEADER = 1 << 26
LOOKED_AT = 1_000  # rows: whether a name of the header stands among their cells
LONGEST_ROW = 1 << 24  # bytes: Arrow holds several blocks at a time, and each must hold a whole row
KEPT_CELLS = 1 << 22  # a file of one batch and no more cells than this is parsed once

Table = tuple[int, list[Any]]


@dataclass(frozen=True)
class CsvFile(OneFile):
    """A file of delimited text with a header line."""

    blanks: ClassVar[bool] = True

    @cached_property
    def checked(self) -> Checked:
        """The file as UTF-8, with its header, its delimiter and what its bytes say."""
        with self.as_text():
            encoding = encoding_of(self.path, self.label, self.reading.encoding)
            return _check(self.path, self.label, encoding, self.reading.header)

    @cached_property
    def natural(self) -> dict[str, int]:
        """What each column holds: numbers, if every cell of the file that is not missing reads as one."""
        names = self.checked.names
        found = [NOTHING] * len(names)
        read: list[Table] = []
        hopeful: set[int] = set()  # texts that may be numbers in another form
        for rows, columns in self._tables(list(range(len(names)))):
            read.append((rows, columns) if not read else (rows, []))
            for i, column in enumerate(columns):
                if found[i] < TEXT:
                    found[i] = max(found[i], nature(column, self.missing.of(names[i])))
                    if found[i] >= DECIMAL and i not in hopeful and promising(column):
                        hopeful.add(i)
        if len(read) == 1 and read[0][0] * len(names) <= KEPT_CELLS:
            self.__dict__["whole"] = read[0]
        if self.reading.header and read:
            hint_at_data(names, found, read[0][1], self.label)
        signs = self.reading.decimal == "," or self.reading.thousands == "."  # 1.520 may be a thousand then
        known = self.reading.forms
        aside = {self.reading.target, *(name for name in known if known[name].form not in (PLAIN, TYPED_TIMES))}
        wanted = [i for i in sorted(hopeful) if found[i] == TEXT or (signs and found[i] == DECIMAL)]
        self._survey([i for i in wanted if names[i] not in aside])
        return dict(zip(names, found, strict=True))

    def _survey(self, places: list[int]) -> None:
        """Find the forms of some columns of text, over all rows."""
        from likely.sources.natural import surveyed

        names = [self.checked.names[i] for i in places]
        found = surveyed(self._parts(places), names, self.reading, self.label, self.checked.delimiter == ";")
        self.formed.update({name: found[name].as_form() if name in found else None for name in names})

    def _parts(self, places: list[int]) -> Iterator[tuple[Frame, dict[str, Any]]]:
        start = 0
        for rows, columns in self._tables(places) if places else ():
            named = {self.checked.names[i]: column for i, column in zip(places, columns, strict=True)}
            yield Frame(named, rows, start, self.missing), named
            start += rows

    @cached_property
    def formed(self) -> dict[str, Form | None]:
        """The forms of columns that are written as other than plain numbers; None for those that were looked at in vain."""
        return {}

    @cached_property
    def resolver(self) -> Resolver:
        """What finds the form of a column that is not written as expected."""
        return Resolver(self._resolve)

    def _resolve(self, name: str) -> Form | None:
        """The form of a column that is not written as it was when the model was learned."""
        if name not in self.formed:
            self._survey([self.checked.names.index(name)])
        return self.formed[name]

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order; a row with too few or too many cells is an error with its line, or a counted reject."""
        # To predict, text is enough: the model knows which columns are numbers. To learn, all was looked at before.
        natural = self.natural if kinds is None or "natural" in self.__dict__ else {}
        wanted = [(i, name) for i, name in enumerate(self.checked.names) if kinds is None or name in kinds]
        as_numbers = {name for _, name in wanted if (kinds or {}).get(name, NUMBER) == NUMBER}
        forms = dict(self.reading.forms) | {n: f for n, f in self.formed.items() if f and natural}
        written = {name for name, form in forms.items() if form.form not in (PLAIN, TYPED_TIMES)}
        numbers = {name for name in as_numbers - written if natural.get(name) in (WHOLE, DECIMAL)}
        spelled = frozenset(n for _, n in wanted if natural.get(n) == WHOLE and n not in numbers)
        start = 0
        for rows, columns in self._tables([i for i, _ in wanted]):
            named = {name: column for (_, name), column in zip(wanted, columns, strict=True)}
            typed = {n: self._typed(n, c, natural[n], start) if n in numbers else c for n, c in named.items()}
            self.reading.check_memory()
            yield Frame(typed, rows, start, self.missing, spelled, forms, self.resolver)
            start += rows

    def _typed(self, name: str, column: Any, found: int, start: int) -> Any:
        """A column as numbers; those of a file that is kept whole are kept as well."""
        kept: dict[str, Any] = self.__dict__.setdefault("numbers", {}) if "whole" in self.__dict__ else {}
        if name not in kept:
            read = text_to_numbers if found == DECIMAL else text_to_whole_numbers
            kept[name] = read(column, self.missing.of(name))
            note_gaps(column, kept[name], name, start, self.missing)
        return kept[name]

    def _tables(self, places: list[int]) -> Iterator[Table]:
        """Batches of rows as columns of text, from whoever reads this file best."""
        whole: Table | None = self.__dict__.get("whole")
        if whole:
            yield whole[0], [whole[1][i] for i in places]
        elif self.checked.regular and self.checked.survey.rows > self.reading.header:
            yield from self._by_arrow(places)
        else:
            checked, cells = self.checked, len(self.checked.names)
            found = lines.rows(
                checked.readable, checked.delimiter, cells, checked.survey.spaced, self._reject, self.reading.header
            )
            yield from lines.tables(found, places, cells, BATCH_ROWS, self.reading.batch_bytes(cells))

    def _reject(self, line: int, fault: str) -> None:
        self.reading.reject(self.label, line, fault)

    def _by_arrow(self, places: list[int]) -> Iterator[Table]:
        import pyarrow as pa

        seen, expected = 0, self.checked.survey.rows - self.reading.header
        try:
            for rows, columns in blocks.tables(
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
                f"{self.label} has {expected:,} rows, but {seen:,} came out of it",
                remedy="do not change a file while it is read; if nobody did, please report it",
            )


@dataclass(frozen=True)
class Checked:
    """A file that is known to be UTF-8 text with a header."""

    readable: str
    names: tuple[str, ...]
    delimiter: str
    survey: Survey
    keep: Any = None  # a temporary file lives as long as this does

    @property
    def regular(self) -> bool:
        """Whether Arrow may parse this file: nothing is odd in it, and no row is very long."""
        fits = self.survey.longest <= min(LONGEST_ROW, lines.LONGEST_CELL)
        return fits and self.survey.flawless and is_text(self.readable)  # a path may be any bytes


def _check(path: str, label: str, encoding: str, header: bool) -> Checked:
    keep = None if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig") else _copy(path, encoding)
    readable = keep.name if keep else os.path.abspath(path)
    tabs = path.lower().endswith(".tsv")
    delimiter, names = _header(readable, label, tabs=tabs, spaced=False, header=header)
    found = survey(readable, label, delimiter, len(names))
    if found.spaced:  # the header is read as the rows are
        delimiter, names = _header(readable, label, tabs=tabs, spaced=True, header=header)
    return Checked(readable, names, delimiter, found, keep)


def _copy(path: str, encoding: str) -> Any:
    """The same text as UTF-8 in a temporary file, which vanishes with its last user."""
    copy = tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".csv", newline="")  # noqa: SIM115 - kept open
    with open(path, encoding=encoding, newline="") as file:
        while block := file.read(BLOCK):
            copy.write(block)
    copy.flush()
    return copy


def _header(readable: str, label: str, *, tabs: bool, spaced: bool, header: bool) -> tuple[str, tuple[str, ...]]:
    """The delimiter and the names of the columns, c1, c2, … where no line names them; a header may span lines."""
    size = BLOCK
    while True:
        with open(readable, "rb") as file:
            head = file.read(size)
        TextCheck(readable, label).see(head)
        text = head.decode("utf-8-sig", errors="ignore")  # at most the last character is cut
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
    """The names of the columns of a UTF-8 file, from its first line alone."""
    return _header(path, repr(path), tabs=path.lower().endswith(".tsv"), spaced=False, header=header)[1]


def _first_row(text: str, delimiter: str, *, spaced: bool, whole: bool) -> list[str] | None:
    """The cells of the first row; None if the text breaks off before its end."""
    found = io.StringIO(text, newline="")
    try:
        names = next(lines.read_csv(found, delimiter, spaced), [])
    except csv.Error:
        if whole:
            raise
        return None
    return names if whole or next(found, None) is not None else None


def _delimiter(line: str) -> str:
    """What parts the names of the header: the sign that comes most often outside quotes."""
    outside = line.split('"')[::2]
    return max(DELIMITERS, key=lambda sign: sum(part.count(sign) for part in outside))


def hint_at_data(names: Sequence[str], natures: Sequence[int], columns: Sequence[Any], label: str) -> None:
    """Say so if the names of most columns look like cells: numbers over numbers, or texts that stand below as well."""
    numbers = [name for name, found in zip(names, natures, strict=True) if found in (WHOLE, DECIMAL) and _reads(name)]
    if all(name.isdecimal() for name in numbers) and sorted(numbers, key=int) == numbers:
        numbers = []  # 0, 1, 2, … as another program numbers columns, or years
    texts = [
        name
        for name, found, column in zip(names, natures, columns, strict=True)
        if found == TEXT and name in column[:LOOKED_AT].to_pylist()
    ]
    if 2 * (len(numbers) + len(texts)) > len(names):
        shown = ", ".join(repr(name) for name in (numbers + texts)[:3])
        said = f"the first line of {label} looks like a row ({shown}): pass header=False (--no-header) if it names no columns"
        warnings.warn(said, LikelyWarning, stacklevel=4)


def _reads(name: str) -> bool:
    try:
        to_number(name)
    except ValueError:
        return False
    return True
