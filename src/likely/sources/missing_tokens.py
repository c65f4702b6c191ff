"""Missing-value tokens, and a record of the cells that were read as missing (see docs/data.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.schema import Column, alike_message, look_alikes

# Defaults for delimited text, which has no null; typed sources have null, None and NaN.
MISSING = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "<NA>")
LABELS = ("", "?")  # in the target, where NA may be a class
# Values similar to a token: where both are frequent in a column, one of the two is probably misread.
ALIKE = frozenset({
    "none", "na", "n/a", "n.a.", "n.a", "n.d.", "n/d", "#n/a", "<na>", "nan", "null", "nil", "-", "--", ".", "unknown",
    "missing", "not available", "not applicable", "?",
})  # fmt: skip
FREQUENT = 0.05  # minimum share of the rows for a token to be suspected of being a value


@dataclass(frozen=True)
class MissingTokens:
    """Missing-value tokens of the columns, and of the target if it has its own."""

    tokens: tuple[str, ...] = ()
    labels: tuple[str, ...] | None = None
    target: str | None = None
    blanks: bool = False  # delimited text: a blank cell is null
    taken: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict, compare=False, repr=False)

    def of(self, name: str) -> tuple[str, ...]:
        """Tokens of a categorical or text column."""
        found = self.labels if name == self.target and self.labels is not None else self.tokens
        return ("", *found) if self.blanks and "" not in found else found

    def in_numbers(self, name: str) -> tuple[str, ...]:
        """Tokens of a numeric column; the default ones always apply, since they cannot be numbers."""
        return self.of(name) if self.tokens else (*self.of(name), *MISSING)

    def stored(self) -> dict[str, Any]:
        """Fields that a model stores."""
        return {"missing": self.tokens, "missing_labels": self.labels}

    def record(self, name: str, start: int, found: Iterable[tuple[Any, int]]) -> None:
        """Record the cells read as missing in a batch; a batch that is read again replaces its record."""
        counts = {str(token): int(n) for token, n in found if n}
        if counts:
            self.taken[name, start] = counts

    def record_codes(self, name: str, start: int, codes: NDArray[Any], values: Sequence[Any], gone: list[bool]) -> None:
        """Record the counts of missing-value tokens from codes; in delimited text, blank cells as well."""
        blank = self.blanks and bool((codes < 0).any())
        if blank or True in gone:
            counts = np.bincount(codes + 1, minlength=len(values) + 1).tolist()
            found = [(value, n) for value, n, bad in zip(values, counts[1:], gone, strict=False) if bad]
            self.record(name, start, [*found, *([("", counts[0])] if blank else [])])


def tokens_by_column(taken: dict[tuple[str, int], dict[str, int]], names: Iterable[str]) -> dict[str, dict[str, int]]:
    """Counts of the tokens read as missing, by column, for the given columns in their order."""
    total: dict[str, Counter[str]] = {name: Counter() for name in names}
    for (name, _), counts in list(taken.items()):
        if name in total:
            for token, n in counts.items():
                total[name][token.strip()] += n
    return {name: dict(counts.most_common()) for name, counts in total.items() if counts}


def suspicious_token(counts: dict[str, int], values: Iterable[Any], rows: float) -> tuple[str, str] | None:
    """A frequent token of a column and a similar value of the same column; None if there is no such pair."""
    often = [token for token, n in counts.items() if token and n >= FREQUENT * rows]
    alike = [value for value in values if isinstance(value, str) and value.strip().casefold() in ALIKE]
    return (often[0], alike[0]) if often and alike else None


def token_warning(name: str, token: str, value: str, count: int, rows: int) -> str:
    """Warning about a token that may be a value, with the remedy."""
    return (
        f"column {name!r}: {token!r} was read as missing in {count:,} of {rows:,} rows, while {value!r} is a value: if "
        f"{token!r} is a value too, list what is missing without it: missing=['?'] (--missing '?')"
    )


def token_warnings(columns: Iterable[Column], rows: int) -> Iterator[str]:
    """Warnings about tokens with a similar value in the same column, and about values that differ only by case."""
    for column in columns:
        pair = suspicious_token(dict(column.taken), column.values, rows)
        if pair:
            yield token_warning(column.name, *pair, dict(column.taken)[pair[0]], rows)
        if alike := look_alikes(column.values):
            yield alike_message(column.name, alike)
