"""Columns of event counts: sums by class, validation, marginal likelihood and leave-one-out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likely.errors import UsageError
from likely.families.base import BlockPrior, Labels, first_bad, log, weighted_responsibilities
from likely.families.base_measures import LARGEST_COUNT
from likely.families.family import LeftOutRows
from likely.families.likelihoods import LinearTerm
from likely.families.posterior_predictive import Arc, Polya
from likely.families.statistics import Array, EventCounts
from likely.families.value_tables import improper, log_polya, refuse_by_class

AT_ONCE = 1 << 20  # counts that are made of some rows at a time


def sums(x: Array, labels: Labels, weights: Array, classes: int) -> Array:
    """Weighted sum of each column by class; missing cells add nothing."""
    if labels.ndim == 2:
        return weighted_responsibilities(labels, weights).T @ np.nan_to_num(x)
    used = (labels >= 0) & (weights > 0)
    where = labels[used]
    total = [np.bincount(where, weights[used] * np.nan_to_num(x[used, j]), classes) for j in range(x.shape[1])]
    return np.array(total, dtype=np.float64).reshape(x.shape[1], classes).T


def event_counts(seen: Array, ways: Array, labels: Labels, weights: Array) -> EventCounts:
    """Counts by class, with the sum of the log coefficients of the rows."""
    return EventCounts(seen, sums(ways[:, None], labels, weights, len(seen))[:, 0])


def log_ways(statistic: Any, name: str) -> float:
    """The sum of the log coefficients of all rows."""
    if not isinstance(statistic, EventCounts):
        what = f"column {name!r} was counted by an older version, which kept no log x! of its counts"
        raise UsageError(f"{what}: learn the model anew")
    return float(statistic.ways.sum())


def not_a_count(numbers: Array) -> tuple[int, str] | None:
    """The first number that cannot be a count."""
    found = first_bad(np.isinf(numbers), "is not a finite number")
    found = found or first_bad(numbers < 0, "is negative, which no count can be")
    return found or first_bad(numbers > LARGEST_COUNT, "is too large to be added to others")


def polya_arc(seen: Array, pseudocounts: Array, likelihood: LinearTerm, name: str, *, reverse: bool = False) -> Arc:
    """Dirichlet–multinomial marginal likelihoods of events: by class, and of all classes together.

    `reverse`: events are scored in the opposite order of their counts (successes first, then failures).
    """
    refuse_by_class(pseudocounts, name)
    if (pseudocounts <= 0).any():
        raise improper(name, "an outcome has no pseudocount", "choose smoothing above 0 for it")
    on, off = log_polya(seen, pseudocounts), log_polya(seen.sum(0, keepdims=True), pseudocounts)
    own = (seen + pseudocounts).T
    shared_by_all = np.repeat((seen.sum(0) + pseudocounts)[:, None], len(seen), 1)
    if reverse:
        own, shared_by_all = own[::-1], shared_by_all[::-1]
    return Arc(on, off, Polya(own, likelihood.base), Polya(shared_by_all, likelihood.base))


def log_without(seen: Array, prior: BlockPrior, outcomes: Sequence[Any], events: Array, rows: LeftOutRows) -> Array:
    """Σ events · log probability of their outcome in every class, each row left out of the counts (classes × outcomes)."""
    out = np.zeros((len(events), len(seen)))
    pseudocounts = np.broadcast_to(prior.pseudocounts(outcomes), seen.shape)
    step = max(1, AT_ONCE // max(len(outcomes), 1))
    for a in range(0, len(events), step):
        part = slice(a, a + step)
        x, own = events[part], rows.units[part, None] * events[part]
        overall = np.maximum(seen.sum(0) - own, 0.0)
        for c in range(len(seen)):
            extra = pseudocounts[c] + (prior.background * _shares(overall) if prior.background else 0.0)
            mine = np.where((rows.labels[part] == c)[:, None], own, 0.0)
            shares = _shares(np.maximum(seen[c] - mine, 0.0) + extra)
            with np.errstate(invalid="ignore"):  # no events of a probability of zero
                out[part, c] = np.where(x > 0, x * log(shares), 0.0).sum(1)
    return out


def _shares(counts: Array) -> Array:
    """Shares of the outcomes in each row; equal ones where nothing was counted."""
    whole = counts.sum(1, keepdims=True)
    shares: Array = np.divide(counts, whole, out=np.full(counts.shape, 1.0 / counts.shape[1]), where=whole > 0)
    return shares
