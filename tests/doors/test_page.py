"""The account of a prediction as a page: it fetches and runs nothing, and stays short."""

import base64
import hashlib
import re

import likely


def test_the_page_of_an_account_runs_and_fetches_nothing() -> None:
    ledger = likely.learn({"text": ["cheap pills now", "lunch at noon"] * 10, "y": ["spam", "good"] * 10}, "y",
                          families={"text": likely.Text()}).explain({"text": "cheap lunch"})  # fmt: skip
    page = ledger.page("A </title><script>alert(1)</script>")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    wanted = f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-{digest}'"
    assert policy[1] == wanted
    assert "style=" not in page
    assert "<script" not in page
    assert "style=" in ledger._repr_html_()  # in a notebook, which has no place for a style of its own


def test_the_page_of_a_long_text_is_short_and_notes_what_is_not_shown() -> None:
    model = likely.learn({"text": ["cheap pills now", "lunch at noon"] * 10, "y": ["spam", "good"] * 10}, "y",
                         families={"text": likely.Text()})  # fmt: skip
    text = "cheap lunch pills noon " * 200_000
    page = model.explain({"text": text}).page("long")
    assert len(page) < 1_000_000
    assert f"of {len(text):,} characters are shown; all of them were counted" in page
    assert "words with the largest weights" in page
    assert "<td>pills</td><td>200000</td>" in page
    short = model.explain({"text": "cheap lunch"}).page("short")
    assert "characters are shown" not in short
    one_word = model.explain({"text": "x" * 100_000 + " cheap"}).page("one word")
    assert "the first 20,000 of 100,006 characters" in one_word
