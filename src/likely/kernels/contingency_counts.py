"""Contingency tables over integer codes: counts of a family (a node with its parents), and scores of many families."""

from __future__ import annotations

import math

import numpy as np

from likely.kernels.kernel import ComposedKernel, Kernel, piece

LOG_LIKELIHOOD, BIC, AIC, BDEU, K2 = range(5)


@piece
def count_in_banks(place, some, cells, banks):  # type: ignore[no-untyped-def]
    """Count places in four tables in turn: a cell that comes again need not wait for the last time."""
    for i in range(0, some - 3, 4):
        banks[place[i]] += 1
        banks[cells + place[i + 1]] += 1
        banks[2 * cells + place[i + 2]] += 1
        banks[3 * cells + place[i + 3]] += 1
    for i in range(some // 4 * 4, some):
        banks[place[i]] += 1


@piece
def add_banks(banks, cells, out):  # type: ignore[no-untyped-def]
    """Add the four tables to one."""
    for k in range(cells):
        out[k] += banks[k] + banks[cells + k] + banks[2 * cells + k] + banks[3 * cells + k]


@ComposedKernel
def count_family(codes, members, strides, w, out):  # type: ignore[no-untyped-def]
    """Add the weight of every row to its cell of a table; rows in which a member is missing (-1) are left out.

    `codes` has a line a column. An empty `w` counts every row once. Returns how many rows were left out.
    """
    rows = codes.shape[1]
    weighted = w.shape[0] > 0
    place = np.zeros(1024, np.int32)
    cells = out.shape[0]
    banked = not weighted and cells <= 65_536  # small tables are kept four times
    banks = np.zeros(4 * cells if banked else 0, np.int64)
    left_out = 0
    for start in range(0, rows, 1024):
        some = min(1024, rows - start)
        place[:] = 0
        least = 0
        for m in range(members.shape[0]):
            column = members[m]
            step = np.int32(strides[m])
            low = 0
            for i in range(some):
                v = codes[column, start + i]
                place[i] += step * v
                low = min(low, v)
            least = min(least, low)
        if least < 0:  # a cell is missing: these places are not those of the rows
            for i in range(some):
                for m in range(members.shape[0]):
                    if codes[members[m], start + i] < 0:
                        place[i] = -1
                        left_out += 1
                        break
        if least < 0 or not banked:
            for i in range(some):
                if place[i] >= 0:
                    out[place[i]] += w[start + i] if weighted else 1.0
        else:
            count_in_banks(place, some, cells, banks)
    if banked:
        add_banks(banks, cells, out)
    return left_out


@Kernel
def count_group(codes, members, sizes, out):  # type: ignore[no-untyped-def]
    """Add every row to its cell of the joint table of some columns; whether every cell of these columns was known.

    The table has at most 2**15 cells, in C order. Nothing is added where a cell is missing (-1).
    """
    rows = codes.shape[1]
    cells = out.shape[0]
    place = np.zeros(2048, np.int16)  # narrow, so that many fit into a vector register
    banks = np.zeros(2 * cells, np.int32)
    for start in range(0, rows, 2048):
        some = min(2048, rows - start)
        place[:] = 0
        least = 0
        for m in range(members.shape[0]):
            line = codes[members[m], start : start + some]
            size = np.int16(sizes[m])
            low = line[0]
            for i in range(some):
                place[i] = np.int16(place[i] * size + line[i])
                low = min(low, line[i])
            least = min(least, low)
        if least < 0:
            return False
        for i in range(0, some - 1, 2):  # two tables: a cell that comes again need not wait for the last time
            banks[place[i]] += 1
            banks[cells + place[i + 1]] += 1
        if some % 2:
            banks[place[some - 1]] += 1
    for k in range(cells):
        out[k] += banks[k] + banks[cells + k]
    return True


@ComposedKernel
def score_families(codes, w, card, first, members, gaps, kind, weight, table, out):  # type: ignore[no-untyped-def]
    """The score of each family: members[first[f]:first[f + 1]] are its parents and, last, the child.

    With N_ijk rows in which node i has value k under configuration j of its parents: the log-likelihood is the sum of
    N_ijk log(N_ijk / N_ij), from which BIC and AIC subtract `weight` for each free parameter; BDeu and K2 are log marginal
    likelihoods under Dirichlet priors of `weight` / (q r), and of `weight`, for each cell.
    `table` is scratch memory for the counts; `gaps` tells which columns have missing cells.
    """
    rows = codes.shape[1]
    weighted = w.shape[0] > 0
    place = np.zeros(1024, np.int32)
    banks = np.zeros(4 * min(table.shape[0], rows // 4), np.int64)
    for f in range(out.shape[0]):
        values = card[members[first[f + 1] - 1]]
        cells = 1
        for m in range(first[f], first[f + 1]):
            cells *= card[members[m]]
        for k in range(cells):
            table[k] = 0.0
        banked = not weighted and 4 * cells <= banks.shape[0]  # four tables, as above
        if banked:
            banks[: 4 * cells] = 0
        for start in range(0, rows, 1024):
            some = min(1024, rows - start)
            place[:] = 0
            open_ = False
            for m in range(first[f], first[f + 1]):
                column = members[m]
                size = np.int32(card[column])
                if gaps[column]:
                    open_ = True
                    for i in range(some):
                        v = codes[column, start + i]
                        place[i] = place[i] * size + v if v >= 0 and place[i] >= 0 else -1
                elif open_:
                    for i in range(some):
                        place[i] = place[i] * size + codes[column, start + i] if place[i] >= 0 else -1
                else:  # a view that begins at its first row, and 32-bit results: several rows at a time
                    line = codes[column, start : start + some]
                    for i in range(some):
                        place[i] = np.int32(np.int32(place[i] * size) + np.int32(line[i]))
            if open_:
                for i in range(some):
                    if place[i] >= 0:
                        table[place[i]] += w[start + i] if weighted else 1.0
            elif weighted:
                for i in range(some):
                    table[place[i]] += w[start + i]
            elif banked:
                count_in_banks(place, some, cells, banks)
            else:
                for i in range(some):
                    table[place[i]] += 1.0
        if banked:
            add_banks(banks, cells, table)
        configurations = cells // values
        cell = weight / cells if kind == 3 else weight
        cell_zero = math.lgamma(cell) if kind >= 3 else 0.0
        row_zero = math.lgamma(cell * values) if kind >= 3 else 0.0
        total = 0.0
        for j in range(configurations):
            n = 0.0
            for k in range(j * values, (j + 1) * values):
                n += table[k]
            if n > 0.0:
                if kind < 3:
                    for k in range(j * values, (j + 1) * values):
                        if table[k] > 0.0:
                            total += table[k] * math.log(table[k] / n)
                else:
                    total += row_zero - math.lgamma(cell * values + n)
                    for k in range(j * values, (j + 1) * values):
                        if table[k] > 0.0:
                            total += math.lgamma(cell + table[k]) - cell_zero
        if 1 <= kind <= 2:
            total -= weight * configurations * (values - 1)
        out[f] = total


@Kernel
def add_table_logs(codes, members, strides, logs, out):  # type: ignore[no-untyped-def]
    """Add to every row the log probability of its cell of a table; a row in which a member is missing becomes NaN."""
    for i in range(codes.shape[1]):
        place = 0
        for m in range(members.shape[0]):
            v = codes[members[m], i]
            place = place + strides[m] * v if v >= 0 and place >= 0 else -1
        out[i] += logs[place] if place >= 0 else np.nan
