"""What every family offers, and the words they share: block, encoded rows, imagined rows, parameters."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from likely.families.evidence import Evidence
from likely.families.forms import Form
from likely.families.statistics import Array, Statistic
from likely.schema import CATEGORY, NUMBER, Column
from likely.sources.documents import Documents, Strings
from likely.tokens import Bags

Labels = NDArray[Any]  # the class of every row (negative: none), or rows × classes: the share of the row in each class


def shared(labels: Labels, weights: Array) -> Array:
    """How much of every row each class counts: its share, times the weight of the row."""
    return np.ascontiguousarray(labels * weights[:, None], dtype=np.float64)


@dataclass(frozen=True)
class Encoded:
    """Rows as arrays: codes of the categorical columns (value = code - low), numbers with NaN where missing.

    Columns of one kind may come as `columns` instead, each where it stands; they are many rows, and all are codes or
    all are numbers, as their family knows. `keys` are those of whole rows, where a sample of rows is kept beside documents.
    """

    codes: NDArray[Any]
    low: NDArray[np.int64]
    size: NDArray[np.int64]
    numbers: Array
    documents: Documents | Strings | None = None
    columns: tuple[NDArray[Any], ...] = ()
    keys: NDArray[np.int64] | None = None


class Imagined(Protocol):
    """Imagined rows: what a prior says to a family."""

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """How many rows are imagined for each value."""

    def unseen(self, value_count: int) -> float:
        """How many rows are imagined for a value that was never seen."""

    @property
    def rows(self) -> float:
        """How many rows are imagined in all, where there is no list of values."""

    @property
    def background(self) -> float:
        """How many rows are imagined in proportion to how often each value occurs overall."""

    @property
    def normal(self) -> tuple[float, float, float, float] | None:
        """Mean, strength, shape and scale of a normal-inverse-gamma prior."""

    @property
    def chosen(self) -> bool:
        """Whether as many rows are imagined as leaving each row out asks for."""

    @property
    def copies(self) -> Array | None:
        """How often each row of a class was counted, in the mean of the class; None: once."""

    @property
    def named(self) -> tuple[Any, ...]:
        """The values that the prior speaks of by name."""


class OfWords(Protocol):
    """The form of a text: a sum over the words of each document."""

    def terms(self, bags: Bags, missing: NDArray[np.bool_]) -> Array:
        """What the documents say of each class."""

    def details(self, bags: Bags) -> list[tuple[str, float, Array]]:
        """The words of one document, each with its number and what it says of each class."""


@dataclass(frozen=True)
class Parameters:
    """What is believed of one block, read off the tally and the prior."""

    columns: tuple[str, ...]
    form: Form | OfWords
    rows: Sequence[dict[str, Any]]  # the same, as a readable table
    entries: int
    free: int
    notes: tuple[str, ...] = ()
    how: str = ""  # how it was read off the tally, where there was a choice
    evidence: Evidence | None = None  # of a table whose smoothing was chosen by leave-one-out


class Readable(Sequence[dict[str, Any]]):
    """A table to read, of which a line is made when it is looked at: there may be millions."""

    __hash__ = None  # type: ignore[assignment]

    def line(self, number: int) -> dict[str, Any]:
        """One line of the table."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        """It reads like a list, so it is equal to the list of its lines."""
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(operator.eq, self, other))

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self.line(i) for i in range(*number.indices(len(self)))]
        return self.line(range(len(self))[number])


class Family(Protocol):
    """One kind of column: what is counted, and what is believed of it. Methods work on a group of equal families."""

    name: ClassVar[str]
    single: ClassVar[bool]  # one column a block: then all blocks of the family are counted in one sweep
    strict: ClassVar[bool]  # whether every number is looked at before it is believed, or only when a sum overflows

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """Count the rows of a group of blocks, one statistic a block; `labels` may be shares of every row in the classes."""

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        tallied: Sequence[Any],
        imagined: Sequence[Imagined],
        classes: Sequence[Any],
    ) -> list[Parameters]:
        """The parameters of a group of blocks, once the imagined rows are added to the seen ones."""

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """The first row whose number this family cannot count, and why."""

    def settings(self) -> dict[str, Any]:
        """What is needed to make this family again."""


@dataclass(frozen=True)
class Block:
    """Columns that are modelled together, and the family that models them."""

    family: Family
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the block is called in tables: its columns joined by 'with'."""
        return " with ".join(self.columns)

    def nothing(self, columns: Sequence[Column], classes: int) -> Statistic:
        """What the block has counted before it has seen a row."""
        domains = np.array([len(column.values) for column in columns if column.kind == CATEGORY], np.int64)
        codes, numbers = np.zeros((0, len(domains)), np.int32), sum(column.kind == NUMBER for column in columns)
        rows = Encoded(codes, np.zeros(len(domains), np.int64), domains, np.zeros((0, numbers)))
        return self.family.count(rows, np.zeros(0, np.int64), np.zeros(0), classes)[0]


def log(x: Array) -> Array:
    """The natural logarithm, minus infinity at zero without complaint."""
    with np.errstate(divide="ignore"):
        return np.log(x)


def log_shares(seen: Array, imagined: Array, unseen: float) -> Array:
    """The log share of each value in each class, once the imagined rows are added to the seen ones.

    Past the values (axis 1) stand one place for a value never seen, and one for a missing cell, which says nothing.
    """
    classes, known = seen.shape
    rows = np.empty((classes, known + 2))
    np.add(seen, imagined, out=rows[:, :known])
    rows[:, known] = unseen
    whole = rows[:, :known].sum(1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows /= whole
        if not whole.all():  # a class that counted nothing here, without a prior: all values are alike to it
            rows[whole[:, 0] == 0] = 1.0 / max(known, 1)
        rows[:, known + 1] = 1.0
        return np.log(rows, out=rows)


def imagined_rows(prior: Imagined, values: Sequence[Any], seen: Array) -> Array:
    """How many rows are imagined for each value: those of the prior's own, and those drawn as all classes are."""
    if not prior.background:
        return prior.pseudocounts(values)
    overall = seen.sum(0)
    whole = overall.sum()
    share = overall / whole if whole > 0 else np.full(len(values), 1.0 / max(len(values), 1))
    return prior.pseudocounts(values) + prior.background * share


def no_check(_name: str, _numbers: Array) -> tuple[int, str] | None:
    """Nothing to object to."""
    return None


def first_bad(bad: NDArray[np.bool_], reason: str) -> tuple[int, str] | None:
    """The first marked row with the reason, if any row is marked."""
    return (int(np.argmax(bad)), reason) if bad.any() else None
