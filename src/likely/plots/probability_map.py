"""Map of a probability over two numbers: shaded levels, the line of one half, and rows as marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from likely.plots.axes import BOTTOM, LEFT, RIGHT, WIDTH, Axes, document, palette
from likely.plots.escaping import escape
from likely.plots.figure import STYLE, short
from likely.plots.svg import Svg, printable, svg_text

Array = NDArray[np.float64]
LEVELS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0001)
HEAD, PLOT = 92, 380
STRONGEST = 0.75  # opacity of the highest level


@dataclass(frozen=True)
class ProbabilityMap:
    """Probability of one class on a grid (y × x), with rows to draw over it: x, y and whether they are of the class."""

    title: str
    subtitle: str
    x_label: str
    y_label: str
    label: str
    x: Array
    y: Array
    probability: Array
    rows: Sequence[tuple[float, float, bool]] = ()


def probability_map_svg(chart: ProbabilityMap) -> Svg:
    """The map as SVG."""
    axes = Axes((chart.x[0], chart.x[-1]), (chart.y[0], chart.y[-1]), HEAD + 8, HEAD + PLOT)
    parts = [
        svg_text(LEFT, 32, short(chart.title, 66), "ink", 'font-size="18" font-weight="600"'),
        svg_text(LEFT, 53, short(chart.subtitle, 100), "faint", 'font-size="13"'),
        *_key(chart.label),
    ]
    place = np.searchsorted(LEVELS, chart.probability, side="right") - 1
    parts += [_level(place == level, level, axes) for level in range(len(LEVELS) - 1)]
    parts += axes.drawn(chart.x_label, chart.y_label)
    for x, y, inside in chart.rows:
        tip = f"{chart.label if inside else f'not {chart.label}'}: {chart.x_label} {x:g}, {chart.y_label} {y:g}"
        title = f"<title>{escape(printable(tip))}</title>"
        a, b = axes.px(x), axes.py(y)
        shape = f"M{a:.1f} {b - 5:.1f}l5 9h-10Z" if inside else f"M{a - 4:.1f} {b:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z"
        parts.append(f'<path class="lk-p{1 if inside else 7}" stroke-width="1" d="{shape}">{title}</path>')
    described = f"{chart.title}. {chart.subtitle}. Highest {chart.probability.max():.2f}, lowest {chart.probability.min():.2f}."
    return document(chart.title, described, HEAD + PLOT + BOTTOM + 12, palette(8) + STYLE, parts)


def _opacity(level: int) -> float:
    return STRONGEST * level / (len(LEVELS) - 2)


def _key(label: str) -> list[str]:
    """Legend: the probability of each shade, and the meaning of the marks."""
    parts, x = [], float(LEFT)
    for level in range(len(LEVELS) - 1):
        name = f"{100 * LEVELS[level]:g}–{100 * min(LEVELS[level + 1], 1.0):g} %"
        box = f'x="{x:.1f}" y="65" width="15" height="11" rx="2"'
        parts.append(f'<rect class="lk-grid" fill="none" {box}/>')
        parts.append(f'<rect class="lk-f0" fill-opacity="{_opacity(level):.2f}" {box}/>')
        parts.append(svg_text(x + 19, 75, name, "faint", 'font-size="11.5"'))
        x += 30 + 6.6 * len(name)
    marks = short(f"▲ {label}  ● others", int((WIDTH - RIGHT - LEFT) / 7))
    return [*parts, svg_text(LEFT, 93, marks, "faint", 'font-size="12"')]


def _level(inside: NDArray[np.bool_], level: int, axes: Axes) -> str:
    """The cells of one level, as runs of each line of the grid."""
    down, across = inside.shape
    wide, tall = (axes.right - axes.left) / across, (axes.bottom - axes.top) / down
    path = []
    for j, line in enumerate(inside):
        place, y = 0, axes.bottom - (j + 1) * tall
        for filled, cells in groupby(line.tolist()):
            n = len(list(cells))
            if filled:
                path.append(f"M{axes.left + place * wide:.1f} {y:.1f}h{n * wide:.1f}v{tall:.2f}h{-n * wide:.1f}Z")
            place += n
    shade = f'class="lk-f0" fill-opacity="{_opacity(level):.2f}" shape-rendering="crispEdges"'
    return f'<path {shade} d="{"".join(path)}"/>' if path else ""
