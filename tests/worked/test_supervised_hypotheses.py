"""Hypotheses on labelled data and on a grid: version space, noise, MAP, Gibbs and Bayes-optimal classifier, odds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import likely
from likely.bayes.continuous import Beta
from likely.errors import DataError, UsageError

LIMES = {"h1": Fraction(0), "h2": Fraction(1, 4), "h3": Fraction(1, 2), "h4": Fraction(3, 4), "h5": Fraction(1)}
BAGS = likely.Hypotheses(
    prior=dict(zip(LIMES, (Fraction(n, 10) for n in (1, 2, 4, 2, 1)), strict=True)),
    likelihood={h: {"cherry": 1 - p, "lime": p} for h, p in LIMES.items()},
)


def concepts(size, **settings):
    """All boolean functions of a domain, equally probable."""
    truths = list(itertools.product((0, 1), repeat=size))
    names = ["f" + "".join(map(str, t)) for t in truths]
    predict = {n: (lambda x, t=t: t[x]) for n, t in zip(names, truths, strict=True)}
    return likely.Hypotheses.supervised(prior=dict.fromkeys(names, Fraction(1, len(names))), predict=predict, **settings)


def thresholds(n, **settings):
    """h_t labels x by x >= t."""
    prior = {t: Fraction(1, n) for t in range(n)}
    return likely.Hypotheses.supervised(prior=prior, predict={t: (lambda x, t=t: x >= t) for t in prior}, **settings)


def test_the_brute_force_map_learner_keeps_the_version_space_at_equal_shares():
    after = concepts(2).observe([(0, 1)])
    assert after.version_space == ["f10", "f11"]
    assert after.posterior == {"f00": 0, "f01": 0, "f10": Fraction(1, 2), "f11": Fraction(1, 2)}
    assert (after.map, after.evidence, after.exact) == ("f10", Fraction(1, 2), True)
    assert after.predict(1) == {False: Fraction(1, 2), True: Fraction(1, 2)}
    assert after.predict(0)[True] == 1
    assert after.predict_map(1) == {False: 1, True: 0}


def test_a_new_point_that_every_consistent_hypothesis_labels_alike_is_certain():
    after = thresholds(11).observe([(3, False), (7, True)])
    assert after.version_space == [4, 5, 6, 7]
    assert after.predict(9) == {False: 0, True: 1}
    assert after.predict(5) == {False: Fraction(1, 2), True: Fraction(1, 2)}
    assert after.predict(4) == {False: Fraction(3, 4), True: Fraction(1, 4)}


def test_noise_free_data_that_no_hypothesis_explains_are_refused_and_noise_explains_them():
    contradiction = [(1, 1), (1, 0)]
    with pytest.raises(DataError, match="impossible under every hypothesis") as refused:
        concepts(2).observe(contradiction)
    assert "noise=0.1" in str(refused.value)
    noisy = concepts(2, noise=Fraction(1, 10)).observe([*contradiction, (1, 1)])
    assert noisy.version_space == ["f00", "f01", "f10", "f11"]
    assert noisy.posterior["f01"] == noisy.posterior["f11"] == Fraction(9, 20)
    assert noisy.predict(1)[True] == Fraction(9, 10) * Fraction(9, 10) + Fraction(1, 10) * Fraction(1, 10)
    assert noisy.evidence == Fraction(9, 200)


def test_noise_of_several_labels_is_spread_evenly_over_the_wrong_ones():
    prior, labels = {"a": Fraction(1, 2), "b": Fraction(1, 2)}, ("a", "b", "c")
    predict = {"a": lambda _: "a", "b": lambda _: "b"}
    space = likely.Hypotheses.supervised(prior=prior, predict=predict, noise=Fraction(1, 5), labels=labels)
    assert space.predict_map(0) == {"a": Fraction(4, 5), "b": Fraction(1, 10), "c": Fraction(1, 10)}
    assert space.observe([(0, "c")]).posterior == prior
    assert space.observe([(0, "a")]).posterior == {"a": Fraction(8, 9), "b": Fraction(1, 9)}


def test_a_likelihood_function_gives_what_the_same_noise_gives():
    def of(t):
        return lambda y, x: Fraction(9, 10) if y == (x >= t) else Fraction(1, 10)

    prior = {t: Fraction(1, 4) for t in range(4)}
    space = likely.Hypotheses.supervised(prior=prior, likelihood={t: of(t) for t in prior})
    data = [(0, False), (3, True), (2, False), (1, True)]
    assert space.observe(data).posterior == thresholds(4, noise=Fraction(1, 10)).observe(data).posterior


def test_order_does_not_matter_and_steps_are_the_whole():
    data = [(0, False), (3, True), (2, True), (1, False), (2, False)]
    space = thresholds(5, noise=0.2)
    assert not space.exact
    whole = space.observe(data).posterior
    assert space.observe(data[::-1]).posterior == whole
    *_, last = space.trace(data)
    assert last.posterior == whole
    assert len(list(space.trace(data))) == 6
    exact = thresholds(5, noise=Fraction(1, 5)).observe(data).posterior
    assert whole == pytest.approx({t: float(p) for t, p in exact.items()}, abs=1e-15)


def test_the_gibbs_classifier_is_wrong_at_most_twice_as_often_as_the_optimal_one_over_all_truths():
    """The truth is drawn from the prior, seen at three points, and asked at the others: exact, by enumeration."""
    space, asked = concepts(4), [2, 3]
    for noise in (0, Fraction(1, 10)):
        noisy = concepts(4, noise=noise)
        errors = {"optimal": Fraction(0), "map": Fraction(0), "gibbs": Fraction(0)}
        for labels in itertools.product((0, 1), repeat=3):
            after = noisy.observe(zip((0, 1, 2), labels, strict=True))
            for x in asked:
                found = after.expected_errors(x)
                assert found["optimal"] <= found["gibbs"] <= 2 * found["optimal"]
                assert found["optimal"] <= found["map"]
                errors = {name: e + after.evidence * found[name] for name, e in errors.items()}
        assert errors["optimal"] < 2
    prior = {"a": Fraction(4, 5), "b": Fraction(1, 5)}
    skewed = likely.Hypotheses.supervised(prior=prior, predict={"a": lambda _: 1, "b": lambda _: 0})
    assert skewed.expected_errors("x") == {"optimal": Fraction(1, 5), "map": Fraction(1, 5), "gibbs": Fraction(8, 25)}
    assert len(space.version_space) == 16


def test_gibbs_draws_hypotheses_as_often_as_the_posterior_has_them():
    after = thresholds(11).observe([(3, False), (7, True)])
    drawn = [after.predict_gibbs(4, seed) for seed in range(2000)]
    assert np.mean(drawn) == pytest.approx(0.25, abs=0.03)
    assert after.predict_gibbs(4, 7) == after.predict_gibbs(4, 7)
    assert {after.predict_gibbs(9, seed) for seed in range(20)} == {True}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "one of the two"),
        ({"predict": {"a": lambda _: 1}, "likelihood": {"a": lambda _y, _x: 1}}, "one of the two"),
        ({"predict": {"a": 1}}, "not a function"),
        ({"predict": {"b": lambda _: 1}}, "does not name 'a'"),
        ({"likelihood": {"a": lambda _y, _x: 0.5}, "noise": 0.1}, "contain their own noise"),
        ({"predict": {"a": lambda _: 1}, "noise": 1.5}, "not a probability"),
        ({"predict": {"a": lambda _: 1}, "labels": ["x"]}, "two labels"),
    ],
)
def test_what_makes_no_space_is_refused(settings, message):
    with pytest.raises((UsageError, DataError), match=message):
        likely.Hypotheses.supervised(prior={"a": 1}, **settings)


def test_odd_data_are_refused_by_name():
    with pytest.raises(DataError, match=r"'spam' is not a label.*labels="):
        concepts(2).observe([(0, "spam")])
    with pytest.raises(DataError, match="not a pair"):
        concepts(2).observe([0])
    with pytest.raises(DataError, match="predicts 'maybe'"):
        likely.Hypotheses.supervised(prior={"a": 1}, predict={"a": lambda _: "maybe"}).predict(0)
    with pytest.raises(DataError, match="sums to"):
        likely.Hypotheses.supervised(prior={"a": 1}, likelihood={"a": lambda _y, _x: 0.4}).observe([(0, True)])
    with pytest.raises(UsageError, match=r"Hypotheses\.supervised"):
        likely.Hypotheses(prior={"a": 1}, likelihood={"a": lambda y: y})


def test_posterior_odds_are_prior_odds_times_the_likelihood_ratio():
    after = BAGS.observe(["lime", "lime"])
    assert after.odds("h4", "h3") == Fraction(9, 8)
    assert BAGS.odds("h4", "h3") == Fraction(1, 2)
    assert after.odds_ratio("h4", "h3") == Fraction(9, 4)
    assert after.odds("h4", "h3") == BAGS.odds("h4", "h3") * after.odds_ratio("h4", "h3")
    assert after.odds("h4") == Fraction(9, 17)
    assert after.odds("h4") == BAGS.odds("h4") * after.odds_ratio("h4")
    assert after.odds("h4", "h1") == math.inf
    floats = likely.Hypotheses(prior={"a": 0.5, "b": 0.5}, likelihood={"a": {1: 0.8, 0: 0.2}, "b": {1: 0.4, 0: 0.6}})
    assert floats.observe({1: 3}).odds("a", "b") == pytest.approx(8)
    assert floats.observe({1: 4000}).odds("a") == pytest.approx(math.inf)
    with pytest.raises(DataError, match="0 / 0"):
        after.odds("h1", "h1")
    with pytest.raises(DataError, match="not a hypothesis"):
        after.odds("h9")


def bernoulli(outcome, theta):
    return theta if outcome else 1 - theta


def test_a_uniform_theta_after_seven_of_ten_is_a_beta_as_points_grow():
    exact = Beta(8, 4)
    errors = []
    for points in (11, 101, 1001):
        grid = likely.Hypotheses.grid(0, 1, points, likelihood=bernoulli).observe([1] * 7 + [0] * 3)
        assert grid.map == pytest.approx(0.7, abs=1e-12)
        assert grid.ml == grid.map
        errors.append(abs(grid.predict(1) - 2 / 3))
    assert errors[0] > errors[1] > errors[2]
    assert errors[1] < 5e-8
    assert errors[2] < 1e-11
    assert grid.predict(0) == pytest.approx(1 / 3)
    assert grid.predict_map(1) == pytest.approx(0.7)
    assert grid.mean == pytest.approx(exact.mean, abs=1e-10)
    assert grid.deviation == pytest.approx(exact.deviation, abs=1e-9)
    assert grid.interval() == pytest.approx(exact.interval(), abs=1e-5)
    assert grid.between(0.5, 0.8) == pytest.approx(exact.between(0.5, 0.8), abs=5e-6)
    assert grid.density[700] == pytest.approx(exact.density(0.7), abs=1e-8)
    assert grid.log_evidence == pytest.approx(math.log(1 / 1320), abs=1e-9)


def test_a_prior_density_moves_the_map_and_need_not_be_normalised():
    grid = likely.Hypotheses.grid(0, 1, 1001, likelihood=bernoulli, prior=lambda t: 50 * t * (1 - t))
    assert grid.mean == pytest.approx(0.5)
    after = grid.observe({1: 7, 0: 3})
    assert after.map == pytest.approx(8 / 12, abs=6e-4)
    assert after.ml == pytest.approx(0.7)
    assert after.predict(1) == pytest.approx(9 / 14, abs=1e-9)
    *_, last = grid.trace([1] * 7 + [0] * 3)
    np.testing.assert_allclose(last.density, after.density, rtol=1e-12)


def test_measurements_have_densities():
    def normal(x, mu):
        return math.exp(-((x - mu) ** 2) / 2) / math.sqrt(2 * math.pi)

    grid = likely.Hypotheses.grid(-10, 10, 4001, likelihood=normal, prior=lambda m: math.exp(-m * m / 2))
    after = grid.observe([1.0, 2.0, 3.0])
    assert after.mean == pytest.approx(6 / 4, abs=1e-9)
    assert after.deviation == pytest.approx(math.sqrt(1 / 4), abs=1e-9)


def test_many_draws_do_not_underflow():
    after = likely.Hypotheses.grid(0, 1, 2001, likelihood=bernoulli).observe({1: 70_000, 0: 30_000})
    assert after.map == pytest.approx(0.7)
    assert math.isfinite(after.log_evidence)
    assert after.log_evidence < -60_000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"low": 1, "high": 0}, "low < high"),
        ({"points": 2}, "3 points or more"),
        ({"prior": lambda _: 0.0}, "0 everywhere"),
        ({"prior": lambda t: -t}, "0 or more"),
        ({"prior": lambda t: 1 / t if t else math.inf}, "ends of the grid inwards"),
    ],
)
def test_what_makes_no_grid_is_refused(settings, message):
    with pytest.raises(DataError, match=message):
        likely.Hypotheses.grid(**{"low": 0, "high": 1, "likelihood": bernoulli} | settings)


def test_data_that_are_impossible_on_the_grid_are_refused():
    with pytest.raises(DataError, match="impossible at every point"):
        likely.Hypotheses.grid(0, 0.5, likelihood=lambda o, t: float(o == "x" and t > 1)).observe(["x"])


def test_a_grid_of_no_functions_or_points_is_refused() -> None:
    with pytest.raises(DataError, match="the prior is 3, not a function"):
        likely.Hypotheses.grid(0, 1, likelihood=lambda _, theta: theta, prior=3)
    with pytest.raises(DataError, match="the likelihood is None, not a function"):
        likely.Hypotheses.grid(0, 1, likelihood=None)
    with pytest.raises(DataError, match="3 points or more"):
        likely.Hypotheses.grid(0, 1, "many", likelihood=lambda _, theta: theta)


def test_a_hypothesis_that_is_excluded_is_not_asked_again() -> None:
    asked = {0: 0, 5: 0}

    def at_least(t: int):
        def predict(x: int) -> bool:
            asked[t] += 1
            return x >= t

        return predict

    space = likely.Hypotheses.supervised(prior={0: 0.5, 5: 0.5}, predict={t: at_least(t) for t in asked})
    after = space.observe([(3, False), (6, True), (7, True)])
    assert asked == {0: 1, 5: 3}
    assert after.posterior == {0: 0.0, 5: 1.0}
    assert after.version_space == [5]
