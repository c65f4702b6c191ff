"""The distinct groups of missing cells of a network's rows.

Missing cells of a row form a group where they share tables. Given what is observed, groups are independent, and rows agree in
most of them: each distinct group is stored once, with its weight. Families without a missing cell are counted once and for all.

`tables` are flat arrays: family i has the nodes member[first[i]:first[i + 1]] with their `stride` in its table, which begins
at offset[i]; node v occurs in the families family[touched[v]:touched[v + 1]]; card[v] is its number of values.
"""

from __future__ import annotations

import numpy as np

from likely.kernels._elimination_order import MANY, longer, ordered
from likely.kernels.kernel import ComposedKernel, piece

LOW = (1 << 39) - 1  # what is kept of a hash: its product with the multiplier fits into 64 bits
MOST_NODES = 64  # of a group
FEW_STATES = 1 << 10  # of all nodes together: not worth a look at how many the steps of the elimination have


@piece
def explore(row, v, tables, room, nodes, families):  # type: ignore[no-untyped-def]
    """The group of the missing cell v, appended to the nodes and families of the row's groups."""
    first, member, touched, family = tables[0], tables[1], tables[4], tables[5]
    node_seen, family_seen, found_nodes, found_families = room
    at = nodes
    found_nodes[nodes] = v
    node_seen[v] = True
    nodes += 1
    while at < nodes:
        u = found_nodes[at]
        at += 1
        for t in range(touched[u], touched[u + 1]):
            f = family[t]
            if family_seen[f]:
                continue
            family_seen[f] = True
            found_families[families] = f
            families += 1
            for m in range(first[f], first[f + 1]):
                if row[member[m]] < 0 and not node_seen[member[m]]:
                    node_seen[member[m]] = True
                    found_nodes[nodes] = member[m]
                    nodes += 1
    return nodes, families


@piece
def place_of(row, f, tables):  # type: ignore[no-untyped-def]
    """Index of a row's cell in the table of a family; a missing value counts as the first one."""
    first, member, stride, offset = tables[0], tables[1], tables[2], tables[3]
    place = offset[f]
    for m in range(first[f], first[f + 1]):
        if row[member[m]] > 0:
            place += row[member[m]] * stride[m]
    return place


@piece
def find(key, size, keys, start, bucket):  # type: ignore[no-untyped-def]
    """The bucket of the group with the same key, or the empty bucket for it."""
    number = 0
    for i in range(size):
        number = (number * 1000003 + key[i]) & LOW
    b = (number ^ (number >> 17)) & (bucket.shape[0] - 1)
    while bucket[b] >= 0:
        g = bucket[b]
        same = start[g + 1] - start[g] == size
        i = 0
        while same and i < size:
            same = keys[start[g] + i] == key[i]
            i += 1
        if same:
            break
        b = (b + 1) & (bucket.shape[0] - 1)
    return b


@piece
def keyed(row, tables, room, begin, end, key):  # type: ignore[no-untyped-def]
    """The key of a group: its missing nodes, and the cell indexes of its families; returns length and number of states."""
    card, found_nodes, found_families = tables[6], room[2], room[3]
    size, cells = 0, 1
    for i in range(begin[0], end[0]):
        key[size] = found_nodes[i]
        cells = min(cells * card[found_nodes[i]], MANY)
        size += 1
    key[size] = -1
    size += 1
    for i in range(begin[1], end[1]):
        key[size] = place_of(row, found_families[i], tables)
        size += 1
    return size, cells


@piece
def states_of(key, tables, local):  # type: ignore[no-untyped-def]
    """The states of all steps that eliminate the nodes of a group."""
    spans, wide = ordered(key, tables, local)[1:]
    cells = 0
    for step in range(wide.shape[0]):
        size = 1
        for i in range(wide[step]):
            size = min(size * tables[6][key[spans[step, i]]], MANY)
        cells += size
    return min(cells, MANY)


@piece
def groups_of(row, tables, room, work):  # type: ignore[no-untyped-def]
    """The keys of a row's groups, one after the other; returns their number, the most states of one, and the cells of all."""
    local, ends, key, stop = work
    room[0][:] = False
    room[1][:] = False
    groups, widest, listed = 0, 0, 0
    for v in range(row.shape[0]):
        if row[v] < 0 and not room[0][v]:
            ends[groups + 1] = explore(row, v, tables, room, ends[groups, 0], ends[groups, 1])
            begin = stop[groups]
            size, states = keyed(row, tables, room, ends[groups], ends[groups + 1], key[begin:])
            stop[groups + 1] = begin + size
            if states > FEW_STATES and ends[groups + 1, 0] - ends[groups, 0] <= MOST_NODES:
                states = states_of(key[begin:], tables, local)
            widest = max(widest, states)
            listed += states * (ends[groups + 1, 1] - ends[groups, 1])
            groups += 1
    return groups, widest, listed


@ComposedKernel
def group_missing(codes, weights, tables, most, counts, rest):  # type: ignore[no-untyped-def]
    """The distinct groups of missing cells of all rows: keys, where each key begins, and weights.

    Complete families are added to `counts`. A row is marked in `rest`, and left out of both, where the steps that eliminate a
    group have more than most[0] states, or where the groups would have more than most[1] cells in all.
    """
    rows, n = codes.shape
    room = (np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n, np.int64), np.zeros(n, np.int64))
    local = np.full(n, -1, np.int64)
    ends = np.zeros((n + 1, 2), np.int64)
    key, stop = np.zeros(3 * n + 1, np.int64), np.zeros(n + 1, np.int64)
    keys, start, weight = np.zeros(1024, np.int64), np.zeros(257, np.int64), np.zeros(256)
    bucket = np.full(1024, -1, np.int64)
    number, total = 0, 0
    for r in range(rows):
        groups, widest, listed = groups_of(codes[r], tables, room, (local, ends, key, stop))
        if widest > most[0] or total + listed > most[1]:
            rest[r] = True
            continue
        for f in range(n):
            if not room[1][f]:
                counts[place_of(codes[r], f, tables)] += weights[r]
        for g in range(groups):
            own = key[stop[g] : stop[g + 1]]
            b = find(own, own.shape[0], keys, start, bucket)
            if bucket[b] < 0:
                bucket[b] = number
                end = start[number] + own.shape[0]
                keys, start, weight = longer(keys, end), longer(start, number + 2), longer(weight, number + 1)
                keys[start[number] : end] = own
                start[number + 1] = end
                number += 1
                total += listed // groups
                if 2 * number > bucket.shape[0]:
                    bucket = rehashed(keys, start, number, 2 * bucket.shape[0])
                    b = find(own, own.shape[0], keys, start, bucket)
            weight[bucket[b]] += weights[r]
    return keys[: start[number]], start[: number + 1], weight[:number]


@piece
def rehashed(keys, start, number, size):  # type: ignore[no-untyped-def]
    """So many buckets, a power of two, with all groups so far."""
    bucket = np.full(size, -1, np.int64)
    for g in range(number):
        key = keys[start[g] : start[g + 1]]
        bucket[find(key, key.shape[0], keys, start, bucket)] = g
    return bucket
