"""L-BFGS with the step of an EM iteration as its gradient (Jamshidian and Jennrich 1997).

Not `kernels.lbfgs.minimise`, whose recursion it shares: the gradient is never computed, each point costs an E-step over all
rows, and the caller keeps a point only if the likelihood rises.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from likely.kernels.lbfgs import two_loop

Array = NDArray[np.float64]
CONCAVE = 1e-8  # the least cosine between a step and the change of the gradient along it
MEMORY = 8  # points from which an extrapolation is made
APART = 1e-3  # least relative size of an independent direction
STRAIGHT = 0.95  # least cosine between two iterations in the same direction


@dataclass
class QuasiNewton:
    """The last few points with their plain EM iterations, and the curvature of the objective derived from them.

    A plain iteration is a step along the gradient, measured in the information of rows whose classes are known (Jamshidian and
    Jennrich 1997). Only pairs of points between which the objective is concave are used: unlike a method that
    solves for a fixed point of EM, this one is not attracted by saddle points.
    """

    _x: list[Array] = field(default_factory=list)
    _g: list[Array] = field(default_factory=list)

    def add(self, x: Array, g: Array) -> None:
        """Add a point; the oldest is dropped."""
        self._x, self._g = [*self._x[-MEMORY:], x], [*self._g[-MEMORY:], g]

    def clear(self) -> None:
        """Forget all points."""
        self._x, self._g = [], []

    def _pairs(self, weights: Array) -> tuple[Array, Array, Array]:
        """The last EM step, the differences of points, and those of their EM steps with the sign reversed."""
        x, moved = np.array(self._x) * weights, (np.array(self._g) - np.array(self._x)) * weights
        return moved[-1], np.diff(x, axis=0), -np.diff(moved, axis=0)

    def flattest(self, weights: Array) -> tuple[float, Array] | None:
        """The least curvature among the directions between the last points, and its direction; None with too few points.

        It is the smallest Ritz value: 1 less the rate at which plain iterations converge along it, negative at a saddle.
        """
        if len(self._x) < 3:
            return None
        _, steps, bends = self._pairs(weights)
        length = np.linalg.norm(steps, axis=1, keepdims=True)
        some = length[:, 0] > 0
        steps, bends = steps[some] / length[some], bends[some] / length[some]
        size, axes = np.linalg.eigh(steps @ steps.T)
        apart = size > APART * size[-1] if len(size) else np.zeros(0, bool)
        if not apart.any() or not np.isfinite(bends).all():
            return None
        base = axes[:, apart] / np.sqrt(size[apart])
        cross = base.T @ steps @ bends.T @ base
        curvature, inner = np.linalg.eigh(0.5 * (cross + cross.T))
        return float(curvature[0]), np.asarray(steps.T @ base @ inner[:, 0])

    def propose(self, weights: Array) -> Array | None:
        """The maximum of the objective predicted from its curvature (L-BFGS); None if no curvature is known."""
        last, steps, bends = self._pairs(weights)
        pairs = [(s, y) for s, y in zip(steps, bends, strict=True) if s @ y > CONCAVE * np.sqrt((s @ s) * (y @ y))]
        if not pairs:
            return None
        ahead = two_loop(last, pairs, least=1.0)
        found: Array = self._x[-1] + np.divide(ahead, weights, out=np.zeros_like(ahead), where=weights > 0)
        return found if np.isfinite(found).all() else None

    def straight(self, weights: Array) -> bool:
        """Whether the last two iterations went in the same direction."""
        if len(self._x) < 2:
            return False
        one, other = ((g - x) * weights for x, g in zip(self._x[-2:], self._g[-2:], strict=True))
        return float(one @ other) > STRAIGHT * float(np.linalg.norm(one) * np.linalg.norm(other))
