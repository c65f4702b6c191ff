"""The EM loop: responsibilities under the current parameters (E-step), then parameters from expected counts (M-step).

Observed, partly observed and hidden labels are one loop: a row with a label has responsibility one for its class. From one
iteration to the next the penalised log-likelihood, the log-likelihood of the rows plus the log density of the parameters
under their prior, never decreases.
"""

from __future__ import annotations

import itertools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines import Plan
from likely.engines.e_step import CachedBatch, ExpectedCounts, LabelledRows, e_step_batch
from likely.engines.memory import tally_batch
from likely.engines.row_weights import check_weights
from likely.engines.scorer import Scorer
from likely.errors import ConvergenceWarning, DataError
from likely.families import Block, Encoded, Family, FittedBlock, default_for
from likely.families.statistics import Moments, totals
from likely.latent import _acceleration as acceleration
from likely.latent.fit_summary import FitSummary
from likely.model.model import Model
from likely.priors import Priors, Pseudocount, Spread, priors
from likely.schema import CATEGORY, NUMBER, TEXT, Column, Schema
from likely.sources import Batch, Coded
from likely.tally import Tally

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Watch = Callable[[int, float, Model], None]
ALL = "all"
MAX_ITER = 1000
TOL = 1e-4  # nats in all, whatever the number of rows
MORE_ROUNDS = "raise max_iter (--max-iter) or tol"
MOST_STEPS = 60  # the most steps that a run records, if it is asked to
FIRST_STEPS = 20  # these are recorded one by one: most of the gain is in them


@dataclass(frozen=True)
class EMStep:
    """The state of EM after some iterations: the expected counts, from which the parameters follow, and the objective."""

    at: int  # number of the iteration; 0 is the initialization
    value: float  # penalised log-likelihood
    tally: Tally


@dataclass(frozen=True)
class EMResult:
    """The end of a run of EM: the model, its summary, and the recorded steps."""

    model: Model
    summary: FitSummary
    weight: float  # of all rows
    steps: tuple[EMStep, ...] = ()

    @property
    def trace(self) -> tuple[float, ...]:
        """Penalised log-likelihood of every iteration."""
        return self.summary.trace

    @property
    def value(self) -> float:
        """Penalised log-likelihood at the end."""
        return self.trace[-1]

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of the rows."""
        return self.summary.log_likelihood

    @property
    def entropy(self) -> float:
        """Entropy of the responsibilities; NaN until `with_entropy` has computed it."""
        return self.summary.entropy

    @property
    def converged(self) -> bool:
        """Whether EM converged."""
        return self.summary.converged

    @property
    def distance_left(self) -> float:
        """Estimated distance to the local maximum, in nats of penalised log-likelihood."""
        return self.summary.distance_left

    @property
    def bic(self) -> float:
        """Bayesian information criterion: the lower the better."""
        return self.summary.bic(free_parameters(self.model), self.weight)

    @property
    def icl(self) -> float:
        """The BIC plus twice the entropy of the responsibilities: it prefers separated components."""
        return self.summary.icl(free_parameters(self.model), self.weight)


def free_parameters(model: Model) -> int:
    """Number of free parameters; given class probabilities are not among them."""
    given = len(model.classes) - 1 if isinstance(model.prior.classes, Mapping) else 0
    return model.parameter_count.free - given


def warn_if_stopped(converged: bool, rounds: int, remedy: str, stacklevel: int = 3) -> None:
    """Warn that EM was stopped before it converged."""
    if not converged:
        message = f"EM has not converged after {rounds} rounds: {remedy}"
        warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)


def log_density(model: Model) -> float:
    """Log density of all parameters under their priors, up to a constant."""
    total = 0.0
    for block, statistic, parameters in zip(model.blocks, model.tally.statistics, model.block_parameters, strict=True):
        columns = tuple(model.schema.by_name[name] for name in block.columns)
        prior = model.prior.of(block).for_classes(model.classes)
        fitted = FittedBlock(columns, statistic, prior, parameters, model.tally.classes)
        total += block.family.log_prior_density(fitted)
    given = model.prior.classes
    if given is not None and not isinstance(given, Mapping):
        pseudo = given.pseudocounts(model.classes)
        total += float((pseudo[pseudo > 0] * np.log(model.class_prior[pseudo > 0])).sum())
    return total


def objective_name(model: Model, pseudocount: float = 0.0) -> str:
    """Name of what EM maximises: penalised if a prior, or the transition pseudocount of a hidden Markov model, takes part."""
    penalised = pseudocount > 0.0 or log_density(model) != 0.0
    return "penalised log likelihood" if penalised else "log likelihood"


class RowsElsewhere(ABC):
    """Distributed rows: an E-step runs as a task on each of their parts, and the expected counts are added."""

    @abstractmethod
    def e_step(self, model: Model, unlabelled: float = 1.0, *, entropy: bool = False) -> ExpectedCounts:
        """Expected counts and log-likelihood of all rows."""


Rows = Iterable[LabelledRows] | RowsElsewhere


def e_step(model: Model, parts: Rows, unlabelled: float = 1.0, *, entropy: bool = False) -> ExpectedCounts:
    """Expected counts and log-likelihood of all rows; the weight of rows without a label is multiplied by `unlabelled`."""
    if isinstance(parts, RowsElsewhere):
        return parts.e_step(model, unlabelled, entropy=entropy)
    scorer: Scorer = model.scorer
    total: ExpectedCounts | None = None
    for batch, labels, weights in parts:
        w = weights if unlabelled == 1.0 else np.where(labels < 0, unlabelled * weights, weights)
        found = e_step_batch(LabelledRows(batch, labels, w), scorer, model.blocks, entropy=entropy)
        total = found if total is None else total + found
    if total is None:
        raise DataError("there are no rows: nothing can be learned from them")
    return total


def with_entropy(fit: EMResult, parts: Rows) -> EMResult:
    """The same result with the entropy of its responsibilities, which takes one more E-step."""
    return replace(fit, summary=replace(fit.summary, entropy=e_step(fit.model, parts, entropy=True).entropy))


def fit_em(
    model: Model,
    parts: Rows,
    *,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    unlabelled: float = 1.0,
    watch: Watch | None = None,
    after: tuple[EMStep, ...] | None = None,
    done: int = 0,
) -> EMResult:
    """Iterate until the maximum is estimated to be at most `tol` nats away; slow iterations are extrapolated.

    Steps are recorded if `after` is given: the steps of the run that this one continues, () for a new run. `done` is the
    number of iterations of that run. A negative `tol` asks for `max_iter` plain iterations.
    """
    if any(block.family.column_kind == TEXT for block in model.blocks):
        # A word that the first rows lack contributes nothing until it is counted: only from then on are values comparable.
        model = replace(model, tally=e_step(model, parts, unlabelled).tally)
    recorder = StepRecorder.continuing(after or ())
    note = None if after is None else lambda value, at: recorder.record(value, at.tally)
    iteration = _iteration(parts, unlabelled, watch)
    end = acceleration.maximise(model, iteration, max_iter=max_iter, tol=tol, done=done, note=note)
    last = EMStep(recorder.first + len(end.trace) - 1, end.trace[-1], end.point.tally)
    summary = FitSummary(
        end.expected.log_likelihood, end.trace, converged=end.converged, distance_left=end.distance_left
    )
    weight = float(end.expected.tally.classes.sum())
    return EMResult(end.point, summary, weight, () if after is None else recorder.ending(last))


def _iteration(
    parts: Rows, unlabelled: float, watch: Watch | None
) -> acceleration.Iteration[Model, ExpectedCounts]:
    """One EM iteration over these rows: the penalised log-likelihood of a model, and the model of its expected counts."""
    count = itertools.count()

    def evaluate(model: Model) -> tuple[float, Model, ExpectedCounts]:
        found = e_step(model, parts, unlabelled)
        value = found.log_likelihood + log_density(model)
        if watch:
            watch(next(count), value, model)
        return value, replace(model, tally=found.tally), found

    return acceleration.Iteration(
        evaluate, lambda m: acceleration.coordinates(m.tally), lambda m, x: replace(m, tally=acceleration.at(m.tally, x))
    )


@dataclass
class StepRecorder:
    """The steps of a run; those of a long run are thinned out while it goes on, so that memory stays bounded."""

    first: int = 0  # the number of the step at which this run starts
    _kept: list[EMStep] = field(default_factory=list)
    _stride: int = 1

    def __post_init__(self) -> None:
        self._next = self.first

    @staticmethod
    def continuing(before: tuple[EMStep, ...]) -> StepRecorder:
        """The recorder of a run that starts at the last step of another."""
        if not before:
            return StepRecorder()
        late = [step.at for step in before[:-1] if step.at >= FIRST_STEPS]
        return StepRecorder(before[-1].at, list(before[:-1]), late[-1] - late[-2] if len(late) > 1 else 1)

    def record(self, value: float, tally: Tally) -> None:
        """Add a step; once there are too many, every second of the later ones is dropped."""
        step = EMStep(self._next, value, tally)
        if self._wanted(step):
            self._kept.append(step)
        while len(self._kept) >= MOST_STEPS:
            self._stride *= 2
            self._kept = [step for step in self._kept if self._wanted(step)]
        self._next += 1

    def _wanted(self, step: EMStep) -> bool:
        return step.at < FIRST_STEPS or step.at % self._stride == 0

    def ending(self, last: EMStep) -> tuple[EMStep, ...]:
        """The first steps one by one, some of the later ones, and the last."""
        return (*(step for step in self._kept if step.at < last.at), last)


def plan_hidden(plan: Plan) -> Plan:
    """The plan with the family that EM counts for every block: texts without their calibration, which needs labels."""
    return replace(plan, blocks=tuple(replace(b, family=counted_by_em(b, plan, asked=True)) for b in plan.blocks))


def counted_by_em(block: Block, plan: Plan, *, asked: bool) -> Family:
    """The family by which EM counts a block, which may differ from the block's own."""
    kinds = {column.name: column.kind for column in plan.columns}
    return block.family.for_em(block.name, asked) or default_for(kinds[block.columns[0]], plain=True)


def pooled_tally(batches: Iterable[Batch], plan: Plan, weights: Callable[[Batch], Array]) -> Tally:
    """All rows counted as one class: the values and words of the complete table."""
    return require_weight(pooled_part(batches, plan, weights))


def require_weight(pooled: Tally | None) -> Tally:
    """The tally of all rows as one class; DataError if they have no weight."""
    if pooled is None or not pooled.classes.sum() > 0:
        raise DataError("there are no rows of positive weight: nothing can be learned from them")
    return pooled


def pooled_part(batches: Iterable[Batch], plan: Plan, weights: Callable[[Batch], Array]) -> Tally | None:
    """Some rows counted as one class; None if there are none."""
    total: Tally | None = None
    domains: dict[str, dict[Any, None]] = {}
    together = [name for block in plan.blocks if block.family.needs_whole_rows for name in block.columns]
    kinds = {column.name: column.kind for column in plan.columns}
    for batch in batches:
        part = tally_batch(batch, plan, Coded(np.zeros(batch.rows, np.int64), (ALL,)), weights(batch))
        total = part if total is None else total + part
        for name in together:  # a value may occur in incomplete rows only, which plain counting leaves out
            if kinds[name] == CATEGORY:
                domains.setdefault(name, {}).update(dict.fromkeys(batch.coded(name).values))
    return None if total is None else total.with_values(domains)


def empty_tally(pooled: Tally, classes: tuple[Any, ...]) -> Tally:
    """The tally of no rows, with these classes and every value and word of the table."""
    return pooled.zero().of_classes([0] * len(classes), classes)


def kinds_read(plan: Plan, *, labelled: bool) -> dict[str, str]:
    """The columns that EM reads and the kind of each; the target only where rows have labels."""
    return {name: kind for name, kind in plan.kinds().items() if labelled or name != plan.target}


def weights_of(plan: Plan) -> Callable[[Batch], Array]:
    """Function that reads the row weights of a batch, as planned."""
    return column_weights(plan.weights)


def column_weights(name: str | None) -> Callable[[Batch], Array]:
    """Function that reads the row weights of a batch: those of a column, or ones."""

    def read(batch: Batch) -> Array:
        if name is None:
            return np.ones(batch.rows)
        w = batch.numbers([name], 0, batch.rows)[:, 0]
        check_weights(w, name, batch.start)
        return w

    return read


@dataclass(frozen=True)
class StreamedRows:
    """The rows of a source, read again at every pass; `labelled`: whether the target is read."""

    batches: Callable[[], Iterator[Batch]]
    schema: Schema
    weights: Callable[[Batch], Array]
    labelled: bool = False

    def __iter__(self) -> Iterator[LabelledRows]:
        for batch in self.batches():
            cached = CachedBatch(batch, self.schema)
            hidden = np.full(batch.rows, -1, np.int64)
            labels = cached.coded(self.schema.target.name).codes.astype(np.int64) if self.labelled else hidden
            yield LabelledRows(cached, labels, self.weights(batch))


def variances(parts: Iterable[LabelledRows], columns: Iterable[Column]) -> dict[str, float]:
    """Variance of every numeric column over all rows."""
    names = numbers_of(columns)
    found = [number_moments(batch, names, weights) for batch, _, weights in parts] if names else []
    return variances_of(names, totals(found)) if found else {}


def numbers_of(columns: Iterable[Column]) -> list[str]:
    """Names of the numeric columns."""
    return [column.name for column in columns if column.kind == NUMBER]


def number_moments(batch: Batch, names: Sequence[str], weights: Array) -> list[Moments]:
    """Weight, mean and spread of some numeric columns over all rows of a batch."""
    none = np.zeros(0, np.int64)
    rows = Encoded(np.zeros((batch.rows, 0)), none, none, batch.numbers(names, 0, batch.rows))
    found: Any = default_for(NUMBER, plain=True).count(rows, np.zeros(batch.rows, np.int64), weights, 1)
    return list(found)


def variances_of(names: Sequence[str], moments: Sequence[Moments]) -> dict[str, float]:
    """Variance of every numeric column, from its moments."""
    return {name: float(m.spread[0] / m.n[0]) if m.n[0] > 0 else 0.0 for name, m in zip(names, moments, strict=True)}


def mixture_priors(smoothing: Any, tally: Tally, spread: Mapping[str, float], class_prior: Any) -> Priors:
    """Priors of a mixture: `smoothing` pseudocounts for each value, and as many pseudo-rows for each variance.

    The pseudo-rows have the variance that one of k equal parts of the table would have if they lay side by side: the overall
    variance / k².
    """
    k = len(tally.schema.classes)
    given = replace(priors(smoothing, None), classes=class_prior)
    own = dict(given.columns)
    for block in tally.blocks:
        chosen, numbers = given.of(block), [name for name in block.columns if name in spread]
        rows = chosen.count if isinstance(chosen, Pseudocount) else 0.0  # another prior has its own scale
        if rows and (wide := block.family.variance_prior(rows, [spread[name] for name in numbers], k)):
            own[block.name] = Spread(**wide)
    return replace(given, columns=own)


def largest_first(fit: EMResult) -> EMResult:
    """The same components in decreasing order of weight, at every recorded step as well."""
    order = np.argsort(-fit.model.tally.classes, kind="stable").tolist()

    def sort(tally: Tally) -> Tally:
        return tally.of_classes(order, fit.model.classes)

    steps = tuple(replace(step, tally=sort(step.tally)) for step in fit.steps)
    return replace(fit, model=replace(fit.model, tally=sort(fit.model.tally)), steps=steps)
