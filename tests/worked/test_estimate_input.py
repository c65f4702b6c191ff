"""What `estimate` makes of missing values, tables, weights, impossible pairs, unusable priors and constants."""

from __future__ import annotations

import math

import pandas as pd
import pytest
import scipy.stats

import likely
from likely import Binomial, Dirichlet, Gaussian, MEstimate, NormalInverseGamma
from likely.errors import DataError, UsageError

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "family"),
    [(["a", None, "b"], "categorical"), ([1.0, NAN, 4.0], "gaussian"), ([2, NAN, 3], "poisson"), ([1, None, 0], "bernoulli")],
)
def test_missing_values_are_left_out_and_not_counted(values, family) -> None:
    found = likely.estimate(values, family)
    assert found.n == 2
    assert found.to_dict() == likely.estimate([values[0], values[2]], family).to_dict()


def test_a_row_of_counts_with_a_missing_cell_is_left_out() -> None:
    found = likely.estimate([[1, NAN, 3], [2, 1, 1]], "multinomial")
    assert found.ml == {"x0": 0.5, "x1": 0.25, "x2": 0.25}
    assert found.log_likelihood == pytest.approx(scipy.stats.multinomial(4, [0.5, 0.25, 0.25]).logpmf([2, 1, 1]), abs=1e-12)


def test_independent_yes_no_columns_use_every_known_cell() -> None:
    found = likely.estimate({"a": [1, NAN, 0], "b": [1, 1, 0]}, "bernoulli")
    assert found.ml == pytest.approx({"a": 1 / 2, "b": 2 / 3})
    assert found.n == 3


@pytest.mark.parametrize("values", [{"colour": ["x", "y", "y"]}, pd.DataFrame({"colour": ["x", "y", "y"]})])
def test_one_column_of_a_table_is_estimated_and_not_its_name(values) -> None:
    assert likely.estimate(values).ml == pytest.approx({"x": 1 / 3, "y": 2 / 3})


def test_the_columns_of_a_frame_keep_their_names() -> None:
    frame = pd.DataFrame({"pleased": [1, 1, 0, 1], "call": [0, 1, 0, 0]})
    assert likely.estimate(frame, "bernoulli").ml == {"pleased": 0.75, "call": 0.25}
    with pytest.raises(UsageError, match="one column"):
        likely.estimate(frame)


def test_more_successes_than_trials_are_refused() -> None:
    with pytest.raises(DataError, match=r"column 'k' has 5.0 in row 2, which is more than the trials"):
        likely.estimate([(1, 4), (5, 4)], Binomial("n"))


def test_the_column_named_as_trials_is_the_trials_wherever_it_stands() -> None:
    assert likely.estimate({"n": [10, 5], "k": [3, 1]}, Binomial("n")).ml == {"p": 4 / 15}
    assert likely.estimate({"k": [3, 1], "n": [10, 5]}, Binomial("n")).ml == {"p": 4 / 15}
    with pytest.raises(UsageError, match="pairs"):
        likely.estimate([3, 1], Binomial("n"))
    with pytest.raises(UsageError, match="binomial:trials"):
        likely.estimate([(3, 4)], "binomial")


@pytest.mark.parametrize(
    ("weights", "fault"),
    [([1], "one weight for each"), ([0, 0], "are zero"), ([1, -2], "-2.0 in row 2"), ([1, NAN], "nan in row 2"),
     ([math.inf, 1], "inf in row 1"), (["a", 1], "'a' is no number")],
)  # fmt: skip
def test_faulty_weights_are_named(weights, fault) -> None:
    with pytest.raises(DataError, match=fault):
        likely.estimate(["x", "y"], weights=weights)


@pytest.mark.parametrize("values", [None, [], [None, None], {}])
def test_no_values_are_refused(values) -> None:
    with pytest.raises((DataError, UsageError)):
        likely.estimate(values)


def test_the_value_at_fault_is_named_and_not_the_first_text() -> None:
    with pytest.raises(DataError, match=r"'x' is no number \(column 'value', row 3\)"):
        likely.estimate(["1", "2", "x"], "gaussian")


@pytest.mark.parametrize(
    ("family", "prior"),
    [("gaussian", 1), ("gaussian", Dirichlet(2)), ("gaussian", MEstimate(2)), ("categorical", NormalInverseGamma()),
     ("poisson", NormalInverseGamma(1, 1, 1, 1))],
)  # fmt: skip
def test_a_prior_that_the_family_would_ignore_is_refused(family, prior) -> None:
    with pytest.raises(UsageError, match=r"prior of mean and variance|NormalInverseGamma"):
        likely.estimate([1, 2, 4], family, prior)


def test_values_that_do_not_vary_have_a_variance_of_zero() -> None:
    found = likely.estimate([3.0, 3.0, 3.0], "gaussian")
    assert found.ml == {"mean": 3.0, "variance": 0.0}
    assert found.log_likelihood == math.inf
    for asked in (found.distribution, found.curve, lambda: found.posterior):
        with pytest.raises(UsageError):
            asked()
    with_prior = likely.estimate([3.0, 3.0, 3.0], "gaussian", NormalInverseGamma(0, 1, 2, 2))
    assert with_prior.ml["variance"] == 0.0
    assert with_prior.map["variance"] == pytest.approx((2 * 2 + 3 / 4 * 9) / (2 * 2 + 3 + 3))
    assert math.isnan(likely.estimate([3.0], Gaussian(unbiased=True)).ml["variance"])


def test_the_likelihood_is_asked_for_at_parameters_that_exist_and_are_possible() -> None:
    found = likely.estimate([1.2, 3.4, 2.2, 5.1], "gaussian")
    for asked in ({"mu": 3.0}, {"variance": -1.0}, {"mean": NAN}):
        with pytest.raises(UsageError, match=next(iter(asked))):
            found.log_likelihood_of(**asked)
    die = likely.estimate([1, 2, 6, 6, 3, 3, 3, 3])
    assert die.log_likelihood_of({6: 0.4}) == pytest.approx(2 * math.log(0.4) + 2 * math.log(0.1) + 4 * math.log(0.4))
    with pytest.raises(UsageError, match="sum to 1"):
        die.log_likelihood_of({1: 0.5, 6: 0.6})
    with pytest.raises(UsageError, match="not possible"):
        die.log_likelihood_of({6: 2})


def test_numbered_outcomes_have_probabilities_between_and_quantiles() -> None:
    die = likely.estimate([1, 2, 6, 6, 3], prior=Dirichlet(dict.fromkeys(range(1, 7), 2)))
    assert die.probability(1, 4) == pytest.approx(4 / 11)
    assert die.probability(at="ml") == pytest.approx(1)
    assert [die.quantile(p, at="ml") for p in (0, 0.2, 0.5, 0.6, 0.61, 1)] == [1, 1, 3, 3, 6, 6]
    with pytest.raises(UsageError, match="'a' is no number"):
        likely.estimate(["a", "b"]).probability(0, 1)


def test_the_next_binomial_value_has_as_many_trials_as_the_others() -> None:
    found = likely.estimate([3, 5, 9], Binomial(20), 1)
    exact = scipy.stats.betabinom(20, 18, 44)
    assert found.probability(3, 6, at="predictive") == pytest.approx(exact.pmf([4, 5]).sum(), abs=1e-12)
    following = found.posterior.predictive
    assert [following.density(k) for k in range(21)] == pytest.approx(exact.pmf(range(21)), abs=1e-13)
    assert (following.mean, following.variance) == pytest.approx((exact.mean(), exact.var()), rel=1e-12)
    assert [following.quantile(p) for p in (0.01, 0.5, 0.975, 1)] == [exact.ppf(p) for p in (0.01, 0.5, 0.975, 1)]
    assert following.draw(20_000, seed=0).mean() == pytest.approx(exact.mean(), abs=0.1)
    pair = likely.estimate([(3, 20), (14, 40)], Binomial("n"), 1)
    assert pair.posterior.predictive.density(1) == pytest.approx(18 / 62)


def test_the_prior_of_a_mean_holds_beside_a_known_variance() -> None:
    x, prior = [1.0, 2.5, 0.3], NormalInverseGamma(1, 0.5, 2, 3)
    found = likely.estimate(x, Gaussian(variance=4.0), prior)
    exact = scipy.stats.norm((0.5 + sum(x)) / 3.5, math.sqrt(4 / 3.5))
    assert found.map["mean"] == found.posterior.mean["mean"] == pytest.approx(exact.mean(), rel=1e-14)
    assert found.posterior.interval()["mean"] == pytest.approx(exact.interval(0.95), rel=1e-12)
    assert found.posterior.predictive.variance == pytest.approx(4 + 4 / 3.5)
