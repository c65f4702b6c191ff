"""A look at the bytes of a CSV file before anybody parses it: whether it is text, how many rows it has, and if all fit.

Seen in DuckDB 2.0: in parallel it loses rows at the seams of its buffers where quoted cells hold line breaks, and with
one thread it drops all that follows a quote that is never closed, both without a word. So rows are counted here, and
only a file in which nothing is odd is handed to it.
"""

from __future__ import annotations

import codecs
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, LikelyWarning

BLOCK = 1 << 20  # what a core keeps at hand
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LF, CR, QUOTE, SPACE = b'\n\r" '
CRLF = -1

Bytes = NDArray[np.uint8]
Marks = NDArray[np.bool_]


def encoding_of(path: str, label: str, given: str | None) -> str:
    """The encoding that was asked for, or the one that the first bytes tell of, which is said, or UTF-8."""
    if given:
        return given
    with open(path, "rb") as file:
        head = file.read(4)
    found = next((name for bom, name in BOMS if head.startswith(bom)), "utf-8-sig")
    if found != "utf-8-sig":
        said = f"{label} is read as {found.upper()}, as its byte order mark says; encoding= (--encoding) says otherwise"
        warnings.warn(said, LikelyWarning, stacklevel=4)
    return found


def nul_remedy(place: int) -> str:
    """What to do about a NUL at this byte of a text file."""
    name = "utf-16-le" if place % 2 else "utf-16-be"  # of ASCII, every other byte is NUL
    return f"if it is in another encoding, pass encoding={name!r} (--encoding {name}) or what it is in; else take the NULs out"


def _looks_like(block: bytes, place: int) -> tuple[str, str]:
    """The encoding that a text which is not UTF-8 is probably in, and how the odd word reads in it."""
    guess = "cp1252" if any(byte in block for byte in range(0x80, 0xA0)) else "latin-1"
    start = max(block.rfind(sign, 0, place) for sign in b",;\t|\r\n\" ") + 1
    ends = [end for sign in b",;\t|\r\n\" " if (end := block.find(sign, place)) >= 0]
    return guess, block[max(start, place - 40) : min([*ends, place + 40])].decode(guess, errors="replace")


@dataclass(frozen=True)
class Survey:
    """What the bytes say: how many rows there are, the header among them, and whether anything is odd."""

    rows: int
    flawless: bool  # one kind of line end, quotes around whole cells only, as many cells in each row as in the header
    quoted: bool
    spaced: bool  # a blank between a delimiter and a quote: it belongs to neither
    longest: int  # bytes of the longest row


def survey(readable: str, label: str, delimiter: str, cells: int) -> Survey:
    """Look at every byte once; what is not UTF-8 is refused with its line."""
    look = _Look(ord(delimiter), cells)
    text = TextCheck(readable, label)
    with open(readable, "rb") as file:
        block = file.read(BLOCK)
        text.see(block)
        look.see(block.removeprefix(codecs.BOM_UTF8))
        while block := file.read(BLOCK):
            text.see(block)
            look.see(block)
    text.end()
    return look.end()


class TextCheck:
    """UTF-8 without NUL bytes is read alike everywhere; anything else is refused with its line."""

    def __init__(self, path: str, label: str) -> None:
        self.path, self.label, self.seen = path, label, 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def see(self, block: bytes) -> None:
        """Check some more bytes."""
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
                    remedy=f"pass encoding={guess!r} (--encoding {guess}) if {word!r} is right there, or what it is in",
                ) from None
        self.seen += len(block)

    def end(self) -> None:
        """There are no more bytes: no character may be unfinished."""
        if self._decoder.getstate()[0]:
            raise DataError(f"{self.label} ends in the middle of a character", remedy="it was cut off: copy it again")


def line_at(path: str, place: int) -> int:
    """The number of the line in which a byte stands; counted only when somebody has to be told."""
    feeds = returns = 0
    with open(path, "rb") as file:
        while place > 0 and (block := file.read(min(BLOCK, place))):
            feeds, returns, place = feeds + block.count(b"\n"), returns + block.count(b"\r"), place - len(block)
    return 1 + max(feeds, returns)


class _Look:
    """Counts rows and looks for anything odd, block by block; a byte is judged once both its neighbours are known."""

    def __init__(self, delimiter: int, cells: int) -> None:
        self.delimiter, self.cells = delimiter, cells
        self.rows = self.longest = 0
        self.flawless, self.quoted, self.spaced = True, False, False
        self._before, self._last = b"\n", b""
        self._inside = np.uint8(0)
        self._line_end: int | None = None
        self._delimiters = self._length = 0  # of the row that is not finished

    def see(self, block: bytes) -> None:
        """Judge all bytes but the last one, whose neighbour is yet to come."""
        if not self.flawless and self.spaced:
            return
        data = self._before + self._last + block
        if len(data) > 2:
            self._judge(np.frombuffer(data, np.uint8))
        self._before, self._last = (data[-2:-1], data[-1:]) if len(data) > 1 else (data, b"")

    def end(self) -> Survey:
        """Judge the last byte, and close the row that has no line end."""
        self.see(bytes([self.delimiter]))  # a neighbour that any cell may have
        if self._length > (self._line_end == CRLF and self._last == b"\r"):
            self._finish(np.array([self._length]), np.array([self._delimiters]))
        flawless = self.flawless and not self._inside
        return Survey(self.rows, flawless, self.quoted, self.spaced, self.longest)

    def _judge(self, data: Bytes) -> None:
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
        """Which bytes are in no quoted cell; a quote must open a cell, close it, or stand doubled within."""
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
        """Whether one of the first few quotes has nothing but blanks between itself and a delimiter."""
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
        """Rows that have come to their end; a blank line is no row."""
        full = lengths > 0
        self.rows += int(full.sum())
        self.longest = max(self.longest, int(lengths.max()))
        fits = (delimiters[full] + 1 == self.cells).all() and (self.cells > 1 or full.all())
        self.flawless = self.flawless and bool(fits)
