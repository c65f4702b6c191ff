"""Hidden Markov models of any families, fitted by EM (Baum–Welch) from several starts.

The E-step is forward–backward over every sequence: expected initial states, transitions and emissions. The M-step takes the
parameters from these counts and the prior. The penalised log-likelihood never decreases.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from likely.engines.forward_backward import StatePosteriors
from likely.engines.sequence_rows import SequenceRows, check_ends, in_sequences, named_by
from likely.errors import LikelyWarning, UsageError
from likely.families.base import log
from likely.latent import _acceleration as acceleration
from likely.latent import _initialization as initialization
from likely.latent import em
from likely.latent.clusters import Clusters
from likely.latent.fit_summary import FitSummary
from likely.latent.hidden_markov_model import HiddenMarkovModel
from likely.latent.mixture_plan import plan_clusters
from likely.latent.mixtures import (
    checked,
    lowest_cost,
    opened,
    short_run,
    starts_of,
    tally_at_means,
    with_missing_tokens,
)
from likely.model.model import Model
from likely.model.relearning import with_named_values
from likely.schema import TEXT
from likely.sources import ReadKeywords, ReadOptions, open_source
from likely.tally import Tally

Array = NDArray[np.float64]
FIRST = ("start", "transition", "emission", "means")  # initial values that may be given


def fit_em(
    chain: HiddenMarkovModel, sequences: SequenceRows, pseudocount: float, *, max_iter: int = em.MAX_ITER,
    tol: float = em.TOL, done: int = 0,
) -> HiddenMarkovModel:  # fmt: skip
    """Iterate until the maximum is estimated to be at most `tol` nats away; slow iterations are extrapolated.

    `pseudocount` of each initial state and transition joins the expected counts; the probabilities of `chain` itself are
    taken as they are. `done` is the number of iterations before this run.
    """
    weights, first = sequences.weights, sequences.edges[:-1]
    used = int(np.count_nonzero(weights > 0))

    def counted(at: HiddenMarkovModel, found: StatePosteriors, rows: SequenceRows) -> HiddenMarkovModel:
        tally = replace(rows.count(at.emission.scorer, at.emission.blocks, found.responsibilities), rows=used)
        return HiddenMarkovModel(replace(at.emission, tally=tally), found.start_counts, found.transition_counts, pseudocount)

    def evaluate(at: HiddenMarkovModel) -> tuple[float, HiddenMarkovModel, float]:
        found, rows = at.expectations(sequences, weights)
        seen = float(weights[first] @ found.log_likelihood)
        prior = pseudocount * float(log(at.start).sum() + log(at.transition).sum()) if pseudocount else 0.0
        return seen + em.log_density(at.emission) + prior, counted(at, found, rows), seen

    if any(block.family.column_kind == TEXT for block in chain.emission.blocks):
        # A word that the first rows lack contributes nothing until it is counted.
        chain = counted(chain, *chain.expectations(sequences, weights))
    iteration = acceleration.Iteration(
        evaluate, lambda c: acceleration.coordinates(c.emission.tally, c.start_counts, c.transition_counts),
        lambda c, point: _at(replace(c, pseudocount=pseudocount), point),
    )  # fmt: skip
    end = acceleration.maximise(chain, iteration, max_iter=max_iter, tol=tol, done=done)
    summary = FitSummary(end.expected, end.trace, converged=end.converged, distance_left=end.distance_left)
    return replace(end.point, summary=summary)


def _at(chain: HiddenMarkovModel, point: Array) -> HiddenMarkovModel:
    reader = acceleration.Reader(point)
    starts, moves = reader.widths(chain.start_counts), reader.widths(chain.transition_counts)
    tally = acceleration.at(chain.emission.tally, reader.rest)
    return HiddenMarkovModel(replace(chain.emission, tally=tally), starts, moves, chain.pseudocount)


@dataclass(frozen=True)
class HiddenMarkovFitter:
    """Fits hidden Markov models of any number of states to the same sequences."""

    rows: SequenceRows
    pooled: Tally  # all rows as one class
    spread: Mapping[str, float]
    smoothing: Any = 1.0
    pseudocount: float = 1.0  # of each initial state and each transition
    restarts: int = 5
    max_iter: int = em.MAX_ITER
    tol: float = em.TOL
    seed: int = 0
    given: Mapping[str, Any] = field(default_factory=dict)  # initial values, see FIRST

    def fit(self, states: Sequence[Any]) -> HiddenMarkovModel:
        """The best of several runs, its most frequent state first; known or given states keep their order."""
        self._check_given()
        own = bool(self.given) or self.rows.known is not None
        zero = em.empty_tally(self.pooled, tuple(states))
        prior = em.mixture_priors(self.smoothing, zero, self.spread, None)
        starts = list(self._starts(Model(with_named_values(zero, prior), prior)))
        short = short_run(self.rows.rows, self.max_iter, self.tol) if len(starts) > 1 else {}
        best = max((self._run(s, **short) for s in starts), key=lambda chain: chain.trace[-1])
        done = len(best.trace) - 1
        if short and done + 1 < self.max_iter:
            rest = self._run(best, self.max_iter - done, done=done)
            best = _with_summary(rest, trace=(*best.trace[:-1], *rest.trace))
        best = _with_summary(best, seed=self.seed)
        return best if own else most_frequent_first(best)

    def _check_given(self) -> None:
        odd = sorted(set(self.given) - set(FIRST))
        if odd:
            raise UsageError(f"start has {odd[0]!r}, which is none of {', '.join(map(repr, FIRST))}")
        if "emission" in self.given and "means" in self.given:
            raise UsageError(
                "start has 'emission' and 'means', which both initialise the emissions: pass one of them"
            )

    def fit_any(self, first: int = 0) -> HiddenMarkovModel:
        """The number of states with the lowest BIC, named from `first` on: 1, 2, 3, … are tried."""
        if self.given or self.rows.known is not None:
            raise UsageError("k='auto' finds states by itself: leave out start= and states=, or give their number")
        best, tried = lowest_cost(lambda k: self.fit(range(first, first + k)), lambda c: c.bic, self.rows.rows)
        return replace(best, tried=tried)

    def _run(
        self, chain: HiddenMarkovModel, max_iter: int | None = None, tol: float | None = None, done: int = 0
    ) -> HiddenMarkovModel:
        most, near = self.max_iter if max_iter is None else max_iter, self.tol if tol is None else tol
        return fit_em(chain, self.rows, self.pseudocount, max_iter=most, tol=near, done=done)

    def _starts(self, blank: Model) -> Iterable[HiddenMarkovModel]:
        """Initial models: emissions from k-means++ seeds and random transitions, drawn anew for each start."""
        k, given, rows = len(blank.classes), self.given, self.rows
        points = initialization.points(rows.parts, blank.schema, blank.blocks, rows.rows, self.seed)
        fixed = (
            "emission" in given or "means" in given or k == 1 or (rows.known is not None and (rows.known >= 0).all())
        )
        for i in range(1 if fixed else max(self.restarts, 1)):
            rng = np.random.default_rng(self.seed + 7919 * i)
            # In every other start states persist, as they mostly do.
            move = 0.2 / k + 0.8 * np.eye(k) if i % 2 else 0.5 / k + 0.5 * rng.dirichlet(np.ones(k), k)
            move = move if i else np.ones((k, k))
            if "emission" in given:
                tally = _as_given(blank, given["emission"])
            elif "means" in given:
                tally = tally_at_means(blank.tally, given["means"], self.spread)
            else:
                responsibilities = rows.by_sequence(self._initial_responsibilities(points, k, i, rng))
                tally = rows.count(blank.scorer, blank.blocks, responsibilities, complete=False)
            yield HiddenMarkovModel(
                replace(blank, tally=tally),
                _probabilities(given.get("start", np.ones(k)), (k,), "start" in given),
                _probabilities(given.get("transition", move), (k, k), "transition" in given),
            )

    def _initial_responsibilities(self, points: initialization.Points, k: int, i: int, rng: np.random.Generator) -> Array:
        """Initial responsibilities of the states, for the rows that were sampled."""
        lloyd = 0 if i % 2 else initialization.LLOYD
        some = initialization.soft_responsibilities(points, k, self.seed + 7919 * i, lloyd, rng)
        responsibilities, at, before = np.zeros((self.rows.rows, k)), 0, 0
        for (batch, _, w), chosen in zip(self.rows.parts, points.rows, strict=True):
            responsibilities[before + chosen] = some[at : at + len(chosen)] * w[chosen, None]
            at, before = at + len(chosen), before + batch.rows
        return responsibilities


def _with_summary(chain: HiddenMarkovModel, **changed: Any) -> HiddenMarkovModel:
    assert chain.summary is not None
    return replace(chain, summary=replace(chain.summary, **changed))


def _as_given(blank: Model, model: Any) -> Tally:
    """The counts of a given model, whose classes become the states."""
    model = model.model if isinstance(model, Clusters) else model
    if not isinstance(model, Model) or len(model.classes) != len(blank.classes):
        raise UsageError(f"start['emission'] must be a model of {len(blank.classes)} classes, not {model!r:.80}")
    own = model.tally.of_classes(range(len(blank.classes)), blank.classes)
    return blank.tally + replace(own, schema=replace(own.schema, target=blank.schema.target))


def _probabilities(given: Any, shape: tuple[int, ...], check: bool) -> Array:
    found = np.asarray(given, dtype=np.float64)
    if check and (found.shape != shape or not (found >= 0).all() or not np.allclose(found.sum(-1), 1.0)):
        raise UsageError(f"probabilities of shape {shape} that sum to 1 are needed, not {found.tolist()!r:.120}")
    return found


def most_frequent_first(chain: HiddenMarkovModel) -> HiddenMarkovModel:
    """The same states in decreasing order of frequency."""
    order = np.argsort(-chain.emission.tally.classes, kind="stable")
    emission = replace(chain.emission, tally=chain.emission.tally.of_classes(order.tolist(), chain.states))
    moved = chain.transition_counts[np.ix_(order, order)]
    return replace(chain, emission=emission, start_counts=chain.start_counts[order], transition_counts=moved)


def transition_pseudocount(smoothing: Any, given: Any = None) -> float:
    """Pseudocount of each transition and initial state: as given, or that of every value."""
    wanted = given if given is not None else smoothing if isinstance(smoothing, int | float) else 1.0
    if isinstance(wanted, bool) or not isinstance(wanted, int | float) or not 0 <= wanted < np.inf:
        raise UsageError(f"transition_smoothing={wanted!r} must be a number, zero or more")
    return float(wanted)


def sequences(
    data: Any,
    k: int | str = 2,
    *,
    by: str | None = None,
    lengths: Any = None,
    families: Any = "auto",
    joint: Sequence[Sequence[str]] = (),
    smoothing: Any = 1.0,
    transition_smoothing: float | None = None,
    ignore: Sequence[str] = (),
    missing: Sequence[str] | None = None,
    n_init: int = 5,
    max_iter: int = em.MAX_ITER,
    tol: float = em.TOL,
    seed: int = 0,
    start: Mapping[str, Any] | None = None,
    reading: ReadOptions | None = None,
    **how: Unpack[ReadKeywords],
) -> HiddenMarkovModel:
    """Fit a hidden Markov model by EM (Baum–Welch); its states are named 1, 2, …, the most frequent first.

    Parameters
    ----------
    data : path, frame, dict of columns or any other source
        The rows in their order, as for `learn`.
    k : int or "auto", default=2
        Number of states; "auto" tries 1, 2, 3, … and keeps the number with the lowest BIC.
    by : str or None, default=None
        Column that identifies the sequence of each row.
    lengths : sequence of int or None, default=None
        Number of rows of each sequence, in order. Without `by` and `lengths` all rows are one sequence.
    families : "auto", name, family, or dict of them, default="auto"
        Families of the columns, as for `cluster`, "*" included.
    joint : sequence of tuples of columns, default=()
        Columns that are modelled together.
    smoothing : float, prior or dict of them, default=1.0
        Pseudocount for each value and pseudo-rows for each variance; 0 is maximum likelihood.
    transition_smoothing : float or None, default=None
        Pseudocount for each transition and each initial state; None takes `smoothing` if that is a number.
    ignore : sequence of str, default=()
        Columns to leave out.
    missing : sequence of str or None, default=None
        Texts that stand for a missing cell.
    n_init : int, default=5
        Number of random starts; the best one is kept.
    max_iter : int, default=1000
        Maximum number of EM iterations.
    tol : float, default=0.0001
        EM stops when the maximum of the penalised log-likelihood is estimated to be at most `tol` nats away, in all.
    seed : int, default=0
        Seed of the random starts.
    start : dict or None, default=None
        Initial values: "start" and "transition" probabilities, and as "means" the mean of each state, column by column, or
        as "emission" a model whose classes are the states. The states keep this order.
    reading : ReadOptions or None, default=None
        How the source is read, as one object instead of keywords.
    **how
        How a file is read: `encoding`, `decimal`, `table` and more, as for `learn`.

    Returns
    -------
    HiddenMarkovModel
        The hidden Markov model.
    """
    n_init, options = starts_of(n_init, how)
    source = open_source(data, reading or ReadOptions.of(missing, options))
    check_ends(by, lengths)
    table = opened(source, plan_clusters(source, families, joint, (*ignore, *([by] if by else []))))
    rows = in_sequences(table.compared()[0], lengths, None if by is None else named_by(source, by))
    fitter = HiddenMarkovFitter(
        rows, table.pooled, table.spread, smoothing, transition_pseudocount(smoothing, transition_smoothing),
        restarts=n_init, max_iter=max_iter, tol=tol, seed=seed, given=dict(start or {}),
    )  # fmt: skip
    found = fitter.fit_any(1) if k == "auto" else fitter.fit(range(1, checked(k) + 1))
    warn_of_unused(found)
    em.warn_if_stopped(found.converged or tol <= 0, len(found.trace), em.MORE_ROUNDS)
    return replace(found, emission=with_missing_tokens(found.emission, source))


def warn_of_unused(chain: HiddenMarkovModel) -> None:
    """Warn of states that no row is in."""
    seen = chain.emission.tally.classes
    empty = [str(s) for s, n in zip(chain.states, seen, strict=True) if n < 1e-6 * seen.sum()]
    if empty:
        warnings.warn(f"states {', '.join(empty)} never occur: a smaller k fits as well", LikelyWarning, stacklevel=3)
