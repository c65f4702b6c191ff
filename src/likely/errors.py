"""What can go wrong, each error with column, value and remedy.

Never: everything else.
"""

from __future__ import annotations

import errno
import importlib
from collections.abc import Iterable, Sequence
from shlex import quote
from typing import Any

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # of an OSError: no space to write
LONGEST_VALUE_SHOWN = 80
LONGEST_MESSAGE = 1_000  # a column name may be a page long; the remedy must stay visible


class LikelyError(Exception):
    """Base class of all errors of Likely.

    Parameters
    ----------
    message : str, default=""
        The fault.
    column : object, default=None
        The column at fault.
    value : object, default=None
        The value at fault.
    row : int or None, default=None
        The row at fault, from 1.
    remedy : str or None, default=None
        What to do about it.
    """

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
    """The data are not valid for what was asked."""

    exit_code = 3


class SchemaError(DataError):
    """The columns are not those that the model was learned from."""


class ForgetError(DataError):
    """Rows cannot be forgotten: they were not counted, or digits would be lost."""


class ModelFileError(LikelyError, ValueError):
    """The file is not a complete model file of a version that this library reads."""

    exit_code = 4


class ResourceError(LikelyError):
    """Memory, a quota or disk space is used up; nothing was written."""

    exit_code = 6


class SaveError(ResourceError, OSError):
    """A file could not be written; an existing file is unchanged."""


class ConflictError(SaveError):
    """Another process holds the lock of the file; nothing was written."""

    exit_code = 1


class ChangedError(ConflictError):
    """Another process has replaced the file since it was read; nothing was written."""


class UsageError(LikelyError, ValueError):
    """A setting is not valid, or not together with the others."""

    exit_code = 2


class MissingDependencyError(UsageError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""


class LikelyWarning(UserWarning):
    """The work was done, but something in the data should be checked."""


class ConvergenceWarning(LikelyWarning):
    """EM was stopped before its gain fell below the tolerance."""


MOST_COMPARED = 20_000  # names: among more, no similar one is searched


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """Suggestion of a similar name, in parentheses; empty where there is none."""
    import difflib

    folded = {str(other).strip().casefold(): str(other) for other in known}
    if len(folded) > MOST_COMPARED:
        return ""
    close = difflib.get_close_matches(str(name).strip().casefold(), folded, 1, 0.7)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


# Optional dependencies by import name: the name of the distribution, and the extra of this package that installs it.
EXTRAS = {
    "sklearn": ("scikit-learn", "sklearn"),
    "matplotlib": ("matplotlib", "plots"),
    "msgspec": ("msgspec", "serve"),
    "nibabel": ("nibabel", "brain"),
    "python_calamine": ("python-calamine", "excel"),
    "pyspark": ("pyspark", "spark"),
    "cairosvg": ("cairosvg", "images"),
    "pandas": ("pandas", "pandas"),
    "sqlglot": ("sqlglot", "sql"),
    "onnx": ("onnx", "onnx"),
    "adbc_driver_postgresql": ("adbc-driver-postgresql", "postgres"),
}


def import_optional(module: str, needed_for: str, otherwise: str = "", *, library: str | None = None) -> Any:
    """Import a module that needs an optional dependency (`library`: its own top-level name, if nothing else is given).

    If that dependency is not installed, the error names what needed it and the extra that installs it.
    """
    library = library or module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if (error.name or library).partition(".")[0] != library:
            raise
        package, extra = EXTRAS[library]
        remedy = f"pip install 'likely[{extra}]'{otherwise}"
        raise MissingDependencyError(f"{needed_for} needs {package}, which is not installed", remedy=remedy) from None


def no_column(owner: str, name: Any, known: Sequence[Any], remedy: str = "") -> SchemaError:
    """Error for a column that does not exist, with a suggestion of a similar name."""
    more = f" and {len(known) - 20:,} more" if len(known) > 20 else ""
    message = f"{owner} has no column {name!r}{did_you_mean(name, known)}"
    return SchemaError(f"{message}: {remedy or f'it has {list(known[:20])}{more}'}", column=name)


def _sentence(message: str, column: Any, value: Any, row: int | None, remedy: str | None) -> str:
    """Column, value and row, then the fault, then the remedy; parts that the message contains are not repeated.

    With a value the message continues about it: "column 'age' has 'n/a' in row 17, which is not a number". Without one it is
    about the column: "column 'risk' has no label in row 3".
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
    """The repr of a value, of a NumPy scalar as Python value, cut to a readable length."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE_SHOWN else text[: LONGEST_VALUE_SHOWN - 3] + "..."


def asked_family(name: str, family: str) -> str:
    """How a family is asked for by name: in Python and, where the name can be written there, in the shell."""
    asked = f"families={{{name!r}: {family!r}}}"
    if not name or name != name.strip():
        return asked
    written = '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name
    return f"{asked} (--family {quote(f'{written}={family}')})"
