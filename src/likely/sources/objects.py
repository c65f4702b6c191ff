"""Tables in JSON: a list of objects, an object of lists, or one object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from likely.errors import DataError
from likely.sources.batch import Batch, Frame, to_arrow
from likely.sources.cells import name_columns
from likely.sources.memory import InMemory, from_memory
from likely.sources.onefile import OneFile
from likely.sources.survey import encoding_of, nul_remedy
from likely.threads import cached_property

BATCH_ROWS = 20_000
BATCH_CELLS = 1 << 19  # as Python's own values, which take ten times what an array does
FEWEST_ROWS = 16  # of a batch, however many columns

Row = dict[str, Any]


class TwiceError(ValueError):
    """An object names one of its columns twice, and nobody knows which cell is meant."""


class NulError(ValueError):
    """A text holds the character NUL, which no text file may hold (see docs/data.md)."""


def parse(text: str) -> Any:
    """The value that a JSON text holds; an object that names a column twice is refused, and so is the character NUL."""
    if "\0" in text:
        raise NulError(f"has a NUL byte: {nul_remedy(text.index(chr(0)))}")
    found = json.loads(text, object_pairs_hook=_object)
    if "\\u0000" in text and _has_nul(found):
        raise NulError("has a text with the character NUL (\\u0000): take it out")
    return found


def _has_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_nul, value.values()))  # a name is looked at with the other names
    return any(map(_has_nul, value)) if isinstance(value, list) else isinstance(value, str) and "\0" in value


def _object(pairs: list[tuple[str, Any]]) -> Row:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise TwiceError(f"names the column {twice!r} twice")
    return made


def _fault(error: Exception) -> str:
    return str(error) if isinstance(error, (TwiceError, NulError)) else f"is not JSON ({_reason(error)})"


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]


@dataclass(frozen=True)
class JsonFile(OneFile):
    """A JSON file: a list of objects, or an object of lists."""

    @cached_property
    def table(self) -> InMemory:
        """The whole file, which JSON does not allow to read in parts."""
        with self.as_text(), open(self.path, encoding=encoding_of(self.path, self.label, self.reading.encoding)) as file:
            text = file.read()
        try:
            data = parse(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.label} {_fault(error)}") from None
        if not isinstance(data, (list, dict)):
            kind = type(data).__name__
            raise DataError(f"{self.label} holds {kind}: it must hold a list of objects or an object of lists")
        try:
            return from_memory(data, self.missing)
        except DataError as error:
            raise DataError(f"{self.label}: {error}", column=error.column, value=error.value, row=error.row) from None

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        if self.table.batch.rows:
            yield from self.table.batches(kinds)


@dataclass(frozen=True)
class JsonLines(OneFile):
    """A file with one JSON object a line; a column that a line leaves out is a missing cell."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All columns that any line of the file names, in the order of their first coming."""
        found: dict[str, None] = {}
        first: list[Row] = []
        small = os.path.getsize(self.path) <= self.reading.batch_bytes()
        for row in self._rows():
            found.update(dict.fromkeys(row))
            if small:
                first.append(row)
        if small:
            self.__dict__["whole"] = first  # a small file is parsed once
        return tuple(name_columns(list(found), self.label))

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        names = [name for name in self.names if kinds is None or name in kinds]
        most = min(BATCH_ROWS, max(FEWEST_ROWS, BATCH_CELLS // max(len(self.names), 1)))
        rows: list[Row] = []
        most_bytes = self.reading.batch_bytes(len(self.names))
        start = size = 0
        for row in self.__dict__.get("whole") or self._rows():
            rows.append(row)
            size += len(row) + sum(len(cell) for cell in row.values() if isinstance(cell, str))
            if len(rows) == most or size >= most_bytes:
                self.reading.check_memory()
                yield self._frame(rows, names, start)
                start, rows, size = start + len(rows), [], 0
        if rows:
            yield self._frame(rows, names, start)

    def _frame(self, rows: list[Row], names: list[str], start: int) -> Frame:
        columns = {name: to_arrow([row.get(name) for row in rows], name, start) for name in names}
        return Frame(columns, len(rows), start, self.missing)

    def _rows(self) -> Iterator[Row]:
        """The objects; a line that holds none is an error with its number, or a counted reject."""
        with self.as_text(), open(self.path, encoding=encoding_of(self.path, self.label, self.reading.encoding)) as file:
            for number, line in enumerate(file, start=1):
                row = self._parsed(number, line) if not line.isspace() else None
                if row is not None:
                    yield row

    def _parsed(self, number: int, line: str) -> Row | None:
        try:
            row = parse(line)
        except (ValueError, RecursionError) as error:
            self.reading.reject(self.label, number, _fault(error))
            return None
        if not isinstance(row, dict):
            self.reading.reject(self.label, number, f"holds {type(row).__name__}, not an object")
            return None
        return row
