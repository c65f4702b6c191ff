"""Columns of numbers of any distribution: bins of equal weight, each a value with its weight of evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.families.base import BlockPrior, Encoded, Labels, Parameters, Readable, log_probabilities, pseudocounts_of
from likely.families.compiled_choice import choose_all
from likely.families.family import Family, FittedBlock, SampledCells
from likely.families.histogram import MOST, Histogram, to_numbers
from likely.families.likelihoods import BinnedTable
from likely.families.smoothing_choice import SmoothedEvidence, choose_smoothing
from likely.families.statistics import Array, Statistic
from likely.families.value_tables import dependence, draw_places, shares_of, weighted_logs
from likely.kernels.parallel import cached_property
from likely.schema import Column

MANY_COLUMNS = 300  # from which compiled loops pay even for little work on each
USUAL_BINS, NUMBERS_PER_BIN = 128, 4  # more bins only where each has so many distinct numbers: else they cost time and noise
WORTH_COMPILING = 20_000  # entries of the tables of all columns: with fewer, arrays take less time than loading the compiler
FEW_BINS = 16  # of a column of numbers, to test whether it depends on the class


@dataclass(frozen=True)
class Binned(Family):
    """Histogram per class, for numbers of any distribution.

    Parameters
    ----------
    bins : int, default=256
        Maximum number of bins; more than 128 only where each has at least four distinct numbers.
    cut : "quantiles" or "mdl"
        How the edges are found: bins of equal weight, smoothed over their neighbours; or by the labels, with the minimum
        description length criterion of Fayyad and Irani.
    """

    bins: int = 256
    cut: str = "quantiles"

    name: ClassVar[str] = "binned"
    one_column_at_a_time: ClassVar[bool] = True
    chooses_smoothing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.bins, bool) or not isinstance(self.bins, int) or not 2 <= self.bins <= MOST:
            raise UsageError(f"Binned(bins={self.bins!r}): use a whole number from 2 to {MOST}")
        if self.cut not in ("quantiles", "mdl"):
            raise UsageError(f"Binned(cut={self.cut!r}) is not known: choose 'quantiles' or 'mdl'")

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """Histogram of each column by class."""
        columns = rows.columns or list(rows.numbers.T)
        return list(Histogram.of_columns(columns, labels, weights, classes, rows.units, before=rows.before))

    def edges(self, histogram: Histogram, compiled: bool = False) -> Array:
        """Edges of the bins.

        Parameters
        ----------
        histogram : Histogram
            The counts of the column.
        compiled : bool, default=False
            Whether compiled loops are used, for large tables.

        Returns
        -------
        array
            The edges, in increasing order.
        """
        if self.cut != "quantiles":
            return mdl_edges(histogram, self.bins)
        return histogram.edges(min(self.bins, max(USUAL_BINS, len(histogram.keys) // NUMBERS_PER_BIN)), compiled)

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        statistics: Sequence[Histogram],
        priors: Sequence[BlockPrior],
        classes: Sequence[Any],
        edges: Sequence[Array | None] | None = None,
    ) -> list[Parameters]:
        """Smoothed evidence or log probability of each bin; `edges` may be given."""
        given = edges or [None] * len(blocks)
        wide = len(blocks) >= MANY_COLUMNS
        cuts = [self.edges(each, wide) if cut is None else cut for each, cut in zip(statistics, given, strict=True)]
        compiled = sum(len(cut) + 1 for cut in cuts) * len(classes) >= WORTH_COMPILING

        binned = [each.binned(cut, wide) for each, cut in zip(statistics, cuts, strict=True)]
        chosen = [i for i, prior in enumerate(priors) if prior.chosen]
        found = dict(zip(chosen, self._evidence([(*binned[i], priors[i]) for i in chosen], compiled), strict=True))
        return [
            self._parameters(
                blocks[i][0].name, statistics[i], priors[i], classes, edges=cuts[i], seen=binned[i][0], evidence=found.get(i)
            )
            for i in range(len(blocks))
        ]

    def _evidence(self, bins: Sequence[tuple[Array, Array, BlockPrior]], compiled: bool) -> list[SmoothedEvidence]:
        """Smoothed evidence of the bins of each column, which are given with the means of their numbers."""
        rows_once = [seen if prior.copies is None else seen / prior.copies for seen, _, prior in bins]
        centres = [means if self.cut == "quantiles" else None for _, means, _ in bins]
        return choose_all(rows_once, centres) if compiled else list(map(choose_smoothing, rows_once, centres))

    def _parameters(
        self, name: str, histogram: Histogram, prior: BlockPrior, classes: Sequence[Any], *, edges: Array, seen: Array,
        evidence: SmoothedEvidence | None,
    ) -> Parameters:
        if evidence is not None:
            table = np.concatenate([evidence.table, np.zeros((2, len(classes)))])
            logs, how = None, evidence.how
        else:
            bins = range(len(seen))
            logs = log_probabilities(seen.T, pseudocounts_of(prior, bins, seen.T), prior.unseen(len(seen)))
            table, how = np.ascontiguousarray(logs.T), ""
        rows = ReadableBins(name, tuple(classes), edges, seen, evidence, logs)
        entries = len(classes) * len(seen)
        low, high = histogram.range()
        likelihood = BinnedTable(table, edges, low, high)
        how = f"{len(seen)} bins{', ' if how else ''}{how}"
        return Parameters((name,), likelihood, rows, entries, entries - len(classes), how=how, evidence=evidence)

    def shown_settings(self) -> dict[str, Any]:
        """All settings, unless they are the defaults."""
        return {} if self == Binned() else self.settings()

    @classmethod
    def from_shorthand(cls, text: str) -> dict[str, Any]:
        """A number of bins, or how they are cut."""
        return {"bins": int(text)} if text.isdigit() else {"cut": text}

    def not_generative(self, prior: BlockPrior) -> str:
        """The term of a bin is a weight of evidence and not a density of the number."""
        return "is evidence for the classes and no density"

    def log_prior_density(self, block: FittedBlock) -> float:
        """Log density of a Dirichlet prior over the bins, whose edges are fixed."""
        table = block.likelihood.table
        bins = len(table) - 2
        pseudocounts = np.broadcast_to(block.prior.pseudocounts(range(bins)), (table.shape[1], bins))
        return weighted_logs(pseudocounts, table[:-2].T)

    def arc_probability(self, block: FittedBlock) -> float | None:
        """From a few bins of equal weight with a pseudocount of one each."""
        counted: Histogram = block.statistic
        return dependence(counted.cut(counted.edges(FEW_BINS)).T)

    def mutual_information(self, block: FittedBlock) -> float | None:
        """Σ p(b) Σ p(c|b) log p(c|b) / p(c), with the smoothed evidence of each bin."""
        likelihood = block.likelihood
        seen = block.statistic.cut(likelihood.edges)
        share = shares_of(block.class_counts)
        evidence = likelihood.table[: len(seen)]
        grown = share * np.exp(evidence - evidence.max(1, keepdims=True))
        posterior = grown / grown.sum(1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(posterior > 0, posterior * np.log(posterior / share), 0.0).sum(1)
        return max(float(shares_of(seen.sum(1)) @ each), 0.0)

    def sample(self, block: FittedBlock, classes: NDArray[np.int64], rng: np.random.Generator) -> SampledCells:
        """A bin drawn by the class-conditional probabilities, then a number between its edges; whole where all were."""
        rows, likelihood = block.parameters.rows, block.likelihood
        assert isinstance(rows, ReadableBins)
        place = draw_places(rows.shares.T, classes, rng)
        ends = np.concatenate([[likelihood.low], likelihood.edges, [likelihood.high]])
        low, high = ends[place], np.maximum(ends[place + 1], ends[place])
        drawn = low + (high - low) * rng.random(len(classes))
        return {block.columns[0].name: np.rint(drawn) if _all_whole(block.statistic) else drawn}

    def for_em(self, name: str, asked_for: bool) -> Family | None:
        """Quantile bins can be counted by responsibilities if they were asked for; bins cut by labels cannot."""
        if asked_for and self.cut == "mdl":
            raise UsageError(
                f"column {name!r}: bins cut by 'mdl' need a label in every row; choose 'binned', or pass unlabelled='ignore'"
            )
        return self if asked_for else None


@dataclass(frozen=True, eq=False)
class ReadableBins(Readable):
    """Readable table of bins, one row for each class and bin."""

    column: str
    classes: tuple[Any, ...]
    edges: Array
    seen: Array  # bins × classes
    evidence: SmoothedEvidence | None
    logs: Array | None  # log probabilities without evidence, classes × bins, and of unseen and missing cells

    @cached_property
    def shares(self) -> Array:
        """Relative frequency of each bin in each class, classes × bins."""
        if self.evidence is not None:
            return self.evidence.probabilities()
        assert self.logs is not None
        shares: Array = np.exp(self.logs[:, :-2])
        return shares

    @cached_property
    def ends(self) -> tuple[float, ...]:
        """Lower end of every bin, and the upper end of the last."""
        return (-np.inf, *self.edges.tolist(), np.inf)

    def __len__(self) -> int:
        return len(self.classes) * len(self.seen)

    def line(self, number: int) -> dict[str, Any]:
        """Probability of one bin in one class."""
        c, b = divmod(number, len(self.seen))
        return {
            "column": self.column, "class": self.classes[c], "from": self.ends[b], "to": self.ends[b + 1],
            "count": float(self.seen[b, c]), "probability": float(self.shares[c, b]),
        }  # fmt: skip


def _all_whole(histogram: Histogram) -> bool:
    """Whether all numbers are whole, as far as the cells tell."""
    lower = to_numbers(histogram.keys << histogram.level)
    return bool((lower == np.rint(lower)).all())


def mdl_edges(histogram: Histogram, most: int) -> Array:
    """Edges by minimum description length of the labels (Fayyad and Irani 1993), by recursive halving."""
    counts = histogram.seen.T
    before = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    cuts: list[int] = []
    open_parts = [(0, len(counts))]
    while open_parts and len(cuts) < most - 1:
        a, b = open_parts.pop(0)
        at = _best_cut(before, a, b)
        if at:
            cuts.append(at)
            open_parts += [(a, at), (at, b)]
    return histogram.between(np.array(sorted(cuts), dtype=np.int64))


def _best_cut(before: Array, a: int, b: int) -> int:
    """Best cut of a range of cells in two; 0 where it does not shorten the description."""
    if b - a < 2:
        return 0
    left, right, whole = before[a + 1 : b] - before[a], before[b] - before[a + 1 : b], before[b] - before[a]
    n = whole.sum()
    inside = (left.sum(1) * _entropy(left) + right.sum(1) * _entropy(right)) / n
    i = int(np.argmin(inside))
    k, k1, k2 = ((part > 0).sum() for part in (whole, left[i], right[i]))
    all_in_one = float(_entropy(whole[None])[0])
    extra = np.log2(3.0**k - 2) if k < 600 else k * np.log2(3.0)
    parts = k * all_in_one - k1 * float(_entropy(left[i : i + 1])[0]) - k2 * float(_entropy(right[i : i + 1])[0])
    pays = all_in_one - inside[i] > (np.log2(max(n - 1, 1)) + extra - parts) / n
    return a + 1 + i if pays else 0


def _entropy(counts: Array) -> Array:
    """Entropy of the class in bits, row by row."""
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        bits: Array = -np.where(share > 0, share * np.log2(share), 0.0).sum(1)
    return bits
