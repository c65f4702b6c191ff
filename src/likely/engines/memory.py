"""Counting in memory: batch by batch, in parallel chunks; each part is a tally, and tallies add."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines._category_counts import can_count, count_categories
from likely.engines._coded_rows import CodedRows
from likely.engines._counted_before import CountedBefore
from likely.engines._row_sampling import class_hashes, draw, nothing_drawn, row_keys
from likely.engines.adding import together, truncated
from likely.engines.read_ahead import in_turn
from likely.engines.row_weights import check_weights
from likely.errors import DataError
from likely.families import Block, Encoded, groups
from likely.families.statistics import Counts, Statistic, finite, totals
from likely.families.value_tables import count_tables
from likely.kernels import counting, kernel
from likely.kernels.parallel import FEW_ROWS, in_parallel, side_by_side, slabs
from likely.schema import CATEGORY, TEXT, Column, Schema
from likely.sources.batch import Batch, Coded, Frame
from likely.sources.date_parts import DatePart
from likely.tally import Tally

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

NONE = np.zeros((0, 0))
TOGETHER = 8  # batches that are added at once
MANY_ROWS = 1 << 14  # of a batch: from here on rows of weight one are counted by loops of their own
MANY_VALUES = 10_000  # of one column: from here on, sums of batches are added pairwise
MOST_VALUES = 50_000  # a column with more, most of them in one row each, identifies rows and is no category
MOST_KEPT = 1_000_000  # values of one column, however frequent: a larger table would fill the memory


@dataclass(frozen=True)
class Plan:
    """The counting plan: the blocks, the kinds of their columns, the target, and the weights."""

    target: str
    blocks: tuple[Block, ...]
    columns: tuple[Column, ...]
    weights: str | None = None
    ignored: tuple[tuple[str, str], ...] = ()
    droppable: frozenset[str] = frozenset()  # columns that may be left out if they turn out to identify rows
    target_form: str = ""  # BINS if the classes are bins of numbers, which keep the order of their edges
    parts: Mapping[str, DatePart] = field(default_factory=dict)  # columns derived from dates
    sample: bool = False  # whether a sample of the rows is kept, for the calibration

    def kinds(self) -> dict[str, str]:
        """The columns that are read, and the kind as which each is read."""
        wanted = {column.name: column.kind for column in self.columns} | {self.target: CATEGORY}
        return wanted | ({self.weights: "number"} if self.weights is not None else {})


def tally_source(batches: Iterable[Batch], plan: Plan, progress: Callable[[int], None] | None = None) -> Tally:
    """The tally of all batches: one tally for each, added in order."""
    sums: list[Tally] = []  # of consecutive batches, see `_must_wait`
    waiting: list[Tally] = []  # batches that are added together
    parts = 0
    with contextlib.closing(_tallies(batches, plan)) as tallies:
        for rows, counted in tallies:
            waiting.append(counted)
            parts += 1
            if len(waiting) >= TOGETHER or _has_many_values(counted):
                plan = _added(sums, waiting, plan)
            if progress:
                progress(rows)
    plan = _added(sums, waiting, plan) if waiting else plan
    if sums:
        total = functools.reduce(lambda a, b: truncated(b + a), reversed(sums))
        for name in too_many(total, plan.droppable):
            plan, total = _without(plan, total, name)
        return total if parts == 1 else total.pruned()  # a single batch has been pruned already
    sample = nothing_drawn(plan.columns) if plan.sample else None
    schema = schema_of(plan, (), {})
    return Tally(schema, plan.blocks, np.zeros(0), _empty_statistics(plan.blocks, schema), sample=sample)


def _empty_statistics(blocks: Sequence[Block], schema: Schema) -> tuple[Statistic, ...]:
    """Empty statistics of blocks whose columns have no values yet: one for all blocks of a kind."""
    kinds = [(block.family, tuple(schema.by_name[name].kind for name in block.columns)) for block in blocks]
    made: dict[Any, Statistic] = {}
    for kind, block in zip(kinds, blocks, strict=True):
        if kind not in made:
            made[kind] = block.nothing([schema.by_name[name] for name in block.columns], 0)
    return tuple(made[kind] for kind in kinds)


def _added(sums: list[Tally], waiting: list[Tally], plan: Plan) -> Plan:
    """Add the batches that wait to the sums; returns the plan without columns that were found to identify rows."""
    names = {column.name for column in plan.columns}
    ready = []
    for counted in waiting:
        part = counted
        for name in {c.name for c in counted.schema.columns} - names:
            part = part.without(name, "")  # found to identify rows while this batch was being counted
        ready.append(truncated(part))
    sums.append(together(ready))
    waiting.clear()
    while len(sums) > 1 and not _must_wait(*sums[-2:]):
        sums[-2:] = [truncated(sums[-2] + sums[-1])]
    for name in too_many(sums[0], plan.droppable):
        plan, sums[0] = _without(plan, sums[0], name)
        sums[1:] = [each.without(name, "") for each in sums[1:]]
    return plan


def _has_many_values(tally: Tally) -> bool:
    return any(len(column.values) > MANY_VALUES for column in tally.schema.columns)


def _tallies(batches: Iterable[Batch], plan: Plan) -> Generator[tuple[int, Tally]]:
    """The tally of every batch, in order; several are counted in parallel while the next ones are read."""
    before = CountedBefore()

    def count(batch: Batch, alone: bool) -> tuple[int, Tally]:
        return batch.rows, tally_batch(batch, plan) if alone else tally_batch(batch, plan, before=before)

    return in_turn(batches, count)


def _must_wait(before: Tally, last: Tally) -> bool:
    """Whether a sum of many values waits until there is as much to add to it.

    A sum costs as much as it has values. With one for every batch, counting a column of very many values would take time
    with the square of the rows.
    """
    values = max((len(c.values) for c in before.schema.columns), default=0)
    return values > MANY_VALUES and before.rows > 2 * last.rows


def tally_batch(
    batch: Batch,
    plan: Plan,
    labels: Coded | None = None,
    weights: Array | None = None,
    before: CountedBefore | None = None,
) -> Tally:
    """The tally of one batch, in the schema of its own values; in one of several, unused values are pruned later."""
    coded = sorted_labels(labels or batch.coded(plan.target), plan.target_form)
    classes = len(coded.values)
    y = coded.codes.astype(np.int64, copy=False)
    y = y - coded.low if coded.low else y
    w = weights if weights is not None else _weights(batch, plan.weights)
    found: dict[str, Coded] = {}
    rows = CodedRows(batch, y, w, classes, found, before=before.statistics if before else {})
    if weights is None and plan.weights is None and isinstance(batch, Frame) and batch.rows >= MANY_ROWS:
        rows = rows.of_weight_one(class_hashes(y, coded.values) if plan.sample else None)
    statistics: dict[Block, Statistic] = {}
    texts = [block for block in plan.blocks if block.family.column_kind == TEXT]
    for group in groups([block for block in plan.blocks if block not in texts]):
        statistics |= zip(group, _count_group(rows, group, plan, found), strict=True)
    schema = schema_of(plan, coded.values, found)
    keys = row_keys(rows, schema) if plan.sample else None
    for block in texts:
        statistics |= zip([block], _count_text(rows, block, keys), strict=True)
    seen, used, own = rows.by_class()
    counted = Tally(schema, plan.blocks, seen, tuple(statistics[b] for b in plan.blocks), used)
    if keys is not None:
        counted = replace(counted, sample=draw(replace(rows, w=own), schema, keys, before or CountedBefore()))
    if before is None:
        return in_order(counted.pruned())
    before.statistics = {block.columns[0]: statistics[block] for block in plan.blocks if block.family.one_column_at_a_time}
    return in_order(counted)


def sorted_labels(coded: Coded, form: str = "") -> Coded:
    """The same labels with their classes sorted, so that no table need be reordered after counting."""
    classes = Column("", CATEGORY, form=form).in_order(coded.values)
    if classes == tuple(coded.values):
        return coded
    place = {label: i for i, label in enumerate(classes)}
    move = np.array([*(place[label] for label in coded.values), -1], dtype=np.int64)  # code -1 reads the last entry
    return Coded(move[coded.codes - coded.low if coded.low else coded.codes], classes)  # `take` is slow for short integers


def in_order(tally: Tally) -> Tally:
    """The same tally with classes and values sorted, so that it does not depend on the order of rows."""
    schema = tally.schema
    columns = tuple(c if len(c.values) < 2 else replace(c, values=c.in_order(c.values)) for c in schema.columns)
    target = replace(schema.target, values=schema.target.in_order(schema.classes))
    return tally.with_schema(replace(schema, target=target, columns=columns))


def _count_group(coded_rows: CodedRows, group: list[Block], plan: Plan, found: dict[str, Coded]) -> list[Statistic]:
    """Statistics of the blocks of one family; the codes of their columns are added to `found`."""
    batch, y, w, classes = coded_rows.batch, coded_rows.y, coded_rows.w, coded_rows.classes
    family = group[0].family
    kind = {column.name: column.kind for column in plan.columns}
    names = [name for block in group for name in block.columns]
    coded_names = [name for name in names if kind[name] == CATEGORY]
    numbers = [name for name in names if kind[name] != CATEGORY]
    table = batch.whole_numbers(coded_names) if coded_names and family.reads_codes else None
    if table is not None and (whole := _count_whole_numbers(coded_rows, table, coded_names, found)):
        return whole
    coded = side_by_side(batch.coded, coded_names, batch.rows)
    found.update(zip(coded_names, coded, strict=True))
    if coded and family.reads_codes and can_count(coded_rows, coded):
        return list(count_categories(coded_rows, coded_names, coded))
    apart = _separate_columns(batch, family, coded, numbers)
    low = np.array([c.low for c in coded], dtype=np.int64)
    size = np.array([len(c.values) for c in coded], dtype=np.int64)

    def count(part: tuple[list[str], int, int]) -> list[Statistic]:
        some, a, b = part
        if apart:
            rows = Encoded(NONE, low, size, NONE, columns=tuple(column[a:b] for column in apart))
            return family.count(rows, y[a:b], w[a:b], classes)
        if family.one_column_at_a_time and (own := coded_rows.columns(some, a, b)):
            return family.count(own, y[a:b], w[a:b], classes)
        codes = np.column_stack([c.codes[a:b] for c in coded]) if coded else np.zeros((b - a, 0), np.int32)
        rows = Encoded(codes, low, size, batch.numbers(some, a, b))
        if family.strict:
            _refuse_numbers(coded_rows, group, numbers, rows.numbers, a)
        return family.count(rows, y[a:b], w[a:b], classes)

    # A histogram is worth a thread of its own; other families count all columns of a chunk of rows in one pass.
    wanted = [[n] for n in numbers] if family.one_column_at_a_time and batch.rows >= FEW_ROWS else [numbers]
    parts = slabs(batch.rows, len(names) // len(wanted)) or [(0, 0)]
    with np.errstate(all="ignore"):  # what is not finite is reported below
        counted = in_parallel(count, [(some, a, b) for some in wanted for a, b in parts])
    sums = [s for i in range(0, len(counted), len(parts)) for s in totals(counted[i : i + len(parts)])]
    if numbers and not all(map(finite, sums)):
        _refuse_first(coded_rows, group, numbers, parts)
    return sums


def _separate_columns(batch: Batch, family: Any, coded: list[Coded], numbers: list[str]) -> list[NDArray[Any]]:
    """The columns of a long frame without copies, for families that can count them so; else none."""
    if (
        not isinstance(batch, Frame)
        or batch.rows < FEW_ROWS
        or batch.rows * (len(coded) + len(numbers)) < kernel.LARGE
    ):
        return []
    columns: list[NDArray[Any]] = []
    if family.reads_codes and all(c.codes.dtype == np.int32 for c in coded):
        columns = [c.codes.view() for c in coded]
    elif family.reads_columns:
        counting.interleave.prepare()
        columns = [batch.column(name).view() for name in numbers]
    for column in columns:
        column.flags.writeable = False  # as those of Arrow: a kernel is compiled for one of both
    return columns if all(column.flags.c_contiguous for column in columns) else []


def _count_text(coded_rows: CodedRows, block: Block, keys: Labels | None) -> list[Statistic]:
    """Statistic of a column of text; the tokenizer runs in parallel by itself."""
    none = np.zeros(0, np.int64)
    documents = coded_rows.batch.documents(block.columns[0])
    rows = Encoded(np.zeros((0, 0)), none, none, np.zeros((0, 0)), documents, keys=keys)
    return block.family.count(rows, coded_rows.y, coded_rows.w, coded_rows.classes)


def _count_whole_numbers(
    rows: CodedRows, table: NDArray[Any], names: list[str], found: dict[str, Coded]
) -> list[Statistic]:
    """Counts of integers, which are their own codes; empty if their range is too wide."""
    parts = slabs(len(table), table.shape[1])

    def count(part: tuple[int, int]) -> tuple[list[Counts], int]:
        a, b = part
        encoded = Encoded(table[a:b], low, size, np.zeros((0, 0)))
        return count_tables(encoded, rows.y[a:b], rows.w[a:b], rows.classes)

    if not parts:
        return []
    for read in (parts[:1], parts):  # the first rows mostly have every value; if not, all are read
        ends = in_parallel(lambda p: (table[p[0] : p[1]].min(0), table[p[0] : p[1]].max(0)), read)
        low = np.min([a for a, _ in ends], axis=0).astype(np.int64)
        high = np.max([b for _, b in ends], axis=0).astype(np.int64)
        if (high.astype(float) - low).max() >= max(1024, len(table)):
            return []
        size = high - low + 1
        counted, outside = zip(*in_parallel(count, parts), strict=True)
        if not any(outside):
            break
    for j, (name, a, n) in enumerate(zip(names, low.tolist(), size.tolist(), strict=True)):
        found[name] = Coded(table[:, j], range(a, a + n), a)
    return totals(counted)


def _weights(batch: Batch, name: str | None) -> Array:
    if name is None:
        return np.ones(batch.rows)
    w = batch.numbers([name], 0, batch.rows)[:, 0]
    check_weights(w, name, batch.start)
    return w


def _refuse_first(rows: CodedRows, group: list[Block], names: list[str], parts: Sequence[tuple[int, int]]) -> None:
    """Raise the error of the cell by which the sums are no longer finite."""
    for a, b in parts:
        _refuse_numbers(rows, group, names, rows.batch.numbers(names, a, b), a)
    _refuse_heaviest(rows.batch, names, np.where(rows.y >= 0, rows.w, 0.0))


def _refuse_numbers(rows: CodedRows, group: list[Block], names: list[str], numbers: Array, start: int) -> None:
    """Raise the error of the first cell that the family cannot count."""
    part = slice(start, start + len(numbers))
    used = (rows.y[part] >= 0) & (rows.w[part] > 0)
    family = group[0].family
    for j, name in enumerate(names):
        found = family.check(name, np.where(used, numbers[:, j], np.nan))
        if found:
            i, why = found
            it = "infinity" if np.isinf(numbers[i, j]) else "it"
            remedy = f"correct it, treat {it} as missing, or choose another family for the column"
            row = rows.batch.start + start + i + 1
            raise DataError(f"which {why}", column=name, value=numbers[i, j].item(), row=row, remedy=remedy)
    if not family.single:
        found = family.check_block(np.where(used[:, None], numbers, np.nan))
        if found:
            value = numbers[found[0], 0].item()
            raise DataError(f"which {found[1]}", column=names[0], value=value, row=rows.batch.start + start + found[0] + 1)


def _refuse_heaviest(batch: Batch, names: list[str], w: Array) -> None:
    """Raise the error of the cell with the largest product of weight and square, as sums of valid numbers overflowed."""
    with np.errstate(all="ignore"):
        size = np.log(w)[:, None] + 2 * np.log(np.abs(batch.numbers(names, 0, batch.rows)))
    i, j = np.unravel_index(int(np.nanargmax(size)), size.shape)
    value = batch.numbers([names[j]], 0, batch.rows)[i, 0].item()
    raise DataError(
        f"which with a weight of {w[i]:g} is too large to be summed",
        column=names[j], value=value, row=batch.start + int(i) + 1, remedy="use smaller numbers or weights",
    )  # fmt: skip


def schema_of(plan: Plan, classes: Sequence[Any], found: dict[str, Coded]) -> Schema:
    """The schema of a batch: the columns of the plan with the values that were found."""
    known = {name: tuple(coded.values) for name, coded in found.items()}
    columns = tuple(replace(c, values=known.get(c.name, ())) if c.kind == CATEGORY else c for c in plan.columns)
    return Schema(Column(plan.target, CATEGORY, tuple(classes), form=plan.target_form), columns, plan.ignored)


def too_many(tally: Tally, droppable: frozenset[str]) -> list[str]:
    """Columns with so many different values that they identify rows rather than classify them."""
    return [
        c.name
        for c in tally.schema.columns
        if c.name in droppable and len(c.values) > MOST_VALUES and len(c.values) > min(tally.rows / 2, MOST_KEPT)
    ]


def without_identifiers(tally: Tally, droppable: frozenset[str]) -> Tally:
    """The tally without columns that identify rows: in a sum of parts they show that only together."""
    for name in too_many(tally, droppable):
        tally = _dropped(tally, name)
    return tally


def _dropped(tally: Tally, name: str) -> Tally:
    values = len(tally.schema.by_name[name].values)
    why = "it names rows" if values > tally.rows / 2 else "too many to be counted"
    return tally.without(name, f"{values:,} different values: {why}")


def _without(plan: Plan, tally: Tally, name: str) -> tuple[Plan, Tally]:
    tally = _dropped(tally, name)
    columns = tuple(c for c in plan.columns if c.name != name)
    plan = replace(plan, blocks=tally.blocks, columns=columns, ignored=tally.schema.ignored)
    return plan, tally
