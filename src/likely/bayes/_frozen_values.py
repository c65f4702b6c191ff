"""Copies of frozen values with other fields."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

Value = TypeVar("Value")


def changed(value: Value, **changes: Any) -> Value:
    """Copy of a frozen value with other fields, without the checks of the others, which were made when they were given.

    `dataclasses.replace` makes all checks again, and cannot set a field that the constructor does not take. Nothing that was
    derived from the fields is kept.

    Parameters
    ----------
    value : dataclass instance
        The value, which stays as it is.
    **changes
        The fields that differ, of the form that the constructor leaves them in.
    """
    copy = object.__new__(type(value))
    for each in fields(value):  # type: ignore[arg-type]
        object.__setattr__(copy, each.name, changes.pop(each.name) if each.name in changes else getattr(value, each.name))
    if changes:
        raise TypeError(f"{type(value).__name__} has no field {next(iter(changes))!r}")
    return copy
