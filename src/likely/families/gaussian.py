"""Columns of numbers: a mean per class, and a variance of its own or shared along classes, columns or both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely import kernels, sharing
from likely.errors import UsageError
from likely.families.base import Encoded, Imagined, Labels, Parameters, first_bad, shared
from likely.families.forms import Parabola
from likely.families.statistics import LARGEST, MEAN_DIGITS, Array, Moments, Statistic
from likely.schema import Column

# What shares a variance, as axes of columns × classes.
SHARED: dict[str | None, tuple[int, ...]] = {None: (), "class": (1,), "column": (0,), "both": (0, 1)}
# A standard deviation below this share of the mean is rounding, not spread: about four units in the last place.
ROUNDING = 1e-15
STRETCH = 8_192  # rows: a multiple of the chunks that the kernel merges, so that the sums are the same
SMALLEST = 1e-290  # a variance below this overflows when it divides


@dataclass(frozen=True)
class Gaussian:
    """A bell curve per class. `tie` names what shares a variance: None, "class", "column" or "both".

    `variance` is for those who know it beforehand: then only the means are learned.
    """

    tie: str | None = None
    variance: float | None = None

    name: ClassVar[str] = "gaussian"
    single: ClassVar[bool] = True
    strict: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.tie not in SHARED:
            raise UsageError(f"Gaussian(tie={self.tie!r}) is not known: choose None, 'class', 'column' or 'both'")
        if self.variance is not None and not (self.variance > SMALLEST and np.isfinite(self.variance)):
            raise UsageError(f"Gaussian(variance={self.variance!r}): a known variance is a number above zero")

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """Weight, mean and spread of every column in every class, in one sweep."""
        if labels.ndim == 2:
            turned = [np.zeros((rows.numbers.shape[1], classes)) for _ in range(3)]
            sharing.share_moments(rows.numbers, shared(labels, weights), *turned)
            return [Moments(*column) for column in zip(*turned, strict=True)]
        shape = (classes, len(rows.columns) or rows.numbers.shape[1])
        n, mean, spread = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for x, y, w in _side_by_side(rows, labels, weights):
            kernels.count_moments(x, y, w, n, mean, spread)
        return [Moments(*column) for column in zip(n.T.copy(), mean.T.copy(), spread.T.copy(), strict=True)]

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        tallied: Sequence[Moments],
        imagined: Sequence[Imagined],
        classes: Sequence[Any],
    ) -> list[Parameters]:
        """Mean and variance per column and class; the variance is the mean squared deviation over the cells that share it."""
        n, mean, spread = (np.array([getattr(m, part) for m in tallied]) for part in ("n", "mean", "spread"))
        believed, variance, floored = believe(n, mean, spread, imagined, self.tie)
        known = self.variance is not None
        if self.variance is not None:
            variance, floored = np.full_like(variance, self.variance), np.zeros_like(floored)
        free = [len(classes)] * len(blocks) if known else _free(len(classes), len(blocks), self.tie)
        return [
            _parameters(column.name, believed[i], variance[i], n[i], floored[i], classes, free[i])
            for i, (column,) in enumerate(blocks)
        ]

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """Infinity has no place on a bell curve, and what overflows when squared has no variance."""
        found = first_bad(np.isinf(numbers), "is not a finite number")
        return found or first_bad(np.abs(numbers) > LARGEST, "is too large to be squared")

    def settings(self) -> dict[str, Any]:
        """What is needed to make this family again."""
        return {"tie": self.tie} | ({} if self.variance is None else {"variance": self.variance})


def believe(
    n: Array, mean: Array, spread: Array, imagined: Sequence[Imagined], tie: str | None
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Mean and variance of every cell of lines × classes, and where a variance had to be borrowed."""
    believed, deviation, degrees = _with_prior(n, mean, spread, [prior.normal for prior in imagined])
    variance = _tied(deviation, degrees, tie)
    variance, floored = back_off(variance, mean, n, spread, tie)
    believed = np.where(n + _strength(imagined) > 0, believed, _overall(n, mean))
    return believed, variance, floored


def _side_by_side(rows: Encoded, labels: Labels, weights: Array) -> Iterator[tuple[Array, Labels, Array]]:
    """The numbers row by row; columns that stand apart are brought together a stretch at a time, which stays at hand."""
    if not rows.columns:
        yield rows.numbers, labels, weights
        return
    width = len(rows.columns)
    room = np.empty((STRETCH, width))
    for a in range(0, len(labels), STRETCH):
        x, columns = room[: len(labels) - a], [column[a : a + STRETCH] for column in rows.columns]
        for j in range(0, width, 4) if width >= 4 else ():
            first = min(j, width - 4)
            kernels.weave(x, first, *columns[first : first + 4])
        for j in range(width if width < 4 else 0):
            x[:, j] = columns[j]
        yield x, labels[a : a + STRETCH], weights[a : a + STRETCH]


def _strength(imagined: Sequence[Imagined]) -> Array:
    return np.array([[prior.normal[1] if prior.normal else 0.0] for prior in imagined])


def _with_prior(
    n: Array, mean: Array, spread: Array, priors: Sequence[tuple[float, float, float, float] | None]
) -> tuple[Array, Array, Array]:
    """Posterior mean, and numerator and divisor of the variance: the mode of the normal-inverse-gamma posterior."""
    none = (0.0, 0.0, -1.5, 0.0)  # imagines nothing: the mode is then the maximum-likelihood estimate
    m0, k0, a0, b0 = (np.array([[p[part]] for p in (q or none for q in priors)]) for part in range(4))
    whole = k0 + n
    believed = np.divide(k0 * m0 + n * mean, whole, out=np.zeros_like(mean), where=whole > 0)
    drift = np.divide(k0 * n, whole, out=np.zeros_like(mean), where=whole > 0) * (mean - m0) ** 2
    return believed, 2 * b0 + spread + drift, 2 * a0 + n + 3.0


def _tied(deviation: Array, degrees: Array, tie: str | None) -> Array:
    """The variance over the cells (columns × classes) that share it."""
    axes = SHARED[tie]
    if axes:
        # Every cell brings its own imagined rows along: they pool like seen ones.
        deviation = np.broadcast_to(deviation.sum(axes, keepdims=True), deviation.shape)
        degrees = np.broadcast_to(degrees.sum(axes, keepdims=True), degrees.shape)
    return np.divide(deviation, degrees, out=np.zeros(deviation.shape), where=degrees > 0)


def back_off(
    variance: Array, mean: Array, n: Array, spread: Array, tie: str | None = None
) -> tuple[Array, NDArray[np.bool_]]:
    """A variance of zero claims more than rows can show: then that of all classes speaks, then of all rows, then 1."""
    level = _overall(n, mean)
    total_n = n.sum(1, keepdims=True)
    within = np.divide(spread.sum(1, keepdims=True), total_n, out=np.zeros_like(total_n), where=total_n > 0)
    between = (n * (mean - level) ** 2).sum(1, keepdims=True)
    total = within + np.divide(between, total_n, out=np.zeros_like(total_n), where=total_n > 0)
    size = np.abs(mean)
    own = np.broadcast_to(size.max(SHARED[tie], keepdims=True, initial=0.0), size.shape) if SHARED[tie] else size
    widest = size.max(1, keepdims=True, initial=0.0)
    floored = variance <= dust(own)
    wider = np.where(within > dust(widest), within, np.where(total > dust(widest, MEAN_DIGITS), total, 1.0))
    return np.where(floored, wider, variance), floored


def dust(mean: Array, share: float = ROUNDING) -> Array:
    """The variance that rounding alone can give to numbers of this size; to means of them, with MEAN_DIGITS."""
    return np.maximum((share * np.abs(mean)) ** 2, SMALLEST)


def _overall(n: Array, mean: Array) -> Array:
    """The mean over all classes; relative to the mean of one, so that equal means give exactly that."""
    whole = n.sum(1, keepdims=True)
    start = np.take_along_axis(mean, (n > 0).argmax(1)[:, None], 1) if n.shape[1] else np.zeros_like(whole)
    apart = (n * (mean - start)).sum(1, keepdims=True)
    level: Array = start + np.divide(apart, whole, out=np.zeros_like(whole), where=whole > 0)
    return level


def _free(classes: int, columns: int, tie: str | None) -> list[int]:
    """Free parameters a column: a mean per class, and the variances, a shared one booked on the first column."""
    each = {None: classes, "class": 1, "column": 0, "both": 0}[tie]
    shared = {None: 0, "class": 0, "column": classes, "both": 1}[tie]
    return [classes + each + (shared if i == 0 else 0) for i in range(columns)]


def _parameters(
    name: str, mean: Array, variance: Array, n: Array, floored: NDArray[np.bool_], classes: Sequence[Any], free: int
) -> Parameters:
    form = Parabola(mean, -0.5 / variance, -0.5 * np.log(2 * np.pi * variance))
    rows = tuple(
        {
            "column": name,
            "class": label,
            "count": float(n[c]),
            "mean": float(mean[c]),
            "deviation": float(np.sqrt(variance[c])),
        }
        for c, label in enumerate(classes)
    )
    alone = [str(label) for c, label in enumerate(classes) if floored[c] and n[c] > 0]
    notes = (f"column {name!r} does not vary in {', '.join(alone[:5])}: a variance is borrowed",) if alone else ()
    return Parameters((name,), form, rows, 2 * len(classes), free, notes)
