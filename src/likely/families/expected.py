"""Missing cells of a joint block inside EM: a row with gaps is counted as what the rest of it leads one to expect.

For a table the hidden value is shared out over the cells that fit; for a joint Gaussian the missing numbers are their
conditional means, and the conditional covariance is added to the scatter. Both are the exact E-step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likely.families.base import Encoded
from likely.families.forms import Lookup, Quadratic
from likely.families.joint import share_scatter
from likely.families.statistics import Array, Scatter

Flags = NDArray[np.bool_]


def expected(form: Lookup | Quadratic, rows: Encoded, share: Array) -> Scatter | None:
    """What rows that miss some cells of a block, but not all, add to its scatter; None where there is no such row."""
    codes = rows.codes - rows.low if rows.codes.shape[1] else rows.codes
    gaps = np.column_stack([np.isnan(rows.numbers), (codes < 0) | (codes >= rows.size)])
    some = gaps.any(1) & ~gaps.all(1)
    if not some.any():
        return None
    kinds, place = np.unique(gaps[some], axis=0, return_inverse=True)
    places = np.flatnonzero(some)
    total: Scatter | None = None
    for kind, flags in enumerate(kinds):
        at = places[place.reshape(-1) == kind]
        hidden = flags[rows.numbers.shape[1] :]
        code = np.where(hidden, 0, codes[at])
        if isinstance(form, Lookup):
            part = _table(form, code, hidden, share[at], rows.size)
        else:
            part = _cloud(form, rows.numbers[at], ~flags[: rows.numbers.shape[1]], code, hidden, share[at], rows.size)
        total = part if total is None else total + part
    return total


def _table(form: Lookup, codes: NDArray[np.int64], hidden: Flags, share: Array, size: NDArray[np.int64]) -> Scatter:
    """The hidden values of a table, shared out as the seen ones of the row make them probable."""
    classes = share.shape[1]
    padded = form.table.T.reshape(classes, *(int(s) + 2 for s in size))
    chance = np.exp(padded[(slice(None), *(slice(0, int(s)) for s in size))])
    axes = tuple(int(a) + 1 for a in np.flatnonzero(hidden))
    whole = chance.sum(axes, keepdims=True)
    chance = np.divide(chance, whole, out=np.zeros_like(chance), where=whole > 0)
    margin = [1 if gone else int(s) for gone, s in zip(hidden, size, strict=True)]
    cell = np.ravel_multi_index(tuple(codes.T), margin)
    seen = np.array([np.bincount(cell, share[:, c], int(np.prod(margin))) for c in range(classes)])
    n = chance * seen.reshape(classes, *margin)
    return Scatter(n, np.zeros((*n.shape, 0)), np.zeros((*n.shape, 0, 0)))


def _cloud(
    form: Quadratic,
    x: Array,
    seen: Flags,
    codes: NDArray[np.int64],
    hidden: Flags,
    share: Array,
    size: NDArray[np.int64],
) -> Scatter:
    """Rows with the same gaps: each class and cell completes them in its own way."""
    classes, width = share.shape[1], x.shape[1]
    shape = (classes, *(int(s) for s in size))
    n = np.zeros(shape)
    mean, scatter = np.zeros((*shape, width)), np.zeros((*shape, width, width))
    inner = np.arange(form.weight.shape[1]).reshape(form.lines or (1,))
    terms = form.densities(codes, x[:, seen], np.flatnonzero(seen), hidden) if hidden.any() else None
    for place in np.ndindex(*shape[1:]):
        g = int(inner[place or (0,)])
        fit = ((codes == np.array(place, np.int64)) | hidden).all(1)
        if not fit.any():
            continue
        for c in range(classes):
            part = share[fit, c]
            if terms is not None:
                density = form.weight[c, g] + form.density(x[fit][:, seen], np.flatnonzero(seen), c, g)
                with np.errstate(invalid="ignore"):  # minus infinity less itself: a class that rules the row out
                    part = part * np.nan_to_num(np.exp(density - terms[fit, c]))
            whole, rest = _completed(form, x[fit], seen, c, g)
            at = (c, *place)
            (n[at],), (mean[at],), (scatter[at],) = share_scatter(whole, part[:, None])
            scatter[at] += n[at] * rest
    return Scatter(n, mean, scatter)


def _completed(form: Quadratic, x: Array, seen: Flags, c: int, cell: int) -> tuple[Array, Array]:
    """The rows with their missing numbers at the conditional mean, and the conditional covariance of these."""
    mean, covariance = form.mean[c, cell], form.covariance[c, cell]
    a, b = np.flatnonzero(seen), np.flatnonzero(~seen)
    slope = np.linalg.solve(covariance[np.ix_(a, a)], covariance[np.ix_(a, b)]).T if len(a) else np.zeros((len(b), 0))
    whole = x.copy()
    whole[:, b] = mean[b] + (x[:, a] - mean[a]) @ slope.T
    rest = np.zeros_like(covariance)
    rest[np.ix_(b, b)] = covariance[np.ix_(b, b)] - slope @ covariance[np.ix_(a, b)]
    return whole, rest
