"""The order in which variables are eliminated: the best of several, by the cells of all tables that it makes."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Sequence

FEW_CELLS = 1 << 18  # in all: no other order would save much
RANDOM_ORDERS = 8
Neighbours = dict[int, set[int]]


def best_order(scopes: Iterable[Iterable[int]], sizes: Sequence[int], which: Iterable[int]) -> list[int]:
    """The order of some variables whose tables have the fewest cells in all.

    Tried are the greedy orders by the smallest table and by the fewest pairs added and, where both make large tables, sweeps
    through the graph and greedy orders that draw among ties.
    """
    graph = neighbours(scopes)
    wanted = set(which)
    for v in wanted:
        graph.setdefault(v, set())
    found = [_greedy(graph, sizes, wanted, fill) for fill in (False, True)]
    best, cells = min(found, key=lambda each: each[1])
    if cells <= FEW_CELLS:
        return best
    for order in _sweeps(graph, wanted):
        if (spent := _cells(graph, sizes, order, cells)) < cells:
            best, cells = order, spent
    rng = random.Random(0)  # noqa: S311 - draws among ties
    for _ in range(RANDOM_ORDERS):
        order, spent = _greedy(graph, sizes, wanted, True, rng, most=cells)
        if spent < cells:
            best, cells = order, spent
    return best


def neighbours(scopes: Iterable[Iterable[int]]) -> Neighbours:
    """The variables that share a scope with each."""
    graph: Neighbours = {}
    for scope in scopes:
        members = set(scope)
        for v in members:
            graph.setdefault(v, set()).update(members - {v})
    return graph


def _table(v: int, near: Iterable[int], sizes: Sequence[int]) -> float:
    return math.prod((float(sizes[u]) for u in near), start=float(sizes[v]))


def _greedy(
    graph: Neighbours,
    sizes: Sequence[int],
    which: set[int],
    fill: bool,
    rng: random.Random | None = None,
    *,
    most: float = math.inf,
) -> tuple[list[int], float]:
    """A greedy order, and the number of cells of all tables made on the way; it is given up when these are too many."""
    graph = {v: set(near) for v, near in graph.items()}
    ties = {v: float(v) if rng is None else rng.random() for v in which}

    def cost(v: int) -> tuple[float, float, float]:
        near = graph[v]
        if not fill:
            return (_table(v, near, sizes), len(near), ties[v])
        missing = sum(len(near - graph[u]) - 1 for u in near)
        return (missing, _table(v, near, sizes) if rng is None else 0.0, ties[v])

    costs = {v: cost(v) for v in which}
    heap = [(each, v) for v, each in costs.items()]
    heapq.heapify(heap)
    order, cells = [], 0.0
    while heap:
        known, v = heapq.heappop(heap)
        if costs.get(v) != known:  # it has changed since
            continue
        near = graph.pop(v)
        del costs[v]
        order.append(v)
        cells += _table(v, near, sizes)
        if cells >= most:
            return [], math.inf
        _join(graph, v, near)
        for u in near.union(*(graph[w] for w in near)) if fill else near:
            if u in costs and (new := cost(u)) != costs[u]:
                costs[u] = new
                heapq.heappush(heap, (new, u))
    return order, cells


def _cells(graph: Neighbours, sizes: Sequence[int], order: Sequence[int], most: float) -> float:
    """The cells of all tables that an order makes; infinite where they are more than `most`."""
    graph = {v: set(near) for v, near in graph.items()}
    cells = 0.0
    for v in order:
        near = graph.pop(v)
        cells += _table(v, near, sizes)
        if cells >= most:
            return math.inf
        _join(graph, v, near)
    return cells


def _join(graph: Neighbours, v: int, near: set[int]) -> None:
    """The graph without a variable, whose neighbours become neighbours of each other."""
    for u in near:
        graph[u].discard(v)
        graph[u] |= near - {u}


def _sweeps(graph: Neighbours, which: set[int]) -> Iterable[list[int]]:
    """Orders that sweep through the graph, forth and back: as the variables are numbered, and by Cuthill and McKee."""
    numbered = sorted(which)
    for order in (numbered, _levels(graph)):
        kept = [v for v in order if v in which]
        yield kept
        yield kept[::-1]


def _levels(graph: Neighbours) -> list[int]:
    """Breadth first through each part of the graph from one of its ends, neighbours of few neighbours first."""
    found: list[int] = []
    left = set(graph)
    while left:
        start = min(left, key=lambda v: (len(graph[v]), v))
        for _ in range(2):  # the last that is reached from anywhere lies at an end
            start = _breadth_first(graph, start)[-1]
        part = _breadth_first(graph, start)
        found += part
        left -= set(part)
    return found


def _breadth_first(graph: Neighbours, start: int) -> list[int]:
    order, seen = [start], {start}
    for v in order:
        for u in sorted(graph[v] - seen, key=lambda u: (len(graph[u]), u)):
            seen.add(u)
            order.append(u)
    return order
