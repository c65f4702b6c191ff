"""A finite space of hypotheses, learned by counting outcomes."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import filterfalse
from typing import Any

import numpy as np

from likely.bayes.exact import (
    Number,
    all_exact,
    count,
    distribution,
    first_best,
    log,
    posterior_of,
    said,
    said_log,
    same_names,
    total,
)
from likely.bayes.rule import normalise
from likely.errors import DataError
from likely.threads import cached_property


@dataclass(frozen=True, kw_only=True, repr=False)
class Hypotheses:
    """A finite space of hypotheses and what has been seen: beliefs are read off the counts of the outcomes.

    Fractions and whole numbers stay exact; a single float anywhere turns the space to floats, kept in logs.
    An outcome that a hypothesis does not mention has probability 0 under it.
    """

    prior: Mapping[Any, Any]
    likelihood: Mapping[Any, Mapping[Any, Any]]
    seen: Mapping[Any, int] = field(default_factory=dict, init=False)
    exact: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        prior = distribution(self.prior, "the prior")
        same_names(prior, self.likelihood, "the likelihood")
        rows = {h: distribution(self.likelihood[h], f"the likelihood of {h!r}") for h in prior}
        outcomes = dict.fromkeys(outcome for row in rows.values() for outcome in row)
        exact = all(all_exact(table.values()) for table in (prior, *rows.values()))
        kind = Fraction if exact else float
        self.__dict__.update(
            prior={h: kind(p) for h, p in prior.items()},
            likelihood={h: {o: kind(row.get(o, 0)) for o in outcomes} for h, row in rows.items()},
            exact=exact,
        )

    def observe(self, observations: Any) -> Hypotheses:
        """The beliefs after one more outcome, several, or a mapping of outcomes to counts; in any order the same."""
        counts = self._counted(observations)
        standing = self._standing
        for outcome in counts:
            standing = {h for h in standing if self.likelihood[h][outcome] > 0}
            if not standing:
                raise DataError(
                    f"{outcome!r} is impossible under every hypothesis that the data before it left standing",
                    value=outcome,
                    remedy="check it, or give it a likelihood above 0",
                )
        after = object.__new__(Hypotheses)  # the space was checked when it was made, and only the counts are new
        seen = {**self.seen, **{o: self.seen.get(o, 0) + n for o, n in counts.items()}}
        after.__dict__.update(prior=self.prior, likelihood=self.likelihood, exact=self.exact, seen=seen)
        return after

    def trace(self, observations: Any) -> Iterator[Hypotheses]:
        """The beliefs before the data, then after each outcome in turn."""
        beliefs = self
        yield beliefs
        if isinstance(observations, Mapping):
            observations = Counter(self._counted(observations)).elements()
        for outcome in self._each(observations):
            beliefs = beliefs.observe(outcome)
            yield beliefs

    @property
    def posterior(self) -> dict[Any, Number]:
        """How probable each hypothesis is after the data."""
        return dict(self._posterior)

    @property
    def map(self) -> Any:
        """The most probable hypothesis after the data; of equals the first."""
        return first_best(self._weights)

    @property
    def ml(self) -> Any:
        """The hypothesis that foretold the data best, its prior ignored; of equals the first."""
        return first_best(self._support)

    @property
    def evidence(self) -> Number:
        """How probable the data so far were, under all hypotheses together."""
        return total(self._weights.values()) if self.exact else math.exp(self.log_evidence)

    @property
    def log_evidence(self) -> float:
        """The log of the evidence, which stays finite where the evidence itself is too small for a float."""
        if self.exact:
            return log(self.evidence)
        weights = np.array([list(self._weights.values())])
        return float(normalise(weights, weights[0])[1][0])

    def predict(self) -> dict[Any, Number]:
        """Bayes-optimal: each outcome's probability under each hypothesis, weighted by how probable that is."""
        return self.vote(self.likelihood)

    def predict_map(self) -> dict[Any, Number]:
        """What the most probable hypothesis alone would say."""
        return dict(self.likelihood[self.map])

    def vote(self, votes: Mapping[Any, Any]) -> dict[Any, Number]:
        """P(v | D) = Σ P(v | h) P(h | D), where each hypothesis votes for one value or gives a distribution."""
        same_names(self.prior, votes, "the vote")
        ballots = {h: self._ballot(h, votes[h]) for h in self.prior}
        values = dict.fromkeys(value for ballot in ballots.values() for value in ballot)
        return {v: total([self._posterior[h] * b[v] for h, b in ballots.items() if v in b]) for v in values}

    def _ballot(self, hypothesis: Any, vote: Any) -> dict[Any, Number]:
        if isinstance(vote, Mapping):
            return distribution(vote, f"the vote of {hypothesis!r}")
        return {vote: Fraction(1)}

    @cached_property
    def _support(self) -> dict[Any, Number]:
        """P(data | h) for each hypothesis: a product of fractions, or the log of it."""
        if self.exact:
            return {
                h: math.prod((row[o] ** n for o, n in self.seen.items()), start=Fraction(1))
                for h, row in self.likelihood.items()
            }
        # fsum rounds once, so the order of the outcomes leaves no trace, not even in the last digit
        return {h: math.fsum(n * log(row[o]) for o, n in self.seen.items()) for h, row in self.likelihood.items()}

    @cached_property
    def _weights(self) -> dict[Any, Number]:
        """P(data | h) P(h) for each hypothesis, or the log of it."""
        if self.exact:
            return {h: p * self._support[h] for h, p in self.prior.items()}
        return {h: log(p) + self._support[h] for h, p in self.prior.items()}

    @cached_property
    def _posterior(self) -> dict[Any, Number]:
        return posterior_of(self._weights)

    @cached_property
    def _standing(self) -> set[Any]:
        """The hypotheses that neither the prior nor the data have ruled out."""
        return {h for h, p in self.prior.items() if p > 0 and all(self.likelihood[h][o] > 0 for o in self.seen)}

    @property
    def _outcomes(self) -> Mapping[Any, Any]:
        return next(iter(self.likelihood.values()))

    def _is_outcome(self, value: Any) -> bool:
        try:
            return value in self._outcomes
        except TypeError:  # not hashable
            return False

    def _each(self, observations: Any) -> Iterable[Any]:
        """The observations one by one; a known outcome, a text, and what is not a collection count as one."""
        one = self._is_outcome(observations) or isinstance(observations, (str, bytes))
        if one or not isinstance(observations, Iterable):
            return [observations]
        return observations.tolist() if isinstance(observations, np.ndarray) else observations

    def _counted(self, observations: Any) -> dict[Any, int]:
        """How often each outcome was seen, in the order of first sight."""
        counts: dict[Any, int]
        if isinstance(observations, Mapping):
            counts = {outcome: count(n, outcome) for outcome, n in observations.items()}
        else:
            items = list(self._each(observations))
            try:
                counts = Counter(items)
            except TypeError:  # what cannot be hashed is no outcome
                raise self._unknown(next(filterfalse(self._is_outcome, items))) from None
        for outcome in filterfalse(self._is_outcome, counts):
            raise self._unknown(outcome)
        return {outcome: n for outcome, n in counts.items() if n}

    def _unknown(self, outcome: Any) -> DataError:
        known = ", ".join(map(repr, self._outcomes))
        return DataError(f"{outcome!r} is not an outcome", value=outcome, remedy=f"the outcomes are {known}")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, and as fractions where the space is exact."""
        tables = {"prior": self.prior, "posterior": self.posterior, "predict": self.predict()}
        tables["predict_map"] = self.predict_map()
        told: dict[str, Any] = {name: {key: float(p) for key, p in table.items()} for name, table in tables.items()}
        told["likelihood"] = {h: {o: float(p) for o, p in row.items()} for h, row in self.likelihood.items()}
        told |= {"map": self.map, "ml": self.ml, "seen": dict(self.seen), "exact": self.exact}
        told |= {"evidence": float(self.evidence), "log_evidence": self.log_evidence}
        if self.exact:
            told["fractions"] = {name: {key: said(p) for key, p in table.items()} for name, table in tables.items()}
            told["fractions"]["evidence"] = said(self.evidence)
        return told

    def _lines(self) -> tuple[list[list[str]], list[str]]:
        """The table, headed, and the sentences below it."""
        table = [["hypothesis", "prior", "P(data | h)", "posterior"]]
        for h, prior in self.prior.items():
            foretold = said(self._support[h]) if self.exact else said_log(float(self._support[h]))
            table.append([_name(h), said(prior), foretold, said(self._posterior[h])])
        evidence = said(self.evidence) if self.exact else said_log(self.log_evidence)
        return table, [
            f"seen: {self._seen_text()}; P(data) = {evidence}",
            f"next, all hypotheses together: {_listed(self.predict())}",
            f"next, MAP hypothesis {_name(self.map)} alone: {_listed(self.predict_map())}",
            f"most likely, prior ignored (ML): {_name(self.ml)}",
        ]

    def _seen_text(self) -> str:
        return ", ".join(f"{_name(o)} {n}" for o, n in self.seen.items()) or "nothing"

    def __repr__(self) -> str:
        size = f"{len(self.prior)} {'hypothesis' if len(self.prior) == 1 else 'hypotheses'}"
        return f"Hypotheses({size}, seen: {self._seen_text()}, MAP: {_name(self.map)})"

    def __str__(self) -> str:
        table, sentences = self._lines()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        rows = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
        return "\n".join(row.rstrip() for row in [*rows, *sentences])

    def _repr_html_(self) -> str:
        (head, *rows), sentences = self._lines()
        lines = [_html_row("th", head), *(_html_row("td", row) for row in rows)]
        return f"<table>{''.join(lines)}</table><p>{'<br>'.join(map(html.escape, sentences))}</p>"


def _name(name: Any) -> str:
    """A name as it reads, unless it hides control characters."""
    text = str(name)
    return text if text.isprintable() else repr(text)


def _listed(table: Mapping[Any, Number]) -> str:
    return ", ".join(f"{_name(name)} {said(number)}" for name, number in table.items())


def _html_row(tag: str, cells: list[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
