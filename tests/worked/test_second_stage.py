"""The second stage on tables whose answer is known."""

from types import SimpleNamespace

import numpy as np
import pytest

import likely
from likely.calibration import _fit as fit
from likely.calibration._terms import base_scores
from likely.calibration._text_terms import matched
from likely.families.text_calibration import LeftOutDocuments
from likely.latent import semi_supervised
from likely.tally.row_sample import Reservoir
from strategies import quietly


def informative(rows: int = 400) -> dict[str, list]:
    """A column that shows the class in nine rows of ten, one that shows nothing, and a number."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, rows)
    shown = np.where(rng.random(rows) < 0.9, y, 1 - y)
    return {
        "c": np.array(["u", "v"])[shown].tolist(), "noise": np.array(["s", "t"])[rng.integers(0, 2, rows)].tolist(),
        "n": rng.normal(y, 1.0).tolist(), "y": np.array(["a", "b"])[y].tolist(),
    }  # fmt: skip


def test_a_column_with_a_given_pseudocount_has_its_weight_too() -> None:
    data = informative()
    own = quietly(likely.learn, data, "y", smoothing={"c": 1.0})
    chosen = quietly(likely.learn, data, "y")
    assert own.calibration is not None
    assert chosen.calibration is not None
    assert own.calibration.weights["c"] == pytest.approx(chosen.calibration.weights["c"], abs=0.05)
    assert own.calibration.weights["c"] > 0.5 > own.calibration.weights["noise"]
    rows = {name: column for name, column in data.items() if name != "y"}
    assert own.predict_proba(rows) == pytest.approx(chosen.predict_proba(rows), abs=0.02)


@pytest.mark.parametrize(("labelled", "folds"), [(8, 4), (12, 5), (240, 3)])
def test_folds_of_the_choice_by_held_out_labels_never_outnumber_the_labels_of_a_class(labelled, folds, monkeypatch) -> None:
    used = set()

    class Recorded(semi_supervised.HeldOut):
        def __init__(self, *given) -> None:
            super().__init__(*given)
            used.add(self.folds)

    monkeypatch.setattr(semi_supervised, "HeldOut", Recorded)
    data = informative(600)
    order = np.argsort(data["y"], kind="stable")  # half of the labelled rows in each class
    place = np.empty(600, int)
    for label in ("a", "b"):
        rows = [i for i in order if data["y"][i] == label]
        place[rows] = np.arange(len(rows))
    hidden = [label if place[i] < labelled // 2 else None for i, label in enumerate(data["y"])]
    quietly(likely.learn, data | {"y": hidden}, "y", plain=True)
    assert used == {folds}


def test_two_switches_decide_together_and_the_probability_is_the_share_of_rows() -> None:
    """Neither switch alone shows whether the lamp is on; of each setting 98 rows of 100 are as the parity has it."""
    rows = [(a, b, (a ^ b) ^ (i % 50 == 0)) for a in (0, 1) for b in (0, 1) for i in range(100)]
    data = {
        "one": [("off", "on")[a] for a, _, _ in rows], "two": [("off", "on")[b] for _, b, _ in rows],
        "lamp": [("dark", "light")[y] for _, _, y in rows],
    }  # fmt: skip
    model = quietly(likely.learn, data, "lamp")
    for one, two, light in (("off", "off", 0.02), ("off", "on", 0.98), ("on", "off", 0.98), ("on", "on", 0.02)):
        found = dict(zip(model.classes, model.predict_proba({"one": one, "two": two})[0], strict=True))
        assert found["light"] == pytest.approx(light, abs=0.02)


def test_a_document_is_matched_to_the_row_of_its_own_class() -> None:
    """Rows of equal cells share a key, and each document is left out of the counts of its own class."""
    keys, labels = np.array([5, 5, 9]), np.array([1, 0, 0])
    kept = LeftOutDocuments(keys, labels, np.zeros((3, 2), np.float32), np.zeros(3, bool), complete=True, copies=None)
    rows = Reservoir(np.array([5, 5, 7, 9, 9]), np.array([0, 1, 0, 0, 1]), np.ones(5), {})
    at, there = matched(kept, rows)
    assert there.tolist() == [True, True, False, True, False]
    assert at[there].tolist() == [1, 0, 2]


def test_the_gain_of_a_column_is_the_loss_without_it_and_without_its_interactions() -> None:
    """The parity of a and b decides the lamp, that of c and d the bell: without any of the four, one bit is unknown."""
    rng = np.random.default_rng(0)
    a, b, c, d = rng.integers(0, 2, (4, 1_200))
    data = {"a": a, "b": b, "c": c, "d": d, "y": 2 * (a ^ b) + (c ^ d)}
    model = quietly(likely.learn, {name: np.array(list("pqrs"))[x].tolist() for name, x in data.items()}, "y")
    assert model.calibration is not None
    assert {tuple(sorted(each.columns)) for each in model.calibration.interactions} == {("a", "b"), ("c", "d")}
    assert list(model.calibration.gains.values()) == pytest.approx([np.log(2)] * 4, abs=0.05)


def test_parameters_before_calibration_are_derived_once_for_a_model_and_its_recalibrated_copy() -> None:
    model = quietly(likely.learn, informative(), "y")
    again = model.recalibrate()
    assert again is not model
    assert again.plain_parameters is model.plain_parameters


def test_a_model_without_rows_still_derives_its_parameters_before_calibration() -> None:
    model = quietly(likely.learn, informative(), "y")
    bare = model.without_rows()
    assert [each.columns for each in bare.plain_parameters] == [each.columns for each in model.plain_parameters]
    row = {"c": "u", "noise": "s", "n": 0.5}
    assert bare.posterior(row).probabilities == pytest.approx(model.posterior(row).probabilities)


def test_weights_are_drawn_from_the_largest_to_the_smallest() -> None:
    calibration = quietly(likely.learn, informative(), "y").calibration
    assert calibration is not None
    drawn = str(calibration.plot())
    places = [drawn.index(f"<title>{name}: {weight:.4f}") for name, weight in calibration.weights.items()]
    order = sorted(calibration.weights.values(), reverse=True)
    assert [list(calibration.weights.values())[i] for i in np.argsort(places)] == order


def test_one_weight_of_many_columns_is_penalised_as_often_where_columns_are_compared(monkeypatch) -> None:
    problems = []
    kept = fit.CalibrationFit._assembled

    def assembled(self, start, stiff):
        problems.append((kept(self, start, stiff)[0], stiff, len(self.rest)))
        return kept(self, start, stiff)

    monkeypatch.setattr(fit.CalibrationFit, "_assembled", assembled)
    monkeypatch.setattr(fit, "OWN_WEIGHTS", 2)
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 300)
    quietly(likely.learn, {f"x{j}": y + rng.normal(size=300) for j in range(6)} | {"y": y.tolist()}, "y", dependence="none")
    found = {(stiff, rest): problem.strength[-1] / problem.strength[0] for problem, stiff, rest in problems}
    assert found == pytest.approx({(False, 4): 1.0, (True, 4): 4.0})


@pytest.mark.parametrize(("rows", "tried"), [(8, False), (9, False), (10, True), (40, True)])
def test_directions_are_tried_with_more_rows_than_coefficients(rows: int, tried: bool, monkeypatch) -> None:
    """Eight columns and a constant are nine coefficients."""
    calls = []
    monkeypatch.setattr(fit.CalibrationFit, "add_discriminant", lambda self: calls.append(self.rows))
    cells = np.random.default_rng(0).normal(size=(rows, 8))
    quietly(likely.learn, {f"x{j}": cells[:, j] for j in range(8)} | {"y": ["a", "b"] * (rows // 2) + ["a"] * (rows % 2)}, "y")
    assert calls == ([rows] if tried else [])


def test_a_missing_cell_contributes_the_weighted_evidence_of_its_missingness() -> None:
    data = informative(600)
    rng = np.random.default_rng(1)
    gone = [rng.random() < (0.6 if label == "a" else 0.2) for label in data["y"]]
    data["c"] = [None if hidden else cell for cell, hidden in zip(data["c"], gone, strict=True)]
    model = quietly(likely.learn, data, "y", dependence="none")
    assert model.calibration is not None
    weight, evidence = model.calibration.absent["c"]
    assert weight > 0.3
    assert np.diff(evidence[1])[0] == pytest.approx(np.log(0.2 / 0.6), abs=0.2)
    (missing,) = [e for e in model.explain({"c": None, "noise": "s", "n": 0.0}).entries if e.name == "c"]
    assert missing.evidence == pytest.approx(tuple(weight * evidence[1]))
    (present,) = [e for e in model.explain({"c": "u", "noise": "s", "n": 0.0}).entries if e.name == "c"]
    own = model.calibration.weights["c"] * model.plain_parameters[0].likelihood.table[0]
    assert present.evidence == pytest.approx(tuple(own + weight * evidence[0]))


def test_partly_labelled_rows_of_several_files_are_learned_as_those_of_one_table(tmp_path) -> None:
    data = informative(240)
    data["y"] = [label if i % 3 else None for i, label in enumerate(data["y"])]
    for k, part in enumerate((range(100), range(100, 240))):
        lines = [",".join("" if data[name][i] is None else str(data[name][i]) for name in data) for i in part]
        (tmp_path / f"part-{k}.csv").write_text("\n".join([",".join(data), *lines, ""]))
    settings = {"plain": True, "unlabelled": 1.0, "max_iter": 3, "tol": -1.0}
    files = quietly(likely.learn, str(tmp_path / "part-*.csv"), "y", **settings)
    whole = quietly(likely.learn, data, "y", **settings)
    rows = {name: column for name, column in data.items() if name != "y"}
    np.testing.assert_allclose(files.predict_proba(rows), whole.predict_proba(rows), rtol=1e-9)


def test_the_frequency_of_the_class_of_a_row_is_counted_without_that_row():
    rows = SimpleNamespace(copies=np.ones(2), left=np.ones(4))
    sample, tally = SimpleNamespace(labels=np.array([0, 0, 0, 1])), SimpleNamespace(classes=np.array([3.0, 1.0]))
    data = SimpleNamespace(sample=sample, tally=tally, rows=rows)
    found = np.exp(base_scores(data)) * 5  # four rows and half a pseudo-row of each class
    np.testing.assert_allclose(found, [[2.5, 1.5], [2.5, 1.5], [2.5, 1.5], [3.5, 0.5]], rtol=1e-6)
