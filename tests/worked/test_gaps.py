"""Joint blocks with missing cells are counted by EM: under missing at random their means are right."""

import warnings

import numpy as np
import pytest

import likely
from likely.errors import LikelyWarning


def slanted(rows=3000, seed=0):
    """z is missing wherever x is above 0: at random given x, and far from completely at random."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    z = 0.8 * x + 0.6 * rng.normal(size=rows)
    hidden = np.where(x > 0, np.nan, z)
    return {"x": x.tolist(), "z": hidden.tolist(), "y": np.where(np.arange(rows) % 2, "a", "b").tolist()}, z


def learned(data, **settings):
    with pytest.warns(LikelyWarning, match="missing at random"):
        return likely.learn(data, "y", joint=[("x", "z")], **settings)


def means(model):
    rows = model.parameters["x with z"]
    return sum(r["count"] * r["mean"][1] for r in rows) / sum(r["count"] for r in rows)


@pytest.mark.parametrize("settings", [{"plain": True}, {}, {"families": {("x", "z"): likely.Joint("class")}}])
def test_rows_with_gaps_are_counted_and_the_mean_is_right(settings):
    data, z = slanted()
    assert np.nanmean(data["z"]) < -0.6
    joint = {} if "families" in settings else {"joint": [("x", "z")]}
    with pytest.warns(LikelyWarning, match="'x with z': rows with missing cells were counted by EM"):
        model = likely.learn(data, "y", **joint, **settings)
    assert means(model) == pytest.approx(z.mean(), abs=0.05)
    assert sum(r["count"] for r in model.parameters["x with z"]) == pytest.approx(3000)


def test_it_is_the_maximum_of_the_likelihood_of_what_was_seen():
    """With z missing or not by x alone, the ML mean of z is that of the regression on x (a textbook case)."""
    data, _ = slanted(400)
    data["y"] = ["a", "b"] * 200
    model = learned(data, smoothing=0)
    for row, label in zip(model.parameters["x with z"], "ab", strict=True):
        mine = np.array(data["y"]) == label
        x, z = np.array(data["x"])[mine], np.array(data["z"])[mine]
        seen = ~np.isnan(z)
        slope, level = np.polyfit(x[seen], z[seen], 1)
        assert row["mean"][1] == pytest.approx(level + slope * x.mean(), abs=2e-3)


def test_a_table_with_gaps_keeps_every_value():
    data = {"p": ["u", "v", None, "w", None] * 20, "q": ["s", None, "t", None, "s"] * 20, "y": ["a", "b"] * 50}
    with pytest.warns(LikelyWarning, match="'p with q'"):
        model = likely.learn(data, "y", joint=[("p", "q")], plain=True)
    assert model.schema.by_name["p"].values == ("u", "v", "w")  # v and w stand in rows with gaps alone
    assert sum(r["count"] for r in model.parameters["p with q"]) == pytest.approx(100)


def test_complete_rows_and_rows_without_any_cell_of_the_block_need_no_em():
    data = {
        "x": [1.0, 2.0, 4.0, None, 3.0] * 4,
        "z": [2.0, 1.0, 3.0, None, 7.0] * 4,
        "c": ["k", "l"] * 10,
        "y": ["a", "b"] * 10,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = likely.learn(data, "y", joint=[("x", "z")], plain=True)
    assert sum(r["count"] for r in model.parameters["x with z"]) == 16


def test_update_and_forget_change_a_block_by_complete_rows_with_a_warning():
    data, _ = slanted(200)
    model = learned(data)
    more = {"x": [0.5, 0.1], "z": [0.3, None], "y": ["a", "b"]}
    with pytest.warns(LikelyWarning, match=r"'x with z': 1 of these rows miss cells.*learn anew"):
        later = model.update(more)
    assert sum(r["count"] for r in later.parameters["x with z"]) == pytest.approx(201)
    with pytest.warns(LikelyWarning, match="change nothing of it"):
        back = later.forget(more)
    assert means(back) == pytest.approx(means(model), abs=1e-9)
    assert means(model + model) == pytest.approx(means(model), abs=1e-9)


def test_cross_validation_learns_as_learn_does():
    rng = np.random.default_rng(1)
    data, _ = slanted(300)
    data["y"] = np.where(np.array(data["x"]) + rng.normal(size=300) > 0, "a", "b").tolist()
    found = likely.evaluate(data, target="y", joint=[("x", "z")], plain=True, folds=3)
    assert found.rows == 300
    assert found.log_loss < found.baseline["log_loss"]


def test_the_estimator_fills_gaps_too():
    pytest.importorskip("sklearn")
    data, z = slanted(1000)
    X = np.column_stack([data["x"], data["z"]])
    with pytest.warns(LikelyWarning, match="missing at random"):
        fitted = likely.NaiveBayes(joint=[(0, 1)], plain=True).fit(X, data["y"])
    rows = fitted.model_.parameters["x0 with x1"]
    mean = sum(r["count"] * r["mean"][1] for r in rows) / 1000
    assert mean == pytest.approx(z.mean(), abs=0.06)
