"""CSV parser based on Python's csv module, for irregular files.

It is slower than Arrow, but reports the line of every fault: a row that cannot be parsed costs only its first line, and
parsing continues with the next.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from likely.sources.arrow_arrays import arrow_array

LONGEST_CELL = 1 << 26
BATCH_CELLS = 1 << 20
FEWEST_ROWS = 32  # minimum rows of a batch: some work is done once for each batch and column
REASONS = {
    "unexpected end of data": "opens a quote that is never closed",
    "field larger than field limit": "opens a quote that is not closed for a very long time, or is not text",
    "expected after": "has a quote in the middle of a cell: write it twice within a quoted cell",
}

Fault = Callable[[int, str], None]


class LineReader:
    """Lines of a file with their numbers; the lines of a faulty row can be put back."""

    def __init__(self, file: Iterator[str]) -> None:
        self._file, self._again = file, deque[str]()
        self._taken: list[str] = []
        self._before = 0  # lines before the current row

    def __iter__(self) -> LineReader:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._file)
        self._taken.append(line)
        return line

    def begin(self) -> None:
        """Start a new row."""
        self._before += len(self._taken)
        self._taken = []

    def give_back(self) -> None:
        """Put back all lines of this row except the first."""
        self._again.extendleft(reversed(self._taken[1:]))
        del self._taken[1:]

    @property
    def first(self) -> int:
        """Number of the first line of the row."""
        return self._before + 1

    @property
    def count(self) -> int:
        """Number of lines of the row so far."""
        return len(self._taken)


def rows(
    path: str, delimiter: str, cells: int, fault: Fault, *, spaced: bool, header: bool = True
) -> Iterator[list[str]]:
    """Rows of a file after its header; a fault is passed to `fault` with its line. Blank lines are skipped."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        lines = LineReader(file)
        parser = read_csv(lines, delimiter, spaced)
        if header:
            next(parser, None)
        while True:
            lines.begin()
            try:
                row = next(parser)
            except StopIteration:
                return
            except csv.Error as error:
                fault(lines.first, next((reason for known, reason in REASONS.items() if known in str(error)), str(error)))
                lines.give_back()
                parser = read_csv(lines, delimiter, spaced)  # the old reader is in the middle of a cell
                continue
            if len(row) == cells:
                yield row
            elif row:
                until = f" (up to line {lines.first + lines.count - 1})" if lines.count > 1 else ""
                found = "1 cell" if len(row) == 1 else f"{len(row)} cells"
                fault(lines.first, f"has {found} where the {'header' if header else 'first line'} has {cells}{until}")


def read_csv(lines: Iterator[str], delimiter: str, spaced: bool) -> Iterator[list[str]]:
    """Python's csv reader, strict about quotes; `spaced` skips blanks after delimiters."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))  # a setting of the process: never reduced
    return csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=spaced)


def tables(
    found: Iterator[list[str]], places: list[int], cells: int, most_rows: int, most_bytes: int
) -> Iterator[tuple[int, list[Any]]]:
    """Batches: number of rows, and the requested columns as Arrow text."""
    most = min(most_rows, max(FEWEST_ROWS, BATCH_CELLS // max(cells, 1)))
    batch: list[list[str]] = []
    size = 0
    for row in found:
        batch.append(row)
        size += sum(map(len, row))
        if len(batch) == most or size >= most_bytes:
            yield len(batch), _columns(batch, places)
            batch, size = [], 0
    if batch:
        yield len(batch), _columns(batch, places)


def _columns(batch: list[list[str]], places: list[int]) -> list[Any]:
    import pyarrow as pa

    columns = list(zip(*batch, strict=True))
    return [arrow_array(columns[i], pa.string()) for i in places]
