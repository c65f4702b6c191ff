"""Folders of texts and mails: the folder that a text lies in is its label.

A folder of folders has one folder a class; files that lie beside those folders have no label. A folder without folders is
one class, called like the folder. An mbox file is a class of its own, called like the file, unless it lies in the folder
of a class. Text that is not UTF-8 is read as Latin-1, and how often that happened is said.
"""

from __future__ import annotations

import codecs
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from likely.errors import DataError, LikelyWarning
from likely.schema import TEXT
from likely.sources.arrays import arrow_array
from likely.sources.batch import Batch, Frame
from likely.sources.gaps import Gaps
from likely.sources.mails import Read, decode, is_mbox, mail_text, mbox_mails, whole
from likely.sources.survey import BOMS

if TYPE_CHECKING:
    from likely.sources import Reading

FILE, WORDS, LABEL = "file", "text", "label"
ENDINGS = (".eml", ".mbox")
TABLES = (".csv", ".tsv", ".parquet", ".pq", ".json", ".jsonl", ".ndjson", ".arrow", ".feather", ".ipc", ".likely")
HEAD = 4_096  # bytes that show whether a file is text
BATCH_ROWS = 4_096
BATCH_SIGNS = 1 << 24  # characters: long documents make short batches, so that memory stays flat
FEW = 3  # files that are named in a warning


class Found(NamedTuple):
    """A file to be read, and the label of what it holds; None where it lies in no class."""

    path: str
    label: str | None


class Letter(NamedTuple):
    """A text with its label and where it lies."""

    file: str
    text: str
    label: str | None


@dataclass(frozen=True)
class Pages(Frame):
    """Texts, their labels and the files that they came from; a file's name says nothing about its class."""

    def kind(self, name: str) -> tuple[str | None, str]:
        """Texts are texts, however short; the name of a file is no evidence."""
        if name == FILE:
            return None, "the name of the file"
        return (TEXT, "the text of each file") if name == WORDS else super().kind(name)


@dataclass(frozen=True)
class Letters:
    """Texts and mails in folders and mailboxes, read file by file: the columns are `file`, `text` and `label`."""

    paths: tuple[str, ...]
    reading: Reading
    label: str
    partial: bool = False
    said: set[str] = field(default_factory=set, compare=False)  # warnings: one is enough, however often files are read

    target: ClassVar[str] = LABEL  # what is predicted where nothing else is asked for
    shown: ClassVar[tuple[str, ...]] = (FILE,)  # what stands beside predictions: whole mails would hide them

    @property
    def missing(self) -> Gaps:
        """Nothing in a folder stands for a missing cell, unless it was asked for: a class may be called "none"."""
        return self.reading.gaps(False)

    def aimed(self, target: str) -> Letters:
        """Labels are missing by the list of all columns."""
        return self

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The texts, in the order of their names."""
        rows: list[Letter] = []
        start = signs = 0
        odd = Oddities()
        for letter in self._letters(odd):
            rows.append(letter)
            signs += len(letter.text)
            if len(rows) == BATCH_ROWS or signs > BATCH_SIGNS:
                yield self._pages(rows, start)
                start, signs, rows = start + len(rows), 0, []
        if rows:
            yield self._pages(rows, start)
        elif not start:
            raise self._nothing(odd)
        self._say(odd, start + len(rows))

    def _pages(self, rows: Sequence[Letter], start: int) -> Pages:
        import pyarrow as pa

        kinds = {FILE: pa.string(), WORDS: pa.large_string(), LABEL: pa.string()}
        cells = zip(*rows, strict=True)
        columns = {name: arrow_array(column, kind) for (name, kind), column in zip(kinds.items(), cells, strict=True)}
        return Pages(columns, len(rows), start, self.missing)

    def _letters(self, odd: Oddities) -> Iterator[Letter]:
        """Every text, once it is read; what is no text is noted."""
        for found in (found for path in self.paths for found in _files(path, odd)):
            try:
                yield from self._read(found, odd)
            except OSError as error:
                fault = f"{found.path!r} cannot be read: {error.strerror}"
                if self.reading.on_bad_rows == "error":
                    raise DataError(fault, remedy="allow it, or pass on_bad_rows='skip' (--on-bad-rows skip)") from None
                if fault not in self.reading.rejects:
                    self.reading.rejects.append(fault)

    def _read(self, found: Found, odd: Oddities) -> Iterator[Letter]:
        path = found.path
        ending = os.path.splitext(path)[1].lower()
        if os.path.exists(path) and not os.path.isfile(path):  # a pipe would keep us waiting
            odd.note("no text", path)
            return
        with open(path, "rb") as file:
            head = file.read(HEAD)
            file.seek(0)
            if ending in TABLES:
                odd.note("tables", path)
            elif ending == ".eml":
                yield self._letter(path, mail_text(file.read()), found.label, odd)
            elif ending == ".mbox" or is_mbox(head):
                for number, mail in enumerate(mbox_mails(file), start=1):
                    yield self._letter(f"{path}#{number}", mail_text(mail), found.label, odd)
            else:
                named = bool(_bom(head) or self.reading.encoding)
                read = None if b"\0" in head and not named else self._decoded(file.read())
                if read is None or "\0" in read.text:
                    odd.note("no text", path)
                else:
                    yield self._letter(path, read, found.label, odd)

    def _letter(self, file: str, read: Read, label: str | None, odd: Oddities) -> Letter:
        if read.guessed:
            odd.note("guessed", file)
        return Letter(_spelled(file), read.text, label)

    def _decoded(self, raw: bytes) -> Read:
        """A text file's own encoding: the one asked for, the one its first bytes tell of, UTF-8, or Latin-1."""
        encoding = self.reading.encoding or _bom(raw)
        if not encoding:
            return decode(raw)
        try:
            return Read(whole(raw.decode(encoding)))
        except ValueError:
            return Read(whole(raw.decode(encoding, "replace")), guessed=True)

    def _nothing(self, odd: Oddities) -> DataError:
        if "tables" in odd.first:
            one = odd.first["tables"][0]
            pattern = os.path.join(os.path.dirname(one), "*" + os.path.splitext(one)[1])
            return DataError(f"{self.label} holds tables, no texts: name them by a glob such as {pattern!r}")
        return DataError(
            f"{self.label} has no texts in it", remedy="put the texts or mails of each class into a folder of their own"
        )

    def _say(self, odd: Oddities, texts: int) -> None:
        encoding = self.reading.encoding
        guessed = f"are not {encoding}: the bytes at fault were replaced" if encoding else (
            "are not UTF-8, or not what their mail declares: they were read as Latin-1 (or pass encoding=)"
        )  # fmt: skip
        meanings = {
            "guessed": f"of {texts:,} texts {guessed}",
            "tables": "tables were left out: a folder is read as texts",
            "no text": "files were left out: they hold no text",
            "empty": "folders have no texts in them",
        }
        for what in odd.number.keys() - self.said:
            files = ", ".join(map(repr, odd.first[what])) + (", ..." if odd.number[what] > FEW else "")
            warnings.warn(f"{odd.number[what]:,} {meanings[what]}: {files}", LikelyWarning, stacklevel=2)
        self.said.update(odd.number)


@dataclass(frozen=True)
class Oddities:
    """What was odd, how often, and in which files first."""

    number: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[str]] = field(default_factory=dict)

    def note(self, what: str, file: str) -> None:
        """One more."""
        self.number[what] += 1
        if self.number[what] <= FEW:
            self.first.setdefault(what, []).append(_spelled(file))


def _files(path: str, odd: Oddities) -> Iterator[Found]:
    """The files behind one path, each with its label."""
    if not os.path.isdir(path):
        yield Found(path, _own_label(path, os.path.basename(os.path.dirname(os.path.abspath(path)))))
        return
    entries = _entries(path)
    folders = [entry for entry in entries if os.path.isdir(entry)]
    beside = None if folders else _spelled(os.path.basename(os.path.abspath(path)))
    for entry in entries:
        if entry not in folders:
            yield Found(entry, _own_label(entry, beside))
            continue
        label, empty = _spelled(os.path.basename(entry)), True
        for file in _below(entry):
            empty = False
            yield Found(file, label)
        if empty:
            odd.note("empty", entry)


def _entries(folder: str) -> list[str]:
    """What lies in a folder, hidden things apart, in the order of the names."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise DataError(f"{folder!r} cannot be read: {error.strerror}") from None
    return [os.path.join(folder, name) for name in names if not name.startswith(".")]


def _below(folder: str) -> Iterator[str]:
    """All files in a folder and in the folders in it; a link to a folder is not followed, since it may lead in circles."""
    for entry in _entries(folder):
        if not os.path.isdir(entry):
            yield entry
        elif not os.path.islink(entry):
            yield from _below(entry)


def _own_label(path: str, folder: str | None) -> str | None:
    """A mailbox is called like its file, any other file like its folder."""
    stem, ending = os.path.splitext(os.path.basename(path))
    return _spelled(stem) if ending.lower() == ".mbox" else folder and _spelled(folder)


def _spelled(name: str) -> str:
    """A name as text: what is not UTF-8 in it is replaced."""
    return os.fsencode(name).decode("utf-8", "replace")


def _bom(head: bytes) -> str | None:
    """The encoding that the first bytes of a file tell of; UTF-8 needs no telling."""
    return next((name for mark, name in BOMS if head.startswith(mark) and mark != codecs.BOM_UTF8), None)


def are_letters(paths: Sequence[str]) -> bool:
    """Whether paths are to be read as texts: folders, mails and mailboxes."""
    return all(os.path.isdir(path) or os.path.splitext(path)[1].lower() in ENDINGS for path in paths)
