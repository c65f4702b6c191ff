"""Terms of the second stage: leave-one-out evidence of each block for every row of the sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import log_losses
from likely.calibration import _calibration_loops as loops
from likely.calibration._interaction_search import GroupedColumn, group_column
from likely.calibration.copies import EffectiveSample
from likely.families import FittedBlock, LeftOutRows
from likely.families.base import Parameters
from likely.families.compiled_choice import COMPILED, TableRows, alike
from likely.families.family import cells_of_block
from likely.families.likelihood_form import ScoringLoop
from likely.families.smoothing_choice import SINGLE, SmoothedEvidence, choose_smoothing, nested
from likely.kernels.kernel import worth_compiling
from likely.kernels.parallel import in_parallel, side_by_side
from likely.priors import LeaveOneOut, Priors
from likely.schema import CATEGORY
from likely.tally import Tally
from likely.tally.row_sample import Reservoir

Array = NDArray[np.float64]
Single = NDArray[np.float32]
CodedTable = tuple[NDArray[Any], SmoothedEvidence]  # values of the rows of the sample, and the evidence of these values

LOWEST = -50.0  # minimum evidence: a zero count without a prior must not break the sums
FOLDS = 4
NOTHING = np.empty((0, 0), np.float32)  # evidence that is still to be read from a table
# Rows for each term from which the optimism of choosing bandwidth and pseudocount is negligible: it is below one nat a
# column, and so below 0.002 nats a row.
MANY_ROWS = 500
FEW_ROWS = 1_000  # with more, noise that gains as much as a signal costs less than 0.02 nats a row: labels are not permuted
MANY_TERMS = 300  # from which compiled loops pay even where a term takes few array calls
# By leave-one-out a column of noise gains more than g nats with a probability of about exp(-g / 2), because each pair of rows
# counts twice: as a log Bayes factor, the gain would find a signal in one column of noise in fifteen. Half of it does not.
CHANCE = 0.5
MISSINGNESS_PRICE = 1.0  # nats that a column's missingness must gain: mostly cells are missing whatever the class is
LOSS_ARRAYS = 4e-8  # seconds that an entry of the evidence takes longer with arrays, in all losses of its term


@dataclass(frozen=True)
class Term:
    """Leave-one-out evidence of one block for every row of the sample, and its codes where it is a table."""

    name: str
    evidence: Single
    column: GroupedColumn | None = None
    gains: Array | None = None  # in leave-one-out log likelihood: without each fold, and last with all rows
    centres: Array | None = None  # the numbers that represent the bins
    price: float = 0.0  # nats that are subtracted from its gains
    table: CodedTable | None = None  # that the evidence is read from, where rows are few


@dataclass(frozen=True)
class MissingnessTerm:
    """Evidence of a cell's being present or missing."""

    name: str
    table: Array  # present and missing × classes
    term: Term


@dataclass(frozen=True)
class CalibrationData:
    """The tally, the sample that the calibration is fitted on, and its folds."""

    tally: Tally
    rows: EffectiveSample
    folds: int  # 0: choices of smoothing are not nested
    compiled: bool = False  # whether the tables are large enough for compiled loops
    wide: bool = False  # whether there are so many terms that compiled loops pay for little work on each
    compiled_loss: bool = False  # whether the loop of the losses is worth compiling
    prior: Priors | None = None  # of the parameters; None: chosen by leave-one-out

    @staticmethod
    def of(tally: Tally, rows: EffectiveSample, parameters: Sequence[Parameters], prior: Priors | None) -> CalibrationData:
        """Choices of smoothing are nested where rows are few for the number of terms."""
        forms: list[Any] = [each.likelihood for each in parameters]
        few = float(rows.sample.weights.sum()) < MANY_ROWS * len(parameters) and len(rows.sample) > FOLDS
        entries = sum(each.table.size for each in forms if each.bin_edges is not None)
        wide = len(parameters) >= MANY_TERMS
        losses = LOSS_ARRAYS * len(parameters) * len(rows.sample) * len(tally.schema.classes)
        compiled_loss = wide or worth_compiling(losses, loops.label_loss)
        return CalibrationData(tally, rows, FOLDS if few else 0, entries >= COMPILED, wide, compiled_loss, prior)

    @property
    def sample(self) -> Reservoir:
        """Rows of the sample."""
        return self.rows.sample

    @property
    def weight(self) -> float:
        """Weight of the rows of the sample."""
        return float(self.sample.weights.sum())

    def loss(self, score: Array, evidence: Single, weight: float = 1.0) -> float:
        """Weighted log loss of the first rows at `score` plus `weight` times a term."""
        labels, weights = self.sample.labels[: len(score)], self.sample.weights[: len(score)]
        if self.compiled_loss:
            return float(loops.label_loss.fast(score, evidence[: len(score)], weight, labels, weights))
        return float(weights @ log_losses(score + weight * evidence[: len(score)], labels))

    @property
    def fold(self) -> NDArray[np.int64]:
        """Fold of every row; the rows are in random order."""
        return np.arange(len(self.sample)) % max(self.folds, 1)


def make_terms(data: CalibrationData, blocks: Sequence[tuple[int, Parameters]]) -> list[Term]:
    """Terms of blocks, each given by its position and parameters; none of a text, whose documents are kept for fewer rows."""
    found = side_by_side(lambda block: _begin_term(data, *block), blocks, len(data.sample))
    begun = [each for each in found if each is not None]
    left_out = iter(_left_out_tables(data, [table for _, table in begun if table is not None]))
    terms = []
    for term, table in begun:
        evidence, gains = (term.evidence, term.gains) if table is None else next(left_out)
        terms.append(replace(term, evidence=evidence, gains=gains, table=table if len(data.sample) <= FEW_ROWS else None))
    return terms


def base_scores(data: CalibrationData) -> Single:
    """Log frequency of every class, each row left out."""
    y = data.sample.labels
    seen = data.tally.classes / data.rows.copies + 0.5
    base = np.tile(np.log(seen / seen.sum()), (len(y), 1)).astype(np.float32)
    base[np.arange(len(y)), y] = np.log((np.maximum(seen[y] - 0.5 - data.rows.left, 0.0) + 0.5) / seen.sum())
    return base


def _begin_term(data: CalibrationData, i: int, fitted: Parameters) -> tuple[Term, CodedTable | None] | None:
    """Term of one block, and the table that its evidence is still to be read from, if any; None for a text."""
    likelihood: Any = fitted.likelihood
    if likelihood.loop is ScoringLoop.WORDS:
        return None
    tally, sample, block = data.tally, data.sample, data.tally.blocks[i]
    alone = tally.schema.by_name[block.columns[0]] if len(block.columns) == 1 else None
    binned = likelihood.bin_edges is not None
    if likelihood.loop is ScoringLoop.LOOKUP and alone is not None and alone.kind == CATEGORY:
        codes = np.where(sample.columns[block.columns[0]] < 0, len(likelihood.table) - 1, sample.columns[block.columns[0]])
    elif likelihood.loop is ScoringLoop.LOOKUP and likelihood.reads != "category":
        codes = likelihood.codes(sample.columns[block.columns[0]])
    else:
        return Term(block.name, _family_term(data, i, fitted)), None
    column = None
    if likelihood.reads != "yes":  # yes or no: neither bins nor values of a category, which interactions are tables of
        column = group_column(codes, len(likelihood.table) - 2, binned, sample.weights, data.wide)
    if fitted.evidence is None:  # a given prior
        return Term(block.name, _family_term(data, i, fitted), column), None
    centres, statistic = fitted.evidence.centres, cast(Any, tally.statistics[i])
    if binned and centres is None:
        centres = statistic.centres(likelihood.bin_edges)
    return Term(block.name, NOTHING, column, centres=centres), (codes, fitted.evidence)


def _left_out_tables(data: CalibrationData, tables: Sequence[CodedTable]) -> list[tuple[Single, Array | None]]:
    """Leave-one-out evidence of tables, and gains; with folds, under the smoothing chosen without the row's fold."""
    found: list[Any] = [None] * len(tables)
    several = [i for i, (_, whole) in enumerate(tables) if data.compiled and whole.seen.sum() < SINGLE]
    others = sorted(set(range(len(tables))).difference(several))
    by_arrays = side_by_side(lambda i: _left_out_table(data, *tables[i]), others, len(data.sample))
    for i, made in zip(others, by_arrays, strict=True):
        found[i] = made
    rows = TableRows(data.sample.labels, data.sample.weights, data.rows.left)

    def work(part: Sequence[int]) -> list[tuple[Single, Array | None]]:
        some = [tables[several[i]] for i in part]
        codes = [codes.astype(np.int32, copy=False) for codes, _ in some]
        return rows.evidence(codes, [whole for _, whole in some], data.folds, LOWEST)

    wholes = [tables[i][1] for i in several]
    parts = alike([(each.seen.shape, each.centres is None) for each in wholes], data.folds + 1)
    for part, made in zip(parts, in_parallel(work, parts), strict=True):
        for i, each in zip(part, made, strict=True):
            found[several[i]] = each
    return found


def _left_out_table(data: CalibrationData, codes: NDArray[Any], found: SmoothedEvidence) -> tuple[Single, Array | None]:
    """The same for one table by arrays."""
    sample, seen = data.sample, found.seen
    if not data.folds:
        return _left_out(data, codes, found), None
    values, classes = seen.shape
    known = codes < values
    place = (data.fold * values + np.where(known, codes, 0)) * classes + sample.labels
    counts = np.bincount(place[known], sample.weights[known], data.folds * values * classes)
    folds = counts.reshape(data.folds, values, classes) * (seen.sum() / max(float(counts.sum()), 1e-300))
    made = nested(found, folds)
    evidence = np.empty((len(sample), classes), np.float32)
    for f in range(data.folds):
        evidence[f :: data.folds] = _left_out(data, codes, made[f], slice(f, None, data.folds))
    return evidence, np.array([each.gain for each in made])


def _left_out(data: CalibrationData, codes: NDArray[Any], found: SmoothedEvidence, some: slice = slice(None)) -> Single:
    """Evidence of a table for some of the rows, each left out of its own value and class."""
    codes, labels, left = codes[some], data.sample.labels[some], data.rows.left[some]
    classes = found.table.shape[1]
    table = np.concatenate([found.table, np.zeros((2, classes))])  # an unseen value and a missing cell: no evidence
    out: Single = np.maximum(table, LOWEST).astype(np.float32).take(codes, axis=0)
    at = np.flatnonzero(codes < len(found.table))
    units = bool((left == 1.0).all())
    y, values = labels[at], codes[at]
    own = found.left_out[values, y] if units else found.without(values, y, left[at])
    out[at, y] = np.maximum(own, LOWEST)
    return out


def _family_term(data: CalibrationData, i: int, fitted: Parameters) -> Single:
    """Evidence of a block whose smoothing is not chosen by leave-one-out: each row left out, if its family can do that."""
    tally, sample, family = data.tally, data.sample, data.tally.blocks[i].family
    columns = tuple(tally.schema.by_name[name] for name in tally.blocks[i].columns)
    prior = (data.prior or Priors(LeaveOneOut())).of(tally.blocks[i]).for_classes(tally.schema.classes)
    whole = FittedBlock(columns, tally.statistics[i], prior, fitted, tally.classes)
    cells = cells_of_block([sample.columns[column.name] for column in columns])
    if family.leaves_out:
        left = LeftOutRows(sample.labels, data.rows.left * data.rows.copies[sample.labels])  # a row goes with its copies
        found = family.leave_one_out(whole, cells, left)
    else:
        found = whole.log_likelihoods(cells)
    return np.maximum(found, LOWEST).astype(np.float32)


def make_missingness_terms(data: CalibrationData, terms: Sequence[Term]) -> list[MissingnessTerm]:
    """Missingness terms of every block of one column some of whose cells are missing."""
    wanted = {term.name for term in terms}
    found = []
    for i, block in enumerate(data.tally.blocks):
        counts = _presence(data, i) if block.name in wanted and len(block.columns) == 1 else None
        if counts is not None:
            x = data.sample.columns[block.columns[0]]
            gone = (np.isnan(x) if x.dtype.kind == "f" else x < 0).astype(np.int64)
            found.append((block.name, (gone, choose_smoothing(counts))))
    left_out = _left_out_tables(data, [table for _, table in found])
    made = []
    for (name, table), (evidence, gains) in zip(found, left_out, strict=True):
        kept = table if len(data.sample) <= FEW_ROWS else None
        term = Term(name, evidence, gains=gains, price=MISSINGNESS_PRICE, table=kept)
        made.append(MissingnessTerm(name, table[1].table, term))
    return made


def _presence(data: CalibrationData, i: int) -> Array | None:
    """Rows with a present and with a missing cell, by class; None where all are present, or none."""
    tally = data.tally
    weight = tally.statistics[i].weight()
    there = weight.reshape(len(weight), -1).sum(1)
    left = tally.classes - there
    if not (left > 1e-9 * tally.classes).any() or not there.any():
        return None
    return np.stack([there, np.where(left > 1e-9 * tally.classes, left, 0.0)]) / data.rows.copies


def included(data: CalibrationData, terms: Sequence[Term], base: Single) -> tuple[list[Single], Array]:
    """Evidence of each term times its posterior inclusion probability, and that probability.

    A spike-and-slab prior with the leave-one-out likelihood in place of the marginal one; the prior inclusion probability is
    estimated from all columns. For the rows of a fold the posterior is that of the rows outside it, so that the weights fitted
    on these rows account for how well such a selection generalises.
    """
    chosen = [j for j, term in enumerate(terms) if term.gains is not None]
    probability = np.ones((len(terms), data.folds + 1))
    if chosen:
        some = [terms[j] for j in chosen]
        gains = np.array([t.gains for t in some]) - np.array([[t.price] for t in some]) - _optimism(data, some, base)
        for f in range(data.folds + 1):
            probability[chosen, f] = _posterior(np.minimum(gains[:, f], CHANCE * gains[:, f]))
    fold = data.fold
    evidence = [
        term.evidence if term.gains is None else term.evidence * each[fold, None].astype(np.float32)
        for term, each in zip(terms, probability, strict=True)
    ]
    return evidence, probability[:, -1]


def _optimism(data: CalibrationData, terms: Sequence[Term], base: Single) -> float:
    """Excess of the gain of a choice made on all rows over the gain of nested choices, for the median column."""
    before = base.astype(np.float64)
    none = data.loss(before, terms[0].evidence, 0.0)
    some = terms[:: max(1, len(terms) // 200)]
    excess = [float(t.gains[-1]) - (none - data.loss(before, t.evidence)) for t in some if t.gains is not None]
    return max(0.0, float(np.median(excess)))


def _posterior(gains: Array) -> Array:
    """Posterior inclusion probability of each column; the prior one is estimated by EM."""
    prior = 0.5
    for _ in range(200):
        odds = gains + np.log(prior / (1.0 - prior))
        probability: Array = 1.0 / (1.0 + np.exp(np.clip(-odds, -700.0, 700.0)))
        new = (1.0 + float(probability.sum())) / (2.0 + len(gains))
        if abs(new - prior) < 1e-9:
            break
        prior = new
    return probability
