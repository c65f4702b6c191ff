"""Bayes' rule on events."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from likely.bayes._exact import (
    TOLERANCE,
    Number,
    all_exact,
    count,
    distribution,
    log,
    posterior_of,
    probability,
    ratio,
    same_names,
    total,
)
from likely.errors import DataError, UsageError

Name = TypeVar("Name")


def bayes_rule(
    *,
    prior: Mapping[Name, Any] | None = None,
    likelihood: Mapping[Name, Any] | None = None,
    counts: Mapping[Name, tuple[Any, Any]] | None = None,
) -> dict[Name, Number]:
    """P(h | d) = P(d | h) P(h) / Σ P(d | hᵢ) P(hᵢ), in fractions if all numbers given are fractions or integers.

    Parameters
    ----------
    prior : dict or None, default=None
        P(h) for each hypothesis.
    likelihood : dict or None, default=None
        P(d | h) for each hypothesis.
    counts : dict or None, default=None
        Instead of both, (rows with the event, all rows) for each hypothesis: {"spam": (36, 60), "good": (4, 40)}.

    Returns
    -------
    dict
        P(h | d) for each hypothesis.
    """
    if counts is not None and prior is None and likelihood is None:
        prior, likelihood = _counted_events(counts)
    elif counts is not None or prior is None or likelihood is None:
        raise UsageError("Bayes' rule needs prior= and likelihood=, or counts= alone")
    priors, likelihoods = _event(prior, likelihood)
    if not any(priors[h] and likelihoods[h] for h in priors):
        raise DataError("the event is impossible under every hypothesis", remedy="check the likelihoods that are 0")
    if all_exact([*priors.values(), *likelihoods.values()]):
        return posterior_of({h: priors[h] * likelihoods[h] for h in priors})
    return posterior_of({h: log(priors[h]) + log(likelihoods[h]) for h in priors})


def total_probability(prior: Mapping[Name, Any], likelihood: Mapping[Name, Any]) -> Number:
    """P(d) = Σ P(d | hᵢ) P(hᵢ), in fractions if all numbers given are fractions or whole.

    Parameters
    ----------
    prior : dict
        P(h) for each hypothesis.
    likelihood : dict
        P(d | h) for each hypothesis.

    Returns
    -------
    number
        P(d).
    """
    priors, likelihoods = _event(prior, likelihood)
    return total([priors[h] * likelihoods[h] for h in priors])


def independent(*probabilities: Any) -> Number:
    """Probability that all of several independent events happen: the product.

    Parameters
    ----------
    *probabilities
        The probability of each event.

    Returns
    -------
    number
        The product, a fraction if all are fractions or whole.
    """
    return math.prod((probability(p, "an argument of independent") for p in probabilities), start=Fraction(1))


def sum_rule(a: Any, b: Any, both: Any = 0) -> Number:
    """P(A or B) = P(A) + P(B) − P(A, B), in fractions if all numbers given are fractions or whole.

    Parameters
    ----------
    a : number
        P(A).
    b : number
        P(B).
    both : number, default=0
        P(A, B); 0 if the events exclude each other.

    Returns
    -------
    number
        P(A or B).
    """
    one, other, joint = probability(a, "P(A)"), probability(b, "P(B)"), probability(both, "P(A, B)")
    found = total([one, other, -joint])
    if joint > min(one, other) + _tolerance(joint, one, other):
        raise DataError(f"P(A, B) = {both} is greater than P(A) or P(B)", value=both, remedy="check the three numbers")
    if found > 1 + _tolerance(found):
        remedy = "give both= above P(A) + P(B) − 1, because such events cannot exclude each other"
        raise DataError(f"P(A or B) would be {found}", value=found, remedy=remedy)
    return min(found, 1.0) if isinstance(found, float) else found


def product_rule(conditional: Any, given: Any) -> Number:
    """P(A, B) = P(A | B) P(B), in fractions if both numbers are fractions or whole.

    Parameters
    ----------
    conditional : number
        P(A | B).
    given : number
        P(B).

    Returns
    -------
    number
        P(A, B).
    """
    return probability(conditional, "P(A | B)") * probability(given, "P(B)")


def conditional(both: Any, given: Any) -> Number:
    """P(A | B) = P(A, B) / P(B), in fractions if both numbers are fractions or whole.

    Parameters
    ----------
    both : number
        P(A, B).
    given : number
        P(B), above 0.

    Returns
    -------
    number
        P(A | B).
    """
    joint, condition = probability(both, "P(A, B)"), probability(given, "P(B)")
    if not condition:
        raise DataError("P(B) is 0: nothing follows from an impossible event", value=given, remedy="give P(B) above 0")
    if joint > condition + _tolerance(joint, condition):
        raise DataError(f"P(A, B) = {both} is greater than P(B) = {given}", value=both, remedy="check both numbers")
    found = joint / condition
    return min(found, 1.0) if isinstance(found, float) else found


def odds(probability_of: Any) -> Number:
    """P / (1 − P); infinity for a certain event.

    Parameters
    ----------
    probability_of : number
        The probability P of the event.

    Returns
    -------
    number
        The odds in favour of the event, a fraction if P is one.
    """
    p = probability(probability_of, "the probability")
    return ratio(p, max(1 - p, type(p)(0)), "the odds")


def odds_ratio(one: Any, other: Any) -> Number:
    """odds(P) / odds(Q): how many times as great the odds of an event are under one condition as under another.

    Parameters
    ----------
    one : number
        The probability P of the event under one condition.
    other : number
        Its probability Q under the other.

    Returns
    -------
    number
        The ratio, a fraction if both are; infinity if only Q is impossible or only P is certain.
    """
    p, q = probability(one, "the first probability"), probability(other, "the second probability")
    return ratio(p * (1 - q), q * (1 - p), "the odds ratio")


def _tolerance(*numbers: Number) -> float | int:
    """How far a comparison may be off by rounding: not at all for fractions."""
    return 0 if all_exact(numbers) else TOLERANCE


def _event(prior: Mapping[Name, Any], likelihood: Mapping[Name, Any]) -> tuple[dict[Name, Number], dict[Name, Number]]:
    priors = distribution(prior, "the prior")
    same_names(priors, likelihood, "the likelihood")
    return priors, {h: probability(likelihood[h], f"the likelihood of {h!r}") for h in priors}


def _counted_events(counts: Mapping[Name, tuple[Any, Any]]) -> tuple[dict[Name, Number], dict[Name, Number]]:
    """The relative frequency of each hypothesis, and of the event under each hypothesis."""
    rows: dict[Name, int] = {}
    seen: dict[Name, int] = {}
    for h, pair in counts.items():
        remedy = f"give counts={{{h!r}: (rows with the event, all rows)}}"
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise DataError(f"the counts of {h!r} are not a pair", value=pair, remedy=remedy)
        seen[h], rows[h] = (count(n, h) for n in pair)
        if seen[h] > rows[h]:
            raise DataError(f"{h!r} has the event in {seen[h]} of {rows[h]} rows", value=pair, remedy=remedy)
    all_rows = sum(rows.values())
    if counts and not all_rows:
        raise DataError("the counts have no rows", remedy="count at least one")
    return {h: Fraction(n, all_rows) for h, n in rows.items()}, {h: Fraction(seen[h], max(n, 1)) for h, n in rows.items()}
