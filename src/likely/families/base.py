"""Common parts of families: encoded rows, the interface of priors, parameters and their tables, back-off of variances."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from likely.bayes.conjugate import NormalPrior
from likely.families.likelihood_form import LikelihoodForm
from likely.families.smoothing_choice import SmoothedEvidence
from likely.families.statistics import MEAN_DIGITS, Array
from likely.tokenizer.documents import Documents, Strings

Labels = NDArray[Any]  # the class of every row (negative: none), or responsibilities, rows × classes
# Axes of columns × classes that share a variance.
SHARED: dict[str | None, tuple[int, ...]] = {None: (), "class": (1,), "column": (0,), "both": (0, 1)}
# A standard deviation below this fraction of the mean is rounding error: about four units in the last place.
ROUNDING = 1e-15
SMALLEST = 1e-290  # a variance below this overflows when it divides


def weighted_responsibilities(labels: Labels, weights: Array) -> Array:
    """Weighted responsibilities: those of every row times its weight."""
    return np.ascontiguousarray(labels * weights[:, None], dtype=np.float64)


@dataclass(frozen=True)
class Encoded:
    """Rows as arrays: codes of the categorical columns (value = code - low), numbers with NaN where missing.

    Columns of one kind may come as `columns` instead, one array each; then all are codes or all are numbers, as their family
    knows. `keys` are those of complete rows, where a sample of rows is kept beside documents. `units` are the labels of many
    rows that all have weight one, as unsigned numbers, the number of classes for a row without a label. `before` are the
    statistics of the columns in other rows, which are added: what the sum of both drops need not be counted.
    """

    codes: NDArray[Any]
    low: NDArray[np.int64]
    size: NDArray[np.int64]
    numbers: Array
    documents: Documents | Strings | None = None
    columns: tuple[NDArray[Any], ...] = ()
    keys: NDArray[np.int64] | None = None
    units: NDArray[np.uint32] | None = None
    before: tuple[Any, ...] = ()


class BlockPrior(Protocol):
    """Interface of a prior for one block: pseudocounts, and the prior of mean and variance."""

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """Pseudocount of each value."""

    def unseen(self, value_count: int) -> float:
        """Pseudocount of an unseen value."""

    @property
    def rows(self) -> float:
        """Number of pseudo-rows where there is no list of values."""

    @property
    def background(self) -> float:
        """Total pseudocount that is distributed by the overall frequency of each value."""

    @property
    def normal(self) -> NormalPrior | None:
        """Mean, strength, shape and scale of a normal-inverse-gamma prior."""

    @property
    def gamma(self) -> tuple[float, float] | None:
        """Pseudo-events and pseudo-rows of a gamma prior of rates."""

    @property
    def chosen(self) -> bool:
        """Whether the pseudocounts are chosen by leave-one-out."""

    @property
    def copies(self) -> Array | None:
        """Mean number of copies of a row, by class; None: one."""

    @property
    def named(self) -> tuple[Any, ...]:
        """The values that the prior names."""


@dataclass(frozen=True)
class Parameters:
    """Parameters of one block, derived from its statistic and prior."""

    columns: tuple[str, ...]
    likelihood: LikelihoodForm
    rows: Sequence[dict[str, Any]]  # readable table of the same parameters
    entries: int
    free: int
    notes: tuple[str, ...] = ()
    how: str = ""  # how they were estimated, where there was a choice
    evidence: SmoothedEvidence | None = None  # of a table whose smoothing was chosen by leave-one-out


def edges_by_column(parameters: Sequence[Parameters]) -> dict[str, Array]:
    """Edges of the bins of every binned column."""
    found = {p.columns[0]: p.likelihood.bin_edges for p in parameters}
    return {name: edges for name, edges in found.items() if edges is not None}


class Readable(Sequence[dict[str, Any]]):
    """A readable table whose rows are made on access: there may be millions."""

    __hash__ = None  # type: ignore[assignment]

    def line(self, number: int) -> dict[str, Any]:
        """One row of the table."""
        raise NotImplementedError

    def with_log_probabilities(self, table: Array) -> Self:
        """The same table with other log probabilities; unchanged where it shows none.

        Parameters
        ----------
        table : array
            Log probabilities, values × classes.
        """
        return self

    def __eq__(self, other: object) -> bool:
        """Equal to a list of the same rows."""
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(operator.eq, self, other))

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self.line(i) for i in range(*number.indices(len(self)))]
        return self.line(range(len(self))[number])


def log(x: Array) -> Array:
    """Natural logarithm, minus infinity at zero without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(x)


def log_probabilities(seen: Array, pseudocounts: Array, unseen: float) -> Array:
    """Log probability of each value in each class, from counts plus pseudocounts.

    After the values (axis 1) come one entry for an unseen value, and one for a missing cell, which contributes nothing.
    """
    classes, known = seen.shape
    rows = np.empty((classes, known + 2))
    np.add(seen, pseudocounts, out=rows[:, :known])
    rows[:, known] = unseen
    whole = rows[:, :known].sum(1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows /= whole
        if not whole.all():  # a class without counts and without a prior: uniform
            rows[whole[:, 0] == 0] = 1.0 / max(known, 1)
        rows[:, known + 1] = 1.0
        return np.log(rows, out=rows)


def pseudocounts_of(prior: BlockPrior, values: Sequence[Any], seen: Array) -> Array:
    """Pseudocount of each value: the prior's own, plus those distributed by overall frequency."""
    if not prior.background:
        return prior.pseudocounts(values)
    overall = seen.sum(0)
    whole = overall.sum()
    share = overall / whole if whole > 0 else np.full(len(values), 1.0 / max(len(values), 1))
    return prior.pseudocounts(values) + prior.background * share


def first_bad(bad: NDArray[np.bool_], reason: str) -> tuple[int, str] | None:
    """The first marked row with the reason, if any row is marked."""
    return (int(np.argmax(bad)), reason) if bad.any() else None


def wider_variance(mean: Array, n: Array, spread: Array) -> Array:
    """For each column a variance for classes in which it does not vary: within all classes, else of all rows, else 1."""
    level, whole = overall_mean(n, mean), n.sum(1, keepdims=True)
    within = np.divide(spread.sum(1, keepdims=True), whole, out=np.zeros_like(whole), where=whole > 0)
    between = (n * (mean - level) ** 2).sum(1, keepdims=True)
    total = within + np.divide(between, whole, out=np.zeros_like(whole), where=whole > 0)
    widest = np.abs(mean).max(1, keepdims=True, initial=0.0)
    return np.where(within > dust(widest), within, np.where(total > dust(widest, MEAN_DIGITS), total, 1.0))


def dust(mean: Array, share: float = ROUNDING) -> Array:
    """Variance that rounding alone can give to numbers of this size; to means of them, with MEAN_DIGITS."""
    return np.maximum((share * np.abs(mean)) ** 2, SMALLEST)


def overall_mean(n: Array, mean: Array) -> Array:
    """Mean over all classes, relative to the mean of one, so that equal means give exactly that."""
    whole = n.sum(1, keepdims=True)
    start = np.take_along_axis(mean, (n > 0).argmax(1)[:, None], 1) if n.shape[1] else np.zeros_like(whole)
    apart = (n * (mean - start)).sum(1, keepdims=True)
    level: Array = start + np.divide(apart, whole, out=np.zeros_like(whole), where=whole > 0)
    return level
