"""Strength of the arcs of a network: the information a parent adds about its child beyond the other parents, in nats a row."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likely.errors import LikelyError
from likely.networks.family_counts import LinearMoments, categorical_parents, numeric_parents
from likely.schema import CATEGORY

if TYPE_CHECKING:
    from likely.networks.network import Network

Array = NDArray[np.float64]
MOST_CELLS = 1 << 16  # of a family whose joint distribution is asked for where nothing was counted


def arc_strengths(network: Network) -> dict[tuple[str, str], float | None]:
    """Conditional mutual information of parent and child, given the other parents.

    From what the network has counted; of a network with given tables, from the joint distribution of each family. None where
    that is too large, or a numeric node has counted nothing.
    """
    found: dict[tuple[str, str], float | None] = {}
    for node in network.nodes:
        parents = network.graph.parents[node]
        if not parents:
            continue
        if network.columns[node].kind == CATEGORY:
            joint = _joint(network, node)
            found |= {(p, node): None if joint is None else _information(joint, i) for i, p in enumerate(parents)}
        else:
            found |= {(p, node): _explained(network, node, p) for p in parents}
    return found


def _joint(network: Network, node: str) -> Array | None:
    """The joint distribution of a family: an axis for each parent, the last for the node."""
    if network.tally is not None:
        counts = network.tally.tables[node]
        return counts / counts.sum() if counts.sum() > 0 else None
    table = network.parameters.tables[node]
    if table.size > MOST_CELLS:
        return None
    parents = network.graph.parents[node]
    try:
        asked = network.query(list(parents) if len(parents) > 1 else parents[0])
    except LikelyError:  # a clique of the network is too large
        return None
    shape = table.shape[:-1]
    return np.asarray(np.array(list(asked.values()), dtype=float).reshape(shape)[..., None] * table)


def _information(joint: Array, axis: int) -> float:
    """Σ P log P(x, y, z) P(z) / (P(x, z) P(y, z)) for the parent x of one axis and the node y, the last."""
    both = joint.sum((axis, -1), keepdims=True)
    parent, child = joint.sum(-1, keepdims=True), joint.sum(axis, keepdims=True)
    ratio = np.divide(joint * both, parent * child, out=np.ones_like(joint), where=joint > 0)
    return max(float((joint * np.log(ratio)).sum()), 0.0)


def _explained(network: Network, node: str, parent: str) -> float | None:
    """Loss of log-likelihood a row of a linear Gaussian without one of its parents."""
    if network.tally is None:
        return None
    moments, columns, graph = network.tally.moments[node], network.columns, network.graph
    categories, numbers = categorical_parents(graph, columns, node), numeric_parents(graph, columns, node)
    if parent in categories:
        axis = categories.index(parent)
        parts = [LinearMoments(*(np.take(part, i, axis) for part in (moments.n, moments.mean, moments.scatter)))
                 for i in range(moments.n.shape[axis])]  # fmt: skip
        fewer = reduce(lambda one, other: one + other, parts)
    else:
        kept = [i for i in range(len(numbers) + 1) if i != numbers.index(parent)]
        fewer = LinearMoments(moments.n, moments.mean[..., kept], moments.scatter[..., kept, :][..., kept])
    whole = float(moments.n.sum())
    return max((_log_spread(fewer) - _log_spread(moments)) / whole, 0.0) if whole > 0 else None


def _log_spread(moments: LinearMoments) -> float:
    """½ Σ n log(residual variance) over the configurations; a variance is at least a billionth of that of all rows."""
    m = moments.mean.shape[-1]
    n, scatter = moments.n.reshape(-1), moments.scatter.reshape(-1, m, m)
    inner, across = scatter[:, :-1, :-1], scatter[:, :-1, -1:]
    explained = np.einsum("jab,jac->jbc", across, np.linalg.pinv(inner, hermitian=True) @ across)[:, 0, 0]
    left = np.maximum(scatter[:, -1, -1] - explained, 0.0)
    least = 1e-9 * max(float(scatter[:, -1, -1].sum()), 1e-300) / max(float(n.sum()), 1e-300)
    variance = np.maximum(np.divide(left, n, out=np.ones_like(left), where=n > 0), least)
    return float((0.5 * n * np.log(variance)).sum())
