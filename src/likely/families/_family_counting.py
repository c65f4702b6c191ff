"""Protocol of a family, second part: what it counts, and the parameters that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from likely.families._family_settings import FamilySettings
from likely.families.base import BlockPrior, Encoded, Labels, Parameters, first_bad
from likely.families.statistics import Array, Statistic
from likely.schema import Column

if TYPE_CHECKING:
    from likely.families.family import Family


class FamilyCounting(FamilySettings):
    """How a family counts its columns, derives parameters, and is fitted by EM."""

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """The sufficient statistics of a group of blocks, one each; `labels` may be responsibilities, rows × classes.

        Parameters
        ----------
        rows : Encoded
            The cells of the blocks: codes, numbers or documents.
        labels : array
            The class of each row, negative where it has none; or responsibilities, rows × classes.
        weights : array
            The weight of each row.
        classes : int
            Number of classes.

        Returns
        -------
        list of Statistic
            One statistic a block.
        """
        self.cannot("be counted")

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """The first row whose number this family cannot count, and why.

        Parameters
        ----------
        name : str
            The column.
        numbers : array
            Its numbers, NaN where missing.

        Returns
        -------
        (int, str) or None
            Place of the first such row, and what is wrong with it.
        """
        return first_bad(np.isinf(numbers), "is not a finite number")

    def check_block(self, numbers: Array) -> tuple[int, str] | None:
        """The first row whose numbers do not fit together, and why.

        Parameters
        ----------
        numbers : array
            The numbers of the block, rows × columns.

        Returns
        -------
        (int, str) or None
            Place of the first such row, and what is wrong with it.
        """
        return None

    def truncate(self, statistic: Any) -> Any:
        """The statistic cut to the limits of the family, such as a number of words; called after every sum.

        Parameters
        ----------
        statistic : Statistic
            A sum of statistics.

        Returns
        -------
        Statistic
            The statistic that is kept.
        """
        return statistic

    def count_expected(self, likelihood: Any, rows: Encoded, responsibilities: Array) -> Statistic | None:
        """Expected statistic of rows with missing cells in an E-step; None where they add nothing.

        Parameters
        ----------
        likelihood : likelihood term
            The present parameters of the block.
        rows : Encoded
            Rows with missing cells.
        responsibilities : array
            Weighted responsibilities, rows × classes.

        Returns
        -------
        Statistic or None
            The expected statistic.
        """
        return None

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        statistics: Sequence[Any],
        priors: Sequence[BlockPrior],
        classes: Sequence[Any],
        edges: Sequence[Array | None] | None = None,
    ) -> list[Parameters]:
        """Parameters of a group of blocks from their statistics and priors; `edges` fixes bins that were cut before.

        Parameters
        ----------
        blocks : sequence of tuple of Column
            The columns of each block.
        statistics : sequence of Statistic
            One a block.
        priors : sequence of prior
            One a block.
        classes : sequence
            The labels.
        edges : sequence of array, or None, default=None
            Edges of the bins of each block, where they are fixed.

        Returns
        -------
        list of Parameters
            One a block.
        """
        self.cannot("have parameters")

    def not_generative(self, prior: BlockPrior) -> str:
        """Why the term of the family is not a log-likelihood of the column; empty where it is one.

        Parameters
        ----------
        prior : prior
            The prior of the block.

        Returns
        -------
        str
            The reason, or an empty text.
        """
        return ""

    def for_em(self, name: str, asked_for: bool) -> Family | None:
        """Family that EM counts by responsibilities in its place; None: the plain default of the column's kind.

        Parameters
        ----------
        name : str
            The column.
        asked_for : bool
            Whether the family was asked for, rather than chosen.

        Returns
        -------
        Family or None
            The family for EM.
        """
        return cast("Family", self)

    def with_known_variance(self, variance: float | None) -> Self:
        """The same family with a known variance; unchanged where it has none.

        Parameters
        ----------
        variance : float or None
            The variance; None where it is estimated.

        Returns
        -------
        Family
            The family with it.
        """
        return self

    def variance_prior(self, rows: float, variances: Sequence[float], parts: int) -> dict[str, Any] | None:
        """Settings of a prior that keeps variances away from zero in a mixture of so many parts; None: not needed.

        Parameters
        ----------
        rows : float
            Number of pseudo-rows.
        variances : sequence of float
            Variance of each column of numbers in the whole table.
        parts : int
            Number of components.

        Returns
        -------
        dict or None
            Settings of `Spread`.
        """
        return None
