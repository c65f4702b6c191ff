"""How much of a row is left out together with it: the row and its copies, but not rows that are equal by chance.

Equal rows are one row of the sample with their weights added up, so a weight of 2 may be a copy (a row repeated, weighted or
oversampled) or two rows that happen to be equal. If a row's cells were independent given its class, λ rows like it would be
expected by chance; of its weight w, w / (1 + λ) is taken for copies. In many or continuous columns λ is near zero and all
of the weight is left out; where rows repeat naturally, one unit is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likely.reservoir import Reservoir, hashes, number_hashes, to_keys
from likely.schema import Schema

Array = NDArray[np.float64]
HEAVIEST = 1e12  # a weight of a row, beyond which sums lose the others
NEGLIGIBLE = 1e-3  # rows expected by chance
OFTEN, ODD = 0.25, 0.01  # shares of rows: repeated so often, or weighted by such numbers, that it is no accident


@dataclass(frozen=True)
class Effective:
    """The sample in units of independent rows."""

    sample: Reservoir  # weights divided by the copies of their class
    left: Array  # how much of each row is left out, in the same units
    copies: Array  # of each class: the mean number of copies of a row, so that rows / copies is Kish's effective size

    def first(self, rows: int) -> Effective:
        """Some of the rows; their order is random."""
        if rows >= len(self.sample):
            return self
        return Effective(self.sample.take(slice(rows)), self.left[:rows], self.copies)


def shuffled(sample: Reservoir, schema: Schema) -> Reservoir:
    """The rows in a random order that depends on their cells alone, not on the names or the order of columns."""
    total = np.zeros(len(sample), np.uint64)
    for name, x in sample.columns.items():
        if x.dtype.kind == "f":
            total += number_hashes(x, "")
        else:
            total += np.append(hashes(schema.by_name[name].values, ""), np.uint64(0))[x]
    return sample.take(np.lexsort((sample.labels, to_keys(total))))


def effective(sample: Reservoir, classes: Array) -> Effective:
    """The sample with its weights in units of independent rows; `classes` is the total weight of each class."""
    weights = np.minimum(sample.weights, HEAVIEST)
    copies = _copies(sample, weights, classes)
    total = np.bincount(sample.labels, weights, len(classes))
    mean = np.bincount(sample.labels, weights * copies, len(classes)) / np.where(total > 0, total, 1.0)
    mean = np.where(total > 0, mean, 1.0)
    own = mean[sample.labels]
    return Effective(replace(sample, weights=weights / own), copies / own, mean)


def _copies(sample: Reservoir, weights: Array, classes: Array) -> Array:
    """Of each row's weight, the part that is left out with it.

    A table has a few repeated rows by nature, and new rows will repeat them too: where most rows of a class have one weight,
    only so much is left out of the others as well.
    """
    if (weights == 1.0).all():
        return weights
    beyond = _beyond_chance(sample, weights, classes)
    copies = beyond.copy()
    for c in range(len(classes)):
        own = np.flatnonzero(sample.labels == c)
        if not len(own):
            continue
        usual = float(np.partition(beyond[own], (len(own) - 1) // 2)[(len(own) - 1) // 2])
        times = beyond[own] / usual
        weighted = np.abs(weights[own] / usual - np.round(weights[own] / usual)) > 1e-6
        if (times > 1.5).mean() < OFTEN and weighted.mean() < ODD:
            copies[own] = np.minimum(beyond[own], usual)
    return copies


def _beyond_chance(sample: Reservoir, weights: Array, classes: Array) -> Array:
    """Of each row's weight, what chance repeats do not explain; at least one row."""
    beyond = np.minimum(weights, 1.0)
    many = np.flatnonzero(weights > 1.0)
    expected = np.log(np.maximum(classes, 1e-300))[sample.labels[many]]
    open_rows = np.arange(len(many))
    alone = len(sample.columns) == 1
    for name in sorted(sample.columns):
        if not len(open_rows):
            break
        frequency = _frequency(sample, weights, name, many[open_rows], alone)
        expected[open_rows] += np.log(np.maximum(frequency, 1e-300))
        open_rows = open_rows[expected[open_rows] > np.log(NEGLIGIBLE)]
    by_chance = np.exp(np.minimum(expected, 700.0))
    beyond[many] = np.clip(weights[many] / (1.0 + by_chance), 1.0, weights[many])
    return beyond


def _frequency(sample: Reservoir, weights: Array, name: str, rows: NDArray[np.intp], alone: bool) -> Array:
    """How often the cell of each of these rows occurs in its class.

    A number that is the only column would always be expected as often as it is repeated: it is compared with the rows of the
    other classes instead.
    """
    x = sample.columns[name]
    number = x.dtype.kind == "f"
    cells = np.unique(x, return_inverse=True)[1].reshape(-1) if number else x.astype(np.int64) + 1
    if number and alone:
        whole = np.bincount(cells, weights)
        others: Array = (whole[cells[rows]] - weights[rows]) / np.maximum(weights.sum() - weights[rows], 1e-300)
        return np.maximum(others, 0.0)
    size = int(cells.max()) + 1
    seen = np.bincount(sample.labels * size + cells, weights)
    total = np.bincount(sample.labels, weights)
    found: Array = seen[sample.labels[rows] * size + cells[rows]] / total[sample.labels[rows]]
    return found
