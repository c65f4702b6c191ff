"""Pieces of the loops over groups of missing cells: in which order the missing nodes are eliminated."""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import piece

MANY = 1 << 31  # products of numbers of values stop growing here


@piece
def longer(array, least):  # type: ignore[no-untyped-def]
    """An array with at least so many elements: the same one, or one of twice the length with the same content."""
    if least <= array.shape[0]:
        return array
    made = np.zeros(max(2 * array.shape[0], least), array.dtype)
    made[: array.shape[0]] = array
    return made


@piece
def neighbours(key, tables, local):  # type: ignore[no-untyped-def]
    """Which missing nodes of a group occur together in a family; `local` has -1 for every node, before and after."""
    first, member, touched, family = tables[0], tables[1], tables[4], tables[5]
    k = 0
    while key[k] >= 0:
        local[key[k]] = k
        k += 1
    beside = np.zeros((k, k), np.bool_)
    for i in range(k):
        for t in range(touched[key[i]], touched[key[i] + 1]):
            for m in range(first[family[t]], first[family[t] + 1]):
                if local[member[m]] >= 0:
                    beside[i, local[member[m]]] = True
    for i in range(k):
        local[key[i]] = -1
    return beside


@piece
def smallest(beside, step_of, key, card):  # type: ignore[no-untyped-def]
    """The node whose elimination needs the smallest table, of those that are left."""
    best, least = -1, 0
    for i in range(step_of.shape[0]):
        if step_of[i] < 0:
            size = 1
            for j in range(step_of.shape[0]):
                if beside[i, j] and step_of[j] < 0:
                    size = min(size * card[key[j]], MANY)
            if best < 0 or size < least:
                best, least = i, size
    return best


@piece
def ordered(key, tables, local):  # type: ignore[no-untyped-def]
    """The nodes of a group in the order in which they are eliminated: step of each node, and what the tables of the steps span.

    The last node that a step spans is the one it eliminates.
    """
    beside = neighbours(key, tables, local)
    k = beside.shape[0]
    step_of, spans, wide = np.full(k, -1, np.int64), np.zeros((k, k), np.int64), np.zeros(k, np.int64)
    for step in range(k):
        out = smallest(beside, step_of, key, tables[6])
        step_of[out] = step
        for j in range(k):
            if beside[out, j] and step_of[j] < 0:
                spans[step, wide[step]] = j
                wide[step] += 1
        for a in range(wide[step]):
            for b in range(wide[step]):
                beside[spans[step, a], spans[step, b]] = True
        spans[step, wide[step]] = out
        wide[step] += 1
    return step_of, spans, wide
