"""Decision surface of two columns: regions of the plane, their border and the rows, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from likely.plots.axes import BOTTOM, LEFT, LEGEND_LINE, Axes, document, legend_rows, palette
from likely.plots.escaping import escape
from likely.plots.svg import printable, svg_text

Array = NDArray[np.float64]
HEAD, PLOT, GAP = 64, 380, 26
SHAPES = (
    "M{a} {y}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0Z",
    "M{x} {b}l5 9h-10Z",
    "M{a} {c}h8v8h-8Z",
    "M{x} {b}l5.4 5.4l-5.4 5.4l-5.4 -5.4Z",
)  # circle, triangle, square, diamond
ACROSS, DOWN = 206, 127  # points of the grid on which the surface is evaluated


@dataclass(frozen=True)
class Surface:
    """Scores of each class on a grid: classes × y × x, with rows to draw over the regions."""

    title: str
    subtitle: str
    x_label: str
    y_label: str
    classes: Sequence[str]
    x: Array
    y: Array
    scores: Array
    rows: Sequence[tuple[float, float, int]] = ()  # x, y and number of the class

    @property
    def height(self) -> float:
        """Its height in pixels."""
        return HEAD + LEGEND_LINE * len(legend_rows(self.classes)) + PLOT + BOTTOM + GAP


STYLE = """
.lk-area{fill-opacity:.20}.lk-border{fill:none;stroke:#1c2733;stroke-width:1.8}
@media (prefers-color-scheme:dark){.lk-border{stroke:#e8ecf0}}
"""


def regions_svg(surfaces: Sequence[Surface]) -> str:
    """The surfaces as one SVG picture, one below the other."""
    parts: list[str] = []
    top = 0.0
    for surface in surfaces:
        parts += _panel(surface, top)
        top += surface.height
    most = max(len(surface.classes) for surface in surfaces)
    described = " ".join(f"{s.title}. {s.subtitle}. {_shares(s)}" for s in surfaces)
    return document(surfaces[0].title, described, top, palette(most) + STYLE, parts)


def _shares(surface: Surface) -> str:
    best = surface.scores.argmax(0)
    shares = (f"{name} {100 * (best == k).mean():.0f} %" for k, name in enumerate(surface.classes))
    return f"Share of the plane: {', '.join(shares)}."


def _panel(surface: Surface, top: float) -> list[str]:
    legend = legend_rows(surface.classes)
    head = top + HEAD + LEGEND_LINE * len(legend)
    axes = Axes((surface.x[0], surface.x[-1]), (surface.y[0], surface.y[-1]), head + 8, head + PLOT)
    parts = [
        svg_text(LEFT, top + 32, surface.title, "ink", 'font-size="18" font-weight="600"'),
        svg_text(LEFT, top + 53, surface.subtitle, "faint", 'font-size="13"'),
    ]
    for r, row in enumerate(legend):
        for i, x in row:
            y = top + HEAD + LEGEND_LINE * r + 10
            parts.append(_mark(i, x + 12, y - 4.5, ""))
            parts.append(svg_text(x + 26, y, surface.classes[i], "ink", 'font-size="13"'))
    parts += axes.drawn(surface.x_label, surface.y_label)
    parts += [_area(surface, k, axes) for k in range(len(surface.classes))]
    parts += [_border(surface, k, axes) for k in range(len(surface.classes))]
    for x, y, k in surface.rows:
        tip = f"{surface.classes[k]}: {surface.x_label} {x:g}, {surface.y_label} {y:g}"
        parts.append(_mark(k, axes.px(x), axes.py(y), tip))
    return parts


def _area(surface: Surface, k: int, axes: Axes) -> str:
    """The cells where a class has the highest score, as runs of each line of the grid."""
    wide = (axes.right - axes.left) / (len(surface.x) - 1)
    tall = (axes.bottom - axes.top) / (len(surface.y) - 1)
    best = surface.scores.argmax(0) == k
    path = []
    for j, line in enumerate(best):
        y, height = axes.py(surface.y[j]) - tall / 2, tall
        y, height = max(y, axes.top), min(y + height, axes.bottom) - max(y, axes.top)
        place = 0
        for inside, cells in groupby(line.tolist()):
            n = len(list(cells))
            if inside:
                left = max(axes.left + (place - 0.5) * wide, axes.left)
                right = min(axes.left + (place + n - 0.5) * wide, axes.right)
                path.append(f"M{left:.1f} {y:.2f}H{right:.1f}v{height:.2f}H{left:.1f}Z")
            place += n
    label = escape(printable(surface.classes[k]))
    d = "".join(path)
    return f'<path class="lk-f{k} lk-area" shape-rendering="crispEdges" d="{d}"><title>{label}</title></path>'


def _border(surface: Surface, k: int, axes: Axes) -> str:
    """Where the score of a class equals the best of the others: marching squares, interpolated."""
    others = np.delete(surface.scores, k, axis=0)
    if not len(others):
        return ""
    lead = surface.scores[k] - others.max(0)
    lead = np.where(np.isfinite(lead), lead, np.sign(np.nan_to_num(lead)) * 1e6)
    above = lead > 0
    first, rest = above[:-1, :-1], (above[1:, :-1], above[:-1, 1:], above[1:, 1:])
    mixed = np.argwhere(np.any([first != corner for corner in rest], axis=0))
    path = []
    for j, i in mixed:
        corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
        ends = []
        for (i0, j0), (i1, j1) in zip(corners, [*corners[1:], corners[0]], strict=True):
            a, b = lead[j0, i0], lead[j1, i1]
            if (a > 0) != (b > 0):
                t = a / (a - b)
                x = surface.x[i0] + t * (surface.x[i1] - surface.x[i0])
                y = surface.y[j0] + t * (surface.y[j1] - surface.y[j0])
                ends.append(f"{axes.px(x):.1f} {axes.py(y):.1f}")
        path += [f"M{ends[n]}L{ends[n + 1]}" for n in range(0, len(ends) - 1, 2)]
    return f'<path class="lk-border" d="{"".join(path)}"/>' if path else ""


def _mark(k: int, x: float, y: float, tip: str) -> str:
    """A mark whose shape, not only its colour, shows the class."""
    values = {"x": f"{x:.1f}", "y": f"{y:.1f}", "a": f"{x - 4.5:.1f}", "b": f"{y - 5:.1f}", "c": f"{y - 4:.1f}"}
    d = SHAPES[k % len(SHAPES)].format(**values)
    title = f"<title>{escape(printable(tip))}</title>" if tip else ""
    return f'<path class="lk-p{k}" stroke-width="1" d="{d}">{title}</path>'
