"""What a value says of the classes, as strongly as leaving each row out shows that it may.

The evidence of value x for class c is log(n[x, c] / n[c] + share), read against the average class. The share is imagined:
every value occurs a little in every class alike, so rare values say little and a value never seen says nothing. Numbers in
bins lend each other weight along their ranks first. How much is lent and imagined is chosen by the likelihood of the labels
when each row is left out of the counts, which is a closed form: its own class has one row less there, and nothing else moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likely.families.statistics import Array

# On the scale of ranks, 0 to 1: how far a bin lends to its neighbours.
BANDWIDTHS = (0.0, 0.004, 0.008, 0.016, 0.03, 0.06, 0.12, 0.25)
IMAGINED = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # rows a value, spread over the classes as they occur
REACH = 3.5  # bandwidths: further away, nothing is lent


@dataclass(frozen=True, eq=False)
class Evidence:
    """A table of what each value says of each class, and of what it says of a row's own class once the row is left out."""

    table: Array  # values × classes
    left_out: Array  # values × classes
    bandwidth: float
    imagined: float
    gain: float  # of log likelihood by leave-one-out, against the shares of the classes alone
    level: Array  # log of how often each value occurs in the average class

    def probabilities(self) -> Array:
        """How often each value occurs in each class, classes × values."""
        grown = np.exp(self.table + self.level[:, None])
        shares: Array = (grown / np.maximum(grown.sum(0), 1e-300)).T
        return shares


def weigh(seen: Array, numeric: bool = False) -> Evidence:
    """The evidence of a table of counts, values × classes; neighbouring values lend to each other if they are `numeric`."""
    classes, whole = seen.sum(0), float(seen.sum())
    prior = (classes + 0.5) / (whole + 0.5 * len(classes))
    rest = (np.maximum(classes - 1.0, 0.0) + 0.5) / (max(whole - 1.0, 0.0) + 0.5 * len(classes))
    bandwidth, imagined, gain, lent = _choose(seen, rest, BANDWIDTHS if numeric else BANDWIDTHS[:1])
    share = imagined / (whole + 0.5 * len(classes))
    grown = lent / (classes + 0.5) + share
    level = np.log(grown @ prior)
    own = np.maximum(lent - 1.0, 0.0) / (np.maximum(classes - 1.0, 0.0) + 0.5) + share
    gain -= float((classes * np.log(rest)).sum())
    table, left_out = np.log(grown) - level[:, None], np.log(own) - level[:, None]
    return Evidence(table, left_out, bandwidth, imagined, gain, level)


def _choose(seen: Array, rest: Array, bandwidths: Sequence[float]) -> tuple[float, float, float, Array]:
    """The bandwidth and the number of imagined rows under which the left-out labels are most likely."""
    values, labels = np.nonzero(seen)
    count, share = seen[values, labels], rest[labels]
    m = np.array(IMAGINED)[:, None]
    best = (0.0, IMAGINED[0], -np.inf, seen)
    mass = seen.sum(1)
    for bandwidth, lent in ((h, lend(seen, h)) for h in bandwidths):
        own = np.maximum(lent[values, labels] - 1.0, 0.0)
        others = np.maximum(lent.sum(1) - 1.0, 0.0)
        scores = np.log(own + m * share) @ count - np.log(others + m) @ mass
        i = int(np.argmax(scores))
        if scores[i] > best[2]:
            best = (bandwidth, IMAGINED[i], float(scores[i]), lent)
    return best


def lend(seen: Array, bandwidth: float) -> Array:
    """The counts once every bin has lent to its neighbours; to itself a bin gives all it has."""
    if not bandwidth or len(seen) < 2:
        return seen
    mass = seen.sum(1)
    rank = (np.cumsum(mass) - mass / 2) / max(float(mass.sum()), 1e-300)
    apart = (rank[:, None] - rank) / bandwidth
    lent: Array = np.where(np.abs(apart) <= REACH, np.exp(-0.5 * apart * apart), 0.0) @ seen
    return lent
