"""Cells of a JSON document read in place: numbers as float64, texts as codes of their distinct values.

Only the simple case is read here, which is nearly every large table: each column holds numbers or texts, besides null. All
else (true, nested values, two types in one column, very many distinct texts, whole numbers beyond 2⁵³, a syntax error) ends
the scan, and the caller reads the document with a decoder that knows everything.
"""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import ComposedKernel, piece

UNKNOWN, WHOLE, TEXT, FRACTION = 0, 1, 2, 3  # what the cells of a column are: null only; whole numbers; texts; any numbers
BAD, EXACT, LONG = 0, 1, 2  # no number; its value; more digits than are converted exactly here
DISTINCT, SLOTS, PROBES = 4_096, 16_384, 48  # distinct texts of a column; a full table and crafted hashes end the scan
FIRST_WEIGHT, WEIGHT_FACTOR = 0x2545F491, 0x1E3779B1  # of the hash of a text
RECENT = 256  # texts that are tried first, by two of their bytes
EXACT_WHOLE, MOST_DIGITS, EXACT_POWER = 1 << 53, 10**17, 22
POWERS = np.array([float(10**power) for power in range(EXACT_POWER + 1)])


@piece
def skip_space(data, at, end):  # type: ignore[no-untyped-def]
    """Index of the next character that is not white space."""
    while at < end and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@piece
def read_digits(data, at, end, mantissa):  # type: ignore[no-untyped-def]
    """Index after some digits, and the mantissa extended by them; it stops growing after `MOST_DIGITS`."""
    while at < end:
        digit = int(data[at]) - 48
        if digit < 0 or digit > 9:
            break
        mantissa = mantissa * 10 + digit if mantissa < MOST_DIGITS else MOST_DIGITS
        at += 1
    return at, mantissa


@piece
def read_number(data, at, end):  # type: ignore[no-untyped-def]
    """Index after a number, its value, whether that is exact, and whether it is written as a whole number.

    A mantissa of at most 2⁵³ and a power of ten of at most 10²² are exact, so that one operation rounds once.
    """
    negative = data[at] == 45
    first = at + 1 if negative else at
    at, mantissa = read_digits(data, first, end, 0)
    if at == first or (data[first] == 48 and at > first + 1):  # none, or a leading zero
        return at, 0.0, BAD, True
    power, whole = 0, True
    if at < end and data[at] == 46:
        whole, point = False, at
        at, mantissa = read_digits(data, point + 1, end, mantissa)
        power = point + 1 - at
        if not power:
            return at, 0.0, BAD, False
    if at < end and (data[at] == 101 or data[at] == 69):
        whole, sign, first = False, 1, at + 1
        if first < end and (data[first] == 45 or data[first] == 43):
            sign = -1 if data[first] == 45 else 1
            first += 1
        at, exponent = read_digits(data, first, end, 0)
        if at == first:
            return at, 0.0, BAD, False
        power += sign * exponent
    if mantissa > EXACT_WHOLE or power > EXACT_POWER or power < -EXACT_POWER:
        return at, 0.0, BAD if whole else LONG, whole
    value = float(mantissa)
    if power:
        value = value * POWERS[power] if power > 0 else value / POWERS[-power]
    return at, -value if negative and not (whole and mantissa == 0) else value, EXACT, whole


@piece
def text_end(data, at, end):  # type: ignore[no-untyped-def]
    """Index of the quote that ends a text, and a hash of its bytes; -1 if there is none.

    The hash is a sum of products with weights that do not depend on the text, so that no product waits for another.
    """
    mixed, weight = 0, FIRST_WEIGHT
    while at < end:
        byte = int(data[at])
        if byte == 34:
            return at, (mixed ^ (mixed >> 17)) & 0x7FFFFFFF
        if byte < 32:
            return -1, 0
        mixed += byte * weight
        weight = (weight * WEIGHT_FACTOR) & 0x7FFFFFFF
        at += 2 if byte == 92 else 1
    return -1, 0


@piece
def repeated(data, at, end, texts, j, code):  # type: ignore[no-untyped-def]
    """End of the text at this index if it is the one with this code, else -1."""
    start = texts[j, code, 0]
    last = at + texts[j, code, 1] - start
    if last >= end or data[last] != 34:
        return -1
    start -= at
    while at < last:
        if data[at] != data[start + at]:
            return -1
        at += 1
    return last


@piece
def text_code(data, first, last, mixed, slots, texts, j, known):  # type: ignore[no-untyped-def]
    """Number of a text among the distinct ones; `known` for a new one, -1 if the table is full."""
    slot = mixed & (SLOTS - 1)
    for _ in range(PROBES):
        code = int(slots[j, slot])
        if code < 0:
            if known == DISTINCT:
                return -1
            slots[j, slot] = known
            texts[j, known, 0] = first
            texts[j, known, 1] = last
            return known
        start = texts[j, code, 0]
        if texts[j, code, 1] - start == last - first:
            same = 0
            while first + same < last and data[start + same] == data[first + same]:
                same += 1
            if first + same == last:
                return code
        slot = (slot + 1) & (SLOTS - 1)
    return -1


@piece
def after_key(data, at, end, keys, first, last):  # type: ignore[no-untyped-def]
    """Index of the cell after a key and its colon; -1 if the key is another one."""
    at = skip_space(data, at, end)
    if at + last - first >= end:
        return -1
    for i in range(last - first):
        if data[at + i] != keys[first + i]:
            return -1
    at = skip_space(data, at + last - first, end)
    if at >= end or data[at] != 58:
        return -1
    return skip_space(data, at + 1, end)


@ComposedKernel
def scan_cells(data, at, keys, key_ends, cells, kinds, slots, recent, texts, known, long_bytes, long_ends, long_cells):  # type: ignore[no-untyped-def]
    """Read an array of cells, or of objects that all have the same keys in the same order.

    Numbers, or codes of texts, go to `cells` (columns × rows), null as NaN; the places of distinct texts to `texts`. Numbers
    with too many digits are copied to `long_bytes`, for a decoder. `at` is behind the opening bracket; returns the number of
    rows, the place behind the closing bracket and the number of long numbers; rows are 0 where the scan has ended early.
    """
    end, rows, longs, copied = data.size, 0, 0, 0
    objects = key_ends.size > 1
    columns, most = cells.shape
    while rows < most:
        at = skip_space(data, at, end)
        if objects:
            if at >= end or data[at] != 123:
                return 0, at, longs
            at += 1
        for j in range(columns):
            if objects:
                at = after_key(data, at, end, keys, key_ends[j], key_ends[j + 1])
            if at < 0 or at >= end:
                return 0, at, longs
            byte, value, kind = int(data[at]), np.nan, UNKNOWN
            if byte == 34:
                guess = (int(data[min(at + 1, end - 1)]) * 4 + int(data[min(at + 3, end - 1)])) & (RECENT - 1)
                code = int(recent[j, guess])
                last = repeated(data, at + 1, end, texts, j, code) if code >= 0 else -1
                if last < 0:
                    last, mixed = text_end(data, at + 1, end)
                    if last < 0:
                        return 0, at, longs
                    code = text_code(data, at + 1, last, mixed, slots, texts, j, known[j])
                    if code < 0:
                        return 0, at, longs
                    known[j] = max(known[j], code + 1)
                    recent[j, guess] = code
                at, value, kind = last + 1, float(code), TEXT
            elif byte == 110:
                if at + 4 > end or data[at + 1] != 117 or data[at + 2] != 108 or data[at + 3] != 108:
                    return 0, at, longs
                at += 4
            else:
                first = at
                at, value, exact, whole = read_number(data, at, end)
                if exact == BAD:
                    return 0, at, longs
                kind = WHOLE if whole else FRACTION
                if exact == LONG:
                    for i in range(first, at):
                        long_bytes[copied] = data[i]
                        copied += 1
                    long_cells[longs] = j * most + rows
                    longs += 1
                    long_ends[longs] = copied
            if kind != UNKNOWN:
                if (kind == TEXT) != (kinds[j] == TEXT) and kinds[j] != UNKNOWN:
                    return 0, at, longs
                kinds[j] = max(kinds[j], kind)
            cells[j, rows] = value
            at = skip_space(data, at, end)
            if objects:
                if at >= end or data[at] != (44 if j + 1 < columns else 125):
                    return 0, at, longs
                at += 1
        rows += 1
        at = skip_space(data, at, end)
        if at >= end or (data[at] != 44 and data[at] != 93):
            return 0, at, longs
        at += 1
        if data[at - 1] == 93:
            return rows, at, longs
    return 0, at, longs
