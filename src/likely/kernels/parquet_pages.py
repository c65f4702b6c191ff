"""Kernels over the bytes of a column of a Parquet file: headers of its pages, and indices into its dictionary.

The bytes are not trusted: what is not as expected is reported by a negative result, and nothing outside the arrays is read.
"""

from __future__ import annotations

import numpy as np

from likely.kernels.kernel import ComposedKernel, piece

KIND, UNPACKED, PACKED, VALUES, ENCODING, LEVELS, START = range(7)  # of a page, where START is that of its content
HEADER = 7  # numbers
DATA, DICTIONARY = 0, 2  # kinds
OLD_INDICES, RUNS, INDICES = 2, 3, 8  # encodings
DEEPEST = 8  # structures within structures of a header
PADDING = 16  # bytes that are zero behind those of the file, so that whole words can be read
WIDEST = 16  # bits of an index


@piece
def read_varint(data, at):  # type: ignore[no-untyped-def]
    """A number of variable length and the offset behind it, which is negative where there is none."""
    value = shift = np.int64(0)
    while shift < 63 and at < len(data):
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    return value, np.int64(-1)


@piece
def read_field(data, at, kind):  # type: ignore[no-untyped-def]
    """A number, or the size of text, and the offset behind the field, which is negative where it is of no known kind."""
    value = np.int64(0)
    if 4 <= kind <= 6:
        value, at = read_varint(data, at)
        value = (value >> 1) ^ -(value & 1)
    elif kind == 8:
        value, at = read_varint(data, at)
        at = at + value if at >= 0 and 0 <= value <= len(data) else np.int64(-1)
    elif kind == 3:
        at += 1
    elif kind == 7:
        at += 8
    elif kind not in (1, 2):
        at = np.int64(-1)
    return value, at


@piece
def read_header(data, at, size, own):  # type: ignore[no-untyped-def]
    """Read the header of a page; returns the offset of its content, or -1.

    Fields 1 to 3 are its kind and its size unpacked and packed; 5 and 7 are the structures of a data page and of a
    dictionary, with the number of values, the encoding, and in a data page that of the levels.
    """
    depth, number = 0, np.zeros(DEEPEST, np.int64)
    while depth >= 0:
        if at < 0 or at >= size:
            return np.int64(-1)
        head = np.int64(data[at])
        at += 1
        if head == 0:
            depth -= 1
            continue
        kind, value = head & 15, np.int64(0)
        number[depth] += head >> 4
        if head < 16 or depth + 1 == DEEPEST:
            return np.int64(-1)  # the former are fields with distant numbers, of which a header has none
        if kind == 12:
            depth += 1
            number[depth] = 0
            continue
        value, at = read_field(data, at, kind)
        if depth == 0 and number[0] <= 3:
            own[number[0] - 1] = value
        elif depth == 1 and number[0] in (5, 7) and number[1] <= 3:
            own[2 + number[1]] = value
    return at


@ComposedKernel
def read_headers(data, pages):  # type: ignore[no-untyped-def]
    """Read the headers of all pages, in Thrift's compact protocol; returns the number of pages, or -1."""
    size, n, at = len(data) - PADDING, 0, np.int64(0)
    while at < size:
        if n == len(pages):
            return -1
        at = read_header(data, at, size, pages[n])
        if at < 0 or not 0 <= pages[n, PACKED] <= size - at:
            return -1
        pages[n, START] = at
        at += pages[n, PACKED]
        n += 1
    return n


@piece
def unpack_bits(data, at, width, values, out):  # type: ignore[no-untyped-def]
    """Unpack numbers of up to 16 bits, eight at a time; so many more may be written as complete the last eight."""
    bits = np.uint64(width)
    mask = (np.uint64(1) << bits) - np.uint64(1)
    second, rest = (4 * width) >> 3, np.uint64((4 * width) & 7)
    for i in range(0, values, 8):
        one, other, x, y = data[at : at + 8], data[at + second : at + second + 8], np.uint64(0), np.uint64(0)
        for k in range(8):
            x |= np.uint64(one[k]) << np.uint64(8 * k)
            y |= np.uint64(other[k]) << np.uint64(8 * k)
        y >>= rest
        eight = out[i : i + 8]
        for k in range(4):
            eight[k] = np.uint32((x >> (np.uint64(k) * bits)) & mask)
            eight[k + 4] = np.uint32((y >> (np.uint64(k) * bits)) & mask)
        at += width


@piece
def read_runs(data, at, end, width, values, out):  # type: ignore[no-untyped-def]
    """Read numbers in Parquet's hybrid of repeated and packed ones; returns the offset behind them, -1 if they are fewer."""
    done = 0
    while done < values:
        if at < 0 or at >= end:
            return -1
        head, at = read_varint(data, at)
        count = head >> 1
        if at < 0 or count <= 0 or count > end - at + values:
            return -1
        size = count * width if head & 1 else (width + 7) >> 3
        if at + size > end:
            return -1
        if head & 1:
            some = min(8 * count, values - done)
            unpack_bits(data, at, width, some, out[done : done + ((some + 7) & ~7)])
        else:
            some = min(count, values - done)
            value = np.uint32(data[at]) if width else np.uint32(0)
            if width > 8:
                value |= np.uint32(data[at + 1]) << np.uint32(8)
            out[done : done + some] = value
        done += some
        at += size
    return at


@piece
def read_page(data, at, end, size, there, found):  # type: ignore[no-untyped-def]
    """Read the indices of a page, and, unless `there` is empty, which of its cells are there; returns their number, or -1."""
    present = np.int64(len(found) - 8)
    if len(there):
        length = np.int64(0)
        for k in range(4):
            length |= np.int64(data[at + k]) << (8 * k)
        at += 4
        if at + length > end or read_runs(data, at, at + length, 1, present, there) < 0:
            return -1
        at, present = at + length, np.int64(there[:present].sum())
    width, highest = np.int64(data[at]), np.uint32(0)
    if present and (at >= end or width > WIDEST or read_runs(data, at + 1, end, width, present, found) < 0):
        return -1
    for i in range(present):
        highest = max(highest, found[i])
    return -1 if present and highest >= size else present


@ComposedKernel
def read_indices(data, pages, skipped, size, nullable, out):  # type: ignore[no-untyped-def]
    """Indices of a range of rows, -1 where a cell is missing, from the unpacked content of the pages that hold them.

    `pages` are the number of values and the end of each page; so many rows of the first are `skipped`. Returns the number of
    missing cells, or -1 if there are not so many indices below `size`.
    """
    done, at, missing = 0, np.int64(0), np.int64(0)
    found = np.zeros(pages[:, 0].max() + 8, np.uint32)
    there = np.zeros(len(found) if nullable else 0, np.uint32)
    for p in range(len(pages)):
        values, end = pages[p, 0], pages[p, 1]
        present = read_page(data, at, end, size, there, found[: values + 8])
        if present < 0:
            return -1
        some = min(values - skipped, len(out) - done)
        own = out[done : done + some]
        if present == values:
            first = found[skipped : skipped + some]
            for i in range(some):
                own[i] = np.int32(first[i])
        else:
            place, known = np.int64(there[:skipped].sum()), there[skipped : skipped + some]
            for i in range(some):
                own[i] = np.int32(found[place]) if known[i] else np.int32(-1)
                place += known[i]
            missing += np.int64(some - known.sum())
        done, skipped, at = done + some, 0, end
    return missing if done == len(out) else -1
