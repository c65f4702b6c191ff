"""Defaults that all priors have, and the check of their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.conjugate import NormalPrior
from likely.errors import UsageError

Array = NDArray[np.float64]


class FixedPrior:
    """Defaults of all priors: fixed pseudocounts that name no values."""

    @property
    def background(self) -> float:
        """Pseudocounts distributed by the overall frequency of each value: none."""
        return 0.0

    @property
    def chosen(self) -> bool:
        """Whether the pseudocounts are chosen from the data: no, they are given."""
        return False

    @property
    def copies(self) -> Array | None:
        """Copies of each row, by class: one."""
        return None

    @property
    def named(self) -> tuple[Any, ...]:
        """The values that the prior names: they exist even where no row has them."""
        return ()

    @property
    def averaged(self) -> Any:
        """The prior whose pseudocounts give the posterior mean instead of the mode."""
        return self

    def for_classes(self, classes: Sequence[Any]) -> Any:
        """The prior as a family sees it, once the classes are known: the same in all of them."""
        return self


class CountPrior(FixedPrior):
    """Defaults of a prior of counts: it has no prior of mean and variance."""

    @property
    def normal(self) -> NormalPrior | None:
        """Prior of mean and variance: none."""
        return None


def non_negative(given: Any, what: str) -> float:
    """A finite number of zero or more; `what` names it in the error."""
    if isinstance(given, bool) or not isinstance(given, Real):
        raise UsageError(f"{what} must be a number or a prior, not {given!r}")
    value = float(given)
    if not (value >= 0 and math.isfinite(value)):
        raise UsageError(f"{what} is {value:g}: it must be zero or more, and finite")
    return value
