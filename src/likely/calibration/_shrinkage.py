"""Posterior probability that a fitted calibration has any signal, from its leave-one-out gain."""

from __future__ import annotations

import numpy as np


def signal_probabilities(complete: float, single: float, even: float, tested: int) -> tuple[float, float]:
    """Probability that there is any signal at all, and that of the interactions.

    One model has the fitted terms, the other the class frequencies only; the leave-one-out gain of the first over the second
    stands for the log of their Bayes factor. Interactions are the best of many sets of columns, of which noise gains more than
    g nats with a probability of about exp(-g / 2): where single columns have no signal, they must gain more than that.

    Parameters
    ----------
    complete : float
        Gain of all terms over the class frequencies, in nats.
    single : float
        Gain without the interactions.
    even : float
        Gain at which the odds are even.
    tested : int
        Number of sets of columns that were tested; 0 if none were.
    """
    chance = 2.0 * np.log(max(tested, 1))
    probability = _logistic(max(single, complete - chance) - even)
    by_chance = (1.0 - _logistic(single - even)) * (1.0 - _logistic(complete - single - chance)) if tested else 0.0
    return probability, probability * (1.0 - by_chance)


def _logistic(log_odds: float) -> float:
    return float(1.0 / (1.0 + np.exp(min(-log_odds, 700.0))))
