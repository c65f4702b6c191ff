"""What an input of an exported model holds: kinds, parts of dates, seconds; which values have a literal."""

from __future__ import annotations

from typing import Any

from likely.errors import UsageError
from likely.schema import Column
from likely.sources.date_parts import part_of
from likely.sources.number_formats import TYPED_TIMES, are_times

EXACT = 2**53  # integers beyond are no longer apart as floating-point numbers
PARTS = {
    "weekday": ("an English name (Monday)", "a number (Monday is 1)"),
    "month": ("an English name (January)", "a number (January is 1)"),
    "hour": ("a whole number from 0 to 23", "a number from 0 to 23"),
}


def meaning(column: Column) -> str:
    """What a cell of the column must hold where the caller makes it; empty for a column of the table as it is."""
    part = part_of(column)
    if part is not None:
        return f"{part.part} of {part.origin!r} in UTC, as {PARTS[part.part][column.kind == 'number']}"
    if not are_times(column.form):
        return ""
    if column.form == TYPED_TIMES:
        return "seconds: of a date or timestamp since 1970-01-01 in UTC, of a time of day since midnight"
    return "seconds since 1970-01-01" if column.form.startswith("d") else "seconds"


def check_literals(column: Column, language: str) -> None:
    """Refuse categories that are neither text, nor number, nor truth value."""
    for value in column.values:
        if not isinstance(value, (str, bool, int, float)):
            raise UsageError(
                f"column {column.name!r} has the category {str(value)!r} ({type(value).__name__}), which has no literal in "
                f"{language}",
                column=column.name,
                remedy="learn it as text or as a number",
            )


def are_numbers(column: Column) -> bool:
    """Whether the values of a category are numbers or truth values that floating-point numbers keep apart."""
    numbers = all(isinstance(value, (bool, int, float)) for value in column.values)
    return bool(column.values) and numbers and all(abs(value) <= EXACT for value in column.values)


def plain(value: Any) -> Any:
    """A value as JSON has it: dates and the like as text."""
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)
