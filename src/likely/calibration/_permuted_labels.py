"""Gains of the columns under permuted labels: how often noise gains as much as the labels do.

The nats that a column of noise gains by leave-one-out depend on the table: on numbers of which narrow bins are tried much more
often than on a category of two values, and the more columns and classes there are. Permuted labels have the same columns and
the same class frequencies and no signal. The sum of the largest gains, which a signal in one column raises as well as one
spread over several, is compared with its distribution over some permutations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likely.calibration._terms import FEW_ROWS, CalibrationData, CodedTable, Term
from likely.families.compiled_choice import gains_of_sets

Array = NDArray[np.float64]

PERMUTATIONS = 40
LARGEST = 8  # columns whose gains are added up
MOST_ENTRIES = 150_000  # of the tables of all columns: beyond, the permutations would take seconds
STEPS, SMALLEST_SCALE = 50, 1e-3  # of the fit of the distribution
USUAL_SCALE, USUAL_WEIGHT = 2.0, 4.0  # nats of the scale of the distribution, known as well as from so many permutations
ZERO = 0.5  # nats up to which a sum counts as zero


def chance(data: CalibrationData, terms: Sequence[Term]) -> float | None:
    """Minus the log of the probability that noise gains as much as the labels; None where permutations take too long.

    The probability is that of a distribution fitted to the sums under permuted labels: the tail of the gains is exponential,
    and it is needed where none of so few permutations reaches.
    """
    units = np.maximum(np.round(data.sample.weights / np.maximum(data.rows.left, 1e-300)), 1.0)
    tables = [term.table for term in terms if term.table is not None]
    if len(tables) < len(terms) or units.sum() > FEW_ROWS or sum(whole.seen.size for _, whole in tables) > MOST_ENTRIES:
        return None
    gains = np.maximum(_gains(data, tables, units.astype(np.int64)), 0.0)
    sums = np.sort(gains, axis=0)[::-1][:LARGEST].sum(0)
    return log_rarity(float(sums[0]), sums[1:])


def log_rarity(observed: float, sums: Array) -> float:
    """Minus the log of the probability of a sum as large as the observed one, far in the tail, from those of noise.

    Where most sums are zero, because the columns are few, those above zero are exponential. Others have a Gumbel distribution,
    that of the maximum likelihood. Its scale is regularised in either case.
    """
    beyond = sums[sums > ZERO] - ZERO
    if len(beyond) < len(sums) / 2:
        scale = (float(beyond.sum()) + USUAL_WEIGHT * USUAL_SCALE) / (len(beyond) + USUAL_WEIGHT)
        return (observed - ZERO) / scale - float(np.log((len(beyond) + 1) / (len(sums) + 1)))
    mode, scale = _fitted_gumbel(sums)
    return (observed - mode) * (len(sums) + USUAL_WEIGHT) / (len(sums) * scale + USUAL_WEIGHT * USUAL_SCALE)


def _fitted_gumbel(sums: Array) -> tuple[float, float]:
    """Mode and scale of the Gumbel distribution of the maximum likelihood, by a fixed-point iteration."""
    low, scale = float(sums.min()), max(float(sums.std()), SMALLEST_SCALE)
    for _ in range(STEPS):
        weights = np.exp((low - sums) / scale)
        stationary = float(sums.mean()) - float(sums @ weights) / float(weights.sum())
        scale = max((scale + stationary) / 2.0, SMALLEST_SCALE)
    return low - scale * float(np.log(np.exp((low - sums) / scale).mean())), scale


def _gains(data: CalibrationData, tables: Sequence[CodedTable], units: NDArray[np.int64]) -> Array:
    """Gain of each table, tables × (1 + permutations): with the labels as they are, and with permuted ones.

    Rows that are equal by nature are one row of the sample with their weights summed: they are permuted one by one, copies
    together.
    """
    row = np.repeat(np.arange(len(units)), units)
    labels, weights = data.sample.labels[row], (data.sample.weights / units)[row]
    random = np.random.default_rng(0)  # the rows are in an order that depends on their cells alone
    orders = [np.arange(len(row)), *(random.permutation(len(row)) for _ in range(PERMUTATIONS))]
    own, weight = np.array([labels[order] for order in orders]), np.array([weights[order] for order in orders])
    classes = len(data.tally.schema.classes)

    def counted(codes: NDArray[np.int64], values: int) -> Array:
        """Rows of each value and class under each order of the labels; unseen values and missing cells are left out."""
        known = np.flatnonzero(codes < values)
        place = (np.arange(len(orders))[:, None] * values + codes[known]) * classes + own[:, known]
        found = np.bincount(place.ravel(), weight[:, known].ravel(), len(orders) * values * classes).astype(np.float64)
        return found.reshape(len(orders), values, classes)

    wholes = [whole for _, whole in tables]
    sets = [counted(np.asarray(codes, np.int64)[row], len(whole.seen)) for codes, whole in tables]
    return gains_of_sets(sets, [whole.centres for whole in wholes], data.compiled)
