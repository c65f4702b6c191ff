"""The calibration of a tally: weights first, then round by round the columns that speak together."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import share_out
from likely.calibration import tempered
from likely.calibration.classical import Pair, chosen_pairs
from likely.calibration.parts import Calibration, Interaction
from likely.calibration.search import Searched, best_sets, grouped
from likely.calibration.tables import Rows, Table, make_table
from likely.calibration.weights import Problem
from likely.errors import LikelyWarning
from likely.families.base import Parameters
from likely.families.evidence import weigh
from likely.families.forms import Lookup, Parabola, Steps
from likely.families.statistics import Moments
from likely.reservoir import Reservoir
from likely.schema import CATEGORY
from likely.tally import Tally
from likely.threads import in_parallel, side_by_side, slabs

Array = NDArray[np.float64]
Single = NDArray[np.float32]

# How many columns may speak together; the last two are classical, and of pairs.
DEPENDENCE = {"auto": 4, "pairs": 2, "none": 1, "tree": 2, "one-dependence": 2}
HEAVIEST = 1e12  # a weight of a row, beyond which sums lose the others
ENTRIES = 8_000_000  # of evidence: fewer rows are looked at where classes and columns are many
FEWEST_ROWS = 2_000
MOST_ENTRIES = 100_000_000  # of evidence, whatever the number of rows
FIT_ENTRIES = 200_000  # rows times classes that weights are fitted on
OWN_WEIGHTS = 512  # terms that say most have a weight of their own, all others one together
ROUNDS = 6
TEMPERATURE_STRENGTH, WEIGHT_STRENGTH, TABLE_STRENGTH, BIAS_STRENGTH = 10.0, 4.0, 1.0, 1.0
NEGLIGIBLE = 1e-3  # a weight
TEMPERATURE_ROWS = 8_000  # on which the temperature is fitted, towards which all weights are pulled
RISE_ROWS = 5_000  # by which is told what each column is worth
LOWEST = -50.0  # evidence: what was ruled out by a count of zero is not to break the sums


@dataclass(frozen=True)
class Term:
    """What one block says of every row of the sample, the row left out; and its codes, where it is a table."""

    name: str
    evidence: Single
    searched: Searched | None = None


def calibrate(tally: Tally, believed: Sequence[Parameters], dependence: str = "auto") -> Calibration | None:
    """How far the columns of a tally are to be believed, from the sample of rows that it keeps."""
    classes, sample = len(tally.schema.classes), tally.sample
    if sample is None or classes < 2 or not len(sample):
        return None
    rows = max(FEWEST_ROWS, ENTRIES // (classes * max(len(believed), 1)))
    most = MOST_ENTRIES // (classes * max(len(believed), 1))
    rows = tempered.rows_for(classes) if classes > tempered.MANY_CLASSES else min(rows, max(tempered.FEWEST_ROWS, most))
    sample = sample.take(slice(rows)) if rows < len(sample) else sample
    sample = replace(sample, weights=np.minimum(sample.weights, HEAVIEST))
    own = np.arange(len(sample)) * classes + sample.labels  # where, among all entries, each row's own class stands
    if classes > tempered.MANY_CLASSES:
        return _tempered(tally, sample, own, believed)
    numbered = list(enumerate(believed))
    terms = side_by_side(lambda one: _term(tally, sample, own, *one), numbered, len(sample))
    spoken = [term for term in terms if term is not None]
    if not spoken:
        return None
    names = {block.name: i for i, block in enumerate(tally.blocks)}
    absent = {t.name: said for t in spoken if (said := _absent(tally, names[t.name])) is not None}
    fit = Fit.start(sample, tally, spoken, absent)
    if dependence in ("tree", "one-dependence"):
        fit.classical(dependence == "tree")
    for _ in range(ROUNDS if dependence in ("auto", "pairs") else 0):
        if not fit.grow(DEPENDENCE[dependence]):
            break
    return fit.result(tally, believed, absent)


def _tempered(
    tally: Tally, sample: Reservoir, own: NDArray[np.int64], believed: Sequence[Parameters]
) -> Calibration | None:
    """One weight for all columns, where classes are very many: no bias, no weight and no table of their own."""
    names: list[str] = []

    def evidence() -> Iterator[Single]:
        for i, each in enumerate(believed):
            term = _term(tally, sample, own, i, each)
            if term is not None:
                names.append(term.name)
                yield term.evidence

    base, classes = _base(sample, tally), len(tally.schema.classes)
    weight = tempered.temperature(base, evidence(), sample.labels, sample.weights, TEMPERATURE_STRENGTH)
    if not names:
        return None
    warnings.warn(
        f"{classes:,} classes: all columns share one weight ({weight:.2f}); columns are weighted one by one, and searched "
        f"for interactions, up to {tempered.MANY_CLASSES:,} classes",
        LikelyWarning,
        stacklevel=5,
    )
    edges = {p.columns[0]: p.form.edges for p in believed if isinstance(p.form, Steps)}
    weights, counted = dict.fromkeys(names, weight), float(tally.classes.sum())
    return Calibration(weights, {}, np.zeros(classes), weight, (), edges, {}, counted)


def _base(sample: Reservoir, tally: Tally) -> Single:
    """The log share of every class, each row left out of its own."""
    seen = tally.classes + 0.5
    base = np.tile(np.log(seen / seen.sum()), (len(sample), 1)).astype(np.float32)
    rest = np.log((np.maximum(tally.classes - 1.0, 0.0) + 0.5) / seen.sum())
    base[np.arange(len(sample)), sample.labels] = rest[sample.labels]
    return base


def _term(tally: Tally, sample: Reservoir, own: NDArray[np.int64], i: int, believed: Parameters) -> Term | None:
    """What a block says of the rows of the sample; None of texts, which are fitted on documents of their own."""
    form: Any = believed.form
    if hasattr(form, "terms"):
        return None
    block, classes = tally.blocks[i], len(tally.schema.classes)
    if isinstance(form, Lookup) and len(block.columns) == 1 and tally.schema.by_name[block.columns[0]].kind == CATEGORY:
        codes = np.where(sample.columns[block.columns[0]] < 0, len(form.table) - 1, sample.columns[block.columns[0]])
    elif isinstance(form, Steps):
        codes = form.codes(sample.columns[block.columns[0]])
    else:
        return Term(block.name, _plain_term(tally, sample, i, form))
    said = np.maximum(form.table, LOWEST).astype(np.float32).take(codes, axis=0)
    rest = form.table if believed.left_out is None else np.concatenate([believed.left_out, np.zeros((2, classes))])
    rest = np.maximum(rest, LOWEST).astype(np.float32)
    said.reshape(-1)[own] = rest.reshape(-1).take(codes * classes + sample.labels)
    searched = grouped(codes, len(form.table) - 2, isinstance(form, Steps), sample.weights)
    return Term(block.name, said, searched)


def _plain_term(tally: Tally, sample: Reservoir, i: int, form: Any) -> Single:
    """What a block that was asked for says: with the row left out where that is a closed form, else as it stands."""
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
        _leave_out(form, statistic, numbers[:, 0], sample, out)
    return np.maximum(out, LOWEST).astype(np.float32)


def _yes_or_no(numbers: Array) -> NDArray[Any]:
    from likely.families.categorical import yes_or_no

    codes: NDArray[Any] = yes_or_no(numbers)
    return codes


def _leave_out(form: Parabola, seen: Moments, x: Array, sample: Reservoir, out: Array) -> None:
    """The bell curve of each row's own class without the row: mean and spread step back, in closed form."""
    y, whose = sample.labels, np.arange(len(x))
    n, mean, spread = seen.n[y], seen.mean[y], seen.spread[y]
    with np.errstate(all="ignore"):
        rest = n - 1.0
        apart = x - mean
        variance = (spread - apart * apart * n / rest) / rest
        there = (n > 2.5) & (variance > 1e-6 * -0.5 / form.curve[y]) & ~np.isnan(x)
        own = -0.5 * (np.log(2 * np.pi * variance) + (x - (mean - apart / rest)) ** 2 / variance)
    out[whose[there], y[there]] = own[there]


def _absent(tally: Tally, i: int) -> tuple[Array, Array, tuple[str, ...]] | None:
    """What it says that a block's cells are there, or missing; None where they always or never are."""
    weight = tally.statistics[i].weight()
    there = weight.reshape(len(weight), -1).sum(1)
    gone = np.where(tally.classes - there > 1e-9 * tally.classes, tally.classes - there, 0.0)
    if len(tally.blocks[i].columns) > 1 or not gone.any() or not there.any():
        return None
    evidence = weigh(np.stack([there, gone]))
    return evidence.table, evidence.left_out, tally.blocks[i].columns


@dataclass
class Fit:
    """The weights on their way: terms so far, tables so far, and the probabilities they give to the rows left out."""

    sample: Reservoir
    terms: Sequence[Term]
    base: Single
    evidence: list[Single]
    weights: Array
    bias: Array
    temperature: float
    alone: int  # how many of the terms speak for one block, or for its being missing
    tables: dict[tuple[int, ...], Table | Pair]
    shared: bool = False  # whether all tables have one weight in common
    rest: frozenset[int] = frozenset()  # terms that have one weight in common, where there are very many

    @staticmethod
    def start(sample: Reservoir, tally: Tally, terms: Sequence[Term], absent: dict[str, Any]) -> Fit:
        """A common temperature first, then a weight for each term, pulled towards it."""
        base = _base(sample, tally)
        evidence = [term.evidence for term in terms]
        for said, left_out, columns in absent.values():
            evidence.append(_missing_term(sample, columns, said, left_out))
        fit = Fit(sample, terms, base, evidence, np.zeros(0), np.zeros(base.shape[1]), 1.0, len(evidence), {})
        summed = np.sum([said[:TEMPERATURE_ROWS] for said in evidence], axis=0)
        one = fit._problem([summed], np.ones(1), np.array([TEMPERATURE_STRENGTH]))
        weight, fit.bias = one.solve(np.array([0.5]), fit.bias)
        fit.temperature = float(weight[0])
        if len(evidence) > OWN_WEIGHTS:
            order = np.argsort([-fit._worth(said) for said in evidence], kind="stable")
            fit.rest = frozenset(order[OWN_WEIGHTS:].tolist())
        fit._solve(np.full(len(evidence), fit.temperature))
        return fit

    def _worth(self, said: Single) -> float:
        """How much more likely a term by itself makes the labels, the rows left out."""
        rows = slice(TEMPERATURE_ROWS)
        lost = _lost(self.base[rows].astype(np.float64) + said[rows], self.sample.labels[rows])
        return -float((self.sample.weights[rows] * lost).sum())

    def _problem(self, evidence: Sequence[Single], centre: Array, strength: Array) -> Problem:
        rows = min(len(evidence[0]), max(1000, FIT_ENTRIES // self.base.shape[1]))
        labels, weights = self.sample.labels[:rows], self.sample.weights[:rows]
        return Problem(
            [each[:rows] for each in evidence], self.base[:rows], labels, weights, centre, strength, BIAS_STRENGTH
        )

    def _solve(self, start: Array) -> None:
        """A weight for every term, or for all of the rest together, pulled to the temperature; tables are pulled to zero."""
        own = np.array([i for i in range(len(self.evidence)) if i not in self.rest])
        rest = sorted(self.rest)
        said = [self.evidence[i] for i in own]
        centre = np.where(own < self.alone, self.temperature, 0.0)
        strength = np.where(own < self.alone, WEIGHT_STRENGTH, TABLE_STRENGTH)
        begun = start[own]
        if rest:
            said.append(sum(self.evidence[i] for i in rest))
            centre, strength = np.append(centre, self.temperature), np.append(strength, WEIGHT_STRENGTH)
            begun = np.append(begun, start[rest[0]])
        found, self.bias = self._problem(said, centre, strength).solve(begun, self.bias)
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

    def grow(self, order: int) -> bool:
        """The tables that surprise most are made and believed as far as they deserve; whether there were any."""
        rows = Rows(self.sample.labels, self.sample.weights, self.shares())
        searched = {i: term.searched for i, term in enumerate(self.terms) if term.searched is not None}
        new = 0
        for columns in best_sets(searched, self.tables, rows, order, len(self.terms)):
            axes, cells = Searched.together([searched[i] for i in columns])
            table = make_table(axes, cells, rows)
            if table is not None:
                self.tables[columns] = table
                self.evidence.append(table.left_out(cells, rows))
                new += 1
        if new:
            self._solve(np.concatenate([self.weights, np.full(new, 0.1)]))
        return bool(new)

    def classical(self, tree: bool) -> None:
        """Pairs of columns as the textbooks choose them: a tree with a weight for each, or all with one in common."""
        rows = Rows(self.sample.labels, self.sample.weights, self.shares())
        searched = {i: term.searched for i, term in enumerate(self.terms) if term.searched is not None}
        pairs = chosen_pairs(searched, [term.name for term in self.terms], rows, tree)
        if not pairs:
            return
        self.tables = {pair: table for pair, (table, _) in pairs.items()}
        said = [table.left_out(cells, rows) for table, cells in pairs.values()]
        self.shared = not tree
        self.evidence += said if tree else [np.sum(said, axis=0)]
        self._solve(np.concatenate([self.weights, np.full(len(said) if tree else 1, 1.0 / len(said))]))

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
        whole = w @ _lost(score, labels)

        def work(i: int) -> float:
            within = [] if self.shared else [t for t, columns in enumerate(self.tables) if i in columns]
            silent = score - part(i) - sum(part(self.alone + t) for t in within)
            return float((w @ _lost(silent, labels) - whole) / max(float(w.sum()), 1e-300)) if rows else 0.0

        rises = side_by_side(work, range(len(self.terms)), rows)
        return {term.name: rise for term, rise in zip(self.terms, rises, strict=True)}

    def result(self, tally: Tally, believed: Sequence[Parameters], absent: dict[str, Any]) -> Calibration:
        """What was found, as a part of the model."""
        ends = np.cumsum([len(self.terms), len(absent)])
        singles, missing, together = np.split(self.weights, ends)
        names = [term.name for term in self.terms]
        interactions = []
        shared = np.full(len(self.tables), together[0]) if self.shared else together
        combined = {names[i] for columns in self.tables for i in columns}
        for (columns, table), weight in zip(self.tables.items(), shared.tolist(), strict=True):
            if weight > NEGLIGIBLE:
                parts: list[Any] = [self.terms[i].searched for i in columns]
                groups = tuple(part.groups(len(columns)) for part in parts)
                named = tuple(names[i] for i in columns)
                interactions.append(Interaction(named, groups, table.evidence(), weight, table.gain, table.error))
        return Calibration(
            dict(zip(names, singles.tolist(), strict=True)),
            {name: (w, absent[name][0]) for name, w in zip(absent, missing.tolist(), strict=True)},
            self.bias,
            self.temperature,
            tuple(interactions),
            {p.columns[0]: p.form.edges for p in believed if isinstance(p.form, Steps)},
            {c.name: c.values for c in tally.schema.columns if c.kind == CATEGORY and c.name in combined},
            float(tally.classes.sum()),
            self.rises(),
        )


def _lost(score: Array, labels: NDArray[np.int64]) -> Array:
    """-log of the probability of each row's own class."""
    top = score.max(1)
    lost: Array = np.log(np.exp(score - top[:, None]).sum(1)) + top - score[np.arange(len(score)), labels]
    return lost


def _missing_term(sample: Reservoir, columns: tuple[str, ...], said: Array, left_out: Array) -> Single:
    """What it says of every row of the sample that the cell is there, or missing."""
    x = sample.columns[columns[0]]
    gone = (np.isnan(x) if x.dtype.kind == "f" else x < 0).astype(np.int64)
    out = said.astype(np.float32)[gone]
    out[np.arange(len(x)), sample.labels] = left_out[gone, sample.labels]
    return out
