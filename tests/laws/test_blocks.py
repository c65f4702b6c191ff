"""What many bytes at once mean is the same interpreted and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.tokens import _blocks
from likely.tokens._blocks import BLOCK, UPPER
from likely.tokens._machine import teach

BYTES = st.binary(min_size=BLOCK, max_size=2 * BLOCK)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    teach()
    return numba.njit(function)


def array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8).copy()


@compiled
def fold(source, at, small, text, to):  # type: ignore[no-untyped-def]
    return _fold(source, at, small, text, to)


@compiled
def lowest(bits):  # type: ignore[no-untyped-def]
    return _lowest(bits)


@compiled
def eight(text, at):  # type: ignore[no-untyped-def]
    return _eight(text, at)


@compiled
def copy_eight(text, at, letters, to):  # type: ignore[no-untyped-def]
    _copy_eight(text, at, letters, to)


@compiled
def add_rows(table, one, a, two, b, out, to):  # type: ignore[no-untyped-def]
    _add_rows(table, one, a, two, b, out, to)


@compiled
def fetch(array, at):  # type: ignore[no-untyped-def]
    _fetch(array, at)


_fold, _lowest, _eight = _blocks.fold, _blocks.lowest, _blocks.eight
_copy_eight, _add_rows, _fetch = _blocks.copy_eight, _blocks.add_rows, _blocks.fetch


@given(BYTES, st.booleans(), st.integers(0, 9))
def test_a_folded_block_is_the_same(data: bytes, lowercase: bool, to: int) -> None:
    source, small = array(data), np.uint8(UPPER if lowercase else 0)
    at = len(data) - BLOCK
    plain, fast = np.ones(len(data) + 9, np.uint8), np.ones(len(data) + 9, np.uint8)
    bits = _blocks.fold(source, at, small, plain, to)
    assert fold(source, at, small, fast, to) % (1 << 64) == bits
    np.testing.assert_array_equal(plain, fast)
    block = data[at:]
    word = [byte >= 0x80 or chr(byte) == "_" or chr(byte).isalnum() for byte in block]
    assert [bits >> k & 1 == 1 for k in range(BLOCK)] == word
    lowered = block.lower() if lowercase else block
    assert bytes(plain[to : to + BLOCK]) == bytes(b if w else 0 for b, w in zip(lowered, word, strict=True))


@given(st.integers(0, 2**63 - 1))
def test_the_lowest_bit_is_the_same(bits: int) -> None:
    assert lowest(bits) == _blocks.lowest(bits)
    assert bits == 0 or bits % (1 << lowest(bits) + 1) == 1 << lowest(bits)


@given(BYTES, st.integers(0, BLOCK - 8), st.integers(0, BLOCK - 8))
def test_eight_bytes_are_the_same(data: bytes, at: int, to: int) -> None:
    assert eight(array(data), at) == _blocks.eight(array(data), at)
    plain, fast = array(data), array(data)
    _blocks.copy_eight(array(data), at, plain, to)
    copy_eight(array(data), at, fast, to)
    np.testing.assert_array_equal(plain, fast)
    assert bytes(fast[to : to + 8]) == data[at : at + 8]


@given(st.lists(st.floats(-1e9, 1e9), min_size=12, max_size=12), st.floats(-9, 9), st.floats(-9, 9))
def test_four_sums_are_the_same_to_the_last_bit(values: list[float], a: float, b: float) -> None:
    table = np.array(values).reshape(3, 4)
    plain, fast = np.ones((2, 4)), np.ones((2, 4))
    _blocks.add_rows(table, 4, a, 7, b, plain, 3)
    add_rows(table, 4, a, 7, b, fast, 3)
    np.testing.assert_array_equal(plain, fast)
    assert plain.ravel()[3] == 1.0 + a * values[4] + b * values[7]
    assert (plain.ravel()[:3] == 1.0).all()
    assert plain.ravel()[7] == 1.0


def test_what_is_asked_for_ahead_changes_nothing() -> None:
    numbers = np.arange(4.0)
    fetch(numbers, 3)
    _blocks.fetch(numbers, 3)
    np.testing.assert_array_equal(numbers, np.arange(4.0))


def test_an_array_with_gaps_is_refused_before_it_is_misread() -> None:
    with pytest.raises(numba.TypingError):
        eight(np.zeros(64, np.uint8)[::2], 0)
