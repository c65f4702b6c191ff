"""Drawing of a lesson: the static part as SVG text, and for every step the paths that change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.plots.panel import HUES, Panel, axis_range
from likely.teaching.lesson._em_frames import EMFrame, Lesson

Array = NDArray[np.float64]
WIDTH, HEIGHT, HEAD = 720, 420, 30
TRACE_WIDTH, TRACE_HEIGHT = 480, 250
FEW = 40  # rows drawn as dots on the axis; more are drawn as a histogram
CURVE = 96
TAILS = 2.5  # deviations
MOST_TRACE_POINTS = 500  # of a longer trace only the kept steps are drawn
KAPPA = 4 / 3 * (math.sqrt(2) - 1)  # how far the handles of a quarter circle reach, as a Bézier curve
QUARTERS = np.array(
    [(1, 0), (1, KAPPA), (KAPPA, 1), (0, 1), (-KAPPA, 1), (-1, KAPPA), (-1, 0),
     (-1, -KAPPA), (-KAPPA, -1), (0, -1), (KAPPA, -1), (1, -KAPPA), (1, 0)]
)  # fmt: skip


@dataclass(frozen=True)
class Drawing:
    """A picture in two parts: the static SVG, and paths and labels that change with the step, in drawing order."""

    still: str
    points: Sequence[str]  # an open tag for each row; its fill follows from the responsibilities
    moving: Sequence[str]  # an open tag for every element that gets a path at every step
    paths: Sequence[Sequence[str]]  # frame by frame
    labels: Sequence[Sequence[tuple[float, float]]]  # position of the name of each component, frame by frame


def hue(c: int) -> str:
    """The colour of a component."""
    return HUES[c % len(HUES)]


def fills(responsibilities: Array) -> str:
    """The colour of every row as six hex digits: the components' colours mixed by its responsibilities."""
    hues = np.array([[int(hue(c)[i : i + 2], 16) for i in (1, 3, 5)] for c in range(responsibilities.shape[1])])
    mixed = np.rint(np.clip(responsibilities @ hues, 0, 255)).astype(int)
    return "".join("{:02x}{:02x}{:02x}".format(*row) for row in mixed.tolist())


def drawing(lesson: Lesson) -> Drawing:
    """The components over the rows, along one column or two."""
    return _one_column(lesson) if len(lesson.columns) == 1 else _two_columns(lesson)


def _axis(lesson: Lesson, j: int, tails: float = 0.0) -> tuple[float, float]:
    """Range of an axis: all rows and means of a column, and so many standard deviations of the components, limited."""
    low, high = axis_range(np.concatenate([lesson.points[:, j], *(frame.means[:, j] for frame in lesson.frames)]))
    most = 0.25 * (high - low)
    wide = [tails * np.sqrt(frame.covariances[:, j, j]) for frame in lesson.frames]
    first = min(float((frame.means[:, j] - w).min()) for frame, w in zip(lesson.frames, wide, strict=True))
    last = max(float((frame.means[:, j] + w).max()) for frame, w in zip(lesson.frames, wide, strict=True))
    return min(low, max(first, low - most)), max(high, min(last, high + most))


# ---------------------------------------------------------------- along one column


def _one_column(lesson: Lesson) -> Drawing:
    """Density of each component, their sum, and the rows as dots or as a histogram."""
    low, high = _axis(lesson, 0, TAILS)
    line = np.linspace(low, high, CURVE + 1)
    densities = [_densities(frame, line) for frame in lesson.frames]
    edges, bricks = _histogram_bins(lesson.points[:, 0], low, high)
    tallest = float(bricks[1].max()) if len(bricks[1]) else 0.0
    curves = max(float(b.sum(0).max()) for b in densities)
    highest = 1.1 * (min(curves, 3 * tallest) if tallest else curves)
    highest = max(highest, 1.1 * tallest) or 1.0
    panel = Panel((low, high), (0.0, highest), 0, WIDTH, HEIGHT, HEAD)
    x, y = lesson.columns[0], "density"
    paths, labels = [], []
    for frame, heights in zip(lesson.frames, densities, strict=True):
        drawn = [_curve(panel, line, np.minimum(b, highest)) for b in (heights.sum(0), *heights)]
        feet = [panel.at(float(mean), 0.0)[0] for mean in frame.means[:, 0]]
        paths.append([*drawn, *(f"M{foot:.1f} {panel.ground:.1f}V{HEAD}" for foot in feet)])
        labels.append([(foot, HEAD + 6.0) for foot in feet])
    k = len(lesson.components)
    moving = ['<path class="lk-sum" fill="none"', *(_path("lk-bell", hue(c)) for c in range(k))]
    moving += [_path("lk-mean", hue(c)) for c in range(k)]
    points = _dots(lesson.points[:, 0], panel) if not len(bricks[1]) else _bars(panel, edges, *bricks)
    return Drawing("\n".join(panel.frame("", x, y)), points, moving, paths, labels)


def _densities(frame: EMFrame, line: Array) -> Array:
    """Weighted density of each component at the points of a line."""
    wide = np.sqrt(frame.covariances[:, 0, 0])[:, None]
    bell = np.exp(-0.5 * ((line - frame.means) / wide) ** 2) / (wide * math.sqrt(2 * math.pi))
    return np.asarray(frame.weights[:, None] * bell)


def _histogram_bins(x: Array, low: float, high: float) -> tuple[Array, tuple[NDArray[np.int64], Array]]:
    """Bin edges, the bin of every row and the top of its part of the bar; empty for few rows."""
    if len(x) <= FEW:
        return np.zeros(0), (np.zeros(0, np.int64), np.zeros(0))
    edges = np.linspace(low, high, int(np.clip(2 * math.sqrt(len(x)), 12, 48)) + 1)
    bins = np.clip(np.searchsorted(edges, x, "right") - 1, 0, len(edges) - 2)
    order = np.lexsort((x, bins))
    starts = np.searchsorted(bins[order], bins[order], "left")
    floor = np.empty(len(x))
    floor[order] = np.arange(len(x)) - starts  # how many rows of the same bin lie below
    return edges, (bins, (floor + 1) / (len(x) * (edges[1] - edges[0])))


def _bars(panel: Panel, edges: Array, bins: NDArray[np.int64], tops: Array) -> list[str]:
    brick = float(tops.min())
    parts = []
    for b, top in zip(bins.tolist(), tops.tolist(), strict=True):
        (left, upper), (right, lower) = panel.at(edges[b], top), panel.at(edges[b + 1], top - brick)
        size = f'width="{right - left - 1:.1f}" height="{max(lower - upper, 0.3):.2f}"'
        parts.append(f'<rect x="{left + 0.5:.1f}" y="{upper:.2f}" {size}')
    return parts


def _dots(x: Array, panel: Panel) -> list[str]:
    """A dot on the axis for each of few rows; equal values are stacked."""
    parts, before = [], dict[float, int]()
    for value in x.tolist():
        before[value] = before.get(value, 0) + 1
        across, ground = panel.at(value, 0.0)
        parts.append(f'<circle cx="{across:.1f}" cy="{ground - 14 * (before[value] - 1):.1f}" r="7"')
    return parts


def _curve(panel: Panel, x: Array, y: Array) -> str:
    """A path of relative steps between rounded points, so that rounding errors do not add up."""
    points = np.rint(10 * np.array([panel.at(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)])) / 10
    steps = " ".join(f"{a:.4g} {b:.4g}" for a, b in np.diff(points, axis=0).tolist())
    return f"M{points[0, 0]:.1f} {points[0, 1]:.1f}l{steps}"


# ---------------------------------------------------------------- along two columns


def _two_columns(lesson: Lesson) -> Drawing:
    """The rows as dots, ellipses at one and two standard deviations of each component, and the path of its mean."""
    panel = Panel(_axis(lesson, 0), _axis(lesson, 1), 0, WIDTH, HEIGHT, HEAD)
    k = len(lesson.components)
    ways: list[list[str]] = [[] for _ in range(k)]
    paths, labels = [], []
    for frame in lesson.frames:
        rings, crosses, names = [], [], []
        for c in range(k):
            across, up = panel.at(*frame.means[c].tolist())
            ways[c].append(f"{across:.1f} {up:.1f}")
            root = np.linalg.cholesky(frame.covariances[c])
            rings += [_ring(panel, frame.means[c], deviations * root) for deviations in (2, 1)]
            crosses.append(f"M{across - 6:.1f} {up:.1f}h12M{across:.1f} {up - 6:.1f}v12")
            names.append((across + 9, up - 7))
        paths.append([*("M" + "L".join(way) for way in ways), *rings, *crosses])
        labels.append(names)
    moving = [_path("lk-way", hue(c)) for c in range(k)]
    moving += [_path(kind, hue(c)) for c in range(k) for kind in ("lk-ring", "lk-ring lk-near")]
    moving += [_path("lk-cross", hue(c)) for c in range(k)]
    size = 3.4 if len(lesson.points) > FEW else 6
    dots = (panel.at(a, b) for a, b in lesson.points.tolist())
    points = [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{size}"' for a, b in dots]
    return Drawing("\n".join(panel.frame("", *lesson.columns)), points, moving, paths, labels)


def _ring(panel: Panel, mean: Array, root: Array) -> str:
    """An ellipse of four Bézier curves: the transformed unit circle, so that steps interpolate smoothly."""
    points = [panel.at(*pair) for pair in (mean + QUARTERS @ root.T).tolist()]
    first, *rest = (f"{a:.1f} {b:.1f}" for a, b in points)
    return f"M{first}C{' '.join(rest)}"


# ---------------------------------------------------------------- the trace


def trace_plot(lesson: Lesson) -> tuple[str, list[str], list[int]]:
    """Plot of the log-likelihood by iteration: static part, points, and how many of them are reached at each step."""
    steps = list(range(len(lesson.trace)))
    if len(steps) > MOST_TRACE_POINTS:
        steps = [frame.step for frame in lesson.frames]
    y = np.array([lesson.trace[i] for i in steps])
    panel = Panel((0.0, float(max(steps[-1], 1))), axis_range(y[np.isfinite(y)]), 0, TRACE_WIDTH, TRACE_HEIGHT, HEAD)
    points = [
        "{:.1f} {:.1f}".format(*panel.at(i, v if math.isfinite(v) else panel.y[0]))
        for i, v in zip(steps, y, strict=True)
    ]
    still = panel.frame("", "step", lesson.objective)
    still.append(f'<path class="lk-ahead" fill="none" d="M{"L".join(points)}"/>')
    place = {step: i + 1 for i, step in enumerate(steps)}
    return "\n".join(still), points, [place[frame.step] for frame in lesson.frames]


def _path(kind: str, stroke: str) -> str:
    return f'<path class="{kind}" fill="none" stroke="{stroke}"'
