"""Horizontal bars with labels: effects with error bars, shares by class, waterfalls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from likely.plots.axes import LEGEND_LINE, Axes, document, legend_rows, palette, spread, text_width, within
from likely.plots.escaping import escape
from likely.plots.figure import LONGEST, RIGHT, STYLE, WIDE, short
from likely.plots.svg import Svg, printable, svg_text

LINE, THIN = 22, 11  # pixels of a row with one bar, and of each further one
LONGEST_LABEL = 26


@dataclass(frozen=True)
class Bar:
    """One bar: from `start` to `end`, in a colour, with error bar, value beside it and tooltip.

    Attributes
    ----------
    end : float
        Where it ends.
    start : float
        Where it begins.
    colour : int
        Place in the palette; -1 is grey.
    low, high : float
        Ends of the error bar; NaN for none.
    value : str
        Text beside the bar.
    tip : str
        Tooltip.
    """

    end: float
    start: float = 0.0
    colour: int = 0
    low: float = math.nan
    high: float = math.nan
    value: str = ""
    tip: str = ""


@dataclass(frozen=True)
class BarChart:
    """Rows of bars: a label and its bars for each row, and names of the colours for the legend."""

    title: str
    subtitle: str
    x_label: str
    rows: Sequence[tuple[str, Sequence[Bar]]]
    legend: Sequence[str] = ()
    percent: bool = False
    connected: bool = False  # whether the end of each bar is joined with the next: a waterfall
    x: tuple[float, float] | None = None
    longest: int = LONGEST_LABEL  # letters of a label


def bars_svg(chart: BarChart) -> Svg:
    """The bars as SVG."""
    legend = legend_rows(chart.legend, WIDE - RIGHT, 16) if len(chart.legend) > 1 else []
    head = 52 + LEGEND_LINE * len(legend)
    left = 16 + max((text_width(short(label, chart.longest)) for label, _ in chart.rows), default=30.0)
    heights = [LINE + THIN * (max(len(bars), 1) - 1) for _, bars in chart.rows]
    bottom = head + 6 + sum(heights)
    axes = Axes(_range(chart), (0.0, 1.0), head + 6, bottom, left, WIDE - RIGHT - _value_width(chart))
    parts = [
        svg_text(12, 24, short(chart.title, LONGEST), "ink", 'font-size="16" font-weight="600"'),
        svg_text(12, 42, short(chart.subtitle, 72), "faint", 'font-size="12.5"'),
    ]
    for r, row in enumerate(legend):
        for i, x in row:
            y = 52 + LEGEND_LINE * r + 10
            parts.append(f'<rect class="lk-f{i}" x="{x:.1f}" y="{y - 10:.1f}" width="14" height="10" rx="2"/>')
            parts.append(svg_text(x + 20, y, chart.legend[i], "ink", 'font-size="12.5"'))
    parts += _grid(chart, axes)
    top, before = head + 6.0, None
    for (label, bars), tall in zip(chart.rows, heights, strict=True):
        parts.append(
            svg_text(
                left - 8, top + tall / 2 + 4.5, short(label, chart.longest), "ink", 'font-size="12.5" text-anchor="end"'
            )
        )
        if chart.connected and before is not None and bars:
            x = axes.px(before)
            parts.append(f'<path class="lk-axis" d="M{x:.1f} {top - 4:.1f}v{8:.1f}"/>')
        for j, bar in enumerate(bars):
            parts += _bar(bar, axes, top + 3 + THIN * j, tall - 6 if len(bars) == 1 else THIN - 2)
        before = bars[-1].end if bars else before
        top += tall
    count = max([*(b.colour + 1 for _, bars in chart.rows for b in bars), len(chart.legend), 1])
    return document(chart.title, _described(chart), bottom + 48, palette(count) + STYLE, parts, width=WIDE)


def _value_width(chart: BarChart) -> float:
    """Pixels for the values to the right of the bars."""
    return 12 + max((text_width(bar.value) for _, bars in chart.rows for bar in bars), default=0.0)


def _range(chart: BarChart) -> tuple[float, float]:
    if chart.x is not None:
        return chart.x
    ends = [v for _, bars in chart.rows for b in bars for v in (b.start, b.end, b.low, b.high) if math.isfinite(v)]
    return spread(min(ends, default=0.0), max(ends, default=1.0), 0.02)


def _grid(chart: BarChart, axes: Axes) -> list[str]:
    parts, last = [], -math.inf
    for tick in within(axes.x):
        x, mark = axes.px(tick), f"{100 * tick:g} %" if chart.percent else f"{tick:g}"
        kind = "zero" if tick == 0 else "grid"
        parts.append(f'<path class="lk-{kind}" d="M{x:.1f} {axes.top:.1f}V{axes.bottom:.1f}"/>')
        if x - last > 7.5 * len(mark) + 6:
            parts.append(svg_text(x, axes.bottom + 16, mark, "faint", 'font-size="12" text-anchor="middle"'))
            last = x
    middle = (axes.left + axes.right) / 2
    place = 'font-size="12.5" text-anchor="middle"'
    return [*parts, svg_text(middle, axes.bottom + 36, short(chart.x_label, 56), "ink", place)]


def _bar(bar: Bar, axes: Axes, top: float, tall: float) -> list[str]:
    start, end = (
        axes.px(min(max(v, axes.x[0]), axes.x[1])) if math.isfinite(v) else axes.left for v in (bar.start, bar.end)
    )
    kind = f"lk-f{bar.colour}" if bar.colour >= 0 else "lk-quiet"
    tip = f"<title>{escape(printable(bar.tip))}</title>" if bar.tip else ""
    box = (
        f'x="{min(start, end):.1f}" y="{top:.1f}" width="{max(abs(end - start), 1.0):.1f}" height="{tall:.1f}" rx="1.5"'
    )
    parts = [f'<rect class="{kind}" {box}>{tip}</rect>']
    rightmost = max(start, end)
    if math.isfinite(bar.low) and math.isfinite(bar.high):
        a, b = axes.px(max(bar.low, axes.x[0])), axes.px(min(bar.high, axes.x[1]))
        y = top + tall / 2
        parts.append(
            f'<path class="lk-mark" d="M{a:.1f} {y:.1f}H{b:.1f}M{a:.1f} {y - 3:.1f}v6M{b:.1f} {y - 3:.1f}v6">{tip}</path>'
        )
        rightmost = max(rightmost, b)
    if bar.value:
        parts.append(svg_text(rightmost + 6, top + tall / 2 + 4.3, bar.value, "ink", 'font-size="12"'))
    return parts


def _described(chart: BarChart) -> str:
    rows = []
    for label, bars in chart.rows[:60]:
        shown = (b.tip or b.value or f"{b.end:.4g}" for b in bars)
        rows.append(f"{label}: {', '.join(shown)}")
    return f"{chart.title}. {chart.subtitle}. {chart.x_label}. {'; '.join(rows)}."
