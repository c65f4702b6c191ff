"""Type and number format of text columns, detected over all cells: plain numbers, another format, or text."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from likely.errors import LikelyWarning
from likely.kernels.parallel import cached_property
from likely.schema import CATEGORY
from likely.sources.batch import Batch, Frame
from likely.sources.cell_values import DECIMAL, FIRST_FOUR, NOTHING, TEXT, detect_text_type, starts_as_text
from likely.sources.missing_tokens import MissingTokens
from likely.sources.number_formats import (
    PLAIN,
    DetectedFormat,
    FormatDetector,
    FormatResolver,
    NumberFormat,
    are_times,
    candidates,
    evidence_of,
    may_be_numbers,
)
from likely.sources.wrapper import SourceWrapper

if TYPE_CHECKING:
    from likely.sources import ReadOptions

TextBatches = Iterable[tuple[Frame, Mapping[str, Any]]]  # batches, and their text columns
ReadColumns = Callable[[list[str]], TextBatches]  # reads some columns from the first row
FIRST_CELLS = 1_000  # cells that are tested against the formats stored in a model


def detect_formats(
    read_columns: ReadColumns,
    names: list[str],
    reading: ReadOptions,
    label: str,
    *,
    semicolons: bool = False,
    decimals: Iterable[str] = (),
) -> dict[str, DetectedFormat]:
    """Formats of text columns; columns without one are left out. Ambiguous formats and exceptions are warnings.

    `decimals` are plain numbers with points. Where other columns have decimal commas, 1.520 among them is a thousand.
    """
    kept = _detect(read_columns, names, reading, semicolons, decimals)
    warn_of_formats(kept, label)
    return {name: each for name, each in kept.items() if name in names or each.code != PLAIN}


def _detect(
    read_columns: ReadColumns, names: list[str], reading: ReadOptions, semicolons: bool = False, decimals: Iterable[str] = ()
) -> dict[str, DetectedFormat]:
    detectors = _run_detectors(read_columns, names, reading)
    evidence = evidence_of((each.result() for each in detectors.values()), semicolons)
    if evidence.comma and (others := list(decimals)):
        detectors |= _run_detectors(read_columns, others, reading)
        evidence = evidence_of((each.result() for each in detectors.values()), semicolons)
    found = {name: each.result(evidence) for name, each in detectors.items()}
    return {name: each for name, each in found.items() if each is not None}


def _run_detectors(read_columns: ReadColumns, names: list[str], reading: ReadOptions) -> dict[str, FormatDetector]:
    detectors = {name: FormatDetector(_candidates(reading, name)) for name in names}
    for frame, columns in read_columns(names) if detectors else ():
        for name, each in detectors.items():
            if each.candidates:
                each.update(columns[name], frame.start, frame.missing.of(name))
    return detectors


def warn_of_formats(found: Mapping[str, DetectedFormat], label: str) -> None:
    """Warn of cells that are not numbers, and of ambiguous formats."""
    for name, each in found.items():
        if each.non_numeric or each.alternative is not None:
            warnings.warn(f"column {name!r} of {label}: {each.description}", LikelyWarning, stacklevel=2)


def redetect_formats(
    columns: Mapping[str, Any], gaps: MissingTokens, reading: ReadOptions, read_columns: ReadColumns, semicolons: bool = False
) -> dict[str, DetectedFormat]:
    """Formats of the columns whose first cells do not match the formats stored in the model.

    If the decimal sign or the order of dates differs, the formats of all numbers or dates are detected again: 1.520, 1,520
    and 03/04/2025 are ambiguous, and the other columns of this table decide, not those of the training data.
    """
    known = {name: each for name, each in reading.formats.items() if name in columns}
    new = {n for n, f in known.items() if not f.reads(as_text(columns[n][:FIRST_CELLS]), gaps.in_numbers(n))}
    if not new:
        return {}
    found = _detect(read_columns, list(known), reading, semicolons)
    signs = any(each.decimal not in ("", known[name].decimal) for name, each in found.items())
    sure = {each.code for each in found.values() if each.alternative is None} & {"ddmy", "dmdy"}
    orders = bool(sure) and any(each.code in {"ddmy", "dmdy"} - sure for each in known.values())
    return {n: each for n, each in found.items() if n in new or (orders if are_times(known[n].code) else signs)}


def _candidates(reading: ReadOptions, name: str) -> list[str]:
    """Formats allowed by the settings; a column known to a model stays numeric or a time, as there."""
    known = reading.formats.get(name)
    kind = None if known is None else "times" if are_times(known.code) else "numbers"
    return candidates(reading.decimal, reading.thousands, reading.dates, kind)


def text_columns(frame: Frame) -> list[str]:
    """Text columns of a frame, dictionary-encoded or not."""
    import pyarrow as pa

    t = pa.types

    def is_text(kind: Any) -> bool:
        inner = kind.value_type if t.is_dictionary(kind) else kind
        return bool(t.is_string(inner) or t.is_large_string(inner) or t.is_string_view(inner))

    return [name for name, column in frame.columns.items() if not isinstance(column, list) and is_text(column.type)]


class TextAsNumbers:
    """Number formats of the text columns of a typed source, by the rule of text files over all rows."""

    def __init__(
        self, reading: ReadOptions, label: str, reread: Callable[[Mapping[str, str] | None], Iterator[Batch]]
    ) -> None:
        self.reading, self.label, self.reread = reading, label, reread
        self.formats: dict[str, NumberFormat] | None = None
        self.resolved: dict[str, NumberFormat | None] = {}
        self._plain: set[str] = set()

    def _redetect(self, frame: Frame) -> None:
        columns = {name: frame.columns[name] for name in text_columns(frame)}
        found = redetect_formats(columns, frame.missing, self.reading, self._text_batches)
        warn_of_formats(found, self.label)
        self.formats = {name: each.as_number_format() for name, each in found.items()}

    def batches(self, kinds: Mapping[str, str] | None, declared: Iterable[str] = ()) -> Iterator[Batch]:
        """The rows with the formats of their text columns; `declared` columns are always categories."""
        for batch in self.reread(kinds):
            if not isinstance(batch, Frame):
                yield batch
                continue
            if kinds is None and self.formats is None and not self.reading.formats:
                aside = set(declared)
                self.formats = self._detect_formats([name for name in text_columns(batch) if name not in aside], batch)
            if self.formats is None and self.reading.formats:
                self._redetect(batch)
            # One for each batch: kept here, it would refer to what refers to it, and rows would wait for the garbage collector.
            resolve = FormatResolver(self._resolve, self._plain)
            yield replace(batch, formats=dict(self.reading.formats) | (self.formats or {}), resolve=resolve)

    def _detect_formats(self, names: list[str], first: Frame) -> dict[str, NumberFormat]:
        """Formats of text columns; the first batch, which is at hand, decides for most of them."""
        found, numeric_candidates = dict.fromkeys(names, NOTHING), set[str]()
        for frame in itertools.chain([first], self._frames(names)):
            for name in [name for name, seen in found.items() if seen < TEXT]:
                column, missing = frame.columns[name], frame.missing.of(name)
                text = starts_as_text(as_text(column[:FIRST_FOUR]), missing)  # a dictionary is decoded only if need be
                found[name] = TEXT if text else max(found[name], detect_text_type(as_text(column), missing))
                if found[name] >= DECIMAL and name not in numeric_candidates and may_be_numbers(column):
                    numeric_candidates.add(name)
            if all(seen >= TEXT for seen in found.values()):
                break
        plain = {
            n: NumberFormat(PLAIN, (), "numbers, written as text") for n, seen in found.items() if NOTHING < seen <= DECIMAL
        }
        wanted = [name for name in names if name in numeric_candidates and found[name] == TEXT]
        decimals = [name for name in names if name in numeric_candidates and found[name] == DECIMAL]
        formed = detect_formats(self._text_batches, wanted, self.reading, self.label, decimals=decimals)
        return plain | {name: each.as_number_format() for name, each in formed.items()}

    def _text_batches(self, names: list[str]) -> TextBatches:
        return ((f, {name: as_text(f.columns[name]) for name in names}) for f in self._frames(names))

    def _frames(self, names: list[str]) -> Iterator[Frame]:
        for batch in self.reread(dict.fromkeys(names, CATEGORY)) if names else ():
            assert isinstance(batch, Frame)
            yield batch

    def _resolve(self, name: str) -> NumberFormat | None:
        """Format of a column that differs from that of the rows the model was learned from."""
        if name not in self.resolved:
            found = detect_formats(self._text_batches, [name], self.reading, self.label).get(name)
            self.resolved[name] = found.as_number_format() if found else None
        return self.resolved[name]


@dataclass(frozen=True)
class TypedFile(SourceWrapper):
    """A file with typed cells; its text columns follow the rule of text files."""

    reading: ReadOptions

    @cached_property
    def text(self) -> TextAsNumbers:
        """Number formats of its text columns."""
        return TextAsNumbers(self.reading, self.label, self.inner.batches)

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        yield from self.text.batches(kinds, getattr(self.inner, "declared", ()))


def as_text(column: Any) -> Any:
    """An Arrow text column in a type that Arrow can strip."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return pc.cast(column, pa.large_string()) if pa.types.is_string_view(column.type) else column
