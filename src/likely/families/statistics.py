"""What is counted: weights, moments and scatter. Everything adds, scales and, as far as digits allow, subtracts.

Axis 0 is always the class. Further leading axes are the domains of categorical columns, so that new classes and new
values are born by `expand`, which pads with zeros.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from likely.errors import ForgetError, LikelyWarning

Array = NDArray[np.float64]
Index = NDArray[np.intp]

EPSILON = float(np.finfo(np.float64).eps)
# Share of a spread that rounding may have eaten before a subtraction is refused: six digits must be left.
LOSSY = 1e-6


class Statistic(Protocol):
    """An additive summary of one block of columns: a zero, a sum, a multiple and a difference."""

    def __add__(self, other: Self) -> Self: ...
    def __sub__(self, other: Self) -> Self: ...
    def __mul__(self, factor: float) -> Self: ...
    def expand(self, maps: Sequence[Index], sizes: Sequence[int]) -> Self:
        """The same statistic on larger domains: position i of axis a moves to maps[a][i]."""

    def pick(self, maps: Sequence[Index]) -> Self:
        """The same statistic on smaller domains: axis a keeps positions maps[a]."""

    def arrays(self) -> dict[str, Array]:
        """The numbers themselves, by name."""

    def weight(self) -> Array:
        """How much weight was counted, per class and domain value."""


class _Arrays:
    """What all statistics have in common: they are arrays, moved and compared alike."""

    def arrays(self) -> dict[str, Array]:
        """The numbers themselves, by name."""
        return dict(vars(self))

    def weight(self) -> Array:
        """How much weight was counted: the first of the arrays."""
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


def subtract_counts(whole: Array, part: Array) -> Array:
    """What is left of a count once a part of it is taken back; nothing may become negative."""
    left = whole - part
    if np.any(left < -1e-9 * np.maximum(whole, 1.0)):
        raise ForgetError("more would be forgotten than was ever counted: these rows were not learned by this model")
    # Fractional weights leave rounding dust where the true answer is nothing.
    return np.where(np.abs(left) <= 1e-12 * np.abs(whole), 0.0, np.maximum(left, 0.0))


def _expand(array: Array, maps: Sequence[Index], sizes: Sequence[int]) -> Array:
    out = np.zeros((*sizes, *array.shape[len(sizes) :]))
    out[np.ix_(*maps)] = array
    return out


@dataclass(frozen=True, eq=False)
class Counts(_Arrays):
    """How much weight was seen: one number per class and value."""

    seen: Array

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.seen + other.seen)

    def __sub__(self, other: Counts) -> Counts:
        return Counts(subtract_counts(self.seen, other.seen))

    def __mul__(self, factor: float) -> Counts:
        return Counts(self.seen * factor)


@dataclass(frozen=True, eq=False)
class Moments(_Arrays):
    """Weight, mean and summed squared deviation from the mean, per class; merged pairwise, never raw squares."""

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
        apart = other.mean - self.mean
        mean = np.where(n > 0, self.mean - apart * _ratio(other.n, n), 0.0)
        between = apart * apart * (other.n * _ratio(self.n, n))
        spread = self.spread - other.spread - between
        dust = 8 * EPSILON * (self.spread + other.spread + between)
        refuse_if_lossy(spread, dust, n)
        return Moments(n, mean, np.where(n > 0, np.where(spread > dust, spread, 0.0), 0.0))

    def __mul__(self, factor: float) -> Moments:
        keep = 1.0 if factor else 0.0
        return Moments(self.n * factor, self.mean * keep, self.spread * factor)


@dataclass(frozen=True, eq=False)
class Scatter(_Arrays):
    """Weight, mean vector and scatter matrix per class and cell; without numbers it is a joint table."""

    n: Array
    mean: Array
    scatter: Array

    def __add__(self, other: Scatter) -> Scatter:
        n = self.n + other.n
        share = _ratio(other.n, n)
        apart = other.mean - self.mean
        scatter = self.scatter + other.scatter + _outer(apart) * (self.n * share)[..., None, None]
        seen = np.where((self.n > 0)[..., None], self.mean + apart * share[..., None], other.mean)
        return Scatter(n, np.where((other.n > 0)[..., None], seen, self.mean), scatter)

    def __sub__(self, other: Scatter) -> Scatter:
        n = subtract_counts(self.n, other.n)
        some = (n > 0)[..., None]
        apart = other.mean - self.mean
        mean = np.where(some, self.mean - apart * _ratio(other.n, n)[..., None], 0.0)
        between = _outer(apart) * (other.n * _ratio(self.n, n))[..., None, None]
        scatter = self.scatter - other.scatter - between
        diagonal = np.einsum("...ii->...i", scatter)
        dust = 8 * EPSILON * np.einsum("...ii->...i", self.scatter + other.scatter + between)
        refuse_if_lossy(diagonal, dust, n[..., None])
        return Scatter(n, mean, np.where((n > 1)[..., None, None], scatter, 0.0))

    def __mul__(self, factor: float) -> Scatter:
        keep = 1.0 if factor else 0.0
        return Scatter(self.n * factor, self.mean * keep, self.scatter * factor)

    def summed(self, axes: tuple[int, ...]) -> Scatter:
        """The scatter of several cells taken together, along the given axes."""
        n = self.n.sum(axes)
        mean = _ratio_vector((self.n[..., None] * self.mean).sum(axes), n)
        wide = np.expand_dims(mean, axes)
        scatter = (self.scatter + _outer(self.mean - wide) * self.n[..., None, None]).sum(axes)
        return Scatter(n, mean, scatter)


STATISTICS: dict[str, Any] = {"Counts": Counts, "Moments": Moments, "Scatter": Scatter}


def refuse_if_lossy(spread: Array, dust: Array, n: Array) -> None:
    """Stop a subtraction that would leave fewer than six true digits of a spread; say when nothing but dust is left."""
    several = n > 1
    if np.any((n > 0) & (spread < -1e3 * dust)):
        raise ForgetError("more would be forgotten than was ever counted: these rows were not learned by this model")
    if np.any(several & (spread > dust) & (dust > LOSSY * spread)):
        raise ForgetError(
            "forgetting would lose digits of a variance: what remains is tiny beside what is taken away; "
            "keep the models of the parts and add those that stay (exact), or learn anew"
        )
    if np.any(several & (spread <= dust) & (dust > 0)):
        warnings.warn(
            "forgetting left a variance of nothing but rounding: it is taken as zero", LikelyWarning, stacklevel=2
        )


def _ratio(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)


def _ratio_vector(part: Array, whole: Array) -> Array:
    return np.divide(part, whole[..., None], out=np.zeros_like(part), where=whole[..., None] > 0)


def _outer(vector: Array) -> Array:
    product: Array = vector[..., :, None] * vector[..., None, :]
    return product
