"""Formats of numbers, dates and durations in text: detection of a column's format, and parsing to float64.

A format is stored in a model as a short code: "" for plain numbers; "n", decimal sign and thousands sign for other numbers
("n,." is 1.520,5); "d" and the order of day, month and year for dates ("ddmy" is 31.12.2024 17:05), "dnamed" for dates
with the English name of the month in any order (31 Dec 2024, December 31, 2024); "t" for times and durations (1:30:00);
"u" for durations with a unit (90 min). Dates are seconds since 1970-01-01 and durations are seconds, as for typed columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.sources._time_formats import DAY_NAME, MONTH, NAMED, clock, dates, units
from likely.sources.arrow_arrays import numpy_array
from likely.sources.cell_values import cleaned

Array = NDArray[np.float64]

PLAIN, TYPED_TIMES = "", "times"
NUMBERS = ("n.", "n,", "n.,", "n,.", "n. ", "n, ", "n.'", "n,'")
ORDERS = ("ymd", "dmy", "mdy")
TIMES = (*(f"d{order}" for order in ORDERS), f"d{NAMED}", "t", "u")
FORMAT_CODES = (PLAIN, TYPED_TIMES, *NUMBERS, *TIMES)
SIGNS = {",": "commas", ".": "points", " ": "blanks", "'": "apostrophes"}
ISO = "USD EUR GBP CHF JPY CNY INR CAD AUD NZD SEK NOK DKK PLN CZK HUF RON TRY BRL MXN ZAR SGD HKD KRW RUB ILS THB"
CURRENCY = rf"(?:(?:US|CA?|AU?|NZ|HK|S|R)?\$|[€£¥₹₽₩₺₪₫₴₱฿]|(?:{ISO.replace(' ', '|')}|Fr\.|kr|zł|Kč|Ft|Rs\.?))"
AMOUNT = rf"\(?{CURRENCY}?\s?[-+−]?\s?{CURRENCY}?\s?\d[\d.,:'’/\s\u00a0\u202f-]*"
NUMERIC_START = re.compile(rf"{DAY_NAME}(?:{MONTH}\W*\d|-?P[\dT]|{AMOUNT}).{{0,24}}", re.DOTALL)

PLAIN_NUMBER = r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?"
FEW_CELLS = 16  # columns up to this length are compared with a plain number cell by cell
CODE = re.compile(r"0\d+")  # 01234 is an identifier, not a number
MAX_NON_NUMERIC_SHARE = 0.01  # maximum share of cells that do not match the format
MAX_NON_NUMERIC_TEXTS = 5  # maximum number of distinct ones


def describe_format(code: str) -> str:
    """Description of a format in the schema."""
    if code in NUMBERS:
        decimal = "a decimal comma" if code[1] == "," else ""
        thousands = f"thousands {SIGNS[code[2]]}" if len(code) > 2 else ""
        signs = " and ".join(part for part in (decimal, thousands) if part)
        return f"numbers with {signs}" if signs else "numbers with a currency, percent or minus sign"
    if code[:1] == "d":
        named = {NAMED: "month by name", "ymd": "year, month, day", "dmy": "day, month, year", "mdy": "month, day, year"}
        order = named[code[1:]]
        return f"dates ({order}), as seconds since 1970"
    return {"t": "times or durations (h:mm:ss), as seconds", "u": "durations with a unit, as seconds"}.get(
        code, "numbers"
    )


def are_times(code: str) -> bool:
    """Whether a format is of dates, times or durations."""
    return code == TYPED_TIMES or code in TIMES


def may_be_numbers(column: Any) -> bool:
    """Whether at least half of a few sampled cells start like numbers or dates."""
    places = sorted({*range(min(4, len(column))), *(len(column) * k // 5 for k in range(5) if len(column))})
    seen = [cell for cell in (column[i].as_py() for i in places) if cell and cell.strip()]
    return bool(seen) and 2 * sum(NUMERIC_START.fullmatch(cell.strip()) is not None for cell in seen) >= len(seen)


def read(column: Any, code: str) -> Array:
    """Parse cleaned text cells as numbers; NaN where a cell is null or does not match the format."""
    if code == PLAIN:
        return _plain(column)
    if code in NUMBERS:
        return _numbers(column, code)
    return dates(column, code[1:]) if code[0] == "d" else clock(column) if code == "t" else units(column)


def _plain(column: Any) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    fits = pc.match_substring_regex(column, f"^{PLAIN_NUMBER}$")
    return _floats(pc.cast(pc.if_else(fits, column, pa.nulls(1, column.type)[0]), pa.float64()))


def _is_plain(cell: str | None) -> bool:
    return cell is not None and re.fullmatch(PLAIN_NUMBER, cell, re.ASCII) is not None


def _floats(column: Any) -> Array:
    return np.asarray(numpy_array(column), dtype=np.float64)


def _numbers(column: Any, code: str) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    decimal, thousands = re.escape(code[1]), re.escape(code[2:])
    digits = r"(?:0|[1-9]\d*)"
    whole = rf"(?:[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+|0|[1-9]\d{{0,2}})" if thousands else digits
    bare = pc.replace_substring_regex(column, "[\u00a0\u202f\u2009]", " ")
    bare = pc.replace_substring_regex(pc.replace_substring_regex(bare, "[’`]", "'"), "−", "-")
    for end, pattern in ((")", r"^\(([^-+]*)\)$"), ("-", r"^([^-+]*)-$")):  # (1,520) and 1,520-: accounting notation of -1,520
        if pc.any(pc.ends_with(bare, end)).as_py():
            bare = pc.replace_substring_regex(bare, pattern, r"-\1")
    bare = pc.replace_substring_regex(bare, rf"^([-+]?)\s?{CURRENCY}\s?([-+]?)|\s?{CURRENCY}$|\s?%$", r"\1\2")
    exponent = "" if thousands else r"(?:[eE][-+]?\d+)?"
    fits = pc.match_substring_regex(bare, rf"^[-+]?{whole}(?:{decimal}\d+)?{exponent}$")
    if not _one_unit(column):
        fits = pc.and_(fits, False)
    bare = pc.if_else(fits, bare, pa.nulls(1, bare.type)[0])
    if thousands:
        bare = pc.replace_substring(bare, code[2], "")
    return _floats(pc.cast(pc.replace_substring(bare, code[1], "."), pa.float64()))


def _one_unit(column: Any) -> bool:
    """Whether all cells have one currency, or all are percentages; mixed amounts are not one numeric column."""
    import pyarrow.compute as pc

    percent = pc.ends_with(column, "%")
    if percent.true_count:
        return bool(percent.true_count == len(column) - column.null_count)
    signs = pc.struct_field(pc.extract_regex(column, f"(?P<sign>{CURRENCY})"), "sign").drop_null().unique()
    return len(signs) <= 1


@dataclass
class CandidateFormat:
    """A possible format of a column: number of cells that do not match, and the first distinct ones with their rows."""

    code: str
    failed: int = 0
    non_numeric: dict[str, tuple[int, int]] = field(default_factory=dict)  # text: first row, count


class NumberFormat(NamedTuple):
    """Format of a text column that is read as numbers: code, texts read as missing, description."""

    code: str = PLAIN
    non_numeric: tuple[str, ...] = ()
    description: str = ""

    @property
    def decimal(self) -> str:
        """Decimal sign of numbers; empty for dates and times."""
        return "" if are_times(self.code) else self.code[1:2] or "."

    def reads(self, column: Any, missing: tuple[str, ...]) -> bool:
        """Whether all cells of a text column match this format or are missing-value tokens."""
        if self.code == PLAIN and len(column) <= FEW_CELLS and all(map(_is_plain, column.to_pylist())):
            return True  # the usual single row; Arrow's calls cost more than the cells of thousands of short columns
        kept = cleaned(column, (*missing, *self.non_numeric))
        found = read(kept, PLAIN if self.code == TYPED_TIMES else self.code)
        return bool(np.isnan(found).sum() == kept.null_count)


class FormatEvidence(NamedTuple):
    """Evidence of columns with an unambiguous format, for those with an ambiguous one."""

    comma: bool = False  # decimal commas
    point: bool = False  # decimal points
    semicolons: bool = False  # delimiter of the file, usual where the comma is a decimal sign
    order: str | None = None  # order of day, month and year


@dataclass
class FormatResolver:
    """Detects the format of a column over all rows when a cell does not match the expected one."""

    find: Callable[[str], NumberFormat | None]
    plain: set[str] = field(default_factory=set)  # columns with cells already read as plain numbers

    def format(self, name: str) -> NumberFormat | None:
        """Format of a column; None if there is none, or if earlier cells were read otherwise (1.520 as 1.52)."""
        found = self.find(name)
        return None if found is not None and found.code == "n,." and name in self.plain else found


@dataclass(frozen=True)
class DetectedFormat:
    """Detected format of a column, the texts that do not match it, and an alternative if it is ambiguous."""

    code: str
    cells: int
    non_numeric: dict[str, tuple[int, int]]
    alternative: str | None = None  # another code that matches every cell, with other values
    decimal: str = ""  # the decimal sign, if unambiguous

    def as_number_format(self) -> NumberFormat:
        """What is needed to read the column."""
        return NumberFormat(self.code, tuple(self.non_numeric), self.description)

    @property
    def description(self) -> str:
        """Description in the schema and in warnings."""
        text = describe_format(self.code)
        if self.non_numeric:
            first, (row, _) = next(iter(self.non_numeric.items()))
            bad = sum(n for _, n in self.non_numeric.values())
            also = f" and {len(self.non_numeric) - 1} other texts" if len(self.non_numeric) > 1 else ""
            kind = "dates or times" if are_times(self.code) else "numbers"
            text += f"; {self.cells - bad:,} of {self.cells:,} are {kind}; {first!r} in row {row}{also} is not: read as missing"
        if self.alternative is not None:
            other = "numbers with a decimal point" if self.alternative in (PLAIN, "n.") else describe_format(self.alternative)
            text += f"; they could also be {other}: {switch(self.alternative)}"
        return text


def switch(code: str) -> str:
    """The option that selects a format."""
    if code[:1] == "d":
        return f"dates='{code[1:]}' (--dates {code[1:]}) reads them so"
    sign = code[1:2] or "."
    return f"decimal={sign!r} (--decimal {sign}) reads them so"


class FormatDetector:
    """Detects the format of one text column over all its cells, batch by batch."""

    def __init__(self, codes: Sequence[str]) -> None:
        self.candidates = [CandidateFormat(code) for code in codes]
        self.cells = 0
        self.unit_sign = ""  # % or $ (for any currency)

    def update(self, column: Any, start: int, missing: tuple[str, ...]) -> None:
        """Test the candidates on more cells; those with too many mismatches are dropped."""
        texts, place = _distinct(cleaned(column, missing))
        there = place >= 0
        self.cells += int(there.sum())
        self.unit_sign = self.unit_sign or _unit_sign(texts)
        none = np.ones(len(texts), bool) if _never_numbers(texts) else None
        rest = []
        for candidate in self.candidates:
            bad = np.append(np.isnan(read(texts, candidate.code)) if none is None else none, False)[place]
            candidate.failed += int(bad.sum())
            _note_texts(candidate.non_numeric, np.flatnonzero(bad), place, texts, start)
            coded = any(CODE.fullmatch(text) for text in candidate.non_numeric)
            few = candidate.failed < 100 or candidate.failed <= self.cells / 10
            if few and not coded and len(candidate.non_numeric) <= MAX_NON_NUMERIC_TEXTS:
                rest.append(candidate)
        self.candidates = rest

    def result(self, evidence: FormatEvidence | None = None) -> DetectedFormat | None:
        """The format that matches all cells but a few; None if the column is text.

        Where the decimal sign or the order of a date is ambiguous, the evidence of other columns decides.
        """
        fit = [c for c in self.candidates if self.cells > c.failed and c.failed <= MAX_NON_NUMERIC_SHARE * self.cells]
        if not fit:
            return None
        fewest = min(c.failed for c in fit)
        codes = [c for c in fit if c.failed == fewest]
        best, alternative = _preferred([c.code for c in codes], self.unit_sign, evidence or FormatEvidence())
        chosen = next(c for c in codes if c.code == best)
        signs = {NumberFormat(c.code).decimal for c in codes}
        return DetectedFormat(best, self.cells, chosen.non_numeric, alternative, signs.pop() if len(signs) == 1 else "")


def _distinct(column: Any) -> tuple[Any, NDArray[np.int64]]:
    """The distinct texts of a column, and the place of each cell among them, -1 where it is null.

    Every format is tested on the texts: a column of few of them, such as levels, costs as little as its levels.
    """
    import pyarrow as pa

    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    coded = whole.dictionary_encode()
    place = np.asarray(numpy_array(coded.indices.fill_null(-1)), dtype=np.int64)
    return coded.dictionary, place


def _never_numbers(texts: Any) -> bool:
    """Whether every text has a sign that no format has: names such as 5_to_10 need no look at each format."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring(texts, "_")).as_py())


def _note_texts(
    noted: dict[str, tuple[int, int]], bad: NDArray[np.int64], place: NDArray[np.int64], texts: Any, start: int
) -> None:
    """Note texts that do not match a format, with their first row and how often they occur, until there are too many."""
    codes, first, often = np.unique(place[bad[: 200 * MAX_NON_NUMERIC_TEXTS]], return_index=True, return_counts=True)
    for k in np.argsort(first)[: MAX_NON_NUMERIC_TEXTS + 1].tolist():
        text = texts[int(codes[k])].as_py()
        row, n = noted.get(text, (start + int(bad[first[k]]) + 1, 0))
        noted[text] = (row, n + int(often[k]))


def _unit_sign(column: Any) -> str:
    """Unit of the numbers of a column: % for percentages, $ for any currency, or empty."""
    import pyarrow.compute as pc

    if pc.any(pc.ends_with(column, "%")).as_py():
        return "%"
    return "$" if pc.any(pc.match_substring_regex(column, CURRENCY)).as_py() else ""


def _preferred(codes: list[str], unit_sign: str, evidence: FormatEvidence) -> tuple[str, str | None]:
    """The preferred format among those that match equally well, and an alternative that reads the cells differently.

    An amount of money has no three decimals, and a percentage no thousands: that decides before other columns do.
    """
    if "n," in codes and "n.," in codes and "n." not in codes:  # 1,520
        decimal = unit_sign == "%" or (unit_sign != "$" and (evidence.comma or evidence.semicolons))
        return ("n,", "n.,") if decimal else ("n.,", "n,")
    if "n,." in codes and "n." in codes and "n," not in codes and unit_sign != "%":  # 1.520
        plain = PLAIN if PLAIN in codes else "n."
        money = unit_sign == "$" and (evidence.comma or evidence.semicolons)
        if money or (evidence.comma and not evidence.point):
            return "n,.", plain
        return plain, "n,." if unit_sign or evidence.comma else None
    if "ddmy" in codes and "dmdy" in codes:  # 03/04/2025
        best = f"d{evidence.order}" if evidence.order in ("dmy", "mdy") else "dmdy"
        return best, "dmdy" if best == "ddmy" else "ddmy"
    return codes[0], None


def candidates(decimal: str | None, thousands: str | None, dates: str | None, kind: str | None = None) -> list[str]:
    """Format codes allowed by the settings; `kind` restricts them to "numbers" or "times"."""
    signs = {code: (code[1:2] or ".", code[2:]) for code in (PLAIN, *NUMBERS)}
    numbers = [
        code for code, (point, group) in signs.items()
        if decimal in (None, point) and (thousands is None or (point != thousands and group in ("", thousands)))
    ]  # fmt: skip
    times = [code for code in TIMES if code[0] != "d" or dates is None or code[1:] in (dates, "ymd", NAMED)]
    return [*(numbers if kind != "times" else ()), *(times if kind != "numbers" else ())]


def evidence_of(found: Iterable[DetectedFormat | None], semicolons: bool = False) -> FormatEvidence:
    """Evidence from the columns with an unambiguous format."""
    sure = [each for each in found if each is not None and each.alternative is None]
    comma, point = (any(each.decimal == sign for each in sure) for sign in ",.")
    order = next((each.code[1:] for each in sure if each.code in ("ddmy", "dmdy")), None)
    return FormatEvidence(comma, point, semicolons, order)
