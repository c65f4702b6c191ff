"""The second stage says what each column is worth, and scores what it was fitted on alike in batches, alone and from a file."""

import math

import numpy as np
import pytest

import likely


def mixed(rows=300, seed=0):
    """Two numbers with missing cells, a category and a text; the class depends on all but the second number."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    x = rng.normal(1.5 * y, 1.0)
    z = rng.normal(size=rows)
    x[rng.random(rows) < 0.15] = np.nan
    z[rng.random(rows) < 0.15] = np.nan
    words = [["gain win profit", "loss fall debt"][v if rng.random() < 0.8 else 1 - v] + " the market today" for v in y]
    more = rng.choice(["one", "two", "three", "four", "five"], (rows, 6))
    return {
        "say": [f"{text} {' '.join(others)} no{i}" for i, (text, others) in enumerate(zip(words, more, strict=True))],
        "x": x.tolist(),
        "c": np.where(rng.random(rows) < 0.75, np.array(["u", "v"])[y], "w").tolist(),
        "z": z.tolist(),
        "y": np.array(["no", "yes"])[y].tolist(),
    }


def test_the_gain_of_the_only_column_is_what_the_class_frequencies_lose():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 2_000)
    table = {"c": np.where(rng.random(2_000) < 0.9, y, 1 - y).astype(str).tolist(), "y": y.tolist()}
    model = likely.learn(table, "y")
    entropy = -0.9 * math.log(0.9) - 0.1 * math.log(0.1)
    assert model.calibration.gains["c"] == pytest.approx(math.log(2) - entropy, abs=0.05)


def test_an_uninformative_column_has_no_gain_beside_an_informative_one():
    gains = likely.learn({k: v for k, v in mixed(1_000).items() if k != "say"}, "y").calibration.gains
    assert gains["x"] > 0.03
    assert gains["c"] > 0.05
    assert abs(gains["z"]) < 0.01


@pytest.mark.parametrize("order", [("say", "x", "c", "z"), ("x", "z", "c", "say"), ("c", "say", "z", "x")])
def test_rows_are_scored_alike_in_a_batch_alone_and_from_a_file_with_cells_missing_and_text_anywhere(order, tmp_path):
    table = mixed()
    table = {name: table[name] for name in (*order, "y")}
    model = likely.learn(table, "y")
    asked = {name: table[name][:60] for name in order}
    whole = model.posterior(asked).probabilities
    alone = [model.posterior({name: [asked[name][i]] for name in order}).probabilities[0] for i in range(60)]
    assert whole == pytest.approx(np.array(alone), abs=1e-12)
    gaps = {**asked, "x": [math.nan] * 60, "z": [math.nan] * 60}
    without = model.posterior({**asked, "x": [None] * 60, "z": [None] * 60}).probabilities
    assert model.posterior(gaps).probabilities == pytest.approx(without, abs=1e-12)
    assert np.abs(without - whole).max() > 0.05
    model.save(tmp_path / "m.likely")
    assert likely.load(tmp_path / "m.likely").posterior(asked).probabilities == pytest.approx(whole, abs=1e-12)


def test_a_model_of_text_alone_is_the_same_from_its_file(tmp_path):
    table = {name: column for name, column in mixed().items() if name in ("say", "y")}
    model = likely.learn(table, "y")
    assert model.stages
    model.save(tmp_path / "m.likely")
    again = likely.load(tmp_path / "m.likely")
    assert again.posterior(table).probabilities == pytest.approx(model.posterior(table).probabilities, abs=1e-12)
    assert again.recalibrate().posterior(table).probabilities == pytest.approx(model.posterior(table).probabilities, abs=1e-9)


def test_a_joint_table_of_three_categories_is_scored_by_its_own_cells():
    rng = np.random.default_rng(3)
    a, b, c = rng.choice(["p", "q", "r"], 900), rng.choice(["u", "v"], 900), rng.choice(["k", "l", "m", "n"], 900)
    y = np.where(((a == "p").astype(int) + (b == "u") + (c == "k") + (c == "m")) % 2 == 1, "odd", "even")
    model = likely.learn({"a": a, "b": b, "c": c, "y": y}, "y", joint=[("a", "b", "c")], plain=True, smoothing=1.0)
    asked = [(i, j, k) for i in "pqr" for j in "uv" for k in "klmn"]
    found = model.posterior({"a": [i for i, _, _ in asked], "b": [j for _, j, _ in asked], "c": [k for _, _, k in asked]})
    classes = list(found.classes)
    for (i, j, k), p in zip(asked, found.probabilities, strict=True):
        seen = [((a == i) & (b == j) & (c == k) & (y == label)).sum() for label in classes]
        totals = [(y == label).sum() for label in classes]
        weight = [(n + 1) / (total + 24) * (total + 1) for n, total in zip(seen, totals, strict=True)]
        assert p[0] == pytest.approx(weight[0] / sum(weight), rel=0.02)
