"""Operations on blocks of bytes and groups of four numbers, in plain Python: the definition of what they compute.

The loops over text and words call these functions. Interpreted, they run as written here. For compiled loops there are two
implementations with the same results: `_simd` in LLVM's vector instructions, and `_scalar` as ordinary compiled loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

BLOCK = 64  # bytes that `fold_block` reads and writes
PREFETCH_DISTANCE = 16  # words ahead (measured: 8 to 24 give the same time)
LOWERCASE_BIT = 0x20  # set in a lower-case ASCII letter, clear in its capital


def fold_block(source: Bytes, at: int, case_bit: np.uint8, text: Bytes, to: int) -> int:
    """Copy a block of text with its case folded and zeros for bytes outside words; returns a bit mask of the word bytes.

    `case_bit` is set in every ASCII letter: `LOWERCASE_BIT`, or 0 to keep the case. Bytes beyond ASCII are word bytes.
    """
    block = source[at : at + BLOCK]
    letter = (block | LOWERCASE_BIT) - np.uint8(0x61) < 26
    word = letter | (block - np.uint8(0x30) < 10) | (block == 0x5F) | (block >= 0x80)
    text[to : to + BLOCK] = (block | letter * case_bit) * word
    return int.from_bytes(np.packbits(word, bitorder="little").tobytes(), "little")


def trailing_zeros(bits: int) -> int:
    """Position of the lowest bit that is set; 64 if none is."""
    return int(bits & -bits).bit_length() - 1 if bits else 64


def load_u64(text: Bytes, at: int) -> int:
    """Eight bytes as one little-endian number; negative if the last byte is not ASCII."""
    return int.from_bytes(text[at : at + 8].tobytes(), "little", signed=True)


def copy_u64(text: Bytes, at: int, letters: Bytes, to: int) -> None:
    """Copy eight bytes."""
    letters[to : to + 8] = text[at : at + 8]


def prefetch(array: npt.NDArray[Any], at: int) -> None:
    """Hint that the element at a flat position will be read soon: waiting for memory takes most of the time."""


def add_rows(table: Floats, one: int, a: float, two: int, b: float, out: Floats, to: int) -> None:
    """Add a · four numbers at `one` and b · four numbers at `two` of a flat table to four numbers at `to` of `out`."""
    flat, sums = table.reshape(-1), out.reshape(-1)
    sums[to : to + 4] = sums[to : to + 4] + a * flat[one : one + 4] + b * flat[two : two + 4]
