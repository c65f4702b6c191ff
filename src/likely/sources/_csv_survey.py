"""Survey of the bytes of a CSV file before parsing: encoding, number of rows, and whether the file is regular.

Parsers may lose rows without an error: DuckDB 2.0 does at the boundaries of its buffers where quoted cells contain line
breaks, and after a quote that is never closed. So rows are counted here, and only regular files go to a parallel parser.
"""

from __future__ import annotations

import codecs
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, LikelyWarning

BLOCK = 1 << 20  # fits into the cache of a core
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is a prefix of it
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LF, CR, QUOTE, SPACE = b'\n\r" '
CRLF = -1

Bytes = NDArray[np.uint8]
Marks = NDArray[np.bool_]


def encoding_of(path: str, label: str, given: str | None) -> str:
    """The given encoding, or that of the byte order mark (with a warning), or UTF-8."""
    if given:
        return given
    with open(path, "rb") as file:
        head = file.read(4)
    found = next((name for bom, name in BOMS if head.startswith(bom)), "utf-8-sig")
    if found != "utf-8-sig":
        message = f"{label} is read as {found.upper()} by its byte order mark; encoding= (--encoding) overrides it"
        warnings.warn(message, LikelyWarning, stacklevel=4)
    return found


def nul_remedy(place: int) -> str:
    """Remedy for a NUL at this byte of a text file."""
    name = "utf-16-le" if place % 2 else "utf-16-be"  # in UTF-16, every other byte of ASCII text is NUL
    return f"if it is in another encoding, pass encoding={name!r} (--encoding {name}) or its own; otherwise remove the NULs"


def _looks_like(block: bytes, place: int) -> tuple[str, str]:
    """Probable encoding of a text that is not UTF-8, and the word at fault decoded with it."""
    guess = "cp1252" if any(byte in block for byte in range(0x80, 0xA0)) else "latin-1"
    start = max(block.rfind(sign, 0, place) for sign in b",;\t|\r\n\" ") + 1
    ends = [end for sign in b",;\t|\r\n\" " if (end := block.find(sign, place)) >= 0]
    return guess, block[max(start, place - 40) : min([*ends, place + 40])].decode(guess, errors="replace")


@dataclass(frozen=True)
class CsvSurvey:
    """Result of the survey: number of rows including the header, and regularity."""

    rows: int
    flawless: bool  # one kind of line end, quotes only around complete cells, all rows as long as the header
    quoted: bool
    spaced: bool  # blanks between delimiters and quotes, which are dropped
    longest: int  # bytes of the longest row


def survey(readable: str, label: str, delimiter: str, cells: int) -> CsvSurvey:
    """Scan every byte once; text that is not UTF-8 is refused with its line."""
    scanner = _RowScanner(ord(delimiter), cells)
    text = TextCheck(readable, label)
    with open(readable, "rb") as file:
        block = file.read(BLOCK)
        text.update(block)
        scanner.update(block.removeprefix(codecs.BOM_UTF8))
        while block := file.read(BLOCK):
            text.update(block)
            scanner.update(block)
    text.end()
    return scanner.end()


class TextCheck:
    """Check for UTF-8 without NUL bytes; anything else is refused with its line."""

    def __init__(self, path: str, label: str) -> None:
        self.path, self.label, self.seen = path, label, 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def update(self, block: bytes) -> None:
        """Check the next block."""
        if b"\0" in block:
            place = self.seen + block.index(0)
            where = line_at(self.path, place)
            raise DataError(f"{self.label} has a NUL byte in line {where}", remedy=nul_remedy(place))
        waiting = self._decoder.getstate()[0]
        if waiting or not block.isascii():
            try:
                self._decoder.decode(block)
            except UnicodeDecodeError as error:
                where = line_at(self.path, self.seen - len(waiting) + error.start)
                guess, word = _looks_like(waiting + block, error.start)
                raise DataError(
                    f"{self.label} is not UTF-8 in line {where}",
                    remedy=f"pass encoding={guess!r} (--encoding {guess}) if {word!r} is right there, or its own encoding",
                ) from None
        self.seen += len(block)

    def end(self) -> None:
        """Check that the last character is complete."""
        if self._decoder.getstate()[0]:
            raise DataError(f"{self.label} ends in the middle of a character", remedy="it is truncated: copy it again")


def line_at(path: str, place: int) -> int:
    """Line number of a byte; computed only for error messages."""
    feeds = returns = 0
    with open(path, "rb") as file:
        while place > 0 and (block := file.read(min(BLOCK, place))):
            feeds, returns, place = feeds + block.count(b"\n"), returns + block.count(b"\r"), place - len(block)
    return 1 + max(feeds, returns)


class _RowScanner:
    """Counts rows and checks regularity, block by block; a byte is checked once both neighbours are known."""

    def __init__(self, delimiter: int, cells: int) -> None:
        self.delimiter, self.cells = delimiter, cells
        self.rows = self.longest = 0
        self.flawless, self.quoted, self.spaced = True, False, False
        self._before, self._last = b"\n", b""
        self._inside = np.uint8(0)
        self._line_end: int | None = None
        self._delimiters = self._length = 0  # of the unfinished row

    def update(self, block: bytes) -> None:
        """Scan all bytes except the last, whose neighbour is in the next block."""
        if not self.flawless and self.spaced:
            return
        data = self._before + self._last + block
        if len(data) > 2:
            self._scan(np.frombuffer(data, np.uint8))
        self._before, self._last = (data[-2:-1], data[-1:]) if len(data) > 1 else (data, b"")

    def end(self) -> CsvSurvey:
        """Scan the last byte, and end a row without a line end."""
        self.update(bytes([self.delimiter]))  # a valid neighbour of any cell
        if self._length > (self._line_end == CRLF and self._last == b"\r"):
            self._finish(np.array([self._length]), np.array([self._delimiters]))
        flawless = self.flawless and not self._inside
        return CsvSurvey(self.rows, flawless, self.quoted, self.spaced, self.longest)

    def _scan(self, data: Bytes) -> None:
        before, here, after = data[:-2], data[1:-1], data[2:]
        delimiters, breaks = here == self.delimiter, (here == LF) | (here == CR)
        if self._inside or QUOTE in data:
            outside = self._outside(here == QUOTE, before, after, data)
            delimiters &= outside
            breaks &= outside
        places = np.flatnonzero(breaks)
        self._check_line_ends(before[places], here[places], after[places])
        stop: int = CR if self._line_end == CR else LF
        stops = places[here[places] == stop]
        if not len(stops):
            self._delimiters += int(np.count_nonzero(delimiters))
            self._length += len(here)
            return
        delimiters[stops] = True
        marks = here[np.flatnonzero(delimiters)]
        ends = np.flatnonzero(marks == stop)
        found, lengths = np.diff(ends, prepend=-1) - 1, np.diff(stops, prepend=-1) - 1
        found[0] += self._delimiters
        lengths[0] += self._length
        self._finish(lengths - (self._line_end == CRLF), found)
        self._delimiters = len(marks) - 1 - int(ends[-1])
        self._length = len(here) - 1 - int(stops[-1])

    def _outside(self, quotes: Marks, before: Bytes, after: Bytes, data: Bytes) -> Marks:
        """Mask of bytes outside quoted cells; a quote must open a cell, close it, or be doubled within it."""
        self.quoted = True
        inside = np.bitwise_xor.accumulate(quotes.view(np.uint8)) ^ self._inside
        opening, closing = quotes & (inside == 1), quotes & (inside == 0)
        neighbours = np.array([self.delimiter, LF, CR, QUOTE], np.uint8)
        whole = np.isin(before[opening], neighbours).all() and np.isin(after[closing], neighbours).all()
        if not whole:
            self.flawless = False
            self.spaced = self.spaced or self._blank_between(np.flatnonzero(opening & (before == SPACE)), data)
        self._inside = inside[-1]
        outside: Marks = inside == 0
        return outside

    def _blank_between(self, places: NDArray[np.intp], data: Bytes) -> bool:
        """Whether one of the first quotes has only blanks between itself and a delimiter."""
        for place in places[:100]:
            behind = bytes(data[max(0, int(place) - 64) : int(place) + 1]).rstrip(b" ")
            if behind[-1:] in (bytes([self.delimiter]), b"\n", b"\r"):
                return True
        return False

    def _check_line_ends(self, before: Bytes, here: Bytes, after: Bytes) -> None:
        if self._line_end is None and len(here):
            self._line_end = CRLF if here[0] == CR and after[0] == LF else int(here[0])
        if self._line_end == CRLF:
            feeds = here == LF
            alike = (before[feeds] == CR).all() and (after[~feeds] == LF).all()
        else:
            alike = (here == self._line_end).all()
        self.flawless = self.flawless and bool(alike)

    def _finish(self, lengths: NDArray[Any], delimiters: NDArray[Any]) -> None:
        """Count complete rows; blank lines are not rows."""
        full = lengths > 0
        self.rows += int(full.sum())
        self.longest = max(self.longest, int(lengths.max()))
        fits = (delimiters[full] + 1 == self.cells).all() and (self.cells > 1 or full.all())
        self.flawless = self.flawless and bool(fits)
