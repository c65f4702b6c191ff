"""Numbers of a lesson: for every step of EM the components, the log-likelihood, and responsibilities of some rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.latent.clusters import Clusters
from likely.latent.component_picture import drawn_columns, gaussian_columns, gaussians
from likely.latent.em import objective_name
from likely.model.model import Model
from likely.sources import Batch, open_source
from likely.sources.row_access import take

Array = NDArray[np.float64]
MOST_POINTS = 600
SEED = 0


@dataclass(frozen=True)
class EMFrame:
    """One step of EM: the components, and their responsibilities for the rows that are drawn.

    Attributes
    ----------
    step : int
        Number of the iteration; 0 is the start.
    value : float
        The objective.
    change : float
        Its change since the iteration before, drawn or not; NaN at the start.
    weights : array
        Component weights.
    means : array
        Means, components × columns.
    covariances : array
        Covariances, components × columns × columns.
    responsibilities : array
        Responsibilities, rows × components.
    """

    step: int
    value: float
    change: float
    weights: Array
    means: Array
    covariances: Array
    responsibilities: Array


@dataclass(frozen=True)
class Lesson:
    """A run of EM, as a page shows it.

    Attributes
    ----------
    columns : tuple of str
        The columns that are drawn.
    components : tuple of str
        Names of the components.
    points : array
        The rows that are drawn, rows × columns.
    frames : tuple of EMFrame
        The steps that are drawn.
    trace : tuple of float
        The objective of every iteration.
    converged : bool
        Whether EM converged.
    rows : int
        Number of rows of the table, with those that have missing cells in the drawn columns.
    gaps : int
        Number of these.
    others : int
        Number of columns of the model that are not drawn.
    objective : str
        What the objective is: the log-likelihood, penalised where there is a prior.
    """

    columns: tuple[str, ...]
    components: tuple[str, ...]
    points: Array
    frames: tuple[EMFrame, ...]
    trace: tuple[float, ...]
    converged: bool
    rows: int
    gaps: int
    others: int
    objective: str

    @property
    def complete(self) -> bool:
        """Whether all rows and all columns of the model are drawn."""
        return len(self.points) == self.rows and not self.others


def lesson(model: Clusters, data: Any, columns: Sequence[str] = ()) -> Lesson:
    """The numbers of a lesson: every step of EM over the rows of a table, along one or two numeric columns.

    Parameters
    ----------
    model : Clusters
        A mixture that kept its steps: `likely.cluster(data, k, steps=True)`.
    data : path, frame, dict of columns or any other source
        The rows.
    columns : sequence of str, default=()
        One or two numeric columns to draw; by default the first two.

    Returns
    -------
    Lesson
        Points, components and responsibilities at every step.
    """
    if not isinstance(model, Clusters) or not model.steps:
        raise UsageError("the model kept no steps of EM: make it with likely.cluster(data, k, steps=True)")
    names = _columns(model, columns)
    points, sample, seen, gaps = _sample(model.model, data, names)
    frames = []
    for step in model.steps:
        then = model.as_of(step)
        means, covariances = gaussians(then, names)
        change = model.trace[step.at] - model.trace[step.at - 1] if step.at else float("nan")
        responsibilities = np.concatenate([then.posterior_of(batch).probabilities for batch in sample])
        frames.append(EMFrame(step.at, step.value, change, then.class_prior, means, covariances, responsibilities))
    return Lesson(
        tuple(names), tuple(map(str, model.classes)), points, tuple(frames), model.trace, model.converged, seen, gaps,
        len(model.schema.columns) - len(names), objective_name(model.model),
    )  # fmt: skip


def _columns(model: Clusters, wanted: Sequence[str]) -> list[str]:
    """The columns to draw; of more than two, the caller must choose."""
    known = gaussian_columns(model.model)
    if not known:
        raise UsageError("no column holds numbers: the steps of EM are drawn along one column of numbers or two")
    if not wanted and len(known) > 2:
        raise UsageError(
            f"{len(known)} columns hold numbers, and steps are drawn along one or two: name them with --draw A,B, "
            f"in Python columns=[A, B], out of {known[:20]}"
        )
    return drawn_columns(model.model, wanted)


def _sample(model: Model, data: Any, names: Sequence[str]) -> tuple[Array, list[Batch], int, int]:
    """Rows complete in the drawn columns, all or a seeded sample; the number of rows, and of those with missing cells."""
    rng = np.random.default_rng(SEED)
    kept: list[tuple[Array, Batch]] = []  # a random number for each row, and the rows
    seen = gaps = 0
    for batch in model.batches(open_source(data, model.reading), "error", None):
        complete = np.flatnonzero(~np.isnan(batch.numbers(list(names), 0, batch.rows)).any(1))
        seen, gaps = seen + batch.rows, gaps + batch.rows - len(complete)
        draws = rng.random(len(complete))
        kept = _lowest([*kept, (draws, take(batch, complete))] if len(complete) else kept)
    if not kept:
        raise UsageError(f"no row has numbers in {list(names)}: there is nothing to draw")
    batches = [batch for _, batch in kept]
    return np.concatenate([b.numbers(list(names), 0, b.rows) for b in batches]), batches, seen, gaps


def _lowest(kept: list[tuple[Array, Batch]]) -> list[tuple[Array, Batch]]:
    """The rows with the lowest random numbers: a uniform sample."""
    draws = np.concatenate([draws for draws, _ in kept]) if kept else np.zeros(0)
    if len(draws) <= MOST_POINTS:
        return kept
    limit = np.partition(draws, MOST_POINTS - 1)[MOST_POINTS - 1]
    chosen = ((own[own <= limit], batch, np.flatnonzero(own <= limit)) for own, batch in kept)
    return [(own, take(batch, places)) for own, batch, places in chosen if len(places)]
