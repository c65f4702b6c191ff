"""The Spark engine: one part for each partition, counted in the tasks; tallies are added in a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from likely.engines.engine import (
    AUTO,
    MEMORY,
    SPARK,
    SPARK_ROWS,
    CountedSource,
    CountTask,
    MemoryEngine,
    Part,
    PartTask,
    Progress,
)
from likely.engines.spark._parquet_parts import ParquetParts, UnreadablePartError, parquet_parts
from likely.engines.spark.faults import as_likely_errors, import_spark, raised
from likely.engines.spark.spark_frames import LABEL, SAMPLE_ROWS, SparkRows, first_rows, mapped, readable
from likely.engines.spark.tasks import RESULT, adding_function, file_function, task_function
from likely.errors import UsageError
from likely.sources import ReadOptions, Source, require_rows

GROUPS = 8  # tallies that come to this process; those of all partitions are added in at most so many groups by the cluster


@dataclass
class SparkEngine:
    """Engine for a Spark DataFrame, whose rows are counted and scored in the tasks of the cluster.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
        The table.
    chosen : str
        Why Spark counts it.
    files : ParquetParts or None
        Its row groups, if tasks read them by themselves.
    handed_over : str
        Why Spark sends the rows instead.
    """

    frame: Any
    chosen: str = "asked for"
    files: ParquetParts | None = None
    handed_over: str = ""
    name: str = SPARK
    supports_parts: ClassVar[bool] = True

    @property
    def reason(self) -> str:
        """Why it was chosen, and how the rows come to the tasks."""
        if self.files is not None:
            return f"{self.chosen}; tasks read its Parquet files by themselves"
        return f"{self.chosen}; Spark sends the rows: {self.handed_over}" if self.handed_over else self.chosen

    @staticmethod
    def of(frame: Any, asked: str) -> tuple[Any, Any]:
        """The engine for a Spark DataFrame, and its first rows."""
        import_spark()
        frame = readable(frame)
        files, why_not = (None, "asked for") if asked == SPARK_ROWS else parquet_parts(frame)
        try:
            table, complete = files.first_rows(SAMPLE_ROWS) if files else first_rows(frame)
        except UnreadablePartError as error:
            files, why_not = None, str(error)
            table, complete = first_rows(frame)
        if asked == MEMORY and not complete:
            remedy = "use engine='spark', or pass frame.toArrow() if it fits in the memory of this process"
            raise UsageError(f"engine='memory' was asked for a Spark table of more than {SAMPLE_ROWS:,} rows", remedy=remedy)
        if complete and asked not in (SPARK, SPARK_ROWS):
            return MemoryEngine(f"the Spark table has {table.num_rows:,} rows, all of them read to plan the columns"), table
        reason = f"a Spark table of more than {SAMPLE_ROWS:,} rows" if asked == AUTO else "asked for"
        return SparkEngine(frame, reason, files, why_not), table

    @staticmethod
    def scoring(frame: Any) -> SparkEngine:
        """The engine that scores a Spark DataFrame."""
        import_spark()
        return SparkEngine(readable(frame), "a Spark table")

    def rows(self, here: Source, read_as_planned: Callable[[Any], Source]) -> Source:  # noqa: ARG002
        """All rows as a source, streamed to this process."""
        return read_as_planned(SparkRows(self.frame, ReadOptions(), files=self.files))

    def tally(self, rows: CountedSource, task: Callable[[], CountTask], progress: Progress = None) -> Part:
        """Count all rows in the tasks of Spark; `rows` gets their number."""
        work = task()
        assert work.part is not None
        found = work.part(self._counted(work))
        rows.rows, rows.without_label = found.rows, found.without_label
        if progress:
            progress(found.rows)
        return found

    def _counted(self, work: CountTask) -> list[bytes]:
        """The sums of a few groups of parts, as bytes: the tallies of a partition each would be too many for one process."""
        groups = _groups(self.frame)
        if self.files is not None:
            try:
                return self._counted_in_files(self.files, work, groups)
            except UnreadablePartError as error:  # as on a cluster whose machines do not share the folder
                self.files, self.handed_over = None, f"a task could not read its files by itself, {error}"
        with as_likely_errors():
            counted = mapped(self.frame, work.columns, task_function(work, errors_as_rows=True), RESULT)
            return _collected(counted.repartition(groups).mapInArrow(adding_function(work), RESULT))

    def _counted_in_files(self, files: ParquetParts, work: CountTask, groups: int) -> list[bytes]:
        parts = files.parts(groups)
        with as_likely_errors():
            numbers = self.frame.sparkSession.range(0, len(parts), 1, len(parts))
            counted = numbers.mapInArrow(file_function(work, parts, files.chosen(work.columns)), RESULT)
            if len(parts) > GROUPS:
                counted = counted.repartition(groups).mapInArrow(adding_function(work), RESULT)
            return _collected(counted)

    def score(self, here: Callable[[], Any], task: Callable[[], PartTask]) -> Any:  # noqa: ARG002
        """The table with the columns that the task adds, as a Spark DataFrame; nothing runs before it is used."""
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StructField, StructType

        work = task()
        added = [StructField(name, from_arrow_type(kind)) for name, kind in work.adds]
        return mapped(self.frame, None, task_function(work), StructType([*self.frame.schema.fields, *added]))


def _collected(counted: Any) -> list[bytes]:
    """The counted parts; the first error of a part is raised."""
    found = counted.toArrow().to_pydict()
    for error in found["error"]:
        if error is not None:
            raise raised(error)
    if not found["part"]:
        require_rows(0, LABEL)
    return list(found["part"])


def _groups(frame: Any) -> int:
    """Number of groups in which tallies are added: no more than tasks run at a time, since every task costs its start."""
    try:
        at_once = int(frame.sparkSession.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context, which several classes of errors report
        return GROUPS
    return max(1, min(GROUPS, at_once))
