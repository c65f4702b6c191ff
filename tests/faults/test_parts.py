"""Parts that are merged, added, forgotten or turned round, and values that look alike: each once gave other answers."""

import numpy as np
import pytest

import likely
from likely.errors import SchemaError, UsageError
from strategies import quietly

RNG = np.random.default_rng(3)
C = RNG.integers(0, 2, 60)
Y = (C + (RNG.random(60) < 0.2)) % 2
X = RNG.normal(0, 1, 60) + 2 * Y
D = RNG.integers(0, 2, 60)


def table(labels=("a", "b"), values=("u", "v")):
    return {"x": X, "c": [values[i] for i in C], "y": [labels[i] for i in Y]}


def rows(data, places):
    return {name: [column[i] for i in places] for name, column in data.items()}


def posterior(model, data):
    return model.posterior({name: column for name, column in data.items() if name != "y"}).probabilities


@pytest.mark.parametrize("labels", [("01", "1"), ("1", "1.0"), (" 1", "1e0"), ("1", "true"), ("TRUE", "true")])
def test_labels_that_look_alike_are_as_different_as_any_others(labels):
    plain = {"c": table()["c"], "y": [("x", "z")[i] for i in Y]}
    alike = plain | {"y": [labels[i] for i in Y]}
    one, other = likely.learn(plain, "y"), likely.learn(alike, "y")
    assert list(other.classes) == sorted(labels)
    turned = posterior(other, alike)[:, [sorted(labels).index(label) for label in labels]]
    np.testing.assert_allclose(turned, posterior(one, plain), atol=1e-9)


@pytest.mark.parametrize("values", [("1", "01"), ("1.0", "1"), (" 1", "1e0"), ("1", "true")])
def test_categories_that_look_alike_do_not_depend_on_the_order_of_rows(values):
    data, plain = ({name: each[name] for name in "cy"} | {"d": D} for each in (table(values=values), table()))
    settings = {"families": {"c": "categorical"}}  # d is left to the default: a sample of rows is kept
    one, usual = likely.learn(data, "y", **settings), likely.learn(plain, "y", **settings)
    # Folds go by the keys of rows, and these by the values: other names need not give the very same second stage.
    np.testing.assert_array_equal(np.sort(one.tally.sample.weights), np.sort(usual.tally.sample.weights))
    back = likely.learn(rows(data, range(59, -1, -1)), "y", **settings)
    np.testing.assert_allclose(posterior(back, data), posterior(one, data), atol=1e-9)


def test_parts_of_one_class_each_merge_to_the_whole_with_its_calibration():
    data = table()
    parts = [quietly(likely.learn, rows(data, np.flatnonzero(k == Y)), "y", classes=["a", "b"]) for k in (0, 1)]
    whole = likely.learn(data, "y", classes=["a", "b"])
    assert whole.calibration is not None
    for merged in (parts[0] + parts[1], parts[1] + parts[0]):
        np.testing.assert_allclose(posterior(merged, data), posterior(whole, data), atol=1e-9)


def test_what_came_after_a_start_of_one_class_is_forgotten_with_its_calibration():
    data = table()
    first, later = (rows(data, np.flatnonzero(k == Y)) for k in (0, 1))
    start = quietly(likely.learn, first, "y", classes=["a", "b"])
    back = quietly(start.update(later).recalibrate().forget, later)
    assert (back.calibration is None, back.stale) == (start.calibration is None, start.stale)
    np.testing.assert_allclose(posterior(back, data), posterior(start, data), atol=1e-9)


def test_the_name_of_a_forgotten_category_is_not_in_the_file(tmp_path):
    data = table(values=("u", "v")) | {"d": ["secret" if i < 3 else "known"[i % 2 :] for i in range(60)]}
    model = likely.learn(data, "y").forget(rows(data, range(3)))
    model.save(tmp_path / "m.likely")
    assert b"secret" not in (tmp_path / "m.likely").read_bytes()
    assert "secret" not in repr(model.calibration)


@pytest.mark.parametrize("seed", range(8))
def test_twelve_rows_of_a_joint_block_added_in_two_parts_are_the_whole(seed):
    rng = np.random.default_rng(seed)
    data = {"x": rng.normal(0, 1, 12), "z": rng.normal(0, 1, 12), "c": rng.integers(0, 2, 12), "y": ["a", "b"] * 6}
    first, later = rows(data, range(6)), rows(data, range(6, 12))
    whole = quietly(likely.learn, data, "y", joint=[("x", "z")])
    added = quietly(likely.learn, first, "y", joint=[("x", "z")]).update(later)
    assert added.stale  # until it is recalibrated, its calibration is that of the first part
    np.testing.assert_allclose(posterior(added.recalibrate(), data), posterior(whole, data), atol=1e-7)


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_over_six_rows_does_not_depend_on_the_order_of_columns(seed):
    rng = np.random.default_rng(seed)
    data = {name: [str(v) for v in rng.integers(0, 2, 6)] for name in "abcd"} | {"y": ["p", "q"] * 3}
    turned = {name: data[name] for name in ["y", *rng.permutation(list("abcd"))]}
    one, other = (quietly(likely.learn, each, "y", dependence="tree") for each in (data, turned))
    np.testing.assert_allclose(posterior(other, data), posterior(one, data), atol=1e-7)


@pytest.mark.parametrize("settings", [{}, {"plain": True}])
def test_a_column_called_like_a_block_is_refused_by_name(settings):
    data = {"a": X, "b": X[::-1], "a with b": Y, "y": table()["y"]}
    with pytest.raises(UsageError, match=r"\['a', 'b'\] and \['a with b'\] would both be called 'a with b': rename"):
        likely.learn(data, "y", joint=[("a", "b")], **settings)
    assert likely.learn(data, "y", **settings).parameters["a with b"]


@pytest.mark.parametrize("family", ["text", "text:multinomial", "text:bernoulli", "text:complement"])
def test_texts_without_a_label_change_nothing(family):
    data = {"t": ["red wine", "old car", "new car tax", "wine old"], "c": list("uvuv"), "y": ["p", "q", "q", "p"]}
    model = likely.learn(data, "y", families={"t": family})
    unlabelled = {"t": ["red barn", "car"], "c": ["u", "v"], "y": [None, None]}
    for other in (quietly(model.update, unlabelled), quietly(model.forget, unlabelled)):
        np.testing.assert_array_equal(posterior(other, data), posterior(model, data))


@pytest.mark.parametrize("name", ["w", ""])
def test_rows_without_the_column_of_weights_are_refused_by_its_name(name):
    model = likely.learn({"c": list("uvuv"), name: [1.0, 2.0, 1.0, 1.0], "y": list("pqpq")}, "y", weights=name)
    with pytest.raises(SchemaError, match=f"no column '{name}'"):
        model.update({"c": ["u"], "y": ["p"]})


@pytest.mark.parametrize("weight", [1e16, 1e39, 1e100, 1e300])
@pytest.mark.parametrize("family", ["text", "text:multinomial", "text:bernoulli", "text:complement"])
def test_text_of_enormous_weight_has_finite_probabilities(weight, family):
    texts = ["red wine", "old car", "new car tax", "wine wine old", "tax tax", "new red car"]
    data = {"t": texts, "w": [weight, 1.0] * 3, "y": ["p", "q", "q", "p", "q", "q"]}
    model = likely.learn(data, "y", weights="w", families={"t": family})
    found = model.posterior({"t": texts}).probabilities
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(1), 1.0)
