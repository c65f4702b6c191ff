"""Texts of the dictionaries of Arrow columns, made once for all batches that have the same ones."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from likely.sources.cell_values import tokens

LARGEST = 1 << 14  # bytes: larger dictionaries mostly differ from batch to batch


def text_values(dictionary: Any, missing: tuple[str, ...]) -> tuple[str, ...] | None:
    """The texts of a dictionary; None if it is large, or has repeated, missing or other values."""
    key = _content(dictionary)
    return None if key is None else _texts(*key, missing)


def _content(dictionary: Any) -> tuple[bytes, bytes] | None:
    """Ends and characters of all texts; None unless this is a small array of texts without gaps."""
    import pyarrow as pa

    if not pa.types.is_string(dictionary.type) or dictionary.null_count or dictionary.offset or not len(dictionary):
        return None
    _, ends, characters = dictionary.buffers()
    used = memoryview(ends)[: 4 * (len(dictionary) + 1)]
    size = int(np.frombuffer(used, np.int32)[-1])
    if size + len(used) > LARGEST:
        return None
    return bytes(used), bytes(memoryview(characters)[:size]) if size else b""


@lru_cache(512)
def _texts(ends: bytes, characters: bytes, missing: tuple[str, ...]) -> tuple[str, ...] | None:
    """The texts in order; None if any is repeated or missing."""
    at = np.frombuffer(ends, np.int32).tolist()
    texts = tuple(characters[a:b].decode() for a, b in pairwise(at))
    known = tokens(missing)
    return None if len(set(texts)) < len(texts) or any(text.strip() in known for text in texts) else texts
