"""Parameters of a model, derived from its tally and prior: sufficient statistics with pseudocounts added."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.calibration.copies import effective
from likely.errors import DataError, UsageError
from likely.families import Block, Parameters, groups
from likely.families.bag_of_words import ranked_words
from likely.families.base import edges_by_column, log
from likely.families.text_calibration import LeftOutDocuments, TextCalibration
from likely.families.text_curve_fit import fit_text_calibration
from likely.families.word_counts import Words
from likely.priors import LeaveOneOut, Priors
from likely.schema import CATEGORY, NUMBER, Schema
from likely.sources import MissingTokens
from likely.sources.date_parts import DatePart, parts_of
from likely.sources.missing_tokens import tokens_by_column
from likely.sources.number_formats import NumberFormat
from likely.tally import Tally

if TYPE_CHECKING:
    from likely.model.model import Model

Array = NDArray[np.float64]


def derived_parameters(model: Model, edges: Mapping[str, Array] = MappingProxyType({})) -> tuple[Parameters, ...]:
    """The parameters of every block before averaging and calibration: statistics with pseudocounts added.

    `edges` are of the bins that were cut when the calibration was fitted; without them, bins are cut anew.
    """
    schema, tally = model.schema, model.tally
    if not schema.classes:
        raise DataError("the model has forgotten every row: there is nothing left to derive parameters from; update it first")
    copies = model.calibration.copies if model.calibration and edges else _copies(model)
    found: dict[Block, Parameters] = {}
    statistics = dict(zip(tally.blocks, tally.statistics, strict=True))
    for group in groups(tally.blocks):
        columns = [tuple(schema.by_name[name] for name in block.columns) for block in group]
        priors = [_of_copies(model.prior.of(block).for_classes(schema.classes), copies) for block in group]
        tallied: list[Any] = [statistics[block] for block in group]
        cut = [edges.get(block.columns[0]) for block in group]
        derived = group[0].family.derive(columns, tallied, priors, schema.classes, cut)
        found.update(zip(group, derived, strict=True))
    return tuple(found[block] for block in tally.blocks)


def _copies(model: Model) -> Array | None:
    """Mean number of times that the rows of each class were counted, estimated from the sample of rows."""
    if model.tally.sample is None or not model.prior.default.chosen:
        return None if model.calibration is None else model.calibration.copies
    copies = effective(model.tally.sample, model.tally).copies
    return None if (copies == 1.0).all() else copies


def calibrated_parameters(model: Model) -> tuple[Parameters, ...]:
    """The parameters of every block, calibrated and averaged; those of the interactions come last."""
    plain, tally, calibration = model.plain_parameters, model.tally, model.calibration
    if calibration is None and not model.stages and not model.average:
        return plain
    if calibration and not _cut_alike(plain, calibration.edges):
        plain = derived_parameters(model, calibration.edges)
    found, interactions = list(plain), []
    for i, (block, statistic) in enumerate(zip(tally.blocks, tally.statistics, strict=True)):
        if block.name in model.stages:
            form = model.stages[block.name].likelihood(block.family, statistic, log(model.class_prior))
            found[i] = replace(found[i], likelihood=form)
    if calibration:
        sizes: dict[str, Any] = {c.name: c.values for c in tally.schema.columns if c.kind == CATEGORY}
        names = [block.name for block in tally.blocks]
        found = [calibration.applied(name, each, sizes.get(name)) for name, each in zip(names, found, strict=True)]
        sizes |= {name: len(own) + 1 for name, own in edges_by_column(found).items()}
        interactions = calibration.interaction_terms(sizes)
    arcs = [model.arc(i) if model.average else None for i in range(len(found))]
    return (*(arc.average(each) if arc else each for arc, each in zip(arcs, found, strict=True)), *interactions)


def _cut_alike(plain: Sequence[Parameters], edges: Mapping[str, Array]) -> bool:
    """Whether the bins still are those of the calibration: they move when rows come or go."""
    return all(name not in edges or np.array_equal(own, edges[name]) for name, own in edges_by_column(plain).items())


@dataclass(frozen=True)
class _Copied(LeaveOneOut):
    """Leave-one-out where rows were counted several times: a row is left out with its copies."""

    often: tuple[float, ...] = ()

    @property
    def copies(self) -> Array | None:
        """Mean number of times that a row of each class was counted."""
        return np.array(self.often)


def _of_copies(prior: Any, copies: Array | None) -> Any:
    return _Copied(prior.count, tuple(copies.tolist())) if prior.chosen and copies is not None else prior


def why_not_generative(blocks: Sequence[Block], prior: Priors, calibrated: bool) -> str:
    """Why the scores of a model are no log P(class, row); empty where they are.

    Of a text P(row) is the probability of the words in one order.
    """
    remedy = "learn with plain=True for a model of the rows themselves"
    if calibrated:
        return f"a calibrated model scores classes by weighted evidence, it has no P(x); {remedy}"
    for block in blocks:
        if why := block.family.not_generative(prior.of(block)):
            return f"column {block.name!r} {why}, so there is no P(x); {remedy} and a family with a density"
    return ""


@dataclass(frozen=True)
class ParameterCount:
    """Number of parameters of a model.

    Attributes
    ----------
    table_entries : int
        Entries of all tables.
    free : int
        Free parameters.
    free_without_independence : int or None
        Free parameters of the joint distribution, if no column were independent of another; None unless all are categorical.
    """

    table_entries: int
    free: int
    free_without_independence: int | None


def count_parameters(schema: Schema, parameters: Sequence[Parameters]) -> ParameterCount:
    """Entries of all tables, free parameters, and free parameters if nothing were independent."""
    k = len(schema.classes)
    entries = k + sum(p.entries for p in parameters)
    free = k - 1 + sum(p.free for p in parameters)
    joint = None
    if all(column.kind == CATEGORY for column in schema.columns):
        joint = k * (math.prod(len(c.values) for c in schema.columns) - 1) + k - 1
    return ParameterCount(entries, free, joint)


def with_taken(tally: Tally, gaps: MissingTokens) -> Tally:
    """The tally with a note at each column of what was taken for missing in it."""
    schema = tally.schema
    found = tokens_by_column(gaps.taken, [schema.target.name, *schema.by_name])
    if not found:
        return tally
    target, *columns = (
        replace(c, taken=tuple(found[c.name].items())) if c.name in found else c
        for c in (schema.target, *schema.columns)
    )
    return replace(tally, schema=replace(schema, target=target, columns=tuple(columns)))


def formats_and_parts(schema: Schema, missing: tuple[str, ...]) -> tuple[dict[str, NumberFormat], dict[str, DatePart]]:
    """How rows are read for a model: formats of its numeric columns, and the columns that it derives from dates."""
    parts = parts_of(schema.columns)
    formats = {part.origin: NumberFormat(part.format_code) for part in parts.values()}
    for c in (c for c in schema.columns if c.kind == NUMBER and c.name not in parts):
        formats[c.name] = NumberFormat(c.form, tuple(token for token, _ in c.taken if token not in missing))
    return formats, parts


def fit_stages(tally: Tally) -> dict[str, tuple[TextCalibration, LeftOutDocuments]]:
    """The calibration fitted on the sampled documents of a tally, for each text column that uses one; and their scores."""
    pairs = [(b, s) for b, s in zip(tally.blocks, tally.statistics, strict=True) if isinstance(s, Words) and s.sample]
    fitted = {block.name: fit_text_calibration(block.family, statistic) for block, statistic in pairs}
    return {name: found for name, found in fitted.items() if found}


def strongest_words(
    forms: Mapping[str, Any], column: str | None, classes: Sequence[Any], most: int
) -> dict[Any, list[tuple[str, float]]]:
    """For every class, the words of a text column with the highest weights of evidence, each with its weight."""
    if column is None and len(forms) > 1:
        raise UsageError(f"there are several text columns: name one with column=, of {', '.join(map(repr, forms))}")
    name = next(iter(forms), "") if column is None else column
    if name not in forms:
        known = f"the text columns are {list(forms)}" if forms else "the model has no text column"
        raise UsageError(f"there is no text column{'' if column is None else f' {column!r}'}: {known}")
    return dict(zip(classes, ranked_words(forms[name], most), strict=True))
