"""The report of a model: one document of plain data, and one page that runs nothing but its own script."""

import base64
import hashlib
import json
import math
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import browser
import likely
from commands import document, run
from likely.errors import SchemaError, UsageError
from likely.model.effects import effects

pytestmark = pytest.mark.xdist_group("report")  # one report and one browser

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<script>alert(1)</script>\"'&"
VIEWS = {
    "summary", "columns", "nomogram", "effects", "predictions", "quality", "calibration", "thresholds", "structure", "card",
}  # fmt: skip


def table(n: int = 600, seed: int = 0, classes: int = 2) -> dict[str, list]:
    """Rows in which two columns interact, one is a number, one has missing cells and one is noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    flip = rng.integers(0, 2, n)
    return {
        "height": (rng.normal(0, 1, n) + 1.5 * y).tolist(),
        "width": rng.normal(0, 1 + y, n).tolist(),
        "colour": [("red", "green", "blue")[int(v)] if rng.random() > 0.2 else None for v in (y + rng.integers(0, 2, n)) % 3],
        "a": [f"a{v}" for v in flip],
        "b": [f"b{v}" for v in (flip + y + (rng.random(n) < 0.1)) % 2],
        "class": [f"class {v}" for v in y],
    }


def texts(n: int = 60) -> dict[str, list]:
    return {"text": ["cheap pills now", "lunch at noon today"] * n, "y": ["spam", "good"] * n}


@pytest.fixture(scope="module")
def model() -> likely.Model:
    return likely.learn(table(), target="class")


@pytest.fixture(scope="module")
def found(model: likely.Model) -> likely.Report:
    return likely.report(model, table(300, 1))


def reports() -> dict[str, likely.Report]:
    """Reports of every kind of model."""
    rows, three = table(200), table(200, 2, 3)
    numbers = {name: rows[name] for name in ("height", "width")}
    plain = likely.learn(rows, target="class", plain=True)
    return {
        "plain": likely.report(plain, table(100, 3)),
        "three classes": likely.report(likely.learn(three, target="class"), table(100, 4, 3)),
        "no data": likely.report(plain),
        "no labels": likely.report(plain, {name: rows[name] for name in rows if name != "class"}),
        "text": likely.report(likely.learn(texts(), target="y", families={"text": likely.Text()}), texts(5)),
        "counts": likely.report(likely.learn({"n": [1, 2, 8, 9] * 9, "y": [0, 0, 1, 1] * 9}, "y", families={"n": "poisson"})),
        "joint": likely.report(likely.learn(rows, target="class", joint=[("height", "width")], plain=True), rows),
        "clusters": likely.report(likely.cluster(numbers, 2, n_init=1), numbers),
        "states": likely.report(likely.sequences({"x": numbers["height"]}, 2, n_init=1)),
        "curve": likely.report(plain, table(150, 5), curve=True),
    }


def test_every_kind_of_model_has_a_document_that_its_schema_accepts_and_a_page() -> None:
    schema = likely.Report.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for name, each in reports().items():
        jsonschema.validate(json.loads(each.to_json()), schema)
        assert each.html().startswith("<!DOCTYPE html>"), name
        assert len(each._repr_html_()) < 30_000
        assert repr(each).startswith("<Report of")


def test_the_report_of_states_has_their_information_criteria() -> None:
    chain = likely.sequences({"x": table(120)["height"]}, 2, n_init=1)
    told = likely.report(chain).to_dict()["em"]
    assert (told["bic"], told["aic"]) == pytest.approx((chain.bic, chain.aic))


def test_the_published_schema_is_the_one_of_the_code() -> None:
    published = json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8"))
    assert published == likely.Report.schema()


def test_the_steps_of_a_prediction_add_up_to_its_log_odds(found: likely.Report) -> None:
    for each in found.to_dict()["predictions"]:
        assert each["prior"] + math.fsum(step["weight"] for step in each["steps"]) == pytest.approx(each["log_odds"], abs=1e-4)
        p, q = each["probabilities"][each["for"]], each["probabilities"][each["against"]]
        assert math.log(p / q) == pytest.approx(each["log_odds"], abs=1e-3)


@pytest.mark.parametrize("plain", [True, False])
def test_an_effect_is_the_evidence_that_explain_gives_to_the_same_value(plain: bool) -> None:
    rows = table(classes=3)
    model = likely.learn(rows, target="class", plain=plain)
    for name, effect in effects(model).items():
        for level in (0, len(effect.values) // 2, len(effect.values) - 1):
            row = dict.fromkeys(model.schema.by_name) | {name: effect.values[level]}
            entry = next(e for e in model.explain(row).entries if e.columns == (name,))
            assert effect.terms[level] == pytest.approx(entry.evidence)
        entry = next(e for e in model.explain(dict.fromkeys(model.schema.by_name)).entries if e.columns == (name,))
        assert effect.missing_terms == pytest.approx(entry.evidence)
        missing = rows[name].count(None)
        assert effect.missing_counts.sum() == missing
        if effect.counts is not None:
            assert effect.counts.sum() == len(rows["class"]) - missing


def test_standard_errors_of_effects_are_those_of_repeated_samples() -> None:
    rng = np.random.default_rng(5)
    drawn, errors = [], []
    for _ in range(60):
        y = rng.integers(0, 2, 400)
        data = {"v": np.where(rng.random(400) < 0.3 + 0.3 * y, "x", "y"), "g": rng.normal(y, 1.0), "y": y}
        found = effects(likely.learn(data, target="y", plain=True, smoothing=0.5))
        v, g = found["v"], found["g"]
        drawn.append([v.weights[0, 1], *np.interp([0.0, 2.0], g.values, g.weights[:, 1])])
        errors.append([v.weight_errors[0, 1], *np.interp([0.0, 2.0], g.values, g.weight_errors[:, 1])])
    assert np.mean(errors, 0) == pytest.approx(np.std(drawn, 0), rel=0.3)


def test_metrics_confusion_and_thresholds_are_those_of_evaluate(model: likely.Model, found: likely.Report) -> None:
    evaluation = likely.evaluate(table(300, 1), model=model)
    shown = found.to_dict()["evaluation"]
    assert shown["accuracy"] == pytest.approx(evaluation.accuracy)
    assert shown["confusion"] == evaluation.confusion.tolist()
    best = shown["thresholds"]["best"]
    assert best == pytest.approx(evaluation.curves(shown["positive"]).best_threshold[0], rel=1e-4)
    for row in shown["thresholds"]["rows"]:
        assert row["true_positives"] + row["false_negatives"] == shown["thresholds"]["positives"]
    assert sum(b["rows"] for b in shown["calibration"]["after"]) == evaluation.rows
    assert shown["calibration"]["before"]


def test_rows_behind_a_cell_are_rows_of_that_cell(model: likely.Model, found: likely.Report) -> None:
    rows = table(300, 1)
    labels = model.predict(rows)
    for cell in found.to_dict()["confusion_rows"]:
        for row in cell["rows"]:
            assert rows["class"][row["row"] - 1] == cell["truth"]
            assert labels[row["row"] - 1] == cell["predicted"]


def test_a_change_of_one_cell_gives_the_probability_that_is_printed(model: likely.Model, found: likely.Report) -> None:
    rows = table(300, 1)
    checked = 0
    for each in found.to_dict()["predictions"]:
        for change in each["changes"]:
            if change["column"] in ("a", "b", "colour"):
                row = {name: rows[name][each["row"] - 1] for name in rows}
                row[change["column"]] = None if change["to"] == "missing" else change["to"]
                p = model.posterior(row).to_dicts()[0]["probabilities"][each["for"]]
                assert p == pytest.approx(change["probability"], abs=1e-5)
                checked += 1
    assert checked


def test_warnings_name_unseen_values_missing_cells_and_rows_learned_from(model: likely.Model) -> None:
    odd = table(200, 6) | {"a": ["new"] * 200, "colour": [None] * 200}
    reported = " ".join(likely.report(model, odd).to_dict()["warnings"])
    assert "Column a: 200 rows (100.0 %) have a value that was never learned, such as 'new'" in reported
    assert "Column colour: 100.0 % of the cells are missing here" in reported
    assert "learned from" in " ".join(likely.report(model, table()).to_dict()["warnings"])


def test_without_rows_no_cell_of_the_data_is_shown(model: likely.Model) -> None:
    shown = likely.report(model, table(300, 1), rows=False)
    assert shown.to_dict()["card"]["rows_shown_in_this_report"] == 0
    assert not {"predictions", "confusion_rows"} & shown.to_dict().keys()
    assert "Single predictions" not in shown.html()


def hostile() -> likely.Report:
    rows = table(200)
    renamed = {f"{name}{HOSTILE}": values for name, values in rows.items()}
    renamed[f"a{HOSTILE}"] = [f"{value}{HOSTILE}" for value in rows["a"]]
    renamed[f"class{HOSTILE}"] = [f"{value}{HOSTILE}" for value in rows["class"]]
    model = likely.learn(renamed, target=f"class{HOSTILE}")
    return likely.report(model, renamed, title=HOSTILE)


def test_names_values_and_classes_are_escaped_everywhere() -> None:
    page = hostile().html()
    assert "<script>alert" not in page
    assert "</script>\"'" not in page
    assert len(re.findall(r"<script\b", page)) == 2


def test_a_page_allows_only_its_own_style_and_script(found: likely.Report) -> None:
    page = found.html()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert policy
    assert style
    assert script
    styles, scripts = (base64.b64encode(hashlib.sha256(part[1].encode()).digest()).decode() for part in (style, script))
    nothing = "default-src 'none'; base-uri 'none'; form-action 'none'"
    assert policy[1] == f"{nothing}; style-src 'sha256-{styles}'; script-src 'sha256-{scripts}'"
    assert len(re.findall(r"<style", page)) == 1
    assert not re.search(r"<[^>]* (style|onclick|onload|src|href)=\"(?!#)", page)
    assert set(re.findall(r"https?://[^\"'\s<]+", page)) == {"http://www.w3.org/2000/svg"}


def test_the_command_writes_page_and_document(model: likely.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.likely")
    rows = table(100, 1)
    lines = [",".join(rows), *(",".join("" if v is None else str(v) for v in row) for row in zip(*rows.values(), strict=True))]
    (tmp_path / "test.csv").write_text("\n".join(lines) + "\n")
    given = ["report", str(tmp_path / "m.likely"), "--data", str(tmp_path / "test.csv")]
    out = tmp_path / "r.html"
    assert document(*given, "-o", str(out), "--cost", "class 1:class 0=5")["output"] == str(out)
    assert "Model card" in out.read_text(encoding="utf-8")
    assert str(tmp_path) not in out.read_text(encoding="utf-8")
    shown = document(*given, "--surface", "width,height")
    jsonschema.validate(shown, likely.Report.schema())
    assert shown["surface"]["columns"] == ["width", "height"]
    assert json.loads(run("report", "--schema").stdout) == likely.Report.schema()
    assert run(*given, "-o", "-").stdout.startswith("<!DOCTYPE html>")
    assert "use .html or .json" in run(*given, "-o", str(tmp_path / "r.txt"), expect=2).stderr
    assert "-o report.html" in run(*given, expect=2).stderr
    assert "choose two of" in run(*given, "--json", "--surface", "a,height", expect=2).stderr


def test_a_report_of_something_else_is_refused(model: likely.Model) -> None:
    with pytest.raises(UsageError, match="not of dict"):
        likely.report({})
    with pytest.raises(UsageError, match="'class 9' is no class"):
        likely.report(model, positive="class 9")


# ---------------------------------------------------------------- a real browser

needs_browser = pytest.mark.skipif(browser.found() is None, reason="no Chromium on this machine: pages are not opened")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory):
    with browser.opened(str(browser.found()), tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def opened(page: browser.Page, found: likely.Report, tmp_path: Path) -> browser.Page:
    found.save(tmp_path / "report.html")
    page.size(1280, 900)
    page.open(tmp_path / "report.html")
    return page


@needs_browser
def test_every_view_renders_without_complaint_or_request_at_both_widths(opened: browser.Page) -> None:
    assert set(opened.ask("[...document.querySelectorAll('section')].map(s => s.id)")) >= VIEWS
    for width in (1280, 390):
        opened.size(width, 900)
        assert opened.ask("document.documentElement.scrollWidth") <= width
        drawn = "[...document.querySelectorAll('main svg')].filter(s => s.checkVisibility())"
        assert opened.ask(f"{drawn}.every(s => s.getBoundingClientRect().width > 20)")
    assert opened.complaints() == []
    assert len(opened.fetched()) == 1


@needs_browser
def test_the_nomogram_follows_its_choices(opened: browser.Page) -> None:
    def choose(name: str, value: str) -> str:
        change = f"(s => {{s.value = {value!r}; s.dispatchEvent(new Event('change'))}})"
        opened.ask(f"{change}(document.getElementById('nomogram-{name}'))")
        return str(opened.ask("document.querySelector('#nomogram-picture svg').getAttribute('aria-label')"))

    first = choose("class", "1")
    assert choose("class", "0") != first
    names = re.findall(r"(?:: |; )(\w+) from", choose("order", "name"))
    assert names == sorted(names)
    assert len(re.findall(" from ", choose("top", "5"))) == 5
    marks = "document.querySelectorAll('#nomogram-picture .lk-p1:not(.lk-sum)').length"
    assert opened.ask(marks) == 0
    choose("row", "0")
    assert opened.ask(marks) == 5
    assert opened.ask("document.querySelectorAll('#nomogram-picture .lk-sum').length") == 1  # the probability of the row
    assert "%" in opened.ask("document.getElementById('nomogram-sum').textContent")
    choose("scale", "points")
    assert "points" in opened.ask("document.querySelector('#nomogram-picture svg').textContent")
    assert opened.complaints() == []


@needs_browser
def test_one_prediction_is_shown_at_a_time_and_costs_move_the_table(opened: browser.Page) -> None:
    shown = "[...document.querySelectorAll('[id^=prediction-]')].filter(d => d.tagName === 'DIV' && d.checkVisibility()).length"
    assert opened.ask(shown) == 1
    before = opened.ask("document.getElementById('cost-best').textContent")
    opened.ask("(i => {i.value = 20; i.dispatchEvent(new Event('input'))})(document.getElementById('cost-miss'))")
    assert opened.ask("document.getElementById('cost-best').textContent") != before
    assert opened.complaints() == []


@needs_browser
def test_a_hostile_table_runs_nothing(page: browser.Page, tmp_path: Path) -> None:
    hostile().save(tmp_path / "hostile.html")
    page.open(tmp_path / "hostile.html")
    assert page.complaints() == []
    assert page.ask("document.querySelector('h1').textContent") == HOSTILE


@needs_browser
def test_no_fault_of_accessibility_is_found_by_axe(opened: browser.Page) -> None:
    script = browser.axe()
    for scheme in ("light", "dark"):
        opened.prefer(prefers_color_scheme=scheme)
        opened.ask(script + ";0")
        assert json.loads(opened.ask(browser.FAULTS)) == []


def test_a_column_that_is_not_there_cannot_be_drawn_first(model: likely.Model) -> None:
    with pytest.raises(SchemaError, match="did you mean 'height'"):
        likely.report(model, columns=["heigth"])


@needs_browser
def test_no_text_of_a_picture_is_outside_of_it(page: browser.Page, tmp_path: Path) -> None:
    rows = {"CAPITAL_LETTERS_OF_A_COLUMN": ["WWWWWWMMMMMM→X", "<=50K", ">50K"] * 40, "gain": [0.0, 99999.0, 1e5] * 40,
            "y": ["<=50K", ">50K", ">50K"] * 40}  # fmt: skip
    likely.report(likely.learn(rows, "y"), rows).save(tmp_path / "wide.html")
    page.size(1280, 900)
    page.open(tmp_path / "wide.html")
    outside = page.ask("""(() => {
      for (const each of document.querySelectorAll("details")) each.open = true;
      const found = [];
      for (const svg of document.querySelectorAll("svg")) {
        const box = svg.getBoundingClientRect();
        for (const text of svg.querySelectorAll("text")) {
          const own = text.getBoundingClientRect();
          if (own.width && (own.left < box.left - 1 || own.right > box.right + 1)) found.push(text.textContent);
        }
      }
      return found;
    })()""")
    assert outside == []
