"""Posterior probability that a fitted calibration has any signal, from its leave-one-out gain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Gains, in nats, between which the columns are compared with permuted labels: less is noise, more is a signal.
LEAST, MOST = 1.0, 20.0
RARE = 300.0  # even odds where noise gains as much in one of so many tables
BY_ITSELF = 14.0  # nats of even odds whatever columns gain alone: a direction, or an interaction, may show in none of them


@dataclass(frozen=True)
class SignalOdds:
    """Log odds that there is a signal, as a function of a leave-one-out gain in nats.

    Parameters
    ----------
    even : float
        Gain at which the odds are even, where labels are not permuted.
    chance : callable
        Minus the log of the probability that noise gains as much; None where labels are not permuted.
    """

    even: float
    chance: Callable[[], float | None]

    def __call__(self, gain: float) -> float:
        """Log odds at a gain."""
        found = self.chance() if LEAST < gain < MOST else None
        return gain - self.even if found is None else max(found - float(np.log(RARE)), gain - BY_ITSELF)


def signal_probabilities(complete: float, single: float, odds: Callable[[float], float], tested: int) -> tuple[float, float]:
    """Probability that there is any signal at all, and that of the interactions.

    One model has the fitted terms, the other the class frequencies only; the odds are those of the leave-one-out gain of the
    first over the second. Interactions are the best of many sets of columns, of which noise gains more than g nats with a
    probability of about exp(-g / 2): where single columns have no signal, they must gain more than that.

    Parameters
    ----------
    complete : float
        Gain of all terms over the class frequencies, in nats.
    single : float
        Gain without the interactions.
    odds : callable
        Log odds that there is a signal, at a gain.
    tested : int
        Number of sets of columns that were tested; 0 if none were.
    """
    chance = 2.0 * np.log(max(tested, 1))
    probability = _logistic(odds(max(single, complete - chance)))
    by_chance = (1.0 - _logistic(odds(single))) * (1.0 - _logistic(complete - single - chance)) if tested else 0.0
    return probability, probability * (1.0 - by_chance)


def _logistic(log_odds: float) -> float:
    return float(1.0 / (1.0 + np.exp(min(-log_odds, 700.0))))
