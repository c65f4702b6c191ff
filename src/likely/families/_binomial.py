"""Columns of successes among trials: a probability of success in each class."""

from __future__ import annotations

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
from likely.families.base import BlockPrior, Encoded, Labels, Parameters, first_bad, log, pseudocounts_of
from likely.families.base_measures import BinomialMeasure, log_coefficients
from likely.families.family import Family, FittedBlock, LeftOutRows, SampledCells, Totals
from likely.families.likelihoods import LinearTerm
from likely.families.posterior_predictive import Arc
from likely.families.statistics import Array, Counts, Statistic
from likely.families.value_tables import log_times, weighted_logs
from likely.schema import Column


@dataclass(frozen=True)
class Binomial(Family):
    """Binomial distribution: k of n, one probability of success per class.

    Parameters
    ----------
    trials : str or int
        The column that holds n, or one number for all rows.
    """

    trials: str | int

    name: ClassVar[str] = "binomial"
    single: ClassVar[bool] = False
    strict: ClassVar[bool] = True
    shorthand: ClassVar[str] = "trials"
    columns_have_roles: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.trials, bool) or (not isinstance(self.trials, str) and not self.trials >= 0):
            raise UsageError(
                f"Binomial(trials={self.trials!r}) is not known: name the column of trials, or their number"
            )

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """Failures and successes, by class."""
        pair = self.pair(rows.numbers)
        events = np.column_stack([pair[:, 1] - pair[:, 0], pair[:, 0]])
        return [event_counts(sums(events, labels, weights, classes), log_coefficients(events), labels, weights)]

    def pair(self, numbers: Array) -> Array:
        """Successes and trials of every row, both missing where one of them is.

        Parameters
        ----------
        numbers : array
            Successes, and where they are a column the trials, one row each.

        Returns
        -------
        array
            Rows × (successes, trials).
        """
        hits = numbers[:, 0]
        trials = numbers[:, 1] if isinstance(self.trials, str) else np.full(len(hits), float(self.trials))
        pair = np.column_stack([hits, trials])
        pair[np.isnan(pair).any(1)] = np.nan
        return pair

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        statistics: Sequence[Counts],
        priors: Sequence[BlockPrior],
        classes: Sequence[Any],
        edges: Sequence[Array | None] | None = None,
    ) -> list[Parameters]:
        """Probability of success: (successes + pseudocount) / (trials + pseudocounts)."""
        (columns,), (counts,), (prior,) = blocks, statistics, priors
        trials = counts.seen + pseudocounts_of(prior, (False, True), counts.seen)
        whole = trials.sum(1, keepdims=True)
        chance = np.divide(trials, whole, out=np.full_like(trials, 0.5), where=whole > 0)
        rows = tuple(
            {
                "column": columns[0].name,
                "class": label,
                "count": float(counts.seen[c].sum()),
                "probability": float(chance[c, 1]),
            }
            for c, label in enumerate(classes)
        )
        slope = log(chance.T[::-1])
        measure = BinomialMeasure(None if isinstance(self.trials, str) else self.trials)
        likelihood = LinearTerm(slope, np.zeros_like(slope), measure)
        return [Parameters(tuple(c.name for c in columns), likelihood, rows, len(classes), len(classes))]

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """Counts only."""
        return not_a_count(numbers)

    def check_block(self, numbers: Array) -> tuple[int, str] | None:
        """At most as many successes as trials."""
        pair = self.pair(numbers)
        return first_bad(pair[:, 0] > pair[:, 1], "is more than the trials")

    @classmethod
    def example(cls) -> Family:
        """Nine trials in every row."""
        return cls(9)

    def counting_settings(self) -> dict[str, Any]:
        """The trials are part of what is counted."""
        return self.settings()

    @property
    def for_each_column(self) -> bool:
        """With one number of trials for all rows, each column is a block of its own."""
        return isinstance(self.trials, int)

    def block_columns(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The column of successes, and the column of trials."""
        return (*names, self.trials) if isinstance(self.trials, str) and len(names) == 1 else names

    def aliases(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The name of the column of successes."""
        return names[:1]

    def log_prior_density(self, block: FittedBlock) -> float:
        """The log density of a Beta prior."""
        pseudocounts = pseudocounts_of(block.prior, (False, True), block.statistic.seen)
        return weighted_logs(pseudocounts, block.likelihood.slope[::-1].T)

    def arc(self, block: FittedBlock) -> Arc | None:
        """Beta–binomial marginal likelihoods: by class, and of all classes together."""
        seen = block.statistic.seen
        pseudocounts = pseudocounts_of(block.prior, (False, True), seen)
        return polya_arc(seen, pseudocounts, block.likelihood, block.name, reverse=True)

    @property
    def leaves_out(self) -> bool:
        """Counts without a row have a closed form."""
        return True

    def leave_one_out(self, block: FittedBlock, cells: NDArray[Any], rows: LeftOutRows) -> Array:
        """Log probability of each row's successes in every class, the row left out; 0 where they or the trials are missing."""
        x, base = block.likelihood.base.prepare(cells.reshape(len(cells), -1))
        events = np.nan_to_num(x[:, ::-1])  # failures, then successes, as they are counted
        found: Array = log_without(block.statistic.seen, block.prior, (False, True), events, rows)
        found += base.sum(1, keepdims=True)
        return found

    def log_base(self, block: FittedBlock) -> float:
        """Σ log (n choose k)."""
        return log_ways(block.statistic, block.name)

    def totals(self, block: FittedBlock) -> dict[tuple[str, str], Totals]:
        """Successes and failures."""
        name, (failures, successes) = block.columns[0].name, block.statistic.seen.T
        return {(name, "sum"): successes, (name, "failures"): failures}

    def sample(self, block: FittedBlock, classes: NDArray[np.int64], rng: np.random.Generator) -> SampledCells:
        """Successes drawn from the binomial of the class, of Poisson trials with the mean of the class where these vary."""
        seen, trials = block.statistic.seen, np.full(len(classes), self.trials)
        if isinstance(self.trials, str):
            trials = rng.poisson((seen.sum(1) / np.maximum(block.class_counts, 1e-300))[classes])
        drawn = rng.binomial(trials, np.exp(block.likelihood.slope[0])[classes])
        both = (drawn.astype(np.float64), trials.astype(np.float64))
        return {column.name: cells for column, cells in zip(block.columns, both, strict=False)}

    def parameter_posteriors(self, block: FittedBlock) -> list[ParameterPosterior]:
        """Beta(successes + pseudocount, failures + pseudocount).

        The predictive is that of the next value where the number of trials is given for all, else that of one more trial.
        """
        seen = block.statistic.seen
        alpha = seen + pseudocounts_of(block.prior, (False, True), seen)
        trials = 1 if isinstance(self.trials, str) else int(self.trials)
        next_one = [discrete.BetaBinomial(trials, float(yes), float(no)) if no + yes > 0 else None for no, yes in alpha]
        return [
            DirichletPosterior({False: float(no), True: float(yes)}, (True,), {True: "p"}, following)
            for (no, yes), following in zip(alpha, next_one, strict=True)
        ]

    def marginals(self, posterior: ParameterPosterior, line: Mapping[str, Any]) -> dict[str, Distribution]:
        """The chance of success."""
        return {"probability": posterior.marginals["p"]}

    def with_parameters(self, block: FittedBlock, by_class: Sequence[Mapping[Any, Any]]) -> FittedBlock:
        """The block with other chances of success."""
        chance = np.array([float(each["p"]) for each in by_class])
        form = replace(block.likelihood, slope=log(np.array([chance, 1.0 - chance])))
        return replace(block, parameters=replace(block.parameters, likelihood=form))

    def distribution(self, parameters: Mapping[Any, float]) -> Any:
        """Successes among the trials, where their number is given for all rows."""
        if isinstance(self.trials, str):
            self.cannot("give the distribution of a value without a number of trials; name one, as in Binomial(20)")
        return discrete.Binomial(self.trials, parameters["p"])

    def value_columns(self, names: list[str], table: Array, named: Sequence[Any]) -> tuple[list[str], Array]:
        """Pairs of successes and trials, or successes alone. A column with the name of the trials is the trials."""
        if not isinstance(self.trials, str):
            return super().value_columns(names, table, named)
        if table.shape[1] != 2:
            raise UsageError(
                f"Binomial({self.trials!r}) is estimated from pairs (successes, trials), not from {table.shape[1]} columns: "
                "pass [(3, 4), ...], or one number of trials for all values, as in Binomial(20)"
            )
        return ["k", "n"], table[:, ::-1] if names[0] == self.trials else table

    def named_parameters(self, rows: Sequence[Mapping[str, Any]]) -> dict[Any, float]:
        """`p`, the probability of success."""
        return {"p": rows[0]["probability"]}

    def log_likelihood(
        self, counted: Mapping[str, Array], columns: Sequence[Column], numbers: Array, weights: Array
    ) -> Callable[[Mapping[Any, float]], float]:
        """Σ log (n choose k) + k log p + (n − k) log (1 − p)."""
        failures, successes = counted["seen"][0]
        k, n = self.pair(numbers).T
        ways = float(weights @ log_coefficients(np.column_stack([n - k, k])))
        return lambda p: log_times(failures, 1 - p["p"]) + log_times(successes, p["p"]) + ways
