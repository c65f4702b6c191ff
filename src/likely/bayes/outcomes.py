"""Distributions of several outcomes together: how often each occurs, and several yes/no variables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.bayes.discrete import PRECISE, Binomial
from likely.bayes.distribution import Array
from likely.errors import UsageError


@dataclass(frozen=True)
class Multinomial:
    """Multinomial distribution: how often each outcome occurs in n draws. Its coefficient is n! / ∏ kᵢ!.

    Parameters
    ----------
    n : int
        Number of draws.
    probabilities : sequence of float, or dict
        Probability of each outcome, in order or by name.
    """

    n: int
    probabilities: Sequence[float] | Mapping[Any, float]

    @property
    def _p(self) -> Array:
        given = self.probabilities
        p = np.array(list(given.values() if isinstance(given, Mapping) else given), dtype=np.float64)
        if not len(p) or p.min() < 0 or abs(p.sum() - 1.0) > PRECISE:
            raise UsageError(f"Multinomial: the probabilities {given!r} are negative or do not sum to 1")
        return p

    def _counts(self, counts: Any) -> Array:
        p, given = self._p, counts
        if isinstance(self.probabilities, Mapping):
            if not isinstance(counts, Mapping) or not counts.keys() <= self.probabilities.keys():
                raise UsageError(f"counts {counts!r}: pass {{outcome: count}} of {list(self.probabilities)}")
            given = [counts.get(name, 0) for name in self.probabilities]
        k = np.asarray(given, dtype=np.float64)
        if k.shape != p.shape:
            raise UsageError(f"counts {counts!r}: pass one for each of the {len(p)} outcomes")
        return k

    @property
    def mean(self) -> Array:
        """np for each outcome."""
        return self.n * self._p

    def log_density(self, counts: Any) -> float:
        """log n! / ∏ kᵢ! + Σ kᵢ log pᵢ.

        Parameters
        ----------
        counts : sequence of int, or dict
            How often each outcome occurs, in their order or by name.

        Returns
        -------
        float
            The log probability.
        """
        k, p = self._counts(counts), self._p
        if (k < 0).any() or (k != np.floor(k)).any() or k.sum() != self.n or (k[p == 0] > 0).any():
            return -math.inf
        some = k > 0
        ways = math.lgamma(self.n + 1.0) - math.fsum(math.lgamma(x + 1.0) for x in k.tolist())
        return ways + float(k[some] @ np.log(p[some]))

    def density(self, counts: Any) -> float:
        """The probability of these counts.

        Parameters
        ----------
        counts : sequence of int, or dict
            How often each outcome occurs, in their order or by name.

        Returns
        -------
        float
            The probability.
        """
        return math.exp(self.log_density(counts))

    def draw(self, n: int, seed: Any = None) -> Array:
        """Random counts, n rows.

        Parameters
        ----------
        n : int
            Number of rows.
        seed : int, numpy.random.Generator or None, default=None
            Makes the draw repeatable.

        Returns
        -------
        array
            Counts, rows × outcomes.
        """
        return np.random.default_rng(seed).multinomial(self.n, self._p, n)


@dataclass(frozen=True)
class MultivariateBernoulli:
    """Independent yes/no variables by name, each with its probability of yes.

    Parameters
    ----------
    probabilities : dict
        Variable → probability of yes.
    """

    probabilities: Mapping[Any, float]

    def log_density(self, answers: Mapping[Any, Any]) -> float:
        """Σ log p over yes, log (1 − p) over no.

        Parameters
        ----------
        answers : dict
            Variable → whether it is true.

        Returns
        -------
        float
            The log probability.
        """
        if answers.keys() != self.probabilities.keys():
            raise UsageError(f"answers {answers!r}: pass one for each of {list(self.probabilities)}")
        return math.fsum(Binomial(1, self.probabilities[name]).log_density(int(bool(x))) for name, x in answers.items())

    def density(self, answers: Mapping[Any, Any]) -> float:
        """The probability of these answers.

        Parameters
        ----------
        answers : dict
            Variable → whether it is true.

        Returns
        -------
        float
            The probability.
        """
        return math.exp(self.log_density(answers))

    def draw(self, n: int, seed: Any = None) -> dict[Any, Array]:
        """Random answers, 0 or 1, by name.

        Parameters
        ----------
        n : int
            Number of values.
        seed : int, numpy.random.Generator or None, default=None
            Makes the draw repeatable.

        Returns
        -------
        dict
            Variable → array of 0 and 1.
        """
        rng = np.random.default_rng(seed)
        return {name: (rng.random(n) < p).astype(np.int64) for name, p in self.probabilities.items()}
