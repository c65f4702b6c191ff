"""One file a family: what it counts, its parameters, its likelihood and all that follows.

Never: another family, files.
"""

from __future__ import annotations

from typing import Any

from likely.errors import UsageError
from likely.families._bernoulli import Bernoulli
from likely.families._binned import Binned
from likely.families._binomial import Binomial
from likely.families._categorical import Categorical
from likely.families._event_counts import not_a_count, sums
from likely.families._gaussian import Gaussian
from likely.families._joint import Joint
from likely.families._multinomial import Multinomial
from likely.families._poisson import Poisson
from likely.families._text import Text
from likely.families.base import BlockPrior, Encoded, Labels, Parameters, Readable, first_bad
from likely.families.base_measures import (
    BaseMeasure,
    BinomialMeasure,
    MultinomialMeasure,
    PoissonMeasure,
    log_factorial,
)
from likely.families.family import REGISTRY, Block, Family, FittedBlock, LeftOutRows, groups
from likely.families.joint_gaussian_term import JointGaussianTerm
from likely.families.likelihood_form import LikelihoodForm
from likely.families.likelihoods import BinnedTable, GaussianTerm, LinearTerm, LookupTable, YesNoTable
from likely.families.posterior_predictive import Arc, log_gamma
from likely.families.statistics import Array, Counts, Moments, Scatter, Statistic
from likely.schema import CATEGORY, NUMBER, TEXT

ALL: tuple[type[Family], ...] = (
    Categorical, Binned, Bernoulli, Binomial, Multinomial, Poisson, Gaussian, Joint, Text,
)  # fmt: skip

__all__ = [
    "ALL",
    "REGISTRY",
    "Arc",
    "Array",
    "BaseMeasure",
    "Bernoulli",
    "Binned",
    "BinnedTable",
    "Binomial",
    "BinomialMeasure",
    "Block",
    "BlockPrior",
    "Categorical",
    "Counts",
    "Encoded",
    "Family",
    "FittedBlock",
    "Gaussian",
    "GaussianTerm",
    "Joint",
    "JointGaussianTerm",
    "Labels",
    "LeftOutRows",
    "LikelihoodForm",
    "LinearTerm",
    "LookupTable",
    "Moments",
    "Multinomial",
    "MultinomialMeasure",
    "Parameters",
    "Poisson",
    "PoissonMeasure",
    "Readable",
    "Scatter",
    "Statistic",
    "Text",
    "YesNoTable",
    "default_for",
    "family",
    "first_bad",
    "groups",
    "joint_family",
    "log_factorial",
    "log_gamma",
    "not_a_count",
    "sums",
]  # fmt: skip


def family(given: Any, **settings: Any) -> Family:
    """The family of a name, a class or an instance; "gaussian:class" names a setting as well."""
    if isinstance(given, str):
        name, _, extra = given.partition(":")
        if name not in REGISTRY:
            raise UsageError(f"there is no family {given!r}: choose one of {', '.join(REGISTRY)}")
        given = REGISTRY[name]
        settings |= given.from_shorthand(extra) if extra else {}
    try:
        made: Any = given(**settings) if isinstance(given, type) else given
    except TypeError as error:
        if not settings and issubclass(given, Family) and given.shorthand:
            name, needed = given.name, given.shorthand
            raise UsageError(f"family {name!r} needs {needed}: name it, as in '{name}:{needed}'") from None
        raise UsageError(f"family {getattr(given, 'name', given)!r}: {error}") from None
    if not isinstance(made, Family):
        raise UsageError(f"{given!r} is not a family: choose one of {', '.join(REGISTRY)}")
    return made


def default_for(kind: str, *, plain: bool) -> Family:
    """Default family of a column of this kind; `plain` is the textbook's choice."""
    if kind == CATEGORY:
        return Categorical()
    if kind == TEXT:
        return Text("multinomial" if plain else "auto")
    assert kind == NUMBER
    return Gaussian() if plain else Binned()


def joint_family() -> Family:
    """The family of columns that are declared dependent."""
    return Joint()
