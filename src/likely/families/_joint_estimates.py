"""Estimates of joint blocks: probabilities of cells, means and covariances within them, and what takes their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.conjugate import NormalPrior
from likely.families.base import ROUNDING, BlockPrior, dust, log, wider_variance
from likely.families.statistics import MEAN_DIGITS, SINGULAR, Array, Scatter, outer
from likely.schema import Column


def log_shares(statistic: Scatter, categories: Sequence[Column], prior: BlockPrior) -> Array:
    """Log probability of every cell by class; each axis ends with an entry for unseen and one for missing values."""
    n = statistic.n
    if not categories:
        return np.zeros((n.shape[0],))
    cells, axes = max(int(np.prod(n.shape[1:])), 1), range(1, n.ndim)
    pseudo = prior.pseudocounts(cells_of(categories)).reshape(n.shape[1:])
    whole = (n + pseudo).sum(tuple(axes), keepdims=True)
    share = np.divide(n + pseudo, whole, out=np.full(n.shape, 1.0 / cells), where=whole > 0)
    never = np.divide(prior.unseen(cells), whole, out=np.full(whole.shape, 1.0 / cells), where=whole > 0)
    for axis in axes:
        shape = [1 if a == axis else size for a, size in enumerate(share.shape)]
        share = np.concatenate([share, np.broadcast_to(never, shape)], axis)
    for axis in axes:  # a missing value: the marginal over the known ones
        known = np.take(share, np.arange(n.shape[axis]), axis).sum(axis, keepdims=True)
        share = np.concatenate([share, known if n.shape[axis] else np.ones_like(known)], axis)
    share[(slice(None), *[-1] * len(axes))] = 1.0  # all missing: exactly 1
    return log(share)


def cells_of(categories: Sequence[Column]) -> list[tuple[Any, ...]]:
    """Every combination of the values of some columns."""
    cells: list[tuple[Any, ...]] = [()]
    for column in categories:
        cells = [(*cell, value) for cell in cells for value in column.values]
    return cells


def flattened(statistic: Scatter, axes: int) -> Scatter:
    """Scatter of classes × cells; every category has one more cell for an unseen value, which holds all others."""
    # An unseen value has the class's Gaussian over all cells.
    padded, width = _with_unseen(statistic, axes), statistic.mean.shape[-1]
    k = len(padded.n)
    return Scatter(padded.n.reshape(k, -1), padded.mean.reshape(k, -1, width), padded.scatter.reshape(k, -1, width, width))


def posterior_scatter(flat: Scatter, prior: BlockPrior) -> Scatter:
    """Mean, and numerator and denominator of the covariance, of every class and cell."""
    return _with_prior(Scatter(flat.n, _means(flat), flat.scatter), prior)


def _with_unseen(statistic: Scatter, axes: int) -> Scatter:
    """Scatter with one more cell at the end of every category axis: the sum over that axis."""
    for axis in range(1, axes + 1):
        whole = statistic.summed(axis)
        parts = ((statistic.n, whole.n), (statistic.mean, whole.mean), (statistic.scatter, whole.scatter))
        statistic = Scatter(*(np.concatenate([a, np.expand_dims(b, axis)], axis) for a, b in parts))
    return statistic


def _means(flat: Scatter) -> Array:
    """Mean by class and cell: its own, else the class's over all cells, else that of all rows."""
    whole = Scatter(flat.n[:, -1:], flat.mean[:, -1:], flat.scatter[:, -1:])  # the last cell holds all others
    level = np.where(whole.n[..., None] > 0, whole.mean, whole.summed(0).mean)
    return np.where(flat.n[..., None] > 0, flat.mean, level)


def _with_prior(flat: Scatter, prior: BlockPrior) -> Scatter:
    """Mean, and numerator and denominator of the covariance, with the pseudo-rows added."""
    pseudo: tuple[float, Array] | None = getattr(prior, "scatter", None)
    if pseudo is not None:  # pseudo-rows around the block's own mean
        rows, spread = pseudo
        return Scatter(flat.n + rows, flat.mean, flat.scatter + np.diag(np.broadcast_to(spread, flat.mean.shape[-1:])))
    return flat if prior.normal is None else _with_normal(flat, prior.normal)


def _with_normal(flat: Scatter, normal: NormalPrior) -> Scatter:
    """Mode of the normal–inverse-Wishart posterior.

    Every column alone has the given normal–inverse-gamma prior; the columns are uncorrelated a priori.
    """
    level, strength, shape, scale = normal
    whole, width = flat.n + strength, flat.mean.shape[-1]
    share = np.divide(strength, whole, out=np.zeros_like(whole), where=whole > 0)
    apart = level - flat.mean
    drift = outer(apart) * (share * flat.n)[..., None, None]
    return Scatter(
        flat.n + 2 * shape + 2 * width + 1,
        flat.mean + apart * share[..., None],
        flat.scatter + drift + 2 * scale * np.eye(width),
    )


def covariances(flat: Scatter, tie: str | None) -> tuple[Array, NDArray[np.bool_]]:
    """Covariance by class and cell: its own, else the cell's over all classes, else the class's, else a diagonal.

    Beside them, which are not their own.
    """
    size = np.abs(flat.mean)
    pooled, widest = _divide(flat.scatter.sum(0), flat.n.sum(0)), size.max(0, initial=0.0)
    own = np.broadcast_to(pooled[None], flat.scatter.shape) if tie else _divide(flat.scatter, flat.n)
    last = _diagonal(flat)
    result, borrowed = own.copy(), np.zeros(flat.n.shape, bool)
    end = flat.n.shape[1] - 1
    for k, g in np.ndindex(*flat.n.shape):
        level = widest[g] if tie else size[k, g]
        # The last of several cells is the sum of the others: its spread includes the differences of their means.
        if not _sound(own[k, g], level, 0 < g == end):
            borrowed[k, g] = True
            others = ((pooled[g], g), (own[k, end], end), (pooled[end], end))
            result[k, g] = next((c for c, at in others if _sound(c, widest[at], 0 < at == end)), last)
    return result, borrowed


def _diagonal(flat: Scatter) -> Array:
    """Diagonal covariance with back-off by column, for too few rows or collinear columns."""
    mean, n = flat.mean[:, -1].T, np.broadcast_to(flat.n[:, -1], flat.mean[:, -1].T.shape)
    spread = np.einsum("kii->ik", flat.scatter[:, -1])
    return np.diag(wider_variance(mean, n, spread).max(1, initial=1e-300))


def _divide(scatter: Array, n: Array) -> Array:
    return np.divide(scatter, n[..., None, None], out=np.zeros(scatter.shape), where=n[..., None, None] > 0)


def _sound(covariance: Array, level: Array, of_means: bool) -> bool:
    """Whether the covariance can be inverted without losing all digits, judged independently of the columns' units."""
    variance = np.diag(covariance)
    if not np.isfinite(covariance).all() or np.any(variance <= dust(level, MEAN_DIGITS if of_means else ROUNDING)):
        return False
    scale = np.sqrt(variance)
    values = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    return bool(values[0] > SINGULAR * values[-1])
