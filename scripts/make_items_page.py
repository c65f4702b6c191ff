"""Fill in docs/items.md: every call of its tables is run, and the number that it returns written beside it.

    python scripts/make_items_page.py

Run it at the root of the repository. Calls on published tables that are not there keep the number they have.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "items.md"
ROW = re.compile(r"^\| (\d+) \| (.*?) \| `(.*)` \| (.*?) \|(.*)\|$")
PUBLISHED = re.compile(r'published\("([^"]+)"\)')


@dataclass(frozen=True)
class Item:
    """One row of a table: the number of the item, what it is, its call and the number printed."""

    number: int
    what: str
    call: str
    printed: str
    line: int

    @property
    def approximate(self) -> bool:
        """Whether the number is marked as one of cross-validation or of a published table, which may move a little."""
        return self.printed.startswith("≈")

    def needs(self, helpers: Mapping[str, str]) -> list[str]:
        """Names of the published tables that the call reads, by itself or by a function of the page."""
        source = self.call + "".join(body for name, body in helpers.items() if f"{name}(" in self.call)
        return PUBLISHED.findall(source)


def setup(page: str) -> list[str]:
    """The Python blocks of the page, in order."""
    return re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


def helpers(page: str) -> dict[str, str]:
    """Functions that the page defines, with their source."""
    found = re.findall(r"^def (\w+)\((.*?)(?=^\S|\Z)", "\n".join(setup(page)), flags=re.MULTILINE | re.DOTALL)
    return dict(found)


def items(page: str) -> Iterator[Item]:
    """The rows of all tables."""
    for line, text in enumerate(page.splitlines()):
        if row := ROW.match(text):
            yield Item(int(row[1]), row[2], row[3].replace("\\|", "|"), row[4], line)


def names(page: str) -> dict[str, Any]:
    """What the blocks of the page define."""
    made: dict[str, Any] = {}
    for block in setup(page):
        exec(compile(block, "docs/items.md", "exec"), made)  # noqa: S102 — the page is ours
    return made


def answer(item: Item, made: dict[str, Any]) -> str:
    """The number that the call of an item returns, as it is printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = eval(item.call, made)  # noqa: S307 — the page is ours
    return f"≈ {shown(value, 3)}" if item.approximate else shown(value)


def shown(value: Any, digits: int = 6) -> str:
    """A value as it stands in the table: lists with commas."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, str | int | Fraction):
        return str(value)
    if isinstance(value, float | np.number):
        return f"{float(value) + 0.0:.{digits}g}"  # no minus before zero
    if isinstance(value, Mapping):
        return ", ".join(f"{shown(key)}: {shown(each, digits)}" for key, each in value.items())
    if isinstance(value, np.ndarray):
        value = value.ravel().tolist()
    return ", ".join(shown(each, digits) for each in value)


def main() -> None:
    """Run all calls and write the page."""
    page = PAGE.read_text(encoding="utf-8")
    lines, made = page.splitlines(), names(page)
    for item in items(page):
        if any(not Path("../shared/data", name).exists() for name in item.needs(helpers(page))):
            print(f"{item.number}: kept, its table is not there", flush=True)
            continue
        try:
            found = answer(item, made)
        except Exception as error:
            print(f"{item.number}: {item.call}\n    {type(error).__name__}: {error}", flush=True)
            continue
        if found != item.printed:
            print(f"{item.number}: {item.printed} -> {found}", flush=True)
        lines[item.line] = re.sub(r"(` \| ).*?( \|)", lambda m, found=found: m[1] + found + m[2], lines[item.line], count=1)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
