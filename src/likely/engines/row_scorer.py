"""Scores and terms of single rows in microseconds: the tables of the scorer, read directly from a dict of cells.

A row is a batch of one and has one formula. Here the same tables are read without making a batch of the row, and their lines
are added in the order of the kernels. A cell of an unusual type (text in a column of numbers, a date, infinity) is not read
here: the row is `Unusual`, and the caller scores it as a batch.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines.scorer import Scorer
from likely.families.likelihood_form import ScoringLoop
from likely.schema import CATEGORY, TEXT, Column, is_missing
from likely.sources import Batch, Frame, MissingTokens
from likely.sources.cell_values import is_missing_token, missing_numbers
from likely.sources.row_access import cell

Array = NDArray[np.float64]
Row = Mapping[str, Any]
SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1  # integers of Arrow


class UnusualCellError(Exception):
    """A cell that needs the table reader, which interprets it or raises an error with the reason."""


@dataclass(frozen=True)
class RowTerms:
    """Terms of one row for its explanation: log joint, cells, the term of each block, and the words of text blocks."""

    joint: Array  # by class
    cells: Mapping[str, Any]  # by column; None where missing
    terms: Mapping[int, Array]  # by block, by class
    words: Mapping[int, list[tuple[str, float, Array]]]  # by block of text: word, count, term

    @staticmethod
    def of(scorer: Scorer, batch: Batch) -> RowTerms:
        """Terms of a batch of one row."""
        cells = {column.name: cell(batch, column) for column in scorer.schema.columns}
        terms = {i: scorer.term(batch, i)[0] for i in scorer.order}
        return RowTerms(scorer.log_joint(batch)[0], cells, terms, {i: scorer.words(batch, i) for i in scorer.texts})


@dataclass(frozen=True)
class _Category:
    """The code of a value of one categorical column; `known` holds the codes of the values that were seen, and of None."""

    column: Column
    tokens: tuple[str, ...]
    known: dict[Any, int]

    @staticmethod
    def of(column: Column, gaps: MissingTokens) -> _Category:
        """Codes as in a table: the values, then unseen, then missing."""
        return _Category(column, gaps.of(column.name), {**column.code, None: len(column.values) + 1})

    def code(self, row: Row) -> int:
        """Code of the cell of this column."""
        value = row.get(self.column.name)
        try:
            return self.known[value]
        except (KeyError, TypeError):
            return self._other_spelling(value)

    def cell(self, row: Row) -> Any:
        """Value in the cell of this column; None where it is missing."""
        return None if self.code(row) > len(self.column.values) else row[self.column.name]

    def _other_spelling(self, value: Any) -> int:
        kind = type(value)
        if kind is str:
            try:
                value.encode()
            except UnicodeEncodeError:
                raise UnusualCellError from None
        elif kind is float:
            if math.isinf(value):
                raise UnusualCellError
        elif kind is not bool and not (kind is int and SMALLEST <= value <= LARGEST):
            raise UnusualCellError
        if is_missing(value) or is_missing_token(value, self.tokens):
            return len(self.column.values) + 1
        return self.column.codes([value])[0]


@dataclass(frozen=True)
class _Number:
    """The number in a column; NaN where it is missing."""

    name: str
    gaps: tuple[float, ...]

    def read(self, row: Row) -> float:
        """Number in the cell of this column."""
        value = row.get(self.name)
        kind = type(value)
        if kind is int and not SMALLEST <= value <= LARGEST:  # type: ignore[operator]
            raise UnusualCellError
        if kind is float or kind is int or kind is bool:
            number = float(value)  # type: ignore[arg-type]
            if math.isinf(number):
                raise UnusualCellError
            return math.nan if self.gaps and number in self.gaps else number
        if value is None:
            return math.nan
        raise UnusualCellError


class RowScorer:
    """Scorer of single rows: the tables of a scorer, concatenated, and functions from a row to row indexes of the tables.

    Parameters
    ----------
    scorer : Scorer
        The parameters of the model.
    gaps : MissingTokens
        Texts and numbers that stand for a missing cell.
    """

    def __init__(self, scorer: Scorer, gaps: MissingTokens) -> None:
        self.scorer, self.gaps = scorer, gaps
        self._names = frozenset(column.name for column in scorer.schema.columns)
        self._texts = scorer.texts
        self._forms: list[Any] = [parameters.likelihood for parameters in scorer.parameters]
        base = scorer.log_prior if scorer.bias is None else scorer.log_prior + scorer.bias
        self._readers: list[Callable[[Row], int]] = []
        self._place: dict[str, tuple[int, int]] = {}  # of the table of a single column: number of the reader, first line
        tables = [base[None]]
        first = 1
        for i in scorer.of(ScoringLoop.LOOKUP):
            self._readers.append(self._reader(i, first))
            if len(scorer.parameters[i].columns) == 1:
                self._place[scorer.parameters[i].columns[0]] = (len(self._readers), first)
            tables.append(self._forms[i].table)
            first += len(self._forms[i].table)
        self._interactions = []
        for i in scorer.of(ScoringLoop.CELLS):
            self._interactions.append((self._members(i), first))
            tables.append(self._forms[i].table)
            first += len(self._forms[i].table)
        self._table = np.ascontiguousarray(np.concatenate(tables))
        self._curves = [self._forms[i] for i in scorer.of(ScoringLoop.PARABOLA)]
        self._curve_numbers = [self._number(scorer.parameters[i].columns[0]) for i in scorer.of(ScoringLoop.PARABOLA)]
        self._rest = [*scorer.of(ScoringLoop.LINE), *scorer.of(ScoringLoop.OWN)]

    def __reduce__(self) -> tuple[Any, ...]:
        return RowScorer, (self.scorer, self.gaps)

    def _number(self, name: str) -> _Number:
        return _Number(name, missing_numbers(self.gaps.of(name)))

    def _reader(self, block: int, first: int) -> Callable[[Row], int]:
        """Function from a row to its index in the table of a block."""
        form, names = self._forms[block], self.scorer.parameters[block].columns
        missing = first + len(form.table) - 1
        if form.reads == "bins":
            return _bin_reader(self._number(names[0]), form.bin_edges.tolist(), first, missing)
        if form.reads != "category":
            number, code = self._number(names[0]), form.code
            return lambda row: first + code(number.read(row))
        categories = [_Category.of(self.scorer.schema.by_name[name], self.gaps) for name in names]
        if len(categories) == 1:
            return _value_reader(categories[0], first)
        sizes = [len(each.column.values) + 2 for each in categories]

        def line(row: Row) -> int:
            code = 0
            for each, size in zip(categories, sizes, strict=True):
                code = code * size + each.code(row)
            return first + code

        return line

    def _members(self, block: int) -> list[tuple[int, list[int]]]:
        """For each column of an interaction: the number of its reader, and its offset for each index of the table."""
        members = []
        for name, offsets in zip(self.scorer.parameters[block].columns, self._forms[block].maps, strict=True):
            reader, first = self._place[name]
            members.append((reader, [0] * first + offsets.tolist()))
        return members

    def log_joint(self, row: Row) -> Array:
        """Log P(class) + Σ log P(cells of a block | class); UnusualCellError if the table reader is needed.

        Parameters
        ----------
        row : dict
            Column → value; an absent column is a missing cell.
        """
        if self._names.isdisjoint(row):
            raise UnusualCellError
        lines = [0]
        lines.extend([read(row) for read in self._readers])
        for members, first in self._interactions:
            own = 0
            for place, offsets in members:
                own += offsets[lines[place]]
            if own >= 0:
                lines.append(first + own)
        terms = self._table.take(lines, 0)
        for i in self._texts:
            terms[0] += self._text(row, i)
        joint: Array = np.add.reduce(terms, 0)
        if self._curves:
            joint = self._add_curves(row, joint)
        for i in self._rest:
            joint += self._other_term(row, i)
        return joint

    def joint_or_none(self, row: Row) -> Array | None:
        """Log joint of one row; None if the table reader is needed, which may also warn of a misspelt column."""
        if not (row.keys() <= self._names or self._names <= row.keys()):
            return None
        try:
            return self.log_joint(row)
        except UnusualCellError:
            return None

    def terms_or_none(self, row: Row) -> RowTerms | None:
        """Terms and cells of one row; None if the table reader is needed."""
        joint = self.joint_or_none(row)
        if joint is None:
            return None
        lines = [0, *(read(row) for read in self._readers)]
        tables = self._table[lines[1:]] + 0.0  # no negative zero
        terms = dict(zip(self.scorer.of(ScoringLoop.LOOKUP), tables, strict=True))
        for i, (members, first) in zip(self.scorer.of(ScoringLoop.CELLS), self._interactions, strict=True):
            place = sum(offsets[lines[reader]] for reader, offsets in members)
            terms[i] = self._table[first + place] if place >= 0 else np.zeros_like(joint)
        terms |= {i: self._text(row, i) for i in self._texts}
        terms |= {i: self._other_term(row, i) for i in (*self.scorer.of(ScoringLoop.PARABOLA), *self._rest)}
        words = {i: self.scorer.words(self._frame(row, self.scorer.parameters[i].columns[0]), i) for i in self._texts}
        return RowTerms(joint, {c.name: self._cell(row, c) for c in self.scorer.schema.columns}, terms, words)

    def _cell(self, row: Row, column: Column) -> Any:
        """Value in a cell; None where it is missing."""
        if column.kind == CATEGORY:
            return _Category.of(column, self.gaps).cell(row)
        if column.kind == TEXT:
            return cell(self._frame(row, column.name), column)
        number = self._number(column.name).read(row)
        return None if math.isnan(number) else number

    def _add_curves(self, row: Row, joint: Array) -> Array:
        """Add the Gaussian terms, one after the other."""
        with np.errstate(over="ignore", invalid="ignore"):
            for form, number in zip(self._curves, self._curve_numbers, strict=True):
                x = number.read(row)
                if not math.isnan(x):
                    deviation = x - form.mean
                    joint += form.peak + form.curve * (deviation * deviation)
        if not np.isfinite(joint).all():  # impossible, or so far that the square overflows
            raise UnusualCellError
        return joint

    def _text(self, row: Row, block: int) -> Array:
        """Term of a block of text."""
        found: Array = self.scorer.term(self._frame(row, self.scorer.parameters[block].columns[0]), block)[0]
        return found

    def _frame(self, row: Row, name: str) -> Frame:
        """The text in a cell as a table of one cell, which the tokenizer reads."""
        text = row.get(name)
        if text is not None and type(text) is not str:
            raise UnusualCellError
        return Frame({name: [text]}, 1, 0, self.gaps)

    def _other_term(self, row: Row, block: int) -> Array:
        """Term of a block of any other form."""
        columns = [self.scorer.schema.by_name[name] for name in self.scorer.parameters[block].columns]
        codes = [_Category.of(column, self.gaps).code(row) for column in columns if column.kind == CATEGORY]
        numbers = [self._number(c.name).read(row) for c in columns if c.kind not in (CATEGORY, TEXT)]
        term = np.zeros((1, self._table.shape[1]))
        self._forms[block].add(np.array([codes], np.int64), np.array([numbers], np.float64), term)
        found: Array = term[0]
        return found


def _bin_reader(number: _Number, edges: list[float], first: int, missing: int) -> Callable[[Row], int]:
    """Function from a row to the table index of the bin of a number."""
    name, slow = number.name, number.read
    exact = () if number.gaps else (float, int)
    reach = 1 << 53  # integers up to here are exact as float64

    def line(row: Row) -> int:
        value = row.get(name)
        if type(value) in exact and -reach < value < reach:  # type: ignore[operator]
            return first + bisect_right(edges, value)  # type: ignore[type-var]
        x = slow(row)
        return missing if math.isnan(x) else first + bisect_right(edges, x)

    return line


def _value_reader(category: _Category, first: int) -> Callable[[Row], int]:
    """Function from a row to the table index of the value of a category."""
    name, other = category.column.name, category.code
    known = {value: first + code for value, code in category.known.items()}

    def line(row: Row) -> int:
        try:
            return known[row.get(name)]
        except (KeyError, TypeError):
            return first + other(row)

    return line
