"""Hidden Markov model as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from likely.engines.e_step import CachedBatch, LabelledRows
from likely.engines.sequence_rows import SequenceRows, checked_lengths, hidden_rows, in_sequences
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
    with_threads,
)
from likely.estimators._sklearn_bases import DensityMixin
from likely.latent import em
from likely.latent.fit_summary import FitSummary
from likely.latent.hidden_markov import HiddenMarkovFitter, transition_pseudocount, warn_of_unused
from likely.latent.mixture_plan import with_fixed
from likely.latent.mixtures import checked
from likely.schema import is_missing
from likely.sources import Batch

Array = NDArray[np.float64]


class HiddenMarkov(DensityMixin, TableEstimator):
    """Hidden Markov model with any families as emissions, fitted by EM (Baum–Welch).

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of states; "auto" tries 1, 2, 3, … and keeps the number with the lowest BIC.
    families : "auto", name, family, or dict of them, default="auto"
        Families of the columns. "auto": numbers are Gaussian, text and true/false categorical. A name or a family is for all
        columns; a dict maps columns, by name or position, to families, with "*" for the rest. "joint" is a full covariance.
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
    transition_smoothing : float or None, default=None
        Pseudocount for each transition and each initial state; None takes `smoothing` if that is a number.
    start : dict or None, default=None
        Initial values: "start" and "transition" probabilities, and as "means" the mean of each state, column by column, or
        as "emission" a model whose classes are the states.
    n_jobs : int or None, default=None
        Number of threads: None takes the environment variable LIKELY_THREADS, else all cores that the process may use (CPU
        affinity, container quota) up to 16; -1 is all of these cores, 1 no threads.

    Attributes
    ----------
    chain_ : likely.HiddenMarkovModel
        The fitted hidden Markov model; its `tables` are readable, its `emission` is a model whose classes are the states.
    start_ : array
        Probability of each initial state.
    transition_ : array
        Transition probabilities, from state (row) to state (column).
    means_ : array or None
        Means of the numeric columns, states × columns; None if there are none.
    covariances_ : array or None
        Variances of the numeric columns, or the covariance matrices of one joint block.
    emission_ : dict
        For every column or block, a table of its parameters in each state.
    tried_ : dict
        With n_components="auto", the BIC of each number of states.
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

    # scikit-learn makes these.
    set_predict_request: Callable[..., Self]
    set_predict_proba_request: Callable[..., Self]
    set_score_request: Callable[..., Self]

    @also_called(k="n_components", restarts="n_init")
    def __init__(
        self,
        n_components: int | str = 2,
        families: Any = "auto",
        max_iter: int = em.MAX_ITER,
        tol: float = em.TOL,
        n_init: int = 5,
        *,
        random_state: Any = 0,
        joint: Any = (),
        smoothing: Any = 1.0,
        transition_smoothing: float | None = None,
        start: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.families = families
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.joint = joint
        self.smoothing = smoothing
        self.transition_smoothing = transition_smoothing
        self.start = start
        self.n_jobs = n_jobs

    @with_threads
    def fit(self, X: Any, y: Any = None, lengths: Any = None, states: Any = None, sequence_weight: Any = None) -> Self:
        """Fit the model to rows in order.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.
        y : ignored
            There for scikit-learn's interface.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order; None: all rows are one sequence.
        states : sequence or None, default=None
            State of each row where it is known (0 to n_components - 1), None or NaN elsewhere.
        sequence_weight : array or None, default=None
            Weight of each sequence.

        Returns
        -------
        self
            The fitted estimator.
        """
        batch = rows_of(self, X, reset=True)
        auto = isinstance(self.n_components, str) and self.n_components == "auto"
        k = batch.rows if auto else checked(self.n_components, "n_components")
        lengths = _lengths(y, lengths, batch.rows)
        fitter = self._fitter(batch, lengths, _known(states, k, batch.rows), sequence_weight)
        if batch.rows < k:
            raise ValueError(f"{k} states need as many rows: there are n_samples={batch.rows}")
        self.chain_ = chain = fitter.fit_any() if auto else fitter.fit(range(k))
        warn_of_unused(chain)
        self.tried_ = dict(chain.tried)
        self.start_, self.transition_ = chain.start, chain.transition
        self.means_, self.covariances_ = gaussian_parameters(chain.emission)
        self.emission_ = dict(list(chain.tables.items())[2:])
        self.trace_, self.n_iter_ = np.array(chain.trace), len(chain.trace)
        self.converged_, self.lower_bound_ = chain.converged, chain.trace[-1]
        self.distance_left_ = chain.distance_left
        if not chain.converged and self.max_iter > 1 and self.n_iter_ >= self.max_iter:
            warnings.warn(
                f"EM did not converge in {self.n_iter_} iterations: raise max_iter, or tol", ConvergenceWarning, stacklevel=2
            )
        return self

    def _fitter(
        self, batch: Batch, lengths: NDArray[np.int64], known: NDArray[np.int64], weights: Any
    ) -> HiddenMarkovFitter:
        plan = with_fixed(planned(self, batch, "state", plain=True), None, self.families)
        smoothing, each = by_name(self.smoothing, batch.names), _weights(weights, lengths)
        pooled = em.pooled_tally([batch], plan, lambda _: each)
        rows = in_sequences([LabelledRows(CachedBatch(batch, pooled.schema), known, each)], lengths)
        return HiddenMarkovFitter(
            rows, pooled, em.variances(rows.parts, pooled.schema.columns), smoothing,
            transition_pseudocount(smoothing, self.transition_smoothing), restarts=self.n_init, max_iter=self.max_iter,
            tol=self.tol, seed=seed_of(self.random_state), given=dict(self.start or {}),
        )  # fmt: skip

    def _sequences(self, X: Any, lengths: Any) -> SequenceRows:
        check_is_fitted(self)
        return hidden_rows([rows_of(self, X, reset=False)], lengths)

    @with_threads
    def predict(self, X: Any, lengths: Any = None) -> NDArray[np.int64]:
        """State of every row on the most probable path through its sequence (Viterbi).

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order; None: all rows are one sequence.

        Returns
        -------
        array
            State of every row.
        """
        rows = self._sequences(X, lengths)
        return self.chain_.decode(rows)

    @with_threads
    def predict_proba(self, X: Any, lengths: Any = None) -> Array:
        """Posterior probability of each state for every row, given its complete sequence (forward–backward).

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order; None: all rows are one sequence.

        Returns
        -------
        array
            Probabilities, rows × states.
        """
        rows = self._sequences(X, lengths)
        return self.chain_.posterior(rows)

    @with_threads
    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Log-likelihood of all sequences together.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.
        y : ignored
            There for scikit-learn's interface.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order; None: all rows are one sequence.

        Returns
        -------
        float
            The log-likelihood, in nats.
        """
        rows = self._sequences(X, lengths)
        _lengths(y, lengths, rows.rows)
        return float(self.chain_.log_evidence(rows).sum())

    def sample(self, n_samples: int = 1) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Draw one sequence.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        rows, states : arrays
            The rows, and the state of each.
        """
        check_is_fitted(self)
        cells, states = self.chain_.sample(n_samples, drawn_seed(self.random_state))
        return stacked(cells), states

    def bic(self, X: Any, lengths: Any = None) -> float:
        """Bayesian information criterion: −2 log-likelihood + free parameters · log(rows), the lower the better.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order; None: all rows are one sequence.

        Returns
        -------
        float
            The criterion on these rows.
        """
        rows = self._sequences(X, lengths)
        return FitSummary(self.score(X, lengths=lengths)).bic(self.chain_.free_parameters, rows.rows)

    def aic(self, X: Any, lengths: Any = None) -> float:
        """Akaike information criterion: −2 log-likelihood + 2 · free parameters, the lower the better.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order; None: all rows are one sequence.

        Returns
        -------
        float
            The criterion on these rows.
        """
        return FitSummary(self.score(X, lengths=lengths)).aic(self.chain_.free_parameters)


def _lengths(y: Any, lengths: Any, rows: int) -> NDArray[np.int64]:
    """The lengths; an error if they were passed in the place of y."""
    if y is not None and np.ndim(y) == 1 and len(y) != rows:
        raise UsageError(f"y has {len(y)} entries for {rows} rows: pass the lengths of sequences as lengths=")
    return checked_lengths(lengths, rows)


def _known(states: Any, k: int, rows: int) -> NDArray[np.int64]:
    """The index of each row's state, -1 where it is hidden."""
    if states is None:
        return np.full(rows, -1, np.int64)
    given = [None if is_missing(s) else s for s in np.asarray(states, dtype=object).ravel().tolist()]
    odd = next((s for s in given if s is not None and (s != s // 1 or not 0 <= s < k)), None)
    if len(given) != rows or odd is not None:
        fault = f"there are {len(given)} of them for {rows} rows" if len(given) != rows else f"{odd!r} is none"
        raise UsageError(f"states= must be 0 to {k - 1}, or None where hidden, one a row: {fault}")
    return np.array([-1 if s is None else int(s) for s in given], np.int64)


def _weights(given: Any, lengths: NDArray[np.int64]) -> Array:
    """The weight of each row: that of its sequence."""
    each = np.ones(len(lengths)) if given is None else np.asarray(given, dtype=np.float64)
    if each.shape != (len(lengths),) or not ((each >= 0) & np.isfinite(each)).all():
        raise UsageError(f"sequence_weight= must be {len(lengths)} finite numbers of zero or more, one a sequence")
    return np.repeat(each, lengths)
