"""Naive Bayes and discriminant analysis as linear classifiers: weights and intercept give the log odds."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

from likely import Multinomial, NaiveBayes
from likely.families.base_measures import BinomialMeasure
from likely.families.likelihoods import LinearTerm


@pytest.fixture(params=[2, 3])
def rows(request):
    rng = np.random.default_rng(request.param)
    y = rng.integers(0, request.param, 90)
    return rng.normal(size=(90, 4)) @ rng.normal(size=(4, 4)) + y[:, None], y


def check(model, X):
    """The linear form and the log odds of the model agree."""
    joint, linear = model.predict_joint_log_proba(X), X @ model.coef_.T + model.intercept_
    if joint.shape[1] == 2:
        np.testing.assert_allclose(joint[:, 1] - joint[:, 0], linear[:, 0], rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_allclose(joint - joint[:, :1], linear - linear[:, :1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("families", ["gaussian:class", "gaussian:both", "joint:class"])
def test_gaussians_with_a_shared_variance_are_linear(rows, families):
    X, y = rows
    check(NaiveBayes(families=families, smoothing=0).fit(X, y), X)


def test_a_joint_gaussian_with_a_shared_covariance_has_the_weights_of_linear_discriminant_analysis(rows):
    X, y = rows
    ours, other = NaiveBayes(families="joint:class", smoothing=0).fit(X, y), LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    np.testing.assert_allclose(ours.coef_ - ours.coef_.mean(0), other.coef_ - other.coef_.mean(0), rtol=1e-8, atol=1e-8)


def test_yes_and_no_are_linear_with_the_log_odds_ratio_as_weight(rows):
    X, y = (rows[0] > 0.5).astype(float), rows[1]
    ours = NaiveBayes(families="bernoulli", smoothing=1).fit(X, y)
    check(ours, X)
    p = np.exp(BernoulliNB(alpha=1).fit(X, y).feature_log_prob_)
    weights = np.log(p / (1 - p))
    np.testing.assert_allclose(ours.coef_, weights[1:] - weights[:1] if len(p) == 2 else weights, rtol=1e-9, atol=1e-12)


def test_counts_are_linear_with_log_probabilities_as_weights(rows):
    X, y = np.abs(rows[0] * 3).round(), rows[1]
    ours = NaiveBayes(families={(0, 1, 2, 3): Multinomial()}, smoothing=1).fit(X, y)
    check(ours, X)
    theirs = MultinomialNB(alpha=1).fit(X, y).feature_log_prob_
    np.testing.assert_allclose(ours.coef_, theirs[1:] - theirs[:1] if len(theirs) == 2 else theirs, rtol=1e-9)
    check(NaiveBayes(families="poisson", smoothing=1).fit(X, y), X)


def test_a_probability_of_zero_or_a_variance_of_ones_own_has_no_weights(rows):
    X, y = rows
    assert not hasattr(NaiveBayes(families="joint", smoothing=0).fit(X, y), "coef_")
    assert not hasattr(NaiveBayes(families="bernoulli", smoothing=0).fit((y[:, None] > 0).astype(float), y), "coef_")


@pytest.mark.parametrize("trials", [None, 3])
def test_the_base_measure_of_a_binomial_is_the_binomial_coefficient_whoever_gives_the_trials(trials: int | None) -> None:
    term = LinearTerm(np.log([[0.2, 0.5], [0.8, 0.5]]), np.zeros((2, 2)), BinomialMeasure(trials))
    numbers = np.array([[k, 3.0] for k in (0.0, 1.0, 2.0, 3.0)] + [[np.nan, 3.0], [4.0, 3.0]])
    out = np.zeros((6, 2))
    term.add(np.zeros((6, 0), np.int32), numbers if trials is None else numbers[:, :1], out)
    ways, k = np.array([1.0, 3.0, 3.0, 1.0])[:, None], np.arange(4.0)[:, None]
    chance = np.array([0.2, 0.5])
    np.testing.assert_allclose(np.exp(out[:4]), ways * chance**k * (1 - chance) ** (3 - k))
    assert (out[4] == 0).all()
    assert np.isneginf(out[5]).all()
    assert term.linear() is None
