"""Distributions by name with their coefficients, and several yes/no columns in `estimate`."""

import math

import pytest
import scipy.stats

import likely
from likely.distributions import (
    Bernoulli,
    Beta,
    BetaBinomial,
    Binomial,
    Gamma,
    InverseGamma,
    Multinomial,
    MultivariateBernoulli,
    NegativeBinomial,
    Normal,
    Poisson,
    Student,
)
from likely.errors import UsageError


def test_probabilities_by_hand() -> None:
    assert Bernoulli(0.3).density(1) == pytest.approx(0.3, abs=1e-14)
    assert Binomial(4, 0.5).density(3) == pytest.approx(0.25, abs=1e-14)
    assert Multinomial(6, [2 / 6, 1 / 6, 3 / 6]).log_density([2, 1, 3]) == pytest.approx(math.log(60 / 432), abs=1e-12)
    two = MultivariateBernoulli({"a": 0.75, "b": 0.25})
    assert two.density({"a": True, "b": False}) == pytest.approx(0.5625, abs=1e-14)
    assert Multinomial(3, {"gas": 0.5, "oil": 0.5}).density({"gas": 3}) == pytest.approx(1 / 8)


def test_a_multinomial_is_scipy_s() -> None:
    stats = pytest.importorskip("scipy.stats", reason="SciPy IS NOT INSTALLED")
    p = [0.1, 0.2, 0.7]
    for counts in ([0, 0, 5], [1, 2, 2], [5, 0, 0]):
        wanted = stats.multinomial(5, p).logpmf(counts)
        assert Multinomial(5, p).log_density(counts) == pytest.approx(wanted, abs=1e-12)
    assert Multinomial(5, p).density([1, 1, 1]) == 0.0
    assert Multinomial(5, p).draw(1000, 0).mean(0) == pytest.approx([0.5, 1.0, 3.5], abs=0.15)


def test_nonsense_is_refused() -> None:
    with pytest.raises(UsageError, match="do not sum to 1"):
        Multinomial(2, [0.5, 0.6]).density([1, 1])
    with pytest.raises(UsageError, match="one for each"):
        MultivariateBernoulli({"a": 0.5}).density({"b": 1})


def test_a_multivariate_bernoulli_is_estimated_column_by_column() -> None:
    found = likely.estimate({"a": [1, 1, 0, 1], "b": [0, 1, 0, 0]}, "bernoulli", prior=1)
    assert found.ml == {"a": 0.75, "b": 0.25}
    assert found.map == pytest.approx({"a": 4 / 6, "b": 2 / 6})
    assert found.log_likelihood == pytest.approx(2 * (3 * math.log(0.75) + math.log(0.25)))
    assert found.distribution("ml").density({"a": 1, "b": 0}) == pytest.approx(0.75 * 0.75)
    assert found.posterior.predictive.density({"a": 1, "b": 0}) == pytest.approx(4 / 6 * 4 / 6)
    assert found.posterior.marginal("b").mean == pytest.approx(2 / 6)
    assert found.log_likelihood_of(b=0.5) < found.log_likelihood
    assert found.to_dict()["predictive"]["distribution"] == "MultivariateBernoulli"


def test_small_upper_tails_keep_their_digits() -> None:
    pairs = [
        (Normal(1, 4), scipy.stats.norm(1, 2), 20),
        (Student(3.5, 1, 2), scipy.stats.t(3.5, 1, 2), 1e6),
        (Beta(2.5, 30), scipy.stats.beta(2.5, 30), 0.9),
        (Gamma(2.2, 3), scipy.stats.gamma(2.2, scale=1 / 3), 30),
        (InverseGamma(2.2, 3), scipy.stats.invgamma(2.2, scale=3), 1e8),
        (Poisson(2.5), scipy.stats.poisson(2.5), 40),
        (Binomial(30, 0.1), scipy.stats.binom(30, 0.1), 25),
        (NegativeBinomial(3.3, 2), scipy.stats.nbinom(3.3, 2 / 3), 60),
        (BetaBinomial(12, 2, 900), scipy.stats.betabinom(12, 2, 900), 9),
    ]
    for ours, theirs, x in pairs:
        assert ours.between(x, math.inf) == pytest.approx(theirs.sf(x), rel=1e-9), ours
        assert ours.between(-math.inf, math.inf) == 1.0


def test_more_events_than_a_number_are_asked_for_without_an_upper_end() -> None:
    found = likely.estimate([1, 2, 0, 4], "poisson")
    assert found.probability(2, at="ml") == pytest.approx(scipy.stats.poisson(1.75).sf(2), rel=1e-12)
    assert found.probability(2, at="predictive") == pytest.approx(scipy.stats.nbinom(7, 4 / 5).sf(2), rel=1e-12)
