"""A model as one SELECT: the table's columns, the label and the probability of each class.

Each row goes through stages, one common table expression each: inputs (cells as numbers or texts, null where missing), codes
(lines of the tables), cells (of interactions), densities, scores, their maximum, and exponentials of what is below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from likely.errors import UsageError
from likely.export._dialects import Dialect, Expression, dialect_of
from likely.export._expressions import SMALLEST, ExpressionWriter
from likely.export._sql_inputs import InputWriter
from likely.export._sql_terms import TermWriter
from likely.export._term_forms import RULED_OUT, ExportedModel, TextTerm, category_columns, number_columns
from likely.export.exported_terms import exported
from likely.export.sql_words import WordWriter
from likely.sources.table_names import name_parts

OWN = "likely__"  # prefix of helper columns and stages
TEXTS = f"{OWN}texts"  # the texts of all rows
TABLE = f"{OWN}table"  # the table in the statement: a name of its own, which no column has
Stage = dict[str, Any]


def write_sql(
    model: Any,
    *,
    table: str = "data",
    dialect: str = "duckdb",
    columns: Sequence[str] | None = None,
    prefix: str = "",
    parameters: str = "likely_words",
    pretty: bool = False,
) -> str:
    """The statement; see `Model.sql` for the parameters."""
    syntax = dialect_of(dialect)
    scored = exported(model)
    _check_names(scored, syntax, prefix)
    stages = _stages(scored, syntax)
    made = _Statement(scored, syntax, table, columns, prefix)
    if scored.of(TextTerm):
        made.words = WordWriter(scored, syntax, made.write, parameters)
        stages.insert(1, made.words.stage(f"{OWN}1"))
    return str(made.whole(stages).sql(dialect=syntax.name, pretty=pretty, copy=False, unsupported_level=_level()))


def _level() -> Any:
    from sqlglot import ErrorLevel

    return ErrorLevel.IGNORE


def _check_names(scored: ExportedModel, syntax: Dialect, prefix: str) -> None:
    """Refuse names that the database would confuse, and answers that have the name of a column."""
    seen: dict[str, str] = {}
    for name in (*(column.name for column in scored.columns), *answers(scored, prefix)):
        if syntax.variables and syntax.variables in name:
            taken = f"{syntax.name} takes {syntax.variables}…}} for a variable"
            raise UsageError(f"column {name!r} cannot be named: {taken}; rename it")
    for column in scored.columns:
        folded = column.name.casefold() if syntax.folds_case else column.name
        if folded in seen:
            raise UsageError(
                f"columns {seen[folded]!r} and {column.name!r} differ only by case, and are one column in {syntax.name}",
                column=column.name,
                remedy="rename one of them",
            )
        if column.name.startswith(OWN):
            raise UsageError(f"column {column.name!r} has a name that the statement uses itself", column=column.name)
        seen[folded] = column.name
    seen[scored.target.casefold() if syntax.folds_case else scored.target] = scored.target
    for answer in answers(scored, prefix):
        folded = answer.casefold() if syntax.folds_case else answer
        if folded in seen:
            raise UsageError(f"the table has a column {seen[folded]!r} already: rename the new ones with prefix= (--prefix)")
        if len(answer.encode()) > (syntax.longest_name or len(answer.encode())):
            raise UsageError(
                f"the column {answer[:40] + '…'!r} would have a name of {len(answer.encode())} bytes, and {syntax.name} cuts "
                f"off names after {syntax.longest_name}: rename the class"
            )


def answers(scored: ExportedModel, prefix: str) -> list[str]:
    """Names of the columns that are added."""
    return [f"{prefix}label", *(f"{prefix}p_{label}" for label in scored.classes)]


def _stages(scored: ExportedModel, syntax: Dialect) -> list[Stage]:
    """The stages in order, each a dict from helper columns to expressions."""
    write = ExpressionWriter(syntax)
    inputs = InputWriter(scored, syntax, write)
    terms = TermWriter(scored, syntax, write, inputs)
    k = len(scored.classes)
    scores = [write.column(f"{OWN}s{c}") for c in range(k)]
    best = write.column(f"{OWN}m")
    prior = scored.log_prior - scored.log_prior.max()
    exponents: Stage = {}
    for c in range(k):
        below = write.minus(write.column(f"{OWN}s{c}"), best.copy())
        nothing = write.number(float(_exp(prior[c])))
        ruled_out = write.compare("LT", best.copy(), write.number(RULED_OUT))
        tiny = write.compare("LT", below.copy(), write.number(SMALLEST))
        power = write.e.Exp(this=below)
        exponents[f"{OWN}e{c}"] = write.case([(ruled_out, nothing), (tiny, write.number(0.0))], power)
    stages: list[Stage] = [
        inputs.stage(),
        terms.codes(),
        terms.cells(),
        terms.components(),
        terms.densities(),
        {f"{OWN}s{c}": terms.score(c) for c in range(k)},
        {f"{OWN}m": write.greatest(scores)},
        exponents,
    ]
    return [stage for stage in stages if stage]


def _exp(x: float) -> float:
    from math import exp

    return exp(x) if x > SMALLEST else 0.0


class _Statement:
    """Assembles the statement from its stages."""

    def __init__(
        self, scored: ExportedModel, syntax: Dialect, table: str, columns: Sequence[str] | None, prefix: str
    ) -> None:
        self.scored, self.syntax, self.prefix, self.columns = scored, syntax, prefix, columns
        self.write = ExpressionWriter(syntax)
        self.e = self.write.e
        self.table = self._table(table)
        self.words: WordWriter | None = None
        self.inputs = bool(number_columns(scored) or category_columns(scored) or scored.of(TextTerm))
        self.row = syntax.attach == "row" and columns is None
        self.lateral = syntax.attach == "lateral" and columns is None
        self.distinct = syntax.attach == "distinct" and columns is None

    def _table(self, name: str) -> Expression:
        parts = name_parts(name, most=3)
        of = dict(zip(("this", "db", "catalog"), map(self.write.name, reversed(parts)), strict=False))
        return self.e.Table(**of)

    def whole(self, stages: list[Stage]) -> Expression:
        """The statement of all stages."""
        read = stages[0] if self.inputs else {}
        chained = self._chain(stages)
        if not (self.lateral or self.distinct):
            return chained
        t, s = self.write.name(TABLE), self.write.name(f"{OWN}answers")
        table = self._aliased()
        starred = self.e.Column(this=self.e.Star(), table=t.copy())
        names = zip(self._answer_names(), answers(self.scored, self.prefix), strict=True)
        chosen = [self.write.named(self.write.column(own, f"{OWN}answers"), name) for own, name in names]
        beside = self.e.Subquery(this=chained, alias=self.e.TableAlias(this=s))
        if self.lateral:
            join = self.e.Join(this=self.e.Lateral(this=beside, alias=None), kind="CROSS")
        else:
            join = self.e.Join(this=beside, side="LEFT", on=self._same(read))
        made = self.e.Select(expressions=[starred, *chosen])
        made.set(FROM, self.e.From(this=table))
        made.set("joins", [join])
        if self.distinct:
            made.set(WITH, self.e.With(expressions=[self._kept()]))
        elif self.words:
            made.set(WITH, self.e.With(expressions=self._words_before(read)))
        return made

    def _words_before(self, read: Stage) -> list[Expression]:
        """The words of all texts: they are split once, and not in the subquery for each row."""
        assert self.words is not None
        texts = self.e.Select(expressions=_named(self.write, {name: cell.copy() for name, cell in read.items()}))
        texts.set(FROM, self.e.From(this=self.e.Table(**self._read().args | {"alias": None})))
        return [self._cte(name, each) for name, each in {TEXTS: texts, **self.words.expressions(TEXTS)}.items()]

    def _cte(self, name: str, select: Expression, materialized: bool | None = None) -> Expression:
        alias = self.e.TableAlias(this=self.write.name(name))
        return self.e.CTE(this=select, alias=alias, materialized=materialized)

    def _kept(self) -> Expression:
        """The rows, read once: a view may be in an order of its own, which a join does not keep."""
        everything = self.e.Select(expressions=[self.e.Star()])
        everything.set(FROM, self.e.From(this=self.table.copy()))
        return self._cte(f"{OWN}0", everything, True)

    def _same(self, read: Stage) -> Expression:
        """Whether the inputs of a row are those of an answer: a view has no row numbers, and no column can be left out."""
        same = [
            self.e.Is(this=self.write.column(helper, f"{OWN}answers"), expression=self.e.Paren(this=cell.copy()))
            for helper, cell in read.items()
        ]
        return self.write.all_of(same) if same else self.e.Boolean(this=True)

    def _aliased(self) -> Expression:
        """The table under a name of the statement."""
        return self.e.Table(**self._read().args | {"alias": self.e.TableAlias(this=self.write.name(TABLE))})

    def _read(self) -> Expression:
        """What the rows are read from."""
        return self.e.Table(this=self.write.name(f"{OWN}0")) if self.distinct else self.table.copy()

    def _answer_names(self) -> list[str]:
        """Names of the answers where they are computed: numbered where they are selected again, as names may fold case."""
        names = answers(self.scored, self.prefix)
        return [f"{OWN}a{i}" for i in range(len(names))] if self.lateral or self.distinct else names

    def _chain(self, stages: list[Stage]) -> Expression:
        """The stages, each selecting from the one before; the last one with the answers."""
        selects: list[Any] = []
        for i, stage in enumerate([*stages, {}]):
            last = i == len(stages)
            made = self.e.Select(expressions=self._outputs(stages) if last else self._passed_on(i) + _named(self.write, stage))
            if i == 0 and not self.lateral and (self.inputs or not self.distinct):
                made.set(FROM, self.e.From(this=self._aliased() if self.row else self._read()))
                made.set("distinct", self.e.Distinct() if self.distinct else None)
            elif i:
                made.set(FROM, self.e.From(this=self._before(selects, i)))
            if i == 1 and self.words:
                made.set("joins", self.words.joins(f"{OWN}1"))
            if not last:
                self._add_optimization_fence(made)
            selects.append(made)
        return selects[-1] if self.lateral else self._with(selects)

    def _before(self, selects: list[Any], i: int) -> Expression:
        name = self.write.name(f"{OWN}{i}")
        if self.lateral:
            return self.e.Subquery(this=selects[-1], alias=self.e.TableAlias(this=name))
        return self.e.Table(this=name)

    def _with(self, selects: list[Any]) -> Expression:
        """The stages as common table expressions of the last one."""
        materialized = True if self.syntax.fence == "materialized" else None
        named = {f"{OWN}{i + 1}": select for i, select in enumerate(selects[:-1])}
        if self.words:
            inputs = f"{OWN}1"
            named = {inputs: named.pop(inputs)} | self.words.expressions(inputs) | named
        found = [self._cte(name, select, materialized) for name, select in named.items()]
        selects[-1].set(WITH, self.e.With(expressions=found))
        return selects[-1]

    def _add_optimization_fence(self, made: Any) -> None:
        if self.syntax.fence == "offset":
            made.set("offset", self.e.Offset(expression=self.write.whole(0)))
        elif self.syntax.fence == "limit":
            made.set("limit", self.e.Limit(expression=self.write.whole(2**64 - 1)))

    def _passed_on(self, i: int) -> list[Any]:
        """What a stage takes over from the one before: everything, or in the first the columns that are asked for."""
        if i == 1 and self.words:
            return [self.e.Column(this=self.e.Star(), table=self.write.name(f"{OWN}1"))]
        if i:
            return [self.e.Star()]
        if self.row:
            return [self.write.named(self.write.column(TABLE), f"{OWN}row")]
        if self.lateral or self.distinct:
            return []
        return [self.e.Star()] if self.columns is None else [self.write.column(name) for name in self.columns]

    def _outputs(self, stages: list[Stage]) -> list[Any]:
        """The columns of the table, the label, and the probabilities; all null where a number is infinite."""
        names = self._answer_names()
        k = len(self.scored.classes)
        helpers = [name for stage in stages for name in stage]
        if self.lateral:
            carried: list[Any] = []
        elif self.row:
            row = self.e.Paren(this=self.write.column(f"{OWN}row"))
            carried = [self.e.Dot(this=row, expression=self.e.Star())]
        elif self.distinct:
            carried = [self.write.column(name) for name in (stages[0] if self.inputs else ())]
        elif self.columns is None:
            carried = [self.e.Star(except_=[self.write.name(name) for name in helpers])]
        else:
            carried = [self.write.column(name) for name in self.columns]
        refused = self.write.column(f"{OWN}refused") if f"{OWN}refused" in helpers else None
        total = [self.write.column(f"{OWN}e{c}") for c in range(k)]
        found = [self._label(k)]
        for c in range(k):
            whole = self.write.total([each.copy() for each in total])
            found.append(self.e.Div(this=self.write.column(f"{OWN}e{c}"), expression=whole, typed=True))
        if refused is not None:
            found = [self.write.case([(self.write.compare("EQ", refused.copy(), self.write.whole(0)), f)]) for f in found]
        return [*carried, *(self.write.named(f, n) for f, n in zip(found, names, strict=True))]

    def _label(self, k: int) -> Expression:
        """The most probable label, the first of equals; where every class is ruled out, that of the prior."""
        write, best = self.write, self.write.column(f"{OWN}m")
        prior = int(self.scored.log_prior.argmax())
        branches = [(write.compare("LT", best.copy(), write.number(RULED_OUT)), self._written(prior))]
        scores = [write.compare("EQ", write.column(f"{OWN}s{c}"), best.copy()) for c in range(k - 1)]
        branches += [(score, self._written(c)) for c, score in enumerate(scores)]
        return write.case(branches, self._written(k - 1))

    def _written(self, c: int) -> Expression:
        """A label in its own type; as text where the labels have several types."""
        classes = self.scored.classes
        label = classes[c]
        if len({type(each) for each in classes}) > 1 or not isinstance(label, (bool, int, float)):
            return self.write.text(str(label))
        if isinstance(label, bool):
            return self.e.Boolean(this=label)
        # A number alone is an exact decimal in some databases, which comes back as text.
        return self.write.whole(label) if isinstance(label, int) else self.e.cast(self.write.number(label), "double")


def _named(write: ExpressionWriter, stage: Stage) -> list[Any]:
    return [write.named(expression, name) for name, expression in stage.items()]


FROM, WITH = "from_", "with_"  # sqlglot's names of the clauses
