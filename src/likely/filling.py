"""Missing cells of joint blocks where all labels are known: EM block by block, before a model is made of the tally."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.em import Part, climb, share
from likely.engines.shares import Held
from likely.errors import LikelyWarning
from likely.families import Block, Joint
from likely.families.gaussian import dust
from likely.families.statistics import Scatter
from likely.model import Model
from likely.prior import Priors, Pseudocount
from likely.schema import CATEGORY, Column, Schema
from likely.sources import Batch
from likely.tally import Tally

MOST_FILLING = 200  # rounds


def has_gaps(tally: Tally) -> list[Block]:
    """The joint blocks of which some rows were not counted, because a cell of them is missing."""
    pairs = zip(tally.blocks, tally.statistics, strict=True)
    whole = float(tally.classes.sum()) * (1 - 1e-12)
    return [b for b, s in pairs if isinstance(b.family, Joint) and float(s.weight().sum()) < whole]


def filled(
    tally: Tally,
    prior: Priors,
    parts: Callable[[Schema], Iterable[Part]],
    batches: Callable[[], Iterable[Batch]],
) -> Tally:
    """The tally with every joint block that has gaps counted by EM, block by block, all labels being known.

    A row that misses some cells of a block counts as what the rest of it leads one to expect; its statistic is the expected
    one under the parameters at the end. That assumes that cells are missing at random: whether a cell is missing may depend
    on the cells that are there, and on the class, but not on what is missing itself.
    """
    wanted = has_gaps(tally)
    if not wanted:
        return tally
    coded = [n for block in wanted for n in block.columns if tally.schema.by_name[n].kind == CATEGORY]
    domains: dict[str, dict[Any, None]] = {name: {} for name in coded}
    for batch in batches() if coded else ():  # a value may stand in rows with gaps alone
        for name in coded:
            domains[name].update(dict.fromkeys(batch.coded(name).values))
    roomy = tally.with_values(domains)
    rows, full = parts(roomy.schema), roomy
    for block in wanted:
        full = _filled_block(full, block, prior, rows)
    return tally if full is roomy else full.pruned(tally.schema.classes)  # without values of rows that weigh nothing


def _filled_block(tally: Tally, block: Block, prior: Priors, parts: Iterable[Part]) -> Tally:
    place = tally.blocks.index(block)
    wanted = _fillable(tally.schema, block, parts)
    if not wanted.any():
        return tally
    own = Pseudocount(1.0) if prior.of(block).chosen else prior.of(block)
    schema = replace(tally.schema, columns=tuple(tally.schema.by_name[name] for name in block.columns))
    alone = Tally(schema, (block,), tally.classes, (tally.statistics[place],), tally.rows)
    rows = _OfClasses(parts, wanted)
    fit = climb(Model(alone, Priors(own)), rows, max_iter=MOST_FILLING, tol=1e-6, unlabelled=0.0)
    (last,) = share(fit.model, rows, 0.0).tally.statistics
    last = _without_dust(last)
    statistics = (*tally.statistics[:place], last, *tally.statistics[place + 1 :])
    return replace(tally, statistics=statistics)


def _without_dust(cloud: Any) -> Scatter:
    """The same scatter, in which a column that was filled in with one number has no spread, not even a rounding error."""
    spread = np.einsum("...ii->...i", cloud.scatter)
    some = spread > cloud.n[..., None] * dust(cloud.mean)
    return Scatter(cloud.n, cloud.mean, np.where(some[..., :, None] & some[..., None, :], cloud.scatter, 0.0))


@dataclass(frozen=True)
class _OfClasses:
    """The rows of some classes; those of others have no label and, as none is shared out, no weight."""

    parts: Iterable[Part]
    wanted: NDArray[np.bool_]

    def __iter__(self) -> Iterator[Part]:
        for held, labels, weights in self.parts:
            yield held, np.where((labels >= 0) & self.wanted[labels], labels, -1), weights


def _fillable(schema: Schema, block: Block, parts: Iterable[Part]) -> NDArray[np.bool_]:
    """The classes whose rows can be counted: where cells of a column are missing in all of them there is nothing to go by.

    None where no row misses some cells of the block and has others.
    """
    seen = np.zeros((len(schema.classes), len(block.columns)), bool)
    partial = np.zeros(len(schema.classes), bool)
    for held, labels, weights in parts:
        there = np.column_stack([_there(held, schema.by_name[name]) for name in block.columns])
        there &= ((labels >= 0) & (weights > 0))[:, None]
        some = there.any(1)
        partial[labels[some & ~there.all(1)]] = True
        for j in range(there.shape[1]):
            seen[labels[there[:, j]], j] = True
    known: NDArray[np.bool_] = np.asarray(seen.all(1))
    return known | ~partial if (partial & known).any() else np.zeros(len(known), bool)


def _there(held: Held, column: Column) -> NDArray[np.bool_]:
    there: NDArray[np.bool_]
    if column.kind == CATEGORY:
        there = held.coded(column.name).codes >= 0
        return there
    there = ~np.isnan(held.numbers([column.name], 0, held.rows)[:, 0])
    return there


def say_what_was_filled(before: Tally, after: Tally) -> None:
    """Which joint blocks were counted so."""
    pairs = zip(after.blocks, before.statistics, after.statistics, strict=True)
    names = [repr(b.name) for b, x, y in pairs if float(y.weight().sum()) > float(x.weight().sum()) * (1 + 1e-12)]
    if names:
        said = f"{', '.join(names)}: rows with missing cells were counted by EM, as the rest of each leads one to expect"
        warnings.warn(f"{said}; this assumes that cells are missing at random", LikelyWarning, stacklevel=4)
