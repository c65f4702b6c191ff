"""The engine protocol: where rows are counted and scored, in two verbs; and the rows as engines take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from likely.engines.memory import Plan, tally_source
from likely.errors import DataError, UsageError
from likely.sources import Batch, Source, is_postgres, is_source
from likely.sources.wrapper import SourceWrapper
from likely.tally import Tally

AUTO, MEMORY, SPARK, SPARK_ROWS, DUCKDB, DATABASE = "auto", "memory", "spark", "spark-rows", "duckdb", "database"
# With "spark-rows" Spark sends every row, also of files that tasks could read by themselves. The last two are one: a
# database counts its own rows.
ENGINES = (AUTO, MEMORY, SPARK, SPARK_ROWS, DUCKDB, DATABASE)
ON_THIS_MACHINE = "the rows are on this machine, and are read in batches"
FROM_SERVER = "the rows come from a server, and are read in batches"
Progress = Callable[[int], None] | None
PartFunction = Callable[[bytes, Iterator[Any]], Iterator[Any]]  # from Arrow record batches to Arrow record batches


@dataclass
class CountedSource:
    """A source that counts its rows, and those without a label, while they are read."""

    source: Source
    plan: Plan
    refuse_unlabelled: bool = False
    rows: int = 0
    without_label: int = 0

    def batches(self) -> Iterator[Batch]:
        """The rows, with the columns of the plan; DataError for an unlabelled row if those are refused."""
        for batch in self.source.batches(self.plan.kinds()):
            hidden = batch.coded(self.plan.target)
            outside = (hidden.codes < hidden.low) if hidden.low == 0 else np.zeros(1, bool)
            self.rows += batch.rows
            self.without_label += int(outside.sum())
            if self.refuse_unlabelled and outside.any():
                row = batch.start + int(np.argmax(outside)) + 1
                raise DataError(
                    "has no label", column=self.plan.target, row=row, remedy="fill it in, or pass unlabelled='ignore'"
                )
            yield batch


@dataclass(frozen=True)
class UnreadRows(SourceWrapper):
    """Rows that are not read in this process: reading them is an error.

    Attributes
    ----------
    why : str
        Where they are instead.
    remedy : str
        What to do.
    """

    why: str
    remedy: str

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:  # noqa: ARG002
        """Raise UsageError."""
        raise UsageError(
            "what is asked for reads the rows again (EM over rows without a label or missing cells of a joint block, or "
            f"selection of columns), and {self.why}",
            remedy=self.remedy,
        )


@dataclass(frozen=True)
class PartTask:
    """Work on a part of the rows, in this process or another one.

    Attributes
    ----------
    run : callable
        A function of a module, called with `state` and the record batches of a part; it yields record batches.
    state : bytes
        What the work needs: a plan or a model in the format of the model file.
    columns : tuple of str or None
        The columns that are read; None for all.
    adds : tuple of (str, Arrow type)
        The columns that it adds to those of the part.
    """

    run: PartFunction
    state: bytes
    columns: tuple[str, ...] | None = None
    adds: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Part:
    """What was counted in a part of the rows; parts add.

    Attributes
    ----------
    tally : Tally
        The counts.
    rows : int
        Number of rows that were read.
    without_label : int
        Number of these without a label.
    """

    tally: Tally
    rows: int
    without_label: int = 0


@dataclass(frozen=True)
class CountTask(PartTask):
    """Counting of a part; `run` yields one record batch with the bytes of the part, and `total` adds such bytes.

    Attributes
    ----------
    total : callable
        A function of a module: from the bytes of several parts to those of their sum.
    part : callable
        A function of a module: from the bytes of several parts to their sum.
    """

    total: Callable[[list[bytes]], bytes] = b"".join
    part: Callable[[list[bytes]], Part] | None = None


class Engine(Protocol):
    """Where rows are counted and scored: work is distributed over parts of the rows, and the results are added."""

    @property
    def name(self) -> str:
        """The name by which it is chosen."""

    @property
    def reason(self) -> str:
        """Why it was chosen."""

    @property
    def supports_parts(self) -> bool:
        """Whether `tally` can run any task over the parts, repeatedly; else it counts `rows` in its own way."""

    def rows(self, here: Source, read_as_planned: Callable[[Any], Source]) -> Source:
        """All rows as a source of this process: `here`, or a stream from elsewhere that `read_as_planned` opens."""

    def tally(self, rows: CountedSource, task: Callable[[], CountTask], progress: Progress) -> Part:
        """Count all rows: here as `rows`, or elsewhere by the part task."""

    def score(self, here: Callable[[], Any], task: Callable[[], PartTask]) -> Any:
        """Score all rows: here by `here`, or elsewhere by the part task."""


@dataclass(frozen=True)
class MemoryEngine:
    """The rows are read batch by batch into this process and counted by its threads."""

    reason: str = "asked for"
    name: str = MEMORY
    supports_parts: ClassVar[bool] = False

    def rows(self, here: Source, read_as_planned: Callable[[Any], Source]) -> Source:  # noqa: ARG002
        """The rows themselves."""
        return here

    def tally(self, rows: CountedSource, task: Callable[[], CountTask], progress: Progress = None) -> Part:  # noqa: ARG002
        """Count all rows in this process."""
        tally = tally_source(rows.batches(), rows.plan, progress)
        return Part(tally, rows.rows, rows.without_label)

    def score(self, here: Callable[[], Any], task: Callable[[], PartTask]) -> Any:  # noqa: ARG002
        """Score all rows in this process."""
        return here()


def is_spark_frame(data: Any) -> bool:
    """Whether the rows are a Spark DataFrame; Spark is not imported for it."""
    kind = type(data)
    return kind.__module__.startswith("pyspark.") and kind.__name__ == "DataFrame"


def choose(asked: str | Engine, data: Any) -> tuple[Engine, Any]:
    """The engine for some rows, and the rows as this process reads them: all, or the first ones of a Spark table.

    With "auto", files, frames and databases are counted in memory, where they are read in batches; a Spark DataFrame is
    counted by Spark, unless it is so small that the rows from which the columns are planned are all rows.
    """
    if not isinstance(asked, str):
        return asked, data
    if asked not in ENGINES:
        raise UsageError(f"engine={asked!r} is not known: choose one of {', '.join(ENGINES)}")
    if asked in (DUCKDB, DATABASE):
        from likely.engines.in_database import DatabaseEngine

        return DatabaseEngine(asked=f"engine={asked!r} (--engine {asked})"), data
    if is_spark_frame(data):
        from likely.engines.spark.spark_engine import SparkEngine

        return SparkEngine.of(data, asked)
    if asked in (SPARK, SPARK_ROWS):
        raise UsageError(
            f"engine={asked!r} counts a Spark DataFrame: pass spark.read.parquet(...), or on the command line "
            f"--engine {asked} --master URL with a path"
        )
    return MemoryEngine("asked for" if asked == MEMORY else FROM_SERVER if _is_server(data) else ON_THIS_MACHINE), data


def _is_server(data: Any) -> bool:
    """Whether the rows come from a database server: it is a URI of PostgreSQL, or a source opened by one."""
    inner = data
    while is_source(inner) and hasattr(inner, "inner"):
        inner = inner.inner
    return is_postgres(data) or getattr(inner, "dialect", None) == "postgres"
