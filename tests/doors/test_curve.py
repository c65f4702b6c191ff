"""The learning curve: what it counts, that its end is a hold-out evaluation, and that it can be looked at."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import likely
from likely.cli import main
from likely.errors import DataError, UsageError
from likely.evaluation._training_sets import CurveRows, TrainingOrder
from likely.evaluation.cross_validation import Split, prepare
from likely.evaluation.learning_curve import _steps
from likely.plots import charts

pytestmark = pytest.mark.xdist_group("curve")  # one learning curve

LOANS = str(Path(likely.__file__).parent / "data" / "loans.csv")
SVG = "{http://www.w3.org/2000/svg}"


def run(*args: str, expect: int = 0) -> Result:
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == expect, (args, result.exit_code, result.stdout, result.stderr)
    return result


def documents(n: int = 240, seed: int = 0) -> dict[str, list[str]]:
    """Texts of three classes, of which one is rare."""
    random = np.random.default_rng(seed)
    own = {"a": ["sun", "sea", "sand"], "b": ["snow", "ice", "wind"], "c": ["tax", "law", "court"]}
    labels = random.choice(list(own), n, p=[0.5, 0.4, 0.1]).tolist()
    text = [" ".join(random.choice([*own[label], "the", "and", "of", "on", "is", "it"], 9)) for label in labels]
    return {"text": text, "label": labels}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def loans() -> likely.LearningCurve:
    return likely.curve(LOANS, target="outcome", seeds=3)


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_the_last_point_is_the_holdout_evaluation_of_the_same_split(seed: int) -> None:
    found = likely.curve(LOANS, target="outcome", seeds=[seed])
    whole = likely.evaluate(LOANS, target="outcome", holdout=1 / 3, seed=seed)
    last = found.metrics[0][-1]
    assert last.confusion == whole.total.confusion
    assert last.rows == whole.rows
    assert last.log_loss == pytest.approx(whole.log_loss, rel=1e-9)


@pytest.mark.parametrize("settings", [{}, {"plain": True}, {"families": {"text": likely.Text("bernoulli")}}])
def test_the_last_point_on_text_is_the_holdout_evaluation_too(settings: dict[str, Any]) -> None:
    data = documents()
    found = likely.curve(data, target="label", seeds=2, holdout=0.25, **settings)
    for seed in (0, 1):
        whole = likely.evaluate(data, target="label", holdout=0.25, seed=seed, **settings)
        assert found.accuracy[seed, -1] == whole.accuracy
        assert found.log_loss[seed, -1] == pytest.approx(whole.log_loss, rel=1e-6)


def test_the_last_point_is_the_holdout_evaluation_where_more_documents_are_counted_than_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("likely.families.document_sample.SIZE", 50)
    data = documents()
    found = likely.curve(data, target="label", seeds=1)
    whole = likely.evaluate(data, target="label", holdout=1 / 3)
    assert found.log_loss[0, -1] == pytest.approx(whole.log_loss, rel=1e-6)


def test_a_point_is_what_learning_from_just_those_rows_gives() -> None:
    data = documents()
    source, plan = prepare(data, "label", {"plain": True})
    rows = CurveRows.of(source, plan, None)
    order = TrainingOrder.of(rows.labels, Split.of(None, 1 / 3, 0))
    some, tested = order.learned[:40], order.held_out
    model = likely.learn({name: [column[i] for i in some] for name, column in data.items()}, "label", plain=True)
    tried = likely.evaluate({name: [column[i] for i in tested] for name, column in data.items()}, model=model)
    found = likely.curve(data, target="label", sizes=[10, 40, 80], seeds=1, plain=True)
    assert found.accuracy[0, 1] == tried.accuracy
    assert found.log_loss[0, 1] == pytest.approx(tried.log_loss, rel=1e-9)


def test_training_sets_hold_one_another_and_no_withheld_row() -> None:
    labels = np.repeat([0, 1, 2], [300, 90, 7])
    labels[::50] = -1
    order = TrainingOrder.of(labels, Split.of(None, 1 / 3, 3))
    parts = order.parts([10, 50, 200])
    sets = [set(np.flatnonzero((parts >= 0) & (parts <= i)).tolist()) for i in range(3)]
    assert [len(each) for each in sets] == [10, 50, 200]
    assert sets[0] < sets[1] < sets[2]
    assert not sets[2] & set(order.held_out.tolist())
    assert (labels[order.learned] >= 0).all()
    assert len(order.learned) + len(order.held_out) == (labels >= 0).sum()


def test_every_beginning_has_all_classes_and_nearly_their_shares() -> None:
    labels = np.repeat([0, 1, 2, 3], [4000, 1500, 400, 100])
    order = TrainingOrder.of(labels, Split.of(None, 1 / 3, 0))
    learned = labels[order.learned]
    share = np.bincount(learned) / len(learned)
    for size in (4, 50, 500, 2000):
        seen = np.bincount(learned[:size], minlength=4)
        assert (seen > 0).all()
        assert np.abs(seen - share * size).max() < 4  # as a fair deal of stretches allows


def test_seeds_withhold_different_rows_and_the_same_seed_the_same() -> None:
    data = documents()
    first, again = (likely.curve(data, target="label", seeds=2) for _ in range(2))
    assert np.array_equal(first.accuracy, again.accuracy)
    assert not np.array_equal(first.log_loss[0], first.log_loss[1])
    assert np.array_equal(likely.curve(data, target="label", seeds=[1]).accuracy[0], first.accuracy[1])


def test_batches_and_their_size_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    data = documents(300)
    pq.write_table(pa.table(data), "t.parquet", row_group_size=37)
    whole = likely.curve(data, target="label", seeds=1)
    monkeypatch.setattr("likely.sources.files.BATCH_ROWS", 37)
    parts = likely.curve("t.parquet", target="label", seeds=1)
    monkeypatch.setattr(
        sys.modules["likely.evaluation._training_sets"], "CACHE_BYTES", 0
    )  # too large to keep: the file is read again for every size
    again = likely.curve("t.parquet", target="label", seeds=1)
    for other in (parts, again):
        assert np.array_equal(whole.accuracy, other.accuracy)
        assert whole.log_loss == pytest.approx(other.log_loss, rel=1e-9)


def test_weights_count_in_learning_and_judging() -> None:
    data = documents(120)
    doubled = likely.curve(data | {"w": [2.0] * 120}, target="label", weights="w", seeds=1, plain=True, smoothing=0.5)
    plain = likely.curve(data, target="label", seeds=1, plain=True, smoothing=0.25)
    assert np.array_equal(doubled.accuracy, plain.accuracy)
    assert doubled.log_loss == pytest.approx(plain.log_loss)


def test_more_rows_teach_more() -> None:
    found = likely.curve(documents(900), target="label", sizes=[4, 500], seeds=3)
    assert found.accuracy[:, -1].mean() > found.accuracy[:, 0].mean()
    assert found.log_loss[:, -1].mean() < found.log_loss[:, 0].mean()


# ---------------------------------------------------------------- sizes and settings


def test_sizes_double_up_to_all_rows(loans: likely.LearningCurve) -> None:
    assert loans.sizes == (50, 100, 200, 400)
    assert all(loans.trained[seed][-1] == 600 - loans.metrics[seed][-1].rows for seed in range(3))
    orders = [TrainingOrder.of(np.arange(18_846) % 20, Split.of(None, 1 / 3, seed)) for seed in range(3)]
    assert _steps(None, orders, 20)[:-1] == (50, 100, 200, 400, 800, 1600, 3200, 6400)


def test_a_tiny_table_has_a_curve_too() -> None:
    tennis = str(Path(LOANS).with_name("tennis.csv"))
    found = likely.curve(tennis, target="PlayTennis")
    assert found.sizes[0] == 4
    assert found.sizes[-1] <= 10
    assert np.isfinite(found.accuracy).all()


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({"sizes": [1, 50]}, "one row for each class"),
        ({"sizes": []}, "one row for each class"),
        ({"sizes": [50, 5000]}, "400 rows can be learned from"),
        ({"seeds": 0}, "seeds must be"),
        ({"holdout": 1.5}, "holdout must be a fraction"),
        ({"folds": 5}, "setting 'folds' is not known"),
        ({"target": None}, "target= .* is missing"),
    ],
)
def test_what_has_no_meaning_is_refused(settings: dict[str, Any], reported: str) -> None:
    with pytest.raises(UsageError, match=reported):
        likely.curve(LOANS, **({"target": "outcome"} | settings))


def test_one_class_and_too_few_rows_are_refused() -> None:
    with pytest.raises(DataError, match="fewer than two classes"):
        likely.curve({"x": [1.0, 2.0, 3.5], "y": ["a", "a", "a"]}, target="y")
    with pytest.raises(DataError, match="too few rows"):
        likely.curve({"x": ["u", "v"], "y": ["a", "b"]}, target="y", holdout=0.99, seeds=[0])


# ---------------------------------------------------------------- what is seen


def test_the_curve_as_plain_data_is_strict_json(loans: likely.LearningCurve) -> None:
    found = json.loads(json.dumps(loans.to_dict(), allow_nan=False))
    point = found["points"][-1]
    assert point["size"] == loans.sizes[-1]
    assert point["accuracy"]["seeds"] == loans.accuracy[:, -1].tolist()
    assert point["accuracy"]["low"] <= point["accuracy"]["mean"] <= point["accuracy"]["high"]
    zero = likely.curve(documents(60), target="label", seeds=1, plain=True, smoothing=0)
    json.dumps(zero.to_dict(), allow_nan=False)  # log losses of infinity are null


def test_the_table_has_a_line_for_every_size(loans: likely.LearningCurve) -> None:
    lines = str(loans).splitlines()
    assert "600 rows, 1/3 of them held out; mean of 3 seeds" in lines[0]
    assert [int(line.split()[0].replace(",", "")) for line in lines[4:]] == list(loans.sizes)


@pytest.mark.parametrize("metric", ["accuracy", "log_loss"])
def test_the_svg_is_well_formed_and_shows_a_dot_for_every_size(loans: likely.LearningCurve, metric: str) -> None:
    picture = ET.fromstring(loans.svg(metric, title='a & b < c "d" \x00'))
    assert picture.tag == f"{SVG}svg"
    assert len(picture.findall(f"{SVG}circle")) == len(loans.sizes)
    words = [text.text for text in picture.findall(f"{SVG}text")]
    assert 'a & b < c "d"  ' in words
    assert "rows learned from (logarithmic scale)" in words
    assert any("held-out rows" in (word or "") for word in words)
    assert "prefers-color-scheme:dark" in loans.svg()


def test_equal_steps_on_the_axis_are_equal_ratios(loans: likely.LearningCurve) -> None:
    x = [float(dot.get("cx", "")) for dot in ET.fromstring(loans.svg()).findall(f"{SVG}circle")]
    assert np.diff(x) == pytest.approx([np.diff(x)[0]] * (len(x) - 1), abs=0.5)  # 50, 100, 200, 400


@pytest.mark.parametrize(
    ("x", "y"), [([], []), ([7], [0.5]), ([1, 10], [1.0, 1.0]), ([1, 10], [0.0, 0.0]), ([1, 9], [np.inf, 0.3])]
)
def test_any_line_can_be_drawn(x: list[float], y: list[float]) -> None:
    for percent in (True, False):
        picture = ET.fromstring(charts.svg(charts.Line(x, y, y, y, "t", "s", "x", "y", percent)))
        for dot in picture.findall(f"{SVG}circle"):
            assert 0 <= float(dot.get("cx", "")) <= charts.WIDTH
            assert 0 <= float(dot.get("cy", "")) <= charts.HEIGHT


@pytest.mark.parametrize(("low", "high"), [(0.85, 0.99), (0.0, 1.0), (0.983, 0.9834), (0.5, 0.5), (2.0, 700.0)])
def test_ticks_are_few_and_around_what_is_drawn(low: float, high: float) -> None:
    found = charts.ticks(low, high)
    assert 2 <= len(found) <= 7
    assert found[0] <= low + 1e-9
    assert found[-1] >= high - 1e-9


def test_it_is_saved_by_the_ending_of_its_file(loans: likely.LearningCurve) -> None:
    loans.save("c.svg")
    assert Path("c.svg").read_text(encoding="utf-8") == loans.svg()
    loans.save("c.json")
    assert json.loads(Path("c.json").read_text(encoding="utf-8")) == loans.to_dict()
    with pytest.raises(UsageError, match=r"\.svg, \.png, \.pdf, \.json"):
        loans.save("c.gif")


def test_png_and_pdf_are_made_from_the_same_picture(loans: likely.LearningCurve) -> None:
    pytest.importorskip("cairosvg")
    loans.save("c.png", title="costs in $ and _")
    assert Path("c.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    run("curve", LOANS, "--target", "outcome", "--sizes", "50", "--seeds", "1", "--plain", "-o", "c.pdf")
    assert Path("c.pdf").read_bytes().startswith(b"%PDF")


def test_without_cairosvg_a_png_is_refused_with_the_remedy_before_the_work(
    loans: likely.LearningCurve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(UsageError, match=r"pip install 'likely\[images\]', or write \.svg"):
        loans.save("c.png")
    assert "likely[images]" in run("curve", LOANS, "--target", "outcome", "-o", "c.png", expect=2).stderr


# ---------------------------------------------------------------- the command


def test_the_command_prints_what_the_library_returns_and_draws_it() -> None:
    found = likely.curve(LOANS, target="outcome", sizes=[50, 300], seeds=2, smoothing=0.5)
    args = ["curve", LOANS, "--target", "outcome", "--sizes", "50,300", "--seeds", "2", "--smoothing", "1/2"]
    assert run(*args).stdout.rstrip() == str(found)
    assert json.loads(run(*args, "--json").stdout)["points"] == found.to_dict()["points"]
    assert "Curve written to c.svg" in run(*args, "-o", "c.svg").stdout
    assert Path("c.svg").read_text(encoding="utf-8") == found.svg()
    drawn = run(*args, "-o", "-", "--metric", "log_loss", "--title", "Loans")
    assert drawn.stdout == found.svg("log_loss", "Loans")
    assert "accuracy" in drawn.stderr


def test_the_command_takes_any_table_with_gaps_and_many_classes() -> None:
    random = np.random.default_rng(0)
    y = random.integers(0, 7, 400)
    gap = random.random(400) < 0.2
    table = {
        "kind": [f"k{label}" for label in y],
        "size": [None if g else float(v) for g, v in zip(gap, random.normal(size=400) + y, strict=True)],
        "colour": [
            None if g else f"c{v}" for g, v in zip(gap[::-1], (y + random.integers(0, 2, 400)) % 5, strict=True)
        ],
        "sold": random.integers(0, 2, 400).astype(bool).tolist(),
    }
    pq.write_table(pa.table(table), "t.parquet")
    reported = json.loads(run("curve", "t.parquet", "--target", "kind", "--seeds", "2", "-o", "c.svg", "--json").stdout)
    accuracy = [point["accuracy"]["mean"] for point in reported["points"]]
    assert reported["rows"] == 400
    assert accuracy[-1] > accuracy[0] > 1 / 7
    assert ET.parse("c.svg").getroot().tag == f"{SVG}svg"


def test_the_command_takes_a_folder_of_texts() -> None:
    data = documents(60)
    for i, (text, label) in enumerate(zip(data["text"], data["label"], strict=True)):
        Path("texts", label).mkdir(parents=True, exist_ok=True)
        Path("texts", label, str(i)).write_text(text, encoding="utf-8")
    reported = json.loads(run("curve", "texts/", "--seeds", "2", "--json").stdout)
    assert reported["target"] == "label"
    assert reported["rows"] == 60


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--sizes", "few"], 2),
        (["--sizes", "50,100000"], 2),
        (["--holdout", "2"], 2),
        (["-o", "c.gif"], 2),
        (["-o", "no/such/c.svg"], 2),
        (["-o", "-", "--json"], 2),
        (["--ignore", "nothing"], 3),
    ],
)
def test_a_wrong_call_leaves_by_its_exit_code_and_writes_nothing(args: list[str], code: int) -> None:
    run("curve", LOANS, "--target", "outcome", *args, expect=code)
    assert list(Path().iterdir()) == []


def test_no_picture_library_is_loaded_before_a_picture_is_asked_for() -> None:
    code = f"import likely, sys; likely.curve({LOANS!r}, target='outcome', seeds=1).svg(); print('matplotlib' in sys.modules)"
    env = os.environ | {"PYTHONPATH": str(Path(likely.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == "False"
