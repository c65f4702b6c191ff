"""Two classical ways in which columns depend on each other: along a tree, or each on each other by turns.

Both add, to what columns say alone, log P(a, b | class) / (P(a | class) P(b | class)) of pairs of columns: rows seen in a cell
against rows expected there if the two had nothing to do with each other within a class. A tree (Chow and Liu 1968, Friedman,
Geiger and Goldszmidt 1997) takes the pairs of the widest spanning tree by conditional mutual information. Averaged
one-dependence (Webb, Boughton and Wang 2005) takes all pairs, with one weight in common: the geometric mean of its models,
where the original takes the arithmetic one, so that every answer stays a sum of evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from likely.calibration.search import COLUMNS, Searched, Set
from likely.calibration.tables import SHRINKS, Axis, Cells, Rows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """Rows seen in the cells of two columns, class by class, and how many of them each column's own groups hold."""

    seen: Array  # first × second × classes
    shrink: float
    gain: float = 0.0
    error: float = 0.0
    groups: None = None  # the usual ones

    def _expected(self) -> tuple[Array, Array, Array]:
        return self.seen.sum(1), self.seen.sum(0), self.seen.sum((0, 1))

    def evidence(self) -> Array:
        """What each cell says of each class."""
        first, second, whole = self._expected()
        expected = first[:, None] * second[None] / np.maximum(whole, 1e-300)
        return np.log((self.seen + self.shrink) / (expected + self.shrink)).reshape(-1, self.seen.shape[2])

    def left_out(self, cells: Cells, rows: Rows) -> NDArray[np.float32]:
        """What the cell of every row says, once the row itself is taken out of what was seen and so of what is expected."""
        first, second, whole = self._expected()
        a, b = np.divmod(cells, self.seen.shape[1])
        one, whose = rows.left, np.arange(len(cells))
        out = self.evidence()[cells]
        own = (a, b, rows.labels)
        left = [np.maximum(n - one, 0.0) for n in (first[a, rows.labels], second[b, rows.labels], whole[rows.labels])]
        expected = np.where(left[2] > 0, left[0] * left[1] / np.maximum(left[2], 1e-300), 0.0)
        seen = np.maximum(self.seen[own] - one, 0.0)
        out[whose, rows.labels] = np.log((seen + self.shrink) / (expected + self.shrink))
        return out.astype(np.float32)

    def information(self) -> float:
        """How much the two columns tell of each other once the class is known, in nats a row."""
        first, second, whole = self._expected()
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(self.seen * whole / (first[:, None] * second[None]))
            each = np.where(self.seen > 0, self.seen * ratio, 0.0)
        return float(each.sum() / max(float(whole.sum()), 1e-300))


def count_pair(axes: Sequence[Axis], cells: Cells, rows: Rows) -> Pair:
    """The table of two columns, shrunk as leaving rows out asks."""
    classes = rows.shares.shape[1]
    sizes = (axes[0].size, axes[1].size, classes)
    counts = np.bincount(cells.astype(np.int64) * classes + rows.labels, rows.weights, int(np.prod(sizes)))
    seen = counts.astype(np.float64).reshape(sizes)
    return max((_judged(Pair(seen, shrink), cells, rows) for shrink in SHRINKS), key=lambda pair: pair.gain)


def _judged(pair: Pair, cells: Cells, rows: Rows) -> Pair:
    said = np.exp(pair.left_out(cells, rows).astype(np.float64))
    each = np.log(said[np.arange(len(cells)), rows.labels] / np.einsum("rc,rc->r", rows.shares, said))
    return Pair(pair.seen, pair.shrink, float(rows.weights @ each), float(np.sqrt(rows.weights @ (each * each))))


def chosen_pairs(
    columns: dict[int, Searched], names: Sequence[str], rows: Rows, tree: bool
) -> dict[Set, tuple[Pair, Cells]]:
    """All pairs of columns, or those of the widest tree that spans them; the order of the columns makes no difference."""
    found: dict[Set, tuple[Pair, Cells]] = {}
    for pair in combinations(sorted(columns, key=lambda i: names[i])[:COLUMNS], 2):
        parts = [columns[i] for i in pair]
        axes, cells = Searched.together(parts, [part.of_pairs for part in parts])
        found[pair] = (count_pair(axes, cells, rows), cells)
    if not tree:
        return found
    joined = {i: i for i in columns}
    kept: dict[Set, tuple[Pair, Cells]] = {}
    # Pairs that tell equally much, but for rounding, stand in the order of their names.
    for widest in sorted(found, key=lambda pair: -round(found[pair][0].information(), 12)):
        one, two = joined[widest[0]], joined[widest[1]]
        if one != two:
            kept[widest] = found[widest]
            joined = {i: one if root == two else root for i, root in joined.items()}
    return kept
