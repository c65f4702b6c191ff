"""The site of the documentation: it is searched without a server, and fetches nothing from elsewhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import browser

pytest.importorskip("mkdocs", reason="NOT TESTED: mkdocs is not installed")
pytest.importorskip("material", reason="NOT TESTED: mkdocs-material is not installed")
ROOT = Path(__file__).resolve().parents[2]
SEARCH = """new Promise((found) => {
  const field = document.querySelector("input[name=query]");
  field.focus();
  field.value = WORD;
  field.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
  const until = Date.now() + 20000;
  const look = () => {
    const links = [...document.querySelectorAll(".md-search-result__link")].map((a) => a.getAttribute("href"));
    if (links.length || Date.now() > until) found(links); else setTimeout(look, 50);
  };
  look();
})"""


@pytest.mark.skipif(browser.found() is None, reason="NOT TESTED: there is no Chromium on this machine")
def test_search_finds_a_word_in_a_site_opened_from_a_file_and_fetches_nothing(tmp_path: Path) -> None:
    """With the settings of our site, over two small pages."""
    pages = tmp_path / "docs"
    shutil.copytree(ROOT / "docs" / "assets", pages / "assets")
    (pages / "index.md").write_text("# Start\n\nNothing here.\n")
    (pages / "other.md").write_text("# Other\n\n## Counting\n\nThe responsibilities of a mixture.\n")
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    head, _, _ = settings.partition("\nnav:")
    (tmp_path / "mkdocs.yml").write_text(head + "\nnav:\n  - Start: index.md\n  - Other: other.md\n", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", "site"], cwd=tmp_path, check=True,
                   env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})  # fmt: skip
    with browser.opened(str(browser.found()), tmp_path / "profile") as page:
        page.open(tmp_path / "site" / "index.html")
        found = page.ask(SEARCH.replace("WORD", '"responsibilities"'))
        assert any("other.html" in link for link in found), found
        assert [url for url in page.fetched() if not url.startswith(("file:", "data:", "about:"))] == []
        assert page.complaints() == []
