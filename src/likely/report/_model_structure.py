"""Evidence of columns together: interactions, dependent pairs given the class, arcs of the network, a decision surface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.calibration import Calibration, Interaction
from likely.errors import UsageError
from likely.model.effects import Effect, contrasts
from likely.model.model import Model
from likely.report._scored_rows import JudgedRows
from likely.schema import CATEGORY, NUMBER, TEXT
from likely.sources.row_access import complete

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_INTERACTIONS = 8
MOST_CELLS = 240  # of a heat map
STRONGEST_CELLS = 12  # listed of an interaction of three columns or more
MOST_COLUMNS = 20  # whose pairs are tested
MOST_PAIRS = 12
ROWS = 20_000  # from which dependence is computed
CUTS = 8  # bins of a number there
ACROSS, DOWN = 72, 44  # points of a surface
MOST_SURFACE_CLASSES = 6
SURFACE_ROWS = 150


def interactions(model: Model) -> list[dict[str, Any]]:
    """Interactions of the calibration: evidence that the columns give together, beyond each alone."""
    fitted = model.calibration
    if fitted is None:
        return []
    ranked = sorted(fitted.interactions, key=lambda each: -each.gain)[:MOST_INTERACTIONS]
    return [_interaction(model, fitted, each) for each in ranked]


def _interaction(model: Model, fitted: Calibration, each: Interaction) -> dict[str, Any]:
    names = [_group_names(fitted, name, groups) for name, groups in zip(each.columns, each.groups, strict=True)]
    sizes = [len(found) for found in names]
    weights = contrasts(each.weight * each.table, model.scorer.log_prior)
    found: dict[str, Any] = {
        "columns": list(each.columns),
        "gain": each.gain,
        "error": each.error,
        "weight": each.weight,
    }
    if len(sizes) == 2 and sizes[0] * sizes[1] <= MOST_CELLS:
        return found | {"rows": names[0], "cells": names[1], "weights": weights.reshape(*sizes, -1)}
    strongest = np.argsort(-np.abs(weights).max(1), kind="stable")[:STRONGEST_CELLS]
    places = np.array(np.unravel_index(strongest, sizes)).T.tolist()
    cells = [[names[j][g] for j, g in enumerate(place)] for place in places]
    return found | {
        "strongest": [{"cell": c, "weights": w} for c, w in zip(cells, weights[strongest].tolist(), strict=True)]
    }


def _group_names(fitted: Calibration, name: str, groups: NDArray[np.int32]) -> list[str]:
    """A readable name of each group of values or bins."""
    members: list[list[str]] = [[] for _ in range(int(groups.max()) + 1)]
    if name in fitted.edges:
        edges = fitted.edges[name]
        for g in range(len(members)):
            inside = np.flatnonzero(groups[:-1] == g)
            if len(inside):
                low, high = inside[0], inside[-1]
                start = f"{edges[low - 1]:.6g}" if low > 0 else ""
                end = f"{edges[high]:.6g}" if high < len(edges) else ""
                members[g].append(
                    f"{start} to {end}" if start and end else f"below {end}" if end else f"{start} or more"
                )
    else:
        for value, g in zip(fitted.values[name], groups[:-1].tolist(), strict=False):
            if value is not None:
                members[g].append(str(value))
    members[int(groups[-1])].append("missing")
    return [_joined(found) for found in members]


def _joined(found: Sequence[str]) -> str:
    few = [*found[:3], f"{len(found) - 3} more"] if len(found) > 4 else found
    return ", ".join(few) or "–"


def dependent_pairs(model: Model, effects: Mapping[str, Effect], scored: JudgedRows | None) -> list[dict[str, Any]]:
    """Pairs of columns that depend on each other most within the classes: conditional mutual information, in nats."""
    ranked = sorted(effects.values(), key=lambda effect: -effect.span)[:MOST_COLUMNS]
    labels, codes = _coded(model, ranked, scored)
    if len(labels) < 2:
        return []
    modelled = {frozenset(i.columns) for i in model.calibration.interactions} if model.calibration else set()
    found: list[dict[str, Any]] = []
    for a, b in combinations([effect.column for effect in ranked], 2):
        information, freedom = _information(codes[a], codes[b], labels)
        excess = information - freedom / (2 * len(labels))  # what independent columns would show by chance
        if excess > 0:
            found.append({"columns": [a, b], "information": excess, "modelled": frozenset((a, b)) in modelled})
    return sorted(found, key=lambda pair: -float(pair["information"]))[:MOST_PAIRS]


def _coded(model: Model, ranked: Sequence[Effect], scored: JudgedRows | None) -> tuple[Ints, dict[str, Ints]]:
    """Classes and coded columns of a sample of rows: those that the model keeps, else those of the data."""
    sample = model.tally.sample
    if sample is not None and len(sample):
        rows = slice(0, ROWS)
        columns = {e.column: sample.columns[e.column][rows] for e in ranked if e.column in sample.columns}
        labels = sample.labels[rows]
    elif scored is not None and scored.labelled:
        columns, labels = _from_data(model, ranked, scored)
    else:
        return np.zeros(0, np.int64), {}
    coded = {name: _cut(x) if x.dtype.kind == "f" else np.asarray(x, np.int64) + 1 for name, x in columns.items()}
    absent = {e.column: np.zeros(len(labels), np.int64) for e in ranked if e.column not in coded}
    return np.asarray(labels, np.int64), coded | absent


def _from_data(model: Model, ranked: Sequence[Effect], scored: JudgedRows) -> tuple[dict[str, NDArray[Any]], Ints]:
    kinds = {column.name: column.kind for column in model.schema.columns}
    batch = next(iter(scored.source.batches(kinds)))
    rows = complete(batch, model.schema.columns, scored.source, "missing")
    n = min(batch.rows, ROWS, len(scored.truth))
    known = np.flatnonzero(scored.known[:n])
    columns: dict[str, NDArray[Any]] = {}
    for effect in ranked:
        if effect.kind == CATEGORY:
            coded = rows.coded(effect.column)
            columns[effect.column] = (np.asarray(coded.codes, np.int64) - coded.low).clip(-1)[known]
        else:
            columns[effect.column] = rows.numbers([effect.column], 0, n)[known, 0]
    return columns, scored.truth[known]


def _cut(x: NDArray[Any]) -> Ints:
    """Numbers as codes of about equally full bins; a missing one is the last."""
    present = x[~np.isnan(x)]
    edges = np.unique(np.quantile(present, np.linspace(0, 1, CUTS + 1)[1:-1])) if len(present) else np.zeros(0)
    codes = np.searchsorted(edges, x, side="right").astype(np.int64)
    codes[np.isnan(x)] = len(edges) + 1
    return codes


def _information(a: Ints, b: Ints, given: Ints) -> tuple[float, float]:
    """Mutual information of two columns given the class, and its degrees of freedom."""
    ka, kb, kc = (int(x.max(initial=0)) + 1 for x in (a, b, given))
    table = np.bincount((given * ka + a) * kb + b, minlength=ka * kb * kc).reshape(kc, ka, kb).astype(np.float64)
    total, freedom = 0.0, 0.0
    for cell in table:
        n = cell.sum()
        rows, columns = cell.sum(1), cell.sum(0)
        if n > 0:
            i, j = np.nonzero(cell)
            total += float((cell[i, j] * np.log(cell[i, j] * n / (rows[i] * columns[j]))).sum())
            freedom += float(((rows > 0).sum() - 1) * ((columns > 0).sum() - 1))
    return total / max(float(table.sum()), 1.0), freedom


def arcs(model: Model, ranked: Sequence[str]) -> dict[str, Any]:
    """The model as a network: the class is a parent of every column, interactions join columns."""
    kept = list(ranked)
    place = {name: i for i, name in enumerate(kept)}
    target = model.schema.target.name
    found = [[target, name] for name in kept]
    pairs = []
    for each in model.calibration.interactions if model.calibration else ():
        if set(each.columns) <= place.keys():
            pairs += [list(pair) for pair in pairwise(sorted(each.columns, key=place.__getitem__))]
    for block in model.blocks:
        if len(block.columns) > 1:
            pairs += [list(pair) for pair in pairwise([c for c in block.columns if c in place])]
    kinds = {name: model.schema.by_name[name].kind for name in kept}
    unique = [list(pair) for pair in dict.fromkeys(map(tuple, pairs))]
    return {"target": target, "nodes": [{"name": n, "kind": kinds[n]} for n in kept], "arcs": found, "pairs": unique,
            "left_out": len(model.schema.columns) - len(kept)}  # fmt: skip


def surface(
    model: Model, effects: Mapping[str, Effect], scored: JudgedRows | None, wanted: Sequence[str]
) -> dict[str, Any] | None:
    """Probability of each class over two columns of numbers, the other columns missing."""
    numbers = [e.column for e in sorted(effects.values(), key=lambda e: -e.span) if e.kind == NUMBER]
    for name in wanted:
        if name not in numbers:
            raise UsageError(f"{name!r} cannot be an axis of the decision surface: choose two of {numbers}")
    varied = [name for name in numbers if _varies(effects[name])]
    names = list(wanted) if len(wanted) == 2 else varied[:2]
    if len(names) < 2 or not 2 <= len(model.classes) <= MOST_SURFACE_CLASSES:
        return None
    x, y = (np.linspace(*_number_range(effects[name]), n) for name, n in zip(names, (ACROSS, DOWN), strict=True))
    table = {names[0]: np.tile(x, DOWN), names[1]: np.repeat(y, ACROSS)}
    p = model.posterior(table, absent="missing").probabilities
    grid = np.round(p.T.reshape(len(model.classes), DOWN, ACROSS), 4)
    rows = _surface_rows(model, names, scored) if scored is not None and scored.labelled else []
    return {"columns": names, "x": x, "y": y, "probabilities": grid, "rows": rows}


def _varies(effect: Effect) -> bool:
    """Whether no single bin has most of the rows."""
    if effect.counts is None:
        return True
    mass = effect.counts.sum(1)
    return bool(mass.max(initial=0.0) < 0.7 * mass.sum())


def _number_range(effect: Effect) -> tuple[float, float]:
    """The range of nearly all numbers of a column."""
    values = np.array(effect.values, np.float64)
    mass = effect.counts.sum(1) if effect.counts is not None else np.ones(len(values))
    share = np.cumsum(mass) / max(mass.sum(), 1e-300)
    first, last = (min(int(np.searchsorted(share, part)), len(values) - 1) for part in (0.005, 0.995))
    low, high = values[first], values[last]
    return (float(low), float(high)) if high > low else (float(values[0]) - 0.5, float(values[-1]) + 0.5)


def _surface_rows(model: Model, names: Sequence[str], scored: JudgedRows) -> list[list[float]]:
    kinds = {column.name: column.kind for column in model.schema.columns}
    batch = next(iter(scored.source.batches(kinds)))
    if not set(names) <= set(batch.names):
        return []
    x = batch.numbers(list(names), 0, batch.rows)[: len(scored.truth)]
    good = np.flatnonzero(np.isfinite(x).all(1) & scored.known[: len(x)])
    picked = good[:: max(1, len(good) // SURFACE_ROWS)][:SURFACE_ROWS]
    return [[float(x[i, 0]), float(x[i, 1]), int(scored.truth[i])] for i in picked.tolist()]


def texts(model: Model, most: int = 12) -> list[dict[str, Any]]:
    """The words with the highest weights of evidence for each class, for each column of text."""
    found = []
    for column in model.schema.columns:
        if column.kind == TEXT:
            words = model.top_words(most, column.name)
            found.append({"column": column.name, "words": [
                {"class": str(label), "words": [{"word": w, "weight": weight} for w, weight in each]}
                for label, each in words.items()
            ]})  # fmt: skip
    return found
