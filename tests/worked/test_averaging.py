"""Averaging over columns with fractions that can be followed on paper; they stand in docs/columns.md."""

from fractions import Fraction
from functools import partial

import pytest

import likely

learn = partial(likely.learn, plain=True)
TWO = {"x": ["u", "v"], "y": ["a", "b"]}


def test_two_rows_make_an_arc_three_to_two_likely():
    """Own parameters: 1/2 · 1/2; the same for both: 1/2 · 1/3. So π = 1/4 / (1/4 + 1/6) = 3/5."""
    assert learn(TWO, "y").arc_probability["x"] == pytest.approx(float(Fraction(3, 5)), abs=1e-15)


def test_the_average_lies_between_the_two_models():
    """3/5 · 2/3 + 2/5 · 1/2 = 3/5 for the class that showed the value, 3/5 · 1/3 + 2/5 · 1/2 = 2/5 for the other."""
    model = learn(TWO, "y", average=True)
    assert model.posterior([{"x": "u"}]).probabilities[0].tolist() == pytest.approx([3 / 5, 2 / 5], abs=1e-15)
    assert model.relearn(average=False).posterior([{"x": "u"}]).probabilities[0].tolist() == pytest.approx(
        [2 / 3, 1 / 3]
    )
    shown = {(row["class"], row["value"]): row["probability"] for row in model.parameters["x"]}
    assert shown == pytest.approx(
        {("a", "u"): 3 / 5, ("a", "v"): 2 / 5, ("b", "u"): 2 / 5, ("b", "v"): 3 / 5}, abs=1e-15
    )


def test_a_constant_column_contributes_nothing_and_has_arc_probability_one_half():
    data = {"x": ["u"] * 8, "y": ["a", "b"] * 4}
    model = learn(data, "y", average=True)
    assert model.arc_probability["x"] == pytest.approx(0.5, abs=1e-15)  # a column of one value is certain either way
    assert model.posterior([{"x": "u"}]).probabilities[0].tolist() == pytest.approx([0.5, 0.5])
