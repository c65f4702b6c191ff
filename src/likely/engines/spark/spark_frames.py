"""Spark DataFrames as tables: their columns, their first rows, and all rows streamed to this process."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from likely.engines.spark._parquet_parts import ParquetParts, parquet_parts
from likely.engines.spark.faults import as_likely_errors
from likely.engines.spark.tasks import MapFunction, as_messages, renamed
from likely.errors import LikelyWarning
from likely.sources import Batch, MissingTokens, ReadOptions, Source
from likely.sources.arrow_rows import ArrowRows
from likely.sources.cell_values import name_columns
from likely.sources.text_columns import TypedFile

SAMPLE_ROWS = 50_000  # first rows, from which the columns are planned
LABEL = "the Spark table"
# Types that Spark cannot convert to Arrow: a column of them is left out.
NO_ARROW = ("CalendarIntervalType", "YearMonthIntervalType", "VariantType", "UserDefinedType", "GeometryType", "GeographyType")


def readable(frame: Any) -> Any:
    """The table with the columns that can be read; duplicate names are refused, types without Arrow are left out."""
    with as_likely_errors():  # Spark Connect looks for a table only when its columns are asked for
        fields = list(frame.schema.fields)
    name_columns([field.name for field in fields], LABEL)
    odd = {field.name: type(field.dataType).__name__ for field in fields if type(field.dataType).__name__ in NO_ARROW}
    if not odd:
        return frame
    for name, kind in odd.items():
        message = f"column {name!r} is left out: Spark cannot convert {kind} to Arrow; cast it to text or a number"
        warnings.warn(message, LikelyWarning, stacklevel=5)
    return without(frame, odd)


def without(frame: Any, names: Iterable[str]) -> Any:
    """The table without some of its columns."""
    odd = set(names)
    kept = [i for i, name in enumerate(frame.columns) if name not in odd]
    real = [frame.columns[i] for i in kept]
    return _numbered(frame).select(*(f"c{i}" for i in kept)).toDF(*real)


def _numbered(frame: Any) -> Any:
    """The table with its columns called c0, c1, …: Spark takes `c.d` for a field and `A` for `a`, positions for neither."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))


def mapped(frame: Any, wanted: Iterable[str] | None, work: MapFunction, schema: Any) -> Any:
    """The table that `mapInArrow` makes of some columns: `work` is called with batches under their real names."""
    known = None if wanted is None else set(wanted)
    kept = [i for i, name in enumerate(frame.columns) if known is None or name in known]
    real = tuple(frame.columns[i] for i in kept)
    return _numbered(frame).select(*(f"c{i}" for i in kept)).mapInArrow(partial(renamed, real, work), schema)


def first_rows(frame: Any, most: int = SAMPLE_ROWS) -> tuple[Any, bool]:
    """The first rows as an Arrow table, and whether they are all."""
    with as_likely_errors():
        table = frame.limit(most + 1).toArrow()
    return (table.slice(0, most), False) if table.num_rows > most else (table, True)


def streamed(frame: Any, reading: ReadOptions) -> Source:
    """All rows of a Spark DataFrame as a source of this process; its text columns follow the rule of text files."""
    known = readable(frame)
    return TypedFile(SparkRows(known, reading, files=parquet_parts(known)[0]), reading)


@dataclass(frozen=True)
class SparkRows:
    """All rows of a Spark DataFrame, streamed to this process partition by partition, with the formats of a plan.

    EM, cross-validation and the edges of target bins read rows so; counting and scoring never do.
    """

    frame: Any
    reading: ReadOptions
    label: str = LABEL
    partial: bool = False
    files: ParquetParts | None = None  # read by this process instead
    unordered: ClassVar[bool] = True  # tasks end in any order

    @property
    def missing(self) -> MissingTokens:
        """Its missing-value tokens."""
        return self.reading.gaps(False)

    def with_target(self, target: str) -> SparkRows:
        """The same rows with a target, which may have missing-value tokens of its own."""
        return self if self.reading.target == target else replace(self, reading=replace(self.reading, target=target))

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, partition by partition."""
        origins = [part.origin for part in self.reading.parts.values()]
        wanted = None if kinds is None else [*kinds, *origins]
        yield from ArrowRows(self._stream(wanted), self.reading, self.label).batches(kinds)

    def _stream(self, wanted: list[str] | None) -> Iterator[Any]:
        import pyarrow as pa

        if self.files is not None:
            yield from self.files.batches(wanted)
            return
        with as_likely_errors():
            packed = mapped(self.frame, wanted, as_messages, "batch binary")
            for row in packed.toLocalIterator(prefetchPartitions=True):
                with pa.ipc.open_stream(row["batch"]) as reader:
                    yield from reader
