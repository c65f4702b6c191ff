"""Priors of one column: pseudocounts, m-estimates, Dirichlet, normal–inverse-gamma."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.bayes.conjugate import NormalPrior
from likely.errors import UsageError
from likely.priors._fixed_prior import CountPrior, FixedPrior, non_negative
from likely.schema import CATEGORY, Column
from likely.schema import plain as plainly

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Pseudocount(CountPrior):
    """The same pseudocount for every value.

    Parameters
    ----------
    count : float, default=1.0
        The pseudocount: 0 is maximum likelihood, 1 Laplace, 1/2 Krichevsky–Trofimov.
    """

    count: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", non_negative(self.count, "a pseudocount"))

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """Pseudocount of each value."""
        return np.full(len(values), self.count)

    def unseen(self, value_count: int) -> float:
        """Pseudocount of an unseen value: that of any other."""
        return self.count

    @property
    def rows(self) -> float:
        """Number of pseudo-rows where there is no list of values."""
        return self.count


@dataclass(frozen=True)
class MEstimate(CountPrior):
    """The m-estimate: m pseudocounts in all, spread over the values by p.

    Parameters
    ----------
    m : float
        Sum of the pseudocounts.
    p : dict, "background" or None, default=None
        Prior probability of each value; its frequency in all classes together ("background"); or equal probabilities (None).
    """

    m: float
    p: Mapping[Any, float] | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", non_negative(self.m, "m"))
        if isinstance(self.p, str):
            if self.p != "background":
                raise UsageError(f"MEstimate: p={self.p!r} is not known: pass a dict of probabilities, 'background' or nothing")
        elif self.p is not None:
            shares = {plainly(value): non_negative(share, f"p[{value!r}]") for value, share in self.p.items()}
            if not math.isclose(math.fsum(shares.values()), 1.0, rel_tol=1e-9):
                raise UsageError(f"MEstimate: p sums to {math.fsum(shares.values()):g}: it must sum to 1")
            object.__setattr__(self, "p", shares)

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """Pseudocount of each value."""
        if self.p is None:
            return np.full(len(values), self.m / max(len(values), 1))
        return self.m * _values_of(values, {} if isinstance(self.p, str) else self.p, 0.0)

    def unseen(self, value_count: int) -> float:
        """Pseudocount of an unseen value: that of a uniform p, else 0."""
        return self.m / max(value_count, 1) if self.p is None else 0.0

    @property
    def rows(self) -> float:
        """Number of pseudo-rows where there is no list of values."""
        return self.m

    @property
    def background(self) -> float:
        """Pseudocounts distributed by the overall frequency of each value."""
        return self.m if self.p == "background" else 0.0

    @property
    def named(self) -> tuple[Any, ...]:
        """Values with an explicit probability."""
        return tuple(self.p) if isinstance(self.p, Mapping) else ()


@dataclass(frozen=True)
class Dirichlet(CountPrior):
    """A Dirichlet (for two values: Beta) prior with parameters beta.

    Estimates are the mode of the posterior: pseudocount beta - 1 for each value. With `average=True` the parameters are
    integrated out instead: the prediction is the posterior mean, with pseudocount beta for each value.

    Parameters
    ----------
    beta : float or dict, default=1.0
        The parameter of every value, or of each value, above 0. Below 1 the mode may lie at the edge: `estimate` has the
        posterior and its mean, `learn` needs 1 or more.
    """

    beta: float | Mapping[Any, float] = 1.0

    def __post_init__(self) -> None:
        each = self.beta.values() if isinstance(self.beta, Mapping) else [self.beta]
        for beta in each:
            if non_negative(beta, "beta") <= 0:
                raise UsageError(f"Dirichlet(beta={beta!r}) is no distribution: beta must be above 0")
        if isinstance(self.beta, Mapping):
            object.__setattr__(self, "beta", {plainly(value): float(beta) for value, beta in self.beta.items()})

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """Pseudocount of each value: beta - 1."""
        if not self.has_mode:
            remedy = f"learn with the pseudocount itself, as in smoothing={min(self._betas):g}"
            raise UsageError(f"{self} has no mode inside: beta must be at least 1 (the pseudocount is beta - 1); {remedy}")
        return self._above_one(values)

    @property
    def _betas(self) -> list[float]:
        return list(self.beta.values()) if isinstance(self.beta, Mapping) else [self.beta]

    @property
    def has_mode(self) -> bool:
        """Whether the density has a maximum whatever is counted: every beta is at least 1."""
        return min(self._betas, default=1.0) >= 1

    def _above_one(self, values: Sequence[Any]) -> Array:
        if isinstance(self.beta, Mapping):
            return _values_of(values, self.beta, 1.0) - 1.0
        return np.full(len(values), self.beta - 1.0)

    def unseen(self, value_count: int) -> float:
        """Pseudocount of an unseen value: that of any other, or 0 where each value has its own."""
        return 0.0 if isinstance(self.beta, Mapping) else self.beta - 1.0

    @property
    def rows(self) -> float:
        """Number of pseudo-rows where there is no list of values."""
        return self.unseen(0)

    @property
    def named(self) -> tuple[Any, ...]:
        """Values with an explicit beta."""
        return tuple(self.beta) if isinstance(self.beta, Mapping) else ()

    @property
    def averaged(self) -> Any:
        """The prior with pseudocounts beta, for the posterior mean."""
        return _AveragedDirichlet(self.beta)


@dataclass(frozen=True)
class _AveragedDirichlet(Dirichlet):
    """A Dirichlet prior for posterior means: pseudocounts beta, 1 for a value that beta does not name."""

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """Pseudocount of each value: beta."""
        return self._above_one(values) + 1.0

    def unseen(self, value_count: int) -> float:
        """Pseudocount of an unseen value: that of any other that is not named."""
        return super().unseen(value_count) + 1.0


@dataclass(frozen=True)
class NormalInverseGamma(FixedPrior):
    """The conjugate prior of a Gaussian: variance ~ inverse gamma(shape, scale), mean ~ Normal(mean, variance/strength).

    Estimates are the joint mode: before any row is seen `mean`, and scale / (shape + 3/2) for the variance. A joint Gaussian
    of d columns has the normal-inverse-Wishart prior with scale matrix 2 scale · I and 2 shape + d - 1 degrees of freedom:
    each column alone has this prior under it, but the columns are not independent.

    Parameters
    ----------
    mean : float, default=0.0
        Prior mean.
    strength : float, default=0.0
        Number of pseudo-rows behind the mean.
    shape : float, default=0.5
        Shape of the inverse gamma distribution of the variance.
    scale : float, default=0.5
        Scale of the inverse gamma distribution of the variance.
    """

    mean: float = 0.0
    strength: float = 0.0
    shape: float = 0.5
    scale: float = 0.5

    def __post_init__(self) -> None:
        for name in ("strength", "shape", "scale"):
            object.__setattr__(self, name, non_negative(getattr(self, name), name))
        if not math.isfinite(self.mean):
            raise UsageError(f"NormalInverseGamma(mean={self.mean!r}): the mean must be finite")

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """No pseudocounts for categories."""
        return np.zeros(len(values))

    def unseen(self, value_count: int) -> float:
        """No pseudocounts for categories."""
        return 0.0

    rows = 0.0  # no pseudo-rows of counts

    @property
    def normal(self) -> NormalPrior | None:
        """Mean, strength, shape and scale."""
        return NormalPrior(float(self.mean), self.strength, self.shape, self.scale)


@dataclass(frozen=True)
class GammaPrior(FixedPrior):
    """The conjugate prior of a Poisson rate: Gamma(shape, rate), as of `shape` events in `rate` rows.

    Estimates are the mode of the posterior, (shape + events - 1) / (rate + rows), and never below zero. With `average=True`
    the rate is integrated out. Unlike a pseudocount, the prior does not depend on the rows.

    Parameters
    ----------
    shape : float, default=1.0
        Shape of the gamma distribution, above 0.
    rate : float, default=1.0
        Its rate, above 0: the prior mean is shape / rate.
    """

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name in ("shape", "rate"):
            object.__setattr__(self, name, non_negative(getattr(self, name), name))
            if not getattr(self, name):
                raise UsageError(f"GammaPrior({name}=0) is no distribution: {name} must be above 0")

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """No pseudocounts for categories."""
        return np.zeros(len(values))

    def unseen(self, value_count: int) -> float:
        """No pseudocounts for categories."""
        return 0.0

    rows = 0.0  # no pseudo-rows at the rate of the data
    normal: ClassVar[NormalPrior | None] = None

    @property
    def gamma(self) -> tuple[float, float] | None:
        """Events and rows that the mode adds."""
        return self.shape - 1.0, self.rate

    @property
    def averaged(self) -> Any:
        """The prior whose pseudo-events give the posterior mean."""
        return _AveragedGamma(self.shape, self.rate)


@dataclass(frozen=True)
class _AveragedGamma(GammaPrior):
    """A gamma prior for posterior means: pseudo-events `shape`."""

    @property
    def gamma(self) -> tuple[float, float] | None:
        """Events and rows that the mean adds."""
        return self.shape, self.rate

    @property
    def averaged(self) -> Any:
        """This prior."""
        return self


@dataclass(frozen=True)
class LeaveOneOut(Pseudocount):
    """Pseudocounts chosen by leave-one-out, column by column; one a value in families without leave-one-out."""

    chosen: ClassVar[bool] = True


@dataclass(frozen=True)
class Spread(FixedPrior):
    """Prior of a variance alone, the mean left open: no variance can then become zero.

    The variance becomes (sum of squares + rows · variance) / (n + rows): the mode under an inverse-gamma (for a block:
    inverse-Wishart) prior.

    Parameters
    ----------
    rows : float
        Number of pseudo-rows; it may be a fraction.
    variance : float or tuple of float
        Their variance: one number, or one a column of a joint block.
    pseudocount : float, default=0.0
        Pseudocount for each cell of the categories in a joint block.
    """

    rows: float
    variance: float | tuple[float, ...]
    pseudocount: float = 0.0  # pseudocount of each cell of the categories in a joint block

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", non_negative(self.rows, "rows"))
        object.__setattr__(self, "pseudocount", non_negative(self.pseudocount, "a pseudocount"))
        if isinstance(self.variance, tuple | list):
            object.__setattr__(self, "variance", tuple(non_negative(each, "variance") for each in self.variance))
        else:
            object.__setattr__(self, "variance", non_negative(self.variance, "variance"))

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """Pseudocount of each cell."""
        return np.full(len(values), self.pseudocount)

    def unseen(self, value_count: int) -> float:
        """Pseudocount of an unseen cell: that of any other."""
        return self.pseudocount

    @property
    def normal(self) -> NormalPrior | None:
        """The equivalent normal–inverse-gamma prior, flat in the mean."""
        variance = self.variance if isinstance(self.variance, float) else self.variance[0]
        return NormalPrior(0.0, 0.0, self.rows / 2 - 1.5, self.rows * variance / 2)

    @property
    def scatter(self) -> tuple[float, Array]:
        """Number of pseudo-rows of a block, and their scatter around its mean."""
        return self.rows, np.atleast_1d(np.asarray(self.variance, dtype=np.float64)) * self.rows


def _values_of(values: Sequence[Any], given: Mapping[Any, float], otherwise: float) -> Array:
    """The number given for each value; 1 and "1" are equal."""
    known = Column("", CATEGORY, tuple(values))
    found = {known.canonical(value): share for value, share in given.items()}
    return np.array([found.get(value, otherwise) for value in values], dtype=np.float64)
