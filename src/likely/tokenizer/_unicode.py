"""Tables of all code points: lower case, whether it is a word character, whether it is blank.

The tables are derived from the running interpreter (`str.lower` and `re`), one block of code points at a time and only when
a block first occurs, so that they agree with its version of Unicode.

An entry packs the normalised form of a code point: up to six bytes of UTF-8 in the low 48 bits, their number in the next
three, then the flags below.
"""

from __future__ import annotations

import re
import threading

import numpy as np
import numpy.typing as npt

from likely.kernels.parallel import held_at_fork

Entries = npt.NDArray[np.int64]

LENGTH = 48
CASED = 1 << 51  # a cased letter that is not also case-ignorable
IGNORABLE = 1 << 52  # skipped in the search for the neighbours of a sigma
SIGMA = 1 << 53  # lower case depends on the neighbours: σ, or ς at the end of a word
BLANK = 1 << 54
SEPARATOR = 1 << LENGTH  # one zero byte: not part of a word
SPACE = SEPARATOR | BLANK | 0x20

# The blocks by the UTF-8 lead byte of their code points; the first is needed by any text beyond ASCII.
_BLOCKS = {
    0xEF: (0x0, 0x10000),
    0xF0: (0x10000, 0x40000),
    0xF1: (0x40000, 0x80000),
    0xF2: (0x80000, 0xC0000),
    0xF3: (0xC0000, 0x100000),
    0xF4: (0x100000, 0x110000),
}
_tables: dict[tuple[str, bool], Entries] = {}
_filled: set[tuple[str, bool, int]] = set()
_lock = held_at_fork(threading.RLock(), 2)


def _leads() -> npt.NDArray[np.int64]:
    """For each lead byte: bytes to follow, smallest and largest second byte, mask of its own bits (Unicode, table 3-7)."""
    table = np.tile(np.array([1, 1, 0, 0]), (256, 1))  # no second byte is valid: never a lead byte
    table[:0x80] = (0, 0, 0, 0x7F)
    table[0xC2:0xE0] = (1, 0x80, 0xBF, 0x1F)
    table[0xE0:0xF0] = (2, 0x80, 0xBF, 0x0F)
    table[0xF0:0xF5] = (3, 0x80, 0xBF, 0x07)
    table[0xE0, 1], table[0xED, 2], table[0xF0, 1], table[0xF4, 2] = 0xA0, 0x9F, 0x90, 0x8F
    return table


LEADS = _leads()


def entries(unit: str, lowercase: bool, buffer: npt.NDArray[np.uint8]) -> Entries:
    """The table for words ("word") or characters ("char", "char_wb"), filled as far as these bytes need it."""
    top = int(buffer.max(initial=0))
    needed = [0xEF] + [lead for lead in range(0xF0, min(top, 0xF4) + 1) if bool((buffer == lead).any())]
    with _lock:
        if (unit, lowercase) not in _tables:
            _tables[unit, lowercase] = np.zeros(0x110000, dtype=np.int64)
        table = _tables[unit, lowercase]
        for lead in needed:
            if (unit, lowercase, lead) not in _filled:
                first, stop = _BLOCKS[lead]
                table[first:stop] = _block(first, stop, unit, lowercase)
                _filled.add((unit, lowercase, lead))
    return table


def _block(first: int, stop: int, unit: str, lowercase: bool) -> Entries:
    """The entries of consecutive code points, computed by Python's string methods at once."""
    text = _decoded(np.arange(first, stop, dtype="<u4"))
    growing = _expanding_characters(text) if lowercase else []
    for letter in growing:  # removed, so that the others keep their positions
        text = text.replace(letter, "\0")
    lowered = text.replace("Σ", "σ").lower() if lowercase else text
    table = _shaped(lowered, unit)
    if lowercase:
        table |= _context(text)
    for letter in growing:
        table[ord(letter) - first] = _expanding_entry(letter, unit)
    if lowercase and "Σ" in text:
        table[ord("Σ") - first] |= SIGMA
    return table


def _shaped(text: str, unit: str) -> Entries:
    """The entry of each character of a text in final case."""
    table = _packed(_encoded(text).astype(np.int64))
    inside = np.zeros(len(text), dtype=bool)
    for run in re.finditer(r"\w+" if unit == "word" else r"\s+", text):
        inside[run.start() : run.end()] = True
    if unit == "word":
        table[~inside] = SEPARATOR
    else:
        table[inside] |= BLANK
    if unit == "char_wb":
        table[inside] = SPACE
    return table


def _packed(points: Entries) -> Entries:
    """Code points as UTF-8, the first byte lowest, with the number of bytes above them."""
    tails = [0x80 | (points >> shift) & 0x3F for shift in (0, 6, 12)]
    one = points | 1 << LENGTH
    two = 0xC0 | points >> 6 | tails[0] << 8 | 2 << LENGTH
    three = 0xE0 | points >> 12 | tails[1] << 8 | tails[0] << 16 | 3 << LENGTH
    four = 0xF0 | points >> 18 | tails[2] << 8 | tails[1] << 16 | tails[0] << 24 | 4 << LENGTH
    return np.select([points < 0x80, points < 0x800, points < 0x10000], [one, two, three], four)


def _expanding_characters(text: str) -> list[str]:
    """The characters whose lower case is more than one character (İ, in every Unicode so far)."""
    pieces = (text[at : at + 256] for at in range(0, len(text), 256))
    return [
        letter for piece in pieces if len(piece.lower()) != len(piece) for letter in piece if len(letter.lower()) > 1
    ]


def _expanding_entry(letter: str, unit: str) -> int:
    """The entry of a character whose lower case is several."""
    table = _shaped(letter.lower(), unit)
    size = 0
    entry = int(_context(letter)[0])
    for part in table.tolist():
        entry |= (part & (1 << LENGTH) - 1) << 8 * size
        size += part >> LENGTH & 7
    return entry | size << LENGTH


def _context(text: str) -> Entries:
    """Whether each character is cased or case-ignorable, derived from the lower case of a sigma after it."""
    points = _encoded(text)
    transparent = _final_after(points, "a")
    cased = np.zeros(len(text), dtype=bool)
    cased[transparent] = _final_after(points[transparent], "\n")
    return CASED * cased.astype(np.int64) + IGNORABLE * (transparent & ~cased)


def _final_after(points: npt.NDArray[np.uint32], before: str) -> npt.NDArray[np.bool_]:
    """Whether a sigma is final after each character that itself follows `before`."""
    probe = np.empty((points.size, 4), dtype="<u4")
    probe[:, 0], probe[:, 1], probe[:, 2], probe[:, 3] = ord(before), points, ord("Σ"), ord("\n")
    lowered = _encoded(_decoded(probe).lower())
    # Counted from the end, because one growing character may come first.
    return np.asarray(lowered[lowered.size % 4 + 2 :: 4] == ord("ς"))


def _decoded(points: npt.NDArray[np.uint32]) -> str:
    return points.tobytes().decode("utf-32-le", "surrogatepass")


def _encoded(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
