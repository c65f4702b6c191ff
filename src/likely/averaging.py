"""The Bayes-optimal average over all 2ⁿ choices of which columns depend on the class, from the tally alone.

A choice says for each column whether its parameters differ from class to class (it has an arc) or are the same in all. Both
the probability of a choice and its prediction are products over the columns, so the average over all choices is the product
of one average for each column: π p(x|c) + (1 − π) p(x), where π is the probability of the arc after the rows were seen, and
both predictions have their parameters averaged out (Dash and Cooper, 2004). Every choice is equally probable beforehand.
What is averaged is the joint probability P(c, x | choice): a choice is weighed by the rows learned from and by x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.errors import UsageError
from likely.families import (
    Bernoulli,
    Binned,
    Binomial,
    Block,
    Categorical,
    Gaussian,
    Joint,
    Multinomial,
    Parameters,
    Poisson,
)
from likely.families.base import Imagined, imagined_rows
from likely.families.categorical import Shares
from likely.families.forms import Line, Lookup
from likely.families.gaussian import dust
from likely.families.joint import cells_of
from likely.families.predictive import (
    Array,
    Averaged,
    NegativeBinomial,
    Polya,
    Predictive,
    Student,
    log_gamma,
    mixed,
)
from likely.families.statistics import Counts, Moments, Scatter
from likely.schema import Column

BINS = 16  # of a column of numbers, to say whether it matters


@dataclass(frozen=True)
class Arc:
    """Whether a block depends on the class: how probable the rows are if it does and if not, and what each predicts."""

    log_dependent: float
    log_independent: float
    dependent: Predictive
    independent: Predictive

    @property
    def log_on(self) -> float:
        """The log probability of the arc; with and without it were equally probable before the rows were seen."""
        return -float(np.logaddexp(0.0, self.log_independent - self.log_dependent))

    @property
    def log_off(self) -> float:
        """The log probability that there is no arc."""
        return -float(np.logaddexp(0.0, self.log_dependent - self.log_independent))

    @property
    def probability(self) -> float:
        """How probable it is that the block depends on the class at all."""
        return float(np.exp(self.log_on))

    def average(self, parameters: Parameters) -> Parameters:
        """The parameters with the averaged prediction; of tables, what is read is what is used."""
        if not (isinstance(self.dependent, Lookup) and isinstance(self.independent, Lookup)):
            form: Any = Averaged(self.dependent, self.independent, self.log_on, self.log_off)
            return replace(parameters, form=form)
        table = mixed(self.dependent.table, self.independent.table, self.log_on, self.log_off)
        rows: Any = parameters.rows
        if isinstance(rows, Shares):
            rows = replace(rows, logs=np.ascontiguousarray(table.T))
        return replace(parameters, form=Lookup(table), rows=rows)


@dataclass(frozen=True)
class _Case:
    """One block with all that is known of it."""

    block: Block
    columns: tuple[Column, ...]
    statistic: Any
    prior: Imagined
    parameters: Parameters
    classes: int

    def improper(self, what: str, remedy: str) -> UsageError:
        return UsageError(f"column {self.block.name!r} cannot be averaged over: {what}; {remedy}")


def weigh(known: Any, i: int) -> Arc | None:
    """Whether block i of a model depends on the class; None for texts and joint Gaussians, which always do."""
    block, statistic = known.blocks[i], known.tally.statistics[i]
    how = WEIGHED.get(type(block.family))
    if how is None or (isinstance(statistic, Scatter) and statistic.mean.shape[-1]):
        return None
    columns = tuple(known.schema.by_name[name] for name in block.columns)
    prior, parameters = known.prior.of(block).averaged, known.plain_parameters[i]
    if prior != known.prior.of(block):  # the mean of the posterior predicts, the plain model is read at its mode
        parameters = block.family.derive([columns], [statistic], [prior], known.classes)[0]
    return how(_Case(block, columns, statistic, prior, parameters, len(known.classes)))


def chance(known: Any, i: int) -> float | None:
    """How probable it is that block i of a model depends on the class; None where its family or prior cannot say."""
    if isinstance(known.blocks[i].family, Binned):
        return _chance_of_bins(known.tally.statistics[i])
    try:
        arc = weigh(known, i)
    except UsageError:  # a prior that imagines nothing has no marginal likelihood
        return None
    return arc.probability if arc else None


def _chance_of_bins(counted: Any) -> float:
    """The same of a column of numbers, cut into a few bins of equal weight with one imagined row each."""
    return dependence(counted.cut(counted.edges(BINS)).T)


def dependence(seen: Array) -> float:
    """How probable it is that counts, classes × values, are of shares that differ by class: one imagined row a value."""
    imagined = np.ones(seen.shape[1])
    on, off = _urn(seen, imagined), _urn(seen.sum(0, keepdims=True), imagined)
    return float(1.0 / (1.0 + np.exp(np.clip(off - on, -700.0, 700.0))))


def _table(case: _Case) -> Arc:
    """Shares of values: Dirichlet–multinomial. Its parameters are the beta of a Dirichlet prior, or the imagined rows."""
    statistic = case.statistic
    if isinstance(statistic, Scatter):
        seen = statistic.n.reshape(case.classes, -1)
        imagined = case.prior.pseudocounts(cells_of(case.columns))
        width = statistic.mean.shape[-1]
        together: Any = Scatter(
            statistic.n.sum(0, keepdims=True),
            np.zeros((1, *statistic.n.shape[1:], width)),
            np.zeros((1, *statistic.n.shape[1:], width, width)),
        )
    else:
        seen = statistic.seen
        yes_no = isinstance(case.block.family, Bernoulli)
        imagined = imagined_rows(case.prior, (False, True) if yes_no else case.columns[0].values, seen)
        together = Counts(seen.sum(0, keepdims=True))
    on, off = _dirichlet(case, seen, imagined)
    alone = case.block.family.derive([case.columns], [together], [case.prior], ("all",))[0].form
    assert isinstance(alone, Lookup)
    assert isinstance(case.parameters.form, Lookup)
    lines = np.broadcast_to(alone.table, case.parameters.form.table.shape)
    return Arc(on, off, case.parameters.form, Lookup(np.ascontiguousarray(lines)))


def _dirichlet(case: _Case, seen: Array, imagined: Array) -> tuple[float, float]:
    """The log probability of counts, classes × values, under shares of each class's own and under shares of all."""
    ruled_out = (imagined <= 0) & (seen.sum(0) > 0)
    if ruled_out.any():
        raise case.improper("no row is imagined for a value that was seen", "choose smoothing above 0 for it")
    some = imagined > 0
    if not some.any():  # nothing was ever seen: both ways it is as probable
        return 0.0, 0.0
    return _urn(seen[:, some], imagined[some]), _urn(seen[:, some].sum(0, keepdims=True), imagined[some])


def _urn(seen: Array, imagined: Array) -> float:
    """log ∏ Γ(A) / Γ(A + n) ∏ Γ(α + nᵥ) / Γ(α), over the rows of a table of counts."""
    whole = imagined.sum(keepdims=True)
    terms = log_gamma(seen + imagined) - log_gamma(imagined)
    return float(terms.sum() + (log_gamma(whole) - log_gamma(whole + seen.sum(1))).sum())


def _shares_of_events(case: _Case) -> Arc:
    """k of n, and blocks of counts: the events are the rows of a Dirichlet–multinomial."""
    seen = case.statistic.seen
    binomial = isinstance(case.block.family, Binomial)
    values: Sequence[Any] = (False, True) if binomial else tuple(column.name for column in case.columns)
    imagined = imagined_rows(case.prior, values, seen)
    if (imagined <= 0).any():
        raise case.improper("no event is imagined for a value", "choose smoothing above 0 for it")
    on, off = _urn(seen, imagined), _urn(seen.sum(0, keepdims=True), imagined)
    own, shared = (seen + imagined).T, np.repeat((seen.sum(0) + imagined)[:, None], case.classes, 1)
    form = case.parameters.form
    assert isinstance(form, Line)
    if binomial:  # counted as failures and successes, scored as successes and failures
        own, shared = own[::-1], shared[::-1]
    return Arc(on, off, Polya(own, form.base), Polya(shared, form.base))


def _events(case: _Case) -> Arc:
    """Events a row: the rate has a gamma prior, the imagined rows at the rate of all rows together."""
    n, events = case.statistic.seen.T
    rows = case.prior.rows
    if rows <= 0:
        raise case.improper("no row is imagined", "choose smoothing above 0 for it")
    rate = (events.sum() or min(rows, 1.0)) / n.sum() if n.sum() > 0 else 1.0
    shape = rows * rate

    def log_marginal(n: Array, events: Array) -> float:
        terms = log_gamma(shape + events) - log_gamma(np.array(shape)) + shape * np.log(rows)
        return float((terms - (shape + events) * np.log(rows + n)).sum())

    on, off = log_marginal(n, events), log_marginal(n.sum(keepdims=True), events.sum(keepdims=True))
    alike = np.ones(case.classes)
    own = NegativeBinomial(shape + events, rows + n)
    return Arc(on, off, own, NegativeBinomial((shape + events.sum()) * alike, (rows + n.sum()) * alike))


def _bell_curve(case: _Case) -> Arc:
    """Numbers: mean and variance have a normal–inverse-gamma prior, one imagined row like all rows if none is given."""
    assert isinstance(case.block.family, Gaussian)
    tie = case.block.family.tie
    if tie in ("column", "both"):
        raise case.improper(f"tie={tie!r} shares a variance with other columns", "use tie=None or tie='class'")
    moments: Moments = case.statistic
    whole = Moments(*(part[:, None] for part in (moments.n, moments.mean, moments.spread))).summed()
    level, strength, shape, scale = _normal(case, whole)
    k = strength + moments.n
    drift = strength * moments.n / k * (moments.mean - level) ** 2
    mean, deviation = (strength * level + moments.n * moments.mean) / k, (moments.spread + drift) / 2
    own = _Bell(strength, shape, scale, moments.n, mean, deviation, shared=tie == "class")
    k = strength + whole.n
    drift = strength * whole.n / k * (whole.mean - level) ** 2
    mean, deviation = (strength * level + whole.n * whole.mean) / k, (whole.spread + drift) / 2
    alike = _Bell(strength, shape, scale, whole.n, mean, deviation, shared=False)
    return Arc(own.log_marginal, alike.log_marginal, own.student(case.classes), alike.student(case.classes))


def _normal(case: _Case, whole: Moments) -> tuple[float, float, float, float]:
    """Mean, strength, shape and scale of the prior: as given, else one imagined row with the mean and variance of all."""
    given = case.prior.normal
    if given is None:
        n, mean, spread = (float(part[0]) for part in (whole.n, whole.mean, whole.spread))
        variance = spread / n if n > 0 else 0.0
        return mean, 1.0, 0.5, (variance if variance > float(dust(np.array(mean))) else 1.0) / 2
    if min(given[1:]) <= 0:
        raise case.improper(
            "its prior says nothing of the mean or the variance", "strength, shape and scale must be above 0"
        )
    return given


@dataclass(frozen=True)
class _Bell:
    """What is believed of bell curves once rows were seen: posterior mean and half the summed squares, class by class."""

    strength: float
    shape: float
    scale: float
    n: Array
    mean: Array
    deviation: Array
    shared: bool  # whether all have one variance

    @property
    def _shapes(self) -> tuple[Array, Array]:
        """Shape and scale of the variance after the rows."""
        n, deviation = self.n, self.deviation
        if self.shared:
            n, deviation = n.sum(keepdims=True), deviation.sum(keepdims=True)
        return self.shape + n / 2, self.scale + deviation

    @property
    def log_marginal(self) -> float:
        """The log density of the rows, all parameters averaged out."""
        shape, scale = self._shapes
        variance = log_gamma(shape) - log_gamma(np.array(self.shape))
        variance = variance + self.shape * np.log(self.scale) - shape * np.log(scale)
        means = 0.5 * np.log(self.strength / (self.strength + self.n)) - self.n / 2 * np.log(2 * np.pi)
        return float(variance.sum() + means.sum())

    def student(self, classes: int) -> Student:
        """What is expected of the next row."""
        shape, scale = self._shapes
        k = self.strength + self.n
        width = np.sqrt(scale / shape * (k + 1) / k)
        mean, width, degrees = (np.broadcast_to(part, classes) for part in (self.mean, width, 2 * shape))
        return Student(mean, width, degrees)


WEIGHED: dict[type, Callable[[_Case], Arc]] = {
    Categorical: _table,
    Bernoulli: _table,
    Joint: _table,
    Binomial: _shares_of_events,
    Multinomial: _shares_of_events,
    Poisson: _events,
    Gaussian: _bell_curve,
}
