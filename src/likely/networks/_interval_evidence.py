"""Evidence that a number lies in an interval: the node becomes one of two values, inside and outside.

P(low < x < high | parents) is a table over the categorical parents, once the numeric parents are observed. Where they are not,
or where something that is observed or asked for depends on the number itself, the answer would not be a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError
from likely.networks._inference import finite_number
from likely.networks.family_counts import categorical_parents, numeric_parents
from likely.networks.graph import Graph
from likely.networks.network_parameters import NetworkParameters
from likely.schema import CATEGORY, NUMBER, Column, is_missing

if TYPE_CHECKING:
    from likely.networks._queries import NetworkQueries

Array = NDArray[np.float64]
INSIDE, OUTSIDE = "inside", "outside"
Asked = tuple["NetworkQueries", Any]  # a network, and the evidence for it


def without_intervals(network: NetworkQueries, evidence: Any, targets: Sequence[str] = ()) -> Asked:
    """The network in which nodes known to lie in an interval have two values, and the evidence for it."""
    if not isinstance(evidence, Mapping):
        return network, evidence
    columns = network.columns
    intervals = {
        name: _interval(name, given) for name, given in evidence.items()
        if isinstance(given, (tuple, list)) and name in columns and columns[name].kind == NUMBER
    }  # fmt: skip
    if not intervals:
        return network, evidence
    _check_targets(intervals, targets)
    observed = {name for name, given in evidence.items() if name not in intervals and not _unknown(given)}
    wanted = {*observed, *intervals, *targets}
    kept = network.graph.ancestors(wanted) & set(network.nodes)
    nodes = tuple(n for n in network.nodes if n in kept)
    parents = {n: network.graph.parents[n] for n in nodes}
    tables, gaussians = dict(network.parameters.tables), dict(network.parameters.gaussians)
    changed = {name: columns[name] for name in nodes}
    for name, interval in intervals.items():
        _check_neighbours(network, name, nodes, observed)
        tables[name] = _table(network, name, interval, evidence)
        parents[name] = categorical_parents(network.graph, columns, name)
        changed[name] = Column(name, CATEGORY, (INSIDE, OUTSIDE))
        del gaussians[name]
    left: list[dict[str, Any]] = [{n: each for n, each in held.items() if n in kept} for held in (tables, gaussians)]
    made = type(network).from_parameters(Graph(nodes, parents), changed, NetworkParameters(*left))  # type: ignore[attr-defined]
    return made, {n: v for n, v in evidence.items() if n in kept} | dict.fromkeys(intervals, INSIDE)


def _interval(name: str, given: Sequence[Any]) -> tuple[float, float]:
    if len(given) != 2:
        raise DataError("which is no interval", column=name, value=given, remedy="give (low, high); None leaves an end open")
    ends = [end if is_missing(given[i]) or _infinite(given[i]) else finite_number(name, given[i])
            for i, end in enumerate((-math.inf, math.inf))]  # fmt: skip
    if not ends[0] < ends[1]:
        raise DataError("which is no interval", column=name, value=given, remedy="the first number is the smaller one")
    return ends[0], ends[1]


def _infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _unknown(given: Any) -> bool:
    return not isinstance(given, (Mapping, list, tuple, set, frozenset)) and is_missing(given)


def _check_targets(intervals: Mapping[str, Any], targets: Sequence[str]) -> None:
    twice = next((name for name in targets if name in intervals), None)
    if twice is not None:
        raise UsageError(f"node {twice!r} is asked for, and given as an interval: leave one of the two out")


def _check_neighbours(network: NetworkQueries, name: str, nodes: Sequence[str], observed: set[str]) -> None:
    """Refuse numeric parents that are not observed, and nodes that matter and depend on the number itself."""
    graph, columns = network.graph, network.columns
    free = next((p for p in numeric_parents(graph, columns, name) if p not in observed), None)
    child = next((n for n in nodes if name in graph.parents[n]), None)
    other = free if free is not None else child
    if other is not None:
        what = "is not given as a number" if other == free else "matters for the answer, and depends on its value"
        raise UsageError(
            f"node {name!r} is given as an interval, but {other!r} {what}: there is no exact answer",
            remedy=f"give {name!r} or {other!r} as a number, or learn with {name!r} cut into bins",
        )


def _table(network: NetworkQueries, name: str, interval: tuple[float, float], evidence: Mapping[str, Any]) -> Array:
    """P(inside), P(outside) for each configuration of the categorical parents."""
    gaussian = network.parameters.gaussians[name]
    numbers = np.array([finite_number(p, evidence[p]) for p in numeric_parents(network.graph, network.columns, name)], float)
    mean, deviation = gaussian.intercept + gaussian.slopes @ numbers, np.sqrt(gaussian.variance)
    with np.errstate(over="ignore"):
        low, high = ((end - mean) / deviation for end in interval)
    inside = np.vectorize(_mass, otypes=[float])(low, high)
    return np.stack([inside, 1 - inside], -1)


def _mass(low: float, high: float) -> float:
    """The probability of an interval under the standard normal; in the tail in which it lies, so that digits are kept."""
    if low > 0:
        low, high = -high, -low
    return 0.5 * (math.erfc(-high / math.sqrt(2)) - math.erfc(-low / math.sqrt(2)))
