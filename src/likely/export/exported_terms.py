"""A scorer as inputs, codes and terms: the common input of all exporters, independent of families."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.families.base_measures import BinomialMeasure
from likely.families.joint_gaussian_term import JointGaussianTerm
from likely.families.likelihood_form import ScoringLoop, TextForm
from likely.families.likelihoods import (
    FARTHEST,
    BinnedGaussian,
    GaussianTerm,
    InteractionTable,
    LinearTerm,
    LookupTable,
)
from likely.families.posterior_predictive import Averaged
from likely.schema import CATEGORY, Column

Array = NDArray[np.float64]
IMPOSSIBLE = -1e305  # stands for the logarithm of zero, which some databases cannot write
RULED_OUT = 0.5 * IMPOSSIBLE  # a score below was ruled out by a probability of zero
KINDS = ("category", "bins", "yes")  # of codes that all exporters write
MOST_PATTERNS = 64  # of missing cells in a joint Gaussian


@dataclass(frozen=True)
class Code:
    """Row index for each cell of one column: values or bins in order, then unseen, then missing.

    `kind` is "category", "bins" (of a number, with `edges`) or "yes" (whether a number is above zero).
    """

    kind: str
    column: str
    size: int  # number of codes, those of unseen and missing cells included
    edges: tuple[float, ...] = ()


class ExportedTerm:
    """Term of a model in a form that exporters can write."""

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that are read as numbers, besides those that have codes."""
        return ()


@dataclass(frozen=True, eq=False)
class TableTerm(ExportedTerm):
    """Table of log-likelihoods; the codes of its columns form the row index, the last column changing fastest."""

    codes: tuple[Code, ...]
    table: Array  # rows × classes

    @property
    def strides(self) -> list[int]:
        """Step of the index for each code."""
        steps = [1]
        for code in self.codes[:0:-1]:
            steps.append(steps[-1] * code.size)
        return steps[::-1]


@dataclass(frozen=True, eq=False)
class CellTerm(ExportedTerm):
    """Interaction table whose row index is a sum of offsets, one for each code; a negative sum contributes nothing."""

    codes: tuple[Code, ...]
    maps: tuple[NDArray[np.int64], ...]
    table: Array


@dataclass(frozen=True, eq=False)
class SquareTerm(ExportedTerm):
    """peak + curve * (x - mean)**2 of one number, by class; 0 where it is missing."""

    column: str
    mean: Array
    curve: Array
    peak: Array

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that are read as numbers."""
        return (self.column,)

    @property
    def reach(self) -> float:
        """Size of numbers beyond which the square might overflow: `beyond` of likelihoods.py takes its place."""
        steepest = max(1.0, float(np.abs(self.curve).max(initial=0.0)))
        return float(np.sqrt(FARTHEST / steepest) - np.abs(self.mean).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class LinearTerms(ExportedTerm):
    """level + slope * x, summed over the numbers that are present; a number that is no count rules out every class."""

    columns: tuple[str, ...]
    slope: Array  # columns × classes
    level: Array
    trials: str | float | None = None  # of a binomial: a column, or the number in every row; the second number is trials - hits

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that are read as numbers."""
        return (*self.columns, self.trials) if isinstance(self.trials, str) else self.columns


@dataclass(frozen=True, eq=False)
class GaussianPattern:
    """Joint Gaussian of the numbers that are present in a row: constant - |root (x - mean)|² / 2, by class."""

    seen: tuple[int, ...]
    mean: Array  # classes × seen
    root: Array  # classes × seen × seen, lower triangular
    constant: Array  # classes


@dataclass(frozen=True, eq=False)
class JointTerm(ExportedTerm):
    """Joint Gaussian log density of several numbers, by pattern of missing cells, times a weight."""

    columns: tuple[str, ...]
    patterns: tuple[GaussianPattern, ...]
    weight: float

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that are read as numbers."""
        return self.columns


@dataclass(frozen=True, eq=False)
class RelativeGaussian(ExportedTerm):
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
class TextTerm(ExportedTerm):
    """Sum over the words of a document; `likelihood` is a form with a table of weights for each word."""

    column: str
    likelihood: Any


Term = TableTerm | CellTerm | SquareTerm | LinearTerms | JointTerm | RelativeGaussian | TextTerm


@dataclass(frozen=True, eq=False)
class ExportedModel:
    """Input of an exporter: the columns, the classes with their constants, and the terms."""

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
        if parameters.likelihood.loop is ScoringLoop.LOOKUP and len(parameters.columns) == 1
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
    """Input for a term: columns, likelihood form, weight, encodings of single columns, sizes of the categories."""

    columns: tuple[str, ...]
    form: Any
    weight: float
    alone: dict[str, Code]
    sizes: tuple[int, ...]


def _terms(scorer: Any, parameters: Any, alone: dict[str, Code]) -> Iterable[Term]:
    form, weight = parameters.likelihood.unscaled
    if weight == 0:
        return []
    make = next((FORMS[kind] for kind in type(form).__mro__ if kind in FORMS), _refused)
    sizes = [len(scorer.schema.by_name[name].values) + 2 for name in parameters.columns]
    return [make(_Block(tuple(parameters.columns), form, weight, alone, tuple(sizes)))]


def _averaged(block: _Block) -> Term:
    raise UsageError(
        f"column {block.columns[0]!r} is averaged over whether it depends on the class, and its likelihood "
        f"({type(block.form).__name__}) is no table, which cannot be exported",
        column=block.columns[0],
        remedy="learn it as binned or categorical (--family), or the model without average=True (--average)",
    )


def _refused(block: _Block) -> Term:
    raise _refusal(block.columns[0], block.form)


def _refusal(column: str, form: Any) -> UsageError:
    forms = ", ".join(each.__name__ for each in FORMS)
    return UsageError(
        f"column {column!r} has a likelihood ({type(form).__name__}) that is none of the forms that can be exported ({forms})",
        column=column,
        remedy="learn it with another family (--family), or ignore it (--ignore)",
    )


def _code(parameters: Any) -> Code:
    """Column encoding for a table of one column."""
    form, name = parameters.likelihood, parameters.columns[0]
    if form.reads not in KINDS:
        raise _refusal(name, form)
    edges = () if form.bin_edges is None else tuple(form.bin_edges.tolist())
    return Code(form.reads, name, len(form.table), edges)


def _text(block: _Block) -> Term:
    return TextTerm(block.columns[0], block.form)


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


# What a likelihood form, or the nearest that it derives from, becomes.
FORMS: dict[type, Callable[[_Block], Term]] = {
    TextForm: _text,
    Averaged: _averaged,
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
    used |= {name for term in exported_model.terms for name in term.numbers}
    return [column.name for column in exported_model.columns if column.name in used]


def category_columns(exported_model: ExportedModel) -> list[str]:
    """Columns that are read as categories, in the order of the schema."""
    used = {code.column for code in exported_model.codes if code.kind == "category"}
    return [column.name for column in exported_model.columns if column.name in used and column.kind == CATEGORY]
