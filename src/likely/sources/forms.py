"""How numbers, dates and durations are written in text: which form a column is in, and its cells as float64.

A form is a short text that a model remembers: "" for plain numbers, "n" and the decimal sign and the thousands sign for other
numbers ("n,." reads 1.520,5), "d" and the order of day, month and year for dates ("ddmy" reads 31.12.2024 17:05), "dnamed"
for dates with the English name of the month in any order (31 Dec 2024, December 31, 2024), "t" for times and durations
(1:30:00), "u" for durations with a unit (90 min). Dates are seconds since 1970-01-01, durations are seconds: what typed
dates, times and durations give, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.sources.arrays import numpy_array
from likely.sources.cells import cleaned

Array = NDArray[np.float64]

PLAIN, TYPED_TIMES = "", "times"
NUMBERS = ("n.", "n,", "n.,", "n,.", "n. ", "n, ", "n.'", "n,'")
ORDERS = ("ymd", "dmy", "mdy")
NAMED = "named"
TIMES = (*(f"d{order}" for order in ORDERS), f"d{NAMED}", "t", "u")
FORMS = (PLAIN, TYPED_TIMES, *NUMBERS, *TIMES)
SIGNS = {",": "commas", ".": "points", " ": "blanks", "'": "apostrophes"}
SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "hr": 3600.0, "hour": 3600.0, "d": 86400.0,
           "day": 86400.0, "w": 604800.0, "week": 604800.0}  # fmt: skip
UNIT = r"(?P<amount>[-+]?\d+(?:[.,]\d+)?)\s?(?P<unit>ms|secs?|s|mins?|m|hrs?|hours?|h|days?|d|weeks?|w)"
CURRENCY = r"(?:[$€£¥₹₽₩₺฿]|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|Fr\.|kr|zł))"
CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d{1,9})?))?"
TIME = rf"(?:,?[T ]\s?{CLOCK}\s?(?P<half>[AaPp]\.?[Mm]\.?)?\s?(?P<zone>Z|UTC|GMT|[-+]\d{{2}}:?\d{{2}})?)?"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = rf"(?i:({'|'.join(MONTHS)})(?:uary|ruary|ch|il|e|y|ust|t|tember|ober|ember)?\.?)"
DAY_NAME = r"(?i:(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:day)?[.,]?\s)?"
NTH = r"(\d{1,2})(?i:st|nd|rd|th)?"
YEAR = r"(\d{4}|\d{2})\b"
# What is turned into year, name of the month and day: 3 Mar 2024 and 03-Mar-24; March 3, 2024; 2024-Mar-03.
TURNED = (
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
SPAN = r"(?P<sign>-)?(?P<hour>\d{1,6}):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:[.,]\d{1,9})?))?"
AMOUNT = rf"{CURRENCY}?\s?[-+−]?\s?{CURRENCY}?\s?\d[\d.,:'’/\s\u00a0\u202f-]*"
LIKELY = re.compile(rf"{DAY_NAME}(?:{MONTH}\W*\d|{AMOUNT}).{{0,24}}", re.DOTALL)

CODE = re.compile(r"0\d+")  # 01234 is a code, and no number that was written oddly
ODD_SHARE = 0.01  # of the cells: so many may be no numbers in a column of numbers
ODD_TEXTS = 5  # and so many different ones


def in_words(form: str) -> str:
    """A form as the schema shows it."""
    if form in NUMBERS:
        decimal = "a decimal comma" if form[1] == "," else ""
        thousands = f"thousands {SIGNS[form[2]]}" if len(form) > 2 else ""
        signs = " and ".join(part for part in (decimal, thousands) if part)
        return f"numbers with {signs}" if signs else "numbers with a currency or percent sign"
    if form[:1] == "d":
        named = {NAMED: "month by name", "ymd": "year, month, day", "dmy": "day, month, year", "mdy": "month, day, year"}
        order = named[form[1:]]
        return f"dates ({order}), as seconds since 1970"
    return {"t": "times or durations (h:mm:ss), as seconds", "u": "durations with a unit, as seconds"}.get(
        form, "numbers"
    )


def are_times(form: str) -> bool:
    """Whether a form is of dates, times or durations."""
    return form == TYPED_TIMES or form in TIMES


def promising(column: Any) -> bool:
    """Whether some cells of a column of text begin as numbers or dates do: most texts are told by a few cells."""
    places = sorted({*range(min(4, len(column))), *(len(column) * k // 5 for k in range(5) if len(column))})
    seen = [cell for cell in (column[i].as_py() for i in places) if cell and cell.strip()]
    return bool(seen) and 2 * sum(LIKELY.fullmatch(cell.strip()) is not None for cell in seen) >= len(seen)


def read(column: Any, form: str) -> Array:
    """Cells of text, cleaned, as numbers; NaN where a cell is null or is not written in this form."""
    if form == PLAIN:
        return _plain(column)
    if form in NUMBERS:
        return _numbers(column, form)
    return _dates(column, form[1:]) if form[0] == "d" else _clock(column) if form == "t" else _units(column)


def _matching(column: Any, pattern: str) -> Any:
    import pyarrow.compute as pc

    return pc.extract_regex(column, f"^(?:{pattern})$")


def _plain(column: Any) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    fits = pc.match_substring_regex(column, r"^[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?$")
    return _floats(pc.cast(pc.if_else(fits, column, pa.nulls(1, column.type)[0]), pa.float64()))


def _floats(column: Any) -> Array:
    return np.asarray(numpy_array(column), dtype=np.float64)


def _numbers(column: Any, form: str) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    decimal, thousands = re.escape(form[1]), re.escape(form[2:])
    digits = r"(?:0|[1-9]\d*)"
    whole = rf"(?:[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+|0|[1-9]\d{{0,2}})" if thousands else digits
    bare = pc.replace_substring_regex(column, "[\u00a0\u202f\u2009]", " ")
    bare = pc.replace_substring_regex(pc.replace_substring_regex(bare, "[’`]", "'"), "−", "-")
    bare = pc.replace_substring_regex(bare, rf"^([-+]?)\s?{CURRENCY}\s?([-+]?)|\s?{CURRENCY}$|\s?%$", r"\1\2")
    fits = pc.match_substring_regex(bare, rf"^[-+]?{whole}(?:{decimal}\d+)?$")
    if not _one_sign(column):
        fits = pc.and_(fits, False)
    bare = pc.if_else(fits, bare, pa.nulls(1, bare.type)[0])
    if thousands:
        bare = pc.replace_substring(bare, form[2], "")
    return _floats(pc.cast(pc.replace_substring(bare, form[1], "."), pa.float64()))


def _one_sign(column: Any) -> bool:
    """Whether all cells are in one currency, or all of them percentages: amounts in two are no one column of numbers."""
    import pyarrow.compute as pc

    percent = pc.ends_with(column, "%")
    if percent.true_count:
        return bool(percent.true_count == len(column) - column.null_count)
    signs = pc.struct_field(pc.extract_regex(column, f"(?P<sign>{CURRENCY})"), "sign").drop_null().unique()
    return len(signs) <= 1


def _part(found: Any, name: str, default: float = 0.0) -> Array:
    """A group of a pattern as numbers; what was left out is the default, and NaN where the pattern did not match."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.struct_field(found, name)
    empty = pc.equal(text, "")
    number = pc.cast(pc.replace_substring(pc.if_else(empty, str(default), text), ",", "."), pa.float64())
    return _floats(number)


def _dates(column: Any, order: str) -> Array:
    import pyarrow.compute as pc

    if order == NAMED:
        for pattern, turned in TURNED:
            column = pc.replace_substring_regex(column, pattern, turned)
    found = _matching(column, DATES[order])
    year, day = _part(found, "year"), _part(found, "day")
    month = _named_months(found) if order == NAMED else _part(found, "month")
    year = np.where(year < 100, year + np.where(year < 70, 2000, 1900), year)
    hour, minute, second = (_part(found, name) for name in ("hour", "minute", "second"))
    half = numpy_array(pc.cast(pc.starts_with(pc.utf8_lower(pc.struct_field(found, "half")), "p"), "int8")) * 1.0
    morning = numpy_array(pc.cast(pc.starts_with(pc.utf8_lower(pc.struct_field(found, "half")), "a"), "int8")) * 1.0
    hour = np.where((half == 1) & (hour < 12), hour + 12, np.where((morning == 1) & (hour == 12), 0, hour))
    good = (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60) & (second < 61)
    good &= day <= _days_in(year, month)
    days = _days_since_1970(year, month, day)
    seconds = days * 86400.0 + hour * 3600.0 + minute * 60.0 + second - _offset(pc.struct_field(found, "zone"))
    return np.where(good, seconds, np.nan)


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
    """The number of days in the Gregorian calendar, counted from 1 March of the year 0 as astronomers do."""
    y = year - (month <= 2)
    era = np.floor(y / 400)
    of_era = y - era * 400
    of_year = np.floor((153 * (month + np.where(month > 2, -3, 9)) + 2) / 5) + day - 1
    return np.asarray(era * 146097 + of_era * 365 + np.floor(of_era / 4) - np.floor(of_era / 100) + of_year - 719468)


def _offset(zone: Any) -> Array:
    """What a time zone is ahead of UTC, in seconds; a date without one is taken as it stands."""
    import pyarrow.compute as pc

    encoded = pc.fill_null(zone, "").dictionary_encode()
    ahead = []
    for text in encoded.dictionary.to_pylist():
        digits = re.sub(r"\D", "", text)
        seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60 if digits else 0
        ahead.append(-seconds if text.startswith("-") else seconds)
    return np.asarray(np.array(ahead, dtype=np.float64)[numpy_array(encoded.indices)])


def _clock(column: Any) -> Array:
    import pyarrow.compute as pc

    found = _matching(column, SPAN)
    seconds = _part(found, "hour") * 3600 + _part(found, "minute") * 60 + _part(found, "second")
    below = numpy_array(pc.cast(pc.equal(pc.struct_field(found, "sign"), "-"), "int8")) * 1.0
    return np.where(below == 1, -seconds, seconds)


def _units(column: Any) -> Array:
    import pyarrow.compute as pc

    found = _matching(column, UNIT)
    units = pc.struct_field(found, "unit")
    encoded = pc.fill_null(units, "s").dictionary_encode()
    length = [SECONDS[u] if u in SECONDS else SECONDS[u.removesuffix("s")] for u in encoded.dictionary.to_pylist()]
    return np.asarray(_part(found, "amount") * np.array(length)[numpy_array(encoded.indices)])


@dataclass
class Candidate:
    """One form that a column may be in: how many cells it cannot read, and the first few different ones with their rows."""

    form: str
    failed: int = 0
    odd: dict[str, tuple[int, int]] = field(default_factory=dict)  # text: first row, how often


class Form(NamedTuple):
    """How a column of text is read as numbers: its form, the texts in it that are missing, and what is said of it."""

    form: str = PLAIN
    odd: tuple[str, ...] = ()
    words: str = ""


@dataclass
class Resolver:
    """Finds the form of a column, over all rows of its source, when a cell is not in the form that was expected."""

    find: Callable[[str], Form | None]
    plain: set[str] = field(default_factory=set)  # columns of which some cells were read as plain numbers

    def form(self, name: str) -> Form | None:
        """The form of a column; None if it is in none, or if cells before were read otherwise (1.520 as 1.52)."""
        found = self.find(name)
        return None if found is not None and found.form == "n,." and name in self.plain else found


@dataclass(frozen=True)
class Found:
    """The form of a column, the texts in it that are no numbers, and what else is to be said."""

    form: str
    cells: int
    odd: dict[str, tuple[int, int]]
    instead: str = ""  # another form that reads every cell, too, but differently

    def as_form(self) -> Form:
        """What is needed to read the column."""
        return Form(self.form, tuple(self.odd), self.words)

    @property
    def words(self) -> str:
        """What the schema says of the column."""
        said = in_words(self.form)
        if self.odd:
            text, (row, _) = next(iter(self.odd.items()))
            bad = sum(n for _, n in self.odd.values())
            also = f" and {len(self.odd) - 1} other texts" if len(self.odd) > 1 else ""
            kind = "dates or times" if are_times(self.form) else "numbers"
            said += f"; {self.cells - bad:,} of {self.cells:,} are {kind}; {text!r} in row {row}{also} is not: taken as missing"
        if self.instead:
            said += f"; they could also be {in_words(self.instead)}: {switch(self.instead)}"
        return said


def switch(form: str) -> str:
    """The setting that has a form read."""
    if form[:1] == "d":
        return f"dates='{form[1:]}' (--dates {form[1:]}) reads them so"
    return f"decimal={form[1]!r} (--decimal {form[1]}) reads them so"


class Survey:
    """Looks at all cells of one column of text, batch by batch, and says which form they are in."""

    def __init__(self, forms: Sequence[str]) -> None:
        self.candidates = [Candidate(form) for form in forms]
        self.cells = 0

    def see(self, column: Any, start: int, missing: tuple[str, ...]) -> None:
        """Look at some more cells; candidates that cannot read too many are given up."""
        kept = cleaned(column, missing)
        there = np.asarray(kept.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
        self.cells += int(there.sum())
        rest = []
        for candidate in self.candidates:
            bad = there & np.isnan(read(kept, candidate.form))
            candidate.failed += int(bad.sum())
            for i in np.flatnonzero(bad)[: 200 * ODD_TEXTS].tolist():
                text = kept[i].as_py()
                row, n = candidate.odd.get(text, (start + i + 1, 0))
                candidate.odd[text] = (row, n + 1)
                if len(candidate.odd) > ODD_TEXTS:
                    break
            coded = any(CODE.fullmatch(text) for text in candidate.odd)
            few = candidate.failed < 100 or candidate.failed <= self.cells / 10
            if few and not coded and len(candidate.odd) <= ODD_TEXTS:
                rest.append(candidate)
        self.candidates = rest

    def found(self, decimal_comma: bool = False, order: str | None = None) -> Found | None:
        """The form that reads all cells but a few; None if there is none, and the column is text.

        Where a comma may be either, `decimal_comma` decides; where the order of a date is open, `order` does.
        """
        fit = [c for c in self.candidates if self.cells > c.failed and c.failed <= ODD_SHARE * self.cells]
        if not fit:
            return None
        fewest = min(c.failed for c in fit)
        forms = [c for c in fit if c.failed == fewest]
        best, instead = _preferred([c.form for c in forms], decimal_comma, order)
        chosen = next(c for c in forms if c.form == best)
        return Found(best, self.cells, chosen.odd, instead)


def _preferred(forms: list[str], decimal_comma: bool, order: str | None) -> tuple[str, str]:
    """The form to take among those that fit equally well, and another that reads the cells differently."""
    if "n," in forms and "n.," in forms and "n." not in forms:  # 1,520
        return ("n,", "n.,") if decimal_comma else ("n.,", "n,")
    if "ddmy" in forms and "dmdy" in forms:  # 03/04/2025
        best = f"d{order}" if order in ("dmy", "mdy") else "dmdy"
        return best, "dmdy" if best == "ddmy" else "ddmy"
    return forms[0], ""


def candidates(decimal: str | None, thousands: str | None, dates: str | None, kind: str | None = None) -> list[str]:
    """The forms that come into question under the settings; `kind` is "numbers" or "times" where only those do."""
    signs = {form: (form[1:2] or ".", form[2:]) for form in (PLAIN, *NUMBERS)}
    numbers = [
        form for form, (point, group) in signs.items()
        if decimal in (None, point) and (thousands is None or (point != thousands and group in ("", thousands)))
    ]  # fmt: skip
    times = [form for form in TIMES if form[0] != "d" or dates is None or form[1:] in (dates, "ymd", NAMED)]
    return [*(numbers if kind != "times" else ()), *(times if kind != "numbers" else ())]


def all_alike(found: Iterable[Found | None]) -> tuple[bool, str | None]:
    """Whether some column of a file can only be of decimal commas, and the order of dates that some column can only be in."""
    sure = [each.form for each in found if each is not None and not each.instead]
    comma = any(form in NUMBERS and form[1] == "," for form in sure)
    return comma, next((form[1:] for form in sure if form in ("ddmy", "dmdy")), None)
