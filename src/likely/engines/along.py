"""Along sequences: forward, backward, both together, and the best path.

Probabilities are kept in proportion at every step, so nothing fades however long a sequence is. Where proportions are
beyond what a number can hold, the loop says so, and the same sequence is gone through in logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.families.base import log
from likely.kernels import Kernel
from likely.threads import in_parallel

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
SLAB = 1 << 15  # rows that are worked on at a time
FLOOR = -450.0  # of a row's best log likelihood: a state that is further below counts for nothing beside it
FAINT = 1e-100  # where so little is left of a step, what counted for nothing may be all there is


@Kernel
def in_proportion(logs, peak):  # type: ignore[no-untyped-def]
    """Log likelihoods of every row less those of its best state, which go to `peak`.

    A row that no state allows tells nothing of the state, and has a peak of minus infinity.
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
            elif logs[t, j] > -np.inf:
                logs[t, j] = max(logs[t, j] - high, FLOOR)


@Kernel
def forward(b, start, onto, edges, alpha, total):  # type: ignore[no-untyped-def]
    """How probable each state is together with the row of its step, given the rows before; `total` is their sum.

    onto[j, i] is the move from i to j. A step is divided by the sum of the one before: nobody waits for a division.
    """
    states = b.shape[1]
    for s in range(edges.shape[0] - 1):
        scale = 1.0
        for t in range(edges[s], edges[s + 1]):
            whole = 0.0
            for j in range(states):
                v = 0.0
                if t == edges[s]:
                    v = start[j]
                else:
                    for i in range(states):
                        v += alpha[t - 1, i] * onto[j, i]
                v *= b[t, j] * scale
                alpha[t, j] = v
                whole += v
            total[t] = whole
            scale = 1.0 / whole if whole > 0.0 else 0.0


@Kernel
def backward(b, move, edges, beta, total):  # type: ignore[no-untyped-def]
    """How well each state at every step explains the rows after it, in proportion; the last `total` is less than zero."""
    states = b.shape[1]
    after = np.empty(states)
    for s in range(edges.shape[0] - 1):
        last = edges[s + 1] - 1
        scale = 1.0 / states
        for t in range(last, edges[s] - 1, -1):
            if t == last:
                for i in range(states):
                    beta[t, i] = 1.0
                total[t] = -states
                continue
            for j in range(states):
                after[j] = b[t + 1, j] * beta[t + 1, j] * scale
            whole = 0.0
            for i in range(states):
                v = 0.0
                for j in range(states):
                    v += move[i, j] * after[j]
                beta[t, i] = v
                whole += v
            total[t] = whole
            scale = 1.0 / whole if whole > 0.0 else 0.0


@Kernel
def both(alpha, beta, b, total, weights, first, stop, moves, overlap):  # type: ignore[no-untyped-def]
    """The weighted share of each state at every step given all rows, in place of `alpha`; the moves are added up.

    Moves are counted without the probability of the move itself: it is the same at every step.
    """
    states = alpha.shape[1]
    after = np.empty(states)
    for t in range(first, stop):
        whole = 0.0
        for i in range(states):
            whole += alpha[t, i] * beta[t, i]
        overlap[t] = whole
        scale = weights[t] / whole if whole > 0.0 else 0.0
        if total[t] > 0.0:
            step = scale / abs(total[t + 1])
            for j in range(states):
                after[j] = b[t + 1, j] * beta[t + 1, j] * step
            for i in range(states):
                here = alpha[t, i]
                for j in range(states):
                    moves[i, j] += here * after[j]
        for i in range(states):
            alpha[t, i] *= beta[t, i] * scale


@Kernel
def in_logs(logs, log_start, log_move, gamma, moves):  # type: ignore[no-untyped-def]
    """All of this for one sequence in logarithms: shares and moves, and the log evidence, which is returned."""
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
    """The most probable path of states through every sequence; of equally good ones, the first."""
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
class Look:
    """What one look along all sequences gave: shares of states, moves, and the log evidence of each sequence."""

    shares: Array
    moves: Array
    log_evidence: Array


def look(read: Callable[[], Array], start: Array, move: Array, edges: Whole, weights: Array) -> Look:
    """Forward and backward along every sequence, at the same time; then the shares and the moves, slab by slab.

    `read` gives the log likelihood of every row in each state; sequence s is the stretch edges[s] to edges[s + 1].
    """
    b, onto = read(), np.ascontiguousarray(move.T)
    rows = len(b)
    peak, up, down, overlap = np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows)
    alpha, beta = np.empty_like(b), np.empty_like(b)
    slabs = [(a, min(a + SLAB, rows)) for a in range(0, rows, SLAB)]

    def likelihoods(part: tuple[int, int]) -> None:
        a, z = part
        in_proportion(b[a:z], peak[a:z])
        np.exp(b[a:z], out=b[a:z])

    def go(way: tuple[int, int, bool]) -> None:
        a, z, onward = way
        if onward:
            forward(b, start, onto, edges[a : z + 1], alpha, up)
        else:
            backward(b, move, edges[a : z + 1], beta, down)

    def gather(part: tuple[int, int]) -> tuple[Array, bool]:
        a, z = part
        moves = np.zeros_like(move)
        both(alpha, beta, b, down, weights, a, z, moves, overlap)
        with np.errstate(divide="ignore"):
            peak[a:z] += np.log(up[a:z])
        left = np.abs(down[a:z])
        met = bool((overlap[a:z] > FAINT * up[a:z] * left).all())
        return moves, not (met and up[a:z].min() > FAINT and left.min() > FAINT)

    in_parallel(likelihoods, slabs)
    in_parallel(go, [(a, z, onward) for a, z in groups(edges) for onward in (True, False)])
    moves, faint = zip(*in_parallel(gather, slabs), strict=True)
    if any(faint):
        return _in_logs(read(), start, move, edges, weights)
    return Look(alpha, np.sum(moves, axis=0) * move, np.add.reduceat(peak, edges[:-1]))


def _in_logs(logs: Array, start: Array, move: Array, edges: Whole, weights: Array) -> Look:
    """The same in logarithms, which hold any proportions; a row that no state allows tells nothing of the state."""
    log_start, log_move = log(start), log(move)
    impossible: NDArray[np.bool_] = np.asarray(np.isneginf(logs).all(1))
    logs[impossible] = 0.0
    shares = np.empty_like(logs)

    def go(s: int) -> tuple[Array, float]:
        part, moves = slice(edges[s], edges[s + 1]), np.zeros_like(move)
        evidence = in_logs(logs[part], log_start, log_move, shares[part], moves)
        shares[part] *= weights[part, None]
        return moves * weights[edges[s]], -np.inf if impossible[part].any() else float(evidence)

    moves, evidence = zip(*in_parallel(go, range(len(edges) - 1)), strict=True)
    return Look(shares, np.sum(moves, axis=0), np.array(evidence))


def best_path(logs: Array, start: Array, move: Array, edges: Whole) -> Whole:
    """The place of the state of every row on the most probable path."""
    back, path = np.empty(logs.shape, np.int16), np.empty(len(logs), np.int64)
    first, after = log(start), log(move)
    in_parallel(lambda g: viterbi(logs, first, after, edges[g[0] : g[1] + 1], back, path), groups(edges))
    return path


def groups(edges: Whole) -> list[tuple[int, int]]:
    """Sequences to be gone through at a time: some thousand rows, or one that is longer."""
    cuts = np.unique(np.searchsorted(edges, np.arange(SLAB, edges[-1], SLAB)))
    inner = [int(c) for c in cuts if 0 < c < len(edges) - 1]
    return list(zip([0, *inner], [*inner, len(edges) - 1], strict=True))
