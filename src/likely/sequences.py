"""Rows that follow one another: a hidden Markov model of any families, learned by counting shares of states and moves.

The states of a sequence are hidden labels of which each depends on the one before. Baum and Welch's rounds are those of
EM: go along every sequence with what is believed, count how it begins, how it moves on and what each state shows,
believe anew. The penalised log likelihood never falls.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import acceleration, em, starting
from likely.clustering import at_means, cheapest, checked, opened, plan_clusters, short_run
from likely.engines.along import Look, best_path, look
from likely.engines.steps import Steps, in_sequences, named_by
from likely.errors import LikelyWarning, UsageError
from likely.families import Text
from likely.families.base import log
from likely.model import Model, with_room
from likely.sampling import sample_classes
from likely.sources import Reading, open_source
from likely.tally import Tally
from likely.threads import cached_property

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
FIRST = ("start", "transition", "emission", "means")  # what may be given of the model that EM starts from


@dataclass(frozen=True)
class Chain:
    """What was counted of sequences: how they begin, how they move on, and what each state shows."""

    emission: Model  # its classes are the states
    starts: Array  # the weight of sequences that begin in each state
    moves: Array  # the weight of moves from each state (rows) to each (columns)
    imagined: float = 0.0  # beginnings of each kind and moves of each kind that were never seen
    trace: tuple[float, ...] = ()  # penalised log likelihood, round by round
    log_likelihood: float = float("nan")
    converged: bool = False
    distance_left: float = float("inf")  # nats of the penalised log likelihood to its local maximum, as estimated
    tried: Mapping[int, float] = field(default_factory=dict)  # for k="auto": the BIC of each number of states

    @property
    def states(self) -> tuple[Any, ...]:
        """The names of the states."""
        return self.emission.classes

    @cached_property
    def start(self) -> Array:
        """The probability of each state at the beginning."""
        return np.asarray(_shares(self.starts[None] + self.imagined)[0])

    @cached_property
    def transition(self) -> Array:
        """The probability of each next state (column), state by state (row)."""
        return _shares(self.moves + self.imagined)

    @property
    def free(self) -> int:
        """How many free parameters there are."""
        k = len(self.states)
        return self.emission.parameter_count.free + k * (k - 1)

    @property
    def bic(self) -> float:
        """−2 log likelihood + free parameters · log rows: the lower the better."""
        return -2 * self.log_likelihood + self.free * float(np.log(max(self.emission.tally.classes.sum(), 1.0)))

    @property
    def tables(self) -> dict[str, Sequence[dict[str, Any]]]:
        """Readable tables: beginnings, moves, then what each state shows, column by column."""
        named = zip(self.states, self.starts, self.start, strict=True)
        start = [{"state": s, "count": float(n), "probability": float(p)} for s, n, p in named]
        moves = [
            {"state": s, **{str(t): float(p) for t, p in zip(self.states, row, strict=True)}}
            for s, row in zip(self.states, self.transition, strict=True)
        ]
        return {"start": start, "transition": moves, **dict(list(self.emission.parameters.items())[1:])}

    def opened(self, data: Any, *, by: str | None = None, lengths: Any = None, reading: Reading | None = None) -> Steps:
        """Rows as sequences that this model can be asked about."""
        source = open_source(data, reading or self.emission.reading)
        batches = self.emission.batches(source, "error", None)
        parts = [(batch, np.full(batch.rows, -1, np.int64), np.ones(batch.rows)) for batch in batches]
        return in_sequences(parts, lengths, None if by is None else named_by(source, by))  # type: ignore[arg-type]

    def decode(self, steps: Steps) -> Whole:
        """The place of the state of every row on the most probable path (Viterbi)."""
        return steps.as_read(best_path(steps.logs(self.emission.scorer), self.start, self.transition, steps.edges))

    def look(self, steps: Steps, weights: Array) -> Look:
        """Forward and backward along every sequence."""
        return look(lambda: steps.logs(self.emission.scorer), self.start, self.transition, steps.edges, weights)

    def look_at_kinds(self, steps: Steps, weights: Array) -> tuple[Look, Steps]:
        """The same for rows that are often alike, with the rows that the shares belong to."""
        if steps.kinds is None:
            return self.look(steps, weights), steps
        rows, place = steps.kinds
        return look(
            lambda: rows.logs(self.emission.scorer), self.start, self.transition, steps.edges, weights, place
        ), rows

    def posterior(self, steps: Steps) -> Array:
        """The probability of each state for every row, given its whole sequence (forward and backward)."""
        shares = self.look(steps, np.ones(steps.rows)).shares
        return np.asarray(steps.as_read(shares / shares.sum(1, keepdims=True)))

    def log_evidence(self, steps: Steps) -> Array:
        """The log likelihood of every sequence."""
        return self.look(steps, np.ones(steps.rows)).log_evidence

    def sample(self, length: int, seed: Any = None) -> tuple[dict[str, NDArray[Any]], Whole]:
        """One sequence of so many rows, column by column, and the place of the state of each."""
        if isinstance(length, bool) or not isinstance(length, int | np.integer) or length < 1:
            raise UsageError(f"{length!r} rows cannot be drawn: pass a whole number, one or more")
        rng = np.random.default_rng(seed)
        edges = np.cumsum(np.vstack([self.start, self.transition]), axis=1)
        edges /= edges[:, -1:]
        path, at = np.empty(length, np.int64), 0
        for t, chance in enumerate(rng.random(length)):
            path[t] = np.searchsorted(edges[at], chance, side="right")
            at = path[t] + 1
        return sample_classes(self.emission, path, rng), path


def climb(chain: Chain, steps: Steps, imagined: float, max_iter: int, tol: float, done: int = 0) -> Chain:
    """Round after round until the maximum is nearer than `tol` nats; rounds that become slow are extrapolated."""
    weights, first = steps.weights, steps.edges[:-1]
    used = int(np.count_nonzero(weights > 0))

    def counted(at: Chain, found: Look, rows: Steps) -> Chain:
        tally = replace(rows.count(at.emission.scorer, at.emission.blocks, found.shares), rows=used)
        return Chain(replace(at.emission, tally=tally), found.begun, found.moves, imagined)

    def look(at: Chain) -> tuple[float, Chain, float]:
        found, rows = at.look_at_kinds(steps, weights)
        seen = float(weights[first] @ found.log_evidence)
        unseen = imagined * float(log(at.start).sum() + log(at.transition).sum()) if imagined else 0.0
        return seen + em.log_density(at.emission) + unseen, counted(at, found, rows), seen

    if any(isinstance(block.family, Text) for block in chain.emission.blocks):
        # A word that the first rows lack says nothing until it is counted.
        chain = counted(chain, *chain.look_at_kinds(steps, weights))
    rounds = acceleration.Rounds(look, lambda c: acceleration.coordinates(c.emission.tally, c.starts, c.moves), _at)
    end = acceleration.climb(chain, rounds, max_iter=max_iter, tol=tol, done=done)
    own: dict[str, Any] = {"trace": end.trace, "log_likelihood": end.seen, "converged": end.converged}
    return replace(end.point, **own, distance_left=end.distance_left)


def _at(chain: Chain, point: Array) -> Chain:
    reader = acceleration.Reader(point)
    starts, moves = reader.widths(chain.starts), reader.widths(chain.moves)
    tally = acceleration.at(chain.emission.tally, reader.rest)
    return Chain(replace(chain.emission, tally=tally), starts, moves, chain.imagined)


@dataclass(frozen=True)
class Learning:
    """All that is needed to learn chains of any number of states from the same sequences."""

    steps: Steps
    whole: Tally
    spread: Mapping[str, float]
    smoothing: Any = 1.0
    imagined: float = 1.0
    restarts: int = 5
    max_iter: int = em.MAX_ITER
    tol: float = em.TOL
    seed: int = 0
    given: Mapping[str, Any] = field(default_factory=dict)  # where to begin, see FIRST

    def fit(self, states: Sequence[Any]) -> Chain:
        """The best of several runs, its most frequent state first; where states are known or given, in their order."""
        self._check_given()
        k, own = len(states), bool(self.given) or self.steps.known is not None
        zero = em.empty_tally(self.whole, tuple(states))
        prior = em.imagined(self.smoothing, zero, self.spread, None, k)
        starts = list(self._starts(Model(with_room(zero, prior), prior)))
        short = short_run(self.steps.rows, self.max_iter, self.tol) if len(starts) > 1 else {}
        best = max((self._climb(s, **short) for s in starts), key=lambda chain: chain.trace[-1])
        done = len(best.trace) - 1
        if short and done + 1 < self.max_iter:
            rest = self._climb(best, self.max_iter - done, done=done)
            best = replace(rest, trace=(*best.trace[:-1], *rest.trace))
        return best if own else ranked(best)

    def _check_given(self) -> None:
        odd = sorted(set(self.given) - set(FIRST))
        if odd:
            raise UsageError(f"start has {odd[0]!r}, which is none of {', '.join(map(repr, FIRST))}")
        if "emission" in self.given and "means" in self.given:
            raise UsageError(
                "start has 'emission' and 'means', which both say what the states show first: pass one of them"
            )

    def fit_any(self, first: int = 0) -> Chain:
        """As many states as cost least by BIC, named from `first` on: 1, 2, 3, … are tried."""
        if self.given or self.steps.known is not None:
            raise UsageError("k='auto' finds states by itself: leave out start= and states=, or say how many there are")
        best, tried = cheapest(lambda k: self.fit(range(first, first + k)), lambda c: c.bic, self.steps.rows)
        return replace(best, tried=tried)

    def _climb(self, chain: Chain, max_iter: int | None = None, tol: float | None = None, done: int = 0) -> Chain:
        most, near = self.max_iter if max_iter is None else max_iter, self.tol if tol is None else tol
        return climb(chain, self.steps, self.imagined, most, near, done)

    def _starts(self, blank: Model) -> Iterable[Chain]:
        """First models: rows with the nearest of seeds far apart, any state after any other, drawn anew for each."""
        k, given, steps = len(blank.classes), self.given, self.steps
        points = starting.points(steps.parts, blank.schema, blank.blocks, steps.rows, self.seed)
        fixed = (
            "emission" in given or "means" in given or k == 1 or (steps.known is not None and (steps.known >= 0).all())
        )
        for i in range(1 if fixed else max(self.restarts, 1)):
            rng = np.random.default_rng(self.seed + 7919 * i)
            # In every other start states last, as they mostly do.
            move = 0.2 / k + 0.8 * np.eye(k) if i % 2 else 0.5 / k + 0.5 * rng.dirichlet(np.ones(k), k)
            move = move if i else np.ones((k, k))
            if "emission" in given:
                tally = _as_given(blank, given["emission"])
            elif "means" in given:
                tally = at_means(blank.tally, given["means"], self.spread)
            else:
                shares = steps.along(self._first_shares(points, k, i, rng))
                tally = steps.count(blank.scorer, blank.blocks, shares, complete=False)
            yield Chain(
                replace(blank, tally=tally),
                _probabilities(given.get("start", np.ones(k)), (k,), "start" in given),
                _probabilities(given.get("transition", move), (k, k), "transition" in given),
            )

    def _first_shares(self, points: starting.Points, k: int, i: int, rng: np.random.Generator) -> Array:
        """First shares of the states in the rows that were looked at."""
        some = starting.soft_shares(points, k, self.seed + 7919 * i, 0 if i % 2 else starting.STEPS, rng)
        shares, at, before = np.zeros((self.steps.rows, k)), 0, 0
        for (batch, _, w), chosen in zip(self.steps.parts, points.rows, strict=True):
            shares[before + chosen] = some[at : at + len(chosen)] * w[chosen, None]
            at, before = at + len(chosen), before + batch.rows
        return shares


def _as_given(blank: Model, model: Any) -> Tally:
    """What a model has counted, its classes taken for the states."""
    if not isinstance(model, Model) or len(model.classes) != len(blank.classes):
        raise UsageError(f"start['emission'] must be a model of {len(blank.classes)} classes, not {model!r:.80}")
    own = model.tally.of_classes(range(len(blank.classes)), blank.classes)
    return blank.tally + replace(own, schema=replace(own.schema, target=blank.schema.target))


def _probabilities(given: Any, shape: tuple[int, ...], check: bool) -> Array:
    found = np.asarray(given, dtype=np.float64)
    if check and (found.shape != shape or not (found >= 0).all() or not np.allclose(found.sum(-1), 1.0)):
        raise UsageError(f"probabilities of shape {shape} that sum to 1 are needed, not {found.tolist()!r:.120}")
    return found


def ranked(chain: Chain) -> Chain:
    """The same states, the most frequent first."""
    order = np.argsort(-chain.emission.tally.classes, kind="stable")
    emission = replace(chain.emission, tally=chain.emission.tally.of_classes(order.tolist(), chain.states))
    return replace(chain, emission=emission, starts=chain.starts[order], moves=chain.moves[np.ix_(order, order)])


def _shares(counts: Array) -> Array:
    """Each row divided by its sum; a row of nothing is shared evenly."""
    whole = counts.sum(1, keepdims=True)
    return np.asarray(np.divide(counts, whole, out=np.full(counts.shape, 1.0 / counts.shape[1]), where=whole > 0))


def imagined_moves(smoothing: Any, given: Any = None) -> float:
    """How many moves of each kind are imagined: as given, or as many as of any value."""
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
    families: Any = None,
    joint: Sequence[Sequence[str]] = (),
    smoothing: Any = 1.0,
    transition_smoothing: float | None = None,
    ignore: Sequence[str] = (),
    missing: Sequence[str] | None = None,
    restarts: int = 5,
    max_iter: int = em.MAX_ITER,
    tol: float = em.TOL,
    seed: int = 0,
    start: Mapping[str, Any] | None = None,
    reading: Reading | None = None,
    **how: Any,
) -> Chain:
    """Learn k hidden states, named 1, 2, … with the most frequent first, from rows that follow one another.

    `k="auto"` tries 1, 2, 3, … and keeps the number whose BIC is lowest.
    `by` names the column that tells sequences apart, `lengths` says how long each is; else all rows are one. `start` may
    hold where to begin: "start" and "transition" probabilities, and as "means" the first mean of each state, column by
    column, or as "emission" a model whose classes are the states. States keep the order in which they were given.
    """
    reading = reading or Reading.of(missing, how)
    source = open_source(data, reading)
    if by and lengths is not None:
        raise UsageError("by= and lengths= both say where sequences end: pass one of them")
    table = opened(source, plan_clusters(source, families, joint, (*ignore, *([by] if by else [])), None, None))
    steps = in_sequences(table.parts, lengths, None if by is None else named_by(source, by))
    learning = Learning(steps, table.whole, table.spread, smoothing, imagined_moves(smoothing, transition_smoothing),
                        restarts, max_iter, tol, seed, dict(start or {}))  # fmt: skip
    found = learning.fit_any(1) if k == "auto" else learning.fit(range(1, checked(k) + 1))
    say_what_is_odd(found)
    em.warn_if_stopped(found.converged or tol <= 0, len(found.trace), em.MORE_ROUNDS)
    return replace(found, emission=replace(found.emission, missing=source.missing.tokens))


def say_what_is_odd(chain: Chain) -> None:
    """A state that no sequence is ever in is said aloud."""
    seen = chain.emission.tally.classes
    empty = [str(s) for s, n in zip(chain.states, seen, strict=True) if n < 1e-6 * seen.sum()]
    if empty:
        warnings.warn(f"states {', '.join(empty)} never occur: a smaller k says as much", LikelyWarning, stacklevel=3)
