"""A stretch of rows, and the two ways to look at them: as numbers and as codes of categories."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError
from likely.schema import CATEGORY, NUMBER, Column, is_missing, one_of_alike, plain
from likely.sources.arrays import DAMAGED, arrow_array, arrow_scalar, numpy_array
from likely.sources.cells import (
    EMPTY,
    half_characters,
    missing_numbers,
    stands_for_missing,
    tokens,
)
from likely.sources.dateparts import Part
from likely.sources.documents import Documents, Strings, arrow_documents
from likely.sources.forms import PLAIN, TYPED_TIMES, Form, Resolver
from likely.sources.gaps import Gaps
from likely.sources.numbers import arrow_numbers, list_numbers
from likely.threads import cached_property

Array = NDArray[np.float64]
SHORT = 1 << 18  # rows: codes of more are not kept, for they may be many


@dataclass(frozen=True)
class Coded:
    """A column of categories as codes: value i of `values` is code low + i; codes outside that are missing cells."""

    codes: NDArray[Any]
    values: Sequence[Any]
    low: int = 0


class Batch(Protocol):
    """Rows of a table, from any source."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    @property
    def start(self) -> int:
        """How many rows of the source came before."""

    @property
    def names(self) -> Sequence[str]:
        """The columns."""

    def kind(self, name: str) -> tuple[str | None, str]:
        """What a column holds by nature, and how that was seen; None where it cannot be used."""

    def numbers(self, names: Sequence[str], start: int, stop: int) -> Array:
        """Some columns of some rows as float64, NaN where missing."""

    def coded(self, name: str) -> Coded:
        """One column as codes of its distinct values."""

    def whole_numbers(self, names: Sequence[str]) -> NDArray[Any] | None:
        """The wanted columns as one array of whole numbers, where they already are one."""

    def documents(self, name: str) -> Documents | Strings:
        """One column as texts."""


@dataclass(frozen=True)
class Matrix:
    """Rows that are a two-dimensional array, looked at in place."""

    array: NDArray[Any]
    columns: tuple[str, ...]
    start: int = 0
    missing: Gaps = field(default_factory=Gaps)
    beside: dict[str, Array] = field(default_factory=dict, compare=False)  # columns of another type, such as weights

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.array)

    @property
    def names(self) -> Sequence[str]:
        """The columns."""
        return (*self.columns, *self.beside) if self.beside else self.columns

    @cached_property
    def place(self) -> dict[str, int]:
        """Where each column stands."""
        return {name: j for j, name in enumerate(self.columns)}

    def kind(self, name: str) -> tuple[str | None, str]:
        """A numeric array holds numbers."""
        return (CATEGORY, "true or false") if self.array.dtype == bool else (NUMBER, f"{self.array.dtype} array")

    def numbers(self, names: Sequence[str], start: int, stop: int) -> Array:
        """The array itself where every column is wanted in order; a copy of the wanted ones otherwise."""
        if self.beside and names and set(names) <= self.beside.keys():  # which are asked for by themselves
            return np.column_stack([self.beside[name][start:stop] for name in names])
        part = self.array[start:stop]
        if tuple(names) != self.columns:
            part = part[:, [self.place[name] for name in names]]
        if not missing_numbers(self.missing.tokens):
            return np.ascontiguousarray(part, dtype=np.float64)
        x = np.array(part, dtype=np.float64)  # a copy: the array is not ours
        whole = len(part) == self.rows  # a part of the rows is read more than once, in other parts
        for j, name in enumerate(names):
            gaps = self.missing if whole else replace(self.missing, taken={})
            x[:, j] = without_numbers(x[:, j], name, self.start, gaps)
        return x

    def coded(self, name: str) -> Coded:
        """Whole numbers in a small range are their own codes; other numbers are looked up."""
        column = self.array[:, self.place[name]]
        if missing_numbers(self.missing.of(name)):
            return without_missing(finite(code_numbers(column), name, self.start), name, self.start, self.missing)
        if column.dtype.kind in "iu" and len(column):
            low, high = int(column.min()), int(column.max())
            if high - low < max(1024, len(column)):
                if column.dtype == np.uint64:  # which with int64 makes floats
                    return Coded((column - column.min()).astype(np.int64), range(low, high + 1))
                return Coded(column, range(low, high + 1), low)
        return finite(code_numbers(column), name, self.start)

    def whole_numbers(self, names: Sequence[str]) -> NDArray[Any] | None:
        """The array itself, if it holds whole numbers and every column is wanted in order."""
        plain = self.array.dtype in (np.int64, np.int32) and self.array.flags.c_contiguous
        wanted = tuple(names) == self.columns and not missing_numbers(self.missing.tokens)
        return self.array if plain and wanted else None

    def documents(self, name: str) -> Documents:
        """Numbers are no texts."""
        raise DataError("holds numbers, not text", column=name, remedy="choose another family")


@dataclass(frozen=True)
class Frame:
    """Rows whose columns are Arrow arrays, or lists where Arrow cannot hold the values."""

    columns: dict[str, Any]
    rows: int
    start: int = 0
    missing: Gaps = field(default_factory=Gaps)
    spelled: frozenset[str] = frozenset()  # columns of whole numbers that are kept as text, as they are written
    forms: Mapping[str, Form] = field(default_factory=dict)  # columns of text that are read as numbers
    resolve: Resolver | None = field(default=None, compare=False, repr=False)
    parts: Mapping[str, Part] = field(default_factory=dict)  # columns that are derived from dates
    _numbers: dict[str, Array] = field(default_factory=dict, compare=False)
    _coded: dict[str, Coded] = field(default_factory=dict, compare=False)

    @property
    def names(self) -> Sequence[str]:
        """The columns."""
        return (*self.columns, *filter(self._derived, self.parts)) if self.parts else tuple(self.columns)

    def _derived(self, name: str) -> bool:
        """Whether a column is to be derived from another one: the table does not hold it, and holds the other."""
        return name in self.parts and name not in self.columns and self.parts[name].origin in self.columns

    def kind(self, name: str) -> tuple[str | None, str]:
        """What the type of the column says."""
        if self._derived(name):
            return CATEGORY, self.parts[name].words
        column = self.columns[name]
        if isinstance(column, list):
            if all(isinstance(v, Real) and not isinstance(v, bool) for v in column if not is_missing(v)):
                return NUMBER, "numbers of several types"
            return CATEGORY, "values of several types"
        found = arrow_kind(column.type)
        return (NUMBER, self.forms[name].words) if found == (CATEGORY, "text") and name in self.forms else found

    def form(self, name: str) -> str:
        """How numbers, dates or times are written in a column, for a model to remember."""
        if self._derived(name):
            return f"{self.parts[name].part}/{self.form(self.parts[name].origin)}"
        column = self.columns[name]
        if name in self.forms:
            return self.forms[name].form
        typed = not isinstance(column, list) and arrow_kind(column.type) == (NUMBER, "times, as seconds")
        return TYPED_TIMES if typed else PLAIN

    def numbers(self, names: Sequence[str], start: int, stop: int) -> Array:
        """The wanted columns side by side."""
        out = np.empty((stop - start, len(names)))
        for j, name in enumerate(names):
            out[:, j] = self.column(name)[start:stop]
        return out

    def column(self, name: str) -> Array:
        """One column as numbers, read once."""
        if self._derived(name):
            return self.parts[name].numbers(self.column(self.parts[name].origin))
        if name not in self._numbers:
            column = self.columns[name]
            read = list_numbers if isinstance(column, list) else arrow_numbers
            self._numbers[name] = without_numbers(read(column, name, self), name, self.start, self.missing)
        return self._numbers[name]

    def coded(self, name: str) -> Coded:
        """The column's own dictionary, without what stands for missing; a short one is made once."""
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
            coded = code_list(column) if isinstance(column, list) else code_arrow(column)
        except (TypeError, NotImplementedError):  # Arrow's own complaint is a NotImplementedError, too
            raise DataError(
                "holds values that cannot be compared (lists or dicts)", column=name, remedy="ignore it"
            ) from None
        coded = finite(without_missing(coded, name, self.start, self.missing), name, self.start)
        if name in self.spelled:
            return replace(coded, values=[int(text) for text in coded.values])
        return coded

    def whole_numbers(self, names: Sequence[str]) -> NDArray[Any] | None:
        """Columns that stand apart are never one array."""
        return None

    def documents(self, name: str) -> Documents | Strings:
        """The texts where they are: as Arrow holds them, or as a list of strings."""
        if self._derived(name):
            raise DataError(f"is the {self.parts[name].words}, not text", column=name, remedy="choose another family")
        column = self.columns[name]
        missing = self.missing.of(name)
        return Strings.of(column, missing) if isinstance(column, list) else arrow_documents(column, missing)

    def with_column(self, name: str, column: Any) -> Frame:
        """The same rows with another column under a name."""
        held = ({k: v for k, v in each.items() if k != name} for each in (self.forms, self._numbers, self._coded))
        forms, numbers, coded = (dict[str, Any](each) for each in held)
        columns, spelled = self.columns | {name: column}, self.spelled - {name}
        return replace(self, columns=columns, spelled=spelled, forms=forms, _numbers=numbers, _coded=coded)


def with_missing(batch: Batch, gaps: Gaps) -> Batch:
    """The same rows under another list of what stands for missing."""
    if isinstance(batch, Matrix):
        return replace(batch, missing=gaps)
    assert isinstance(batch, Frame)
    return replace(batch, missing=gaps, _numbers={}, _coded={})


def code_numbers(column: NDArray[Any]) -> Coded:
    """Codes of an array of numbers; NaN is missing."""
    if column.dtype.kind == "f" and (whole := _whole(column)) is not None:
        return whole
    values, codes = np.unique(column, return_inverse=True)
    codes = codes.reshape(-1).astype(np.int32)
    if values.dtype.kind == "f":
        codes[np.isnan(column)] = -1
        values = values[~np.isnan(values)]
    return Coded(codes, values.tolist())


def finite(coded: Coded, name: str, start: int) -> Coded:
    """The same codes, if no value is infinity: that is a broken number, and no category."""
    for place, value in enumerate(coded.values if not isinstance(coded.values, range) else ()):
        if isinstance(value, float) and math.isinf(value):
            row = start + int(np.argmax(coded.codes == place + coded.low)) + 1
            remedy = "mend it, or take infinity for missing"
            raise DataError("which is not a finite number", column=name, value=value, row=row, remedy=remedy)
    return coded


def _whole(column: NDArray[Any]) -> Coded | None:
    """Floats that are whole numbers in a small range are their own codes; None if these are not."""
    with np.errstate(all="ignore"):
        low, high = np.fmin.reduce(column, initial=np.inf), np.fmax.reduce(column, initial=-np.inf)
        if not 0 <= high - low < max(1024, len(column)) or low != np.floor(low):
            return None
        shifted = column - low
        codes = shifted.astype(np.int32)  # a missing cell becomes whatever it becomes, and is put right below
    gaps = np.isnan(shifted)
    if not ((codes == shifted) | gaps).all():
        return None
    codes[gaps] = -1
    return Coded(codes, [float(low) + i for i in range(int(high - low) + 1)])


def code_list(column: Iterable[Any]) -> Coded:
    """Codes of any hashable values, in the order of their first coming."""
    known: dict[Any, int] = {}
    bare = (plain(value) for value in column)  # NumPy's 1 is 1, and no model file could hold it
    codes = [-1 if is_missing(value) else known.setdefault(value, len(known)) for value in bare]
    return alike_as_one(Coded(np.array(codes, dtype=np.int32), list(known)))


def alike_as_one(coded: Coded) -> Coded:
    """The same codes, a text and a number that say the same being one value, as in a sum of two tables."""
    together = Column("", CATEGORY, tuple(one_of_alike(coded.values)))
    if len(together.values) == len(coded.values):
        return coded
    move = np.array([*together.codes(coded.values), -1], dtype=np.int32)  # code -1 reads the last entry
    return Coded(move[coded.codes], list(together.values))


def code_arrow(column: Any) -> Coded:
    """Codes of an Arrow array by Arrow's own dictionary."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    indices = column.indices.cast(pa.int32())  # polars counts without a sign, which leaves no room for -1
    if indices.null_count:
        indices = indices.fill_null(arrow_scalar(-1, pa.int32()))
    codes, values = numpy_array(indices), column.dictionary.to_pylist()
    if len(codes) and not -1 <= codes.min() <= codes.max() < len(values):  # kernels write where a code says
        raise DataError("a dictionary index stands for no value", remedy=DAMAGED)
    return Coded(codes, values)


def without_missing(coded: Coded, name: str, start: int, gaps: Gaps) -> Coded:
    """The same codes with every value that stands for missing taken out, and repeated values made one."""
    values, missing = coded.values, gaps.of(name)
    said = tokens(missing)
    gone = [v.strip() in said if type(v) is str else is_missing(v) or stands_for_missing(v, missing) for v in values]
    gaps.note_codes(name, start, coded.codes, values, gone)
    if True not in gone and len(set(values)) == len(values):
        return coded
    kept = list(dict.fromkeys(v for v, bad in zip(values, gone, strict=True) if not bad))
    place = {value: i for i, value in enumerate(kept)}
    places = [-1 if bad else place[v] for v, bad in zip(values, gone, strict=True)]
    move = np.array([*places, -1], dtype=np.int32)  # code -1 reads the last entry
    return Coded(move[coded.codes], kept)


def without_numbers(x: Array, name: str, start: int, gaps: Gaps) -> Array:
    """The same numbers, NaN where they stand for missing; the array itself where none does."""
    for number in missing_numbers(gaps.of(name)):
        found = x == number
        if found.any():
            gaps.note(name, start, [(f"{number:g}", int(found.sum()))])
            x = np.where(found, np.nan, x)
    return x


def arrow_kind(kind: Any) -> tuple[str | None, str]:
    """What an Arrow type holds, in the words of this house."""
    from pyarrow import types as t

    if t.is_dictionary(kind):
        inner = arrow_kind(kind.value_type)
        return (CATEGORY, "declared categories") if inner[0] == NUMBER else inner
    if t.is_boolean(kind):
        return CATEGORY, "true or false"
    if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind):
        return NUMBER, "whole numbers" if t.is_integer(kind) else "numbers"
    if t.is_timestamp(kind) or t.is_date(kind) or t.is_time(kind) or t.is_duration(kind):
        return NUMBER, "times, as seconds"
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return CATEGORY, "text"
    if t.is_null(kind):
        return None, EMPTY
    return None, f"{kind} is neither text nor number"


def to_arrow(values: Sequence[Any], name: str, start: int = 0) -> Any:
    """A column as an Arrow array, or the list itself where its values are of several types."""
    import pyarrow as pa

    try:
        return arrow_array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError, OverflowError):
        listed = list(values)
    half = half_characters(listed)
    if half is not None:
        raise DataError(
            "which has half a character in it (a lone surrogate)",
            column=name, value=listed[half], row=start + half + 1,
            remedy="mend the text, or decode it with the encoding it was written in",
        )  # fmt: skip
    return listed
