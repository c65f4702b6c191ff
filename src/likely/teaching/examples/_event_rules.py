"""Hypotheses and events: candies and spam."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import likely
from likely.errors import LikelyError
from likely.teaching.examples._sheet import Sheet, decimal

SPAM, GOOD = 60, 40
WORDS = (("buy", "", (36, 4)), ("buy and lottery", " (a slide prints 0.93)", (12, 1)))  # in spam and in good mails


def _bags() -> tuple[likely.Hypotheses, dict[str, Fraction], dict[str, Fraction]]:
    names = ["h1", "h2", "h3", "h4", "h5"]
    prior = dict(zip(names, (Fraction(n, 10) for n in (1, 2, 4, 2, 1)), strict=True))
    limes = dict(zip(names, (Fraction(n, 4) for n in range(5)), strict=True))
    bags = likely.Hypotheses(prior=prior, likelihood={h: {"cherry": 1 - p, "lime": p} for h, p in limes.items()})
    return bags, prior, limes


def candies_picture() -> str:
    """Posterior of each bag, and the prediction of lime, against the number of limes drawn."""
    return likely.pictures.hypotheses(_bags()[0], ["lime"] * 10, "lime", title="Candies: posterior of each bag")


def candies(sheet: Sheet) -> None:
    """The posterior after one candy is the prior for the next."""
    bags, prior, limes = _bags()
    names = list(prior)
    sheet.head("A bag of candies is one of five kinds. One lime after another comes out of it.")
    sheet.table([["", *names], ["prior", *map(str, prior.values())], ["P(lime | h)", *map(str, limes.values())]])
    sheet.write("  (A slide has bags of 20/20/20/20/10 %, which is 90 % in all: 10/20/40/20/10 is meant.)")
    rows = [["limes", *names, "next is lime", "h_MAP"]]
    posterior = dict(prior)
    for seen, after in enumerate(bags.trace(["lime"] * 3)):
        if seen:
            _one_lime(sheet, seen, posterior, limes)
            evidence = sum(posterior[h] * limes[h] for h in names)
            posterior = {h: posterior[h] * limes[h] / evidence for h in names}
        lime = sum(posterior[h] * limes[h] for h in names)
        if posterior != after.posterior or lime != after.predict()["lime"]:
            raise LikelyError(f"the posterior after {seen} limes differs between paper and library: please report it")
        rows.append([str(seen), *(str(posterior[h]) for h in names), str(lime), after.map])
        found = {"posterior": [str(p) for p in posterior.values()], "next is lime": str(lime), "map": after.map}
        sheet.keep(f"{seen} limes", found)
    sheet.head("All steps (checked with the library, to the last fraction):")
    sheet.table(rows)
    certain = after.predict_map()["lime"]
    sheet.write(
        f"  h_MAP alone, {after.map}: the next is a lime with probability {certain}.",
        f"  Bayes-optimal, all bags together: {lime} = {decimal(lime)}, because the others are still possible.",
    )
    sheet.keep("MAP alone", certain)
    _vote(sheet)


def _one_lime(sheet: Sheet, seen: int, posterior: Mapping[str, Fraction], limes: Mapping[str, Fraction]) -> None:
    sheet.head(f"Lime {seen}: P(h | d) · P(lime | h) for each bag, divided by the sum")
    terms = [posterior[h] * limes[h] for h in posterior]
    sheet.write(f"  {' + '.join(f'{posterior[h]}·{limes[h]}' for h in posterior)} = {sum(terms)}")
    shares = [f"{h} ({term})/({sum(terms)}) = {term / sum(terms)}" for h, term in zip(posterior, terms, strict=True)]
    sheet.write(f"  {',  '.join(shares)}")


def _vote(sheet: Sheet) -> None:
    """MAP and Bayes-optimal may give different answers."""
    posterior = {"h1": Fraction(4, 10), "h2": Fraction(3, 10), "h3": Fraction(3, 10)}
    space = likely.Hypotheses(prior=posterior, likelihood={h: {"seen": 1} for h in posterior})
    votes = space.vote({"h1": "plus", "h2": "minus", "h3": "minus"})
    sheet.head("Three hypotheses with 4/10, 3/10, 3/10 vote plus, minus, minus")
    sheet.write(
        f"  MAP, {space.map}: plus; Bayes-optimal, all together: plus {votes['plus']}, minus 3/10 + 3/10 = {votes['minus']}"
    )
    sheet.write("  (A slide gives them 0.6, 0.3, 0.3, which is 1.2 in all: 0.4, 0.3, 0.3 is meant.)")
    sheet.keep("vote", {name: str(share) for name, share in votes.items()})


def spam_picture() -> str:
    """P(spam) before and after the words of a mail, from the same counts."""
    from likely.plots.bars import Bar, BarChart, bars_svg

    steps: list[tuple[str, Fraction]] = [("no word", Fraction(SPAM, SPAM + GOOD))]
    for words, _, (in_spam, in_good) in WORDS:
        found = likely.bayes_rule(counts={"spam": (in_spam, SPAM), "good": (in_good, GOOD)})
        steps.append((words, Fraction(found["spam"])))
    rows = [(words, [Bar(float(p), value=f"{float(p):.3f}", tip=f"P(spam | {words}) = {p}")]) for words, p in steps]
    chart = BarChart("Spam: Bayes' rule", "60 of 100 mails are spam", "P(spam)", rows, percent=True, x=(0.0, 1.0))
    return bars_svg(chart)


def spam(sheet: Sheet) -> None:
    """P(h | d) = P(d | h) P(h) / Σ P(d | hᵢ) P(hᵢ), on counted mails."""
    spam, good = SPAM, GOOD
    sheet.head(f"Of {spam + good} mails {spam} are spam and {good} are good.")
    for words, slip, (in_spam, in_good) in WORDS:
        sheet.head(f'"{words}" in {in_spam} of the spam mails and {in_good} of the good ones:')
        prior = {"spam": Fraction(spam, spam + good), "good": Fraction(good, spam + good)}
        likelihood = {"spam": Fraction(in_spam, spam), "good": Fraction(in_good, good)}
        evidence = sum(prior[h] * likelihood[h] for h in prior)
        paper = prior["spam"] * likelihood["spam"] / evidence
        terms = f"{in_spam}/{spam}·{spam}/{spam + good} + {in_good}/{good}·{good}/{spam + good}"
        sheet.write(f"  P({words}) = {terms} = {evidence}")
        product = f"({in_spam}/{spam}·{spam}/{spam + good}) / ({evidence})"
        sheet.write(f"  P(spam | {words}) = {product} = {paper} = {float(paper):.3f}{slip}")
        library = likely.bayes_rule(counts={"spam": (in_spam, spam), "good": (in_good, good)})
        sheet.check(f"P({words})", evidence, likely.total_probability(prior, likelihood))
        sheet.check(f"P(spam | {words})", paper, library["spam"])
        sheet.keep(f"P(spam | {words})", paper)
    sheet.head("If only the single words had been counted, buy in 36 and lottery in 18 of the 60 spam mails,")
    both = Fraction(36, 60) * Fraction(18, 60)
    sheet.write(
        f"  independence gives P(buy and lottery | spam) ≈ 36/60 · 18/60 = {both} = {decimal(both)}",
        f"  against the counted 12/60 = {decimal(Fraction(12, 60))}: this is the naive assumption, and its error.",
    )
    sheet.check("the product", both, likely.independent(Fraction(36, 60), Fraction(18, 60)))
    sheet.keep("P(buy and lottery | spam) if independent", both)
