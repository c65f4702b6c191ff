"""Bytes by the block: what the loops over text do to many bytes in one step.

Every function here is ordinary Python, which says what it means; `_machine` says the same to the compiler.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

BLOCK = 64
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
    """The place of the lowest bit that is set."""
    return int(bits & -bits).bit_length() - 1


def eight(text: Bytes, at: int) -> int:
    """Eight bytes as one number, the first one lowest."""
    return int.from_bytes(text[at : at + 8].tobytes(), "little")


def copy_eight(text: Bytes, at: int, letters: Bytes, to: int) -> None:
    """Eight bytes put elsewhere."""
    letters[to : to + 8] = text[at : at + 8]
