"""JSON files: a list of objects, an object of lists, or one object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from likely.errors import DataError
from likely.kernels.parallel import cached_property
from likely.sources._csv_survey import encoding_of, nul_remedy
from likely.sources._single_file import SingleFile
from likely.sources.batch import Batch, Frame, to_arrow
from likely.sources.cell_values import name_columns
from likely.sources.frames import InMemory, from_memory

BATCH_ROWS = 20_000
BATCH_CELLS = 1 << 19  # Python objects take ten times the memory of an array
FEWEST_ROWS = 16  # minimum rows of a batch

Row = dict[str, Any]


class DuplicateNameError(ValueError):
    """An object with a duplicate column name."""


class NulError(ValueError):
    """A text with the character NUL, which text files must not contain (see docs/data.md)."""


def parse(text: str) -> Any:
    """Parse a JSON text; duplicate names in an object and the character NUL are refused."""
    if "\0" in text:
        raise NulError(f"has a NUL byte: {nul_remedy(text.index(chr(0)))}")
    found = json.loads(text, object_pairs_hook=_object)
    if "\\u0000" in text and _has_nul(found):
        raise NulError("has a text with the character NUL (\\u0000): remove it")
    return found


def _has_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_nul, value.values()))  # names are checked separately
    return any(map(_has_nul, value)) if isinstance(value, list) else isinstance(value, str) and "\0" in value


def _object(pairs: list[tuple[str, Any]]) -> Row:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DuplicateNameError(f"names the column {twice!r} twice")
    return made


def _fault(error: Exception) -> str:
    return str(error) if isinstance(error, (DuplicateNameError, NulError)) else f"is not JSON ({_reason(error)})"


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]


@dataclass(frozen=True)
class JsonFile(SingleFile):
    """A JSON file: a list of objects, or an object of lists."""

    @cached_property
    def table(self) -> InMemory:
        """The complete file: JSON cannot be read in parts."""
        with self.as_text(), open(self.path, encoding=encoding_of(self.path, self.label, self.reading.encoding)) as file:
            text = file.read()
        try:
            data = parse(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.label} {_fault(error)}") from None
        if not isinstance(data, (list, dict)):
            kind = type(data).__name__
            raise DataError(f"{self.label} contains {kind}: it must be a list of objects or an object of lists")
        try:
            return from_memory(data, self.missing)
        except DataError as error:
            raise DataError(f"{self.label}: {error}", column=error.column, value=error.value, row=error.row) from None

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        if self.table.batch.rows:
            yield from self.table.batches(kinds)


@dataclass(frozen=True)
class JsonLines(SingleFile):
    """A file with one JSON object a line; an absent column is a missing cell."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All columns of the file, in order of first occurrence."""
        found: dict[str, None] = {}
        first: list[Row] = []
        small = os.path.getsize(self.path) <= self.reading.batch_bytes()
        for row in self._rows():
            found.update(dict.fromkeys(row))
            if small:
                first.append(row)
        if small:
            self._kept[:] = first  # at once: two threads may read the names
        return tuple(name_columns(list(found), self.label))

    @cached_property
    def _kept(self) -> list[Row]:
        """The rows of a small file, which is parsed once; empty before that, and for a large one."""
        return []

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        names = [name for name in self.names if kinds is None or name in kinds]
        most = min(BATCH_ROWS, max(FEWEST_ROWS, BATCH_CELLS // max(len(self.names), 1)))
        rows: list[Row] = []
        most_bytes = self.reading.batch_bytes(len(self.names))
        start = size = 0
        for row in self._kept or self._rows():
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
        """The objects; a line without one is an error with its number, or a recorded reject."""
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
            self.reading.reject(self.label, number, f"contains {type(row).__name__}, not an object")
            return None
        return row
