"""Columns that are counts themselves: events (Poisson), k of n (binomial), a block of tallies (multinomial)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from likely.errors import UsageError
from likely.families.base import Encoded, Imagined, Labels, Parameters, first_bad, imagined_rows, log, shared
from likely.families.forms import LARGEST_COUNT, Line
from likely.families.statistics import Array, Counts, Statistic
from likely.schema import Column


def sums(x: Array, labels: Labels, weights: Array, classes: int) -> Array:
    """The weighted sum of each column in each class; missing cells add nothing."""
    if labels.ndim == 2:
        return shared(labels, weights).T @ np.nan_to_num(x)
    used = (labels >= 0) & (weights > 0)
    where = labels[used]
    total = [np.bincount(where, weights[used] * np.nan_to_num(x[used, j]), classes) for j in range(x.shape[1])]
    return np.array(total, dtype=np.float64).reshape(x.shape[1], classes).T


def not_a_count(numbers: Array) -> tuple[int, str] | None:
    """The first number that cannot be a count."""
    found = first_bad(np.isinf(numbers), "is not a finite number")
    found = found or first_bad(numbers < 0, "is negative, which no count can be")
    return found or first_bad(numbers > LARGEST_COUNT, "is too large to be added to others")


@dataclass(frozen=True)
class Poisson:
    """Events per row: one rate per class. Imagined rows have the rate of all classes together."""

    name: ClassVar[str] = "poisson"
    single: ClassVar[bool] = True
    strict: ClassVar[bool] = True

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """Rows seen and events seen, per class."""
        x = rows.numbers
        seen, events = (
            sums((~np.isnan(x)).astype(np.float64), labels, weights, classes),
            sums(x, labels, weights, classes),
        )
        return [Counts(np.column_stack([seen[:, j], events[:, j]])) for j in range(x.shape[1])]

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        tallied: Sequence[Counts],
        imagined: Sequence[Imagined],
        classes: Sequence[Any],
    ) -> list[Parameters]:
        """Events per row, once the imagined rows are added to the seen ones."""
        return [
            self._rates(column.name, counts.seen, prior.rows, classes)
            for (column,), counts, prior in zip(blocks, tallied, imagined, strict=True)
        ]

    def _rates(self, name: str, seen: Array, extra: float, classes: Sequence[Any]) -> Parameters:
        n, events = seen[:, 0], seen[:, 1]
        # Where no event was ever seen, one is imagined among all rows: never is a long time.
        overall = (events.sum() or min(extra, 1.0)) / n.sum() if n.sum() > 0 else 1.0
        whole = n + extra
        rate = np.divide(events + extra * overall, whole, out=np.full_like(n, overall), where=whole > 0)
        rows = tuple(
            {"column": name, "class": label, "count": float(n[c]), "rate": float(rate[c])}
            for c, label in enumerate(classes)
        )
        return Parameters((name,), Line(log(rate)[None], -rate[None], "poisson"), rows, len(classes), len(classes))

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """Events are counted: no negative and no infinite number."""
        return not_a_count(numbers)

    def settings(self) -> dict[str, Any]:
        """What is needed to make this family again."""
        return {}


@dataclass(frozen=True)
class Binomial:
    """k of n: one chance of success per class. `trials` is the column of n, or one number for all rows."""

    trials: str | int

    name: ClassVar[str] = "binomial"
    single: ClassVar[bool] = False
    strict: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.trials, bool) or (not isinstance(self.trials, str) and not self.trials >= 0):
            raise UsageError(
                f"Binomial(trials={self.trials!r}) is not known: name the column of trials, or their number"
            )

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """Failures and successes, per class."""
        pair = self.pair(rows.numbers)
        return [Counts(sums(np.column_stack([pair[:, 1] - pair[:, 0], pair[:, 0]]), labels, weights, classes))]

    def pair(self, numbers: Array) -> Array:
        """Successes and trials of every row, both missing where one of them is."""
        hits = numbers[:, 0]
        trials = numbers[:, 1] if isinstance(self.trials, str) else np.full(len(hits), float(self.trials))
        pair = np.column_stack([hits, trials])
        pair[np.isnan(pair).any(1)] = np.nan
        return pair

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        tallied: Sequence[Counts],
        imagined: Sequence[Imagined],
        classes: Sequence[Any],
    ) -> list[Parameters]:
        """The share of successes, once the imagined trials are added to the seen ones."""
        (columns,), (counts,), (prior,) = blocks, tallied, imagined
        trials = counts.seen + imagined_rows(prior, (False, True), counts.seen)
        whole = trials.sum(1, keepdims=True)
        chance = np.divide(trials, whole, out=np.full_like(trials, 0.5), where=whole > 0)
        rows = tuple(
            {
                "column": columns[0].name,
                "class": label,
                "count": float(counts.seen[c].sum()),
                "probability": float(chance[c, 1]),
            }
            for c, label in enumerate(classes)
        )
        slope = log(chance.T[::-1])
        form = Line(
            slope, np.zeros_like(slope), "binomial" if isinstance(self.trials, str) else f"binomial {self.trials}"
        )
        return [Parameters(tuple(c.name for c in columns), form, rows, len(classes), len(classes))]

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """Counts only."""
        return not_a_count(numbers)

    def check_block(self, numbers: Array) -> tuple[int, str] | None:
        """Never more successes than trials."""
        pair = self.pair(numbers)
        return first_bad(pair[:, 0] > pair[:, 1], "is more than the trials")

    def settings(self) -> dict[str, Any]:
        """What is needed to make this family again."""
        return {"trials": self.trials}


@dataclass(frozen=True)
class Multinomial:
    """A block of count columns, as words of a document: each event falls in a column with the class's share."""

    name: ClassVar[str] = "multinomial"
    single: ClassVar[bool] = False
    strict: ClassVar[bool] = True

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """The events of each column in each class."""
        return [Counts(sums(rows.numbers, labels, weights, classes))]

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        tallied: Sequence[Counts],
        imagined: Sequence[Imagined],
        classes: Sequence[Any],
    ) -> list[Parameters]:
        """Each column's share of the events, once the imagined events are added to the seen ones."""
        (columns,), (counts,), (prior,) = blocks, tallied, imagined
        names = tuple(c.name for c in columns)
        odd = [value for value in prior.named if str(value) not in names]
        if odd:
            raise UsageError(f"the prior names {odd[0]!r}, which is none of the counted columns {list(names[:20])}")
        events = counts.seen + imagined_rows(prior, names, counts.seen)
        whole = events.sum(1, keepdims=True)
        share = np.divide(events, whole, out=np.full_like(events, 1.0 / len(names)), where=whole > 0)
        rows = tuple(
            {"column": name, "class": label, "count": float(counts.seen[c, j]), "probability": float(share[c, j])}
            for c, label in enumerate(classes)
            for j, name in enumerate(names)
        )
        slope = np.ascontiguousarray(log(share).T)
        free = len(classes) * (len(names) - 1)
        return [Parameters(names, Line(slope, np.zeros_like(slope), "none"), rows, share.size, free)]

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """Counts only."""
        return not_a_count(numbers)

    def settings(self) -> dict[str, Any]:
        """What is needed to make this family again."""
        return {}
