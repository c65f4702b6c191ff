"""Many at once: what the loops over text and words do to a block of bytes, or to four numbers, in one step.

Every function here is ordinary Python, which says what it means; `_machine` says the same to the compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

BLOCK = 64
SOON = 16  # words ahead: what is fetched then is there when it is asked for (measured: 8 to 24 are alike)
UPPER = 0x20  # the bit that a small letter has and a capital has not


def fold(source: Bytes, at: int, small: np.uint8, text: Bytes, to: int) -> int:
    """A block of text in its final case, zeros for what is not part of a word; and a bit for every byte that is.

    Letters are joined with the bits of `small`. What is not ASCII is part of a word.
    """
    block = source[at : at + BLOCK]
    letter = (block | UPPER) - np.uint8(0x61) < 26
    word = letter | (block - np.uint8(0x30) < 10) | (block == 0x5F) | (block >= 0x80)
    text[to : to + BLOCK] = (block | letter * small) * word
    return int.from_bytes(np.packbits(word, bitorder="little").tobytes(), "little")


def lowest(bits: int) -> int:
    """The place of the lowest bit that is set; 64 if none is."""
    return int(bits & -bits).bit_length() - 1 if bits else 64


def eight(text: Bytes, at: int) -> int:
    """Eight bytes as one number, the first one lowest; negative if the last one is not ASCII."""
    return int.from_bytes(text[at : at + 8].tobytes(), "little", signed=True)


def copy_eight(text: Bytes, at: int, letters: Bytes, to: int) -> None:
    """Eight bytes put elsewhere."""
    letters[to : to + 8] = text[at : at + 8]


def fetch(array: npt.NDArray[Any], at: int) -> None:
    """The number at a place of the flat array will soon be asked for: waiting for memory is what takes longest."""


def add_rows(table: Floats, one: int, a: float, two: int, b: float, out: Floats, to: int) -> None:
    """Four numbers from two places of a flat table, each place with its weight, added to four others."""
    flat, sums = table.reshape(-1), out.reshape(-1)
    sums[to : to + 4] = sums[to : to + 4] + a * flat[one : one + 4] + b * flat[two : two + 4]
