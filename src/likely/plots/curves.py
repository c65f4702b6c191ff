"""Panels of curves over the unit interval, as SVG text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from likely.plots.charts import FONTS, STYLE, quoted, ticks
from likely.plots.escaping import escape
from likely.plots.svg import printable, svg_text

SIZE, GAP, LEFT, TOP, BOTTOM = 220, 62, 58, 100, 60


@dataclass(frozen=True)
class Curve:
    """Points of one curve; a faint one is drawn for comparison."""

    x: Sequence[float]
    y: Sequence[float]
    faint: bool = False


@dataclass(frozen=True)
class CurvePanel:
    """Curves over x from 0 to 1 with one title and two axes."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]


def panels_svg(title: str, subtitle: str, panels: Sequence[CurvePanel]) -> str:
    """The panels side by side."""
    width = LEFT + len(panels) * SIZE + (len(panels) - 1) * GAP + 24
    height = TOP + SIZE + BOTTOM
    description = "; ".join(panel.title for panel in panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
        f'font-family="{FONTS}" role="img" aria-label="{quoted(title)}">',
        f"<title>{escape(printable(title))}</title>",
        f"<desc>{escape(printable(description))}</desc>",
        f"<style>{STYLE}</style>",
        f'<rect class="lk-paper" width="{width}" height="{height}"/>',
        svg_text(16, 32, title[:60], "ink", 'font-size="18" font-weight="600"'),
        svg_text(16, 54, subtitle, "faint", 'font-size="13"'),
    ]
    for i, panel in enumerate(panels):
        parts += _panel(panel, LEFT + i * (SIZE + GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: CurvePanel, left: float) -> list[str]:
    heights = [y for curve in panel.curves for y in curve.y if math.isfinite(y)]
    top = ticks(0.0, max(heights, default=1.0) or 1.0)[-1]
    ground = TOP + SIZE
    parts = [svg_text(left + SIZE / 2, TOP - 14, panel.title, "ink", 'font-size="13" text-anchor="middle"')]
    for share in (0.0, 0.5, 1.0):
        x, y = left + share * SIZE, ground - share * SIZE
        parts.append(f'<path class="lk-grid" d="M{x:.1f} {TOP}V{ground}M{left:.1f} {y:.1f}h{SIZE}"/>')
        parts.append(svg_text(x, ground + 16, f"{share:g}", "faint", 'font-size="12" text-anchor="middle"'))
        parts.append(svg_text(left - 7, y + 4, f"{share * top:.3g}", "faint", 'font-size="12" text-anchor="end"'))
    parts.append(svg_text(left + SIZE / 2, ground + 38, panel.x_label, "ink", 'font-size="12" text-anchor="middle"'))
    turned = f'font-size="12" text-anchor="middle" transform="rotate(-90 {left - 38:.1f} {TOP + SIZE / 2:.1f})"'
    parts.append(svg_text(left - 38, TOP + SIZE / 2, panel.y_label, "ink", turned))
    for curve in panel.curves:
        points = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if math.isfinite(x) and math.isfinite(y)]
        path = " ".join(f"{left + x * SIZE:.1f},{ground - y / top * SIZE:.1f}" for x, y in points)
        how = 'class="lk-axis" stroke-dasharray="4 4"' if curve.faint else 'class="lk-line" stroke-width="2"'
        parts.append(f'<polyline {how} fill="none" points="{path}"/>')
    return parts
