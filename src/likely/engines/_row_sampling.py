"""Sampling of rows from a batch: those with the lowest hash keys are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines._coded_rows import CodedRows
from likely.engines._counted_before import CountedBefore
from likely.kernels.cells import add_code_hashes, add_number_hashes, keys_of_sums
from likely.kernels.kernel import worth_compiling
from likely.kernels.keys import Words, distinct, lowest, mix, to_keys
from likely.kernels.parallel import in_parallel, slabs
from likely.schema import CATEGORY, NUMBER, TEXT, Column, Schema
from likely.sources.batch import Batch, Coded, Frame
from likely.tally.row_sample import (
    Reservoir,
    hashes,
    missing_hash,
    most_rows,
    number_hashes,
    seed,
    sums_of_number_hashes,
)
from likely.tokenizer import text_hashes

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MANY = 4096  # rows: from here on hashes are made by a compiled loop, if that is worth compiling
ARRAYS = 1e-8  # seconds that a hash takes longer with arrays

def nothing_drawn(columns: Sequence[Column]) -> Reservoir:
    """An empty reservoir for rows of these columns."""
    kinds = {CATEGORY: np.int32, NUMBER: np.float64}
    none = np.zeros(0, np.int64)
    return Reservoir(none, none, np.zeros(0), {c.name: np.zeros(0, kinds[c.kind]) for c in columns if c.kind in kinds})


def row_keys(rows: CodedRows, schema: Schema) -> Ints:
    """Hash keys of the rows of a batch, from their class, their cells and their documents."""
    batch = rows.batch
    numbers = [c.name for c in schema.columns if c.kind == NUMBER]
    categories = [c.name for c in schema.columns if c.kind == CATEGORY and c.name not in rows.hashed]
    texts = [_of_documents(batch, c.name) for c in schema.columns if c.kind == TEXT]
    keys = np.empty(batch.rows, np.int64)
    sums = class_hashes(rows.y, schema.classes) if rows.sums is None else rows.sums
    of_value = {name: np.append(hashes(schema.by_name[name].values, name), missing_hash(name)) for name in categories}

    def work(part: tuple[int, int]) -> None:
        a, b = part
        total = sums[a:b]
        for name in categories:
            _add_codes(rows.codes[name], slice(a, b), of_value[name], total)
        if numbers and len(total) < MANY:
            total += sums_of_number_hashes([_numbers(batch, name)[a:b] for name in numbers], numbers)
        for name in numbers if len(total) >= MANY else ():
            _add_numbers(_numbers(batch, name)[a:b], name, total)
        for text in texts:
            total += text[a:b]
        if len(total) < MANY:
            keys[a:b] = to_keys(total)
        else:
            keys_of_sums(total, keys[a:b])

    in_parallel(work, slabs(batch.rows, len(schema.columns)))
    return keys


def class_hashes(y: Ints, classes: Sequence[Any]) -> Words:
    """The hash of each row's class; 0 for rows without one."""
    found: Words = np.append(hashes(classes, "\0class"), np.uint64(0))[y]  # rows without a class read the last entry
    return found


def _add_codes(coded: Coded, rows: slice, table: Words, total: Words) -> None:
    """Add the hash of every cell of a categorical column."""
    codes = coded.codes[rows]
    fits = codes.dtype == np.int32 and codes.flags.c_contiguous
    if not (fits and len(codes) >= MANY and worth_compiling(ARRAYS * len(codes), add_code_hashes)):
        total += table[_recoded(coded, rows)]
        return
    fixed = codes.view()
    fixed.flags.writeable = False  # as those of Arrow: a kernel is compiled for one of both
    add_code_hashes(fixed, coded.low, table, total)


def _add_numbers(x: Array, name: str, total: Words) -> None:
    """Add the hash of every number of a column."""
    if not x.flags.c_contiguous or not worth_compiling(ARRAYS * len(x), add_number_hashes):
        total += number_hashes(x, name)
        return
    bits = x.view(np.uint64)
    bits.flags.writeable = False
    add_number_hashes(bits, np.array([seed(name)]), total)


def _numbers(batch: Batch, name: str) -> Array:
    """A column as numbers; that of a frame without a copy."""
    return batch.column(name) if isinstance(batch, Frame) else batch.numbers([name], 0, batch.rows)[:, 0]


def _of_documents(batch: Batch, name: str) -> Words:
    """A hash of every document of a column."""
    documents = batch.documents(name)
    own = mix(text_hashes(documents.part(0, batch.rows)) ^ seed(name))
    return np.where(documents.missing, missing_hash(name), own)


def draw(rows: CodedRows, schema: Schema, keys: Ints, before: CountedBefore) -> Reservoir:
    """The rows of a batch that are kept, categories as positions in the schema; their keys lower the common limit."""
    y, w, empty = rows.y, rows.w, nothing_drawn(schema.columns)
    most = most_rows(len(empty.columns))
    low = np.flatnonzero(keys < before.limit)
    some = _candidates(keys, low[w[low] > 0], most)

    def column(name: str, chosen: NDArray[np.intp]) -> NDArray[Any]:
        if name in rows.codes:
            return _recoded(rows.codes[name], chosen)
        numbers: NDArray[Any] = _numbers(rows.batch, name)[chosen]
        return numbers

    def cells(chosen: NDArray[np.intp]) -> list[NDArray[Any]]:
        return [y[some[chosen]], *(column(name, some[chosen]) for name in sorted(empty.columns))]

    chosen, (whole,), beyond = lowest(keys[some], [w[some]], most, cells)
    kept = some[chosen]
    before.add_keys(keys[kept], most)
    rising, order = np.unique(kept, return_inverse=True)  # read in the order of memory, which is faster
    columns = {name: column(name, rising)[order] for name in empty.columns}
    return Reservoir(keys[kept], y[kept], whole, columns, beyond)


def _candidates(keys: Ints, rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Rows that may be among the lowest, equal rows being one; more than are kept, so that the limit is known."""
    if len(rows) > 2 * most:
        own = keys[rows]
        low: NDArray[np.intp] = rows[own <= np.partition(own, most + most // 2)[most + most // 2]]
        if len(distinct(np.sort(keys[low]))) > most:
            return low
    return rows


def _recoded(coded: Coded, rows: slice | NDArray[np.intp]) -> NDArray[np.int32]:
    """The codes of some rows as positions in the values, -1 where a cell is missing."""
    codes = coded.codes[rows]
    place = codes if coded.low == 0 else codes.astype(np.int64) - coded.low
    return np.where((place >= 0) & (place < len(coded.values)), place, -1).astype(np.int32)
