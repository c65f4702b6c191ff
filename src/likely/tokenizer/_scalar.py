"""Block operations for compiled loops without vector instructions: the fallback for `_simd`.

Used where `LIKELY_NO_SIMD` is set, or where the vector implementation cannot be registered. The results are the same; NumPy's
bounds apply as in any compiled loop, so `NUMBA_BOUNDSCHECK=1` checks every index here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba.extending import overload

from likely.tokenizer import _block_operations
from likely.tokenizer._block_operations import BLOCK, LOWERCASE_BIT


@functools.cache
def register_loops() -> None:
    """Register one plain loop for each block operation with the compiler."""
    loops: dict[str, Callable[..., Any]] = {
        "fold_block": _fold_block,
        "trailing_zeros": _trailing_zeros,
        "load_u64": _load_u64,
        "copy_u64": _copy_u64,
        "prefetch": _prefetch,
        "add_rows": _add_rows,
    }
    for name, loop in loops.items():
        overload(getattr(_block_operations, name), inline="never")(_implementation(loop))


def _implementation(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Numba asks for a function of types that returns the implementation, with the same argument names."""

    @functools.wraps(loop)
    def for_types(*_types: Any, **_named: Any) -> Callable[..., Any]:
        return loop

    return for_types


def _fold_block(source, at, case_bit, text, to):  # type: ignore[no-untyped-def]
    bits = 0
    for k in range(BLOCK):
        byte = int(source[at + k])
        letter = 0x61 <= byte | LOWERCASE_BIT <= 0x7A
        word = letter or 0x30 <= byte <= 0x39 or byte == 0x5F or byte >= 0x80
        folded = byte | int(case_bit) if letter else byte
        text[to + k] = folded if word else 0
        bits |= int(word) << k
    return bits


def _trailing_zeros(bits):  # type: ignore[no-untyped-def]
    if bits == 0:
        return 64
    place = 0
    for width in (32, 16, 8, 4, 2, 1):
        if bits & (1 << width) - 1 == 0:
            bits >>= width
            place += width
    return place


def _load_u64(text, at):  # type: ignore[no-untyped-def]
    value = 0
    for k in range(8):
        value |= int(text[at + k]) << 8 * k
    return value


def _copy_u64(text, at, letters, to):  # type: ignore[no-untyped-def]
    for k in range(8):
        letters[to + k] = text[at + k]


def _prefetch(array, at):  # type: ignore[no-untyped-def]
    pass


def _add_rows(table, one, a, two, b, out, to):  # type: ignore[no-untyped-def]
    flat, sums = table.reshape(-1), out.reshape(-1)
    for k in range(4):
        sums[to + k] = sums[to + k] + a * flat[one + k] + b * flat[two + k]
