"""Kinds of columns: one file a kind, each with its statistic, its parameters and its form."""

from __future__ import annotations

from typing import Any

from likely.errors import UsageError
from likely.families.base import Block, Encoded, Family, Imagined, Parameters
from likely.families.binned import Binned
from likely.families.categorical import Bernoulli, Categorical
from likely.families.counting import Binomial, Multinomial, Poisson
from likely.families.gaussian import Gaussian
from likely.families.joint import Joint
from likely.families.text import Text

__all__ = [
    "Bernoulli", "Binned", "Binomial", "Block", "Categorical", "Encoded", "Family", "Gaussian", "Imagined", "Joint",
    "Multinomial", "Parameters", "Poisson", "Text", "counted_alike", "family",
]  # fmt: skip

FAMILIES: dict[str, Any] = {
    cls.name: cls for cls in (Categorical, Binned, Bernoulli, Binomial, Multinomial, Poisson, Gaussian, Joint, Text)
}


def family(given: Any, **settings: Any) -> Family:
    """The family that a name, a class or an instance speaks of; "gaussian:class" names a tying as well."""
    if isinstance(given, str):
        name, _, extra = given.partition(":")
        if name not in FAMILIES:
            raise UsageError(f"there is no family {given!r}: choose one of {', '.join(FAMILIES)}")
        given = FAMILIES[name]
        if extra:
            settings[
                {"binomial": "trials", "text": "kind", "binned": "bins" if extra.isdigit() else "cut"}.get(name, "tie")
            ] = int(extra) if extra.isdigit() else extra
    try:
        made: Family = given(**settings) if isinstance(given, type) else given
    except TypeError as error:
        raise UsageError(f"family {given.name!r}: {error}") from None
    if type(made) not in FAMILIES.values():
        raise UsageError(f"{given!r} is not a family: choose one of {', '.join(FAMILIES)}")
    return made


def counted_alike(one: Family, other: Family) -> bool:
    """Whether two families count the same, so that what one has counted the other can read."""
    read_off = {"tie": None, "variance": None, "bins": None, "cut": None}
    a, b = one.settings() | read_off, other.settings() | read_off
    if isinstance(one, Text) and isinstance(other, Text):
        a |= {"kind": one.kind == "auto", "counts": one.adds}
        b |= {"kind": other.kind == "auto", "counts": other.adds}
    return type(one) is type(other) and a == b
