"""Every item of the lecture notes has a call on docs/items.md, and the call returns the number that is printed there."""

import re
from pathlib import Path
from typing import Any

import pytest

from scripted import script

pytestmark = pytest.mark.xdist_group("items")  # the models of the page are learned once

ROOT = Path(__file__).resolve().parents[2]
ITEMS = script("make_items_page")
PAGE = (ROOT / "docs" / "items.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """What the blocks of the page define, at the root of the repository."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        names: dict[str, Any] = ITEMS.names(PAGE)
    return names


@pytest.mark.parametrize("item", list(ITEMS.items(PAGE)), ids=lambda item: str(item.number))
def test_the_call_of_an_item_returns_the_number_printed(
    item: Any, made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    absent = [name for name in item.needs(ITEMS.helpers(PAGE)) if not (ROOT.parent / "shared" / "data" / name).exists()]
    if absent:
        pytest.skip(f"ITEM {item.number} IS NOT TESTED: {absent[0]} is not beside the repository")
    found = ITEMS.answer(item, made)
    assert NUMBER.sub("#", found) == NUMBER.sub("#", item.printed)
    off = {"abs": 0.02} if item.approximate else {"rel": 1e-4, "abs": 1e-9}
    assert list(map(float, NUMBER.findall(found))) == pytest.approx(list(map(float, NUMBER.findall(item.printed))), **off)


def test_no_item_of_the_notes_is_left_out() -> None:
    assert [item.number for item in ITEMS.items(PAGE)] == list(range(1, 133))
    assert PAGE.count("(*implied*)") == 7
