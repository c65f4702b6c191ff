"""Inference in many rows at once: log-likelihoods, posteriors, completions, and expected counts for EM.

Rows are worked on by junction trees. Observed numbers enter as likelihoods of the configurations of their categorical
parents; rows in which the same numbers are missing share one tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.networks._hybrid import Density, Group
from likely.networks._inference import Inference
from likely.networks._junction_tree import JunctionTree
from likely.networks.family_counts import LinearMoments, NetworkTally, grouped_moments, numeric_parents
from likely.networks.rows import Rows

Array = NDArray[np.float64]
MOST_SOFT = 1 << 23  # likelihoods of cells that are held at a time


@dataclass(frozen=True)
class GroupPart:
    """A group of numeric nodes in some rows: those in which its configuration is known, and those where a category is missing.

    Parameters
    ----------
    group : Group
        The numeric nodes.
    known, number, density : array, array, Density
        The rows with their configuration, and the densities there.
    open, densities : array, Density
        The other rows, and their densities for every configuration.

    """

    group: Group
    known: NDArray[np.int64]
    number: NDArray[np.int64]
    density: Density
    open: NDArray[np.int64]
    densities: Density


@dataclass(frozen=True)
class ObservedPart:
    """Rows in which the same numeric nodes are observed."""

    which: NDArray[np.int64]
    codes: NDArray[np.int32]  # rows × categorical nodes
    values: Mapping[str, Array]
    groups: list[GroupPart]


class BatchInference:
    """Inference in the rows of a table under a network's parameters."""

    def __init__(self, engine: Inference, rows: Rows) -> None:
        self.engine, self.rows = engine, rows
        place = {c.name: i for i, c in enumerate(rows.columns)}
        self.codes = np.ascontiguousarray(rows.codes[[place[name] for name in engine.names]].T, dtype=np.int32)
        self.numeric = rows.numeric
        self._trees: dict[tuple[tuple[str, ...], ...], JunctionTree] = {}

    def reuse(self, other: BatchInference) -> None:
        """Take over the trees that were made for the same rows under other parameters."""
        self._trees = {scopes: tree for scopes, tree in other._trees.items() if scopes}

    def parts(self) -> Iterator[ObservedPart]:
        """The rows grouped by which numbers are missing, a bounded number at a time."""
        if not self.numeric:
            yield ObservedPart(np.arange(self.rows.n), self.codes, {}, [])
            return
        order = list(self.engine.numeric.nodes)
        seen = ~np.isnan(self.rows.numbers[[self.numeric[name] for name in order]])
        patterns, which = np.unique(seen, axis=1, return_inverse=True)
        for p in range(patterns.shape[1]):
            observed = [name for name, there in zip(order, patterns[:, p], strict=True) if there]
            groups = self.engine.numeric.groups(observed)
            rows = np.flatnonzero(which.reshape(-1) == p)
            parents = sorted({self.engine.place[name] for group in groups for name in group.scope})
            lacking = (self.codes[rows][:, parents] < 0).any(1)
            wide = max([int(self._tree(groups).total_cells) if self.engine.names else 1,
                        *(int(np.prod(self.engine.numeric.shape(g))) * len(g.nodes) for g in groups)])  # fmt: skip
            for some, cells in ((rows[~lacking], 1 + sum(len(g.nodes) ** 2 for g in groups)), (rows[lacking], wide)):
                step = max(1, MOST_SOFT // cells)
                for start in range(0, len(some), step):
                    yield self._part(some[start : start + step], observed, groups)

    def _part(self, which: NDArray[np.int64], observed: list[str], groups: list[Group]) -> ObservedPart:
        values = {name: self.rows.numbers[self.numeric[name], which] for name in observed}
        codes = self.codes[which]
        return ObservedPart(which, codes, values, [self._group_part(group, codes, values) for group in groups])

    def _group_part(self, group: Group, codes: NDArray[np.int32], values: Mapping[str, Array]) -> GroupPart:
        numeric = self.engine.numeric
        own = codes[:, [self.engine.place[p] for p in group.scope]]
        known, open_ = (np.flatnonzero(each) for each in ((own >= 0).all(1), (own < 0).any(1)))
        number = np.zeros(len(known), np.int64)
        for line, size in zip(own[known].T, numeric.shape(group), strict=True):
            number = number * size + line
        density = numeric.density(group, {n: x[known] for n, x in values.items()}, len(known), number)
        more = numeric.density(group, {n: x[open_] for n, x in values.items()}, len(open_))
        return GroupPart(group, known, number, density, open_, more)

    def _tree(self, groups: list[Group]) -> JunctionTree:
        scopes = tuple(group.scope for group in groups if len(group.scope) > 1)
        if scopes not in self._trees:
            engine = self.engine
            more = [tuple(engine.place[p] for p in scope) for scope in scopes]
            self._trees[scopes] = JunctionTree([*engine.scopes, *more], engine.sizes, engine.names) if more else engine.tree
        return self._trees[scopes]

    def _tree_of(self, part: ObservedPart) -> JunctionTree:
        return self._tree([each.group for each in part.groups])

    def _scope(self, tree: JunctionTree, group: Group) -> int:
        return tree.scopes.index(tuple(self.engine.place[p] for p in group.scope)) if len(group.scope) > 1 else -1

    def _potentials(self, tree: JunctionTree, root: int | None) -> Array:
        if tree is self.engine.tree:
            return self.engine.potentials(root)
        tables = {i: self.engine.parameters.tables[name] for i, name in enumerate(self.engine.names)}
        return tree.potentials(tables, root)

    def _number_likelihoods(self, part: ObservedPart, tree: JunctionTree, root: int | None) -> tuple[Array | None, Array]:
        """Likelihoods of the cells given the observed numbers, and the log of what each row was divided by.

        Where the configuration of a group is known, its density is a factor of the row alone.
        """
        shift = np.zeros(len(part.which))
        soft: Array | None = None
        for each in part.groups:
            shift[each.known] += each.density.log_density[:, 0]
            if not len(each.open):
                continue
            logs = self._restricted(part, each)
            peak = logs.max(1)
            shift[each.open] += peak
            if soft is None:
                soft = np.ones((len(part.which), tree.rooted(root).cells))
            cells, number = self._cells(tree, each.group, root)
            soft[each.open, cells] *= np.exp(logs - peak[:, None])[:, number]
        return soft, shift

    def _restricted(self, part: ObservedPart, each: GroupPart) -> Array:
        """Log densities, -inf in configurations that the categories of a row exclude: they must not set the scale."""
        logs, group = each.densities.log_density, each.group
        at = np.unravel_index(np.arange(logs.shape[1]), self.engine.numeric.shape(group))
        for values, parent in zip(at, group.scope, strict=True):
            codes = part.codes[each.open, self.engine.place[parent]]
            if (codes >= 0).any():
                logs = np.where((codes[:, None] < 0) | (codes[:, None] == values), logs, -np.inf)
        return logs

    def _cells(self, tree: JunctionTree, group: Group, root: int | None) -> tuple[slice, NDArray[np.int64]]:
        if len(group.scope) > 1:
            return tree.configurations(self._scope(tree, group), root)
        v = self.engine.place[group.scope[0]]  # one variable: any clique that holds it will do
        rooted = tree.rooted(root)
        i = rooted.order.index(tree.holders[v])
        shape = [tree.sizes[u] for u in rooted.scopes[i]]
        number = np.indices(shape)[rooted.scopes[i].index(v)].reshape(-1)
        return slice(int(rooted.arrays[8][i]), int(rooted.arrays[8][i + 1])), number

    def log_evidence(self) -> Array:
        """The log probability of what is observed in every row."""
        found = np.zeros(self.rows.n)
        for part in self.parts():
            if not self.engine.names:
                found[part.which] = sum(each.density.log_density[:, 0] for each in part.groups)
                continue
            tree = self._tree_of(part)
            soft, shift = self._number_likelihoods(part, tree, None)
            evidence, _ = tree.collect(part.codes, self._potentials(tree, None), soft=soft)
            found[part.which] = evidence + shift
        return found

    def posterior(self, target: str) -> tuple[Array, Array]:
        """Log evidence, and the posterior of a categorical node in every row (rows × values; its own cells are ignored)."""
        v = self.engine.place[target]
        evidence, out = np.zeros(self.rows.n), np.zeros((self.rows.n, self.engine.sizes[v]))
        kept = self.codes[:, v].copy()
        self.codes[:, v] = -1
        for part in self.parts():
            tree = self._tree_of(part)
            root = tree.holders[v]
            soft, shift = self._number_likelihoods(part, tree, root)
            logs, found = tree.collect(part.codes, self._potentials(tree, root), v, soft)
            evidence[part.which], out[part.which] = logs + shift, found
        self.codes[:, v] = kept
        return evidence, out

    def log_joint(self, target: str) -> Array:
        """log P(value, rest of the row) for every value of a categorical node, rows × values."""
        v = self.engine.place[target]
        found, kept = np.zeros((self.rows.n, self.engine.sizes[v])), self.codes[:, v].copy()
        for code in range(self.engine.sizes[v]):
            self.codes[:, v] = code
            found[:, code] = self.log_evidence()
        self.codes[:, v] = kept
        return found

    def complete(self, draws: np.random.Generator | None = None) -> Rows:
        """The rows with missing cells filled in: the most probable categories together, or drawn from the posterior.

        Missing numbers are then filled in given the categories: by their mean, or drawn.
        """
        rows = self.rows
        codes, numbers = rows.codes.copy(), rows.numbers.copy()
        place = {c.name: i for i, c in enumerate(rows.columns)}
        lines = np.array([place[name] for name in self.engine.names], np.int64)
        for part in self.parts():
            filled = part.codes.copy()
            if self.engine.names:
                tree = self._tree_of(part)
                soft, _ = self._number_likelihoods(part, tree, None)
                uniform = None if draws is None else draws.random((len(filled), len(tree.cliques)))
                tree.assign(filled, self._potentials(tree, None), uniform, soft)
            codes[np.ix_(lines, part.which)] = filled.T
            for name, cells in self._numbers(part, filled, draws).items():
                numbers[self.numeric[name], part.which] = cells
        return Rows(rows.columns, codes, numbers, rows.weights)

    def _numbers(self, part: ObservedPart, codes: NDArray[np.int32], draws: np.random.Generator | None) -> dict[str, Array]:
        """Missing numbers of a part, given all categories."""
        numeric = self.engine.numeric
        found: dict[str, Array] = {}
        missing = [name for name in numeric.nodes if name not in part.values]
        for group in numeric.groups(list(part.values), missing):
            if not group.unobserved:
                continue
            each = self._group_part(group, codes, part.values)
            number, density = each.number, each.density
            mean = density.mean[:, 0]
            if draws is not None:
                lower = np.linalg.cholesky(density.covariance + 1e-300 * np.eye(len(group.unobserved)))
                mean = mean + np.einsum("nuv,nv->nu", lower[number], draws.standard_normal(mean.shape))
            for i, name in enumerate(group.unobserved):
                found[name] = np.full(len(codes), np.nan)  # categories that cannot be filled in: the row is impossible
                found[name][each.known] = mean[:, i]
        return found

    def expected(self) -> tuple[NetworkTally, Array]:
        """The E-step: expected counts and moments of all rows, and the log evidence of each."""
        engine = self.engine
        weights = self.rows.each_weight()
        tables = {name: np.zeros(engine.parameters.tables[name].shape) for name in engine.names}
        moments: dict[str, LinearMoments] = {}
        evidence = np.zeros(self.rows.n)
        for part in self.parts():
            w = weights[part.which]
            if engine.names:
                tree = self._tree_of(part)
                soft, shift = self._number_likelihoods(part, tree, None)
                logs, cells = tree.expect(part.codes, w, self._potentials(tree, None), soft)
                evidence[part.which] = logs + shift
                for i, name in enumerate(engine.names):
                    tables[name] += tree.marginal(cells, i)
            else:
                evidence[part.which] = sum(each.density.log_density[:, 0] for each in part.groups)
            for group in part.groups:
                for name, each in self._moments(part, group, w):
                    moments[name] = moments[name] + each if name in moments else each
        for name in engine.numeric.nodes:  # never observed, nor a parent of what is
            moments.setdefault(name, _no_moments(engine, name))
        columns = {c.name: c for c in self.rows.columns}
        return NetworkTally(engine.graph, columns, tables, moments, self.rows.total, expected=True), evidence

    def _moments(self, part: ObservedPart, each: GroupPart, weights: Array) -> Iterator[tuple[str, LinearMoments]]:
        """Expected moments of the nodes of a group: of rows with a known configuration, and of the others."""
        if len(each.known):
            sure = _Shares(each.known, each.number[:, None], weights[each.known, None])
            yield from self._of_rows(part, each.group, each.density, sure)
        if len(each.open):
            shares = self._shares(part, each) * weights[each.open, None]
            number = np.tile(np.arange(shares.shape[1]), (len(shares), 1))
            yield from self._of_rows(part, each.group, each.densities, _Shares(each.open, number, shares))

    def _of_rows(
        self, part: ObservedPart, group: Group, density: Density, shares: _Shares
    ) -> Iterator[tuple[str, LinearMoments]]:
        """Expected moments of the nodes of a group in some rows of a part."""
        engine, (rows, cells) = self.engine, shares.weights.shape
        often = np.bincount(shares.number.reshape(-1), shares.weights.reshape(-1), minlength=len(density.covariance))
        for node in group.nodes:
            family = (*numeric_parents(engine.graph, engine.columns, node), node)
            z, spread = np.zeros((rows, cells, len(family))), np.zeros((len(often), len(family), len(family)))
            hidden = [(a, group.unobserved.index(name)) for a, name in enumerate(family) if name in group.unobserved]
            for a, name in enumerate(family):
                if name in part.values:
                    z[:, :, a] = part.values[name][shares.rows, None]
            for a, i in hidden:
                z[:, :, a] = density.mean[:, :, i]
                for b, j in hidden:
                    spread[:, a, b] = density.covariance[:, i, j]
            own = engine.numeric.own(group, node)
            shape = engine.parameters.gaussians[node].intercept.shape
            whole = grouped_moments(
                z.reshape(-1, len(family)), own[shares.number.reshape(-1)], shares.weights.reshape(-1), shape
            )
            more = np.zeros((int(np.prod(shape)), len(family), len(family)))
            np.add.at(more, own, often[:, None, None] * spread)
            yield node, LinearMoments(whole.n, whole.mean, whole.scatter + more.reshape(whole.scatter.shape))

    def _shares(self, part: ObservedPart, each: GroupPart) -> Array:
        """The posterior of the configurations of a group's scope in the rows that do not show it."""
        tree, codes = self._tree_of(part), part.codes[each.open]
        if len(each.group.scope) == 1:
            v = self.engine.place[each.group.scope[0]]
            root = tree.holders[v]
            soft = self._of(part, each.open, tree, root)
            return tree.collect(codes, self._potentials(tree, root), v, soft)[1]
        s = self._scope(tree, each.group)
        root = tree.home[s]
        return tree.configuration_posteriors(codes, self._potentials(tree, root), s, self._of(part, each.open, tree, root))

    def _of(self, part: ObservedPart, rows: NDArray[np.int64], tree: JunctionTree, root: int) -> Array | None:
        soft, _ = self._number_likelihoods(part, tree, root)
        return soft if soft is None or len(rows) == len(soft) else soft[rows]


@dataclass(frozen=True)
class _Shares:
    """The weight of each row of a part in each of its configurations (rows × configurations)."""

    rows: NDArray[np.int64]
    number: NDArray[np.int64]
    weights: Array


def _no_moments(engine: Inference, name: str) -> LinearMoments:
    shape = engine.parameters.gaussians[name].intercept.shape
    m = 1 + len(numeric_parents(engine.graph, engine.columns, name))
    return LinearMoments(np.zeros(shape), np.zeros((*shape, m)), np.zeros((*shape, m, m)))


def as_values(rows: Rows) -> dict[str, list[Any]]:
    """The rows as a dict of columns, values in their own type."""
    numeric = rows.numeric
    made: dict[str, list[Any]] = {}
    for i, column in enumerate(rows.columns):
        if column.name in numeric:
            made[column.name] = [None if np.isnan(x) else x for x in rows.numbers[numeric[column.name]].tolist()]
        else:
            values = (*column.values, None)
            made[column.name] = [values[code] for code in rows.codes[i].tolist()]
    return made
