"""Line chart with a band over a logarithmic axis, and dot plots, as SVG text without any library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from likely.plots.escaping import escape, escape_attribute
from likely.plots.svg import printable, svg_text

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 76, 74, 78, 62
EDGE = 12  # pixels between the axis and the first point
NEAR = 46  # pixels between labels of the x axis, at least

FONTS = "system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif"
LONGEST_TITLE = 60

# Light and dark scheme. CSS variables would be shorter, but not every SVG renderer has them.
STYLE = """
.lk-paper{fill:#fff}.lk-ink{fill:#1c2733}.lk-faint{fill:#56626e}.lk-grid{stroke:#e3e7eb}.lk-axis{stroke:#8a96a3}
.lk-band{fill:#2166c4;fill-opacity:.16}.lk-line{stroke:#2166c4}.lk-dot{fill:#2166c4;stroke:#fff}
@media (prefers-color-scheme:dark){
.lk-paper{fill:#14191f}.lk-ink{fill:#e8ecf0}.lk-faint{fill:#a3aeb9}.lk-grid{stroke:#2a323b}.lk-axis{stroke:#66727e}
.lk-band{fill:#7db3ff;fill-opacity:.22}.lk-line{stroke:#7db3ff}.lk-dot{fill:#7db3ff;stroke:#14191f}
}
"""


@dataclass(frozen=True)
class Line:
    """A line with a band: middle, low and high over x, with title and labels."""

    x: Sequence[float]
    middle: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    title: str
    subtitle: str
    x_label: str
    y_label: str
    percent: bool = False  # a share, which is never below 0 nor above 1

    def show(self, value: float) -> str:
        """A value as the label of a point."""
        return f"{100 * value:.1f} %" if self.percent else f"{value:.3f}"

    def mark(self, value: float) -> str:
        """A tick value as its label."""
        return f"{100 * value:g} %" if self.percent else f"{value:g}"

    def drawable(self) -> Line:
        """The same line without points that are not finite."""
        points = zip(self.x, self.middle, self.low, self.high, strict=True)
        kept = [point for point in points if all(math.isfinite(value) for value in point)]
        x, middle, low, high = zip(*kept, strict=True) if kept else ((), (), (), ())
        return replace(self, x=x, middle=middle, low=low, high=high)


def ticks(low: float, high: float, ceiling: float = math.inf) -> list[float]:
    """About five round tick values around the data, which are not negative."""
    if high - low < 1e-9:
        low, high = max(low * 0.95, 0.0), min(high * 1.05 or 0.1, ceiling)
    extent = high - low
    scale = 10.0 ** math.floor(math.log10(extent / 4))
    step = next(scale * times for times in (1, 2, 2.5, 5, 10) if scale * times * 4 >= extent * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [tick for i in range(first, last + 1) if (tick := round(i * step, 12)) <= ceiling]


def log_ticks(low: float, high: float) -> list[float]:
    """Tick values 1, 2, 5, 10, 20, 50 ... within the range."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [m * 10.0**d for d in decades for m in (1, 2, 5) if low * (1 - 1e-9) <= m * 10.0**d <= high * (1 + 1e-9)]


class _Frame:
    """Scales: data coordinates to pixels."""

    def __init__(self, line: Line) -> None:
        self.left, self.right = (min(line.x), max(line.x)) if line.x else (1.0, 10.0)
        if self.left == self.right:
            self.left, self.right = self.left / 2, self.right * 2
        low, high = (min(line.low), max(line.high)) if line.x else (0.0, 1.0)
        self.ticks = ticks(low, high, 1.0 if line.percent else math.inf)
        self.bottom, self.top = min(low, self.ticks[0]), max(high, self.ticks[-1])

    def x(self, value: float) -> float:
        share = math.log(value / self.left) / math.log(self.right / self.left)
        return LEFT + EDGE + share * (WIDTH - LEFT - RIGHT - EDGE)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.bottom) / (self.top - self.bottom) * (HEIGHT - TOP - BOTTOM)


def svg(line: Line) -> str:
    """The chart as SVG: title, axes, band, line, points and the last value."""
    line = line.drawable()
    frame = _Frame(line)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"',
        f'font-family="{FONTS}" role="img" aria-label="{quoted(line.title)}">',
        f"<title>{escape(printable(line.title))}</title>",
        f"<desc>{escape(printable(_described(line)))}</desc>",
        f"<style>{STYLE}</style>",
        f'<rect class="lk-paper" width="{WIDTH}" height="{HEIGHT}"/>',
        svg_text(LEFT, 32, _short(line.title), "ink", 'font-size="18" font-weight="600"'),
        svg_text(LEFT, 54, line.subtitle, "faint", 'font-size="13"'),
        *_y_axis(line, frame),
        *_x_axis(line, frame),
        *_drawn(line, frame),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _y_axis(line: Line, frame: _Frame) -> list[str]:
    """The y axis, with a grid line for each tick."""
    parts = []
    for tick in frame.ticks:
        y = frame.y(tick)
        parts.append(f'<path class="lk-grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(svg_text(LEFT - 10, y + 4.5, line.mark(tick), "faint", 'font-size="13" text-anchor="end"'))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'font-size="13" text-anchor="middle" transform="rotate(-90 18 {middle:.1f})"'
    return [*parts, svg_text(18, middle, line.y_label, "ink", turned)]


def _x_axis(line: Line, frame: _Frame) -> list[str]:
    """The x axis: a tick for every round number, labels where they do not overlap."""
    ground, last = HEIGHT - BOTTOM, -math.inf
    parts = [f'<path class="lk-axis" d="M{LEFT} {ground}H{WIDTH - RIGHT}"/>']
    end = frame.x(frame.right)
    for tick in dict.fromkeys([*log_ticks(frame.left, frame.right), frame.right]):
        x = frame.x(tick)
        parts.append(f'<path class="lk-axis" d="M{x:.1f} {ground}v5"/>')
        if x - last >= NEAR and (x == end or end - x >= NEAR):
            parts.append(svg_text(x, ground + 21, f"{tick:,.0f}", "faint", 'font-size="13" text-anchor="middle"'))
            last = x
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*parts, svg_text(middle, HEIGHT - 14, line.x_label, "ink", 'font-size="13" text-anchor="middle"')]


def _drawn(line: Line, frame: _Frame) -> list[str]:
    """Band, line, points and the last value."""
    if not line.x:
        return [svg_text(WIDTH / 2, HEIGHT / 2, "nothing finite to draw", "faint", 'text-anchor="middle"')]
    there = [f"{frame.x(x):.1f} {frame.y(high):.1f}" for x, high in zip(line.x, line.high, strict=True)]
    back = [f"{frame.x(x):.1f} {frame.y(low):.1f}" for x, low in zip(line.x, line.low, strict=True)]
    middle = [f"{frame.x(x):.1f} {frame.y(m):.1f}" for x, m in zip(line.x, line.middle, strict=True)]
    parts = [
        f'<path class="lk-band" d="M{"L".join(there + back[::-1])}Z"/>',
        f'<path class="lk-line" fill="none" stroke-width="2.2" stroke-linejoin="round" d="M{"L".join(middle)}"/>',
    ]
    for x, m, low, high in zip(line.x, line.middle, line.low, line.high, strict=True):
        label = f"{x:,.0f}: {line.show(m)} ({line.show(low)} to {line.show(high)})"
        circle = f'<circle class="lk-dot" cx="{frame.x(x):.1f}" cy="{frame.y(m):.1f}" r="4" stroke-width="1.5">'
        parts.append(f"{circle}<title>{escape(label)}</title></circle>")
    end = svg_text(frame.x(line.x[-1]) + 10, frame.y(line.middle[-1]) + 4.5, line.show(line.middle[-1]), "ink",
                'font-size="13" font-weight="600"')  # fmt: skip
    return [*parts, end]


def _described(line: Line) -> str:
    """Text alternative of the chart, for screen readers."""
    points = (f"{x:,.0f}: {line.show(m)}" for x, m in zip(line.x, line.middle, strict=True))
    return f"{line.y_label} over {line.x_label}. {line.subtitle}. {'; '.join(points)}."


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TITLE else text[: LONGEST_TITLE - 1] + "…"


def quoted(text: str) -> str:
    """Text as the value of an attribute."""
    return escape_attribute(printable(text))


@dataclass(frozen=True)
class Dot:
    """One row of a dot plot: name, value and standard error."""

    name: str
    value: float
    error: float
    marked: bool = False


@dataclass(frozen=True)
class Dots:
    """A panel of a dot plot; an infinite value, or an outlier, is drawn at the edge with its value beside it."""

    label: str
    dots: Sequence[Dot]
    percent: bool = False
    whole: bool = False  # whether the axis has room for all finite values, outliers included

    def show(self, value: float) -> str:
        """A value as the label of a dot."""
        if math.isinf(value):
            return "∞"
        return "–" if math.isnan(value) else f"{100 * value:.1f} %" if self.percent else f"{value:.3f}"

    def ticks(self) -> list[float]:
        """Tick values around the data; without outliers, unless the axis is whole."""
        seen = sorted((dot for dot in self.dots if math.isfinite(dot.value)), key=lambda dot: dot.value)
        if not seen:
            return [0.0, 1.0]
        middle, best = seen[len(seen) // 2].value, seen[0].value
        near = seen if self.percent or self.whole else [d for d in seen if d.value - middle <= 4 * max(middle - best, 0.02)]
        ends = [dot.value + sign * dot.error for dot in near for sign in (-1, 1) if math.isfinite(dot.error)]
        ends += [dot.value for dot in near]
        ceiling = 1.0 if self.percent else math.inf
        return ticks(max(min(ends), 0.0), min(max(ends), ceiling), ceiling)


DOTS_STYLE = """
.lk-other{fill:#8a96a3;stroke:#fff}.lk-bar{stroke:#8a96a3}
@media (prefers-color-scheme:dark){.lk-other{fill:#66727e;stroke:#14191f}.lk-bar{stroke:#66727e}}
"""
LINE, NAMES, VALUE = 26, 216, 66  # points: between lines, for names, for a value beside its dot


def dots_svg(title: str, subtitle: str, panels: Sequence[Dots]) -> str:
    """Dot plot as SVG: a row for every name, a panel for every metric, a bar for the standard error."""
    names = panels[0].dots if panels else ()
    height = TOP + LINE * len(names) + 48
    wide = (WIDTH - NAMES - 16) / max(len(panels), 1)
    label = "; ".join(f"{p.label}: " + ", ".join(f"{d.name} {p.show(d.value)}" for d in p.dots) for p in panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"',
        f'font-family="{FONTS}" role="img" aria-label="{quoted(title)}">',
        f"<title>{escape(printable(title))}</title>",
        f"<desc>{escape(printable(label))}</desc>",
        f"<style>{STYLE}{DOTS_STYLE}</style>",
        f'<rect class="lk-paper" width="{WIDTH}" height="{height}"/>',
        svg_text(16, 32, _short(title), "ink", 'font-size="18" font-weight="600"'),
        svg_text(16, 54, subtitle, "faint", 'font-size="13"'),
    ]
    for i, dot in enumerate(names):
        bold = ' font-weight="600"' if dot.marked else ""
        y = TOP + LINE * (i + 0.5) + 4.5
        parts.append(svg_text(NAMES - 14, y, dot.name, "ink", f'font-size="13" text-anchor="end"{bold}'))
    for i, panel in enumerate(panels):
        parts += _panel(panel, NAMES + i * wide, NAMES + (i + 1) * wide - VALUE)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Dots, left: float, right: float) -> list[str]:
    """Grid lines, then for each row the error bar, the dot and its value."""
    ticks = panel.ticks()
    low, high = ticks[0], ticks[-1] if ticks[-1] > ticks[0] else ticks[0] + 1.0
    ground = TOP + LINE * len(panel.dots)

    def x(value: float) -> float:
        return left + (min(max(value, low), high) - low) / (high - low) * (right - left)

    parts = []
    for i, tick in enumerate(ticks):
        parts.append(f'<path class="lk-grid" d="M{x(tick):.1f} {TOP}V{ground}"/>')
        if i in (0, len(ticks) - 1):
            mark = f"{100 * tick:g} %" if panel.percent else f"{tick:g}"
            parts.append(svg_text(x(tick), ground + 16, mark, "faint", 'font-size="12" text-anchor="middle"'))
    parts.append(svg_text((left + right) / 2, ground + 36, panel.label, "ink", 'font-size="13" text-anchor="middle"'))
    for i, dot in enumerate(panel.dots):
        y = TOP + LINE * (i + 0.5)
        if not math.isnan(dot.value):
            if math.isfinite(dot.error):
                a, b = x(dot.value - dot.error), x(dot.value + dot.error)
                parts.append(f'<path class="lk-{"line" if dot.marked else "bar"}" d="M{a:.1f} {y:.1f}H{b:.1f}"/>')
            kind = "dot" if dot.marked else "other"
            parts.append(f'<circle class="lk-{kind}" cx="{x(dot.value):.1f}" cy="{y:.1f}" r="4.5" stroke-width="1.5"/>')
        beyond = " →" if dot.value > high else ""
        parts.append(svg_text(right + 9, y + 4.5, panel.show(dot.value) + beyond, "ink", 'font-size="12"'))
    return parts
