"""The docs say what the code does: the command-line reference is generated, the shipped tables are described."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

from scripted import script

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def cli_reference() -> ModuleType:
    try:
        importlib.import_module("likely.cli")
    except ModuleNotFoundError as missing:
        if missing.name != "likely.cli":
            raise
        pytest.skip("likely.cli DOES NOT EXIST: the command-line reference cannot be checked")
    return script("make_cli_reference")


def test_the_command_line_reference_is_what_the_code_generates(cli_reference: ModuleType) -> None:
    page = DOCS / "cli.md"
    assert page.read_text(encoding="utf-8") == cli_reference.reference(), "docs/cli.md is stale: run `make docs`"


def test_every_command_has_a_section_in_the_reference(cli_reference: ModuleType) -> None:
    headings = re.findall(r"^## (.+)$", (DOCS / "cli.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    paths = cli_reference.command_paths()
    assert paths
    assert sorted(set(paths) - set(headings)) == []


def test_the_python_reference_is_what_the_docstrings_generate() -> None:
    assert (DOCS / "api.md").read_text(encoding="utf-8") == script("make_api_reference").reference(), "run `make docs`"


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    entries = set(re.findall(r"^\s+- .+: (\S+\.md)$", navigation, flags=re.MULTILINE))
    assert entries == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}


def test_every_test_that_the_page_on_reliability_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (DOCS / "reliability.md").read_text(encoding="utf-8")))
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert named
    assert sorted(named - set(re.findall(r"def (test_\w+)\(", tests))) == []


def test_every_shipped_table_is_described() -> None:
    described = (DOCS / "tables.md").read_text(encoding="utf-8")
    tables = sorted(path.name for path in (ROOT / "src" / "likely" / "data").glob("*.csv"))
    assert tables
    assert [name for name in tables if f"`{name}`" not in described] == []


def test_the_demo_tables_are_what_their_script_makes() -> None:
    made = script("make_demo_table")
    data = ROOT / "src" / "likely" / "data"
    assert (data / "loans.csv").read_text(encoding="utf-8") == made.loans()
    assert (data / "loans_new.csv").read_text(encoding="utf-8") == made.loans_new()
