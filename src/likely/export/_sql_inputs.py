"""Cells of a table as SQL expressions: numbers and texts, null where missing."""

from __future__ import annotations

from typing import Any

from likely.export._dialects import Dialect, Expression
from likely.export._expressions import ExpressionWriter, in_parentheses, written
from likely.export._input_meanings import EXACT, check_literals
from likely.export._sql_dates import DateWriter
from likely.export._term_forms import Code, ExportedModel, TextTerm, category_columns, number_columns
from likely.schema import Column
from likely.sources.cell_values import BLANKS, missing_numbers
from likely.sources.date_parts import DatePart, part_of
from likely.sources.missing_tokens import MISSING
from likely.sources.number_formats import are_times

LARGEST = 1.7976931348623157e308
FEW = 64  # values that are compared one by one
NUMBERS, TRUTHS, TEXTS, PARTS = "numbers", "truths", "texts", "parts"


class InputWriter:
    """Expressions of the first stage: one helper column for each column of the model."""

    def __init__(self, scored: ExportedModel, syntax: Dialect, write: ExpressionWriter) -> None:
        self.scored, self.syntax, self.write, self.e = scored, syntax, write, write.e
        self.dates = DateWriter(write)
        self.numbers = {name: f"likely__x{i}" for i, name in enumerate(number_columns(scored))}
        self.categories = {name: f"likely__v{i}" for i, name in enumerate(category_columns(scored))}
        self.texts = {term.column: f"likely__w{i}" for i, term in enumerate(scored.of(TextTerm))}

    def stage(self) -> dict[str, Any]:
        """The helper columns and their expressions."""
        by_name = self.scored.by_name
        found = {helper: self._number(by_name[name]) for name, helper in self.numbers.items()}
        found |= {helper: self._category(by_name[name]) for name, helper in self.categories.items()}
        return found | {helper: self._exact(self._text(name)) for name, helper in self.texts.items()}

    def x(self, name: str) -> Expression:
        """The number of a column, in later stages."""
        return self.write.column(self.numbers[name])

    def refused(self) -> Expression:
        """1 where a number is infinite, which has no answer; else 0."""
        sizes = [self.e.Abs(this=self.x(name)) for name in self.numbers]
        too_large = [self.write.compare("GT", size, self.write.number(LARGEST)) for size in sizes]
        return self.write.case([(self.write.any_of(too_large), self.write.whole(1))], self.write.whole(0))

    def _number(self, column: Column) -> Expression:
        part = part_of(column)
        if part is not None:
            first = self.write.whole(0 if part.part == "hour" else 1)
            return self.e.cast(self.write.total([self._date_part(part), first]), "double")
        if are_times(column.form):
            return self._seconds(column.name, column.form)
        x: Any = self.e.cast(self.write.column(column.name), "double")
        if self.syntax.loose:
            x = self._checked(column.name)
        return self._without_missing(x)

    def _without_missing(self, x: Any) -> Expression:
        """Null for NaN and for numbers that stand for a missing cell."""
        if self.syntax.nan == "equal":
            x = self.e.Nullif(this=x, expression=self.e.cast(self.write.text("NaN"), "double"))
        elif self.syntax.nan == "function":
            x = self.write.case([(self.e.Not(this=self.e.Anonymous(this="IS_NAN", expressions=[x])), x.copy())])
        for number in missing_numbers(self.scored.missing):
            x = self.e.Nullif(this=x, expression=self.write.number(number))
        return x

    def _checked(self, name: str) -> Expression:
        """A number of SQLite, whose columns may hold anything: other text is infinite, so that it has no answer."""
        kind = self.e.Anonymous(this="TYPEOF", expressions=[self.write.column(name)])
        typed = self.e.In(this=kind, expressions=[self.write.text("integer"), self.write.text("real")])
        digits = self.e.Glob(this=self._stripped(name), expression=self.write.text("*[^0-9.eE+-]*"))
        as_number = self.e.cast(self.write.column(name), "double")
        branches = [(typed, as_number), (self._gone(name), self.e.Null())]
        branches.append((self.e.Not(this=self.e.Paren(this=digits)), as_number.copy()))
        return self.write.case(branches, self.e.Literal(this="9e999", is_string=False))

    def _gone(self, name: str) -> Expression:
        """Whether a cell of SQLite is null or a text that stands for a missing cell."""
        tokens = dict.fromkeys((*MISSING, *self.scored.missing))
        token = self.e.In(this=self._stripped(name), expressions=[self.write.text(t) for t in tokens])
        return self.write.any_of([self.write.is_null(self.write.column(name)), token])

    def _stripped(self, name: str) -> Expression:
        text = self.e.cast(self.write.column(name), "text")
        if self.syntax.name == "mysql":
            return self.e.Trim(this=text)
        return self.e.Trim(this=text, expression=self.write.text(BLANKS))

    def _text(self, name: str) -> Expression:
        text: Any = self.e.cast(self.write.column(name), "text")
        if not self.scored.missing:
            return text
        gone = self.e.In(this=self._stripped(name), expressions=[self.write.text(t) for t in self.scored.missing])
        return self.write.case([(self.e.Not(this=gone), text)])

    def _category(self, column: Column) -> Expression:
        how = _compared(column)
        part = part_of(column)
        if part is not None:
            return self._date_part(part)
        if how == NUMBERS:
            return self._without_missing(self.e.cast(self.write.column(column.name), "double"))
        text = self._text(column.name)
        if self.syntax.attach == "distinct":  # a cast keeps the collation of its column, by which texts might be one
            text = self._exact(text)
        return self.e.Lower(this=text) if how == TRUTHS else text

    def _exact(self, text: Any) -> Expression:
        """A text that is compared byte by byte."""
        return self.e.Collate(this=text, expression=self.e.Var(this=self.syntax.binary)) if self.syntax.binary else text

    def _seconds(self, name: str, form: str) -> Expression:
        """Seconds of a column of dates; in SQLite, where any text may be in it, infinite for what is no date."""
        seconds = self.dates.seconds(name, form)
        if not self.syntax.loose:
            return seconds
        unknown = (self.write.is_null(seconds), self.e.Literal(this="9e999", is_string=False))
        return self.write.case([(self._gone(name), self.e.Null()), unknown], seconds.copy())

    def _date_part(self, part: DatePart) -> Expression:
        """Position of the weekday, month or hour of a date, from 0; in SQLite -1, an unseen one, for what is no date."""
        position = self.dates.part(part)
        if not self.syntax.loose:
            return position
        unknown = (self.write.is_null(position), self.write.whole(-1))
        return self.write.case([(self._gone(part.origin), self.e.Null()), unknown], position.copy())

    def code(self, code: Code) -> Expression:
        """Row index (from 1) for the cell of a column."""
        write = self.write
        missing = write.whole(code.size)
        if code.kind == "category":
            return self._category_code(self.scored.by_name[code.column], code.size)
        there = [(write.is_null(self.x(code.column)), missing)]
        if code.kind == "yes":
            yes = write.compare("GT", self.x(code.column), write.number(0.0))
            return write.case([*there, (yes, write.whole(2))], write.whole(1))
        edges = [in_parentheses(written(edge)) for edge in code.edges]
        leaves = [str(i + 1) for i in range(len(code.edges) + 1)]
        return write.case(there, write.binary_search(self.numbers[code.column], edges, leaves))

    def _category_code(self, column: Column, size: int) -> Expression:
        write, helper = self.write, self.categories[column.name]
        missing = (write.is_null(write.column(helper)), write.whole(size))
        how = _compared(column)
        if how == TEXTS and len(column.values) > FEW and self.syntax.arrays and all(map(_is_text, column.values)):
            return write.case([missing], self._place(helper, column))
        branches = [missing]
        for i, value in enumerate(column.values):
            branches.append((self._equals(helper, value, how, column), write.whole(i + 1)))
        return write.case(branches, write.whole(size - 1))

    def _place(self, helper: str, column: Column) -> Expression:
        """Position of a text among very many values, found by the database's own function."""
        e, write = self.e, self.write
        values = e.Array(expressions=[write.text(value) for value in column.values])
        name = "LIST_POSITION" if self.syntax.name == "duckdb" else "ARRAY_POSITION"
        place = e.Anonymous(this=name, expressions=[values, write.column(helper)])
        found = e.Nullif(this=place, expression=write.whole(0)) if self.syntax.name == "spark" else place
        return e.cast(e.Coalesce(this=found, expressions=[write.whole(len(column.values) + 1)]), "int")

    def _equals(self, helper: str, value: Any, how: str, column: Column) -> Expression:
        write, cell = self.write, self.write.column(helper)
        if how == PARTS:
            part = part_of(column)
            assert part is not None
            place = part.values.index(value) if value in part.values else -1
            return write.compare("EQ", cell, write.whole(place))
        if how == NUMBERS:
            return write.compare("EQ", cell, write.number(float(value)))
        if how == TRUTHS:
            known = ("true", "t", "1", "1.0") if value else ("false", "f", "0", "0.0")
            return self.e.In(this=cell, expressions=[write.text(text) for text in known])
        if self.syntax.binary:
            cell = self.e.Collate(this=cell, expression=self.e.Var(this=self.syntax.binary))
        if isinstance(value, str):
            return write.compare("EQ", cell, write.text(value))
        whole = float(value).is_integer() if not isinstance(value, bool) else False
        spelled = (str(int(value)), f"{int(value)}.0") if whole else (str(value), str(value).lower())
        return self.e.In(this=cell, expressions=[write.text(text) for text in dict.fromkeys(spelled)])


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _compared(column: Column) -> str:
    """How the values of a category are compared: as texts, numbers, truth values, or parts of a date."""
    if part_of(column) is not None:
        return PARTS
    check_literals(column, "SQL")
    kinds = {type(value) for value in column.values}
    if kinds == {bool}:
        return TRUTHS
    if kinds and kinds <= {int, float} and all(abs(value) <= EXACT for value in column.values):
        return NUMBERS
    return TEXTS
