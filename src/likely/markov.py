"""The scikit-learn door for sequences: a hidden Markov model of any families behind fit and predict."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from likely import em
from likely.clustering import checked, known_beforehand
from likely.doorway import TableEstimator, bells, by_name, drawn_seed, planned, rows_of, seed_of, stacked
from likely.engines.shares import Held
from likely.engines.steps import Steps, checked_lengths, in_sequences
from likely.errors import UsageError
from likely.schema import is_missing
from likely.sequences import Learning, imagined_moves, say_what_is_odd
from likely.sources import Batch

Array = NDArray[np.float64]


class HiddenMarkov(DensityMixin, TableEstimator):
    """Rows that follow one another, each shown by a hidden state that depends on the one before: Baum–Welch.

    Parameters
    ----------
    k : int or "auto", default=2
        How many states there are; "auto" tries 1, 2, 3, … and keeps the number whose BIC is lowest.
    families : "auto", name, family, or dict of them, default="auto"
        What the columns are. "auto": numbers are Gaussian, text and true/false categorical; "joint" is a full covariance.
    max_iter, tol : int and float, default=1000 and 1e-4
        It stops after so many rounds, or when the maximum of the penalised log likelihood is estimated to be at most `tol`
        nats away, in all. A negative `tol` asks for `max_iter` plain rounds without extrapolation.
    restarts : int, default=5
        Starts that are tried; the best one is kept.
    random_state : int, RandomState or None, default=0
        Where the starts come from.
    joint : sequence of tuples of columns, default=()
        Columns that are modelled together.
    smoothing : float, prior or dict of them, default=1.0
        Imagined rows for each value and for the width of each bell curve; 0 is maximum likelihood.
    transition_smoothing : float or None, default=None
        Imagined moves from each state to each, and beginnings in each; None takes `smoothing` if that is a number.
    start : dict or None, default=None
        Where to begin: "start" and "transition" probabilities, and as "means" the first mean of each state, column by
        column, or as "emission" a model whose classes are the states.

    Attributes
    ----------
    chain_ : likely.sequences.Chain
        What was counted; its `tables` are readable, its `emission` is a model whose classes are the states.
    start_, transition_ : arrays
        The probability of each first state, and of each next state (column) by state (row).
    means_, covariances_ : arrays or None
        The means of all columns of numbers; variances, or covariances of one joint block.
    emission_ : dict
        For every column or block, a table of what each state shows.
    tried_ : dict
        For k="auto", the BIC of each number of states.
    distance_left_ : float
        Nats of penalised log likelihood between the end and its local maximum, as estimated from the last gains.
    trace_, n_iter_, converged_, lower_bound_
        The penalised log likelihood of every round, how many there were, whether the end was reached, and the last value.

    """

    def __init__(
        self,
        k: int | str = 2,
        families: Any = "auto",
        max_iter: int = em.MAX_ITER,
        tol: float = em.TOL,
        restarts: int = 5,
        random_state: Any = 0,
        joint: Any = (),
        smoothing: Any = 1.0,
        transition_smoothing: float | None = None,
        start: Any = None,
    ) -> None:
        self.k = k
        self.families = families
        self.max_iter = max_iter
        self.tol = tol
        self.restarts = restarts
        self.random_state = random_state
        self.joint = joint
        self.smoothing = smoothing
        self.transition_smoothing = transition_smoothing
        self.start = start

    def fit(self, X: Any, y: Any = None, lengths: Any = None, states: Any = None, sequence_weight: Any = None) -> Self:
        """Find the states of rows in order; `lengths` says how many rows each sequence has, and y is not looked at.

        `states` gives the state (0 to k - 1) of rows where it is known, and None or NaN elsewhere; `sequence_weight` how
        many sequences each one counts for.
        """
        batch = rows_of(self, X, reset=True)
        auto = isinstance(self.k, str) and self.k == "auto"
        k, lengths = batch.rows if auto else checked(self.k), _lengths(y, lengths, batch.rows)
        learning = self._learning(batch, lengths, _known(states, k, batch.rows), sequence_weight)
        if batch.rows < k:
            raise ValueError(f"{k} states need as many rows: there are n_samples={batch.rows}")
        self.chain_ = chain = learning.fit_any() if auto else learning.fit(range(k))
        say_what_is_odd(chain)
        self.tried_ = dict(chain.tried)
        self.start_, self.transition_ = chain.start, chain.transition
        self.means_, self.covariances_ = bells(chain.emission.block_parameters)
        self.emission_ = dict(list(chain.tables.items())[2:])
        self.trace_, self.n_iter_ = np.array(chain.trace), len(chain.trace)
        self.converged_, self.lower_bound_ = chain.converged, chain.trace[-1]
        self.distance_left_ = chain.distance_left
        if not chain.converged and self.max_iter > 1 and self.n_iter_ >= self.max_iter:
            warnings.warn(
                f"not at its end after {self.n_iter_} rounds: raise max_iter or tol", ConvergenceWarning, stacklevel=2
            )
        return self

    def _learning(self, batch: Batch, lengths: NDArray[np.int64], known: NDArray[np.int64], weights: Any) -> Learning:
        plan = known_beforehand(planned(self, batch, "state", plain=True), None, self.families)
        smoothing, each = by_name(self.smoothing, batch.names), _weights(weights, lengths)
        whole = em.whole_tally([batch], plan, lambda _: each)
        steps = in_sequences([(Held(batch, whole.schema), known, each)], lengths)
        return Learning(
            steps, whole, em.variances(steps.parts, whole.schema.columns), smoothing,
            imagined_moves(smoothing, self.transition_smoothing), self.restarts, self.max_iter, self.tol,
            seed_of(self.random_state), dict(self.start or {}),
        )  # fmt: skip

    def _steps(self, X: Any, lengths: Any) -> Steps:
        check_is_fitted(self)
        batch: Any = rows_of(self, X, reset=False)
        return in_sequences([(batch, np.full(batch.rows, -1, np.int64), np.ones(batch.rows))], lengths)

    def predict(self, X: Any, lengths: Any = None) -> NDArray[np.int64]:
        """The state of every row on the most probable path through its sequence (Viterbi)."""
        steps = self._steps(X, lengths)
        return self.chain_.decode(steps)

    def predict_proba(self, X: Any, lengths: Any = None) -> Array:
        """The probability of each state for every row, given its whole sequence (forward and backward)."""
        steps = self._steps(X, lengths)
        return self.chain_.posterior(steps)

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """The log likelihood of all sequences together."""
        steps = self._steps(X, lengths)
        _lengths(y, lengths, steps.rows)
        return float(self.chain_.log_evidence(steps).sum())

    def sample(self, n_samples: int = 1) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """One sequence of so many rows, and the state behind each."""
        check_is_fitted(self)
        cells, states = self.chain_.sample(n_samples, drawn_seed(self.random_state))
        return stacked(cells), states

    def bic(self, X: Any, lengths: Any = None) -> float:
        """−2 log likelihood of these rows + free parameters · log rows: the lower the better."""
        steps = self._steps(X, lengths)
        return -2 * self.score(X, lengths=lengths) + self.chain_.free * float(np.log(steps.rows))

    def aic(self, X: Any, lengths: Any = None) -> float:
        """−2 log likelihood of these rows + 2 · free parameters."""
        return -2 * self.score(X, lengths=lengths) + 2 * self.chain_.free


def _lengths(y: Any, lengths: Any, rows: int) -> NDArray[np.int64]:
    """The lengths; where they came in the place of y, that is said and not guessed."""
    if y is not None and np.ndim(y) == 1 and len(y) != rows:
        raise UsageError(f"y has {len(y)} entries for {rows} rows: pass the lengths of sequences as lengths=")
    return checked_lengths(lengths, rows)


def _known(states: Any, k: int, rows: int) -> NDArray[np.int64]:
    """The place of each row's state, -1 where it is hidden."""
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
