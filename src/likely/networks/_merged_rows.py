"""Rows put together: in wider columns, one after the other, alike ones as one with their weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from likely.networks.rows import Rows, code_type
from likely.schema import CATEGORY, NUMBER, Column

MOST_PLACES = 1 << 62  # that one integer can number


def recoded(rows: Rows, columns: Sequence[Column]) -> Rows:
    """The rows in columns that may have more values; one that had none at all may hold numbers now."""
    made = tuple(columns)
    if all(old.values == new.values and old.kind == new.kind for old, new in zip(rows.columns, made, strict=True)):
        return replace(rows, columns=made)
    codes = rows.codes.astype(np.promote_types(rows.codes.dtype, code_type(made)))
    for line, old, new in zip(codes, rows.columns, made, strict=True):
        if new.kind == NUMBER:
            line[:] = 0
        elif old.values != new.values:
            line[:] = np.array([*new.codes(old.values), -1])[line]
    before, missing = rows.numeric, np.full(rows.n, np.nan)
    numbers = [rows.numbers[before[c.name]] if c.name in before else missing for c in made if c.kind == NUMBER]
    return Rows(made, codes, np.array(numbers).reshape(len(numbers), rows.n), rows.weights)


def joined(pieces: Sequence[Rows], columns: Sequence[Column]) -> Rows:
    """Several lists of rows, one after the other, in columns that have the values of all."""
    same = [recoded(piece, columns) for piece in pieces]
    if len(same) == 1:
        return same[0]
    weighted = any(len(piece.weights) for piece in same)
    return Rows(
        tuple(columns), np.concatenate([piece.codes for piece in same], axis=1),
        np.concatenate([piece.numbers for piece in same], axis=1),
        np.concatenate([piece.each_weight() for piece in same]) if weighted else np.zeros(0),
    )  # fmt: skip


def merged(rows: Rows) -> Rows:
    """Rows that are alike made one, with their weight, in the order of their codes; rows with numbers stay as they are."""
    if len(rows.numbers) or rows.n < 2:
        return rows
    few = rows.distinct()
    if few is not rows:
        return few
    place, cells = np.zeros(rows.n, np.int64), 1
    for line, column in zip(rows.codes, rows.columns, strict=True):
        size = len(column.values) + 1
        if cells * size >= MOST_PLACES:  # numbered anew: there are no more places than rows
            place = np.unique(place, return_inverse=True)[1].reshape(-1).astype(np.int64)
            cells = int(place.max()) + 1
        place = place * size + (line + 1)
        cells *= size
    _, first, which = np.unique(place, return_index=True, return_inverse=True)
    if len(first) == rows.n:
        return rows
    weights = np.bincount(which.reshape(-1), rows.weights if len(rows.weights) else None).astype(np.float64)
    return replace(rows, codes=np.ascontiguousarray(rows.codes[:, first]), weights=weights)


def cells_known(rows: Rows) -> dict[str, int]:
    """How many cells of each column are there."""
    numeric = rows.numeric
    return {
        c.name: int((rows.codes[i] >= 0).sum() if c.kind == CATEGORY else (~np.isnan(rows.numbers[numeric[c.name]])).sum())
        for i, c in enumerate(rows.columns)
    }
