"""Leave-one-out of joint blocks: counts of cells, and the Gaussian within one by a rank-one change of its scatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import ForgetError
from likely.families._joint_estimates import cells_of, covariances, flattened, posterior_scatter
from likely.families.base import dust, log
from likely.families.family import FittedBlock, LeftOutRows
from likely.families.joint_gaussian_term import LARGE, JointGaussianTerm
from likely.families.statistics import Array, Scatter
from likely.schema import CATEGORY

MOST_DERIVED = 2_000  # rows whose covariance is derived anew, one by one; of more an even sample, the others contribute nothing
MANY_ROWS = 500  # of a class in a cell, from which one row makes no difference to a covariance that is borrowed
# The rank-one change is used where it loses few digits: reciprocal condition number of the correlation matrix, and the share of
# the determinant that is left. A variance must be so many times above rounding error.
CONDITION, LEFT, ABOVE_DUST = 1e-6, 1e-3, 1e6


def joint_without(block: FittedBlock, cells: Array, rows: LeftOutRows, tie: str | None) -> Array:
    """Log-likelihood of each row's cells in every class, the row left out; rows with a missing cell were not counted."""
    statistic: Scatter = block.statistic
    numeric = np.array([column.kind != CATEGORY for column in block.columns], dtype=bool)
    codes, numbers, size = cells[:, ~numeric], cells[:, numeric], statistic.n.shape[1:]
    counted = ((codes >= 0) & (codes < np.array(size))).all(1) & (np.abs(numbers) < LARGE).all(1)
    out = block.log_likelihoods(cells)
    places = np.flatnonzero(counted)
    if not len(places):
        return out
    part = rows.take(places)
    axes = tuple(codes[places].T.astype(np.int64))
    cell = np.ravel_multi_index(axes, size) if size else np.zeros(len(places), np.int64)
    found = _log_shares(block, cell, part) if size else np.zeros((len(places), block.classes))
    if numeric.any():
        place = np.ravel_multi_index(axes, tuple(s + 1 for s in size)) if size else cell  # unseen values have cells, too
        found += _Gaussians.of(block, len(size), tie).without(numbers[places], place, part)
    out[places] = found
    return out


def _log_shares(block: FittedBlock, cell: NDArray[np.int64], rows: LeftOutRows) -> Array:
    """Log probability of the cell of each row in every class, without the row."""
    seen = block.statistic.n.reshape(block.classes, -1)
    pseudocounts = block.prior.pseudocounts(cells_of([c for c in block.columns if c.kind == CATEGORY]))
    own = rows.own(block.classes)
    total = np.maximum(seen.sum(1) - own, 0.0) + pseudocounts.sum()
    left = np.maximum(seen.T[cell] - own, 0.0) + pseudocounts[cell][:, None]
    return log(np.divide(left, total, out=np.full(left.shape, 1.0 / seen.shape[1]), where=total > 0))


@dataclass(frozen=True)
class _Gaussians:
    """The Gaussians of a block by class and cell, and what the change of one of them by a row needs."""

    block: FittedBlock
    flat: Scatter  # classes × cells, without the prior
    fitted: Scatter  # mean, and numerator and denominator of the covariance
    covariance: Array
    borrowed: NDArray[np.bool_]
    strength: float  # rows that the prior's mean is worth
    tie: str | None

    @staticmethod
    def of(block: FittedBlock, axes: int, tie: str | None) -> _Gaussians:
        flat = flattened(block.statistic, axes)
        fitted = posterior_scatter(flat, block.prior)
        given: Any = None if getattr(block.prior, "scatter", None) is not None else block.prior.normal
        return _Gaussians(block, flat, fitted, *covariances(fitted, tie), 0.0 if given is None else given.strength, tie)

    def without(self, x: Array, place: NDArray[np.int64], rows: LeftOutRows) -> Array:
        """Log density of each row in every class, in its cell and without it."""
        out, anew = np.zeros((len(x), self.block.classes)), np.zeros(len(x), bool)
        groups, group = np.unique(place * self.block.classes + rows.labels, return_inverse=True)
        order = np.argsort(group.reshape(-1), kind="stable")
        for key, at in zip(groups, np.split(order, np.cumsum(np.bincount(group.reshape(-1)))[:-1]), strict=True):
            g, y = divmod(int(key), self.block.classes)
            if self._sound(g):
                out[at], anew[at] = self._changed(x[at], y, g, rows.units[at])
            elif self.flat.n[y, g] >= MANY_ROWS:
                out[at] = _scored(self.fitted.mean, self.covariance, x[at], g)
            else:
                anew[at] = True
        rest = np.flatnonzero(anew)
        out[rest] = 0.0
        if len(rest) > MOST_DERIVED:
            rest = rest[np.linspace(0, len(rest) - 1, MOST_DERIVED).astype(np.int64)]
        for i in rest:
            out[i] = self._derived(x[i : i + 1], int(rows.labels[i]), int(place[i]), float(rows.units[i]))
        return out

    def _changed(self, x: Array, y: int, g: int, units: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Log densities of rows of one class and cell by a rank-one change, and the rows for which it is not exact.

        The scatter S becomes S − c d dᵀ, with d from the mean and c = u κ / (κ − u) for u of κ rows.
        """
        out = np.zeros((len(x), self.block.classes))
        before = self.strength + self.flat.n[y, g]
        after, parts = before - units, range(self.block.classes)
        good, own = self.flat.n[y, g] - units > 1e-9 * self.flat.n[y, g], x - self.fitted.mean[y, g]
        with np.errstate(divide="ignore", invalid="ignore"):
            share, grown = units * before / after, (before / after)[:, None]
            for c in parts:
                apart = own * grown if c == y else x - self.fitted.mean[c, g]
                together = list(parts) if self.tie else [c]
                scatter, n = self.fitted.scatter[together, g].sum(0), self.fitted.n[together, g].sum()
                taken = share if self.tie or c == y else np.zeros(len(x))
                out[:, c], left = _densities(scatter, n - units * (taken > 0), apart, own, taken)
                good &= left > LEFT
        return out, ~(good & np.isfinite(out).all(1))

    def _sound(self, g: int) -> bool:
        """Whether every class has a covariance of its own in a cell, which keeps its digits in a rank-one change."""
        covariance = self.covariance[:, g]
        variance = np.einsum("kii->ki", covariance)
        least = ABOVE_DUST * dust(np.abs(self.fitted.mean[:, g]).max(0, initial=0.0))
        if self.borrowed[:, g].any() or not (variance > least).all():
            return False
        scale = np.sqrt(variance)
        values = np.linalg.eigvalsh(covariance / (scale[:, :, None] * scale[:, None, :]))
        return bool((values[:, 0] > CONDITION * values[:, -1]).all())

    def _derived(self, x: Array, y: int, g: int, units: float) -> Array:
        """Log densities of one row, its Gaussians derived anew from the statistic without it."""
        columns = list(dict.fromkeys((g, self.flat.n.shape[1] - 1)))  # the cell, and all cells, which it may borrow from
        whole = Scatter(self.flat.n[:, columns], self.flat.mean[:, columns], self.flat.scatter[:, columns])
        row = Scatter(np.zeros_like(whole.n), np.zeros_like(whole.mean), np.zeros_like(whole.scatter))
        row.n[y], row.mean[y] = np.minimum(units, whole.n[y]), x
        try:
            left = whole - row
        except ForgetError:  # too few digits would be left
            left = whole
        fitted = posterior_scatter(left, self.block.prior)
        covariance, _ = covariances(fitted, self.tie)
        found: Array = _scored(fitted.mean, covariance, x, 0)[0]
        return found


def _scored(mean: Array, covariance: Array, x: Array, g: int) -> Array:
    """Log densities of rows in one cell, by class."""
    term, every = JointGaussianTerm(mean, covariance, np.zeros(mean.shape[:2]), ()), np.arange(x.shape[1])
    return np.column_stack([term.density(x, every, c, g) for c in range(len(mean))])


def _densities(scatter: Array, n: Array, apart: Array, row: Array, share: Array) -> tuple[Array, Array]:
    """Log densities at `apart` from the mean for covariance (scatter − share row rowᵀ) / n, and the part of |scatter| left."""
    scale = np.sqrt(np.diag(scatter))
    root = np.linalg.cholesky(scatter / np.outer(scale, scale))
    a, r = np.linalg.solve(root, (apart / scale).T), np.linalg.solve(root, (row / scale).T)
    left = 1.0 - share * (r * r).sum(0)
    square = n * ((a * a).sum(0) + share * (a * r).sum(0) ** 2 / left)
    width = len(scale)
    logs = 2.0 * (np.log(np.diag(root)).sum() + np.log(scale).sum()) + np.log(left) - width * np.log(n)
    return -0.5 * (width * np.log(2 * np.pi) + logs + square), left
