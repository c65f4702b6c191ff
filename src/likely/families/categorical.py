"""Columns of categories: a share per value and class. Bernoulli is the same with the two values no and yes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from likely import kernels, sharing
from likely.families.base import (
    Encoded,
    Imagined,
    Labels,
    Parameters,
    Readable,
    first_bad,
    imagined_rows,
    log,
    log_shares,
    no_check,
    shared,
)
from likely.families.evidence import weigh
from likely.families.forms import Lookup
from likely.families.statistics import Array, Counts, Statistic
from likely.schema import Column


@dataclass(frozen=True)
class Categorical:
    """Each value has its own share in each class; any hashable values, no encoding needed."""

    name: ClassVar[str] = "categorical"
    single: ClassVar[bool] = True
    strict: ClassVar[bool] = False

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """The weight of each value in each class, for all columns in one sweep."""
        return list(count_tables(rows, labels, weights, classes)[0])

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        tallied: Sequence[Counts],
        imagined: Sequence[Imagined],
        classes: Sequence[Any],
    ) -> list[Parameters]:
        """The share of each value, once the imagined rows are added to the seen ones."""
        return [
            shares(column, column.values, counts.seen, prior, classes)
            for (column,), counts, prior in zip(blocks, tallied, imagined, strict=True)
        ]

    check = staticmethod(no_check)

    def settings(self) -> dict[str, Any]:
        """What is needed to make this family again."""
        return {}


@dataclass(frozen=True)
class Bernoulli:
    """A yes/no variable: a number above zero, or True, is yes."""

    name: ClassVar[str] = "bernoulli"
    single: ClassVar[bool] = True
    strict: ClassVar[bool] = True

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """The weight of no and of yes in each class."""
        codes = yes_or_no(rows.numbers)
        width = codes.shape[1]
        binary = Encoded(codes, np.zeros(width, np.int64), np.full(width, 2, np.int64), rows.numbers[:, :0])
        return list(count_tables(binary, labels, weights, classes)[0])

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        tallied: Sequence[Counts],
        imagined: Sequence[Imagined],
        classes: Sequence[Any],
    ) -> list[Parameters]:
        """The share of yes, once the imagined rows are added to the seen ones."""
        return [
            shares(column, (False, True), counts.seen, prior, classes)
            for (column,), counts, prior in zip(blocks, tallied, imagined, strict=True)
        ]

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """Infinity is no yes and no no."""
        return first_bad(np.isinf(numbers), "is not a finite number")

    def settings(self) -> dict[str, Any]:
        """What is needed to make this family again."""
        return {}


def yes_or_no(numbers: Array) -> Any:
    """0 for no, 1 for yes, 3 for missing: the places of a table of two values."""
    return np.where(np.isnan(numbers), 3, numbers > 0).astype(np.int32)


def count_tables(rows: Encoded, labels: Labels, weights: Array, classes: int) -> tuple[list[Counts], int]:
    """One table of classes × values for every column of codes, and how many cells lay outside them."""
    if rows.columns:
        return _count_columns(rows, labels, weights, classes)
    first = np.concatenate([[0], np.cumsum(rows.size)]).astype(np.int64)
    if labels.ndim == 2:
        lines = np.zeros((int(first[-1]), classes))
        sharing.share_codes(rows.codes, rows.low, rows.size, first[:-1], shared(labels, weights), lines)
        return [Counts(lines[a:b].T.copy()) for a, b in pairwise(first)], 0
    out = np.zeros((classes, int(first[-1])))
    outside = kernels.count_codes(rows.codes, rows.low, rows.size, first[:-1], labels, weights, out)
    tables = [Counts(out[:, a:b].copy()) for a, b in pairwise(first)]
    return tables, int(outside)


def _count_columns(rows: Encoded, labels: Labels, weights: Array, classes: int) -> tuple[list[Counts], int]:
    tables, outside = [], 0
    for codes, low, size in zip(rows.columns, rows.low.tolist(), rows.size.tolist(), strict=True):
        table = np.zeros((classes, size))
        outside += kernels.count_column(codes, low, size, labels, weights, table)
        tables.append(Counts(table))
    return tables, outside


def shares(column: Column, values: Sequence[Any], seen: Array, prior: Imagined, classes: Sequence[Any]) -> Parameters:
    """The table of shares of one column, as a lookup form and as readable rows."""
    if prior.chosen:
        return weighed(column, values, seen, classes, prior.copies)
    logs = log_shares(seen, imagined_rows(prior, values, seen), prior.unseen(len(values)))
    rows = Shares(column.name, tuple(classes), tuple(values), seen, logs)
    free = len(classes) * max(len(values) - 1, 0)
    return Parameters((column.name,), Lookup(np.ascontiguousarray(logs.T)), rows, len(classes) * len(values), free)


def weighed(
    column: Column, values: Sequence[Any], seen: Array, classes: Sequence[Any], copies: Array | None
) -> Parameters:
    """The table of what each value says of each class; as many rows are imagined as leaving each row out asks for."""
    evidence = weigh(seen.T if copies is None else seen.T / copies)
    nothing = np.zeros((2, len(classes)))  # an unseen value says as little as a missing one
    rows = Shares(column.name, tuple(classes), tuple(values), seen, log(evidence.probabilities()))
    form, entries = Lookup(np.concatenate([evidence.table, nothing])), len(classes) * len(values)
    free = max(entries - len(classes), 0)
    return Parameters((column.name,), form, rows, entries, free, how=evidence.how, evidence=evidence)


@dataclass(frozen=True, eq=False)
class Shares(Readable):
    """A table of shares to read, one line a class and value; a line is written when it is looked at."""

    column: str
    classes: tuple[Any, ...]
    values: tuple[Any, ...]
    seen: Array
    logs: Array

    def __len__(self) -> int:
        return len(self.classes) * len(self.values)

    def line(self, number: int) -> dict[str, Any]:
        """The share of one value in one class."""
        c, v = divmod(number, len(self.values))
        return {
            "column": self.column,
            "class": self.classes[c],
            "value": self.values[v],
            "count": float(self.seen[c, v]),
            "probability": float(np.exp(self.logs[c, v])),
        }
