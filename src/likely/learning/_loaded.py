"""What `load` returns, to a type checker: only the file knows which of four it is. At run time nothing imports this module."""

# mypy: disable-error-code="misc, override"

from __future__ import annotations

from typing import Any, Self, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from likely.bayes import Posterior
from likely.engines.sequence_rows import SequenceRows
from likely.latent.clusters import Clusters
from likely.latent.hidden_markov_model import HiddenMarkovModel
from likely.model.model import Model
from likely.model.model_keywords import CountKeywords, PosteriorKeywords
from likely.networks.network import Network


# A union would refuse every name that one of the four lacks. This takes the names of all, refuses those of none, and can be
# assigned to a variable of any of the four, whose annotation then says which it is. `load` returns `Loaded | Any`, so that what
# follows `if isinstance(loaded, Model)` is not taken for unreachable.
class Loaded(Model, Clusters, HiddenMarkovModel, Network):
    """A model, clustering, hidden Markov model or Bayesian network; what they have in common differs in details."""

    tally: Any
    parameters: Any
    log_likelihood: Any  # of a network, a method
    fitted: Any

    @overload
    def posterior(self, rows: SequenceRows) -> NDArray[np.float64]: ...

    @overload
    def posterior(self, rows: Any, target: str, **options: Unpack[PosteriorKeywords]) -> NDArray[np.float64]: ...

    @overload
    def posterior(self, rows: Any, **options: Unpack[PosteriorKeywords]) -> Posterior: ...

    def posterior(self, rows: Any, target: Any = None, **options: Any) -> Any:
        """Posterior of classes, components, states or values of a node."""

    def predict(
        self, rows: Any, target: str = "", *, costs: Any = None, threshold: Any = None, **options: Unpack[PosteriorKeywords]
    ) -> NDArray[Any]:
        """Most probable class, component or value of a node."""
        raise NotImplementedError

    def log_evidence(self, given: Any) -> Any:
        """Log probability of sequences, or of evidence."""

    def sample(self, n: int, given: Any = None, *, seed: Any = None, label: Any = None) -> Any:
        """Rows drawn from it."""

    def relearn(
        self, smoothing: Any = None, *, class_prior: Any = None, families: Any = None, average: bool | None = None
    ) -> Self:
        """The same counts under another prior."""
        raise NotImplementedError

    def update(self, rows: Any, **options: Unpack[CountKeywords]) -> Self:
        """Count more rows."""
        raise NotImplementedError

    def forget(self, rows: Any, **options: Unpack[CountKeywords]) -> Self:
        """Take rows out of the counts."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Self:
        raise NotImplementedError
