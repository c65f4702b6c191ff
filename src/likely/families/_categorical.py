"""Categorical columns: a probability for each value in each class."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.bayes import discrete
from likely.bayes.conjugate import DirichletPosterior
from likely.bayes.distribution import Distribution
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.families.base import BlockPrior, Encoded, Labels, Parameters, pseudocounts_of
from likely.families.family import Family, FittedBlock, LeftOutRows, SampledCells, Totals
from likely.families.posterior_predictive import Arc
from likely.families.statistics import Array, Counts, Statistic
from likely.families.value_tables import (
    count_tables,
    dirichlet_arc,
    draw_places,
    log_marginal_by_class,
    log_times,
    refuse_by_class,
    table_information,
    table_parameters,
    table_without,
    value_totals,
    values_at,
    weighted_logs,
    with_table,
)
from likely.schema import CATEGORY, Column


@dataclass(frozen=True)
class Categorical(Family):
    """Categorical distribution over any hashable values; no encoding needed.

    An unseen value has the prior's pseudocount, and is flagged in explanations.
    """

    name: ClassVar[str] = "categorical"
    column_kind: ClassVar[str | None] = CATEGORY
    reads_codes: ClassVar[bool] = True
    sums_to_one: ClassVar[bool] = True
    priors_by_class: ClassVar[bool] = True

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """The weight of each value in each class, for all columns in one pass."""
        return list(count_tables(rows, labels, weights, classes)[0])

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        statistics: Sequence[Counts],
        priors: Sequence[BlockPrior],
        classes: Sequence[Any],
        edges: Sequence[Array | None] | None = None,
    ) -> list[Parameters]:
        """The probability of each value: (count + pseudocount) / total."""
        return [
            table_parameters(column, column.values, counts.seen, prior, classes)
            for (column,), counts, prior in zip(blocks, statistics, priors, strict=True)
        ]

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """Any value can be counted."""
        return None

    def not_generative(self, prior: BlockPrior) -> str:
        """With a pseudocount chosen by leave-one-out, the term is a weight of evidence and not a log-likelihood."""
        return "is evidence for the classes and no density" if prior.chosen else ""

    def log_prior_density(self, block: FittedBlock) -> float:
        """The log density of a Dirichlet prior."""
        values = block.columns[0].values
        pseudocounts = pseudocounts_of(block.prior, values, block.statistic.seen)
        return weighted_logs(pseudocounts, block.likelihood.table[: len(values)].T)

    def arc(self, block: FittedBlock) -> Arc | None:
        """Dirichlet–multinomial marginal likelihoods: by class, and of all classes together."""
        seen, (column,) = block.statistic.seen, block.columns
        pseudocounts = pseudocounts_of(block.prior, column.values, seen)
        refuse_by_class(pseudocounts, block.name)
        together = Counts(seen.sum(0, keepdims=True))
        alone: Any = self.derive([block.columns], [together], [block.prior], ("all",))[0].likelihood
        return dirichlet_arc(seen, pseudocounts, block.likelihood, alone.table, block.name)

    def log_marginal(self, block: FittedBlock) -> float:
        """Dirichlet–multinomial, with pseudocounts of each class where they differ."""
        pseudocounts = pseudocounts_of(block.prior, block.columns[0].values, block.statistic.seen)
        if pseudocounts.ndim == 1:
            return super().log_marginal(block)
        return log_marginal_by_class(block.statistic.seen, pseudocounts, block.name)

    def totals(self, block: FittedBlock) -> dict[tuple[str, str], Totals]:
        """Rows of each value."""
        return value_totals(block.columns[0], block.statistic.seen)

    @property
    def leaves_out(self) -> bool:
        """Counts without a row have a closed form."""
        return True

    def leave_one_out(self, block: FittedBlock, cells: NDArray[Any], rows: LeftOutRows) -> Array:
        """Log probability of each row's value (its code) in every class, the row left out."""
        return table_without(block.statistic.seen, block.prior, block.columns[0].values, cells, rows)

    def mutual_information(self, block: FittedBlock) -> float | None:
        """From the table of counts."""
        return table_information(block.statistic.seen)

    def sample(self, block: FittedBlock, classes: NDArray[np.int64], rng: np.random.Generator) -> SampledCells:
        """Values drawn by their class-conditional probabilities."""
        (column,) = block.columns
        table: Any = block.parameters.rows
        probabilities = np.exp(table.logs[:, : len(column.values)].T)
        return {column.name: values_at(column, draw_places(probabilities, classes, rng))}

    def parameter_posteriors(self, block: FittedBlock) -> list[ParameterPosterior]:
        """Dirichlet(count + pseudocount)."""
        values, seen = block.columns[0].values, block.statistic.seen
        alpha = seen + pseudocounts_of(block.prior, values, seen)
        return [DirichletPosterior(dict(zip(values, each.tolist(), strict=True))) for each in alpha]

    def marginals(self, posterior: ParameterPosterior, line: Mapping[str, Any]) -> dict[str, Distribution]:
        """The probability of the line's value."""
        return {"probability": posterior.marginal(line["value"])}

    def with_parameters(self, block: FittedBlock, by_class: Sequence[Mapping[Any, Any]]) -> FittedBlock:
        """The block with other probabilities of its values."""
        return with_table(block, block.columns[0].values, by_class)

    def distribution(self, parameters: Mapping[Any, float]) -> Any:
        """Probabilities of the values."""
        return discrete.Categorical(dict(parameters))

    def named_parameters(self, rows: Sequence[Mapping[str, Any]]) -> dict[Any, float]:
        """The probability of each value."""
        return {row["value"]: row["probability"] for row in rows}

    def log_likelihood(
        self, counted: Mapping[str, Array], columns: Sequence[Column], numbers: Array, weights: Array
    ) -> Callable[[Mapping[Any, float]], float]:
        """Values in one order, so without the multinomial coefficient."""
        seen = counted["seen"][0]
        return lambda p: math.fsum(log_times(seen[i], p[value]) for i, value in enumerate(columns[0].values))
