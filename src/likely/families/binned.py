"""Columns of numbers of any shape: cut into bins of equal weight, each bin a value with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from likely.errors import UsageError
from likely.families.base import Encoded, Imagined, Labels, Parameters, Readable, first_bad, imagined_rows, log_shares
from likely.families.evidence import COMPILED, weigh
from likely.families.forms import Steps
from likely.families.histogram import MOST, Histogram
from likely.families.statistics import Array, Statistic
from likely.schema import Column
from likely.threads import in_parallel


@dataclass(frozen=True)
class Binned:
    """A histogram per class: no bell curve, no logarithm, no outlier can mislead it.

    `bins` is how many bins there are at most; `cut` says how the edges are found: "quantiles" (equal weight, neighbours
    lending to each other) or "mdl" (by the labels, as long as an edge shortens the description of them).
    """

    bins: int = 128
    cut: str = "quantiles"

    name: ClassVar[str] = "binned"
    single: ClassVar[bool] = True
    strict: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.bins, bool) or not isinstance(self.bins, int) or not 2 <= self.bins <= MOST:
            raise UsageError(f"Binned(bins={self.bins!r}): use a whole number from 2 to {MOST}")
        if self.cut not in ("quantiles", "mdl"):
            raise UsageError(f"Binned(cut={self.cut!r}) is not known: choose 'quantiles' or 'mdl'")

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """How often each number was seen in each class, column by column."""
        columns = range(rows.numbers.shape[1])
        return [Histogram.of(rows.numbers[:, j], labels, weights, classes) for j in columns]

    def edges(self, tallied: Histogram) -> Array:
        """Where the numbers are cut."""
        return tallied.edges(self.bins) if self.cut == "quantiles" else mdl_edges(tallied, self.bins)

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        tallied: Sequence[Histogram],
        imagined: Sequence[Imagined],
        classes: Sequence[Any],
        edges: Sequence[Array | None] | None = None,
    ) -> list[Parameters]:
        """What each bin says, once the imagined rows are added to the seen ones; `edges` may have been found before."""
        given = edges or [None] * len(blocks)
        cuts = [self.edges(each) if cut is None else cut for each, cut in zip(tallied, given, strict=True)]
        compiled = sum(len(cut) + 1 for cut in cuts) * len(classes) >= COMPILED

        def work(i: int) -> Parameters:
            return self._parameters(blocks[i][0].name, tallied[i], imagined[i], classes, cuts[i], compiled)

        numbers = range(len(blocks))
        return in_parallel(work, numbers) if compiled else [work(i) for i in numbers]

    def _parameters(
        self, name: str, tallied: Histogram, prior: Imagined, classes: Sequence[Any], edges: Array, compiled: bool
    ) -> Parameters:
        seen = tallied.cut(edges)
        if prior.chosen:
            rows_once = seen if prior.copies is None else seen / prior.copies
            evidence = weigh(rows_once, tallied.centres(edges) if self.cut == "quantiles" else None, compiled)
            table = np.concatenate([evidence.table, np.zeros((2, len(classes)))])
            shares, how = evidence.probabilities(), evidence.how
        else:
            bins = range(len(seen))
            logs = log_shares(seen.T, imagined_rows(prior, bins, seen.T), prior.unseen(len(seen)))
            table, evidence, shares, how = np.ascontiguousarray(logs.T), None, np.exp(logs[:, :-2]), ""
        rows = BinShares(name, tuple(classes), (-np.inf, *edges.tolist(), np.inf), seen, shares)
        entries = len(classes) * len(seen)
        low, high = tallied.range()
        form = Steps(table, edges, low, high)
        how = f"{len(seen)} bins{', ' if how else ''}{how}"
        return Parameters((name,), form, rows, entries, entries - len(classes), how=how, evidence=evidence)

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """Infinity lies in no bin."""
        return first_bad(np.isinf(numbers), "is not a finite number")

    def settings(self) -> dict[str, Any]:
        """What is needed to make this family again."""
        return {"bins": self.bins, "cut": self.cut}


@dataclass(frozen=True, eq=False)
class BinShares(Readable):
    """A table of bins to read, one line a class and bin."""

    column: str
    classes: tuple[Any, ...]
    ends: tuple[float, ...]
    seen: Array  # bins × classes
    shares: Array  # classes × bins

    def __len__(self) -> int:
        return len(self.classes) * len(self.seen)

    def line(self, number: int) -> dict[str, Any]:
        """The share of one bin in one class."""
        c, b = divmod(number, len(self.seen))
        return {
            "column": self.column, "class": self.classes[c], "from": self.ends[b], "to": self.ends[b + 1],
            "count": float(self.seen[b, c]), "probability": float(self.shares[c, b]),
        }  # fmt: skip


def mdl_edges(tallied: Histogram, most: int) -> Array:
    """Edges that shorten the description of the labels (Fayyad and Irani 1993), the best halving first."""
    counts = tallied.seen.T
    before = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    cuts: list[int] = []
    open_parts = [(0, len(counts))]
    while open_parts and len(cuts) < most - 1:
        a, b = open_parts.pop(0)
        at = _best_cut(before, a, b)
        if at:
            cuts.append(at)
            open_parts += [(a, at), (at, b)]
    return tallied.between(np.array(sorted(cuts), dtype=np.int64))


def _best_cut(before: Array, a: int, b: int) -> int:
    """Where a stretch of cells is best cut in two; 0 where that would not pay for itself."""
    if b - a < 2:
        return 0
    left, right, whole = before[a + 1 : b] - before[a], before[b] - before[a + 1 : b], before[b] - before[a]
    n = whole.sum()
    inside = (left.sum(1) * _entropy(left) + right.sum(1) * _entropy(right)) / n
    i = int(np.argmin(inside))
    k, k1, k2 = ((part > 0).sum() for part in (whole, left[i], right[i]))
    all_in_one = float(_entropy(whole[None])[0])
    dearer = np.log2(3.0**k - 2) if k < 600 else k * np.log2(3.0)
    parts = k * all_in_one - k1 * float(_entropy(left[i : i + 1])[0]) - k2 * float(_entropy(right[i : i + 1])[0])
    pays = all_in_one - inside[i] > (np.log2(max(n - 1, 1)) + dearer - parts) / n
    return a + 1 + i if pays else 0


def _entropy(counts: Array) -> Array:
    """Bits a row needs to name its class, line by line."""
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        bits: Array = -np.where(share > 0, share * np.log2(share), 0.0).sum(1)
    return bits
