"""Kernels over the bits of numbers: histograms in cells of leading bits, and hashes of the cells of rows."""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import Kernel

SLOTS = 1 << 13
MIX = -7046029254386353131  # 2^64 divided by the golden ratio, as a signed number
LARGEST = 0x7FFFFFFFFFFFFFFF
INFINITE = 0x7FF0000000000000
ONE, TWO, THREE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
THIRTY, TWENTY_SEVEN, THIRTY_ONE = np.uint64(30), np.uint64(27), np.uint64(31)
NAN, MINUS_ZERO, ZERO = np.uint64(0x7FF8000000000000), np.uint64(1 << 63), np.uint64(0)
INFINITE_BITS, WITHOUT_SIGN, SINGLE = np.uint64(INFINITE), np.uint64(LARGEST), np.uint64(1)


@Kernel
def count_cells(bits, y, w, state, slots, cells, counts):  # type: ignore[no-untyped-def]
    """Weight of every cell and class; where there are too many cells, the last bit of all is dropped.

    `state` is the number of dropped bits, the number of cells, and 1 if a number is infinite. `slots` is a hash table of
    positions in `cells`, which hold the leading bits, and in `counts`, cells × classes.
    """
    level, n = state[0], state[1]
    most, mask = cells.shape[0] - 1, slots.shape[0] - 1
    for i in range(bits.shape[0]):
        c = y[i]
        weight = w[i]
        if c < 0 or not weight > 0.0:
            continue
        size = bits[i] & LARGEST
        if size >= INFINITE:
            if size > INFINITE:
                continue
            state[2] = 1
            return
        key = (-size if bits[i] < 0 else size) >> level
        while True:
            place = ((key * MIX) >> 51) & mask
            while slots[place] >= 0 and cells[slots[place]] != key:
                place = (place + 1) & mask
            if slots[place] >= 0:
                break
            if n < most:
                slots[place] = n
                cells[n] = key
                n += 1
                break
            level += 1
            key = key >> 1
            slots[:] = -1
            kept = 0
            for j in range(n):
                wider = cells[j] >> 1
                at = ((wider * MIX) >> 51) & mask
                while slots[at] >= 0 and cells[slots[at]] != wider:
                    at = (at + 1) & mask
                if slots[at] < 0:
                    slots[at] = kept
                    cells[kept] = wider
                    for k in range(counts.shape[1]):
                        counts[kept, k] = counts[j, k]
                        if kept != j:
                            counts[j, k] = 0.0
                    kept += 1
                else:
                    for k in range(counts.shape[1]):
                        counts[slots[at], k] += counts[j, k]
                        counts[j, k] = 0.0
            n = kept
        counts[slots[place], c] += weight
    state[0] = level
    state[1] = n


@Kernel
def add_code_hashes(codes, low, table, total):  # type: ignore[no-untyped-def]
    """Add the hash of every cell of a categorical column; the last entry of the table is that of a missing cell."""
    size = table.shape[0] - 1
    for i in range(codes.shape[0]):
        v = codes[i] - low
        total[i] += table[v] if 0 <= v < size else table[size]


@Kernel
def add_number_hashes(bits, seed, total):  # type: ignore[no-untyped-def]
    """Add the hash of every number of a column, as `row_sample.number_hashes` makes it."""
    own = seed[0]
    for i in range(bits.shape[0]):
        x = bits[i]
        if x == MINUS_ZERO:
            x = ZERO
        elif (x & WITHOUT_SIGN) > INFINITE_BITS:
            x = NAN
        x = (x ^ own) + ONE
        x = (x ^ (x >> THIRTY)) * TWO
        x = (x ^ (x >> TWENTY_SEVEN)) * THREE
        total[i] += x ^ (x >> THIRTY_ONE)


@Kernel
def keys_of_sums(total, keys):  # type: ignore[no-untyped-def]
    """The keys of rows from the sums of their cells' hashes, as `keys.to_keys` makes them."""
    for i in range(total.shape[0]):
        x = total[i] + ONE
        x = (x ^ (x >> THIRTY)) * TWO
        x = (x ^ (x >> TWENTY_SEVEN)) * THREE
        keys[i] = (x ^ (x >> THIRTY_ONE)) >> SINGLE
