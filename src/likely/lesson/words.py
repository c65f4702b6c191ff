"""What a lesson says at every step: its value, the components in numbers, and for a few rows every share."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from likely.em import FIRST_STEPS
from likely.lesson.frames import MOST_POINTS, Frame, Lesson

FEW_ROWS, FEW_COMPONENTS = 12, 4  # the shares of more are not written out
Cells = list[list[str]]


def number(value: float) -> str:
    """Six places where they say something, six digits otherwise."""
    return f"{value:.6f}" if value == 0 or 1e-3 <= abs(value) < 1e3 else f"{value:.6g}"


def worth(value: float) -> str:
    """A log likelihood, or what it rose by, to six places: the first digits of it say little."""
    return f"{value:.6f}" if abs(value) < 1e12 else f"{value:.12g}"


def said(lesson: Lesson, i: int) -> str:
    """One step in a sentence or two: which it is, what it is worth, what has moved most, and whether it is the end."""
    frame, last = lesson.frames[i], lesson.frames[-1].step
    head = "Step 0, the start." if not frame.step else f"Step {frame.step} of {last}."
    value = f"{lesson.climbs.capitalize()} {worth(frame.value)}"
    if not frame.step:
        return f"{head} {value}." + ("" if last else " EM made no second step.")
    parts = [head, f"{value}, {_rise(frame.change)}.", _moved(lesson, i)]
    if i == len(lesson.frames) - 1:
        stopped = "EM was stopped here: more rounds would climb on."
        parts.append("The gain is below the tolerance: this is the end." if lesson.converged else stopped)
    return " ".join(part for part in parts if part)


def _rise(change: float) -> str:
    """From one step to the next it never falls, but for rounding."""
    if change < 1e-6:
        return "as high as one step before, to six places"
    return f"{worth(change)} more than one step before"


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
    return f"Most moved{since}: {moved}."


def names(lesson: Lesson) -> list[str]:
    """What stands beside the numbers of the components."""
    own = ["mean μ", "deviation σ"]
    if len(lesson.columns) == 2:
        own = [f"{what} of {name}" for name in lesson.columns for what in ("mean", "deviation")]
    return ["weight", *own, *(["correlation"] if _joint(lesson) else [])]


def cells(lesson: Lesson, frame: Frame) -> Cells:
    """The components side by side in numbers: weight, mean and deviation of each column, and how the two go together."""
    wide = np.sqrt(np.diagonal(frame.covariances, axis1=1, axis2=2))
    rows = [frame.weights]
    for j in range(len(lesson.columns)):
        rows += [frame.means[:, j], wide[:, j]]
    if _joint(lesson):
        rows.append(frame.covariances[:, 0, 1] / (wide[:, 0] * wide[:, 1]))
    return [[number(float(value)) for value in row] for row in rows]


def _joint(lesson: Lesson) -> bool:
    """Whether the two columns may lean on each other within a component."""
    return len(lesson.columns) == 2 and any(bool(frame.covariances[:, 0, 1].any()) for frame in lesson.frames)


def writes_shares(lesson: Lesson) -> bool:
    """Whether there are so few rows that every share can be written out."""
    few = len(lesson.points) <= FEW_ROWS and len(lesson.components) <= FEW_COMPONENTS
    return few and lesson.whole and len(lesson.columns) == 1


def share_heads(lesson: Lesson) -> list[str]:
    """What stands above the shares: the rows, their sum, and what follows."""
    rows = [f"{value:g}" for value in lesson.points[:, 0].tolist()]
    return [f"{lesson.columns[0]} =", *rows, "Σ E[z]", *(["next μ = Σ E[z]·x / Σ E[z]"] if _averages(lesson) else [])]


def share_cells(lesson: Lesson, frame: Frame) -> Cells:
    """For each component its share of every row, their sum, and the mean that follows: the sums of the textbook."""
    rows = [[f"{share:.6f}" for share in (*own, sum(own))] for own in frame.shares.T.tolist()]
    if _averages(lesson):
        return [[*row, number(mean)] for row, mean in zip(rows, _next(lesson, frame), strict=True)]
    return rows


def _next(lesson: Lesson, frame: Frame) -> list[float]:
    found: list[float] = ((frame.shares * lesson.points).sum(0) / np.maximum(frame.shares.sum(0), 1e-300)).tolist()
    return found


def _averages(lesson: Lesson) -> bool:
    """Whether each next mean is the average weighed by the shares: not so where rows have weights, or means a prior."""
    steps = zip(lesson.frames, lesson.frames[1:], strict=False)
    pairs = [(a, b) for a, b in steps if b.step == a.step + 1]
    return bool(pairs) and all(np.allclose(_next(lesson, a), b.means[:, 0], rtol=1e-9, atol=1e-12) for a, b in pairs)


def notes(lesson: Lesson) -> list[str]:
    """What is drawn, and what is left out."""
    along = " and ".join(lesson.columns)
    shapes = "The curves are the components, each as high as its weight says; the thin one is their sum."
    if len(lesson.columns) == 2:
        shapes = (
            "The rings lie at one and two deviations of a component; the line behind its cross is the way of its mean."
        )
    found = [f"A row has the hue of its component; where several share it, their hues are mixed. {shapes}"]
    if len(lesson.points) == MOST_POINTS:
        found.append(f"{len(lesson.points):,} of {lesson.rows:,} rows are drawn, a sample of equal chances.")
    if lesson.gaps:
        found.append(f"{lesson.gaps:,} rows have a gap in {along} and are not drawn.")
    if lesson.others:
        found.append(f"The shares go by {lesson.others} other column{'s' * (lesson.others > 1)} as well.")
    if len(lesson.frames) < len(lesson.trace):
        shown = f"{len(lesson.frames)} of {len(lesson.trace):,} steps are shown"
        found.append(f"{shown}: the first {FIRST_STEPS} one by one, then some evenly apart, and the last.")
    return found


def described(lesson: Lesson) -> str:
    """The picture in words, for those who cannot see it."""
    first, last = lesson.frames[0], lesson.frames[-1]
    ends: Sequence[str] = [
        f"component {name}: weight {number(float(w))}, mean {', '.join(number(float(m)) for m in mean)}"
        for name, w, mean in zip(lesson.components, last.weights, last.means, strict=True)
    ]
    rise = f"EM rose from {worth(first.value)} to {worth(last.value)} in {last.step} steps"
    return f"{len(lesson.components)} components along {' and '.join(lesson.columns)}. {rise}. At the end: {'; '.join(ends)}."
