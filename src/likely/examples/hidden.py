"""Expectation–Maximisation by hand: two Gaussians of one known width, and nobody says which number came from which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import likely
from likely.examples.sheet import Sheet, decimal

NUMBERS = (1.0, 2.0, 4.0, 5.0, 7.0, 9.0)
FIRST = (2.0, 4.0)
VARIANCE = 1.0
SHOWN = 3
LAST = 30


def em(sheet: Sheet) -> None:
    """E[z] by the posterior, then each mean as the average weighed by E[z]; the likelihood never falls."""
    sheet.head(f"The numbers: {', '.join(f'{x:g}' for x in NUMBERS)}")
    sheet.say(
        "  Each was drawn from one of two Gaussians, σ² = 1, both equally often. Which one is hidden; so are the means.",
        "  E-step: E[zᵢⱼ] = exp(−(xᵢ − μⱼ)²/2σ²) / the sum of the same over both j",
        "  M-step: μⱼ = Σᵢ E[zᵢⱼ]·xᵢ / Σᵢ E[zᵢⱼ]",
    )
    means: Sequence[float] = FIRST
    trace = []
    for i in range(LAST):
        shares = [_shares(x, means) for x in NUMBERS]
        trace.append(_log_likelihood(means))
        moved = [
            sum(s[j] * x for s, x in zip(shares, NUMBERS, strict=True)) / sum(s[j] for s in shares) for j in (0, 1)
        ]
        if i < SHOWN:
            _round(sheet, i, means, shares, moved, trace[-1])
            _ask(sheet, i, means, shares, moved)
        means = moved
    sheet.head(f"After {LAST} rounds")
    sheet.say(f"  μ₁ = {decimal(means[0])}, μ₂ = {decimal(means[1])}, log likelihood {trace[-1]:.6f}")
    sheet.say("  From round to round the log likelihood was:", "  " + "  ".join(f"{v:.4f}" for v in trace[:8]) + "  …")
    rose = all(b >= a - 1e-9 * abs(a) for a, b in pairwise(trace))
    sheet.say(f"  It {'never fell' if rose else 'FELL'}: that is a law, not luck.")
    for j, name in enumerate(("μ₁", "μ₂")):
        sheet.library_says(f"{name} at the end", means[j], _means(_mixture(LAST))[j])
    sheet.keep("means", list(means))
    sheet.keep("log likelihood", trace[:8])
    _free(sheet)


def _round(
    sheet: Sheet,
    i: int,
    means: Sequence[float],
    shares: Sequence[Sequence[float]],
    moved: Sequence[float],
    value: float,
) -> None:
    sheet.head(f"Round {i + 1}: μ₁ = {decimal(means[0])}, μ₂ = {decimal(means[1])}, log likelihood {value:.6f}")
    rows = [["x", "E[z₁]", "E[z₂]"]]
    rows += [[f"{x:g}", f"{s[0]:.6f}", f"{s[1]:.6f}"] for x, s in zip(NUMBERS, shares, strict=True)]
    rows.append(["sum", f"{sum(s[0] for s in shares):.6f}", f"{sum(s[1] for s in shares):.6f}"])
    sheet.table(rows)
    for j, name in enumerate(("μ₁", "μ₂")):
        top = " + ".join(f"{s[j]:.3f}·{x:g}" for x, s in zip(NUMBERS, shares, strict=True))
        sheet.say(f"  new {name} = ({top}) / {sum(s[j] for s in shares):.6f} = {decimal(moved[j])}")
    sheet.keep(f"round {i + 1}", {"means": list(moved), "shares of 1": [s[0] for s in shares]})


def _shares(x: float, means: Sequence[float]) -> list[float]:
    bells = [math.exp(-((x - mean) ** 2) / (2 * VARIANCE)) for mean in means]
    return [bell / sum(bells) for bell in bells]


def _log_likelihood(means: Sequence[float]) -> float:
    peak = 1 / math.sqrt(2 * math.pi * VARIANCE)
    return sum(math.log(sum(0.5 * peak * math.exp(-((x - m) ** 2) / (2 * VARIANCE)) for m in means)) for x in NUMBERS)


def _mixture(rounds: int, *, steps: bool = False) -> likely.Model:
    """The library's own run: so many steps of the means."""
    fixed = {"variance": VARIANCE, "weights": "equal"}
    return likely.cluster({"x": list(NUMBERS)}, 2, fixed=fixed, start=FIRST, max_iter=rounds + 1, tol=-1.0, steps=steps)


def em_page() -> str:
    """The same run as a page: every step drawn over the six numbers, with its shares and sums."""
    from likely import lesson

    title = f"{lesson.TITLE}: two Gaussians, σ² = {VARIANCE:g}, equally probable"
    return lesson.page(_mixture(LAST, steps=True), {"x": list(NUMBERS)}, title=title)


def _means(model: likely.Model) -> list[float]:
    return [row["mean"] for row in model.parameters["x"]]


def _ask(
    sheet: Sheet, i: int, means: Sequence[float], shares: Sequence[Sequence[float]], moved: Sequence[float]
) -> None:
    """The library's shares and means of the same round."""
    before = _mixture(i)
    sheet.library_says("μ₁ of this round", means[0], _means(before)[0])
    said = before.posterior({"x": [NUMBERS[2]]}).probabilities[0, 0]
    sheet.library_says("E[z₁] of the third number", shares[2][0], float(said))
    sheet.library_says("the new μ₂", moved[1], _means(_mixture(i + 1))[1])


def _free(sheet: Sheet) -> None:
    """The same loop with nothing known beforehand."""
    sheet.head("With weights and variances free as well, the same loop finds them all")
    made = likely.cluster({"x": list(NUMBERS)}, 2, start=FIRST, tol=1e-10)
    for j, row in enumerate(made.parameters["x"]):
        weight, mean, variance = float(made.class_prior[j]), row["mean"], row["deviation"] ** 2
        sheet.say(f"  component {j + 1}: weight {decimal(weight)}, μ = {decimal(mean)}, σ² = {decimal(variance)}")
        sheet.keep(f"free component {j + 1}", {"weight": weight, "mean": mean, "variance": variance})
    sheet.say("  (one imagined row keeps every variance from vanishing: without it a single number would be a cluster)")
