"""The scikit-learn door for clusters: a mixture of any families, fitted by EM, behind fit and predict."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d

from likely import em
from likely.bayes import Posterior
from likely.bayes.rule import labels_array, normalise
from likely.clustering import Clusters, Mixing, cheapest, checked, equal_weights, known_beforehand, say_what_is_odd
from likely.doorway import (
    TableEstimator,
    bells,
    by_name,
    drawn_seed,
    planned,
    rows_of,
    seed_of,
    stacked,
    weights_of,
)
from likely.engines.shares import Held
from likely.errors import UsageError
from likely.sampling import sample
from likely.schema import is_missing, ordered
from likely.sources import Batch

Array = NDArray[np.float64]


class Mixture(ClusterMixin, DensityMixin, TableEstimator):
    """Rows from several sources, none of which is written down: k components, found by EM.

    Parameters
    ----------
    k : int or "auto", default=2
        How many components there are; "auto" tries 1, 2, 3, … and keeps the number whose BIC is lowest.
    families : "auto", name, family, or dict of them, default="auto"
        What the columns are. "auto": numbers are Gaussian, text and true/false categorical. "gaussian:class" shares the
        variances among the components, "joint" is a full covariance, "joint:class" one for all components.
    fixed : dict or None, default=None
        What is known beforehand: {"variance": 1.0, "weights": "equal"}.
    max_iter, tol : int and float, default=1000 and 1e-4
        EM stops after so many rounds, or when the maximum of the penalised log likelihood is estimated to be at most `tol`
        nats away, in all. A negative `tol` asks for `max_iter` plain rounds without extrapolation.
    restarts : int, default=5
        Starts that are tried; the best one is kept.
    random_state : int, RandomState or None, default=0
        Where the starts come from.
    joint : sequence of tuples of columns, default=()
        Columns that are modelled together.
    smoothing : float, prior or dict of them, default=1.0
        Imagined rows for each value and for the width of each bell curve; 0 is maximum likelihood.
    start : array of k × columns, or None, default=None
        The first means, instead of drawn ones.

    Attributes
    ----------
    model_ : likely.Model
        The mixture as a model whose classes are the components.
    labels_ : array
        The most probable component of every row; components are numbered from 0, the largest first.
    weights_, means_, covariances_ : arrays
        The components' shares; the means of all columns of numbers; variances, or covariances of one joint block.
    tried_ : dict
        For k="auto", the BIC of each number of components.
    distance_left_ : float
        Nats of penalised log likelihood between the end and its local maximum, as estimated from the last gains.
    trace_, n_iter_, converged_, lower_bound_
        The penalised log likelihood of every round, how many there were, whether the end was reached, and the last value.

    """

    def __init__(
        self,
        k: int | str = 2,
        families: Any = "auto",
        fixed: Any = None,
        max_iter: int = em.MAX_ITER,
        tol: float = em.TOL,
        restarts: int = 5,
        random_state: Any = 0,
        joint: Any = (),
        smoothing: Any = 1.0,
        start: Any = None,
    ) -> None:
        self.k = k
        self.families = families
        self.fixed = fixed
        self.max_iter = max_iter
        self.tol = tol
        self.restarts = restarts
        self.random_state = random_state
        self.joint = joint
        self.smoothing = smoothing
        self.start = start

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components; where some of y are None or NaN, the other labels fix the components of their rows.

        A y without gaps is not looked at, as by every clusterer of scikit-learn: there is nothing to be found.
        """
        batch = rows_of(self, X, reset=True)
        given = weights_of(sample_weight, batch.rows)
        weights = np.ones(batch.rows) if given is None else given
        if isinstance(self.k, str) and self.k == "auto":
            return self._fit_any(batch, y, weights)
        names, labels = _classes(y, checked(self.k), batch.rows)
        mixing = self._mixing(batch, labels, weights)
        if batch.rows < len(names):
            raise ValueError(f"{len(names)} components need as many rows: there are n_samples={batch.rows}")
        fit = mixing.fit(names, self.start)
        named = self.start is not None or bool((labels >= 0).any())
        self._believe(fit if named else em.ranked(fit), batch)
        return self

    def _fit_any(self, batch: Batch, y: Any, weights: Array) -> Self:
        """As many components as cost least."""
        _, labels = _classes(y, batch.rows, batch.rows)
        if self.start is not None or (labels >= 0).any():
            raise UsageError(
                "k='auto' finds components by itself: leave out start= and labels, or say how many there are"
            )
        mixing = self._mixing(batch, labels, weights)
        best, tried = cheapest(lambda k: mixing.fit(range(k)), lambda fit: fit.bic)
        self._believe(em.ranked(best), batch, tried)
        return self

    def _mixing(self, batch: Batch, labels: NDArray[np.int64], weights: Array) -> Mixing:
        plan = known_beforehand(planned(self, batch, "component", plain=True), self.fixed, self.families)
        whole = em.whole_tally([batch], plan, lambda _: weights)
        parts: list[em.Part] = [(Held(batch, whole.schema), labels, weights)]
        smoothing = by_name(self.smoothing, batch.names)
        return Mixing(
            parts, plan, whole, em.variances(parts, whole.schema.columns), smoothing,
            equal_weights(self.fixed), self.restarts, self.max_iter, self.tol, seed_of(self.random_state),
        )  # fmt: skip

    def _believe(self, fit: em.Fit, batch: Batch, tried: Mapping[int, float] | None = None) -> None:
        self.model_ = Clusters.of(fit, tried=dict(tried or {}))
        self.tried_ = dict(self.model_.tried)
        self.classes_ = labels_array(self.model_.classes)
        self.weights_ = self.model_.class_prior
        self.means_, self.covariances_ = bells(self.model_.block_parameters)
        self.trace_ = np.array(fit.trace)
        self.n_iter_, self.converged_, self.lower_bound_ = len(fit.trace), fit.converged, fit.value
        self.distance_left_ = fit.distance_left
        self.labels_ = self.model_.posterior_of(batch).labels
        if not fit.converged and self.tol > 0:
            said = f"EM did not reach its end in {self.max_iter} rounds: raise max_iter, or tol"
            warnings.warn(said, ConvergenceWarning, stacklevel=3)
        say_what_is_odd(self.model_)

    def _of(self, X: Any) -> Posterior:
        check_is_fitted(self)
        return self.model_.posterior_of(rows_of(self, X, reset=False))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[Any]:
        """Find the components, and say which one each row belongs to."""
        return self.fit(X, y, sample_weight).labels_

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable component of every row."""
        return self._of(X).labels

    def predict_proba(self, X: Any) -> Array:
        """The share of every row in each component."""
        return self._of(X).probabilities

    def responsibilities(self, X: Any) -> Array:
        """The same under its textbook name: E[z], rows × components."""
        return self.predict_proba(X)

    def score_samples(self, X: Any) -> Array:
        """The log density of every row; of a text with weighted words, the value that EM climbs."""
        return _log_evidence(self._of(X))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """The mean log density of the rows."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows drawn from the mixture, and the component that each came from."""
        check_is_fitted(self)
        cells, classes = sample(self.model_, n_samples, drawn_seed(self.random_state))
        return stacked(cells), self.classes_[classes]

    def bic(self, X: Any) -> float:
        """−2 log likelihood of these rows + free parameters · log rows: the lower the better."""
        return self._judged(X).bic

    def aic(self, X: Any) -> float:
        """−2 log likelihood of these rows + 2 · free parameters."""
        return self._judged(X).aic

    def icl(self, X: Any) -> float:
        """The BIC with twice the entropy of the shares added: it asks for components that lie apart."""
        return self._judged(X).icl

    def _judged(self, X: Any) -> em.Fit:
        found = self._of(X)
        shares = found.probabilities
        entropy = -float((shares * np.where(shares > 0, found.log_probabilities, 0.0)).sum())
        evidence = float(_log_evidence(found).sum())
        return em.Fit(self.model_, tuple(self.trace_), evidence, entropy, float(len(found)), self.converged_)


def _log_evidence(found: Posterior) -> Array:
    return normalise(found.log_joint, found.log_prior)[1]


def _classes(y: Any, k: int, rows: int) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """The names of the components, and the place of each row's (-1: open); those without a label are numbered."""
    if y is None:
        return tuple(range(k)), np.full(rows, -1, np.int64)
    values = [None if is_missing(v) else v for v in column_or_1d(np.asarray(y, dtype=object)).tolist()]
    check_consistent_length(values, range(rows))
    if None not in values:
        return tuple(range(k)), np.full(rows, -1, np.int64)
    known = ordered({v for v in values if v is not None})
    if len(known) > k:
        raise UsageError(f"y has {len(known)} different labels for k={k} components: raise k to {len(known)}")
    free = [c for c in range(k + len(known)) if c not in known] if k > len(known) else []
    names = (*known, *free[: k - len(known)])
    place = {label: i for i, label in enumerate(names)}
    return names, np.array([-1 if v is None else place[v] for v in values], np.int64)
