"""The worked examples print the sums of the textbook, and the library agrees with every one of them."""

import re
from fractions import Fraction

import pytest

from likely.errors import LikelyError, UsageError
from likely.teaching import examples
from likely.teaching.examples._sheet import Sheet, decimal


def test_every_example_has_a_description_and_runs() -> None:
    assert list(examples.EXAMPLES) == [
        "tennis", "ball", "candies", "spam", "insurance", "wrappers", "em",
        "text", "die", "theta", "concepts", "average", "discriminant", "icecream", "sky", "aode",
    ]  # fmt: skip
    for name, description in examples.EXAMPLES.items():
        text = examples.run(name)
        assert description in text
        assert "checked with the library" in text


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        (
            "tennis",
            [
                "5/14 · 3/5 · 1/5 · 4/5 · 3/5 = 18/875 = 0.020571", "v_NB = argmax P(v) · Π P(aᵢ | v) = No", "θ_ijk",
                "9/14 · 2/9 · 3/9 · 3/9 · 3/9 = 1/189 = 0.005291",
                "0.795417", "3250/163863", "5/841", "0.769374", "105/5408", "1/160", "0.756484", "25/1372", "6/847",
                "0.720067", "5/14 · 0/5 · 1/5 · 4/5 · 3/5 = 0", "0.721583", "= 22", "= 13", "= 71", "26 entries",
            ],
        ),
        ("ball", ["Yes 1/162, No 4/162", "odds Yes : No = 1 : 4", "= 4/5"]),
        (
            "candies",
            [
                "1/10 1/5 2/5 1/5 1/10 1/2 h3", "0 1/10 2/5 3/10 1/5 13/20 h3", "0 1/26 4/13 9/26 4/13 19/26 h4",
                "0 1/76 4/19 27/76 8/19 121/152 h5", "with probability 1.", "minus 3/10 + 3/10 = 3/5",
                "10/20/40/20/10", "0.4, 0.3, 0.3 is meant",
            ],
        ),
        ("spam", ["= 9/10", "= 12/13 = 0.923 (a slide prints 0.93)", "36/60 · 18/60 = 9/50 = 0.18", "12/60 = 0.2"]),
        (
            "insurance",
            [
                "(23+17+43+20)/4 = 25.75", "10.182706", "0.0359103", "(68+32)/2 = 50", "18.000000", "0.0119551",
                "6.007517", "= 0.000000", "2.145542", "21.75", "4.5",
            ],
        ),
        ("text", ["(2+1)/12 = 1/4", "(0+1)/12 = 1/12", "= 1/288", "= 1/1728", "v_NB = argmax = spam", "6/7 = 0.857143"]),
        ("die", ["6 2 2/5 3/11 4/17", "4 0 0 1/11 2/17", "1 1 1/5 2/11 3/17", "(0 + 1)/(8 + 9) = 1/17"]),
        ("theta", ["= Beta(8, 4)", "1,001 0.7 0.666667 3.7e-12", "= 2/3", "between 0.3903 and 0.8907"]),
        (
            "concepts",
            [
                "version space: x ≥ 4, x ≥ 5, x ≥ 6, x ≥ 7", "h_MAP: x ≥ 4", "P(D) = 4/11", "3/8 ≤ 2 · 1/4",
                "(1/10)^2·(9/10)^1, P(h | D) = 1/67", "P(h | D) = 9/67",
            ],
        ),
        ("average", ["normalised = 0.61027", "P(h | D) = 0.60288", "O·H· 0.1517 0.6858"]),
        ("discriminant", ["w₁ = 4, w₂ = 6/5, w₀ = -101/5", "3/8·y² + 4·x + (-0.75)·y + -17.818147", "LDA", "QDA"]),
        (
            "icecream",
            [
                "492/2200 = 0.223636", "168/2800 = 0.06", "480/1600 = 0.3", "G = 292.2152, degrees of freedom 1",
                "G = 0.0000, degrees of freedom 2, p = 1", "= 0.448061", "0.132 with, 0.132 without",
            ],
        ),
        ("sky", ["2 0.666667 0.533333 0.8125 0.357143", "= 11/20", "= 9/11", "P(cloudy | rain) = 0.75"]),
        (
            "aode",
            [
                "AODE: one more", "Temperature → Outlook, Temperature → Humidity, Outlook → Wind",
                "3/8 · 1/2 · 1/4 · 5/7 · 4/7 = 0.019133", "No 3/8 · 1/2 · 1/6 · 4/5 · 2/5 = 0.01",
                "Yes 5/8 · 1/3 · 1/3 · 2/5 · 4/11 = 0.010101", "AODE 0.010107 0.006499 0.608645",
            ],
        ),
        ("wrappers", ["60/(60+40) = 3/5", "45/(45+15) = 3/4", "10/(10+30) = 1/4", "P(cherry | red)", "9/11"]),
    ],
)  # fmt: skip
def test_the_numbers_of_the_notes_stand_on_the_page(name: str, reported: list[str]) -> None:
    page = " ".join(examples.run(name).split())
    assert [number for number in reported if number not in page] == []


def test_the_key_numbers_are_exact_or_close() -> None:
    tennis = examples.numbers("tennis")
    assert tennis["joint No"] == "18/875"
    third = tennis["pseudocount 1/3"]
    assert (third["No"], third["Yes"]) == ("3250/163863", "5/841")
    assert third["P(No | day)"] == pytest.approx(0.769374, abs=5e-7)
    assert examples.numbers("candies")["3 limes"]["next is lime"] == "121/152"
    assert examples.numbers("spam")["P(spam | buy and lottery)"] == "12/13"
    assert examples.numbers("average")["joints"] == pytest.approx(0.61027, abs=5e-6)
    assert examples.numbers("average")["conditionals"] == pytest.approx(0.60288, abs=5e-6)
    assert examples.numbers("text")["P(spam | mail)"] == "6/7"
    assert (examples.numbers("die")["P(6)"], examples.numbers("die")["P(4)"]) == ("3/11", "1/11")
    assert examples.numbers("discriminant")["weights"] == ["4", "6/5"]
    assert examples.numbers("icecream")["default"] == pytest.approx(0.3, abs=0.02)
    insurance = examples.numbers("insurance")
    assert insurance["odds (30, Family), pseudocount 0"] == pytest.approx(6.007517, abs=5e-7)
    assert insurance["odds (30, Truck), pseudocount 0"] == 0
    assert insurance["odds (30, Truck), pseudocount 1"] == pytest.approx(2.145542, abs=5e-7)


def test_aode_averages_the_joint_probabilities_of_its_networks() -> None:
    """The four means written out, as no network of the library is an average."""
    no = [Fraction(1, 100), Fraction(1, 192), Fraction(15, 1372), Fraction(1, 70)]
    yes = [Fraction(1, 128), Fraction(1, 180), Fraction(1, 396), Fraction(1, 99)]
    assert Fraction(examples.numbers("aode")["P(No | day), AODE"]) == sum(no) / sum(no + yes)


def test_the_picture_of_aode_holds_six_networks_beside_each_other() -> None:
    picture = examples.picture("aode")
    assert picture.count("<svg") == 7
    assert [f"AODE: {name}</text>" in picture for name in ("Outlook", "Temperature", "Humidity", "Wind")] == [True] * 4
    assert 'x="0" y="0"' in picture
    assert picture.count('x="440" y="') == 3


def test_a_candy_posterior_on_paper_sums_to_one() -> None:
    for limes in range(4):
        shares = map(Fraction, examples.numbers("candies")[f"{limes} limes"]["posterior"])
        assert sum(shares) == 1


def test_an_unknown_example_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=re.escape("choose one of tennis, ball")):
        examples.run("golf")


def test_a_sum_that_the_library_does_not_share_is_an_error() -> None:
    with pytest.raises(LikelyError, match="on paper"):
        Sheet().check("the odds", Fraction(1, 3), 0.34)


def test_a_tiny_number_is_not_printed_as_zero() -> None:
    assert decimal(Fraction(1, 10**9)) == "1e-09"
    assert decimal(0) == "0"
    assert decimal(Fraction(1, 4)) == "0.25"
