"""Gaussian naive Bayes as LDA and QDA, with its linear weights: discriminant."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import likely
from likely.errors import LikelyError
from likely.teaching.examples._sheet import CLOSE, Sheet, decimal

ROWS = {
    "A": ((1, 1), (3, 1), (1, 3), (3, 3)),
    "B": ((5, 3), (7, 3), (5, 7), (7, 7)),
}
PLACES = ((4, 4), (0, 10), (5, 0), (2, 6))


def _data() -> dict[str, list[int] | list[str]]:
    rows = [(x, y, label) for label, points in ROWS.items() for x, y in points]
    return {"x": [r[0] for r in rows], "y": [r[1] for r in rows], "class": [r[2] for r in rows]}


def discriminant(sheet: Sheet) -> None:
    """Shared variances make the log odds linear (LDA), own ones quadratic (QDA)."""
    sheet.head("Two classes of four points each:")
    means, variances = {}, {}
    for label, points in ROWS.items():
        columns = list(zip(*points, strict=True))
        means[label] = [Fraction(sum(c), len(c)) for c in columns]
        variances[label] = [_variance(c, m) for c, m in zip(columns, means[label], strict=True)]
        sheet.write(f"  {label}: {', '.join(map(str, points))}")
        sheet.write(f"     μ = ({', '.join(map(str, means[label]))}), σ² = ({', '.join(map(str, variances[label]))})")
    tied = [(variances["A"][j] + variances["B"][j]) / 2 for j in (0, 1)]
    _linear(sheet, means, tied)
    _quadratic(sheet, means, variances)


def _variance(numbers: Sequence[int], mean: Fraction) -> Fraction:
    return sum(((x - mean) * (x - mean) for x in numbers), Fraction(0)) / len(numbers)


def _linear(sheet: Sheet, means: dict[str, list[Fraction]], tied: list[Fraction]) -> None:
    """Weights and bias of the log odds B : A."""
    w = [(means["B"][j] - means["A"][j]) / tied[j] for j in (0, 1)]
    bias = -sum((means["B"][j] ** 2 - means["A"][j] ** 2) / (2 * tied[j]) for j in (0, 1))
    sheet.head(f"Tied: both classes share σ² = ({tied[0]}, {tied[1]}); the squares of x cancel")
    sheet.write("  log odds B : A = w₀ + w₁x + w₂y,  w_j = (μ_B − μ_A)/σ²,  w₀ = log P(B)/P(A) − Σ (μ_B² − μ_A²)/2σ²")
    sheet.write(f"  w₁ = {w[0]}, w₂ = {w[1]}, w₀ = {bias}: the border {w[0]}·x + {w[1]}·y = {-bias} is a line")

    def paper(x: float, y: float) -> float:
        return float(bias + w[0] * x + w[1] * y)

    for name, families in (("naive Bayes, tied", "gaussian:class"), ("LDA, full covariance", likely.Joint(tie="class"))):
        _check(sheet, name, families, paper)
    sheet.keep("weights", [str(w[0]), str(w[1])])
    sheet.keep("bias", bias)


def _quadratic(sheet: Sheet, means: dict[str, list[Fraction]], variances: dict[str, list[Fraction]]) -> None:
    sheet.head("Untied: each class has its own σ²")

    def paper(x: float, y: float) -> float:
        terms = {c: sum(-0.5 * math.log(variances[c][j]) - float((v - means[c][j]) ** 2 / (2 * variances[c][j]))
                        for j, v in enumerate((x, y))) for c in means}  # fmt: skip
        return terms["B"] - terms["A"]

    a = [1 / (2 * variances["A"][j]) - 1 / (2 * variances["B"][j]) for j in (0, 1)]
    b = [means["B"][j] / variances["B"][j] - means["A"][j] / variances["A"][j] for j in (0, 1)]
    sheet.write(f"  log odds B : A = {a[1]}·y² + {decimal(b[0])}·x + ({decimal(b[1])})·y + {decimal(paper(0, 0))}")
    sheet.write("  σ² of x is the same in both, so x stays linear: the border is a parabola")
    for name, families in (("naive Bayes, untied", "gaussian"), ("QDA, full covariance", likely.Joint())):
        _check(sheet, name, families, paper)
    sheet.keep("quadratic", {"y²": str(a[1]), "x": str(b[0]), "y": str(b[1]), "1": paper(0, 0)})


def _check(sheet: Sheet, name: str, families: object, paper: Callable[[float, float], float]) -> None:
    """The log odds of the library at a few places."""
    model = likely.learn(_data(), "class", families=families, smoothing=0)
    joint = model.posterior({"x": [p[0] for p in PLACES], "y": [p[1] for p in PLACES]}).log_joint
    for (x, y), (of_a, of_b) in zip(PLACES, joint.tolist(), strict=True):
        if not math.isclose(of_b - of_a, paper(x, y), rel_tol=CLOSE, abs_tol=1e-12):
            raise LikelyError(f"the log odds of {name} at ({x}, {y}) differ between paper and library: please report it")
    sheet.write(f"  checked with the library: log odds of {name} at {', '.join(map(str, PLACES))}")


def discriminant_picture() -> str:
    """The line and the parabola."""
    models = {
        "Tied variances (LDA): a line": likely.learn(_data(), "class", families="gaussian:class", smoothing=0),
        "Untied variances (QDA): a parabola": likely.learn(_data(), "class", families="gaussian", smoothing=0),
    }
    return likely.pictures.decision_surface(models, "x", "y", _data())
