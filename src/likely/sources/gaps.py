"""What stands for missing in a source, and a record of the cells that were taken for it (see docs/data.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Typed sources have null, None and NaN for missing cells. Delimited text has only text: there, these stand for missing.
MISSING = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "<NA>")
LABELS = ("", "?")  # in the target: a class may well be called NA
# Values that say much the same as a token: where both are frequent in a column, one of the two is misread.
ALIKE = frozenset({
    "none", "na", "n/a", "n.a.", "n.a", "n.d.", "n/d", "#n/a", "<na>", "nan", "null", "nil", "-", "--", ".", "unknown",
    "missing", "not available", "not applicable", "?",
})  # fmt: skip
FREQUENT = 0.05  # of the rows: a token that is rarer is hardly a value


@dataclass(frozen=True)
class Gaps:
    """The texts that stand for missing: in the columns, and in the target where that has a list of its own."""

    tokens: tuple[str, ...] = ()
    labels: tuple[str, ...] | None = None
    target: str | None = None
    blanks: bool = False  # delimited text: a null is a blank cell
    taken: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict, compare=False, repr=False)

    def of(self, name: str) -> tuple[str, ...]:
        """The texts that stand for missing in a column of categories or text."""
        found = self.labels if name == self.target and self.labels is not None else self.tokens
        return ("", *found) if self.blanks and "" not in found else found

    def in_numbers(self, name: str) -> tuple[str, ...]:
        """The texts that stand for missing among numbers; the usual ones can be nothing else there."""
        return self.of(name) if self.tokens else (*self.of(name), *MISSING)

    def remembered(self) -> dict[str, Any]:
        """What a model remembers of it."""
        return {"missing": self.tokens, "missing_labels": self.labels}

    def note(self, name: str, start: int, found: Iterable[tuple[Any, int]]) -> None:
        """Record what was taken for missing in a batch; a batch that is read again is recorded once."""
        counts = {str(token): int(n) for token, n in found if n}
        if counts:
            self.taken[name, start] = counts

    def note_codes(self, name: str, start: int, codes: NDArray[Any], values: Sequence[Any], gone: list[bool]) -> None:
        """Record the codes of values that stand for missing, and in delimited text those of no value."""
        blank = self.blanks and bool((codes < 0).any())
        if blank or True in gone:
            counts = np.bincount(codes + 1, minlength=len(values) + 1).tolist()
            found = [(value, n) for value, n, bad in zip(values, counts[1:], gone, strict=False) if bad]
            self.note(name, start, [*found, *([("", counts[0])] if blank else [])])


def taken_by_column(taken: dict[tuple[str, int], dict[str, int]], names: Iterable[str]) -> dict[str, dict[str, int]]:
    """How often each token was taken for missing, by column; only the columns named, in that order."""
    total: dict[str, Counter[str]] = {name: Counter() for name in names}
    for (name, _), counts in list(taken.items()):
        if name in total:
            for token, n in counts.items():
                total[name][token.strip()] += n
    return {name: dict(counts.most_common()) for name, counts in total.items() if counts}


def doubtful(counts: dict[str, int], values: Iterable[Any], rows: float) -> tuple[str, str] | None:
    """A token that is frequent in a column and a value of that column that says much the same; None if there is none."""
    often = [token for token, n in counts.items() if token and n >= FREQUENT * rows]
    alike = [value for value in values if isinstance(value, str) and value.strip().casefold() in ALIKE]
    return (often[0], alike[0]) if often and alike else None


def doubt(name: str, token: str, value: str, count: int, rows: int) -> str:
    """What is said of a doubtful column, and how to change it."""
    return (
        f"column {name!r}: {token!r} was taken as missing in {count:,} of {rows:,} rows, while {value!r} is a value: if "
        f"{token!r} is a value too, list what is missing without it: missing=['?'] (--missing '?')"
    )
