"""Predictions with the parameters averaged out, and the average of two such predictions: forms like those of `forms`."""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.forms import Form, Line

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Student:
    """Student's t: a bell curve whose mean and variance are known only as well as the rows have shown them."""

    mean: Array
    scale: Array
    degrees: Array

    def add(self, codes: Any, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        x = numbers[:, :1]
        peak = log_gamma((self.degrees + 1) / 2) - log_gamma(self.degrees / 2)
        peak = peak - 0.5 * np.log(np.pi * self.degrees) - np.log(self.scale)
        apart = (x - self.mean) / (self.scale * np.sqrt(self.degrees))
        with np.errstate(over="ignore"):  # numbers of 1e300 have no density worth the name: minus infinity
            term = peak - (self.degrees + 1) / 2 * np.log1p(apart * apart)
        out += np.where(np.isnan(x), 0.0, term)


@dataclass(frozen=True)
class NegativeBinomial:
    """Events at a rate that is itself known only as a gamma distribution of `shape` events in `rows` rows."""

    shape: Array
    rows: Array

    def add(self, codes: Any, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        x, base = Line(np.zeros((1, 1)), np.zeros((1, 1)), "poisson").prepare(numbers)
        known = np.nan_to_num(x[:, :1])
        term = log_gamma(known + self.shape) - log_gamma(self.shape) + self.shape * np.log(self.rows / (self.rows + 1))
        term = term - known * np.log1p(self.rows) + base[:, :1]
        out += np.where(np.isnan(x[:, :1]), 0.0, term)


@dataclass(frozen=True)
class Polya:
    """Events that fall into columns with shares known only as a Dirichlet distribution: Pólya's urn."""

    shape: Array  # columns × classes
    base: str  # as a Line's

    def add(self, codes: Any, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        x, base = Line(self.shape, self.shape, self.base).prepare(numbers)
        known = np.nan_to_num(x)
        whole, total = known.sum(1, keepdims=True), self.shape.sum(0)
        term = log_gamma(total) - log_gamma(whole + total)
        for j, shape in enumerate(self.shape):
            term = term + log_gamma(known[:, j : j + 1] + shape) - log_gamma(shape)
        out += term + base.sum(1, keepdims=True)


Predictive = Form | Student | NegativeBinomial | Polya


@dataclass(frozen=True)
class Averaged:
    """Two predictions, each as believed as its share: with the class known, and without."""

    dependent: Predictive
    independent: Predictive
    log_on: float
    log_off: float

    def add(self, codes: Any, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        on, off = np.zeros_like(out), np.zeros_like(out)
        self.dependent.add(codes, numbers, on)
        self.independent.add(codes, numbers, off)
        out += mixed(on, off, self.log_on, self.log_off)


def mixed(on: Array, off: Array, log_on: float, log_off: float) -> Array:
    """The log of the weighted mean of two predictions; where they agree it is what they say, to the last digit."""
    with np.errstate(invalid="ignore"):  # two logs of zero
        return np.where(on == off, on, np.logaddexp(log_on + on, log_off + off))


def log_gamma(x: Array) -> Array:
    """log Γ(x) for positive numbers; counts repeat, so each distinct one is done once."""
    distinct, place = np.unique(np.asarray(x, dtype=np.float64), return_inverse=True)
    values = np.array([lgamma(v) for v in distinct.tolist()], dtype=np.float64)
    return values[place].reshape(np.shape(x))
