"""Folders of texts and mails, labelled by folder.

In a folder of folders, each folder is a class, and files beside the folders have no label. A folder without folders is one
class, named like the folder. An mbox file is a class named like the file, unless it is in the folder of a class. Text that is
not UTF-8 is read as Latin-1, with a warning that counts such files.
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
from likely.sources._csv_survey import BOMS
from likely.sources._mail import DecodedText, decode, is_mbox, mail_text, mbox_mails, without_surrogates
from likely.sources.arrow_arrays import arrow_array
from likely.sources.batch import Batch, Frame
from likely.sources.missing_tokens import MissingTokens

if TYPE_CHECKING:
    from likely.sources import ReadOptions

FILE, WORDS, LABEL = "file", "text", "label"
ENDINGS = (".eml", ".mbox")
TABLES = (".csv", ".tsv", ".parquet", ".pq", ".json", ".jsonl", ".ndjson", ".arrow", ".feather", ".ipc", ".likely")
HEAD = 4_096  # bytes that are inspected to detect binary files
BATCH_ROWS = 4_096
BATCH_CHARACTERS = 1 << 24  # long documents make short batches, so that memory is bounded
FEW = 3  # files named in a warning


class LabelledFile(NamedTuple):
    """A file and its label; None if it belongs to no class."""

    path: str
    label: str | None


class LabelledText(NamedTuple):
    """A text with its file and label."""

    file: str
    text: str
    label: str | None


@dataclass(frozen=True)
class TextFrame(Frame):
    """Texts with their labels and files; the file name is not used as a feature."""

    def kind(self, name: str) -> tuple[str | None, str]:
        """Texts are always text, however short; the file name is not used."""
        if name == FILE:
            return None, "the name of the file"
        return (TEXT, "the text of each file") if name == WORDS else super().kind(name)


@dataclass(frozen=True)
class TextFolders:
    """Texts and mails in folders and mailboxes, read file by file; the columns are `file`, `text` and `label`."""

    paths: tuple[str, ...]
    reading: ReadOptions
    label: str
    partial: bool = False
    warned: set[str] = field(default_factory=set, compare=False)  # issues warned of, once however often files are read

    target: ClassVar[str] = LABEL  # the default target
    shown: ClassVar[tuple[str, ...]] = (FILE,)  # columns written beside predictions: complete mails would hide them

    @property
    def missing(self) -> MissingTokens:
        """No default missing-value tokens: a class may be called "none"."""
        return self.reading.gaps(False)

    def with_target(self, target: str) -> TextFolders:
        """The same source: the target has no missing-value tokens of its own."""
        return self

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The texts, sorted by file name."""
        rows: list[LabelledText] = []
        start = characters = 0
        issues = FileIssues()
        for text in self._texts(issues):
            rows.append(text)
            characters += len(text.text)
            if len(rows) == BATCH_ROWS or characters > BATCH_CHARACTERS:
                yield self._frame(rows, start)
                start, characters, rows = start + len(rows), 0, []
        if rows:
            yield self._frame(rows, start)
        elif not start:
            raise self._nothing(issues)
        self._warn(issues, start + len(rows))

    def _frame(self, rows: Sequence[LabelledText], start: int) -> TextFrame:
        import pyarrow as pa

        kinds = {FILE: pa.string(), WORDS: pa.large_string(), LABEL: pa.string()}
        cells = zip(*rows, strict=True)
        columns = {name: arrow_array(column, kind) for (name, kind), column in zip(kinds.items(), cells, strict=True)}
        return TextFrame(columns, len(rows), start, self.missing)

    def _texts(self, issues: FileIssues) -> Iterator[LabelledText]:
        """All texts; files that are not text are recorded."""
        for found in (found for path in self.paths for found in _files(path, issues)):
            try:
                yield from self._read(found, issues)
            except OSError as error:
                fault = f"{found.path!r} cannot be read: {error.strerror}"
                if self.reading.on_bad_rows == "error":
                    raise DataError(fault, remedy="allow it, or pass on_bad_rows='skip' (--on-bad-rows skip)") from None
                if fault not in self.reading.rejects:
                    self.reading.rejects.append(fault)

    def _read(self, found: LabelledFile, issues: FileIssues) -> Iterator[LabelledText]:
        path = found.path
        ending = os.path.splitext(path)[1].lower()
        if os.path.exists(path) and not os.path.isfile(path):  # a pipe would block
            issues.record("no text", path)
            return
        with open(path, "rb") as file:
            head = file.read(HEAD)
            file.seek(0)
            if ending in TABLES:
                issues.record("tables", path)
            elif ending == ".eml":
                yield self._text(path, mail_text(file.read()), found.label, issues)
            elif ending == ".mbox" or is_mbox(head):
                for number, mail in enumerate(mbox_mails(file), start=1):
                    yield self._text(f"{path}#{number}", mail_text(mail), found.label, issues)
            else:
                named = bool(_bom(head) or self.reading.encoding)
                read = None if b"\0" in head and not named else self._decoded(file.read())
                if read is None or "\0" in read.text:
                    issues.record("no text", path)
                else:
                    yield self._text(path, read, found.label, issues)

    def _text(self, file: str, read: DecodedText, label: str | None, issues: FileIssues) -> LabelledText:
        if read.guessed:
            issues.record("guessed", file)
        return LabelledText(_spelled(file), read.text, label)

    def _decoded(self, raw: bytes) -> DecodedText:
        """Decode a text file: the given encoding, that of a byte order mark, UTF-8, or Latin-1."""
        encoding = self.reading.encoding or _bom(raw)
        if not encoding:
            return decode(raw)
        try:
            return DecodedText(without_surrogates(raw.decode(encoding)))
        except ValueError:
            return DecodedText(without_surrogates(raw.decode(encoding, "replace")), guessed=True)

    def _nothing(self, issues: FileIssues) -> DataError:
        if "tables" in issues.first:
            one = issues.first["tables"][0]
            pattern = os.path.join(os.path.dirname(one), "*" + os.path.splitext(one)[1])
            return DataError(f"{self.label} contains tables, not texts: name them by a glob such as {pattern!r}")
        return DataError(
            f"{self.label} contains no texts", remedy="put the texts or mails of each class into their own folder"
        )

    def _warn(self, issues: FileIssues, texts: int) -> None:
        encoding = self.reading.encoding
        guessed = f"are not {encoding}: the bytes at fault were replaced" if encoding else (
            "are not UTF-8, or not what their mail declares: they were read as Latin-1 (or pass encoding=)"
        )  # fmt: skip
        meanings = {
            "guessed": f"of {texts:,} texts {guessed}",
            "tables": "tables were skipped: a folder is read as texts",
            "no text": "files were skipped: they are not text",
            "empty": "folders contain no texts",
        }
        for what in issues.number.keys() - self.warned:
            files = ", ".join(map(repr, issues.first[what])) + (", ..." if issues.number[what] > FEW else "")
            warnings.warn(f"{issues.number[what]:,} {meanings[what]}: {files}", LikelyWarning, stacklevel=2)
        self.warned.update(issues.number)


@dataclass(frozen=True)
class FileIssues:
    """Files that were skipped or decoded by a guess: counts by issue, and the first files of each."""

    number: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[str]] = field(default_factory=dict)

    def record(self, what: str, file: str) -> None:
        """Count one file."""
        self.number[what] += 1
        if self.number[what] <= FEW:
            self.first.setdefault(what, []).append(_spelled(file))


def _files(path: str, issues: FileIssues) -> Iterator[LabelledFile]:
    """The files of a path, each with its label."""
    if not os.path.isdir(path):
        yield LabelledFile(path, _own_label(path, os.path.basename(os.path.dirname(os.path.abspath(path)))))
        return
    entries = _entries(path)
    folders = [entry for entry in entries if os.path.isdir(entry)]
    beside = None if folders else _spelled(os.path.basename(os.path.abspath(path)))
    for entry in entries:
        if entry not in folders:
            yield LabelledFile(entry, _own_label(entry, beside))
            continue
        label, empty = _spelled(os.path.basename(entry)), True
        for file in _all_files(entry):
            empty = False
            yield LabelledFile(file, label)
        if empty:
            issues.record("empty", entry)


def _entries(folder: str) -> list[str]:
    """The entries of a folder without hidden ones, in the order of their names."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise DataError(f"{folder!r} cannot be read: {error.strerror}") from None
    return [os.path.join(folder, name) for name in names if not name.startswith(".")]


def _all_files(folder: str) -> Iterator[str]:
    """All files in a folder, recursively; links to folders are not followed, since they may form cycles."""
    for entry in _entries(folder):
        if not os.path.isdir(entry):
            yield entry
        elif not os.path.islink(entry):
            yield from _all_files(entry)


def _own_label(path: str, folder: str | None) -> str | None:
    """Label of a file: a mailbox has the name of its file, any other file that of its folder."""
    stem, ending = os.path.splitext(os.path.basename(path))
    return _spelled(stem) if ending.lower() == ".mbox" else folder and _spelled(folder)


def _spelled(name: str) -> str:
    """A file name as text, with invalid UTF-8 replaced."""
    return os.fsencode(name).decode("utf-8", "replace")


def _bom(head: bytes) -> str | None:
    """Encoding of a byte order mark other than that of UTF-8."""
    return next((name for mark, name in BOMS if head.startswith(mark) and mark != codecs.BOM_UTF8), None)


def are_texts(paths: Sequence[str]) -> bool:
    """Whether paths are read as texts: folders, mails and mailboxes."""
    return all(os.path.isdir(path) or os.path.splitext(path)[1].lower() in ENDINGS for path in paths)
