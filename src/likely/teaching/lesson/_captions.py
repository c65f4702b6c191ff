"""Text of a lesson at every step: the log-likelihood, the components in numbers, and responsibilities of few rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from likely.latent.em import FIRST_STEPS
from likely.teaching.lesson._em_frames import MOST_POINTS, EMFrame, Lesson

FEW_ROWS, FEW_COMPONENTS = 12, 4  # the responsibilities of more are not written out
Cells = list[list[str]]


def number(value: float) -> str:
    """A number with six decimals in the usual range, six digits otherwise."""
    return f"{value:.6f}" if value == 0 or 1e-3 <= abs(value) < 1e3 else f"{value:.6g}"


def objective_text(value: float) -> str:
    """A log-likelihood, or a difference of two, to six decimals."""
    return f"{value:.6f}" if abs(value) < 1e12 else f"{value:.12g}"


def caption(lesson: Lesson, i: int) -> str:
    """Caption of a step: its number, log-likelihood, the mean that moved most, and whether EM has converged."""
    frame, last = lesson.frames[i], lesson.frames[-1].step
    head = "Step 0, the start." if not frame.step else f"Step {frame.step} of {last}."
    value = f"{lesson.objective.capitalize()} {objective_text(frame.value)}"
    if not frame.step:
        return f"{head} {value}." + ("" if last else " EM made no second step.")
    parts = [head, f"{value}, {_rise(frame.change)}.", _moved(lesson, i)]
    if i == len(lesson.frames) - 1:
        stopped = "EM was stopped here before it converged."
        parts.append("The gain is below the tolerance: EM has converged." if lesson.converged else stopped)
    return " ".join(part for part in parts if part)


def _rise(change: float) -> str:
    """The increase since the step before; it is never negative, up to rounding."""
    if change < 1e-6:
        return "equal to the step before, to six decimals"
    return f"{objective_text(change)} more than the step before"


def _moved(lesson: Lesson, i: int) -> str:
    now, before = lesson.frames[i], lesson.frames[i - 1]
    apart = np.abs(now.means - before.means) / np.maximum(np.ptp(lesson.points, axis=0), 1e-300)
    c, j = np.unravel_index(int(apart.argmax()), apart.shape)
    far = float(now.means[c, j] - before.means[c, j])
    if not math.isfinite(far) or far == 0:
        return ""
    since = "" if now.step == before.step + 1 else f" since step {before.step}"
    along = f" along {lesson.columns[j]}" if len(lesson.columns) > 1 else ""
    moved = f"the mean of component {lesson.components[c]}{along}, by {number(far)}"
    return f"Largest change{since}: {moved}."


def names(lesson: Lesson) -> list[str]:
    """Row labels of the table of components."""
    own = ["mean μ", "deviation σ"]
    if len(lesson.columns) == 2:
        own = [f"{what} of {name}" for name in lesson.columns for what in ("mean", "deviation")]
    return ["weight", *own, *(["correlation"] if _joint(lesson) else [])]


def cells(lesson: Lesson, frame: EMFrame) -> Cells:
    """The components in numbers: weight, mean and standard deviation of each column, and correlation."""
    wide = np.sqrt(np.diagonal(frame.covariances, axis1=1, axis2=2))
    rows = [frame.weights]
    for j in range(len(lesson.columns)):
        rows += [frame.means[:, j], wide[:, j]]
    if _joint(lesson):
        rows.append(frame.covariances[:, 0, 1] / (wide[:, 0] * wide[:, 1]))
    return [[number(float(value)) for value in row] for row in rows]


def _joint(lesson: Lesson) -> bool:
    """Whether the two columns have a covariance within a component."""
    return len(lesson.columns) == 2 and any(bool(frame.covariances[:, 0, 1].any()) for frame in lesson.frames)


def writes_responsibilities(lesson: Lesson) -> bool:
    """Whether there are so few rows that every responsibility is written out."""
    few = len(lesson.points) <= FEW_ROWS and len(lesson.components) <= FEW_COMPONENTS
    return few and lesson.complete and len(lesson.columns) == 1


def responsibility_heads(lesson: Lesson) -> list[str]:
    """Column labels of the table of responsibilities: the rows, their sum, and the next mean."""
    rows = [f"{value:g}" for value in lesson.points[:, 0].tolist()]
    return [f"{lesson.columns[0]} =", *rows, "Σ E[z]", *(["next μ = Σ E[z]·x / Σ E[z]"] if _averages(lesson) else [])]


def responsibility_cells(lesson: Lesson, frame: EMFrame) -> Cells:
    """For each component its responsibility for every row, their sum, and the next mean."""
    rows = [[f"{share:.6f}" for share in (*own, sum(own))] for own in frame.responsibilities.T.tolist()]
    if _averages(lesson):
        return [[*row, number(mean)] for row, mean in zip(rows, _next(lesson, frame), strict=True)]
    return rows


def _next(lesson: Lesson, frame: EMFrame) -> list[float]:
    r = frame.responsibilities
    found: list[float] = ((r * lesson.points).sum(0) / np.maximum(r.sum(0), 1e-300)).tolist()
    return found


def _averages(lesson: Lesson) -> bool:
    """Whether each next mean is the average weighted by responsibilities: not so with row weights or a prior of means."""
    steps = zip(lesson.frames, lesson.frames[1:], strict=False)
    pairs = [(a, b) for a, b in steps if b.step == a.step + 1]
    return bool(pairs) and all(np.allclose(_next(lesson, a), b.means[:, 0], rtol=1e-9, atol=1e-12) for a, b in pairs)


def notes(lesson: Lesson) -> list[str]:
    """Notes on what is drawn, and what is not."""
    along = " and ".join(lesson.columns)
    shapes = "The curves are the weighted densities of the components; the thin one is their sum."
    if len(lesson.columns) == 2:
        shapes = (
            "The ellipses lie at one and two standard deviations of a component; "
            "the line behind its cross is the path of its mean."
        )
    found = [f"A row has the colour of its component; the colours of several are mixed by their responsibilities. {shapes}"]
    if len(lesson.points) == MOST_POINTS:
        found.append(f"{len(lesson.points):,} of {lesson.rows:,} rows are drawn, a uniform random sample.")
    if lesson.gaps:
        found.append(f"{lesson.gaps:,} rows have a missing cell in {along} and are not drawn.")
    if lesson.others:
        found.append(f"The responsibilities depend on {lesson.others} other column{'s' * (lesson.others > 1)} as well.")
    if len(lesson.frames) < len(lesson.trace):
        shown = f"{len(lesson.frames)} of {len(lesson.trace):,} steps are shown"
        found.append(f"{shown}: the first {FIRST_STEPS} one by one, then some evenly apart, and the last.")
    return found


def described(lesson: Lesson) -> str:
    """Text alternative of the picture, for screen readers."""
    first, last = lesson.frames[0], lesson.frames[-1]
    ends: Sequence[str] = [
        f"component {name}: weight {number(float(w))}, mean {', '.join(number(float(m)) for m in mean)}"
        for name, w, mean in zip(lesson.components, last.weights, last.means, strict=True)
    ]
    rise = f"EM rose from {objective_text(first.value)} to {objective_text(last.value)} in {last.step} steps"
    return f"{len(lesson.components)} components along {' and '.join(lesson.columns)}. {rise}. At the end: {'; '.join(ends)}."
