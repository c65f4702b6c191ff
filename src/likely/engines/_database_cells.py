"""Cells of a database in SQL, as they are counted: numbers, seconds, parts of dates."""

from __future__ import annotations

from typing import Any

from likely.engines.memory import Plan
from likely.errors import UsageError
from likely.schema import CATEGORY
from likely.sources import missing_of
from likely.sources.cell_values import missing_numbers
from likely.sources.date_parts import DatePart
from likely.sources.number_formats import PLAIN, TYPED_TIMES, are_times, describe_format
from likely.sources.table_names import quoted

LARGEST = "1.7976931348623157e308"
# Seconds since 1970; DuckDB gives null for an infinite time, which is none that is missing.
CLOCKS = {
    "duckdb": "coalesce(epoch({0}), case when cast({0} as varchar) like '%infinity' then cast('inf' as double) end)",
    "postgres": "extract(epoch from {0})",
}
# A time from its seconds, in UTC whatever the time zone of the session.
TIMES = {"duckdb": "make_timestamp(cast(floor({}) as bigint) * 1000000)", "postgres": "to_timestamp({}) at time zone 'UTC'"}
ELSEWHERE = "engine='memory' (--engine memory) reads the rows"


class CellWriter:
    """SQL of the columns of a plan."""

    def __init__(self, database: Any, plan: Plan) -> None:
        self.dialect, self.parts = database.dialect, plan.parts
        self.missing = getattr(database, "group_tokens", None) or missing_of(database)
        self.by_name = {column.name: column for column in plan.columns}

    def number(self, name: str) -> str:
        """SQL of a column as a number, null where a number stands for a missing cell."""
        if part := self.parts.get(name):
            return f"cast({self._part_code(part)} + {int(part.part != 'hour')} as double precision)"
        self._refuse_written(name, self.by_name[name].form)
        if are_times(self.by_name[name].form):
            return self._seconds(name)
        x = f"cast({quoted(name)} as double precision)"
        if self.dialect == "sqlite":  # what is text there is a token of missing cells
            x = f"case when typeof({quoted(name)}) in ('integer', 'real') then {x} end"
        for number in missing_numbers(self.missing.of(name)):
            x = f"nullif({x}, {float(number)!r})"
        return x

    @staticmethod
    def _refuse_written(name: str, code: str) -> None:
        """Refuse numbers and dates that are written as text in a form that only the reader knows."""
        if code not in (PLAIN, TYPED_TIMES):
            raise UsageError(
                f"column {name!r} holds {describe_format(code)}, written as text, which is not counted in a database",
                remedy=ELSEWHERE,
            )

    def _seconds(self, name: str) -> str:
        clock = CLOCKS.get(self.dialect)
        if clock is None:
            raise UsageError(f"column {name!r} holds dates, which are not counted in this database", remedy=ELSEWHERE)
        return f"cast({clock.format(quoted(name))} as double precision)"

    def _part_code(self, part: DatePart) -> str:
        """SQL of the code of a part of a date, equal to that of `DatePart.codes`; null where it is missing."""
        self._refuse_written(part.origin, part.format_code)
        seconds = self._seconds(part.origin)
        if part.part == "month":
            time = TIMES[self.dialect].format(seconds)
            place = f"extract(month from {time}) - 1"
        else:
            period, unit, shift = (24, 3600, 0) if part.part == "hour" else (7, 86400, 3)
            whole = f"(floor({seconds} / {unit}) + {shift})"
            place = f"{whole} - {period} * floor({whole} / {period})"
        return f"cast(case when abs({seconds}) <= {LARGEST} then {place} end as integer)"

    def cell(self, name: str) -> str:
        """SQL of a cell as it is counted: the code of a part of a date, or a number."""
        part = self.parts.get(name)
        if part is None or name not in self.by_name:
            return quoted(name)
        return self._part_code(part) if self.by_name[name].kind == CATEGORY else self.number(name)

    def is_text(self, name: str) -> str:
        """SQL of whether SQLite holds a text that is no token of missing cells."""
        tokens = ", ".join("'" + token.replace("'", "''") + "'" for token in self.missing.of(name))
        return f"typeof({quoted(name)}) in ('text', 'blob') and trim({quoted(name)}) not in ({tokens})"

    def finite(self, name: str) -> str:
        """SQL of a column as a number, null where it is none or infinite."""
        x = self.number(name)
        return f"case when abs({x}) <= {LARGEST} then {x} end"
