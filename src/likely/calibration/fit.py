"""The calibration of a tally: weights first, then round by round the columns that speak together."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import share_out
from likely.calibration import tempered
from likely.calibration.classical import Pair, chosen_pairs
from likely.calibration.copies import effective, shuffled
from likely.calibration.cuts import best_table
from likely.calibration.directions import Direction, make_direction
from likely.calibration.documents import joined
from likely.calibration.parts import Calibration, Interaction
from likely.calibration.search import Search, Searched, surprises
from likely.calibration.tables import Rows, Table
from likely.calibration.terms import (
    Absent,
    Data,
    Term,
    base_scores,
    included,
    log_loss,
    make_absent,
    make_term,
    make_terms,
)
from likely.calibration.weights import Problem
from likely.errors import LikelyWarning
from likely.families.base import Parameters
from likely.families.curve import LeftOut
from likely.families.forms import Steps
from likely.reservoir import Reservoir
from likely.schema import CATEGORY
from likely.tally import Tally
from likely.threads import in_parallel, one_blas_thread, side_by_side, slabs

Array = NDArray[np.float64]
Single = NDArray[np.float32]

# How many columns may speak together; the last two are classical, and of pairs.
DEPENDENCE = {"auto": 4, "pairs": 2, "none": 1, "tree": 2, "one-dependence": 2}
ENTRIES = 8_000_000  # of evidence: fewer rows are looked at where classes and columns are many
FEWEST_ROWS = 2_000
MOST_ENTRIES = 100_000_000  # of evidence, whatever the number of rows
FIT_ENTRIES = 200_000  # rows times classes that weights are fitted on
OWN_WEIGHTS = 512  # terms that say most have a weight of their own, all others one together
ROUNDS = 6
# Ridge penalties: weights are pulled towards the temperature, all others towards 0.
TEMPERATURE_STRENGTH, WEIGHT_STRENGTH, DIRECTION_STRENGTH, TABLE_STRENGTH, BIAS_STRENGTH = 10.0, 4.0, 10.0, 1.0, 1.0
SCALED_STRENGTH = 40.0  # pulls the weights of columns, once there is text, to a multiple of what they were
CROWDED = 10.0  # rows a weight: with fewer, weights are pulled the more
NEGLIGIBLE = 1e-3  # a weight
COMPILED = 300_000  # rows times classes times tables, from which on compiled loops pay
CUT_ENTRIES = 1_000  # rows times classes, from which on cuts of numbers are sought for each table
NEAR = 2e-2  # of a step in the weights: near enough while tables are still being added
TEMPERATURE_ROWS = 8_000  # on which the temperature is fitted, towards which all weights are pulled
RISE_ROWS = 5_000  # by which is told what each column is worth


def calibrate(
    tally: Tally,
    believed: Sequence[Parameters],
    dependence: str = "auto",
    documents: Mapping[str, LeftOut] = MappingProxyType({}),
) -> Calibration | None:
    """The second stage of a tally: weights, interactions and biases, fitted on the sample of rows that it keeps.

    `documents` has, for each column of text, the scores of the documents that are kept.
    """
    with one_blas_thread():  # the work is shared out among threads of our own
        return _calibrate(tally, believed, dependence, documents)


def _calibrate(
    tally: Tally, believed: Sequence[Parameters], dependence: str, documents: Mapping[str, LeftOut]
) -> Calibration | None:
    classes, sample = len(tally.schema.classes), tally.sample
    if sample is None or classes < 2 or not len(sample):
        return None
    whole = effective(shuffled(sample, tally.schema), tally)
    if classes > tempered.MANY_CLASSES:
        return _tempered(Data(tally, whole.first(tempered.rows_for(classes)), 0), believed)
    rows = max(FEWEST_ROWS, ENTRIES // (classes * max(len(believed), 1)))
    most = MOST_ENTRIES // (classes * max(len(believed), 1))
    data = Data.of(tally, whole.first(min(rows, max(tempered.FEWEST_ROWS, most))), believed)
    terms = make_terms(data, believed)
    if not terms:
        return None
    fit = Fit.start(data, terms, make_absent(data, terms))
    if dependence == "auto":
        fit.add_direction()
    if dependence in ("tree", "one-dependence"):
        fit.classical(dependence == "tree")
    search = Search(fit.searched, len(terms), DEPENDENCE[dependence])
    for _ in range(ROUNDS if dependence in ("auto", "pairs") else 0):
        if not fit.grow(search) and not fit.grow(search, triples=True):
            break
    fit.solve(fit.weights)
    fit.add_texts(*joined(data.sample, tally, documents))
    return fit.result(believed)


def _tempered(data: Data, believed: Sequence[Parameters]) -> Calibration | None:
    """One weight for all columns, where classes are very many: no bias, no weight and no table of their own."""
    names: list[str] = []

    def evidence() -> Iterator[Single]:
        for i, each in enumerate(believed):
            term = make_term(data, i, each)
            if term is not None:
                names.append(term.name)
                yield term.evidence

    classes, rows = len(data.tally.schema.classes), data.sample
    weight = tempered.temperature(base_scores(data), evidence(), rows.labels, rows.weights, TEMPERATURE_STRENGTH)
    if not names:
        return None
    warnings.warn(
        f"{classes:,} classes: all columns share one weight ({weight:.2f}); columns are weighted one by one, and searched "
        f"for interactions, up to {tempered.MANY_CLASSES:,} classes",
        LikelyWarning,
        stacklevel=5,
    )
    edges = {p.columns[0]: p.form.edges for p in believed if isinstance(p.form, Steps)}
    weights, counted = dict.fromkeys(names, weight), float(data.tally.classes.sum())
    return Calibration(weights, {}, np.zeros(classes), weight, (), edges, {}, counted, {}, data.rows.copies)


@dataclass
class Fit:
    """The second stage while it is fitted: terms, interaction tables, and their weights."""

    data: Data
    terms: Sequence[Term]
    absent: Sequence[Absent]
    included: Array  # probability that each term matters
    base: Single
    evidence: list[Single]
    weights: Array
    bias: Array
    temperature: float
    alone: int  # how many of the terms speak for one block, or for its being missing
    tables: dict[tuple[int, ...], Table | Pair]
    shared: bool = False  # whether all tables have one weight in common
    rest: frozenset[int] = frozenset()  # terms that have one weight in common, where there are very many
    direction: Direction | None = None  # the term that follows those of single blocks

    @staticmethod
    def start(data: Data, terms: Sequence[Term], absent: Sequence[Absent]) -> Fit:
        """A common temperature first, then a weight for each term, pulled towards it."""
        base = base_scores(data)
        evidence, probability = included(data, [*terms, *(each.term for each in absent)], base)
        none = np.zeros(base.shape[1])
        fit = Fit(data, terms, absent, probability, base, evidence, none[:0], none, 1.0, len(evidence), {})
        summed = np.sum([said[:TEMPERATURE_ROWS] for said in evidence], axis=0)
        one = fit._problem([summed], np.zeros(1), np.array([TEMPERATURE_STRENGTH]))
        weight, fit.bias = one.solve(np.array([0.5]), fit.bias)
        fit.temperature = float(weight[0])
        if len(evidence) > OWN_WEIGHTS:
            order = np.argsort([-fit._worth(said) for said in evidence], kind="stable")
            fit.rest = frozenset(order[OWN_WEIGHTS:].tolist())
        fit.solve(np.full(len(evidence), fit.temperature), near=True)
        return fit

    @property
    def sample(self) -> Reservoir:
        """The rows, in units of independent ones."""
        return self.data.sample

    def _worth(self, said: Single) -> float:
        """How much more likely a term by itself makes the labels, the rows left out."""
        rows = slice(TEMPERATURE_ROWS)
        lost = log_loss(self.base[rows].astype(np.float64) + said[rows], self.sample.labels[rows])
        return -float((self.sample.weights[rows] * lost).sum())

    def _problem(self, evidence: Sequence[Single], centre: Array, strength: Array) -> Problem:
        rows = min(len(evidence[0]), max(1000, FIT_ENTRIES // self.base.shape[1]))
        labels, weights = self.sample.labels[:rows], self.sample.weights[:rows]
        return Problem(
            [each[:rows] for each in evidence], self.base[:rows], labels, weights, centre, strength, BIAS_STRENGTH
        )

    def solve(self, start: Array, near: bool = False) -> None:
        """A weight for every term, or for all of the rest together, pulled to the temperature; tables are pulled to zero.

        While terms are still being added, a rough solution is enough.
        """
        own = np.array([i for i in range(len(self.evidence)) if i not in self.rest])
        rest = sorted(self.rest)
        said = [self.evidence[i] for i in own]
        centre = np.where(own < self.alone, self.temperature, 0.0)
        pull = WEIGHT_STRENGTH * max(1.0, CROWDED * self.alone / max(float(self.sample.weights.sum()), 1.0))
        strength = np.where(
            own < self.alone, pull, np.where(own < self._first_table, DIRECTION_STRENGTH, TABLE_STRENGTH)
        )
        begun = start[own]
        if rest:
            said.append(sum(self.evidence[i] for i in rest))
            centre, strength = np.append(centre, self.temperature), np.append(strength, pull)
            begun = np.append(begun, start[rest[0]])
        found, self.bias = self._problem(said, centre, strength).solve(begun, self.bias, NEAR if near else None)
        self.weights = np.zeros(len(self.evidence))
        self.weights[own] = found[: len(own)]
        self.weights[rest] = found[len(own) :]

    def shares(self) -> Array:
        """The probability of each class for every row, the row left out."""
        spoken = [(weight, said) for weight, said in zip(self.weights, self.evidence, strict=True) if weight > 0]

        def work(part: tuple[int, int]) -> Array:
            a, b = part
            score = self.base[a:b].astype(np.float64) + self.bias
            for weight, said in spoken:
                score += np.multiply(said[a:b], weight, dtype=np.float64)
            return np.ascontiguousarray(share_out(score, self.bias))

        # Stretches of a few thousand rows, which stay in the cache while one term after the other is added.
        return np.concatenate(in_parallel(work, slabs(len(self.base), 128 * self.base.shape[1])))

    def add_direction(self) -> None:
        """A linear discriminant over all columns, with the weight that it deserves."""
        worth = [float(t.gains[-1]) if t.gains is not None else self._worth(t.evidence) for t in self.terms]
        self.direction = make_direction(self.data, self.terms, worth)
        if self.direction is None:
            return
        self.evidence.append(self.direction.evidence)
        self.solve(np.append(self.weights, 0.1), near=True)
        if self.weights[-1] <= NEGLIGIBLE:
            self.evidence.pop()
            self.weights = self.weights[:-1]
            self.direction = None

    @property
    def _first_table(self) -> int:
        return self.alone + (self.direction is not None)

    @property
    def searched(self) -> dict[int, Searched]:
        """The terms that can enter interactions."""
        return {i: term.searched for i, term in enumerate(self.terms) if term.searched is not None}

    def grow(self, search: Search, triples: bool = False) -> bool:
        """Add the interaction tables that gain most, and fit all weights again; whether there were any."""
        rows = Rows(self.sample.labels, self.sample.weights, self.data.rows.left, self.shares())
        if triples and not search.widen(rows):
            return False
        best, sureness = search.best(self.tables, rows, triples)
        compiled = rows.shares.size * len(best) >= COMPILED

        residuals = surprises(rows) if rows.shares.size >= CUT_ENTRIES else None

        def make(columns: tuple[int, ...]) -> tuple[Table, Single] | None:
            return best_table([search.columns[i] for i in columns], rows, sureness, residuals, compiled)

        made = side_by_side(make, best, len(rows.labels))
        new = {columns: found for columns, found in zip(best, made, strict=True) if found is not None}
        self.tables |= {columns: table for columns, (table, _) in new.items()}
        self.evidence += [said for _, said in new.values()]
        if new:
            self.solve(np.concatenate([self.weights, np.full(len(new), 0.1)]), near=True)
        return bool(new)

    def classical(self, tree: bool) -> None:
        """Pairs of columns as the textbooks choose them: a tree with a weight for each, or all with one in common."""
        rows = Rows(self.sample.labels, self.sample.weights, self.data.rows.left, self.shares())
        pairs = chosen_pairs(self.searched, [term.name for term in self.terms], rows, tree)
        if not pairs:
            return
        self.tables = {pair: table for pair, (table, _) in pairs.items()}
        said = [table.left_out(cells, rows) for table, cells in pairs.values()]
        self.shared = not tree
        self.evidence += said if tree else [np.sum(said, axis=0)]
        self.solve(np.concatenate([self.weights, np.full(len(said) if tree else 1, 1.0 / len(said))]), near=True)

    def add_texts(self, rows: NDArray[np.intp], said: Mapping[str, Single]) -> None:
        """The texts of some of the rows as terms, whose weights are pulled to one; all weights are fitted on these rows.

        Text and columns may repeat each other. The weights of the columns are pulled to one multiple of what they were
        without text, so that they and the tables keep what all rows tell.
        """
        if not said:
            return
        texts, k, terms = list(said.values()), len(self.terms), len(self.evidence)
        if len(rows) < len(self.base):
            self.data = replace(self.data, rows=self.data.rows.take(rows))
            self.base, self.evidence = self.base[rows], [each[rows] for each in self.evidence]
        summed = np.zeros_like(self.base)
        for weight, each in zip(self.weights.tolist(), self.evidence, strict=True):
            summed += np.float32(weight) * each
        ones = np.ones(1 + len(texts))
        scale, self.bias = self._problem([summed, *texts], ones, WEIGHT_STRENGTH * ones).solve(ones, self.bias)
        found = np.append(scale[0] * self.weights, scale[1:])
        if terms <= OWN_WEIGHTS:
            centre = np.append(found[:terms], ones[1:])
            strength = np.append(np.full(terms, SCALED_STRENGTH), WEIGHT_STRENGTH * ones[1:])
            found, self.bias = self._problem([*self.evidence, *texts], centre, strength).solve(found, self.bias)
        self.weights = np.concatenate([found[:k], found[terms:], found[k:terms]])
        self.evidence = [*self.evidence[:k], *texts, *self.evidence[k:]]
        self.included = np.insert(self.included, k, ones[1:])
        self.terms = [*self.terms, *(Term(name, each) for name, each in said.items())]
        self.alone += len(texts)

    def rises(self) -> dict[str, float]:
        """By how much the left-out log loss rises, in nats a row, if a block and all tables it is in fall silent."""
        rows = min(len(self.base), RISE_ROWS)
        labels, w = self.sample.labels[:rows], self.sample.weights[:rows]
        score = self.base[:rows].astype(np.float64) + self.bias

        def part(i: int) -> Array:
            said: Array = np.multiply(self.evidence[i][:rows], self.weights[i], dtype=np.float64)
            return said

        for i in range(len(self.evidence)):
            score += part(i)
        whole = w @ log_loss(score, labels)

        def work(i: int) -> float:
            within = [] if self.shared else [t for t, columns in enumerate(self.tables) if i in columns]
            silent = score - part(i) - sum(part(self._first_table + t) for t in within)
            return float((w @ log_loss(silent, labels) - whole) / max(float(w.sum()), 1e-300)) if rows else 0.0

        rises = side_by_side(work, range(len(self.terms)), rows)
        return {term.name: rise for term, rise in zip(self.terms, rises, strict=True)}

    def result(self, believed: Sequence[Parameters]) -> Calibration:
        """What was found, as a part of the model."""
        schema = self.data.tally.schema
        ends = np.cumsum([len(self.terms), len(self.absent), self._first_table - self.alone])
        singles, missing, direction, together = np.split(self.weights, ends)
        singles, missing = singles * self.included[: ends[0]], missing * self.included[ends[0] : ends[1]]
        names = [term.name for term in self.terms]
        interactions = []
        shared = np.full(len(self.tables), together[0]) if self.shared else together
        combined = {names[i] for columns in self.tables for i in columns}
        joined = self.direction.columns if self.direction else {}
        for (columns, table), weight in zip(self.tables.items(), shared.tolist(), strict=True):
            if weight > NEGLIGIBLE:
                parts: list[Any] = [self.terms[i].searched for i in columns]
                groups = table.groups or tuple(part.groups(len(columns)) for part in parts)
                named = tuple(names[i] for i in columns)
                interactions.append(Interaction(named, groups, table.evidence(), weight, table.gain, table.error))
        return Calibration(
            dict(zip(names, singles.tolist(), strict=True)),
            {each.name: (w, each.table) for each, w in zip(self.absent, missing.tolist(), strict=True)},
            self.bias if self.direction is None else self.bias + direction[0] * self.direction.constant,
            self.temperature,
            tuple(interactions),
            {p.columns[0]: p.form.edges for p in believed if isinstance(p.form, Steps)},
            {
                c.name: c.values
                for c in schema.columns
                if c.kind == CATEGORY and (c.name in combined or c.name in joined)
            },
            float(self.data.tally.classes.sum()),
            self.rises(),
            self.data.rows.copies,
            {} if self.direction is None else {name: direction[0] * t for name, t in self.direction.columns.items()},
        )
