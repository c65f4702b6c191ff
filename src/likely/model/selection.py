"""Forward selection of columns by leave-one-out likelihood, in closed form from tally and rows.

The posterior of a row under the model of all other rows is derived from the tally: the row's own counts are subtracted. So
every row is a test row, and none is lost for learning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.calibration.copies import effective
from likely.errors import UsageError
from likely.families import LeftOutRows
from likely.families.base import log
from likely.families.family import cells_of_block
from likely.families.histogram import Histogram
from likely.families.statistics import Counts
from likely.families.value_tables import dependence
from likely.model.model import Model
from likely.schema import NUMBER
from likely.sources import Batch
from likely.sources.date_parts import PERIODS, DatePart, parts_of
from likely.sources.row_access import take
from likely.tally import Tally

Array = NDArray[np.float64]
MOST_CELLS = 20_000_000  # rows × columns × classes that are held; of a larger table an even sample is used
LOWEST = -700.0  # log-likelihood of a count of zero without pseudocounts: finite, so that sums stay finite
MATTERS = 0.95  # probability above which a part of dates is kept
NOT_SELECTED = "not selected: with it the leave-one-out log loss does not fall"


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Leave-one-out terms of rows: log prior and log-likelihood of each block, without the row itself."""

    log_prior: Array  # rows × classes
    terms: tuple[Array, ...]  # a block each, rows × classes
    labels: NDArray[np.int64]
    weights: Array

    @staticmethod
    def of(model: Model, batches: Iterable[Batch], weights: str | None = None) -> LeftOut:
        """The terms of the rows that the model has learned from, or of an even sample of them."""
        _refuse(model)
        cells = max(model.tally.rows, 1) * len(model.classes) * (len(model.blocks) + 1)
        parts = [_part(model, batch, w) for batch, w in _sampled(model, batches, weights, min(1.0, MOST_CELLS / cells))]
        if not parts:
            raise UsageError("there are no rows to leave out: pass those that the model has learned from")
        terms = zip(*(part.terms for part in parts), strict=True)
        return LeftOut(
            np.concatenate([part.log_prior for part in parts]),
            tuple(np.concatenate(term) for term in terms),
            np.concatenate([part.labels for part in parts]),
            np.concatenate([part.weights for part in parts]),
        )

    def log_loss(self, joint: Array) -> float:
        """The mean of -log P(true class), in nats."""
        top = joint.max(1)
        losses = top + np.log(np.exp(joint - top[:, None]).sum(1)) - joint[np.arange(len(joint)), self.labels]
        return float(self.weights @ losses / self.weights.sum())


@dataclass(frozen=True)
class Selection:
    """The columns in the order in which they were chosen, and the leave-one-out log loss with each and those before."""

    blocks: tuple[int, ...]
    log_loss: tuple[float, ...]
    nothing: float  # the log loss of the class prior alone


def forward(left: LeftOut, most: int | None = None) -> Selection:
    """Take the column that lowers the log loss most, then the next, until none does; one is always taken."""
    joint = left.log_prior.copy()
    nothing = best = left.log_loss(joint)
    chosen: list[int] = []
    losses: list[float] = []
    rest = list(range(len(left.terms)))
    while rest and (most is None or len(chosen) < most):
        found, i = min((left.log_loss(joint + left.terms[i]), i) for i in rest)
        if chosen and found >= best:
            break
        joint += left.terms[i]
        best = found
        rest.remove(i)
        chosen.append(i)
        losses.append(found)
    return Selection(tuple(chosen), tuple(losses), nothing)


def select(model: Model, batches: Iterable[Batch], how: Any = True, weights: str | None = None) -> Model:
    """The model with the columns that forward selection takes; `how` is True, "forward", or how many at most."""
    most = _most(how)
    chosen = forward(LeftOut.of(model, batches, weights), most).blocks
    tally, dropped = model.tally, set()
    for i, block in enumerate(model.blocks):
        if i not in chosen:
            dropped.add(block.name)
            for name in block.columns:
                tally = tally.without(name, NOT_SELECTED)
    own = {name: prior for name, prior in model.prior.columns.items() if name not in dropped}
    return replace(model, tally=tally, prior=replace(model.prior, columns=own))


def without_idle_parts(tally: Tally) -> Tally:
    """The tally without the derived parts of dates that are not informative about the class.

    Kept are parts that depend on the class with a probability above `MATTERS`, by the marginal likelihood of their counts.
    Where the dates are counted in bins, they must cover two periods: before that, a part is confounded with a trend,
    which the date itself models. Parts that the user named are kept.
    """
    kept: dict[str, str] = {}
    idle: dict[str, list[DatePart]] = {}
    statistics = {b.columns[0]: s for b, s in zip(tally.blocks, tally.statistics, strict=True) if len(b.columns) == 1}
    for name, part in parts_of(tally.schema.columns).items():
        counted: Any = statistics.get(name)
        if isinstance(counted, Counts) and not tally.schema.by_name[name].asked_for:
            copies = np.ones(1) if tally.sample is None else effective(tally.sample, tally).copies
            matters = dependence(counted.seen / copies[:, None])
            if matters > MATTERS and _comes_round(statistics.get(part.origin), part.part):
                kept[name] = f"{part.description}, depends on the class with probability {matters:.3f}"
            else:
                idle.setdefault(part.origin, []).append(part)
    if not (kept or idle):
        return tally
    ignored = tally.schema.ignored
    for part in (part for parts in idle.values() for part in parts):
        tally = tally.without(part.name, "")
    remarks = {
        name: f"; its {' and '.join(p.part for p in parts)} {'are' if len(parts) > 1 else 'is'} not informative about the class"
        for name, parts in idle.items()
    }
    columns = tuple(replace(c, reason=kept.get(c.name, c.reason + remarks.get(c.name, ""))) for c in tally.schema.columns)
    return replace(tally, schema=replace(tally.schema, columns=columns, ignored=ignored))


def _comes_round(dates: Any, part: str) -> bool:
    if not isinstance(dates, Histogram):
        return True
    low, high = dates.range()
    return high - low >= 2 * PERIODS[part]


def _most(how: Any) -> int | None:
    if how is True or how == "forward":
        return None
    if isinstance(how, int) and how >= 1:
        return how
    raise UsageError(f"select={how!r} is not known: pass True, 'forward', or how many columns at most")


def _refuse(model: Model) -> None:
    for block in model.blocks:
        if not block.family.leaves_out:
            remedy = "choose another family for the column, ignore it, or leave select out"
            block.family.cannot("leave rows out in closed form", block.name, remedy)


def _sampled(
    model: Model, batches: Iterable[Batch], weights: str | None, share: float
) -> Iterator[tuple[Batch, Array]]:
    """Labelled rows of positive weight, thinned out evenly to a fraction of them, with their weights."""
    target = model.schema.target.name
    for batch in batches:
        w = batch.numbers([weights], 0, batch.rows)[:, 0] if weights is not None else np.ones(batch.rows)
        coded = batch.coded(target)
        used = (coded.codes >= coded.low) & (coded.codes < coded.low + len(coded.values)) & (w > 0)
        if share < 1:  # multiples of the golden ratio fall evenly everywhere
            used &= ((batch.start + np.arange(batch.rows)) * 0.6180339887498949) % 1.0 < share
        places = np.flatnonzero(used)
        if len(places):
            yield take(batch, places), w[places]


def _part(model: Model, batch: Batch, weights: Array) -> LeftOut:
    coded = batch.coded(model.schema.target.name)
    labels = np.array(model.schema.target.codes(coded.values), np.int64)[coded.codes.astype(np.int64) - coded.low]
    rows = LeftOutRows(labels, np.minimum(weights, 1.0))  # a weight is a number of copies: one of them is left out
    terms = tuple(np.maximum(_term(model, batch, i, rows), LOWEST) for i in range(len(model.blocks)))
    return LeftOut(np.maximum(_log_prior(model, rows), LOWEST), terms, labels, weights)


def _log_prior(model: Model, rows: LeftOutRows) -> Array:
    """The share of each class among the other rows."""
    prior, counts = model.prior.classes, model.tally.classes - rows.own(len(model.classes))
    if prior is not None and hasattr(prior, "pseudocounts"):
        counts = counts + prior.pseudocounts(model.classes)
    elif prior is not None:
        return np.tile(log(model.class_prior), (len(rows.labels), 1))
    whole = counts.sum(1, keepdims=True)
    even = np.full(counts.shape, 1 / len(model.classes))
    return log(np.maximum(np.divide(counts, whole, out=even, where=whole > 0), 0.0))


def _term(model: Model, batch: Batch, i: int, rows: LeftOutRows) -> Array:
    """The log-likelihood of one block for rows that are left out of it."""
    fitted, encoded, cells = model.fitted(i), model.scorer.encode(batch, [i]), list[NDArray[Any]]()
    for column in fitted.columns:
        if column.kind == NUMBER:
            cells.append(batch.numbers([column.name], 0, batch.rows)[:, 0])
        else:
            coded, places = encoded[column.name]
            cells.append(places[coded.codes - coded.low])
    return model.blocks[i].family.leave_one_out(fitted, cells_of_block(cells), rows)
