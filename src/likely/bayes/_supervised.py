"""Bayesian concept learning: hypotheses on labelled data, noise-free or with noisy labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from likely.bayes._exact import Number, all_exact, distribution, first_best, log, probability, same_names, shown, total
from likely.bayes._frozen_values import changed
from likely.bayes._space import Space
from likely.errors import DataError, UsageError
from likely.kernels.parallel import cached_property


@dataclass(frozen=True, kw_only=True, repr=False)
class SupervisedHypotheses(Space):
    """A finite space of hypotheses on pairs (x, y); from `Hypotheses.supervised`.

    Without noise the posterior is the prior, restricted to the version space and normalised. Fractions and whole
    numbers stay exact; a single float anywhere turns the space to floats, kept in logs.

    Parameters
    ----------
    prior : dict
        P(h) for each hypothesis.
    predictors : dict of callables or None, default=None
        For each hypothesis a function of x: the label it predicts, or a dict from labels to probabilities.
    likelihood : dict of callables or None, default=None
        Instead of it, for each hypothesis a function (y, x) that returns P(y | x, h).
    noise : number, default=0
        Probability that a label is not the one that the hypothesis predicts, spread evenly over the others.
    labels : sequence, default=(False, True)
        All possible labels.

    Attributes
    ----------
    pairs : tuple
        The pairs (x, y) observed.
    exact : bool
        Whether all numbers are fractions.
    """

    prior: Mapping[Any, Any]
    predictors: Mapping[Any, Callable[[Any], Any]] | None = None
    likelihood: Mapping[Any, Callable[[Any, Any], Any]] | None = None
    noise: Any = 0
    labels: Sequence[Any] = (False, True)
    pairs: tuple[tuple[Any, Any], ...] = field(default=(), init=False)
    exact: bool = field(default=True, init=False)
    _rows: tuple[tuple[Number, ...], ...] = field(default=(), init=False)  # P(y | x, h), a row for each pair

    def __post_init__(self) -> None:
        prior = distribution(self.prior, "the prior")
        if (self.predictors is None) == (self.likelihood is None):
            raise UsageError("give predict= or likelihood=, one of the two")
        functions: Any = self.predictors if self.likelihood is None else self.likelihood
        same_names(prior, functions, "predict" if self.likelihood is None else "the likelihood")
        for h, function in functions.items():
            if not callable(function):
                raise DataError(f"{h!r} is {function!r}, not a function", value=function, remedy="give a function of x")
        labels = tuple(dict.fromkeys(self.labels))
        noise = probability(self.noise, "the noise")
        if noise and self.likelihood is not None:
            raise UsageError("noise= belongs to predict=: functions P(y | x, h) contain their own noise")
        if len(labels) < 2:
            raise DataError("there must be two labels at least", value=labels, remedy="name them all in labels=")
        exact = all_exact([*prior.values(), noise])
        for name, value in (("prior", prior), ("noise", noise), ("labels", labels), ("exact", exact)):
            object.__setattr__(self, name, value)

    def observe(self, pairs: Iterable[tuple[Any, Any]]) -> SupervisedHypotheses:
        """Update on labelled examples; their order does not matter.

        Parameters
        ----------
        pairs : iterable of (x, y)
            Examples with their labels.

        Returns
        -------
        SupervisedHypotheses
            A new space; this one is unchanged.
        """
        seen, rows = list(self.pairs), list(self._rows)
        possible = self._possible
        alive = {i for i in range(len(self.prior)) if all(row[i] > 0 for row in rows)}
        for pair in pairs:
            x, y = self._pair(pair)
            # A hypothesis that the data have excluded stays excluded: it is not asked again.
            row = tuple(self._probability(h, x, y) if i in alive else Fraction(0) for i, h in enumerate(self.prior))
            alive = {i for i in alive if row[i] > 0}
            possible = [i for i in possible if row[i] > 0]
            if not possible:
                raise DataError(
                    f"label {y!r} of {x!r} is impossible under every hypothesis that the data before it left possible",
                    value=y,
                    remedy="check it, or allow for wrong labels with noise=0.1",
                )
            seen.append((x, y))
            rows.append(row)
        return changed(self, pairs=tuple(seen), _rows=tuple(rows), exact=self.exact and all(map(all_exact, rows)))

    def trace(self, pairs: Iterable[tuple[Any, Any]]) -> Iterator[SupervisedHypotheses]:
        """Update on one example after the other.

        Parameters
        ----------
        pairs : iterable of (x, y)
            Examples with their labels.

        Yields
        ------
        SupervisedHypotheses
            The space before the data, then after each example.
        """
        current = self
        yield current
        for pair in pairs:
            current = current.observe([pair])
            yield current

    @property
    def version_space(self) -> list[Any]:
        """The hypotheses that are consistent with the data: those whose likelihood is not 0."""
        return [h for i, h in enumerate(self.prior) if all(row[i] > 0 for row in self._rows)]

    def predict(self, x: Any) -> dict[Any, Number]:
        """Bayes-optimal prediction P(y | x, data) = Σ P(y | x, h) P(h | data).

        Parameters
        ----------
        x : object
            A new example.

        Returns
        -------
        dict
            Probability of each label; the optimal classifier takes the most probable one.
        """
        rows = {h: self._distribution(h, x) for h, p in self._posterior.items() if p}
        return {y: total([self._posterior[h] * row[y] for h, row in rows.items()]) for y in self.labels}

    def predict_map(self, x: Any) -> dict[Any, Number]:
        """Prediction P(y | x, h_MAP) of the MAP hypothesis alone.

        Parameters
        ----------
        x : object
            A new example.

        Returns
        -------
        dict
            Probability of each label.
        """
        return self._distribution(self.map, x)

    def predict_gibbs(self, x: Any, seed: Any = None) -> Any:
        """Prediction of the Gibbs classifier: the label of one hypothesis, drawn from the posterior.

        Parameters
        ----------
        x : object
            A new example.
        seed : int, numpy.random.Generator or None, default=None
            Random seed.

        Returns
        -------
        label
            The label that is most probable under the drawn hypothesis.
        """
        names, shares = list(self._posterior), np.array([float(p) for p in self._posterior.values()])
        drawn = np.random.default_rng(seed).choice(len(names), p=shares / shares.sum())
        return self._label(names[drawn], x)

    def expected_errors(self, x: Any) -> dict[str, Number]:
        """Probability that each classifier is wrong on x, if the truth is distributed as the posterior.

        Where every hypothesis predicts one label, with the same noise, that of the Gibbs classifier is at most twice
        the one of the Bayes-optimal classifier.

        Parameters
        ----------
        x : object
            A new example.

        Returns
        -------
        dict
            Of "optimal", "map" and "gibbs".
        """
        optimal = self.predict(x)
        best = first_best({y: p if self.exact else log(p) for y, p in optimal.items()})
        drawn = [self._posterior[h] * (1 - optimal[self._label(h, x)]) for h in self.prior]
        return {"optimal": 1 - optimal[best], "map": 1 - optimal[self._label(self.map, x)], "gibbs": total(drawn)}

    def _pair(self, pair: Any) -> tuple[Any, Any]:
        if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise DataError(f"{pair!r} is not a pair (x, y)", value=pair, remedy="give [(x, y), ...]")
        x, y = pair
        if y not in self.labels:
            known = ", ".join(map(repr, self.labels))
            raise DataError(f"{y!r} is not a label", value=y, remedy=f"the labels are {known}; name others in labels=")
        return x, y

    def _label(self, h: Any, x: Any) -> Any:
        row = self._distribution(h, x)
        return max(row, key=lambda y: row[y])

    def _probability(self, h: Any, x: Any, y: Any) -> Number:
        """P(y | x, h) for one label."""
        if self.predictors is None:
            return self._distribution(h, x)[y]
        found = self.predictors[h](x)
        if isinstance(found, Mapping) or found not in self.labels:
            return self._predicted(h, x, found)[y]
        return self._of_right_and_wrong[0 if found == y else 1]

    @cached_property
    def _of_right_and_wrong(self) -> tuple[Number, Number]:
        """Probability of the label that a hypothesis predicts, and of each other one."""
        return Fraction(1) * (1 - self.noise), Fraction(1) * self.noise / (len(self.labels) - 1)

    def _distribution(self, h: Any, x: Any) -> dict[Any, Number]:
        """P(y | x, h) for every label."""
        of = f"P(y | {x!r}, {h!r})"
        if self.likelihood is not None:
            return distribution({y: self.likelihood[h](y, x) for y in self.labels}, of)
        assert self.predictors is not None
        return self._predicted(h, x, self.predictors[h](x))

    def _predicted(self, h: Any, x: Any, found: Any) -> dict[Any, Number]:
        """P(y | x, h) for every label, where h predicts one or gives their probabilities."""
        row = distribution(found, f"P(y | {x!r}, {h!r})") if isinstance(found, Mapping) else {found: Fraction(1)}
        for y in row:
            if y not in self.labels:
                known = ", ".join(map(repr, self.labels))
                raise DataError(f"{h!r} predicts {y!r} for {x!r}", value=y, remedy=f"the labels are {known}: see labels=")
        others = len(self.labels) - 1
        hit = {y: row.get(y, Fraction(0)) for y in self.labels}
        return {y: p * (1 - self.noise) + (1 - p) * self.noise / others for y, p in hit.items()}

    @cached_property
    def _likelihoods(self) -> dict[Any, Number]:
        if self.exact:
            return {h: math.prod((row[i] for row in self._rows), start=Fraction(1)) for i, h in enumerate(self.prior)}
        # fsum rounds once, so the order of the examples does not matter, not even in the last digit
        return {h: math.fsum(log(row[i]) for row in self._rows) for i, h in enumerate(self.prior)}

    @property
    def _possible(self) -> list[int]:
        """Indexes of the hypotheses that neither the prior nor the data have excluded."""
        consistent = set(self.version_space)
        return [i for i, (h, p) in enumerate(self.prior.items()) if p > 0 and h in consistent]

    def __repr__(self) -> str:
        size = f"{len(self.prior)} hypotheses, {len(self.pairs)} examples, {len(self.version_space)} consistent"
        return f"SupervisedHypotheses({size}, MAP: {self.map})"

    def __str__(self) -> str:
        consistent = set(self.version_space)
        table = [["hypothesis", "prior", "posterior", "consistent"]]
        table += [[str(h), shown(p), shown(self._posterior[h]), "yes" if h in consistent else "no"]
                  for h, p in self.prior.items()]  # fmt: skip
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
        return "\n".join([*lines, f"{len(self.pairs)} examples; MAP hypothesis: {self.map}"])
