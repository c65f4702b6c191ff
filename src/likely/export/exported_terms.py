"""A scorer as inputs, codes and terms: what every exporter writes, in one form for all families."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.families.base_measures import BinomialMeasure
from likely.families.likelihoods import (
    FARTHEST,
    BinnedGaussian,
    BinnedTable,
    GaussianTerm,
    InteractionTable,
    JointGaussianTerm,
    LinearTerm,
    LookupTable,
    ScaledTerm,
    YesNoTable,
)
from likely.families.posterior_predictive import Averaged
from likely.schema import CATEGORY, Column

Array = NDArray[np.float64]
IMPOSSIBLE = -1e305  # stands for the logarithm of zero, which some databases cannot write
RULED_OUT = 0.5 * IMPOSSIBLE  # a score below was ruled out by a probability of zero
MOST_PATTERNS = 64  # of missing cells in a joint Gaussian


@dataclass(frozen=True)
class Code:
    """Line of a table for each cell of one column: values or bins in order, then unseen, then missing.

    `kind` is "category", "bins" (of a number, with `edges`) or "yes" (whether a number is above zero).
    """

    kind: str
    column: str
    size: int  # lines, those of unseen and missing cells included
    edges: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class TableTerm:
    """Line of a table: the codes of its columns are one index, the last column counting fastest."""

    codes: tuple[Code, ...]
    table: Array  # lines × classes

    @property
    def strides(self) -> list[int]:
        """Step of the index for each code."""
        steps = [1]
        for code in self.codes[:0:-1]:
            steps.append(steps[-1] * code.size)
        return steps[::-1]


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


Term = TableTerm | CellTerm | SquareTerm | LinearTerms | JointTerm | RelativeGaussian | TextTerm


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


def exported(model: Any) -> ExportedModel:
    """The terms of a model, from the scorer that scores its rows."""
    scorer = model.scorer
    alone = {
        parameters.columns[0]: _code(parameters)
        for parameters in scorer.parameters
        if isinstance(parameters.likelihood, LookupTable) and len(parameters.columns) == 1
    }
    terms: list[Term] = []
    for parameters in scorer.parameters:
        terms += _terms(scorer, parameters, alone)
    constant = scorer.log_prior if scorer.bias is None else scorer.log_prior + scorer.bias
    used = dict.fromkeys(code for term in terms for code in getattr(term, "codes", ()))
    return ExportedModel(
        scorer.schema.columns, scorer.schema.target.name, scorer.schema.classes, bounded(scorer.log_prior),
        bounded(constant), tuple(terms), model.missing, tuple(used),
    )  # fmt: skip


def bounded(numbers: Array) -> Array:
    """The numbers with IMPOSSIBLE in place of minus infinity."""
    return np.where(np.isneginf(numbers), IMPOSSIBLE, numbers)


@dataclass(frozen=True)
class _Block:
    """A block as a term is made of it: columns, form, weight, codes of single columns, and lines of each category."""

    columns: tuple[str, ...]
    form: Any
    weight: float
    alone: dict[str, Code]
    sizes: tuple[int, ...]


def _terms(scorer: Any, parameters: Any, alone: dict[str, Code]) -> Iterable[Term]:
    likelihood, weight = parameters.likelihood, 1.0
    if isinstance(likelihood, ScaledTerm):
        likelihood, weight = likelihood.likelihood, likelihood.weight
        if weight == 0:
            return []
    if hasattr(likelihood, "terms"):
        return [TextTerm(parameters.columns[0], likelihood)]
    for form, make in FORMS.items():
        if isinstance(likelihood, form):
            sizes = [len(scorer.schema.by_name[name].values) + 2 for name in parameters.columns]
            return [make(_Block(tuple(parameters.columns), likelihood, weight, alone, tuple(sizes)))]
    raise _not_exported(parameters.columns[0], likelihood)


def _not_exported(column: str, likelihood: Any) -> UsageError:
    """The error for a likelihood that is none of the forms."""
    if isinstance(likelihood, Averaged):
        what = "is averaged over whether it depends on the class, and neither likelihood is a table, which cannot be exported"
        remedy = "learn it as binned or categorical (--family), or the model without average=True (--average)"
    else:
        forms = ", ".join(form.__name__ for form in FORMS)
        what = f"has a likelihood ({type(likelihood).__name__}) that is none of the forms that can be exported ({forms})"
        remedy = "learn it with another family (--family), or ignore it (--ignore)"
    return UsageError(f"column {column!r} {what}", column=column, remedy=remedy)


def _code(parameters: Any) -> Code:
    """Code of a table of one column."""
    form, name = parameters.likelihood, parameters.columns[0]
    if isinstance(form, BinnedTable):
        return Code("bins", name, len(form.table), tuple(form.edges.tolist()))
    return Code("yes" if isinstance(form, YesNoTable) else "category", name, len(form.table))


def _table(block: _Block) -> Term:
    names, table = block.columns, block.weight * block.form.table if block.weight != 1.0 else block.form.table
    if len(names) == 1:
        return TableTerm((block.alone[names[0]],), bounded(table))
    codes = (Code("category", name, size) for name, size in zip(names, block.sizes, strict=True))
    return TableTerm(tuple(codes), bounded(table))


def _cells(block: _Block) -> Term:
    codes = tuple(block.alone[name] for name in block.columns)
    return CellTerm(codes, block.form.maps, bounded(block.weight * block.form.table))


def _square(block: _Block) -> Term:
    form = block.form
    return SquareTerm(block.columns[0], form.mean, block.weight * form.curve, block.weight * form.peak)


def _linear(block: _Block) -> Term:
    columns, form = block.columns, block.form
    slope, level = bounded(block.weight * form.slope), bounded(block.weight * form.level)
    trials: str | float | None = None
    if isinstance(form.base, BinomialMeasure):
        trials = columns[1] if form.base.trials is None else float(form.base.trials)
        columns = columns[:1]
    return LinearTerms(columns, slope, level, trials)


def _joint(block: _Block) -> Term:
    columns, form = block.columns, block.form
    if form.lines:
        raise UsageError(
            f"columns {', '.join(map(repr, columns))} are a joint block of categories and numbers, which cannot be exported",
            column=columns[0],
            remedy="learn the model with blocks of categories alone or of numbers alone",
        )
    width = len(columns)
    if 2**width > MOST_PATTERNS:
        raise UsageError(
            f"a joint Gaussian of {width} columns ({', '.join(map(repr, columns))}) has {2**width:,} patterns of missing "
            "cells: too many to be exported",
            column=columns[0],
            remedy=f"learn the model with smaller blocks, of at most {MOST_PATTERNS.bit_length() - 1} columns",
        )
    subsets = [seen for size in range(width, 0, -1) for seen in combinations(range(width), size)]
    patterns = tuple(_pattern(form.mean[:, 0], form.covariance[:, 0], seen) for seen in subsets)
    return JointTerm(columns, tuple(_weighted(p, form.weight[:, 0]) for p in patterns), block.weight)


def _pattern(mean: Array, covariance: Array, seen: tuple[int, ...]) -> GaussianPattern:
    """Marginal Gaussian of some of the numbers."""
    picked = covariance[:, seen][:, :, seen]
    root = np.linalg.cholesky(picked)
    inverse = np.linalg.solve(root, np.broadcast_to(np.eye(len(seen)), root.shape))
    constant = -0.5 * len(seen) * np.log(2 * np.pi) - np.log(np.einsum("kii->ki", root)).sum(1)
    return GaussianPattern(seen, mean[:, seen], inverse, constant)


def _weighted(pattern: GaussianPattern, log_weight: Array) -> GaussianPattern:
    return replace(pattern, constant=pattern.constant + log_weight)


def _relative(block: _Block) -> Term:
    form = block.form
    codes, centres = [], []
    for name, edges, numbers in zip(block.columns, form.edges, form.numbers, strict=True):
        # Lines as those of the column's own table: bins, unseen (which no number is), missing.
        codes.append(Code("bins", name, len(edges) + 3, tuple(edges.tolist())))
        centres.append(np.array([*numbers[: len(edges) + 1], 0.0, numbers[-1]]))
    held = form.components
    pattern = GaussianPattern(tuple(range(len(codes))), held.mean, held.root, held.constant)
    owner = tuple(held.owner.tolist())
    return RelativeGaussian(tuple(codes), tuple(centres), pattern, owner, form.lowest, block.weight * form.weight)


# The forms of likelihoods.py, the more special ones first.
FORMS: dict[type, Callable[[_Block], Term]] = {
    LookupTable: _table,
    InteractionTable: _cells,
    GaussianTerm: _square,
    LinearTerm: _linear,
    JointGaussianTerm: _joint,
    BinnedGaussian: _relative,
}


def number_columns(exported_model: ExportedModel) -> list[str]:
    """Columns that are read as numbers, in the order of the schema."""
    used = {code.column for code in exported_model.codes if code.kind != "category"}
    for term in exported_model.terms:
        if isinstance(term, SquareTerm):
            used.add(term.column)
        elif isinstance(term, LinearTerms):
            used |= {*term.columns, *([term.trials] if isinstance(term.trials, str) else [])}
        elif isinstance(term, JointTerm):
            used |= set(term.columns)
    return [column.name for column in exported_model.columns if column.name in used]


def category_columns(exported_model: ExportedModel) -> list[str]:
    """Columns that are read as categories, in the order of the schema."""
    used = {code.column for code in exported_model.codes if code.kind == "category"}
    return [column.name for column in exported_model.columns if column.name in used and column.kind == CATEGORY]
