"""Columns that depend on each other: icecream and sky."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import likely
from likely.errors import ConvergenceWarning
from likely.teaching.examples._sheet import Sheet, decimal

# Days by weather and ice cream: those with a drowning, and all.
DAYS = {("hot", "yes"): (480, 1600), ("hot", "no"): (120, 400), ("cold", "yes"): (12, 600), ("cold", "no"): (48, 2400)}
SKY = {("cloudy", "rain"): 3, ("cloudy", "dry"): 1, ("clear", "rain"): 1, ("clear", "dry"): 3, (None, "rain"): 2}
ROUNDS = 4


def _days() -> dict[str, list[str]]:
    rows = [
        (weather, ice, drowning)
        for (weather, ice), (drowned, days) in DAYS.items()
        for drowning in ["yes"] * drowned + ["no"] * (days - drowned)
    ]
    return dict(zip(("weather", "ice", "drowning"), map(list, zip(*rows, strict=True)), strict=True))


def icecream(sheet: Sheet) -> None:
    """Dependent columns that are independent given a third: P(a, b | z) = P(a | z) P(b | z)."""
    data = _days()
    sheet.head("5,000 days: weather, whether much ice cream was sold, whether somebody drowned (counts made up here)")
    sheet.table([["weather, ice", "drowning", "days"],
                 *([f"{w}, {i}", str(k), str(n)] for (w, i), (k, n) in DAYS.items())])  # fmt: skip
    compared = likely.simpson(data, "ice", "drowning", "weather", event="yes")
    sheet.head("All days: ice cream looks dangerous")
    for ice in ("yes", "no"):
        drowned, days = (sum(DAYS[w, ice][j] for w in ("hot", "cold")) for j in (0, 1))
        paper = Fraction(drowned, days)
        sheet.write(f"  P(drowning | ice {ice}) = {drowned}/{days} = {decimal(paper)}")
        sheet.check(f"P(drowning | ice {ice})", paper, Fraction(*compared.overall[ice]))
        sheet.keep(f"P(drowning | ice {ice})", paper)
    sheet.head("Given the weather, it is not")
    for (weather, ice), (drowned, days) in DAYS.items():
        sheet.write(f"  P(drowning | {weather}, ice {ice}) = {drowned}/{days} = {decimal(Fraction(drowned, days))}")
    alone = likely.independence_test(data, "ice", "drowning", permutations=199)
    given = likely.independence_test(data, "ice", "drowning", given="weather", permutations=199)
    sheet.head("The G-test, G = 2 Σ O log(O/E):")
    for name, test in (("ice and drowning:               ", alone), ("ice and drowning, given weather:", given)):
        sheet.write(f"  {name} G = {test.statistic:.4f}, degrees of freedom {test.degrees}, p = {test.p_value:.2g}")
    sheet.write(f"  adjusted for the weather: P(drowning | ice) = {decimal(compared.adjusted['yes'])} with, "
                f"{decimal(compared.adjusted['no'])} without")  # fmt: skip
    sheet.keep("G", alone.statistic)
    sheet.keep("G given weather", given.statistic)
    _counted_twice(sheet, data)


def _counted_twice(sheet: Sheet, data: dict[str, list[str]]) -> None:
    """Naive Bayes with both columns counts the weather twice; the fitted weights do not."""
    sheet.head("Predicting drowning from both columns, on a hot day with ice cream (truth 0.3):")
    row = {"weather": "hot", "ice": "yes"}
    plain = likely.learn(data, "drowning", smoothing=0).explain(dict(row)).posterior["yes"]
    joint = {}
    for label, rows in (("yes", 660), ("no", 4340)):
        column = 0 if label == "yes" else 1
        seen = {key: (k, n - k)[column] for key, (k, n) in DAYS.items()}
        hot = Fraction(seen["hot", "yes"] + seen["hot", "no"], rows)
        ice = Fraction(seen["hot", "yes"] + seen["cold", "yes"], rows)
        joint[label] = Fraction(rows, 5000) * hot * ice
    paper = joint["yes"] / sum(joint.values())
    sheet.check("naive Bayes, which counts the weather twice", paper, plain)
    fitted = likely.learn(data, "drowning").explain(dict(row)).posterior["yes"]
    sheet.write(f"  the default, with a weight for each column: {fitted:.4f}")
    sheet.keep("naive Bayes", float(paper))
    sheet.keep("default", float(fitted))


def icecream_picture() -> str:
    """Weather as the common cause of both."""
    network = likely.Network("weather -> ice, weather -> drowning").fit(_days())
    return network.svg("Ice cream and drowning have a common cause")


def _sky() -> dict[str, list[Any]]:
    rows = [key for key, n in SKY.items() for _ in range(n)]
    return {"sky": [sky for sky, _ in rows], "weather": [weather for _, weather in rows]}


def sky(sheet: Sheet) -> None:
    """EM in a network of two nodes: missing cells are counted by their posterior."""
    sheet.head("Network sky → weather, ten days. On two rainy ones nobody looked at the sky:")
    sheet.table([["sky, weather", "days"], *([f"{sight or '?'}, {weather}", str(n)] for (sight, weather), n in SKY.items())])
    sheet.head("E-step: each ? is cloudy by P(cloudy | rain). M-step: count with these shares. From P = 1/2:")
    share = Fraction(1, 2)
    rows = [["iteration", "P(cloudy | rain)", "P(cloudy)", "P(rain | cloudy)", "P(rain | clear)"]]
    for i in range(ROUNDS):
        cloudy, both = 4 + 2 * share, 3 + 2 * share
        clear, wet = 4 + 2 * (1 - share), 1 + 2 * (1 - share)
        rows.append([str(i + 1), decimal(share), decimal(cloudy / 10), decimal(both / cloudy), decimal(wet / clear)])
        share = both / (both + wet)
    sheet.table(rows)
    sheet.head("It converges to P(cloudy | rain) = 3/4, the share of the complete rainy days: 3 of 4.")
    with warnings.catch_warnings():  # a fixed number of rounds, as on paper: EM's own end leaves an error of 1e-7
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = likely.Network("sky -> weather").fit(_sky(), smoothing=0, tol=-1.0, max_iter=100)
    exact = {"P(cloudy)": Fraction(11, 20), "P(rain | cloudy)": Fraction(9, 11), "P(rain | clear)": Fraction(1, 3)}
    tables = found.table("weather")
    library = [found.table("sky")[()]["cloudy"], tables["cloudy",]["rain"], tables["clear",]["rain"]]
    for (name, paper), number in zip(exact.items(), library, strict=True):
        sheet.write(f"  {name} = {paper} = {decimal(paper)}")
        sheet.check(name, paper, number)
        sheet.keep(name, paper)
    sheet.check("P(cloudy | rain)", Fraction(3, 4), found.query("sky", {"weather": "rain"})["cloudy"])


def sky_picture() -> str:
    """The network with its tables as tooltips."""
    return likely.Network("sky -> weather").fit(_sky(), smoothing=0).svg("Sky and weather, EM over missing cells")
