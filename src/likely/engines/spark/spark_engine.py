"""The Spark engine: one part for each partition, counted in the tasks; tallies are added in a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from likely.engines.counted_rows import CountedSource
from likely.engines.engine import MEMORY, SPARK, CountTask, MemoryEngine, Part, PartTask, Progress
from likely.engines.spark.faults import as_likely_errors, import_spark, raised
from likely.engines.spark.spark_frames import LABEL, SAMPLE_ROWS, SparkRows, first_rows, mapped, readable
from likely.engines.spark.tasks import RESULT, adding_function, task_function
from likely.errors import UsageError
from likely.sources import ReadOptions, Source, require_rows

GROUPS = 8  # tallies that come to this process; those of all partitions are added in at most so many groups by the cluster


@dataclass(frozen=True)
class SparkEngine:
    """Rows of a Spark DataFrame, counted and scored where they are."""

    frame: Any
    reason: str = "asked for"
    name: str = SPARK

    @staticmethod
    def of(frame: Any, asked: str) -> tuple[Any, Any]:
        """The engine for a Spark DataFrame, and its first rows."""
        import_spark()
        frame = readable(frame)
        table, complete = first_rows(frame)
        if asked == MEMORY and not complete:
            remedy = "use engine='spark', or pass frame.toArrow() if it fits in the memory of this process"
            raise UsageError(f"engine='memory' was asked for a Spark table of more than {SAMPLE_ROWS:,} rows", remedy=remedy)
        if complete and asked != SPARK:
            return MemoryEngine(f"the Spark table has {table.num_rows:,} rows, all of them read to plan the columns"), table
        reason = "asked for" if asked == SPARK else f"a Spark table of more than {SAMPLE_ROWS:,} rows"
        return SparkEngine(frame, reason), table

    @staticmethod
    def scoring(frame: Any) -> SparkEngine:
        """The engine that scores a Spark DataFrame."""
        import_spark()
        return SparkEngine(readable(frame), "a Spark table")

    def rows(self, here: Source, aimed: Callable[[Any], Source]) -> Source:  # noqa: ARG002
        """All rows as a source, streamed to this process."""
        return aimed(SparkRows(self.frame, ReadOptions()))

    def tally(self, rows: CountedSource, task: Callable[[], CountTask], progress: Progress = None) -> Part:
        """Count all rows in the tasks of Spark; `rows` is told how many there were."""
        work = task()
        assert work.part is not None
        found = work.part(work.total(self._counted(work)))
        rows.rows, rows.without_label = found.rows, found.without_label
        if progress:
            progress(found.rows)
        return found

    def _counted(self, work: CountTask) -> list[bytes]:
        """The sums of a few groups of parts, as bytes: the tallies of a partition each would be too many for one process."""
        with as_likely_errors():
            counted = mapped(self.frame, work.columns, task_function(work, errors_as_rows=True), RESULT)
            found = counted.repartition(_groups(self.frame)).mapInArrow(adding_function(work), RESULT).toArrow().to_pydict()
        for error in found["error"]:
            if error is not None:
                raise raised(error)
        if not found["part"]:
            require_rows(0, LABEL)
        return list(found["part"])

    def score(self, here: Callable[[], Any], task: Callable[[], PartTask]) -> Any:  # noqa: ARG002
        """The table with the columns that the task adds, as a Spark DataFrame; nothing runs before it is used."""
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StructField, StructType

        work = task()
        added = [StructField(name, from_arrow_type(kind)) for name, kind in work.adds]
        return mapped(self.frame, None, task_function(work), StructType([*self.frame.schema.fields, *added]))


def _groups(frame: Any) -> int:
    """Number of groups in which tallies are added: no more than tasks run at a time, since every task costs its start."""
    try:
        at_once = int(frame.sparkSession.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context, which several classes of errors report
        return GROUPS
    return max(1, min(GROUPS, at_once))
