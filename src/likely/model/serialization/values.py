"""Labels and categories in a model file: as JSON that keeps their type or, where texts are many, as bytes and offsets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.model.model_file import TAGS, from_json
from likely.model.serialization._checks import need, number, text
from likely.schema import is_missing

MANY = 1_000  # texts: more are written as bytes, or the header would grow with the table
LONGEST = 10_000  # characters of a number written as text
FRACTION = re.compile(r"-?[0-9]+(/[0-9]+)?")  # what str() writes: no exponent, which could stand for a gigabyte of digits
DEEPEST = 10  # tuples within tuples


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
