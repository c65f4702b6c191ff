"""Missing cells of joint blocks with known labels: EM block by block, before a model is made of the tally."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from likely.engines.e_step import CachedBatch, LabelledRows
from likely.errors import LikelyWarning
from likely.families import Block
from likely.families.base import dust
from likely.families.statistics import Scatter
from likely.latent.em import Rows, e_step, fit_em
from likely.model.model import Model
from likely.priors import Priors, Pseudocount
from likely.schema import CATEGORY, Column, Schema
from likely.sources import Batch
from likely.tally import Tally

MAX_ITER = 200


def has_gaps(tally: Tally) -> list[Block]:
    """The joint blocks that left out some rows because of a missing cell."""
    pairs = zip(tally.blocks, tally.statistics, strict=True)
    total = float(tally.classes.sum()) * (1 - 1e-12)
    return [b for b, s in pairs if b.family.needs_whole_rows and float(s.weight().sum()) < total]


class RowsWithGaps(Protocol):
    """Interface of rows for EM over missing cells, in this process or distributed."""

    def domains(self, names: Sequence[str]) -> Mapping[str, Iterable[Any]]:
        """The values of some categorical columns, also of rows that miss other cells."""

    def observed(self, schema: Schema, block: Block) -> Observed:
        """Which cells of a block are observed, class by class."""

    def of_classes(self, schema: Schema, wanted: NDArray[np.bool_]) -> Rows:
        """The rows of some classes; those of others have no label."""


class Observed(NamedTuple):
    """Number of labelled rows of positive weight in which a cell of a block is observed, and of rows with only some cells."""

    seen: NDArray[np.int64]  # classes × columns
    partial: NDArray[np.int64]  # classes

    def fillable(self) -> NDArray[np.bool_]:
        """The classes whose rows can be completed: all but those in which a column is always missing.

        None of them if no row misses some cells of the block and has others.
        """
        known: NDArray[np.bool_] = np.asarray((self.seen > 0).all(1))
        partial = self.partial > 0
        return known | ~partial if (partial & known).any() else np.zeros(len(known), bool)


def filled(
    tally: Tally,
    prior: Priors,
    parts: Callable[[Schema], Iterable[LabelledRows]],
    batches: Callable[[], Iterable[Batch]],
) -> Tally:
    """The tally with every incomplete joint block counted by EM over the rows of this process; see `filled_from`."""
    return filled_from(tally, prior, _RowsHere(parts, batches))


def filled_from(tally: Tally, prior: Priors, rows: RowsWithGaps) -> Tally:
    """The tally with every incomplete joint block counted by EM, block by block, all labels being known.

    A row that misses some cells of a block contributes its expected sufficient statistic, given its other cells, under the
    parameters at the end. This assumes that cells are missing at random: whether a cell is missing may depend on the observed
    cells and on the class, but not on the missing value itself.
    """
    wanted = has_gaps(tally)
    if not wanted:
        return tally
    coded = [n for block in wanted for n in block.columns if tally.schema.by_name[n].kind == CATEGORY]
    roomy = tally.with_values(rows.domains(coded)) if coded else tally  # a value may occur in incomplete rows only
    full = roomy
    for block in wanted:
        full = _filled_block(full, block, prior, rows)
    return tally if full is roomy else full.pruned(tally.schema.classes)  # without values of rows of weight zero


def _filled_block(tally: Tally, block: Block, prior: Priors, rows: RowsWithGaps) -> Tally:
    place = tally.blocks.index(block)
    wanted = rows.observed(tally.schema, block).fillable()
    if not wanted.any():
        return tally
    own = Pseudocount(1.0) if prior.of(block).chosen else prior.of(block)
    schema = replace(tally.schema, columns=tuple(tally.schema.by_name[name] for name in block.columns))
    alone = Tally(schema, (block,), tally.classes, (tally.statistics[place],), tally.rows)
    some = rows.of_classes(tally.schema, wanted)
    fit = fit_em(Model(alone, Priors(own)), some, max_iter=MAX_ITER, tol=1e-6, unlabelled=0.0)
    (last,) = e_step(fit.model, some, 0.0).tally.statistics
    last = _without_dust(last)
    statistics = (*tally.statistics[:place], last, *tally.statistics[place + 1 :])
    return replace(tally, statistics=statistics)


def _without_dust(cloud: Any) -> Scatter:
    """The same scatter with spreads of rounding size, of a column completed by one number, set to zero."""
    spread = np.einsum("...ii->...i", cloud.scatter)
    some = spread > cloud.n[..., None] * dust(cloud.mean)
    return Scatter(cloud.n, cloud.mean, np.where(some[..., :, None] & some[..., None, :], cloud.scatter, 0.0))


class _RowsHere:
    """The rows of this process, made once for the schema with all values."""

    def __init__(
        self, parts: Callable[[Schema], Iterable[LabelledRows]], batches: Callable[[], Iterable[Batch]]
    ) -> None:
        self._parts, self._batches = parts, batches
        self._made: Iterable[LabelledRows] | None = None

    def domains(self, names: Sequence[str]) -> Mapping[str, Iterable[Any]]:
        """The values of all rows."""
        domains: dict[str, dict[Any, None]] = {name: {} for name in names}
        for batch in self._batches():
            for name in names:
                domains[name].update(dict.fromkeys(batch.coded(name).values))
        return domains

    def observed(self, schema: Schema, block: Block) -> Observed:
        """The sum over all rows."""
        return observed_cells(self._rows(schema), schema, block)

    def of_classes(self, schema: Schema, wanted: NDArray[np.bool_]) -> Rows:
        """The rows, read again in every round."""
        return RowsOfClasses(self._rows(schema), wanted)

    def _rows(self, schema: Schema) -> Iterable[LabelledRows]:
        if self._made is None:  # every block has the same columns, so that cached codes serve all of them
            self._made = self._parts(schema)
        return self._made


@dataclass(frozen=True)
class RowsOfClasses:
    """The rows of some classes; those of others have no label and, as unlabelled rows have weight zero, no weight."""

    parts: Iterable[LabelledRows]
    wanted: NDArray[np.bool_]

    def __iter__(self) -> Iterator[LabelledRows]:
        for batch, labels, weights in self.parts:
            yield LabelledRows(batch, np.where((labels >= 0) & self.wanted[labels], labels, -1), weights)


def observed_cells(parts: Iterable[LabelledRows], schema: Schema, block: Block) -> Observed:
    """Which cells of a block are observed, over some rows."""
    classes = len(schema.classes)
    found = Observed(np.zeros((classes, len(block.columns)), np.int64), np.zeros(classes, np.int64))
    for batch, labels, weights in parts:
        there = np.column_stack([_observed(batch, schema.by_name[name]) for name in block.columns])
        there &= ((labels >= 0) & (weights > 0))[:, None]
        found.partial[:] += np.bincount(labels[there.any(1) & ~there.all(1)], minlength=classes)
        for j in range(there.shape[1]):
            found.seen[:, j] += np.bincount(labels[there[:, j]], minlength=classes)
    return found


def _observed(batch: CachedBatch, column: Column) -> NDArray[np.bool_]:
    if column.kind == CATEGORY:
        return np.asarray(batch.coded(column.name).codes >= 0)
    return np.asarray(~np.isnan(batch.numbers([column.name], 0, batch.rows)[:, 0]))


def warn_of_filled(before: Tally, after: Tally) -> None:
    """Warn of the joint blocks that were counted so."""
    pairs = zip(after.blocks, before.statistics, after.statistics, strict=True)
    names = [repr(b.name) for b, x, y in pairs if float(y.weight().sum()) > float(x.weight().sum()) * (1 + 1e-12)]
    if names:
        message = f"{', '.join(names)}: rows with missing cells were counted by EM, by their expected values given the rest"
        warnings.warn(f"{message}; this assumes that cells are missing at random", LikelyWarning, stacklevel=4)
