"""SQL dialects: support of arrays, stars without columns, lateral subqueries, clocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from likely.errors import UsageError, did_you_mean, import_optional

Expression = Any  # a node of sqlglot, which is an optional dependency


def load_sqlglot() -> Any:
    """Import the module of SQL expressions; MissingDependencyError names the extra."""
    return import_optional("sqlglot.expressions", "writing SQL", library="sqlglot")


@dataclass(frozen=True)
class Dialect:
    """Features of one database in which the databases differ.

    `attach` is how the answers come beside the columns of the table: "star" (all columns but the helper ones), "row" (the
    row as one value), "lateral" (a subquery for each row) or "distinct" (a join by the inputs, each scored once). `arrays`
    is whether a table of numbers is written as an array. `fence` names the optimisation fence: the clause that keeps the
    database from evaluating an expression again at each of its uses.
    """

    name: str
    attach: str = "star"
    arrays: bool = False
    fence: str = ""
    nan: str = "equal"  # "equal": NaN = NaN; "function": IS_NAN; "none": stored as null
    folds_case: bool = True  # whether names that differ only by case are one name
    binary: str = ""  # collation that compares text byte by byte
    loose: bool = False  # whether a column of numbers may hold text
    longest_name: int = 0  # bytes after which a name is cut off without an error; 0: never
    variables: str = ""  # what begins a variable that is replaced in the text of a statement, also between quotes


DIALECTS = {
    each.name: each
    for each in (
        Dialect("duckdb", arrays=True),
        Dialect("postgres", "row", arrays=True, fence="offset", folds_case=False, longest_name=63),
        Dialect("sqlite", attach="distinct", fence="materialized", nan="none", binary="BINARY", loose=True),
        Dialect("spark", arrays=True, variables="${"),
        Dialect("bigquery", nan="function"),
        Dialect("snowflake", folds_case=False),
        Dialect("mysql", attach="lateral", fence="limit", nan="none", binary="utf8mb4_bin"),
    )
}


ALIASES = {"postgresql": "postgres"}


def dialect_of(name: str) -> Dialect:
    """The dialect of this name; UsageError names the known ones."""
    name = ALIASES.get(name, name)
    if name not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise UsageError(f"dialect={name!r} is not known{did_you_mean(name, DIALECTS)}: choose one of {known}")
    return DIALECTS[name]


def array_of(dialect: Dialect, numbers: list[str]) -> Expression:
    """An array of numbers that are written already; one node, since a table may have a hundred thousand of them."""
    e = load_sqlglot()
    inside = ", ".join(numbers)
    if dialect.name == "postgres":
        return e.cast(e.Literal.string("{" + inside + "}"), "double[]")
    return e.Array(expressions=[e.Var(this=inside)])


def element(dialect: Dialect, array: Expression, place: Expression) -> Expression:
    """The number at a place of an array, from 1."""
    e = load_sqlglot()
    if dialect.name == "postgres":
        return e.Bracket(this=e.Paren(this=array), expressions=[place], offset=1)
    name = {"duckdb": "LIST_EXTRACT", "spark": "ELEMENT_AT"}[dialect.name]
    return e.Anonymous(this=name, expressions=[array, place])
