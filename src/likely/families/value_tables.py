"""Tables of values × classes: counting, probabilities, marginal likelihood, leave-one-out, information and sampling.

Categorical and Bernoulli columns are one such table each, a joint block of categories is one over its cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.families.base import (
    BlockPrior,
    Encoded,
    Labels,
    Parameters,
    Readable,
    log,
    log_probabilities,
    pseudocounts_of,
    weighted_responsibilities,
)
from likely.families.likelihoods import LookupTable
from likely.families.posterior_predictive import Arc, log_gamma
from likely.families.smoothing_choice import choose_smoothing
from likely.families.statistics import Array, Counts
from likely.kernels import counting, em_loops
from likely.kernels.kernel import worth_compiling
from likely.schema import Column

if TYPE_CHECKING:
    from likely.families.family import FittedBlock

# ---------------------------------------------------------------- counting

ARRAYS = 1e-8  # seconds that a cell takes longer with arrays


def count_tables(rows: Encoded, labels: Labels, weights: Array, classes: int) -> tuple[list[Counts], int]:
    """One table of classes × values for every column of codes, and the number of codes outside them."""
    if rows.columns:
        return _count_columns(rows, labels, weights, classes)
    first = np.concatenate([[0], np.cumsum(rows.size)]).astype(np.int64)
    if labels.ndim == 2:
        lines = np.zeros((int(first[-1]), classes))
        em_loops.weighted_codes(rows.codes, rows.low, rows.size, first[:-1], weighted_responsibilities(labels, weights), lines)
        return [Counts(lines[a:b].T.copy()) for a, b in pairwise(first)], 0
    out = np.zeros((classes, int(first[-1])))
    outside = counting.count_codes(rows.codes, rows.low, rows.size, first[:-1], labels, weights, out)
    tables = [Counts(out[:, a:b].copy()) for a, b in pairwise(first)]
    return tables, int(outside)


def _count_columns(rows: Encoded, labels: Labels, weights: Array, classes: int) -> tuple[list[Counts], int]:
    tables, outside = [], 0
    for codes, low, size in zip(rows.columns, rows.low.tolist(), rows.size.tolist(), strict=True):
        table = np.zeros((classes, size))
        if worth_compiling(ARRAYS * len(codes), counting.count_column):
            outside += counting.count_column.fast(codes, low, size, labels, weights, table)
        else:
            outside += _count_array(codes.astype(np.int64) - low, labels, weights, table)
        tables.append(Counts(table))
    return tables, outside


def _count_array(value: NDArray[np.int64], labels: Labels, weights: Array, table: Array) -> int:
    """`count_column` by array operations: the same sums in the same order."""
    size = table.shape[1]
    used = (labels >= 0) & (weights > 0.0)
    known = used & (value >= 0) & (value < size)
    table += np.bincount(labels[known] * size + value[known], weights[known], table.size).reshape(table.shape)
    return int(used.sum() - known.sum())


# ---------------------------------------------------------------- parameters


def table_parameters(
    column: Column, values: Sequence[Any], seen: Array, prior: BlockPrior, classes: Sequence[Any], *,
    kind: type[LookupTable] = LookupTable,
) -> Parameters:  # fmt: skip
    """Class-conditional probabilities of the values of one column, as a lookup table and as readable rows."""
    entries = len(classes) * len(values)
    if prior.chosen:  # the pseudocount is chosen by leave-one-out; an unseen value contributes nothing, like a missing one
        evidence = choose_smoothing(seen.T if prior.copies is None else seen.T / prior.copies)
        rows = ValueTable(column.name, tuple(classes), tuple(values), seen, log(evidence.probabilities()))
        likelihood = kind(np.concatenate([evidence.table, np.zeros((2, len(classes)))]))
        free = max(entries - len(classes), 0)
        return Parameters((column.name,), likelihood, rows, entries, free, how=evidence.how, evidence=evidence)
    logs = log_probabilities(seen, pseudocounts_of(prior, values, seen), prior.unseen(len(values)))
    rows = ValueTable(column.name, tuple(classes), tuple(values), seen, logs)
    free = len(classes) * max(len(values) - 1, 0)
    return Parameters((column.name,), kind(np.ascontiguousarray(logs.T)), rows, entries, free)


@dataclass(frozen=True, eq=False)
class ValueTable(Readable):
    """Readable table with one row for each class and value, made on access."""

    column: str
    classes: tuple[Any, ...]
    values: tuple[Any, ...]
    seen: Array
    logs: Array

    def __len__(self) -> int:
        return len(self.classes) * len(self.values)

    def line(self, number: int) -> dict[str, Any]:
        """Count and class-conditional probability of one value in one class."""
        c, v = divmod(number, len(self.values))
        return {
            "column": self.column,
            "class": self.classes[c],
            "value": self.values[v],
            "count": float(self.seen[c, v]),
            "probability": float(np.exp(self.logs[c, v])),
        }

    def with_log_probabilities(self, table: Array) -> Self:
        """The same table with other log probabilities (values × classes)."""
        return replace(self, logs=np.ascontiguousarray(table.T))


def with_table(block: FittedBlock, values: Sequence[Any], by_class: Sequence[Mapping[Any, float]]) -> FittedBlock:
    """A block whose table has these probabilities, one mapping of values a class."""
    table = np.array([[probabilities[value] for value in values] for probabilities in by_class])
    old: Any = block.parameters.rows
    shown = replace(old, logs=np.concatenate([log(table), old.logs[:, len(values) :]], axis=1))
    return replace(block, parameters=replace(block.parameters, rows=shown))


def value_totals(column: Column, seen: Array) -> dict[tuple[str, str], Any]:
    """Rows, values and, of numbers, their sum, by class, from a table of classes × values."""
    found: dict[tuple[str, str], Any] = {(column.name, "rows"): seen.sum(1)}
    found[column.name, "values"] = {value: seen[:, i] for i, value in enumerate(column.values) if seen[:, i].any()}
    if all(isinstance(value, int | float) for value in column.values):
        found[column.name, "sum"] = seen @ np.array(column.values, dtype=np.float64)
    return found


def weighted_logs(pseudocounts: Array, logs: Array) -> float:
    """Σ pseudocount · log probability: log density of a Dirichlet up to a constant; 0 where the pseudocount is 0."""
    some = pseudocounts > 0
    return float(np.where(some, pseudocounts * np.where(some, logs, 0.0), 0.0).sum())


# ---------------------------------------------------------------- marginal likelihood


def dirichlet_arc(
    seen: Array, pseudocounts: Array, dependent: LookupTable, independent: Array, name: str
) -> Arc:
    """Dirichlet–multinomial marginal likelihoods of counts, classes × values: by class, and of all classes together."""
    if ((pseudocounts <= 0) & (seen.sum(0) > 0)).any():
        raise improper(name, "a value that was seen has no pseudocount", "choose smoothing above 0 for it")
    on = off = 0.0
    if (some := pseudocounts > 0).any():  # else nothing was ever seen: both are equally probable
        on = log_polya(seen[:, some], pseudocounts[some])
        off = log_polya(seen[:, some].sum(0, keepdims=True), pseudocounts[some])
    lines = np.broadcast_to(independent, dependent.table.shape)
    return Arc(on, off, dependent, LookupTable(np.ascontiguousarray(lines)))


def refuse_by_class(pseudocounts: Array, name: str) -> None:
    """Without dependence on the class there is one prior: pseudocounts of each class leave none to compare with."""
    if pseudocounts.ndim > 1:
        raise improper(name, "its pseudocounts differ by class", "give one prior for all classes")


def log_marginal_by_class(seen: Array, pseudocounts: Array, name: str) -> float:
    """The Dirichlet–multinomial marginal likelihood of counts whose pseudocounts differ by class, both classes × values."""
    if ((pseudocounts <= 0) & (seen > 0)).any():
        raise improper(name, "a value that was seen has no pseudocount", "choose smoothing above 0 for it")
    pairs = zip(seen, pseudocounts, strict=True)
    return sum(log_polya(n[None, a > 0], a[a > 0]) for n, a in pairs if (a > 0).any())


def log_polya(seen: Array, pseudocounts: Array) -> float:
    """log ∏ Γ(A) / Γ(A + n) ∏ Γ(α + nᵥ) / Γ(α), over the rows of a table of counts."""
    whole = pseudocounts.sum(keepdims=True)
    terms = log_gamma(seen + pseudocounts) - log_gamma(pseudocounts)
    return float(terms.sum() + (log_gamma(whole) - log_gamma(whole + seen.sum(1))).sum())


def dependence(seen: Array) -> float:
    """Posterior probability that the probabilities of counts, classes × values, differ by class; pseudocount 1 a value."""
    ones = np.ones(seen.shape[1])
    on, off = log_polya(seen, ones), log_polya(seen.sum(0, keepdims=True), ones)
    return float(1.0 / (1.0 + np.exp(np.clip(off - on, -700.0, 700.0))))


def improper(name: str, what: str, remedy: str) -> UsageError:
    """Error for a prior without a marginal likelihood, by which structures are averaged and models compared."""
    return UsageError(f"column {name!r} has no marginal likelihood: {what}; {remedy}")


# ---------------------------------------------------------------- leave-one-out, information, sampling


def table_without(seen: Array, prior: BlockPrior, values: Sequence[Any], codes: NDArray[Any], rows: Any) -> Array:
    """Log probability of each row's value in every class, the row left out; a code past the values is a missing cell."""
    known = np.flatnonzero((codes >= 0) & (codes < len(values)))
    out = np.zeros((len(codes), len(seen)))
    if not len(known):  # of a column without any value, too
        return out
    part, code = rows.take(known), codes[known]
    own = part.own(len(seen))
    left, whole = seen.T[code] - own, seen.sum(1) - own
    rest = seen.sum() - part.units
    share = np.divide(seen.sum(0)[code] - part.units, rest, out=np.full(len(code), 1 / len(values)), where=rest > 0)
    pseudocounts = prior.pseudocounts(values)
    by_class = np.atleast_2d(pseudocounts)  # one line for all classes, or one each
    extra = by_class[:, code].T + (prior.background * share)[:, None]
    total = whole + by_class.sum(1) + prior.background
    found = np.divide(
        np.maximum(left, 0.0) + extra, total, out=np.full(left.shape, 1 / len(values)), where=total > 0
    )
    out[known] = log(found)
    return out


def table_information(seen: Array) -> float:
    """Σ p(c,v) log p(c,v) / p(c) p(v), from a table of counts."""
    whole = seen.sum()
    if not whole > 0:
        return 0.0
    expected = seen.sum(1, keepdims=True) * seen.sum(0, keepdims=True) / whole
    cells = seen > 0
    return max(float((seen[cells] * np.log(seen[cells] / expected[cells])).sum() / whole), 0.0)


def shares_of(counts: Array) -> Array:
    """Relative frequencies; uniform where nothing was counted."""
    return counts / counts.sum() if counts.sum() > 0 else np.full(len(counts), 1 / max(len(counts), 1))


def log_mixture(logs: Array, shares: Array) -> Array:
    """The log density of the mixture of the classes, from the log densities of each (rows × classes)."""
    top = logs.max(1, keepdims=True)
    return np.asarray(top[:, 0] + np.log(np.exp(logs - top) @ shares))


def draw_places(
    probabilities: Array, classes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """A place for every row, drawn by the probabilities of its class (places × classes)."""
    edges = np.cumsum(probabilities / probabilities.sum(0), axis=0)
    return np.asarray(np.minimum((edges[:, classes] < rng.random(len(classes))).sum(0), len(probabilities) - 1))


def values_at(column: Column, places: NDArray[np.int64]) -> NDArray[Any]:
    """The values of a column at these places of its domain; missing cells of a column without any value."""
    values = np.full(max(len(column.values), 1), None, dtype=object)
    values[: len(column.values)] = column.values
    return np.asarray(values[places])


def log_times(count: float, probability: float) -> float:
    """count · log probability; 0 for a count of 0."""
    if count == 0:
        return 0.0
    return float(count) * math.log(probability) if probability > 0 else -math.inf
