"""Hill climbing over structures with a tabu list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.kernels import arc_moves
from likely.kernels.progress import announce
from likely.networks._scores import FamilyScores

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
SAME = 1e-10  # relative difference of scores that are equal but for rounding
TURNS = 3  # covered arcs turned round before each step, so that early arcs do not fix the direction of later ones


@dataclass(frozen=True)
class SearchSettings:
    """Limits of a search.

    Parameters
    ----------
    allowed : array of bool, nodes × nodes
        Which arcs may be there (parent × child).
    required : array of bool, nodes × nodes
        Which arcs must be there.
    max_parents : int
        The most parents of a node.
    tabu : int
        Steps for which a pair of nodes is left alone after its arc was changed.
    patience : int
        Steps without a better structure after which the search ends.
    trials : int
        How often, at the top, an equivalent structure is drawn (by turning covered arcs round) to climb on from.
    climbs : int
        The most searches, which draw different directions on their way; they end when two have ended as high as the best.
    seed : int
        Where the draws come from.

    """

    allowed: Flags
    required: Flags
    max_parents: int
    tabu: int = 10
    patience: int = 15
    trials: int = 20
    climbs: int = 6
    seed: int = 0


def hill_climb(scores: FamilyScores, start: Sequence[set[int]], settings: SearchSettings) -> list[set[int]]:
    """The best structure found, as the parents of each node."""
    rng = np.random.default_rng(settings.seed)
    announce("arcs, climb 1")
    best, top = _climb(scores, start, settings, rng)
    for climb in range(1, settings.climbs):
        announce(f"arcs, climb {climb + 1}, best score {top:,.2f}")
        found, value = _climb(scores, start, settings, rng)
        if abs(value - top) <= SAME * abs(top):  # two climbs have ended as high: a third hardly finds more
            break
        if value > top:
            best, top = found, value
    return best


def settle_directions(scores: FamilyScores, parents: Sequence[set[int]], settings: SearchSettings) -> list[set[int]]:
    """Among equivalent structures, one with a high score: covered arcs are reversed while the score rises."""
    state = _State(scores, parents, settings)
    while True:
        gains = {arc: _turn_gain(scores, state.parents, *arc) for arc in state.covered()}
        best = max(gains, key=gains.__getitem__, default=None)
        if best is None or gains[best] <= 1e-9:
            return state.parents
        state.change(*best, True)


def _turn_gain(scores: FamilyScores, parents: Sequence[set[int]], a: int, b: int) -> float:
    shared = tuple(sorted(parents[a]))
    more_a, more_b = tuple(sorted((*shared, a))), tuple(sorted((*shared, b)))
    old_a, old_b, new_b, new_a = scores([(a, shared), (b, more_a), (b, shared), (a, more_b)])
    return float(new_a + new_b - old_a - old_b)


class _State:
    """Current structure of a search: arcs, paths, and the gain of each change of one arc."""

    def __init__(self, scores: FamilyScores, start: Sequence[set[int]], settings: SearchSettings) -> None:
        self.scores, self.settings = scores, settings
        self.n = len(start)
        self.parents = [set(some) for some in start]
        self.arcs = _as_array(start)
        self.toggle = np.full((self.n, self.n), -np.inf)  # the gain of adding an arc, or of removing it
        self.base = np.zeros(self.n)
        self.until = np.zeros((self.n, self.n), np.int64)  # the step before which a pair is left alone
        self._best = arc_moves.best_move.fast if scores.compiled else arc_moves.best_move
        self._columns: dict[tuple[int, ...], Array] = {}  # by child and parents: the score with each arc changed, and as is
        self._changed = set(range(self.n))
        self._covered: list[list[tuple[int, int]]] = [[] for _ in start]  # by child
        self._uncertain = set(range(self.n))  # nodes for which that is to be found anew

    def set(self, parents: Sequence[set[int]]) -> None:
        """Replace the current structure."""
        self._changed |= {child for child, some in enumerate(parents) if some != self.parents[child]}
        self.parents = [set(some) for some in parents]
        self.arcs = _as_array(parents)
        self._uncertain = set(range(self.n))

    def covered(self) -> list[tuple[int, int]]:
        """Arcs whose ends share all other parents: turned round, they give an equivalent structure."""
        for b in self._uncertain:
            some = self.parents[b]
            self._covered[b] = [
                (a, b) for a in some if len(some) == len(self.parents[a]) + 1 and some == self.parents[a] | {a}
                and self.settings.allowed[b, a] and not self.settings.required[a, b]
            ]  # fmt: skip
        self._uncertain.clear()
        return [arc for some in self._covered for arc in some]

    def turn_covered(self, rng: np.random.Generator) -> None:
        """Turn round a random covered arc."""
        covered = self.covered()
        if covered:
            self.change(*covered[int(rng.integers(len(covered)))], True)

    @property
    def value(self) -> float:
        """The score of the structure."""
        self._refresh()
        return float(self.base.sum())

    def _refresh(self) -> None:
        """Rescore the possible changes of the parents of nodes that have changed."""
        wanted = {child: (child, *sorted(self.parents[child])) for child in self._changed}
        self._changed.clear()
        families, others = [], []
        for child, key in wanted.items():
            if key not in self._columns:
                for other in self._partners(child):
                    families.append((child, tuple(sorted(self.parents[child] ^ {other}))))
                    others.append(other)
                families.append((child, key[1:]))
                others.append(child)
        scores = self.scores(families) if families else np.zeros(0)
        for key in wanted.values():
            if key not in self._columns:
                self._columns[key] = np.full(self.n, -np.inf)
        for (child, _), other, score in zip(families, others, scores.tolist(), strict=True):
            self._columns[wanted[child]][other] = score
        for child, key in wanted.items():
            self.base[child] = self._columns[key][child]
            self.toggle[:, child] = self._columns[key] - self.base[child]
            self.toggle[child, child] = -np.inf

    def _partners(self, child: int) -> list[int]:
        """The nodes whose arc to the child may be added or removed."""
        now, allowed, required = self.parents[child], self.settings.allowed[:, child], self.settings.required[:, child]
        return [v for v in range(self.n) if v != child and (not required[v] if v in now else allowed[v])]

    def best_move(self, step: int = 0) -> tuple[int, int, bool, float]:
        """Parent and child of the change that gains most, whether it turns the arc round, and the gain.

        Pairs that are to be left alone until after `step` are not changed.
        """
        self._refresh()
        parent, child, turning, gain = self._best(self.toggle, self.arcs, self.until, step, self.settings.max_parents)
        return int(parent), int(child), bool(turning), float(gain)

    def change(self, parent: int, child: int, turn: bool) -> None:
        """Add, remove or turn round an arc."""
        self.arcs[parent, child] = not self.arcs[parent, child]
        self.parents[child] ^= {parent}
        if turn:
            self.arcs[child, parent] = True
            self.parents[parent] |= {child}
        changed = {child, parent} if turn else {child}
        self._changed |= changed
        self._uncertain |= changed.union(*(np.flatnonzero(self.arcs[node]).tolist() for node in changed))


def _climb(
    scores: FamilyScores, start: Sequence[set[int]], settings: SearchSettings, rng: np.random.Generator
) -> tuple[list[set[int]], float]:
    """Hill climbing, continued from random equivalent structures until none leads higher; the structure and its score.

    Where numbers have discrete parents or cells are missing, a covered arc that is turned round may lower the score.
    """
    state = _State(scores, start, settings)
    highest, since = -np.inf, 0
    while since <= settings.patience:
        for _ in range(TURNS):
            state.turn_covered(rng)
        parent, child, turning, gain = state.best_move()
        if gain <= 1e-9:
            break
        value = state.value  # before the change: nothing is scored for it
        since = 0 if value > highest + 1e-9 else since + 1
        highest = max(highest, value)
        state.change(parent, child, turning)
    best, top = _ascend(state)
    failed = 0
    while failed < settings.trials:
        state.set(best)
        for _ in range(int(rng.integers(1, state.n + 1))):
            state.turn_covered(rng)
        if state.best_move()[3] <= 1e-9:
            if state.value > top - 1e-9:
                best = [set(some) for some in state.parents]  # as good, and the next draw starts from here
            failed += 1
            continue
        found, value = _ascend(state)
        failed = 0 if value > top + 1e-9 else failed + 1
        if value > top - 1e-9:
            best, top = found, max(value, top)
    return best, top


def _ascend(state: _State) -> tuple[list[set[int]], float]:
    """Ascent with a tabu list: the best structure reached. Steps may lower the score; changed pairs are tabu for some steps."""
    settings = state.settings
    best, top = [set(some) for some in state.parents], state.value
    since = step = 0
    while since <= settings.patience:
        parent, child, turning, gain = state.best_move(step)
        if gain == -np.inf or (gain <= 1e-9 and not settings.tabu * settings.patience):
            break
        state.change(parent, child, turning)
        step += 1
        state.until[parent, child] = state.until[child, parent] = step + settings.tabu
        if state.value > top + 1e-9:
            best, top, since = [set(some) for some in state.parents], state.value, 0
        else:
            since += 1
    state.until[:] = 0
    return best, top


def _as_array(parents: Sequence[set[int]]) -> Flags:
    arcs = np.zeros((len(parents), len(parents)), bool)
    for child, some in enumerate(parents):
        for parent in some:
            arcs[parent, child] = True
    return arcs
