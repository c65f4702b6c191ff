"""Priors of a model: by class, by column, for the classes, and conversion of the settings `smoothing` and `class_prior`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from likely.bayes.continuous import Gamma
from likely.errors import SchemaError, UsageError
from likely.families import Block
from likely.priors._conjugate_priors import (
    Array,
    Dirichlet,
    GammaPrior,
    LeaveOneOut,
    MEstimate,
    NormalInverseGamma,
    Pseudocount,
    Spread,
)
from likely.priors._fixed_prior import CountPrior, non_negative
from likely.schema import CATEGORY, Column, Schema
from likely.schema import plain as plainly


@dataclass(frozen=True)
class ByClass(CountPrior):
    """Pseudocounts that differ by class, m_{c,j,x}.

    Parameters
    ----------
    by_class : dict
        A pseudocount, `MEstimate` or `Dirichlet` for each class; "*" stands for the classes that are not named.
    """

    by_class: Mapping[Any, Any]

    def __post_init__(self) -> None:
        if not self.by_class:
            raise UsageError("ByClass names no class: pass {class: prior}")
        own = {plainly(label): given if isinstance(given, OF_COUNTS) else Pseudocount(given)
               for label, given in self.by_class.items()}  # fmt: skip
        for label, given in own.items():
            if given.chosen or given.background:
                raise UsageError(f"the prior of class {label!r} is {given}: pass a number, MEstimate(m, p) or Dirichlet")
        object.__setattr__(self, "by_class", own)

    def for_classes(self, classes: Sequence[Any]) -> _OfClasses:
        """The prior of each class in order; an error if a class has none."""
        known = Column("", CATEGORY, tuple(classes))
        own = {known.canonical(label): given for label, given in self.by_class.items()}
        for label in classes:
            if label not in own and "*" not in own:
                given = list(self.by_class)
                raise UsageError(f"the prior names the classes {given}, not {label!r}: name it, or give one for '*'")
        return _OfClasses(tuple(own.get(label, own.get("*")) for label in classes))

    @property
    def named(self) -> tuple[Any, ...]:
        """Values with an explicit prior in some class."""
        return tuple(dict.fromkeys(value for each in self.by_class.values() for value in each.named))

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """Raise UsageError: the classes are not known yet."""
        raise UsageError("a prior that differs by class needs classes: learn a model, or pass one prior")

    def unseen(self, value_count: int) -> float:
        """Raise UsageError: the classes are not known yet."""
        raise UsageError("a prior that differs by class needs classes: learn a model, or pass one prior")

    rows = 0.0


@dataclass(frozen=True)
class _OfClasses(CountPrior):
    """One prior for each class, in the order of the classes: pseudocounts are a table of classes × values."""

    priors: tuple[Any, ...]

    def pseudocounts(self, values: Sequence[Any]) -> Array:
        """Classes × values."""
        return np.array([each.pseudocounts(values) for each in self.priors])

    def unseen(self, value_count: int) -> Any:
        """One for each class."""
        return np.array([each.unseen(value_count) for each in self.priors])

    @property
    def named(self) -> tuple[Any, ...]:
        """Values with an explicit prior in some class."""
        return tuple(dict.fromkeys(value for each in self.priors for value in each.named))

    @property
    def averaged(self) -> Any:
        """The priors whose pseudocounts give the posterior mean."""
        return _OfClasses(tuple(each.averaged for each in self.priors))

    rows = 0.0


OF_COUNTS = (Pseudocount, MEstimate, Dirichlet)
Prior = Pseudocount | MEstimate | Dirichlet | NormalInverseGamma | GammaPrior | Spread | LeaveOneOut | ByClass
KINDS = (Pseudocount, MEstimate, Dirichlet, NormalInverseGamma, GammaPrior, Spread, LeaveOneOut, ByClass)
PRIORS: dict[str, Any] = {cls.__name__: cls for cls in KINDS}


@dataclass(frozen=True)
class Priors:
    """Priors of a model: a default, one for each column that has its own, and one for the classes.

    Parameters
    ----------
    default : Prior
        The prior of every column that has none of its own.
    columns : dict
        Priors by column or block.
    classes : prior, dict or None, default=None
        Prior of the classes, or their probabilities; None: estimated from their counts.
    """

    default: Prior = field(default_factory=Pseudocount)
    columns: Mapping[str, Prior] = field(default_factory=dict)
    classes: Prior | Mapping[Any, float] | None = None

    def of(self, block: Block) -> Prior:
        """The prior of one column or block.

        Parameters
        ----------
        block : Block
            The column or block.

        Returns
        -------
        prior
            Its own, or the default.
        """
        return next((self.columns[key] for key in block.names if key in self.columns), self.default)

    def named(self, schema: Schema, blocks: Sequence[Block]) -> dict[str, set[Any]]:
        """Values with an explicit prior, by column; those of a block together, as a tuple.

        Parameters
        ----------
        schema : Schema
            What the columns mean.
        blocks : sequence of Block
            The blocks of the model.

        Returns
        -------
        dict
            Column → set of values.
        """
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
        """Refuse priors of columns that do not exist: a misspelt name would have no effect.

        Parameters
        ----------
        blocks : sequence of Block
            The blocks of the model.
        """
        names = [block.name for block in blocks]
        for block in blocks:
            if isinstance(self.of(block), ByClass) and not block.family.priors_by_class:
                what = f"column {block.name!r} is {block.family.name}, whose prior cannot differ by class"
                raise UsageError(f"{what}: give one prior")
            given = next((self.columns[key] for key in block.names if key in self.columns), None)
            if isinstance(given, GammaPrior) and not block.family.counts_rates:
                raise UsageError(f"column {block.name!r} is {block.family.name}, and {given} is a prior of Poisson rates")
        odd = sorted(self.columns.keys() - {key for block in blocks for key in block.names})
        if odd:
            raise SchemaError(f"smoothing names {odd[0]!r}, which is none of the columns {names[:20]}", column=odd[0])

    def class_probabilities(self, classes: Sequence[Any], seen: Array, blocks: Sequence[Block] = ()) -> Array:
        """Class prior: as given, or counted with the pseudocounts; uniform for complement naive Bayes.

        Parameters
        ----------
        classes : sequence
            The labels.
        seen : array
            Weight of the rows of each class.
        blocks : sequence of Block, default=()
            The blocks of the model.

        Returns
        -------
        array
            One probability a class.
        """
        if isinstance(self.classes, Mapping):
            return np.array([self.classes.get(label, 0.0) for label in classes])
        if self.classes is None and blocks and all(getattr(b.family, "kind", "") == "complement" for b in blocks):
            return np.full(len(classes), 1.0 / max(len(classes), 1))
        own = Pseudocount(0.5) if self.classes is None and self.default.chosen else self.classes
        counts = seen if own is None else seen + own.pseudocounts(classes)
        whole = counts.sum()
        return counts / whole if whole > 0 else np.full(len(classes), 1.0 / max(len(classes), 1))


def prior(given: Any) -> Prior:
    """The prior for a number, a fraction as text, a prior, a gamma distribution, or a dict with one for each class."""
    if isinstance(given, KINDS):
        return given
    if isinstance(given, Gamma):
        return GammaPrior(given.shape, given.rate)
    if isinstance(given, Mapping):
        return ByClass({label: prior(each) for label, each in given.items()})
    if isinstance(given, str) and given.count("/") == 1:
        given = Fraction(given)
    return Pseudocount(non_negative(given, "smoothing"))


def priors(smoothing: Any = "auto", class_prior: Any = None, classes: Sequence[Any] = (), plain: bool = True,
           blocks: Sequence[Block] = ()) -> Priors:  # fmt: skip
    """All priors from `smoothing` (one, or a dict with one a column and "*" for the rest) and `class_prior`.

    The prior of a column may be a dict itself, with one prior for each class.
    "auto" is a pseudocount of 1 where the model is `plain`, else pseudocounts chosen by leave-one-out.
    """
    usual = Pseudocount(1.0) if plain else LeaveOneOut()
    given = smoothing if isinstance(smoothing, Mapping) else {"*": smoothing}
    own = {_named(key): usual if _is_auto(value) else prior(value) for key, value in given.items()}
    default = own.pop("*", usual)
    if not textbook(smoothing):  # bins are many: their smoothing is chosen from the data, in a plain model too
        own = {block.name: LeaveOneOut() for block in blocks if block.family.chooses_smoothing} | own
    return Priors(default, own, _class_prior(class_prior, classes))


def textbook(smoothing: Any) -> bool:
    """Whether a smoothing was given for all columns, which asks for a plain model."""
    return not _is_auto(smoothing.get("*", "auto") if isinstance(smoothing, Mapping) else smoothing)


def _is_auto(given: Any) -> bool:
    return isinstance(given, LeaveOneOut) or (isinstance(given, str) and given == "auto")


def _class_prior(given: Any, classes: Sequence[Any]) -> Prior | Mapping[Any, float] | None:
    if given is None or isinstance(given, KINDS):
        return given
    if isinstance(given, Real | str):
        return None if given == "estimated" else prior(given)
    if not isinstance(given, Mapping):
        if len(listed := list(given)) != len(classes):
            raise UsageError(f"class_prior has {len(listed)} numbers for {len(classes)} classes {list(classes)}")
        given = dict(zip(classes, listed, strict=True))
    given = {plainly(label): share for label, share in given.items()}
    unknown = [label for label in given if classes and label not in classes]
    if unknown:
        raise UsageError(f"class_prior names {unknown[0]!r}, which is none of the classes {list(classes)}")
    shares = {label: non_negative(share, f"class_prior[{label!r}]") for label, share in given.items()}
    if not math.isclose(total := math.fsum(shares.values()), 1.0, rel_tol=1e-9):
        raise UsageError(f"class_prior sums to {total:g}: it must sum to 1")
    return shares


def _named(key: Any) -> str:
    """The name of a column, or of a block of several."""
    return key if isinstance(key, str) else " with ".join(map(str, key))
