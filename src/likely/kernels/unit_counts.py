"""Kernels that count rows of weight one: several categorical columns in one table, numbers in a window of cells.

Both find the places of a thousand rows first and count them then: the first loop runs on several rows at a time.
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
    one = np.uint32(1)
    places = np.empty(1024, np.uint32)
    hashing = total.shape[0] > 0
    for start in range(0, first.shape[0], 1024):
        stop = min(first.shape[0], start + 1024)
        for i in range(start, stop):  # as unsigned numbers, negative codes are above every domain
            place = min(np.uint32(first[i]), a) * (b + one) + min(np.uint32(second[i]), b)
            places[i - start] = (place * (c + one) + min(np.uint32(third[i]), c)) * (d + one) + min(np.uint32(fourth[i]), d)
        for i in range(start, stop):
            counts[y[i], places[i - start]] += one
        if hashing:
            for i in range(start, stop):
                total[i] += hashes[places[i - start]]


@Kernel
def count_window(bits, y, window, rest, counts):  # type: ignore[no-untyped-def]
    """Count numbers by class and cell in an array of adjacent cells; returns how many other rows are listed in `rest`.

    `window` is the number of trailing bits that are dropped, the first cell, and the bits that must be zero. Cells are
    those of the absolute value, with the sign as their last bit. Those of negative numbers are numbered downwards, so
    their absolute values are rounded up. After them there are two places for other numbers, and two for zero.
    """
    level, low, zero = np.uint64(window[0]), np.uint64(window[1]), np.uint64(window[2])
    one, sign, without_sign, infinite = np.uint64(1), np.uint64(63), np.uint64(LARGEST), np.uint64(INFINITE)
    span = np.uint64((counts.shape[1] >> 1) - 2)
    up = (one << level) - one
    places = np.empty(1024, np.uint32)
    listed = 0
    for start in range(0, bits.shape[0], 1024):
        stop = min(bits.shape[0], start + 1024)
        odd = False
        for i in range(start, stop):
            negative = bits[i] >> sign
            size = bits[i] & without_sign
            place = ((size + (up if negative else np.uint64(0))) >> level) - low  # a very large number if it is below
            place = span if place > span or (size & zero) else place
            place = place if size else span + one
            odd |= place == span
            places[i - start] = np.uint32((place << one) | negative)
        if not odd:
            for i in range(start, stop):
                counts[y[i], places[i - start]] += np.uint32(1)
            continue
        for i in range(start, stop):
            if places[i - start] >> np.uint32(1) != span:
                counts[y[i], places[i - start]] += np.uint32(1)
            elif bits[i] & without_sign <= infinite:  # others are not numbers
                rest[listed] = i
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
