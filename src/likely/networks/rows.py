"""Rows of a table encoded for a network: integer codes of categorical nodes, numbers of numeric ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError, did_you_mean, no_column
from likely.kernels.parallel import in_parallel
from likely.schema import CATEGORY, NUMBER, Column, is_missing, one_of_alike, ordered, plain
from likely.sources import Batch, Coded, ReadOptions, open_source, require_rows

Array = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
FEW_NUMBERS = 12  # distinct whole numbers: a column with no more of them is taken for categories
KINDS = {"categorical": CATEGORY, "category": CATEGORY, "gaussian": NUMBER, "number": NUMBER}


def code_type(columns: Sequence[Column]) -> type[np.signedinteger[Any]]:
    """The narrowest type for the codes of all columns: the fewer bytes, the faster they are counted."""
    most = max((len(c.values) for c in columns), default=0)
    return np.int8 if most < 1 << 7 else np.int16 if most < 1 << 15 else np.int32


@dataclass(frozen=True)
class Rows:
    """The rows of a table, a line a node; -1 and NaN are missing cells.

    Parameters
    ----------
    columns : tuple of Column
        What each node holds: categories with their values, or numbers.
    codes : array of int8, int16 or int32, nodes × rows
        The place of each value; 0 throughout for numeric nodes.
    numbers : array of float64, numeric nodes × rows
        The numbers, in the order of the numeric nodes.
    weights : array of float64
        How much each row counts; empty where each counts once.

    """

    columns: tuple[Column, ...]
    codes: Codes
    numbers: Array
    weights: Array

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.codes.shape[1])

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weights.sum()) if len(self.weights) else float(self.n)

    @property
    def numeric(self) -> dict[str, int]:
        """The line of `numbers` of each numeric node."""
        return {name: i for i, name in enumerate(c.name for c in self.columns if c.kind == NUMBER)}

    @property
    def complete(self) -> bool:
        """Whether no cell is missing."""
        return not (self.codes.size and self.codes.min() < 0) and not np.isnan(self.numbers).any()

    def each_weight(self) -> Array:
        """The weight of every row."""
        return self.weights if len(self.weights) else np.ones(self.n)

    def take(self, which: NDArray[Any]) -> Rows:
        """Some of the rows."""
        weights = self.weights[which] if len(self.weights) else self.weights
        return replace(self, codes=self.codes[:, which], numbers=self.numbers[:, which], weights=weights)

    def only(self, names: Sequence[str]) -> Rows:
        """The rows with some of their columns, in the order of the table."""
        kept = [i for i, c in enumerate(self.columns) if c.name in set(names)]
        columns = tuple(self.columns[i] for i in kept)
        numbers = self.numbers[[self.numeric[c.name] for c in columns if c.kind == NUMBER]]
        return Rows(columns, np.ascontiguousarray(self.codes[kept]), numbers, self.weights)

    def distinct(self) -> Rows:
        """Rows that are alike made one, with their weight, where there can be only few different ones."""
        if len(self.numbers) or self.n < 2:
            return self
        sizes = [len(c.values) + 1 for c in self.columns]
        place, cells = np.zeros(self.n, np.int64), 1
        for line, size in zip(self.codes, sizes, strict=True):
            cells *= size
            if cells >= 1 << 62:
                return self
            place = place * size + (line + 1)
        if cells <= 4 * self.n:
            first = np.full(cells, -1, np.int64)
            first[place[::-1]] = np.arange(self.n - 1, -1, -1)
            weights = np.bincount(place, self.weights if len(self.weights) else None, minlength=cells).astype(np.float64)
            kept = np.flatnonzero(first >= 0)
            return replace(self, codes=np.ascontiguousarray(self.codes[:, first[kept]]), weights=weights[kept])
        _, first, which = np.unique(place, return_index=True, return_inverse=True)
        if len(first) > 0.8 * self.n:
            return self
        weights = np.bincount(which.reshape(-1), self.weights if len(self.weights) else None).astype(np.float64)
        return replace(self, codes=np.ascontiguousarray(self.codes[:, first]), weights=weights)


@dataclass(frozen=True)
class Wanted:
    """The columns to read from a table, and their kinds.

    Parameters
    ----------
    names : sequence of str, or None
        The nodes; None takes every column.
    known : mapping of str to Column
        Nodes whose values are known already.
    hidden : collection of str
        Nodes that the table may lack.
    kinds : mapping of str to str
        "categorical" or "gaussian", where the data are not to decide.
    unseen : "error", "missing" or "new"
        What a value is that a known node does not have.
    weights : str, array or None
        A column that holds the weight of each row, or the weights themselves.

    """

    names: Sequence[str] | None = None
    known: Mapping[str, Column] | None = None
    hidden: Sequence[str] = ()
    kinds: Mapping[str, str] | None = None
    unseen: str = "error"
    weights: Any = None


def read_rows(data: Any, wanted: Wanted, reading: ReadOptions | None = None) -> Rows:
    """The rows of any source as codes and numbers."""
    declared = rows_at_hand(data, wanted, reading)
    if declared is not None:
        return declared
    source = open_source(data, reading)
    return rows_of_batches(list(source.batches()), wanted, source.label)


def rows_at_hand(data: Any, wanted: Wanted, reading: ReadOptions | None = None) -> Rows | None:
    """The rows where they are coded already: `Rows`, or a pandas frame of categories; None for anything else."""
    if isinstance(data, Rows):
        return data
    if wanted.weights is None and not wanted.kinds and (reading is None or reading.missing is None):
        return _declared(data, wanted.names, wanted.known or {})
    return None


def rows_of_batches(batches: Sequence[Batch], wanted: Wanted, label: str) -> Rows:
    """The rows of all batches of a table, which `label` names in messages."""
    require_rows(sum(batch.rows for batch in batches), label)
    names = list(batches[0].names) if wanted.names is None else list(wanted.names)
    weights, names = _weights(wanted, batches, names)
    known = wanted.known or {}
    require_columns(names, {name for batch in batches for name in batch.names}, wanted.hidden, label)
    made = in_parallel(lambda name: column_and_cells(name, batches, wanted, known.get(name)), names)
    return assembled(made, weights)


def require_columns(names: Sequence[str], there: Collection[str], hidden: Collection[str], label: str) -> None:
    """Refuse a table that lacks the column of a node, unless the node is hidden."""
    for name in names:
        if name not in there and name not in hidden:
            remedy = f"it has {sorted(there)[:20]}; a node without a column is hidden={{{name!r}: NUMBER_OF_VALUES}}"
            raise no_column(label, name, sorted(there), f"{remedy}")


def assembled(made: Sequence[tuple[Column, Any]], weights: Array) -> Rows:
    """Columns and their cells as one value."""
    columns = tuple(column for column, _ in made)
    rows = len(made[0][1]) if made else 0
    codes = np.empty((len(columns), rows), code_type(columns))
    for i, (column, line) in enumerate(made):
        codes[i] = line if column.kind == CATEGORY else 0
    numbers = [line for column, line in made if column.kind == NUMBER]
    return Rows(columns, codes, np.array(numbers).reshape(len(numbers), rows), weights)


def _weights(wanted: Wanted, batches: Sequence[Batch], names: list[str]) -> tuple[Array, list[str]]:
    if wanted.weights is None:
        return np.zeros(0), names
    if isinstance(wanted.weights, str):
        found = weights_in(wanted.weights, batches)
        names = [name for name in names if name != wanted.weights]
    else:
        found = np.asarray(wanted.weights, dtype=np.float64).reshape(-1)
    check_weights(found, sum(batch.rows for batch in batches))
    require_weight(bool(found.any()))
    return found, names


def weights_in(name: str, batches: Sequence[Batch]) -> Array:
    """The weights that a column of the table holds."""
    if name not in batches[0].names:
        raise no_column("the table", name, list(batches[0].names))
    return numbers_in(name, batches)


def check_weights(weights: Array, rows: int) -> None:
    """Refuse weights that are no finite numbers of at least 0, or not one for each row."""
    if len(weights) != rows or not np.isfinite(weights).all() or (weights < 0).any():
        raise DataError("weights must be finite numbers of at least 0, one for each row")


def require_weight(any_weight: bool) -> None:
    """Refuse a table whose rows all have weight 0."""
    if not any_weight:
        raise DataError("the weights are all zero: nothing would be counted")


def numbers_in(name: str, batches: Sequence[Batch]) -> Array:
    """A column of all batches as numbers; NaN where it is missing."""
    found = [b.numbers([name], 0, b.rows)[:, 0] if name in b.names else np.full(b.rows, np.nan) for b in batches]
    numbers = np.concatenate(found)
    broken = np.isinf(numbers)
    if broken.any():
        row = int(broken.argmax())
        raise DataError("which is not a finite number", column=name, value=float(numbers[row]), row=row + 1,
                        remedy="correct it, or leave the row out")  # fmt: skip
    return numbers


def column_and_cells(name: str, batches: Sequence[Batch], wanted: Wanted, known: Column | None) -> tuple[Column, Any]:
    """A node's column and its cells: codes, or numbers."""
    present = [batch for batch in batches if name in batch.names]
    rows = sum(batch.rows for batch in batches)
    if known is not None and not present:
        return known, np.full(rows, -1 if known.kind == CATEGORY else np.nan)
    kind = known.kind if known is not None else _kind(name, present, (wanted.kinds or {}).get(name))
    if kind == NUMBER:
        numbers = numbers_in(name, batches)
        few = few_whole(numbers) if known is None and name not in (wanted.kinds or {}) else None
        return few_values(name, numbers, few) if few is not None else (known or Column(name, NUMBER), numbers)
    return categories_in(name, batches, known, wanted.unseen)


def few_values(name: str, numbers: Array, few: Array) -> tuple[Column, Codes]:
    """A column of few whole numbers as categories, with the code of every cell."""
    codes = np.searchsorted(few, numbers)
    codes[np.isnan(numbers)] = -1
    return Column(name, CATEGORY, tuple(int(v) for v in few)), codes


def categories_in(name: str, batches: Sequence[Batch], known: Column | None, unseen: str) -> tuple[Column, Codes]:
    """A column of categories, and the code of every cell."""
    empty = Coded(np.zeros(0, np.int32), ())
    coded = [b.coded(name) if name in b.names else replace(empty, codes=np.full(b.rows, -1, np.int32)) for b in batches]
    column, places = united(name, coded, known, unseen)
    return column, np.concatenate([place[np.clip(c.codes - c.low, -1, len(c.values))] for c, place in
                                   zip(coded, places, strict=True)])  # fmt: skip


def _kind(name: str, batches: Sequence[Batch], asked: str | None) -> str:
    if asked is not None:
        return asked_kind(name, asked)
    kinds = [kind for kind, _ in (batch.kind(name) for batch in batches) if kind is not None]
    if not kinds:
        raise no_value(name)
    return NUMBER if all(kind == NUMBER for kind in kinds) else CATEGORY


def asked_kind(name: str, asked: str) -> str:
    """The kind of a node from the word for it."""
    if asked not in KINDS:
        raise UsageError(f"kind {asked!r} of node {name!r} is not known{did_you_mean(asked, KINDS)}: "
                         "choose 'categorical' or 'gaussian'")  # fmt: skip
    return KINDS[asked]


def no_value(name: str) -> DataError:
    """The error for a column without a single value."""
    return DataError(
        "holds no value at all", column=name,
        remedy=f"leave it out, or declare it as a hidden node: hidden={{{name!r}: NUMBER_OF_VALUES}}",
    )  # fmt: skip


def few_whole(numbers: Array) -> Array | None:
    """The distinct numbers, if they are whole and few: such a column holds categories."""
    with np.errstate(all="ignore"):
        low, high = np.fmin.reduce(numbers, initial=np.inf), np.fmax.reduce(numbers, initial=-np.inf)
    head = np.unique(numbers[:1000][~np.isnan(numbers[:1000])])
    if len(head) > FEW_NUMBERS or not low <= high or (head != np.floor(head)).any():
        return None
    if high - low < 1 << 12:  # counted, which is faster than sorted
        seen = numbers[~np.isnan(numbers)]
        whole = (seen - low).astype(np.int64)
        if not np.array_equal(whole + low, seen):
            return None
        values = np.flatnonzero(np.bincount(whole)) + low
    else:
        values = np.unique(numbers[~np.isnan(numbers)])
    return values if len(values) <= FEW_NUMBERS and (values == np.floor(values)).all() else None


def _declared(data: Any, names: Sequence[str] | None, known: Mapping[str, Column]) -> Rows | None:
    """The codes of a pandas frame of categories as they are, without a copy; None for anything else."""
    if type(data).__module__.partition(".")[0] != "pandas" or not hasattr(data, "dtypes") or not len(data):
        return None
    wanted = [str(name) for name in data.columns] if names is None else list(names)
    if not all(isinstance(name, str) for name in data.columns) or not data.columns.is_unique:
        return None
    kinds = {name: str(kind) for name, kind in zip(data.columns, data.dtypes, strict=True)}
    if any(kinds.get(name) != "category" for name in wanted):
        return None
    if any(known[name].kind != CATEGORY for name in wanted if name in known):
        return None
    held = [data[name].array for name in wanted]
    listed = [Column(name, CATEGORY, tuple(map(plain, each.categories.tolist())))
              for name, each in zip(wanted, held, strict=True)]  # fmt: skip
    codes = np.empty((len(wanted), len(data)), code_type([*listed, *known.values()]))
    columns = []
    for line, each, column in zip(codes, held, listed, strict=True):
        line[:] = each.codes
        values = column.values
        if any(is_missing(value) for value in values) or len(one_of_alike(values)) < len(values):
            return None
        if column.name in known:
            place = known[column.name].codes(values)
            if max(place, default=0) == len(known[column.name].values):  # a value that the node lacks: read it with care
                return None
            columns.append(known[column.name])
            line[:] = np.array([*place, -1], dtype=codes.dtype)[line]
            continue
        occurs = _occurring(line, len(values))
        if occurs.all():  # categories stay in their own order, which may mean something
            columns.append(column)
            continue
        columns.append(Column(column.name, CATEGORY, ordered(v for v, there in zip(values, occurs, strict=True) if there)))
        line[:] = np.array([*columns[-1].codes(values), -1], dtype=codes.dtype)[line]
    return Rows(tuple(columns), codes, np.zeros((0, len(data))), np.zeros(0))


def _occurring(codes: Codes, size: int) -> NDArray[np.bool_]:
    """Which of the values occur; all rows are looked at only if the first of them lack a value."""
    for some in (1 << 12, 1 << 16, len(codes)):
        head = codes[:some]
        seen = np.bincount(head[head >= 0], minlength=size) > 0
        if seen.all() or some >= len(codes):
            break
    return seen


def united(name: str, coded: Sequence[Coded], known: Column | None, unseen: str) -> tuple[Column, list[Codes]]:
    """The column with all values that occur, and for each part the new code of every old one (the last is missing)."""
    seen: list[Any] = []
    for part in coded:
        codes = part.codes - part.low
        often = np.bincount(codes[(codes >= 0) & (codes < len(part.values))], minlength=len(part.values))
        seen += [part.values[i] for i in np.flatnonzero(often).tolist()]
    if known is None:
        column = Column(name, CATEGORY, ordered(one_of_alike(seen)))
    else:
        column = known
        new = [value for value in dict.fromkeys(seen) if known.canonical(value) not in known.code]
        if new and unseen == "error":
            raise DataError("which the node does not have", column=name, value=new[0],
                            remedy=f"its values are {list(known.values[:20])}; update() takes new ones in")  # fmt: skip
        if new and unseen == "new":
            column = known.union(Column(name, CATEGORY, ordered(one_of_alike(new))))
    unknown = len(column.values)
    places: list[Codes] = []
    for part in coded:
        place = np.array([*column.codes(part.values), -1, -1], dtype=np.int32)  # -1 for what is missing, on either side
        place[place == unknown] = -1
        places.append(place)
    return column, places
