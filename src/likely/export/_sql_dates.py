"""Dates, times of day and durations in SQL: seconds, and weekday, month and hour, whatever the session's time zone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from likely.errors import UsageError
from likely.export._dialects import Expression
from likely.export._expressions import ExpressionWriter
from likely.sources.date_parts import DAY, DatePart
from likely.sources.number_formats import TYPED_TIMES

DATES, EITHER, DURATIONS = "dates", "either", "durations"
WITH_DURATIONS = ("duckdb", "postgres", "sqlite", "mysql")
EPOCH_DAY = "1970-01-01"
DAY_OF_TIMES = 946_684_800.0  # SQLite takes a time of day for one of 2000-01-01
YEARS = 700_000  # periods that are added before a remainder, which is negative of a negative number


class DateWriter:
    """Expressions of one dialect for columns of dates and times."""

    def __init__(self, write: ExpressionWriter) -> None:
        self.write, self.e, self.name = write, write.e, write.dialect.name

    def seconds(self, column: str, code: str) -> Expression:
        """Seconds since 1970 of dates, since midnight of times of day; `code` is the format of the model's column."""
        kind = DATES if code.startswith("d") else EITHER if code == TYPED_TIMES or not code else DURATIONS
        if kind == DURATIONS and self.name not in WITH_DURATIONS:
            raise UsageError(
                f"column {column!r} holds times of day or durations, which are not written in the SQL of {self.name}: choose "
                f"one of {', '.join(WITH_DURATIONS)}, or learn with the seconds as a number",
                column=column,
            )
        return SECONDS[self.name](self, column, kind)

    def part(self, part: DatePart) -> Expression:
        """Position of the weekday, month or hour of a date, from 0."""
        write, e = self.write, self.e
        period, unit, shift = {"hour": (24, 3600.0, 0), "weekday": (7, DAY, 3), "month": (1, DAY, 0)}[part.part]
        seconds = self.seconds(part.origin, part.format_code)
        units = write.cast(e.Floor(this=e.Div(this=seconds, expression=write.number(unit), typed=True)), "bigint")
        if part.part == "month":
            return write.minus(write.cast(MONTHS[self.name](self, units), "int"), write.whole(1))
        moved = e.Paren(this=e.Add(this=units, expression=write.whole(shift + YEARS * period)))  # years before 1970 too
        return e.Mod(this=moved, expression=write.whole(period))

    def _called(self, name: str, *arguments: Any) -> Expression:
        return self.e.Anonymous(this=name, expressions=list(arguments))

    def _divided(self, one: Expression, by: float) -> Expression:
        return self.e.Paren(this=self.e.Div(this=one, expression=self.write.number(by), typed=True))

    def _cell(self, column: str) -> Expression:
        return self.write.column(column)

    def _as_timestamp(self, column: str, kind: str) -> Expression:
        # Typed columns are taken as they are: a cast of a timestamp with a time zone depends on that of the session.
        return self.write.cast(self._cell(column), "timestamp") if kind == DATES else self._cell(column)

    def duckdb(self, column: str, kind: str) -> Expression:
        """EPOCH of the date, time or interval."""
        return self._called("EPOCH", self._as_timestamp(column, kind))

    def postgres(self, column: str, kind: str) -> Expression:
        """EXTRACT(EPOCH) of the date, time or interval."""
        part = self.e.Extract(this=self.e.Var(this="EPOCH"), expression=self._as_timestamp(column, kind))
        return self.write.cast(part, "double")

    def spark(self, column: str, _kind: str) -> Expression:
        """The instant of a timestamp; of dates and timestamps without a zone, their parts."""
        write, e = self.write, self.e

        def local() -> Expression:
            return write.cast(self._cell(column), "timestampntz")

        instant = self._called("UNIX_MICROS", write.cast(self._cell(column), "timestamp"))
        days = self._called("UNIX_DATE", write.cast(local(), "date"))
        second = write.cast(e.Extract(this=e.Var(this="SECOND"), expression=local()), "double")
        parts = [write.times(days, write.number(DAY)), write.times(self._called("HOUR", local()), write.number(3600.0))]
        parts += [write.times(self._called("MINUTE", local()), write.number(60.0)), second]
        kept = write.compare("EQ", self._called("TYPEOF", self._cell(column)), write.text("timestamp"))
        return write.case([(kept, self._divided(write.cast(instant, "double"), 1e6))], write.total(parts))

    def bigquery(self, column: str, _kind: str) -> Expression:
        """Microseconds of the timestamp; a date or datetime is one in UTC."""
        return self._divided(self._called("UNIX_MICROS", self.write.cast(self._cell(column), "timestamptz")), 1e6)

    def snowflake(self, column: str, _kind: str) -> Expression:
        """Microseconds of the timestamp, which is not cast: a date or timestamp without a zone is one in UTC."""
        return self._divided(self._called("DATE_PART", self.write.text("epoch_microsecond"), self._cell(column)), 1e6)

    def mysql(self, column: str, kind: str) -> Expression:
        """Microseconds since 1970, which UNIX_TIMESTAMP would shift by the time zone; of a time, its seconds."""
        write = self.write
        since = self._called("TIMESTAMPDIFF", self.e.Var(this="MICROSECOND"), write.text(EPOCH_DAY), self._cell(column))
        dated = self._divided(since, 1e6)
        fraction = self._divided(self._called("MICROSECOND", self._cell(column)), 1e6)
        timed = write.total([self._called("TIME_TO_SEC", self._cell(column)), fraction])
        if kind != EITHER:
            return dated if kind == DATES else timed
        has_year = self.e.Like(this=write.cast(self._cell(column), "text"), expression=write.text("____-%"))
        return write.case([(has_year, dated)], timed)

    def sqlite(self, column: str, _kind: str) -> Expression:
        """Seconds of a text that SQLite knows as a date or time, to the millisecond; null of any other."""
        write, e = self.write, self.e

        def read(form: str) -> Expression:
            return write.cast(self._called("STRFTIME", write.text(form), self._cell(column)), "double")

        fraction = write.minus(read("%f"), read("%S"))
        timed = e.Glob(this=self._cell(column), expression=write.text("[0-9][0-9]:*"))
        midnight = write.case([(timed, write.number(DAY_OF_TIMES))], write.number(0.0))
        return write.minus(write.total([read("%s"), fraction]), midnight)

    def _on_calendar(self, days: Expression) -> Expression:
        day = self.write.cast(self.write.text(EPOCH_DAY), "date")
        return self.e.Paren(this=self.e.Add(this=day, expression=self.write.cast(days, "int")))

    def month(self, days: Expression) -> Expression:
        """Month of a number of days since 1970."""
        return self.e.Extract(this=self.e.Var(this="MONTH"), expression=self._on_calendar(days))

    def month_spark(self, days: Expression) -> Expression:
        """As `month`."""
        day = self.write.cast(self.write.text(EPOCH_DAY), "date")
        return self._called("MONTH", self._called("DATE_ADD", day, self.write.cast(days, "int")))

    def month_bigquery(self, days: Expression) -> Expression:
        """As `month`."""
        return self.e.Extract(this=self.e.Var(this="MONTH"), expression=self._called("DATE_FROM_UNIX_DATE", days))

    def month_snowflake(self, days: Expression) -> Expression:
        """As `month`."""
        day = self.write.cast(self.write.text(EPOCH_DAY), "date")
        return self._called("MONTH", self._called("DATEADD", self.e.Var(this="DAY"), days, day))

    def month_mysql(self, days: Expression) -> Expression:
        """As `month`."""
        added = self.e.DateAdd(this=self.write.text(EPOCH_DAY), expression=self.e.Paren(this=days), unit=self.e.Var(this="DAY"))
        return self._called("MONTH", added)

    def month_sqlite(self, days: Expression) -> Expression:
        """As `month`."""
        seconds = self.write.times(days, self.write.whole(int(DAY)))
        return self._called("STRFTIME", self.write.text("%m"), seconds, self.write.text("unixepoch"))


SECONDS: dict[str, Callable[..., Any]] = {
    "duckdb": DateWriter.duckdb,
    "postgres": DateWriter.postgres,
    "sqlite": DateWriter.sqlite,
    "spark": DateWriter.spark,
    "bigquery": DateWriter.bigquery,
    "snowflake": DateWriter.snowflake,
    "mysql": DateWriter.mysql,
}
MONTHS: dict[str, Callable[..., Any]] = {
    "duckdb": DateWriter.month,
    "postgres": DateWriter.month,
    "sqlite": DateWriter.month_sqlite,
    "spark": DateWriter.month_spark,
    "bigquery": DateWriter.month_bigquery,
    "snowflake": DateWriter.month_snowflake,
    "mysql": DateWriter.month_mysql,
}
