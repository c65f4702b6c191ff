"""Expected counts of a network's tables where cells are missing, group by group of missing cells.

Missing cells of a row form a group where they share tables. Given what is observed, groups are independent, and rows agree in
most of them: each distinct group is stored once, with its weight, as the places of the cells of the tables that it touches,
a line for each state of its missing cells. Families without a missing cell are counted once and for all.

`tables` are flat arrays: family i has the nodes member[first[i]:first[i + 1]] with their `stride` in its table, which begins
at offset[i]; node v occurs in the families family[touched[v]:touched[v + 1]]; card[v] is its number of values.
"""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import ComposedKernel, Kernel, piece

BUCKETS = 2147483647  # a prime below 2^31: products of two smaller numbers fit into 64 bits


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
    """Where a family's table holds the values of a row; the first value stands for a missing one."""
    first, member, stride, offset = tables[0], tables[1], tables[2], tables[3]
    place = offset[f]
    for m in range(first[f], first[f + 1]):
        if row[member[m]] > 0:
            place += row[member[m]] * stride[m]
    return place


@piece
def find(key, size, keys, start, bucket):  # type: ignore[no-untyped-def]
    """The bucket that holds a group with the same key, or the empty one where it belongs."""
    number = 0
    for i in range(size):
        number = (number * 1000003 + key[i]) % BUCKETS
    b = number % bucket.shape[0]
    while bucket[b] >= 0:
        g = bucket[b]
        same = start[g + 1] - start[g] == size
        i = 0
        while same and i < size:
            same = keys[start[g] + i] == key[i]
            i += 1
        if same:
            break
        b = (b + 1) % bucket.shape[0]
    return b


@piece
def longer(array, least):  # type: ignore[no-untyped-def]
    """An array with at least so many elements: the same one, or one of twice the length with the same content."""
    if least <= array.shape[0]:
        return array
    made = np.zeros(max(2 * array.shape[0], least), array.dtype)
    made[: array.shape[0]] = array
    return made


@piece
def keyed(row, tables, room, begin, end, key):  # type: ignore[no-untyped-def]
    """The key of a group: its missing nodes, and the places of its families; returns its length and its number of cells."""
    card, found_nodes, found_families = tables[6], room[2], room[3]
    size, cells = 0, 1
    for i in range(begin[0], end[0]):
        key[size] = found_nodes[i]
        cells = min(cells * card[found_nodes[i]], BUCKETS)
        size += 1
    key[size] = -1
    size += 1
    for i in range(begin[1], end[1]):
        key[size] = place_of(row, found_families[i], tables)
        size += 1
    return size, cells * (end[1] - begin[1])


@ComposedKernel
def group_missing(codes, weights, tables, most, counts, rest):  # type: ignore[no-untyped-def]
    """The distinct groups of missing cells of all rows: keys, where each key begins, and weights.

    Complete families are added to `counts`. A row is marked in `rest`, and left out of both, where a group has more than
    most[0] cells, or where the groups would have more than most[1] in all.
    """
    rows, n = codes.shape
    room = (np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n, np.int64), np.zeros(n, np.int64))
    ends = np.zeros((n + 1, 2), np.int64)
    key = np.zeros(2 * n + 1, np.int64)
    keys, start, weight = np.zeros(1024, np.int64), np.zeros(257, np.int64), np.zeros(256)
    bucket = np.full(1024, -1, np.int64)
    number, total = 0, 0
    for r in range(rows):
        room[0][:] = False
        room[1][:] = False
        groups = 0
        widest = 0
        for v in range(n):
            if codes[r, v] < 0 and not room[0][v]:
                ends[groups + 1] = explore(codes[r], v, tables, room, ends[groups, 0], ends[groups, 1])
                widest = max(widest, keyed(codes[r], tables, room, ends[groups], ends[groups + 1], key)[1])
                groups += 1
        if widest > most[0] or total > most[1]:
            rest[r] = True
            continue
        for f in range(n):
            if not room[1][f]:
                counts[place_of(codes[r], f, tables)] += weights[r]
        for g in range(groups):
            size, cells = keyed(codes[r], tables, room, ends[g], ends[g + 1], key)
            b = find(key, size, keys, start, bucket)
            if bucket[b] < 0:
                bucket[b] = number
                keys, start, weight = longer(keys, start[number] + size), longer(start, number + 2), longer(weight, number + 1)
                keys[start[number] : start[number] + size] = key[:size]
                start[number + 1] = start[number] + size
                number += 1
                total += cells
                if 2 * number > bucket.shape[0]:
                    bucket = rehashed(keys, start, number)
                    b = find(key, size, keys, start, bucket)
            weight[bucket[b]] += weights[r]
    return keys[: start[number]], start[: number + 1], weight[:number]


@piece
def rehashed(keys, start, number):  # type: ignore[no-untyped-def]
    """The buckets of all groups so far, four for each."""
    bucket = np.full(4 * number, -1, np.int64)
    for g in range(number):
        key = keys[start[g] : start[g + 1]]
        bucket[find(key, key.shape[0], keys, start, bucket)] = g
    return bucket


@ComposedKernel
def list_cells(keys, start, tables, families, index, begin):  # type: ignore[no-untyped-def]
    """The places of the cells of each group: a line for each state of its missing nodes, a place for each family it touches.

    Writes the number of families of each group, and where its lines begin; `index` is filled if it has room for all.
    """
    card = tables[6]
    state = np.zeros(card.shape[0], np.int64)
    for g in range(start.shape[0] - 1):
        key = keys[start[g] : start[g + 1]]
        k, states = 0, 1
        while key[k] >= 0:
            states *= card[key[k]]
            state[key[k]] = 0
            k += 1
        wide = key.shape[0] - k - 1
        families[g] = wide
        begin[g + 1] = begin[g] + states * wide
        if index.shape[0] == 0:
            continue
        for i in range(wide):
            index[begin[g] + i] = key[k + 1 + i]
        for s in range(1, states):
            line = begin[g] + s * wide
            index[line : line + wide] = index[line - wide : line]
            j = k - 1
            while True:
                v = key[j]
                step = 1 if state[v] + 1 < card[v] else -state[v]
                state[v] += step
                shift(v, step, tables, key[k + 1 :], index[line : line + wide])
                if step == 1:
                    break
                j -= 1


@piece
def shift(v, step, tables, at, line):  # type: ignore[no-untyped-def]
    """Move the places of a line by a step of node v, in those families that it belongs to."""
    first, member, stride, offset, touched, family = tables[:6]
    for t in range(touched[v], touched[v + 1]):
        f = family[t]
        low = offset[f]
        high = offset[f + 1]
        for i in range(line.shape[0]):
            if low <= at[i] < high:
                for m in range(first[f], first[f + 1]):
                    if member[m] == v:
                        line[i] += step * stride[m]


@Kernel
def expect_groups(index, begin, families, weight, logs, counts, evidence):  # type: ignore[no-untyped-def]
    """Add the expected counts of all groups to the flat tables, given the logs of the parameters; their log evidence."""
    widest = 1
    for g in range(weight.shape[0]):
        widest = max(widest, (begin[g + 1] - begin[g]) // families[g])
    share = np.zeros(widest)
    for g in range(weight.shape[0]):
        wide = families[g]
        states = (begin[g + 1] - begin[g]) // wide
        top = -np.inf
        for s in range(states):
            line = begin[g] + s * wide
            log = 0.0
            for i in range(wide):
                log += logs[index[line + i]]
            share[s] = log
            top = max(top, log)
        evidence[g] = top
        if top == -np.inf:
            continue
        total = 0.0
        for s in range(states):
            share[s] = np.exp(share[s] - top)
            total += share[s]
        evidence[g] = top + np.log(total)
        for s in range(states):
            line = begin[g] + s * wide
            for i in range(wide):
                counts[index[line + i]] += weight[g] * share[s] / total
