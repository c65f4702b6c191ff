"""Parsing of dates, times and durations in text, as seconds: NaN where a cell is null or does not match."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.sources.arrow_arrays import numpy_array

Array = NDArray[np.float64]

NAMED = "named"  # the order code of dates with the English name of the month
HALF = r"(?P<half>[AaPp]\.?\s?[Mm]\.?)"
CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d{1,9})?))?"
TIME = rf"(?:,?[T ]\s?{CLOCK}\s?{HALF}?\s?(?P<zone>Z|UTC|GMT|[-+]\d{{2}}(?::?\d{{2}})?)?)?"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = rf"(?i:({'|'.join(MONTHS)})(?:uary|ruary|ch|il|e|y|ust|t|tember|ober|ember)?\.?)"
DAY_NAME = r"(?i:(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:day)?[.,]?\s)?"
NTH = r"(\d{1,2})(?i:st|nd|rd|th)?"
YEAR = r"(\d{4}|\d{2})\b"
# Reordered to year, name of the month and day: Sun Mar  3 10:05:00 2024, as C and Unix write it; 3 Mar 2024 and
# 03-Mar-24; March 3, 2024; 2024-Mar-03.
REORDERED = (
    (rf"^{DAY_NAME}{MONTH} {{1,2}}(\d{{1,2}}) (\d{{2}}:\d{{2}}:\d{{2}}) (\d{{4}})$", r"\4-\1-\2 \3"),
    (rf"^{DAY_NAME}{NTH}[-/. ]\s?{MONTH}[-/., ]\s?{YEAR}", r"\3-\2-\1"),
    (rf"^{DAY_NAME}{MONTH}[-/. ]\s?{NTH}(?:,\s?|[-/ ]){YEAR}", r"\3-\1-\2"),
    (rf"^(\d{{4}})[-/. ]{MONTH}[-/. ]{NTH}", r"\1-\2-\3"),
)
DATES = {
    NAMED: rf"(?P<year>\d{{4}}|\d{{2}})-(?P<month>[A-Za-z]{{3}})-(?P<day>\d{{1,2}}){TIME}",
    "ymd": rf"(?P<year>\d{{4}})[-/.](?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}}){TIME}",
    "dmy": rf"(?P<day>\d{{1,2}})[-/.](?P<month>\d{{1,2}})[-/.](?P<year>\d{{4}}|\d{{2}}){TIME}",
    "mdy": rf"(?P<month>\d{{1,2}})[-/](?P<day>\d{{1,2}})[-/](?P<year>\d{{4}}|\d{{2}}){TIME}",
}
SPAN = r"(?P<hour>\d{1,6}):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:[.,]\d{1,9})?))?"
# Durations with units: 90 min, 1.5 h, 2h 30m; 1 days 02:03:04 and 1 day, 2:03:04, as pandas and Python write them; PT1H30M.
UNITS = {
    "week": (604800.0, r"w|(?i:weeks?)"),
    "day": (86400.0, r"d|(?i:days?)"),
    "hours": (3600.0, r"h|(?i:hours?|hrs?)"),
    "minutes": (60.0, r"m|(?i:minutes?|mins?)"),
    "seconds": (1.0, r"s|(?i:seconds?|secs?)"),
    "ms": (1e-3, r"ms"),
}


def _duration() -> str:
    """Pattern of durations with units, one group a unit."""
    each = {name: rf"(?:(?P<{name}>\d+(?:[.,]\d+)?)\s?(?:{words})[, ]?\s?)?" for name, (_, words) in UNITS.items()}
    days, rest = each["week"] + each["day"], "".join(each[name] for name in ("hours", "minutes", "seconds", "ms"))
    return rf"(?P<sign>[-+])?\s?p?{days}t?(?:\+?{SPAN}|{rest})"


DURATION = _duration()


def _matching(column: Any, pattern: str) -> Any:
    import pyarrow.compute as pc

    return pc.extract_regex(column, f"^(?:{pattern})$")


def _part(found: Any, name: str, default: float = 0.0) -> Array:
    """A group of a pattern as numbers; the default where it is absent, NaN where the pattern did not match."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.struct_field(found, name)
    empty = pc.equal(text, "")
    number = pc.cast(pc.replace_substring(pc.if_else(empty, str(default), text), ",", "."), pa.float64())
    return np.asarray(numpy_array(number), dtype=np.float64)


def dates(column: Any, order: str) -> Array:
    """Dates, with or without a time of day, as seconds since 1970-01-01."""
    import pyarrow.compute as pc

    if order == NAMED:
        for pattern, reordered in REORDERED:
            column = pc.replace_substring_regex(column, pattern, reordered)
    found = _matching(column, DATES[order])
    year, day = _part(found, "year"), _part(found, "day")
    month = _named_months(found) if order == NAMED else _part(found, "month")
    year = np.where(year < 100, year + np.where(year < 70, 2000, 1900), year)
    hour, minute, second = (_part(found, name) for name in ("hour", "minute", "second"))
    hour = _of_day(hour, found)
    good = (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60) & (second < 61)
    good &= day <= _days_in(year, month)
    days = _days_since_1970(year, month, day)
    seconds = days * 86400.0 + hour * 3600.0 + minute * 60.0 + second - _offset(pc.struct_field(found, "zone"))
    return np.where(good, seconds, np.nan)


def _of_day(hour: Array, found: Any) -> Array:
    """Hours of the day; with AM or PM they must be 1 to 12, otherwise NaN."""
    import pyarrow.compute as pc

    half = pc.utf8_lower(pc.struct_field(found, "half"))
    morning, evening = (numpy_array(pc.cast(pc.starts_with(half, sign), "int8")) == 1 for sign in "ap")
    if not (morning.any() or evening.any()):
        return hour
    good = (hour >= 1) & (hour <= 12) | ~(morning | evening)
    return np.where(good, np.where(morning | evening, np.mod(hour, 12), hour) + 12 * evening, np.nan)


def _named_months(found: Any) -> Array:
    import pyarrow.compute as pc

    encoded = pc.fill_null(pc.utf8_lower(pc.struct_field(found, "month")), "").dictionary_encode()
    number = [MONTHS.index(name) + 1.0 if name in MONTHS else np.nan for name in encoded.dictionary.to_pylist()]
    return np.asarray(np.array(number)[numpy_array(encoded.indices)])


def _days_in(year: Array, month: Array) -> Array:
    lengths = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.float64)
    safe = np.where((month >= 1) & (month <= 12), month, 0).astype(np.int64)
    leap = (np.mod(year, 4) == 0) & ((np.mod(year, 100) != 0) | (np.mod(year, 400) == 0))
    return np.asarray(lengths[safe] + (leap & (month == 2)))


def _days_since_1970(year: Array, month: Array, day: Array) -> Array:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, computed from 1 March of the year 0."""
    y = year - (month <= 2)
    era = np.floor(y / 400)
    of_era = y - era * 400
    of_year = np.floor((153 * (month + np.where(month > 2, -3, 9)) + 2) / 5) + day - 1
    return np.asarray(era * 146097 + of_era * 365 + np.floor(of_era / 4) - np.floor(of_era / 100) + of_year - 719468)


def _offset(zone: Any) -> Array:
    """UTC offset of a time zone in seconds; 0 without a zone."""
    import pyarrow.compute as pc

    encoded = pc.fill_null(zone, "").dictionary_encode()
    ahead = []
    for text in encoded.dictionary.to_pylist():
        digits = re.sub(r"\D", "", text)
        seconds = int(digits[:2]) * 3600 + int(digits[2:] or 0) * 60 if digits else 0
        ahead.append(-seconds if text.startswith("-") else seconds)
    return np.asarray(np.array(ahead, dtype=np.float64)[numpy_array(encoded.indices)])


def clock(column: Any) -> Array:
    """Times of day and durations, h:mm or h:mm:ss, as seconds."""
    found = _matching(column, rf"(?P<sign>-)?{SPAN}(?:\s?{HALF})?")
    return np.where(_negative(found), -1.0, 1.0) * _span(found, _of_day(_part(found, "hour"), found))


def _span(found: Any, hour: Array) -> Array:
    return np.asarray(hour * 3600 + _part(found, "minute") * 60 + _part(found, "second"))


def _negative(found: Any) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    return np.asarray(numpy_array(pc.cast(pc.equal(pc.struct_field(found, "sign"), "-"), "int8")) == 1)


def units(column: Any) -> Array:
    """Durations with units, as seconds; before a clock time the sign applies to the days only, as in -1 days +23:59:00."""
    import pyarrow.compute as pc

    iso = pc.match_substring_regex(column, r"^[-+]?P[\dT]")
    found = _matching(pc.if_else(iso, pc.utf8_lower(column), column), DURATION)
    parts = sum(_part(found, name) * length for name, (length, _) in UNITS.items())
    written = sum(_there(found, name).astype(np.int64) for name in (*UNITS, "hour"))
    span, sign = _span(found, _part(found, "hour")), np.where(_negative(found), -1.0, 1.0)
    seconds = sign * parts + np.where(_there(found, "day") | _there(found, "week"), 1.0, sign) * span
    return np.where(written > 0, seconds, np.nan)


def _there(found: Any, name: str) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    return np.asarray(numpy_array(pc.cast(pc.not_equal(pc.struct_field(found, name), ""), "int8")) == 1)
