"""EM by hand: a mixture of two Gaussians with known variance and equal weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import likely
from likely.teaching.examples._sheet import Sheet, decimal

NUMBERS = (1.0, 2.0, 4.0, 5.0, 7.0, 9.0)
FIRST = (2.0, 4.0)
VARIANCE = 1.0
SHOWN = 3
LAST = 30


def em(sheet: Sheet) -> None:
    """E-step: responsibilities E[z]; M-step: means weighted by E[z]. The likelihood never decreases."""
    sheet.head(f"The numbers: {', '.join(f'{x:g}' for x in NUMBERS)}")
    sheet.write(
        "  Each was drawn from one of two Gaussians, σ² = 1, both equally often. Which one is hidden; so are the means.",
        "  E-step: E[zᵢⱼ] = exp(−(xᵢ − μⱼ)²/2σ²) / the sum of the same over both j",
        "  M-step: μⱼ = Σᵢ E[zᵢⱼ]·xᵢ / Σᵢ E[zᵢⱼ]",
    )
    means: Sequence[float] = FIRST
    trace = []
    for i in range(LAST):
        responsibilities = [_responsibilities(x, means) for x in NUMBERS]
        trace.append(_log_likelihood(means))
        moved = [
            sum(s[j] * x for s, x in zip(responsibilities, NUMBERS, strict=True)) / sum(s[j] for s in responsibilities)
            for j in (0, 1)
        ]
        if i < SHOWN:
            _show_iteration(sheet, i, means, responsibilities, moved, value=trace[-1])
            _check_iteration(sheet, i, means, responsibilities, moved)
        means = moved
    sheet.head(f"After {LAST} iterations")
    sheet.write(f"  μ₁ = {decimal(means[0])}, μ₂ = {decimal(means[1])}, log likelihood {trace[-1]:.6f}")
    sheet.write("  The log likelihood by iteration:", "  " + "  ".join(f"{v:.4f}" for v in trace[:8]) + "  …")
    rose = all(b >= a - 1e-9 * abs(a) for a, b in pairwise(trace))
    sheet.write(f"  It {'never decreased' if rose else 'DECREASED'}: EM guarantees that.")
    for j, name in enumerate(("μ₁", "μ₂")):
        sheet.check(f"{name} at the end", means[j], _means(_mixture(LAST))[j])
    sheet.keep("means", list(means))
    sheet.keep("log likelihood", trace[:8])
    _free(sheet)


def _show_iteration(
    sheet: Sheet,
    i: int,
    means: Sequence[float],
    responsibilities: Sequence[Sequence[float]],
    moved: Sequence[float],
    *,
    value: float,
) -> None:
    sheet.head(f"Iteration {i + 1}: μ₁ = {decimal(means[0])}, μ₂ = {decimal(means[1])}, log likelihood {value:.6f}")
    rows = [["x", "E[z₁]", "E[z₂]"]]
    rows += [[f"{x:g}", f"{s[0]:.6f}", f"{s[1]:.6f}"] for x, s in zip(NUMBERS, responsibilities, strict=True)]
    rows.append(["sum", f"{sum(s[0] for s in responsibilities):.6f}", f"{sum(s[1] for s in responsibilities):.6f}"])
    sheet.table(rows)
    for j, name in enumerate(("μ₁", "μ₂")):
        top = " + ".join(f"{s[j]:.3f}·{x:g}" for x, s in zip(NUMBERS, responsibilities, strict=True))
        sheet.write(f"  new {name} = ({top}) / {sum(s[j] for s in responsibilities):.6f} = {decimal(moved[j])}")
    sheet.keep(f"round {i + 1}", {"means": list(moved), "responsibilities of 1": [s[0] for s in responsibilities]})


def _responsibilities(x: float, means: Sequence[float]) -> list[float]:
    densities = [math.exp(-((x - mean) ** 2) / (2 * VARIANCE)) for mean in means]
    return [density / sum(densities) for density in densities]


def _log_likelihood(means: Sequence[float]) -> float:
    peak = 1 / math.sqrt(2 * math.pi * VARIANCE)
    return sum(math.log(sum(0.5 * peak * math.exp(-((x - m) ** 2) / (2 * VARIANCE)) for m in means)) for x in NUMBERS)


def _mixture(rounds: int, *, steps: bool = False) -> likely.Clusters:
    """The library's own run with so many iterations."""
    fixed = {"variance": VARIANCE, "weights": "equal"}
    return likely.cluster({"x": list(NUMBERS)}, 2, fixed=fixed, start=FIRST, max_iter=rounds + 1, tol=-1.0, steps=steps)


def em_page() -> str:
    """The same run as a page: every step drawn over the six numbers, with its responsibilities and sums."""
    from likely.teaching import lesson

    title = f"{lesson.TITLE}: two Gaussians, σ² = {VARIANCE:g}, equally probable"
    return lesson.page(_mixture(LAST, steps=True), {"x": list(NUMBERS)}, title=title)


def em_picture() -> str:
    """The two Gaussians over the numbers, and the log-likelihood by iteration."""
    from likely.latent.component_picture import picture

    return picture(_mixture(LAST), {"x": list(NUMBERS)})


def _means(model: likely.Clusters) -> list[float]:
    return [row["mean"] for row in model.parameters["x"]]


def _check_iteration(
    sheet: Sheet, i: int, means: Sequence[float], responsibilities: Sequence[Sequence[float]], moved: Sequence[float]
) -> None:
    """Check responsibilities and means of one iteration against the library."""
    before = _mixture(i)
    sheet.check("μ₁ of this iteration", means[0], _means(before)[0])
    library = before.posterior({"x": [NUMBERS[2]]}).probabilities[0, 0]
    sheet.check("E[z₁] of the third number", responsibilities[2][0], float(library))
    sheet.check("the new μ₂", moved[1], _means(_mixture(i + 1))[1])


def _free(sheet: Sheet) -> None:
    """The same with free weights and variances."""
    sheet.head("With free weights and variances, the same loop estimates them all")
    made = likely.cluster({"x": list(NUMBERS)}, 2, start=FIRST, tol=1e-10)
    for j, row in enumerate(made.parameters["x"]):
        weight, mean, variance = float(made.class_prior[j]), row["mean"], row["deviation"] ** 2
        sheet.write(f"  component {j + 1}: weight {decimal(weight)}, μ = {decimal(mean)}, σ² = {decimal(variance)}")
        sheet.keep(f"free component {j + 1}", {"weight": weight, "mean": mean, "variance": variance})
    sheet.write("  (one pseudo-row keeps every variance positive: without it a single number would be a cluster)")
