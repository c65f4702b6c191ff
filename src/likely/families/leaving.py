"""What a column says of a row that it has learned from, once the row's own part is taken out of the counts again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.base import Imagined, log
from likely.families.counting import Poisson
from likely.families.forms import log_factorial
from likely.families.gaussian import Gaussian, believe
from likely.families.statistics import Array, Counts, Moments

NOTHING = 1e-12  # a share of a spread or a weight below this is what rounding has left of zero


@dataclass(frozen=True)
class Row:
    """Rows that a model has learned from: their classes, and how much of each row is left out (one unit, or less)."""

    labels: NDArray[np.int64]
    units: Array

    def own(self, classes: int) -> Array:
        """Rows × classes: how much of the row was counted in the class."""
        return np.where(np.arange(classes) == self.labels[:, None], self.units[:, None], 0.0)

    def some(self, places: Any) -> Row:
        """Some of the rows."""
        return Row(self.labels[places], self.units[places])


def table_without(counts: Counts, prior: Imagined, values: Sequence[Any], codes: NDArray[Any], rows: Row) -> Array:
    """Log share of each row's value in every class, the row left out; a code past the values is a missing cell."""
    seen = counts.seen
    known = np.flatnonzero((codes >= 0) & (codes < len(values)))
    out = np.zeros((len(codes), len(seen)))
    part, code = rows.some(known), codes[known]
    own = part.own(len(seen))
    left, whole = seen.T[code] - own, seen.sum(1) - own
    rest = seen.sum() - part.units
    share = np.divide(seen.sum(0)[code] - part.units, rest, out=np.full(len(code), 1 / len(values)), where=rest > 0)
    imagined = prior.pseudocounts(values)
    extra = imagined[code] + prior.background * share
    total = whole + imagined.sum() + prior.background
    found = np.divide(
        _positive(left) + extra[:, None], total, out=np.full(left.shape, 1 / len(values)), where=total > 0
    )
    out[known] = log(found)
    return out


def bell_without(family: Gaussian, moments: Moments, prior: Imagined, x: Array, rows: Row) -> Array:
    """Log density of each row's number in every class, the row left out; nothing where it is missing."""
    known = np.flatnonzero(~np.isnan(x))
    out = np.zeros((len(x), len(moments.n)))
    value, own = x[known, None], rows.some(known).own(len(moments.n))
    n = moments.n - own
    alone = n <= NOTHING * moments.n
    n = np.where(alone, 0.0, n)
    apart, safe = value - moments.mean, np.where(alone, 1.0, n)
    mean = np.where(alone, 0.0, moments.mean - apart * own / safe)
    spread = moments.spread - own * apart * apart * moments.n / safe
    spread = np.where(alone | (spread <= NOTHING * moments.spread), 0.0, spread)
    mean, variance, _ = believe(n, mean, spread, [prior], family.tie)
    out[known] = -0.5 * (np.log(2 * np.pi * variance) + (value - mean) ** 2 / variance)
    return out


def events_without(counts: Counts, prior: Imagined, x: Array, rows: Row) -> Array:
    """Log probability of each row's number of events in every class, the row left out; nothing where it is missing."""
    known = np.flatnonzero(~np.isnan(x))
    out = np.zeros((len(x), len(counts.seen)))
    value, own = x[known, None], rows.some(known).own(len(counts.seen))
    n, events = _positive(counts.seen[:, 0] - own), _positive(counts.seen[:, 1] - own * value)
    extra = prior.rows
    some, all_rows = events.sum(1, keepdims=True), n.sum(1, keepdims=True)
    some = np.where(some > 0, some, min(extra, 1.0))
    overall = np.divide(some, all_rows, out=np.ones_like(some), where=all_rows > 0)
    whole = n + extra
    rate = np.divide(events + extra * overall, whole, out=np.broadcast_to(overall, n.shape).copy(), where=whole > 0)
    with np.errstate(invalid="ignore"):  # no events at a rate of none
        falls = np.where(value > 0, value * log(rate), 0.0)
    out[known] = falls - rate - log_factorial(value)
    return out


def can_leave_out(family: Any) -> bool:
    """Whether a family says in closed form what it would have believed without a row."""
    tied = isinstance(family, Gaussian) and family.tie in ("column", "both")
    return not tied and (isinstance(family, Gaussian | Poisson) or family.name in ("categorical", "bernoulli"))


def _positive(counts: Array) -> Array:
    """Counts without what rounding leaves below zero."""
    return np.maximum(counts, 0.0)
