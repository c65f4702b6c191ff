"""Plots over one pair of axes: lines with bands, steps, points and bars, with a legend above the plot area."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from likely.plots.axes import (
    DASHES,
    LEGEND_LINE,
    Axes,
    document,
    legend_rows,
    palette,
    runs,
    simplified,
    spread,
    text_width,
    within,
)
from likely.plots.escaping import escape
from likely.plots.svg import Svg, printable, svg_text

WIDE, HIGH = 480, 300  # of the whole picture, and of the plot area
LEFT, RIGHT, BOTTOM = 62, 18, 48
ASIDE = 58  # pixels for bars beside the plot area
LONGEST = 44  # letters of a title
STYLE = """
.lk-band0,.lk-band1,.lk-band2,.lk-band3,.lk-band4,.lk-band5,.lk-band6,.lk-band7{fill-opacity:.16}
.lk-quiet{fill:#8a96a3;fill-opacity:.35}.lk-zero{stroke:#56626e;stroke-dasharray:4 4}.lk-mark{stroke:#1c2733;stroke-width:1.6}
@media (prefers-color-scheme:dark){.lk-quiet{fill:#8a96a3;fill-opacity:.35}.lk-zero{stroke:#a3aeb9}.lk-mark{stroke:#e8ecf0}}
"""


@dataclass(frozen=True)
class Trace:
    """One line of a plot.

    Attributes
    ----------
    name : str
        Name in the legend; empty for a line that needs none.
    x, y : sequence of float
        Its points.
    low, high : sequence of float
        The band around it; empty for none.
    marks : bool
        Whether every point has a mark with a tooltip.
    tips : sequence of str
        Tooltips of the marks; by default the numbers.
    faint : bool
        Whether it is only there for comparison.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    marks: bool = False
    tips: Sequence[str] = ()
    faint: bool = False


@dataclass(frozen=True)
class Columns:
    """Vertical bars behind the lines: left and right edge, height and tooltip of each, on a scale of their own."""

    edges: Sequence[tuple[float, float]]
    heights: Sequence[float]
    tips: Sequence[str]


@dataclass(frozen=True)
class Figure:
    """A plot: titles, axes, lines, and bars behind them."""

    title: str
    subtitle: str
    x_label: str
    y_label: str
    traces: Sequence[Trace]
    x: tuple[float, float] | None = None
    y: tuple[float, float] | None = None
    columns: Columns | None = None
    zero: bool = False  # whether a line is drawn at zero
    rules: Sequence[tuple[float, str]] = ()  # vertical lines with tooltips
    percent: bool = False
    height: float = HIGH
    ticks: Sequence[tuple[float, str]] = ()  # of the x axis; by default round numbers
    aside: Sequence[tuple[float, str]] = ()  # bars to the right of the axes, one for each line: value and tooltip
    aside_label: str = ""


def figure_svg(figure: Figure) -> Svg:
    """The plot as SVG."""
    named = [trace.name for trace in figure.traces if trace.name]
    legend = legend_rows(named, WIDE - RIGHT, LEFT) if len(named) > 1 else [[]]
    head = 52 + (LEGEND_LINE * len(legend) if len(named) > 1 else 0)
    parts = [
        svg_text(12, 24, short(figure.title, LONGEST), "ink", 'font-size="16" font-weight="600"'),
        svg_text(12, 42, short(figure.subtitle, 72), "faint", 'font-size="12.5"'),
    ]
    for r, row in enumerate(legend):
        for i, x in row:
            y = 52 + LEGEND_LINE * r + 10
            parts.append(
                f'<path class="{_stroke(figure.traces[i], i)}" stroke-width="2.4"{_dash(i)} d="M{x:.1f} {y - 4.5:.1f}h26"/>'
            )
            parts.append(svg_text(x + 32, y, named[i], "ink", 'font-size="12.5"'))
    total = head + figure.height + BOTTOM
    axes = _axes(figure, head)
    if axes is None:
        parts.append(svg_text(LEFT, head + 40, "nothing finite to draw", "faint", 'font-size="13"'))
    else:
        parts += _drawn(figure, axes)
    count = max(1, len(figure.traces))
    return document(figure.title, _described(figure), total, palette(count) + STYLE, parts, width=WIDE)


def short(content: str, most: int) -> str:
    """Text that is cut where it is too long for its place."""
    return content if len(content) <= most else content[: most - 1] + "…"


def _described(figure: Figure) -> str:
    lines = []
    for trace in figure.traces:
        points = [(a, b) for a, b in zip(trace.x, trace.y, strict=True) if math.isfinite(a) and math.isfinite(b)]
        if points and not trace.faint:
            best = max(points, key=lambda point: point[1])
            ends = f"{points[0][1]:.4g} at {points[0][0]:.4g}, {points[-1][1]:.4g} at {points[-1][0]:.4g}"
            lines.append(f"{trace.name or figure.y_label}: {ends}, highest {best[1]:.4g} at {best[0]:.4g}")
    return f"{figure.title}. {figure.subtitle}. {figure.y_label} over {figure.x_label}. {'; '.join(lines)}."


def _axes(figure: Figure, head: float) -> Axes | None:
    xs = [v for t in figure.traces for v in t.x if math.isfinite(v)]
    ys = [v for t in figure.traces for part in (t.y, t.low, t.high) for v in part if math.isfinite(v)]
    if figure.columns:
        xs += [v for pair in figure.columns.edges for v in pair]
    if not xs or not (ys or figure.columns):
        return None
    x = figure.x or spread(min(xs), max(xs))
    ys += [0.0] if figure.zero else []
    y = spread(*figure.y) if figure.y else spread(min(ys), max(ys), 0.04)
    return Axes(x, y, head + 6, head + figure.height, LEFT, WIDE - RIGHT - (ASIDE if figure.aside else 0))


def _drawn(figure: Figure, axes: Axes) -> list[str]:
    parts = _background_bars(figure.columns, axes) if figure.columns else []
    parts += _frame(figure, axes)
    if figure.zero and axes.y[0] < 0 < axes.y[1]:
        parts.append(f'<path class="lk-zero" d="M{axes.left:.1f} {axes.py(0):.1f}H{axes.right:.1f}"/>')
    for at, tip in figure.rules:
        if axes.x[0] <= at <= axes.x[1]:
            title = f"<title>{escape(printable(tip))}</title>"
            parts.append(
                f'<path class="lk-mark" d="M{axes.px(at):.1f} {axes.top:.1f}V{axes.bottom:.1f}">{title}</path>'
            )
    for i, trace in enumerate(figure.traces):
        parts += _line(trace, i, axes)
    return [*parts, *_side_bars(figure, axes)]


def _side_bars(figure: Figure, axes: Axes) -> list[str]:
    """Bars beside the plot area, from zero to their value."""
    if not figure.aside:
        return []
    left, wide = axes.right + 14, (ASIDE - 16) / len(figure.aside)
    zero = axes.py(min(max(0.0, axes.y[0]), axes.y[1]))
    parts = [f'<path class="lk-axis" d="M{left - 6:.1f} {axes.top:.1f}V{axes.bottom:.1f}"/>']
    for i, (value, tip) in enumerate(figure.aside):
        end = axes.py(min(max(value, axes.y[0]), axes.y[1]))
        tall = max(abs(end - zero), 1.5)
        box = f'x="{left + i * wide:.1f}" y="{min(zero, end):.1f}" width="{wide - 2:.1f}" height="{tall:.1f}"'
        parts.append(f'<rect class="lk-f{i}" {box}><title>{escape(printable(tip))}</title></rect>')
    middle = left + (ASIDE - 18) / 2
    return [*parts, svg_text(middle, axes.bottom + 18, figure.aside_label, "faint", 'font-size="11.5" text-anchor="middle"')]


def _frame(figure: Figure, axes: Axes) -> list[str]:
    parts = []
    for tick in within(axes.y):
        mark = f"{100 * tick:g} %" if figure.percent else f"{tick:g}"
        parts.append(f'<path class="lk-grid" d="M{axes.left:.1f} {axes.py(tick):.1f}H{axes.right:.1f}"/>')
        parts.append(svg_text(axes.left - 7, axes.py(tick) + 4.5, mark, "faint", 'font-size="12" text-anchor="end"'))
    parts.append(f'<path class="lk-axis" d="M{axes.left:.1f} {axes.bottom:.1f}H{axes.right:.1f}"/>')
    last = -math.inf
    for tick, mark in figure.ticks or [(tick, f"{tick:g}") for tick in within(axes.x)]:
        x = axes.px(tick)
        parts.append(f'<path class="lk-axis" d="M{x:.1f} {axes.bottom:.1f}v4"/>')
        if x - last > 7.5 * len(mark) + 6:
            inside = min(x, WIDE - 3 - text_width(mark, 12) / 2)  # the last one may be at the edge of the picture
            parts.append(svg_text(inside, axes.bottom + 18, mark, "faint", 'font-size="12" text-anchor="middle"'))
            last = x
    middle, beside = (axes.left + axes.right) / 2, (axes.top + axes.bottom) / 2
    turned = f'font-size="12.5" text-anchor="middle" transform="rotate(-90 14 {beside:.1f})"'
    below = svg_text(middle, axes.bottom + 38, short(figure.x_label, 52), "ink", 'font-size="12.5" text-anchor="middle"')
    return [*parts, below, svg_text(14, beside, short(figure.y_label, 40), "ink", turned)]


def _background_bars(columns: Columns, axes: Axes) -> list[str]:
    """The bars, a quarter as high as the plot area at most."""
    most = max([h for h in columns.heights if math.isfinite(h)], default=0.0) or 1.0
    parts = []
    for (a, b), height, tip in zip(columns.edges, columns.heights, columns.tips, strict=True):
        left, right = axes.px(max(a, axes.x[0])), axes.px(min(b, axes.x[1]))
        tall = 0.25 * (axes.bottom - axes.top) * height / most
        title = f"<title>{escape(printable(tip))}</title>"
        box = f'x="{left + 0.5:.1f}" y="{axes.bottom - tall:.1f}" width="{max(right - left - 1, 0.5):.1f}" height="{tall:.1f}"'
        parts.append(f'<rect class="lk-quiet" {box}>{title}</rect>')
    return parts


def _line(trace: Trace, i: int, axes: Axes) -> list[str]:
    def at(a: float, b: float) -> tuple[float, float] | None:
        inside = math.isfinite(a) and math.isfinite(b)
        return (axes.px(a), axes.py(min(max(b, axes.y[0]), axes.y[1]))) if inside else None

    parts = []
    if trace.low and trace.high:
        there, back = (simplified([p for a, b in zip(trace.x, part, strict=True) if (p := at(a, b))])
                       for part in (trace.high, trace.low))  # fmt: skip
        ring = "L".join(f"{p[0]:.1f} {p[1]:.1f}" for p in [*there, *back[::-1]] if p)
        parts.append(f'<path class="lk-f{i} lk-band{i % 8}" d="M{ring}Z"/>' if ring else "")
    points = [at(a, b) for a, b in zip(trace.x, trace.y, strict=True)]
    tip = f"<title>{escape(printable(trace.name))}</title>" if trace.name else ""
    style = (
        f'class="{_stroke(trace, i)}" fill="none" stroke-width="{1.4 if trace.faint else 2.2}" stroke-linejoin="round"'
    )
    dash = ' stroke-dasharray="4 4"' if trace.faint else _dash(i)
    parts.append(f'<path {style}{dash} d="{runs(simplified(points))}">{tip}</path>')
    for j, point in enumerate(points if trace.marks else []):
        if point is not None:
            label = trace.tips[j] if trace.tips else f"{trace.name} {trace.x[j]:g}: {trace.y[j]:.4g}"
            circle = f'<circle class="lk-p{i}" cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="4" stroke-width="1.3">'
            parts.append(f"{circle}<title>{escape(printable(label))}</title></circle>")
    return parts


def _stroke(trace: Trace, i: int) -> str:
    return "lk-axis" if trace.faint else f"lk-s{i}"


def _dash(i: int) -> str:
    pattern = DASHES[i % len(DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""
