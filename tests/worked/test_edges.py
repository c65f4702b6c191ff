"""Lonely rows, constant columns, classes and columns that nothing was seen of, impossible counts."""

import math

import numpy as np
import pytest

import likely
from likely.errors import LikelyWarning
from strategies import quietly


def deviation(model, name, label):
    return next(r["deviation"] for r in model.parameters[name] if r["class"] == label)


def test_a_constant_column_borrows_its_variance_from_the_class_then_all_classes_then_all_rows_then_one():
    data = {
        "own": [1.0, 3.0, 5.0, 9.0],  # varies in both classes
        "pooled": [2.0, 2.0, 5.0, 9.0],  # constant in a: the variance within the classes is used
        "total": [2.0, 2.0, 7.0, 7.0],  # constant in each: the variance of all rows is used
        "one": [4.0, 4.0, 4.0, 4.0],  # constant everywhere
        "y": ["a", "a", "b", "b"],
    }
    with pytest.warns(LikelyWarning, match="borrowed") as reported:
        model = likely.learn(data, "y", families="gaussian")
    assert {w.message.args[0].split("'")[1] for w in reported} == {"pooled", "total", "one"}
    assert deviation(model, "own", "a") == pytest.approx(1.0)
    assert deviation(model, "pooled", "a") == pytest.approx(math.sqrt(8 / 4))
    assert deviation(model, "pooled", "b") == pytest.approx(2.0)
    assert deviation(model, "total", "a") == pytest.approx(2.5)
    assert deviation(model, "one", "a") == 1.0


@pytest.mark.parametrize("value", [0.1, 1e-9, 1.7e9 + 0.1, 1e15 / 3])
def test_a_constant_that_binary_cannot_write_is_still_constant(value):
    data = {"x": [value] * 30, "y": ["a", "b", "b"] * 10}
    for family in (likely.Gaussian(), likely.Gaussian(tie="class"), likely.Gaussian(tie="both")):
        model = quietly(likely.learn, data, "y", families=family)
        assert deviation(model, "x", "a") == 1.0
    parts = [
        quietly(likely.learn, {"x": [value] * n, "y": ["a"] * n}, "y", families="gaussian", classes="ab")
        for n in (3, 7)
    ]
    assert deviation(parts[0] + parts[1], "x", "a") == 1.0
    joint = {"x": [value] * 30, "z": [float(i % 7) for i in range(30)], "y": ["a", "b", "b"] * 10}
    covariance = quietly(likely.learn, joint, "y", families=likely.Joint()).parameters["x with z"][0]["covariance"]
    assert covariance[0] == [1.0, 0.0]


def test_a_small_variance_is_not_taken_for_rounding_because_another_class_has_large_numbers():
    data = {"x": [1e-3, 1.2e-3, 1.1e-3, 1e12, 1.1e12, 1.2e12], "y": list("aaabbb")}
    model = likely.learn(data, "y", families="gaussian")
    assert deviation(model, "x", "a") == pytest.approx(np.std([1e-3, 1.2e-3, 1.1e-3]), rel=1e-9)


def test_numbers_too_small_to_be_squared_do_not_become_nan():
    model = quietly(likely.learn, {"x": [1e-160, -1e-160, 2e-160, 5e-324], "y": list("aabb")}, "y", families="gaussian")
    for x in (0.0, 1e-160, 1.0, 5e-324, -0.0):
        assert np.isfinite(model.posterior({"x": x}).log_joint).all()


def test_classes_of_one_row_learn_and_predict():
    data = {"c": ["p", "q", "r"], "x": [1.0, 5.0, 9.0], "k": [1, 0, 4], "y": ["a", "b", "c"]}
    model = quietly(likely.learn, data, "y", families={"k": "poisson"})
    assert model.predict(data).tolist() == ["a", "b", "c"]
    joint = quietly(likely.learn, data, "y", joint=[("c", "x")], families={"k": "poisson"})
    assert joint.predict(data).tolist() == ["a", "b", "c"]


def test_a_class_whose_cells_of_a_column_are_all_missing_leaves_the_column_to_the_others():
    data = {
        "c": ["p", "q", "p", None, None],
        "x": [1.0, 2.0, 4.0, None, None],
        "k": [1, 2, 0, None, None],
        "z": [1, 1, 0, None, None],
        "y": ["a", "a", "a", "b", "b"],
    }
    model = quietly(likely.learn, data, "y", families={"k": "poisson", "z": "bernoulli"}, smoothing=0)
    table = {(r["class"], r["value"]): r["probability"] for r in model.parameters["c"]}
    assert table["b", "p"] == table["b", "q"] == 0.5
    assert model.parameters["x"][1]["mean"] == pytest.approx(7 / 3)
    assert model.parameters["k"][1]["rate"] == pytest.approx(1.0)
    posterior = model.posterior({"c": "p", "x": 2.0, "k": 1, "z": 1})
    assert np.isfinite(posterior.log_joint).all()


def test_a_requested_column_of_missing_cells_contributes_nothing():
    data = {"n": [None, None], "c": [None, None], "k": [None, None], "o": ["u", "v"], "y": [0, 1]}
    families = {"n": "gaussian", "c": "categorical", "k": "poisson"}
    for smoothing in (0, 1):
        model = quietly(likely.learn, data, "y", families=families, smoothing=smoothing)
        row = {"n": 3.0, "c": "new", "k": 2, "o": None}
        np.testing.assert_allclose(model.posterior(row).probabilities, [[0.5, 0.5]])


def test_counts_that_never_showed_an_event_do_not_silence_the_other_columns():
    data = {"k": [0, 0, 0, 0], "c": ["p", "p", "q", "q"], "y": [0, 0, 1, 1]}
    model = likely.learn(data, "y", families={"k": "poisson"}, plain=True)
    assert model.posterior({"k": 3, "c": "p"}).probabilities[0, 0] == pytest.approx(3 / 4)
    certain = likely.learn(data, "y", families={"k": "poisson"}, smoothing=0)
    assert certain.posterior({"k": 3, "c": "p"}).impossible.tolist() == [True]


@pytest.mark.parametrize(
    ("families", "row"),
    [
        ({"k": "poisson", "n": "poisson"}, {"k": -1, "n": 2}),
        ({("k", "n"): "multinomial"}, {"k": -1, "n": 2}),
        ({"k": likely.Binomial("n")}, {"k": 3, "n": 2}),
        ({"k": "poisson", "n": "poisson"}, {"k": 1e306, "n": 2}),
    ],
)
def test_a_count_that_cannot_be_is_ruled_out_by_every_class_and_the_prior_is_left(families, row):
    model = likely.learn({"k": [1, 2, 0], "n": [2, 2, 2], "y": ["a", "b", "b"]}, "y", families=families)
    posterior = model.posterior(row)
    assert posterior.impossible.tolist() == [True]
    np.testing.assert_allclose(posterior.probabilities, [[1 / 3, 2 / 3]])


def test_integers_are_unseen_where_the_categories_are_fractions() -> None:
    x = np.repeat([[0.5], [1.5], [1.5]], 20, axis=0)
    model = likely.learn(x, np.repeat(["a", "b", "b"], 20), families="categorical", plain=True)
    assert model.posterior(np.array([[0.5], [1.5]])).probabilities.argmax(1).tolist() == [0, 1]
    unseen = model.posterior([{"x0": 7}]).probabilities[0]
    np.testing.assert_array_equal(model.posterior(np.array([[0], [1]])).probabilities, [unseen, unseen])
