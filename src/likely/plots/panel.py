"""A plot area with linear axes as SVG text, for pictures that place their own marks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.plots.charts import ticks
from likely.plots.svg import svg_text

Array = NDArray[np.float64]
WIDTH, PANEL, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 76, 28, 64, 52
# Colours that are distinguishable with colour-vision deficiency (after Okabe and Ito).
HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a7f00", "#7f7f7f")


@dataclass(frozen=True)
class Panel:
    """A plot area with linear axes: data coordinates to pixels."""

    x: tuple[float, float]
    y: tuple[float, float]
    top: float
    width: float = WIDTH
    height: float = PANEL
    head: float = TOP

    @property
    def right(self) -> float:
        """Right end of the x axis."""
        return self.width - RIGHT

    @property
    def ground(self) -> float:
        """Height of the x axis."""
        return self.top + self.height - BOTTOM

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixel position of a point."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return LEFT + across * (self.right - LEFT), self.ground - up * (self.height - self.head - BOTTOM)

    def frame(self, title: str, x_label: str, y_label: str) -> list[str]:
        """Title, grid and axes."""
        ground = self.ground
        parts = [svg_text(LEFT, self.top + 30, title, "ink", 'font-size="17" font-weight="600"')] if title else []
        for tick in ticks(*self.y):
            if self.y[0] <= tick <= self.y[1]:
                height = self.at(self.x[0], tick)[1]
                parts.append(f'<path class="lk-grid" d="M{LEFT} {height:.1f}H{self.right}"/>')
                parts.append(svg_text(LEFT - 8, height + 4, f"{tick:g}", "faint", 'font-size="12" text-anchor="end"'))
        parts.append(f'<path class="lk-axis" d="M{LEFT} {ground}H{self.right}"/>')
        for tick in ticks(*self.x):
            if self.x[0] <= tick <= self.x[1]:
                place = self.at(tick, self.y[0])[0]
                parts.append(svg_text(place, ground + 18, f"{tick:g}", "faint", 'font-size="12" text-anchor="middle"'))
        middle = (LEFT + self.right) / 2
        parts.append(svg_text(middle, ground + 38, x_label, "ink", 'font-size="13" text-anchor="middle"'))
        return [*parts, svg_text(LEFT, self.top + self.head - 14, y_label, "faint", 'font-size="12"')]


def axis_range(x: Array) -> tuple[float, float]:
    """Range of an axis: that of the numbers with a margin of 5 % on both sides."""
    low, high = (float(x.min()), float(x.max())) if len(x) else (0.0, 1.0)
    wide = max(high - low, 1e-6 * max(abs(high), abs(low), 1.0))
    return low - 0.05 * wide, high + 0.05 * wide


def svg_path(panel: Panel, x: Array, y: Array, hue: str, width: float) -> str:
    """A line through points."""
    points = (panel.at(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True))
    line = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
    return f'<path fill="none" stroke="{hue}" stroke-width="{width}" d="M{line}"/>'
