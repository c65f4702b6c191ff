"""Protocol of a family, third part: the distribution of values alone, as `estimate` fits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from likely.bayes.parameter_posterior import ParameterPosterior
from likely.errors import UsageError
from likely.families._family_counting import FamilyCounting
from likely.families.base import BlockPrior
from likely.families.statistics import Array
from likely.schema import Column


class FamilyValues(FamilyCounting):
    """One distribution alone: its named parameters, and their likelihood."""

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

    def answers(self, values: Any) -> Any:
        """Values as `estimate` reads their numbers; a family of yes and no reads words too.

        Parameters
        ----------
        values : sequence
            The values that were given.

        Returns
        -------
        sequence
            The values as numbers, where they are words.
        """
        return values

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
