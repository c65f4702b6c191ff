"""Belief propagation in a junction tree over integer codes, row by row, over the cells that the row allows.

A tree is a tuple of flat arrays. Clique c has the variables var[first[c]:first[c + 1]], those of its separator first (up to
inner[c]), with their strides in the clique (`stride`) and in its separator (`sep`, 0 where the separator lacks the
variable); `up` has the strides in that separator of the variables of the clique's parent, from upfirst[c] on. Cliques are
listed leaves first, the root last; above[c] is the parent. The cells of c start at cell[c] of the potentials `phi`, those of
its separator at mcell[c].

Beliefs, as in belief propagation, are the potentials times all incoming messages: unnormalised posteriors of the cells.
Numbers are probabilities; each message is scaled to sum to one, and the logs of the scales add up to the log evidence.
A row whose log evidence is -inf has probability zero, or one too small for the scales: elimination in logs decides which.
"""

from __future__ import annotations

import numpy as np

from likely.kernels._clique_passes import collect_row, distribute, enter, look, move, scratch
from likely.kernels.kernel import ComposedKernel


@ComposedKernel
def collect(rows, soft, tree, phi, target, out, evidence):  # type: ignore[no-untyped-def]
    """Log evidence of every row, and the distribution of a variable of the root clique.

    No distribution is wanted where `target` is -1; that of all cells of the root clique where it is -2. `soft` scales the
    potentials cell by cell, a line a row; without columns there is no soft evidence.
    """
    room = scratch(tree)
    starts, own, ups, count, belief, message = room
    card, first, var, cell = tree[0], tree[1], tree[2], tree[8]
    c = tree[5].shape[0] - 1
    for i in range(rows.shape[0]):
        enter(rows[i], soft[i], tree, phi, room)
        log_evidence, scale = collect_row(tree, room, False)
        evidence[i] = log_evidence
        if target == -1:
            continue
        for k in range(out.shape[1]):
            out[i, k] = 0.0
        if log_evidence == -np.inf:
            continue
        below = 0  # cells between neighbouring values of the target; 0 where it is observed
        for k in range(first[c], first[c + 1]):
            if rows[i, var[k]] < 0:
                below *= card[var[k]]
                if var[k] == target:
                    below = 1
        at = starts[0, c]
        for t in range(starts[4, c] * starts[5, c]):
            if target == -2:
                out[i, at - cell[c]] = belief[at] * scale
            else:
                value = t // below % card[target] if below > 0 else rows[i, target]
                out[i, value] += belief[at] * scale
            at, _x = move(count, own, first[c], starts[3, c], at, 0)


@ComposedKernel
def expect(rows, w, soft, tree, phi, counts, evidence):  # type: ignore[no-untyped-def]
    """Add to the cells of all cliques their expected counts, by collecting and distributing; log evidence of each row."""
    room = scratch(tree)
    starts, own, ups, count, belief, message = room
    first, above = tree[1], tree[5]
    fresh = np.zeros(message.shape[0])
    cliques = above.shape[0]
    for i in range(rows.shape[0]):
        enter(rows[i], soft[i], tree, phi, room)
        log_evidence, scale = collect_row(tree, room, False)
        evidence[i] = log_evidence
        if log_evidence == -np.inf:
            continue
        for c in range(cliques - 1, -1, -1):
            p = above[c]
            if p >= 0:
                distribute(c, p, tree, room, fresh)
            at, mat = starts[0, c], starts[1, c]
            for _ in range(starts[4, c] * starts[5, c]):
                if p >= 0:
                    belief[at] = belief[at] * (fresh[mat] / message[mat]) if message[mat] > 0.0 else 0.0
                else:
                    belief[at] *= scale
                counts[at] += w[i] * belief[at]
                at, mat = move(count, own, first[c], starts[3, c], at, mat)


@ComposedKernel
def assign(rows, soft, tree, phi, draws, evidence):  # type: ignore[no-untyped-def]
    """Fill in the missing cells of every row, in place: the most probable completion, or one drawn from the posterior.

    `draws` has a uniform number for each row and clique; without columns the most probable completion is wanted, and
    `evidence` is then the log probability of the completed row.
    """
    room = scratch(tree)
    starts, own, ups, count, belief, message = room
    card, first, var = tree[0], tree[1], tree[2]
    cliques = tree[5].shape[0]
    best = draws.shape[1] == 0
    for i in range(rows.shape[0]):
        enter(rows[i], soft[i], tree, phi, room)
        log_evidence, _s = collect_row(tree, room, best)
        evidence[i] = log_evidence
        if log_evidence == -np.inf:
            continue
        for c in range(cliques - 1, -1, -1):  # the root first: what it chooses is evidence for the cliques below it
            look(rows[i], c, tree, room)
            n = starts[3, c]
            if n == 0:
                continue
            cells = starts[4, c] * starts[5, c]
            wanted = 0.0
            at = starts[0, c]
            if not best:
                for _ in range(cells):
                    wanted += belief[at]
                    at, _x = move(count, own, first[c], n, at, 0)
                wanted *= draws[i, c]
            top = -1.0
            chosen = 0
            so_far = 0.0
            for t in range(cells):
                if best:
                    if belief[at] > top:
                        top = belief[at]
                        chosen = t
                elif belief[at] > 0.0 and so_far <= wanted:
                    chosen = t
                so_far += belief[at]
                at, _x = move(count, own, first[c], n, at, 0)
            for k in range(first[c + 1] - 1, first[c] - 1, -1):
                if rows[i, var[k]] < 0:
                    rows[i, var[k]] = chosen % card[var[k]]
                    chosen //= card[var[k]]
