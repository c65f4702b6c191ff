"""Tally and prior give parameters: what is believed, read off what was counted and imagined."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.calibration import Calibration
from likely.errors import DataError, LikelyWarning, no_column
from likely.families import Bernoulli, Binned, Binomial, Block, Categorical, Joint, Parameters, Text
from likely.families.base import log
from likely.families.curve import Curve, LeftOut, fit_curve
from likely.families.forms import Steps
from likely.families.text import ranked_words
from likely.families.words import Words
from likely.prior import LeaveOneOut, Priors
from likely.schema import CATEGORY, NUMBER, Schema
from likely.sources import Gaps, Reading
from likely.sources.dateparts import parts_of
from likely.sources.forms import Form
from likely.sources.gaps import taken_by_column
from likely.tally import Tally

Array = NDArray[np.float64]
OF_WORDS = (("multinomial", "raw", None, False), ("bernoulli", "once", None, False))  # what generates a text


def groups(blocks: Sequence[Block]) -> list[list[Block]]:
    """Blocks that are counted and read in one sweep: equal families of single columns together, all others alone."""
    together: dict[Any, list[Block]] = {}
    for block in blocks:
        together.setdefault(block.family if block.family.single else block, []).append(block)
    return list(together.values())


def read_off(
    tally: Tally, prior: Priors, edges: Mapping[str, Array], copies: Array | None = None
) -> tuple[Parameters, ...]:
    """The parameters of every block: the tally with the imagined rows added.

    `edges` are of bins that were cut before, `copies` how often the rows of each class were counted, in the mean.
    """
    if not tally.schema.classes:
        raise DataError("the model has forgotten every row: there is nothing left to read off; update it first")
    found = _derived(tally, prior, edges, copies)
    return tuple(found[block] for block in tally.blocks)


def believed(
    tally: Tally,
    prior: Priors,
    plain: Sequence[Parameters],
    stages: Mapping[str, Curve],
    calibration: Calibration | None,
) -> tuple[Parameters, ...]:
    """What is believed of every block, and then of every set of columns that speak together."""
    if calibration and not _cut_alike(plain, calibration.edges):
        plain = read_off(tally, prior, calibration.edges, calibration.copies)
    found = dict(zip(tally.blocks, plain, strict=True))
    statistics = dict(zip(tally.blocks, tally.statistics, strict=True))
    log_prior = log(prior.class_shares(tally.schema.classes, tally.classes, tally.blocks))
    for block in tally.blocks:
        if block.name in stages:
            form = stages[block.name].form(block.family, statistics[block], log_prior)
            found[block] = replace(found[block], form=form)
    if calibration is None:
        return tuple(found[block] for block in tally.blocks)
    sizes: dict[str, Any] = {c.name: c.values for c in tally.schema.columns if c.kind == CATEGORY}
    alone = tuple(calibration.applied(block.name, found[block], sizes.get(block.name)) for block in tally.blocks)
    sizes |= {p.columns[0]: len(p.form.edges) + 1 for p in alone if isinstance(p.form, Steps)}
    return (*alone, *calibration.together(sizes))


def _cut_alike(plain: Sequence[Parameters], edges: Mapping[str, Array]) -> bool:
    """Whether the bins still are those of the calibration: they move when rows come or go."""
    steps = [(p.columns[0], p.form) for p in plain if isinstance(p.form, Steps)]
    return all(name not in edges or np.array_equal(form.edges, edges[name]) for name, form in steps)


def _derived(
    tally: Tally, prior: Priors, edges: Mapping[str, Array], copies: Array | None
) -> dict[Block, Parameters]:
    schema = tally.schema
    found: dict[Block, Parameters] = {}
    statistics = dict(zip(tally.blocks, tally.statistics, strict=True))
    for group in groups(tally.blocks):
        columns = [tuple(schema.by_name[name] for name in block.columns) for block in group]
        imagined = [_of_copies(prior.of(block), copies) for block in group]
        tallied: list[Any] = [statistics[block] for block in group]
        family = group[0].family
        if isinstance(family, Binned):
            cut = [edges.get(block.columns[0]) for block in group]
            derived = family.derive(columns, tallied, imagined, schema.classes, cut)
        else:
            derived = family.derive(columns, tallied, imagined, schema.classes)
        found.update(zip(group, derived, strict=True))
    return found


@dataclass(frozen=True)
class _Copied(LeaveOneOut):
    """Leave-one-out where rows were counted several times: a row is left out with its copies."""

    often: tuple[float, ...] = ()

    @property
    def copies(self) -> Array | None:
        """How often each row of a class was counted, in the mean of the class."""
        return np.array(self.often)


def _of_copies(prior: Any, copies: Array | None) -> Any:
    return _Copied(prior.count, tuple(copies.tolist())) if prior.chosen and copies is not None else prior


def why_not_generative(blocks: Sequence[Block], prior: Priors, calibrated: bool) -> str:
    """Why the scores of a model are no log P(class, row); empty where they are.

    Of a text and of a block of counts P(row) is the probability of the words or events in one order.
    """
    remedy = "learn with plain=True for a model of the rows themselves"
    if calibrated:
        return f"a calibrated model scores classes by weighted evidence, it has no P(x); {remedy}"
    for block in blocks:
        made: Any = block.family
        if isinstance(made, Text) and (made.kind, made.adds, made.length, made.idf) not in OF_WORDS:
            return f"the words of {block.name!r} are weighted, they have no P(x); {remedy} and kind='multinomial'"
        if isinstance(made, Binned) or (prior.of(block).chosen and isinstance(made, Categorical | Bernoulli)):
            return f"column {block.name!r} is evidence for the classes and no density; {remedy} and a density as family"
    return ""


@dataclass(frozen=True)
class ParameterCount:
    """How many numbers the model is: in its tables, free ones, and what it would be without independence."""

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


def with_taken(tally: Tally, gaps: Gaps) -> Tally:
    """The tally with a note at each column of what was taken for missing in it."""
    schema = tally.schema
    found = taken_by_column(gaps.taken, [schema.target.name, *schema.by_name])
    if not found:
        return tally
    target, *columns = (
        replace(c, taken=tuple(found[c.name].items())) if c.name in found else c
        for c in (schema.target, *schema.columns)
    )
    return replace(tally, schema=replace(schema, target=target, columns=tuple(columns)))


def say_other_gaps(one: Gaps, other: Gaps) -> None:
    """Two models that are added up may have been learned with other lists of what is missing: the first list stays."""
    if (one.tokens, one.labels) != (other.tokens, other.labels):
        lists = [(list(g.tokens), list(g.tokens if g.labels is None else g.labels)) for g in (one, other)]
        said = " and ".join(f"{tokens} (target: {labels})" for tokens, labels in lists)
        said = f"the models take different texts for missing, {said}: the sum reads rows by the first list"
        warnings.warn(said, LikelyWarning, stacklevel=4)


def reading_of(schema: Schema, missing: tuple[str, ...], labels: tuple[str, ...] | None) -> Reading:
    """How rows are read for a model: as those that it was learned from."""
    parts = parts_of(schema.columns)
    forms = {part.origin: Form(part.form) for part in parts.values()}
    for c in (c for c in schema.columns if c.kind == NUMBER and c.name not in parts):
        forms[c.name] = Form(c.form, tuple(token for token, _ in c.taken if token not in missing))
    return Reading(missing, missing_labels=labels, forms=forms, parts=parts)


def warn_of_gaps(tally: Tally) -> None:
    """Say of which joint blocks some rows were not counted: a cell of them is missing."""
    for block, statistic in zip(tally.blocks, tally.statistics, strict=True):
        left = float(tally.classes.sum()) - float(statistic.weight().sum()) if isinstance(block.family, Joint) else 0.0
        if left > 0.5:
            said = f"{block.name!r}: {left:,.0f} of these rows miss cells of it and change nothing of it; "
            warnings.warn(f"{said}learn anew from all rows to count them by EM", LikelyWarning, stacklevel=4)


def refuse_unknown(families: Any, blocks: Sequence[Block]) -> None:
    """Refuse families of columns that the model does not have."""
    known = {key for block in blocks for key in names_of(block)}
    odd = [key for key in families if key not in known] if isinstance(families, Mapping) else []
    if odd:
        names = [block.name for block in blocks]
        raise no_column("the model", odd[0], names)


def names_of(block: Block) -> tuple[Any, ...]:
    """What a block may be called: by its columns, by its name, and k of n by the column of k alone."""
    alone = len(block.columns) == 1 or isinstance(block.family, Binomial)
    return (block.columns, block.name, *([block.columns[0]] if alone else []))


def fit_stages(tally: Tally) -> dict[str, tuple[Curve, LeftOut]]:
    """What is fitted on the documents that a tally keeps, for each column of text that wants it; and their scores."""
    pairs = [(b, s) for b, s in zip(tally.blocks, tally.statistics, strict=True) if isinstance(s, Words) and s.sample]
    fitted = {block.name: fit_curve(block.family, statistic) for block, statistic in pairs}
    return {name: found for name, found in fitted.items() if found}


def strongest_words(forms: Mapping[str, Any], classes: Sequence[Any], most: int) -> dict[str, dict[str, list[str]]]:
    """For every column of text and every class, the words that speak most for it."""
    found = {}
    for name, form in forms.items():
        ranked = zip(classes, ranked_words(form, most), strict=True)
        found[name] = {str(c): [word for word, _ in best] for c, best in ranked}
    return found
