"""EM for networks of categorical nodes: all tables as one flat array, missing cells of the rows in distinct groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.kernels.group_elimination import expect_steps, list_steps
from likely.kernels.kernel import worth_compiling
from likely.kernels.missing_groups import group_missing
from likely.networks.family_counts import strides
from likely.networks.graph import Graph
from likely.networks.network_parameters import pseudocounts
from likely.networks.rows import Rows

Array = NDArray[np.float64]
Places = NDArray[np.int64]
MOST_OF_GROUP = 1 << 16  # states of the steps that eliminate a group: where there are more, a junction tree is faster
INTERPRETED = 2e-4  # seconds that a cell of the rows takes longer with interpreted loops
MOST_OF_ALL = 1 << 25  # cells of all groups together: 128 MB


class FlatTables:
    """The tables of a network's nodes, one after the other in one array.

    Parameters
    ----------
    graph : Graph
        The network, all of whose nodes are categorical.
    sizes : mapping of str to int
        The number of values of every node.

    """

    def __init__(self, graph: Graph, sizes: Mapping[str, int]) -> None:
        self.names = list(graph.nodes)
        self.shapes = [tuple(sizes[p] for p in (*graph.parents[name], name)) for name in self.names]
        self.offset: Places = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes)]).astype(np.int64)
        place = {name: i for i, name in enumerate(self.names)}
        scopes = [[place[v] for v in (*graph.parents[name], name)] for name in self.names]
        member = np.array([v for scope in scopes for v in scope], np.int64)
        family = np.repeat(np.arange(len(scopes)), [len(scope) for scope in scopes])
        by_node = np.argsort(member, kind="stable")
        self.arrays = (
            _ends([len(scope) for scope in scopes]), member, np.concatenate([strides(shape) for shape in self.shapes]),
            self.offset, _ends(np.bincount(member, minlength=len(scopes))), family[by_node],
            np.array([sizes[name] for name in self.names], np.int64),
        )  # fmt: skip
        own = np.array([shape[-1] for shape in self.shapes], np.int64)
        self.lengths = np.repeat(own, np.diff(self.offset) // own)  # number of values in each configuration of the parents
        self._first = np.cumsum(self.lengths) - self.lengths
        self._uniform: Array = 1.0 / np.repeat(self.lengths, self.lengths)

    def flat(self, tables: Mapping[str, Array]) -> Array:
        """All tables as one array."""
        return np.concatenate([np.broadcast_to(tables[n], s).reshape(-1) for n, s in zip(self.names, self.shapes, strict=True)])

    def tables(self, flat: Array) -> dict[str, Array]:
        """The tables by name."""
        parts = zip(self.names, self.shapes, self.offset[:-1], self.offset[1:], strict=True)
        return {name: flat[a:b].reshape(shape) for name, shape, a, b in parts}

    def pseudocounts(self, smoothing: Mapping[str, Any]) -> Array:
        """The pseudocount of every cell."""
        shapes = zip(self.names, self.shapes, strict=True)
        return self.flat({name: pseudocounts(np.empty(shape), smoothing[name]) for name, shape in shapes})

    def conditional(self, counts: Array) -> Array:
        """Counts, with pseudocounts, as probabilities given the parents; uniform where a configuration has none.

        The same formula as `table_of`, over all tables at once: a round of EM over small tables is mostly the cost of calls.
        """
        total = np.repeat(np.add.reduceat(counts, self._first), self.lengths)
        made: Array = np.divide(counts, total, out=self._uniform.copy(), where=total > 0)
        return made


class MissingGroups:
    """The rows of a table for the E-step: counts of complete families, and distinct groups of missing cells.

    Parameters
    ----------
    rows : Rows
        The rows; all nodes are categorical.
    layout : FlatTables
        Where each cell of the tables stands.

    Attributes
    ----------
    rest : Rows
        Rows with groups too large to be listed.

    """

    def __init__(self, rows: Rows, layout: FlatTables) -> None:
        place = {c.name: i for i, c in enumerate(rows.columns)}
        codes = np.ascontiguousarray(rows.codes[[place[name] for name in layout.names]].T, dtype=np.int32)
        self.complete, left = np.zeros(int(layout.offset[-1])), np.zeros(rows.n, np.bool_)
        kernels = (group_missing, list_steps, expect_steps)
        compiled = worth_compiling(INTERPRETED * codes.size, *kernels)
        group, steps, self._expect = (kernel.fast if compiled else kernel for kernel in kernels)
        most = np.array([MOST_OF_GROUP, MOST_OF_ALL])
        keys, start, self.weight = group(codes, rows.each_weight(), layout.arrays, most, self.complete, left)
        self.lists = steps(keys, start, layout.arrays)
        self.rest = rows.take(np.flatnonzero(left))

    def expected(self, theta: Array) -> tuple[Array, float]:
        """Expected counts of all cells, and the log-likelihood, without the rows of `rest`."""
        counts, evidence = self.complete.copy(), np.zeros(len(self.weight))
        self._expect(*self.lists, self.weight, theta, counts, evidence)
        some = self.complete > 0
        with np.errstate(divide="ignore"):
            return counts, float(self.complete[some] @ np.log(theta[some]) + self.weight @ evidence)


def _ends(lengths: Any) -> Places:
    return np.cumsum([0, *lengths]).astype(np.int64)
