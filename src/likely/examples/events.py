"""Hypotheses and events: candies and spam."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import likely
from likely.errors import LikelyError
from likely.examples.sheet import Sheet, decimal


def candies(sheet: Sheet) -> None:
    """The posterior after one candy is the prior for the next."""
    names = ["h1", "h2", "h3", "h4", "h5"]
    prior = dict(zip(names, (Fraction(n, 10) for n in (1, 2, 4, 2, 1)), strict=True))
    limes = dict(zip(names, (Fraction(n, 4) for n in range(5)), strict=True))
    bags = likely.Hypotheses(prior=prior, likelihood={h: {"cherry": 1 - p, "lime": p} for h, p in limes.items()})
    sheet.head("A bag of candies is one of five kinds. One lime after another comes out of it.")
    sheet.table([["", *names], ["prior", *map(str, prior.values())], ["share of limes", *map(str, limes.values())]])
    sheet.say("  (A slide has bags of 20/20/20/20/10 %, which is 90 % in all: 10/20/40/20/10 is meant.)")
    rows = [["limes", *names, "next is lime", "MAP"]]
    belief = dict(prior)
    for seen, after in enumerate(bags.trace(["lime"] * 3)):
        if seen:
            _one_lime(sheet, seen, belief, limes)
            whole = sum(belief[h] * limes[h] for h in names)
            belief = {h: belief[h] * limes[h] / whole for h in names}
        lime = sum(belief[h] * limes[h] for h in names)
        if belief != after.posterior or lime != after.predict()["lime"]:
            raise LikelyError(f"the posterior after {seen} limes differs between paper and library: please report it")
        rows.append([str(seen), *(str(belief[h]) for h in names), str(lime), after.map])
        found = {"posterior": [str(p) for p in belief.values()], "next is lime": str(lime), "map": after.map}
        sheet.keep(f"{seen} limes", found)
    sheet.head("The whole story (likely says the same, to the last fraction):")
    sheet.table(rows)
    certain = after.predict_map()["lime"]
    sheet.say(
        f"  MAP alone, {after.map}, says the next is a lime with probability {certain}.",
        f"  All bags together say {lime} = {decimal(lime)}: the others are still possible.",
    )
    sheet.keep("MAP alone", certain)
    _vote(sheet)


def _one_lime(sheet: Sheet, seen: int, belief: Mapping[str, Fraction], limes: Mapping[str, Fraction]) -> None:
    sheet.head(f"Lime {seen}: each belief times its share of limes, divided by the sum")
    terms = [belief[h] * limes[h] for h in belief]
    sheet.say(f"  {' + '.join(f'{belief[h]}·{limes[h]}' for h in belief)} = {sum(terms)}")
    shares = [f"{h} ({term})/({sum(terms)}) = {term / sum(terms)}" for h, term in zip(belief, terms, strict=True)]
    sheet.say(f"  {',  '.join(shares)}")


def _vote(sheet: Sheet) -> None:
    """MAP and Bayes-optimal may give different answers."""
    belief = {"h1": Fraction(4, 10), "h2": Fraction(3, 10), "h3": Fraction(3, 10)}
    space = likely.Hypotheses(prior=belief, likelihood={h: {"seen": 1} for h in belief})
    votes = space.vote({"h1": "plus", "h2": "minus", "h3": "minus"})
    sheet.head("Three hypotheses with 4/10, 3/10, 3/10 vote plus, minus, minus")
    sheet.say(
        f"  MAP, {space.map}, says plus; all together: plus {votes['plus']}, minus 3/10 + 3/10 = {votes['minus']}"
    )
    sheet.say("  (A slide gives them 0.6, 0.3, 0.3, which is 1.2 in all: 0.4, 0.3, 0.3 is meant.)")
    sheet.keep("vote", {name: str(share) for name, share in votes.items()})


def spam(sheet: Sheet) -> None:
    """P(h | d) = P(d | h) P(h) / Σ P(d | hᵢ) P(hᵢ), on counted mails."""
    spam, good = 60, 40
    sheet.head(f"Of {spam + good} mails {spam} are spam and {good} are good.")
    for words, slip, (in_spam, in_good) in (
        ("buy", "", (36, 4)),
        ("buy and lottery", " (a slide prints 0.93)", (12, 1)),
    ):
        sheet.head(f'"{words}" in {in_spam} of the spam mails and {in_good} of the good ones:')
        prior = {"spam": Fraction(spam, spam + good), "good": Fraction(good, spam + good)}
        likelihood = {"spam": Fraction(in_spam, spam), "good": Fraction(in_good, good)}
        evidence = sum(prior[h] * likelihood[h] for h in prior)
        paper = prior["spam"] * likelihood["spam"] / evidence
        terms = f"{in_spam}/{spam}·{spam}/{spam + good} + {in_good}/{good}·{good}/{spam + good}"
        sheet.say(f"  P({words}) = {terms} = {evidence}")
        product = f"({in_spam}/{spam}·{spam}/{spam + good}) / ({evidence})"
        sheet.say(f"  P(spam | {words}) = {product} = {paper} = {float(paper):.3f}{slip}")
        said = likely.bayes_rule(counts={"spam": (in_spam, spam), "good": (in_good, good)})
        sheet.library_says(f"P({words})", evidence, likely.total_probability(prior, likelihood))
        sheet.library_says(f"P(spam | {words})", paper, said["spam"])
        sheet.keep(f"P(spam | {words})", paper)
    sheet.head("If only the single words had been counted, buy in 36 and lottery in 18 of the 60 spam mails,")
    both = Fraction(36, 60) * Fraction(18, 60)
    sheet.say(
        f"  independence gives P(buy and lottery | spam) ≈ 36/60 · 18/60 = {both} = {decimal(both)}",
        f"  against the counted 12/60 = {decimal(Fraction(12, 60))}: this is the naive assumption, and its error.",
    )
    sheet.library_says("the product", both, likely.independent(Fraction(36, 60), Fraction(18, 60)))
    sheet.keep("P(buy and lottery | spam) if independent", both)
