"""Expressions of SQL that every term is written with: numbers, sums, decisions by thresholds, lookups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import Any

from likely.export._dialects import Dialect, Expression, array_of, element, load_sqlglot

SMALLEST = -700.0  # of exponentials: PostgreSQL refuses those that underflow
GREATEST_OF = 50  # arguments of one GREATEST: SQLite allows 100


def written(number: float) -> str:
    """A number with all its digits, in the notation that every database reads as floating point."""
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"


class ExpressionWriter:
    """Builds the nodes of expressions for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.e = load_sqlglot()

    def number(self, value: float) -> Expression:
        """A floating-point literal."""
        made = self.e.Literal(this=written(abs(value)), is_string=False)
        return self.e.Paren(this=self.e.Neg(this=made)) if value < 0 else made

    def whole(self, value: int) -> Expression:
        """An integer literal."""
        made = self.e.Literal(this=str(abs(value)), is_string=False)
        return self.e.Paren(this=self.e.Neg(this=made)) if value < 0 else made

    def text(self, value: str) -> Expression:
        """A text literal, written in pieces where the database would replace a part of it."""
        mark = self.dialect.variables
        if not mark or mark not in value:
            return self.e.Literal.string(value)
        first, *rest = value.split(mark)
        pieces = [first, *(part for after in rest for part in (mark[0], mark[1:] + after))]
        return self.e.Anonymous(this="CONCAT", expressions=[self.e.Literal.string(piece) for piece in pieces])

    def name(self, name: str) -> Expression:
        """A quoted identifier."""
        return self.e.Identifier(this=name, quoted=True)

    def column(self, name: str, table: str | None = None) -> Expression:
        """A column by its exact name."""
        return self.e.Column(this=self.name(name), table=self.name(table) if table else None)

    def cast(self, one: Expression, kind: str) -> Expression:
        """A cast, without the copy that sqlglot's function makes."""
        return self.e.cast(one, kind, copy=False)

    def named(self, one: Expression, name: str) -> Expression:
        """An expression under a name, without the copy that sqlglot's function makes."""
        return self.e.Alias(this=one, alias=self.name(name))

    def compare(self, kind: str, one: Expression, other: Expression) -> Expression:
        """A comparison: kind is the name of sqlglot's class, such as LT."""
        return getattr(self.e, kind)(this=one, expression=other)

    def case(self, branches: Sequence[tuple[Any, Any]], otherwise: Any = None) -> Expression:
        """CASE WHEN … THEN …, the first condition that holds."""
        ifs = [self.e.If(this=condition, true=value) for condition, value in branches]
        return self.e.Case(ifs=ifs, default=otherwise)

    def is_null(self, one: Expression) -> Expression:
        """Whether an expression is null."""
        return self.e.Is(this=one, expression=self.e.Null())

    def any_of(self, conditions: Sequence[Any]) -> Expression:
        """OR of conditions."""
        return self._balanced(self.e.Or, conditions)

    def all_of(self, conditions: Sequence[Any]) -> Expression:
        """AND of conditions."""
        return self._balanced(self.e.And, conditions)

    def total(self, parts: Sequence[Any]) -> Expression:
        """Sum, in pairs: databases limit how deeply expressions are nested."""
        return self._balanced(self.e.Add, parts)

    def _balanced(self, node: Any, parts: Sequence[Any]) -> Expression:
        level = list(parts)
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [p[0] if len(p) == 1 else self.e.Paren(this=node(this=p[0], expression=p[1])) for p in pairs]
        return level[0]

    def times(self, one: Expression, other: Expression) -> Expression:
        """Product."""
        return self.e.Mul(this=one, expression=other)

    def minus(self, one: Expression, other: Expression) -> Expression:
        """Difference, in parentheses."""
        return self.e.Paren(this=self.e.Sub(this=one, expression=other))

    def greatest(self, parts: Sequence[Any]) -> Expression:
        """The greatest of numbers, none of which is null."""
        level = list(parts)
        while len(level) > 1:
            groups = [level[i : i + GREATEST_OF] for i in range(0, len(level), GREATEST_OF)]
            name = "MAX" if self.dialect.name == "sqlite" else "GREATEST"
            level = [g[0] if len(g) == 1 else self.e.Anonymous(this=name, expressions=g) for g in groups]
        return level[0]

    def binary_search(self, column: str, edges: Sequence[str], leaves: Sequence[str]) -> Expression:
        """leaves[i] for a column between edges i - 1 and i, found by binary search; leaves[0] below the first edge.

        One node with the text of all: a table may have a hundred thousand numbers, and a node of each takes seconds.
        """
        named = str(self.column(column).sql(dialect=self.dialect.name))
        return self.e.Var(this=_halved(named, edges, leaves))

    def lookup(self, code: str, numbers: Sequence[float], whole: bool = False) -> Expression:
        """The number at the line that a helper column holds, from 1: of an array, or by halving."""
        runs = [(value, len(list(same))) for value, same in groupby(numbers)]
        write = (lambda v: str(int(v))) if whole else written
        if self.dialect.arrays and len(runs) > 4:
            place = element(self.dialect, array_of(self.dialect, [write(v) for v in numbers]), self.column(code))
            return self.cast(place, "int") if whole else place
        ends = list(accumulate(length for _, length in runs))
        leaves = [in_parentheses(write(value)) for value, _ in runs]
        return self.binary_search(code, [str(end + 1) for end in ends[:-1]], leaves)


def _halved(column: str, edges: Sequence[str], leaves: Sequence[str]) -> str:
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    low = _halved(column, edges[: middle - 1], leaves[:middle])
    high = _halved(column, edges[middle:], leaves[middle:])
    return f"CASE WHEN {column} < {edges[middle - 1]} THEN {low} ELSE {high} END"


def in_parentheses(number: str) -> str:
    """A number that is written already; in parentheses if it has a sign."""
    return f"({number})" if number.startswith("-") else number
