"""Weekday, month and hour of dates, read off a column of dates as columns of their own (see docs/data.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.schema import CALENDAR, NUMBER, Column
from likely.sources.around import Around

if TYPE_CHECKING:
    from likely.sources import Source
    from likely.sources.batch import Batch, Frame

Array = NDArray[np.float64]
DAY = 86_400.0
# How long it takes until a part comes round again, in seconds.
PERIODS = {"weekday": 7 * DAY, "month": 365.25 * DAY, "hour": DAY}
PARTS = tuple(PERIODS)


class Part(NamedTuple):
    """A part of a column of dates: the column, which part, how the dates are written in text, and who wanted it."""

    origin: str
    part: str
    form: str = ""
    asked: bool = False  # for by name, whatever it tells

    @property
    def name(self) -> str:
        """What the derived column is called."""
        return f"{self.origin}.{self.part}"

    @property
    def words(self) -> str:
        """What the schema says of it."""
        return f"{self.part} of {self.origin!r}{', as asked for' if self.asked else ''}"

    @property
    def values(self) -> list[Any]:
        """The values that it can take, in their order."""
        return list(CALENDAR.get(self.part, range(24)))

    def codes(self, seconds: Array) -> NDArray[np.int32]:
        """The place of each date among the values; -1 where it is missing."""
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


def part_of(column: Column) -> Part | None:
    """What a column of a model was derived from; None where the table holds it."""
    part, sign, form = column.form.partition("/")
    return Part(column.name.removesuffix(f".{part}"), part, form) if sign else None


def parts_of(columns: tuple[Column, ...]) -> dict[str, Part]:
    """The derived ones among the columns of a model."""
    return {column.name: part for column in columns if (part := part_of(column))}


def possible_parts(batch: Frame, name: str) -> tuple[str, ...]:
    """The parts that a column has: none if it holds no dates, no hour if there is no time of day."""
    from pyarrow import types as t

    column, form = batch.columns[name], batch.form(name)
    typed = not isinstance(column, list) and (t.is_timestamp(column.type) or t.is_date(column.type))
    if not (typed or form[:1] == "d"):
        return ()
    x = batch.column(name)
    return PARTS if bool((x[np.isfinite(x)] % DAY != 0).any()) else PARTS[:2]


@dataclass(frozen=True)
class WithParts(Around):
    """A source with parts of its columns of dates beside them."""

    parts: Mapping[str, Part]

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        from likely.sources.batch import Frame

        origins = {part.origin: NUMBER for name, part in self.parts.items() if kinds is None or name in kinds}
        for batch in self.inner.batches(None if kinds is None else origins | dict(kinds)):
            yield replace(batch, parts=self.parts) if isinstance(batch, Frame) else batch


def with_parts(source: Source, parts: Mapping[str, Part]) -> Source:
    """The source with columns derived from its dates; itself where there are none."""
    return WithParts(source, parts) if parts else source
