"""Values and weights of one distribution, checked and in the form that its family counts; for `estimate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError
from likely.families import Encoded, Family
from likely.schema import CATEGORY, NUMBER, Column, ordered
from likely.sources import open_source

Array = NDArray[np.float64]
NO_VALUES = "there is no value to estimate from: the values are empty"


@dataclass(frozen=True)
class EncodedValues:
    """Values without missing ones: their codes or numbers, the columns, and the weight of each."""

    rows: Encoded
    columns: list[Column]
    weights: Array


def encoded_values(values: Any, family: Family, named: Sequence[Any], weights: Any) -> EncodedValues:
    """The values as the family counts them. `named` are outcomes that the prior names. Missing values are left out."""
    if values is None:
        raise DataError("the values are None: pass a sequence, an array or a dict of columns")
    table = _columns_of(values)
    if family.column_kind == CATEGORY:
        rows, columns = _coded(_one_column(values, table), named)
        known = rows.codes[:, 0] >= 0
    else:
        rows, columns = _numbered(values, table, family, named)
        missing = np.isnan(rows.numbers)
        # several columns of a single family are independent
        known = np.asarray(~(missing.all(1) if family.single else missing.any(1)))
    w = _weights(weights, len(known))
    if not known.any() and (len(known) or not columns or family.a_vector_is_a_row):
        raise DataError(NO_VALUES if not len(known) else "there is no value to estimate from: all are missing")
    if known.any() and not w[known].sum() > 0:
        raise DataError("the weights of all values are zero: at least one must be positive")
    if family.column_kind != CATEGORY:
        _check(family, columns, rows.numbers)
    left = Encoded(rows.codes[known], rows.low, rows.size, rows.numbers[known])
    return EncodedValues(left, columns, w[known])


def _columns_of(values: Any) -> dict[str, Any] | None:
    """The columns of a dict or a data frame; None for a plain sequence."""
    if isinstance(values, Mapping):
        return {str(name): column for name, column in values.items()}
    if hasattr(values, "columns") and hasattr(values, "__getitem__"):
        return {str(name): values[name] for name in values.columns}
    return None


def _one_column(values: Any, table: dict[str, Any] | None) -> list[Any]:
    if table is None:
        return list(values) if hasattr(values, "__iter__") else [values]
    if len(table) != 1:
        raise UsageError(f"a categorical distribution has one column, not {list(table)}: pass the values of one column")
    return list(next(iter(table.values())))


def _coded(values: list[Any], named: Sequence[Any]) -> tuple[Encoded, list[Column]]:
    """Codes of categorical values, with the outcomes that the prior names; -1 where a value is missing."""
    if not values:
        columns = [Column("value", CATEGORY, ordered(named))] if named else []
        size = np.array([len(named)], np.int64)
        return Encoded(np.zeros((0, 1), np.int32), np.zeros(1, np.int64), size, np.zeros((0, 0))), columns
    coded = next(iter(open_source({"value": values}).batches())).coded("value")
    column = Column("value", CATEGORY, ordered(coded.values)).union(Column("value", CATEGORY, ordered(named)))
    place = np.array([*(column.code[column.canonical(v)] for v in coded.values), -1])
    codes = place[coded.codes - coded.low].astype(np.int32)[:, None]
    size = np.array([len(column.values)], np.int64)
    return Encoded(codes, np.zeros(1, np.int64), size, np.zeros((len(codes), 0))), [column]


def _numbered(
    values: Any, given: dict[str, Any] | None, family: Family, named: Sequence[Any]
) -> tuple[Encoded, list[Column]]:
    """Columns of numbers, with those that the prior names."""
    if given is not None:
        parts = {name: np.atleast_1d(_numbers(family.answers(column), name)) for name, column in given.items()}
        lengths = {name: len(part) for name, part in parts.items()}
        if len(set(lengths.values())) != 1:
            raise DataError(f"the columns differ in length: {lengths}" if lengths else "there are no columns of values")
        names, table = list(parts), np.column_stack(list(parts.values()))
    else:
        table = _numbers(family.answers(values), "value")
        table = table[:, None] if table.ndim == 1 and not family.a_vector_is_a_row else np.atleast_2d(table)
        names, named = (["value"] if table.shape[1] == 1 else [f"x{j}" for j in range(table.shape[1])]), ()
    names, table = family.value_columns(names, table, named)
    table, none = np.ascontiguousarray(table, dtype=np.float64), np.zeros(0, np.int64)
    return Encoded(np.zeros((len(table), 0), np.int32), none, none, table), [Column(name, NUMBER) for name in names]


def _numbers(values: Any, name: str, remedy: str = "family='categorical' takes names") -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        cells = list(values) if hasattr(values, "__iter__") else [values]
        row, odd = next(((i, cell) for i, cell in enumerate(cells) if not _is_number(cell)), (0, values))
        raise DataError(f"{odd!r:.60} is no number (column {name!r}, row {row + 1})", remedy=remedy) from None


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return cell is None
    return True


def _check(family: Family, columns: Sequence[Column], numbers: Array) -> None:
    """Refuse a number that the family cannot count, and a row whose numbers do not fit together."""
    for j, column in enumerate(columns):
        bad = family.check(column.name, numbers[:, j]) if numbers.shape[1] > j else None
        if bad:
            raise DataError(f"which {bad[1]}", column=column.name, value=numbers[bad[0], j].item(), row=bad[0] + 1)
    bad = family.check_block(numbers)
    if bad:
        raise DataError(f"which {bad[1]}", column=columns[0].name, value=numbers[bad[0], 0].item(), row=bad[0] + 1)


def _weights(given: Any, count: int) -> Array:
    """One finite weight of zero or more for each value."""
    if given is None:
        return np.ones(count)
    w = _numbers(given, "weights", "pass one number for each value")
    if w.shape != (count,):
        raise DataError(f"there are {count} values and weights of shape {w.shape}: pass one weight for each value")
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        row = int(bad[0])
        raise DataError("which is no finite number of zero or more", column="weights", value=w[row].item(), row=row + 1)
    return w
