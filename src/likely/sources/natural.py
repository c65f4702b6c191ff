"""What columns of text hold by nature, found by looking at all of their cells: plain numbers, another form, or text."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from likely.errors import LikelyWarning
from likely.schema import CATEGORY
from likely.sources.around import Around
from likely.sources.batch import Batch, Frame
from likely.sources.cells import DECIMAL, NOTHING, TEXT, nature
from likely.sources.forms import PLAIN, Form, Found, Resolver, Survey, all_alike, are_times, candidates, promising
from likely.threads import cached_property

if TYPE_CHECKING:
    from likely.sources import Reading

Parts = Iterable[tuple[Frame, Mapping[str, Any]]]  # batches, and their columns as text


def surveyed(
    parts: Parts, names: Iterable[str], reading: Reading, label: str, semicolons: bool = False
) -> dict[str, Found]:
    """The forms of columns of text; those that are in none are left out. What is doubtful is said."""
    looks = {name: Survey(_candidates(reading, name)) for name in names}
    for frame, columns in parts if looks else ():
        for name, look in looks.items():
            if look.candidates:
                look.see(columns[name], frame.start, frame.missing.of(name))
    first = {name: look.found() for name, look in looks.items()}
    comma, order = all_alike(first.values())
    found = {name: look.found(comma or semicolons, order) for name, look in looks.items()}
    kept = {name: each for name, each in found.items() if each is not None}
    for name, each in kept.items():
        if each.odd or each.instead:
            warnings.warn(f"column {name!r} of {label}: {each.words}", LikelyWarning, stacklevel=2)
    return kept


def _candidates(reading: Reading, name: str) -> list[str]:
    """The forms that the settings allow; a column that a model knows holds numbers or times, as it did there."""
    known = reading.forms.get(name)
    kind = None if known is None else "times" if are_times(known.form) else "numbers"
    return candidates(reading.decimal, reading.thousands, reading.dates, kind)


def text_columns(frame: Frame) -> list[str]:
    """The columns of a frame that hold text, coded or not."""
    import pyarrow as pa

    t = pa.types

    def is_text(kind: Any) -> bool:
        inner = kind.value_type if t.is_dictionary(kind) else kind
        return bool(t.is_string(inner) or t.is_large_string(inner) or t.is_string_view(inner))

    return [name for name, column in frame.columns.items() if not isinstance(column, list) and is_text(column.type)]


class TextAsNumbers:
    """What the columns of text of a typed source are read as, found by the rule of text files over all of its rows."""

    def __init__(
        self, reading: Reading, label: str, again: Callable[[Mapping[str, str] | None], Iterator[Batch]]
    ) -> None:
        self.reading, self.label, self.again = reading, label, again
        self.forms: dict[str, Form] | None = None
        self.resolved: dict[str, Form | None] = {}
        self.resolver = Resolver(self._resolve)

    def batches(self, kinds: Mapping[str, str] | None, declared: Iterable[str] = ()) -> Iterator[Batch]:
        """The rows with what is known of their columns of text; `declared` are categories, whatever they look like."""
        for batch in self.again(kinds):
            if not isinstance(batch, Frame):
                yield batch
                continue
            if kinds is None and self.forms is None and not self.reading.forms:
                aside = set(declared)
                self.forms = self._look([name for name in text_columns(batch) if name not in aside])
            yield replace(batch, forms=dict(self.reading.forms) | (self.forms or {}), resolve=self.resolver)

    def _look(self, names: list[str]) -> dict[str, Form]:
        found, hopeful = dict.fromkeys(names, NOTHING), []
        for frame in self._frames(names):
            undecided = [name for name, seen in found.items() if seen < TEXT]
            if not undecided:
                break
            for name in undecided:
                column = as_text(frame.columns[name])
                found[name] = max(found[name], nature(column, frame.missing.of(name)))
                if found[name] == TEXT and promising(column):
                    hopeful.append(name)
        plain = {
            n: Form(PLAIN, (), "numbers, written as text") for n, seen in found.items() if NOTHING < seen <= DECIMAL
        }
        return plain | {name: each.as_form() for name, each in self._surveyed(hopeful).items()}

    def _surveyed(self, names: list[str]) -> dict[str, Found]:
        parts = ((f, {name: as_text(f.columns[name]) for name in names}) for f in self._frames(names))
        return surveyed(parts, names, self.reading, self.label)

    def _frames(self, names: list[str]) -> Iterator[Frame]:
        for batch in self.again(dict.fromkeys(names, CATEGORY)) if names else ():
            assert isinstance(batch, Frame)
            yield batch

    def _resolve(self, name: str) -> Form | None:
        """The form of a column that is not written as it was when the model was learned."""
        if name not in self.resolved:
            found = self._surveyed([name]).get(name)
            self.resolved[name] = found.as_form() if found else None
        return self.resolved[name]


@dataclass(frozen=True)
class TypedFile(Around):
    """A file whose cells have types; its columns of text follow the rule of text files."""

    reading: Reading

    @cached_property
    def text(self) -> TextAsNumbers:
        """What its columns of text are read as."""
        return TextAsNumbers(self.reading, self.label, self.inner.batches)

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        yield from self.text.batches(kinds, getattr(self.inner, "declared", ()))


def as_text(column: Any) -> Any:
    """An Arrow column of text in a type that Arrow can trim."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return pc.cast(column, pa.large_string()) if pa.types.is_string_view(column.type) else column
