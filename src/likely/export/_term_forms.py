"""What every exporter writes: codes of cells and the terms that are summed, in one form for all families."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.likelihoods import FARTHEST
from likely.schema import CATEGORY, Column

Array = NDArray[np.float64]
IMPOSSIBLE = -1e305  # stands for the logarithm of zero, which some databases cannot write
RULED_OUT = 0.5 * IMPOSSIBLE  # a score below was ruled out by a probability of zero


def bounded(numbers: Array) -> Array:
    """The numbers with IMPOSSIBLE in place of minus infinity."""
    return np.where(np.isneginf(numbers), IMPOSSIBLE, numbers)


@dataclass(frozen=True)
class Code:
    """Line of a table for each cell of one column: values or bins in order, then unseen, then missing.

    `kind` is "category", "bins" (of a number, with `edges`) or "yes" (whether a number is above zero).
    """

    kind: str
    column: str
    size: int  # lines, those of unseen and missing cells included
    edges: tuple[float, ...] = ()


def strides_of(codes: tuple[Code, ...]) -> list[int]:
    """Step of a common index for each code, the last one counting fastest."""
    steps = [1]
    for code in codes[:0:-1]:
        steps.append(steps[-1] * code.size)
    return steps[::-1]


@dataclass(frozen=True, eq=False)
class TableTerm:
    """Line of a table: the codes of its columns are one index, the last column counting fastest."""

    codes: tuple[Code, ...]
    table: Array  # lines × classes

    @property
    def strides(self) -> list[int]:
        """Step of the index for each code."""
        return strides_of(self.codes)


@dataclass(frozen=True, eq=False)
class CellTerm:
    """Line of a table at a sum of offsets, one for each code; a negative sum contributes nothing."""

    codes: tuple[Code, ...]
    maps: tuple[NDArray[np.int64], ...]
    table: Array


@dataclass(frozen=True, eq=False)
class SquareTerm:
    """peak + curve * (x - mean)**2 of one number, by class; 0 where it is missing."""

    column: str
    mean: Array
    curve: Array
    peak: Array

    @property
    def reach(self) -> float:
        """Size of numbers beyond which the square might overflow: `beyond` of likelihoods.py takes its place."""
        steepest = max(1.0, float(np.abs(self.curve).max(initial=0.0)))
        return float(np.sqrt(FARTHEST / steepest) - np.abs(self.mean).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class LinearTerms:
    """level + slope * x, summed over the numbers that are present; a number that is no count rules out every class."""

    columns: tuple[str, ...]
    slope: Array  # columns × classes
    level: Array
    trials: str | float | None = None  # of a binomial: a column, or the number in every row; the second number is trials - hits


@dataclass(frozen=True, eq=False)
class GaussianPattern:
    """Joint Gaussian of the numbers that are present in a row: constant - |root (x - mean)|² / 2, by class."""

    seen: tuple[int, ...]
    mean: Array  # classes × seen
    root: Array  # classes × seen × seen, lower triangular
    constant: Array  # classes


@dataclass(frozen=True, eq=False)
class JointTerm:
    """Joint Gaussian log density of several numbers, by pattern of missing cells, times a weight."""

    columns: tuple[str, ...]
    patterns: tuple[GaussianPattern, ...]
    weight: float


@dataclass(frozen=True, eq=False)
class CellGaussianTerm:
    """Joint Gaussians of several numbers, one for each class and cell of some categories, summed over the cells of a row.

    The codes of a row are a line as in a TableTerm; a line with a missing category has several cells. A pattern has a
    Gaussian for each class and cell, the cells counting fastest; without numbers there is the log probability of the cell.
    """

    columns: tuple[str, ...]  # of the numbers
    codes: tuple[Code, ...]
    patterns: tuple[GaussianPattern, ...]
    log_weight: Array  # classes × cells
    lines: tuple[tuple[int, ...], ...]  # the cells of each line
    weight: float

    @property
    def strides(self) -> list[int]:
        """Step of the line for each code."""
        return strides_of(self.codes)


@dataclass(frozen=True, eq=False)
class StudentDensity:
    """Student's t by class: peak - (degrees + 1) / 2 * log(1 + ((x - mean) / width)**2)."""

    mean: Array
    width: Array
    degrees: Array
    peak: Array


@dataclass(frozen=True, eq=False)
class AveragedTerm:
    """log(e**log_on * dependent + e**log_off * independent) of one number; 0 where it is missing.

    The first density is that of the class, the second that of all classes together.
    """

    column: str
    dependent: StudentDensity | SquareTerm
    independent: StudentDensity | SquareTerm
    log_on: float
    log_off: float


@dataclass(frozen=True, eq=False)
class RelativeGaussian:
    """Joint Gaussians of the numbers of bins, summed by class, relative to the best class, bounded below, times a weight."""

    codes: tuple[Code, ...]
    centres: tuple[Array, ...]  # by column: the number of each line of the code
    pattern: GaussianPattern  # a line for each component
    owner: tuple[int, ...]  # the class of each component, ascending
    lowest: float
    weight: float

    def of_class(self, c: int) -> list[int]:
        """The components of a class."""
        return [k for k, owner in enumerate(self.owner) if owner == c]


@dataclass(frozen=True, eq=False)
class TextTerm:
    """Sum over the words of a document; `likelihood` is a form with a table of weights for each word."""

    column: str
    likelihood: Any


Term = (
    TableTerm | CellTerm | SquareTerm | LinearTerms | JointTerm | CellGaussianTerm | AveragedTerm | RelativeGaussian
    | TextTerm
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class ExportedModel:
    """What an exporter needs: the columns, the classes with their constants, and the terms."""

    columns: tuple[Column, ...]
    target: str
    classes: tuple[Any, ...]
    log_prior: Array
    constant: Array  # log prior and bias
    terms: tuple[Term, ...]
    missing: tuple[str, ...] = ()
    codes: tuple[Code, ...] = field(default=())

    @property
    def by_name(self) -> dict[str, Column]:
        """Columns by name."""
        return {column.name: column for column in self.columns}

    def of(self, kind: type) -> list[Any]:
        """Terms of one form."""
        return [term for term in self.terms if isinstance(term, kind)]


def number_columns(exported_model: ExportedModel) -> list[str]:
    """Columns that are read as numbers, in the order of the schema."""
    used = {code.column for code in exported_model.codes if code.kind != "category"}
    for term in exported_model.terms:
        if isinstance(term, SquareTerm | AveragedTerm):
            used.add(term.column)
        elif isinstance(term, LinearTerms):
            used |= {*term.columns, *([term.trials] if isinstance(term.trials, str) else [])}
        elif isinstance(term, JointTerm | CellGaussianTerm):
            used |= set(term.columns)
    return [column.name for column in exported_model.columns if column.name in used]


def category_columns(exported_model: ExportedModel) -> list[str]:
    """Columns that are read as categories, in the order of the schema."""
    used = {code.column for code in exported_model.codes if code.kind == "category"}
    return [column.name for column in exported_model.columns if column.name in used and column.kind == CATEGORY]
