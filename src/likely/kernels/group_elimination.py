"""Expected counts of a network's tables where cells are missing: the missing nodes of each group are eliminated one by one.

The order of elimination, and the places of all cells that a step multiplies, are listed once (`list_steps`); a round of EM
sums messages forwards and spreads probabilities backwards along these lists (`expect_steps`). `tables` and the keys of groups
are those of `missing_groups`.
"""

from __future__ import annotations

import numpy as np

from likely.kernels._elimination_order import longer, ordered
from likely.kernels.kernel import ComposedKernel, piece

LEAST = 1e-200  # a smaller probability of a group is computed anew in logs, where no product underflows


@piece
def factors(key, tables, local, plan):  # type: ignore[no-untyped-def]
    """For each family: offset of its first cell, stride of each missing node in its table, and the step that uses it."""
    first, member, stride, offset = tables[:4]
    step_of = plan[0]
    k = step_of.shape[0]
    number = key.shape[0] - k - 1
    moves, step = np.zeros((number, k), np.int64), np.full(number, k, np.int64)
    for i in range(k):
        local[key[i]] = i
    for i in range(number):
        f = np.searchsorted(offset, key[k + 1 + i], side="right") - 1
        for m in range(first[f], first[f + 1]):
            j = local[member[m]]
            if j >= 0:
                moves[i, j] += stride[m]
                step[i] = min(step[i], step_of[j])
    for i in range(k):
        local[key[i]] = -1
    return moves, step


@piece
def separators(key, card, plan):  # type: ignore[no-untyped-def]
    """For the message of each step: its length, stride of each node, and the step that uses it (none: -1)."""
    step_of, spans, wide = plan
    k = step_of.shape[0]
    length, moves, taker = np.ones(k, np.int64), np.zeros((k, k), np.int64), np.full(k, -1, np.int64)
    for step in range(k):
        for i in range(wide[step] - 2, -1, -1):
            j = spans[step, i]
            moves[step, j] = length[step]
            length[step] *= card[key[j]]
            if taker[step] < 0 or step_of[j] < taker[step]:
                taker[step] = step_of[j]
    return length, moves, taker


@ComposedKernel
def list_steps(keys, start, tables):  # type: ignore[no-untyped-def]
    """Factors of the elimination of each group: cell indexes, steps, and the offset of each group's steps.

    A step has a line of places for each state of the nodes it spans: first those of cells of tables, then those of messages
    of earlier steps. Its numbers: where its lines begin, states, values of the node it eliminates, cells and messages in a
    line, and the place of its own message.
    """
    card = tables[6]
    local = np.full(card.shape[0], -1, np.int64)
    index, filled = np.zeros(4096, np.int32), 0
    steps, begin = np.zeros((256, 6), np.int64), np.zeros(start.shape[0], np.int64)
    for g in range(start.shape[0] - 1):
        key = keys[start[g] : start[g + 1]]
        plan = ordered(key, tables, local)
        step_of, spans, wide = plan
        k = step_of.shape[0]
        moves, owner = factors(key, tables, local, plan)
        length, shifts, taker = separators(key, card, plan)
        at, move = np.zeros(key.shape[0], np.int64), np.zeros((key.shape[0], k), np.int64)
        if begin[g] + k > steps.shape[0]:
            more = np.zeros((2 * (begin[g] + k), 6), np.int64)
            more[: begin[g]] = steps[: begin[g]]
            steps = more
        out = 0
        for step in range(k):
            cells, messages, before = 0, 0, 0
            for i in range(owner.shape[0]):
                if owner[i] == step:
                    at[cells] = key[k + 1 + i]
                    move[cells] = moves[i]
                    cells += 1
            for i in range(step):
                if taker[i] == step:
                    at[cells + messages] = before
                    move[cells + messages] = shifts[i]
                    messages += 1
                before += length[i]
            line = cells + messages
            states = length[step] * card[key[spans[step, wide[step] - 1]]]
            index = longer(index, filled + states * line)
            fill(index[filled : filled + states * line], at[:line], move, spans[step, : wide[step]], key, card)
            numbers = steps[begin[g] + step]
            numbers[0], numbers[1], numbers[2] = filled, states, states // length[step]
            numbers[3], numbers[4], numbers[5] = cells, messages, out
            filled += states * line
            out += length[step]
        begin[g + 1] = begin[g] + k
    return index[:filled], steps[: begin[-1]], begin


@piece
def fill(lines, at, move, span, key, card):  # type: ignore[no-untyped-def]
    """The cell indexes of a step, a row for each state of its nodes; the last node changes fastest."""
    width, w = at.shape[0], span.shape[0]
    state = np.zeros(w, np.int64)
    for line in range(0, lines.shape[0], max(width, 1)):
        for i in range(width):
            lines[line + i] = at[i]
        j = w - 1
        while j >= 0:
            last = state[j] + 1 == card[key[span[j]]]
            by = -state[j] if last else 1
            state[j] += by
            for i in range(width):
                at[i] += by * move[i, span[j]]
            j = j - 1 if last else -1


@piece
def forwards(index, steps, theta, room):  # type: ignore[no-untyped-def]
    """The messages of a group's steps as probabilities; returns the last, the probability of what is observed."""
    share, total, outer = room[0], room[2], room[3]
    at, out = 0, 0
    for t in range(steps.shape[0]):
        line, values, cells, out = steps[t, 0], steps[t, 2], steps[t, 3], steps[t, 5]
        width = cells + steps[t, 4]
        for b in range(out, out + steps[t, 1] // values):
            whole = 0.0
            for s in range(at, at + values):
                p = 1.0
                for i in range(line, line + cells):
                    p *= theta[index[i]]
                for i in range(line + cells, line + width):
                    p *= total[index[i]]
                share[s] = p
                whole += p
                line += width
            total[b], outer[b] = whole, 0.0
            at += values
    return total[out]


@piece
def forwards_in_logs(index, steps, theta, room):  # type: ignore[no-untyped-def]
    """The same with logs of the messages, and shares of each state that have a scale of their own; returns the log."""
    share, message, total, outer = room
    at, out = 0, 0
    for t in range(steps.shape[0]):
        line, values, cells, out = steps[t, 0], steps[t, 2], steps[t, 3], steps[t, 5]
        width = cells + steps[t, 4]
        for b in range(out, out + steps[t, 1] // values):
            top = -np.inf
            for s in range(at, at + values):
                log = 0.0
                for i in range(line, line + cells):
                    log += np.log(theta[index[i]]) if theta[index[i]] > 0 else -np.inf
                for i in range(line + cells, line + width):
                    log += message[index[i]]
                share[s] = log
                top = max(top, log)
                line += width
            total[b], outer[b], message[b] = 0.0, 0.0, top
            if top > -np.inf:
                for s in range(at, at + values):
                    share[s] = np.exp(share[s] - top)
                    total[b] += share[s]
                message[b] += np.log(total[b])
            at += values
    return message[out]


@piece
def backwards(index, steps, weight, counts, room):  # type: ignore[no-untyped-def]
    """Spread the weight of a group over the states of its steps, from the last to the first; add it to the counts."""
    share, total, outer = room[0], room[2], room[3]
    outer[steps[-1, 5]] = weight
    at = 0
    for t in range(steps.shape[0]):
        at += steps[t, 1]
    for t in range(steps.shape[0] - 1, -1, -1):
        values, cells, out = steps[t, 2], steps[t, 3], steps[t, 5]
        width = cells + steps[t, 4]
        at -= steps[t, 1]
        for b in range(steps[t, 1] // values):
            if outer[out + b] == 0.0:
                continue
            scale = outer[out + b] / total[out + b]
            line = steps[t, 0] + b * values * width
            for s in range(at + b * values, at + (b + 1) * values):
                p = scale * share[s]
                for i in range(line, line + cells):
                    counts[index[i]] += p
                for i in range(line + cells, line + width):
                    outer[index[i]] += p
                line += width


@ComposedKernel
def expect_steps(index, steps, begin, weight, theta, counts, evidence):  # type: ignore[no-untyped-def]
    """Add the expected counts of all groups to the flat tables, given the parameters; the log evidence of each."""
    states, longest = 1, 1
    for g in range(weight.shape[0]):
        own = 0
        for t in range(begin[g], begin[g + 1]):
            own += steps[t, 1]
            longest = max(longest, steps[t, 5] + steps[t, 1] // steps[t, 2])
        states = max(states, own)
    room = (np.zeros(states), np.zeros(longest), np.zeros(longest), np.zeros(longest))
    for g in range(weight.shape[0]):
        own_steps = steps[begin[g] : begin[g + 1]]
        p = forwards(index, own_steps, theta, room)
        evidence[g] = np.log(p) if p > LEAST else forwards_in_logs(index, own_steps, theta, room)
        if evidence[g] > -np.inf:
            backwards(index, own_steps, weight[g], counts, room)
