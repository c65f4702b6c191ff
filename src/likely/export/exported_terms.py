"""A scorer as inputs, codes and terms: the common input of all exporters, independent of families."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from likely.errors import UsageError
from likely.export._term_forms import (
    Array,
    AveragedTerm,
    CellGaussianTerm,
    CellTerm,
    Code,
    ExportedModel,
    GaussianPattern,
    JointTerm,
    LinearTerms,
    RelativeGaussian,
    SquareTerm,
    StudentDensity,
    TableTerm,
    Term,
    TextTerm,
    bounded,
)
from likely.families.base_measures import BinomialMeasure
from likely.families.joint_gaussian_term import JointGaussianTerm
from likely.families.likelihood_form import ScoringLoop, TextForm
from likely.families.likelihoods import BinnedGaussian, GaussianTerm, InteractionTable, LinearTerm, LookupTable
from likely.families.posterior_predictive import Averaged, StudentPredictive, log_gamma
from likely.schema import CATEGORY

MOST_CELLS = 1024  # Gaussians of a class in a joint block of categories and numbers, those of rows with missing cells included
KINDS = ("category", "bins", "yes")  # of codes that all exporters write
MOST_PATTERNS = 64  # of missing cells in a joint Gaussian


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


@dataclass(frozen=True)
class _Block:
    """Input for a term: columns, form, weight, encodings of single columns, sizes of the categories (0: a number)."""

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
    columns = [scorer.schema.by_name[name] for name in parameters.columns]
    sizes = [len(column.values) + 2 if column.kind == CATEGORY else 0 for column in columns]
    return [make(_Block(tuple(parameters.columns), form, weight, alone, tuple(sizes)))]


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
        return _cell_gaussians(block)
    width = len(columns)
    _check_width(columns, width)
    patterns = tuple(_pattern(form.mean[:, 0], form.covariance[:, 0], seen) for seen in _subsets(width))
    return JointTerm(columns, tuple(_weighted(p, form.weight[:, 0]) for p in patterns), block.weight)


def _check_width(columns: tuple[str, ...], width: int) -> None:
    """Refuse a joint Gaussian of too many numbers."""
    if 2**width > MOST_PATTERNS:
        raise UsageError(
            f"a joint Gaussian of {width} columns ({', '.join(map(repr, columns))}) has {2**width:,} patterns of missing "
            "cells: too many to be exported",
            column=columns[0],
            remedy=f"learn the model with smaller blocks, of at most {MOST_PATTERNS.bit_length() - 1} columns",
        )


def _subsets(width: int) -> list[tuple[int, ...]]:
    """The numbers that may be present in a row, the larger sets first; none is left out."""
    return [seen for size in range(width, 0, -1) for seen in combinations(range(width), size)]


def _cell_gaussians(block: _Block) -> Term:
    """A Gaussian for each cell of the categories of a block; a missing category is summed over its known values."""
    form, kinds = block.form, [size > 0 for size in block.sizes]
    numbers = tuple(name for name, category in zip(block.columns, kinds, strict=True) if not category)
    codes = tuple(Code("category", n, size) for n, size in zip(block.columns, block.sizes, strict=True) if size)
    _check_width(numbers, len(numbers))
    cells = form.weight.shape[1]
    if cells * 2 ** len(numbers) > MOST_CELLS:
        raise UsageError(
            f"columns {', '.join(map(repr, block.columns))} are a joint block with {cells:,} combinations of values and "
            f"{2 ** len(numbers)} patterns of missing numbers: too many to be exported",
            column=block.columns[0],
            remedy=f"learn the model with smaller blocks, of at most {MOST_CELLS:,} such patterns",
        )
    width = len(numbers)
    mean, covariance = form.mean.reshape(-1, width), form.covariance.reshape(-1, width, width)
    patterns = tuple(_pattern(mean, covariance, seen) for seen in _subsets(width))
    lines = tuple(_cells_of_line(line, form.lines) for line in product(*(range(size + 1) for size in form.lines)))
    return CellGaussianTerm(numbers, codes, patterns, bounded(form.weight), lines, block.weight)


def _cells_of_line(line: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The cells of a combination of codes; an unseen value is no part of a missing one, unless there is no other."""
    each = [range(max(size - 1, 1)) if code == size else (code,) for code, size in zip(line, sizes, strict=True)]
    return tuple(int(np.ravel_multi_index(cell, sizes)) for cell in product(*each))


def _averaged(block: _Block) -> Term:
    column, form = block.columns[0], block.form
    parts = [_density(column, each) for each in (form.dependent, form.independent)]
    if parts[0] is None or parts[1] is None:
        raise UsageError(
            f"column {column!r} is averaged over whether it depends on the class, and its prediction "
            f"({type(form.dependent).__name__}) is neither a table nor that of a Gaussian, which cannot be exported",
            column=column,
            remedy="learn it as Gaussian, binned or categorical (--family), or the model without average=True (--average)",
        )
    return AveragedTerm(column, parts[0], parts[1], form.log_on, form.log_off)


def _density(column: str, form: Any) -> StudentDensity | SquareTerm | None:
    """The predictive density of one number; None where it has no exported form."""
    make = DENSITIES.get(type(form))
    return None if make is None else make(column, form)


def _gaussian_density(column: str, form: Any) -> SquareTerm:
    return SquareTerm(column, form.mean, form.curve, form.peak)


def _student_density(_: str, form: Any) -> StudentDensity:
    half = (form.degrees + 1) / 2
    peak = log_gamma(half) - log_gamma(form.degrees / 2) - 0.5 * np.log(np.pi * form.degrees) - np.log(form.scale)
    return StudentDensity(form.mean, form.scale * np.sqrt(form.degrees), form.degrees, peak)


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


# What a likelihood form, or the nearest that it derives from, becomes; and the predictive density of one number.
DENSITIES: dict[type, Callable[[str, Any], StudentDensity | SquareTerm]] = {
    GaussianTerm: _gaussian_density,
    StudentPredictive: _student_density,
}
FORMS: dict[type, Callable[[_Block], Term]] = {
    TextForm: _text,
    LookupTable: _table,
    InteractionTable: _cells,
    GaussianTerm: _square,
    LinearTerm: _linear,
    JointGaussianTerm: _joint,
    Averaged: _averaged,
    BinnedGaussian: _relative,
}
