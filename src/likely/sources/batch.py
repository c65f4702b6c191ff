"""Batches of rows, with access to columns as numbers, as category codes and as texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError
from likely.kernels.parallel import cached_property
from likely.schema import CATEGORY, NUMBER, Column, is_missing, one_of_alike, plain
from likely.sources._document_columns import arrow_documents, string_documents
from likely.sources._number_columns import arrow_numbers, list_numbers
from likely.sources._text_dictionaries import text_values
from likely.sources.arrow_arrays import DAMAGED, arrow_array, dictionary_indices, is_text_dictionary
from likely.sources.cell_values import EMPTY, half_characters, is_missing_token, missing_numbers, tokens
from likely.sources.date_parts import DatePart
from likely.sources.missing_tokens import MissingTokens
from likely.sources.number_formats import PLAIN, TYPED_TIMES, FormatResolver, NumberFormat
from likely.tokenizer.documents import Documents, Strings

Array = NDArray[np.float64]
SHORT = 1 << 18  # rows: codes of larger batches are not cached


@dataclass(frozen=True)
class Coded:
    """A categorical column as codes: code low + i is value i of `values`; other codes are missing cells."""

    codes: NDArray[Any]
    values: Sequence[Any]
    low: int = 0


class Batch(Protocol):
    """Rows of a table from any source."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    @property
    def start(self) -> int:
        """Number of rows of the source before this batch."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""

    def kind(self, name: str) -> tuple[str | None, str]:
        """Inferred kind of a column, and the reason; None if the column cannot be used."""

    def numbers(self, names: Sequence[str], start: int, stop: int) -> Array:
        """Columns of a range of rows as float64, NaN where missing."""

    def coded(self, name: str) -> Coded:
        """A column as codes of its distinct values."""

    def whole_numbers(self, names: Sequence[str]) -> NDArray[Any] | None:
        """The columns as one array of integers without a copy; None if they are stored otherwise."""

    def documents(self, name: str) -> Documents | Strings:
        """A column as texts."""


@dataclass(frozen=True)
class Matrix:
    """Rows of a two-dimensional array, without a copy."""

    array: NDArray[Any]
    columns: tuple[str, ...]
    start: int = 0
    missing: MissingTokens = field(default_factory=MissingTokens)
    beside: dict[str, Array] = field(default_factory=dict, compare=False)  # additional columns of another type, such as weights

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.array)

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return (*self.columns, *self.beside) if self.beside else self.columns

    @cached_property
    def place(self) -> dict[str, int]:
        """Index of each column."""
        return {name: j for j, name in enumerate(self.columns)}

    def kind(self, name: str) -> tuple[str | None, str]:
        """Kind by the dtype of the array."""
        return (CATEGORY, "true or false") if self.array.dtype == bool else (NUMBER, f"{self.array.dtype} array")

    def numbers(self, names: Sequence[str], start: int, stop: int) -> Array:
        """The array itself if all columns are requested in order; otherwise a copy of the requested ones."""
        if self.beside and names and set(names) <= self.beside.keys():  # these are requested separately
            return np.column_stack([self.beside[name][start:stop] for name in names])
        part = self.array[start:stop]
        if tuple(names) != self.columns:
            part = part[:, [self.place[name] for name in names]]
        if not missing_numbers(self.missing.tokens):
            return np.ascontiguousarray(part, dtype=np.float64)
        x = np.array(part, dtype=np.float64)  # a copy: the array belongs to the caller
        complete = len(part) == self.rows  # ranges of rows may be read repeatedly and must not be recorded twice
        for j, name in enumerate(names):
            gaps = self.missing if complete else replace(self.missing, taken={})
            x[:, j] = without_numbers(x[:, j], name, self.start, gaps)
        return x

    def coded(self, name: str) -> Coded:
        """Integers in a small range are their own codes; other numbers are encoded."""
        column = self.array[:, self.place[name]]
        if missing_numbers(self.missing.of(name)):
            return without_missing(finite(code_numbers(column), name, self.start), name, self.start, self.missing)
        if column.dtype.kind in "iu" and len(column):
            low, high = int(column.min()), int(column.max())
            if high - low < max(1024, len(column)):
                if column.dtype == np.uint64:  # mixing with int64 would give floats
                    return Coded((column - column.min()).astype(np.int64), range(low, high + 1))
                return Coded(column, range(low, high + 1), low)
        return finite(code_numbers(column), name, self.start)

    def whole_numbers(self, names: Sequence[str]) -> NDArray[Any] | None:
        """The array itself, if it has an integer dtype and all columns are requested in order."""
        plain = self.array.dtype in (np.int64, np.int32) and self.array.flags.c_contiguous
        wanted = tuple(names) == self.columns and not missing_numbers(self.missing.tokens)
        return self.array if plain and wanted else None

    def documents(self, name: str) -> Documents:
        """Raise DataError: an array has no texts."""
        raise DataError("contains numbers, not text", column=name, remedy="choose another family")


@dataclass(frozen=True)
class Frame:
    """Rows with Arrow arrays as columns, or lists where Arrow cannot represent the values."""

    columns: dict[str, Any]
    rows: int
    start: int = 0
    missing: MissingTokens = field(default_factory=MissingTokens)
    spelled: frozenset[str] = frozenset()  # columns of integers kept as text
    formats: Mapping[str, NumberFormat] = field(default_factory=dict)  # formats of text columns that are read as numbers
    resolve: FormatResolver | None = field(default=None, compare=False, repr=False)
    parts: Mapping[str, DatePart] = field(default_factory=dict)  # columns derived from dates
    stored: Mapping[str, Any] = field(default_factory=dict)  # as they are written, columns that are read as something else
    checked: bool = False  # whether every index of a dictionary is known to be in range
    _numbers: dict[str, Array] = field(default_factory=dict, compare=False)
    _coded: dict[str, Coded] = field(default_factory=dict, compare=False)

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return (*self.columns, *filter(self._derived, self.parts)) if self.parts else tuple(self.columns)

    def _derived(self, name: str) -> bool:
        """Whether a column is derived: the table does not have it, but has the column of dates."""
        return name in self.parts and name not in self.columns and self.parts[name].origin in self.columns

    def kind(self, name: str) -> tuple[str | None, str]:
        """Kind by the type of the column."""
        if self._derived(name):
            return CATEGORY, self.parts[name].description
        column = self.columns[name]
        if isinstance(column, list):
            if all(isinstance(v, Real) and not isinstance(v, bool) for v in column if not is_missing(v)):
                return NUMBER, "numbers of several types"
            return CATEGORY, "values of several types"
        found = arrow_kind(column.type)
        return (NUMBER, self.formats[name].description) if found == (CATEGORY, "text") and name in self.formats else found

    def format_code(self, name: str) -> str:
        """Format code of the numbers, dates or times of a column, which a model stores."""
        if self._derived(name):
            return f"{self.parts[name].part}/{self.format_code(self.parts[name].origin)}"
        column = self.columns[name]
        if name in self.formats:
            return self.formats[name].code
        typed = not isinstance(column, list) and arrow_kind(column.type) == (NUMBER, "times, as seconds")
        return TYPED_TIMES if typed else PLAIN

    def numbers(self, names: Sequence[str], start: int, stop: int) -> Array:
        """Columns of a range of rows as float64, NaN where missing."""
        out = np.empty((stop - start, len(names)))
        for j, name in enumerate(names):
            out[:, j] = self.column(name)[start:stop]
        return out

    def column(self, name: str) -> Array:
        """A column as numbers, cached."""
        if self._derived(name):
            return self.parts[name].numbers(self.column(self.parts[name].origin))
        if name not in self._numbers:
            column = self.columns[name]
            read = list_numbers if isinstance(column, list) else arrow_numbers
            self._numbers[name] = without_numbers(read(column, name, self), name, self.start, self.missing)
        return self._numbers[name]

    def coded(self, name: str) -> Coded:
        """A column as codes of its distinct values without missing-value tokens; cached for short batches."""
        if name not in self._coded:
            coded = self._code(name)
            if self.rows > SHORT:
                return coded
            self._coded[name] = coded
        return self._coded[name]

    def _code(self, name: str) -> Coded:
        if self._derived(name):
            part = self.parts[name]
            return Coded(part.codes(self.column(part.origin)), part.values)
        column = self.columns[name]
        try:
            if (coded := self._coded_text(column, name)) is not None:
                return coded
            coded = code_list(column) if isinstance(column, list) else code_arrow(column)
        except (TypeError, NotImplementedError):  # Arrow raises a NotImplementedError
            raise DataError(
                "contains values that cannot be compared (lists or dicts)", column=name, remedy="ignore it"
            ) from None
        coded = finite(without_missing(coded, name, self.start, self.missing), name, self.start)
        if name in self.spelled:
            return replace(coded, values=[int(text) for text in coded.values])
        return coded

    def _coded_text(self, column: Any, name: str) -> Coded | None:
        """Codes of a column of texts in a small dictionary without tokens; None for any other."""
        if isinstance(column, list) or self.missing.blanks or name in self.spelled or not is_text_dictionary(column):
            return None
        texts = text_values(column.dictionary, self.missing.of(name))
        return None if texts is None else code_arrow(column, texts, checked=self.checked)

    def whole_numbers(self, names: Sequence[str]) -> NDArray[Any] | None:
        """None: columns are separate arrays."""
        return None

    def documents(self, name: str) -> Documents | Strings:
        """A column of texts without a copy: Arrow buffers, or a list of strings."""
        if self._derived(name):
            raise DataError(f"is the {self.parts[name].description}, not text", column=name, remedy="choose another family")
        column = self.columns[name]
        missing = self.missing.of(name)
        return string_documents(column, missing) if isinstance(column, list) else arrow_documents(column, missing)

    def with_column(self, name: str, column: Any) -> Frame:
        """The same rows with a column added or replaced."""
        held = ({k: v for k, v in each.items() if k != name} for each in (self.formats, self._numbers, self._coded))
        formats, numbers, coded = (dict[str, Any](each) for each in held)
        columns, spelled = self.columns | {name: column}, self.spelled - {name}
        return replace(
            self, columns=columns, spelled=spelled, formats=formats, checked=False, _numbers=numbers, _coded=coded
        )


def with_missing(batch: Batch, gaps: MissingTokens) -> Batch:
    """The same rows with other missing-value tokens."""
    if isinstance(batch, Matrix):
        return replace(batch, missing=gaps)
    assert isinstance(batch, Frame)
    return replace(batch, missing=gaps, _numbers={}, _coded={})


def code_numbers(column: NDArray[Any]) -> Coded:
    """Codes of an array of numbers; NaN is missing."""
    if column.dtype.kind == "f" and (whole := _integer_codes(column)) is not None:
        return whole
    values, codes = np.unique(column, return_inverse=True)
    codes = codes.reshape(-1).astype(np.int32)
    if values.dtype.kind == "f":
        codes[np.isnan(column)] = -1
        values = values[~np.isnan(values)]
    return Coded(codes, values.tolist())


def finite(coded: Coded, name: str, start: int) -> Coded:
    """The same codes; DataError if a value is infinite."""
    for place, value in enumerate(coded.values if not isinstance(coded.values, range) else ()):
        if isinstance(value, float) and math.isinf(value):
            row = start + int(np.argmax(coded.codes == place + coded.low)) + 1
            remedy = "correct it, or replace infinity by a missing value"
            raise DataError("which is not a finite number", column=name, value=value, row=row, remedy=remedy)
    return coded


def _integer_codes(column: NDArray[Any]) -> Coded | None:
    """Codes of floats that are integers in a small range; None for others."""
    with np.errstate(all="ignore"):
        low, high = np.fmin.reduce(column, initial=np.inf), np.fmax.reduce(column, initial=-np.inf)
        if not 0 <= high - low < max(1024, len(column)) or low != np.floor(low):
            return None
        shifted = column - low
        codes = shifted.astype(np.int32)  # undefined for NaN, corrected below
    gaps = np.isnan(shifted)
    if not ((codes == shifted) | gaps).all():
        return None
    codes[gaps] = -1
    return Coded(codes, [float(low) + i for i in range(int(high - low) + 1)])


def code_list(column: Iterable[Any]) -> Coded:
    """Codes of hashable values, in order of first occurrence."""
    known: dict[Any, int] = {}
    bare = (plain(value) for value in column)  # NumPy scalars cannot be stored in a model file
    codes = [-1 if is_missing(value) else known.setdefault(value, len(known)) for value in bare]
    return alike_as_one(Coded(np.array(codes, dtype=np.int32), list(known)))


def alike_as_one(coded: Coded) -> Coded:
    """The same codes with equal texts and numbers ("1" and 1) merged, as in a sum of two tables."""
    merged = Column("", CATEGORY, tuple(one_of_alike(coded.values)))
    if len(merged.values) == len(coded.values):
        return coded
    move = np.array([*merged.codes(coded.values), -1], dtype=np.int32)  # code -1 reads the last entry
    return Coded(move[coded.codes], list(merged.values))


def code_arrow(column: Any, known: Sequence[Any] | None = None, *, checked: bool = False) -> Coded:
    """Codes of an Arrow array by dictionary encoding; the values of its dictionary may be known, its indices be checked."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes, values = dictionary_indices(column), column.dictionary.to_pylist() if known is None else known
    if not checked and len(codes) and not -1 <= codes.min() <= codes.max() < len(values):  # kernels use codes as indices
        raise DataError("a dictionary index is out of range", remedy=DAMAGED)
    return Coded(codes, values)


def without_missing(coded: Coded, name: str, start: int, gaps: MissingTokens) -> Coded:
    """The same codes without missing-value tokens and with duplicate values merged."""
    values, missing = coded.values, gaps.of(name)
    known = tokens(missing)
    gone = [v.strip() in known if type(v) is str else is_missing(v) or is_missing_token(v, missing) for v in values]
    gaps.record_codes(name, start, coded.codes, values, gone)
    if True not in gone and len(set(values)) == len(values):
        return coded
    kept = list(dict.fromkeys(v for v, bad in zip(values, gone, strict=True) if not bad))
    place = {value: i for i, value in enumerate(kept)}
    places = [-1 if bad else place[v] for v, bad in zip(values, gone, strict=True)]
    move = np.array([*places, -1], dtype=np.int32)  # code -1 reads the last entry
    return Coded(move[coded.codes], kept)


def without_numbers(x: Array, name: str, start: int, gaps: MissingTokens) -> Array:
    """Numbers with NaN in place of missing-value tokens that are numbers, such as -999."""
    for number in missing_numbers(gaps.of(name)):
        found = x == number
        if found.any():
            gaps.record(name, start, [(f"{number:g}", int(found.sum()))])
            x = np.where(found, np.nan, x)
    return x


def arrow_kind(kind: Any) -> tuple[str | None, str]:
    """Kind of an Arrow type, and the reason; None if it cannot be used."""
    from pyarrow import types as t

    if t.is_floating(kind):  # the most frequent one of wide tables
        return NUMBER, "numbers"
    if t.is_dictionary(kind):
        inner = arrow_kind(kind.value_type)
        return (CATEGORY, "declared categories") if inner[0] == NUMBER else inner
    if t.is_boolean(kind):
        return CATEGORY, "true or false"
    if t.is_integer(kind) or t.is_decimal(kind):
        return NUMBER, "whole numbers" if t.is_integer(kind) else "numbers"
    if t.is_timestamp(kind) or t.is_date(kind) or t.is_time(kind) or t.is_duration(kind):
        return NUMBER, "times, as seconds"
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return CATEGORY, "text"
    if t.is_null(kind):
        return None, EMPTY
    return None, f"{kind} is neither text nor number"


def to_arrow(values: Sequence[Any], name: str, start: int = 0) -> Any:
    """A column as an Arrow array, or the list itself if its values have several types."""
    import pyarrow as pa

    try:
        return arrow_array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError, OverflowError):
        listed = list(values)
    half = half_characters(listed)
    if half is not None:
        raise DataError(
            "which contains a lone surrogate (half a character)",
            column=name, value=listed[half], row=start + half + 1,
            remedy="correct the text, or decode it with the right encoding",
        )  # fmt: skip
    return listed
