from decimal import Decimal
from fractions import Fraction

import pytest

from likely.bayes import bayes_rule, independent, total_probability
from likely.errors import DataError

F = Fraction
MAIL = {"spam": F(60, 100), "good": F(40, 100)}
BUY = {"spam": F(36, 60), "good": F(4, 40)}
BOTH = {"spam": F(12, 60), "good": F(1, 40)}


def test_a_mail_that_says_buy_is_spam_with_nine_tenths():
    assert bayes_rule(prior=MAIL, likelihood=BUY) == {"spam": F(9, 10), "good": F(1, 10)}


def test_a_mail_that_says_buy_and_lottery_is_spam_with_twelve_thirteenths():
    posterior = bayes_rule(prior=MAIL, likelihood=BOTH)
    assert posterior == {"spam": F(12, 13), "good": F(1, 13)}
    assert round(float(posterior["spam"]), 3) == 0.923


def test_counting_mails_gives_the_same_as_multiplying_probabilities():
    assert bayes_rule(counts={"spam": (36, 60), "good": (4, 40)}) == bayes_rule(prior=MAIL, likelihood=BUY)
    assert bayes_rule(counts={"spam": (12, 60), "good": (1, 40)}) == bayes_rule(prior=MAIL, likelihood=BOTH)


def test_buy_stands_in_two_fifths_of_all_mails():
    assert total_probability(MAIL, BUY) == F(2, 5)


def test_two_words_assumed_independent_meet_in_nine_fiftieths_of_the_spam():
    assert independent(F(36, 60), F(18, 60)) == F(9, 50)


def test_two_dice_show_two_sixes_once_in_thirty_six():
    assert independent(F(1, 6), F(1, 6)) == F(1, 36)


def test_nothing_at_all_is_certain():
    assert independent() == 1


def test_fractions_stay_fractions_and_decimals_are_taken_at_their_word():
    spoken = bayes_rule(
        prior={"spam": Decimal("0.6"), "good": Decimal("0.4")},
        likelihood={"spam": Decimal("0.6"), "good": Decimal("0.1")},
    )
    assert spoken == {"spam": F(9, 10), "good": F(1, 10)}
    assert all(type(p) is F for p in bayes_rule(prior={"a": 1, "b": 0}, likelihood={"a": 1, "b": 1}).values())
    assert type(total_probability(MAIL, BUY)) is F
    assert type(independent(1, 0)) is F


def test_floats_agree_with_the_fractions():
    posterior = bayes_rule(prior={"spam": 0.6, "good": 0.4}, likelihood={"spam": 0.6, "good": 0.1})
    assert posterior == pytest.approx({"spam": 0.9, "good": 0.1}, abs=1e-15)
    assert total_probability({"spam": 0.6, "good": 0.4}, {"spam": 0.6, "good": 0.1}) == pytest.approx(0.4, abs=1e-15)
    assert independent(0.6, 0.3) == pytest.approx(0.18, abs=1e-15)


def test_a_single_float_makes_the_answer_a_float():
    assert all(type(p) is float for p in bayes_rule(prior=MAIL, likelihood={"spam": 0.6, "good": F(1, 10)}).values())


def test_a_class_without_rows_gets_nothing():
    assert bayes_rule(counts={"spam": (36, 60), "good": (4, 40), "chess": (0, 0)})["chess"] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"prior": {"a": F(1, 2), "b": F(1, 3)}, "likelihood": {"a": 1, "b": 1}}, "sums to 5/6, not 1"),
        ({"prior": {"a": 0.5, "b": 0.4}, "likelihood": {"a": 1, "b": 1}}, "sums to 0.9, not 1"),
        ({"prior": {"a": F(1, 2), "b": F(1, 2)}, "likelihood": {"a": 1}}, "'b'"),
        ({"prior": {"a": F(1, 2), "b": F(1, 2)}, "likelihood": {"a": 1, "b": 1, "c": 1}}, "'c'"),
        ({"prior": {"a": F(3, 2), "b": F(-1, 2)}, "likelihood": {"a": 1, "b": 1}}, "not a probability"),
        ({"prior": {"a": 1}, "likelihood": {"a": 36}}, "not a probability"),
        ({"prior": {"a": 1}, "likelihood": {"a": float("nan")}}, "not a probability"),
        ({"prior": {"a": 1}, "likelihood": {"a": "often"}}, "not a probability"),
        ({"prior": {}, "likelihood": {}}, "empty"),
        ({"prior": {"a": 1, "b": 0}, "likelihood": {"a": 0, "b": 1}}, "impossible"),
        ({"counts": {"a": (5, 4)}}, "'a'"),
        ({"counts": {"a": (-1, 4)}}, "'a'"),
        ({"counts": {"a": 5}}, "'a'"),
        ({"counts": {"a": (0, 4), "b": (0, 6)}}, "impossible"),
        ({"counts": {}}, "empty"),
        ({"counts": {"a": (0, 0)}}, "no rows"),
        ({}, "counts="),
        ({"prior": {"a": 1}}, "likelihood"),
        ({"prior": {"a": 1}, "counts": {"a": (1, 1)}}, "counts="),
    ],
)
def test_what_is_no_probability_is_refused_by_name(arguments, words):
    with pytest.raises(ValueError, match=words) as caught:
        bayes_rule(**arguments)
    assert isinstance(caught.value, DataError) or "counts=" in words or words == "likelihood"
