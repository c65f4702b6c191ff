"""Expected statistics of rows with missing cells in joint blocks: the E-step for missing data.

In a table, hidden values are counted by their conditional probabilities; in a joint Gaussian, missing numbers are replaced by
their conditional means, and the conditional covariance is added to the scatter. Both are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.families._scatter import weighted_scatter
from likely.families.base import Encoded
from likely.families.joint_gaussian_term import JointGaussianTerm
from likely.families.likelihoods import LookupTable
from likely.families.statistics import Array, Scatter

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class SameGaps:
    """Rows of a joint block that miss the same cells."""

    numbers: Array
    codes: NDArray[np.int64]  # 0 where the category is missing
    seen: Flags  # of the numeric columns
    hidden: Flags  # of the categories
    size: NDArray[np.int64]  # values of each category


def expected(likelihood: LookupTable | JointGaussianTerm, rows: Encoded, responsibilities: Array) -> Scatter | None:
    """Expected scatter of rows that miss some cells of a block, but not all; None where there is no such row."""
    codes = rows.codes - rows.low if rows.codes.shape[1] else rows.codes
    gaps = np.column_stack([np.isnan(rows.numbers), (codes < 0) | (codes >= rows.size)])
    some = gaps.any(1) & ~gaps.all(1)
    if not some.any():
        return None
    kinds, place = np.unique(gaps[some], axis=0, return_inverse=True)
    places, width = np.flatnonzero(some), rows.numbers.shape[1]
    total: Scatter | None = None
    for kind, flags in enumerate(kinds):
        at = places[place.reshape(-1) == kind]
        hidden = flags[width:]
        alike = SameGaps(rows.numbers[at], np.where(hidden, 0, codes[at]), ~flags[:width], hidden, rows.size)
        if isinstance(likelihood, LookupTable):
            part = _expected_counts(likelihood, alike, responsibilities[at])
        else:
            part = _expected_scatter(likelihood, alike, responsibilities[at])
        total = part if total is None else total + part
    return total


def _expected_counts(likelihood: LookupTable, rows: SameGaps, responsibilities: Array) -> Scatter:
    """Expected counts of a table: hidden values by their probabilities given the observed ones of the row."""
    classes, hidden, size = responsibilities.shape[1], rows.hidden, rows.size
    padded = likelihood.table.T.reshape(classes, *(int(s) + 2 for s in size))
    chance = np.exp(padded[(slice(None), *(slice(0, int(s)) for s in size))])
    axes = tuple(int(a) + 1 for a in np.flatnonzero(hidden))
    whole = chance.sum(axes, keepdims=True)
    chance = np.divide(chance, whole, out=np.zeros_like(chance), where=whole > 0)
    margin = [1 if gone else int(s) for gone, s in zip(hidden, size, strict=True)]
    cell = np.ravel_multi_index(tuple(rows.codes.T), margin)
    seen = np.array([np.bincount(cell, responsibilities[:, c], int(np.prod(margin))) for c in range(classes)])
    n = chance * seen.reshape(classes, *margin)
    return Scatter(n, np.zeros((*n.shape, 0)), np.zeros((*n.shape, 0, 0)))


def _expected_scatter(likelihood: JointGaussianTerm, rows: SameGaps, responsibilities: Array) -> Scatter:
    """Expected scatter of joint Gaussians: each class and cell completes the rows by its own conditional mean."""
    x, seen, codes, hidden = rows.numbers, rows.seen, rows.codes, rows.hidden
    classes, width = responsibilities.shape[1], x.shape[1]
    shape = (classes, *(int(s) for s in rows.size))
    n = np.zeros(shape)
    mean, scatter = np.zeros((*shape, width)), np.zeros((*shape, width, width))
    inner = np.arange(likelihood.weight.shape[1]).reshape(likelihood.lines or (1,))
    terms = likelihood.densities(codes, x[:, seen], np.flatnonzero(seen), hidden) if hidden.any() else None
    for place in np.ndindex(*shape[1:]):
        g = int(inner[place or (0,)])
        matching = ((codes == np.array(place, np.int64)) | hidden).all(1)
        if not matching.any():
            continue
        for c in range(classes):
            part = responsibilities[matching, c]
            if terms is not None:
                density = likelihood.weight[c, g] + likelihood.density(x[matching][:, seen], np.flatnonzero(seen), c, g)
                with np.errstate(invalid="ignore"):  # minus infinity less itself: a class of probability zero
                    part = part * np.nan_to_num(np.exp(density - terms[matching, c]))
            completed, rest = _completed(likelihood, x[matching], seen, c, g)
            at = (c, *place)
            (n[at],), (mean[at],), (scatter[at],) = weighted_scatter(completed, part[:, None])
            scatter[at] += n[at] * rest
    return Scatter(n, mean, scatter)


def _completed(likelihood: JointGaussianTerm, x: Array, seen: Flags, c: int, cell: int) -> tuple[Array, Array]:
    """Rows with their missing numbers at the conditional mean, and the conditional covariance of these."""
    mean, covariance = likelihood.mean[c, cell], likelihood.covariance[c, cell]
    a, b = np.flatnonzero(seen), np.flatnonzero(~seen)
    slope = np.linalg.solve(covariance[np.ix_(a, a)], covariance[np.ix_(a, b)]).T if len(a) else np.zeros((len(b), 0))
    whole = x.copy()
    whole[:, b] = mean[b] + (x[:, a] - mean[a]) @ slope.T
    rest = np.zeros_like(covariance)
    rest[np.ix_(b, b)] = covariance[np.ix_(b, b)] - slope @ covariance[np.ix_(a, b)]
    return whole, rest
