"""Heat maps: a table whose cells are shaded by their value, with the value in the cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from likely.plots.axes import document, palette
from likely.plots.escaping import escape
from likely.plots.figure import LONGEST, STYLE, WIDE, short
from likely.plots.svg import Svg, printable, svg_text

LETTER, LONGEST_LABEL, SLOPE = 6.8, 22, 0.58


@dataclass(frozen=True)
class HeatMap:
    """A table of numbers with labels: positive cells in one colour, negative ones in another, stronger for larger ones."""

    title: str
    subtitle: str
    row_label: str
    column_label: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    shown: Sequence[Sequence[str]]
    tips: Sequence[Sequence[str]]
    most: float = 0.0  # value of the strongest shade; by default the largest one


def heat_map_svg(chart: HeatMap) -> Svg:
    """The table as SVG."""
    left = 34 + LETTER * min(max(map(len, chart.rows), default=1), LONGEST_LABEL)
    turned = max(map(len, chart.columns), default=1) * LETTER > (WIDE - left - 12) / max(len(chart.columns), 1) - 6
    longest = LETTER * min(max(map(len, chart.columns), default=1), LONGEST_LABEL)
    head = 74 + (SLOPE * longest + 8 if turned else 16)
    wide = (WIDE - left - (12 + 0.5 * longest if turned else 12)) / max(len(chart.columns), 1)
    tall = min(max(24.0, wide * 0.5), 40.0)
    most = chart.most or max((abs(v) for row in chart.values for v in row if math.isfinite(v)), default=1.0) or 1.0
    parts = [
        svg_text(12, 24, short(chart.title, LONGEST), "ink", 'font-size="16" font-weight="600"'),
        svg_text(12, 42, short(chart.subtitle, 72), "faint", 'font-size="12.5"'),
        svg_text(left, 62, short(chart.column_label, 50) + " →", "faint", 'font-size="12"'),
    ]
    for j, label in enumerate(chart.columns):
        x = left + (j + 0.5) * wide
        how = (
            f'font-size="12" transform="rotate(-35 {x:.1f} {head - 7:.1f})"'
            if turned
            else 'font-size="12" text-anchor="middle"'
        )
        parts.append(svg_text(x, head - 7, short(label, LONGEST_LABEL), "ink", how))
    for i, label in enumerate(chart.rows):
        y = head + i * tall
        parts.append(
            svg_text(left - 8, y + tall / 2 + 4.5, short(label, LONGEST_LABEL), "ink", 'font-size="12" text-anchor="end"')
        )
        parts += [_cell(chart, i, j, (left + j * wide, y, wide, tall), most) for j in range(len(chart.columns))]
    bottom = head + tall * len(chart.rows)
    middle = (head + bottom) / 2
    side = f'font-size="12" text-anchor="middle" transform="rotate(-90 13 {middle:.1f})"'
    parts.append(svg_text(13, middle, short(chart.row_label, int((bottom - head) / LETTER) + 6), "faint", side))
    return document(chart.title, _described(chart), bottom + 16, palette(2) + STYLE, parts, width=WIDE)


def _cell(chart: HeatMap, i: int, j: int, box: tuple[float, float, float, float], most: float) -> str:
    x, y, wide, tall = box
    value, shown = chart.values[i][j], chart.shown[i][j]
    known = math.isfinite(value)
    strength = 0.04 + 0.56 * min(abs(value) / most, 1.0) if known else 0.0
    tip = f"<title>{escape(printable(chart.tips[i][j]))}</title>"
    colour = f'class="lk-f{0 if value >= 0 else 1}" fill-opacity="{strength:.2f}"' if known else 'class="lk-quiet"'
    rect = f'<rect {colour} x="{x + 1:.1f}" y="{y + 1:.1f}" width="{wide - 2:.1f}" height="{tall - 2:.1f}" rx="2">{tip}</rect>'
    fits = len(shown) * LETTER < wide - 4
    label = svg_text(x + wide / 2, y + tall / 2 + 4.3, shown, "ink", 'font-size="12" text-anchor="middle"') if fits else ""
    return rect + label


def _described(chart: HeatMap) -> str:
    cells = [
        f"{chart.rows[i]} and {chart.columns[j]} {chart.shown[i][j]}"
        for i in range(len(chart.rows))
        for j in range(len(chart.columns))
    ]
    return f"{chart.title}. {chart.subtitle}. {chart.row_label} by {chart.column_label}: {'; '.join(cells[:60])}."
