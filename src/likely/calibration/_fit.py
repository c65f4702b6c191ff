"""State of the fit of a calibration: terms, interaction tables, and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import log_losses, softmax
from likely.calibration import _temperature as tempered
from likely.calibration._discriminant import LinearDiscriminant, fit_discriminant
from likely.calibration._interaction_cuts import best_table, compiled_for
from likely.calibration._interaction_search import (
    COLUMNS,
    NEGLIGIBLE,
    GroupedColumn,
    InteractionSearch,
    kept_interactions,
    residuals_of,
)
from likely.calibration._interaction_tables import ResidualTable, ScoredRows
from likely.calibration._permuted_labels import chance
from likely.calibration._shrinkage import SignalOdds, signal_probabilities
from likely.calibration._tan_aode import PairTable, chosen_pairs
from likely.calibration._terms import (
    CalibrationData,
    MissingnessTerm,
    Term,
    base_scores,
    included,
)
from likely.calibration._text_terms import text_weights
from likely.calibration._weight_fit import OWN_WEIGHTS, WEIGHT_STRENGTH, Problem
from likely.calibration.calibration import Calibration, JointGaussian
from likely.families.base import Parameters, edges_by_column
from likely.kernels.parallel import FEW_ROWS, in_parallel, side_by_side, slabs
from likely.schema import CATEGORY
from likely.tally.row_sample import Reservoir

Array = NDArray[np.float64]
Single = NDArray[np.float32]

FIT_ENTRIES = 200_000  # rows times classes that weights are fitted on
OWN_PROBABILITY = 0.5  # that a term is relevant: with more terms than that, a less probable one has the common weight as well
# Ridge penalties, beside those of the temperature and of column weights towards it: of all others towards 0.
DISCRIMINANT_STRENGTH, TABLE_STRENGTH, BIAS_STRENGTH = 10.0, 1.0, 1.0
CROWDED = 10.0  # rows per weight: with fewer, the ridge penalty grows
CUT_ENTRIES = 1_000  # rows times classes from which numbers are cut again for each table
ROUGH = 2e-2  # Newton step that is short enough while terms are still being added
TEMPERATURE_ROWS = 8_000  # on which the temperature is fitted
GAIN_ROWS = 5_000  # on which the gains of columns are estimated
# Nats beyond the effective number of weights that all terms together must gain for even odds that there is a signal, and those
# with very many terms. In 1,200 tables of noise one in a hundred gained so much: few rows are compared with permuted labels.
EVEN_ODDS, WIDE_ODDS = 5.0, 8.0
LEAST_GAIN, FACTOR_GAIN = 4.0, 0.1  # nats that joint Gaussians, or a common factor, must gain; and a factor for each weight
JOINT_GAIN = 2e-3  # nats a row from which joint Gaussians are worth their scoring time


@dataclass
class CalibrationFit:
    """State of the fit: terms, interaction tables, weights and biases."""

    data: CalibrationData
    terms: Sequence[Term]
    absent: Sequence[MissingnessTerm]
    included: Array  # posterior inclusion probability of each term
    base: Single
    evidence: list[Single]
    weights: Array
    bias: Array
    temperature: float
    singles: int  # number of terms of one block, or of its missingness
    tables: dict[tuple[int, ...], ResidualTable | PairTable]
    shared: bool = False  # whether all tables have one common weight
    rest: frozenset[int] = frozenset()  # terms with one common weight, where there are very many
    discriminant: LinearDiscriminant | None = None  # the term after those of single blocks
    joint: JointGaussian | None = None  # and the term after it

    @staticmethod
    def start(data: CalibrationData, terms: Sequence[Term], absent: Sequence[MissingnessTerm]) -> CalibrationFit:
        """Fit a common temperature first, then a weight for each term with a ridge penalty towards it."""
        base = base_scores(data)
        evidence, probability = included(data, [*terms, *(each.term for each in absent)], base)
        none = np.zeros(base.shape[1])
        fit = CalibrationFit(
            data, terms, absent, included=probability, base=base, evidence=evidence, weights=none[:0], bias=none,
            temperature=1.0, singles=len(evidence), tables={},
        )  # fmt: skip
        summed = np.sum([each[:TEMPERATURE_ROWS] for each in evidence], axis=0)
        one = fit._problem([summed], np.zeros(1), np.array([tempered.STRENGTH]))
        weight, fit.bias = one.solve(np.array([0.5]), fit.bias)
        fit.temperature = float(weight[0])
        if len(evidence) > OWN_WEIGHTS:
            order = np.argsort([-fit._single_gain(each) for each in evidence], kind="stable")
            own = order[:OWN_WEIGHTS][probability[order[:OWN_WEIGHTS]] >= OWN_PROBABILITY]
            fit.rest = frozenset(range(len(evidence))) - frozenset(own.tolist())
        fit.solve(np.full(len(evidence), fit.temperature), rough=True)
        return fit

    @property
    def sample(self) -> Reservoir:
        """Rows of the sample, in units of independent rows."""
        return self.data.sample

    def _single_gain(self, evidence: Single) -> float:
        """Leave-one-out log likelihood of the labels with one term alone."""
        return -self.data.loss(self.base[:TEMPERATURE_ROWS].astype(np.float64), evidence)

    def _single_gains(self) -> Array:
        """Gain of each term alone: without each fold, where choices are nested, and last with all rows."""
        gains = [self._single_gain(t.evidence) if t.gains is None else t.gains for t in self.terms]
        return np.stack([np.broadcast_to(each, self.data.folds + 1) for each in gains])

    def _problem(self, evidence: Sequence[Single], centre: Array, strength: Array) -> Problem:
        rows = min(len(evidence[0]), max(1000, FIT_ENTRIES // self.base.shape[1]))
        labels, weights = self.sample.labels[:rows], self.sample.weights[:rows]
        return Problem(
            [each[:rows] for each in evidence], self.base[:rows], labels, weights, centre, strength, BIAS_STRENGTH
        )

    def solve(self, start: Array, rough: bool = False, stiff: bool = False) -> None:
        """Fit a weight for every term, or one for all terms in `rest`; penalised towards the temperature, tables towards zero.

        While terms are still being added, a rough solution is enough. `stiff`: the weight of `rest` is penalised as many.
        """
        problem, initial, own = self._assembled(start, stiff)
        found, self.bias = problem.solve(initial, self.bias, ROUGH if rough else None)
        self.weights = np.zeros(len(self.evidence))
        self.weights[own] = found[: len(own)]
        self.weights[sorted(self.rest)] = found[len(own) :]

    def _assembled(self, start: Array, stiff: bool) -> tuple[Problem, Array, NDArray[np.int64]]:
        """The problem of all weights, its start, and the terms with a weight of their own; the common weight is the last."""
        rest = sorted(self.rest)
        own = np.setdiff1d(np.arange(len(self.evidence)), rest)
        evidence = [self.evidence[i] for i in own]
        centre = np.where(own < self.singles, self.temperature, 0.0)
        penalty = WEIGHT_STRENGTH * max(1.0, CROWDED * self.singles / max(float(self.sample.weights.sum()), 1.0))
        strength = np.where(
            own < self.singles, penalty, np.where(own < self._first_table, DISCRIMINANT_STRENGTH, TABLE_STRENGTH)
        )
        initial = start[own]
        if rest:
            evidence.append(sum(self.evidence[i] for i in rest))
            centre, strength = np.append(centre, self.temperature), np.append(strength, penalty * (len(rest) if stiff else 1))
            initial = np.append(initial, start[rest[0]])
        return self._problem(evidence, centre, strength), initial, own

    def probabilities(self) -> Array:
        """Leave-one-out class probabilities of every row."""
        weighted = [(weight, each) for weight, each in zip(self.weights, self.evidence, strict=True) if weight > 0]

        def work(part: tuple[int, int]) -> Array:
            a, b = part
            score = self.base[a:b].astype(np.float64) + self.bias
            for weight, each in weighted:
                score += np.multiply(each[a:b], weight, dtype=np.float64)
            return np.ascontiguousarray(softmax(score, self.bias))

        # Chunks of a few thousand rows stay in the cache while the terms are added.
        return np.concatenate(in_parallel(work, slabs(len(self.base), 128 * self.base.shape[1])))

    def add_discriminant(self) -> None:
        """Add a linear discriminant over all columns, unless its weight is negligible."""
        self.discriminant = fit_discriminant(self.data, self.terms, self._single_gains())
        if self.discriminant is None:
            return
        self.evidence.append(self.discriminant.evidence)
        self.solve(np.append(self.weights, 0.1), rough=True)
        if self.weights[-1] <= NEGLIGIBLE:
            self.evidence.pop()
            self.weights = self.weights[:-1]
            self.discriminant = None

    def add_joint(self, made: tuple[JointGaussian, Single]) -> bool:
        """Add a joint Gaussian of all numbers for each class, where its gain is worth the time of scoring it."""
        before, kept, at = self.gain(), (self.weights, self.bias), self._first_table
        self.joint, evidence = made
        self.evidence.insert(at, evidence)
        self.solve(np.insert(self.weights, at, 0.1), rough=True)
        if self.gain() - before > LEAST_GAIN + JOINT_GAIN * self.rows:
            return True
        self.evidence.pop(at)
        self.joint, (self.weights, self.bias) = None, kept
        return False

    @property
    def pairs_searched(self) -> int:
        """Number of pairs of columns in the search for interactions."""
        columns = min(len(self.grouped_columns), COLUMNS)
        return columns * (columns - 1) // 2

    def copy(self) -> CalibrationFit:
        """The same state, to which other terms may be added."""
        return replace(self, evidence=list(self.evidence), tables=dict(self.tables))

    @property
    def _first_table(self) -> int:
        return self.singles + (self.discriminant is not None) + (self.joint is not None)

    @property
    def grouped_columns(self) -> dict[int, GroupedColumn]:
        """Columns that can enter interactions, by term."""
        return {i: term.column for i, term in enumerate(self.terms) if term.column is not None}

    def add_interactions(self, search: InteractionSearch, triples: bool = False) -> bool:
        """Add the interaction tables with the largest gains and fit all weights again; returns whether there were any."""
        rows = ScoredRows(self.sample.labels, self.sample.weights, self.data.rows.left, self.probabilities())
        if triples and not search.widen(rows):
            return False
        best, threshold = search.best(self.tables, rows, triples)
        compiled, cut = compiled_for(rows.probabilities.size * len(best))
        residuals = residuals_of(rows) if rows.probabilities.size >= CUT_ENTRIES else None

        def make(columns: tuple[int, ...]) -> tuple[ResidualTable, Single] | None:
            parts = [search.columns[i] for i in columns]
            return best_table(parts, rows, threshold, residuals, compiled=compiled, cut_compiled=cut)

        made = side_by_side(make, best, FEW_ROWS if cut else len(rows.labels))
        new = {columns: found for columns, found in zip(best, made, strict=True) if found is not None}
        self.tables |= {columns: table for columns, (table, _) in new.items()}
        self.evidence += [evidence for _, evidence in new.values()]
        if new:
            self.solve(np.concatenate([self.weights, np.full(len(new), 0.1)]), rough=True)
        return bool(new)

    def add_pairs(self, tree: bool) -> None:
        """Add the pairs of a tree (TAN), each with a weight, or all pairs with one common weight (AODE)."""
        rows = ScoredRows(self.sample.labels, self.sample.weights, self.data.rows.left, self.probabilities())
        pairs = chosen_pairs(self.grouped_columns, [term.name for term in self.terms], rows, tree)
        if not pairs:
            return
        self.tables = {pair: table for pair, (table, _) in pairs.items()}
        evidence = [table.left_out(cells, rows) for table, cells in pairs.values()]
        self.shared = not tree
        self.evidence += evidence if tree else [np.sum(evidence, axis=0)]
        self.solve(np.concatenate([self.weights, np.full(len(evidence) if tree else 1, 1.0 / len(evidence))]), rough=True)

    def add_texts(self, rows: NDArray[np.intp], documents: Mapping[str, Single]) -> None:
        """Add the texts of some of the rows as terms, penalised towards weight one; all weights are fitted on these rows."""
        if not documents:
            return
        texts, k, terms = list(documents.values()), len(self.terms), len(self.evidence)
        if len(rows) < len(self.base):
            self.data = replace(self.data, rows=self.data.rows.take(rows))
            self.base, self.evidence = self.base[rows], [each[rows] for each in self.evidence]
        found, self.bias = text_weights(self._problem, self.evidence, texts, weights=self.weights, bias=self.bias)
        self.weights = np.concatenate([found[:k], found[terms:], found[k:terms]])
        self.evidence = [*self.evidence[:k], *texts, *self.evidence[k:]]
        self.included = np.insert(self.included, k, np.ones(len(texts)))
        self.terms = [*self.terms, *(Term(name, each) for name, each in documents.items())]
        self.singles += len(texts)

    def shrink(self, tested: int) -> None:
        """Multiply all weights and biases by the posterior probability that there is any signal, and in interactions.

        The weights were fitted on the labels that the gain is measured by: their effective number is subtracted from it.
        """
        even, fitted = WIDE_ODDS if self.rest else EVEN_ODDS, (self.weights, self.bias)
        if self.rest:  # weights of their own were given by these labels: noise must not gain by leaving the rest out
            self.solve(self.weights, rough=True, stiff=True)
        problem, at, own = self._assembled(self.weights, stiff=True)
        spent, alone = problem.effective_parameters(at, self.bias), np.arange(len(self.weights)) < self._first_table
        complete, in_tables = self.gain() - float(spent.sum()), np.append(own, 0)[: len(spent)] >= self._first_table
        self.weights = self.weights * alone
        single = self.gain() - float(spent[~in_tables].sum())
        singles = [*self.terms, *(each.term for each in self.absent)]
        odds = SignalOdds(even, cache(lambda: chance(self.data, singles)))
        probability, interacting = signal_probabilities(complete, single, odds, tested)
        self.weights, self.bias = fitted[0] * np.where(alone, probability, interacting), fitted[1] * probability
        self.temperature *= probability

    def rescale(self) -> None:
        """Multiply all weights and biases by one factor, if that gains: penalties hold tables without noise back."""
        rows = min(len(self.base), GAIN_ROWS)
        least = LEAST_GAIN + FACTOR_GAIN * len(self.evidence)  # weights fitted on these labels are optimistic together
        factor = tempered.common_factor(self.base[:rows], self._scores(rows), self.sample, least)
        self.weights, self.bias = self.weights * factor, self.bias * factor
        self.temperature *= factor

    @property
    def rows(self) -> float:
        """Weight of the rows of the sample."""
        return float(self.sample.weights.sum())

    def gain(self) -> float:
        """Leave-one-out log likelihood of all rows minus that of the class frequencies, estimated from the first rows."""
        rows = min(len(self.base), GAIN_ROWS)
        labels, w = self.sample.labels[:rows], self.sample.weights
        gained = log_losses(self.base[:rows].astype(np.float64), labels) - log_losses(self._scores(rows), labels)
        return float(w[:rows] @ gained) * self.rows / max(float(w[:rows].sum()), 1e-300)

    def _part(self, i: int, rows: int) -> Array:
        """Weighted evidence of one term for the first rows."""
        weighted: Array = np.multiply(self.evidence[i][:rows], self.weights[i], dtype=np.float64)
        return weighted

    def _scores(self, rows: int) -> Array:
        """Leave-one-out log joint of the first rows."""
        score: Array = self.base[:rows].astype(np.float64) + self.bias
        for i in range(len(self.evidence)):
            score += self._part(i, rows)
        return score

    def losses_without(self) -> dict[str, float]:
        """Rise of the leave-one-out log loss, in nats per row, without a block and the tables it is in."""
        rows = min(len(self.base), GAIN_ROWS)
        w = self.sample.weights[:rows]
        score = self._scores(rows)
        complete = self.data.loss(score, self.evidence[0], 0.0)

        def work(i: int) -> float:
            within = [] if self.shared else [t for t, columns in enumerate(self.tables) if i in columns]
            without = score - sum(self._part(self._first_table + t, rows) for t in within) if within else score
            if not within and not self.weights[i]:
                return 0.0
            loss = self.data.loss(without, self.evidence[i], -float(self.weights[i]))
            return (loss - complete) / max(float(w.sum()), 1e-300) if rows else 0.0

        rises = side_by_side(work, range(len(self.terms)), rows)
        return {term.name: rise for term, rise in zip(self.terms, rises, strict=True)}

    def result(self, parameters: Sequence[Parameters]) -> Calibration:
        """The calibration as a part of the model."""
        schema = self.data.tally.schema
        ends = np.cumsum([len(self.terms), len(self.absent), self._first_table - self.singles])
        singles, missing, direction, together = np.split(self.weights, ends)
        singles, missing = singles * self.included[: ends[0]], missing * self.included[ends[0] : ends[1]]
        names = [term.name for term in self.terms]
        together = np.full(len(self.tables), together[0]) if self.shared else together
        combined = {names[i] for columns in self.tables for i in columns}
        joined = self.discriminant.columns if self.discriminant else {}
        coded = [c for c in schema.columns if c.kind == CATEGORY and (c.name in combined or c.name in joined)]
        return Calibration(
            weights=dict(zip(names, singles.tolist(), strict=True)),
            absent={each.name: (w, each.table) for each, w in zip(self.absent, missing.tolist(), strict=True)},
            bias=self.bias if self.discriminant is None else self.bias + direction[0] * self.discriminant.constant,
            temperature=self.temperature,
            interactions=kept_interactions(names, self.grouped_columns, self.tables, together),
            edges=edges_by_column(parameters),
            values={column.name: column.values for column in coded},
            counted=float(self.data.tally.classes.sum()),
            gains=self.losses_without(),
            copies=self.data.rows.copies,
            directions={name: direction[0] * table for name, table in joined.items()},
            joint=None if self.joint is None else replace(self.joint, weight=float(direction[-1])),
        )
