"""Base class of finite hypothesis spaces: posterior, MAP and ML hypothesis, evidence and odds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from likely.bayes._exact import Number, first_best, log, posterior_of, ratio, total
from likely.bayes.rule import normalise
from likely.errors import DataError
from likely.kernels.parallel import cached_property


class Space:
    """Posterior and odds from a prior and the likelihoods of the data, which a subclass provides."""

    prior: Mapping[Any, Any]
    exact: bool

    @property
    def _likelihoods(self) -> Mapping[Any, Number]:
        """P(data | h) for each hypothesis if the space is exact, else the log of it."""
        raise NotImplementedError

    @property
    def posterior(self) -> dict[Any, Number]:
        """P(h | data) for each hypothesis."""
        return dict(self._posterior)

    @property
    def map(self) -> Any:
        """The hypothesis with the highest posterior probability (h_MAP); of equals the first."""
        return first_best(self._weights)

    @property
    def ml(self) -> Any:
        """The hypothesis with the highest likelihood, its prior ignored (h_ML); of equals the first."""
        return first_best(self._likelihoods)

    @property
    def evidence(self) -> Number:
        """P(data), summed over all hypotheses."""
        return total(self._weights.values()) if self.exact else math.exp(self.log_evidence)

    @property
    def log_evidence(self) -> float:
        """log P(data), finite where P(data) is too small for a float."""
        if self.exact:
            return log(self.evidence)
        weights = np.array([list(self._weights.values())])
        return float(normalise(weights, weights[0])[1][0])

    def odds(self, hypothesis: Any, against: Any = None) -> Number:
        """Posterior odds P(h | data) / P(h' | data), which some lecture notes call the odds ratio.

        Parameters
        ----------
        hypothesis : object
            The hypothesis h.
        against : object or None, default=None
            The hypothesis h'; by default all others together, so that the odds are P / (1 − P).

        Returns
        -------
        number
            Prior odds times `odds_ratio`; infinity if h' is impossible.
        """
        return self._odds(self._weights, hypothesis, against)

    def odds_ratio(self, hypothesis: Any, against: Any = None) -> Number:
        """Posterior odds over prior odds: the likelihood ratio P(data | h) / P(data | h'), or Bayes factor.

        Parameters
        ----------
        hypothesis : object
            The hypothesis h.
        against : object or None, default=None
            The hypothesis h'; by default all others together, averaged by their prior.

        Returns
        -------
        number
            By how much the data multiply the odds; infinity if the data are impossible under h'.
        """
        if against is not None:
            return self._odds(self._likelihoods, hypothesis, against)
        prior = {h: p if self.exact else log(p) for h, p in self.prior.items()}
        return ratio(self.odds(hypothesis), self._odds(prior, hypothesis, None), "the odds ratio")

    def _odds(self, weights: Mapping[Any, Number], hypothesis: Any, against: Any) -> Number:
        for name in (hypothesis, *([] if against is None else [against])):
            if name not in weights:
                known = ", ".join(map(repr, weights))
                raise DataError(f"{name!r} is not a hypothesis", value=name, remedy=f"the hypotheses are {known}")
        rest = [w for h, w in weights.items() if (h != hypothesis if against is None else h == against)]
        if self.exact:
            return ratio(weights[hypothesis], total(rest), "the odds")
        top = max(float(weights[hypothesis]), *map(float, rest)) if rest else float(weights[hypothesis])
        if top == -math.inf:
            return ratio(0.0, 0.0, "the odds")
        scaled = [math.exp(float(w) - top) for w in rest]
        return ratio(math.exp(float(weights[hypothesis]) - top), math.fsum(scaled), "the odds")

    @cached_property
    def _weights(self) -> dict[Any, Number]:
        """P(data | h) P(h) for each hypothesis, or the log of it."""
        if self.exact:
            return {h: p * self._likelihoods[h] for h, p in self.prior.items()}
        return {h: log(p) + self._likelihoods[h] for h, p in self.prior.items()}

    @cached_property
    def _posterior(self) -> dict[Any, Number]:
        return posterior_of(self._weights)
