"""Kernels that count rows of weight one: several categorical columns in one table, numbers in a window of cells.

Both find the places of a thousand rows first and count them then: the first loop runs on several rows at a time, which needs
views that begin at their first row, and 32-bit results where the compiler would take 64 bits.
"""

from __future__ import annotations

import numpy as np

from likely.kernels.cells import INFINITE, LARGEST
from likely.kernels.kernel import Kernel


@Kernel
def count_jointly(first, second, third, fourth, sizes, y, hashes, total, counts):  # type: ignore[no-untyped-def]
    """Count the combined values of four columns by class, and add the hash of each combination to the sums of rows.

    A value outside its column's domain is missing, and has the last place; a column that is not there has size 0. The last
    line of `counts`, combinations × classes, is for rows without a class, whose label is the number of combinations.
    """
    a, b, c, d = np.uint32(sizes[0]), np.uint32(sizes[1]), np.uint32(sizes[2]), np.uint32(sizes[3])
    one, width = np.uint32(1), np.uint32(counts.shape[1])
    after_a, after_b, after_c = np.uint32(b + one), np.uint32(c + one), np.uint32(d + one)
    places, cells = np.empty(1024, np.uint32), np.empty(1024, np.uint32)
    flat = counts.reshape(-1)
    hashing = total.shape[0] > 0
    for start in range(0, first.shape[0], 1024):
        stop = min(first.shape[0], start + 1024)
        v, w, x, z, label = first[start:stop], second[start:stop], third[start:stop], fourth[start:stop], y[start:stop]
        for i in range(stop - start):  # as unsigned numbers, negative codes are above every domain
            place = np.uint32(np.uint32(min(np.uint32(v[i]), a) * after_a) + min(np.uint32(w[i]), b))
            place = np.uint32(np.uint32(place * after_b) + min(np.uint32(x[i]), c))
            place = np.uint32(np.uint32(place * after_c) + min(np.uint32(z[i]), d))
            places[i] = place
            cells[i] = np.uint32(place + np.uint32(label[i] * width))
        for i in range(stop - start):
            flat[cells[i]] += one
        if hashing:
            sums = total[start:stop]
            for i in range(stop - start):
                sums[i] += hashes[places[i]]


@Kernel
def count_window(bits, y, window, rest, counts):  # type: ignore[no-untyped-def]
    """Count numbers by class and cell in an array of adjacent cells; returns how many other rows are listed in `rest`.

    `window` is the number of trailing bits that are dropped, the first cell, and the bits that must be zero. Cells are
    those of the absolute value, with the sign as their last bit. Those of negative numbers are numbered downwards, so
    their absolute values are rounded up. After them there are two places for other numbers, and two for zero.
    """
    level, low, zero = np.uint64(window[0]), np.uint64(window[1]), np.uint64(window[2])
    one, sign, without_sign, infinite = np.uint64(1), np.uint64(63), np.uint64(LARGEST), np.uint64(INFINITE)
    span, width = np.uint64((counts.shape[1] >> 1) - 2), np.uint32(counts.shape[1])
    up = (one << level) - one
    cells = np.empty(1024, np.uint32)
    flat = counts.reshape(-1)
    listed = 0
    for start in range(0, bits.shape[0], 1024):
        stop = min(bits.shape[0], start + 1024)
        own, label = bits[start:stop], y[start:stop]
        odd = False
        for i in range(stop - start):
            negative = own[i] >> sign
            size = own[i] & without_sign
            place = ((size + (up if negative else np.uint64(0))) >> level) - low  # a very large number if it is below
            place = span if place > span or (size & zero) else place
            place = place if size else span + one
            odd |= place == span
            cells[i] = np.uint32(np.uint32((place << one) | negative) + np.uint32(label[i] * width))
        if not odd:
            for i in range(stop - start):
                flat[cells[i]] += np.uint32(1)
            continue
        for i in range(stop - start):
            if np.uint32(cells[i] - np.uint32(label[i] * width)) >> np.uint32(1) != span:
                flat[cells[i]] += np.uint32(1)
            elif own[i] & without_sign <= infinite:  # others are not numbers
                rest[listed] = start + i
                listed += 1
    return listed


@Kernel
def cells_of_window(counts, low, keys, seen):  # type: ignore[no-untyped-def]
    """Keys and weights of the cells of a window that are not empty, from the lowest number on; returns their number.

    Keys are those of signed numbers; the cell of zero has those of both signs.
    """
    classes, span = counts.shape[0] - 1, (counts.shape[1] >> 1) - 2
    n = 0
    for step in range(-span, span + 1):
        key, first, second = 0, 2 * span + 2, 2 * span + 3
        if step < 0:
            key, first, second = step + 1 - low, 2 * (-step - 1) + 1, -1
        elif step > 0:
            key, first, second = step - 1 + low, 2 * (step - 1), -1
        there = False
        for c in range(classes):
            there |= counts[c, first] > 0 or (second >= 0 and counts[c, second] > 0)
        if not there:
            continue
        again = n > 0 and keys[n - 1] == key  # the cell of the smallest numbers is that of zero, too
        n -= again
        for c in range(classes):
            weight = counts[c, first] + (counts[c, second] if second >= 0 else 0)
            seen[c, n] = (seen[c, n] if again else 0.0) + weight
        keys[n] = key
        n += 1
    return n
