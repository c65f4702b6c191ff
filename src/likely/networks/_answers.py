"""Result of a query of a numeric node: a mixture of normals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NormalMixture:
    """The distribution of a numeric node: a normal for each configuration of the categorical nodes it depends on.

    Parameters
    ----------
    weights, means, variances : arrays
        Of the components.

    """

    weights: Array
    means: Array
    variances: Array

    @property
    def mean(self) -> float:
        """The mean of the mixture."""
        return float(self.weights @ self.means)

    @property
    def variance(self) -> float:
        """The variance of the mixture."""
        return float(self.weights @ (self.variances + (self.means - self.mean) ** 2))

    def density(self, x: Any) -> Array:
        """The density at some points."""
        points = np.asarray(x, dtype=np.float64)[..., None]
        densities = np.exp(-0.5 * (points - self.means) ** 2 / self.variances) / np.sqrt(2 * np.pi * self.variances)
        made: Array = densities @ self.weights
        return made

    def cdf(self, x: float) -> float:
        """The probability of a number that is not above x."""
        below = [0.5 * math.erfc((m - x) / math.sqrt(2 * v)) for m, v in zip(self.means, self.variances, strict=True)]
        return float(self.weights @ np.array(below))

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """The central interval that holds so much probability."""
        return self.quantile((1 - probability) / 2), self.quantile((1 + probability) / 2)

    def quantile(self, probability: float) -> float:
        """The number below which so much probability lies, by bisection."""
        deviations = np.sqrt(self.variances)
        low, high = float((self.means - 40 * deviations).min()), float((self.means + 40 * deviations).max())
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if self.cdf(middle) < probability else (low, middle)
        return (low + high) / 2

    def __str__(self) -> str:
        return f"mean {self.mean:.6g}, standard deviation {math.sqrt(self.variance):.6g} ({len(self.weights)} components)"
