"""The hash of rows and documents: mixing of 64-bit words, the same on every machine."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


def mix_fast(x: Words) -> Words:
    """Mix bits by the two multiplications of splitmix64's finaliser: the high bits are well mixed."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)


def mix(x: Words) -> Words:
    """Mix bits by the complete finaliser of splitmix64: all bits are well mixed."""
    x = mix_fast(x)
    return x ^ (x >> np.uint64(31))


def digest(text: bytes) -> int:
    """64 bits of a digest (BLAKE2b)."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
