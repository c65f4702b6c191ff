"""The loop of Expectation and Maximisation: share every row out by what is believed, count the shares, believe anew.

Labels observed, partly observed or hidden is one loop: a row with a label belongs to its class alone. From one round to
the next the penalised log likelihood, log evidence plus the log density of the parameters under their prior, never falls.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import acceleration
from likely.engines import Plan
from likely.engines.memory import tally_batch
from likely.engines.score import Scorer
from likely.engines.shares import Held, Shared, share_batch
from likely.engines.weights import check_weights
from likely.errors import ConvergenceWarning, DataError
from likely.families import (
    Bernoulli,
    Binomial,
    Categorical,
    Encoded,
    Gaussian,
    Joint,
    Multinomial,
    Poisson,
    Text,
)
from likely.families.belief import log_density as density_of_block
from likely.families.belief import refuse_text
from likely.families.statistics import Moments, totals
from likely.model import Model
from likely.prior import Priors, Pseudocount, Spread, priors
from likely.schema import CATEGORY, NUMBER, Column, Schema
from likely.sources import Batch, Coded
from likely.tally import Tally

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Part = tuple[Held, Labels, Array]  # rows, the place of their class (-1: hidden), their weights
Watch = Callable[[int, float, Model], None]
ALL = "all"
MAX_ITER = 1000
TOL = 1e-4  # nats in all, whatever the number of rows
MORE_ROUNDS = "raise max_iter (--max-iter) or tol"
MOST_STEPS = 60  # what a run keeps of its way, if it is asked to
FIRST_STEPS = 20  # these are kept one by one: most happens in them
COUNTABLE = (Categorical, Bernoulli, Binomial, Multinomial, Poisson, Gaussian, Joint, Text)


@dataclass(frozen=True)
class Step:
    """Where EM stood after so many rounds: what was counted, off which the components are read, and its value."""

    at: int  # 0: the start
    value: float  # the penalised log likelihood
    tally: Tally


@dataclass(frozen=True)
class Fit:
    """Where a run of EM ended: the model, the way there, and how well it explains the rows."""

    model: Model
    trace: tuple[float, ...]  # penalised log likelihood, round by round
    log_likelihood: float
    entropy: float  # NaN until it is asked for
    weight: float
    converged: bool
    steps: tuple[Step, ...] = ()  # the way itself, where it was asked for
    distance_left: float = float("inf")  # nats of the penalised log likelihood to its local maximum, as estimated

    @property
    def value(self) -> float:
        """The penalised log likelihood at the end."""
        return self.trace[-1]

    @property
    def free(self) -> int:
        """How many free parameters there are; given class shares are not among them."""
        given = len(self.model.classes) - 1 if isinstance(self.model.prior.classes, Mapping) else 0
        return self.model.parameter_count.free - given

    @property
    def bic(self) -> float:
        """−2 log likelihood + free parameters · log rows: the lower the better."""
        return -2 * self.log_likelihood + self.free * float(np.log(max(self.weight, 1.0)))

    @property
    def icl(self) -> float:
        """The same, with twice the entropy of the shares added: it asks for clusters that lie apart."""
        return self.bic + 2 * self.entropy

    @property
    def aic(self) -> float:
        """−2 log likelihood + 2 · free parameters."""
        return -2 * self.log_likelihood + 2 * self.free


def warn_if_stopped(converged: bool, rounds: int, remedy: str, stacklevel: int = 3) -> None:
    """Say that EM was stopped before it converged."""
    if not converged:
        said = f"EM has not converged after {rounds} rounds: {remedy}"
        warnings.warn(said, ConvergenceWarning, stacklevel=stacklevel)


def log_density(model: Model) -> float:
    """The log density of all parameters under their priors, up to a constant."""
    total = 0.0
    for block, statistic, parameters in zip(model.blocks, model.tally.statistics, model.block_parameters, strict=True):
        columns = tuple(model.schema.by_name[name] for name in block.columns)
        total += density_of_block(block.family, columns, statistic, model.prior.of(block), parameters)
    given = model.prior.classes
    if given is not None and not isinstance(given, Mapping):
        pseudo = given.pseudocounts(model.classes)
        total += float((pseudo[pseudo > 0] * np.log(model.class_prior[pseudo > 0])).sum())
    return total


def value_name(model: Any, moves: float = 0.0) -> str:
    """What EM climbs: penalised where the priors have a say, or imagined `moves` of a hidden Markov model."""
    penalised = moves > 0.0 or log_density(model) != 0.0
    return "penalised log likelihood" if penalised else "log likelihood"


def share(model: Model, parts: Iterable[Part], unlabelled: float = 1.0, *, entropy: bool = False) -> Shared:
    """One round over all rows: a tally by shares and the log evidence; hidden rows weigh `unlabelled` each."""
    scorer: Scorer = model.scorer
    total: Shared | None = None
    for batch, labels, weights in parts:
        w = weights if unlabelled == 1.0 else np.where(labels < 0, unlabelled * weights, weights)
        found = share_batch(batch, scorer, model.blocks, labels, w, entropy=entropy)
        total = found if total is None else total + found
    if total is None:
        raise DataError("there are no rows: nothing can be learned from them")
    return total


def judged(fit: Fit, parts: Iterable[Part]) -> Fit:
    """The same end with the entropy of its shares, for which the rows are looked at once more."""
    return replace(fit, entropy=share(fit.model, parts, entropy=True).entropy)


def climb(
    model: Model,
    parts: Iterable[Part],
    *,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    unlabelled: float = 1.0,
    watch: Watch | None = None,
    after: tuple[Step, ...] | None = None,
    done: int = 0,
) -> Fit:
    """Round after round until the maximum is nearer than `tol` nats; rounds that become slow are extrapolated.

    The steps are kept where `after` is given: those of the run that this one goes on from, () for a run of its own. `done`
    is the number of rounds of that run. A negative `tol` asks for `max_iter` plain rounds.
    """
    if any(isinstance(block.family, Text) for block in model.blocks):
        # A word that the first rows lack says nothing until it is counted: only from then on are values comparable.
        model = replace(model, tally=share(model, parts, unlabelled).tally)
    steps = Steps.going_on(after or ())
    note = None if after is None else lambda value, at: steps.note(value, at.tally)
    rounds = _rounds(parts, unlabelled, watch)
    end = acceleration.climb(model, rounds, max_iter=max_iter, tol=tol, done=done, note=note)
    weight = float(end.seen.tally.classes.sum())
    kept = () if after is None else steps.ending(Step(steps.first + len(end.trace) - 1, end.trace[-1], end.point.tally))
    return Fit(end.point, end.trace, end.seen.log_evidence, float("nan"), weight, end.converged, kept, end.distance_left)


def _rounds(parts: Iterable[Part], unlabelled: float, watch: Watch | None) -> acceleration.Rounds[Model, Shared]:
    """How a round is made of these rows: the penalised log likelihood of a model, and the model counted by its shares."""
    count = itertools.count()

    def look(model: Model) -> tuple[float, Model, Shared]:
        found = share(model, parts, unlabelled)
        value = found.log_evidence + log_density(model)
        if watch:
            watch(next(count), value, model)
        return value, replace(model, tally=found.tally), found

    return acceleration.Rounds(
        look, lambda m: acceleration.coordinates(m.tally), lambda m, x: replace(m, tally=acceleration.at(m.tally, x))
    )


@dataclass
class Steps:
    """The way of a run, step by step; a long one is thinned while it is walked, so that it never takes much room."""

    first: int = 0  # the number of the step at which this run starts
    _kept: list[Step] = field(default_factory=list)
    _stride: int = 1

    def __post_init__(self) -> None:
        self._next = self.first

    @staticmethod
    def going_on(before: tuple[Step, ...]) -> Steps:
        """The steps of a run that starts where another ended: at its last step."""
        if not before:
            return Steps()
        late = [step.at for step in before[:-1] if step.at >= FIRST_STEPS]
        return Steps(before[-1].at, list(before[:-1]), late[-1] - late[-2] if len(late) > 1 else 1)

    def note(self, value: float, tally: Tally) -> None:
        """One step more; once there are too many, of the later ones every second is let go."""
        step = Step(self._next, value, tally)
        if self._wanted(step):
            self._kept.append(step)
        while len(self._kept) >= MOST_STEPS:
            self._stride *= 2
            self._kept = [step for step in self._kept if self._wanted(step)]
        self._next += 1

    def _wanted(self, step: Step) -> bool:
        return step.at < FIRST_STEPS or step.at % self._stride == 0

    def ending(self, last: Step) -> tuple[Step, ...]:
        """The first steps one by one, some of the later ones, and the last."""
        return (*(step for step in self._kept if step.at < last.at), last)


def plan_hidden(plan: Plan) -> Plan:
    """The plan with every block as EM counts it: texts without their second stage, which needs labels."""
    blocks = tuple(replace(b, family=hidden_text(b.family)) if isinstance(b.family, Text) else b for b in plan.blocks)
    return replace(plan, blocks=blocks)


def hidden_text(family: Text) -> Text:
    """The model of texts behind "auto": multinomial over the logarithm of how often a word occurs."""
    refuse_text(family)
    return replace(family, kind="multinomial", counts=family.adds) if family.kind == "auto" else family


def countable(family: Any) -> bool:
    """Whether EM can count a family by shares."""
    return isinstance(family, COUNTABLE)


def whole_tally(batches: Iterable[Batch], plan: Plan, weights: Callable[[Batch], Array]) -> Tally:
    """All rows counted as one class: the values, the words and the spread that every class starts from."""
    total: Tally | None = None
    domains: dict[str, dict[Any, None]] = {}
    together = [name for block in plan.blocks if isinstance(block.family, Joint) for name in block.columns]
    kinds = {column.name: column.kind for column in plan.columns}
    for batch in batches:
        part = tally_batch(batch, plan, Coded(np.zeros(batch.rows, np.int64), (ALL,)), weights(batch))
        total = part if total is None else total + part
        for name in together:  # a value may stand in rows with gaps alone, which plain counting leaves out
            if kinds[name] == CATEGORY:
                domains.setdefault(name, {}).update(dict.fromkeys(batch.coded(name).values))
    if total is None or not total.classes.sum() > 0:
        raise DataError("there are no rows of positive weight: nothing can be learned from them")
    return total.with_values(domains)


def empty_tally(whole: Tally, classes: tuple[Any, ...]) -> Tally:
    """Nothing counted yet of any class, with room for every value and word of the table."""
    return whole.zero().of_classes([0] * len(classes), classes)


def weights_of(plan: Plan) -> Callable[[Batch], Array]:
    """What reads the weights of a batch."""

    def read(batch: Batch) -> Array:
        if plan.weights is None:
            return np.ones(batch.rows)
        w = batch.numbers([plan.weights], 0, batch.rows)[:, 0]
        check_weights(w, plan.weights, batch.start)
        return w

    return read


@dataclass(frozen=True)
class Rows:
    """The parts of a source, read again in every round; `labelled` says whether the target is looked at."""

    batches: Callable[[], Iterator[Batch]]
    schema: Schema
    weights: Callable[[Batch], Array]
    labelled: bool = False

    def __iter__(self) -> Iterator[Part]:
        for batch in self.batches():
            held = Held(batch, self.schema)
            hidden = np.full(batch.rows, -1, np.int64)
            labels = held.coded(self.schema.target.name).codes.astype(np.int64) if self.labelled else hidden
            yield held, labels, self.weights(batch)


def variances(parts: Iterable[Part], columns: Iterable[Column]) -> dict[str, float]:
    """The variance of every column of numbers over all rows."""
    names = [column.name for column in columns if column.kind == NUMBER]
    if not names:
        return {}
    none = np.zeros(0, np.int64)
    found: list[list[Any]] = []
    for batch, _, weights in parts:
        rows = Encoded(np.zeros((batch.rows, 0)), none, none, batch.numbers(names, 0, batch.rows))
        found.append(Gaussian().count(rows, np.zeros(batch.rows, np.int64), weights, 1))
    moments: list[Moments] = totals(found) if found else []
    return {name: float(m.spread[0] / m.n[0]) if m.n[0] > 0 else 0.0 for name, m in zip(names, moments, strict=True)}


def imagined(smoothing: Any, tally: Tally, spread: Mapping[str, float], class_prior: Any, k: int) -> Priors:
    """The priors of a mixture: `smoothing` imagined rows for each value, and as many for the width of each bell.

    The imagined rows lie as wide as a k-th part of the table would, if its parts lay side by side: overall variance / k².
    """
    given = replace(priors(smoothing, None), classes=class_prior)
    own = dict(given.columns)
    for block in tally.blocks:
        chosen, numbers = given.of(block), [name for name in block.columns if name in spread]
        rows = chosen.count if isinstance(chosen, Pseudocount) else 0.0  # another prior says itself what it imagines
        if rows and isinstance(block.family, Gaussian):
            own[block.name] = Spread(rows, spread[numbers[0]] / k**2)
        elif rows and isinstance(block.family, Joint) and numbers:
            each = tuple((spread[name] or 1.0) / k**2 for name in numbers)
            own[block.name] = Spread(rows, each, rows)
    return replace(given, columns=own)


def ranked(fit: Fit) -> Fit:
    """The same components, the largest first, all along the way."""
    order = np.argsort(-fit.model.tally.classes, kind="stable").tolist()

    def sort(tally: Tally) -> Tally:
        return tally.of_classes(order, fit.model.classes)

    steps = tuple(replace(step, tally=sort(step.tally)) for step in fit.steps)
    return replace(fit, model=replace(fit.model, tally=sort(fit.model.tally)), steps=steps)
