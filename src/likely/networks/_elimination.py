"""Variable elimination over tables of logs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likely.networks._elimination_steps import best_order
from likely.networks._limits import check_clique

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Factor:
    """A table of logs with an axis for each variable of its scope.

    `fresh` tells that nothing else holds the table, so that it may be overwritten: it may be as large as memory allows.
    """

    scope: tuple[int, ...]
    logs: Array
    fresh: bool = False

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
    if len(factors) == 1:
        return factors[0]
    ranked = sorted(factors, key=lambda f: -f.logs.size)  # the largest first: its axes stay as they lie in memory
    scope = tuple(dict.fromkeys(v for factor in ranked for v in factor.scope))
    sizes = {v: n for factor in factors for v, n in zip(factor.scope, factor.logs.shape, strict=True)}
    total = np.empty([sizes[v] for v in scope])
    total[...] = ranked[0].over(scope)
    for factor in ranked[1:]:
        total += factor.over(scope)
    return Factor(scope, total, fresh=True)


def log_sum(logs: Array, axis: int | None = None, overwrite: bool = False) -> Any:
    """log Σ exp along an axis, or over the whole table, which may be overwritten."""
    if axis is None:
        logs, axis = logs.reshape(-1), 0
    peak = logs.max(axis, keepdims=True)
    safe = np.where(np.isfinite(peak), peak, 0.0)
    shares = np.subtract(logs, safe, out=logs if overwrite else None)
    np.exp(shares, out=shares)
    with np.errstate(divide="ignore"):
        return np.squeeze(safe, axis) + np.log(shares.sum(axis))


class Reduce(Protocol):
    """How a variable is eliminated from a table."""

    kept: float  # bytes that are kept for each cell of the table, until all variables are eliminated

    def __call__(self, factor: Factor, v: int, /) -> Factor:
        """The factor without the variable."""


@dataclass(frozen=True)
class Steps:
    """Variables in the order in which they are eliminated, the scope of each table on the way, and those that are left."""

    order: Sequence[int]
    tables: Sequence[set[int]]
    left: Sequence[set[int]]

    def check(self, sizes: Sequence[int], names: Sequence[str], kept: float = 0.0) -> None:
        """Refuse what does not fit into memory, before the first table is computed."""
        cells = [math.prod(float(sizes[u]) for u in scope) for scope in self.tables]
        if cells:
            largest = max(range(len(cells)), key=cells.__getitem__)
            check_clique([names[u] for u in sorted(self.tables[largest])], cells[largest], sum(cells), kept)


def steps_of(scopes: Iterable[Iterable[int]], which: Iterable[int], sizes: Sequence[int], keep: Sequence[int] = ()) -> Steps:
    """In which order some variables are best eliminated; `keep` are those that the last table is to have."""
    left = [set(scope) for scope in scopes]
    order = best_order([*left, set(keep)], sizes, which)
    holding: dict[int, set[int]] = {}
    for i, scope in enumerate(left):
        for u in scope:
            holding.setdefault(u, set()).add(i)
    tables = []
    for v in order:
        touched = holding.pop(v, set())
        table = set[int]().union(*(left[i] for i in touched))
        tables.append(table)
        for u in table - {v}:
            holding[u] = (holding[u] - touched) | {len(left)}
        for i in touched:
            left[i] = set()
        left.append(table - {v})
    return Steps(order, tables, [scope for scope in left if scope])


def eliminate(
    factors: Sequence[Factor], keep: Sequence[int], sizes: Sequence[int], names: Sequence[str], reduce: Reduce
) -> Factor:
    """The product of the factors with every variable but `keep` eliminated, over the axes of `keep` in their order."""
    wanted = {v for factor in factors for v in factor.scope} - set(keep)
    steps = steps_of([f.scope for f in factors], wanted, sizes, keep)
    Steps(steps.order, [*steps.tables, set(keep)], ()).check(sizes, names, reduce.kept)
    left = reduced(factors, steps.order, reduce)
    whole = product(left) if left else Factor((), np.zeros(()))
    return Factor(tuple(keep), np.broadcast_to(whole.over(keep), [sizes[v] for v in keep]).copy())


def reduced(factors: Sequence[Factor], order: Sequence[int], reduce: Reduce) -> list[Factor]:
    """The factors with some variables eliminated one after the other, as separate factors."""
    left: dict[int, Factor] = dict(enumerate(factors))
    holding: dict[int, set[int]] = {}
    for i, factor in left.items():
        for u in factor.scope:
            holding.setdefault(u, set()).add(i)
    number = len(left)
    for v in order:
        touched = [(i, left.pop(i)) for i in sorted(holding.pop(v, ()))]
        for i, factor in touched:
            for u in factor.scope:
                if u != v:
                    holding[u].discard(i)
        made = reduce(product([factor for _, factor in touched]), v)
        for u in made.scope:
            holding[u].add(number)
        left[number] = made
        number += 1
    return list(left.values())


class SumOut:
    """Sum over a variable; nothing is kept."""

    kept = 0.0

    def __call__(self, factor: Factor, v: int) -> Factor:
        """The factor summed over a variable."""
        axis = factor.scope.index(v)
        return Factor(factor.scope[:axis] + factor.scope[axis + 1 :], np.asarray(log_sum(factor.logs, axis, factor.fresh)))


sum_out = SumOut()


class MaxOut:
    """Maximum over a variable, keeping which value attains it, so that the best assignment can be traced back."""

    kept = 1.0

    def __init__(self) -> None:
        self.steps: list[tuple[int, tuple[int, ...], NDArray[Any]]] = []

    def __call__(self, factor: Factor, v: int) -> Factor:
        """The factor maximised over a variable."""
        axis = factor.scope.index(v)
        rest = factor.scope[:axis] + factor.scope[axis + 1 :]
        best = factor.logs.argmax(axis)
        self.steps.append((v, rest, best.astype(np.min_scalar_type(factor.logs.shape[axis]))))  # as narrow as they may be
        return Factor(rest, factor.logs.max(axis))

    def trace(self) -> dict[int, int]:
        """The assignment that attains the maximum."""
        chosen: dict[int, int] = {}
        for v, rest, best in reversed(self.steps):
            chosen[v] = int(best[tuple(chosen[u] for u in rest)])
        return chosen


class DrawOut:
    """Sum over a variable, keeping the table, so that assignments can be drawn from the product of the factors."""

    kept = 8.0

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
