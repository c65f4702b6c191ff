"""Learning the arcs of a network from data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from likely.errors import LikelyWarning, UsageError, did_you_mean
from likely.networks import fitting
from likely.networks._counting import Counting, sums_of
from likely.networks._left_out import without_idle_columns
from likely.networks._scores import FamilyScores
from likely.networks._search import SearchSettings, hill_climb, settle_directions
from likely.networks._structural_em import search_with_missing_cells
from likely.networks._structure_keywords import StructureKeywords
from likely.networks._trees import k_dependence, spanning_tree
from likely.networks.graph import Graph, pairs_of
from likely.networks.rows import Rows, Wanted
from likely.schema import NUMBER

if TYPE_CHECKING:
    from likely.networks.network import Network

METHODS = ("hill-climb", "chow-liu", "tan", "k-dependence", "naive-bayes")


@dataclass(frozen=True)
class StructureSettings:
    """How the arcs of a network are learned.

    Parameters
    ----------
    method : {"hill-climb", "chow-liu", "tan", "k-dependence", "naive-bayes"}
        Hill climbing over all structures; the best tree (Chow and Liu); or a classifier: naive Bayes with a tree among the
        columns (TAN), with at most `k` columns as parents of each (K-dependence), or without arcs among them.
    target : str, optional
        The class, for the classifiers.
    criterion : {"qnml", "bdeu", "bic", "aic", "k2", "loglik"}
        The score that hill climbing maximises: quotient normalised maximum likelihood, which has no prior to choose, or
        another; numeric nodes are scored by BIC under "qnml", "bdeu" and "k2".
    equivalent_sample_size : float
        Total pseudocount of BDeu for each table.
    required, forbidden : arcs
        Arcs that must, or must not, be there; as text or pairs.
    max_parents : int, optional
        The most parents of a node.
    k : int
        The parents among the columns of a K-dependence classifier.
    tabu, patience, climbs, seed : int
        Steps for which a changed pair is left alone, steps without a gain before a climb ends, the most climbs (two that end
        as high as the best are enough), and the seed of the draws among equivalent structures. Of equivalent structures one
        with a high K2 score is returned.
    root : str, optional
        Where a tree begins.
    ignore : sequence of str
        Columns that are left out.
    kinds, values, smoothing
        As for `Network`.
    weights, max_iter, tol, progress, engine
        As for `Network.fit`; EM fits the tables where cells are missing. The search is over rows in this process: Spark and
        databases hand over the distinct ones with their weights.

    """

    method: str = "hill-climb"
    target: str | None = None
    criterion: str = "qnml"
    equivalent_sample_size: float = 1.0
    required: Any = ()
    forbidden: Any = ()
    max_parents: int | None = None
    k: int = 2
    tabu: int = 10
    patience: int = 15
    climbs: int = 6
    root: str | None = None
    ignore: Sequence[str] = ()
    kinds: Any = None
    values: Any = None
    smoothing: Any = "auto"
    weights: Any = None
    seed: int = 0
    max_iter: int = 500
    tol: float = 0.01
    progress: Any = None
    engine: Any = "auto"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            meant = did_you_mean(self.method, METHODS)
            raise UsageError(f"method {self.method!r} is not known{meant}: choose from {', '.join(METHODS)}")
        if (self.required or self.forbidden) and self.method != "hill-climb":
            raise UsageError(f"method {self.method!r} takes no required or forbidden arcs: use 'hill-climb'")


def learn_structure(data: Any, **given: Unpack[StructureKeywords]) -> Network:
    """Learn the arcs of a network from any source, and fit it; `StructureSettings` has the settings."""
    from likely.networks.network import Network

    every: dict[str, Any] = {**given}
    if "score" in every:
        warnings.warn("score= is now called criterion=", FutureWarning, stacklevel=3)
        every.setdefault("criterion", every.pop("score"))
    names = {each.name for each in fields(StructureSettings)}
    settings = StructureSettings(**{name: value for name, value in every.items() if name in names})
    how = {name: value for name, value in every.items() if name not in (*names, "missing")}
    reading = fitting.reading_of(given.get("missing"), how)
    rows, absent, where = _rows(data, settings, reading)
    if absent:  # settings for columns that are left out have no meaning any more
        forbidden = [pair for pair in pairs_of(settings.forbidden) if absent.isdisjoint(pair)]
        settings = replace(settings, forbidden=forbidden)
    columns = [c.name for c in rows.columns]
    parents = _parents(rows, settings)
    graph = Graph(tuple(columns), {columns[i]: tuple(columns[p] for p in sorted(some)) for i, some in enumerate(parents)})
    made = Network(graph, values=settings.values, kinds=settings.kinds, smoothing=settings.smoothing)
    em = {"max_iter": settings.max_iter, "tol": settings.tol, "progress": settings.progress}
    found = made.fit(rows, seed=settings.seed, **em)
    found.engine = where
    return found


def _parents(rows: Rows, settings: StructureSettings) -> Sequence[set[int]]:
    """The parents of each node; missing cells are drawn, with a warning."""

    def search(full: Rows) -> Sequence[set[int]]:
        return _climbed(full, settings) if settings.method == "hill-climb" else _without_search(full, settings)

    if rows.complete or settings.method == "naive-bayes":
        return search(rows)
    warnings.warn(
        "cells are missing: arcs were learned from rows whose missing cells were drawn, parameters by EM",
        LikelyWarning, stacklevel=4,
    )  # fmt: skip
    return search_with_missing_cells(rows, search, settings.seed)


def _rows(data: Any, settings: StructureSettings, reading: Any) -> tuple[Rows, set[str], str]:
    """The rows of the columns that arcs are learned of, which columns are left out with a warning, and the engine."""
    known = fitting.declared_columns(settings.values or {})
    dropped = (settings.ignore,) if isinstance(settings.ignore, str) else tuple(settings.ignore)
    required = (name for pair in pairs_of(settings.required) for name in pair)
    asked = {*(settings.kinds or {}), *known, *required, settings.target, settings.root}
    wanted = Wanted(None, known, (), settings.kinds, "error", settings.weights)
    how = Counting(wanted, reading, settings.engine, merging=False, aside=dropped, asked=frozenset(asked))
    sums, where = sums_of(data, how)
    rows = sums.rows if settings.weights is not None else sums.each_incomplete_row()
    kept = [c.name for c in rows.columns if c.name not in dropped]
    if len(kept) < 2:
        raise UsageError("a structure needs at least two columns")
    rows = without_idle_columns(rows.only(kept), asked, sums.known)
    fitting.refuse_constants(rows)
    return rows, {*kept, *sums.left_out} - {c.name for c in rows.columns}, where


def _search_settings(rows: Rows, given: StructureSettings) -> SearchSettings:
    names = [c.name for c in rows.columns]
    place = {name: i for i, name in enumerate(names)}
    size = len(names)
    allowed, must = ~np.eye(size, dtype=bool), np.zeros((size, size), bool)
    numeric = np.array([c.kind == NUMBER for c in rows.columns])
    allowed[np.ix_(numeric, ~numeric)] = False
    everything = Graph(tuple(names), dict.fromkeys(names, ()))
    for parent, child in _arcs(given.forbidden, everything):
        allowed[place[parent], place[child]] = False
    for parent, child in Graph.of(list(_arcs(given.required, everything)), names).arcs:
        if not allowed[place[parent], place[child]]:
            raise UsageError(f"the arc {parent!r} -> {child!r} is required, and forbidden or from a number to a category")
        must[place[parent], place[child]] = True
        allowed[place[child], place[parent]] = False
    most = size if given.max_parents is None else int(given.max_parents)
    if most < int(must.sum(0).max(initial=0)) or most < 0:
        raise UsageError(f"max_parents={given.max_parents} is fewer than the arcs that are required")
    return SearchSettings(
        allowed, must, most, tabu=given.tabu, patience=given.patience, climbs=given.climbs, seed=given.seed
    )


def _arcs(given: Any, everything: Graph) -> list[tuple[str, str]]:
    """Arcs as pairs; both directions of one pair may be forbidden, so that this is no graph."""
    found = []
    for parent, child in pairs_of(given):
        if child is None or parent is None:
            raise UsageError(f"{parent!r} is no arc: write 'A -> B'")
        everything.check([parent, child])
        found.append((parent, child))
    return found


def _climbed(rows: Rows, given: StructureSettings) -> Sequence[set[int]]:
    settings = _search_settings(rows, given)
    rows = rows.distinct()
    start: list[set[int]] = [set(np.flatnonzero(settings.required[:, child]).tolist()) for child in range(len(rows.columns))]
    best = hill_climb(FamilyScores(rows, given.criterion, given.equivalent_sample_size), start, settings)
    if given.criterion in ("aic", "bic", "bdeu", "qnml"):
        return settle_directions(FamilyScores(rows, "k2"), best, settings)
    return best


def _without_search(rows: Rows, given: StructureSettings) -> Sequence[set[int]]:
    names = tuple(c.name for c in rows.columns)
    everything = Graph(names, dict.fromkeys(names, ()))
    start = None if given.root is None else names.index(everything.check(given.root)[0])
    scores = FamilyScores(rows, "loglik" if given.method != "chow-liu" else "bic")
    if given.method == "chow-liu":
        return spanning_tree(scores, range(len(names)), [], start)
    if given.target is None:
        raise UsageError(f"method {given.method!r} needs the column of the class: pass target=")
    goal = names.index(everything.check(given.target)[0])
    if rows.columns[goal].kind == NUMBER:
        remedy = f"bin it, or pass kinds={{{given.target!r}: 'categorical'}}"
        raise UsageError(f"the target {given.target!r} holds numbers: {remedy}")
    others = [v for v in range(len(names)) if v != goal]
    if given.method == "naive-bayes":
        return [set() if v == goal else {goal} for v in range(len(names))]
    if given.method == "k-dependence":
        if given.k < 0:
            raise UsageError(f"k={given.k} is no number of parents")
        return k_dependence(scores, goal, given.k)
    tree = spanning_tree(scores, others, [goal], start)
    return [set() if v == goal else {goal, *some} for v, some in enumerate(tree)]
