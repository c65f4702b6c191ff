"""Forward–backward and Viterbi over sequences.

Forward and backward probabilities are rescaled at every row, so that nothing underflows however long a sequence is. Where
even the rescaled numbers underflow, the kernel reports it, and the same sequences are processed in logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.families.base import log
from likely.kernels.kernel import Kernel
from likely.kernels.parallel import in_parallel

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
CHUNK = 1 << 15  # rows of a unit of work
FLOOR = -450.0  # relative to a row's best log-likelihood: a lower state is left out, or the kernel reports that it cannot be
LEAST = 1e-200  # of a state relative to all states of a row: smaller numbers would only be slow
FAINT = 1e-100  # where so little is left of a row, states that were left out may be all that matters


@Kernel
def scale_log_likelihoods(logs, peak):  # type: ignore[no-untyped-def]
    """Subtract from the log-likelihoods of every row that of its best state, which is written to `peak`.

    A row that no state allows does not change the state probabilities, and has a peak of minus infinity.
    """
    rows, states = logs.shape
    for t in range(rows):
        high = -np.inf
        for j in range(states):
            high = max(high, logs[t, j])
        peak[t] = high
        for j in range(states):
            if high == -np.inf:
                logs[t, j] = 0.0
            else:
                logs[t, j] = logs[t, j] - high if logs[t, j] - high >= FLOOR else -np.inf


@Kernel
def scaled_forward_backward(alpha, b, peak, place, start, move, edges, weights, sums, summed, starts, moves, totals):  # type: ignore[no-untyped-def]
    """Forward–backward over sequences; False where the rescaled probabilities of a row underflow.

    Row t has the likelihoods b[place[t]] and the log factor peak[place[t]]. Its weighted responsibilities are added to
    sums[place[t]] if `summed`, and written to alpha[t] otherwise; those of first rows are added to `starts` as well.
    Transitions are counted without the transition probability, a factor that is the same at every row. The log-likelihood
    of each sequence is written to `totals`.
    """
    states = b.shape[1]
    onto = move.T.copy()
    total, beta, after, here = np.empty(alpha.shape[0]), np.empty(states), np.empty(states), np.empty(states)
    shift = edges[0]  # the first row of alpha
    for s in range(edges.shape[0] - 1):
        product, logs, scale = 1.0, 0.0, 1.0
        for t in range(edges[s], edges[s + 1]):
            row, at = place[t], t - shift
            whole = 0.0
            for j in range(states):
                v = 0.0
                if t == edges[s]:
                    v = start[j]
                else:
                    for i in range(states):
                        v += alpha[at - 1, i] * onto[j, i]
                v *= b[row, j] * scale
                v = v if v > LEAST else 0.0
                alpha[at, j] = v
                whole += v
            if not whole > FAINT:
                return False
            total[at] = whole
            scale = 1.0 / whole
            logs += peak[row]
            product *= whole  # one logarithm for many rows
            if product < 1e-100 or product > 1e100:
                logs += np.log(product)
                product = 1.0
        totals[s] = logs + np.log(product)
        for j in range(states):
            beta[j] = 1.0
        for t in range(edges[s + 1] - 1, edges[s] - 1, -1):
            row, at = place[t], t - shift
            whole = 0.0
            most = 0.0
            for i in range(states):
                here[i] = alpha[at, i] * beta[i]
                whole += here[i]
                most += beta[i]
            # A state that underflowed in the forward pass may be all that explains the rows after it.
            if not (abs(whole - total[at]) < 1e-6 * total[at] and most < 1.0 / FAINT):
                return False
            scale = weights[t] / whole
            for i in range(states):
                if summed:
                    sums[row, i] += here[i] * scale
                else:
                    alpha[at, i] = here[i] * scale
                if t == edges[s]:
                    starts[i] += here[i] * scale
            if t > edges[s]:
                step = 1.0 / total[at]
                for j in range(states):
                    after[j] = b[row, j] * beta[j] * step
                scale = weights[t] / total[at - 1]
                for i in range(states):
                    v = 0.0
                    for j in range(states):
                        v += move[i, j] * after[j]
                        moves[i, j] += alpha[at - 1, i] * scale * after[j]
                    beta[i] = v
    return True


@Kernel
def log_forward_backward(logs, log_start, log_move, gamma, moves):  # type: ignore[no-untyped-def]
    """The same for one sequence in logarithms: responsibilities and transitions; returns the log-likelihood."""
    rows, states = logs.shape
    alpha, beta = np.full((rows, states), -np.inf), np.zeros((rows, states))
    alpha[0] = log_start + logs[0]
    for t in range(1, rows):
        for j in range(states):
            terms = alpha[t - 1] + log_move[:, j]
            high = terms.max()
            if high > -np.inf:
                alpha[t, j] = high + np.log(np.exp(terms - high).sum()) + logs[t, j]
    for t in range(rows - 2, -1, -1):
        for i in range(states):
            terms = log_move[i] + logs[t + 1] + beta[t + 1]
            high = terms.max()
            beta[t, i] = high + np.log(np.exp(terms - high).sum()) if high > -np.inf else -np.inf
    high = alpha[rows - 1].max()
    if high == -np.inf:
        gamma[:] = 1.0 / states
        return high
    evidence = high + np.log(np.exp(alpha[rows - 1] - high).sum())
    for t in range(rows):
        gamma[t] = np.exp(alpha[t] + beta[t] - evidence)
        if t + 1 < rows:
            for i in range(states):
                moves[i] += np.exp(alpha[t, i] + log_move[i] + logs[t + 1] + beta[t + 1] - evidence)
    return evidence


@Kernel
def viterbi(logs, log_start, log_move, edges, back, path):  # type: ignore[no-untyped-def]
    """The most probable path of states through every sequence; of equally probable ones, the first."""
    states = logs.shape[1]
    best, before = np.empty(states), np.empty(states)
    for s in range(edges.shape[0] - 1):
        first, last = edges[s], edges[s + 1] - 1
        for t in range(first, last + 1):
            for j in range(states):
                before[j] = best[j]
            for j in range(states):
                top, high = 0, log_start[j]
                if t > first:
                    high = before[0] + log_move[0, j]
                    for i in range(1, states):
                        v = before[i] + log_move[i, j]
                        if v > high:
                            top, high = i, v
                back[t, j] = top
                best[j] = high + logs[t, j]
        state = 0
        for j in range(1, states):
            if best[j] > best[state]:
                state = j
        for t in range(last, first - 1, -1):
            path[t] = state
            state = back[t, state]


@dataclass(frozen=True)
class StatePosteriors:
    """Result of forward–backward: responsibilities, expected starts and transitions, log-likelihood of each sequence.

    The responsibilities are those of every row or, where distinct rows were given, their sums over equal rows.
    """

    responsibilities: Array
    start_counts: Array
    transition_counts: Array
    log_likelihood: Array


def state_posteriors(
    read: Callable[[], Array], start: Array, move: Array, edges: Whole, weights: Array, *, place: Whole | None = None
) -> StatePosteriors:
    """Forward–backward over every sequence; sequence s has the rows edges[s] to edges[s + 1].

    `read` returns the log-likelihood of every row in each state; with `place`, that of every distinct row, of which row t
    is number place[t].
    """
    b, summed = read(), place is not None
    of = np.arange(len(b)) if place is None else place
    peak, log_likelihood = np.empty(len(b)), np.empty(len(edges) - 1)
    alpha = np.empty((len(of), len(start)))

    def likelihoods(part: tuple[int, int]) -> None:
        a, z = part
        scale_log_likelihoods(b[a:z], peak[a:z])
        np.exp(b[a:z], out=b[a:z])

    def go(part: tuple[int, int]) -> tuple[Array, Array, Array, bool]:
        a, z = part
        sums, starts, moves = np.zeros_like(b if summed else b[:0]), np.zeros_like(start), np.zeros_like(move)
        own, ends = alpha[edges[a] : edges[z]], edges[a : z + 1]
        known = (b, peak, of, start, move, ends, weights)
        sound = scaled_forward_backward(own, *known, sums, summed, starts, moves, log_likelihood[a:z])
        return sums, starts, moves, bool(sound)

    in_parallel(likelihoods, [(a, min(a + CHUNK, len(b))) for a in range(0, len(b), CHUNK)])
    sums, starts, moves, sound = zip(*in_parallel(go, groups(edges)), strict=True)
    if not all(sound):
        return _in_logs(read(), start, move, edges, weights, place=place)
    responsibilities = np.sum(sums, axis=0) if summed else alpha
    return StatePosteriors(responsibilities, np.sum(starts, 0), np.sum(moves, axis=0) * move, log_likelihood)


def _in_logs(
    logs: Array, start: Array, move: Array, edges: Whole, weights: Array, *, place: Whole | None = None
) -> StatePosteriors:
    """The same in logarithms, which cannot underflow; a row that no state allows does not change the states."""
    distinct = len(logs)
    logs = logs if place is None else logs[place]
    log_start, log_move = log(start), log(move)
    impossible: NDArray[np.bool_] = np.asarray(np.isneginf(logs).all(1))
    logs[impossible] = 0.0
    responsibilities = np.empty_like(logs)

    def go(s: int) -> tuple[Array, float]:
        part, moves = slice(edges[s], edges[s + 1]), np.zeros_like(move)
        total = log_forward_backward(logs[part], log_start, log_move, responsibilities[part], moves)
        responsibilities[part] *= weights[part, None]
        return moves * weights[edges[s]], -np.inf if impossible[part].any() else float(total)

    moves, log_likelihood = zip(*in_parallel(go, range(len(edges) - 1)), strict=True)
    starts = responsibilities[edges[:-1]].sum(0)
    if place is not None:
        responsibilities = np.column_stack([np.bincount(place, each, distinct) for each in responsibilities.T])
    return StatePosteriors(responsibilities, starts, np.sum(moves, axis=0), np.array(log_likelihood))


def best_path(logs: Array, start: Array, move: Array, edges: Whole) -> Whole:
    """Position of the state of every row on the most probable path (Viterbi)."""
    back, path = np.empty(logs.shape, np.int16), np.empty(len(logs), np.int64)
    first, after = log(start), log(move)
    in_parallel(lambda g: viterbi(logs, first, after, edges[g[0] : g[1] + 1], back, path), groups(edges))
    return path


def groups(edges: Whole) -> list[tuple[int, int]]:
    """Units of work: sequences of some thousand rows together, or one that is longer."""
    cuts = np.unique(np.searchsorted(edges, np.arange(CHUNK, edges[-1], CHUNK)))
    inner = [int(c) for c in cuts if 0 < c < len(edges) - 1]
    return list(zip([0, *inner], [*inner, len(edges) - 1], strict=True))
