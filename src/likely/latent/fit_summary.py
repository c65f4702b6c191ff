"""The summary of a run of EM, and its information criteria."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from likely.errors import UsageError
from likely.tally import Tally


@dataclass(frozen=True, eq=False)
class FitSummary:
    """Log-likelihood, trace and convergence of one run of EM.

    It belongs to one set of counts: where counts change (merging, updating, another prior) it is dropped, never carried over.

    Attributes
    ----------
    log_likelihood : float
        Log-likelihood of the rows.
    trace : tuple of float
        Penalised log-likelihood of every EM iteration.
    entropy : float
        Entropy of the responsibilities, in nats; NaN if it was not computed.
    converged : bool
        Whether EM converged.
    distance_left : float
        Estimated distance to the local maximum, in nats of penalised log-likelihood.
    seed : int or None
        Seed of the random starts.
    """

    log_likelihood: float
    trace: tuple[float, ...] = ()
    entropy: float = float("nan")
    converged: bool = False
    distance_left: float = float("inf")
    seed: int | None = None

    def __eq__(self, other: object) -> bool:
        """Whether all entries are equal; what was not computed (NaN) equals what was not computed."""
        if not isinstance(other, FitSummary):
            return NotImplemented
        same = (self.converged, self.seed) == (other.converged, other.seed)
        return same and np.array_equal(self._reals, other._reals, equal_nan=True)

    @property
    def _reals(self) -> list[float]:
        return [self.log_likelihood, self.entropy, self.distance_left, *self.trace]

    __hash__ = None  # type: ignore[assignment]

    def bic(self, free: int, weight: float) -> float:
        """Bayesian information criterion: −2 log-likelihood + free parameters · log(rows), the lower the better."""
        return -2 * self.log_likelihood + free * float(np.log(max(weight, 1.0)))

    def icl(self, free: int, weight: float) -> float:
        """Integrated completed likelihood: the BIC plus twice the entropy, which prefers separated components."""
        return self.bic(free, weight) + 2 * self.entropy

    def aic(self, free: int) -> float:
        """Akaike information criterion: −2 log-likelihood + 2 · free parameters."""
        return -2 * self.log_likelihood + 2 * free


class FittedByEM:
    """A result of EM: its counts, and what EM reported of them where they have not changed since."""

    summary: FitSummary | None
    _not_known = "the log-likelihood is not known"  # what to say where there is no summary, with the remedy
    _internal: ClassVar[frozenset[str]] = frozenset()  # names that other modules use; `dir` shows what users need

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self)} - self._internal)

    @property
    @abstractmethod
    def tally(self) -> Tally:
        """The expected counts."""

    @property
    @abstractmethod
    def free_parameters(self) -> int:
        """Number of free parameters."""

    @property
    def _known(self) -> FitSummary:
        if self.summary is None:
            raise UsageError(self._not_known)
        return self.summary

    @property
    def _weight(self) -> float:
        return float(self.tally.classes.sum())

    @property
    def trace(self) -> tuple[float, ...]:
        """Penalised log-likelihood of every EM iteration; empty where EM did not run on these counts."""
        return self.summary.trace if self.summary else ()

    @property
    def converged(self) -> bool:
        """Whether EM converged."""
        return self.summary is not None and self.summary.converged

    @property
    def distance_left(self) -> float:
        """Estimated distance to the local maximum, in nats of penalised log-likelihood."""
        return self.summary.distance_left if self.summary else float("inf")

    @property
    def seed(self) -> int | None:
        """Seed of the random starts."""
        return self.summary.seed if self.summary else None

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of the rows."""
        return self._known.log_likelihood

    @property
    def bic(self) -> float:
        """Bayesian information criterion: −2 log-likelihood + free parameters · log(rows), the lower the better."""
        return self._known.bic(self.free_parameters, self._weight)

    @property
    def aic(self) -> float:
        """Akaike information criterion: −2 log-likelihood + 2 · free parameters, the lower the better."""
        return self._known.aic(self.free_parameters)
