"""Numbers that are averaged over whether they depend on the class, in SQL: densities of Student's t, and their mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from likely.export._dialects import Expression
from likely.export._expressions import SMALLEST, ExpressionWriter
from likely.export._term_forms import IMPOSSIBLE, AveragedTerm, SquareTerm, StudentDensity

FARTHEST_ROOT = 1.3407807929942596e154  # beyond, a square is infinite, and the density is zero
NEAREST_ROOT = 1e-150  # below, a square might underflow, which PostgreSQL refuses
LARGEST = 1.7976931348623157e308


def squares(write: ExpressionWriter, term: AveragedTerm, n: int, x: str) -> dict[str, Any]:
    """((x - mean) / width)² of Student's t by class, and last of all classes together; null where it is infinite."""
    found: dict[str, Any] = {}
    if isinstance(term.dependent, StudentDensity):
        for c in range(len(term.dependent.mean)):
            found[f"likely__u{n}_{c}"] = _square(write, term.dependent, c, x)
    if isinstance(term.independent, StudentDensity):
        found[f"likely__u{n}"] = _square(write, term.independent, 0, x)
    return found


def _square(write: ExpressionWriter, form: StudentDensity, c: int, x: str) -> Expression:
    mean, width = float(form.mean[c]), float(form.width[c])

    def away() -> Expression:
        return write.minus(write.column(x), write.number(mean))

    def size() -> Expression:
        return write.e.Abs(this=away())

    def relative() -> Expression:
        return write.e.Paren(this=write.e.Div(this=away(), expression=write.number(width), typed=True))

    far = write.compare("GT", size(), write.number(min(width * FARTHEST_ROOT, LARGEST)))
    near = write.compare("LT", size(), write.number(width * NEAREST_ROOT))
    return write.case([(far, write.e.Null()), (near, write.number(0.0))], write.times(relative(), relative()))


def predictions(
    write: ExpressionWriter, term: AveragedTerm, n: int, gaussian: Callable[[SquareTerm, int], Any]
) -> dict[str, Any]:
    """Log of each part of the average: of every class, and of all classes together."""
    found: dict[str, Any] = {}
    for c in range(len(term.dependent.mean)):
        density = _density(write, term.dependent, c, f"likely__u{n}_{c}", gaussian)
        found[f"likely__a{n}_{c}"] = write.total([write.number(term.log_on), density])
    density = _density(write, term.independent, 0, f"likely__u{n}", gaussian)
    found[f"likely__o{n}"] = write.total([write.number(term.log_off), density])
    return found


def _density(
    write: ExpressionWriter, form: StudentDensity | SquareTerm, c: int, square: str, gaussian: Callable[[SquareTerm, int], Any]
) -> Expression:
    if isinstance(form, SquareTerm):
        return gaussian(form, c)
    level, half = write.number(float(form.peak[c])), write.number(float(form.degrees[c] + 1) / 2)
    density = write.minus(level, write.times(half, log_of_one_more(write, square)))
    return write.case([(write.is_null(write.column(square)), write.number(IMPOSSIBLE))], density)


def log_of_one_more(write: ExpressionWriter, name: str) -> Expression:
    """ln(1 + u) with all digits of a small u, which is multiplied by half the number of rows."""
    u = write.column(name)
    more = write.total([write.number(1.0), u])
    rounded = write.e.Paren(this=write.e.Div(this=u.copy(), expression=write.minus(more, write.number(1.0)), typed=True))
    nothing = write.compare("EQ", more.copy(), write.number(1.0))
    return write.e.Paren(this=write.case([(nothing, u.copy())], write.times(write.e.Ln(this=more.copy()), rounded)))


def mixed(write: ExpressionWriter, n: int, c: int, x: Expression) -> Expression:
    """ln(e^a + e^o) of the two parts of the average of a class; nothing where the number is missing."""
    one, other = write.column(f"likely__a{n}_{c}"), write.column(f"likely__o{n}")
    apart = write.e.Neg(this=write.e.Abs(this=write.minus(one, other)))
    power = write.e.Exp(this=write.greatest([apart, write.number(SMALLEST)]))
    grown = write.e.Ln(this=write.total([write.number(1.0), power]))
    whole = write.total([write.greatest([one.copy(), other.copy()]), grown])
    return write.case([(write.is_null(x), write.number(0.0))], whole)
