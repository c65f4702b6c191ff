"""New and lost classes and values, weights, multiples, and labels in their own type."""

import numpy as np
import pytest

import likely
from likely.errors import DataError, ForgetError, LikelyWarning
from strategies import quietly

PAIRS = {
    "a": ["x", "x", "z", "z", "x", None],
    "b": ["u", "v", "u", "u", "u", "v"],
    "y": [1, 1, 1, 2, 2, 2],
}


BASE = {"c": ["p", "q", "p"], "x": [1.0, 2.0, 4.0], "y": ["a", "b", "b"]}


def test_new_values_and_new_classes_are_welcome_in_an_update():
    model = quietly(likely.learn, BASE, "y").update({"c": ["r", "p"], "x": [9.0, 8.0], "y": ["c", "c"]})
    whole = quietly(likely.learn, {n: BASE[n] + more for n, more in
                                   (("c", ["r", "p"]), ("x", [9.0, 8.0]), ("y", ["c", "c"]))}, "y")  # fmt: skip
    assert model.classes == ("a", "b", "c")
    assert model == whole


def test_rows_without_a_label_are_not_counted_with_a_warning():
    model = quietly(likely.learn, BASE, "y")
    with pytest.warns(LikelyWarning, match="1 rows have no 'y'"):
        assert model.update({"c": ["p"], "x": [1.0], "y": [None]}) == model


def test_a_class_can_be_forgotten_entirely():
    model = quietly(likely.learn, BASE, "y")
    left = quietly(model.forget, {"c": ["p"], "x": [1.0], "y": ["a"]})
    assert left.classes == ("b",)
    assert left.posterior({"c": "p", "x": 3.0}).probabilities.tolist() == [[1.0]]
    plain = quietly(likely.learn, BASE, "y", classes=["a", "b"], plain=True)
    kept = quietly(plain.forget, {"c": ["p"], "x": [1.0], "y": ["a"]})
    assert kept.classes == ("a", "b")
    assert kept.posterior({"c": "p", "x": 3.0}).probabilities.tolist() == [[0.0, 1.0]]


def test_a_model_that_has_forgotten_everything_raises_an_error_and_can_learn_again():
    model = quietly(likely.learn, BASE, "y")
    nothing = quietly(model.forget, BASE)
    with pytest.raises(DataError, match="forgotten every row"):
        nothing.predict({"c": "p", "x": 1.0})
    assert nothing.update(BASE) == model


def test_forgetting_a_row_twice_is_refused_by_name():
    model = quietly(likely.learn, BASE, "y")
    once = quietly(model.forget, {"c": "p", "x": 1.0, "y": "a"})
    with pytest.raises(ForgetError, match="'c'"):
        once.forget({"c": "p", "x": 1.0, "y": "a"})


def test_large_counts_subtract_exactly():
    rows = {"c": ["p", "q"], "n": [10**10, 10**10], "y": [0, 1]}
    model = likely.learn(rows, "y", weights="n")
    assert model.forget({"c": ["p"], "n": [10**10 - 1], "y": [0]}).tally.classes.tolist() == [1.0, 1e10]
    with pytest.raises(ForgetError):
        model.forget({"c": ["p"], "n": [10**10 + 5], "y": [0]})


def test_small_weights_keep_their_spread_when_some_are_forgotten():
    data = {"x": [1.0, 2.0, 4.0, 9.0, 3.0], "z": [0.0, 5.0, 1.0, 2.0, 2.0], "w": [0.2] * 5, "y": ["a"] * 5}
    for family in ("gaussian", likely.Joint()):
        model = quietly(likely.learn, data, "y", weights="w", families=family, classes="ab")
        some = {n: v[3:] for n, v in data.items()}
        rest = quietly(
            likely.learn, {n: v[:3] for n, v in data.items()}, "y", weights="w", families=family, classes="ab"
        )
        left = quietly(model.forget, some)
        for a, b in zip(left.tally.statistics, rest.tally.statistics, strict=True):
            for part, array in a.arrays().items():
                np.testing.assert_allclose(array, b.arrays()[part], rtol=1e-9, atol=1e-12)


def test_weights_as_an_array_update_and_forget_as_well():
    model = likely.learn(PAIRS, "y")
    more = model.update(PAIRS, weights=[1, 2, 3, 4, 5, 6])
    assert more.tally.classes.tolist() == [3 + 6, 3 + 15]
    assert more.forget(PAIRS, weights=[1, 2, 3, 4, 5, 6]) == model


def test_a_tally_times_k_is_k_copies_of_every_row():
    model = likely.learn(PAIRS, "y")
    three = likely.learn({n: v * 3 for n, v in PAIRS.items()}, "y")
    assert model.tally * 3 == three.tally
    assert (model.tally * 3).rows == 18


@pytest.mark.parametrize(
    "labels",
    [("no", "yes"), (0, 1), (False, True), (0.5, 1.5), (-1, 10), ("1", "10"), (1, 2.5)],
)
def test_labels_come_back_in_their_own_type(labels, tmp_path):
    data = {"c": ["p", "q", "q", "p"], "y": [labels[0], labels[1], labels[1], labels[0]]}
    model = likely.learn(data, "y")
    model.save(tmp_path / "m.likely")
    for one in (model, likely.load(tmp_path / "m.likely")):
        assert one.classes == labels
        assert one.predict([{"c": "q"}, {"c": "p"}]).tolist() == [labels[1], labels[0]]
        if len({type(v) for v in labels}) == 1:
            assert type(one.predict({"c": "q"}).tolist()[0]) is type(labels[1])
            assert type(one.explain({"c": "q"}).label) is type(labels[1])


@pytest.mark.parametrize("given", [[0, 1, 2], np.array([0, 1, 2]), ("0", "1", "2"), (2, 0)])
def test_declared_classes_may_be_an_array_or_written_as_text(given, tmp_path):
    model = likely.learn({"c": ["p", "q"], "y": [0, 1]}, "y", classes=given)
    assert model.classes == (0, 1, 2)
    model.save(tmp_path / "m.likely")
    assert likely.load(tmp_path / "m.likely") == model
    left = model.forget({"c": "p", "y": 0})
    assert left.classes == (0, 1, 2)


def test_merging_remembers_the_declared_classes_in_one_order():
    one = likely.learn({"c": ["p"], "y": ["k"]}, "y", classes=["z", "k", "a"])
    two = likely.learn({"c": ["p"], "y": ["a"]}, "y", classes=["m", "a"])
    assert (one + two).declared == (two + one).declared == ("a", "k", "m", "z")
