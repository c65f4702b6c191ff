"""What columns mean: their names, their kinds and the values they are known to take."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

from likely.errors import DataError
from likely.threads import cached_property

CATEGORY, NUMBER, TEXT = "category", "number", "text"
BINS = "bins"  # the form of a target whose classes are bins of a column of numbers
CALENDAR = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
              "December"),
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One column: its name, whether it holds categories or numbers, and which categories were seen."""

    name: str
    kind: str
    values: tuple[Any, ...] = ()
    reason: str = field(default="", compare=False)
    guessed: bool = field(default=False, compare=False)  # no cell was seen: the kind stands until somebody knows it
    # Texts that were taken for missing when the model was learned, and how often each was found.
    taken: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    # How numbers or dates are written in text (see likely.sources.forms); "weekday/" and the form of the dates for a part
    # of dates, "bins" for bins of a column of numbers.
    form: str = field(default="", compare=False)

    @cached_property
    def code(self) -> dict[Any, int]:
        """The place of each known value."""
        return {value: place for place, value in enumerate(self.values)}

    def codes(self, values: Sequence[Any]) -> list[int]:
        """The place of each given value; a value never seen stands just past the last place."""
        unseen = len(self.values)
        return [self.code.get(self.canonical(value), unseen) for value in values]

    def canonical(self, value: Any) -> Any:
        """The same value as this column writes it: 1, "1", 1.0 and True find each other, the texts "01" and "1" do not.

        A new text is a whole number where the column holds such numbers, so that classes read from a file keep one type.
        """
        if value in self.code or not self.values:
            return value
        forms = _readings(value.strip()) if isinstance(value, str) else _spellings(value)
        new = next((form for form in forms if self._whole and type(form) is int and str(form) == value), value)
        return next((form for form in forms if form in self.code), new)

    @cached_property
    def _whole(self) -> bool:
        return any(type(value) is int for value in self.values)

    def in_order(self, values: Iterable[Any]) -> tuple[Any, ...]:
        """Values in the order of this column: bins by their edges, weekdays and months as in the calendar, others sorted."""
        named = CALENDAR.get(self.form.partition("/")[0])
        if named:
            return tuple(sorted(ordered(values), key=lambda value: named.index(value) if value in named else len(named)))
        return tuple(sorted(ordered(values), key=_lower_edge)) if self.form == BINS else ordered(values)

    def union(self, other: Column) -> Column:
        """The column that knows every value which either of the two knows."""
        if self.kind != other.kind:
            raise DataError(
                f"column {self.name!r} holds {_plural(self.kind)} on one side and {_plural(other.kind)} on the other: "
                f"learn both with the same families={{{self.name!r}: ...}}",
                column=self.name,
            )
        known = replace(self, guessed=self.guessed and other.guessed) if self.guessed else self
        if other.taken:
            known = replace(known, taken=_summed(self.taken, other.taken))
        if self.values == other.values and all(map(_same_type, self.values, other.values)):
            return known
        return replace(known, values=self.in_order(one_of_alike([*self.values, *other.values])))


def _summed(one: Iterable[tuple[str, int]], other: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    counts = Counter(dict(one))
    counts.update(dict(other))
    return tuple((token, n) for token, n in counts.most_common() if n > 0)


@dataclass(frozen=True)
class Schema:
    """The target with its classes, the columns that are used, and those left out with the reason."""

    target: Column
    columns: tuple[Column, ...]
    ignored: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in their own type, sorted."""
        return self.target.values

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """Each column under its name."""
        return {column.name: column for column in self.columns}

    def taken_back(self) -> Schema:
        """The schema of rows that are to be forgotten: what was taken for missing in them counts against the rest."""
        target, *columns = (
            replace(c, taken=tuple((token, -n) for token, n in c.taken)) for c in (self.target, *self.columns)
        )
        return replace(self, target=target, columns=tuple(columns))

    def union(self, other: Schema) -> Schema:
        """The schema of both: every class and every value that either of the two knows."""
        if self.by_name.keys() != other.by_name.keys():
            odd = sorted(self.by_name.keys() ^ other.by_name.keys())
            raise DataError(f"columns {odd} stand on one side only: learn both from the same columns")
        if self.target.name != other.target.name:
            raise DataError(f"the targets differ: {self.target.name!r} and {other.target.name!r}")
        columns = tuple(column.union(other.by_name[column.name]) for column in self.columns)
        return replace(self, target=self.target.union(other.target), columns=columns)

    def __str__(self) -> str:
        lines = [f"target {self.target.name!r}: {len(self.classes)} classes{_taken(self.target)}"]
        lines += [
            f"{c.name!r}: {c.kind}{_known(c)}{' (' + c.reason + ')' if c.reason else ''}{_taken(c)}"
            for c in self.columns
        ]
        lines += [f"{name!r}: left out ({reason})" for name, reason in self.ignored]
        return "\n".join(lines)


def ordered(values: Iterable[Any]) -> tuple[Any, ...]:
    """The values sorted in their own order; where they have none, numbers first, then text, then by type and spelling."""
    distinct = list(values)
    try:
        return tuple(sorted(distinct))
    except TypeError:
        return tuple(sorted(distinct, key=_rank))


def _lower_edge(label: Any) -> float:
    """Where a bin begins, by its name; what is no name of a bin stands last."""
    first = str(label).removeprefix("above ").partition(" to ")[0]
    try:
        return -math.inf if first == "up" else float(first)
    except ValueError:
        return math.inf


def _rank(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Real):  # 1, 1.0 and True are one value: they must stand in one place
        return (0, value)
    return (1, value) if isinstance(value, str) else (2, type(value).__name__, repr(value))


def plain(value: Any) -> Any:
    """A value as Python has it, with NumPy's wrapping taken off."""
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value


def is_missing(value: Any) -> bool:
    """Whether a plain Python value stands for nothing: None, NaN and their kin."""
    if value is None or value is math.nan:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return True


def one_of_alike(values: Sequence[Any]) -> list[Any]:
    """The different values: where a text and a number say the same, the number stays, whichever came first.

    This is the one rule, within a table and between tables that are added up. A sum must not depend on the order of its
    parts, so texts are read against the numbers of all sides, and once more against what they have been read as.
    """
    texts = [value for value in values if isinstance(value, str)]
    others: dict[Any, Any] = {}
    for value in values:
        if not isinstance(value, str) and (value not in others or type(value) is int):  # of 1, 1.0 and True, 1 stays
            others[value] = value
    known = Column("", CATEGORY, tuple(others.values()))
    for _ in range(2 if texts and known.values else 0):
        read = [value for value in map(known.canonical, texts) if not isinstance(value, str)]
        known = replace(known, values=tuple(dict.fromkeys([*known.values, *read])))
    return list(dict.fromkeys([*known.values, *map(known.canonical, texts)]))


def _same_type(one: Any, other: Any) -> bool:
    return type(one) is type(other)


def _spellings(value: Any) -> list[str]:
    """How a value that is no text could be written in a column of text."""
    if isinstance(value, bool):
        return [str(value), str(value).lower(), str(value).upper(), str(int(value)), str(float(value))]
    if isinstance(value, int):
        return [str(value), f"{value}.0"]
    if isinstance(value, float) and value.is_integer():
        return [str(int(value)), str(value)]
    return [str(value)]


def _readings(text: str) -> list[Any]:
    """What a text could stand for in a column of numbers or truths."""
    if text.lower() in ("true", "false"):
        return [text.lower() == "true"]
    for read in (int, float):  # a whole number is read digit by digit: as a float it could become its neighbour
        try:
            return [read(text)]
        except ValueError:
            continue
    return []


def _plural(kind: str) -> str:
    return {CATEGORY: "categories", NUMBER: "numbers"}.get(kind, kind)


def _taken(column: Column) -> str:
    return f"; taken as missing: {in_words(dict(column.taken))}" if column.taken else ""


def in_words(counts: Mapping[str, int]) -> str:
    """Tokens and how often each was found: `'NA' 12 times, blank once`."""
    pairs = ((repr(token) if token else "blank", n) for token, n in counts.items())
    return ", ".join(f"{token} {'once' if n == 1 else f'{n:,} times'}" for token, n in pairs)


def _known(column: Column) -> str:
    return f", {len(column.values)} values" if column.kind == CATEGORY else ""


def look_alikes(values: Sequence[Any]) -> list[tuple[str, ...]]:
    """Texts among the values that differ only by case or blanks, those that do together."""
    found: dict[str, list[str]] = {}
    for value in values:
        if isinstance(value, str):
            found.setdefault(" ".join(value.split()).casefold(), []).append(value)
    return [tuple(alike) for alike in found.values() if len(alike) > 1]


def say_alike(name: str, alike: Sequence[tuple[str, ...]], most: int = 3) -> str:
    """What is said of a column with such values."""
    shown = "; ".join(" and ".join(map(repr, group[:4])) for group in alike[:most])
    more = f" and {len(alike) - most:,} more such groups" if len(alike) > most else ""
    return f"column {name!r}: {shown}{more} differ only by case or blanks, and count as different values"
