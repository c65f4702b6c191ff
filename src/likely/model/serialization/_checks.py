"""Small checks of JSON values; each takes a value and its path, and raises ValueError with both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any, str], None]
LARGEST_WHOLE = (1 << 63) - 1
LARGEST_NUMBER = 1 << 1024


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


def each(given: Any, where: str, check: Check) -> None:
    """A list or an object of which every value passes a check."""
    need(isinstance(given, (dict, list)), where, "is neither a list nor an object")
    for key, value in given.items() if isinstance(given, dict) else enumerate(given):
        check(value, f"{where}[{key!r:.40}]")


def listing(check: Check) -> Check:
    """A list of which every value passes a check."""

    def checked(given: Any, where: str) -> None:
        need(isinstance(given, list), where, "is no list")
        each(given, where, check)

    return checked


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
    need(type(given) is int and 0 <= given <= LARGEST_WHOLE, where, f"is no count: {given!r:.40}")


def number(given: Any, where: str) -> None:
    """A finite number."""
    need(type(given) is float or type(given) is int, where, f"is no number: {given!r:.40}")
    need(abs(given) < LARGEST_NUMBER, where, "is no finite number")  # float() of a huge integer would raise


def flag(given: Any, where: str) -> None:
    """True or false."""
    need(isinstance(given, bool), where, f"is neither true nor false: {given!r:.40}")
