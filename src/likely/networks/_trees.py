"""Structures from pairwise scores: Chow–Liu trees, tree-augmented naive Bayes (TAN) and K-dependence classifiers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likely.networks._scores import FamilyScores

Array = NDArray[np.float64]


def gains(scores: FamilyScores, nodes: Sequence[int], given: Sequence[int]) -> Array:
    """What each node as a parent of each other adds to its score beside the given parents (parent × child).

    With the log-likelihood as the score this is the number of rows times the (conditional) mutual information.
    """
    base = tuple(sorted(given))
    pairs = [(a, b) for a in nodes for b in nodes if a != b]
    alone = dict(zip(nodes, scores([(b, base) for b in nodes]), strict=True))
    both = scores([(b, tuple(sorted((*base, a)))) for a, b in pairs])
    size = len(scores.sizes)
    found = np.full((size, size), -np.inf)
    for (a, b), score in zip(pairs, both, strict=True):
        found[a, b] = score - alone[b]
    return found


def spanning_tree(scores: FamilyScores, nodes: Sequence[int], given: Sequence[int], root: int | None) -> list[set[int]]:
    """The parents of each node in the tree that gains most (Chow and Liu); arcs that gain nothing are left out.

    Numeric nodes cannot be parents of categorical ones: the categorical nodes come first, then the numeric ones are
    attached. Both steps are maximum spanning trees, which is the best that the restriction allows.
    """
    found = gains(scores, nodes, given)
    parents: list[set[int]] = [set() for _ in scores.sizes]
    discrete = [v for v in nodes if not scores.numeric[v]]
    numeric = [v for v in nodes if scores.numeric[v]]
    done: list[int] = []
    for part in (discrete, numeric):
        left = set(part)
        while left:
            best = max(((found[a, b], a, b) for a in done for b in left), default=(-np.inf, -1, -1))
            if best[0] > 1e-9:
                node = best[2]
                parents[node].add(best[1])
            else:  # a new tree begins: at the wanted root, or at the node with the strongest arcs
                node = root if root in left and root is not None else max(left, key=lambda v: (found[v].max(), -v))
            left.discard(node)
            done.append(node)
    return parents


def k_dependence(scores: FamilyScores, target: int, k: int) -> list[set[int]]:
    """Each column has the class and at most k other columns as parents, chosen by conditional mutual information (Sahami)."""
    size = len(scores.sizes)
    nodes = [v for v in range(size) if v != target]
    single = scores([(v, ()) for v in nodes])
    informed = dict(zip(nodes, scores([(v, (target,)) for v in nodes]) - single, strict=True))
    pairwise = gains(scores, nodes, [target])
    order = sorted(nodes, key=lambda v: (scores.numeric[v], -informed[v], v))  # numbers last: they have no categorical children
    parents: list[set[int]] = [set() for _ in range(size)]
    for place, node in enumerate(order):
        ranked = sorted(order[:place], key=lambda a: (-pairwise[a, node], a))
        parents[node] = {target, *(a for a in ranked[:k] if pairwise[a, node] > 1e-9)}
    return parents
