"""The terms of the second stage: the evidence of each block for every row of the sample, the row left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.calibration.copies import Effective
from likely.calibration.search import Searched, grouped
from likely.families.base import Parameters
from likely.families.evidence import COMPILED, Evidence, nested, weigh
from likely.families.forms import Lookup, Parabola, Steps
from likely.families.statistics import Moments
from likely.reservoir import Reservoir
from likely.schema import CATEGORY
from likely.tally import Tally
from likely.threads import FEW_ROWS, side_by_side

Array = NDArray[np.float64]
Single = NDArray[np.float32]

LOWEST = -50.0  # evidence: a zero count without a prior must not break the sums
FOLDS = 4
# Rows for each term from which on the choices of bandwidth and pseudocount are as good as given: the optimism of a choice
# is below one nat a column, so that it is below 0.002 nats a row then.
MANY_ROWS = 500


@dataclass(frozen=True)
class Term:
    """The evidence of one block for every row of the sample, with the row left out; its codes, where it is a table."""

    name: str
    evidence: Single
    searched: Searched | None = None
    gains: Array | None = None  # of leave-one-out log likelihood, without each fold and last with all rows
    centres: Array | None = None  # the numbers that bins stand for


@dataclass(frozen=True)
class Absent:
    """The evidence of a cell's being present or missing."""

    name: str
    table: Array  # present and missing × classes
    term: Term


@dataclass(frozen=True)
class Data:
    """The tally, the sample that everything is fitted on, and its folds."""

    tally: Tally
    rows: Effective
    folds: int  # 0: choices are not nested
    compiled: bool = False  # whether there are so many tables that compiled loops pay

    @staticmethod
    def of(tally: Tally, rows: Effective, believed: Sequence[Parameters]) -> Data:
        """Choices are nested where rows are few for so many terms."""
        few = float(rows.sample.weights.sum()) < MANY_ROWS * len(believed) and len(rows.sample) > FOLDS
        entries = sum(each.form.table.size for each in believed if isinstance(each.form, Steps))
        return Data(tally, rows, FOLDS if few else 0, entries >= COMPILED)

    @property
    def sample(self) -> Reservoir:
        """The rows."""
        return self.rows.sample

    @property
    def fold(self) -> NDArray[np.int64]:
        """The fold of every row; the rows are in random order."""
        return np.arange(len(self.sample)) % max(self.folds, 1)


def make_terms(data: Data, believed: Sequence[Parameters]) -> list[Term]:
    """The terms of all blocks but texts, whose documents are kept for fewer rows."""
    numbered = list(enumerate(believed))
    rows = FEW_ROWS if data.compiled else len(data.sample)
    terms = side_by_side(lambda one: make_term(data, *one), numbered, rows)
    return [term for term in terms if term is not None]


def base_scores(data: Data) -> Single:
    """The log frequency of every class, each row left out of its own."""
    y = data.sample.labels
    seen = data.tally.classes / data.rows.copies + 0.5
    base = np.tile(np.log(seen / seen.sum()), (len(y), 1)).astype(np.float32)
    base[np.arange(len(y)), y] = np.log((np.maximum(seen[y] - 0.5 - data.rows.left, 0.0) + 0.5) / seen.sum())
    return base


def make_term(data: Data, i: int, believed: Parameters) -> Term | None:
    """The term of one block; None of a text."""
    form: Any = believed.form
    if hasattr(form, "terms"):
        return None
    tally, sample, block = data.tally, data.sample, data.tally.blocks[i]
    if isinstance(form, Lookup) and len(block.columns) == 1 and tally.schema.by_name[block.columns[0]].kind == CATEGORY:
        codes = np.where(sample.columns[block.columns[0]] < 0, len(form.table) - 1, sample.columns[block.columns[0]])
    elif isinstance(form, Steps):
        codes = form.codes(sample.columns[block.columns[0]])
    else:
        return Term(block.name, _plain_term(data, i, form))
    searched = grouped(codes, len(form.table) - 2, isinstance(form, Steps), sample.weights)
    if believed.evidence is None:  # a prior that was asked for: as it stands
        said = np.maximum(form.table, LOWEST).astype(np.float32).take(codes, axis=0)
        return Term(block.name, said, searched)
    made = _table_term(data, block.name, codes, believed.evidence, searched)
    if not isinstance(form, Steps):
        return made
    centres = believed.evidence.centres
    statistic: Any = tally.statistics[i]
    return replace(made, centres=statistic.centres(form.edges) if centres is None else centres)


def _table_term(data: Data, name: str, codes: NDArray[Any], found: Evidence, searched: Searched | None = None) -> Term:
    """The evidence of a table; where rows are few, each row's under the choice made without its fold."""
    if not data.folds:
        return Term(name, _left_out(data, codes, found), searched)
    sample, seen = data.sample, found.seen
    values, classes = seen.shape
    known = codes < values
    place = (data.fold * values + np.where(known, codes, 0)) * classes + sample.labels
    counts = np.bincount(place[known], sample.weights[known], data.folds * values * classes)
    folds = counts.reshape(data.folds, values, classes) * (seen.sum() / max(float(counts.sum()), 1e-300))
    made = nested(found, folds, data.compiled)
    evidence = np.empty((len(sample), classes), np.float32)
    for f in range(data.folds):
        evidence[f :: data.folds] = _left_out(data, codes, made[f], slice(f, None, data.folds))
    return Term(name, evidence, searched, np.array([each.gain for each in made]))


def _left_out(data: Data, codes: NDArray[Any], found: Evidence, some: slice = slice(None)) -> Single:
    """The evidence of a table for some of the rows, each left out of its own value and class."""
    codes, labels, left = codes[some], data.sample.labels[some], data.rows.left[some]
    classes = found.table.shape[1]
    table = np.concatenate([found.table, np.zeros((2, classes))])  # an unseen value and a missing cell: no evidence
    out: Single = np.maximum(table, LOWEST).astype(np.float32).take(codes, axis=0)
    at = np.flatnonzero(codes < len(found.table))
    whole = bool((left == 1.0).all())
    y, values = labels[at], codes[at]
    own = found.left_out[values, y] if whole else found.without(values, y, left[at])
    out[at, y] = np.maximum(own, LOWEST)
    return out


def _plain_term(data: Data, i: int, form: Any) -> Single:
    """The evidence of a block whose family was asked for: the row left out where that is a closed form, else as it stands."""
    tally, sample = data.tally, data.sample
    block, schema = tally.blocks[i], tally.schema
    out = np.zeros((len(sample), len(schema.classes)))
    names = [n for n in block.columns if schema.by_name[n].kind == CATEGORY]
    codes = [np.where((c := sample.columns[n]) < 0, len(schema.by_name[n].values) + 1, c) for n in names]
    numbers = np.column_stack(
        [sample.columns[n] for n in block.columns if n not in names] or [np.zeros((len(sample), 0))]
    )
    table = np.column_stack(codes) if codes else np.zeros((len(sample), 0), np.int64)
    if isinstance(form, Lookup):  # of several columns: a place in their common table
        sizes = [len(schema.by_name[n].values) + 2 for n in names]
        table = np.ravel_multi_index(tuple(codes), sizes)[:, None] if names else _yes_or_no(numbers)
    form.add(table, numbers, out)
    statistic = tally.statistics[i]
    if isinstance(form, Parabola) and isinstance(statistic, Moments):
        _leave_out(form, statistic, numbers[:, 0], data, out)
    return np.maximum(out, LOWEST).astype(np.float32)


def _yes_or_no(numbers: Array) -> NDArray[Any]:
    from likely.families.categorical import yes_or_no

    codes: NDArray[Any] = yes_or_no(numbers)
    return codes


def _leave_out(form: Parabola, seen: Moments, x: Array, data: Data, out: Array) -> None:
    """The Gaussian density of each row's own class without the row: mean and spread are downdated in closed form."""
    y, whose = data.sample.labels, np.arange(len(x))
    copies = data.rows.copies[y]
    n, mean, spread, gone = seen.n[y] / copies, seen.mean[y], seen.spread[y] / copies, data.rows.left
    with np.errstate(all="ignore"):
        rest = n - gone
        apart = x - mean
        variance = (spread - gone * apart * apart * n / rest) / rest
        there = (rest > 1.5) & (variance > 1e-6 * -0.5 / form.curve[y]) & ~np.isnan(x)
        own = -0.5 * (np.log(2 * np.pi * variance) + (x - (mean - gone * apart / rest)) ** 2 / variance)
    out[whose[there], y[there]] = own[there]


def make_absent(data: Data, terms: Sequence[Term]) -> list[Absent]:
    """The evidence of presence, for every block of one column some of whose cells are missing."""
    wanted = {term.name for term in terms}
    found = []
    for i, block in enumerate(data.tally.blocks):
        counts = _presence(data, i) if block.name in wanted and len(block.columns) == 1 else None
        if counts is not None:
            x = data.sample.columns[block.columns[0]]
            gone = (np.isnan(x) if x.dtype.kind == "f" else x < 0).astype(np.int64)
            evidence = weigh(counts)
            term = _table_term(data, block.name, gone, evidence)
            found.append(Absent(block.name, evidence.table, term))
    return found


def _presence(data: Data, i: int) -> Array | None:
    """Rows whose cell is present, and whose cell is missing, in each class; None where all are, or none."""
    tally = data.tally
    weight = tally.statistics[i].weight()
    there = weight.reshape(len(weight), -1).sum(1)
    gone = np.where(tally.classes - there > 1e-9 * tally.classes, tally.classes - there, 0.0)
    return np.stack([there, gone]) / data.rows.copies if gone.any() and there.any() else None


def included(data: Data, terms: Sequence[Term], base: Single) -> tuple[list[Single], Array]:
    """The evidence of each term times the probability that the column matters at all, and that probability.

    A spike-and-slab prior with the leave-one-out likelihood in place of the marginal one; the share of columns that matter is
    estimated from all of them. For the rows of a fold the probability is that of the rows outside it, so that the weights
    which are fitted on these rows see how well such a selection generalises.
    """
    chosen = [j for j, term in enumerate(terms) if term.gains is not None]
    probability = np.ones((len(terms), data.folds + 1))
    if chosen:
        gains = np.array([terms[j].gains for j in chosen]) - _optimism(data, [terms[j] for j in chosen], base)
        for f in range(data.folds + 1):
            probability[chosen, f] = _posterior(gains[:, f])
    fold = data.fold
    evidence = [
        term.evidence if term.gains is None else term.evidence * each[fold, None].astype(np.float32)
        for term, each in zip(terms, probability, strict=True)
    ]
    return evidence, probability[:, -1]


def _optimism(data: Data, terms: Sequence[Term], base: Single) -> float:
    """By how much the gain of a choice made on all rows exceeds the gain of nested choices, for the median column."""
    y, w = data.sample.labels, data.sample.weights
    before = base.astype(np.float64)
    none = float(w @ log_loss(before, y))
    some = terms[:: max(1, len(terms) // 200)]
    apart = [
        float(t.gains[-1]) - (none - float(w @ log_loss(before + t.evidence, y))) for t in some if t.gains is not None
    ]
    return max(0.0, float(np.median(apart)))


def _posterior(gains: Array) -> Array:
    """The posterior probability that each column matters; the prior share of those that do is estimated by EM."""
    share = 0.5
    for _ in range(200):
        odds = gains + np.log(share / (1.0 - share))
        probability: Array = 1.0 / (1.0 + np.exp(np.clip(-odds, -700.0, 700.0)))
        new = (1.0 + float(probability.sum())) / (2.0 + len(gains))
        if abs(new - share) < 1e-9:
            break
        share = new
    return probability


def log_loss(score: Array, labels: NDArray[np.int64]) -> Array:
    """-log of the probability of each row's own class."""
    top = score.max(1)
    lost: Array = np.log(np.exp(score - top[:, None]).sum(1)) + top - score[np.arange(len(score)), labels]
    return lost
