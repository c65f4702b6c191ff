"""Confidential tables: what a model file holds of its rows is reported, and a model without rows holds none."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import likely
from commands import LOANS, document, run
from likely.errors import LikelyWarning, UsageError
from likely.families.histogram import Histogram
from likely.model import model_file

SECRET = "the heron nobody mentioned waits beside sluice number forty"


def table(rows=300, seed=0):
    """Numbers with all of their digits, categories and documents; the class depends on all of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    words = np.array(["amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "inlet", "jetty"])
    texts = [" ".join(rng.choice(words[3 * c : 3 * c + 7], 12)) for c in y]
    texts[7] = SECRET
    return {
        "x": (rng.normal(size=rows) + y).tolist(),
        "z": (1.7e9 + 1e4 * rng.normal(size=rows) * (1 + y)).tolist(),
        "colour": rng.choice(["red", "green", "blue"], rows).tolist(),
        "note": texts,
        "y": np.array(["no", "yes"])[y].tolist(),
    }


@pytest.fixture(scope="module")
def models():
    return likely.learn(table(), "y"), likely.learn(table(), "y", keep_rows=False)


def test_the_same_model_is_learned_without_rows(models):
    full, bare = models
    assert full.tally.rows_kept == 300
    assert bare.tally.rows_kept == 0
    assert bare == full.without_rows()
    assert bare.without_rows() == bare
    new = table(200, seed=1)
    np.testing.assert_allclose(bare.posterior(new).log_joint, full.posterior(new).log_joint, rtol=1e-9, atol=1e-9)
    assert bare.explain({name: column[0] for name, column in new.items()}).label == bare.predict(new)[0]


def test_the_bytes_of_a_file_without_rows_hold_no_row(models, tmp_path):
    full, bare = models
    full.save(tmp_path / "full.likely")
    bare.save(tmp_path / "bare.likely")
    held, left = (tmp_path / name for name in ("full.likely", "bare.likely"))
    raw, stripped = held.read_bytes(), left.read_bytes()
    for column in ("x", "z"):
        for number in table()[column]:
            assert np.float64(number).tobytes() in raw
            assert np.float64(number).tobytes() not in stripped
    assert SECRET.encode() not in stripped
    header, arrays, _ = model_file.read(left)
    assert not [name for name in arrays if "sample" in name]
    assert "sample" not in header
    # Histograms are in the order of their numbers; nothing else is as long as the table, to be read row by row.
    assert {name.partition(".")[2] for name, array in arrays.items() if 300 in array.shape} <= {"seen", "keys"}
    assert likely.load(left) == bare


def test_a_model_without_rows_reports_that_it_cannot_be_calibrated_again(models):
    full, bare = models
    with pytest.raises(UsageError, match="holds no rows of its table"):
        bare.recalibrate()
    with pytest.raises(UsageError, match="holds no rows of its table"):
        bare.relearn(class_prior={"no": 0.3, "yes": 0.7})
    later = bare.update(table(50, seed=2))
    assert later.stale
    assert later.tally.rows == 350
    assert later.calibration == full.calibration
    assert not later.forget(table(50, seed=2)).stale
    odd = table(9, seed=3) | {"y": ["no", "perhaps", "yes"] * 3}
    with pytest.raises(UsageError, match=r"'perhaps' was added or removed.*holds no rows"):
        bare.update(odd)


def test_plain_counting_can_be_read_off_a_model_without_rows():
    full = likely.learn({k: v for k, v in table().items() if k != "note"}, "y")
    bare = full.without_rows().relearn(smoothing=1)
    assert bare.calibration is None
    np.testing.assert_allclose(bare.class_prior, full.relearn(smoothing=1).class_prior)


@pytest.mark.parametrize("turned", [False, True])
def test_a_sum_with_a_model_without_rows_keeps_the_older_calibration(models, turned):
    full, _ = models
    other = likely.learn(table(100, seed=4), "y", keep_rows=False)
    with pytest.warns(LikelyWarning, match="holds no rows"):
        whole = other + full if turned else full + other
    assert whole.tally.rows == 400
    assert whole.tally.rows_kept == 0
    assert whole.stale
    assert whole.calibration.counted == 300
    new = table(60, seed=5)
    assert np.isfinite(whole.posterior(new).probabilities).all()


def test_text_alone_keeps_no_document(tmp_path):
    data = {name: table()[name] for name in ("note", "y")}
    full = likely.learn(data, "y")
    bare = full.without_rows()
    assert full.tally.rows_kept == 300
    assert bare.tally.rows_kept == 0
    np.testing.assert_allclose(bare.posterior(data).log_joint, full.posterior(data).log_joint, rtol=1e-12)
    assert bare.save(tmp_path / "t.likely")
    with pytest.raises(UsageError, match="holds no rows"):
        likely.load(tmp_path / "t.likely").recalibrate()


def test_cross_validation_of_a_model_without_rows_learns_the_same_models(models):
    full, bare = models
    assert likely.evaluate(table(), model=bare, folds=3).log_loss == likely.evaluate(table(), model=full, folds=3).log_loss


def test_a_coarse_histogram_keeps_every_bin():
    rng = np.random.default_rng(3)
    for x in (rng.normal(size=400), 1.7e9 + rng.normal(size=400), rng.integers(0, 9, 400) * 1.0, np.full(5, 2.0)):
        fine = Histogram.of(x, rng.integers(0, 2, len(x)), np.ones(len(x)), 2)
        edges = fine.edges(64)
        coarse = fine.coarse(edges)
        np.testing.assert_array_equal(coarse.cut(edges), fine.cut(edges))
        np.testing.assert_allclose(coarse.centres(edges), fine.centres(edges), rtol=1e-12)
        assert coarse.coarse(edges) == coarse


def test_the_estimators_can_do_without_rows_too():
    pytest.importorskip("sklearn")
    data = table()
    X, y = np.column_stack([data["x"], data["z"]]), data["y"]
    full, bare = likely.NaiveBayes().fit(X, y), likely.NaiveBayes(keep_rows=False).fit(X, y)
    assert bare.model_.tally.rows_kept == 0
    np.testing.assert_allclose(bare.predict_proba(X), full.predict_proba(X), rtol=1e-9)
    bare.partial_fit(X[:20], y[:20])
    assert bare.model_.stale
    assert bare.predict(X).shape == (300,)
    with pytest.raises(UsageError, match="call fit first"):
        likely.NaiveBayes(keep_rows=False).partial_fit(X, y)
    texts = likely.TextNaiveBayes(keep_rows=False).fit(data["note"], y)
    assert texts.model_.tally.rows_kept == 0
    assert (texts.predict(data["note"]) == likely.TextNaiveBayes().fit(data["note"], y).predict(data["note"])).all()


def test_the_command_reports_how_many_rows_a_file_holds_and_removes_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reported = run("learn", LOANS, "--target", "outcome", "-o", "m.likely").stdout
    assert "contains 600 distinct rows" in reported
    assert "--no-rows" in reported
    assert "contains 600 distinct rows" in run("inspect", "m.likely").stdout
    assert document("inspect", "m.likely")["rows_inside"] == 600
    assert "Removed 600 rows" in run("strip", "m.likely", "-o", "s.likely").stdout
    reported = run("learn", LOANS, "--target", "outcome", "--no-rows", "-o", "n.likely").stdout
    assert "no rows of the table; it cannot be recalibrated" in reported
    assert Path("s.likely").read_bytes() == Path("n.likely").read_bytes()
    assert document("strip", "m.likely")["rows_inside"] == 0  # in place
    assert Path("m.likely").read_bytes() == Path("n.likely").read_bytes()
    assert "has no sample of rows to fit it again" in run("update", "m.likely", LOANS).stdout
    assert "holds no rows" in run("update", "m.likely", LOANS, "--recalibrate", expect=2).stderr
    plain = run("learn", LOANS, "--target", "outcome", "--plain", "-o", "p.likely").stdout
    assert "It contains counts and no rows of the table\n" in plain


def test_class_shares_and_folds_go_with_no_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = ["--class-prior", "default=0.3", "--class-prior", "repaid=0.7", "--folds", "2"]
    run("learn", LOANS, "--target", "outcome", "--no-rows", *given, "-o", "m.likely")
    assert likely.load("m.likely").tally.rows_kept == 0


def test_a_model_with_rows_merges_as_ever(models):
    full, _ = models
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (full + likely.learn(table(100, seed=4), "y")).tally.rows_kept == 400
