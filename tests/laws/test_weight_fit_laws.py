"""Laws of the fit of column weights: a minimum within the bounds, exact derivatives, exact losses far from zero."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.calibration._weight_fit import Problem


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(1, 4))
def test_the_weights_found_are_a_minimum_within_their_walls(seed, classes, terms):
    rng = np.random.default_rng(seed)
    n = 60
    problem = Problem(
        rng.normal(size=(terms, n, classes)).astype(np.float32), np.zeros((n, classes), np.float32),
        rng.integers(0, classes, n), rng.integers(1, 3, n).astype(float), np.ones(terms), np.full(terms, 0.5), 1.0,
    )  # fmt: skip
    weights, bias = problem.solve(np.full(terms, 0.5), np.zeros(classes))
    assert (weights >= 0).all()
    at = np.concatenate([weights, bias])
    best = problem.evaluate(at).loss
    for _ in range(20):
        near = at + rng.normal(size=len(at)) * 10.0 ** rng.uniform(-4, 0)
        near[:terms] = np.maximum(near[:terms], 0.0)
        assert problem.evaluate(near).loss >= best - 1e-6


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_gradient_and_hessian_of_the_weights_are_the_derivatives_of_the_loss(classes):
    rng = np.random.default_rng(classes)
    n, terms, width = 40, 3, 1e-4
    problem = Problem(
        rng.normal(size=(terms, n, classes)).astype(np.float32), rng.normal(size=(n, classes)).astype(np.float32),
        rng.integers(0, classes, n), rng.integers(1, 3, n).astype(float), np.ones(terms), np.full(terms, 0.5), 1.0,
    )  # fmt: skip
    at = np.concatenate([np.full(terms, 0.7), rng.normal(size=classes)])
    around = [(problem.evaluate(at + step), problem.evaluate(at - step)) for step in width * np.eye(len(at))]
    here = problem.evaluate(at)
    np.testing.assert_allclose(here.gradient, [(up.loss - down.loss) / (2 * width) for up, down in around], atol=1e-4)
    slopes = [(up.gradient - down.gradient) / (2 * width) for up, down in around]
    np.testing.assert_allclose(here.hessian, slopes, atol=1e-3)


def test_a_first_fit_on_a_subset_weighs_as_much_as_all_rows():
    rng = np.random.default_rng(0)
    evidence, weights = rng.normal(size=(1, 90, 2)).astype(np.float32), rng.integers(1, 4, 90).astype(float)
    problem = Problem(
        evidence, np.zeros((90, 2), np.float32), rng.integers(0, 2, 90), weights, np.ones(1), np.ones(1), 1.0
    )
    some = problem._subsample(30)
    assert len(some.base) == len(some.labels) == len(some.evidence[0]) == 30
    np.testing.assert_allclose(some.weights, weights[:30] * weights.sum() / weights[:30].sum())


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_that_are_thousands_apart_have_their_exact_loss(classes, compiled, monkeypatch):
    score = np.array([[0.0, 3000.0, -3000.0], [-2000.0, 0.0, 1000.0], [1.0, 2.0, 3.0]])[:, :classes]
    labels, weights = np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0])
    evidence = np.zeros((1, 3, classes), np.float32)
    problem = Problem(evidence, score.astype(np.float32), labels, weights, np.ones(1), np.full(1, 0.5), 0.0)
    monkeypatch.setattr(Problem, "compiled", compiled, raising=False)
    found = problem.evaluate(np.concatenate([problem.centre, np.zeros(classes)]))
    apart = np.logaddexp.reduce(score, axis=1) - score[np.arange(3), labels]
    assert found.loss == pytest.approx(weights @ apart, rel=1e-6)
    assert np.isfinite(found.gradient).all()
    assert np.isfinite(found.hessian).all()
