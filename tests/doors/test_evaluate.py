"""Evaluation on new rows: rows that were learned from are reported, groups stay together, and a baseline is given."""

import math
import warnings

import numpy as np
import pytest

import likely
from commands import LOANS, TENNIS, document, run
from likely.bayes import Posterior
from likely.errors import DataError, UsageError
from likely.evaluation.metrics import Metrics, _auc, metrics_of


def table(rows=400, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    return {
        "x": (rng.normal(size=rows) + y).tolist(),
        "c": rng.choice(["u", "v", "w"], rows).tolist(),
        "site": rng.integers(0, 12, rows).tolist(),
        "y": np.array(["a", "b", "c", "d"])[y].tolist(),
    }


def part(data, rows):
    return {name: [column[i] for i in rows] for name, column in data.items()}


def joined(a, b):
    return {name: a[name] + b[name] for name in a}


# ---------------------------------------------------------------- rows learned from


@pytest.mark.parametrize("settings", [{}, {"plain": True}, {"average": True}, {"keep_rows": False}, {"smoothing": 1}])
def test_rows_that_were_learned_from_are_reported(settings):
    data = table()
    model = likely.learn(data, "y", **settings)
    found = likely.evaluate(data, model=model)
    assert "these rows were learned from" in str(found)
    assert found.learned_from == 400
    assert found.to_dict()["learned_from"] == 400
    assert "hold-out" not in str(found)
    turned = part(data, range(399, -1, -1))
    assert "these rows were learned from" in likely.evaluate(turned, model=model).title


def test_other_rows_are_a_hold_out():
    model = likely.learn(table(), "y")
    found = likely.evaluate(table(seed=1), model=model)
    assert found.title == "hold-out, 400 rows"
    assert found.learned_from == 0


def test_the_number_of_rows_that_were_learned_from_is_reported():
    data = table()
    model = likely.learn(data, "y")
    mixed = joined(part(data, range(30)), table(70, seed=2))
    found = likely.evaluate(mixed, model=model)
    assert found.learned_from == 30
    assert "100 rows, of which 30 of 100 checked were learned from" in str(found)
    assert "these rows were learned from" in str(likely.evaluate(part(data, range(50)), model=model))


def test_a_model_without_rows_reports_that_the_overlap_is_not_known():
    data = table()
    for settings in ({"plain": True}, {"keep_rows": False}):
        found = likely.evaluate(part(data, range(100)), model=likely.learn(data, "y", **settings))
        assert "whether the model learned from them is not known" in found.title
        assert found.learned_from is None


def test_rows_that_repeat_by_themselves_are_no_proof():
    """Two switches have four states: every new row has been seen before, and says nothing."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (600, 3))
    data = {"a": rows[:, 0].tolist(), "b": rows[:, 1].tolist(), "y": rows[:, 2].tolist()}
    found = likely.evaluate(part(data, range(500, 600)), model=likely.learn(part(data, range(500)), "y"))
    assert found.learned_from is None
    assert "whether the model learned from them is not known" in found.title


def test_documents_that_were_learned_from_are_reported():
    data = {
        "t": [f"{a} {b} walks by the {a} river" for a in ("red", "blue", "old") for b in ("heron", "fox")],
        "y": [0, 1] * 3,
    }
    model = likely.learn(data, "y", families={"t": "text"})
    assert "these rows were learned from" in likely.evaluate(data, model=model).title


def test_the_command_reports_it_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("learn", LOANS, "--target", "outcome", "-o", "m.likely")
    reported = run("evaluate", "m.likely", LOANS).stdout
    assert "600 rows: these rows were learned from" in reported
    assert "hold-out" not in reported
    assert document("evaluate", "m.likely", LOANS)["learned_from"] == 600


# ---------------------------------------------------------------- groups


def test_groups_stay_together_in_folds():
    """A column that names the group predicts nothing of another one: judged by groups, a leak is no help."""
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(30), rng.integers(7, 14, 30))[:300]  # ten rows each would be a table that was learned ten times
    y = rng.integers(0, 2, 30)[site]
    data = {"colour": [f"c{s}" for s in site], "site": site.tolist(), "y": y.tolist()}
    loose = likely.evaluate(data, target="y", folds=5, ignore=["site"])
    tight = likely.evaluate(data, target="y", folds=5, groups="site")
    assert loose.accuracy > 0.9
    assert tight.accuracy < 0.7
    assert tight.how == "5-fold cross-validation by groups"
    assert tight.rows == 300
    given = likely.evaluate(data, target="y", folds=5, groups=site, ignore=["site"])
    assert given.log_loss == pytest.approx(tight.log_loss)


def test_every_group_is_in_one_fold():
    from likely.evaluation._folds import assign_groups
    from likely.evaluation.cross_validation import Split
    from likely.sources import open_source

    data = table()
    source = open_source(data)
    for split in (Split.of(4, None, 0), Split.of(None, 0.25, 3)):
        assign = assign_groups(source.batches(), "site", "y", split)
        folds = np.concatenate([assign(batch) for batch in source.batches()])
        by_group = {s: set(folds[np.array(data["site"]) == s].tolist()) for s in set(data["site"])}
        assert all(len(found) == 1 for found in by_group.values())
        share = np.bincount(folds) / len(folds)
        assert abs(share - ([0.25] * 4 if split.parts == 4 and not split.tested else [0.25, 0.75])).max() < 0.1


def test_groups_that_cannot_be_dealt_are_refused():
    data = table()
    with pytest.raises(UsageError, match="12 groups: too few for 13 folds"):
        likely.evaluate(data, target="y", folds=13, groups="site")
    with pytest.raises(DataError, match="'place'"):
        likely.evaluate(data, target="y", groups="place")
    with pytest.raises(DataError, match="5 groups for 400 rows"):
        likely.evaluate(data, target="y", groups=[1, 2, 3, 4, 5])
    with pytest.raises(DataError, match="needs a group") as caught:
        likely.evaluate(data | {"site": [None, *data["site"][1:]]}, target="y", groups="site")
    assert caught.value.column == "site"


def test_the_shell_judges_by_groups(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reported = run("learn", LOANS, "--target", "outcome", "--folds", "3", "--groups", "purpose", "-o", "m.likely").stdout
    assert "3-fold cross-validation by groups" in reported
    assert "purpose" not in likely.load("m.likely").schema.by_name
    assert "by groups" in document("evaluate", "m.likely", LOANS, "--groups", "purpose", "--folds", "3")["how"]
    assert "--folds" in run("learn", LOANS, "--target", "outcome", "--groups", "purpose", expect=2).stderr


# ---------------------------------------------------------------- metrics


def test_the_order_of_learn_and_the_former_order_give_the_same():
    new = likely.evaluate(TENNIS, target="PlayTennis", model=None, folds=3, groups=None, plain=True)
    assert likely.evaluate(TENNIS, "PlayTennis", folds=3, plain=True).to_dict() == new.to_dict()
    model = likely.learn(TENNIS, "PlayTennis")
    with pytest.warns(FutureWarning, match="is the order now"):
        assert likely.evaluate({"plain": True}, TENNIS, target="PlayTennis", folds=3).to_dict() == new.to_dict()
    with pytest.warns(FutureWarning, match="is the order now"):
        assert likely.evaluate(model, TENNIS).to_dict() == likely.evaluate(TENNIS, model=model).to_dict()
    assert likely.evaluate(LOANS, target="outcome").folds == 5
    with pytest.warns(FutureWarning), pytest.raises(UsageError, match="model="):
        likely.evaluate(model, TENNIS, model=model)


def test_a_dict_of_columns_is_data_even_if_its_columns_are_called_like_settings():
    data = {"weights": [1.0, 2.0, 3.0, 4.0] * 3, "ignore": ["a", "b"] * 6}
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        assert likely.evaluate(data, "ignore", folds=3, plain=True).classes == ("a", "b")


def test_the_baseline_is_what_class_frequencies_reach():
    data, new = table(), table(90, seed=3)
    found = likely.evaluate(new, model=likely.learn(data, "y"))
    often = {c: data["y"].count(c) / 400 for c in "abc"}
    most = max(often, key=often.get)
    assert found.baseline["accuracy"] == pytest.approx(new["y"].count(most) / 90)
    assert found.baseline["log_loss"] == pytest.approx(-np.mean([math.log(often[c]) for c in new["y"]]))
    assert f"log loss {found.baseline['log_loss']:.4f}" in str(found)


@pytest.mark.parametrize("classes", [2, 3])
def test_auc_is_scikit_learns(classes):
    metrics = pytest.importorskip("sklearn.metrics")
    data, new = table(classes=classes), table(150, seed=4, classes=classes)
    model = likely.learn(data, "y", plain=True)
    found, p = likely.evaluate(new, model=model), model.posterior(new).probabilities
    wanted = [metrics.roc_auc_score(np.array(new["y"]) == c, p[:, i]) for i, c in enumerate(model.classes)]
    assert found.auc == pytest.approx(np.mean(wanted), rel=1e-12)
    assert [row["auc"] for row in found.per_class] == pytest.approx(wanted, rel=1e-12)
    report = metrics.classification_report(new["y"], model.predict(new), output_dict=True)
    for row in found.per_class:
        theirs = report[row["class"]]
        assert [row["precision"], row["recall"], row["f1"], row["support"]] == pytest.approx(
            [theirs[name] for name in ("precision", "recall", "f1-score", "support")]
        )


@pytest.mark.parametrize("weighted", [False, True])
def test_the_calibration_error_by_chance_is_that_of_labels_drawn_from_the_probabilities(weighted):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0, 1.0, 0.5], 600)
    weights = rng.integers(1, 5, 600).astype(float) if weighted else np.ones(600)
    posterior = Posterior(("a", "b", "c"), np.log(p), np.zeros(3))

    def judged(shares):
        labels = (shares.cumsum(1) > rng.random((600, 1))).argmax(1)
        return metrics_of(posterior, labels, weights)

    right = [judged(p) for _ in range(300)]
    errors = [found.calibration_error for found in right]
    assert right[0].calibration_error_by_chance == pytest.approx(np.mean(errors), rel=0.05)
    assert sum(right[:9], metrics_of(posterior, np.full(600, -1), weights)).calibration_error_by_chance == pytest.approx(
        right[0].calibration_error_by_chance / 3
    )  # nine times the rows
    blunted = (p + 1.0) / 4.0
    assert np.mean([judged(blunted).calibration_error for _ in range(20)]) > 2 * right[0].calibration_error_by_chance


def test_losses_are_those_of_rows_whose_class_is_known_and_other_rows_count_as_errors():
    data, new = table(classes=3), table(200, seed=4, classes=4)
    model = likely.learn(data, "y")
    found = likely.evaluate(new, model=model)
    known = [i for i, label in enumerate(new["y"]) if label != "d"]
    alone = likely.evaluate(part(new, known), model=model)
    assert 0 < len(known) < 200
    assert found.total.unknown == 200 - len(known)
    assert (found.log_loss, found.brier) == pytest.approx((alone.log_loss, alone.brier))
    assert found.baseline["log_loss"] == pytest.approx(alone.baseline["log_loss"])
    assert found.accuracy == pytest.approx(alone.accuracy * len(known) / 200)


def test_a_certain_prediction_is_in_the_last_bin_of_confidence():
    sure = Posterior(("a", "b"), np.log([[1.0, 1e-300], [0.5, 0.5], [0.99, 0.01]]), np.zeros(2))
    found = metrics_of(sure, np.array([0, 1, 1]), np.ones(3))
    assert found.bins.shape == Metrics.zero(("a", "b")).bins.shape
    assert found.bins[-1, :3] == pytest.approx([2.0, 1.99, 1.0])
    assert found.bins[:-1, 0].sum() == 1.0
    assert (found + Metrics.zero(("a", "b"))).calibration_error == pytest.approx((0.99 + 0.5) / 3)


def test_ties_count_half():
    assert _auc(np.array([0.5, 0.5, 0.5, 0.5]), np.array([True, False, True, False]), np.ones(4)) == 0.5
    assert _auc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]), np.ones(4)) == 0.875
    weights = np.array([2.0, 1.0, 1.0, 3.0])
    assert _auc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]), weights) == pytest.approx(
        11.5 / 12
    )
    assert math.isnan(_auc(np.array([0.1, 0.4]), np.array([True, True]), np.ones(2)))


def test_the_figures_are_printed_and_in_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("learn", TENNIS, "--target", "PlayTennis", "-o", "m.likely")
    for reported in (
        run("evaluate", "m.likely", TENNIS).stdout,
        run("learn", TENNIS, "--target", "PlayTennis", "--folds", "2", "-o", "m.likely").stdout,
    ):
        for word in ("AUC", "class frequencies", "precision", "recall", "F1", "rows"):
            assert word in reported
    found = document("evaluate", "m.likely", TENNIS)
    assert found["baseline"]["accuracy"] == pytest.approx(9 / 14)
    assert 0 <= found["auc"] <= 1
    assert found["per_class"][0].keys() == {
        "class", "rows", "support", "precision", "recall", "f1", "auc", "average_precision"
    }  # fmt: skip


def test_a_class_that_a_fold_lacks_leaves_the_rest_standing():
    data = table(60) | {"y": ["a", "b"] * 29 + ["z", "z"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = likely.evaluate(data, target="y", folds=5)
    assert math.isfinite(found.auc)
    assert found.to_dict()["baseline"]["log_loss"] is not None


def test_metrics_of_two_sets_of_rows_add_up_to_those_of_all():
    rng = np.random.default_rng(3)
    p, weights, truth = rng.dirichlet(np.ones(3), 60), rng.uniform(0.5, 2.0, 60), rng.integers(-1, 4, 60)

    def judged(rows):
        posterior = Posterior(("a", "b", "c"), np.log(p[rows]), np.zeros(3))
        return metrics_of(posterior, truth[rows], weights[rows], np.array([5.0, 3.0, 2.0]))

    both, whole = judged(slice(0, 25)) + judged(slice(25, 60)), judged(slice(0, 60))
    for name in ("loss", "squares", "rows", "unknown", "base_loss", "base_right", "bins"):
        np.testing.assert_allclose(getattr(both, name), getattr(whole, name), rtol=1e-12, err_msg=name)
    assert both.confusion == pytest.approx(whole.confusion)
    for part in ("probabilities", "true", "weights"):
        joined = np.concatenate([getattr(scores, part) for scores in both.scores])
        np.testing.assert_array_equal(joined, getattr(whole.scores[0], part))
    assert (both + Metrics.zero(both.classes)).scores == (Metrics.zero(both.classes) + both).scores == both.scores
