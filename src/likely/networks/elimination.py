"""Variable elimination over tables of logs, and the order in which variables are eliminated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.networks.limits import check_clique

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Factor:
    """A table of logs with an axis for each variable of its scope."""

    scope: tuple[int, ...]
    logs: Array

    def reduced(self, evidence: Mapping[int, int]) -> Factor:
        """The part of the table that agrees with the evidence."""
        if not any(v in evidence for v in self.scope):
            return self
        at = tuple(evidence.get(v, slice(None)) for v in self.scope)
        return Factor(tuple(v for v in self.scope if v not in evidence), np.asarray(self.logs[at]))

    def over(self, scope: Sequence[int]) -> Array:
        """The table with the axes of another scope, of length one where this factor lacks the variable."""
        return aligned(self.logs, self.scope, scope)


def aligned(table: NDArray[Any], scope: Sequence[int], wide: Sequence[int]) -> NDArray[Any]:
    """A table with the axes of a wider scope, of length one where it lacks the variable."""
    axes = sorted(range(len(scope)), key=lambda k: wide.index(scope[k]))
    sizes = iter([table.shape[k] for k in axes])
    return table.transpose(axes).reshape([next(sizes) if v in scope else 1 for v in wide])


def product(factors: Sequence[Factor]) -> Factor:
    """The product of some factors: their logs add up."""
    scope = tuple(dict.fromkeys(v for factor in factors for v in factor.scope))
    total: Any = 0.0
    for factor in sorted(factors, key=lambda f: f.logs.size):
        total = total + factor.over(scope)
    return Factor(scope, np.asarray(total, dtype=np.float64))


def log_sum(logs: Array, axis: int | None = None) -> Any:
    """log Σ exp along an axis, or over the whole table."""
    if axis is None:
        logs, axis = logs.reshape(-1), 0
    peak = logs.max(axis, keepdims=True)
    safe = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore"):
        return np.squeeze(safe, axis) + np.log(np.exp(logs - safe).sum(axis))


def best_order(scopes: Iterable[Iterable[int]], sizes: Sequence[int], which: Iterable[int]) -> list[int]:
    """The better of the orders that always eliminate the smallest table, or the variable that adds the fewest pairs."""
    graph: dict[int, set[int]] = {}
    for scope in scopes:
        members = set(scope)
        for v in members:
            graph.setdefault(v, set()).update(members - {v})
    wanted = set(which)
    for v in wanted:
        graph.setdefault(v, set())
    tried = [_greedy({v: set(n) for v, n in graph.items()}, sizes, wanted, fill) for fill in (False, True)]
    return min(tried, key=lambda each: each[1])[0]


def _greedy(
    graph: dict[int, set[int]], sizes: Sequence[int], which: set[int], fill: bool
) -> tuple[list[int], float]:
    """A greedy order, and the number of cells of all tables made on the way."""

    def cost(v: int) -> tuple[float, float]:
        near = graph[v]
        weight = math.prod((float(sizes[u]) for u in near), start=float(sizes[v]))
        missing = sum(len(near - graph[u]) - 1 for u in near) if fill else 0
        return (missing, weight) if fill else (weight, len(near))

    costs = {v: cost(v) for v in which}
    order, cells = [], 0.0
    while costs:
        v = min(costs, key=lambda u: (costs[u], u))
        near = graph.pop(v)
        del costs[v]
        order.append(v)
        cells += math.prod((float(sizes[u]) for u in near), start=float(sizes[v]))
        for u in near:
            graph[u].discard(v)
            graph[u] |= near - {u}
        touched = {w for u in near for w in graph[u]} | near if fill else near
        costs.update({u: cost(u) for u in touched if u in costs})
    return order, cells


def eliminate(
    factors: Sequence[Factor],
    keep: Sequence[int],
    sizes: Sequence[int],
    names: Sequence[str],
    reduce: Callable[[Factor, int], Factor],
) -> Factor:
    """The product of the factors with every variable but `keep` eliminated, over the axes of `keep` in their order."""
    wanted = {v for factor in factors for v in factor.scope} - set(keep)
    order = best_order([f.scope for f in factors] + [tuple(keep)], sizes, wanted)
    for scope in _tables([set(f.scope) for f in factors], order, set(keep)):  # all, before the first is computed
        check_clique([names[u] for u in scope], math.prod(float(sizes[u]) for u in scope))
    left = list(factors)
    for v in order:
        touched = [f for f in left if v in f.scope]
        left = [f for f in left if v not in f.scope]
        left.append(reduce(product(touched), v))
    whole = product(left) if left else Factor((), np.zeros(()))
    return Factor(tuple(keep), np.broadcast_to(whole.over(keep), [sizes[v] for v in keep]).copy())


def _tables(scopes: list[set[int]], order: Sequence[int], keep: set[int]) -> Iterator[set[int]]:
    """The scope of every table that eliminating in this order makes."""
    for v in order:
        scope = set[int]().union(*(each for each in scopes if v in each))
        yield scope
        scopes = [*(each for each in scopes if v not in each), scope - {v}]
    yield keep


def sum_out(factor: Factor, v: int) -> Factor:
    """The factor summed over a variable."""
    axis = factor.scope.index(v)
    return Factor(factor.scope[:axis] + factor.scope[axis + 1 :], np.asarray(log_sum(factor.logs, axis)))


class MaxOut:
    """Maximum over a variable, keeping which value attains it, so that the best assignment can be traced back."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, tuple[int, ...], NDArray[Any]]] = []

    def __call__(self, factor: Factor, v: int) -> Factor:
        """The factor maximised over a variable."""
        axis = factor.scope.index(v)
        rest = factor.scope[:axis] + factor.scope[axis + 1 :]
        self.steps.append((v, rest, factor.logs.argmax(axis)))
        return Factor(rest, factor.logs.max(axis))

    def trace(self) -> dict[int, int]:
        """The assignment that attains the maximum."""
        chosen: dict[int, int] = {}
        for v, rest, best in reversed(self.steps):
            chosen[v] = int(best[tuple(chosen[u] for u in rest)])
        return chosen


class DrawOut:
    """Sum over a variable, keeping the table, so that assignments can be drawn from the product of the factors."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, tuple[int, ...], Array]] = []

    def __call__(self, factor: Factor, v: int) -> Factor:
        """The factor summed over a variable."""
        axis = factor.scope.index(v)
        rest = factor.scope[:axis] + factor.scope[axis + 1 :]
        peak = factor.logs.max(axis, keepdims=True)
        safe = np.where(np.isfinite(peak), peak, 0.0)
        ends = np.moveaxis(np.exp(factor.logs - safe), axis, -1).cumsum(-1)
        self.steps.append((v, rest, ends))
        with np.errstate(divide="ignore"):
            return Factor(rest, np.squeeze(safe, axis) + np.log(ends[..., -1]))

    def draw(self, n: int, rng: np.random.Generator) -> dict[int, NDArray[np.int64]]:
        """So many independent draws of the variables that were summed out, as codes."""
        drawn: dict[int, NDArray[np.int64]] = {}
        for v, rest, ends in reversed(self.steps):
            own = np.broadcast_to(ends[tuple(drawn[u] for u in rest)], (n, ends.shape[-1]))
            drawn[v] = (own[:, :-1] <= rng.random((n, 1)) * own[:, -1:]).sum(1)
        return drawn
