"""Protocol of a family, third part: what follows from its parameters, and the distribution of values alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.distribution import Distribution
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.errors import UsageError
from likely.families.base import BlockPrior
from likely.families.family_counting import FamilyCounting
from likely.families.fitted_block import FittedBlock, LeftOutRows, SampledCells
from likely.families.posterior_predictive import Arc
from likely.families.statistics import Array
from likely.schema import Column


class FamilyInference(FamilyCounting):
    """Evidence, samples and posteriors of a fitted block, and one distribution alone."""

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

    # ------------------------------------------------------------ one distribution alone

    def joint_posterior(self, names: Sequence[str], parts: Sequence[ParameterPosterior]) -> ParameterPosterior:
        """The posterior of several independent columns of this family, from those of each.

        Parameters
        ----------
        names : sequence of str
            The columns.
        parts : sequence of ParameterPosterior
            The posterior of each.

        Returns
        -------
        ParameterPosterior
            The joint posterior.
        """
        self.cannot("take several columns of values at once: estimate each column on its own")

    def value_columns(self, names: list[str], table: Array, named: Sequence[Any]) -> tuple[list[str], Array]:
        """Columns and their values as `estimate` counts them; `named` are outcomes that the prior names.

        Parameters
        ----------
        names : list of str
            Names of the columns.
        table : array
            The values, rows × columns.
        named : sequence
            Outcomes that the prior names.

        Returns
        -------
        (list of str, array)
            Names and values of the columns that are counted.
        """
        if self.single and table.shape[1] != 1:
            raise UsageError(f"the family {self.name} takes one column of values: estimate each column on its own")
        return names, table

    def named_parameters(self, rows: Sequence[Mapping[str, Any]]) -> dict[Any, float]:
        """The parameters of one class by name, from its table.

        Parameters
        ----------
        rows : sequence of mapping
            The lines of the table of parameters of one class.

        Returns
        -------
        dict
            Parameter → value.
        """
        self.cannot("be estimated alone")

    def estimated(self, rows: Sequence[Mapping[str, Any]], statistic: Any, prior: BlockPrior) -> dict[Any, float]:
        """The parameters of values on their own, by name; a classifier may have to replace a degenerate one.

        Parameters
        ----------
        rows : sequence of mapping
            The lines of the table of parameters.
        statistic : Statistic
            What was counted.
        prior : prior
            The prior of the parameters.

        Returns
        -------
        dict
            Parameter → value.
        """
        return self.named_parameters(rows)

    def is_possible(self, name: Any, value: Any) -> bool:
        """Whether a parameter can have this value: by default a probability.

        Parameters
        ----------
        name : str
            The parameter.
        value : float
            Its value.

        Returns
        -------
        bool
            True if it can.
        """
        return bool(0.0 <= value <= 1.0)

    def log_likelihood(
        self, counted: Mapping[str, Array], columns: Sequence[Column], numbers: Array, weights: Array
    ) -> Callable[[Mapping[Any, float]], float]:
        """log P(values | parameters) as a function of the named parameters.

        Parameters
        ----------
        counted : mapping of str to array
            Arrays of the statistic of one class.
        columns : sequence of Column
            The columns of the block.
        numbers : array
            The values, rows × columns, where they are needed besides the statistic.
        weights : array
            Their weights.

        Returns
        -------
        callable
            From parameters by name to the log-likelihood, in nats.
        """
        self.cannot("be estimated alone")

    def parameter_range(self, name: Any, at: Mapping[Any, float], n: float) -> tuple[float, float]:
        """The range in which the likelihood curve of a parameter is drawn.

        Parameters
        ----------
        name : str
            The parameter.
        at : mapping
            Parameters by name where the likelihood has its maximum.
        n : float
            Number of values.

        Returns
        -------
        (float, float)
            Both ends.
        """
        return 0.0, 1.0
