"""Exact and floating-point probabilities: fractions stay exact, floats are combined in logs."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, TypeVar

import numpy as np

from likely.bayes.rule import normalise
from likely.errors import DataError

Name = TypeVar("Name")
Number = Fraction | float

TOLERANCE = 1e-9  # how far floats may sum from 1
LARGEST_SHOWN = 2**40  # a fraction with a larger denominator is printed as a decimal


def probability(value: Any, of: str) -> Number:
    """A number from 0 to 1: a fraction if it was given exactly, else a float."""
    number: Number = math.nan
    if isinstance(value, Rational):
        number = Fraction(int(value.numerator), int(value.denominator))  # NumPy's integers would overflow
    elif isinstance(value, Decimal) and value.is_finite():
        number = Fraction(value)
    elif isinstance(value, Real):
        number = float(value)
    if not 0 <= number <= (1 if isinstance(number, Fraction) else 1 + TOLERANCE):
        raise DataError(f"{of} is {value!r}, not a probability", value=value, remedy="give a number from 0 to 1")
    return number


def distribution(table: Mapping[Name, Any], of: str) -> dict[Name, Number]:
    """Probabilities that sum to one: exactly if they are exact, else up to rounding."""
    _check_mapping(table, of)
    if not table:
        raise DataError(f"{of} is empty", remedy="name at least one possibility")
    numbers = {name: probability(value, f"{of} for {name!r}") for name, value in table.items()}
    whole = total(numbers.values())
    if (whole != 1) if isinstance(whole, Fraction) else abs(whole - 1) > TOLERANCE:
        value = whole if isinstance(whole, Fraction) else f"{whole:.12g}"
        raise DataError(f"{of} sums to {value}, not 1", remedy="add what is missing or divide each number by the sum")
    return numbers


def same_names(prior: Mapping[Any, Any], table: Mapping[Any, Any], of: str) -> None:
    """Refuse a table that does not have exactly the names of the prior."""
    _check_mapping(table, of)
    for name in prior:
        if name not in table:
            raise DataError(f"{of} does not name {name!r}", value=name, remedy="add it, or take it from the prior")
    for name in table:
        if name not in prior:
            raise DataError(f"the prior does not name {name!r}", value=name, remedy=f"add it, or take it from {of}")


def _check_mapping(table: object, of: str) -> None:
    if not isinstance(table, Mapping):
        raise DataError(f"{of} is {table!r}", value=table, remedy="give a mapping, such as {'yes': 0.5, 'no': 0.5}")


def count(value: Any, of: Any) -> int:
    """A count: a whole number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
        raise DataError(f"the count of {of!r} is {value!r}", value=value, remedy="give a whole number, 0 or more")
    return int(value)


def all_exact(numbers: Iterable[Number]) -> bool:
    """Whether no float is among the numbers."""
    return all(isinstance(number, Fraction) for number in numbers)


def total(numbers: Iterable[Number]) -> Number:
    """The sum: exact for fractions, rounded once for floats."""
    terms = list(numbers)
    return sum(terms, start=Fraction(0)) if all_exact(terms) else math.fsum(terms)


def ratio(above: Number, below: Number, of: str) -> Number:
    """above / below; infinity if only the divisor is 0."""
    if below:
        return above / below
    if not above:
        raise DataError(f"{of} would be 0 / 0", remedy="ask for a hypothesis or event that is possible")
    return math.inf


def log(number: Number) -> float:
    """The natural logarithm, minus infinity at 0; a fraction may be far too small for a float."""
    if number == 0:
        return -math.inf
    if isinstance(number, Fraction) and number < sys.float_info.min:
        return math.log(number.numerator) - math.log(number.denominator)
    return math.log(number)


def posterior_of(weights: Mapping[Name, Number]) -> dict[Name, Number]:
    """The weights normalised to sum to one; they are fractions, or the logs of floats."""
    if all_exact(weights.values()):
        whole = total(weights.values())
        return {name: weight / whole for name, weight in weights.items()}
    log_joint = np.array([list(weights.values())], dtype=np.float64)
    log_probabilities, _ = normalise(log_joint, log_joint[0])
    return dict(zip(weights, np.exp(log_probabilities[0]).tolist(), strict=True))


def first_best(weights: Mapping[Name, Number]) -> Name:
    """The name with the greatest weight, of equals the first; the weights are fractions, or the logs of floats."""
    best = max(weights.values())
    return next(name for name, weight in weights.items() if _as_good(weight, best))


def _as_good(weight: Number, best: Number) -> bool:
    # 0.1 * 0.3 and 0.3 * 0.1 tie, but the sums of their logs differ in the last digit; logs of probabilities
    # have one sign, so nothing cancels, and equals differ by a few roundings at most.
    return weight == best or (isinstance(weight, float) and math.isclose(weight, best, rel_tol=1e-14, abs_tol=1e-15))


def shown(number: Number) -> str:
    """A number as text: a short fraction as it is, anything else as a decimal."""
    if isinstance(number, Fraction):
        return str(number) if number.denominator <= LARGEST_SHOWN else shown_log(log(number))
    return f"{number:.6g}"


def shown_log(log_number: float) -> str:
    """A number as text, given its log; one too small for a float is written as a power of e."""
    return f"{math.exp(log_number):.6g}" if log_number > -700 or log_number == -math.inf else f"exp({log_number:.6g})"
