"""Terms of a model as SQL expressions, one for each likelihood form."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from likely.export import _sql_averages as averaged
from likely.export._dialects import Dialect, Expression
from likely.export._expressions import SMALLEST, ExpressionWriter
from likely.export._sql_inputs import InputWriter
from likely.export._term_forms import (
    IMPOSSIBLE,
    AveragedTerm,
    CellGaussianTerm,
    CellTerm,
    Code,
    ExportedModel,
    GaussianPattern,
    JointTerm,
    LinearTerms,
    RelativeGaussian,
    SquareTerm,
    TableTerm,
    TextTerm,
)
from likely.families.base_measures import LARGEST_COUNT
from likely.families.likelihoods import FARTHEST

NOWHERE = -(1 << 28)  # offset of an unknown cell: any sum with it is negative, and none overflows
LARGE = 1e100  # numbers of a joint Gaussian are bounded, so that no square overflows


class TermWriter:
    """Expressions of the stages between the inputs and the scores."""

    def __init__(
        self, scored: ExportedModel, syntax: Dialect, write: ExpressionWriter, inputs: InputWriter
    ) -> None:
        self.scored, self.syntax, self.write, self.inputs = scored, syntax, write, inputs
        self.e = write.e
        self.helper = {code: f"likely__c{i}" for i, code in enumerate(scored.codes)}
        self.number = {id(term): i for i, term in enumerate(scored.terms)}

    def codes(self) -> dict[str, Any]:
        """Lines of the tables; bounded numbers of Gaussians; whether a number is infinite."""
        found: dict[str, Any] = {helper: self.inputs.code(code) for code, helper in self.helper.items()}
        for term in self.scored.terms:
            if isinstance(term, JointTerm | CellGaussianTerm):
                for j, name in enumerate(term.columns):
                    found[f"likely__y{self.number[id(term)]}_{j}"] = self._bounded(name, LARGE)
        if self.inputs.numbers:
            found["likely__refused"] = self.inputs.refused()
        return found

    def _bounded(self, name: str, reach: float) -> Expression:
        write = self.write
        above = (write.compare("GT", self.inputs.x(name), write.number(reach)), write.number(reach))
        below = (write.compare("LT", self.inputs.x(name), write.number(-reach)), write.number(-reach))
        return write.case([above, below], self.inputs.x(name))

    def cells(self) -> dict[str, Any]:
        """Lines of tables of several columns, from 1; the numbers of bins."""
        found: dict[str, Any] = {}
        for term in self.scored.terms:
            name = f"likely__t{self.number[id(term)]}"
            if isinstance(term, TableTerm | CellGaussianTerm) and len(term.codes) > 1:
                parts = [self._step(code, step) for code, step in zip(term.codes, term.strides, strict=True)]
                found[name] = self.write.total([*parts, self.write.whole(1)])
            elif isinstance(term, CellTerm):
                maps = [np.where(own < 0, NOWHERE, own) for own in term.maps]
                parts = [self._looked_up(code, own, whole=True) for code, own in zip(term.codes, maps, strict=True)]
                found[name] = self.write.total([*parts, self.write.whole(1)])
            elif isinstance(term, RelativeGaussian):
                for j, (code, centres) in enumerate(zip(term.codes, term.centres, strict=True)):
                    found[f"{name}_{j}"] = self._looked_up(code, centres)
        return found

    def _step(self, code: Code, step: int) -> Expression:
        line = self.write.minus(self.write.column(self.helper[code]), self.write.whole(1))
        return self.write.times(line, self.write.whole(step))

    def _looked_up(self, code: Code, numbers: Any, whole: bool = False) -> Expression:
        return self.write.lookup(self.helper[code], numbers.tolist(), whole)

    def components(self) -> dict[str, Any]:
        """Log densities of the components of joint Gaussians, each times its share; squares of averaged numbers."""
        found: dict[str, Any] = {}
        for term in self.scored.terms:
            n = self.number[id(term)]
            if isinstance(term, RelativeGaussian):
                helpers = [f"likely__t{n}_{j}" for j in range(len(term.codes))]
                found |= {f"likely__k{n}_{k}": self._log_density(term.pattern, helpers, k) for k in range(len(term.owner))}
            elif isinstance(term, CellGaussianTerm):
                for c, g in np.ndindex(*term.log_weight.shape):
                    found[f"likely__g{n}_{c}_{g}"] = self._of_cell(term, c, g)
            elif isinstance(term, AveragedTerm):
                found |= averaged.squares(self.write, term, n, self.inputs.numbers[term.column])
        return found

    def densities(self) -> dict[str, Any]:
        """Log densities of the joint Gaussians by class, which are compared with each other; predictions of numbers."""
        found: dict[str, Any] = {}
        for term in self.scored.terms:
            n = self.number[id(term)]
            if isinstance(term, AveragedTerm):
                found |= averaged.predictions(self.write, term, n, partial(self._square, term.column))
            for c in range(len(self.scored.classes)):
                if isinstance(term, RelativeGaussian):
                    found[f"likely__d{n}_{c}"] = self._log_sum([f"likely__k{n}_{k}" for k in term.of_class(c)])
                elif isinstance(term, CellGaussianTerm):
                    found[f"likely__h{n}_{c}"] = self._of_line(term, c)
        return found

    def _line(self, term: TableTerm | CellGaussianTerm) -> str:
        """The helper column that has the line of a table, from 1."""
        return f"likely__t{self.number[id(term)]}" if len(term.codes) > 1 else self.helper[term.codes[0]]

    def _of_cell(self, term: CellGaussianTerm, c: int, g: int) -> Expression:
        """Log probability of a cell and density of the numbers that are present; only for the rows that need it."""
        write, n = self.write, self.number[id(term)]
        helpers, line = [f"likely__y{n}_{j}" for j in range(len(term.columns))], self._line(term)
        used = self.e.In(
            this=write.column(line), expressions=[write.whole(i + 1) for i, cells in enumerate(term.lines) if g in cells]
        )
        share, component = float(term.log_weight[c, g]), c * term.log_weight.shape[1] + g
        branches = [(self.e.Not(this=used), write.number(0.0))]
        for pattern in term.patterns:
            density = self._log_density(pattern, helpers, component)
            branches.append((self._present(helpers, pattern), write.total([write.number(share), density])))
        return write.case(branches, write.number(share))

    def _present(self, helpers: list[str], pattern: GaussianPattern) -> Expression:
        """Whether every number of a pattern is in the row."""
        write = self.write
        return write.all_of([self.e.Not(this=write.is_null(write.column(helpers[j]))) for j in pattern.seen])

    def _of_line(self, term: CellGaussianTerm, c: int) -> Expression:
        """Log density of the cell of a row; of all that are possible where a category is missing."""
        n = self.number[id(term)]
        sums = [self._log_sum([f"likely__g{n}_{c}_{g}" for g in cells]) for cells in term.lines]
        leaves = [str(each.sql(dialect=self.syntax.name)) for each in sums]
        return self.write.binary_search(self._line(term), [str(i + 1) for i in range(1, len(leaves))], leaves)

    def _log_sum(self, names: list[str]) -> Expression:
        """ln Σ exp of columns, with the largest taken out."""
        write = self.write
        if len(names) == 1:
            return write.column(names[0])
        top = write.greatest([write.column(name) for name in names])
        below = [write.minus(write.column(name), top.copy()) for name in names]
        powers = [self.e.Exp(this=write.greatest([each, write.number(SMALLEST)])) for each in below]
        return write.total([top, self.e.Ln(this=write.total(powers))])

    def _log_density(self, pattern: GaussianPattern, helpers: list[str], c: int) -> Expression:
        """constant - |root (x - mean)|² / 2."""
        write, parts = self.write, []
        for line in pattern.root[c]:
            used = [j for j in range(len(pattern.seen)) if line[j] != 0.0]
            products = [
                write.times(
                    write.number(float(line[j])),
                    write.minus(write.column(helpers[pattern.seen[j]]), write.number(float(pattern.mean[c, j]))),
                )
                for j in used
            ]
            z = self.e.Paren(this=write.total(products))
            parts.append(write.times(z, z.copy()))
        half = write.times(write.number(0.5), self.e.Paren(this=write.total(parts)))
        return write.minus(write.number(float(pattern.constant[c])), half)

    def score(self, c: int) -> Expression:
        """Score of a class: its constant and all its terms."""
        parts = [self.write.number(float(self.scored.constant[c]))]
        for term in self.scored.terms:
            parts += WRITTEN[type(term)](self, term, c)
        return self.write.total(parts)

    def table(self, term: TableTerm, c: int) -> list[Any]:
        """Line of a table."""
        return [] if not term.table[:, c].any() else [self.write.lookup(self._line(term), term.table[:, c].tolist())]

    def cell(self, term: CellTerm, c: int) -> list[Any]:
        """Cell of an interaction; 0 where it is unknown."""
        name = f"likely__t{self.number[id(term)]}"
        known = self.write.compare("GT", self.write.column(name), self.write.whole(0))
        return [self.write.case([(known, self.write.lookup(name, term.table[:, c].tolist()))], self.write.number(0.0))]

    def square(self, term: SquareTerm, c: int) -> list[Any]:
        """Gaussian log density of one number; 0 where it is missing."""
        return [self._square(term.column, term, c)]

    def _square(self, column: str, term: SquareTerm, c: int) -> Expression:
        write, x = self.write, self.inputs.x(column)
        mean, curve, peak = (write.number(float(each[c])) for each in (term.mean, term.curve, term.peak))
        away = write.minus(x, mean)
        near = self.e.Add(this=peak, expression=write.times(write.times(curve, away), away.copy()))
        nothing = (write.is_null(x.copy()), write.number(0.0))
        inside = write.compare("LTE", self.e.Abs(this=x.copy()), write.number(term.reach))
        far = write.minus(peak.copy(), self._beyond(float(term.curve[c]), away.copy()))
        return write.case([nothing, (inside, near)], far)

    def _beyond(self, curve: float, away: Expression) -> Expression:
        """The square of a number that is very far away, or what stands for it, from its logarithm."""
        write = self.write
        size = write.total([
            write.times(write.number(2.0), self.e.Ln(this=self.e.Abs(this=away))), write.number(math.log(-curve)),
        ])  # fmt: skip
        grown = write.total([size, write.number(1.0 - math.log(FARTHEST))])
        large = write.compare("GT", size.copy(), write.number(math.log(FARTHEST)))
        return write.case([(large, write.times(write.number(FARTHEST), grown))], self.e.Exp(this=size.copy()))

    def linear(self, term: LinearTerms, c: int) -> list[Any]:
        """Terms that are linear in counts."""
        if term.trials is None:
            return [self._count(partial(self.inputs.x, name), term, j, c) for j, name in enumerate(term.columns)]
        write, hits = self.write, term.columns[0]

        def left() -> Expression:
            n = self.inputs.x(term.trials) if isinstance(term.trials, str) else write.number(float(term.trials or 0))
            return write.minus(n, self.inputs.x(hits))

        missing = write.is_null(left())
        both = [self._count(lambda: self.inputs.x(hits), term, 0, c), self._count(left, term, 1, c)]
        return [write.case([(missing, write.number(0.0))], write.total(both))]

    def _count(self, x: Callable[[], Any], term: LinearTerms, j: int, c: int) -> Expression:
        write, level, slope = self.write, float(term.level[j, c]), float(term.slope[j, c])
        outside = [write.compare("LT", x(), write.number(0.0)), write.compare("GT", x(), write.number(LARGEST_COUNT))]
        grows = write.number(IMPOSSIBLE)
        if slope > IMPOSSIBLE:
            grows = self.e.Add(this=write.number(level), expression=write.times(write.number(slope), x()))
        branches = [
            (write.is_null(x()), write.number(0.0)),
            (write.any_of(outside), write.number(IMPOSSIBLE)),
            (write.compare("EQ", x(), write.number(0.0)), write.number(level)),
        ]
        return write.case(branches, grows)

    def joint(self, term: JointTerm, c: int) -> list[Any]:
        """Joint Gaussian of the numbers that are present."""
        write, n = self.write, self.number[id(term)]
        helpers = [f"likely__y{n}_{j}" for j in range(len(term.columns))]
        branches = []
        for pattern in term.patterns:  # the larger ones first: the first that is complete has every number of the row
            density = write.times(write.number(term.weight), self._log_density(pattern, helpers, c))
            branches.append((self._present(helpers, pattern), density))
        return [write.case(branches, write.number(0.0))]

    def cell_gaussian(self, term: CellGaussianTerm, c: int) -> list[Any]:
        """Joint Gaussian of the cell of a row."""
        return [self.write.times(self.write.number(term.weight), self.write.column(f"likely__h{self.number[id(term)]}_{c}"))]

    def averaged(self, term: AveragedTerm, c: int) -> list[Any]:
        """Average of the predictions with and without dependence on the class."""
        return [averaged.mixed(self.write, self.number[id(term)], c, self.inputs.x(term.column))]

    def text(self, term: TextTerm, c: int) -> list[Any]:
        """Sum over the words of a text, from the stage after the inputs."""
        return [self.write.column(f"likely__text{self.scored.of(TextTerm).index(term)}_{c}")]

    def relative(self, term: RelativeGaussian, c: int) -> list[Any]:
        """Joint Gaussian relative to the best class."""
        write, n = self.write, self.number[id(term)]
        best = write.greatest([write.column(f"likely__d{n}_{i}") for i in range(len(self.scored.classes))])
        below = write.minus(write.column(f"likely__d{n}_{c}"), best)
        return [write.times(write.number(term.weight), write.greatest([below, write.number(term.lowest)]))]


WRITTEN: dict[type, Callable[..., list[Any]]] = {
    TableTerm: TermWriter.table,
    CellTerm: TermWriter.cell,
    SquareTerm: TermWriter.square,
    LinearTerms: TermWriter.linear,
    JointTerm: TermWriter.joint,
    CellGaussianTerm: TermWriter.cell_gaussian,
    AveragedTerm: TermWriter.averaged,
    RelativeGaussian: TermWriter.relative,
    TextTerm: TermWriter.text,
}
