"""Finding the lowest point of a smooth function within bounds.

A page of our own rather than SciPy: it would be the heaviest of all run-time dependencies, for one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objective = Callable[[Array], tuple[float, Array]]

MEMORY = 10  # steps that the curvature is remembered from


def minimise(
    objective: Objective, start: Array, lower: Array, upper: Array, *, iterations: int = 100, tolerance: float = 1e-7
) -> tuple[Array, float]:
    """Where the objective is lowest between the bounds, and how low: limited-memory BFGS with projected steps.

    Variables that lie on a bound and are pushed against it rest; the others move together along the quasi-Newton
    direction, back onto the bounds where they overshoot, as far as the objective falls enough.
    """
    x = np.clip(start, lower, upper)
    value, gradient = objective(x)
    past: list[tuple[Array, Array]] = []
    for _ in range(iterations):
        resting = ((x <= lower) & (gradient > 0)) | ((x >= upper) & (gradient < 0))
        free = np.where(resting, 0.0, gradient)
        if np.abs(free).max(initial=0.0) < tolerance:
            break
        step = np.where(resting, 0.0, -_along(free, past, resting))
        if step @ free > -1e-12 * np.linalg.norm(step) * np.linalg.norm(free):
            step, past = -free, []
        moved = _search(objective, x, value, gradient, step, lower, upper, first=not past)
        if moved is None:
            if not past:
                break
            past = []  # the remembered curvature misled: begin again downhill
            continue
        new, new_value, new_gradient = moved
        done = value - new_value < tolerance * 1e-3 * max(abs(value), 1e-12)
        past = _remembered(past, new - x, new_gradient - gradient)
        x, value, gradient = new, new_value, new_gradient
        if done:
            break
    return x, value


def _along(gradient: Array, past: list[tuple[Array, Array]], resting: NDArray[np.bool_]) -> Array:
    """The gradient bent by the curvature of the last steps (the two loops of L-BFGS), among the free variables."""
    q = gradient.copy()
    if not past:
        return q
    pairs = [(np.where(resting, 0.0, s), np.where(resting, 0.0, y)) for s, y in past]
    pairs = [(s, y) for s, y in pairs if s @ y > 1e-12 * (y @ y)]
    marks = []
    for s, y in reversed(pairs):
        a = (s @ q) / (s @ y)
        marks.append(a)
        q -= a * y
    if pairs:
        s, y = pairs[-1]
        q *= (s @ y) / (y @ y)
    for (s, y), a in zip(pairs, reversed(marks), strict=True):
        q += s * (a - (y @ q) / (s @ y))
    return q


def _search(
    objective: Objective,
    x: Array,
    value: float,
    gradient: Array,
    step: Array,
    lower: Array,
    upper: Array,
    *,
    first: bool,
) -> tuple[Array, float, Array] | None:
    """The first point along the projected step where the objective has fallen enough."""
    size = min(1.0, 1.0 / max(float(np.abs(step).sum()), 1e-300)) if first else 1.0
    for _ in range(30):
        new = np.clip(x + size * step, lower, upper)
        new_value, new_gradient = objective(new)
        if np.isfinite(new_value) and new_value <= value + 1e-4 * float(gradient @ (new - x)):
            return new, new_value, new_gradient
        size *= 0.5
    return None


def _remembered(past: list[tuple[Array, Array]], s: Array, y: Array) -> list[tuple[Array, Array]]:
    return [*past, (s, y)][-MEMORY:] if s @ y > 1e-12 * np.linalg.norm(s) * np.linalg.norm(y) else past


def bounds(size: int, low: Any = -np.inf, high: Any = np.inf) -> tuple[Array, Array]:
    """The same bounds for every variable."""
    return np.full(size, low, dtype=np.float64), np.full(size, high, dtype=np.float64)
