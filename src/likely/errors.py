"""What can go wrong, said so that it can be put right: what, where, and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

LONGEST_VALUE_SHOWN = 80
LONGEST_MESSAGE = 1_000  # a column name may be a page long; the remedy must still be in sight


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


class ResourceError(LikelyError):
    """Memory, a quota or room on a disk is used up; nothing was written."""

    exit_code = 6


class SaveError(ResourceError, OSError):
    """A file could not be written: nothing was, and what stood there before still does."""


class ConflictError(SaveError):
    """Another process holds the lock of the file; nothing was written."""

    exit_code = 1


class ChangedError(ConflictError):
    """Another process has replaced the file since it was read; nothing was written."""


class UsageError(LikelyError, ValueError):
    """A setting that has no meaning, or none together with the others."""

    exit_code = 2


class LikelyWarning(UserWarning):
    """The work was done, but something in the data deserves a look."""


class ConvergenceWarning(LikelyWarning):
    """EM was stopped before its gain fell below the tolerance."""


MOST_COMPARED = 20_000  # names: among more, a close one is not looked for


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """What may have been meant by a name that is not known, in brackets; empty where nothing is close."""
    import difflib

    folded = {str(other).strip().casefold(): str(other) for other in known}
    if len(folded) > MOST_COMPARED:
        return ""
    close = difflib.get_close_matches(str(name).strip().casefold(), folded, 1, 0.7)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


def no_column(owner: str, name: Any, known: Sequence[Any], remedy: str = "") -> SchemaError:
    """The error for a column that is named and not there, with the name that may have been meant."""
    more = f" and {len(known) - 20:,} more" if len(known) > 20 else ""
    said = f"{owner} has no column {name!r}{did_you_mean(name, known)}"
    return SchemaError(f"{said}: {remedy or f'it has {list(known[:20])}{more}'}", column=name)


def _sentence(message: str, column: Any, value: Any, row: int | None, remedy: str | None) -> str:
    """Column, value and row, then the fault, then the remedy; what the message says already is not repeated.

    With a value the message goes on about it: "column 'age' has 'n/a' in row 17, which is not a number". Without one it
    is what is said of the column: "column 'risk' has no label in row 3".
    """
    message = message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 3] + "..."
    subject = f"column {_shown(column)}" if column is not None and _shown(column) not in message else ""
    place = f" in row {row}" if row is not None and f"row {row}" not in message else ""
    if value is not None and _shown(value) not in message:
        found = f"{subject} has {_shown(value)}{place}" if subject else f"value {_shown(value)}{place}"
        fault = f"{found}, {message}" if message else found
    else:
        fault = " ".join(part for part in (subject, message) if part) + place
    return ": ".join(part for part in (fault, remedy) if part)


def _shown(value: Any) -> str:
    """A value as Python would write it, NumPy's wrapping taken off and cut to a readable length."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE_SHOWN else text[: LONGEST_VALUE_SHOWN - 3] + "..."
