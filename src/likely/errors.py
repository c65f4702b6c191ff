"""What can go wrong, said so that it can be put right: what, where, and the remedy."""

from __future__ import annotations

from typing import Any

LONGEST_VALUE_SHOWN = 80


class LikelyError(Exception):
    """Anything that Likely refuses to do, with the column, value and row at fault and what to do about it."""

    exit_code = 1

    def __init__(
        self,
        message: str = "",
        *,
        column: Any = None,
        value: Any = None,
        row: int | None = None,
        remedy: str | None = None,
    ) -> None:
        self.column, self.value, self.row, self.remedy = column, value, row, remedy
        super().__init__(_sentence(message, column, value, row, remedy))


class DataError(LikelyError, ValueError):
    """The data cannot mean what was asked of it."""

    exit_code = 3


class SchemaError(DataError):
    """The columns are not the ones the model was taught."""


class ForgetError(DataError):
    """Only what was counted can be forgotten."""


class ModelFileError(LikelyError, ValueError):
    """The file is not a whole model of a version this library reads."""

    exit_code = 4


class UsageError(LikelyError, ValueError):
    """A setting that has no meaning, or none together with the others."""

    exit_code = 2


class LikelyWarning(UserWarning):
    """The work was done, but something in the data deserves a look."""


def _sentence(message: str, column: Any, value: Any, row: int | None, remedy: str | None) -> str:
    """Column, value and row first, then the fault, then the remedy; what the message says already is not repeated."""
    subject = f"column {_shown(column)}" if column is not None and _shown(column) not in message else ""
    if value is not None and _shown(value) not in message:
        subject = f"{subject} has {_shown(value)}" if subject else f"value {_shown(value)}"
    place = f" in row {row}" if row is not None and f"row {row}" not in message else ""
    fault = f"{subject}{place}, {message}" if subject and message else f"{subject or message}{place}"
    return ": ".join(part for part in (fault, remedy) if part)


def _shown(value: Any) -> str:
    """A value as Python would write it, NumPy's wrapping taken off and cut to a readable length."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE_SHOWN else text[: LONGEST_VALUE_SHOWN - 3] + "..."
