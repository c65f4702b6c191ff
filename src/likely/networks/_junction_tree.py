"""Junction trees: cliques of the triangulated moral graph, through which compiled loops send the evidence of many rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.kernels import propagation
from likely.kernels.parallel import in_parallel
from likely.networks._elimination import aligned
from likely.networks._elimination_steps import best_order
from likely.networks._limits import check_clique, check_tree
from likely.networks.family_counts import strides

Array = NDArray[np.float64]
_NO_SOFT = np.zeros((1, 0))
_ONE = np.ones(1)
SLAB = 2_000  # rows whose evidence is propagated by one thread, at most
SLAB_CELLS = 1 << 22  # of the cells that these rows allow: a fraction of a second, between which Ctrl-C is noticed
HELD_CELLS = 1 << 26  # of expected counts that are held before they are added up: 512 MB


def cliques_of(scopes: Sequence[Sequence[int]], sizes: Sequence[int]) -> tuple[list[tuple[int, ...]], list[int]]:
    """Maximal cliques that hold every scope, and the parent of each (-1 for the root, which is the last)."""
    order = best_order(scopes, sizes, range(len(sizes)))
    near: dict[int, set[int]] = {v: set() for v in range(len(sizes))}
    for scope in scopes:
        for v in scope:
            near[v] |= set(scope) - {v}
    place = {v: i for i, v in enumerate(order)}
    members: list[set[int]] = []
    above: list[int] = []
    for v in order:
        later = {u for u in near[v] if place[u] > place[v]}
        for u in later:
            near[u] |= later - {u}
        members.append({v} | later)
        above.append(min((place[u] for u in later), default=-1))
    return _maximal(members, above)


def _maximal(members: list[set[int]], above: list[int]) -> tuple[list[tuple[int, ...]], list[int]]:
    """The tree without cliques that another one holds; several trees are joined by empty separators."""
    into = list(range(len(members)))
    for c in range(len(members)):  # children first: one that is part of its parent, or holds it, becomes one with it
        p = above[c]
        if p >= 0 and (members[c] <= members[p] or members[p] <= members[c]):
            members[p] |= members[c]
            into[c] = p
    for c in reversed(range(len(members))):
        into[c] = into[into[c]]
    kept = [c for c in range(len(members)) if into[c] == c]
    new = {c: i for i, c in enumerate(kept)}
    last = len(kept) - 1
    parents = [new[into[above[c]]] if above[c] >= 0 else (-1 if new[c] == last else last) for c in kept]
    return [tuple(sorted(members[c])) for c in kept], parents


@dataclass(frozen=True)
class _Rooted:
    """The arrays of a tree with a given clique as its root."""

    order: tuple[int, ...]  # the cliques, leaves first
    scopes: tuple[tuple[int, ...], ...]  # of each, in that order: variables of the separator first
    arrays: tuple[NDArray[Any], ...]

    @property
    def cells(self) -> int:
        return int(self.arrays[8][-1])


class JunctionTree:
    """A junction tree over discrete variables.

    Parameters
    ----------
    scopes : sequence of sequences of int
        Sets of variables that must lie in one clique: the families of a network.
    sizes : sequence of int
        The number of values of each variable.
    names : sequence of str
        What the variables are called in messages.

    """

    def __init__(self, scopes: Sequence[Sequence[int]], sizes: Sequence[int], names: Sequence[str]) -> None:
        self.sizes, self.names = list(sizes), list(names)
        self.scopes = [tuple(scope) for scope in scopes]
        self.cliques, self._above = cliques_of(scopes, sizes)
        self.cells = [math.prod(float(sizes[v]) for v in clique) for clique in self.cliques]
        sets = [set(clique) for clique in self.cliques]
        holders: list[list[int]] = [[] for _ in sizes]
        for c, clique in enumerate(self.cliques):
            for v in clique:
                holders[v].append(c)
        everywhere = range(len(sets))
        self.home = [
            min((c for c in (holders[s[0]] if s else everywhere) if set(s) <= sets[c]), key=lambda c: self.cells[c])
            for s in self.scopes
        ]
        self.holders = [min(held, key=lambda c: self.cells[c]) for held in holders]
        self.total_cells = sum(self.cells)
        self._rooted: dict[int, _Rooted] = {}

    def check(self) -> None:
        """Refuse a tree whose largest table would not fit into memory."""
        largest = max(range(len(self.cells)), key=lambda c: self.cells[c])
        check_clique([self.names[v] for v in self.cliques[largest]], self.cells[largest])
        check_tree(self.total_cells)

    def allowed(self, rows: NDArray[Any]) -> Array:
        """The number of cells of all cliques that agree with what is observed in each row."""
        total = np.zeros(len(rows))
        missing = rows < 0
        for clique in self.cliques:
            cells = np.ones(len(rows))
            for v in clique:
                cells *= np.where(missing[:, v], float(self.sizes[v]), 1.0)
            total += cells
        return total

    def _slabs(self, rows: NDArray[Any]) -> list[slice]:
        """The rows in parts that take a fraction of a second each, whatever the number of threads."""
        most = max(float(SLAB_CELLS), self.total_cells / 4)  # each part has room for all cells, which must be worth its while
        if len(rows) <= 1 or self.total_cells * len(rows) <= most:
            return [slice(a, min(a + SLAB, len(rows))) for a in range(0, max(len(rows), 1), SLAB)]
        by_cells = (self.allowed(rows).cumsum() / most).astype(np.int64)
        cut = (np.diff(by_cells) > 0) | (np.diff(np.arange(len(rows)) // SLAB) > 0)
        ends = [0, *(np.flatnonzero(cut) + 1).tolist(), len(rows)]
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

    def rooted(self, root: int | None = None) -> _Rooted:
        """The tree as flat arrays, with a given clique as its root."""
        root = len(self.cliques) - 1 if root is None else root
        if root not in self._rooted:
            self.check()
            self._rooted[root] = self._arrays(root)
        return self._rooted[root]

    def _order(self, root: int) -> tuple[list[int], dict[int, int]]:
        near: list[list[int]] = [[] for _ in self.cliques]
        for c, p in enumerate(self._above):
            if p >= 0:
                near[c].append(p)
                near[p].append(c)
        above, order = {root: -1}, [root]
        for c in order:
            for other in near[c]:
                if other not in above:
                    above[other] = c
                    order.append(other)
        return order[::-1], above

    def _arrays(self, root: int) -> _Rooted:
        order, above = self._order(root)
        place = {c: i for i, c in enumerate(order)} | {-1: -1}
        separators = {c: [v for v in self.cliques[c] if above[c] >= 0 and v in self.cliques[above[c]]] for c in order}
        scopes = [(*separators[c], *(v for v in self.cliques[c] if v not in separators[c])) for c in order]
        stride, sep, up = [], [], []
        for c, scope in zip(order, scopes, strict=True):
            stride.append(strides([self.sizes[v] for v in scope]))
            within = dict(zip(separators[c], strides([self.sizes[v] for v in separators[c]]).tolist(), strict=True))
            sep.append([within.get(v, 0) for v in scope])
            up.append([within.get(v, 0) for v in scopes[place[above[c]]]] if above[c] >= 0 else [])
        first = _ends([len(scope) for scope in scopes])
        arrays = (
            np.array(self.sizes, np.int64), first, _flat(scopes), _flat(stride), _flat(sep),
            np.array([place[above[c]] for c in order], np.int64), _ends([len(part) for part in up]), _flat(up),
            _ends([int(self.cells[c]) for c in order]),
            _ends([math.prod(self.sizes[v] for v in separators[c]) for c in order]),
            first[:-1] + np.array([len(separators[c]) for c in order], np.int64),
        )  # fmt: skip
        return _Rooted(tuple(order), tuple(scopes), arrays)

    def potentials(self, tables: Mapping[int, Array], root: int | None = None) -> Array:
        """The cells of all cliques: products of the tables of the scopes assigned to each (keys: indexes in `scopes`)."""
        return self.arranged(self.products(tables), root)

    def products(self, tables: Mapping[int, Array]) -> list[Array]:
        """The potential of each clique, with its variables in their own order: the same for every root."""
        self.check()
        made = [np.ones([self.sizes[v] for v in clique]) for clique in self.cliques]
        for s, table in tables.items():
            made[self.home[s]] *= aligned(table, self.scopes[s], self.cliques[self.home[s]])
        return made

    def arranged(self, products: Sequence[Array], root: int | None = None) -> Array:
        """The potentials of the cliques end to end, as the tree with this root walks through them."""
        rooted = self.rooted(root)
        places = zip(rooted.order, rooted.scopes, strict=True)
        return np.concatenate([
            products[c].transpose([self.cliques[c].index(v) for v in scope]).reshape(-1) for c, scope in places
        ])  # fmt: skip

    def configurations(self, s: int, root: int | None = None) -> tuple[slice, NDArray[np.int64]]:
        """The cells of the clique that contains a scope, and for each the configuration of the scope."""
        rooted = self.rooted(root)
        i = rooted.order.index(self.home[s])
        shape = [self.sizes[v] for v in self.scopes[s]]
        numbers = np.arange(math.prod(shape)).reshape(shape)
        scope = rooted.scopes[i]
        whole = np.broadcast_to(aligned(numbers, self.scopes[s], scope), [self.sizes[v] for v in scope])
        return slice(int(rooted.arrays[8][i]), int(rooted.arrays[8][i + 1])), whole.reshape(-1)

    def marginal(self, counts: Array, s: int) -> Array:
        """The table of a scope, summed out of the cells of its clique."""
        rooted = self.rooted()
        i = rooted.order.index(self.home[s])
        scope = rooted.scopes[i]
        part = counts[rooted.arrays[8][i] : rooted.arrays[8][i + 1]].reshape([self.sizes[v] for v in scope])
        others = tuple(k for k, v in enumerate(scope) if v not in self.scopes[s])
        kept = [v for v in scope if v in self.scopes[s]]
        made: Array = part.sum(others).transpose([kept.index(v) for v in self.scopes[s]])
        return made

    def collect(self, rows: NDArray[Any], phi: Array, target: int = -1, soft: Array | None = None) -> tuple[Array, Array]:
        """Log evidence of every row, and the posterior of the target; `phi` is rooted where the target is."""
        rooted = self.rooted(self.holders[target] if target >= 0 else None)
        out = np.zeros((len(rows), self.sizes[target] if target >= 0 else 0))
        evidence = np.zeros(len(rows))

        def work(part: slice) -> None:
            propagation.collect.fast(rows[part], _soft(soft, rows, part), rooted.arrays, phi, target, out[part], evidence[part])

        in_parallel(work, self._slabs(rows))
        return evidence, out

    def collect_one(self, row: NDArray[Any], phi: Array, target: int) -> tuple[float, Array]:
        """The same for a single row, without the detour over threads."""
        out, evidence = np.zeros((1, self.sizes[target])), np.zeros(1)
        arrays = self.rooted(self.holders[target]).arrays
        propagation.collect.fast(row, _NO_SOFT, arrays, phi, target, out, evidence)
        return float(evidence[0]), out[0]

    def expect_one(self, row: NDArray[Any], phi: Array, target: int) -> tuple[float, Array]:
        """The same by collecting and distributing in the tree as it is, with no root of the target's own."""
        rooted, evidence = self.rooted(), np.zeros(1)
        counts = np.zeros(rooted.cells)
        propagation.expect.fast(row, _ONE, _NO_SOFT, rooted.arrays, phi, counts, evidence)
        i = rooted.order.index(self.holders[target])
        scope = rooted.scopes[i]
        part = counts[rooted.arrays[8][i] : rooted.arrays[8][i + 1]]
        axis = scope.index(target)
        inner = math.prod(self.sizes[v] for v in scope[axis + 1 :])
        return float(evidence[0]), part.reshape(-1, self.sizes[target], inner).sum((0, 2))

    def configuration_posteriors(self, rows: NDArray[Any], phi: Array, s: int, soft: Array | None = None) -> Array:
        """The posterior of the configurations of a scope in every row, rows × configurations; `phi` is rooted at its home."""
        root = self.home[s]
        rooted = self.rooted(root)
        cells, which = self.configurations(s, root)
        out = np.zeros((len(rows), cells.stop - cells.start))
        evidence = np.zeros(len(rows))

        def work(part: slice) -> None:
            propagation.collect.fast(rows[part], _soft(soft, rows, part), rooted.arrays, phi, -2, out[part], evidence[part])

        in_parallel(work, self._slabs(rows))
        found = np.zeros((len(rows), math.prod(self.sizes[v] for v in self.scopes[s])))
        np.add.at(found.T, which, out.T)
        return found

    def expect(self, rows: NDArray[Any], weights: Array, phi: Array, soft: Array | None = None) -> tuple[Array, Array]:
        """Log evidence of every row, and the expected counts of the cells of all cliques."""
        rooted = self.rooted()
        evidence = np.zeros(len(rows))

        def work(part: slice) -> Array:
            counts = np.zeros(rooted.cells)
            soft_part = _soft(soft, rows, part)
            propagation.expect.fast(rows[part], weights[part], soft_part, rooted.arrays, phi, counts, evidence[part])
            return counts

        total, parts = np.zeros(rooted.cells), self._slabs(rows)
        held = int(np.clip(HELD_CELLS // max(rooted.cells, 1), 2, 64))
        for i in range(0, len(parts), held):
            for counts in in_parallel(work, parts[i : i + held]):
                total += counts
        return evidence, total

    def assign(self, rows: NDArray[Any], phi: Array, draws: Array | None = None, soft: Array | None = None) -> Array:
        """Fill in missing cells in place, most probably or as drawn; log evidence of every row."""
        rooted = self.rooted()
        evidence = np.zeros(len(rows))
        draws = np.zeros((len(rows), 0)) if draws is None else draws

        def work(part: slice) -> None:
            soft_part = _soft(soft, rows, part)
            propagation.assign.fast(rows[part], soft_part, rooted.arrays, phi, draws[part], evidence[part])

        in_parallel(work, self._slabs(rows))
        return evidence


def _ends(sizes: Sequence[int]) -> NDArray[np.int64]:
    return np.cumsum([0, *sizes]).astype(np.int64)


def _flat(parts: Sequence[Sequence[int] | NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.array([x for part in parts for x in part], np.int64)


def _soft(soft: Array | None, rows: NDArray[Any], part: slice) -> Array:
    return np.zeros((len(rows[part]), 0)) if soft is None else soft[part]

