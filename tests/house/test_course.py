"""The course: every formula is rendered, from files of the repository alone, and fits a narrow screen."""

import re
from pathlib import Path

import pytest

import browser

pytestmark = pytest.mark.xdist_group("course")  # one browser

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LESSONS = sorted((DOCS / "course").glob("*.md"))
EXTENSIONS = ["tables", "attr_list", "md_in_html", "pymdownx.superfences", "pymdownx.arithmatex"]
PAGE = """<!doctype html><meta charset="utf-8"><base href="{folder}/">
<link rel="stylesheet" href="{assets}/katex/katex.min.css">
<link rel="stylesheet" href="{assets}/extra.css"><style>body {{ font: 16px sans-serif; margin: 0 16px }}
div.arithmatex {{ overflow: auto }}</style><body class="md-typeset">{body}
<script>window.document$ = {{ subscribe: (then) => then() }}</script>
<script src="{assets}/katex/katex.min.js"></script><script src="{assets}/math.js"></script>"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory):
    path = browser.found()
    if path is None:
        pytest.skip("NOT TESTED: there is no browser on this machine")
    with browser.opened(path, tmp_path_factory.mktemp("profile")) as page:
        page.size(390, 800)
        yield page


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_every_formula_of_a_lesson_is_rendered_and_fits_a_telephone(lesson: Path, chromium, tmp_path: Path) -> None:
    markdown = pytest.importorskip("markdown", reason="NOT TESTED: Markdown, with which the site is built, is not installed")
    generic = {"pymdownx.arithmatex": {"generic": True}}
    body = markdown.markdown(lesson.read_text(encoding="utf-8"), extensions=EXTENSIONS, extension_configs=generic)
    page = tmp_path / "page.html"
    places = {"folder": lesson.parent.as_uri(), "assets": (DOCS / "assets").as_uri()}
    page.write_text(PAGE.format(**places, body=body), encoding="utf-8")
    chromium.open(page)
    chromium.ask("document.fonts.ready.then(() => 0)")
    assert chromium.ask("document.querySelectorAll('.katex').length") > 15
    assert chromium.ask("document.querySelectorAll('.katex-error, .arithmatex:not([data-rendered])').length") == 0
    wide = "[...document.querySelectorAll('div.arithmatex')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"
    assert chromium.ask("document.querySelectorAll('details').forEach(d => d.open = true)") is None
    assert chromium.ask(wide) == []
    assert {url.split(":")[0] for url in chromium.fetched()} <= {"file", "data"}
    assert chromium.complaints() == []


@pytest.mark.parametrize("lesson", LESSONS[:-1], ids=lambda path: path.stem)
def test_a_lesson_has_exercises_each_with_a_solution(lesson: Path) -> None:
    text = lesson.read_text(encoding="utf-8")
    exercises = re.findall(r"^\*\*(\d)\.(\d)\*\*", text, flags=re.MULTILINE)
    assert [f"{lesson.stem[0]}.{i}" for i in range(1, len(exercises) + 1)] == [".".join(pair) for pair in exercises]
    assert text.count("<summary>Solution</summary>") == text.count("</details>") == len(exercises) >= 3


def test_the_last_of_the_pages_is_the_contents() -> None:
    assert LESSONS[-1].name == "index.md"
    contents = LESSONS[-1].read_text(encoding="utf-8")
    assert [page.name for page in LESSONS[:-1] if f"]({page.name})" not in contents] == []
