"""The target column: named, given as an array, or a numeric column cut into bins."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines.row_weights import with_weights
from likely.errors import DataError, LikelyWarning, UsageError, no_column
from likely.schema import NUMBER
from likely.sources import Batch, Coded, Frame, InMemory, Matrix, ReadOptions, Source, for_target, open_source
from likely.sources.arrow_arrays import arrow_array
from likely.sources.batch import to_arrow
from likely.sources.wrapper import SourceWrapper

Array = NDArray[np.float64]
MOST_VALUES = 1 << 22  # of which quantiles are taken: of more, every second one, every fourth one, ...
FEW_VALUES, MANY_VALUES = 20, 100
ROWS_A_CLASS = 10
MOVED = 0.005  # of all rows: as many may change bins by the rounding of an edge
EACH = "none"  # no bins, however many values there are


@dataclass(frozen=True)
class Opened:
    """Rows to learn from: the source, its target and weight columns, and the edges of target bins."""

    source: Source
    target: str | None
    weights: str | None
    edges: tuple[float, ...] = ()

    @property
    def known(self) -> dict[str, Any]:
        """The settings that a model keeps."""
        return {"weights": self.weights, "target_edges": self.edges}


def opened(data: Any, target: Any, weights: Any, target_bins: Any, reading: ReadOptions) -> Opened:
    """The rows with their target: a column of the data, an array of labels beside it, or numbers cut into bins."""
    source, name = with_labels(open_source(data, reading), target)
    source, weight_name = with_weights(source, weights if _is_array(weights) else as_name(weights))
    source = for_target(source, name)
    if target_bins is None or (isinstance(target_bins, str) and target_bins == EACH):
        return Opened(source, name, weight_name)
    if name is None:
        raise UsageError("target_bins= (--target-bins) needs the column to predict: name it with target= (--target)")
    edges = edges_of(source, name, target_bins)
    return Opened(BinnedTarget(source, name, edges), name, weight_name, edges)


def as_name(given: Any) -> Any:
    """The name of a column as text: the columns 0, 1, 2, … of a frame are "0", "1", "2" here."""
    return str(int(given)) if isinstance(given, (int, np.integer)) and not isinstance(given, bool) else given


def as_names(given: Any) -> tuple[str, ...]:
    """Names of columns; one name alone is a list of one."""
    return (as_name(given),) if isinstance(given, (str, int, np.integer)) else tuple(as_name(name) for name in given)


def _is_array(given: Any) -> bool:
    return hasattr(given, "__len__") and not isinstance(given, (str, bytes))


def with_labels(source: Source, target: Any) -> tuple[Source, str | None]:
    """The source and the name of its target; labels that come as an array become a column."""
    if not _is_array(target):
        return source, as_name(target)
    if not isinstance(source, InMemory):
        raise UsageError("the target of a file must be the name of one of its columns")
    batch = source.batch
    if len(target) != batch.rows:
        raise DataError(f"there are {len(target)} labels for {batch.rows} rows")
    if getattr(target, "ndim", 1) > 1:
        target = np.asarray(target).reshape(len(target), -1)
        if target.shape[1] != 1:
            raise DataError(f"the labels are an array of {target.shape[1]} columns: pass one label a row")
        target = target[:, 0]
    given = as_name(getattr(target, "name", None))
    name = given if isinstance(given, str) and given and given not in batch.names else _free_name(batch.names)
    labels = target.tolist() if hasattr(target, "tolist") else list(target)
    columns = _columns(batch) | {name: to_arrow(labels, name)}
    return replace(source, batch=Frame(columns, batch.rows, 0, source.missing)), name


def _free_name(taken: Sequence[str]) -> str:
    return next(name for name in ("target", "y", *(f"y{i}" for i in range(len(taken) + 1))) if name not in taken)


def _columns(batch: Batch) -> dict[str, Any]:
    if isinstance(batch, Matrix):
        return {name: arrow_array(np.ascontiguousarray(batch.array[:, j])) for j, name in enumerate(batch.columns)}
    assert isinstance(batch, Frame)
    return batch.columns


@dataclass(frozen=True)
class BinnedTarget(SourceWrapper):
    """A source whose target, a column of numbers, is replaced by the bins that the numbers are in."""

    target: str
    edges: tuple[float, ...]

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        wanted = None if kinds is None else {**kinds, self.target: NUMBER} if self.target in kinds else kinds
        for batch in self.inner.batches(wanted):
            yield self._binned(batch) if self.target in batch.names else batch

    def _binned(self, batch: Batch) -> Batch:
        import pyarrow as pa

        labels = bin_labels(self.edges)
        try:
            x = batch.numbers([self.target], 0, batch.rows)[:, 0]
            codes = np.where(np.isnan(x), -1, np.searchsorted(self.edges, x, side="left")).astype(np.int32)
        except DataError:
            codes = _bins_by_name(batch.coded(self.target), labels)
            if codes is None:
                raise
        column = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), arrow_array(labels))
        if isinstance(batch, Frame):
            return batch.with_column(self.target, column)
        return Frame(_columns(batch) | {self.target: column}, batch.rows, batch.start, self.missing)


def _bins_by_name(coded: Coded, labels: Sequence[str]) -> Any:
    """The bin of every row if the column holds names of bins already; None if it holds anything else."""
    if not set(coded.values) <= set(labels):
        return None
    return np.array([*(labels.index(value) for value in coded.values), -1], np.int32)[coded.codes - coded.low]


def bin_labels(edges: Sequence[float]) -> list[str]:
    """The names of the bins: an edge belongs to the bin below it."""
    shown = [f"{edge:.15g}" for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(shown)]
    return [f"up to {shown[0]}", *between, f"above {shown[-1]}"]


def edges_of(source: Source, name: str, bins: Any) -> tuple[float, ...]:
    """The edges that were given, or those that cut the numbers into so many bins of about equally many rows."""
    if _is_array(bins):
        edges = tuple(float(edge) for edge in bins)
        if not edges or not np.isfinite(edges).all() or any(a >= b for a, b in pairwise(edges)):
            raise UsageError(f"target_bins={list(bins)!r} are no edges: pass increasing numbers, such as [10, 20]")
        return edges
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 2:
        raise UsageError(f"target_bins={bins!r} is no number of bins: pass 2 or more, a list of edges, or {EACH!r}")
    seen = _numbers(source, name)
    if len(np.unique(seen)) < 2:
        raise DataError("has fewer than two different numbers: there is nothing to bin", column=name)
    edges = _rounded(np.quantile(seen, np.arange(1, bins) / bins, method="inverted_cdf"), seen)
    if len(edges) + 1 < bins:
        message = f"column {name!r} is cut into {len(edges) + 1} bins, not {bins}: too many rows have the same number"
        warnings.warn(message, LikelyWarning, stacklevel=4)
    return edges


def _rounded(cuts: Array, seen: Array) -> tuple[float, ...]:
    """Edges rounded to few digits, such that hardly any row changes its bin and no bin is empty."""
    ranked = np.sort(seen)
    cuts = np.unique(cuts[cuts < ranked[-1]])
    cuts = cuts if len(cuts) else ranked[ranked < ranked[-1]][-1:]
    below = np.searchsorted(ranked, cuts, side="right")
    for digits in range(1, 17):
        short = np.array([float(f"{cut:.{digits}g}") for cut in cuts])
        moved = np.abs(np.searchsorted(ranked, short, side="right") - below)
        if len(np.unique(short)) == len(cuts) and (moved <= MOVED * len(ranked)).all():
            return tuple(short.tolist())
    return tuple(cuts.tolist())


def _numbers(source: Source, name: str) -> Array:
    """The numbers of a column, thinned out evenly if there are very many."""
    parts: list[Array] = []
    step = held = 1
    for batch in source.batches({name: NUMBER}):
        if name not in batch.names:
            raise no_column(source.label, name, batch.names)
        x = batch.numbers([name], 0, batch.rows)[:, 0]
        parts.append(x[~np.isnan(x)][::step])
        held += len(parts[-1])
        if held > MOST_VALUES:
            parts = [np.concatenate(parts)[::2]]
            step, held = 2 * step, len(parts[0])
    return np.concatenate(parts) if parts else np.zeros(0)


def refuse_many_values(batch: Batch, target: str) -> None:
    """Refuse a numeric target with many different values: it is a quantity, and no class would have enough rows."""
    if batch.kind(target)[0] != NUMBER:
        return
    x = batch.numbers([target], 0, batch.rows)[:, 0]
    x = x[~np.isnan(x)]
    different = len(np.unique(x))
    whole = bool((x == np.floor(x)).all())
    if different <= FEW_VALUES or (whole and different <= min(MANY_VALUES, len(x) / ROWS_A_CLASS)):
        return
    raise DataError(
        f"holds {different:,} different numbers in {len(x):,} rows, and a classifier expects a few classes",
        column=target,
        remedy="cut it into bins with target_bins=4 (--target-bins 4: quantiles; or edges, --target-bins 10,20), "
        f"or pass target_bins={EACH!r} (--target-bins {EACH}) if each number is a class",
    )
