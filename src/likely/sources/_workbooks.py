"""Workbooks (.xlsx, .ods): one sheet as a table, through python-calamine (extra likely[excel])."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likely.errors import DataError, did_you_mean, import_optional
from likely.kernels.parallel import cached_property
from likely.sources._compressed import ALWAYS_ALLOWED, LARGEST_RATIO
from likely.sources._single_file import SingleFile
from likely.sources.batch import Batch, Frame, to_arrow
from likely.sources.cell_values import name_columns, numbered
from likely.sources.frames import InMemory

WHOLE = 2.0**53


@dataclass(frozen=True)
class WorkbookSheet(SingleFile):
    """One sheet of a workbook; its first row has the column names unless `header=False`."""

    @cached_property
    def table(self) -> InMemory:
        """The complete sheet: the format cannot be read in parts."""
        rows = self._rows()
        if self.reading.header:
            head, rows = rows[0], rows[1:]
        else:
            head = numbered(len(rows[0]))
        named, columns = [], []
        for name, column in zip(head, zip(*rows, strict=True) if rows else [()] * len(head), strict=True):
            if name != "" or any(cell != "" for cell in column):  # an empty column is only formatting
                named.append(_name(name))
                columns.append(column)
        names = name_columns(named, f"the first row of {self.label}")
        arrays = {name: to_arrow(_cells(cells), name) for name, cells in zip(names, columns, strict=True)}
        return InMemory(Frame(arrays, len(rows), 0, self.missing), self.label)

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        if self.table.batch.rows:
            yield from self.table.batches(kinds)

    def _rows(self) -> list[list[Any]]:
        """All cells of the sheet without blank rows; a blank cell is an empty text."""
        calamine = import_optional("python_calamine", f"reading the workbook {self.label}", ", or save it as CSV")
        self._refuse_bomb()
        try:
            with calamine.CalamineWorkbook.from_path(self.path) as book:
                rows = book.get_sheet_by_name(self._sheet(book.sheet_names)).to_python()
        except (calamine.CalamineError, OSError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{self.label} cannot be read as a workbook ({str(error)[:200]})") from None
        rows = [row for row in rows if any(cell != "" for cell in row)]
        if not rows:
            raise DataError(f"{self.label}: the sheet is empty", remedy="name another one with sheet= (--sheet)")
        return rows

    def _sheet(self, names: Sequence[str]) -> str:
        """The requested sheet, by name or number from 1, or the only one."""
        wanted = self.reading.sheet
        listed = ", ".join(map(repr, names[:20]))
        if wanted is None:
            if len(names) != 1:
                raise DataError(f"{self.label} has {len(names)} sheets: {listed}", remedy="name one with sheet= (--sheet)")
            return names[0]
        if wanted in names:
            return str(wanted)
        if str(wanted).isdecimal() and 1 <= int(wanted) <= len(names):
            return names[int(wanted) - 1]
        raise DataError(f"{self.label} has no sheet {wanted!r}{did_you_mean(wanted, names)}: it has {listed}")

    def _refuse_bomb(self) -> None:
        """Refuse a workbook, which is a .zip file, by the declared size of its members."""
        import os

        most = self.reading.max_unpacked or max(ALWAYS_ALLOWED, LARGEST_RATIO * os.path.getsize(self.path))
        try:
            with zipfile.ZipFile(self.path) as archive:
                size = sum(member.file_size for member in archive.infolist())
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise DataError(f"{self.label} cannot be read as a workbook ({error})") from None
        if size > most:
            raise DataError(
                f"{self.label} unpacks to {size:,} bytes, more than {most:,}",
                remedy="if that is right, allow more with max_unpacked= (--max-unpacked 20GB)",
            )


def _name(cell: Any) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _cells(column: Sequence[Any]) -> list[Any]:
    """Cells with None where blank; a column of floats that are all integers becomes integers."""
    cells = [None if cell == "" else cell for cell in column]
    there = [cell for cell in cells if cell is not None]
    if there and all(type(cell) is float and cell.is_integer() and abs(cell) <= WHOLE for cell in there):
        return [None if cell is None else int(cell) for cell in cells]
    return cells
