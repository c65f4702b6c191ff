"""Scores of numeric nodes: penalised log-likelihoods of linear Gaussians, from scatter matrices that many families share."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likely.networks.family_counts import LinearMoments, grouped_moments
from likely.networks.rows import Rows
from likely.schema import CATEGORY

Array = NDArray[np.float64]
MOST_KEPT = 1 << 23  # numbers of all scatter matrices that are kept: 64 MB
NARROWEST = 1e-9  # a variance is at least this share of the node's variance over all rows


class GaussianScores:
    """Log-likelihoods of numeric nodes given their parents.

    Parameters
    ----------
    rows : Rows
        The table; a row in which a cell of a family is missing is left out of its score.

    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.sizes = [len(c.values) if c.kind == CATEGORY else 1 for c in rows.columns]
        self.line = [rows.numeric.get(c.name, -1) for c in rows.columns]
        self._gaps = bool(np.isnan(rows.numbers).any())
        self._kept: dict[tuple[int, ...], LinearMoments] = {}
        self._room = MOST_KEPT

    def log_likelihoods(self, discrete: tuple[int, ...], lines: Sequence[tuple[int, ...]]) -> Array:
        """The log-likelihood of families with the same categorical parents and as many numeric ones.

        `lines` are those of the numeric parents and, last, of the node itself.
        """
        if self._gaps or (every := self._all(discrete)) is None:
            return np.concatenate([_log_likelihoods(self._moments(discrete, each), [range(len(each))]) for each in lines])
        return _log_likelihoods(every, lines)

    def _all(self, discrete: tuple[int, ...]) -> LinearMoments | None:
        """The moments of all numeric columns in each configuration; None where these would be too large to keep."""
        if discrete not in self._kept:
            width = len(self.rows.numbers)
            if min(math.prod(self.sizes[p] for p in discrete), self.rows.n) * width * width > self._room:
                return None
            self._kept[discrete] = made = self._moments(discrete, range(width))
            self._room -= made.scatter.size
        return self._kept[discrete]

    def _moments(self, discrete: tuple[int, ...], lines: Sequence[int]) -> LinearMoments:
        """The moments of some numeric columns in each configuration that occurs."""
        rows = self.rows
        x = rows.numbers[list(lines)].T
        usable = ~np.isnan(x).any(1)
        where = np.zeros(rows.n, np.int64)
        for p in discrete:
            where = where * self.sizes[p] + rows.codes[p]
            usable &= rows.codes[p] >= 0
        found, where = np.unique(where[usable], return_inverse=True)
        return grouped_moments(x[usable], where.reshape(-1), rows.each_weight()[usable], (len(found),))


def _log_likelihoods(moments: LinearMoments, lines: Sequence[Sequence[int]]) -> Array:
    """The log-likelihood of linear Gaussians for several choices of columns, of which the last is the node.

    A configuration with no more rows than coefficients would fit them without an error, however they fell: its rows have the
    density of the regression over all rows, so that it gains nothing. The variance of any other is drawn by one pseudo-row
    towards that within all configurations, and this, again by one, towards that of the regression over all rows.
    """
    at = np.array([list(each) for each in lines], np.int64)
    n, m = moments.n, at.shape[1]
    total = float(n.sum())
    if total <= 0:
        return np.zeros(len(at))
    mean = moments.mean[:, at].swapaxes(0, 1)
    scatter = moments.scatter[:, at[:, :, None], at[:, None, :]].swapaxes(0, 1)
    apart = mean - np.einsum("j,fja->fa", n / total, mean)[:, None]
    outer = scatter + n[None, :, None, None] * apart[..., :, None] * apart[..., None, :]
    whole = outer.sum(1) / total
    least = np.maximum(NARROWEST * whole[:, -1, -1], 1e-300)
    slopes = _slopes(whole) if total > m else np.zeros((len(at), m - 1))
    common = np.maximum(_rest(whole, slopes), 0.0)
    if len(n) == 1:
        variance = np.maximum(common, least)
        return np.asarray(-0.5 * total * (np.log(2 * np.pi * variance) + common / variance))
    rich = n > m
    v = np.maximum(common, least)[:, None]
    poor = _rest(outer[:, ~rich], slopes[:, None]).sum(1)
    found = -0.5 * (n[~rich].sum() * np.log(2 * np.pi * v[:, 0]) + poor / v[:, 0])
    k = n[rich]
    inside = scatter[:, rich] / k[:, None, None]
    rest = np.maximum(_rest(inside, _slopes(inside)), 0.0)
    within = (np.einsum("fj,j->f", rest, k) + common) / ((k - m).sum() + 1.0)
    variance = np.maximum((k * rest + within[:, None]) / (k + 1.0), least[:, None])
    return np.asarray(found - 0.5 * np.einsum("fj,j->f", np.log(2 * np.pi * variance) + rest / variance, k))


def _slopes(covariance: Array) -> Array:
    """The regression of the last variable on the others; a little is added to their variances, which may be 0."""
    m = covariance.shape[-1]
    if m == 1:
        return np.zeros((*covariance.shape[:-2], 0))
    inner = covariance[..., :-1, :-1]
    ridge = NARROWEST * np.maximum(np.diagonal(inner, axis1=-2, axis2=-1), 1e-300)
    return np.asarray(np.linalg.solve(inner + ridge[..., None] * np.eye(m - 1), covariance[..., :-1, -1:])[..., 0])


def _rest(covariance: Array, slopes: Array) -> Array:
    """The variance of the last variable around a linear function of the others."""
    away = np.concatenate([-slopes, np.ones((*slopes.shape[:-1], 1))], -1)
    away = np.broadcast_to(away, covariance.shape[:-1])
    return np.asarray(np.einsum("...a,...ab,...b->...", away, covariance, away))
