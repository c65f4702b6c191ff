"""Missing cells of joint blocks with known labels: EM block by block, before a model is made of the tally."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines.e_step import CachedBatch, LabelledRows
from likely.errors import LikelyWarning
from likely.families import Block
from likely.families.base import dust
from likely.families.statistics import Scatter
from likely.latent.em import e_step, fit_em
from likely.model.model import Model
from likely.priors import Priors, Pseudocount
from likely.schema import CATEGORY, Column, Schema
from likely.sources import Batch
from likely.tally import Tally

MAX_ITER = 200


def has_gaps(tally: Tally) -> list[Block]:
    """The joint blocks of which some rows were not counted, because a cell is missing."""
    pairs = zip(tally.blocks, tally.statistics, strict=True)
    total = float(tally.classes.sum()) * (1 - 1e-12)
    return [b for b, s in pairs if b.family.needs_whole_rows and float(s.weight().sum()) < total]


def filled(
    tally: Tally,
    prior: Priors,
    parts: Callable[[Schema], Iterable[LabelledRows]],
    batches: Callable[[], Iterable[Batch]],
) -> Tally:
    """The tally with every incomplete joint block counted by EM, block by block, all labels being known.

    A row that misses some cells of a block contributes its expected sufficient statistic, given its other cells, under the
    parameters at the end. This assumes that cells are missing at random: whether a cell is missing may depend on the observed
    cells and on the class, but not on the missing value itself.
    """
    wanted = has_gaps(tally)
    if not wanted:
        return tally
    coded = [n for block in wanted for n in block.columns if tally.schema.by_name[n].kind == CATEGORY]
    domains: dict[str, dict[Any, None]] = {name: {} for name in coded}
    for batch in batches() if coded else ():  # a value may occur in incomplete rows only
        for name in coded:
            domains[name].update(dict.fromkeys(batch.coded(name).values))
    roomy = tally.with_values(domains)
    rows, full = parts(roomy.schema), roomy
    for block in wanted:
        full = _filled_block(full, block, prior, rows)
    return tally if full is roomy else full.pruned(tally.schema.classes)  # without values of rows of weight zero


def _filled_block(tally: Tally, block: Block, prior: Priors, parts: Iterable[LabelledRows]) -> Tally:
    place = tally.blocks.index(block)
    wanted = _fillable(tally.schema, block, parts)
    if not wanted.any():
        return tally
    own = Pseudocount(1.0) if prior.of(block).chosen else prior.of(block)
    schema = replace(tally.schema, columns=tuple(tally.schema.by_name[name] for name in block.columns))
    alone = Tally(schema, (block,), tally.classes, (tally.statistics[place],), tally.rows)
    rows = _LabelledRows(parts, wanted)
    fit = fit_em(Model(alone, Priors(own)), rows, max_iter=MAX_ITER, tol=1e-6, unlabelled=0.0)
    (last,) = e_step(fit.model, rows, 0.0).tally.statistics
    last = _without_dust(last)
    statistics = (*tally.statistics[:place], last, *tally.statistics[place + 1 :])
    return replace(tally, statistics=statistics)


def _without_dust(cloud: Any) -> Scatter:
    """The same scatter with spreads of rounding size, of a column completed by one number, set to zero."""
    spread = np.einsum("...ii->...i", cloud.scatter)
    some = spread > cloud.n[..., None] * dust(cloud.mean)
    return Scatter(cloud.n, cloud.mean, np.where(some[..., :, None] & some[..., None, :], cloud.scatter, 0.0))


@dataclass(frozen=True)
class _LabelledRows:
    """The rows of some classes; those of others have no label and, as unlabelled rows have weight zero, no weight."""

    parts: Iterable[LabelledRows]
    wanted: NDArray[np.bool_]

    def __iter__(self) -> Iterator[LabelledRows]:
        for batch, labels, weights in self.parts:
            yield LabelledRows(batch, np.where((labels >= 0) & self.wanted[labels], labels, -1), weights)


def _fillable(schema: Schema, block: Block, parts: Iterable[LabelledRows]) -> NDArray[np.bool_]:
    """The classes whose rows can be completed: all but those in which a column is always missing.

    None of them if no row misses some cells of the block and has others.
    """
    seen = np.zeros((len(schema.classes), len(block.columns)), bool)
    partial = np.zeros(len(schema.classes), bool)
    for batch, labels, weights in parts:
        there = np.column_stack([_observed(batch, schema.by_name[name]) for name in block.columns])
        there &= ((labels >= 0) & (weights > 0))[:, None]
        some = there.any(1)
        partial[labels[some & ~there.all(1)]] = True
        for j in range(there.shape[1]):
            seen[labels[there[:, j]], j] = True
    known: NDArray[np.bool_] = np.asarray(seen.all(1))
    return known | ~partial if (partial & known).any() else np.zeros(len(known), bool)


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
