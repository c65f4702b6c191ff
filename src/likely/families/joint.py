"""Columns that are not independent: a joint table, a joint Gaussian, or a Gaussian for every cell of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from likely import sharing
from likely.errors import UsageError
from likely.families.base import Encoded, Imagined, Labels, Parameters, log, shared
from likely.families.forms import Lookup, Quadratic
from likely.families.gaussian import ROUNDING, Gaussian, back_off, dust
from likely.families.statistics import MEAN_DIGITS, SINGULAR, Array, Scatter, Statistic, outer
from likely.schema import CATEGORY, Column

LARGEST_TABLE = 20_000_000


@dataclass(frozen=True)
class Joint:
    """The columns of one block modelled together; `tie="class"` shares the covariance among the classes."""

    tie: str | None = None

    name: ClassVar[str] = "joint"
    single: ClassVar[bool] = False
    strict: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.tie not in (None, "class"):
            raise UsageError(f"Joint(tie={self.tie!r}) is not known: choose None or 'class'")

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """Weight, mean and scatter of every cell; a row that misses any cell of the block adds nothing to it."""
        shape = (classes, *(int(s) for s in rows.size))
        if np.prod(shape, dtype=float) > LARGEST_TABLE:
            raise UsageError(f"a joint table of {shape} cells is too large: join fewer columns, or group their values")
        if labels.ndim == 2:
            return [_shared_scatter(rows, shared(labels, weights), shape)]
        whole = ~np.isnan(rows.numbers).any(1) & (labels >= 0) & (weights > 0)
        cell = labels.copy()
        for axis, size in enumerate(rows.size):
            code = rows.codes[:, axis] - rows.low[axis]
            whole &= (code >= 0) & (code < size)
            cell = cell * size + code
        return [_scatter(rows.numbers[whole], cell[whole], weights[whole], shape)]

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        tallied: Sequence[Scatter],
        imagined: Sequence[Imagined],
        classes: Sequence[Any],
    ) -> list[Parameters]:
        """The share of each cell and, where there are numbers, the Gaussian within it."""
        (columns,), (cloud,), (prior,) = blocks, tallied, imagined
        lookup = _table(cloud, [c for c in columns if c.kind == CATEGORY], prior)
        if cloud.mean.shape[-1] == 0:
            return [_table_parameters(columns, cloud, lookup, classes)]
        return [_cloud_parameters(columns, cloud, lookup, self.tie, prior, classes)]

    check = Gaussian.check

    def settings(self) -> dict[str, Any]:
        """What is needed to make this family again."""
        return {"tie": self.tie}


def _scatter(x: Array, cell: Any, weights: Array, shape: tuple[int, ...]) -> Scatter:
    """Weight, mean and scatter of the rows of each cell, by two passes over them."""
    cells, width = int(np.prod(shape)), x.shape[1]
    n = np.bincount(cell, weights, cells).astype(np.float64)
    mean, scatter = np.zeros((cells, width)), np.zeros((cells, width, width))
    if width and len(x):
        order = np.argsort(cell, kind="stable")
        edges = np.searchsorted(cell[order], np.arange(cells + 1))
        for g in np.flatnonzero(edges[1:] > edges[:-1]):
            rows = order[edges[g] : edges[g + 1]]
            part, w = x[rows] - x[rows[0]], weights[rows]  # relative to a row: a constant has no spread at all
            middle = w @ part / n[g]
            mean[g] = x[rows[0]] + middle
            apart = part - middle
            scatter[g] = (apart * w[:, None]).T @ apart
    return Scatter(n.reshape(shape), mean.reshape(*shape, width), scatter.reshape(*shape, width, width))


def _shared_scatter(rows: Encoded, share: Array, shape: tuple[int, ...]) -> Scatter:
    """The same where a row belongs to every class by a share: cell by cell, two passes of matrix products a class."""
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
        x, part = (rows.numbers, share) if here.all() else (rows.numbers[here], share[here])
        n[:, g], mean[:, g], scatter[:, g] = share_scatter(x, part)
    return Scatter(n.reshape(shape), mean.reshape(*shape, width), scatter.reshape(*shape, width, width))


def share_scatter(x: Array, share: Array) -> tuple[Array, Array, Array]:
    """Weight, mean and scatter of rows that belong to every class by a share."""
    classes, width = share.shape[1], x.shape[1]
    n, mean, half = np.zeros(classes), np.zeros((width, classes)), np.zeros((width, width, classes))
    first = x[0] if len(x) else np.zeros(width)  # which stands for zero, so that the means of chunks keep their digits
    sharing.share_scatter(x - first, np.ascontiguousarray(share), n, mean, half)
    scatter = half.transpose(2, 0, 1)
    return n, np.where(n[:, None] > 0, mean.T + first, 0.0), scatter + np.tril(scatter, -1).transpose(0, 2, 1)


def _table(cloud: Scatter, categories: Sequence[Column], prior: Imagined) -> Array:
    """Log probability of every cell per class; each axis ends with a place for unseen and one for missing values."""
    n = cloud.n
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
    for axis in axes:  # a missing value: the sum over the known ones, whatever the other values are
        known = np.take(share, np.arange(n.shape[axis]), axis).sum(axis, keepdims=True)
        share = np.concatenate([share, known if n.shape[axis] else np.ones_like(known)], axis)
    share[(slice(None), *[-1] * len(axes))] = 1.0  # all missing says nothing, not even a rounding error
    return log(share)


def cells_of(categories: Sequence[Column]) -> list[tuple[Any, ...]]:
    """Every combination of the values of some columns."""
    cells: list[tuple[Any, ...]] = [()]
    for column in categories:
        cells = [(*cell, value) for cell in cells for value in column.values]
    return cells


def _table_parameters(columns: tuple[Column, ...], cloud: Scatter, logs: Array, classes: Sequence[Any]) -> Parameters:
    inner = logs[(slice(None), *(slice(0, len(c.values)) for c in columns))].reshape(len(classes), -1)
    seen = cloud.n.reshape(len(classes), -1)
    name = " with ".join(c.name for c in columns)
    rows = tuple(
        {
            "column": name,
            "class": label,
            "value": cell,
            "count": float(seen[k, i]),
            "probability": float(np.exp(inner[k, i])),
        }
        for k, label in enumerate(classes)
        for i, cell in enumerate(cells_of(columns))
    )
    form = Lookup(np.ascontiguousarray(logs.reshape(len(classes), -1).T))
    return Parameters(tuple(c.name for c in columns), form, rows, inner.size, len(classes) * (inner.shape[1] - 1))


def _cloud_parameters(
    columns: tuple[Column, ...], cloud: Scatter, logs: Array, tie: str | None, prior: Imagined, classes: Sequence[Any]
) -> Parameters:
    categories = [c for c in columns if c.kind == CATEGORY]
    width = cloud.mean.shape[-1]
    # One more cell an axis for a value never seen: it has the class's Gaussian over all cells.
    padded = _with_unseen(cloud, len(categories))
    k, lines = len(classes), padded.n.shape[1:]
    flat = Scatter(
        padded.n.reshape(k, -1), padded.mean.reshape(k, -1, width), padded.scatter.reshape(k, -1, width, width)
    )
    flat = _with_prior(Scatter(flat.n, _means(flat), flat.scatter), prior)
    mean = flat.mean
    covariance, borrowed = _covariances(flat, mean, tie)
    weight = logs[(slice(None), *(slice(0, s) for s in lines))].reshape(k, -1)
    cells = cells_of(categories)
    rows = tuple(_cloud_rows(columns, cloud, weight, mean, covariance, lines, cells, classes))
    each = width * (width + 1) // 2
    groups = k * len(cells)
    free = groups * width + (len(cells) if tie else groups) * each + k * (len(cells) - 1)
    name = " with ".join(c.name for c in columns)
    notes = (f"columns {name!r}: a covariance is borrowed where too few rows were seen",) if borrowed else ()
    form = Quadratic(mean, covariance, weight, tuple(lines))
    return Parameters(
        tuple(c.name for c in columns), form, rows, groups * (width + each + bool(categories)), free, notes
    )


def _cloud_rows(
    columns: Sequence[Column], cloud: Scatter, weight: Array, mean: Array, covariance: Array, lines: tuple[int, ...],
    cells: Sequence[tuple[Any, ...]], classes: Sequence[Any],
) -> list[dict[str, Any]]:  # fmt: skip
    place = np.arange(weight.shape[1]).reshape(lines or (1,))[tuple(slice(0, s - 1) for s in lines)].reshape(-1)
    n = cloud.n.reshape(len(classes), -1)
    name = " with ".join(c.name for c in columns)
    return [
        {
            "column": name, "class": label, "value": cell, "count": float(n[k, i]),
            "probability": float(np.exp(weight[k, place[i]])),
            "mean": mean[k, place[i]].tolist(), "covariance": covariance[k, place[i]].tolist(),
        }
        for k, label in enumerate(classes)
        for i, cell in enumerate(cells)
    ]  # fmt: skip


def _with_unseen(cloud: Scatter, axes: int) -> Scatter:
    """The scatter with one more cell at the end of every category axis, holding the cells of that axis together."""
    for axis in range(1, axes + 1):
        whole = cloud.summed(axis)
        parts = ((cloud.n, whole.n), (cloud.mean, whole.mean), (cloud.scatter, whole.scatter))
        cloud = Scatter(*(np.concatenate([a, np.expand_dims(b, axis)], axis) for a, b in parts))
    return cloud


def _means(flat: Scatter) -> Array:
    """A mean per class and cell: its own, else the class's over all cells, else that of all rows."""
    whole = Scatter(flat.n[:, -1:], flat.mean[:, -1:], flat.scatter[:, -1:])  # the last cell holds all others
    level = np.where(whole.n[..., None] > 0, whole.mean, whole.summed(0).mean)
    return np.where(flat.n[..., None] > 0, flat.mean, level)


def _with_prior(flat: Scatter, prior: Imagined) -> Scatter:
    """Mean, and numerator and divisor of the covariance, with the imagined rows added to the seen ones."""
    imagined: tuple[float, Array] | None = getattr(prior, "scatter", None)
    if imagined is not None:  # rows that lie around the block's own mean
        rows, spread = imagined
        return Scatter(flat.n + rows, flat.mean, flat.scatter + np.diag(np.broadcast_to(spread, flat.mean.shape[-1:])))
    return flat if prior.normal is None else _with_normal(flat, prior.normal)


def _with_normal(flat: Scatter, normal: tuple[float, float, float, float]) -> Scatter:
    """The mode of the normal-inverse-Wishart posterior.

    It is the one whose every column alone has the normal-inverse-gamma prior that was asked for, the columns being
    independent before a row is seen.
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


def _covariances(flat: Scatter, mean: Array, tie: str | None) -> tuple[Array, bool]:
    """A covariance per class and cell: its own, else the cell's over all classes, else the class's, else a diagonal."""
    size = np.abs(mean)
    pooled, widest = _divide(flat.scatter.sum(0), flat.n.sum(0)), size.max(0, initial=0.0)
    own = np.broadcast_to(pooled[None], flat.scatter.shape) if tie else _divide(flat.scatter, flat.n)
    last = _diagonal(flat)
    result, borrowed = own.copy(), False
    end = flat.n.shape[1] - 1
    for k, g in np.ndindex(*flat.n.shape):
        level = widest[g] if tie else size[k, g]
        # The last of several cells holds the others together: there the differences of their means are spread as well.
        if not _sound(own[k, g], level, 0 < g == end):
            borrowed |= bool(flat.n[k, g] > 0)
            others = ((pooled[g], g), (own[k, end], end), (pooled[end], end))
            result[k, g] = next((c for c, at in others if _sound(c, widest[at], 0 < at == end)), last)
    return result, borrowed


def _diagonal(flat: Scatter) -> Array:
    """The variances alone, each with its own back-off, where the columns are too few rows or copies of each other."""
    mean, n = flat.mean[:, -1].T, np.broadcast_to(flat.n[:, -1], flat.mean[:, -1].T.shape)
    spread = np.einsum("kii->ik", flat.scatter[:, -1])
    variance, _ = back_off(np.zeros_like(mean), mean, n, spread)
    return np.diag(variance.max(1, initial=1e-300))


def _divide(scatter: Array, n: Array) -> Array:
    return np.divide(scatter, n[..., None, None], out=np.zeros(scatter.shape), where=n[..., None, None] > 0)


def _sound(covariance: Array, level: Array, of_means: bool) -> bool:
    """Whether the covariance can be inverted without losing all digits, judged free of the columns' units."""
    variance = np.diag(covariance)
    if not np.isfinite(covariance).all() or np.any(variance <= dust(level, MEAN_DIGITS if of_means else ROUNDING)):
        return False
    scale = np.sqrt(variance)
    values = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    return bool(values[0] > SINGULAR * values[-1])
