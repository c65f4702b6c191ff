"""L-BFGS minimisation of a smooth function within bounds.

Not SciPy's, which would be the heaviest run-time dependency, for one call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objective = Callable[[Array], tuple[float, Array]]
Pair = tuple[Array, Array]  # a step, and the difference of the gradients at its ends

MEMORY = 10  # pairs of steps and gradient differences that are kept


def minimise(
    objective: Objective,
    start: Array,
    lower: Array,
    upper: Array,
    *,
    iterations: int = 100,
    tolerance: float = 1e-7,
    precision: float = 1e-12,
) -> tuple[Array, float]:
    """Minimise within bounds by L-BFGS with projected steps; returns the minimiser and the value.

    Variables at a bound whose gradient points outwards are fixed; the others move along the quasi-Newton direction, projected
    onto the bounds, with a backtracking line search.

    `objective` returns value and gradient. It stops after `iterations`, when the largest component of the projected gradient
    is below `tolerance`, when the value falls by less than a thousandth of it, relatively, or when a quasi-Newton step promises
    less than `precision`, the relative rounding error of the value: no line search can tell such a fall from noise.
    """
    x = np.clip(start, lower, upper)
    value, gradient = objective(x)
    history: list[Pair] = []
    for _ in range(iterations):
        fixed = ((x <= lower) & (gradient > 0)) | ((x >= upper) & (gradient < 0))
        free = np.where(fixed, 0.0, gradient)
        if np.abs(free).max(initial=0.0) < tolerance:
            break
        step = np.where(fixed, 0.0, -_direction(free, history, fixed))
        if step @ free > -1e-12 * np.linalg.norm(step) * np.linalg.norm(free):
            step, history = -free, []
        if history and -float(step @ free) <= precision * abs(value):
            break
        moved = _search(objective, x, value, gradient, step, lower=lower, upper=upper, first=not history)
        if moved is None:
            if not history:
                break
            history = []  # the kept curvature gave no descent: restart with the gradient
            continue
        new, new_value, new_gradient = moved
        done = value - new_value < tolerance * 1e-3 * max(abs(value), 1e-12)
        history = _updated(history, new - x, new_gradient - gradient)
        x, value, gradient = new, new_value, new_gradient
        if done:
            break
    return x, value


def _direction(gradient: Array, history: list[Pair], fixed: NDArray[np.bool_]) -> Array:
    """Inverse Hessian times gradient over the free variables."""
    pairs = [(np.where(fixed, 0.0, s), np.where(fixed, 0.0, y)) for s, y in history]
    return two_loop(gradient, [(s, y) for s, y in pairs if s @ y > 1e-12 * (y @ y)])


def two_loop(gradient: Array, pairs: Sequence[Pair], least: float = 0.0) -> Array:
    """Inverse Hessian times gradient, from pairs of steps and gradient differences: the two-loop recursion of L-BFGS.

    `least` is the least scale of the inverse Hessian in directions without a pair.
    """
    q = gradient.copy()
    alphas = []
    for s, y in reversed(pairs):
        a = (s @ q) / (s @ y)
        alphas.append(a)
        q -= a * y
    if pairs:
        s, y = pairs[-1]
        q *= max(float((s @ y) / (y @ y)), least)
    for (s, y), a in zip(pairs, reversed(alphas), strict=True):
        q += s * (a - (y @ q) / (s @ y))
    return q


def _search(
    objective: Objective,
    x: Array,
    value: float,
    gradient: Array,
    step: Array,
    *,
    lower: Array,
    upper: Array,
    first: bool,
) -> tuple[Array, float, Array] | None:
    """Backtracking line search: the first point along the projected step with sufficient decrease (Armijo)."""
    size = min(1.0, 1.0 / max(float(np.abs(step).sum()), 1e-300)) if first else 1.0
    for _ in range(30):
        new = np.clip(x + size * step, lower, upper)
        new_value, new_gradient = objective(new)
        if np.isfinite(new_value) and new_value <= value + 1e-4 * float(gradient @ (new - x)):
            return new, new_value, new_gradient
        size *= 0.5
    return None


def _updated(history: list[Pair], s: Array, y: Array) -> list[Pair]:
    return [*history, (s, y)][-MEMORY:] if s @ y > 1e-12 * np.linalg.norm(s) * np.linalg.norm(y) else history


def bounds(size: int, low: Any = -np.inf, high: Any = np.inf) -> tuple[Array, Array]:
    """The same bounds for every variable."""
    return np.full(size, low, dtype=np.float64), np.full(size, high, dtype=np.float64)
