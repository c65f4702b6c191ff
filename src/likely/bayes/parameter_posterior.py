"""The posterior of parameters: what all conjugate posteriors offer, from the marginal distribution of each parameter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.distribution import Distribution
from likely.errors import UsageError

Array = NDArray[np.float64]
Interval = tuple[float, float]


class ParameterPosterior:
    """The posterior of one or several parameters; each parameter has a marginal distribution."""

    family: str

    @property
    def marginals(self) -> dict[Any, Distribution]:
        """The marginal posterior of each parameter, by its name."""
        raise NotImplementedError

    def marginal(self, name: Any) -> Distribution:
        """The marginal posterior of one parameter.

        Parameters
        ----------
        name : str or value
            The parameter, one of `marginals`.

        Returns
        -------
        Distribution
            Its density, distribution function, quantiles and draws.
        """
        if name not in self.marginals:
            raise UsageError(f"there is no parameter {name!r}: choose one of {list(self.marginals)}")
        return self.marginals[name]

    @property
    def mean(self) -> dict[Any, float]:
        """The posterior mean of each parameter."""
        return {name: each.mean for name, each in self.marginals.items()}

    @property
    def mode(self) -> dict[Any, float]:
        """The joint mode of the posterior: the MAP estimate."""
        return {name: each.mode for name, each in self.marginals.items()}

    def interval(self, level: float = 0.95) -> dict[Any, Interval]:
        """A central credible interval for each parameter.

        Parameters
        ----------
        level : float, default=0.95
            Probability inside the interval.

        Returns
        -------
        dict
            Lower and upper end by parameter.
        """
        return {name: each.interval(level) for name, each in self.marginals.items()}

    def density(self, name: Any = None, points: int = 201) -> list[tuple[float, float]]:
        """Points of the marginal density of one parameter.

        Parameters
        ----------
        name : str, value or None, default=None
            The parameter; None: the first.
        points : int, default=201
            Number of points.

        Returns
        -------
        list of tuple
            Value and density, in order.
        """
        return self.marginal(next(iter(self.marginals)) if name is None else name).curve(points)

    @property
    def predictive(self) -> Any:
        """The distribution of the next value, with the parameters integrated out."""
        raise NotImplementedError

    def draw(self, n: int, seed: Any = None) -> dict[Any, Array]:
        """Random parameters from the posterior.

        Parameters
        ----------
        n : int
            Number of draws.
        seed : int, optional
            Makes the draws repeatable.

        Returns
        -------
        dict
            An array of n by parameter.
        """
        raise NotImplementedError

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Mean, mode and interval of each parameter as plain data.

        Parameters
        ----------
        level : float, default=0.95
            Probability inside the intervals.

        Returns
        -------
        dict
            `family`, `level`, and `parameters` as a list of dicts.
        """
        mode, interval = self.mode, self.interval(level)
        return {
            "family": self.family,
            "level": level,
            "parameters": [
                {"parameter": str(name), "mean": mean, "mode": number_or_none(mode[name]), "interval": list(interval[name])}
                for name, mean in self.mean.items()
            ],
        }

    def __str__(self) -> str:
        width = max(9, *(len(str(name)) for name in self.marginals))
        lines = [f"{self.family} posterior", f"{'parameter':{width}}  {'mean':>12}  {'mode':>12}  {'95 % interval':>27}"]
        mode, interval = self.mode, self.interval()
        lines += [
            f"{name!s:{width}}  {mean:12.6g}  {mode[name]:12.6g}  {interval[name][0]:12.6g} … {interval[name][1]:12.6g}"
            for name, mean in self.mean.items()
        ]
        return "\n".join(lines)


def number_or_none(x: float) -> float | None:
    """The number, None for NaN."""
    return None if math.isnan(x) else x
