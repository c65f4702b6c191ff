"""Pieces of the loops over a junction tree: evidence entered, messages sent up, cells walked through in order."""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import piece


@piece
def scratch(tree):  # type: ignore[no-untyped-def]
    """Scratch arrays for one row: its possible cells by clique, as few nested loops; beliefs of all cells; messages.

    Neighbouring unobserved variables are one loop. Of each clique: number of values and steps in the clique and in its
    separator of each loop (`own`), and the same seen from its parent (`ups`).
    """
    card, first, var, stride, sep, above, upfirst, up, cell, mcell, inner = tree
    cliques = above.shape[0]
    wide = 1
    for c in range(cliques):
        wide = max(wide, first[c + 1] - first[c])
    starts = np.zeros((7, cliques), np.int64)  # cell, message cell, the same from the parent; loops, outer, inner; loops above
    own = np.zeros((3, var.shape[0] + 1), np.int64)
    ups = np.zeros((3, up.shape[0] + 1), np.int64)
    count = np.zeros(wide, np.int64)
    return starts, own, ups, count, np.zeros(cell[cliques]), np.zeros(mcell[cliques])


@piece
def move(count, loops, start, n, at, mat):  # type: ignore[no-untyped-def]
    """The next cell that the evidence allows, in the clique and in a separator, by the first n loops."""
    k = n - 1
    while k >= 0:
        count[k] += 1
        at += loops[1, start + k]
        mat += loops[2, start + k]
        if count[k] < loops[0, start + k]:
            break
        at -= loops[1, start + k] * count[k]
        mat -= loops[2, start + k] * count[k]
        count[k] = 0
        k -= 1
    return at, mat


@piece
def look(row, c, tree, room):  # type: ignore[no-untyped-def]
    """Offset of the first cell of clique c that the row allows, and the loops over these cells."""
    card, first, var, stride, sep, above, upfirst, up, cell, mcell, inner = tree
    starts, own, ups, count, belief, message = room
    base = cell[c]
    mbase = mcell[c]
    outer = 1
    rest = 1
    begin = first[c]
    n = begin
    last = -2
    for k in range(begin, first[c + 1]):
        v = row[var[k]]
        if v >= 0:
            base += stride[k] * v
            mbase += sep[k] * v
            continue
        size = card[var[k]]
        if k == last + 1 and own[2, n - 1] == sep[k] * size and (k < inner[c] or last >= inner[c]):
            own[0, n - 1] *= size
            own[1, n - 1] = stride[k]
            own[2, n - 1] = sep[k]
        else:
            own[0, n] = size
            own[1, n] = stride[k]
            own[2, n] = sep[k]
            n += 1
        last = k
        if k < inner[c]:
            outer *= size
        else:
            rest *= size
    starts[0, c] = base
    starts[1, c] = mbase
    starts[3, c] = n - begin
    starts[4, c] = outer
    starts[5, c] = rest
    for k in range(n - begin):
        count[k] = 0


@piece
def look_up(row, c, tree, room):  # type: ignore[no-untyped-def]
    """The loops over the cells of a clique's parent, with their steps in the separator between the two."""
    card, first, var, stride, sep, above, upfirst, up, cell, mcell, inner = tree
    starts, own, ups, count, belief, message = room
    p = above[c]
    pbase = mcell[c]
    begin = upfirst[c]
    n = begin
    last = -2
    for k in range(first[p], first[p + 1]):
        v = row[var[k]]
        step = up[begin + k - first[p]]
        if v >= 0:
            pbase += step * v
            continue
        size = card[var[k]]
        if k == last + 1 and ups[2, n - 1] == step * size:
            ups[0, n - 1] *= size
            ups[1, n - 1] = stride[k]
            ups[2, n - 1] = step
        else:
            ups[0, n] = size
            ups[1, n] = stride[k]
            ups[2, n] = step
            n += 1
        last = k
    starts[2, c] = pbase
    starts[6, c] = n - begin


@piece
def enter(row, soft, tree, phi, room):  # type: ignore[no-untyped-def]
    """Set beliefs to the potentials of the cells that a row allows, times the likelihoods of its soft evidence, if any."""
    above, first = tree[5], tree[1]
    starts, own, ups, count, belief, message = room
    for c in range(above.shape[0]):
        look(row, c, tree, room)
        if above[c] >= 0:
            look_up(row, c, tree, room)
        at = starts[0, c]
        n = starts[3, c]
        size = own[0, first[c] + n - 1] if n > 0 else 1
        step = own[1, first[c] + n - 1] if n > 0 else 1
        for _ in range(starts[4, c] * starts[5, c] // size):
            for t in range(at, at + size * step, step):
                belief[t] = phi[t] * soft[t] if soft.shape[0] > 0 else phi[t]
            at, _x = move(count, own, first[c], n - 1, at, 0)


@piece
def absorb(c, p, tree, room, scale):  # type: ignore[no-untyped-def]
    """Multiply the message of clique c into its parent p."""
    begin = tree[6][c]
    starts, own, ups, count, belief, message = room
    at, mat = starts[0, p], starts[2, c]
    n = starts[6, c]
    size = ups[0, begin + n - 1] if n > 0 else 1
    step = ups[1, begin + n - 1] if n > 0 else 1
    mstep = ups[2, begin + n - 1] if n > 0 else 0
    for _ in range(starts[4, p] * starts[5, p] // size):
        if mstep == 0:
            factor = message[mat] * scale
            for t in range(at, at + size * step, step):
                belief[t] *= factor
        else:
            m = mat
            for t in range(at, at + size * step, step):
                belief[t] *= message[m] * scale
                m += mstep
        at, mat = move(count, ups, begin, n - 1, at, mat)


@piece
def collect_row(tree, room, best):  # type: ignore[no-untyped-def]
    """Send all messages to the root, as sums or, where `best`, as maxima; the log evidence, and the root's scale."""
    above, first = tree[5], tree[1]
    starts, own, ups, count, belief, message = room
    log_evidence = 0.0
    scale = 1.0
    for c in range(above.shape[0]):
        at, mat = starts[0, c], starts[1, c]
        n = starts[3, c]
        rest = starts[5, c]
        inside = 1 if rest > 1 else 0  # the innermost loop lies within one cell of the separator
        size = own[0, first[c] + n - 1] if inside else 1
        step = own[1, first[c] + n - 1] if inside else 1
        total = 0.0
        for _ in range(starts[4, c]):
            here = mat
            part = 0.0
            for _ in range(rest // size):
                if best:
                    for t in range(at, at + size * step, step):
                        part = max(part, belief[t])
                else:
                    for t in range(at, at + size * step, step):
                        part += belief[t]
                at, mat = move(count, own, first[c], n - inside, at, mat)
            message[here] = part
            total = max(total, part) if best else total + part
        if not total > 0.0:
            return -np.inf, scale
        log_evidence += np.log(total)
        scale = 1.0 / total
        if above[c] >= 0:
            absorb(c, above[c], tree, room, scale)
    return log_evidence, scale


@piece
def distribute(c, p, tree, room, fresh):  # type: ignore[no-untyped-def]
    """The message that the parent p of clique c sends back: its beliefs summed over all but the separator."""
    begin = tree[6][c]
    first = tree[1]
    starts, own, ups, count, belief, message = room
    at, mat = starts[0, c], starts[1, c]
    for _ in range(starts[4, c]):
        fresh[mat] = 0.0
        for _ in range(starts[5, c]):
            at, mat = move(count, own, first[c], starts[3, c], at, mat)
    at, mat = starts[0, p], starts[2, c]
    n = starts[6, c]
    size = ups[0, begin + n - 1] if n > 0 else 1
    step = ups[1, begin + n - 1] if n > 0 else 1
    mstep = ups[2, begin + n - 1] if n > 0 else 0
    for _ in range(starts[4, p] * starts[5, p] // size):
        m = mat
        for t in range(at, at + size * step, step):
            fresh[m] += belief[t]
            m += mstep
        at, mat = move(count, ups, begin, n - 1, at, mat)
