"""Blocks of count columns: a probability for each column in each class."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.bayes import discrete
from likely.bayes.conjugate import DirichletPosterior
from likely.bayes.distribution import Distribution
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.errors import UsageError
from likely.families._event_counts import event_counts, log_ways, log_without, not_a_count, polya_arc, sums
from likely.families.base import BlockPrior, Encoded, Labels, Parameters, log, pseudocounts_of
from likely.families.base_measures import MULTINOMIAL, log_coefficients
from likely.families.family import Family, FittedBlock, LeftOutRows, SampledCells, Totals
from likely.families.likelihoods import LinearTerm
from likely.families.posterior_predictive import Arc
from likely.families.statistics import Array, Counts, Statistic
from likely.families.value_tables import log_marginal_by_class, log_times, weighted_logs
from likely.schema import Column


@dataclass(frozen=True)
class Multinomial(Family):
    """Multinomial distribution over a block of count columns: each event falls into a column by the class's probabilities."""

    name: ClassVar[str] = "multinomial"
    single: ClassVar[bool] = False
    strict: ClassVar[bool] = True
    sums_to_one: ClassVar[bool] = True
    priors_by_class: ClassVar[bool] = True
    a_vector_is_a_row: ClassVar[bool] = True

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """Events of each column, by class."""
        x = rows.numbers
        return [event_counts(sums(x, labels, weights, classes), log_coefficients(x), labels, weights)]

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        statistics: Sequence[Counts],
        priors: Sequence[BlockPrior],
        classes: Sequence[Any],
        edges: Sequence[Array | None] | None = None,
    ) -> list[Parameters]:
        """Probability of each column: (events + pseudocount) / total."""
        (columns,), (counts,), (prior,) = blocks, statistics, priors
        names = tuple(c.name for c in columns)
        odd = [value for value in prior.named if str(value) not in names]
        if odd:
            raise UsageError(f"the prior names {odd[0]!r}, which is none of the counted columns {list(names[:20])}")
        events = counts.seen + pseudocounts_of(prior, names, counts.seen)
        whole = events.sum(1, keepdims=True)
        share = np.divide(events, whole, out=np.full_like(events, 1.0 / len(names)), where=whole > 0)
        rows = tuple(
            {"column": name, "class": label, "count": float(counts.seen[c, j]), "probability": float(share[c, j])}
            for c, label in enumerate(classes)
            for j, name in enumerate(names)
        )
        slope = np.ascontiguousarray(log(share).T)
        free = len(classes) * (len(names) - 1)
        return [Parameters(names, LinearTerm(slope, np.zeros_like(slope), MULTINOMIAL), rows, share.size, free)]

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """Counts only."""
        return not_a_count(numbers)

    def log_prior_density(self, block: FittedBlock) -> float:
        """The log density of a Dirichlet prior."""
        pseudocounts = pseudocounts_of(block.prior, [c.name for c in block.columns], block.statistic.seen)
        return weighted_logs(pseudocounts, block.likelihood.slope.T)

    def arc(self, block: FittedBlock) -> Arc | None:
        """Dirichlet–multinomial marginal likelihoods of the events: by class, and of all classes together."""
        seen = block.statistic.seen
        pseudocounts = pseudocounts_of(block.prior, tuple(c.name for c in block.columns), seen)
        return polya_arc(seen, pseudocounts, block.likelihood, block.name)

    def log_marginal(self, block: FittedBlock) -> float:
        """Dirichlet–multinomial, with pseudocounts of each class where they differ."""
        pseudocounts = pseudocounts_of(block.prior, tuple(c.name for c in block.columns), block.statistic.seen)
        if pseudocounts.ndim == 1:
            return super().log_marginal(block)
        return log_marginal_by_class(block.statistic.seen, pseudocounts, block.name)

    @property
    def leaves_out(self) -> bool:
        """Counts without a row have a closed form."""
        return True

    def leave_one_out(self, block: FittedBlock, cells: NDArray[Any], rows: LeftOutRows) -> Array:
        """Log probability of each row's events in every class, the row left out; missing cells are no events."""
        events = np.nan_to_num(cells.reshape(len(cells), -1))
        found = log_without(block.statistic.seen, block.prior, [c.name for c in block.columns], events, rows)
        return found + log_coefficients(events)[:, None]

    def log_base(self, block: FittedBlock) -> float:
        """Σ log n! / ∏ kᵢ!."""
        return log_ways(block.statistic, block.name)

    def totals(self, block: FittedBlock) -> dict[tuple[str, str], Totals]:
        """Events of each column."""
        return {(column.name, "sum"): block.statistic.seen[:, j] for j, column in enumerate(block.columns)}

    def sample(self, block: FittedBlock, classes: NDArray[np.int64], rng: np.random.Generator) -> SampledCells:
        """As many events a row as the class has on average, drawn into the columns by its probabilities."""
        seen = block.statistic.seen
        events = rng.poisson((seen.sum(1) / np.maximum(block.class_counts, 1e-300))[classes])
        probabilities = np.exp(block.likelihood.slope.T)
        drawn = rng.multinomial(events, (probabilities / probabilities.sum(1, keepdims=True))[classes]).astype(np.float64)
        return {column.name: drawn[:, j] for j, column in enumerate(block.columns)}

    def parameter_posteriors(self, block: FittedBlock) -> list[ParameterPosterior]:
        """Dirichlet(events + pseudocount)."""
        names, seen = [c.name for c in block.columns], block.statistic.seen
        alpha = seen + pseudocounts_of(block.prior, names, seen)
        return [DirichletPosterior(dict(zip(names, each.tolist(), strict=True))) for each in alpha]

    def marginals(self, posterior: ParameterPosterior, line: Mapping[str, Any]) -> dict[str, Distribution]:
        """The probability of the line's column."""
        return {"probability": posterior.marginal(line["column"])}

    def with_parameters(self, block: FittedBlock, by_class: Sequence[Mapping[Any, Any]]) -> FittedBlock:
        """The block with other probabilities of its columns."""
        share = np.array([[float(each[column.name]) for column in block.columns] for each in by_class])
        form = replace(block.likelihood, slope=np.ascontiguousarray(log(share).T))
        return replace(block, parameters=replace(block.parameters, likelihood=form))

    def distribution(self, parameters: Mapping[Any, float]) -> Any:
        """Where one event falls; `likely.distributions.Multinomial(n, probabilities)` has the counts of n events."""
        return discrete.Categorical(dict(parameters))

    def value_columns(self, names: list[str], table: Array, named: Sequence[Any]) -> tuple[list[str], Array]:
        """Columns that the prior names and the data lack are zero."""
        new = [str(name) for name in named if str(name) not in names]
        return [*names, *new], np.column_stack([table, np.zeros((len(table), len(new)))])

    def named_parameters(self, rows: Sequence[Mapping[str, Any]]) -> dict[Any, float]:
        """The probability of each column."""
        return {row["column"]: row["probability"] for row in rows}

    def log_likelihood(
        self, counted: Mapping[str, Array], columns: Sequence[Column], numbers: Array, weights: Array
    ) -> Callable[[Mapping[Any, float]], float]:
        """Σ log n! / ∏ kᵢ! + kᵢ log pᵢ."""
        seen = counted["seen"][0]
        ways = float(weights @ log_coefficients(numbers))
        return lambda p: ways + math.fsum(log_times(seen[i], p[c.name]) for i, c in enumerate(columns))
