"""Nomograms: one scale a column with its values at their weights of evidence, and a scale of probabilities below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from likely.plots.axes import Axes, document, palette, spread, text_width, within
from likely.plots.escaping import escape
from likely.plots.figure import RIGHT, STYLE, short
from likely.plots.svg import Svg, printable, svg_text

WIDE, LINE, HEAD = 720, 40, 62
LONGEST_LABEL = 22
PROBABILITIES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True)
class Scale:
    """One line of a nomogram: a column, and the weight of each of its values; `marked` is that of a row."""

    name: str
    labels: Sequence[str]
    weights: Sequence[float]
    marked: float | None = None


@dataclass(frozen=True)
class Nomogram:
    """A nomogram for one class: scales of columns, the log-odds without any column, and of a row the sum."""

    title: str
    subtitle: str
    scales: Sequence[Scale]
    prior: float  # log-odds before any column is looked at
    total: float | None = None  # log-odds of the marked row
    probabilities: bool = True  # whether the sum of two classes is shown as a probability


def nomogram_svg(chart: Nomogram) -> Svg:
    """The nomogram as SVG: log-odds above, a line for each column, probabilities below."""
    names = [short(s.name, LONGEST_LABEL) for s in chart.scales]
    left = 22 + max(text_width(name, 13) for name in [*names, "probability"])
    ends = [
        w for s in chart.scales for w in (*s.weights, *([] if s.marked is None else [s.marked])) if math.isfinite(w)
    ]
    low, high = spread(min([*ends, -0.5]), max([*ends, 0.5]), 0.03)
    bottom = HEAD + 30 + LINE * len(chart.scales)
    axes = Axes((low, high), (0.0, 1.0), HEAD + 24, bottom, left, WIDE - RIGHT - 20)
    parts = [
        svg_text(12, 26, short(chart.title, 66), "ink", 'font-size="17" font-weight="600"'),
        svg_text(12, 46, short(chart.subtitle, 104), "faint", 'font-size="12.5"'),
    ]
    for tick in within(axes.x):
        kind = "zero" if tick == 0 else "grid"
        parts.append(f'<path class="lk-{kind}" d="M{axes.px(tick):.1f} {HEAD + 24}V{bottom}"/>')
        parts.append(svg_text(axes.px(tick), HEAD + 18, f"{tick:g}", "faint", 'font-size="12" text-anchor="middle"'))
    parts.append(svg_text(left - 10, HEAD + 18, "log-odds", "faint", 'font-size="12" text-anchor="end"'))
    for i, scale in enumerate(chart.scales):
        parts += _scale(scale, axes, HEAD + 30 + LINE * i + LINE / 2)
    height = bottom + 16
    if chart.probabilities:
        parts += _sum(chart, axes, bottom + 34)
        height = bottom + 84
    return document(chart.title, _described(chart), height, palette(2) + STYLE, parts, width=WIDE)


def _scale(scale: Scale, axes: Axes, y: float) -> list[str]:
    points = sorted((w, label) for w, label in zip(scale.weights, scale.labels, strict=True) if math.isfinite(w))
    parts = [svg_text(axes.left - 10, y + 4.5, short(scale.name, LONGEST_LABEL), "ink", 'font-size="13" text-anchor="end"')]
    if not points:
        return parts
    parts.append(
        f'<path class="lk-axis" stroke-width="1.5" d="M{axes.px(points[0][0]):.1f} {y:.1f}H{axes.px(points[-1][0]):.1f}"/>'
    )
    for weight, label in points:
        tip = escape(printable(f"{scale.name} = {label}: {weight:+.3f}"))
        parts.append(
            f'<circle class="lk-p0" cx="{axes.px(weight):.1f}" cy="{y:.1f}" r="3.6" stroke-width="1">'
            f"<title>{tip}</title></circle>"
        )
    parts += _labels(points, axes, y)
    if scale.marked is not None:
        x = axes.px(scale.marked)
        parts.append(f'<path class="lk-p1" stroke-width="1" d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7Z"/>')
    return parts


def _labels(points: Sequence[tuple[float, str]], axes: Axes, y: float) -> list[str]:
    """Labels where they do not overlap: the ends first, above and below in turn."""
    order = [0, len(points) - 1, *range(1, len(points) - 1)]
    taken: dict[int, list[tuple[float, float]]] = {-9: [], 17: []}
    parts = []
    for n, i in enumerate(dict.fromkeys(order)):
        weight, label = points[i]
        shown = short(label, 16)
        half = text_width(shown, 11.5) / 2 + 3
        x = min(max(axes.px(weight), axes.left + half - 24), axes.right + 20 - half + 3)
        for place in (-9, 17) if n % 2 == 0 else (17, -9):
            if all(x + half < a or x - half > b for a, b in taken[place]):
                taken[place].append((x - half, x + half))
                parts.append(svg_text(x, y + place, shown, "faint", 'font-size="11.5" text-anchor="middle"'))
                break
    return parts


def _sum(chart: Nomogram, axes: Axes, y: float) -> list[str]:
    """Scale of the sum of all columns, prior included, as probabilities."""
    ends = [sum(choose(s.weights, default=0.0) for s in chart.scales) + chart.prior for choose in (min, max)]
    reach = max([abs(v) for v in (*ends, chart.total or 0.0)] + [2.0])
    whole = Axes((-min(reach, 9.0), min(reach, 9.0)), (0.0, 1.0), y, y, axes.left, axes.right)
    parts = [
        svg_text(axes.left - 10, y + 4.5, "probability", "ink", 'font-size="13" font-weight="600" text-anchor="end"'),
        f'<path class="lk-axis" stroke-width="1.5" d="M{whole.left:.1f} {y:.1f}H{whole.right:.1f}"/>',
    ]
    last = -math.inf
    for p in PROBABILITIES:
        odds = math.log(p / (1 - p))
        x = whole.px(odds)
        if whole.x[0] <= odds <= whole.x[1] and x - last > 40:
            parts.append(f'<path class="lk-axis" d="M{x:.1f} {y - 4:.1f}v8"/>')
            parts.append(svg_text(x, y + 20, f"{100 * p:g} %", "faint", 'font-size="12" text-anchor="middle"'))
            last = x
    for value, look, tip in ((chart.prior, "p0", "before any column"), (chart.total, "p1", "this row")):
        if value is not None and math.isfinite(value):
            x = whole.px(min(max(value, whole.x[0]), whole.x[1]))
            title = f"<title>{tip}: {100 / (1 + math.exp(-value)):.1f} %</title>"
            parts.append(
                f'<path class="lk-{look}" stroke-width="1" d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7Z">{title}</path>'
            )
    return [*parts, svg_text(axes.left, y + 40, "sum of the weights and the prior log-odds", "faint", 'font-size="12"')]


def _described(chart: Nomogram) -> str:
    rows = []
    for scale in chart.scales[:40]:
        pairs = [(w, label) for w, label in zip(scale.weights, scale.labels, strict=True) if math.isfinite(w)]
        if pairs:
            (a, low), (b, high) = min(pairs), max(pairs)
            rows.append(f"{scale.name}: from {a:+.2f} ({low}) to {b:+.2f} ({high})")
    return f"{chart.title}. {chart.subtitle}. {'; '.join(rows)}."
