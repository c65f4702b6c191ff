"""Parsing of text cells: missing-value tokens, numbers, types of text columns and column names (see docs/data.md)."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import cache
from math import isnan
from typing import Any

from likely.sources.arrow_arrays import arrow_array, arrow_scalar
from likely.sources.missing_tokens import MissingTokens

EMPTY = "every cell is missing"

# Whitespace as in str.strip; that of Arrow and DuckDB is smaller.
BLANKS = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
BLANKS += "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

LONG = 1_000
# Types of a text column, in increasing generality: the maximum over all batches is the type of the file's column.
NOTHING, WHOLE, DECIMAL, TEXT = range(4)
FIRST_FOUR = 4  # cells that decide for most text columns


@cache
def tokens(missing: tuple[str, ...]) -> frozenset[str]:
    """Missing-value tokens as a set."""
    return frozenset(missing)


@cache
def missing_numbers(missing: tuple[str, ...]) -> tuple[float, ...]:
    """Missing-value tokens that are numbers: with missing=["-999"], the number -999 is missing, too."""
    found = []
    for token in missing:
        try:
            number = to_number(token)
        except ValueError:
            continue
        if not isnan(number):  # NaN is always missing
            found.append(number)
    return tuple(found)


def to_number(value: Any) -> float:
    """A value as a float by the rule of Arrow: ASCII digits without underscores."""
    if isinstance(value, str) and (not value.isascii() or "_" in value):
        raise ValueError(value)
    return float(value)


def number_or_truth(value: Any) -> float:
    """A value as a float; the texts True and False are 1 and 0."""
    text = value.strip().lower() if isinstance(value, str) else ""
    return float(text == "true") if text in ("true", "false") else to_number(value)


def is_missing_token(value: Any, missing: tuple[str, ...]) -> bool:
    """Whether a value that is not null is a missing-value token, as text or as an equal number."""
    if isinstance(value, str):
        return value.strip() in tokens(missing)
    numbers = missing_numbers(missing)
    return bool(numbers) and not isinstance(value, bool) and value in numbers


def text_to_numbers(column: Any, missing: tuple[str, ...]) -> Any:
    """A text column as Arrow floats, null where missing; ArrowInvalid if a cell is not a number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(column, pa.float64())  # most columns have neither blanks nor tokens
    except pa.ArrowInvalid:
        return pc.cast(cleaned(column, missing), pa.float64())


def text_to_whole_numbers(column: Any, missing: tuple[str, ...]) -> Any:
    """A text column as Arrow integers, null where missing; ArrowInvalid if a cell is not an integer."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return pc.cast(cleaned(column, missing), pa.int64())


def cleaned(column: Any, missing: tuple[str, ...]) -> Any:
    """A text column with its cells stripped, null for missing-value tokens."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim(column, BLANKS)
    gone = pc.is_in(trimmed, value_set=arrow_array(sorted(tokens(missing)), trimmed.type))
    return pc.if_else(gone, pa.nulls(1, trimmed.type)[0], trimmed)


def record_missing(column: Any, read: Any, name: str, start: int, gaps: MissingTokens) -> None:
    """Record the text cells that were read as missing in a numeric column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    gone = read.is_null(nan_is_null=True) if pa.types.is_floating(read.type) else read.is_null()
    count = gone.true_count if read.null_count or pa.types.is_floating(read.type) else 0
    if not count:
        return
    blank = column.null_count if gaps.blanks else 0
    cells = column.filter(pc.and_(gone, column.is_valid())) if count > column.null_count else column[:0]
    found = [(pair["values"], pair["counts"]) for pair in pc.value_counts(cells).to_pylist()]
    gaps.record(name, start, [*found, ("", blank)])


def detect_text_type(column: Any, missing: tuple[str, ...]) -> int:
    """Type of a text column: NOTHING, WHOLE, DECIMAL or TEXT."""
    import pyarrow as pa

    if starts_as_text(column, missing):  # decides for most columns, at a tenth of the cost of a failing cast
        return TEXT
    first = _first(column, missing)
    kept = column
    if not _reads_as(kept, pa.float64()):
        kept = cleaned(column, missing)
        if not _reads_as(kept, pa.float64()):
            return TEXT
    if kept.null_count == len(kept):
        return NOTHING
    if _has_code(kept):
        return TEXT
    whole = first is None or first.strip().lstrip("-").isdigit()
    return WHOLE if whole and _reads_as(kept, pa.int64()) else DECIMAL


def starts_as_text(column: Any, missing: tuple[str, ...]) -> bool:
    """Whether the first cell that is not missing, among the first four of a text column, is no number."""
    first = _first(column, missing)
    return first is not None and not _is_number(first)


def _first(column: Any, missing: tuple[str, ...]) -> str | None:
    """The first cell that is not missing, among the first four."""
    cells = (cell.as_py() for cell in column[:FIRST_FOUR])
    return next((cell for cell in cells if cell is not None and not is_missing_token(cell, missing)), None)


def _is_number(text: str) -> bool:
    try:
        to_number(text)
    except ValueError:
        return False
    return True


def _reads_as(column: Any, kind: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.cast(column, kind)
    except pa.ArrowInvalid:
        return False
    return True


def _has_code(column: Any) -> bool:
    """Whether a cell has a leading zero, as 01234: it is a code, and a number would lose the zero."""
    import pyarrow.compute as pc

    if len(column) > LONG:  # a regular expression costs ten times a comparison, but is one call instead of five
        zero, point = pc.starts_with(column, "0"), pc.starts_with(column, "0.")
        lengths = pc.binary_length(column)
        column = column.filter(pc.and_(pc.and_not(zero, point), pc.greater(lengths, arrow_scalar(1, lengths.type))))
    return bool(pc.any(pc.match_substring_regex(column, "^0[0-9]")).as_py())


def numbered(columns: int) -> list[str]:
    """Names c1, c2, … of columns without a header."""
    return [f"c{i + 1}" for i in range(columns)]


FOLDED = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)  # no database folds other letters than these


def name_columns(
    names: Sequence[Any], label: str, remedy: str = "rename one of them", *, folds_case: bool = False
) -> list[str]:
    """Column names as text, unchanged; duplicate names and names that cannot be encoded are refused.

    `folds_case`: names that differ only by case are one, as in most databases.
    """
    from likely.errors import DataError

    given = [str(name) for name in names]
    seen: set[str] = set()
    folded: dict[str, str] = {}
    for name in given:
        if name in seen:
            raise DataError(f"column {name!r} occurs twice in {label}", column=name, remedy=remedy)
        if folds_case and folded.setdefault(name.translate(FOLDED), name) != name:
            other = folded[name.translate(FOLDED)]
            raise DataError(
                f"columns {other!r} and {name!r} of {label} differ only by case, and are one to it", column=name, remedy=remedy
            )
        if "\0" in name or not is_text(name):
            raise DataError("has a name with a NUL or half a character in it", column=name, remedy="rename it")
        seen.add(name)
    return given


def is_text(text: str) -> bool:
    """Whether a text can be encoded as UTF-8: a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def half_characters(values: Sequence[Any]) -> int | None:
    """Index of the first text with a lone surrogate; None if there is none."""
    return next((i for i, value in enumerate(values) if isinstance(value, str) and not is_text(value)), None)
