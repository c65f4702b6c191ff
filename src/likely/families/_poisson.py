"""Columns of event counts: a Poisson rate in each class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.bayes import discrete
from likely.bayes.conjugate import GammaPosterior
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.families._event_counts import event_counts, log_ways, not_a_count, sums
from likely.families.base import BlockPrior, Encoded, Labels, Parameters, log
from likely.families.base_measures import POISSON, log_factorial
from likely.families.family import Family, FittedBlock, LeftOutRows, SampledCells, Totals
from likely.families.likelihoods import LinearTerm
from likely.families.posterior_predictive import Arc, NegativeBinomialPredictive, log_gamma
from likely.families.statistics import Array, Counts, Statistic
from likely.families.value_tables import improper, log_mixture, log_times, shares_of, weighted_logs
from likely.schema import Column

MOST_EVENTS = 100_000  # maximum number of events that a mutual information is summed over


@dataclass(frozen=True)
class Poisson(Family):
    """Poisson distribution: events per row, one rate per class. The prior's pseudo-rows have the rate of all classes."""

    name: ClassVar[str] = "poisson"
    strict: ClassVar[bool] = True
    counts_rates: ClassVar[bool] = True

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """Rows and events, by class."""
        x = rows.numbers
        seen, events = (
            sums((~np.isnan(x)).astype(np.float64), labels, weights, classes),
            sums(x, labels, weights, classes),
        )
        return [
            event_counts(np.column_stack([seen[:, j], events[:, j]]), -log_factorial(x[:, j]), labels, weights)
            for j in range(x.shape[1])
        ]

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        statistics: Sequence[Counts],
        priors: Sequence[BlockPrior],
        classes: Sequence[Any],
        edges: Sequence[Array | None] | None = None,
    ) -> list[Parameters]:
        """Rate: (events + pseudo-events) / (rows + pseudo-rows)."""
        return [
            self._rates(column.name, counts.seen, prior, classes)
            for (column,), counts, prior in zip(blocks, statistics, priors, strict=True)
        ]

    def _rates(self, name: str, seen: Array, prior: BlockPrior, classes: Sequence[Any]) -> Parameters:
        n, events = seen[:, 0], seen[:, 1]
        pseudo_events, extra = _pseudo(prior, n, events)
        whole = n + extra
        overall = np.full_like(n, _overall_rate(n, events, extra))
        rate = np.divide(np.maximum(events + pseudo_events, 0.0), whole, out=overall, where=whole > 0)
        rows = tuple(
            {"column": name, "class": label, "count": float(n[c]), "rate": float(rate[c])}
            for c, label in enumerate(classes)
        )
        return Parameters((name,), LinearTerm(log(rate)[None], -rate[None], POISSON), rows, len(classes), len(classes))

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """No negative and no infinite number."""
        return not_a_count(numbers)

    def log_prior_density(self, block: FittedBlock) -> float:
        """The log density of a gamma prior."""
        likelihood, seen = block.likelihood, block.statistic.seen
        pseudo_events, rows = _pseudo(block.prior, seen[:, 0], seen[:, 1])
        events = weighted_logs(np.full(likelihood.slope.shape, pseudo_events), likelihood.slope)
        return events + rows * float(likelihood.level.sum())

    def arc(self, block: FittedBlock) -> Arc | None:
        """Gamma–Poisson: a gamma prior, or one with pseudo-rows at the rate of all rows together."""
        n, events = block.statistic.seen.T
        shape, rows = _pseudo(block.prior, n, events)
        if rows <= 0:
            raise improper(block.name, "it has no pseudocount", "choose smoothing above 0 for it, or GammaPrior(...)")

        def log_marginal(n: Array, events: Array) -> float:
            terms = log_gamma(shape + events) - log_gamma(np.array(shape)) + shape * np.log(rows)
            return float((terms - (shape + events) * np.log(rows + n)).sum())

        on, off = log_marginal(n, events), log_marginal(n.sum(keepdims=True), events.sum(keepdims=True))
        ones = np.ones(block.classes)
        own = NegativeBinomialPredictive(shape + events, rows + n)
        return Arc(on, off, own, NegativeBinomialPredictive((shape + events.sum()) * ones, (rows + n.sum()) * ones))

    def log_base(self, block: FittedBlock) -> float:
        """−Σ log x!."""
        return log_ways(block.statistic, block.name)

    def prior_from_data(self, block: FittedBlock) -> str:
        """A pseudocount has the rate of all rows."""
        return "a prior at the rate of all rows" if block.prior.gamma is None else ""

    def totals(self, block: FittedBlock) -> dict[tuple[str, str], Totals]:
        """Rows and events."""
        name, (n, events) = block.name, block.statistic.seen.T
        return {(name, "rows"): n, (name, "sum"): events}

    @property
    def leaves_out(self) -> bool:
        """The rate without a row has a closed form."""
        return True

    def leave_one_out(self, block: FittedBlock, cells: NDArray[Any], rows: LeftOutRows) -> Array:
        """Log probability of each row's number of events in every class, the row left out; 0 where it is missing."""
        seen = block.statistic.seen
        extra = block.prior.rows
        known = np.flatnonzero(~np.isnan(cells))
        out = np.zeros((len(cells), len(seen)))
        value, own = cells[known, None], rows.take(known).own(len(seen))
        n, events = np.maximum(seen[:, 0] - own, 0.0), np.maximum(seen[:, 1] - own * value, 0.0)
        some, all_rows = events.sum(1, keepdims=True), n.sum(1, keepdims=True)
        some = np.where(some > 0, some, min(extra, 1.0))
        overall = np.divide(some, all_rows, out=np.ones_like(some), where=all_rows > 0)
        pseudo_events = extra * overall
        if block.prior.gamma is not None:
            pseudo_events, extra = np.asarray(block.prior.gamma[0]), block.prior.gamma[1]
        whole, events = n + extra, np.maximum(events + pseudo_events, 0.0)
        rate = np.divide(events, whole, out=np.broadcast_to(overall, n.shape).copy(), where=whole > 0)
        with np.errstate(invalid="ignore"):  # no events at a rate of zero
            falls = np.where(value > 0, value * log(rate), 0.0)
        out[known] = falls - rate - log_factorial(value)
        return out

    def mutual_information(self, block: FittedBlock) -> float | None:
        """Sum over the numbers of events; None where these are too many."""
        rates, share = np.exp(block.likelihood.slope[0]), shares_of(block.statistic.seen[:, 0])
        most = rates.max() + 12 * np.sqrt(rates.max()) + 20
        if not most < MOST_EVENTS:
            return None
        x = np.arange(int(most) + 1.0)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(x > 0, x * np.log(rates), 0.0) - rates - log_gamma(x + 1)
            terms = np.exp(logs) * np.where(np.isneginf(logs), 0.0, logs - log_mixture(logs, share)[:, None])
        return max(float(share @ np.where(share > 0, np.nan_to_num(terms), 0.0).sum(0)), 0.0)

    def sample(self, block: FittedBlock, classes: NDArray[np.int64], rng: np.random.Generator) -> SampledCells:
        """Numbers of events drawn at the rate of the class."""
        rate = -block.likelihood.level[0][classes]
        return {block.columns[0].name: rng.poisson(rate).astype(np.float64)}

    def parameter_posteriors(self, block: FittedBlock) -> list[ParameterPosterior]:
        """Gamma(events + pseudo-events, rows + pseudo-rows)."""
        n, events = block.statistic.seen.T
        shape, rows = _pseudo(block.prior, n, events)
        return [GammaPosterior(float(shape + e), float(rows + m)) for m, e in zip(n, events, strict=True)]

    def with_parameters(self, block: FittedBlock, by_class: Sequence[Mapping[Any, Any]]) -> FittedBlock:
        """The block with other rates."""
        rate = np.array([float(each["rate"]) for each in by_class])
        form = LinearTerm(log(rate)[None], -rate[None], POISSON)
        return replace(block, parameters=replace(block.parameters, likelihood=form))

    def distribution(self, parameters: Mapping[Any, float]) -> Any:
        """Events in one row."""
        return discrete.Poisson(parameters["rate"])

    def named_parameters(self, rows: Sequence[Mapping[str, Any]]) -> dict[Any, float]:
        """`rate`, the expected number of events a row."""
        return {"rate": rows[0]["rate"]}

    def is_possible(self, name: Any, value: Any) -> bool:
        """Any rate of zero or more."""
        return bool(value >= 0 and np.isfinite(value))

    def log_likelihood(
        self, counted: Mapping[str, Array], columns: Sequence[Column], numbers: Array, weights: Array
    ) -> Callable[[Mapping[Any, float]], float]:
        """Σ x log λ − λ − log x!."""
        n, events = counted["seen"][0]
        constant = float(weights @ log_factorial(numbers[:, 0]))
        return lambda p: log_times(events, p["rate"]) - n * p["rate"] - constant

    def parameter_range(self, name: Any, at: Mapping[Any, float], n: float) -> tuple[float, float]:
        """From a tenth to three times the estimate."""
        return at[name] / 10 + 1e-12, 3 * at[name] + 1e-12


def _pseudo(prior: BlockPrior, n: Array, events: Array) -> tuple[float, float]:
    """Pseudo-events and pseudo-rows: of a gamma prior, or at the rate of all classes together."""
    if prior.gamma is not None:
        return prior.gamma
    return (prior.rows * _overall_rate(n, events, prior.rows) if prior.rows else 0.0), prior.rows


def _overall_rate(n: Array, events: Array, rows: float) -> float:
    """Rate of all classes together; without any event, one is assumed among all rows."""
    return float((events.sum() or min(rows, 1.0)) / n.sum()) if n.sum() > 0 else 1.0
