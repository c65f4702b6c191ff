"""Tree-augmented naive Bayes and averaged one-dependence estimators, as pairwise terms.

Both add, to the terms of single columns, log P(a, b | class) / (P(a | class) P(b | class)) of pairs of columns: observed rows
of a cell against rows expected if the two were independent within the class. A tree (Chow and Liu 1968, Friedman, Geiger and
Goldszmidt 1997) has the pairs of the maximum spanning tree by conditional mutual information. Averaged one-dependence (Webb,
Boughton and Wang 2005) has all pairs with one common weight: the geometric mean of its models, where the original takes the
arithmetic one, so that scores stay sums of evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from likely.calibration._interaction_search import COLUMNS, ColumnSet, GroupedColumn
from likely.calibration._interaction_tables import SHRINKS, CellCodes, ScoredRows, TableAxis

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PairTable:
    """Observed rows in the cells of two columns, by class."""

    seen: Array  # first × second × classes
    shrink: float
    gain: float = 0.0
    error: float = 0.0
    groups: None = None  # the default ones

    def _expected(self) -> tuple[Array, Array, Array]:
        return self.seen.sum(1), self.seen.sum(0), self.seen.sum((0, 1))

    def evidence(self) -> Array:
        """Weight of evidence of each cell for each class."""
        first, second, total = self._expected()
        expected = first[:, None] * second[None] / np.maximum(total, 1e-300)
        return np.log((self.seen + self.shrink) / (expected + self.shrink)).reshape(-1, self.seen.shape[2])

    def left_out(self, cells: CellCodes, rows: ScoredRows) -> NDArray[np.float32]:
        """Weight of evidence of the cell of every row, the row left out of observed and expected rows."""
        first, second, total = self._expected()
        a, b = np.divmod(cells, self.seen.shape[1])
        one, index = rows.left, np.arange(len(cells))
        out = self.evidence()[cells]
        own = (a, b, rows.labels)
        left = [np.maximum(n - one, 0.0) for n in (first[a, rows.labels], second[b, rows.labels], total[rows.labels])]
        expected = np.where(left[2] > 0, left[0] * left[1] / np.maximum(left[2], 1e-300), 0.0)
        seen = np.maximum(self.seen[own] - one, 0.0)
        out[index, rows.labels] = np.log((seen + self.shrink) / (expected + self.shrink))
        return out.astype(np.float32)

    def information(self) -> float:
        """Mutual information of the two columns given the class, in nats per row."""
        first, second, total = self._expected()
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(self.seen * total / (first[:, None] * second[None]))
            each = np.where(self.seen > 0, self.seen * ratio, 0.0)
        return float(each.sum() / max(float(total.sum()), 1e-300))


def count_pair(axes: Sequence[TableAxis], cells: CellCodes, rows: ScoredRows) -> PairTable:
    """Table of two columns, its pseudocount chosen by leave-one-out."""
    classes = rows.probabilities.shape[1]
    sizes = (axes[0].size, axes[1].size, classes)
    counts = np.bincount(cells.astype(np.int64) * classes + rows.labels, rows.weights, int(np.prod(sizes)))
    seen = counts.astype(np.float64).reshape(sizes)
    return max((_with_gain(PairTable(seen, shrink), cells, rows) for shrink in SHRINKS), key=lambda pair: pair.gain)


def _with_gain(pair: PairTable, cells: CellCodes, rows: ScoredRows) -> PairTable:
    ratios = np.exp(pair.left_out(cells, rows).astype(np.float64))
    each = np.log(ratios[np.arange(len(cells)), rows.labels] / np.einsum("rc,rc->r", rows.probabilities, ratios))
    return PairTable(pair.seen, pair.shrink, float(rows.weights @ each), float(np.sqrt(rows.weights @ (each * each))))


def chosen_pairs(
    columns: dict[int, GroupedColumn], names: Sequence[str], rows: ScoredRows, tree: bool
) -> dict[ColumnSet, tuple[PairTable, CellCodes]]:
    """All pairs of columns, or those of the maximum spanning tree; independent of the order of the columns."""
    found: dict[ColumnSet, tuple[PairTable, CellCodes]] = {}
    for pair in combinations(sorted(columns, key=lambda i: names[i])[:COLUMNS], 2):
        parts = [columns[i] for i in pair]
        axes, cells = GroupedColumn.together(parts, [part.of_pairs for part in parts])
        found[pair] = (count_pair(axes, cells, rows), cells)
    if not tree:
        return found
    joined = {i: i for i in columns}
    kept: dict[ColumnSet, tuple[PairTable, CellCodes]] = {}
    # Pairs of equal mutual information, up to rounding, are ordered by name.
    for edge in sorted(found, key=lambda each: -round(found[each][0].information(), 12)):
        one, two = joined[edge[0]], joined[edge[1]]
        if one != two:
            kept[edge] = found[edge]
            joined = {i: one if root == two else root for i, root in joined.items()}
    return kept
