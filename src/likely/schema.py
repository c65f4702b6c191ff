"""What columns mean: names, kinds and domains.

Never: data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from numbers import Real
from typing import Any

from likely.errors import DataError
from likely.kernels.parallel import cached_property
from likely.plots.shown import Shown, ShownTable

CATEGORY, NUMBER, TEXT = "category", "number", "text"
EVERY_FAMILY = "every family was asked for: a plain model, nothing is fitted on top of the counts"
FEW_VALUES = 1_000  # texts of a column whose places in another column are remembered
BINS = "bins"  # the form of a target whose classes are bins of a column of numbers
CALENDAR = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
              "December"),
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One column as a model uses it.

    Attributes
    ----------
    name : str
        Its name.
    kind : str
        "category", "number" or "text".
    values : tuple
        The categories that were seen, sorted.
    reason : str
        Why it is used so.
    guessed : bool
        Whether no cell was seen, so that the kind stands until one is.
    taken : tuple of (str, int)
        Texts that were read as missing, and how often.
    form : str
        How its numbers or dates are written in text.
    asked_for : bool
        Whether its family was named rather than chosen.
    """

    name: str
    kind: str
    values: tuple[Any, ...] = ()
    reason: str = field(default="", compare=False)
    guessed: bool = field(default=False, compare=False)  # no cell was read: the kind is a guess until another table has one
    # Texts that were read as missing when the model was learned, and how often each occurred.
    taken: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    # How numbers or dates are written in text (see likely.sources.number_formats); "weekday/" and the form of the dates
    # for a part of dates, "bins" for bins of a column of numbers.
    form: str = field(default="", compare=False)
    asked_for: bool = field(default=False, compare=False)  # whether its family was named by the user rather than chosen

    @cached_property
    def code(self) -> dict[Any, int]:
        """The code of each known value."""
        return {value: place for place, value in enumerate(self.values)}

    @cached_property
    def has_few_texts(self) -> bool:
        """Whether all values are texts, and few."""
        return len(self.values) <= FEW_VALUES and all(type(value) is str for value in self.values)

    def codes(self, values: Sequence[Any]) -> list[int]:
        """The code of each given value; one past the last for an unknown value.

        Parameters
        ----------
        values : sequence
            The values.

        Returns
        -------
        list of int
            Their codes.
        """
        unseen = len(self.values)
        return [self.code.get(self.canonical(value), unseen) for value in values]

    def canonical(self, value: Any) -> Any:
        """The value in the spelling of this column: 1, "1", 1.0 and True are equal, the texts "01" and "1" are not.

        A new text becomes an integer where the column holds integers, so that classes read from a file keep one type.

        Parameters
        ----------
        value : object
            Any value.

        Returns
        -------
        object
            The value as the column has it.
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
        """Values in order: bins by their edges, weekdays and months by the calendar, others sorted.

        Parameters
        ----------
        values : iterable
            The values.

        Returns
        -------
        tuple
            The values in order.
        """
        named = CALENDAR.get(self.form.partition("/")[0])
        if named:
            return tuple(sorted(ordered(values), key=lambda value: named.index(value) if value in named else len(named)))
        return tuple(sorted(ordered(values), key=_lower_edge)) if self.form == BINS else ordered(values)

    def union(self, other: Column) -> Column:
        """The column with the values of both.

        Parameters
        ----------
        other : Column
            The same column of another table.

        Returns
        -------
        Column
            The column of both tables.
        """
        if self.kind != other.kind:
            raise DataError(
                f"column {self.name!r} holds {_plural(self.kind)} on one side and {_plural(other.kind)} on the other: "
                f"learn both with the same families={{{self.name!r}: ...}}",
                column=self.name,
            )
        known = replace(self, guessed=self.guessed and other.guessed) if self.guessed else self
        if other.taken:
            known = replace(known, taken=_summed(self.taken, other.taken))
        if self.values == other.values and _same_types(self.values, other.values):
            return known
        return replace(known, values=self.in_order(one_of_alike([*self.values, *other.values])))


def _summed(one: Iterable[tuple[str, int]], other: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    counts = Counter(dict(one))
    counts.update(dict(other))
    return tuple((token, n) for token, n in counts.most_common() if n > 0)


@dataclass(frozen=True)
class Schema(Shown):
    """The target with its classes, the columns that are used, and those left out.

    Attributes
    ----------
    target : Column
        The target; its values are the classes.
    columns : tuple of Column
        The columns that the model uses.
    ignored : tuple of (str, str)
        The columns that were left out, each with the reason.
    """

    target: Column
    columns: tuple[Column, ...]
    ignored: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in their own type, sorted."""
        return self.target.values

    @property
    def every_family_asked_for(self) -> bool:
        """Whether a family was named for every column: then nothing is fitted on top of the counts."""
        # A part of a date is asked for by itself, without a family; and the words of a text have weights even so.
        return bool(self.columns) and all(c.asked_for and "/" not in c.form and c.kind != TEXT for c in self.columns)

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """Columns by name."""
        return {column.name: column for column in self.columns}

    def taken_back(self) -> Schema:
        """The schema of rows to be forgotten: their counts of texts read as missing are negative."""
        target, *columns = (
            replace(c, taken=tuple((token, -n) for token, n in c.taken)) for c in (self.target, *self.columns)
        )
        return replace(self, target=target, columns=tuple(columns))

    def union(self, other: Schema) -> Schema:
        """The schema with the classes and values of both.

        Parameters
        ----------
        other : Schema
            The schema of another table of the same columns.

        Returns
        -------
        Schema
            The schema of both tables.
        """
        if self.by_name.keys() != other.by_name.keys():
            odd = sorted(self.by_name.keys() ^ other.by_name.keys())
            raise DataError(f"columns {odd} are on one side only: learn both from the same columns")
        if self.target.name != other.target.name:
            raise DataError(f"the targets differ: {self.target.name!r} and {other.target.name!r}")
        columns = tuple(column.union(other.by_name[column.name]) for column in self.columns)
        return replace(self, target=self.target.union(other.target), columns=columns)

    def _shown_tables(self) -> list[ShownTable]:
        """The columns: name, kind, number of values, why it was read so, and what was taken as missing."""
        rows = [
            {"column": c.name, "kind": c.kind, "values": len(c.values) if c.kind == CATEGORY else None, "read as": c.reason,
             "taken as missing": in_words(dict(c.taken)) if c.taken else None}
            for c in self.columns
        ]  # fmt: skip
        left = [{"column": name, "left out because": reason} for name, reason in self.ignored]
        title = f"{self!r}; {EVERY_FAMILY}" if self.every_family_asked_for else repr(self)
        return [ShownTable(title, rows), *([ShownTable("Left out", left)] if left else [])]

    def to_dict(self) -> dict[str, Any]:
        """Target, columns and columns left out as plain data."""
        return {
            "target": {"name": self.target.name, "classes": [str(label) for label in self.classes]},
            "columns": [
                {"name": c.name, "kind": c.kind, "reason": c.reason, "values": [str(value) for value in c.values]}
                for c in self.columns
            ],
            "ignored": [{"name": name, "reason": reason} for name, reason in self.ignored],
            "every_family_asked_for": self.every_family_asked_for,
        }

    def __repr__(self) -> str:
        return f"<Schema of {self.target.name!r}: {len(self.classes)} classes, {len(self.columns)} columns>"

    def __str__(self) -> str:
        lines = [f"target {self.target.name!r}: {len(self.classes)} classes{_taken(self.target)}"]
        lines += [
            f"{c.name!r}: {c.kind}{_known(c)}{' (' + c.reason + ')' if c.reason else ''}{_taken(c)}"
            for c in self.columns
        ]
        lines += [f"{name!r}: left out ({reason})" for name, reason in self.ignored]
        lines += [EVERY_FAMILY] if self.every_family_asked_for else []
        return "\n".join(lines)


def places_in(larger: Column, column: Column) -> tuple[int, ...]:
    """Code of each value of a column in a larger column; spellings of one number have one code."""
    return (_places_of_texts if larger.has_few_texts else _places)(larger, column)


def _places(larger: Column, column: Column) -> tuple[int, ...]:
    code = larger.code
    return tuple(code[v] if v in code else code[larger.canonical(v)] for v in column.values)


_places_of_texts = lru_cache(256)(_places)  # every batch of a table has the same texts, mostly in the same order


def ordered(values: Iterable[Any]) -> tuple[Any, ...]:
    """The values sorted; where they cannot be compared, numbers first, then text, then by type and repr."""
    distinct = list(values)
    try:
        return tuple(sorted(distinct))
    except TypeError:
        return tuple(sorted(distinct, key=_rank))


def _lower_edge(label: Any) -> float:
    """Lower edge of a bin, from its label; other labels are last."""
    first = str(label).removeprefix("above ").partition(" to ")[0]
    try:
        return -math.inf if first == "up" else float(first)
    except ValueError:
        return math.inf


def _rank(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Real):  # 1, 1.0 and True are equal: they must have one rank
        return (0, value)
    return (1, value) if isinstance(value, str) else (2, type(value).__name__, repr(value))


def plain(value: Any) -> Any:
    """A NumPy scalar as Python value; others unchanged."""
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value


def is_missing(value: Any) -> bool:
    """Whether a plain Python value is missing: None, NaN, NaT, pandas.NA."""
    if value is None or value is math.nan:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return True


def one_of_alike(values: Sequence[Any]) -> list[Any]:
    """The distinct values: where a text and a number are equal, the number is kept, whichever came first.

    This is the one rule, within a table and between tables that are added. A sum must not depend on the order of its parts, so
    texts are compared with the numbers of all sides, and once more with what they were read as.
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


def _same_types(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return list(map(type, one)) == list(map(type, other)) or all(map(_same_type, one, other))


def _same_type(one: Any, other: Any) -> bool:
    return type(one) is type(other)


def _spellings(value: Any) -> list[str]:
    """Spellings of a value other than text in a column of text."""
    if isinstance(value, bool):
        return [str(value), str(value).lower(), str(value).upper(), str(int(value)), str(float(value))]
    if isinstance(value, int):
        return [str(value), f"{value}.0"]
    if isinstance(value, float) and value.is_integer():
        return [str(int(value)), str(value)]
    return [str(value)]


def _readings(text: str) -> list[Any]:
    """Values of a text in a column of numbers or booleans."""
    if text.lower() in ("true", "false"):
        return [text.lower() == "true"]
    for read in (int, float):  # integers first: a float could round to a neighbouring integer
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
    """Tokens and how often each occurred: `'NA' 12 times, blank once`."""
    pairs = ((repr(token) if token else "blank", n) for token, n in counts.items())
    return ", ".join(f"{token} {'once' if n == 1 else f'{n:,} times'}" for token, n in pairs)


def _known(column: Column) -> str:
    return f", {len(column.values)} values" if column.kind == CATEGORY else ""


def look_alikes(values: Sequence[Any]) -> list[tuple[str, ...]]:
    """Groups of texts that differ only by case or blanks."""
    found: dict[str, list[str]] = {}
    for value in values:
        if isinstance(value, str):
            found.setdefault(" ".join(value.split()).casefold(), []).append(value)
    return [tuple(alike) for alike in found.values() if len(alike) > 1]


def alike_message(name: str, alike: Sequence[tuple[str, ...]], most: int = 3) -> str:
    """Message about a column with such values."""
    shown = "; ".join(" and ".join(map(repr, group[:4])) for group in alike[:most])
    more = f" and {len(alike) - most:,} more such groups" if len(alike) > most else ""
    return f"column {name!r}: {shown}{more} differ only by case or blanks, and count as different values"
