"""The page that plays EM step by step: what it says is what was run, whatever the columns are called; then a real browser."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import browser
import likely
from commands import LOANS, document, run
from likely.errors import UsageError
from likely.teaching import lesson
from likely.teaching.lesson import _em_frames as em_frames

NUMBERS = [1.0, 2.0, 4.0, 5.0, 7.0, 9.0]
NOTES = {"variance": 1.0, "weights": "equal"}
HOSTILE = "</script><b>&\"'x\u2028"


def notes(**more):
    settings = {"fixed": NOTES, "start": (2.0, 4.0), "max_iter": 9, "tol": -1.0, "steps": True} | more
    return likely.cluster({"x": NUMBERS}, 2, **settings)


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(0, 1, (n, 2)), rng.normal(4, 1.5, (n, 2))])
    return {"a": x[:, 0], "b": x[:, 1]}


class Reader(HTMLParser):
    """Every element of a page, its attributes, and the text of its scripts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self._inside = [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts.append(data)


def known(text):
    return json.loads(Reader(text).scripts[0])


def test_every_step_of_the_page_is_a_step_of_the_run():
    model = notes()
    made = lesson.lesson(model, {"x": NUMBERS})
    assert [frame.step for frame in made.frames] == list(range(len(model.trace)))
    assert [frame.value for frame in made.frames] == list(model.trace)
    assert np.isnan(made.frames[0].change)
    assert [frame.change for frame in made.frames[1:]] == np.diff(model.trace).tolist()
    assert made.frames[0].means[:, 0].tolist() == [2.0, 4.0]
    assert made.frames[-1].means[:, 0].tolist() == [row["mean"] for row in model.parameters["x"]]
    for frame in made.frames:
        shares = np.exp(-((np.array(NUMBERS)[:, None] - frame.means[:, 0]) ** 2) / 2)
        np.testing.assert_allclose(frame.responsibilities, shares / shares.sum(1, keepdims=True), rtol=1e-9)


def test_the_page_shows_the_sums_of_the_textbook():
    shown = known(lesson.page(notes(), {"x": NUMBERS}))["frames"]
    paper = json.loads(run("examples", "em", "--json").stdout)
    for i in (0, 1, 2):
        row = shown[i]["responsibilities"][0]
        assert row[: len(NUMBERS)] == [f"{share:.6f}" for share in paper[f"round {i + 1}"]["responsibilities of 1"]]
        for j in (0, 1):
            assert shown[i]["responsibilities"][j][-1] == f"{paper[f'round {i + 1}']['means'][j]:.6f}"
            assert shown[i + 1]["cells"][1][j] == shown[i]["responsibilities"][j][-1]
        assert f" Log likelihood {paper['log likelihood'][i]:.6f}" in shown[i]["caption"]
    assert shown[0]["caption"].startswith("Step 0, the start.")
    assert shown[-1]["caption"].endswith("EM was stopped here before it converged.")


def test_without_scripts_the_last_step_is_shown():
    text = lesson.page(notes(), {"x": NUMBERS})
    frame = known(text)["frames"][-1]
    assert f"<td>{frame['cells'][1][0]}</td>" in text
    assert f'd="{frame["paths"][0]}"' in text
    assert frame["caption"].split(". ")[0] in text
    assert "<noscript>" in text


def test_the_page_fetches_nothing_and_its_only_scripts_are_its_own():
    page = Reader(lesson.page(notes(), {"x": NUMBERS}))
    tags = [tag for tag, _ in page.tags]
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(tags)
    assert not [attrs for _, attrs in page.tags if {"src", "href", "srcset", "onclick", "onload"} & set(attrs)]
    assert tags.count("script") == 2
    policy = next(a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1]
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = [name for _, attrs in page.tags for name in attrs.get("aria-labelledby", "").split()]
    assert set(named) <= set(ids)


@pytest.mark.parametrize("name", [HOSTILE, "<img src=x onerror=alert(1)>", "]]>--><svg/onload=1>", "\x1b[31m\x07"])
def test_a_hostile_column_is_only_a_name(name):
    data = {name: np.concatenate([np.arange(9.0), 20 + np.arange(9.0)]), name + "2": np.arange(18.0)}
    model = likely.cluster(data, 2, steps=True)
    plain = likely.cluster({"x": data[name], "y": data[name + "2"]}, 2, steps=True)
    text = lesson.page(model, data, title=name)
    tame = Reader(lesson.page(plain, {"x": data[name], "y": data[name + "2"]}, title="t"))
    page = Reader(text)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in tame.tags]
    assert [sorted(attrs) for _, attrs in page.tags] == [sorted(attrs) for _, attrs in tame.tags]
    assert known(text)["frames"][0]["step"] == 0
    assert not re.search(r"[\x00-\x08\x1b\u2028]", text)


def test_two_fragments_stand_in_one_page_without_sharing_an_id():
    one = lesson.fragment(notes(), {"x": NUMBERS}, prefix="first")
    two = lesson.fragment(notes(), {"x": NUMBERS}, prefix="second")
    ids = [attrs["id"] for _, attrs in Reader(one + two).tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert all(name.split("-")[0] in ("first", "second") for name in ids)
    for bad in ("", "a b", '"><b>', "é", "1x"):
        with pytest.raises(UsageError, match="prefix="):
            lesson.fragment(notes(), {"x": NUMBERS}, prefix=bad)


def test_many_rows_are_sampled_and_gaps_left_out_and_the_page_notes_both():
    data = table(400)
    data["a"][::10] = np.nan
    model = likely.cluster(data, 2, steps=True)
    made = lesson.lesson(model, data)
    assert made.points.shape == (em_frames.MOST_POINTS, 2)
    assert (made.rows, made.gaps) == (800, 80)
    pairs = set(zip(data["a"].tolist(), data["b"].tolist(), strict=True))
    assert set(map(tuple, made.points.tolist())) <= pairs
    assert lesson.lesson(model, data).points.tolist() == made.points.tolist()
    text = lesson.page(model, data)
    assert "600 of 800 rows are drawn" in text
    assert "80 rows have a missing cell in a and b and are not drawn" in text


def test_steps_that_are_not_shown_are_counted():
    model = notes(max_iter=200)
    text = lesson.page(model, {"x": NUMBERS})
    assert f"{len(model.steps)} of {len(model.trace)} steps are shown" in text
    assert len(model.steps) < len(model.trace)


@pytest.mark.parametrize(
    ("data", "settings", "columns"),
    [
        ({"a": [3.0] * 8}, {}, ()),
        ({"a": [0.0, 1e9, 2e9, 1e9 + 1]}, {}, ()),
        ({"a": np.sqrt(np.arange(60.0)), "c": ["u", "v", "w"] * 20}, {}, ()),
        ({"a": np.sqrt(np.arange(60.0)), "c": ["u", "v", "w"] * 20}, {"families": {("a", "c"): "joint"}}, ()),
        (table(30), {"families": "joint"}, ("b",)),
        (table(30), {"families": "gaussian:class"}, ("b", "a")),
        (table(30), {"max_iter": 1}, ()),
    ],
)
def test_odd_tables_are_drawn_without_a_nan(data, settings, columns):
    model = likely.cluster(data, 1 if len(data) == 1 else 3, steps=True, **settings)
    text = lesson.page(model, data, columns)
    shown = known(text)["frames"]
    assert len(shown) == len(model.steps)
    moved = json.dumps([[frame["paths"], frame["names"], frame["cells"]] for frame in shown])
    assert not re.search(r"nan|inf", moved)


def test_the_error_for_what_cannot_be_drawn_names_a_remedy():
    three = table() | {"c": table(seed=1)["a"]}
    with pytest.raises(UsageError, match=r"3 columns hold numbers.*--draw A,B"):
        lesson.page(likely.cluster(three, 2, steps=True), three)
    assert "other column" in lesson.page(likely.cluster(three, 2, steps=True), three, ["a", "c"])
    with pytest.raises(UsageError, match=r"steps=True"):
        lesson.page(likely.cluster(table(), 2), table())
    words = {"c": ["u", "v", "w"] * 8, "d": ["x", "y"] * 12}
    with pytest.raises(UsageError, match=r"no column holds numbers"):
        lesson.page(likely.cluster(words, 2, steps=True), words)


def test_the_command_writes_the_page_and_prints_its_path(tmp_path):
    page = tmp_path / "steps.html"
    reported = run("cluster", LOANS, "-k", "2", "--ignore", "outcome", "--draw", "income,amount", "--steps", str(page))
    assert f"Steps written to {page}" in reported.stdout
    told = document("cluster", LOANS, "-k", "2", "--ignore", "outcome", "--draw", "income", "--steps", str(page))
    assert told["steps"] == str(page)
    shown = known(page.read_text(encoding="utf-8"))["frames"]
    assert [frame["step"] for frame in shown] == list(range(told["rounds"]))
    assert f"{told['trace'][-1]:.6f}" in shown[-1]["caption"]
    assert [path.name for path in tmp_path.iterdir()] == ["steps.html"]


def test_a_page_that_cannot_be_made_leaves_nothing_behind(tmp_path):
    model, page = str(tmp_path / "m.likely"), str(tmp_path / "steps.html")
    reported = run("cluster", LOANS, "-k", "2", "--ignore", "outcome", "--steps", page, "-o", model, expect=2)
    assert "--draw A,B" in reported.stderr
    for bad in (str(tmp_path / "no" / "s.html"), str(tmp_path), str(tmp_path / "s.svg"), "-"):
        run("cluster", LOANS, "-k", "2", "--draw", "income", "--steps", bad, "-o", model, expect=2)
        if not bad.endswith(".svg"):
            run("examples", "em", "--picture", bad, expect=2)
    run("examples", "tennis", "--picture", page, expect=2)
    run("examples", "--picture", page, expect=2)
    assert list(tmp_path.iterdir()) == []


def test_the_worked_example_has_its_page(tmp_path):
    page = tmp_path / "em.html"
    assert f"Picture written to {page}" in run("examples", "em", "--picture", str(page)).stdout
    assert document("examples", "em", "--picture", str(page))["picture"] == str(page)
    shown = known(page.read_text(encoding="utf-8"))["frames"]
    assert shown[0]["cells"][1] == ["2.000000", "4.000000"]


def test_the_shell_smooths_as_the_library_does():
    told = document("cluster", LOANS, "-k", "3", "--ignore", "outcome")
    assert told["trace"] == list(likely.cluster(LOANS, 3, ignore=["outcome"]).trace)
    assert told["converged"]
    own = document("cluster", LOANS, "-k", "3", "--ignore", "outcome", "--smoothing", "income=2")
    assert own["converged"]


# ---------------------------------------------------------------- a real browser


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = browser.found()
    if path is None:
        pytest.skip("NO BROWSER: install chromium, or what the page does in one is not tested")
    with browser.opened(path, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def em(page, tmp_path):
    path = tmp_path / "em.html"
    lesson.write(path, notes(), {"x": NUMBERS}, title=HOSTILE)
    page.prefer(prefers_reduced_motion="reduce")
    page.size(1280, 800)
    page.open(path)
    return page


def step(page):
    assert page.complaints() == []
    return int(page.ask("document.querySelector('.lk-lesson').dataset.step"))


def test_a_browser_starts_at_step_0_and_fetches_the_file_alone(em):
    assert step(em) == 0
    assert len(em.fetched()) == 1
    assert em.ask("document.querySelector('h2').textContent") == HOSTILE.replace("\u2028", " ")
    assert em.ask("document.querySelectorAll('b').length") == 0
    assert em.ask("document.documentElement.scrollWidth <= innerWidth")


def test_arrows_home_end_and_space_walk_and_play(em):
    walked = []
    for key, code in (
        ("ArrowRight", 39),
        ("ArrowRight", 39),
        ("ArrowLeft", 37),
        ("End", 35),
        ("ArrowRight", 39),
        ("Home", 36),
    ):
        em.press(key, code)
        walked.append(step(em))
    assert walked == [1, 2, 1, 8, 8, 0]
    em.press(" ", 32)
    assert em.ask("document.querySelector('[data-do=play]').textContent") == "Pause"
    em.ask("new Promise(r=>new MutationObserver(r).observe(document.querySelector('.lk-caption'),{childList:true}))")
    em.press(" ", 32)
    assert step(em) >= 1
    assert em.ask("document.querySelector('[data-do=play]').getAttribute('aria-label')") == "Play"


def test_buttons_and_slider_show_what_was_recorded(em):
    frames_known = em.ask("JSON.parse(document.querySelector('.lk-lesson script').textContent).frames")
    for do, at in (("next", 1), ("next", 2), ("back", 1), ("last", 8), ("first", 0)):
        em.click(f"[data-do={do}]")
        assert step(em) == at
        assert em.ask("document.querySelector('.lk-caption').textContent") == frames_known[at]["caption"]
        cells = em.ask(
            "[...document.querySelectorAll('.lk-cells tbody tr')].map(r=>[...r.cells].slice(1).map(c=>c.textContent))"
        )
        assert cells == frames_known[at]["cells"]
        fill = em.ask("[...document.querySelectorAll('.lk-points>*')].map(p=>p.getAttribute('fill').slice(1)).join('')")
        assert fill == frames_known[at]["fill"]
        assert em.ask("document.querySelector('input').value") == str(at)
    assert em.ask("document.querySelector('[data-do=back]').disabled")
    em.ask("document.querySelector('input').focus()")
    em.press("ArrowRight", 39)
    assert step(em) == 1
    assert em.ask("document.querySelector('input').getAttribute('aria-valuetext')") == "step 1"
    assert em.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_playing_ends_at_the_last_step_and_starts_again(page, tmp_path):
    path = tmp_path / "short.html"
    lesson.write(path, notes(max_iter=2), {"x": NUMBERS})
    page.open(path)
    page.click("[data-do=play]")
    page.ask(
        "new Promise(r=>new MutationObserver(r).observe(document.querySelector('[data-do=play]'),{childList:true}))"
    )
    assert step(page) == 1
    assert page.ask("document.querySelector('[data-do=play]').textContent") == "Play"
    page.click("[data-do=play]")
    assert step(page) == 0
    page.click("[data-do=play]")


def test_motion_and_colour_follow_the_reader(em):
    moving = "getComputedStyle(document.querySelector('.lk-moving path')).transitionDuration"
    paper = "getComputedStyle(document.querySelector('.lk-paper')).fill"
    assert em.ask(moving) == "0s"
    light = em.ask(paper)
    em.prefer(prefers_reduced_motion="no-preference", prefers_color_scheme="dark")
    assert em.ask(moving) != "0s"
    assert em.ask(paper) != light
    em.size(380, 800)
    assert em.ask("document.documentElement.scrollWidth <= innerWidth")


def test_an_address_may_name_a_step(page, tmp_path):
    path = tmp_path / "em.html"
    lesson.write(path, notes(), {"x": NUMBERS})
    for asked, at in (("#step=3", 3), ("#step=999", 8), ("#step=x", 0), ("#other", 0)):
        page.open(path, asked)
        assert page.ask("location.hash") == asked
        assert step(page) == at


def test_two_fragments_walk_apart(page, tmp_path):
    path = tmp_path / "two.html"
    both = [lesson.fragment(notes(), {"x": NUMBERS}, prefix=name) for name in ("one", "two")]
    Path(path).write_text(f"<!DOCTYPE html><meta charset=utf-8>{''.join(both)}", encoding="utf-8")
    page.size(1280, 800)
    page.open(path)
    page.click("#one [data-do=next]")
    assert page.ask("[one.dataset.step, two.dataset.step].join()") == "1,0"
    page.press("ArrowRight", 39)
    assert page.ask("[one.dataset.step, two.dataset.step].join()") == "2,0"
    assert page.complaints() == []
