"""Sufficient statistics of a network: a table of counts N_ijk for each categorical node, moments for each numeric one.

Counts add: the tally of two tables is the sum of their tallies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, ForgetError
from likely.kernels.contingency_counts import count_family, count_group
from likely.kernels.parallel import cached_property, in_parallel
from likely.networks._limits import check_family
from likely.networks.graph import Graph
from likely.networks.rows import Rows
from likely.schema import CATEGORY, NUMBER, Column

Array = NDArray[np.float64]
MOST_GROUPED = 1 << 12  # cells of a joint table of several families: two copies of it fit into the first-level cache


@dataclass(frozen=True)
class LinearMoments:
    """Weight, mean and scatter of a numeric node and its numeric parents, for each configuration of the categorical ones.

    Parameters
    ----------
    n : array, configurations
        The weight of the rows.
    mean : array, configurations × m
        Means of the numeric parents and, last, of the node.
    scatter : array, configurations × m × m
        Summed products of deviations from the means.

    """

    n: Array
    mean: Array
    scatter: Array

    def __add__(self, other: LinearMoments) -> LinearMoments:
        total = self.n + other.n
        part = np.divide(other.n, total, out=np.zeros_like(total), where=total > 0)
        apart = other.mean - self.mean
        between = apart[..., :, None] * apart[..., None, :] * (self.n * part)[..., None, None]
        return LinearMoments(total, self.mean + part[..., None] * apart, self.scatter + other.scatter + between)

    def __sub__(self, other: LinearMoments) -> LinearMoments:
        left = self.n - other.n
        some = left > 0
        safe = np.where(some, left, 1.0)
        mean = (self.n[..., None] * self.mean - other.n[..., None] * other.mean) / safe[..., None]
        apart = other.mean - mean
        share = left * other.n / np.where(self.n > 0, self.n, 1)
        between = apart[..., :, None] * apart[..., None, :] * share[..., None, None]
        scatter = self.scatter - other.scatter - between
        new, old = (np.diagonal(each, axis1=-2, axis2=-1) for each in (scatter, self.scatter))
        if (new < -1e-6 * old - 1e-12)[some].any():
            raise ForgetError("these numbers were not counted: without them a variance would be negative")
        return LinearMoments(np.where(some, left, 0.0), np.where(some[..., None], mean, 0.0),
                       np.where(some[..., None, None], scatter, 0.0))  # fmt: skip

    def spread(self, places: Sequence[NDArray[Any]], shape: tuple[int, ...]) -> LinearMoments:
        """The same moments in a larger table of configurations."""
        m = self.mean.shape[-1]
        made = LinearMoments(np.zeros(shape), np.zeros((*shape, m)), np.zeros((*shape, m, m)))
        at = np.ix_(*places)
        made.n[at], made.mean[at], made.scatter[at] = self.n, self.mean, self.scatter
        return made


@dataclass(frozen=True)
class NetworkTally:
    """The counts of a network; probabilities are derived from them.

    Parameters
    ----------
    graph : Graph
        The arcs.
    columns : mapping of str to Column
        The kind and the values of every node.
    tables : mapping of str to array
        Counts of each categorical node, with an axis for each parent and, last, one for the node.
    moments : mapping of str to LinearMoments
        LinearMoments of each numeric node.
    rows : float
        The weight of the rows counted.
    expected : bool
        Whether cells were missing or nodes hidden, so that counts are expectations under the parameters that EM found.

    """

    graph: Graph
    columns: Mapping[str, Column]
    tables: Mapping[str, Array]
    moments: Mapping[str, LinearMoments] = field(default_factory=dict)
    rows: float = 0.0
    expected: bool = False

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The number of values of every categorical node."""
        return {name: len(c.values) for name, c in self.columns.items() if c.kind == CATEGORY}

    def __add__(self, other: NetworkTally) -> NetworkTally:
        if self.graph != other.graph:
            raise DataError("the two networks have different arcs: only networks of one structure can be added up")
        columns = {name: column.union(other.columns[name]) for name, column in self.columns.items()}
        one, two = self.within(columns), other.within(columns)
        return replace(
            one, tables={name: table + two.tables[name] for name, table in one.tables.items()},
            moments={name: each + two.moments[name] for name, each in one.moments.items()},
            rows=one.rows + two.rows, expected=one.expected or two.expected,
        )  # fmt: skip

    def __sub__(self, other: NetworkTally) -> NetworkTally:
        if self.graph != other.graph or self.expected or other.expected:
            raise ForgetError("only complete rows that were counted under the same arcs can be forgotten")
        two = other.within(self.columns)
        tables = {name: table - two.tables[name] for name, table in self.tables.items()}
        for name, table in tables.items():
            if table.min() < -1e-9:
                raise ForgetError(f"rows that were never counted cannot be forgotten: node {name!r} would have a count below 0")
        moments = {name: each - two.moments[name] for name, each in self.moments.items()}
        tables = {name: np.where(table > 1e-9, table, 0.0) for name, table in tables.items()}
        return replace(self, tables=tables, moments=moments, rows=self.rows - two.rows)

    def within(self, columns: Mapping[str, Column]) -> NetworkTally:
        """The same counts over columns that may have more values."""
        if all(columns[name].values == column.values for name, column in self.columns.items()):
            return replace(self, columns=columns)
        sizes = {name: len(c.values) for name, c in columns.items() if c.kind == CATEGORY}
        place = {name: np.array(columns[name].codes(c.values), np.int64) for name, c in self.columns.items()}
        tables = {}
        for name, table in self.tables.items():
            family = (*self.graph.parents[name], name)
            check_family(name, self.graph.parents[name], sizes)
            larger = np.zeros([sizes[each] for each in family])
            larger[np.ix_(*(place[each] for each in family))] = table
            tables[name] = larger
        moments = {}
        for name, each in self.moments.items():
            parents = categorical_parents(self.graph, columns, name)
            shape = tuple(sizes[p] for p in parents)
            moments[name] = each.spread([place[p] for p in parents], shape) if parents else each
        return replace(self, columns=columns, tables=tables, moments=moments)


def categorical_parents(graph: Graph, columns: Mapping[str, Column], node: str) -> tuple[str, ...]:
    """The parents of a node that hold categories."""
    return tuple(p for p in graph.parents[node] if columns[p].kind == CATEGORY)


def numeric_parents(graph: Graph, columns: Mapping[str, Column], node: str) -> tuple[str, ...]:
    """The parents of a node that hold numbers."""
    return tuple(p for p in graph.parents[node] if columns[p].kind == NUMBER)


def check_graph(graph: Graph, columns: Mapping[str, Column]) -> None:
    """Refuse graphs that cannot be counted: a categorical node with a numeric parent, a table larger than memory."""
    sizes = {name: len(c.values) for name, c in columns.items() if c.kind == CATEGORY}
    for node in graph.nodes:
        parents = graph.parents[node]
        if columns[node].kind == CATEGORY:
            numeric = next((p for p in parents if columns[p].kind == NUMBER), None)
            if numeric is not None:
                raise DataError(
                    f"node {node!r} holds categories and its parent {numeric!r} numbers, which no table can hold",
                    remedy=f"turn the arc round, or cut {numeric!r} into bins, or declare kinds={{{numeric!r}: 'categorical'}}",
                )
            check_family(node, parents, sizes)
        else:
            some = [p for p in parents if p in sizes]
            check_family(node, some, sizes | {node: (1 + len(parents) - len(some)) ** 2})


@dataclass
class _Group:
    """Families that are counted together, in the joint table of all their members."""

    members: list[str]
    cells: int
    families: list[tuple[str, ...]]

    def marginal(self, table: Array, family: tuple[str, ...]) -> Array:
        """The table of a family, summed out of the joint table."""
        others = tuple(i for i, name in enumerate(self.members) if name not in family)
        kept = [name for name in self.members if name in family]
        return np.ascontiguousarray(table.sum(others).transpose([kept.index(name) for name in family]))


def _grouped(families: Sequence[tuple[str, ...]], sizes: Mapping[str, int], most: int) -> list[_Group]:
    """Families joined while their joint table stays small: a row is then counted once for all of them.

    Each family joins the group whose table grows least by it.
    """
    groups: list[_Group] = []
    for family in sorted(families, key=lambda each: -math.prod(sizes[name] for name in each)):
        def growth(group: _Group, family: tuple[str, ...] = family) -> int:
            return math.prod(sizes[name] for name in family if name not in group.members)

        best = min((g for g in groups if g.cells * growth(g) <= most), key=growth, default=None)
        if best is None:
            groups.append(_Group(list(family), math.prod(sizes[name] for name in family), [family]))
        else:
            best.cells *= growth(best)
            best.members += [name for name in family if name not in best.members]
            best.families.append(family)
    return groups


def count_rows(rows: Rows, graph: Graph) -> NetworkTally:
    """Count complete families of the rows; a family in which a cell is missing does not count the row."""
    columns = {c.name: c for c in rows.columns}
    check_graph(graph, columns)
    place = {c.name: i for i, c in enumerate(rows.columns)}

    def table(family: tuple[str, ...]) -> Array:
        shape = [len(columns[each].values) for each in family]
        out = np.zeros(shape)
        members = np.array([place[each] for each in family], np.int64)
        count_family(rows.codes, members, strides(shape), rows.weights, out.reshape(-1))
        return out

    def tables_of(group: _Group) -> list[Array]:
        if len(group.families) > 1:
            out = np.zeros([len(columns[each].values) for each in group.members])
            members = np.array([place[each] for each in group.members], np.int64)
            if count_group(rows.codes, members, np.array(out.shape, np.int64), out.reshape(-1)):
                return [group.marginal(out, family) for family in group.families]
        return [table(family) for family in group.families]

    families = [(*graph.parents[node], node) for node in graph.nodes if columns[node].kind == CATEGORY]
    most = 0 if len(rows.weights) else min(MOST_GROUPED, rows.n // 16)
    groups = _grouped(families, {name: len(c.values) for name, c in columns.items()}, most)
    found = in_parallel(tables_of, groups)
    counted = {f[-1]: each for group, tables in zip(groups, found, strict=True)
               for f, each in zip(group.families, tables, strict=True)}  # fmt: skip
    tables = {family[-1]: counted[family[-1]] for family in families}
    moments = {node: count_moments(rows, graph, node, rows.each_weight()) for node in graph.nodes if node not in tables}
    return NetworkTally(graph, columns, tables, moments, rows.total)


def strides(shape: Sequence[int]) -> NDArray[np.int64]:
    """Strides: distance between neighbours along each axis of a table in C order."""
    return np.array([math.prod(shape[i + 1 :]) for i in range(len(shape))], np.int64)


def count_moments(rows: Rows, graph: Graph, node: str, weights: Array) -> LinearMoments:
    """The moments of a numeric node in each configuration of its categorical parents."""
    columns = {c.name: c for c in rows.columns}
    place = {c.name: i for i, c in enumerate(rows.columns)}
    parents = categorical_parents(graph, columns, node)
    shape = tuple(len(columns[p].values) for p in parents)
    x = rows.numbers[[rows.numeric[each] for each in (*numeric_parents(graph, columns, node), node)]].T
    usable = ~np.isnan(x).any(1)
    where = np.zeros(rows.n, np.int64)
    for parent, step in zip(parents, strides(shape), strict=True):
        codes = rows.codes[place[parent]]
        usable &= codes >= 0
        where += int(step) * codes.astype(np.int64)
    return grouped_moments(x[usable], where[usable], weights[usable], shape)


def grouped_moments(x: Array, where: NDArray[np.int64], weights: Array, shape: tuple[int, ...]) -> LinearMoments:
    """Weight, mean and scatter of rows in each group, by two passes: deviations are taken from the group's mean."""
    cells, m = int(np.prod(shape)), x.shape[1]
    n = np.bincount(where, weights, minlength=cells).astype(np.float64)
    safe = np.where(n > 0, n, 1.0)
    shift = x[0] if len(x) else np.zeros(m)  # sums of small deviations keep the digits that sums of large numbers lose
    mean = np.stack([np.bincount(where, weights * (x[:, j] - shift[j]), minlength=cells) / safe for j in range(m)], -1)
    mean = np.where((n > 0)[:, None], mean + shift, 0.0)
    apart = x - mean[where]
    scatter = np.zeros((cells, m, m))
    for j in range(m):
        for k in range(j + 1):
            scatter[:, j, k] = scatter[:, k, j] = np.bincount(where, weights * apart[:, j] * apart[:, k], minlength=cells)
    return LinearMoments(n.reshape(shape), mean.reshape(*shape, m), scatter.reshape(*shape, m, m))
