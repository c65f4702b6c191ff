"""Sum and product rule, odds, tests of conditional independence, and Simpson's reversal."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import likely
from likely.bayes.special import gamma_cdf
from likely.errors import DataError, SchemaError, UsageError

KIDNEY = {("A", "small"): (81, 87), ("A", "large"): (192, 263), ("B", "small"): (234, 270), ("B", "large"): (55, 80)}


def kidney():
    rows = [(t, z, c) for (t, z), (k, n) in KIDNEY.items() for c in ["yes"] * k + ["no"] * (n - k)]
    return dict(zip(("treatment", "stone", "cured"), map(list, zip(*rows, strict=True)), strict=True))


def ice_cream():
    rows = []
    for weather, ice, drowned, days in (
        ("hot", "yes", 480, 1600), ("hot", "no", 120, 400), ("cold", "yes", 12, 600), ("cold", "no", 48, 2400),
    ):  # fmt: skip
        rows += [(weather, ice, "yes")] * drowned + [(weather, ice, "no")] * (days - drowned)
    return dict(zip(("weather", "ice", "drowning"), map(list, zip(*rows, strict=True)), strict=True))


def test_the_rules_of_probability_are_exact_on_fractions():
    assert likely.sum_rule(Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)) == Fraction(2, 3)
    assert likely.sum_rule(Fraction(1, 6), Fraction(1, 6)) == Fraction(1, 3)
    assert likely.product_rule(Fraction(36, 60), Fraction(60, 100)) == Fraction(9, 25)
    assert likely.conditional(Fraction(9, 25), Fraction(60, 100)) == Fraction(3, 5)
    prior, buy = {"s": Fraction(3, 5), "g": Fraction(2, 5)}, {"s": Fraction(3, 5), "g": Fraction(1, 10)}
    assert likely.total_probability(prior, buy) == Fraction(2, 5)
    assert likely.conditional(likely.product_rule(Fraction(3, 5), Fraction(3, 5)), Fraction(2, 5)) == Fraction(9, 10)
    assert likely.sum_rule(0.5, 0.25, 0.125) == 0.625
    assert isinstance(likely.sum_rule(0.5, Fraction(1, 4), Fraction(1, 8)), float)


def test_odds_and_odds_ratios():
    assert likely.odds(Fraction(1, 5)) == Fraction(1, 4)
    assert likely.odds(1) == math.inf
    assert likely.odds(0) == 0
    assert likely.odds(0.75) == pytest.approx(3)
    assert likely.odds_ratio(Fraction(1, 2), Fraction(1, 5)) == 4
    assert likely.odds_ratio(Fraction(1, 2), 0) == math.inf
    with pytest.raises(DataError, match="0 / 0"):
        likely.odds_ratio(0, 0)


@pytest.mark.parametrize(
    ("rule", "numbers", "message"),
    [
        (likely.sum_rule, (Fraction(2, 3), Fraction(2, 3)), "cannot exclude each other"),
        (likely.sum_rule, (Fraction(1, 3), Fraction(1, 2), Fraction(2, 5)), "greater than"),
        (likely.sum_rule, (0.5, 1.5), "not a probability"),
        (likely.product_rule, (2, 1), "not a probability"),
        (likely.conditional, (Fraction(1, 2), Fraction(1, 3)), "greater than"),
        (likely.conditional, (0, 0), "impossible event"),
        (likely.odds, (-1,), "not a probability"),
    ],
)
def test_numbers_that_are_no_probabilities_of_events_are_refused(rule, numbers, message):
    with pytest.raises(DataError, match=message):
        rule(*numbers)


def test_g_and_its_p_value_are_those_of_scipy():
    rng = np.random.default_rng(5)
    data = {"a": rng.integers(0, 3, 400), "b": rng.integers(0, 4, 400)}
    table = np.array([[((data["a"] == i) & (data["b"] == j)).sum() for j in range(4)] for i in range(3)])
    statistic, p_value, degrees, _ = stats.chi2_contingency(table, lambda_="log-likelihood", correction=False)
    found = likely.independence_test(data, "a", "b")
    assert found.statistic == pytest.approx(statistic, rel=1e-11)
    assert found.degrees == degrees == 6
    assert found.p_value == pytest.approx(p_value, rel=1e-10)
    assert found.permutation_p_value == pytest.approx(p_value, abs=0.05)
    assert found.mutual_information == pytest.approx(statistic / 800)


def test_within_strata_g_and_degrees_add():
    found = likely.independence_test(kidney(), "treatment", "cured", given="stone")
    parts = [
        stats.chi2_contingency([[81, 6], [234, 36]], lambda_="log-likelihood", correction=False)[0],
        stats.chi2_contingency([[192, 71], [55, 25]], lambda_="log-likelihood", correction=False)[0],
    ]
    assert found.statistic == pytest.approx(sum(parts))
    assert found.degrees == 2
    assert found.rows == 700
    assert found.p_value == pytest.approx(gamma_cdf(1.0, sum(parts) / 2)[1])
    assert [s.given for s in found.strata] == [("large",), ("small",)]
    assert "given stone: 700 rows" in str(found)
    assert found.to_dict()["strata"][1]["table"] == [[6, 81], [36, 234]]


def test_the_permutation_p_value_of_a_small_table_is_near_the_exact_one():
    """Tea tasting, 3 of 4 cups right: tables as extreme, both sides, have probability 34/70."""
    data = {"poured": ["milk"] * 4 + ["tea"] * 4, "guessed": ["milk"] * 3 + ["tea"] + ["milk"] + ["tea"] * 3}
    found = likely.independence_test(data, "poured", "guessed", permutations=20_000, seed=1)
    assert found.permutation_p_value == pytest.approx(34 / 70, abs=0.012)
    assert found.p_value < 0.17  # chi-square is wrong on eight rows
    assert likely.independence_test(data, "poured", "guessed", permutations=0).permutation_p_value is None


def test_the_permutation_p_value_is_uniform_under_independence():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(120):
        data = {"a": rng.integers(0, 2, 60), "b": rng.integers(0, 2, 60), "z": rng.integers(0, 2, 60)}
        found.append(likely.independence_test(data, "a", "b", given="z", permutations=199).permutation_p_value)
    assert stats.kstest(found, "uniform").pvalue > 0.01


def test_ice_cream_and_drowning_depend_on_each_other_until_the_weather_is_given():
    data = ice_cream()
    alone = likely.independence_test(data, "ice", "drowning")
    assert alone.statistic > 250
    assert alone.p_value < 1e-50
    assert alone.permutation_p_value == pytest.approx(1 / 1001)
    given = likely.independence_test(data, "ice", "drowning", given="weather")
    assert given.statistic == 0
    assert given.degrees == 2
    assert given.p_value == given.permutation_p_value == 1
    compared = likely.simpson(data, "ice", "drowning", "weather", event="yes")
    assert compared.overall == {"no": (168, 2800), "yes": (492, 2200)}
    assert compared.difference == pytest.approx(492 / 2200 - 168 / 2800)
    assert set(compared.differences.values()) == {0}
    assert compared.adjusted == pytest.approx({"no": 0.132, "yes": 0.132})
    assert not compared.reversal


def test_simpsons_reversal_of_the_kidney_stones():
    found = likely.simpson(kidney(), "treatment", "cured", "stone", event="yes")
    assert found.overall == {"A": (273, 350), "B": (289, 350)}
    assert found.difference == pytest.approx(16 / 350)
    assert found.differences == pytest.approx({"large": 55 / 80 - 192 / 263, "small": 234 / 270 - 81 / 87})
    assert found.reversal
    assert found.adjusted["A"] == pytest.approx((357 * 81 / 87 + 343 * 192 / 263) / 700)
    assert found.adjusted["A"] > found.adjusted["B"]
    assert "reversed in every stratum" in str(found)
    assert found.to_dict()["reversal"] is True
    other = likely.simpson(kidney(), "treatment", "cured", "stone", event="no")
    assert other.difference == pytest.approx(-found.difference)
    assert other.reversal


def test_missing_cells_are_left_out_and_several_columns_can_be_given():
    data = kidney()
    data["ward"] = ["x", "y"] * 350
    data["cured"][0] = None
    found = likely.independence_test(data, "treatment", "cured", given=["stone", "ward"], permutations=0)
    assert found.rows == 699
    assert found.degrees == 4
    assert len(found.strata) == 4


def test_columns_that_cannot_be_tested_are_refused_by_name():
    data = kidney()
    with pytest.raises(SchemaError, match="did you mean 'stone'"):
        likely.independence_test(data, "treatment", "stones")
    with pytest.raises(UsageError, match="must differ"):
        likely.independence_test(data, "stone", "cured", given="stone")
    with pytest.raises(DataError, match="1,000 different values"):
        likely.independence_test({"a": list(range(1000)), "b": ["x", "y"] * 500}, "a", "b")
    with pytest.raises(DataError, match="two groups"):
        likely.simpson({"a": ["u", "v", "w"], "b": [1, 0, 1], "z": ["x"] * 3}, "a", "b", "z")
    with pytest.raises(DataError, match="no value 'maybe'"):
        likely.simpson(data, "treatment", "cured", "stone", event="maybe")
    with pytest.raises(DataError, match="no row has a value"):
        likely.independence_test({"a": ["x", None], "b": [None, "y"]}, "a", "b")


def test_an_event_may_be_named_as_text_and_faults_read_as_sentences() -> None:
    table = {"drug": ["A", "A", "B", "B"], "cured": [1, 0, 1, 1], "sex": ["m", "f", "m", "f"], "dose": [1, 2, 3, 1]}
    assert likely.simpson(table, "drug", "cured", "sex", event="1") == likely.simpson(table, "drug", "cured", "sex", event=1)
    with pytest.raises(DataError, match="column 'cured' has no value 7: it has 0, 1"):
        likely.simpson(table, "drug", "cured", "sex", event=7)
    with pytest.raises(DataError, match="column 'dose' has 3 values: compare two groups"):
        likely.simpson(table, "dose", "cured", "sex")
    with pytest.raises(DataError, match=r"has no column 'drugs', did you mean 'drug'|has no column 'drugs'.*'drug'"):
        likely.independence_test(table, "drugs", "cured")
