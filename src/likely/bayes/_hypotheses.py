"""Bayesian learning over a finite set of hypotheses, by counting outcomes."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import filterfalse
from typing import Any

import numpy as np

from likely.bayes._exact import Number, all_exact, count, distribution, log, same_names, shown, shown_log, total
from likely.bayes._frozen_values import changed
from likely.bayes._space import Space
from likely.bayes._supervised import SupervisedHypotheses
from likely.bayes.grid import GridHypotheses
from likely.errors import DataError, UsageError
from likely.kernels.parallel import cached_property
from likely.plots.shown import frame
from likely.plots.svg import Svg


@dataclass(frozen=True, kw_only=True, repr=False)
class Hypotheses(Space):
    """A finite space of hypotheses with the counts of observed outcomes; posterior and predictions are derived from them.

    Fractions and whole numbers stay exact; a single float anywhere turns the space to floats, kept in logs.

    Parameters
    ----------
    prior : dict
        P(h) for each hypothesis.
    likelihood : dict of dict
        P(outcome | h) for each hypothesis; an outcome that it does not mention has probability 0.

    Attributes
    ----------
    seen : dict
        How often each outcome was observed.
    exact : bool
        Whether all numbers are fractions.
    """

    prior: Mapping[Any, Any]
    likelihood: Mapping[Any, Mapping[Any, Any]]
    seen: Mapping[Any, int] = field(default_factory=dict, init=False)
    exact: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        prior = distribution(self.prior, "the prior")
        same_names(prior, self.likelihood, "the likelihood")
        if any(callable(row) for row in self.likelihood.values()):
            raise UsageError("the likelihoods are functions: use Hypotheses.supervised(...) or Hypotheses.grid(...)")
        rows = {h: distribution(self.likelihood[h], f"the likelihood of {h!r}") for h in prior}
        outcomes = dict.fromkeys(outcome for row in rows.values() for outcome in row)
        exact = all(all_exact(table.values()) for table in (prior, *rows.values()))
        kind = Fraction if exact else float
        object.__setattr__(self, "prior", {h: kind(p) for h, p in prior.items()})
        object.__setattr__(self, "likelihood", {h: {o: kind(row.get(o, 0)) for o in outcomes} for h, row in rows.items()})
        object.__setattr__(self, "exact", exact)

    @staticmethod
    def supervised(
        *,
        prior: Mapping[Any, Any],
        predict: Mapping[Any, Callable[[Any], Any]] | None = None,
        likelihood: Mapping[Any, Callable[[Any, Any], Any]] | None = None,
        noise: Any = 0,
        labels: Sequence[Any] = (False, True),
    ) -> SupervisedHypotheses:
        """Hypotheses on labelled data: each gives a label, or P(y | x, h), for any x.

        Parameters
        ----------
        prior : dict
            P(h) for each hypothesis.
        predict : dict of callables or None, default=None
            For each hypothesis a function of x: the label it predicts, or a dict from labels to probabilities.
        likelihood : dict of callables or None, default=None
            Instead of it, for each hypothesis a function (y, x) that returns P(y | x, h).
        noise : number, default=0
            Probability that a label is not the one that the hypothesis predicts, spread evenly over the others.
        labels : sequence, default=(False, True)
            All possible labels.

        Returns
        -------
        SupervisedHypotheses
            The space before any data.
        """
        return SupervisedHypotheses(prior=prior, predictors=predict, likelihood=likelihood, noise=noise, labels=labels)

    @staticmethod
    def grid(
        low: float,
        high: float,
        points: int = 1001,
        *,
        likelihood: Callable[[Any, float], float],
        prior: Callable[[float], float] | None = None,
    ) -> GridHypotheses:
        """A continuous parameter θ on a grid, with the likelihood and the prior density as functions.

        Parameters
        ----------
        low, high : float
            Ends of the grid.
        points : int, default=1001
            Number of points, both ends included.
        likelihood : callable
            Function (outcome, θ) that returns P(outcome | θ), or its density.
        prior : callable or None, default=None
            Function of θ that returns its prior density, up to a factor; uniform by default.

        Returns
        -------
        GridHypotheses
            The grid before any data.
        """
        return GridHypotheses(low=low, high=high, points=points, likelihood=likelihood, prior=prior)

    def observe(self, observations: Any) -> Hypotheses:
        """Update on observed outcomes; their order does not matter.

        Parameters
        ----------
        observations : outcome, iterable of outcomes, or dict
            One outcome, several, or a dict from outcomes to counts.

        Returns
        -------
        Hypotheses
            A new space; this one is unchanged.
        """
        counts = self._counts_of(observations)
        possible = self._possible
        for outcome in counts:
            possible = {h for h in possible if self.likelihood[h][outcome] > 0}
            if not possible:
                raise DataError(
                    f"{outcome!r} is impossible under every hypothesis that the data before it left possible",
                    value=outcome,
                    remedy="check it, or give it a likelihood above 0",
                )
        seen = {**self.seen, **{o: self.seen.get(o, 0) + n for o, n in counts.items()}}
        return changed(self, seen=seen)

    def trace(self, observations: Any) -> Iterator[Hypotheses]:
        """Update on one outcome after the other.

        Parameters
        ----------
        observations : iterable of outcomes, or dict
            The outcomes in order, or a dict from outcomes to counts.

        Yields
        ------
        Hypotheses
            The space before the data, then after each outcome.
        """
        current = self
        yield current
        if isinstance(observations, Mapping):
            observations = Counter(self._counts_of(observations)).elements()
        for outcome in self._observations(observations):
            current = current.observe(outcome)
            yield current

    def predict(self) -> dict[Any, Number]:
        """Bayes-optimal prediction: P(outcome | data), averaged over the posterior of the hypotheses."""
        return self.vote(self.likelihood)

    def predict_map(self) -> dict[Any, Number]:
        """Prediction of the MAP hypothesis alone."""
        return dict(self.likelihood[self.map])

    def vote(self, votes: Mapping[Any, Any]) -> dict[Any, Number]:
        """P(v | D) = Σ P(v | h) P(h | D): predictions of the hypotheses, averaged over their posterior.

        Parameters
        ----------
        votes : dict
            For each hypothesis one value, or a dict from values to probabilities.

        Returns
        -------
        dict
            Probability of each value.
        """
        same_names(self.prior, votes, "the vote")
        distributions = {h: self._vote_of(h, votes[h]) for h in self.prior}
        values = dict.fromkeys(value for distribution_of in distributions.values() for value in distribution_of)
        return {v: total([self._posterior[h] * b[v] for h, b in distributions.items() if v in b]) for v in values}

    def _vote_of(self, hypothesis: Any, vote: Any) -> dict[Any, Number]:
        if isinstance(vote, Mapping):
            return distribution(vote, f"the vote of {hypothesis!r}")
        return {vote: Fraction(1)}

    @cached_property
    def _likelihoods(self) -> dict[Any, Number]:
        """P(data | h) for each hypothesis: a product of fractions, or the log of it."""
        if self.exact:
            return {
                h: math.prod((row[o] ** n for o, n in self.seen.items()), start=Fraction(1))
                for h, row in self.likelihood.items()
            }
        # fsum rounds once, so the order of the outcomes does not matter, not even in the last digit
        return {h: math.fsum(n * log(row[o]) for o, n in self.seen.items()) for h, row in self.likelihood.items()}

    @cached_property
    def _possible(self) -> set[Any]:
        """The hypotheses that neither the prior nor the data have excluded."""
        return {h for h, p in self.prior.items() if p > 0 and all(self.likelihood[h][o] > 0 for o in self.seen)}

    @property
    def _outcomes(self) -> Mapping[Any, Any]:
        return next(iter(self.likelihood.values()))

    def _is_outcome(self, value: Any) -> bool:
        try:
            return value in self._outcomes
        except TypeError:  # not hashable
            return False

    def _observations(self, observations: Any) -> Iterable[Any]:
        """The observations one by one; a known outcome, a text, and what is not a collection count as one."""
        one = self._is_outcome(observations) or isinstance(observations, (str, bytes))
        if one or not isinstance(observations, Iterable):
            return [observations]
        return observations.tolist() if isinstance(observations, np.ndarray) else observations

    def _counts_of(self, observations: Any) -> dict[Any, int]:
        """Count of each outcome, in the order of first occurrence."""
        counts: dict[Any, int]
        if isinstance(observations, Mapping):
            counts = {outcome: count(n, outcome) for outcome, n in observations.items()}
        else:
            items = list(self._observations(observations))
            try:
                counts = Counter(items)
            except TypeError:  # an unhashable value is no outcome
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
        found: dict[str, Any] = {name: {key: float(p) for key, p in table.items()} for name, table in tables.items()}
        found["likelihood"] = {h: {o: float(p) for o, p in row.items()} for h, row in self.likelihood.items()}
        found |= {"map": self.map, "ml": self.ml, "seen": dict(self.seen), "exact": self.exact}
        found |= {"evidence": float(self.evidence), "log_evidence": self.log_evidence}
        if self.exact:
            found["fractions"] = {name: {key: shown(p) for key, p in table.items()} for name, table in tables.items()}
            found["fractions"]["evidence"] = shown(self.evidence)
        return found

    def _lines(self) -> tuple[list[list[str]], list[str]]:
        """The table, headed, and the sentences below it."""
        table = [["hypothesis", "prior", "P(data | h)", "posterior"]]
        for h, prior in self.prior.items():
            of_data = shown(self._likelihoods[h]) if self.exact else shown_log(float(self._likelihoods[h]))
            table.append([_name(h), shown(prior), of_data, shown(self._posterior[h])])
        evidence = shown(self.evidence) if self.exact else shown_log(self.log_evidence)
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

    def to_pandas(self) -> Any:
        """Prior, likelihood of the data and posterior of each hypothesis, as a pandas data frame; needs the extra `pandas`."""
        (head, *rows), _ = self._lines()
        return frame([dict(zip(head, row, strict=True)) for row in rows])

    def plot(self, observations: Any = None) -> Svg:
        """Prior and posterior of each hypothesis; with observations, the posterior after each of them.

        Parameters
        ----------
        observations : iterable or None, default=None
            Observations in order, after those seen already.

        Returns
        -------
        Svg
            A picture that notebooks show and `.save("x.svg")` writes; also .png and .pdf.
        """
        from likely.bayes._hypothesis_pictures import prior_and_posterior, step_by_step

        if observations is None:
            return prior_and_posterior(self.prior, self.posterior, repr(self))
        return step_by_step(list(self.prior), [step.posterior for step in self.trace(observations)])

    def _repr_html_(self) -> str:
        (head, *rows), sentences = self._lines()
        lines = [_html_row("th", head), *(_html_row("td", row) for row in rows)]
        return f"<table>{''.join(lines)}</table><p>{'<br>'.join(map(html.escape, sentences))}</p>"


def _name(name: Any) -> str:
    """A name as text; its repr if it has control characters."""
    text = str(name)
    return text if text.isprintable() else repr(text)


def _listed(table: Mapping[Any, Number]) -> str:
    return ", ".join(f"{_name(name)} {shown(number)}" for name, number in table.items())


def _html_row(tag: str, cells: list[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
