"""Copies of rows: the part of a row's weight that is left out together with the row, excluding chance repeats.

Equal rows are one row of the sample with their weights summed, so a weight of 2 may be a copy (a repeated, weighted or
oversampled row) or two rows that are equal by chance. If the cells of a row were independent given its class, λ rows like it
would be expected by chance; of its weight w, w / (1 + λ) counts as copies. With many or continuous columns λ is near zero and
all of the weight is left out; where rows repeat naturally, one unit is. Two documents are never equal by chance.

The unit is 1 unless all weights are multiples of another number, which is then the number of copies of every row: a table that
was learned twice, or with constant weights, has the same rows in other units. An oversampled class has a unit of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likely.families.copy_weights import left_together, mean_of_classes
from likely.families.word_counts import Words
from likely.kernels.keys import to_keys
from likely.schema import TEXT, Schema
from likely.tally import Tally
from likely.tally.row_sample import Reservoir, hashes, sums_of_number_hashes

Array = NDArray[np.float64]
HEAVIEST = 1e12  # maximum weight of a row: beyond, sums lose the other rows
NEGLIGIBLE = 1e-3  # rows expected by chance
# By chance the weights of n rows that repeat naturally are all multiples of g with a probability below g^-n.
BY_CHANCE, FEW_ROWS = 1e-3, 10  # that probability, and the number of rows, below which there is no other unit than 1
USUAL = 0.05  # share of rows of the lightest weight from which a fraction is the unit


@dataclass(frozen=True)
class EffectiveSample:
    """The sample in units of independent rows (Kish's effective sample size, by class)."""

    sample: Reservoir  # weights divided by the copies of their class
    left: Array  # weight of each row that is left out, in the same units
    copies: Array  # mean number of copies of a row, by class; rows / copies is Kish's effective size

    def first(self, rows: int) -> EffectiveSample:
        """The first rows, which are a random subset."""
        return self if rows >= len(self.sample) else self.take(slice(rows))

    def take(self, rows: NDArray[np.intp] | slice) -> EffectiveSample:
        """A subset of the rows."""
        return EffectiveSample(self.sample.take(rows), self.left[rows], self.copies)


def shuffled(sample: Reservoir, schema: Schema) -> Reservoir:
    """The rows in a pseudo-random order that depends on their cells alone, not on the names or the order of columns.

    Rows that differ only in their documents would be neighbours: with text, the rows stay in the order of their keys.
    """
    if any(column.kind == TEXT for column in schema.columns):
        return sample
    numbers = [x for x in sample.columns.values() if x.dtype.kind == "f"]
    total = sums_of_number_hashes(numbers, [""] * len(numbers)) if numbers else np.zeros(len(sample), np.uint64)
    for name, x in sample.columns.items():
        if x.dtype.kind != "f":
            total += np.append(hashes(schema.by_name[name].values, ""), np.uint64(0))[x]
    keys = to_keys(total)
    order = np.argsort(keys)
    if (keys[order[1:]] == keys[order[:-1]]).any():  # rows of one key by their class, which takes several times as long
        order = np.lexsort((sample.labels, keys))
    return sample.take(order)


def effective(sample: Reservoir, tally: Tally) -> EffectiveSample:
    """The sample with its weights in units of independent rows."""
    weights, classes = np.minimum(sample.weights, HEAVIEST), tally.classes
    copies = _copies(sample, weights, classes * _without_text(tally))
    mean = mean_of_classes(copies, weights, sample.labels, len(classes))
    own = mean[sample.labels]
    return EffectiveSample(replace(sample, weights=weights / own), copies / own, mean)


def _without_text(tally: Tally) -> Array:
    """Share of the rows of each class that have no document: only these can be equal by chance."""
    share = np.ones(len(tally.classes))
    for statistic in tally.statistics:
        if isinstance(statistic, Words):
            share *= np.clip(1.0 - statistic.documents / np.maximum(tally.classes, 1e-300), 0.0, 1.0)
    return share


def _copies(sample: Reservoir, weights: Array, classes: Array) -> Array:
    """The part of each row's weight that is left out with it; `classes` is the weight of rows that may be equal by chance."""
    if (weights == 1.0).all():
        return weights
    units = _units(weights, sample.labels, len(classes))
    own = units[sample.labels]
    in_units = weights / own
    return own * left_together(_beyond_chance(sample, in_units, classes / units), in_units, sample.labels)


def _units(weights: Array, labels: NDArray[np.int64], classes: int) -> Array:
    """Number of copies of every row, by class: that of its own rows, or else that of all rows, or else 1."""
    common = _unit(weights)
    ends = np.cumsum(np.bincount(labels, minlength=classes))[:-1]
    by_class = np.split(weights[np.argsort(labels, kind="stable")], ends)
    return np.array([_unit(own) or common or 1.0 for own in by_class])


def _unit(weights: Array) -> float | None:
    """The number of which all weights are multiples; None where chance may explain it."""
    if len(weights) < FEW_ROWS or weights.min() < weights.max() / HEAVIEST:
        return None
    lightest = float(weights.min())
    for unit in (lightest, lightest / 2, lightest / 3):
        times = weights / unit
        if (np.abs(times - np.round(times)) <= 1e-6 * times).all():
            copied = unit > 1.0 and -len(weights) * np.log(unit) < np.log(BY_CHANCE)
            fraction = unit < 1.0 and (times == 1.0).mean() >= USUAL
            return unit if copied or fraction else None
    return None


def _beyond_chance(sample: Reservoir, weights: Array, classes: Array) -> Array:
    """The part of each row's weight that chance repeats do not explain; at least one row."""
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
    """Relative frequency of the cell of each of these rows in its class.

    The expected number of repeats of a number that is the only column would always equal the observed one: its frequency in the
    other classes is used instead.
    """
    x = sample.columns[name]
    number = x.dtype.kind == "f"
    cells = np.unique(x, return_inverse=True)[1].reshape(-1) if number else x.astype(np.int64) + 1
    if number and alone:
        total_weight = np.bincount(cells, weights)
        others: Array = (total_weight[cells[rows]] - weights[rows]) / np.maximum(weights.sum() - weights[rows], 1e-300)
        return np.maximum(others, 0.0)
    size = int(cells.max()) + 1
    seen = np.bincount(sample.labels * size + cells, weights)
    total = np.bincount(sample.labels, weights)
    found: Array = seen[sample.labels[rows] * size + cells[rows]] / total[sample.labels[rows]]
    return found
