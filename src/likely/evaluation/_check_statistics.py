"""Statistics of a table, class by class: of each column, and of each pair of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines.targets import with_labels
from likely.errors import no_column
from likely.model.model import Model
from likely.schema import CATEGORY, NUMBER, Column
from likely.sources import Batch, ReadOptions, open_source
from likely.sources.row_access import complete

Array = NDArray[np.float64]
FEWEST = 3  # rows of a class that have statistics
MOST_PAIRS = 200


@dataclass(frozen=True)
class Table:
    """Columns as numbers with NaN where a cell is missing (of categories their codes, of texts the number of words)."""

    labels: tuple[Any, ...]
    classes: NDArray[np.int64]
    cells: Mapping[str, Array]
    coded: Mapping[str, Column]  # the columns of categories
    zeros: tuple[str, ...] = ()  # columns of numbers with some zeros
    most_pairs: int = MOST_PAIRS

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.classes)

    def only(self, names: Sequence[str]) -> Table:
        """The table with some of its columns."""
        return replace(self, cells={name: self.cells[name] for name in names if name in self.cells})

    def of_classes(self) -> list[tuple[int, NDArray[np.int64]]]:
        """The rows of each class that has enough of them."""
        places = [(c, np.flatnonzero(self.classes == c)) for c in range(len(self.labels))]
        return [(c, rows) for c, rows in places if len(rows) >= FEWEST]


def labelled_table(model: Model, data: Any, how: Mapping[str, Any], most: int, rng: np.random.Generator) -> Table:
    """The rows of a source with labels known to the model; of more than `most`, a random sample."""
    name = model.schema.target.name
    rest = {key: value for key, value in how.items() if key != "missing"}
    source, target = with_labels(open_source(data, ReadOptions.of(how.get("missing"), rest, model.reading)), name)
    assert target is not None
    source = model.with_target(source, target)
    kinds = {c.name: c.kind for c in model.schema.columns} | {target: CATEGORY}
    parts: list[dict[str, Array]] = []
    labels: list[NDArray[np.int64]] = []
    for batch in source.batches(kinds):
        if target not in batch.names:
            raise no_column(source.label, target, batch.names, "the labels are needed to check a model")
        coded = batch.coded(target)
        truth = np.array([*model.schema.target.codes(coded.values), -1], dtype=np.int64)[coded.codes - coded.low]
        truth = np.where(truth < len(model.classes), truth, -1)
        rows = complete(batch, model.schema.columns, source, "error")
        parts.append({c.name: _numbers(model, rows, c)[truth >= 0] for c in model.schema.columns})
        labels.append(truth[truth >= 0])
    classes = np.concatenate(labels) if labels else np.zeros(0, np.int64)
    kept = np.sort(rng.choice(len(classes), most, replace=False)) if len(classes) > most else np.arange(len(classes))
    cells = {c.name: np.concatenate([part[c.name] for part in parts])[kept] for c in model.schema.columns} if parts else {}
    numbers = [c.name for c in model.schema.columns if c.kind == NUMBER]
    zeros = tuple(name for name in numbers if name in cells and (cells[name] == 0).any())
    coded_columns = {c.name: c for c in model.schema.columns if c.kind == CATEGORY}
    return Table(model.classes, classes[kept], cells, coded_columns, zeros)


def _numbers(model: Model, batch: Batch, column: Column) -> Array:
    if column.kind == NUMBER:
        return np.array(batch.numbers([column.name], 0, batch.rows)[:, 0])
    if column.kind == CATEGORY:
        coded = batch.coded(column.name)
        place = np.array([*column.codes(coded.values), -1], dtype=np.int64)[coded.codes - coded.low]
        return np.where((place >= 0) & (place < len(column.values)), place, np.nan)
    i = next(i for i, block in enumerate(model.blocks) if column.name in block.columns)
    family: Any = model.blocks[i].family
    words: Any = model.tally.statistics[i]
    documents = batch.documents(column.name)
    bags = family.bags(documents.part(0, batch.rows), words.vocabulary)
    counts = np.ones(len(bags.ids)) if family.adds == "once" else bags.counts.astype(np.float64)
    known = np.bincount(np.repeat(np.arange(len(bags)), np.diff(bags.indptr)), counts, len(bags))
    return np.where(documents.missing, np.nan, known)


def table_of_cells(like: Table, cells: Mapping[str, NDArray[Any]]) -> Table:
    """A drawn table with the classes and the gaps of another one."""
    found = {}
    for name, gaps in like.cells.items():
        drawn = cells[name]
        if name in like.coded:
            code = like.coded[name].code
            drawn = np.array([code.get(value, np.nan) for value in drawn.tolist()], dtype=np.float64)
        elif drawn.dtype == object:
            drawn = np.array([len(document.split()) for document in drawn.tolist()], dtype=np.float64)
        found[name] = np.where(np.isnan(gaps), np.nan, drawn)
    return replace(like, cells=found)


def column_statistics(table: Table) -> dict[tuple[Any, ...], float]:
    """Of each column and class: mean, deviation, skewness, share of zeros; of categories, of the most frequent value."""
    found: dict[tuple[Any, ...], float] = {}
    for c, rows in table.of_classes():
        for name, cells in table.cells.items():
            x = cells[rows]
            x = x[~np.isnan(x)]
            if name in table.coded:
                counts = np.bincount(x.astype(np.int64)) if len(x) else np.zeros(1)
                found["share of the most frequent value", (name,), c] = float(counts.max() / max(len(x), 1))
                continue
            found["mean", (name,), c] = float(x.mean()) if len(x) else 0.0
            found["deviation", (name,), c] = float(x.std()) if len(x) else 0.0
            found["skewness", (name,), c] = _skewness(x)
            if name in table.zeros:
                found["share of zeros", (name,), c] = float((x == 0).mean()) if len(x) else 0.0
    return found


def _skewness(x: Array) -> float:
    apart = x - x.mean() if len(x) else x
    wide = float(np.sqrt((apart**2).mean())) if len(x) else 0.0
    return float((apart**3).mean()) / wide**3 if wide > 0 else 0.0


def pair_statistics(table: Table, wanted: Sequence[tuple[Any, ...]] | None = None) -> dict[tuple[Any, ...], float]:
    """The association of each pair of columns within each class.

    Pearson's correlation of numbers, Cramér's V of categories, the correlation ratio of a number and a category.
    """
    places = dict(table.of_classes())
    if wanted is None:
        pairs = list(combinations(table.cells, 2))
        wanted = [(_association(table, pair), pair, c) for c in places for pair in pairs]
    found = {}
    for key in wanted:
        _, (a, b), c = key
        x, y = table.cells[a][places[c]], table.cells[b][places[c]]
        both = ~(np.isnan(x) | np.isnan(y))
        found[key] = _associated(x[both], y[both], a in table.coded, b in table.coded) if both.sum() >= FEWEST else 0.0
    return found


def _association(table: Table, pair: tuple[str, str]) -> str:
    return ("correlation", "correlation ratio", "Cramér's V")[sum(name in table.coded for name in pair)]


def _associated(x: Array, y: Array, x_coded: bool, y_coded: bool) -> float:
    if x_coded and y_coded:
        return _cramer(x.astype(np.int64), y.astype(np.int64))
    if x_coded or y_coded:
        return _ratio(*((y, x.astype(np.int64)) if x_coded else (x, y.astype(np.int64))))
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale > 0 else 0.0


def _cramer(x: NDArray[np.int64], y: NDArray[np.int64]) -> float:
    """√(χ² / n(k − 1)), k the smaller number of values that occur."""
    wide = int(y.max()) + 1
    seen = np.bincount(x * wide + y, minlength=(int(x.max()) + 1) * wide).reshape(-1, wide)
    seen = seen[seen.any(1)][:, seen.any(0)]
    if min(seen.shape) < 2:
        return 0.0
    expected = seen.sum(1, keepdims=True) * seen.sum(0) / seen.sum()
    return float(np.sqrt(((seen - expected) ** 2 / expected).sum() / (seen.sum() * (min(seen.shape) - 1))))


def _ratio(x: Array, groups: NDArray[np.int64]) -> float:
    """√(spread between the groups / spread in all)."""
    n = np.bincount(groups)
    means = np.bincount(groups, x) / np.maximum(n, 1)
    whole = float(((x - x.mean()) ** 2).sum())
    return float(np.sqrt((n * (means - x.mean()) ** 2).sum() / whole)) if whole > 0 else 0.0
