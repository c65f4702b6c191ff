"""Rows drawn from a model: every family, one class, repeatable; and predictive checks that find what a model misses."""

import warnings

import numpy as np
import pytest

import likely
from likely.errors import LikelyWarning, UsageError

TENNIS = "src/likely/data/tennis.csv"


def mixed(rows: int = 400) -> dict[str, list]:
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b"], rows)
    z = rng.normal(size=rows)
    texts = [" ".join(rng.choice(["oil", "gas", "sun"], 4)) for _ in range(rows)]
    table = {"x": z + (y == "a"), "w": z + rng.normal(size=rows) / 2, "e": rng.exponential(size=rows),
             "k": rng.choice(["u", "v"], rows), "c": rng.poisson(2, rows).astype(float), "y": y}  # fmt: skip
    return {name: cells.tolist() for name, cells in table.items()} | {"t": texts}


FAMILIES = {"x": "gaussian", "w": "binned", "e": "gaussian", "k": "categorical", "c": "poisson", "t": "text:multinomial"}


def test_every_family_is_drawn_and_the_draw_is_repeatable() -> None:
    model = likely.learn(mixed(), "y", plain=True, families=FAMILIES)
    drawn = model.sample(2_000, seed=3)
    assert list(drawn) == [column.name for column in model.schema.columns] + ["y"]
    assert model.sample(2_000, seed=3) == drawn
    labels = np.array(drawn["y"])
    means = {row["class"]: row["mean"] for row in model.parameters["x"]}
    for label in "ab":
        assert np.array(drawn["x"])[labels == label].mean() == pytest.approx(means[label], abs=0.15)
    assert {word for text in drawn["t"] for word in text.split()} == {"oil", "gas", "sun"}
    assert np.mean([len(text.split()) for text in drawn["t"]]) == pytest.approx(4, abs=0.2)


COUNTED = {
    "categorical": ["u", "v", "w", "v"] * 5,
    "bernoulli": [0.0, 1.0, 1.0, 1.0] * 5,
    "binomial:9": [3.0, 4.0, 9.0, 1.0] * 5,
    "poisson": [3.0, 0.0, 2.0, 1.0] * 5,
}


@pytest.mark.parametrize("family", COUNTED)
def test_parameters_put_into_a_block_are_those_that_rows_are_drawn_with(family: str) -> None:
    """At the posterior mean of a model with pseudocounts, which is its estimate, the same rows are drawn."""
    table = {"x": COUNTED[family], "y": ["a", "b", "b", "a"] * 5}
    model = likely.learn(table, "y", plain=True, families={"x": family})
    (block,), fitted = model.blocks, model.fitted(0)
    means = [model.parameter_posterior("x", label).mean for label in model.classes]
    classes = np.repeat([0, 1], 200)
    drawn, again = (
        block.family.sample(each, classes, np.random.default_rng(5))["x"].tolist()
        for each in (fitted, block.family.with_parameters(fitted, means))
    )
    assert drawn == again
    turned = block.family.with_parameters(fitted, means[::-1])
    assert block.family.sample(turned, classes, np.random.default_rng(5))["x"].tolist() != drawn


def test_rows_of_one_class() -> None:
    model = likely.learn(TENNIS, "PlayTennis", smoothing=0)
    drawn = model.sample(500, 0, label="No")
    assert set(drawn["PlayTennis"]) == {"No"}
    assert "Overcast" not in drawn["Outlook"]  # never seen with No
    assert drawn["Outlook"].count("Sunny") == pytest.approx(300, abs=60)
    with pytest.raises(UsageError, match="did you mean"):
        model.sample(5, label="no")
    with pytest.raises(UsageError, match="whole number"):
        model.sample(0)


def test_a_calibrated_model_warns_that_its_calibration_has_no_part() -> None:
    model = likely.learn("src/likely/data/loans.csv", "outcome")
    with pytest.warns(LikelyWarning, match="independent of each other"):
        assert len(model.sample(5, 0)["outcome"]) == 5


def test_a_check_finds_dependent_columns_and_a_skewed_one() -> None:
    table = mixed()
    families = {k: v for k, v in FAMILIES.items() if k != "t"} | {"w": "gaussian"}
    model = likely.learn(table, "y", plain=True, families=families, ignore=["t"])
    found = likely.predictive_check(model, table, replicates=100)
    wrong = {(each.statistic, each.columns) for each in found.missed}
    assert {("correlation", ("x", "w")), ("skewness", ("e",))} <= wrong
    assert {"x", "w", "e"} <= set(found.columns)
    assert "k" not in found.columns
    assert "c" not in found.columns
    assert found.plugged_in == ()
    assert "correlation of x and w in a" in str(found)
    assert found.svg().startswith("<svg")
    correlation = next(s for s in found.statistics if (s.statistic, s.columns, s.label) == ("correlation", ("x", "w"), "a"))
    rows = np.array(table["y"]) == "a"
    wanted = np.corrcoef(np.array(table["x"])[rows], np.array(table["w"])[rows])[0, 1]
    assert correlation.observed == pytest.approx(wanted, abs=1e-12)
    assert correlation.p == pytest.approx(2 / 101)


def test_the_number_of_words_of_a_text_is_checked_at_the_estimates() -> None:
    model = likely.learn(mixed(), "y", plain=True, families=FAMILIES | {"w": "gaussian"})
    found = likely.predictive_check(model, mixed(), replicates=50)
    assert (found.plugged_in, found.rows) == (("t",), 300)
    assert {("deviation", ("t",))} <= {(each.statistic, each.columns) for each in found.missed}  # all texts have four words


def test_rows_drawn_from_the_model_are_reproduced() -> None:
    model = likely.learn(mixed(), "y", plain=True, families={k: v for k, v in FAMILIES.items() if k != "t"}, ignore=["t"])
    found = likely.predictive_check(model, model.sample(400, 7), replicates=100)
    assert found.missed == ()
    assert "reproduces all" in str(found)


def test_a_prior_predictive_check_needs_proper_priors() -> None:
    table = {"x": [0.1, -0.2, 0.3, 0.0, 99.0, 101.0], "k": list("uvuvuv"), "y": list("aaabbb")}
    model = likely.learn(table, "y", plain=True, families={"x": "gaussian"})
    found = likely.predictive_check(model, table, prior=True, replicates=50)
    assert [name for name, _ in found.left_out] == ["x"]
    tight = model.relearn(smoothing={"x": likely.NormalInverseGamma(0, 1, 3, 2), "*": 1})
    missed = likely.predictive_check(tight, table, prior=True, replicates=200).missed
    assert ("mean", ("x",), "b") in {(s.statistic, s.columns, s.label) for s in missed}


def test_a_check_needs_labels_and_enough_tables() -> None:
    model = likely.learn(TENNIS, "PlayTennis", smoothing=1)
    with pytest.raises(UsageError, match="20 or more"):
        likely.predictive_check(model, TENNIS, replicates=3)
    with pytest.raises(likely.errors.LikelyError, match="PlayTennis"):
        likely.predictive_check(model, {"Outlook": ["Sunny"]})


def test_a_column_whose_values_are_all_in_rows_without_a_label_is_sampled_checked_and_selected_from():
    rng = np.random.default_rng(0)
    data = {
        "a": rng.choice(["u", "v"], 40).tolist(), "n": rng.normal(size=40).tolist(),
        "why": [None] * 38 + ["left", "moved"], "y": [*(["p", "q"] * 19), None, None],
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = likely.learn(data, "y", plain=True, unlabelled="ignore")
        assert model.schema.by_name["why"].values == ()
        assert model.sample(3, seed=0)["why"] == [None] * 3
        assert likely.predictive_check(model, data).rows == 38
        chosen = likely.learn(data, "y", select=True, unlabelled="ignore")
    assert np.isfinite(chosen.predict_proba(data)).all()


def test_a_binomial_column_is_drawn_with_its_trials() -> None:
    table = {"k": [1, 2, 3, 0], "n": [3, 3, 5, 5], "y": list("aabb")}
    model = likely.learn(table, "y", families={"k": likely.Binomial("n")}, smoothing=1)
    drawn = model.sample(4_000, seed=0)
    assert list(drawn) == ["k", "n", "y"]
    assert all(0 <= k <= n for k, n in zip(drawn["k"], drawn["n"], strict=True))
    of_a = [n for n, label in zip(drawn["n"], drawn["y"], strict=True) if label == "a"]
    assert np.mean(of_a) == pytest.approx(3.0, abs=0.15)
    check = likely.predictive_check(model, table, replicates=40)
    assert [name for name, _ in check.left_out] == ["k with n"]  # the model does not describe the trials


def test_whole_numbers_are_drawn_whole_by_the_default_model() -> None:
    rng = np.random.default_rng(0)
    table = {"b": rng.integers(0, 2, 300).tolist(), "c": rng.poisson(4, 300).tolist(), "r": rng.normal(size=300).tolist(),
             "y": rng.choice(["u", "v"], 300).tolist()}  # fmt: skip
    with pytest.warns(LikelyWarning, match="calibration"):
        drawn = likely.learn(table, "y").sample(500, seed=0)
    assert set(drawn["b"]) == {0.0, 1.0}
    assert all(x == round(x) for x in drawn["c"])
    assert any(x != round(x) for x in drawn["r"])
