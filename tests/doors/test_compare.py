"""Comparison with baselines: the same folds and metrics for all, and a failure is reported and not fatal."""

import json
import math
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import likely
from likely.cli import main
from likely.errors import UsageError
from likely.evaluation._baselines import BASELINES, Baseline
from likely.evaluation.comparison import _ComparedRows, _OwnModel, metrics_from, thinned
from likely.evaluation.comparison_table import METRICS, paired
from likely.evaluation.cross_validation import Split

LOANS = str(Path(likely.__file__).parent / "data" / "loans.csv")
SVG = "{http://www.w3.org/2000/svg}"
FAST = ["logistic-regression", "categorical-nb"]


def run(*args, expect=0):
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == expect, (args, result.exit_code, result.stdout, result.stderr)
    return result


def gappy(n=150, seed=0):
    """Numbers, categories, gaps, a column of nothing and three classes, one of them rare."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b"], n).tolist()
    y[:6] = ["rare"] * 6
    x = rng.normal(size=n) + np.array([label == "a" for label in y])
    c = [str(v) for v in rng.integers(0, 4, n)]
    return {
        "y": y,
        "x": [None if i % 7 == 0 else v for i, v in enumerate(x.tolist())],
        "z": rng.normal(size=n).tolist(),
        "c": [None if i % 5 == 0 else f"v{v}" for i, v in enumerate(c)],
    }


@pytest.fixture(scope="module")
def loans():
    return likely.compare(LOANS, target="outcome", baselines=FAST, folds=4, seed=3)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize(("name", "settings"), [("likely", {}), ("likely-plain", {"plain": True})])
def test_our_figures_are_those_of_evaluate(loans, name, settings):
    whole = likely.evaluate(LOANS, target="outcome", folds=4, seed=3, **settings)
    for metric in METRICS:
        assert getattr(loans[name].total, metric) == pytest.approx(getattr(whole, metric), abs=1e-12)
        assert loans[name].of(metric) == pytest.approx([getattr(part, metric) for part in whole.parts], abs=1e-12)


def test_every_learner_is_judged_on_the_same_rows_of_every_fold(loans):
    assert {result.name for result in loans.results} == {"likely", "likely-plain", *FAST}
    sizes = {tuple(fold.rows for fold in result.folds) for result in loans.results}
    assert len(sizes) == 1
    assert sum(sizes.pop()) == 600
    for i in range(4):
        truths = {
            tuple(sorted((true, sum(w for (t, _), w in fold.confusion.items() if t == true)) for true in fold.classes))
            for fold in (result.folds[i] for result in loans.results)
        }
        assert len(truths) == 1


def test_the_metrics_of_a_baseline_are_scikit_learns_on_the_same_folds(loans):
    from sklearn.metrics import accuracy_score, log_loss

    rows = _ComparedRows.of(_OwnModel.of(LOANS, "outcome", {"plain": True}), Split.of(4, None, 3))
    shares = np.zeros((600, 2))
    for fold in range(4):
        train, test = np.flatnonzero(rows.fold_of != fold), np.flatnonzero(rows.fold_of == fold)
        learner = BASELINES["logistic-regression"].make(rows.table, rows.labels[train])
        shares[test] = learner.fit(rows.table.X[train], rows.labels[train]).predict_proba(rows.table.X[test])
    total = loans["logistic-regression"].total
    assert total.log_loss == pytest.approx(log_loss(rows.labels, shares), abs=1e-9)
    assert total.accuracy == accuracy_score(rows.labels, shares.argmax(1))


def test_the_feature_matrix_of_baselines_holds_the_table():
    data = gappy()
    rows = _ComparedRows.of(_OwnModel.of(data, "y", {"plain": True}), Split.of(5, None, 0))
    table = rows.table
    assert [rows.classes[i] for i in rows.labels] == data["y"]
    numbers = table.X[:, table.numbers[0]]
    assert [None if math.isnan(v) else v for v in numbers.tolist()] == data["x"]
    codes = table.X[:, table.categories[0]].tolist()
    pairs = {(code, cell) for code, cell in zip(codes, data["c"], strict=True) if cell is not None}
    assert len(pairs) == table.sizes[0] == 4
    assert [math.isnan(code) for code in codes] == [cell is None for cell in data["c"]]


def test_batches_leave_no_trace(monkeypatch):
    data = gappy()
    pq.write_table(pa.table(data), "t.parquet", row_group_size=37)
    whole = likely.compare(data, target="y", baselines=["gaussian-nb", "categorical-nb"], folds=3)
    monkeypatch.setattr("likely.sources.files.BATCH_ROWS", 37)
    parts = likely.compare("t.parquet", target="y", baselines=["gaussian-nb", "categorical-nb"], folds=3)
    for one, other in zip(whole.results, parts.results, strict=True):
        assert one.total.log_loss == pytest.approx(other.total.log_loss, abs=1e-9)


def test_differences_are_paired_and_their_error_is_corrected(loans):
    apart = loans["categorical-nb"].of("log_loss") - loans["likely"].of("log_loss")
    found = loans.difference("categorical-nb", "log_loss")
    assert found.mean == pytest.approx(apart.mean())
    assert found.error == pytest.approx(math.sqrt((1 / 4 + 1 / 3) * apart.var(ddof=1)))
    assert found.high - found.mean == pytest.approx(3.182446305284263 * found.error)  # Student's t with 3 degrees
    own = loans.difference("likely", "accuracy")
    assert (own.mean, own.error) == (0.0, 0.0)
    assert math.isnan(paired(np.array([1.0, np.inf]), 2).error)
    with pytest.raises(UsageError, match="accuracy"):
        loans.difference("likely", "speed")


def test_a_probability_of_zero_for_what_happened_is_taken_as_tiny():
    found = metrics_from(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0, 1]), np.array([1, 0]), ["a", "b"])
    assert found.log_loss == pytest.approx((-math.log(1e-15) + math.log(2)) / 2, rel=1e-6)


def test_a_class_that_a_baseline_never_saw_is_counted_as_unknown():
    found = metrics_from(np.array([[1.0, 0.0]]), np.array([0, 2]), np.array([1]), ["a", "b", "c"])
    assert found.unknown == 1.0
    assert found.accuracy == 0.0


def test_thinning_keeps_the_classes_in_proportion():
    labels = np.array([0] * 900 + [1] * 100)
    few = thinned(labels, np.arange(1000), 100)
    assert len(few) == len(set(few.tolist())) == 100
    assert np.bincount(labels[few]).tolist() == [90, 10]
    assert thinned(labels, np.arange(50), 100).tolist() == list(range(50))


# ---------------------------------------------------------------- every baseline


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_takes_a_mixed_gappy_table(name):
    found = likely.compare(gappy(), target="y", baselines=[name], folds=2)
    result = found[name]
    assert not result.failed, result.note
    assert result.total.rows == 150
    assert 0 <= result.total.accuracy <= 1
    assert math.isfinite(result.total.log_loss)


@pytest.mark.parametrize("name", [name for name in BASELINES if name not in ("neural-net", "random-forest", "rbf-svm")])
def test_every_baseline_takes_text_or_refuses_it_with_a_reason(name):
    rng = np.random.default_rng(0)
    words = {"a": ["sun", "sea", "sand"], "b": ["snow", "ice", "wind"]}
    y = rng.choice(["a", "b"], 300).tolist()
    text = [
        " ".join(rng.choice([*words[label], *["the", "and", "of", "on", "is", "it", "by", "at"]], 9)) for label in y
    ]
    text[3] = None
    found = likely.compare(
        {"y": y, "text": text, "n": rng.normal(size=300).tolist()}, target="y", baselines=[name], folds=2
    )
    if name == "categorical-nb":
        assert "no text" in found[name].note
    else:
        assert not found[name].failed, found[name].note
        assert found[name].total.accuracy > 0.7


def test_a_class_of_one_row_is_no_hindrance():
    data = gappy()
    data["y"][:5] = ["a"] * 5
    found = likely.compare(data, target="y", baselines=["linear-svm", "gradient-boosting", "categorical-nb"], folds=3)
    assert [result.failed for result in found.results] == [False] * 5


def test_a_baseline_that_fails_or_is_too_slow_is_reported_and_the_others_go_on(monkeypatch):
    def broken(_table, _y):
        raise ValueError("no such\nthing")

    monkeypatch.setitem(BASELINES, "broken", Baseline("broken", "a broken one", broken))
    found = likely.compare(
        LOANS, target="outcome", baselines=["broken", "gaussian-nb", "decision-tree"], folds=2, limit=0.0
    )
    assert found["broken"].failed
    assert found["broken"].note == "failed: ValueError: no such thing"
    assert "too slow" in found["gaussian-nb"].note
    assert [result.name for result in found.ranked][:2] == ["likely", "likely-plain"]
    assert found.to_dict()["results"][-1]["failed"]
    assert "too slow" in str(found)


def test_a_baseline_fitted_on_fewer_rows_is_marked(monkeypatch):
    knn = BASELINES["knn"]
    monkeypatch.setitem(BASELINES, "knn", Baseline(knn.name, knn.title, knn.make, 100))
    assert (
        likely.compare(LOANS, target="outcome", baselines=["knn"], folds=3)["knn"].note == "learned from 100 of 400 rows"
    )


# ---------------------------------------------------------------- words and pictures


def test_as_plain_data_it_is_strict_json_and_best_first(loans):
    reported = json.loads(json.dumps(loans.to_dict(), allow_nan=False))
    losses = [result["log_loss"] for result in reported["results"]]
    assert losses == sorted(losses)
    assert reported["rows"] == 600
    for result in reported["results"]:
        assert result.keys() >= {*METRICS, "fit_seconds", "predict_seconds", "difference", "by_fold"}
        assert set(result["difference"]) == set(METRICS)


def test_the_picture_has_a_dot_for_every_learner_and_figure(loans):
    root = ET.fromstring(loans.svg("A & <b>"))
    assert len(root.findall(f"{SVG}circle")) == 2 * 4
    assert "A & <b>" in [text.text for text in root.iter(f"{SVG}text")]
    loans.save("c.svg")
    loans.save("c.json")
    assert Path("c.svg").read_text(encoding="utf-8") == loans.svg()
    assert json.loads(Path("c.json").read_text(encoding="utf-8")) == loans.to_dict()
    with pytest.raises(UsageError, match=r"\.svg"):
        loans.save("c.gif")


def test_the_command_prints_what_the_library_returns():
    args = ["compare", LOANS, "--target", "outcome", "--baseline", "categorical-nb", "--folds", "3"]
    printed = run(*args, "-o", "c.svg")
    assert "CategoricalNB" in printed.stdout
    assert ET.parse("c.svg").getroot().tag == f"{SVG}svg"
    reported = json.loads(run(*args, "--json").stdout)
    found = likely.compare(LOANS, target="outcome", baselines=["categorical-nb"], folds=3).to_dict()
    assert [r["log_loss"] for r in reported["results"]] == [r["log_loss"] for r in found["results"]]
    assert run(*args, "-o", "-").stdout.startswith("<svg")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--baseline", "oracle"], 2),
        (["--folds", "1"], 2),
        (["-o", "c.gif"], 2),
        (["-o", "no/such/c.svg"], 2),
        (["-o", "-", "--json"], 2),
        (["--ignore", "nothing"], 3),
    ],
)
def test_a_wrong_call_leaves_by_its_exit_code_and_writes_nothing(args, code):
    run("compare", LOANS, "--target", "outcome", *args, expect=code)
    assert list(Path().iterdir()) == []


def test_weights_are_refused():
    with pytest.raises(UsageError, match="weights"):
        likely.compare(gappy(), target="y", baselines=[], weights="z")


def test_without_scikit_learn_the_error_names_the_extra():
    code = f"import sys; sys.modules['sklearn'] = None; import likely; likely.compare({LOANS!r}, target='outcome')"
    env = os.environ | {"PYTHONPATH": str(Path(likely.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode != 0
    assert "pip install 'likely[sklearn]'" in done.stderr


def test_the_help_loads_no_learner():
    code = "import sys; from likely.cli import main; main(['--help'], standalone_mode=False); print('sklearn' in sys.modules)"
    env = os.environ | {"PYTHONPATH": str(Path(likely.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.strip().endswith("False")
