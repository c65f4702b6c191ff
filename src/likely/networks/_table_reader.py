"""Rows of a table that is read chunk by chunk: a column has the values of all chunks so far, and no rows are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from likely.kernels.parallel import in_parallel
from likely.networks.rows import (
    FEW_NUMBERS,
    Array,
    Rows,
    Wanted,
    asked_kind,
    assembled,
    categories_in,
    check_weights,
    column_and_cells,
    few_values,
    few_whole,
    no_value,
    numbers_in,
    require_columns,
    require_weight,
    weights_in,
)
from likely.schema import CATEGORY, NUMBER, Column
from likely.sources import Batch, require_rows

EMPTY = "empty"  # a column of numbers without a value so far
FEW = "few"  # numbers that are whole, and few different ones: categories for as long as this is so
STRENGTH = {EMPTY: 0, FEW: 1, NUMBER: 2, CATEGORY: 3}  # what a column is, once it holds any of it
CHUNK = 1 << 21  # cells that are coded at a time


class KindChangedError(Exception):
    """A later chunk shows that a column is of another kind: the table is to be read again."""

    def __init__(self, name: str, mode: str) -> None:
        self.name, self.mode = name, mode
        super().__init__(f"{name!r} is {mode}")


class TableReader:
    """Reads the chunks of one table, one after the other.

    Parameters
    ----------
    wanted : Wanted
        The columns, as for `read_rows`.
    modes : mapping of str to str
        What is known of columns: categories, numbers, or few whole numbers.

    Attributes
    ----------
    columns : dict of str to Column
        The columns with the values of all chunks so far.

    """

    def __init__(self, wanted: Wanted, modes: Mapping[str, str] | None = None) -> None:
        self.wanted = wanted
        self.modes: dict[str, str] = dict(modes or {})
        self.columns: dict[str, Column] = {}
        self.names: list[str] | None = None
        self.rows = 0
        self._there: set[str] = set()
        self._any_weight = wanted.weights is None

    def read(self, batches: Sequence[Batch]) -> Rows:
        """The rows of the next batches, in the columns as they are then known."""
        if self.names is None:
            every = batches[0].names if self.wanted.names is None else self.wanted.names
            aside = self.wanted.weights if isinstance(self.wanted.weights, str) else None
            self.names = [name for name in every if name != aside]
        weights = self._weights(batches)
        self._there.update(name for batch in batches for name in batch.names)
        found = in_parallel(lambda name: self._cells(name, batches), self.names)
        for name, (column, _, mode) in zip(self.names, found, strict=True):
            self.columns[name] = column
            if mode is not None:
                self.modes[name] = mode
        self.rows += sum(batch.rows for batch in batches)
        return assembled([(column, cells) for column, cells, _ in found], weights)

    def finish(self, label: str) -> None:
        """Refuse a table without rows or weight, or without a column or a value of some node."""
        require_rows(self.rows, label)
        if self.wanted.weights is not None and not isinstance(self.wanted.weights, str):
            check_weights(np.asarray(self.wanted.weights, dtype=np.float64).reshape(-1), self.rows)
        require_weight(self._any_weight)
        require_columns(self.names or (), self._there, self.wanted.hidden, label)
        self.columns = settled(self.columns, self.modes, self.wanted.known or {})

    def _weights(self, batches: Sequence[Batch]) -> Array:
        given, rows = self.wanted.weights, sum(batch.rows for batch in batches)
        if given is None:
            return np.zeros(0)
        if isinstance(given, str):
            found = weights_in(given, batches)
        else:
            found = np.asarray(given, dtype=np.float64).reshape(-1)[self.rows : self.rows + rows]
        check_weights(found, rows)
        self._any_weight = self._any_weight or bool(found.any())
        return found

    def _cells(self, name: str, batches: Sequence[Batch]) -> tuple[Column, Any, str | None]:
        """A node's column, its cells, and what it is known to hold."""
        known = (self.wanted.known or {}).get(name)
        if known is not None:
            return (*column_and_cells(name, batches, self.wanted, self.columns.get(name, known)), None)
        before, rows = self.columns.get(name) or Column(name, CATEGORY), sum(batch.rows for batch in batches)
        present = [batch for batch in batches if name in batch.names]
        mode = self._mode(name, present)
        if mode is None:
            return before, np.full(rows, -1 if before.kind == CATEGORY else np.nan), None
        if mode == CATEGORY:
            return (*_widened(before, *categories_in(name, batches, None, "error")), mode)
        numbers = numbers_in(name, batches)
        if mode == NUMBER:
            return Column(name, NUMBER), numbers, mode
        return self._few(name, numbers, before)

    def _mode(self, name: str, present: Sequence[Batch]) -> str | None:
        """What the column holds; None where the batches do not tell."""
        asked, before = (self.wanted.kinds or {}).get(name), self.modes.get(name)
        if asked is not None:
            return asked_kind(name, asked)
        kinds = {kind for kind, _ in (batch.kind(name) for batch in present) if kind is not None}
        if not kinds:
            return None
        if kinds != {NUMBER}:
            if before in (FEW, NUMBER):
                raise KindChangedError(name, CATEGORY)
            return CATEGORY
        return before if before in (CATEGORY, NUMBER) else FEW

    def _few(self, name: str, numbers: Array, before: Column) -> tuple[Column, Any, str]:
        """Numbers as categories, if they are whole and few; as numbers, if no chunk before had other ones."""
        mode = self.modes.get(name, EMPTY)
        if np.isnan(numbers).all():
            return before, np.full(len(numbers), -1), mode
        few = few_whole(numbers)
        if few is not None:
            column, codes = _widened(before, *few_values(name, numbers, few))
            if len(column.values) <= FEW_NUMBERS:
                return column, codes, FEW
        if mode == FEW:
            raise KindChangedError(name, NUMBER)
        return Column(name, NUMBER), numbers, NUMBER


def _widened(before: Column, column: Column, codes: Any) -> tuple[Column, Any]:
    """The column with the values that it had before, and the codes in it."""
    if not before.values or before.values == column.values:
        return column, codes
    wider = before.union(column)
    return wider, np.array([*wider.codes(column.values), -1])[codes]


def settled(columns: Mapping[str, Column], modes: Mapping[str, str], known: Mapping[str, Column]) -> dict[str, Column]:
    """The columns of a table that has been read to its end; one without any value is refused, or holds numbers."""
    found = dict(columns)
    for name in columns:
        if name not in known and name not in modes:
            raise no_value(name)
        if modes.get(name) == EMPTY:
            found[name] = Column(name, NUMBER)
    return found


def chunks(batches: Iterable[Batch], columns: int | None, cells: int) -> Iterator[list[Batch]]:
    """Batches in lists of about as many cells."""
    held: list[Batch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.rows * (columns or max(len(batch.names), 1))
        if size >= cells:
            yield held
            held, size = [], 0
    if held:
        yield held
