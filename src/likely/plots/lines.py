"""Line charts of several series with a legend, one panel below the other, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from likely.plots.axes import BOTTOM, DASHES, LEFT, LEGEND_LINE, Axes, document, legend_rows, palette, runs, spread
from likely.plots.escaping import escape
from likely.plots.svg import printable, svg_text

HEAD, PLOT, GAP = 64, 270, 26  # pixels: title and subtitle, plot area, below a panel
MOST_MARKS = 60  # a line with more points is drawn without a mark for each


@dataclass(frozen=True)
class Series:
    """One line: its name in the legend, and its points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]

    @property
    def finite(self) -> list[tuple[float, float]]:
        """The points that can be drawn."""
        return [(a, b) for a, b in zip(self.x, self.y, strict=True) if math.isfinite(a) and math.isfinite(b)]


@dataclass(frozen=True)
class Chart:
    """A panel: several lines over one pair of axes."""

    title: str
    subtitle: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    marks: bool = False  # a mark with a tooltip at every point
    from_zero: bool = True  # whether the y axis begins at 0
    percent: bool = False
    ceiling: float | None = None  # upper end of the y axis; by default the highest point and a margin
    below: float = -math.inf  # the y axis is cut off below this value

    @property
    def height(self) -> float:
        """Its height in pixels."""
        return HEAD + LEGEND_LINE * len(legend_rows([s.name for s in self.series])) + PLOT + BOTTOM + GAP


def lines_svg(charts: Sequence[Chart]) -> str:
    """The panels as one SVG picture, one below the other."""
    parts: list[str] = []
    top = 0.0
    for chart in charts:
        parts += _panel(chart, top)
        top += chart.height
    most = max(len(chart.series) for chart in charts)
    return document(charts[0].title, " ".join(map(_described, charts)), top, palette(most), parts)


def _described(chart: Chart) -> str:
    """Text alternative: for each line its ends and its maximum."""
    lines = []
    for series in chart.series:
        points = series.finite
        if points:
            best = max(points, key=lambda point: point[1])
            ends = f"{points[0][1]:.4g} at {points[0][0]:.4g}, {points[-1][1]:.4g} at {points[-1][0]:.4g}"
            lines.append(f"{series.name}: {ends}, highest {best[1]:.4g} at {best[0]:.4g}")
    return f"{chart.title}. {chart.y_label} over {chart.x_label}. {'; '.join(lines)}."


def _panel(chart: Chart, top: float) -> list[str]:
    legend = legend_rows([series.name for series in chart.series])
    head = top + HEAD + LEGEND_LINE * len(legend)
    parts = [
        svg_text(LEFT, top + 32, chart.title, "ink", 'font-size="18" font-weight="600"'),
        svg_text(LEFT, top + 53, chart.subtitle, "faint", 'font-size="13"'),
    ]
    for r, row in enumerate(legend):
        y = top + HEAD + LEGEND_LINE * r + 10
        for i, x in row:
            parts.append(f'<path class="lk-s{i}" stroke-width="2.4"{_dash(i)} d="M{x:.1f} {y - 4.5:.1f}h26"/>')
            parts.append(svg_text(x + 32, y, chart.series[i].name, "ink", 'font-size="13"'))
    points = [point for series in chart.series for point in series.finite if point[1] >= chart.below]
    if not points:
        return [*parts, svg_text(LEFT, head + 40, "nothing finite to draw", "faint", 'font-size="13"')]
    axes = _axes(chart, points, head)
    parts += axes.drawn(chart.x_label, chart.y_label, percent=chart.percent, whole=chart.marks)
    for i, series in enumerate(chart.series):
        parts += _line(chart, series, i, axes)
    return parts


def _axes(chart: Chart, points: Sequence[tuple[float, float]], head: float) -> Axes:
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    low, high = spread(min(ys), max(ys))
    low, high = (min(low, 0.0), high) if chart.from_zero else (low, high)
    top = high + 0.04 * (high - low) if chart.ceiling is None else chart.ceiling
    return Axes(spread(min(xs), max(xs)), (low, top), head + 8, head + PLOT)


def _line(chart: Chart, series: Series, i: int, axes: Axes) -> list[str]:
    """The path of one line and its marks, each with a tooltip."""
    pixels = [
        (axes.px(a), axes.py(b)) if math.isfinite(a) and math.isfinite(b) and b >= chart.below else None
        for a, b in zip(series.x, series.y, strict=True)
    ]
    tip = f"<title>{escape(printable(series.name))}</title>"
    style = f'class="lk-s{i}" stroke-width="2.4" stroke-linejoin="round"{_dash(i)}'
    parts = [f'<path {style} d="{runs(pixels)}">{tip}</path>']
    if chart.marks and len(pixels) <= MOST_MARKS:
        for point, a, b in zip(pixels, series.x, series.y, strict=True):
            if point is not None:
                label = escape(printable(f"{series.name}, {a:g}: {b:.6g}"))
                circle = f'<circle class="lk-p{i}" cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="4" stroke-width="1.3">'
                parts.append(f"{circle}<title>{label}</title></circle>")
    return parts


def _dash(i: int) -> str:
    pattern = DASHES[i % len(DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""
