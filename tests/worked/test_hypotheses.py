import json
import math
import pickle
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import likely
from likely.bayes import Hypotheses
from likely.errors import DataError, LikelyWarning

F = Fraction
BAGS = ("h1", "h2", "h3", "h4", "h5")
PRIOR = dict(zip(BAGS, (F(1, 10), F(1, 5), F(2, 5), F(1, 5), F(1, 10)), strict=True))
LIME = dict(zip(BAGS, (F(0), F(1, 4), F(1, 2), F(3, 4), F(1)), strict=True))


@pytest.fixture
def bags():
    return Hypotheses(prior=PRIOR, likelihood={bag: {"cherry": 1 - lime, "lime": lime} for bag, lime in LIME.items()})


@pytest.fixture
def float_bags():
    rows = {bag: {"cherry": 1 - float(lime), "lime": float(lime)} for bag, lime in LIME.items()}
    return Hypotheses(prior={"h1": 0.1, "h2": 0.2, "h3": 0.4, "h4": 0.2, "h5": 0.1}, likelihood=rows)


CANDY = [
    (0, (F(1, 10), F(1, 5), F(2, 5), F(1, 5), F(1, 10)), F(1, 2), "h3"),
    (1, (F(0), F(1, 10), F(2, 5), F(3, 10), F(1, 5)), F(13, 20), "h3"),
    (2, (F(0), F(1, 26), F(4, 13), F(9, 26), F(4, 13)), F(19, 26), "h4"),
    (3, (F(0), F(1, 76), F(4, 19), F(27, 76), F(8, 19)), F(121, 152), "h5"),
]


@pytest.mark.parametrize(("limes", "posterior", "next_lime", "best"), CANDY)
def test_the_candy_table_to_the_last_fraction(bags, limes, posterior, next_lime, best):
    after = bags.observe(["lime"] * limes)
    assert tuple(after.posterior.values()) == posterior
    assert after.predict() == {"cherry": 1 - next_lime, "lime": next_lime}
    assert after.map == best


@pytest.mark.parametrize(("limes", "posterior", "next_lime", "best"), CANDY)
def test_the_candy_table_in_floats(float_bags, limes, posterior, next_lime, best):
    after = float_bags.observe(["lime"] * limes)
    assert list(after.posterior.values()) == pytest.approx([float(p) for p in posterior], abs=1e-15)
    assert after.predict()["lime"] == pytest.approx(float(next_lime), abs=1e-15)
    assert after.map == best


def test_two_limes_make_the_third_bag_four_thirteenths_likely(bags):
    assert bags.observe("lime").observe("lime").posterior["h3"] == F(4, 13)


def test_after_three_limes_the_map_bag_is_certain_and_the_optimal_prediction_is_not(bags):
    after = bags.observe(["lime"] * 3)
    assert after.predict_map() == {"cherry": 0, "lime": 1}
    assert after.predict()["lime"] == F(121, 152)


def test_the_most_likely_bag_ignores_the_prior(bags):
    assert bags.observe("lime").ml == "h5"
    assert bags.observe("lime").map == "h3"
    assert bags.observe("cherry").ml == "h1"


def test_before_any_data_the_posterior_is_the_prior_and_the_evidence_is_one(bags):
    assert bags.posterior == PRIOR
    assert bags.evidence == 1
    assert bags.log_evidence == 0
    assert bags.ml == "h1"


def test_the_evidence_of_three_limes_multiplies_the_three_predictions(bags):
    assert bags.observe(["lime"] * 3).evidence == F(1, 2) * F(13, 20) * F(19, 26) == F(19, 80)


def test_three_hypotheses_vote_minus_although_the_most_probable_one_says_plus():
    voters = Hypotheses(
        prior={"h1": F(4, 10), "h2": F(3, 10), "h3": F(3, 10)},
        likelihood={h: {"seen": 1} for h in ("h1", "h2", "h3")},
    )
    votes = {"h1": "+", "h2": "-", "h3": "-"}
    assert votes[voters.map] == "+"
    assert voters.vote(votes) == {"+": F(2, 5), "-": F(3, 5)}


def test_a_vote_may_itself_be_uncertain(bags):
    after = bags.observe("lime")
    assert after.vote({bag: {"cherry": 1 - lime, "lime": lime} for bag, lime in LIME.items()}) == after.predict()


def test_fractions_stay_fractions_and_floats_stay_floats(bags, float_bags):
    exact, rough = bags.observe("lime"), float_bags.observe("lime")
    assert exact.exact
    assert not rough.exact
    for value in (*exact.posterior.values(), *exact.predict().values(), *exact.predict_map().values(), exact.evidence):
        assert type(value) is F
    for value in (*rough.posterior.values(), *rough.predict().values(), *rough.predict_map().values(), rough.evidence):
        assert type(value) is float


def test_whole_numbers_are_exact_too():
    coin = Hypotheses(
        prior={"fair": F(1, 2), "two heads": F(1, 2)},
        likelihood={"fair": {"H": F(1, 2), "T": F(1, 2)}, "two heads": {"H": 1}},
    )
    assert coin.observe(["H", "H"]).posterior == {"fair": F(1, 5), "two heads": F(4, 5)}
    assert coin.observe(["H", "T"]).posterior == {"fair": 1, "two heads": 0}


def test_observing_leaves_the_old_value_unchanged(bags):
    bags.observe(["lime", "lime"])
    assert bags.posterior == PRIOR
    assert bags.seen == {}
    with pytest.raises(AttributeError):
        bags.prior = {}


def test_observations_come_one_by_one_in_a_row_or_counted(bags):
    wanted = bags.observe("lime").observe("cherry").observe("lime")
    assert wanted.seen == {"lime": 2, "cherry": 1}
    assert bags.observe(["lime", "cherry", "lime"]) == wanted
    assert bags.observe(("cherry", "lime", "lime")) == wanted
    assert bags.observe(Counter(lime=2, cherry=1)) == wanted
    assert bags.observe({"lime": 2, "cherry": 1}) == wanted
    assert bags.observe(np.array(["lime", "lime", "cherry"])) == wanted
    assert bags.observe(x for x in ("lime", "lime", "cherry")) == wanted
    assert bags.observe([]) == bags.observe({"lime": 0}) == bags


def test_an_outcome_may_be_a_pair():
    dice = Hypotheses(
        prior={"loaded": 0.5, "fair": 0.5},
        likelihood={"loaded": {(6, 6): 0.5, "other": 0.5}, "fair": {(6, 6): 1 / 36, "other": 35 / 36}},
    )
    assert dice.observe((6, 6)) == dice.observe([(6, 6)])
    assert dice.observe((6, 6)).map == "loaded"


def test_the_trace_starts_before_the_data_and_ends_after_them(bags):
    steps = list(bags.trace(["lime"] * 3))
    assert [step.predict()["lime"] for step in steps] == [F(1, 2), F(13, 20), F(19, 26), F(121, 152)]
    assert [step.map for step in steps] == ["h3", "h3", "h4", "h5"]


def test_a_million_observations_do_not_underflow(float_bags):
    after = float_bags.observe({"lime": 750_000, "cherry": 250_000})
    assert after.map == "h4"
    assert after.posterior["h4"] == 1.0
    assert after.evidence == 0.0
    wanted = math.log(0.2) + 750_000 * math.log(0.75) + 250_000 * math.log(0.25)
    assert after.log_evidence == pytest.approx(wanted, rel=1e-14)
    assert "h4" in str(after)


def test_ten_thousand_observations_stay_exact(bags):
    after = bags.observe({"lime": 7_500, "cherry": 2_500})
    assert sum(after.posterior.values()) == 1
    assert after.log_evidence == pytest.approx(
        math.log(0.2) + 7_500 * math.log(0.75) + 2_500 * math.log(0.25), rel=1e-12
    )
    assert "h4" in str(after)
    json.dumps(after.to_dict())


def test_ties_go_to_the_first_hypothesis_even_when_floats_round():
    # 0.1 * 0.3 and 0.3 * 0.1 are one number, but the sums of their logarithms need not be.
    for a, b in [(0.1, 0.3), (0.3, 0.1), (0.2, 0.7), (0.7, 0.2), (0.15, 0.45)]:
        space = Hypotheses(
            prior={"first": a, "second": b, "rest": 1 - a - b},
            likelihood={"first": {"x": b, "y": 1 - b}, "second": {"x": a, "y": 1 - a}, "rest": {"x": 0, "y": 1}},
        )
        assert space.observe("x").map == "first"


def test_data_no_hypothesis_allows_are_refused_by_name():
    coins = Hypotheses(prior={"heads": 0.5, "tails": 0.5}, likelihood={"heads": {"H": 1}, "tails": {"T": 1}})
    with pytest.raises(DataError, match="'T' is impossible under every hypothesis") as caught:
        coins.observe(["H", "H", "T"])
    assert caught.value.value == "T"


def test_a_hypothesis_of_prior_zero_cannot_save_the_data():
    coins = Hypotheses(prior={"heads": 1, "tails": 0}, likelihood={"heads": {"H": 1}, "tails": {"T": 1}})
    with pytest.raises(DataError, match="impossible"):
        coins.observe("T")


def test_an_unknown_outcome_is_refused_and_the_known_ones_are_listed(bags):
    with pytest.raises(DataError, match=r"'lemon'.*'cherry', 'lime'") as caught:
        bags.observe("lemon")
    assert caught.value.value == "lemon"
    with pytest.raises(DataError, match="'lemon'"):
        bags.observe(["lime", "lemon"])
    with pytest.raises(DataError, match="None"):
        bags.observe(None)
    with pytest.raises(DataError, match=r"\['lime'\]"):
        bags.observe([["lime"]])


@pytest.mark.parametrize("count", [-1, 0.5, "two", None, True])
def test_a_count_that_is_no_count_is_refused(bags, count):
    with pytest.raises(DataError, match="whole number"):
        bags.observe({"lime": count})


@pytest.mark.parametrize(
    ("prior", "likelihood", "words"),
    [
        ({"a": F(1, 2), "b": F(1, 3)}, {"a": {"x": 1}, "b": {"x": 1}}, "prior sums to 5/6, not 1"),
        ({"a": 0.5, "b": 0.5 + 1e-8}, {"a": {"x": 1}, "b": {"x": 1}}, "prior sums to"),
        ({"a": 1}, {"a": {"x": F(1, 2), "y": F(1, 3)}}, "likelihood of 'a' sums to 5/6, not 1"),
        ({"a": F(1, 2), "b": F(1, 2)}, {"a": {"x": 1}}, "likelihood does not name 'b'"),
        ({"a": 1}, {"a": {"x": 1}, "c": {"x": 1}}, "prior does not name 'c'"),
        ({"a": F(3, 2), "b": F(-1, 2)}, {"a": {"x": 1}, "b": {"x": 1}}, "not a probability"),
        ({"a": 1}, {"a": {"x": F(3, 2), "y": F(-1, 2)}}, "not a probability"),
        ({"a": 1}, {"a": {"x": float("nan")}}, "not a probability"),
        ({"a": 1}, {"a": {"x": None}}, "not a probability"),
        ({"a": 1}, {"a": 0.5}, "'a'"),
        ({"a": 1}, {"a": {}}, "empty"),
        ({}, {}, "empty"),
    ],
)
def test_a_space_that_is_no_distribution_is_refused(prior, likelihood, words):
    with pytest.raises(DataError, match=words):
        Hypotheses(prior=prior, likelihood=likelihood)


def test_a_float_prior_may_miss_one_by_rounding_only():
    tenth = Hypotheses(prior=dict.fromkeys(range(10), 0.1), likelihood={i: {"x": 1} for i in range(10)})
    assert sum(tenth.posterior.values()) == pytest.approx(1, abs=1e-15)


def test_a_vote_must_name_every_hypothesis(bags):
    with pytest.raises(DataError, match="'h5'"):
        bags.vote(dict.fromkeys(BAGS[:4], "+"))
    with pytest.raises(DataError, match="'h6'"):
        bags.vote(dict.fromkeys((*BAGS, "h6"), "+"))


def test_the_text_shows_both_predictions(bags):
    text = str(bags.observe(["lime"] * 3))
    for words in ("h5", "8/19", "121/152", "27/76", "seen: lime 3", "19/80"):
        assert words in text
    assert "seen: nothing" in str(bags)
    assert repr(bags.observe("lime")) == "Hypotheses(5 hypotheses, seen: lime 1, MAP: h3)"


def test_the_html_escapes_names():
    nasty = Hypotheses(prior={"<script>": 1}, likelihood={"<script>": {"<b>": 1}})
    html = nasty.observe("<b>")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<b>" not in html


def test_a_name_with_control_characters_is_printed_harmlessly():
    assert "\x1b" not in str(Hypotheses(prior={"\x1b[31m": 1}, likelihood={"\x1b[31m": {"x": 1}}))


def test_the_dict_is_plain_and_holds_the_fractions(bags, float_bags):
    told = json.loads(json.dumps(bags.observe(["lime"] * 3).to_dict()))
    assert told["posterior"]["h5"] == pytest.approx(8 / 19)
    assert told["fractions"]["posterior"]["h5"] == "8/19"
    assert told["predict"]["lime"] == pytest.approx(121 / 152)
    assert told["predict_map"]["lime"] == 1.0
    assert (told["map"], told["ml"], told["seen"], told["exact"]) == ("h5", "h5", {"lime": 3}, True)
    assert "fractions" not in float_bags.to_dict()


def test_a_copy_by_pickle_is_equal(bags):
    after = bags.observe("lime")
    assert after.posterior["h3"] == F(2, 5)
    assert pickle.loads(pickle.dumps(after)) == after


def test_what_was_derived_before_the_data_is_not_kept_after_them():
    """An observation copies the fields alone, and the functions are not evaluated again for what they gave before."""
    calls = []

    def prior(theta):
        calls.append(theta)
        return 2 * theta

    grid = Hypotheses.grid(0, 1, 101, likelihood=lambda outcome, theta: theta if outcome else 1 - theta, prior=prior)
    before = grid.mean, grid.map
    after = grid.observe([False, False])
    assert (grid.mean, grid.map) == before
    assert after.mean < before[0]
    assert len(calls) == 101
    again = Hypotheses.grid(0, 1, 101, likelihood=grid.likelihood, prior=prior).observe([False, False])
    assert again == after
    assert again.mean == after.mean


def test_a_grid_too_coarse_for_its_posterior_says_so() -> None:
    def coin(outcome: int, theta: float) -> float:
        return theta if outcome else 1 - theta

    grid = likely.Hypotheses.grid(0.001, 0.999, 101, likelihood=coin)
    with pytest.warns(LikelyWarning, match=r"narrower than the cells.*more points"):
        grid.observe({1: 70_000, 0: 30_000})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grid.observe({1: 70, 0: 30})
        grid.observe({1: 20})
        likely.Hypotheses.grid(0.69, 0.71, 101, likelihood=coin).observe({1: 70_000, 0: 30_000})
        likely.Hypotheses.grid(0, 1, 101, likelihood=lambda x, theta: float(x <= theta)).observe([0.3, 0.5])
