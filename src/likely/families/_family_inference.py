"""Protocol of a family, last part: what follows from its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.distribution import Distribution
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.errors import UsageError
from likely.families._family_values import FamilyValues
from likely.families._fitted_block import FittedBlock, LeftOutRows, SampledCells, Totals
from likely.families.posterior_predictive import Arc
from likely.families.statistics import Array


class FamilyInference(FamilyValues):
    """Evidence, samples and posteriors of a fitted block."""

    def log_prior_density(self, block: FittedBlock) -> float:
        """Log density of the parameters under their prior, up to a constant: the penalty of EM's objective.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.

        Returns
        -------
        float
            The log density, in nats.
        """
        self.cannot("be learned by EM")

    def arc(self, block: FittedBlock) -> Arc | None:
        """Marginal likelihoods with and without dependence on the class; None where the family has no closed form.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.

        Returns
        -------
        Arc or None
            Both marginal likelihoods.
        """
        return None

    def log_marginal(self, block: FittedBlock) -> float:
        """Log marginal likelihood of the block given the classes, without factors that do not depend on the parameters.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.

        Returns
        -------
        float
            The log marginal likelihood, in nats.
        """
        arc = self.arc(block)
        if arc is None:
            self.cannot("give a marginal likelihood in closed form")
        return arc.log_dependent

    def log_base(self, block: FittedBlock) -> float:
        """Log of the factors of the block's probability that no parameter changes, such as 1 / x! of counts.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.

        Returns
        -------
        float
            Their logarithm, in nats.
        """
        return 0.0

    def log_marginal_together(self, blocks: Sequence[FittedBlock]) -> float:
        """Log marginal likelihood of all blocks of this family; a sum, unless they share parameters.

        Parameters
        ----------
        blocks : sequence of FittedBlock
            The blocks of the family.

        Returns
        -------
        float
            The log marginal likelihood, in nats.
        """
        return sum(self.log_marginal(block) + self.log_base(block) for block in blocks)

    def prior_from_data(self, block: FittedBlock) -> str:
        """What of the prior is estimated from the rows, so that a marginal likelihood uses them twice; empty if nothing.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.

        Returns
        -------
        str
            What is estimated.
        """
        return "pseudocounts by the frequency of the values" if block.prior.background else ""

    def totals(self, block: FittedBlock) -> dict[tuple[str, str], Totals]:
        """What was counted by class, by column and kind of total, in a form that other families of the column share.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.

        Returns
        -------
        dict
            (column, kind of total) → totals by class.
        """
        return {}

    def log_maximum(self, block: FittedBlock) -> float:
        """Log-likelihood of the block at its parameters, without factors that do not depend on the parameters.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.

        Returns
        -------
        float
            The log-likelihood, in nats.
        """
        arrays, classes = block.statistic.arrays(), [row["class"] for row in block.parameters.rows]
        nothing = np.zeros((0, max(len(block.columns), 1)))
        total = 0.0
        for c, label in enumerate(dict.fromkeys(classes)):
            rows = [row for row in block.parameters.rows if row["class"] == label]
            counted = {name: array[c : c + 1] for name, array in arrays.items()}
            of = self.log_likelihood(counted, block.columns, nothing, np.zeros(0))
            total += of(self.named_parameters(rows))
        return total

    def arc_probability(self, block: FittedBlock) -> float | None:
        """Posterior probability that the block depends on the class; None where family or prior has none.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.

        Returns
        -------
        float or None
            The probability.
        """
        try:
            arc = self.arc(block)
        except UsageError:  # an improper prior has no marginal likelihood
            return None
        return arc.probability if arc else None

    @property
    def leaves_out(self) -> bool:
        """Whether the leave-one-out likelihood of a row has a closed form."""
        return False

    def leave_one_out(self, block: FittedBlock, cells: NDArray[Any], rows: LeftOutRows) -> Array:
        """Log-likelihood of each row's cell in every class, the row left out.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.
        cells : array
            The column as codes or numbers; of a block of several columns a matrix with a column each. NaN, or a code outside
            the values, is missing.
        rows : LeftOutRows
            Class of each row, and the weight that is left out.

        Returns
        -------
        array
            Log-likelihoods, rows × classes.
        """
        self.cannot("leave rows out in closed form", block.name)

    def mutual_information(self, block: FittedBlock) -> float | None:
        """The mutual information of block and class, in nats; None where the family has no sum or integral for it.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.

        Returns
        -------
        float or None
            The mutual information, in nats.
        """
        return None

    def sample(self, block: FittedBlock, classes: NDArray[np.int64], rng: np.random.Generator) -> SampledCells:
        """A cell of every column of the block for each of the classes, drawn from its distribution.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.
        classes : array
            Place of the class of each row that is drawn.
        rng : numpy.random.Generator
            The source of random numbers.

        Returns
        -------
        dict
            Column → cells.
        """
        self.cannot("be sampled from")

    def parameter_posteriors(self, block: FittedBlock) -> list[ParameterPosterior]:
        """Conjugate posterior of the parameters by class; the prior is that of the posterior mean.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.

        Returns
        -------
        list of ParameterPosterior
            One a class.
        """
        self.cannot("give a posterior of its parameters in closed form")

    def marginals(self, posterior: ParameterPosterior, line: Mapping[str, Any]) -> dict[str, Distribution]:
        """The marginal posterior of each figure in one line of the table of parameters, by the name of its cell.

        Parameters
        ----------
        posterior : ParameterPosterior
            The posterior of the parameters of one class.
        line : mapping
            A line of the table of parameters.

        Returns
        -------
        dict
            Name of the cell → distribution.
        """
        return {name: posterior.marginals[name] for name in line if name in posterior.marginals}

    def with_parameters(self, block: FittedBlock, by_class: Sequence[Mapping[Any, Any]]) -> FittedBlock:
        """The block with other parameters, one mapping a class, named as in the posterior of the parameters.

        Parameters
        ----------
        block : FittedBlock
            The block: columns, statistic, prior and parameters.
        by_class : sequence of mapping
            Parameters of each class by name.

        Returns
        -------
        FittedBlock
            The block with these parameters.
        """
        self.cannot("take parameters drawn from their posterior")

    def distribution(self, parameters: Mapping[Any, float]) -> Any:
        """The distribution of one value with these named parameters.

        Parameters
        ----------
        parameters : mapping
            Parameters by name.

        Returns
        -------
        Distribution
            The distribution of a value.
        """
        self.cannot("give the distribution of a value alone")
