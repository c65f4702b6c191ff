"""Bayes' rule on events: what one observation does to a handful of beliefs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from likely.bayes.exact import Number, all_exact, count, distribution, log, posterior_of, probability, same_names, total
from likely.errors import DataError, UsageError

Name = TypeVar("Name")


def bayes_rule(
    *,
    prior: Mapping[Name, Any] | None = None,
    likelihood: Mapping[Name, Any] | None = None,
    counts: Mapping[Name, tuple[Any, Any]] | None = None,
) -> dict[Name, Number]:
    """P(h | d) = P(d | h) P(h) / Σ P(d | hᵢ) P(hᵢ), in fractions if all numbers given are fractions or whole.

    `counts={"spam": (36, 60), "good": (4, 40)}` says the same by counting: the event was seen in 36 of 60.
    """
    if counts is not None and prior is None and likelihood is None:
        prior, likelihood = _counted_events(counts)
    elif counts is not None or prior is None or likelihood is None:
        raise UsageError("Bayes' rule needs prior= and likelihood=, or counts= alone")
    believed, foretold = _event(prior, likelihood)
    if not any(believed[h] and foretold[h] for h in believed):
        raise DataError("the event is impossible under every hypothesis", remedy="check the likelihoods that are 0")
    if all_exact([*believed.values(), *foretold.values()]):
        return posterior_of({h: believed[h] * foretold[h] for h in believed})
    return posterior_of({h: log(believed[h]) + log(foretold[h]) for h in believed})


def total_probability(prior: Mapping[Name, Any], likelihood: Mapping[Name, Any]) -> Number:
    """P(d) = Σ P(d | hᵢ) P(hᵢ)."""
    believed, foretold = _event(prior, likelihood)
    return total([believed[h] * foretold[h] for h in believed])


def independent(*probabilities: Any) -> Number:
    """The probability that all happen, if none tells anything of the others: the product."""
    return math.prod((probability(p, "an argument of independent") for p in probabilities), start=Fraction(1))


def _event(prior: Mapping[Name, Any], likelihood: Mapping[Name, Any]) -> tuple[dict[Name, Number], dict[Name, Number]]:
    believed = distribution(prior, "the prior")
    same_names(believed, likelihood, "the likelihood")
    return believed, {h: probability(likelihood[h], f"the likelihood of {h!r}") for h in believed}


def _counted_events(counts: Mapping[Name, tuple[Any, Any]]) -> tuple[dict[Name, Number], dict[Name, Number]]:
    """The share of rows that each class has, and the share of each class's rows that saw the event."""
    rows: dict[Name, int] = {}
    seen: dict[Name, int] = {}
    for h, pair in counts.items():
        remedy = f"give counts={{{h!r}: (rows with the event, all rows)}}"
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise DataError(f"the counts of {h!r} are not a pair", value=pair, remedy=remedy)
        seen[h], rows[h] = (count(n, h) for n in pair)
        if seen[h] > rows[h]:
            raise DataError(f"{h!r} saw the event in {seen[h]} of {rows[h]} rows", value=pair, remedy=remedy)
    whole = sum(rows.values())
    if counts and not whole:
        raise DataError("the counts have no rows", remedy="count at least one")
    return {h: Fraction(n, whole) for h, n in rows.items()}, {h: Fraction(seen[h], max(n, 1)) for h, n in rows.items()}
