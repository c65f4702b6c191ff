"""Laws of the minimiser: it reaches the minimum within bounds, and stops where a fall cannot be told from rounding errors."""

import numpy as np
import pytest

from likely.kernels.lbfgs import bounds, minimise

CURVATURE, MIDDLE = np.array([1.0, 10.0, 100.0, 3.0]), np.array([1.0, -2.0, 0.5, -1.0])


def minimised(kind, precision, low=-np.inf):
    """The minimiser of a parabola of minimum 1 whose values are rounded, its value, and the number of values asked for."""
    asked = []

    def parabola(x):
        asked.append(x)
        value = 1.0 + 0.5 * float(CURVATURE @ (x - MIDDLE) ** 2)
        return float(kind(value)), CURVATURE * (x - MIDDLE)

    found, value = minimise(parabola, np.full(4, 5.0), *bounds(4, low), tolerance=1e-9, precision=precision)
    return found, value, len(asked)


@pytest.mark.parametrize("low", [-np.inf, 0.0])
def test_a_parabola_is_minimised_within_its_bounds(low):
    found, value, _ = minimised(np.float64, 1e-12, low)
    np.testing.assert_allclose(found, np.maximum(MIDDLE, low), atol=1e-4)
    assert value == pytest.approx(1.0 + 0.5 * float(CURVATURE @ (np.maximum(MIDDLE, low) - MIDDLE) ** 2), abs=1e-8)


def test_steps_that_promise_less_than_the_rounding_error_are_not_searched():
    found, value, asked = minimised(np.float32, 1e-6)
    _, same, without = minimised(np.float32, 0.0)
    assert value == pytest.approx(same, abs=2e-6)
    np.testing.assert_allclose(found, MIDDLE, atol=1e-2)
    assert asked < without - 10  # searches among rounding errors halve the step again and again
