"""Counting inside a database: GROUP BY where the rows are, and only their groups come back.

Families that count cells get the distinct cells of a block with their weights, as a weighted batch of the memory engine; means,
spreads and the scatter of joint Gaussians are computed in two passes around the mean. Weekday, month and hour of a date are
computed by the database.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from likely.engines._database_cells import ELSEWHERE, LARGEST, CellWriter
from likely.engines._database_checks import AT_ONCE, check_weight_column, free_name, one_row, refuse_text_cells
from likely.engines.engine import CountedSource, CountTask, Part, PartTask, Progress, UnreadRows
from likely.engines.memory import MOST_KEPT, MOST_VALUES, Plan, tally_batch
from likely.engines.targets import Opened, as_name
from likely.errors import DataError, UsageError, no_column
from likely.families import Block
from likely.families.statistics import Moments, Scatter, Statistic
from likely.kernels.parallel import cached_property
from likely.schema import CATEGORY, TEXT, Column, Schema
from likely.sources import Batch, Frame, ReadOptions, Source, open_source
from likely.sources.arrow_arrays import arrow_array
from likely.sources.databases import Answer
from likely.sources.duckdb_files import FilesInDuckdb, file_in_duckdb
from likely.sources.number_formats import are_times
from likely.sources.row_access import take_columns
from likely.sources.table_names import quoted
from likely.sources.text_columns import TypedFile, text_columns
from likely.sources.wrapper import SourceWrapper
from likely.tally import Tally


def database_of(source: Source, asked: str) -> Any:
    """The database under a source, or DuckDB over its files; UsageError if it is neither, which names what was `asked` for."""
    inner: Any = source
    while not hasattr(inner, "ask"):
        if not hasattr(inner, "inner"):
            break
        inner = inner.inner
    found = inner if hasattr(inner, "ask") else file_in_duckdb(source)
    if found is None:
        raise UsageError(
            f"{source.label} is no database: {asked} counts in DuckDB, SQLite and PostgreSQL, and Parquet and CSV by DuckDB",
            remedy="leave it out, and the rows are counted in memory",
        )
    return found


@dataclass(frozen=True)
class DatabaseEngine:
    """The rows are counted by the database, in one query for each block of columns."""

    reason: str = "asked for"
    name: str = "database"
    asked: str = "in_database=True (--in-database)"
    supports_parts: ClassVar[bool] = False

    def opened(self, data: Any, target: Any, weights: Any, target_bins: Any, reading: ReadOptions) -> Opened:
        """The database, from whose first rows the columns are planned, with target and weights as columns."""
        if target_bins is not None:
            raise UsageError("target_bins= (--target-bins) reads the rows", remedy=ELSEWHERE)
        for name, given in (("target", target), ("weights", weights)):
            if hasattr(given, "__len__") and not isinstance(given, str):
                raise UsageError(f"{name}= of a database must be the name of one of its columns")
        source = database_of(open_source(data, reading), self.asked).with_target(as_name(target))
        planned = source if isinstance(source, FilesInDuckdb) else TypedFile(FirstRows(source), reading)
        return Opened(planned, as_name(target), as_name(weights))

    def rows(self, here: Source, read_as_planned: Callable[[Any], Source]) -> Source:  # noqa: ARG002
        """The rows, which nothing reads."""
        remedy = f"pass unlabelled='ignore' (--unlabelled ignore); {ELSEWHERE}"
        return UnreadRows(here, "they are to stay in the database", remedy)

    def score(self, here: Callable[[], Any], task: Callable[[], PartTask]) -> Any:  # noqa: ARG002
        """Score rows in this process; `Model.sql` scores them in the database."""
        return here()

    def tally(self, rows: CountedSource, task: Callable[[], CountTask], progress: Progress = None) -> Part:  # noqa: ARG002
        """Count all rows inside the database."""
        counting = _Counting(database_of(rows.source, self.asked), rows.plan)
        counting.check(_stored_texts(rows.source))
        rows.rows, rows.without_label, classes = counting.classes()
        if rows.refuse_unlabelled and rows.without_label:
            raise DataError(
                f"has no label in {rows.without_label:,} rows", column=rows.plan.target,
                remedy="fill them in, or pass unlabelled='ignore'",
            )  # fmt: skip
        rows.plan = counting.drop_identifiers(classes.rows)
        tally = counting.tally(classes)
        if progress:
            progress(rows.rows)
        return Part(tally, rows.rows, rows.without_label)


@dataclass(frozen=True)
class FirstRows(SourceWrapper):
    """The first rows of a database, from which columns are planned: the formats of text too are those of the first rows."""

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """One batch, which is read once."""
        if (first := self._first) is not None:
            yield first if kinds is None else take_columns(first, [name for name in first.names if name in kinds])

    @cached_property
    def _first(self) -> Batch | None:
        with contextlib.closing(self.inner.batches()) as batches:  # type: ignore[type-var]  # a generator
            return next(batches, None)

    @cached_property
    def texts(self) -> frozenset[str]:
        """The columns that the database stores as text."""
        return frozenset(text_columns(self._first)) if isinstance(self._first, Frame) else frozenset()


class _Counting:
    """The queries of one plan."""

    def __init__(self, database: Any, plan: Plan) -> None:
        self.database, self.plan = database, plan
        self.by_name = {column.name: column for column in plan.columns}
        self.sql = CellWriter(database, plan)
        self.missing = self.sql.missing
        self.weight = f"cast({quoted(plan.weights)} as double precision)" if plan.weights else "cast(1 as double precision)"
        self.used = f"{self.weight} > 0" if plan.weights else "1 = 1"

    def ask(self, select: str, rest: str) -> Answer:
        """The answer to a query over the rows."""
        answer: Answer = self.database.ask(lambda rows: f"select {select} from {rows} {rest}")
        return answer

    def check(self, texts: frozenset[str]) -> None:
        """Refuse what is not counted in a database, weights that are none, and cells that are no finite numbers.

        `texts` are the columns that the database stores as text, of which those that memory reads as numbers are refused.
        """
        if self.plan.sample:
            raise UsageError(
                "the default model is calibrated on a sample of rows, which a database does not give",
                remedy=f"pass plain=True (--plain); {ELSEWHERE}",
            )
        for column in self.plan.columns:
            if column.kind == TEXT:
                raise UsageError(f"column {column.name!r} is text, which is not counted in a database", remedy=ELSEWHERE)
            self._refuse_text(column, texts)
        if self.plan.weights:
            check_weight_column(self.database, self.sql, self.plan.weights)
        summed = (b for b in self.plan.blocks if _is_moments(b, self.by_name) or _is_scatter(b, self.by_name))
        self._check_numbers([name for block in summed for name in block.columns])

    def _refuse_text(self, column: Column, texts: frozenset[str]) -> None:
        """Refuse text that is read as numbers or dates in memory: a database would count its spellings, or not cast them."""
        part = self.plan.parts.get(column.name)
        stored = part.origin if part else column.name
        if stored in texts and (part or column.kind != CATEGORY):
            what = f"{'dates or times' if part or are_times(column.form) else 'numbers'} stored as text"
            raise UsageError(
                f"column {stored!r} holds {what}, which are not read in a database",
                remedy=f"cast it in a view or in query= (--query), name families={{{stored!r}: 'categorical'}} to count its "
                f"texts, or leave in_database= (--in-database) out: {ELSEWHERE}",
            )

    def _check_numbers(self, names: Sequence[str]) -> None:
        if not names:
            return
        # NaN is greater than every number, so that the smallest of those beyond the range is infinity, if there is one.
        refuse_text_cells(self.database, self.sql, [name for name in names if name not in self.plan.parts])
        x = [self.sql.number(name) for name in names]
        found = one_row(self.database, [f"min(case when abs({e}) > {LARGEST} then {e} end)" for e in x], f"where {self.used}")
        for name, value in zip(names, found, strict=True):
            if value is not None and np.isinf(value):
                raise DataError(
                    "which is not a finite number", column=name, value=value,
                    remedy="correct it, treat infinity as missing, or choose another family for the column",
                )  # fmt: skip

    def classes(self) -> tuple[int, int, Tally]:
        """Number of rows, of those without a label, and the tally of the classes alone."""
        target, used = quoted(self.plan.target), self.used
        names = [self._free(name) for name in ("n", "used", "w")]
        sums = (f"{each} as {name}" for each, name in zip((
            "count(*)", f"sum(case when {used} then 1 else 0 end)", f"sum({self.weight})"), names, strict=True))  # fmt: skip
        found = self.ask(f"{target}, {', '.join(sums)}", f"group by {target}")
        if self.plan.target not in found.columns:
            raise no_column(self.database.label, self.plan.target, [*found.columns])
        n, kept, w = (np.array(found.lists()[name], float) for name in names)
        frame = self._frame(found, [self.plan.target])
        hidden = frame.coded(self.plan.target)
        unlabelled = hidden.codes < hidden.low if hidden.low == 0 else np.zeros(len(n), bool)
        bare = replace(self.plan, blocks=(), columns=(), weights=None, sample=False)
        tally = replace(tally_batch(frame, bare, weights=w), rows=int(kept[~unlabelled].sum()))
        return int(n.sum()), int(n[unlabelled].sum()), tally

    def _free(self, name: str) -> str:
        return free_name(name, (self.plan.target, *self.by_name))

    def _frame(self, answer: Answer, names: Sequence[str]) -> Frame:
        return Frame({name: answer.columns[name] for name in names}, answer.rows, 0, self.missing)

    def drop_identifiers(self, rows: int) -> Plan:
        """The plan without columns that identify rows rather than classify them, by the number of their values."""
        known = (n for n in self.plan.droppable if n in self.by_name and n not in self.plan.parts)
        names = [n for n in known if self.by_name[n].kind == CATEGORY]
        if names:
            found = one_row(self.database, [f"count(distinct {quoted(name)})" for name in names])
            for name, values in zip(names, found, strict=True):
                if values > MOST_VALUES and values > min(rows / 2, MOST_KEPT):
                    self._drop(name, values, rows)
        return self.plan

    def _drop(self, name: str, values: int, rows: int) -> None:
        why = "it names rows" if values > rows / 2 else "too many to be counted"
        self.plan = replace(
            self.plan,
            blocks=tuple(block for block in self.plan.blocks if name not in block.columns),
            columns=tuple(column for column in self.plan.columns if column.name != name),
            ignored=(*self.plan.ignored, (name, f"{values:,} different values: {why}")),
        )

    def tally(self, classes: Tally) -> Tally:
        """The tally of all blocks."""
        target = classes.schema.target
        moments = [block for block in self.plan.blocks if _is_moments(block, self.by_name)]
        found: dict[Block, Statistic] = {}
        for i in range(0, len(moments), AT_ONCE):
            found |= self._moments(moments[i : i + AT_ONCE], target)
        known: dict[str, Column] = {}
        for block in self.plan.blocks:
            if _is_scatter(block, self.by_name):
                found[block] = self._scatter(block, target)
            elif block not in found:
                part = self._cells(block)
                found[block] = part.with_schema(replace(part.schema, target=target)).statistics[0]
                known |= part.schema.by_name
        columns = tuple(known.get(column.name, column) for column in self.plan.columns)
        schema = Schema(target, columns, self.plan.ignored)
        return Tally(schema, self.plan.blocks, classes.classes, tuple(found[b] for b in self.plan.blocks), classes.rows)

    def _cells(self, block: Block) -> Tally:
        """Tally of one block, from its distinct cells with their weights."""
        columns = tuple(self.by_name[name] for name in block.columns)
        numbers = any(column.kind != CATEGORY for column in columns)
        if numbers and isinstance(block.nothing(columns, 0), Scatter):
            raise UsageError(
                f"the joint block {block.name!r} of categories and numbers is not counted in a database", remedy=ELSEWHERE
            )
        cells = {name: self.sql.cell(name) for name in (self.plan.target, *block.columns)}
        listed = ", ".join(f"{cell} as {quoted(name)}" for name, cell in cells.items())
        weight = self._free("n")
        select = f"{listed}, cast(sum({self.weight}) as double precision) as {weight}"
        answer = self.ask(select, f"where {self.used} group by {', '.join(cells.values())}")
        plan = replace(self.plan, blocks=(block,), columns=columns, weights=None, sample=False)
        frame = self._frame(answer, [*cells])
        for name in block.columns:
            if (part := self.plan.parts.get(name)) and self.by_name[name].kind == CATEGORY:
                places = answer.lists()[name]
                frame = frame.with_column(name, arrow_array([None if i is None else part.values[i] for i in places]))
        return tally_batch(frame, plan, weights=np.array(answer.lists()[weight], float))

    def _scatter(self, block: Block, target: Column) -> Scatter:
        """Weight, mean vector and scatter matrix of a joint Gaussian by class, of rows without missing cells."""
        width = range(len(block.columns))
        listed = ", ".join(f"{self.sql.finite(name)} as x{i}" for i, name in enumerate(block.columns))
        rows = f"select {quoted(self.plan.target)} as y, {self.weight} as w, {listed}"
        there = " and ".join(f"x{i} is not null" for i in width)
        means = ", ".join(f"sum(w * x{i}) / sum(w) as m{i}" for i in width)
        apart = [f"(r.x{i} - c.m{i})" for i in width]
        first = ", ".join(f"min(c.m{i}) as m{i}, sum(r.w * {apart[i]}) as d{i}" for i in width)
        every = [f"sum(r.w * {apart[i]} * {apart[j]}) as s{i}_{j}" for i in width for j in range(i + 1)]

        def build(table: str, second: str) -> str:
            given = f"with likely_a as ({rows} from {table} where {self.used}), "
            given += f"likely_r as (select * from likely_a where {there}), "
            given += f"likely_c as (select y, {means} from likely_r group by y) "
            joined = "from likely_r r join likely_c c on c.y = r.y group by r.y order by r.y"
            return f"{given}select r.y as y, sum(r.w) as n, {first}, {second} {joined}"

        found: dict[str, list[Any]] = {}
        for some in (", ".join(every[i : i + AT_ONCE]) for i in range(0, len(every), AT_ONCE)):
            found |= self.database.ask(lambda table, second=some: build(table, second)).lists()
        place = [target.code.get(target.canonical(label)) for label in found["y"]]
        return _scatter_of(found, place, len(target.values), len(block.columns))

    def _moments(self, blocks: Sequence[Block], target: Column) -> Iterator[tuple[Block, Statistic]]:
        """Weight, mean and spread by class of every block: the mean first, then what is left around it."""
        names = [block.columns[0] for block in blocks]
        inner = ", ".join(f"{self.sql.finite(name)} as x{i}" for i, name in enumerate(names))
        rows = f"select {quoted(self.plan.target)} as y, {self.weight} as w, {inner}"
        first = ", ".join(
            f"sum({there}) as n{i}, sum(w * x{i}) / sum({there}) as m{i}"
            for i, there in enumerate(f"case when x{i} is not null then w end" for i in range(len(names)))
        )
        apart = [f"(r.x{i} - c.m{i})" for i in range(len(names))]
        second = ", ".join(f"sum(r.w * {d}) as d{i}, sum(r.w * {d} * {d}) as s{i}" for i, d in enumerate(apart))
        means = ", ".join(f"min(c.n{i}) as n{i}, min(c.m{i}) as m{i}" for i in range(len(names)))

        def build(table: str) -> str:
            given = f"with likely_r as ({rows} from {table} where {self.used}), "
            given += f"likely_c as (select y, {first} from likely_r group by y) "
            return f"{given}select r.y as y, {means}, {second} from likely_r r join likely_c c on c.y = r.y group by r.y"

        found = self.database.ask(build).lists()
        place = [target.code.get(target.canonical(label)) for label in found["y"]]
        for i, block in enumerate(blocks):
            yield block, _statistic(found, i, place, len(target.values))

def _stored_texts(source: Source) -> frozenset[str]:
    """The columns that a database stores as text; none of files, whose formats are those found here."""
    inner: Any = source
    while not isinstance(inner, FirstRows | FilesInDuckdb):
        inner = inner.inner
    return inner.texts if isinstance(inner, FirstRows) else frozenset()


def _is_moments(block: Block, by_name: Mapping[str, Column]) -> bool:
    return isinstance(block.nothing([by_name[name] for name in block.columns], 1), Moments)


def _is_scatter(block: Block, by_name: Mapping[str, Column]) -> bool:
    """Whether a block is a joint Gaussian of numbers alone."""
    columns = [by_name[name] for name in block.columns]
    return all(c.kind != CATEGORY for c in columns) and isinstance(block.nothing(columns, 1), Scatter)


def _scatter_of(found: Mapping[str, list[Any]], place: Sequence[int | None], classes: int, width: int) -> Scatter:
    """Scatter by class; mean and scatter are corrected by what the second pass has left of the mean."""
    n, mean, scatter = np.zeros(classes), np.zeros((classes, width)), np.zeros((classes, width, width))
    for row, at in enumerate(place):
        if at is None:
            continue
        n[at] = found["n"][row]
        left = np.array([found[f"d{i}"][row] for i in range(width)], float)
        mean[at] = np.array([found[f"m{i}"][row] for i in range(width)], float) + left / n[at]
        for i in range(width):
            for j in range(i + 1):
                scatter[at, i, j] = scatter[at, j, i] = found[f"s{i}_{j}"][row] - left[i] * left[j] / n[at]
    return Scatter(n, mean, scatter)


def _statistic(found: Mapping[str, list[Any]], i: int, place: Sequence[int | None], classes: int) -> Moments:
    """Moments of one column; the mean is corrected by what the second pass has left of it."""
    n, mean, spread = np.zeros(classes), np.zeros(classes), np.zeros(classes)
    columns = (found[f"{letter}{i}"] for letter in "nmds")
    for at, weight, centre, left, square in zip(place, *columns, strict=True):
        if at is None or not weight:
            continue
        n[at], mean[at] = weight, centre + left / weight
        spread[at] = max(square - left * left / weight, 0.0)
    return Moments(n, mean, spread)
