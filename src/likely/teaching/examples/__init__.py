"""Worked examples: the calculations of the textbook, step by step as on paper, each checked against the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from likely.errors import UsageError
from likely.teaching.examples._dependence import icecream, icecream_picture, sky, sky_picture
from likely.teaching.examples._discriminants import discriminant, discriminant_picture
from likely.teaching.examples._estimates import insurance, insurance_picture, wrappers, wrappers_picture
from likely.teaching.examples._event_rules import candies, candies_picture, spam, spam_picture
from likely.teaching.examples._one_dependence import aode, aode_picture
from likely.teaching.examples._sheet import Sheet
from likely.teaching.examples._spaces import average, average_picture, concepts, concepts_picture, theta, theta_picture
from likely.teaching.examples._tables import ball, ball_picture, tennis, tennis_picture
from likely.teaching.examples._two_gaussians import em, em_page, em_picture
from likely.teaching.examples._words import die, die_picture, text, text_picture

EXAMPLES = {
    "tennis": "Naive Bayes on four categorical columns, with and without pseudocounts",
    "ball": "the same on six days, small enough to count in your head",
    "candies": "five hypotheses, one lime after another: MAP against Bayes-optimal",
    "spam": "Bayes' rule on events, and what independence assumes",
    "insurance": "a number and a category in one model",
    "wrappers": "three parameters by maximum likelihood, each by counting alone",
    "em": "two Gaussians with hidden labels: E-step and M-step in turn",
    "text": "four mails, their words counted: v_NB by hand",
    "die": "outcomes never seen: a die, a word and their Dirichlet prior",
    "theta": "a continuous hypothesis space: a coin with unknown θ",
    "concepts": "labelled examples: version space, noise, the Gibbs classifier",
    "average": "Bayes-optimal over sixteen models: two ways to average",
    "discriminant": "Gaussian naive Bayes as LDA and QDA, with its linear weights",
    "icecream": "ice cream and drowning: dependent, and independent given the weather",
    "sky": "a small Bayesian network with missing cells: EM by hand",
    "aode": "one more parent for each column: naive Bayes, TAN and AODE as networks",
}

ACRONYMS = ("em", "aode")

WORK: dict[str, Callable[[Sheet], None]] = {
    "tennis": tennis,
    "ball": ball,
    "candies": candies,
    "spam": spam,
    "insurance": insurance,
    "wrappers": wrappers,
    "em": em,
    "text": text,
    "die": die,
    "theta": theta,
    "concepts": concepts,
    "average": average,
    "discriminant": discriminant,
    "icecream": icecream,
    "sky": sky,
    "aode": aode,
}

PAGES: dict[str | None, Callable[[], str]] = {"em": em_page}
PICTURES: dict[str | None, Callable[[], str]] = {
    "tennis": tennis_picture,
    "ball": ball_picture,
    "candies": candies_picture,
    "spam": spam_picture,
    "insurance": insurance_picture,
    "wrappers": wrappers_picture,
    "em": em_picture,
    "text": text_picture,
    "die": die_picture,
    "theta": theta_picture,
    "concepts": concepts_picture,
    "average": average_picture,
    "discriminant": discriminant_picture,
    "icecream": icecream_picture,
    "sky": sky_picture,
    "aode": aode_picture,
}


def run(name: str) -> str:
    """One worked example as text: counts, fractions, products, and the library's numbers."""
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


def picture(name: str | None) -> str:
    """The figure of an example as SVG, for those that have one."""
    if name not in PICTURES:
        drawn = ", ".join(str(known) for known in PICTURES)
        raise UsageError(f"an SVG picture is drawn of one of {drawn}: likely examples candies --picture candies.svg")
    return PICTURES[name]()


def _sheet(name: str) -> Sheet:
    if name not in EXAMPLES:
        raise UsageError(f"there is no example {name!r}: choose one of {', '.join(EXAMPLES)}")
    sheet = Sheet()
    sheet.write(f"{name.upper() if name in ACRONYMS else name.capitalize()}: {EXAMPLES[name]}")
    WORK[name](sheet)
    return sheet
