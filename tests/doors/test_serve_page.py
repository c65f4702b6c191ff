"""The page in a real browser: forms, evidence, uploads, learning and the lab, with the mouse and with keys alone."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import browser
import likely
from serving import Server, served
from strategies import quietly

pytestmark = pytest.mark.xdist_group("serve page")  # one browser and its servers

pytest.importorskip("msgspec", reason="NOT TESTED: msgspec is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="NOT TESTED: playwright is not installed")
if not browser.found():
    pytest.skip("NOT TESTED: there is no Chromium on this machine", allow_module_level=True)

DATA = Path(likely.__file__).parent / "data"
NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser.found(), args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("page")
    quietly(likely.learn, str(DATA / "loans.csv"), "outcome").save(folder / "loans.likely")
    table = {NASTY: [NASTY, "b", "c", "b"] * 5, "y": ["<b>no</b>", "yes"] * 10}
    quietly(likely.learn, table, "y", plain=True).save(folder / "odd.likely")
    with served(str(folder / "loans.likely"), str(folder / "odd.likely"), "--quiet") as running:
        yield running


@pytest.fixture(scope="module")
def bench() -> Iterator[Server]:
    with served("--quiet") as running:
        yield running


@contextmanager
def opened(chromium: Any, address: str, **settings: Any) -> Iterator[Any]:
    """A page; at the end nothing may have been written to its console."""
    context = chromium.new_context(accept_downloads=True, **settings)
    page = context.new_page()
    page.set_default_timeout(120_000)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
    page.goto(address)
    yield page
    assert complaints == []
    context.close()


def test_the_form_changes_posterior_and_evidence_by_mouse_and_by_keys(chromium: Any, loans: Server) -> None:
    with opened(chromium, loans.address, color_scheme="dark") as page:
        page.wait_for_selector("#label")
        before = page.inner_text(".bars"), page.inner_text(".evidence")
        page.get_by_label("late_payments", exact=True).fill("4")
        page.wait_for_function("old => document.querySelector('.bars').innerText !== old", arg=before[0])
        assert page.inner_text(".evidence") != before[1]
        after = page.inner_text(".bars")
        page.get_by_label("late_payments, slider").focus()
        for _ in range(4):
            page.keyboard.press("ArrowLeft")
        page.wait_for_function("old => document.querySelector('.bars').innerText !== old", arg=after)
        page.get_by_label("employment").select_option("unemployed")
        page.get_by_role("button", name="Clear all").press("Enter")
        page.wait_for_function("() => document.querySelector('.evidence').innerText.includes('missing')")


def test_names_and_values_with_markup_are_shown_as_text(chromium: Any, loans: Server) -> None:
    with opened(chromium, loans.address) as page:
        page.select_option("#model-select", "odd")
        page.wait_for_function("() => document.querySelector('h1')?.innerText === 'What is y?'")
        assert page.locator(f"label:text-is('{NASTY}')").count() == 1
        assert page.locator("main img").count() == 0
        assert "<b>no</b>" in page.inner_text(".bars")


def test_a_view_that_arrives_late_does_not_replace_the_one_asked_for_later(chromium: Any, loans: Server) -> None:
    with opened(chromium, loans.address) as page:
        page.wait_for_selector("#label")
        page.route("**/loans*", lambda route: (time.sleep(1), route.continue_()))  # answers about the first model come late
        page.evaluate("""() => {
          const select = document.getElementById('model-select');
          for (const name of ['loans', 'odd']) { select.value = name; select.dispatchEvent(new Event('change')); }
        }""")
        page.wait_for_function("() => document.querySelector('h1')?.innerText === 'What is y?'")
        page.wait_for_timeout(2500)
        assert page.inner_text("h1") == "What is y?"


def test_pasted_csv_comes_back_scored(chromium: Any, loans: Server) -> None:
    with opened(chromium, loans.address + "#score") as page:
        page.fill("#csv", f"employment,amount,note\nstudent,4000,{NASTY}\nemployed,900,b\n")
        page.click("#score")
        page.wait_for_selector("#save")
        assert page.locator("main tbody tr").count() == 2
        assert NASTY in page.inner_text("main tbody")
        with page.expect_download() as download:
            page.click("#save")
        text = Path(download.value.path()).read_text(encoding="utf-8")
        assert text.splitlines()[0] == "employment,amount,note,label,p_default,p_repaid"


def test_a_table_is_uploaded_learned_and_downloaded_by_keys_alone(chromium: Any, bench: Server, tmp_path: Path) -> None:
    with opened(chromium, bench.address) as page:
        page.wait_for_selector("#use-example")
        page.locator("input[type=file]").set_input_files(str(DATA / "tennis.csv"))  # what a file dialog does
        page.wait_for_selector("#learn")
        focus(page, "target")
        page.keyboard.type("PlayTennis")
        focus(page, "plain")
        page.keyboard.press("Space")
        focus(page, "learn")
        page.keyboard.press("Enter")
        page.wait_for_selector("#download")
        assert page.locator(".figures strong").count() == 4
        with page.expect_download() as download:
            focus(page, "download")
            page.keyboard.press("Enter")
        model = likely.load(download.value.path())
        assert model.classes == ("No", "Yes")
        assert model.tally.rows == 14
        report = page.frame_locator("#report").locator("h1")
        report.wait_for()
        assert "PlayTennis" in report.inner_text()
        focus(page, "try", "Shift+Tab")  # forward leads through every control of the report
        page.keyboard.press("Enter")
        page.wait_for_selector("#label")
        assert page.inner_text("h1") == "What is PlayTennis?"


def test_on_a_phone_the_use_of_each_column_can_be_chosen_without_moving_the_table(chromium: Any, bench: Server) -> None:
    with opened(chromium, bench.address + "#workbench", viewport={"width": 390, "height": 800}) as page:
        page.wait_for_selector("#use-example")
        page.select_option("#example", "loans")
        page.click("#use-example")
        page.wait_for_selector("#family-0")
        region = page.locator(".scroll").first.bounding_box()
        choice = page.locator("#family-0").bounding_box()
        assert choice["width"] > 80
        assert choice["x"] + choice["width"] <= region["x"] + region["width"]
        assert "29 missing" in page.inner_text(".read")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


WATCH = """() => {
  window.seen = [];
  new MutationObserver(() => {
    const [detail, bar] = ["job-detail", "job-bar"].map((id) => document.getElementById(id));
    if (detail?.textContent) window.seen.push([detail.textContent, bar.hasAttribute("value") ? [bar.value, bar.max] : null]);
  }).observe(document.querySelector("main"), { subtree: true, childList: true, attributes: true });
}"""


def test_while_a_table_is_learned_from_the_page_shows_the_steps_done(chromium: Any, bench: Server, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(12_000, 16)).round(2)  # evaluated for longer than the page takes to ask again
    labels = (numbers[:, :8] + rng.normal(size=(12_000, 8))).argmax(1)
    rows = [",".join([*map(str, line), f"class {label}"]) for line, label in zip(numbers, labels, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join([",".join([*(f"x{j}" for j in range(16)), "y"]), *rows]) + "\n")
    with opened(chromium, bench.address + "#workbench") as page:
        page.wait_for_selector("#use-example")
        page.evaluate(WATCH)
        page.locator("input[type=file]").set_input_files(str(tmp_path / "t.csv"))
        page.click("#learn")
        page.wait_for_selector("#download")
        seen = page.evaluate("window.seen")
    steps = [text for text, _ in seen]
    assert any(re.fullmatch(r"evaluating: .*, [0-5] of 5(, about \d+ s left)?", text) for text in steps), steps
    assert any(re.match(r"report: .*, \d of 7", text) for text in steps), steps
    assert {bar[1] for _, bar in seen if bar} >= {5, 7}
    assert all(0 <= bar[0] <= bar[1] for _, bar in seen if bar)


def focus(page: Any, name: str, key: str = "Tab") -> None:
    """Press the key until the element has the focus."""
    for _ in range(60):
        if page.evaluate("document.activeElement.id") == name:
            return
        page.keyboard.press(key)
    raise AssertionError(f"{name} cannot be reached with {key}")


def test_the_lab_answers_to_draws_points_cells_and_evidence(chromium: Any, bench: Server) -> None:
    with opened(chromium, bench.address + "#lab", viewport={"width": 390, "height": 800}) as page:
        page.wait_for_selector("#draw-lime")
        for _ in range(3):
            page.get_by_role("button", name="Draw a lime").press("Enter")
        page.wait_for_function("() => document.querySelector('#drawn').innerText === 'Drawn: lime, lime, lime'")
        assert page.inner_text("#next-lime") == "79.6 %"
        page.click("[data-name=em]")
        page.wait_for_selector(".ellipse")
        points = page.locator(".point").count()
        page.locator(".board").click(position={"x": 30, "y": 30})
        page.wait_for_function("n => document.querySelectorAll('.point').length === n", arg=points + 1)
        page.click("[data-name=surface]")
        page.wait_for_selector(".board rect:nth-child(100)", state="attached")
        old = page.locator(".point").first.get_attribute("cx")
        page.locator(".point").first.focus()
        page.keyboard.press("ArrowRight")
        assert page.locator(".point").first.get_attribute("cx") != old
        page.click("[data-name=tennis]")
        page.wait_for_selector(".table-edit")
        before = page.inner_text(".bars")
        page.get_by_label("New day, Outlook").select_option("Rain")
        page.wait_for_function("old => document.querySelector('.bars').innerText !== old", arg=before)
        page.click("[data-name=network]")
        page.select_option("#node-Wet", "yes")
        page.wait_for_function("() => document.querySelector('main').innerText.includes('43.0 %')")
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_fault_of_accessibility_is_found_by_axe(chromium: Any, loans: Server, bench: Server, scheme: str) -> None:
    script = browser.axe()
    for address, ready in (
        (loans.address, ".evidence"), (loans.address + "#score", "#csv"), (loans.address + "#lab", "main h2"),
        (bench.address + "#workbench", "#use-example"),
    ):  # fmt: skip
        with opened(chromium, address, color_scheme=scheme) as page:
            page.wait_for_selector(ready)
            page.evaluate(script + ";0")
            assert json.loads(page.evaluate(browser.FAULTS)) == [], address
