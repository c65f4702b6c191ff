"""Counting of categorical columns in rows of weight one: several columns at a time, in one table of their combinations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines._coded_rows import CodedRows
from likely.families.statistics import Counts
from likely.kernels.kernel import worth_compiling
from likely.kernels.keys import Words
from likely.kernels.parallel import in_parallel, slabs
from likely.kernels.unit_counts import count_jointly
from likely.sources.batch import Coded
from likely.tally.row_sample import hashes, missing_hash

MOST_CELLS = 1 << 13  # combinations × classes of one table, which then stays in the cache
AT_ONCE = 4  # columns of one table
FEW_CELLS = 1_000_000  # cells of a table that arrays may count as well
ARRAYS = 5e-9  # seconds that a cell takes longer with arrays
NONE = np.zeros(0, np.uint64)
Index = NDArray[np.uint32]
Array = NDArray[np.float64]


def can_count(rows: CodedRows, columns: Sequence[Coded]) -> bool:
    """Whether rows have weight one and columns have codes as Arrow keeps them."""
    return rows.units is not None and all(
        c.low == 0 and c.codes.dtype == np.int32 and c.codes.flags.c_contiguous for c in columns
    )


def count_categories(rows: CodedRows, names: Sequence[str], columns: Sequence[Coded]) -> list[Counts]:
    """Counts of each column by class; where sums of hashes are kept, those of the cells are added to them."""
    groups = _groups([len(column.values) for column in columns], rows.classes)
    hashed = rows.sums is not None
    tables = [_table(groups[i], names, columns) if hashed else NONE for i in range(len(groups))]

    def work(part: tuple[int, int]) -> list[Index]:
        pairs = zip(groups, tables, strict=True)
        return [_counted(rows, [columns[j] for j in group], table, part, compiled) for group, table in pairs]

    cells = rows.batch.rows * len(columns)
    compiled = cells > FEW_CELLS or worth_compiling(ARRAYS * cells, count_jointly)
    if compiled:
        count_jointly.prepare()
    parts = in_parallel(work, slabs(rows.batch.rows, len(columns)))
    found: dict[int, Counts] = {}
    for number, group in enumerate(groups):
        total: Array = np.add.reduce([part[number] for part in parts], dtype=np.float64)
        shape = [len(columns[j].values) + 1 for j in group]
        by_class = total[: rows.classes].reshape(rows.classes, *shape)
        for place, j in enumerate(group, start=1):
            others = tuple(axis for axis in range(1, by_class.ndim) if axis != place)
            found[j] = Counts(np.ascontiguousarray(by_class.sum(others)[:, :-1]))
    rows.hashed.update(names if hashed else ())
    return [found[j] for j in range(len(columns))]


def _groups(sizes: Sequence[int], classes: int) -> list[list[int]]:
    """Columns grouped into tables: those with many values first, each in the first table with enough free cells."""
    groups: list[list[int]] = []
    for j in sorted(range(len(sizes)), key=lambda j: -sizes[j]):
        for group in groups:
            cells = math.prod(sizes[k] + 1 for k in [*group, j]) * (classes + 1)
            if len(group) < AT_ONCE and cells <= MOST_CELLS:
                group.append(j)
                break
        else:
            groups.append([j])
    return groups


def _table(group: Sequence[int], names: Sequence[str], columns: Sequence[Coded]) -> Words:
    """Sum of the hashes of every combination of values, a missing cell being the last value of each column."""
    total = np.zeros(1, np.uint64)
    for j in group:
        own = np.append(hashes(columns[j].values, names[j]), missing_hash(names[j]))
        total = (total[:, None] + own).reshape(-1)
    return total


def _counted(
    rows: CodedRows, columns: Sequence[Coded], table: Words, part: tuple[int, int], compiled: bool = True
) -> Index:
    """Number of rows of each class, and of none, with each combination of values."""
    assert rows.units is not None
    some = slice(*part)
    codes = [column.codes[some].view() for column in columns]
    for each in codes:
        each.flags.writeable = False  # as those of Arrow: a kernel is compiled for one of both
    sizes = [len(column.values) for column in columns] + [0] * (AT_ONCE - len(columns))
    codes += codes[:1] * (AT_ONCE - len(columns))
    counts = np.zeros((rows.classes + 1, math.prod(size + 1 for size in sizes)), np.uint32)
    total = NONE if rows.sums is None else rows.sums[some]
    count = count_jointly.fast if compiled else _count_arrays
    count(*codes, np.array(sizes), rows.units[some], table, total, counts)
    return counts


def _count_arrays(*given: Any) -> None:
    """`count_jointly` by array operations."""
    *codes, sizes, y, table, total, counts = given
    place = np.zeros(len(y), np.int64)
    for each, size in zip(codes, sizes.tolist(), strict=True):
        if size:
            place = place * (size + 1) + np.minimum(each.view(np.uint32), size)  # negative codes are above every domain
    counts += np.bincount(y * np.int64(counts.shape[1]) + place, minlength=counts.size).reshape(counts.shape).astype(np.uint32)
    if len(total):
        total += table[place]
