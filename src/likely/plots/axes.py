"""A plot area with linear axes, titles and a legend, as parts of an SVG picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from likely.plots.charts import FONTS, STYLE, ticks
from likely.plots.escaping import escape, escape_attribute
from likely.plots.svg import Svg, printable, svg_text

WIDTH = 720
LEFT, RIGHT, BOTTOM = 76, 28, 56
LEGEND_LINE = 20
NARROW, BROAD, SIGNS = "ijl|.,:;' ", "mwMW@%", "<>=+~→≤≥±"  # letters by their width
# Colours that are distinguishable with colour-vision deficiency (after Okabe and Ito), for light and dark schemes.
LIGHT = ("#0072b2", "#d55e00", "#00795a", "#a8457f", "#8a6d00", "#3a6f99", "#6a3d9a", "#5f5f5f")
DARK = ("#56b4e9", "#ff9a52", "#2fd1a4", "#f0a3cf", "#f0c64a", "#a9cbe8", "#c3a5e6", "#bdbdbd")
DASHES = ("", "8 4", "2 4", "10 4 2 4", "14 5", "5 3", "2 2", "12 3 2 3 2 3")


def palette(count: int) -> str:
    """CSS of the first classes of colours: `lk-sN` for strokes, `lk-fN` for fills, in light and dark."""

    def rules(colours: Sequence[str], paper: str) -> str:
        lines = [
            f".lk-s{i}{{stroke:{c};fill:none}}.lk-f{i}{{fill:{c}}}.lk-p{i}{{fill:{c};stroke:{paper}}}"
            for i, c in enumerate(colours[j % len(colours)] for j in range(count))
        ]
        return "\n".join(lines)

    return f"{rules(LIGHT, '#fff')}\n@media (prefers-color-scheme:dark){{\n{rules(DARK, '#14191f')}\n}}"


@dataclass(frozen=True)
class Axes:
    """Mapping from data to pixels: ranges of both axes, and the plot area."""

    x: tuple[float, float]
    y: tuple[float, float]
    top: float
    bottom: float
    left: float = LEFT
    right: float = WIDTH - RIGHT

    def px(self, value: float) -> float:
        """Horizontal pixel of a number."""
        return self.left + (value - self.x[0]) / (self.x[1] - self.x[0]) * (self.right - self.left)

    def py(self, value: float) -> float:
        """Vertical pixel of a number."""
        return self.bottom - (value - self.y[0]) / (self.y[1] - self.y[0]) * (self.bottom - self.top)

    def drawn(self, x_label: str, y_label: str, *, percent: bool = False, whole: bool = False) -> list[str]:
        """Grid lines, tick labels and the names of both axes; a `whole` x axis counts."""
        parts = []
        for tick in within(self.y):
            mark = f"{100 * tick:g} %" if percent else f"{tick:g}"
            parts.append(f'<path class="lk-grid" d="M{self.left:.1f} {self.py(tick):.1f}H{self.right:.1f}"/>')
            parts.append(svg_text(self.left - 10, self.py(tick) + 4.5, mark, "faint", 'font-size="13" text-anchor="end"'))
        parts.append(f'<path class="lk-axis" d="M{self.left:.1f} {self.bottom:.1f}H{self.right:.1f}"/>')
        for tick in (t for t in within(self.x) if not whole or t == round(t)):
            parts.append(f'<path class="lk-axis" d="M{self.px(tick):.1f} {self.bottom:.1f}v5"/>')
            place = 'font-size="13" text-anchor="middle"'
            parts.append(svg_text(self.px(tick), self.bottom + 21, f"{tick:g}", "faint", place))
        middle, beside = (self.left + self.right) / 2, (self.top + self.bottom) / 2
        turned = f'font-size="13" text-anchor="middle" transform="rotate(-90 18 {beside:.1f})"'
        parts.append(svg_text(middle, self.bottom + 44, x_label, "ink", 'font-size="13" text-anchor="middle"'))
        return [*parts, svg_text(18, beside, y_label, "ink", turned)]


def within(ends: tuple[float, float]) -> list[float]:
    """Round tick values inside a range."""
    low, high = ends
    slack = 1e-9 * (high - low)
    return [tick for tick in ticks(low, high) if low - slack <= tick <= high + slack]


def spread(low: float, high: float, margin: float = 0.0) -> tuple[float, float]:
    """A range with a margin at both ends; a range of one number is made wider."""
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        low, high = low - (abs(low) / 2 or 0.5), high + (abs(high) / 2 or 0.5)
    return low - margin * (high - low), high + margin * (high - low)


def legend_rows(
    names: Sequence[str], right: float = WIDTH - RIGHT, left: float = LEFT
) -> list[list[tuple[int, float]]]:
    """Number and place of each name, in rows that are no wider than the picture."""
    rows: list[list[tuple[int, float]]] = [[]]
    x = float(left)
    for i, name in enumerate(names):
        wide = 48 + text_width(name)
        if rows[-1] and x + wide > right:
            rows.append([])
            x = float(left)
        rows[-1].append((i, x))
        x += wide
    return rows


def simplified(points: Sequence[tuple[float, float] | None], tolerance: float = 0.3) -> list[tuple[float, float] | None]:
    """The same line with fewer points: none that is dropped is farther from the line than a fraction of a pixel."""
    kept: list[tuple[float, float] | None] = []
    stretch: list[tuple[float, float]] = []
    for point in [*points, None]:
        if point is not None:
            stretch.append(point)
            continue
        kept += [*_thinned(stretch, tolerance), None]
        stretch = []
    return kept[:-1]


def _thinned(points: Sequence[tuple[float, float]], tolerance: float) -> list[tuple[float, float]]:
    kept, first = list(points[:1]), 0
    for i in range(2, len(points)):
        if any(_distance(points[first], points[i], points[j]) > tolerance for j in range(first + 1, i)):
            first = i - 1
            kept.append(points[first])
    return [*kept, *points[max(len(points) - 1, 1) :]]


def _distance(start: tuple[float, float], end: tuple[float, float], point: tuple[float, float]) -> float:
    """Distance of a point from the line between two others, measured upwards; sideways where the line goes back."""
    across = end[0] - start[0]
    if across <= 0:
        return float("inf")
    share = (point[0] - start[0]) / across
    return abs(point[1] - (start[1] + share * (end[1] - start[1])))


def runs(points: Sequence[tuple[float, float] | None]) -> str:
    """A path through pixels; None interrupts it."""
    path, pen = [], "M"
    for point in points:
        if point is None:
            pen = "M"
        else:
            path.append(f"{pen}{point[0]:.1f} {point[1]:.1f}")
            pen = "L"
    single = [a for a, b in pairwise([*path, "M"]) if a[0] == "M" and b[0] == "M"]  # a point alone is drawn as a dash
    return "".join(p + "h.1" if p in single else p for p in path)


def document(
    title: str, described: str, height: float, style: str, parts: Sequence[str], *, width: float = WIDTH
) -> Svg:
    """A whole SVG picture, accessible by its title and description."""
    label = escape_attribute(printable(title))
    return Svg("\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"',
        f'width="{width:.0f}" height="{height:.0f}"',
        f'font-family="{FONTS}" role="img" aria-label="{label}">',
        f"<title>{escape(printable(title))}</title>",
        f"<desc>{escape(printable(described))}</desc>",
        f"<style>{STYLE}{style}</style>",
        f'<rect class="lk-paper" width="{width:.0f}" height="{height:.0f}"/>',
        *parts,
        "</svg>",
    ]) + "\n")  # fmt: skip


def text_width(content: str, size: float = 12.5) -> float:
    """Approximate width of a text in pixels, as in a wide font: fonts are not measured."""
    return size * sum(0.38 if c in NARROW else 0.95 if c in BROAD else 0.84 if c in SIGNS else 0.72 if c.isupper() else 0.62
                      for c in content)  # fmt: skip
