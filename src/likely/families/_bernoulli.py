"""Bernoulli columns: a probability of yes in each class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.bayes import discrete, outcomes
from likely.bayes.conjugate import DirichletPosterior, IndependentPosterior, OneMinus
from likely.bayes.distribution import Distribution
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.families.base import BlockPrior, Encoded, Labels, Parameters, pseudocounts_of
from likely.families.family import Family, FittedBlock, LeftOutRows, SampledCells, Totals
from likely.families.likelihoods import YesNoTable, yes_or_no
from likely.families.posterior_predictive import Arc
from likely.families.statistics import Array, Counts, Statistic
from likely.families.value_tables import (
    count_tables,
    dirichlet_arc,
    log_marginal_by_class,
    log_times,
    refuse_by_class,
    table_information,
    table_parameters,
    table_without,
    weighted_logs,
    with_table,
)
from likely.schema import Column

NO_YES = (False, True)
ANSWERS = (("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t"))


@dataclass(frozen=True)
class Bernoulli(Family):
    """Bernoulli distribution: True, or a number above zero, is yes."""

    name: ClassVar[str] = "bernoulli"
    strict: ClassVar[bool] = True
    priors_by_class: ClassVar[bool] = True

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """The weight of no and of yes in each class."""
        codes = yes_or_no(rows.numbers)
        width = codes.shape[1]
        binary = Encoded(codes, np.zeros(width, np.int64), np.full(width, 2, np.int64), rows.numbers[:, :0])
        return list(count_tables(binary, labels, weights, classes)[0])

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        statistics: Sequence[Counts],
        priors: Sequence[BlockPrior],
        classes: Sequence[Any],
        edges: Sequence[Array | None] | None = None,
    ) -> list[Parameters]:
        """The probability of yes: (count + pseudocount) / total."""
        return [
            table_parameters(column, NO_YES, counts.seen, prior, classes, kind=YesNoTable)
            for (column,), counts, prior in zip(blocks, statistics, priors, strict=True)
        ]

    def not_generative(self, prior: BlockPrior) -> str:
        """With a pseudocount chosen by leave-one-out, the term is a weight of evidence and not a log-likelihood."""
        return "is evidence for the classes and no density" if prior.chosen else ""

    def log_prior_density(self, block: FittedBlock) -> float:
        """The log density of a Beta prior."""
        pseudocounts = pseudocounts_of(block.prior, NO_YES, block.statistic.seen)
        return weighted_logs(pseudocounts, block.likelihood.table[:2].T)

    def arc(self, block: FittedBlock) -> Arc | None:
        """Beta–Bernoulli marginal likelihoods: by class, and of all classes together."""
        seen = block.statistic.seen
        pseudocounts = pseudocounts_of(block.prior, NO_YES, seen)
        refuse_by_class(pseudocounts, block.name)
        together = Counts(seen.sum(0, keepdims=True))
        alone: Any = self.derive([block.columns], [together], [block.prior], ("all",))[0].likelihood
        return dirichlet_arc(seen, pseudocounts, block.likelihood, alone.table, block.name)

    def log_marginal(self, block: FittedBlock) -> float:
        """Dirichlet–multinomial, with pseudocounts of each class where they differ."""
        pseudocounts = pseudocounts_of(block.prior, NO_YES, block.statistic.seen)
        if pseudocounts.ndim == 1:
            return super().log_marginal(block)
        return log_marginal_by_class(block.statistic.seen, pseudocounts, block.name)

    def totals(self, block: FittedBlock) -> dict[tuple[str, str], Totals]:
        """Rows, and those of yes."""
        name, seen = block.name, block.statistic.seen
        return {(name, "rows"): seen.sum(1), (name, "yes"): seen[:, 1]}

    @property
    def leaves_out(self) -> bool:
        """Counts without a row have a closed form."""
        return True

    def leave_one_out(self, block: FittedBlock, cells: NDArray[Any], rows: LeftOutRows) -> Array:
        """Log probability of each row's answer (a number) in every class, the row left out."""
        return table_without(block.statistic.seen, block.prior, NO_YES, yes_or_no(cells), rows)

    def mutual_information(self, block: FittedBlock) -> float | None:
        """From the table of counts."""
        return table_information(block.statistic.seen)

    def sample(self, block: FittedBlock, classes: NDArray[np.int64], rng: np.random.Generator) -> SampledCells:
        """1 with the probability of yes, else 0."""
        table: Any = block.parameters.rows
        yes = np.exp(table.logs[:, 1])[classes]
        return {block.columns[0].name: (rng.random(len(classes)) < yes).astype(np.float64)}

    def parameter_posteriors(self, block: FittedBlock) -> list[ParameterPosterior]:
        """Beta(yes + pseudocount, no + pseudocount)."""
        seen = block.statistic.seen
        alpha = seen + pseudocounts_of(block.prior, NO_YES, seen)
        next_one = [discrete.Binomial(1, float(yes / (no + yes))) if no + yes > 0 else None for no, yes in alpha]
        return [
            DirichletPosterior(dict(zip(NO_YES, each.tolist(), strict=True)), (True,), {True: "p"}, following)
            for each, following in zip(alpha, next_one, strict=True)
        ]

    def marginals(self, posterior: ParameterPosterior, line: Mapping[str, Any]) -> dict[str, Distribution]:
        """The probability of yes or of no."""
        p = posterior.marginals["p"]
        return {"probability": p if line["value"] is True else OneMinus(p)}

    def with_parameters(self, block: FittedBlock, by_class: Sequence[Mapping[Any, Any]]) -> FittedBlock:
        """The block with other probabilities of yes."""
        return with_table(block, NO_YES, [{False: 1.0 - each["p"], True: each["p"]} for each in by_class])

    def distribution(self, parameters: Mapping[Any, float]) -> Any:
        """One trial, or one of each column."""
        if parameters.keys() != {"p"}:
            return outcomes.MultivariateBernoulli(dict(parameters))
        return discrete.Binomial(1, parameters["p"])

    def value_columns(self, names: list[str], table: Array, named: Sequence[Any]) -> tuple[list[str], Array]:
        """One column, or several that are independent: a multivariate Bernoulli variable."""
        return names, table

    def joint_posterior(self, names: Sequence[str], parts: Sequence[ParameterPosterior]) -> ParameterPosterior:
        """A Beta distribution for each column."""
        return IndependentPosterior({name: part.marginals["p"] for name, part in zip(names, parts, strict=True)})

    def answers(self, values: Any) -> Any:
        """Words for yes and no as 1 and 0; anything else as it is."""
        cells = list(values) if hasattr(values, "__iter__") and not isinstance(values, str | bytes) else [values]
        words = {cell.strip().casefold() for cell in cells if isinstance(cell, str)}
        if not words or not any(words <= {no, yes} for no, yes in ANSWERS):
            return values
        yes = {pair[1] for pair in ANSWERS}
        return [float(cell.strip().casefold() in yes) if isinstance(cell, str) else cell for cell in cells]

    def named_parameters(self, rows: Sequence[Mapping[str, Any]]) -> dict[Any, float]:
        """`p`, the probability of yes."""
        return {"p": next(row["probability"] for row in rows if row["value"] is True)}

    def log_likelihood(
        self, counted: Mapping[str, Array], columns: Sequence[Column], numbers: Array, weights: Array
    ) -> Callable[[Mapping[Any, float]], float]:
        """Σ log p over yes, log (1 − p) over no."""
        no, yes = counted["seen"][0]
        return lambda p: log_times(no, 1 - p["p"]) + log_times(yes, p["p"])
