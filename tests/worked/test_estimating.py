"""THEORY section 3: several parameters separate into several small problems, and every family's own formula."""

import math
from fractions import Fraction
from math import comb, exp, factorial

import numpy as np
import pytest

import likely
from likely.errors import DataError, UsageError

F = Fraction
# Candies: c cherry and m mint; of the cherries r_c are wrapped in red and g_c in green, of the mints r_m and g_m.
WRAPPERS = [("cherry", "red", 273), ("cherry", "green", 93), ("mint", "red", 104), ("mint", "green", 530)]


def wrappers(**settings):
    rows = [{"flavour": flavour, "wrapper": wrapper, "n": n} for flavour, wrapper, n in WRAPPERS]
    return likely.learn(rows, "flavour", weights="n", smoothing=0, **settings)


def test_the_likelihood_of_wrapped_candies_separates_into_three_shares():
    model = wrappers()
    theta = {row["class"]: row["probability"] for row in model.parameters["flavour"]}
    assert theta["cherry"] == pytest.approx(float(F(366, 1000)), rel=1e-12)
    red = {row["class"]: row["probability"] for row in model.parameters["wrapper"] if row["value"] == "red"}
    assert red["cherry"] == pytest.approx(float(F(273, 366)), rel=1e-12)
    assert red["mint"] == pytest.approx(float(F(104, 634)), rel=1e-12)


def test_the_three_shares_are_the_top_of_the_likelihood():
    def log_likelihood(theta, one, two):
        shares = {"cherry": (theta, one), "mint": (1 - theta, two)}
        terms = [
            n * (np.log(shares[f][0]) + np.log(shares[f][1] if w == "red" else 1 - shares[f][1]))
            for f, w, n in WRAPPERS
        ]
        return sum(terms)

    top = (366 / 1000, 273 / 366, 104 / 634)
    for part in range(3):
        for step in (-1e-3, 1e-3):
            moved = [p + step * (i == part) for i, p in enumerate(top)]
            assert log_likelihood(*moved) < log_likelihood(*top)


def test_bernoulli_shares_are_beta_map_estimates():
    data = {"word": [1, 0, 3, 1, 0, None, 0], "y": ["s", "s", "s", "s", "h", "h", "h"]}
    for beta in (1.0, 2.0, 3.5):
        model = likely.learn(data, "y", families={"word": "bernoulli"}, smoothing=likely.Dirichlet(beta))
        yes = {r["class"]: r["probability"] for r in model.parameters["word"] if r["value"] is True}
        assert yes["s"] == pytest.approx((3 + beta - 1) / (4 + 2 * (beta - 1)), rel=1e-12)
        assert yes["h"] == pytest.approx((beta - 1) / (2 + 2 * (beta - 1)), rel=1e-12)


def test_binomial_is_successes_of_trials_with_the_full_probability():
    data = {"k": [3, 5, 1, None], "n": [4, 6, 10, 5], "y": ["a", "a", "b", "b"]}
    model = likely.learn(data, "y", families={"k": likely.Binomial("n")}, smoothing=1)
    chance = {"a": F(8 + 1, 10 + 2), "b": F(1 + 1, 10 + 2)}
    found = {r["class"]: r["probability"] for r in model.parameters["k with n"]}
    assert found == pytest.approx({k: float(v) for k, v in chance.items()})
    joint = np.exp(model.posterior({"k": 2, "n": 5}).log_joint[0])
    expected = [F(1, 2) * comb(5, 2) * p**2 * (1 - p) ** 3 for p in chance.values()]
    np.testing.assert_allclose(joint, [float(p) for p in expected], rtol=1e-12)


def test_binomial_with_a_fixed_number_of_trials_is_the_same():
    data = {"k": [3, 5, 1, 0], "n": [6] * 4, "y": ["a", "a", "b", "b"]}
    fixed = likely.learn({c: data[c] for c in "ky"}, "y", families={"k": likely.Binomial(6)})
    by_column = likely.learn(data, "y", families={"k": likely.Binomial("n")})
    np.testing.assert_array_equal(fixed.posterior({"k": 2}).log_joint, by_column.posterior({"k": 2, "n": 6}).log_joint)


def test_multinomial_shares_are_words_of_all_words():
    data = {"buy": [2, 1, 0], "now": [1, 1, 1], "hello": [0, 0, 4], "y": ["spam", "spam", "good"]}
    words = ("buy", "now", "hello")
    model = likely.learn(data, "y", families={words: likely.Multinomial()}, smoothing=1)
    counts = {"good": (0, 1, 4), "spam": (3, 2, 0)}
    row = {"buy": 1, "now": 0, "hello": 2}
    expected = [
        np.log(share * 3)  # the events of the row in any of 3! / (1! 0! 2!) orders
        + sum(row[w] * np.log((n + 1) / (sum(counts[k]) + 3)) for w, n in zip(words, counts[k], strict=True))
        for k, share in (("good", 1 / 3), ("spam", 2 / 3))
    ]
    np.testing.assert_allclose(model.posterior(row).log_joint[0], expected, rtol=1e-12)


def test_poisson_rates_are_events_per_row_and_imagined_rows_have_the_common_rate():
    data = {"calls": [2, 4, 0, 1, None], "y": ["a", "a", "b", "b", "b"]}
    for extra in (0.0, 1.0, 2.5):
        model = likely.learn(data, "y", families={"calls": "poisson"}, smoothing=extra)
        common = 7 / 4
        rate = {"a": (6 + extra * common) / (2 + extra), "b": (1 + extra * common) / (2 + extra)}
        found = {r["class"]: r["rate"] for r in model.parameters["calls"]}
        assert found == pytest.approx(rate)
        joint = np.exp(model.posterior({"calls": 3}).log_joint[0])
        shares = {"a": 2 / 5, "b": 3 / 5}
        expected = [shares[k] * rate[k] ** 3 * exp(-rate[k]) / factorial(3) for k in "ab"]
        np.testing.assert_allclose(joint, expected, rtol=1e-12)


def test_a_joint_table_is_the_share_of_each_pair():
    data = {"a": ["x", "x", "z", "z", "x"], "b": ["u", "v", "u", "u", "u"], "y": [1, 1, 1, 2, 2]}
    model = likely.learn(data, "y", joint=[("a", "b")], smoothing=1)
    found = {(r["class"], r["value"]): r["probability"] for r in model.parameters["a with b"]}
    assert found[1, ("x", "u")] == pytest.approx(2 / 7)
    assert found[1, ("z", "v")] == pytest.approx(1 / 7)
    assert found[2, ("z", "u")] == pytest.approx(2 / 6)
    assert model.parameter_count.free == 2 * (4 - 1) + 1


@pytest.mark.parametrize("family", ["multinomial", "gaussian", "poisson"])
def test_names_where_numbers_are_needed_are_refused_with_a_remedy(family):
    with pytest.raises(DataError, match=r"'a' is no number.*categorical"):
        likely.estimate([1, "a", "b"], family=family)


def test_a_dirichlet_prior_below_one_has_a_posterior_and_where_counts_allow_a_mode() -> None:
    few = likely.estimate([1, 2, 2], prior=likely.Dirichlet({1: 0.5, 2: 0.5, 3: 0.5}))
    assert few.posterior.mean == pytest.approx({1: 1.5 / 4.5, 2: 2.5 / 4.5, 3: 0.5 / 4.5})
    assert all(math.isnan(p) for p in few.map.values())
    assert few.to_dict()["map"] == {"1": None, "2": None, "3": None}
    enough = likely.estimate([1, 2, 2], prior=likely.Dirichlet(0.5))
    assert enough.map == pytest.approx({1: 0.5 / 2, 2: 1.5 / 2})


def test_without_values_the_posterior_is_the_prior() -> None:
    die = likely.estimate([], prior=likely.Dirichlet({1: 2, 2: 3}))
    assert (die.n, die.posterior.mean, die.map) == (0, {1: 0.4, 2: 0.6}, pytest.approx({1: 1 / 3, 2: 2 / 3}))
    assert likely.estimate([], "bernoulli", prior=1).posterior.mean == {"p": 0.5}
    normal = likely.estimate([], "gaussian", prior=likely.NormalInverseGamma(1, 2, 3, 4))
    assert normal.posterior.mean == pytest.approx({"mean": 1.0, "variance": 2.0})
    assert likely.estimate([], "poisson", prior=likely.GammaPrior(3, 2)).posterior.mean == {"rate": 1.5}
    assert die.to_dict()["ml"] == {"1": None, "2": None}
    assert "nan" in str(die)
    for family, prior in (("categorical", 1), ("gaussian", 0), ("poisson", 0), ("bernoulli", 0)):
        with pytest.raises(DataError, match="no value to estimate from"):
            likely.estimate([], family, prior)


def test_words_for_yes_and_no_are_bernoulli_values() -> None:
    for values in (["yes", "no", "Yes "], [True, "false", "TRUE"], ["y", "n", "y"]):
        assert likely.estimate(values, "bernoulli").ml == pytest.approx({"p": 2 / 3})
    both = likely.estimate({"a": ["yes", "no"], "b": [0, 1]}, "bernoulli")
    assert both.ml == {"a": 0.5, "b": 0.5}
    with pytest.raises(DataError, match="'up' is no number"):
        likely.estimate(["up", "down"], "bernoulli")


def test_a_gamma_prior_of_a_rate_adds_events_and_rows() -> None:
    values = [2, 4, 3]
    for prior in (likely.GammaPrior(3, 2), likely.distributions.Gamma(3, 2)):
        found = likely.estimate(values, "poisson", prior)
        assert found.map == {"rate": (9 + 3 - 1) / (3 + 2)}
        assert found.posterior.mean == {"rate": (9 + 3) / (3 + 2)}
    table = {"x": [0, 1, 2, 5], "y": list("aabb")}
    model = likely.learn(table, "y", families="poisson", smoothing=likely.GammaPrior(3, 2))
    assert [row["rate"] for row in model.parameters["x"]] == [(1 + 2) / 4, (7 + 2) / 4]
    assert model.parameter_posterior("x", "a").mean == {"rate": (1 + 3) / 4}
    other = likely.learn({"x": [9], "y": ["a"]}, "y", families="poisson", smoothing=likely.GammaPrior(3, 2), classes=["a", "b"])
    assert other.parameters["x"][1]["rate"] == 1.0  # of the prior alone, whatever the other class has
    with pytest.raises(UsageError, match="prior of Poisson rates"):
        likely.learn({"x": list("uvuv"), "y": list("aabb")}, "y", smoothing={"x": likely.GammaPrior(1, 1)})
    with pytest.raises(UsageError, match="prior of Poisson rates"):
        likely.estimate([1, 2], prior=likely.GammaPrior(1, 1))
    with pytest.raises(UsageError, match="above 0"):
        likely.GammaPrior(0, 1)
