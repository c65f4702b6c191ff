"""Finite mixture as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d

from likely.bayes import Posterior
from likely.bayes.rule import labels_array, normalise
from likely.engines.e_step import CachedBatch, LabelledRows
from likely.errors import UsageError
from likely.estimators._base import (
    TableEstimator,
    also_called,
    by_name,
    drawn_seed,
    gaussian_parameters,
    planned,
    rows_of,
    seed_of,
    stacked,
    weights_of,
    with_threads,
)
from likely.estimators._sklearn_bases import ClusterMixin, DensityMixin
from likely.latent import em
from likely.latent.clusters import Clusters
from likely.latent.fit_summary import FitSummary
from likely.latent.mixture_plan import equal_weights, with_fixed
from likely.latent.mixtures import MixtureFitter, checked, lowest_cost, warn_of_empty
from likely.model.row_drawing import sample
from likely.schema import is_missing, ordered
from likely.sources import Batch

Array = NDArray[np.float64]


class Mixture(ClusterMixin, DensityMixin, TableEstimator):
    """Finite mixture over mixed columns, fitted by EM.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of components; "auto" tries 1, 2, 3, … and keeps the number with the lowest BIC.
    families : "auto", name, family, or dict of them, default="auto"
        Families of the columns. "auto": numbers are Gaussian, text and true/false categorical. A name or a family is for all
        columns; a dict maps columns, by name or position, to families, with "*" for the rest. "gaussian:class" shares the
        variances among the components, "joint" is a full covariance, "joint:class" one for all components.
    fixed : dict or None, default=None
        Parameters that are known: {"variance": 1.0, "weights": "equal"}.
    max_iter : int, default=1000
        Maximum number of EM iterations.
    tol : float, default=0.0001
        EM stops when the maximum of the penalised log-likelihood is estimated to be at most `tol` nats away, in all. A
        negative value asks for `max_iter` plain iterations without extrapolation.
    n_init : int, default=5
        Number of random starts; the best one is kept.
    random_state : int, RandomState or None, default=0
        Seed of the starts.
    joint : sequence of tuples of columns, default=()
        Columns that are modelled together, by name or position.
    smoothing : float, prior or dict of them, default=1.0
        Pseudocount for each value and pseudo-rows for each variance; 0 is maximum likelihood. A dict maps columns to them,
        with "*" for the rest.
    start : array of n_components × columns, or None, default=None
        Initial means, instead of random ones.
    n_jobs : int or None, default=None
        Number of threads: None takes the environment variable LIKELY_THREADS, else all cores that the process may use (CPU
        affinity, container quota) up to 16; -1 is all of these cores, 1 no threads.

    Attributes
    ----------
    model_ : likely.Model
        The mixture as a model whose classes are the components.
    labels_ : array
        Most probable component of every row; components are numbered from 0, the largest first.
    weights_ : array
        Mixing proportions.
    means_ : array or None
        Means of the numeric columns, components × columns; None if there are none.
    covariances_ : array or None
        Variances of the numeric columns, or the covariance matrices of one joint block.
    tried_ : dict
        With n_components="auto", the BIC of each number of components.
    distance_left_ : float
        Estimated distance to the local maximum, in nats of penalised log-likelihood.
    trace_ : array
        Penalised log-likelihood of every iteration.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether EM converged.
    lower_bound_ : float
        The last value of `trace_`.

    """

    @also_called(k="n_components", restarts="n_init")
    def __init__(
        self,
        n_components: int | str = 2,
        families: Any = "auto",
        fixed: Any = None,
        max_iter: int = em.MAX_ITER,
        tol: float = em.TOL,
        *,
        n_init: int = 5,
        random_state: Any = 0,
        joint: Any = (),
        smoothing: Any = 1.0,
        start: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.families = families
        self.fixed = fixed
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.joint = joint
        self.smoothing = smoothing
        self.start = start
        self.n_jobs = n_jobs

    @with_threads
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the mixture by EM.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.
        y : array or None, default=None
            Labels, some of them None or NaN: the others fix the components of their rows. A y without missing labels is
            ignored, as by every clusterer of scikit-learn.
        sample_weight : array or None, default=None
            Weight of each row.

        Returns
        -------
        self
            The fitted estimator.
        """
        batch = rows_of(self, X, reset=True)
        given = weights_of(sample_weight, batch.rows)
        weights = np.ones(batch.rows) if given is None else given
        if isinstance(self.n_components, str) and self.n_components == "auto":
            return self._fit_any(batch, y, weights)
        names, labels = _classes(y, checked(self.n_components, "n_components"), batch.rows)
        mixing = self._mixing(batch, labels, weights)
        if batch.rows < len(names):
            raise ValueError(f"{len(names)} components need as many rows: there are n_samples={batch.rows}")
        fit = mixing.fit(names, self.start)
        named = self.start is not None or bool((labels >= 0).any())
        self._take(fit if named else em.largest_first(fit), batch)
        return self

    def _fit_any(self, batch: Batch, y: Any, weights: Array) -> Self:
        """The fit with the number of components of lowest BIC."""
        _, labels = _classes(y, batch.rows, batch.rows)
        if self.start is not None or (labels >= 0).any():
            raise UsageError(
                "n_components='auto' finds components by itself: leave out start= and labels, or pass their number"
            )
        mixing = self._mixing(batch, labels, weights)
        best, tried = lowest_cost(lambda k: mixing.fit(range(k)), lambda fit: fit.bic)
        self._take(em.largest_first(best), batch, tried)
        return self

    def _mixing(self, batch: Batch, labels: NDArray[np.int64], weights: Array) -> MixtureFitter:
        plan = with_fixed(planned(self, batch, "component", plain=True), self.fixed, self.families)
        pooled = em.pooled_tally([batch], plan, lambda _: weights)
        parts = [LabelledRows(CachedBatch(batch, pooled.schema), labels, weights)]
        smoothing = by_name(self.smoothing, batch.names)
        return MixtureFitter(
            parts, plan, pooled, em.variances(parts, pooled.schema.columns), smoothing, equal=equal_weights(self.fixed),
            restarts=self.n_init, max_iter=self.max_iter, tol=self.tol, seed=seed_of(self.random_state),
        )  # fmt: skip

    def _take(self, fit: em.EMResult, batch: Batch, tried: Mapping[int, float] | None = None) -> None:
        self.model_ = Clusters.of(fit, tried)
        self.tried_ = dict(self.model_.tried)
        self.classes_ = labels_array(self.model_.classes)
        self.weights_ = self.model_.class_prior
        self.means_, self.covariances_ = gaussian_parameters(self.model_.model)
        self.trace_ = np.array(fit.trace)
        self.n_iter_, self.converged_, self.lower_bound_ = len(fit.trace), fit.converged, fit.value
        self.distance_left_ = fit.distance_left
        self.labels_ = self.model_.posterior_of(batch).labels
        if not fit.converged and self.tol > 0:
            message = f"EM did not converge in {self.max_iter} iterations: raise max_iter, or tol"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        warn_of_empty(self.model_.model)

    @with_threads
    def _of(self, X: Any) -> Posterior:
        check_is_fitted(self)
        return self.model_.posterior_of(rows_of(self, X, reset=False))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[Any]:
        """Fit the mixture, and return the most probable component of every row.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.
        y : array or None, default=None
            As for `fit`.
        sample_weight : array or None, default=None
            Weight of each row.

        Returns
        -------
        array
            Component of every row.
        """
        return self.fit(X, y, sample_weight).labels_

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable component of every row.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.

        Returns
        -------
        array
            Component of every row.
        """
        return self._of(X).labels

    def predict_proba(self, X: Any) -> Array:
        """Posterior probability of each component for every row.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.

        Returns
        -------
        array
            Probabilities, rows × components.
        """
        return self._of(X).probabilities

    def responsibilities(self, X: Any) -> Array:
        """Responsibilities E[z]: the same as `predict_proba`, under its textbook name.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.

        Returns
        -------
        array
            Responsibilities, rows × components.
        """
        return self.predict_proba(X)

    def score_samples(self, X: Any) -> Array:
        """Log density of every row; for text with weighted words, the objective that EM maximises.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.

        Returns
        -------
        array
            One value a row.
        """
        return _log_evidence(self._of(X))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Mean log density of the rows.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.
        y : ignored
            There for scikit-learn's interface.

        Returns
        -------
        float
            Mean of `score_samples`.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        rows, components : arrays
            The rows, and the component of each.
        """
        check_is_fitted(self)
        cells, classes = sample(self.model_.model, n_samples, drawn_seed(self.random_state))
        return stacked(cells), self.classes_[classes]

    def bic(self, X: Any) -> float:
        """Bayesian information criterion: −2 log-likelihood + free parameters · log(rows), the lower the better.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.

        Returns
        -------
        float
            The criterion on these rows.
        """
        found, rows = self._summary(X)
        return found.bic(self.model_.free_parameters, rows)

    def aic(self, X: Any) -> float:
        """Akaike information criterion: −2 log-likelihood + 2 · free parameters, the lower the better.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.

        Returns
        -------
        float
            The criterion on these rows.
        """
        return self._summary(X)[0].aic(self.model_.free_parameters)

    def icl(self, X: Any) -> float:
        """Integrated completed likelihood: BIC plus twice the entropy of the responsibilities; it favours separate clusters.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.

        Returns
        -------
        float
            The criterion on these rows.
        """
        found, rows = self._summary(X)
        return found.icl(self.model_.free_parameters, rows)

    def _summary(self, X: Any) -> tuple[FitSummary, float]:
        """Log-likelihood and entropy of these rows, and their number."""
        found = self._of(X)
        shares = found.probabilities
        entropy = -float((shares * np.where(shares > 0, found.log_probabilities, 0.0)).sum())
        return FitSummary(float(_log_evidence(found).sum()), entropy=entropy), float(len(found))


def _log_evidence(found: Posterior) -> Array:
    return normalise(found.log_joint, found.log_prior)[1]


def _classes(y: Any, k: int, rows: int) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """The names of the components, and the index of each row's, -1 if unlabelled; components without a label are numbered."""
    if y is None:
        return tuple(range(k)), np.full(rows, -1, np.int64)
    values = [None if is_missing(v) else v for v in column_or_1d(np.asarray(y, dtype=object)).tolist()]
    check_consistent_length(values, range(rows))
    if None not in values:
        return tuple(range(k)), np.full(rows, -1, np.int64)
    known = ordered({v for v in values if v is not None})
    if len(known) > k:
        raise UsageError(f"y has {len(known)} different labels for n_components={k}: raise it to {len(known)}")
    free = [c for c in range(k + len(known)) if c not in known] if k > len(known) else []
    names = (*known, *free[: k - len(known)])
    place = {label: i for i, label in enumerate(names)}
    return names, np.array([-1 if v is None else place[v] for v in values], np.int64)
