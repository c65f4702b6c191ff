"""Weekday, month and hour as columns derived from columns of dates (see docs/data.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.schema import CALENDAR, NUMBER, Column
from likely.sources.wrapper import SourceWrapper

if TYPE_CHECKING:
    from likely.sources import Source
    from likely.sources.batch import Batch, Frame

Array = NDArray[np.float64]
DAY = 86_400.0
# Period of each part in seconds.
PERIODS = {"weekday": 7 * DAY, "month": 365.25 * DAY, "hour": DAY}
PARTS = tuple(PERIODS)


class DatePart(NamedTuple):
    """A part of a column of dates: source column, part, format code of text dates, and whether it was requested."""

    origin: str
    part: str
    format_code: str = ""
    asked: bool = False  # whether it was requested by name, and is kept in any case

    @property
    def name(self) -> str:
        """Name of the derived column."""
        return f"{self.origin}.{self.part}"

    @property
    def description(self) -> str:
        """Description in the schema."""
        return f"{self.part} of {self.origin!r}{', as asked for' if self.asked else ''}"

    @property
    def values(self) -> list[Any]:
        """Possible values, in order."""
        return list(CALENDAR.get(self.part, range(24)))

    def codes(self, seconds: Array) -> NDArray[np.int32]:
        """Codes of dates given in seconds; -1 where missing."""
        there = np.isfinite(seconds)
        x = np.where(there, seconds, 0.0)
        if self.part == "hour":
            found = np.floor(x / 3600.0) % 24
        else:
            days = np.floor(x / DAY)
            months = days.astype(np.int64).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
            found = (days + 3) % 7 if self.part == "weekday" else months % 12  # 1970 began on a Thursday
        return np.where(there, found, -1).astype(np.int32)

    def numbers(self, seconds: Array) -> Array:
        """The part as a number: Monday and January are 1, midnight is 0."""
        codes = self.codes(seconds)
        return np.where(codes < 0, np.nan, codes + (self.part != "hour"))


def part_of(column: Column) -> DatePart | None:
    """The date part that a model's column was derived from; None if it is a column of the table."""
    part, sign, code = column.form.partition("/")
    return DatePart(column.name.removesuffix(f".{part}"), part, code) if sign else None


def parts_of(columns: tuple[Column, ...]) -> dict[str, DatePart]:
    """The derived columns of a model."""
    return {column.name: part for column in columns if (part := part_of(column))}


def possible_parts(batch: Frame, name: str) -> tuple[str, ...]:
    """Parts of a column: none if it has no dates, no hour without a time of day."""
    from pyarrow import types as t

    column, code = batch.columns[name], batch.format_code(name)
    typed = not isinstance(column, list) and (t.is_timestamp(column.type) or t.is_date(column.type))
    if not (typed or code[:1] == "d"):
        return ()
    x = batch.column(name)
    return PARTS if bool((x[np.isfinite(x)] % DAY != 0).any()) else PARTS[:2]


@dataclass(frozen=True)
class WithDateParts(SourceWrapper):
    """A source with derived date parts as additional columns."""

    parts: Mapping[str, DatePart]

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        from likely.sources.batch import Frame

        origins = {part.origin: NUMBER for name, part in self.parts.items() if kinds is None or name in kinds}
        for batch in self.inner.batches(None if kinds is None else origins | dict(kinds)):
            yield replace(batch, parts=self.parts) if isinstance(batch, Frame) else batch


def with_parts(source: Source, parts: Mapping[str, DatePart]) -> Source:
    """The source with columns derived from its dates; the source itself if there are none."""
    return WithDateParts(source, parts) if parts else source
