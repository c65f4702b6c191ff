"""The best change of one arc of a directed acyclic graph, over plain arrays (parent × child)."""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import Kernel


@Kernel
def best_move(toggle, arcs, until, step, max_parents):  # type: ignore[no-untyped-def]
    """Parent and child of the change that gains most, whether it turns the arc round (1 or 0), and the gain.

    `toggle` is what adding an arc gains, or removing it where it is there; -inf where that is not allowed. No change may
    make a cycle or give a node more than `max_parents` parents; pairs with until > step are left alone.
    """
    n = arcs.shape[0]
    paths = arcs.copy()
    for k in range(n):  # Warshall
        for i in range(n):
            if paths[i, k]:
                for j in range(n):
                    if paths[k, j]:
                        paths[i, j] = True
    count = np.zeros(n, np.int64)
    for i in range(n):
        for j in range(n):
            if arcs[i, j]:
                count[j] += 1
    best, parent, child = -np.inf, 0, 0
    turned, tail, head = -np.inf, 0, 0
    for i in range(n):
        for j in range(n):
            gain = toggle[i, j]
            if gain == -np.inf or until[i, j] > step:
                continue
            if arcs[i, j]:
                both = gain + toggle[j, i]
                if both > turned and count[i] < max_parents:
                    roundabout = False
                    for k in range(n):
                        if arcs[i, k] and paths[k, j]:
                            roundabout = True
                            break
                    if not roundabout:
                        turned, tail, head = both, i, j
            elif paths[j, i] or count[j] >= max_parents:
                continue
            if gain > best:
                best, parent, child = gain, i, j
    if turned > best:
        return tail, head, 1, turned
    return parent, child, 0, best
