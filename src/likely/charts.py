"""A line with its band over a logarithmic axis, as SVG text: no library is needed to draw it, and any browser shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 72, 68, 78, 62
NEAR = 46  # points between the labels of the axis below, at least

# The same picture by day and by night. Variables of CSS would be shorter, but not every program that draws SVG has them.
STYLE = """
svg{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.paper{fill:#fff}.ink{fill:#1c2733}.faint{fill:#56626e}.grid{stroke:#e3e7eb}.axis{stroke:#8a96a3}
.band{fill:#2166c4;fill-opacity:.16}.line{stroke:#2166c4}.dot{fill:#2166c4;stroke:#fff}
@media (prefers-color-scheme:dark){
.paper{fill:#14191f}.ink{fill:#e8ecf0}.faint{fill:#a3aeb9}.grid{stroke:#2a323b}.axis{stroke:#66727e}
.band{fill:#7db3ff;fill-opacity:.22}.line{stroke:#7db3ff}.dot{fill:#7db3ff;stroke:#14191f}
}
"""


@dataclass(frozen=True)
class Line:
    """What is drawn: middle, low and high over x, and the words around it."""

    x: Sequence[float]
    middle: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    title: str
    subtitle: str
    x_label: str
    y_label: str
    show: Callable[[float], str] = "{:.3g}".format
    floor: float = -math.inf  # no tick lies beyond what the figure can be
    ceiling: float = math.inf

    def drawable(self) -> Line:
        """The points that have a finite height."""
        points = zip(self.x, self.middle, self.low, self.high, strict=True)
        kept = [point for point in points if all(math.isfinite(value) for value in point)]
        columns: list[tuple[float, ...]] = list(zip(*kept, strict=True)) or [(), (), (), ()]
        x, middle, low, high = columns
        return Line(x, middle, low, high, self.title, self.subtitle, self.x_label, self.y_label, self.show,
                    self.floor, self.ceiling)  # fmt: skip


def ticks(low: float, high: float, floor: float = -math.inf, ceiling: float = math.inf) -> list[float]:
    """Round numbers around all that is drawn, about five of them."""
    room = (high - low) or abs(high) * 0.1 or 0.1
    scale = 10.0 ** math.floor(math.log10(room / 4))
    step = next(scale * times for times in (1, 2, 2.5, 5, 10) if scale * times * 4 >= room * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if first == last:
        first, last = first - 1, last + 1
    found = [round(i * step, 12) for i in range(first, last + 1)]
    return [tick for tick in found if floor - 1e-9 <= tick <= ceiling + 1e-9]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, 20, 50 ... as far as they lie within what is drawn."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [m * 10.0**d for d in decades for m in (1, 2, 5) if low * (1 - 1e-9) <= m * 10.0**d <= high * (1 + 1e-9)]


class _Frame:
    """Where numbers lie on the paper."""

    def __init__(self, line: Line) -> None:
        self.left, self.right = (min(line.x), max(line.x)) if line.x else (1.0, 10.0)
        if self.left == self.right:
            self.left, self.right = self.left / 2, self.right * 2
        low, high = (min(line.low), max(line.high)) if line.x else (0.0, 1.0)
        self.rungs = ticks(low, high, line.floor, line.ceiling)
        self.bottom, self.top = min(low, self.rungs[0]), max(high, self.rungs[-1])

    def x(self, value: float) -> float:
        share = math.log(value / self.left) / math.log(self.right / self.left)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.bottom) / (self.top - self.bottom) * (HEIGHT - TOP - BOTTOM)


def svg(line: Line) -> str:
    """The picture: title, axes, band, line, points and the last value."""
    line = line.drawable()
    frame = _Frame(line)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"',
        f'role="img" aria-label="{_attribute(line.title)}">',
        f"<title>{escape(_printable(line.title))}</title>",
        f"<desc>{escape(_printable(_described(line)))}</desc>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        _text(LEFT, 32, line.title, "ink", 'font-size="18" font-weight="600"'),
        _text(LEFT, 54, line.subtitle, "faint", 'font-size="13"'),
        *_across(line, frame),
        *_below(line, frame),
        *_drawn(line, frame),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _across(line: Line, frame: _Frame) -> list[str]:
    """The axis at the side, with a rule for each tick."""
    parts = []
    for rung in frame.rungs:
        y = frame.y(rung)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 10, y + 4.5, line.show(rung), "faint", 'font-size="13" text-anchor="end"'))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'font-size="13" text-anchor="middle" transform="rotate(-90 18 {middle:.1f})"'
    return [*parts, _text(18, middle, line.y_label, "ink", turned)]


def _below(line: Line, frame: _Frame) -> list[str]:
    """The axis below: a tick for every round number, a label wherever there is room for one."""
    ground, last = HEIGHT - BOTTOM, -math.inf
    parts = [f'<path class="axis" d="M{LEFT} {ground}H{WIDTH - RIGHT}"/>']
    for tick in log_ticks(frame.left, frame.right):
        x = frame.x(tick)
        parts.append(f'<path class="axis" d="M{x:.1f} {ground}v5"/>')
        if x - last >= NEAR:
            parts.append(_text(x, ground + 21, f"{tick:,.0f}", "faint", 'font-size="13" text-anchor="middle"'))
            last = x
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*parts, _text(middle, HEIGHT - 14, line.x_label, "ink", 'font-size="13" text-anchor="middle"')]


def _drawn(line: Line, frame: _Frame) -> list[str]:
    """The band, the line, a dot for each point, and how high the last one is."""
    if not line.x:
        return [_text(WIDTH / 2, HEIGHT / 2, "nothing finite to draw", "faint", 'text-anchor="middle"')]
    there = [f"{frame.x(x):.1f} {frame.y(high):.1f}" for x, high in zip(line.x, line.high, strict=True)]
    back = [f"{frame.x(x):.1f} {frame.y(low):.1f}" for x, low in zip(line.x, line.low, strict=True)]
    middle = [f"{frame.x(x):.1f} {frame.y(m):.1f}" for x, m in zip(line.x, line.middle, strict=True)]
    parts = [
        f'<path class="band" d="M{"L".join(there + back[::-1])}Z"/>',
        f'<path class="line" fill="none" stroke-width="2.2" stroke-linejoin="round" d="M{"L".join(middle)}"/>',
    ]
    for x, m, low, high in zip(line.x, line.middle, line.low, line.high, strict=True):
        said = f"{x:,.0f}: {line.show(m)} ({line.show(low)} to {line.show(high)})"
        circle = f'<circle class="dot" cx="{frame.x(x):.1f}" cy="{frame.y(m):.1f}" r="4" stroke-width="1.5">'
        parts.append(f"{circle}<title>{escape(said)}</title></circle>")
    end = _text(frame.x(line.x[-1]) + 10, frame.y(line.middle[-1]) + 4.5, line.show(line.middle[-1]), "ink",
                'font-size="13" font-weight="600"')  # fmt: skip
    return [*parts, end]


def _described(line: Line) -> str:
    """The picture in words, for those who cannot see it."""
    points = (f"{x:,.0f}: {line.show(m)}" for x, m in zip(line.x, line.middle, strict=True))
    return f"{line.y_label} over {line.x_label}. {line.subtitle}. {'; '.join(points)}."


def _text(x: float, y: float, text: str, style: str, more: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" {more}>{escape(_printable(text))}</text>'


def _attribute(text: str) -> str:
    return escape(_printable(text), {'"': "&quot;"})


def _printable(text: str) -> str:
    """The text without what XML forbids."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def png(line: Line) -> bytes:
    """The same picture as PNG, drawn by matplotlib."""
    import io

    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    line = line.drawable()
    frame = _Frame(line)
    words = [text.replace("$", r"\$") for text in (line.title, line.subtitle, line.x_label, line.y_label)]
    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=200, layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.fill_between(line.x, line.low, line.high, color="#2166c4", alpha=0.16, linewidth=0)
    axes.plot(line.x, line.middle, color="#2166c4", linewidth=2.2, marker="o", markersize=6, markeredgecolor="white")
    axes.set_xlim(frame.left * 0.95, frame.right * 1.05)
    axes.set_ylim(frame.bottom, frame.top)
    axes.xaxis.set_major_locator(FixedLocator(log_ticks(frame.left, frame.right)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(FixedLocator(frame.rungs))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: line.show(value)))
    axes.set(xlabel=words[2], ylabel=words[3])
    axes.grid(axis="y", color="#e3e7eb")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.suptitle(words[0], fontweight="semibold")
    axes.set_title(words[1], fontsize="small", color="#56626e")
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()
