"""Sufficient statistics: weights, moments and scatter. They add, scale and, as far as digits allow, subtract.

Axis 0 is always the class. Further leading axes are the domains of categorical columns, so that `expand` adds new classes and
values as zeros.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from likely.errors import ForgetError

Array = NDArray[np.float64]
Index = NDArray[np.intp]

EPSILON = float(np.finfo(np.float64).eps)
LARGEST = 1e150  # larger numbers overflow when squared
# Relative rounding error of a spread or a mean beyond which a subtraction is refused: six digits must be left.
LOSSY = 1e-6
LOST_DIGITS = (
    "forgetting would lose digits of {}: the remainder is tiny compared with what is removed; "
    "keep the models of the parts and add those that stay (exact), or learn anew"
)
# Means that differ by less than this fraction may be equal: adding and subtracting tallies rounds them. A single remaining row
# needs this many digits of its mean: where no class varies, the differences of the means are used as a variance.
MEAN_DIGITS = 1e-13
# Reciprocal condition number of a correlation matrix below which its inverse is noise.
SINGULAR = 1e-13


class Statistic(Protocol):
    """Sufficient statistic of one block of columns: additive, with multiples and differences."""

    def __add__(self, other: Self) -> Self: ...
    def __sub__(self, other: Self) -> Self: ...
    def __mul__(self, factor: float) -> Self: ...
    def expand(self, maps: Sequence[Index], sizes: Sequence[int]) -> Self:
        """The same statistic on larger domains: position i of axis a moves to maps[a][i]."""

    def pick(self, maps: Sequence[Index]) -> Self:
        """The same statistic on smaller domains: axis a keeps positions maps[a]."""

    def arrays(self) -> dict[str, Array]:
        """The arrays by name."""

    def weight(self) -> Array:
        """Weight by class and domain value."""


class _Arrays:
    """Base of statistics that are tuples of arrays."""

    def arrays(self) -> dict[str, Array]:
        """The arrays by name."""
        return dict(vars(self))

    def weight(self) -> Array:
        """Weight: the first of the arrays."""
        first: Array = next(iter(vars(self).values()))
        return first

    def expand(self, maps: Sequence[Index], sizes: Sequence[int]) -> Self:
        """The same statistic on larger domains, zero where nothing was seen."""
        return type(self)(*(_expand(array, maps, sizes) for array in self.arrays().values()))

    def pick(self, maps: Sequence[Index]) -> Self:
        """The same statistic on smaller domains."""
        return type(self)(*(array[np.ix_(*maps)] for array in self.arrays().values()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        pairs = zip(self.arrays().values(), other.arrays().values(), strict=True)
        return all(np.array_equal(a, b) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]


def finite(statistic: Statistic) -> bool:
    """Whether every number is finite, and every mean can be squared."""
    arrays = statistic.arrays()
    if "mean" in arrays and not (np.abs(arrays["mean"]) <= LARGEST).all():
        return False
    return all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f")


def subtract_counts(whole: Array, part: Array) -> Array:
    """Difference of counts; refused where one would become negative."""
    left = whole - part
    # Integers subtract exactly; fractional weights leave rounding errors where the true difference is zero.
    exact = (whole == np.floor(whole)) & (part == np.floor(part))
    if np.any(left < np.where(exact, 0.0, -1e-9 * whole)):
        raise ForgetError("more would be forgotten than was ever counted: these rows were not learned by this model")
    return np.where(left <= np.where(exact, 0.0, 1e-12 * whole), 0.0, left)


def _expand(array: Array, maps: Sequence[Index], sizes: Sequence[int]) -> Array:
    out = np.zeros((*sizes, *array.shape[len(sizes) :]))
    out[maps[0] if len(maps) == 1 else np.ix_(*maps)] = array
    return out


@dataclass(frozen=True, eq=False)
class Counts(_Arrays):
    """Weight by class and value."""

    seen: Array

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.seen + other.seen)

    def __sub__(self, other: Counts) -> Counts:
        return Counts(subtract_counts(self.seen, other.seen))

    def __mul__(self, factor: float) -> Counts:
        return Counts(self.seen * factor)

    def turned(self, axes: Sequence[int], numbers: Sequence[int]) -> Counts:
        """The same counts with the columns in another order."""
        return Counts(self.seen[:, list(numbers)])


@dataclass(frozen=True, eq=False)
class EventCounts(Counts):
    """Counts of events, and by class the log of what no parameter changes in their probability.

    `ways` is the sum over the rows of log 1 / x!, or of the log binomial or multinomial coefficient. A sum with counts of an
    older version, which lack it, lacks it too.
    """

    ways: Array

    def __add__(self, other: Any) -> Any:
        seen = self.seen + other.seen
        return EventCounts(seen, self.ways + other.ways) if isinstance(other, EventCounts) else Counts(seen)

    def __sub__(self, other: Any) -> Any:
        seen = subtract_counts(self.seen, other.seen)
        if not isinstance(other, EventCounts):
            return Counts(seen)
        return EventCounts(seen, np.where(seen.any(1), self.ways - other.ways, 0.0))

    def __mul__(self, factor: float) -> EventCounts:
        return EventCounts(self.seen * factor, self.ways * factor)

    def __eq__(self, other: object) -> bool:
        """Counts are equal exactly, sums of logarithms up to rounding, which depends on their order."""
        if not isinstance(other, EventCounts):
            return NotImplemented
        return np.array_equal(self.seen, other.seen) and np.allclose(self.ways, other.ways, rtol=1e-9, atol=1e-9)

    __hash__ = None  # type: ignore[assignment]

    def turned(self, axes: Sequence[int], numbers: Sequence[int]) -> EventCounts:
        """The same counts with the columns in another order."""
        return EventCounts(self.seen[:, list(numbers)], self.ways)


@dataclass(frozen=True, eq=False)
class Moments(_Arrays):
    """Weight, mean and sum of squared deviations by class; merged pairwise, never raw squares."""

    n: Array
    mean: Array
    spread: Array

    def __add__(self, other: Moments) -> Moments:
        n = self.n + other.n
        share = _ratio(other.n, n)
        apart = other.mean - self.mean
        spread = self.spread + other.spread + apart * apart * (self.n * share)
        return Moments(
            n, np.where(other.n > 0, np.where(self.n > 0, self.mean + apart * share, other.mean), self.mean), spread
        )

    def __sub__(self, other: Moments) -> Moments:
        n = subtract_counts(self.n, other.n)
        spread = spread_left(n, self, other)
        return Moments(n, mean_left(n, self, other, spread), spread)

    def summed(self) -> Moments:
        """Sum over the first axis, relative to the first mean so that no digits are lost."""
        n = self.n.sum(0)
        start = np.take_along_axis(self.mean, (self.n > 0).argmax(0)[None], 0)[0]
        apart = np.where(self.n > 0, self.mean - start, 0.0)
        drift = _ratio((self.n * apart).sum(0), n)
        return Moments(n, start + drift, self.spread.sum(0) + (self.n * (apart - drift) ** 2).sum(0))

    def __mul__(self, factor: float) -> Moments:
        keep = 1.0 if factor else 0.0
        return Moments(self.n * factor, self.mean * keep, self.spread * factor)


@dataclass(frozen=True, eq=False)
class Scatter(_Arrays):
    """Weight, mean vector and scatter matrix by class and cell; without numbers a joint table."""

    n: Array
    mean: Array
    scatter: Array

    def __add__(self, other: Scatter) -> Scatter:
        n = self.n + other.n
        share = _ratio(other.n, n)
        apart = other.mean - self.mean
        scatter = self.scatter + other.scatter + outer(apart) * (self.n * share)[..., None, None]
        seen = np.where((self.n > 0)[..., None], self.mean + apart * share[..., None], other.mean)
        return Scatter(n, np.where((other.n > 0)[..., None], seen, self.mean), scatter)

    def __sub__(self, other: Scatter) -> Scatter:
        n = subtract_counts(self.n, other.n)
        a, b = self._apart(), other._apart()
        spread = spread_left(n[..., None], a, b)
        mean = mean_left(n[..., None], a, b, spread)
        between = outer(other.mean - self.mean) * (other.n * _ratio(self.n, n))[..., None, None]
        some = spread > 0  # a constant column has no covariance
        scatter = np.where(some[..., :, None] & some[..., None, :], self.scatter - other.scatter - between, 0.0)
        dust = _dust(n[..., None], a, b)
        for cell in zip(*np.nonzero(some.sum(-1) > 1), strict=True):
            scatter[cell] = _scatter_left(scatter[cell], spread[cell], dust[cell])
        return Scatter(n, mean, scatter)

    def _apart(self) -> Moments:
        """Moments of each column of the block."""
        return Moments(self.n[..., None], self.mean, np.einsum("...ii->...i", self.scatter))

    def __mul__(self, factor: float) -> Scatter:
        keep = 1.0 if factor else 0.0
        return Scatter(self.n * factor, self.mean * keep, self.scatter * factor)

    def turned(self, axes: Sequence[int], numbers: Sequence[int]) -> Scatter:
        """The same scatter with the columns in another order: domains along `axes`, and numbers."""
        move, pick = [0, *(axis + 1 for axis in axes)], list(numbers)
        end = len(move)
        mean = self.mean.transpose(*move, end)[..., pick]
        return Scatter(
            self.n.transpose(move), mean, self.scatter.transpose(*move, end, end + 1)[..., pick, :][..., pick]
        )

    def summed(self, axis: int) -> Scatter:
        """Sum over an axis, relative to the first mean so that no digits are lost."""
        n, wide = self.n.sum(axis), self.n[..., None]
        start = np.zeros(())
        if self.n.shape[axis]:
            first = np.expand_dims((self.n > 0).argmax(axis), axis)[..., None]
            start = np.take_along_axis(self.mean, first, axis)
        apart = np.where(wide > 0, self.mean - start, 0.0)
        drift = np.expand_dims(_ratio_vector((wide * apart).sum(axis), n), axis)
        scatter = (self.scatter + outer(apart - drift) * wide[..., None]).sum(axis)
        return Scatter(n, (start + drift).squeeze(axis), scatter)


def totals(parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Sums of the statistics of several columns over many parts, in the order of the parts."""
    if len(parts) > 1 and all(isinstance(statistic, Moments) for statistic in parts[0]):
        arrays = ([[getattr(m, name) for m in part] for part in parts] for name in ("n", "mean", "spread"))
        whole = Moments(*(np.array(array) for array in arrays)).summed()
        return [Moments(*columns) for columns in zip(whole.n, whole.mean, whole.spread, strict=True)]
    return [reduce(operator.add, column) for column in zip(*parts, strict=True)]


STATISTICS: dict[str, Any] = {"Counts": Counts, "EventCounts": EventCounts, "Moments": Moments, "Scatter": Scatter}


def _dust(n: Array, whole: Moments, part: Moments) -> Array:
    """Bound of the rounding error of a spread after a subtraction."""
    apart, share = np.abs(part.mean - whole.mean), part.n * _ratio(whole.n, n)
    blur = EPSILON * (np.abs(whole.mean) + np.abs(part.mean))  # rounding error of the means
    dust = 8 * EPSILON * (whole.spread + part.spread + apart * apart * share) + (2 * apart + blur) * blur * share
    return np.where(whole.spread > 0, dust, 0.0)  # a constant column stays constant


def spread_left(n: Array, whole: Moments, part: Moments) -> Array:
    """Spread after a subtraction; refused where fewer than six correct digits would be left."""
    apart, share = part.mean - whole.mean, part.n * _ratio(whole.n, n)
    spread, dust = whole.spread - part.spread - apart * apart * share, _dust(n, whole, part)
    if np.any((n > 0) & (spread < -1e3 * dust)):
        raise ForgetError("more would be forgotten than was ever counted: these rows were not learned by this model")
    lossy = (n > 0) & (dust > LOSSY * spread)
    alone = n == 1  # one row has no spread: the rest is rounding error
    if np.any(lossy & ~alone):
        raise ForgetError(LOST_DIGITS.format("a variance"))
    return np.where((n > 0) & ~lossy & (whole.spread > 0), spread, 0.0)


def mean_left(n: Array, whole: Moments, part: Moments, spread: Array) -> Array:
    """Mean after a subtraction; refused where fewer than six correct digits would be left."""
    constant = whole.spread == 0
    mean = np.where(constant, whole.mean, whole.mean - (part.mean - whole.mean) * _ratio(part.n, n))
    dust = 4 * EPSILON * _ratio(whole.n * np.abs(whole.mean) + part.n * np.abs(part.mean), n)
    # Relative to a wide spread, a mean near zero needs no digits of its own.
    needed = np.where(spread > 0, LOSSY * np.maximum(np.abs(mean), np.sqrt(_ratio(spread, n))), MEAN_DIGITS * np.abs(mean))
    lossy = dust > needed
    if np.any((n > 0) & ~constant & lossy):
        raise ForgetError(LOST_DIGITS.format("a mean"))
    return np.where(n > 0, mean, 0.0)


def _scatter_left(scatter: Array, spread: Array, dust: Array) -> Array:
    """Scatter matrix of one cell after a subtraction, if rounding cannot have changed whether it is singular.

    Judged by the smallest eigenvalue of the correlation matrix: it must keep six digits; or it is certainly singular, and is
    set so exactly, because rounding may have hidden that.
    """
    some = np.flatnonzero(spread > 0)
    scale, error = np.sqrt(spread[some]), float((dust[some] / spread[some]).sum())
    correlation = scatter[np.ix_(some, some)] / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(correlation)
    if values[0] * LOSSY > error:
        return scatter
    if values[0] + error > SINGULAR:
        raise ForgetError(LOST_DIGITS.format("a covariance"))
    kept = (vectors * np.where(values > SINGULAR, values, 0.0)) @ vectors.T
    scatter = scatter.copy()
    scatter[np.ix_(some, some)] = kept * np.outer(scale, scale)
    return scatter


def _ratio(part: Array, whole: Array) -> Array:
    part, whole = np.broadcast_arrays(part, whole)
    return np.divide(part, whole, out=np.zeros(whole.shape), where=whole > 0)


def _ratio_vector(part: Array, whole: Array) -> Array:
    return np.divide(part, whole[..., None], out=np.zeros_like(part), where=whole[..., None] > 0)


def outer(vector: Array) -> Array:
    """Outer product of a vector with itself."""
    product: Array = vector[..., :, None] * vector[..., None, :]
    return product
