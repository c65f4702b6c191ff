"""What a cell of text says: whether it stands for missing, and which number it is (see docs/data.md)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import isnan
from typing import Any

from likely.sources.arrays import arrow_array, arrow_scalar
from likely.sources.gaps import Gaps

EMPTY = "every cell is missing"

# What Python's str.strip takes away: Arrow and DuckDB each have a shorter idea of a blank.
BLANKS = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
BLANKS += "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

LONG = 1_000
# What a column of text holds, each more than the one before: the largest of all batches holds for the file.
NOTHING, WHOLE, DECIMAL, TEXT = range(4)


@cache
def tokens(missing: tuple[str, ...]) -> frozenset[str]:
    """The texts that stand for missing, to look one up."""
    return frozenset(missing)


@cache
def missing_numbers(missing: tuple[str, ...]) -> tuple[float, ...]:
    """The numbers among the texts that stand for missing: with missing=["-999"], a number -999 is missing, too."""
    found = []
    for token in missing:
        try:
            number = to_number(token)
        except ValueError:
            continue
        if not isnan(number):  # which is missing in any case
            found.append(number)
    return tuple(found)


def to_number(value: Any) -> float:
    """A value as a float, under Arrow's rule for text: plain digits, no 1_000, no digits of other scripts."""
    if isinstance(value, str) and (not value.isascii() or "_" in value):
        raise ValueError(value)
    return float(value)


def number_or_truth(value: Any) -> float:
    """A value as a float; the texts True and False are what they say, as the values themselves are."""
    said = value.strip().lower() if isinstance(value, str) else ""
    return float(said == "true") if said in ("true", "false") else to_number(value)


def stands_for_missing(value: Any, missing: tuple[str, ...]) -> bool:
    """Whether a value that is not null stands for missing all the same: by its text, or as the same number."""
    if isinstance(value, str):
        return value.strip() in tokens(missing)
    numbers = missing_numbers(missing)
    return bool(numbers) and not isinstance(value, bool) and value in numbers


def text_to_numbers(column: Any, missing: tuple[str, ...]) -> Any:
    """A column of text as Arrow floats, null where missing; ArrowInvalid where a cell is no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(column, pa.float64())  # most columns have no blanks and no tokens: one look is enough
    except pa.ArrowInvalid:
        return pc.cast(cleaned(column, missing), pa.float64())


def text_to_whole_numbers(column: Any, missing: tuple[str, ...]) -> Any:
    """A column of text as Arrow integers, null where missing; ArrowInvalid where a cell is no whole number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return pc.cast(cleaned(column, missing), pa.int64())


def cleaned(column: Any, missing: tuple[str, ...]) -> Any:
    """A column of text without blanks around its cells, null where they stand for missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim(column, BLANKS)
    gone = pc.is_in(trimmed, value_set=arrow_array(sorted(tokens(missing)), trimmed.type))
    return pc.if_else(gone, pa.nulls(1, trimmed.type)[0], trimmed)


def note_gaps(column: Any, read: Any, name: str, start: int, gaps: Gaps) -> None:
    """Record what was taken for missing among cells of text that were read as numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    gone = read.is_null(nan_is_null=True) if pa.types.is_floating(read.type) else read.is_null()
    count = gone.true_count if read.null_count or pa.types.is_floating(read.type) else 0
    if not count:
        return
    blank = column.null_count if gaps.blanks else 0
    cells = column.filter(pc.and_(gone, column.is_valid())) if count > column.null_count else column[:0]
    found = [(pair["values"], pair["counts"]) for pair in pc.value_counts(cells).to_pylist()]
    gaps.note(name, start, [*found, ("", blank)])


def nature(column: Any, missing: tuple[str, ...]) -> int:
    """What a column of text holds: nothing, whole numbers, numbers or text."""
    import pyarrow as pa

    first = _first(column, missing)  # which tells most columns, at a tenth of the cost of a cast that fails
    if first is not None and not _is_number(first):
        return TEXT
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


def _first(column: Any, missing: tuple[str, ...]) -> str | None:
    """The first cell that is not missing, if it is one of the first few."""
    cells = (cell.as_py() for cell in column[:4])
    return next((cell for cell in cells if cell is not None and not stands_for_missing(cell, missing)), None)


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
    """Whether a cell starts with a zero and another digit: 01234 is a code, and a number would lose its zero."""
    import pyarrow.compute as pc

    if len(column) > LONG:  # a pattern costs ten times what a comparison does, but is one call and not five
        zero, point = pc.starts_with(column, "0"), pc.starts_with(column, "0.")
        lengths = pc.binary_length(column)
        column = column.filter(pc.and_(pc.and_not(zero, point), pc.greater(lengths, arrow_scalar(1, lengths.type))))
    return bool(pc.any(pc.match_substring_regex(column, "^0[0-9]")).as_py())


def numbered(columns: int) -> list[str]:
    """The names c1, c2, … of columns that nobody has named."""
    return [f"c{i + 1}" for i in range(columns)]


def name_columns(names: Sequence[Any], label: str, remedy: str = "rename one of them") -> list[str]:
    """The names of the columns as text, exactly as they are; names that cannot be told apart or written are refused."""
    from likely.errors import DataError

    given = [str(name) for name in names]
    seen: set[str] = set()
    for name in given:
        if name in seen:
            raise DataError(f"column {name!r} stands twice in {label}", column=name, remedy=remedy)
        if "\0" in name or not is_text(name):
            raise DataError("has a name with a NUL or half a character in it", column=name, remedy="rename it")
        seen.add(name)
    return given


def is_text(text: str) -> bool:
    """Whether a text can be written down: half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def half_characters(values: Sequence[Any]) -> int | None:
    """The first place with text that has half a surrogate pair in it, which no file can hold; None if all is well."""
    return next((i for i, value in enumerate(values) if isinstance(value, str) and not is_text(value)), None)
