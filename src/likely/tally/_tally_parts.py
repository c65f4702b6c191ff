"""What sums and parts of tallies need of single statistics: codes in other schemas, counting again, checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError
from likely.families import Block, Encoded
from likely.families.histogram import Histogram
from likely.families.statistics import Counts, Moments, Scatter, Statistic, finite
from likely.families.word_counts import Words
from likely.schema import CATEGORY, Column, Schema, places_in
from likely.tally.row_sample import Reservoir

Array = NDArray[np.float64]
Places = dict[str, NDArray[np.intp]]


def and_parts(schema: Schema, names: Sequence[str]) -> str:
    """Addition to a remedy where columns are derived from dates."""
    return " and the same date_parts=" if any("/" in schema.by_name[name].form for name in names) else ""


def order_of(
    blocks: Sequence[Block], schema: Schema, first: Sequence[Block], first_schema: Schema
) -> list[int]:
    """Place of each block of another tally among these; refused where families or columns differ."""
    place = {frozenset(block.columns): i for i, block in enumerate(blocks)}
    order = [place.get(frozenset(block.columns)) for block in first]
    for block, at in zip(first, order, strict=True):
        if at is None or not blocks[at].family.counts_like(block.family):
            found = "nothing" if at is None else blocks[at].family
            raise UsageError(
                f"column {block.name!r} is {block.family} in one model and {found} in the other: "
                f"learn both with the same families and columns{and_parts(first_schema, block.columns)}"
            )
    if len(order) != len(blocks):
        odd = [name for block in blocks for name in block.columns if name not in first_schema.by_name]
        same = f"learn both from the same columns{and_parts(schema, odd)}"
        raise UsageError(f"one model has columns that the other has not, such as {odd[:1]}: {same}")
    return [at for at in order if at is not None]


def with_column_order(block: Block, statistic: Statistic, columns: tuple[str, ...], coded: Sequence[str]) -> Statistic:
    """The statistic of a block, its columns in the given order; `coded` are those that are axes of its table."""
    mine = block.columns
    if mine == columns or not isinstance(statistic, Counts | Scatter):
        return statistic
    if block.family.columns_have_roles:
        raise UsageError(f"columns {list(mine)} are trials and successes: name them in the same order in both models")
    numbers = [name for name in mine if name not in coded]
    return statistic.turned(
        [coded.index(n) for n in columns if n in coded], [numbers.index(n) for n in columns if n in numbers]
    )


def without_sample(statistic: Any, edges: Array | None) -> Any:
    """A statistic without documents; the numbers of a histogram are rounded as far as bins with these edges allow."""
    if isinstance(statistic, Words):
        return statistic.without_sample()
    return statistic.coarse(edges) if isinstance(statistic, Histogram) and edges is not None else statistic


def nearly_equal(x: Statistic, y: Statistic) -> bool:
    """Whether two statistics are equal up to the rounding of their sums."""
    if isinstance(x, Words) and isinstance(y, Words):
        return x.nearly(y)
    if not isinstance(x, Counts | Moments | Scatter):
        return False
    pairs = [(array, y.arrays()[name]) for name, array in x.arrays().items()]
    return all(np.allclose(a, b, rtol=1e-9, atol=1e-12 * float(np.abs(a).max(initial=0.0))) for a, b in pairs)


def holds_expected(block: Block, schema: Schema, sample: Reservoir | None, statistic: Moments | Scatter) -> bool:
    """Whether rows with missing cells were counted by their expectation (EM), counting the kept rows again would lose that."""
    if isinstance(statistic, Moments) or sample is None:
        return False
    complete_weight = float(counted_again(block, schema, sample).weight().sum())
    return float(statistic.n.sum()) > complete_weight * (1 + 1e-9)


def counted_again(block: Block, schema: Schema, sample: Reservoir) -> Statistic:
    """Count one block again from the row sample, which is complete."""
    names = [name for name in block.columns if schema.by_name[name].kind == CATEGORY]
    codes = [sample.columns[name] for name in names]
    numbers = [sample.columns[name] for name in block.columns if name not in names]
    sizes = np.array([len(schema.by_name[name].values) for name in names], np.int64)
    rows = Encoded(
        np.column_stack(codes) if codes else np.zeros((len(sample), 0), np.int32),
        np.zeros(len(names), np.int64),
        sizes,
        np.column_stack(numbers) if numbers else np.zeros((len(sample), 0)),
    )
    return block.family.count(rows, sample.labels, sample.weights, len(schema.classes))[0]


def refuse_overflow(blocks: Sequence[Block], statistics: Sequence[Statistic], classes: Array) -> None:
    """Refuse a sum that is not finite; counts are finite as long as the class totals are."""
    remedy = "use smaller numbers or weights"
    if not np.isfinite(classes).all():
        raise DataError("the weights of the rows are too large to be added up", remedy=remedy)
    for block, statistic in zip(blocks, statistics, strict=True):
        if isinstance(statistic, Moments | Scatter) and not finite(statistic):
            raise DataError("holds numbers that are too large to be added up", column=block.name, remedy=remedy)


def new_codes(schema: Schema, labels: NDArray[np.intp], kept: Places) -> tuple[NDArray[np.intp], Places]:
    """New code of each class and value when only some are kept; -1 where it is not."""
    sizes = {column.name: len(column.values) for column in schema.columns}
    return _inverse(labels, len(schema.classes)), {name: _inverse(kept[name], sizes[name]) for name in kept}


def _inverse(kept: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    place = np.full(size, -1, dtype=np.intp)
    place[kept] = np.arange(len(kept))
    return place


def codes_in(column: Column, larger: Column) -> NDArray[np.intp]:
    """Code of each value of a column in a larger one."""
    return np.array(places_in(larger, column), dtype=np.intp)


def expanded(statistic: Statistic, maps: list[NDArray[np.intp]], sizes: list[int]) -> Statistic:
    """A statistic on larger domains; values of one code are added."""
    for axis, places in enumerate(maps):
        if len(places) < 2 or np.bincount(places).max() < 2:
            continue
        first = np.sort(np.unique(places, return_index=True)[1])
        if len(first) < len(places):
            rest = np.setdiff1d(np.arange(len(places)), first)
            parts = []
            for kept in (first, rest):
                picks = [kept if a == axis else np.arange(len(each)) for a, each in enumerate(maps)]
                moved = [each[pick] for each, pick in zip(maps, picks, strict=True)]
                parts.append(expanded(statistic.pick(picks), moved, sizes))
            return parts[0] + parts[1]
    return statistic.expand(maps, sizes)
