"""Protocol of the prior of one column: fixed pseudocounts, with the defaults of all priors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.bayes.conjugate import NormalPrior
from likely.errors import UsageError

Array = NDArray[np.float64]


class FixedPrior:
    """Defaults of all priors: fixed pseudocounts, the same for every value."""

    chosen: ClassVar[bool] = False  # whether the pseudocounts are chosen from the data

    @property
    def background(self) -> float:
        """Pseudocounts distributed by the overall frequency of each value: none."""
        return 0.0

    @property
    def gamma(self) -> tuple[float, float] | None:
        """Pseudo-events and pseudo-rows of a prior of rates."""
        return None

    @property
    def copies(self) -> Array | None:
        """Copies of each row, by class: one."""
        return None

    @property
    def named(self) -> tuple[Any, ...]:
        """Values with an explicit prior: they are in the domain even if no row has them."""
        return ()

    @property
    def averaged(self) -> Any:
        """The prior whose pseudocounts give the posterior mean instead of the mode."""
        return self

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """Pseudocount of each value.

        Parameters
        ----------
        values : sequence
            The values of a column.

        Returns
        -------
        array
            One pseudocount a value; of a prior by class, classes × values.
        """
        raise NotImplementedError

    def unseen(self, value_count: int) -> float:
        """Pseudocount of an unseen value.

        Parameters
        ----------
        value_count : int
            Number of values of the column.

        Returns
        -------
        float
            The pseudocount.
        """
        raise NotImplementedError

    def for_classes(self, classes: Sequence[Any]) -> Any:
        """The prior of each class, once the classes are known: here the same for all.

        Parameters
        ----------
        classes : sequence
            The labels.

        Returns
        -------
        prior
            The prior, which may have one for each class.
        """
        return self


class CountPrior(FixedPrior):
    """Defaults of a prior of counts."""

    normal: ClassVar[NormalPrior | None] = None  # prior of mean and variance


def non_negative(given: Any, what: str) -> float:
    """A finite number of zero or more; `what` names it in the error."""
    if isinstance(given, bool) or not isinstance(given, Real):
        raise UsageError(f"{what} must be a number or a prior, not {given!r}")
    value = float(given)
    if not (value >= 0 and math.isfinite(value)):
        raise UsageError(f"{what} is {value:g}: it must be zero or more, and finite")
    return value
