"""Block operations give the same results interpreted, as plain compiled loops and as vector instructions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.tokenizer import _block_operations, _scalar
from likely.tokenizer._block_operations import BLOCK, LOWERCASE_BIT
from likely.tokenizer._simd import register_intrinsics
from processes import SOURCE

BYTES = st.binary(min_size=BLOCK, max_size=2 * BLOCK)


def simd(function: Callable[..., Any]) -> Callable[..., Any]:
    register_intrinsics()
    return numba.njit(function)


def array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8).copy()


@simd
def fold_block(source, at, case_bit, text, to):  # type: ignore[no-untyped-def]
    return _fold_block(source, at, case_bit, text, to)


@simd
def trailing_zeros(bits):  # type: ignore[no-untyped-def]
    return _trailing_zeros(bits)


@simd
def load_u64(text, at):  # type: ignore[no-untyped-def]
    return _load_u64(text, at)


@simd
def copy_u64(text, at, letters, to):  # type: ignore[no-untyped-def]
    _copy_u64(text, at, letters, to)


@simd
def add_rows(table, one, a, two, b, out, to):  # type: ignore[no-untyped-def]
    _add_rows(table, one, a, two, b, out, to)


@simd
def prefetch(array, at):  # type: ignore[no-untyped-def]
    _prefetch(array, at)


_fold_block, _trailing_zeros = _block_operations.fold_block, _block_operations.trailing_zeros
_load_u64, _copy_u64 = _block_operations.load_u64, _block_operations.copy_u64
_add_rows, _prefetch = _block_operations.add_rows, _block_operations.prefetch

FOLD_BLOCK = {"simd": fold_block, "scalar": numba.njit(_scalar._fold_block)}
TRAILING_ZEROS = {"simd": trailing_zeros, "scalar": numba.njit(_scalar._trailing_zeros)}
LOAD_U64 = {"simd": load_u64, "scalar": numba.njit(_scalar._load_u64)}
COPY_U64 = {"simd": copy_u64, "scalar": numba.njit(_scalar._copy_u64)}
ADD_ROWS = {"simd": add_rows, "scalar": numba.njit(_scalar._add_rows)}
PREFETCH = {"simd": prefetch, "scalar": numba.njit(_scalar._prefetch)}

both = pytest.mark.parametrize("implementation", ["simd", "scalar"])


@both
@given(data=BYTES, lowercase=st.booleans(), to=st.integers(0, 9))
def test_a_folded_block_is_the_same(implementation: str, data: bytes, lowercase: bool, to: int) -> None:
    source, case_bit = array(data), np.uint8(LOWERCASE_BIT if lowercase else 0)
    at = len(data) - BLOCK
    plain, fast = np.ones(len(data) + 9, np.uint8), np.ones(len(data) + 9, np.uint8)
    bits = _block_operations.fold_block(source, at, case_bit, plain, to)
    assert FOLD_BLOCK[implementation](source, at, case_bit, fast, to) % (1 << 64) == bits
    np.testing.assert_array_equal(plain, fast)
    block = data[at:]
    word = [byte >= 0x80 or chr(byte) == "_" or chr(byte).isalnum() for byte in block]
    assert [bits >> k & 1 == 1 for k in range(BLOCK)] == word
    lowered = block.lower() if lowercase else block
    assert bytes(plain[to : to + BLOCK]) == bytes(b if w else 0 for b, w in zip(lowered, word, strict=True))


@both
@given(bits=st.integers(0, 2**63 - 1))
def test_the_lowest_bit_is_the_same(implementation: str, bits: int) -> None:
    place = TRAILING_ZEROS[implementation](bits)
    assert place == _block_operations.trailing_zeros(bits)
    assert bits == 0 or bits % (1 << place + 1) == 1 << place


@both
@given(data=BYTES, at=st.integers(0, BLOCK - 8), to=st.integers(0, BLOCK - 8))
def test_eight_bytes_are_the_same(implementation: str, data: bytes, at: int, to: int) -> None:
    assert LOAD_U64[implementation](array(data), at) == _block_operations.load_u64(array(data), at)
    plain, fast = array(data), array(data)
    _block_operations.copy_u64(array(data), at, plain, to)
    COPY_U64[implementation](array(data), at, fast, to)
    np.testing.assert_array_equal(plain, fast)
    assert bytes(fast[to : to + 8]) == data[at : at + 8]


@both
@given(values=st.lists(st.floats(-1e9, 1e9), min_size=12, max_size=12), a=st.floats(-9, 9), b=st.floats(-9, 9))
def test_four_sums_are_the_same_to_the_last_bit(implementation: str, values: list[float], a: float, b: float) -> None:
    table = np.array(values).reshape(3, 4)
    plain, fast = np.ones((2, 4)), np.ones((2, 4))
    _block_operations.add_rows(table, 4, a, 7, b, plain, 3)
    ADD_ROWS[implementation](table, 4, a, 7, b, fast, 3)
    np.testing.assert_array_equal(plain, fast)
    assert plain.ravel()[3] == 1.0 + a * values[4] + b * values[7]
    assert (plain.ravel()[:3] == 1.0).all()
    assert plain.ravel()[7] == 1.0


@both
def test_a_prefetch_changes_nothing(implementation: str) -> None:
    numbers = np.arange(4.0)
    PREFETCH[implementation](numbers, 3)
    _block_operations.prefetch(numbers, 3)
    np.testing.assert_array_equal(numbers, np.arange(4.0))


def test_an_array_with_gaps_is_refused_before_it_is_misread() -> None:
    with pytest.raises(numba.TypingError):
        load_u64(np.zeros(64, np.uint8)[::2], 0)


# ---------------------------------------------------------------- the switch

COUNTED = """
import sys
import numpy as np
from likely.kernels import kernel
from likely.tokenizer import _loops, encode_texts, word_loops

{before}
texts = ["One two, one THREE_4 straße!", "", "antidisestablishmentarianism" * 5 + " two", "x yy zzz " * 60]
plain = encode_texts(texts)
words = plain.vocabulary.words()
kernel.LARGE = 0
fast = encode_texts(texts)
assert fast.vocabulary.words() == words and "three_4" in words
for name in ("indptr", "ids", "counts", "unknown"):
    assert (getattr(plain, name) == getattr(fast, name)).all(), name
table = np.arange(5.0 * len(words)).reshape(len(words), 5)
scores = np.zeros((2, len(texts), 5))
values = fast.counts.astype(np.float64)
word_loops.score_words.plain(fast.ids, fast.indptr, values, table, scores[0])
word_loops.score_words(fast.ids, fast.indptr, values, table, scores[1])
assert (scores[0] == scores[1]).all() and scores[0].any()
print(_loops.register_operations(), _loops.count_documents._compiled is not None, "likely.tokenizer._simd" in sys.modules)
"""
BROKEN = """
import likely.tokenizer._simd as simd
def register_intrinsics(): raise RuntimeError("no such instruction")
simd.register_intrinsics = register_intrinsics
"""


def counted(before: str = "", **env: str) -> tuple[str, list[str]]:
    """Count and score words interpreted and compiled in a process of its own; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTED.replace("{before}", before)],
        env={k: v for k, v in os.environ.items() if k != "LIKELY_NO_SIMD"} | {"PYTHONPATH": str(SOURCE)} | env,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), [line for line in done.stderr.splitlines() if "vector instructions" in line]


def test_compiled_loops_use_vector_instructions_by_default() -> None:
    assert counted() == ("simd True True", [])
    assert counted(LIKELY_NO_SIMD="0") == ("simd True True", [])


def test_vector_instructions_can_be_switched_off_with_the_same_results() -> None:
    assert counted(LIKELY_NO_SIMD="1") == ("scalar True False", [])


def test_where_they_cannot_be_registered_plain_loops_are_used_and_one_message_is_printed() -> None:
    shown, messages = counted(BROKEN)
    assert shown == "scalar True True"
    assert len(messages) == 1
    assert "no such instruction" in messages[0]
