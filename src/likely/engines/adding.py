"""Sum many tallies in one pass: keys are sorted and arrays copied once, not once for each tally."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np

from likely.families.histogram import Histogram, total_histogram
from likely.families.statistics import Counts, Moments, Statistic
from likely.kernels.parallel import in_parallel
from likely.schema import Column, Schema
from likely.tally import Tally
from likely.tally.row_sample import Reservoir

GROUP = 32  # tallies that are added at once


def total(tallies: Sequence[Tally]) -> Tally:
    """The sum of tallies, added in a tree of groups; values and classes of zero weight are left out."""
    level = list(tallies)
    while len(level) > 1:
        level = in_parallel(together, [level[i : i + GROUP] for i in range(0, len(level), GROUP)])
    return truncated(level[0]).pruned()


def together(tallies: Sequence[Tally]) -> Tally:
    """The sum of a few tallies."""
    first = tallies[0]
    if len(tallies) < 3 or not all(_same_layout(first, other) for other in tallies[1:]):
        return reduce(lambda a, b: truncated(a + b), tallies)
    schema = _union([tally.schema for tally in tallies])
    aligned = [tally.with_schema(schema) for tally in tallies]
    columns = zip(*(tally.statistics for tally in aligned), strict=True)
    samples = [tally.sample for tally in aligned]
    found = replace(
        aligned[0],
        classes=np.sum([tally.classes for tally in aligned], axis=0),
        statistics=tuple(_sum(column) for column in columns),
        rows=sum(tally.rows for tally in aligned),
        sample=None if None in samples else Reservoir.total([sample for sample in samples if sample is not None]),
    )
    return truncated(found)


def truncated(tally: Tally) -> Tally:
    """The same tally, its vocabularies reduced to their limits."""
    kept = tuple(b.family.truncate(s) for b, s in zip(tally.blocks, tally.statistics, strict=True))
    return tally if all(map(operator.is_, kept, tally.statistics)) else replace(tally, statistics=kept)


def _same_layout(one: Tally, other: Tally) -> bool:
    """Whether both have the same blocks, and the same columns in one order, with cells from which their kinds are known."""
    mine, theirs = one.schema.columns, other.schema.columns
    return one.blocks == other.blocks and len(mine) == len(theirs) and all(
        a.name == b.name and a.kind == b.kind and not a.guessed and not b.guessed for a, b in zip(mine, theirs, strict=True)
    )  # fmt: skip


def _union(schemas: Sequence[Schema]) -> Schema:
    """The schema with the classes and values of all; counts of texts that were read as missing are added."""
    targets = [schema.target for schema in schemas]
    columns = zip(*(schema.columns for schema in schemas), strict=True)
    return replace(schemas[0], target=_column(targets), columns=tuple(_column(column) for column in columns))


def _column(same: Sequence[Column]) -> Column:
    """The column with the values of all; texts are put together in one step."""
    if any(column.taken for column in same):
        return reduce(lambda a, b: a.union(b), same)
    distinct = list({column.values: column for column in same}.values())
    values = dict.fromkeys(chain.from_iterable(column.values for column in distinct))  # no text equals another type's value
    if len(distinct) > 1 and all(type(value) is str for value in values):
        return replace(same[0], values=same[0].in_order(values))
    apart = same if any(type(value) is not str for value in same[0].values) else distinct
    return reduce(lambda a, b: a.union(b), apart)


def _sum(column: Sequence[Statistic]) -> Statistic:
    """The sum of the statistics of one block."""
    parts: list[Any] = list(column)
    with np.errstate(over="ignore", invalid="ignore"):
        if all(type(part) is Counts for part in parts):
            return Counts(np.sum([part.seen for part in parts], axis=0))
        if all(isinstance(part, Moments) for part in parts):
            return Moments(*(np.array([getattr(part, name) for part in parts]) for name in ("n", "mean", "spread"))).summed()
        if all(isinstance(part, Histogram) for part in parts):
            return total_histogram(parts)
        found: Statistic = reduce(operator.add, parts)
        return found
