"""Imagined rows: what is believed before any row is seen. Smoothing is always one of these, never an epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import SchemaError, UsageError
from likely.families import Binned, Binomial, Block
from likely.schema import CATEGORY, Column, Schema
from likely.schema import plain as plainly

Array = NDArray[np.float64]
Normal = tuple[float, float, float, float]


class _Given:
    """What priors have in common: what is imagined is given beforehand, and names no values."""

    @property
    def background(self) -> float:
        """No rows are imagined in proportion to how often each value occurs overall."""
        return 0.0

    @property
    def chosen(self) -> bool:
        """The number of imagined rows is given."""
        return False

    @property
    def copies(self) -> Array | None:
        """Every row was counted once."""
        return None

    @property
    def named(self) -> tuple[Any, ...]:
        """The values that the prior speaks of by name: they exist even where no row has them."""
        return ()

    @property
    def averaged(self) -> Any:
        """The prior whose imagined rows give the posterior mean instead of the mode."""
        return self


class _OfCounts(_Given):
    """A prior of counts: nothing is imagined of a mean or a variance."""

    @property
    def normal(self) -> Normal | None:
        """Nothing is imagined of a mean or a variance."""
        return None


@dataclass(frozen=True)
class Pseudocount(_OfCounts):
    """The same number of imagined rows for every value: 0 is maximum likelihood, 1 Laplace, 1/2 Krichevsky–Trofimov."""

    count: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", _number(self.count, "a pseudocount"))

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """How many rows are imagined for each value."""
        return np.full(len(values), self.count)

    def unseen(self, value_count: int) -> float:
        """A value never seen has the imagined rows of any other."""
        return self.count

    @property
    def rows(self) -> float:
        """How many rows are imagined where there is no list of values."""
        return self.count


@dataclass(frozen=True)
class MEstimate(_OfCounts):
    """m pseudocounts, spread over the values by p: uniformly, or as they occur in all classes ("background")."""

    m: float
    p: Mapping[Any, float] | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", _number(self.m, "m"))
        if isinstance(self.p, str):
            if self.p != "background":
                raise UsageError(f"MEstimate: p={self.p!r} is not known: pass shares, 'background' or nothing")
        elif self.p is not None:
            shares = {plainly(value): _number(share, f"p[{value!r}]") for value, share in self.p.items()}
            if not math.isclose(math.fsum(shares.values()), 1.0, rel_tol=1e-9):
                raise UsageError(f"MEstimate: p sums to {math.fsum(shares.values()):g}: it must sum to 1")
            object.__setattr__(self, "p", shares)

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """How many rows are imagined for each value."""
        if self.p is None:
            return np.full(len(values), self.m / max(len(values), 1))
        return self.m * _shares_of(values, {} if isinstance(self.p, str) else self.p, 0.0)

    def unseen(self, value_count: int) -> float:
        """A value never seen has a uniform share, or what p leaves for it: nothing."""
        return self.m / max(value_count, 1) if self.p is None else 0.0

    @property
    def rows(self) -> float:
        """How many rows are imagined where there is no list of values."""
        return self.m

    @property
    def background(self) -> float:
        """How many rows are imagined in proportion to how often each value occurs overall."""
        return self.m if self.p == "background" else 0.0

    @property
    def named(self) -> tuple[Any, ...]:
        """The values that p speaks of."""
        return tuple(self.p) if isinstance(self.p, Mapping) else ()


@dataclass(frozen=True)
class Dirichlet(_OfCounts):
    """A Dirichlet (for two values: Beta) prior with parameters beta.

    Estimates are read at the mode of the posterior, which imagines beta - 1 rows for each value. With `average=True` the
    parameters are averaged out instead: the prediction is the posterior mean, which imagines beta rows for each value.
    """

    beta: float | Mapping[Any, float] = 1.0

    def __post_init__(self) -> None:
        each = self.beta.values() if isinstance(self.beta, Mapping) else [self.beta]
        for beta in each:
            if _number(beta, "beta") < 1:
                raise UsageError(
                    f"Dirichlet(beta={beta!r}) has no mode inside: beta must be at least 1 (beta - 1 rows are imagined)"
                )
        if isinstance(self.beta, Mapping):
            object.__setattr__(self, "beta", {plainly(value): float(beta) for value, beta in self.beta.items()})

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """How many rows are imagined for each value: beta - 1."""
        if isinstance(self.beta, Mapping):
            return _shares_of(values, self.beta, 1.0) - 1.0
        return np.full(len(values), self.beta - 1.0)

    def unseen(self, value_count: int) -> float:
        """A value never seen has the imagined rows of any other, or none where each value has its own."""
        return 0.0 if isinstance(self.beta, Mapping) else self.beta - 1.0

    @property
    def rows(self) -> float:
        """How many rows are imagined where there is no list of values."""
        return self.unseen(0)

    @property
    def named(self) -> tuple[Any, ...]:
        """The values that beta speaks of."""
        return tuple(self.beta) if isinstance(self.beta, Mapping) else ()

    @property
    def averaged(self) -> Any:
        """The mean of a Dirichlet posterior imagines beta rows for each value, its mode beta - 1."""
        return _AveragedDirichlet(self.beta)


@dataclass(frozen=True)
class _AveragedDirichlet(Dirichlet):
    """A Dirichlet prior read at its mean: beta imagined rows for each value, 1 for a value that beta does not name."""

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """How many rows are imagined for each value: beta."""
        return super().pseudocounts(values) + 1.0

    def unseen(self, value_count: int) -> float:
        """A value never seen has the imagined rows of any other that is not named."""
        return super().unseen(value_count) + 1.0


@dataclass(frozen=True)
class NormalInverseGamma(_Given):
    """The conjugate prior of a Gaussian: variance ~ inverse gamma(shape, scale), mean ~ Normal(mean, variance/strength).

    Parameters are read at the joint mode: before any row is seen `mean`, and scale / (shape + 3/2) for the variance. A joint
    Gaussian of d columns has the normal-inverse-Wishart prior with scale matrix 2 scale · I and 2 shape + d - 1 degrees of
    freedom: each column alone has this prior under it, but the columns are not independent.
    """

    mean: float = 0.0
    strength: float = 0.0
    shape: float = 0.5
    scale: float = 0.5

    def __post_init__(self) -> None:
        for name in ("strength", "shape", "scale"):
            object.__setattr__(self, name, _number(getattr(self, name), name))
        if not math.isfinite(self.mean):
            raise UsageError(f"NormalInverseGamma(mean={self.mean!r}): the mean must be finite")

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """No rows are imagined of categories."""
        return np.zeros(len(values))

    def unseen(self, value_count: int) -> float:
        """No rows are imagined of categories."""
        return 0.0

    rows = 0.0  # none are imagined of counts

    @property
    def normal(self) -> Normal | None:
        """Mean, strength, shape and scale."""
        return (float(self.mean), self.strength, self.shape, self.scale)


@dataclass(frozen=True)
class LeaveOneOut(Pseudocount):
    """Pseudocounts chosen by leave-one-out, column by column; one a value in families that leave nothing out."""

    @property
    def chosen(self) -> bool:
        """The number of imagined rows is read off the counts."""
        return True


@dataclass(frozen=True)
class Spread(_Given):
    """Imagined rows that say nothing of a mean, only how wide the numbers lie: no variance can then vanish.

    `variance` is one number, or one a column of a joint block; `rows` may be a fraction of a row. The variance becomes
    (spread + rows · variance) / (n + rows): the mode under an inverse-gamma (for a block: inverse-Wishart) prior.
    """

    rows: float
    variance: float | tuple[float, ...]
    pseudocount: float = 0.0  # imagined rows for each cell of the categories in a joint block

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", _number(self.rows, "rows"))
        object.__setattr__(self, "pseudocount", _number(self.pseudocount, "a pseudocount"))
        if isinstance(self.variance, tuple | list):
            object.__setattr__(self, "variance", tuple(_number(each, "variance") for each in self.variance))
        else:
            object.__setattr__(self, "variance", _number(self.variance, "variance"))

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """How many rows are imagined for each cell."""
        return np.full(len(values), self.pseudocount)

    def unseen(self, value_count: int) -> float:
        """A cell never seen has the imagined rows of any other."""
        return self.pseudocount

    @property
    def normal(self) -> Normal | None:
        """The same as a normal-inverse-gamma prior that leaves the mean open."""
        variance = self.variance if isinstance(self.variance, float) else self.variance[0]
        return (0.0, 0.0, self.rows / 2 - 1.5, self.rows * variance / 2)

    @property
    def scatter(self) -> tuple[float, Array]:
        """How many rows are imagined of a block, and their scatter around its mean."""
        return self.rows, np.atleast_1d(np.asarray(self.variance, dtype=np.float64)) * self.rows


Prior = Pseudocount | MEstimate | Dirichlet | NormalInverseGamma | Spread | LeaveOneOut
KINDS = (Pseudocount, MEstimate, Dirichlet, NormalInverseGamma, Spread, LeaveOneOut)
PRIORS: dict[str, Any] = {cls.__name__: cls for cls in KINDS}


@dataclass(frozen=True)
class Priors:
    """All that is imagined: one prior for every column, another where a column has its own, and one for the classes."""

    default: Prior = field(default_factory=Pseudocount)
    columns: Mapping[str, Prior] = field(default_factory=dict)
    classes: Prior | Mapping[Any, float] | None = None

    def of(self, block: Block) -> Prior:
        """The prior of one column or block."""
        return next((self.columns[key] for key in _keys(block) if key in self.columns), self.default)

    def named(self, schema: Schema, blocks: Sequence[Block]) -> dict[str, set[Any]]:
        """The values that the priors speak of, column by column; in a block they are named together, as a tuple."""
        found: dict[str, set[Any]] = {}
        for block in blocks:
            names = [name for name in block.columns if schema.by_name[name].kind == CATEGORY]
            for value in self.of(block).named:
                each = (value,) if block.family.single else value
                if isinstance(each, tuple) and len(each) == len(names):
                    for name, part in zip(names, each, strict=True):
                        found.setdefault(name, set()).add(part)
        return found

    def check(self, blocks: Sequence[Block]) -> None:
        """Refuse priors of columns that are not there: a slip of the pen would smooth nothing."""
        names = [block.name for block in blocks]
        odd = sorted(self.columns.keys() - {key for block in blocks for key in _keys(block)})
        if odd:
            raise SchemaError(f"smoothing names {odd[0]!r}, which is none of the columns {names[:20]}", column=odd[0])

    def class_shares(self, classes: Sequence[Any], seen: Array, blocks: Sequence[Block] = ()) -> Array:
        """The share of each class: as given, or counted with the pseudocounts; equal for complement Naive Bayes."""
        if isinstance(self.classes, Mapping):
            return np.array([self.classes.get(label, 0.0) for label in classes])
        if self.classes is None and blocks and all(getattr(b.family, "kind", "") == "complement" for b in blocks):
            return np.full(len(classes), 1.0 / max(len(classes), 1))
        own = Pseudocount(0.5) if self.classes is None and self.default.chosen else self.classes
        counts = seen if own is None else seen + own.pseudocounts(classes)
        whole = counts.sum()
        return counts / whole if whole > 0 else np.full(len(classes), 1.0 / max(len(classes), 1))


def prior(given: Any) -> Prior:
    """The prior that a number, a fraction or a prior speaks of."""
    if isinstance(given, KINDS):
        return given
    if isinstance(given, str) and given.count("/") == 1:
        given = Fraction(given)
    return Pseudocount(_number(given, "smoothing"))


def priors(smoothing: Any = "auto", class_prior: Any = None, classes: Sequence[Any] = (), plain: bool = True,
           blocks: Sequence[Block] = ()) -> Priors:  # fmt: skip
    """All priors from `smoothing` (one, or a dict with one a column and "*" for the rest) and `class_prior`.

    What is not said ("auto") is one imagined row a value where the model is `plain`, else what leaving rows out asks for.
    """
    usual = Pseudocount(1.0) if plain else LeaveOneOut()
    given = smoothing if isinstance(smoothing, Mapping) else {"*": smoothing}
    own = {_named(key): usual if _is_auto(value) else prior(value) for key, value in given.items()}
    default = own.pop("*", usual)
    if not textbook(smoothing):  # bins are many: how they are smoothed is theirs to choose, in a plain model too
        own = {block.name: LeaveOneOut() for block in blocks if isinstance(block.family, Binned)} | own
    return Priors(default, own, _class_prior(class_prior, classes))


def textbook(smoothing: Any) -> bool:
    """Whether a smoothing was asked for of all columns: then they are counted as the textbook counts, and no more."""
    return not _is_auto(smoothing.get("*", "auto") if isinstance(smoothing, Mapping) else smoothing)


def _is_auto(given: Any) -> bool:
    return isinstance(given, LeaveOneOut) or (isinstance(given, str) and given == "auto")


def _class_prior(given: Any, classes: Sequence[Any]) -> Prior | Mapping[Any, float] | None:
    if given is None or isinstance(given, KINDS):
        return given
    if isinstance(given, Real | str):
        return None if given == "estimated" else prior(given)
    if not isinstance(given, Mapping):
        listed = list(given)
        if len(listed) != len(classes):
            raise UsageError(f"class_prior has {len(listed)} numbers for {len(classes)} classes {list(classes)}")
        given = dict(zip(classes, listed, strict=True))
    given = {plainly(label): share for label, share in given.items()}
    unknown = [label for label in given if classes and label not in classes]
    if unknown:
        raise UsageError(f"class_prior names {unknown[0]!r}, which is none of the classes {list(classes)}")
    shares = {label: _number(share, f"class_prior[{label!r}]") for label, share in given.items()}
    total = math.fsum(shares.values())
    if not math.isclose(total, 1.0, rel_tol=1e-9):
        raise UsageError(f"class_prior sums to {total:g}: it must sum to 1")
    return shares


def _keys(block: Block) -> tuple[str, ...]:
    """What a block may be called: by its name, and k of n by the column of k alone."""
    return (block.name, *([block.columns[0]] if isinstance(block.family, Binomial) else []))


def _named(key: Any) -> str:
    """The name of a column, or of a block of several."""
    return key if isinstance(key, str) else " with ".join(map(str, key))


def _shares_of(values: Sequence[Any], given: Mapping[Any, float], otherwise: float) -> Array:
    """What was given for each value, however the two sides write it: 1 and "1" find each other."""
    known = Column("", CATEGORY, tuple(values))
    found = {known.canonical(value): share for value, share in given.items()}
    return np.array([found.get(value, otherwise) for value in values], dtype=np.float64)


def _number(given: Any, what: str) -> float:
    if isinstance(given, bool) or not isinstance(given, Real):
        raise UsageError(f"{what} must be a number or a prior, not {given!r}")
    value = float(given)
    if not (value >= 0 and math.isfinite(value)):
        raise UsageError(f"{what} is {value:g}: it must be zero or more, and finite")
    return value
