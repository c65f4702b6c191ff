"""Worked examples: the sums of the textbook, step by step as on paper, each beside what the library says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from likely.errors import UsageError
from likely.examples.estimates import insurance, wrappers
from likely.examples.events import candies, spam
from likely.examples.hidden import em, em_page
from likely.examples.sheet import Sheet
from likely.examples.tables import ball, tennis

EXAMPLES = {
    "tennis": "Naive Bayes on four categorical columns, with and without imagined rows",
    "ball": "the same on six days, small enough to count in your head",
    "candies": "five hypotheses, one lime after another: MAP against Bayes-optimal",
    "spam": "Bayes' rule on events, and what independence assumes",
    "insurance": "a number and a category in one model",
    "wrappers": "three parameters by maximum likelihood, each by counting alone",
    "em": "two Gaussians whose labels are hidden: share out, count, share out again",
}

WORK: dict[str, Callable[[Sheet], None]] = {
    "tennis": tennis,
    "ball": ball,
    "candies": candies,
    "spam": spam,
    "insurance": insurance,
    "wrappers": wrappers,
    "em": em,
}

PAGES: dict[str | None, Callable[[], str]] = {"em": em_page}


def run(name: str) -> str:
    """One worked example as a page of text: counts, fractions, products, and what the library says."""
    return "\n".join(_sheet(name).lines)


def numbers(name: str) -> dict[str, Any]:
    """The key numbers of an example; fractions as text, so that they stay exact."""
    sheet = _sheet(name)
    return {"example": name, "shows": EXAMPLES[name], **sheet.numbers}


def page(name: str | None) -> str:
    """An example as a page that plays it step by step, for those that have one."""
    if name not in PAGES:
        raise UsageError("only em can be played step by step: likely examples em --picture em.html")
    return PAGES[name]()


def _sheet(name: str) -> Sheet:
    if name not in EXAMPLES:
        raise UsageError(f"there is no example {name!r}: choose one of {', '.join(EXAMPLES)}")
    sheet = Sheet()
    sheet.say(f"{name.capitalize()}: {EXAMPLES[name]}")
    WORK[name](sheet)
    return sheet
