"""Weight, mean and scatter of joint blocks: sufficient statistics of a Gaussian in each cell of their categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.families.base import Encoded
from likely.families.statistics import Array, Scatter
from likely.kernels import em_loops


def cell_scatter(x: Array, cell: Any, weights: Array, shape: tuple[int, ...]) -> Scatter:
    """Weight, mean and scatter of the rows of each cell, in two passes."""
    cells, width = int(np.prod(shape)), x.shape[1]
    n = np.bincount(cell, weights, cells).astype(np.float64)
    mean, scatter = np.zeros((cells, width)), np.zeros((cells, width, width))
    if width and len(x):
        order = np.argsort(cell, kind="stable")
        edges = np.searchsorted(cell[order], np.arange(cells + 1))
        for g in np.flatnonzero(edges[1:] > edges[:-1]):
            rows = order[edges[g] : edges[g + 1]]
            part, w = x[rows] - x[rows[0]], weights[rows]  # relative to a row: a constant column has a scatter of exactly zero
            middle = w @ part / n[g]
            mean[g] = x[rows[0]] + middle
            deviation = part - middle
            scatter[g] = (deviation * w[:, None]).T @ deviation
    return Scatter(n.reshape(shape), mean.reshape(*shape, width), scatter.reshape(*shape, width, width))


def weighted_cell_scatter(rows: Encoded, responsibilities: Array, shape: tuple[int, ...]) -> Scatter:
    """Weight, mean and scatter by class and cell of rows with responsibilities, in two passes a class."""
    whole, cell = ~np.isnan(rows.numbers).any(1), np.zeros(len(rows.numbers), np.int64)
    for axis, size in enumerate(rows.size):
        code = rows.codes[:, axis] - rows.low[axis]
        whole &= (code >= 0) & (code < size)
        cell = cell * size + code
    classes, width = shape[0], rows.numbers.shape[1]
    n = np.zeros((classes, int(np.prod(shape[1:]))))
    mean, scatter = np.zeros((*n.shape, width)), np.zeros((*n.shape, width, width))
    for g in range(n.shape[1]) if whole.any() else ():
        here = whole & (cell == g)
        x, part = (rows.numbers, responsibilities) if here.all() else (rows.numbers[here], responsibilities[here])
        n[:, g], mean[:, g], scatter[:, g] = weighted_scatter(x, part)
    return Scatter(n.reshape(shape), mean.reshape(*shape, width), scatter.reshape(*shape, width, width))


def weighted_scatter(x: Array, responsibilities: Array) -> tuple[Array, Array, Array]:
    """Weight, mean and scatter by class of rows with responsibilities."""
    classes, width = responsibilities.shape[1], x.shape[1]
    n, mean, half = np.zeros(classes), np.zeros((width, classes)), np.zeros((width, width, classes))
    first = x[0] if len(x) else np.zeros(width)  # the origin, so that the means of chunks keep their digits
    em_loops.weighted_scatter(x - first, np.ascontiguousarray(responsibilities), n, mean, half)
    scatter = half.transpose(2, 0, 1)
    return n, np.where(n[:, None] > 0, mean.T + first, 0.0), scatter + np.tril(scatter, -1).transpose(0, 2, 1)
