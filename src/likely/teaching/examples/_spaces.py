"""Hypotheses on labelled data, a continuous θ, and averages over models: concepts, theta and average."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import likely
from likely.teaching.examples._counts import DATA, cells
from likely.teaching.examples._sheet import Sheet, decimal

COLUMNS = ("Outlook", "Temperature", "Humidity", "Wind")
DAY = {"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"}


def concepts(sheet: Sheet) -> None:
    """Brute-force MAP learning: the version space, label noise, and three classifiers."""
    names = range(11)
    predict = {f"x ≥ {t}": (lambda x, t=t: x >= t) for t in names}
    prior = dict.fromkeys(predict, Fraction(1, 11))
    sheet.head("Eleven hypotheses, x ≥ 0 to x ≥ 10, all equally probable. Seen: 3 is no, 7 is yes, without noise.")
    data = [(3, False), (7, True)]
    after = likely.Hypotheses.supervised(prior=prior, predict=predict).observe(data)
    sheet.write(f"  version space: {', '.join(after.version_space)}; each has P(h | D) = 1/{len(after.version_space)}")
    sheet.write(f"  h_MAP: {after.map} (the first of equals); P(D) = {after.evidence}")
    sheet.check("P(D)", Fraction(4, 11), after.evidence)
    sheet.head("Is 4 a yes?  Σ P(yes | 4, h) P(h | D)")
    paper, optimal = Fraction(1, 4), after.predict(4)
    errors = after.expected_errors(4)
    sheet.check("P(yes | 4, D)", paper, optimal[True])
    sheet.write(f"  Bayes-optimal: no, wrong with probability {errors['optimal']}")
    sheet.write(f"  Gibbs, a hypothesis drawn from the posterior: wrong with 1/4·3/4 + 3/4·1/4 = {errors['gibbs']}")
    sheet.write(f"  h_MAP alone: yes, wrong with probability {errors['map']}")
    sheet.write("  Gibbs is wrong at most twice as often as the optimal classifier: 3/8 ≤ 2 · 1/4.")
    sheet.keep("version space", list(after.version_space))
    sheet.keep("errors at 4", {name: str(error) for name, error in errors.items()})
    sheet.head("With one label in ten wrong, no hypothesis is excluded: each error costs a factor of 1/9")
    noisy = likely.Hypotheses.supervised(prior=prior, predict=predict, noise=Fraction(1, 10)).observe([*data, (7, False)])
    for h in ("x ≥ 2", "x ≥ 5", "x ≥ 9"):
        wrong = sum((x >= int(h[4:])) != y for x, y in noisy.pairs)
        sheet.write(f"  {h}: {wrong} of 3 wrong, (1/10)^{wrong}·(9/10)^{3 - wrong}, P(h | D) = {noisy.posterior[h]}")
        sheet.keep(f"noisy {h}", noisy.posterior[h])
    sheet.check("odds of x ≥ 5 against x ≥ 2", Fraction(9), noisy.odds("x ≥ 5", "x ≥ 2"))


def concepts_picture() -> str:
    """Posterior of six thresholds as labelled examples come in, one label in ten wrong."""
    predict = {f"x ≥ {t}": (lambda x, t=t: x >= t) for t in range(0, 11, 2)}
    prior = dict.fromkeys(predict, Fraction(1, len(predict)))
    space = likely.Hypotheses.supervised(prior=prior, predict=predict, noise=Fraction(1, 10))
    data = [(3, False), (7, True), (5, False), (6, True), (2, True), (4, False), (8, True), (5, False)]  # 2 is wrong
    return likely.pictures.hypotheses(space, data, title="Concepts: one label in ten is wrong")


def _coin() -> likely.GridHypotheses:
    return likely.Hypotheses.grid(0, 1, 1001, likelihood=lambda side, t: t if side == "heads" else 1 - t)


def theta(sheet: Sheet) -> None:
    """A uniform prior and k of n give Beta(k + 1, n − k + 1)."""
    sheet.head("A coin with unknown θ = P(heads), any θ from 0 to 1 equally probable. Ten throws: 7 heads, 3 tails.")
    after = _coin().observe({"heads": 7, "tails": 3})
    mode, mean = Fraction(7, 10), Fraction(8, 12)
    sheet.write("  p(θ | D) = θ⁷(1−θ)³ / ∫ θ⁷(1−θ)³ dθ = Beta(8, 4)")
    sheet.write("  θ_MAP = 7/10: where 7/θ = 3/(1−θ)")
    sheet.check("θ_MAP on a grid of 1,001 points", mode, after.map)
    sheet.write("  P(next is heads | D) = ∫ θ p(θ | D) dθ = (7+1)/(10+2) = 2/3: Laplace's rule")
    sheet.check("P(next is heads | D)", mean, after.predict("heads"))
    exact = likely.estimate(["h"] * 7 + ["t"] * 3, prior=likely.Dirichlet(1)).posterior
    sheet.check("P(next is heads | D), by the conjugate posterior", mean, exact.mean["h"])
    low, high = after.interval()
    sheet.write(f"  95 % of the posterior lies between {low:.4f} and {high:.4f}")
    sheet.head("How fine must the grid be?")
    rows = [["points", "θ_MAP", "P(next is heads | D)", "error"]]
    for points in (11, 101, 1001):
        grid = likely.Hypotheses.grid(0, 1, points, likelihood=after.likelihood).observe({"heads": 7, "tails": 3})
        found = grid.predict("heads")
        rows.append([f"{points:,}", decimal(grid.map), f"{found:.6f}", f"{abs(found - mean):.1e}"])
    sheet.table(rows)
    sheet.keep("θ_MAP", after.map)
    sheet.keep("P(next is heads | D)", after.predict("heads"))
    sheet.keep("95 %", [low, high])


def theta_picture() -> str:
    """Prior and posterior density of θ."""
    return likely.pictures.theta(_coin().observe({"heads": 7, "tails": 3}), title="A coin: 7 heads in 10 throws")


def average(sheet: Sheet) -> None:
    """Bayes-optimal over all 16 choices of columns: averaging P(v, x | h), or P(v | x, h) as the formula reads."""
    sheet.head("Each of the four columns may depend on the class or not: 2⁴ = 16 hypotheses h, equally probable.")
    sheet.write(f"  The new day is {', '.join(DAY.values())}. Each parameter is averaged over a flat Dirichlet prior.")
    posterior, joint = _structures()
    conditional = {h: {v: p / sum(row.values()) for v, p in row.items()} for h, row in joint.items()}
    rows = [["h", "P(h | D)", "P(No | x, h)"]]
    best = sorted(posterior, key=lambda h: -posterior[h])[:5]
    rows += [[h, f"{float(posterior[h]):.4f}", f"{float(conditional[h]['No']):.4f}"] for h in best]
    sheet.table([*rows, ["…", "", ""]])
    whole = {v: sum((posterior[h] * row[v] for h, row in joint.items()), Fraction(0)) for v in ("No", "Yes")}
    joints = whole["No"] / sum(whole.values())
    space = likely.Hypotheses(prior=posterior, likelihood={h: {"D": 1} for h in posterior})
    literal = sum((posterior[h] * conditional[h]["No"] for h in joint), Fraction(0))
    _compare(sheet, joints, literal, space.vote(conditional)["No"])


def average_picture() -> str:
    """Posterior of the 16 choices of columns, each with its prediction for the new day."""
    from likely.plots.bars import Bar, BarChart, bars_svg

    posterior, joint = _structures()
    rows = []
    for h in sorted(posterior, key=lambda h: -posterior[h]):
        no = float(joint[h]["No"] / sum(joint[h].values()))
        share = float(posterior[h])
        tip = f"{h}: P(h | D) = {share:.4f}, P(No | x, h) = {no:.4f}"
        rows.append((h, [Bar(share, value=f"{100 * share:.1f} %", tip=tip)]))
    subtitle = "letters: the columns that depend on PlayTennis; equal priors"
    return bars_svg(BarChart("Average: 16 choices of columns", subtitle, "P(h | D)", rows, percent=True))


def _structures() -> tuple[dict[str, Fraction], dict[str, dict[str, Fraction]]]:
    """P(h | D) and P(v, x | h) for each choice h of the columns that depend on the class."""
    table = {name: cells("tennis.csv", name, "PlayTennis") for name in COLUMNS}
    seen = {label: len(values) for label, values in table["Outlook"].items()}
    evidence: dict[str, Fraction] = {}
    joint: dict[str, dict[str, Fraction]] = {}
    for chosen in itertools.product((True, False), repeat=len(COLUMNS)):
        name = "".join(column[0] if own else "·" for column, own in zip(COLUMNS, chosen, strict=True))
        parts = [_column(table[c], DAY[c], own) for c, own in zip(COLUMNS, chosen, strict=True)]
        evidence[name] = math.prod((part[0] for part in parts), start=Fraction(1))
        joint[name] = {
            v: Fraction(n, sum(seen.values())) * math.prod((part[1][v] for part in parts), start=Fraction(1))
            for v, n in seen.items()
        }
    return {h: p / sum(evidence.values()) for h, p in evidence.items()}, joint


def _compare(sheet: Sheet, joints: Fraction, literal: Fraction, vote: Any) -> None:
    sheet.head("Two averages, side by side:")
    sheet.write(f"  joints        Σ P(No, x | h) P(h | D), normalised = {float(joints):.5f}")
    sheet.write(f"  conditionals  Σ P(No | x, h) P(h | D)             = {float(literal):.5f}")
    model = likely.learn(DATA / "tennis.csv", target="PlayTennis", average=True)
    sheet.check("joints, learn(average=True)", joints, model.explain(dict(DAY)).posterior["No"])
    sheet.check("conditionals, Hypotheses.vote", literal, vote)
    sheet.write("  The first lets the new day itself count as evidence: P(h | D, x) instead of P(h | D).")
    sheet.write("  The second is the notes' formula, read literally.")
    sheet.keep("joints", float(joints))
    sheet.keep("conditionals", float(literal))


def _column(groups: Mapping[str, Sequence[str]], value: str, own: bool) -> tuple[Fraction, dict[str, Fraction]]:
    """P(column | h), and P(value | class, h), whether each class has a distribution of its own or all share one."""
    values = sorted({v for cells_of in groups.values() for v in cells_of})
    shared = [v for cells_of in groups.values() for v in cells_of]
    pools = list(groups.values()) if own else [shared]
    evidence = math.prod((_flat_marginal(Counter(pool), len(values)) for pool in pools), start=Fraction(1))
    own_cells = {label: cells_of if own else shared for label, cells_of in groups.items()}
    return evidence, {c: Fraction(list(pool).count(value) + 1, len(pool) + len(values)) for c, pool in own_cells.items()}


def _flat_marginal(counts: Mapping[str, int], values: int) -> Fraction:
    """Marginal likelihood of counts under a flat Dirichlet prior."""
    top = math.prod(math.factorial(n) for n in counts.values()) * math.factorial(values - 1)
    return Fraction(top, math.factorial(sum(counts.values()) + values - 1))
