"""Decomposable scores of structures: each family (a node with its parents) is scored once and cached."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError, did_you_mean
from likely.kernels import contingency_counts as counting
from likely.networks._chance_gain import chance_gain
from likely.networks._gaussian_scores import GaussianScores
from likely.networks.rows import Rows
from likely.schema import CATEGORY, NUMBER

Array = NDArray[np.float64]
Family = tuple[int, tuple[int, ...]]  # the node, and its parents in ascending order
MOST_CELLS_SCORED = 1 << 20  # a family with a larger table is never considered
SPARSE = 8  # rows a cell: in tables with fewer, what parents gain by chance is reckoned with
KINDS = {
    "qnml": counting.LOG_LIKELIHOOD, "bdeu": counting.BDEU, "bic": counting.BIC, "aic": counting.AIC,
    "k2": counting.K2, "loglik": counting.LOG_LIKELIHOOD,
}  # fmt: skip
IMPOSSIBLE = -math.inf


class FamilyScores:
    """The scores of families in a table.

    Parameters
    ----------
    rows : Rows
        The table; a row in which a cell of a family is missing is left out of its score.
    score : {"qnml", "bdeu", "bic", "aic", "k2", "loglik"}
        Which score; the larger, the better. Numeric nodes are scored by BIC under "qnml", "bdeu" and "k2".
    equivalent_sample_size : float
        Total pseudocount of BDeu, spread over the cells of each table.

    """

    def __init__(self, rows: Rows, score: str = "qnml", equivalent_sample_size: float = 10.0) -> None:
        if score not in KINDS:
            raise UsageError(f"criterion {score!r} is not known{did_you_mean(score, KINDS)}: choose from {', '.join(KINDS)}")
        if not equivalent_sample_size > 0:
            raise UsageError(f"equivalent_sample_size={equivalent_sample_size!r} must be above 0")
        self.rows = rows.distinct()
        self.kind = KINDS[score]
        self.score = score
        self.sizes = np.array([len(c.values) if c.kind == CATEGORY else 1 for c in rows.columns], np.int64)
        self._any_numeric = bool(rows.numeric)
        self.numeric = [c.kind == NUMBER for c in rows.columns]
        self._linear = GaussianScores(rows)
        self._total = max(rows.total, 1.0)
        self._log_rows = math.log(max(rows.total, 1.0))
        per_parameter = {counting.BIC: 0.5 * self._log_rows, counting.AIC: 1.0, counting.K2: 1.0}
        self.weight = equivalent_sample_size if self.kind == counting.BDEU else per_parameter.get(self.kind, 0.0)
        self._gaps = (self.rows.codes < 0).any(1) if self.rows.n else np.zeros(len(rows.columns), bool)
        self._known: dict[Family, float] = {}
        # Thousands of families will be counted: where that is much work, none of them is interpreted.
        self.compiled = self.rows.codes.size > 400
        self._count = counting.score_families.fast if self.compiled else counting.score_families

    def __call__(self, families: Sequence[Family]) -> Array:
        """The score of each family."""
        new = [family for family in dict.fromkeys(families) if family not in self._known]
        self._known.update(zip(new, self._scored(new), strict=True))
        return np.array([self._known[family] for family in families])

    @property
    def scored(self) -> int:
        """How many families have been counted."""
        return len(self._known)

    def _scored(self, families: Sequence[Family]) -> Iterable[float]:
        found = np.full(len(families), IMPOSSIBLE)
        tables, shapes, gaussians = [], [], []
        sizes = self.sizes.tolist()
        for i, (node, parents) in enumerate(families):
            if self.numeric[node]:
                gaussians.append(i)
            elif not (self._any_numeric and any(self.numeric[p] for p in parents)):
                configurations = math.prod([sizes[p] for p in parents])
                if configurations * sizes[node] <= MOST_CELLS_SCORED:
                    tables.append(i)
                    shapes.append((configurations, configurations * sizes[node]))
        if tables:
            found[tables] = self._tables([families[i] for i in tables], np.array(shapes, np.int64))
        if gaussians:
            found[gaussians] = self._gaussians([families[i] for i in gaussians])
        return found.tolist()

    def _tables(self, families: Sequence[Family], shapes: NDArray[np.int64]) -> Array:
        """The scores of families with these numbers of configurations and of cells."""
        members = np.array([v for node, parents in families for v in (*parents, node)], np.int64)
        first = np.zeros(len(families) + 1, np.int64)
        np.cumsum([1 + len(parents) for _, parents in families], out=first[1:])
        out = np.zeros(len(families))
        rows = self.rows
        self._count(rows.codes, rows.weights, self.sizes, first, members, self._gaps, self.kind, self.weight,
                    np.zeros(shapes[:, 1].max()), out)  # fmt: skip
        if self.score == "qnml":  # the regret of the family as one multinomial, less that of the parents as one
            regret = log_regret(shapes, self._total)
            out -= regret[:, 1] - regret[:, 0]
            for i in np.flatnonzero((shapes[:, 1] * SPARSE > self._total) & (shapes[:, 0] > 1)).tolist():
                out[i] = self._beyond_chance(families[i], float(out[i]), shapes[i])
        return out

    def _beyond_chance(self, family: Family, score: float, cells: NDArray[np.int64]) -> float:
        """A score that is held down where parents that tell nothing would gain as much by chance."""
        node, parents = family
        codes, w = self.rows.codes, self.rows.each_weight()
        where, usable = np.zeros(self.rows.n, np.int64), codes[node] >= 0
        for p in parents:
            where = where * self.sizes[p] + codes[p]
            usable &= codes[p] >= 0
        of_node = np.bincount(codes[node][usable], w[usable], minlength=self.sizes[node]).astype(np.float64)
        total = float(of_node.sum())
        if total <= 0:
            return score
        seen = of_node[of_node > 0]
        alone = float(seen @ np.log(seen / total)) - float(log_regret(self.sizes[[node]], self._total)[0])
        if score <= alone:  # it is no gain
            return score
        regret = log_regret(cells, self._total)
        gained = score + float(regret[1] - regret[0]) - float(seen @ np.log(seen / total))
        of_parents = np.bincount(np.unique(where[usable], return_inverse=True)[1].reshape(-1), w[usable])
        return min(score, alone + gained - chance_gain(of_parents.astype(np.float64), of_node))

    def _gaussians(self, families: Sequence[Family]) -> Array:
        """The penalised log-likelihoods of linear Gaussians, those with alike parents at once."""
        found = np.full(len(families), IMPOSSIBLE)
        alike: dict[tuple[tuple[int, ...], int], list[int]] = {}
        for i, (_, parents) in enumerate(families):
            some = tuple(p for p in parents if not self.numeric[p])
            if math.prod(int(self.sizes[p]) for p in some) <= MOST_CELLS_SCORED:
                alike.setdefault((some, len(parents) - len(some)), []).append(i)
        per_parameter = {"loglik": 0.0, "aic": 1.0}.get(self.score, 0.5 * self._log_rows)
        for (some, m), which in alike.items():
            line = self._linear.line
            lines = [(*(line[p] for p in families[i][1] if self.numeric[p]), line[families[i][0]]) for i in which]
            free = math.prod(int(self.sizes[p]) for p in some) * (2 + m)
            found[which] = self._linear.log_likelihoods(some, lines) - per_parameter * free
        return found


def log_regret(values: NDArray[np.int64], rows: float) -> Array:
    """The regret of multinomials with so many values: the log of the sum that normalises their maximum likelihood.

    By the approximation of Szpankowski and Weinberger (2012), which holds for any number of values and rows.
    """
    alpha = values / rows
    c = 0.5 + 0.5 * np.sqrt(1 + 4 / alpha)
    made: Array = rows * (np.log(alpha) + (alpha + 2) * np.log(c) - 1 / c) - 0.5 * np.log(c + 2 / alpha)
    regret: Array = np.where(values > 1, made, 0.0)
    return regret
