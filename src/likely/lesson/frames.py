"""The way of EM as numbers to be drawn: for every step the components, what it is worth, and the shares of some rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.clustering import Clusters
from likely.em import value_name
from likely.errors import UsageError
from likely.model import Model
from likely.pictures import bell_columns, bells, drawn_columns
from likely.sources import Batch, open_source
from likely.sources.rows import take

Array = NDArray[np.float64]
MOST_POINTS = 600
SEED = 0


@dataclass(frozen=True)
class Frame:
    """One step: the components as they stood, and what each gets of every row that is drawn."""

    step: int
    value: float  # of what EM climbs
    change: float  # since the step before, be it drawn or not; NaN at the start
    weights: Array
    means: Array  # components × columns
    covariances: Array  # components × columns × columns
    shares: Array  # rows × components


@dataclass(frozen=True)
class Lesson:
    """All that a page shows of a run of EM."""

    columns: tuple[str, ...]
    components: tuple[str, ...]
    points: Array  # rows × columns
    frames: tuple[Frame, ...]
    trace: tuple[float, ...]
    converged: bool
    rows: int  # of the table, those with gaps in what is drawn among them
    gaps: int
    others: int  # columns that take part in the sharing but are not drawn
    climbs: str  # the log likelihood, penalised where there is a prior

    @property
    def whole(self) -> bool:
        """Whether every row of the table is drawn, and by nothing but what is drawn."""
        return len(self.points) == self.rows and not self.others


def lesson(model: Model, data: Any, columns: Sequence[str] = ()) -> Lesson:
    """A clustering that kept its steps, over the rows of a table, along one or two columns of numbers."""
    if not isinstance(model, Clusters) or not model.steps:
        raise UsageError("the model kept no steps of EM: make it with likely.cluster(data, k, steps=True)")
    names = _columns(model, columns)
    points, sample, seen, gaps = _sample(model, data, names)
    frames = []
    for step in model.steps:
        then = model.as_of(step)
        means, covariances = bells(then, names)
        change = model.trace[step.at] - model.trace[step.at - 1] if step.at else float("nan")
        shares = [then.posterior_of(batch).probabilities for batch in sample]
        frames.append(Frame(step.at, step.value, change, then.class_prior, means, covariances, np.concatenate(shares)))
    return Lesson(
        tuple(names), tuple(map(str, model.classes)), points, tuple(frames), model.trace, model.converged, seen, gaps,
        len(model.schema.columns) - len(names), value_name(model),
    )  # fmt: skip


def _columns(model: Clusters, wanted: Sequence[str]) -> list[str]:
    """The columns that are drawn; which two of many it should be, somebody must say."""
    known = bell_columns(model)
    if not known:
        raise UsageError("no column holds numbers: the steps of EM are drawn along one column of numbers or two")
    if not wanted and len(known) > 2:
        raise UsageError(
            f"{len(known)} columns hold numbers, and steps are drawn along one or two: name them with --draw A,B, "
            f"in Python columns=[A, B], out of {known[:20]}"
        )
    return drawn_columns(model, wanted)


def _sample(model: Model, data: Any, names: Sequence[str]) -> tuple[Array, list[Batch], int, int]:
    """Rows without gaps in what is drawn, all of them or a seeded sample; how many were seen, and how many had gaps."""
    rng = np.random.default_rng(SEED)
    kept: list[tuple[Array, Batch]] = []  # the lots that were drawn for rows, and the rows
    seen = gaps = 0
    for batch in model.batches(open_source(data, model.reading), "error", None):
        whole = np.flatnonzero(~np.isnan(batch.numbers(list(names), 0, batch.rows)).any(1))
        seen, gaps = seen + batch.rows, gaps + batch.rows - len(whole)
        lots = rng.random(len(whole))
        kept = _lowest([*kept, (lots, take(batch, whole))] if len(whole) else kept)
    if not kept:
        raise UsageError(f"no row has numbers in {list(names)}: there is nothing to draw")
    batches = [batch for _, batch in kept]
    return np.concatenate([b.numbers(list(names), 0, b.rows) for b in batches]), batches, seen, gaps


def _lowest(kept: list[tuple[Array, Batch]]) -> list[tuple[Array, Batch]]:
    """The rows with the lowest lots: a sample in which every row is as probable as any other."""
    lots = np.concatenate([lots for lots, _ in kept]) if kept else np.zeros(0)
    if len(lots) <= MOST_POINTS:
        return kept
    limit = np.partition(lots, MOST_POINTS - 1)[MOST_POINTS - 1]
    chosen = ((own[own <= limit], batch, np.flatnonzero(own <= limit)) for own, batch in kept)
    return [(own, take(batch, places)) for own, batch, places in chosen if len(places)]
