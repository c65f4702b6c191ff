"""Contingency tables: G-test of independence within strata, by chi-square and by permutation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likely.bayes.special import gamma_cdf

Counts = NDArray[np.int64]


def g_statistic(table: Counts) -> float:
    """G = 2 Σ O log(O / E) of one table, where E are the counts expected under independence."""
    return float(_g_statistics(table[None])[0])


def _g_statistics(tables: Counts) -> NDArray[np.float64]:
    """G of every table of a stack; all have the same rows and columns summed over."""
    def entropy_sum(counts: Counts) -> NDArray[np.float64]:
        x = counts.astype(np.float64)
        terms: NDArray[np.float64] = x * np.log(np.where(x > 0, x, 1.0))
        return terms

    cells = entropy_sum(tables).sum((1, 2))
    sides = entropy_sum(tables.sum(2)).sum(1) + entropy_sum(tables.sum(1)).sum(1)
    found = 2.0 * (cells - sides + entropy_sum(tables.sum((1, 2))))
    size = np.abs(cells) + np.abs(sides)
    clean: NDArray[np.float64] = np.where(found > 1e-13 * size, found, 0.0)  # what is left of an exact 0
    return clean


def degrees_of_freedom(table: Counts) -> int:
    """(rows − 1)(columns − 1), rows and columns without counts left out."""
    rows, columns = int((table.sum(1) > 0).sum()), int((table.sum(0) > 0).sum())
    return max(rows - 1, 0) * max(columns - 1, 0)


def chi_square_p_value(statistic: float, degrees: int) -> float:
    """P(χ² ≥ statistic) with some degrees of freedom; 1 where there are none."""
    return gamma_cdf(degrees / 2, statistic / 2)[1] if degrees else 1.0


def permutation_p_value(tables: list[Counts], statistic: float, permutations: int, seed: int) -> float:
    """Share of permutations within the strata whose G is as great, the data themselves counted as one of them.

    Permuting one column within a stratum keeps both margins of its table, so a table is drawn from the
    multivariate hypergeometric distribution row by row: the cost does not depend on the number of rows of data.
    """
    rng = np.random.default_rng(seed)
    drawn = np.zeros(permutations)
    for table in tables:
        if degrees_of_freedom(table):
            drawn += _g_statistics(_permuted_tables(table, permutations, rng))
    as_great = int((drawn >= statistic * (1 - 1e-12)).sum())
    return (1 + as_great) / (1 + permutations)


def _permuted_tables(table: Counts, permutations: int, rng: np.random.Generator) -> Counts:
    found = np.empty((permutations, *table.shape), np.int64)
    totals = table.sum(1)
    for i in range(permutations):
        left = table.sum(0)
        for r, n in enumerate(totals[:-1]):
            found[i, r] = rng.multivariate_hypergeometric(left, int(n), method="marginals")
            left = left - found[i, r]
        found[i, -1] = left
    return found
