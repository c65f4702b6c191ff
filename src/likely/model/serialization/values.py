"""Values in a model file: checks of JSON, each with the path of what is wrong; labels and categories, as JSON or as bytes.

A check takes a value and its path, and raises ValueError with both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.model.model_file import TAGS, from_json
from likely.schema import is_missing

MANY = 1_000  # texts: more are written as bytes, or the header would grow with the table
LONGEST = 10_000  # characters of a number written as text
FRACTION = re.compile(r"-?[0-9]+(/[0-9]+)?")  # what str() writes: no exponent, which could stand for a gigabyte of digits
DEEPEST = 10  # tuples within tuples
LARGEST_WHOLE = (1 << 63) - 1
LARGEST_NUMBER = 1 << 1024
Check = Callable[[Any, str], None]


def need(holds: bool, where: str, fault: str) -> None:
    """Raise ValueError with a path and the fault unless the condition holds."""
    if not holds:
        raise ValueError(f"{where} {fault}")


def fields(given: Any, where: str, required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> None:
    """An object with exactly the required entries, and perhaps some of the optional ones."""
    known = {**required, **(optional or {})}
    entries(given, where)
    if not required.keys() <= given.keys() <= known.keys():
        absent, odd = sorted(required.keys() - given.keys()), sorted(given.keys() - known.keys())
        need(not absent, where, f"has no entry {absent[:3]}")
        need(not odd, where, f"has an entry that is not known: {odd[:3]!r:.80}")
    for name, value in given.items():
        known[name](value, name if where == "the header" else f"{where}.{name}")


def entries(given: Any, where: str) -> None:
    """An object with any entries; their names are text."""
    need(isinstance(given, dict), where, "is no object")
    for name in given:
        text(name, where)


def anything(given: Any, where: str) -> None:
    """Any value: it is checked by itself."""


def listed(given: Any, where: str) -> None:
    """A list of anything."""
    need(isinstance(given, list), where, "is no list")


def each(given: Any, where: str) -> Iterator[tuple[Any, str]]:
    """The values of a list or an object, each with its path."""
    for key, value in given.items() if isinstance(given, dict) else enumerate(given):
        yield value, f"{where}[{key!r:.40}]"


def texts(given: Any, where: str) -> None:
    """A list of texts."""
    listed(given, where)
    for value, at in each(given, where):
        text(value, at)


def text(given: Any, where: str) -> None:
    """A text that can be written as UTF-8: half a surrogate pair cannot."""
    if isinstance(given, str) and given.isascii():
        return
    need(isinstance(given, str), where, f"is no text: {given!r:.40}")
    try:
        given.encode()
    except UnicodeEncodeError:
        need(False, where, "holds half a character")


def whole(given: Any, where: str) -> None:
    """A whole number of zero or more that fits into 64 bits."""
    if type(given) is not int or not 0 <= given <= LARGEST_WHOLE:
        raise ValueError(f"{where} is no count: {given!r:.40}")


def number(given: Any, where: str) -> None:
    """A finite number."""
    if type(given) is not float and type(given) is not int:
        raise ValueError(f"{where} is no number: {given!r:.40}")
    if not abs(given) < LARGEST_NUMBER:  # float() of a huge integer would raise
        raise ValueError(f"{where} is no finite number")


def flag(given: Any, where: str) -> None:
    """True or false."""
    need(isinstance(given, bool), where, f"is neither true nor false: {given!r:.40}")


def as_arrays(values: Sequence[Any]) -> dict[str, NDArray[Any]] | None:
    """Many texts as UTF-8 end to end with the offset of each; None for few values or values of other types."""
    if len(values) <= MANY or not all(type(value) is str for value in values):
        return None
    encoded = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return {"bytes": np.frombuffer(b"".join(encoded), np.uint8), "offsets": offsets}


def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
    """The texts that `as_arrays` wrote."""
    buffer, ends = bytes(arrays["bytes"]), arrays["offsets"].tolist()
    return tuple(buffer[a:b].decode() for a, b in pairwise(ends))


def check_values(given: Any, where: str) -> None:
    """A list of different labels or categories, none of them missing."""
    need(isinstance(given, list), where, "is no list of values")
    for i, value in enumerate(given):
        _check_value(value, f"{where}[{i}]", 0)
    read = [from_json(value) for value in given]
    need(not any(is_missing(value) for value in read), where, "has a value that stands for missing")
    need(len(set(read)) == len(read), where, "has a value twice")


def _check_value(given: Any, where: str, depth: int) -> None:
    """One value: plain JSON, or an object with the type and how it is written."""
    if isinstance(given, str):
        text(given, where)
        return
    if given is None or isinstance(given, bool | int | float):
        return
    need(isinstance(given, dict) and given.keys() == {"type", "value"}, where, "is of no type that is known")
    kind, value = given["type"], given["value"]
    if kind == "tuple":
        need(isinstance(value, list) and depth < DEEPEST, where, "is no tuple, or a very deep one")
        for i, part in enumerate(value):
            _check_value(part, f"{where}[{i}]", depth + 1)
        return
    need(isinstance(kind, str) and kind in TAGS, where, f"is of no type that is known: {kind!r:.40}")
    if kind == "timedelta":
        number(value, where)
        return
    text(value, where)
    need(kind == "bytes" or len(value) <= LONGEST, where, "is too long for a number or a date")
    need(kind != "fraction" or FRACTION.fullmatch(value) is not None, where, "is no fraction")
    need(kind != "float" or value in ("inf", "-inf"), where, "is no infinite number")
    need(kind != "decimal" or _small(value), where, "is no decimal number, or one that is too large")


def _small(value: str) -> bool:
    """Whether a decimal number has an exponent that can be worked with."""
    try:
        read = Decimal(value)
    except InvalidOperation:
        return False
    return not read.is_nan() and (not read.is_finite() or abs(read.adjusted()) <= LONGEST)
