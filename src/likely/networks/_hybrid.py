"""Numeric nodes in exact inference: linear Gaussians given the configuration of the categorical nodes.

Numeric nodes have no categorical children, so all of them can be integrated out first. What they contribute is a log density
for each configuration of their categorical parents; what is left is inference among categories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError
from likely.networks._limits import check_clique
from likely.networks.family_counts import categorical_parents, numeric_parents
from likely.networks.graph import Graph
from likely.networks.network_parameters import LinearGaussian
from likely.schema import NUMBER, Column

Array = NDArray[np.float64]
LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Group:
    """Numeric nodes that depend on each other through unobserved numbers.

    Parameters
    ----------
    nodes : tuple of str
        Nodes whose densities belong to the group, parents first.
    unobserved : tuple of str
        Those of them that are not observed, in the order of means and covariances.
    scope : tuple of str
        The categorical parents of all of them.

    """

    nodes: tuple[str, ...]
    unobserved: tuple[str, ...]
    scope: tuple[str, ...]


@dataclass(frozen=True)
class Density:
    """A group given the observed numbers of some rows, for each configuration of its scope; or for that of each row alone.

    Parameters
    ----------
    log_density : array, rows × configurations (or 1)
        The log density of what is observed.
    mean : array, rows × configurations (or 1) × unobserved
        The mean of what is not.
    covariance : array, configurations × unobserved × unobserved
        Its covariance, which does not depend on the observed numbers.

    """

    log_density: Array
    mean: Array
    covariance: Array


class NumericPart:
    """The numeric nodes of a network."""

    def __init__(self, graph: Graph, columns: Mapping[str, Column], gaussians: Mapping[str, LinearGaussian]) -> None:
        self.graph, self.columns, self.gaussians = graph, columns, gaussians
        self.nodes = tuple(node for node in graph.order if columns[node].kind == NUMBER)

    def groups(self, observed: Sequence[str], targets: Sequence[str] = ()) -> list[Group]:
        """The groups that matter once some nodes are observed: those with observed descendants, and those asked for."""
        seen = set(observed)
        wanted = self.graph.ancestors([*seen, *targets])
        relevant = [node for node in self.nodes if node in wanted]
        linked: dict[str, str] = {}  # union-find over unobserved nodes

        def root(node: str) -> str:
            while linked.setdefault(node, node) != node:
                node = linked[node]
            return node

        family = {}
        for node in relevant:
            some = [v for v in (*numeric_parents(self.graph, self.columns, node), node) if v not in seen]
            family[node] = some
            for other in some[1:]:
                linked[root(other)] = root(some[0])
        grouped: dict[str, list[str]] = {}
        for node in relevant:
            grouped.setdefault(root(family[node][0]) if family[node] else f"\0{node}", []).append(node)
        return [self._group(nodes, seen) for nodes in grouped.values()]

    def _group(self, nodes: Sequence[str], seen: set[str]) -> Group:
        parents = (p for node in nodes for p in categorical_parents(self.graph, self.columns, node))
        return Group(tuple(nodes), tuple(n for n in nodes if n not in seen), tuple(dict.fromkeys(parents)))

    def shape(self, group: Group) -> list[int]:
        """The number of values of each categorical parent of a group."""
        return [len(self.columns[p].values) for p in group.scope]

    def density(
        self, group: Group, values: Mapping[str, Array], rows: int = 1, at: NDArray[np.int64] | None = None
    ) -> Density:
        """The densities of a group given the observed numbers of some rows (`values`: node to a number for each row).

        `at` is the configuration of each row, where it is known.
        """
        shape = self.shape(group)
        cells = math.prod(shape)
        check_clique(group.scope, float(cells) * len(group.nodes) ** 2)
        size = len(group.nodes)
        place = {node: i for i, node in enumerate(group.nodes)}
        mean, covariance = np.zeros((rows, cells if at is None else 1, size)), np.zeros((cells, size, size))
        for i, node in enumerate(group.nodes):
            intercept, slopes, variance = self._expanded(group, node)
            mean[:, :, i] = _chosen(intercept, at)
            covariance[:, i, i] = variance
            for k, parent in enumerate(numeric_parents(self.graph, self.columns, node)):
                slope = _chosen(slopes[:, k], at)
                if parent in values:
                    mean[:, :, i] += slope * values[parent][:, None]
                else:
                    j = place[parent]
                    mean[:, :, i] += slope * mean[:, :, j]
                    covariance[:, i, :i] += slopes[:, k, None] * covariance[:, j, :i]
            covariance[:, :i, i] = covariance[:, i, :i]
            for k, parent in enumerate(numeric_parents(self.graph, self.columns, node)):
                if parent not in values:
                    covariance[:, i, i] += slopes[:, k] * covariance[:, i, place[parent]]
        return self._conditioned(group, values, mean, covariance, at)

    def _expanded(self, group: Group, node: str) -> tuple[Array, Array, Array]:
        """Intercept, slopes and variance of a node for each configuration of its group's scope."""
        gaussian = self.gaussians[node]
        number = self.own(group, node)
        m = len(numeric_parents(self.graph, self.columns, node))
        return (
            gaussian.intercept.reshape(-1)[number],
            gaussian.slopes.reshape(-1, m)[number] if m else np.zeros((len(number), 0)),
            gaussian.variance.reshape(-1)[number],
        )

    def own(self, group: Group, node: str) -> NDArray[np.int64]:
        """For each configuration of a group's scope, that of the node's own categorical parents."""
        shape = self.shape(group)
        number = np.zeros(math.prod(shape), np.int64)
        at = np.unravel_index(np.arange(len(number)), shape) if shape else ()
        for parent in categorical_parents(self.graph, self.columns, node):
            number = number * len(self.columns[parent].values) + at[group.scope.index(parent)]
        return number

    def _conditioned(
        self, group: Group, values: Mapping[str, Array], mean: Array, covariance: Array, at: NDArray[np.int64] | None
    ) -> Density:
        seen = [i for i, node in enumerate(group.nodes) if node in values]
        rest = [i for i, node in enumerate(group.nodes) if node not in values]
        if not seen:
            return Density(np.zeros(mean.shape[:2]), mean, covariance)
        x = np.stack([values[group.nodes[i]] for i in seen], -1)[:, None, :]
        apart = x - mean[:, :, seen]
        inner = covariance[:, seen][:, :, seen]
        try:
            lower = np.linalg.cholesky(inner)
        except np.linalg.LinAlgError:
            names = ", ".join(repr(group.nodes[i]) for i in seen)
            raise DataError(f"the numbers of {names} determine each other: they have no density together",
                            remedy="leave one of them out, or fit with smoothing above 0") from None  # fmt: skip
        white = np.einsum("nqab,nqb->nqa", _chosen(np.linalg.inv(lower), at), apart)
        log_det = _chosen(np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(-1), at)
        log_density = -0.5 * (white**2).sum(-1) - log_det - 0.5 * len(seen) * LOG_2PI
        cross = covariance[:, rest][:, :, seen]
        gain = np.swapaxes(np.linalg.solve(inner, np.swapaxes(cross, 1, 2)), 1, 2)
        left = covariance[:, rest][:, :, rest] - gain @ np.swapaxes(cross, 1, 2)
        return Density(log_density, mean[:, :, rest] + np.einsum("nqus,nqs->nqu", _chosen(gain, at), apart), left)


def _chosen(table: Array, at: NDArray[np.int64] | None) -> Array:
    """A table by configurations with an axis for the rows before: all configurations for all rows, or one for each."""
    return table[None] if at is None else table[at][:, None]
