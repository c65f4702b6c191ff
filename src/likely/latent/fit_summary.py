"""The summary of a run of EM, and its information criteria."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
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

    def bic(self, free: int, weight: float) -> float:
        """Bayesian information criterion: −2 log-likelihood + free parameters · log(rows), the lower the better."""
        return -2 * self.log_likelihood + free * float(np.log(max(weight, 1.0)))

    def icl(self, free: int, weight: float) -> float:
        """Integrated completed likelihood: the BIC plus twice the entropy, which prefers separated components."""
        return self.bic(free, weight) + 2 * self.entropy

    def aic(self, free: int) -> float:
        """Akaike information criterion: −2 log-likelihood + 2 · free parameters."""
        return -2 * self.log_likelihood + 2 * free
