"""A directed acyclic graph as SVG, in layers: parents above their children, few crossings, tooltips on every node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from likely.plots.escaping import escape, escape_attribute

FONTS = "system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif"
LETTER, PAD, HEIGHT = 7.4, 14.0, 34.0  # of a node: width of a letter, space beside the name, height
BESIDE, BETWEEN, EDGE, HEAD = 22.0, 58.0, 20.0, 46.0  # space between nodes, between layers, around all, for the title
LONGEST_NAME = 28
SWEEPS = 12
SIZE = re.compile(r'width="(\d+)" height="(\d+)"')  # of a picture
DESCRIBED = re.compile("<title>([^<]*)</title><desc>([^<]*)</desc>")
STYLE = """
.lk-paper{fill:#fff}.lk-ink{fill:#1c2733}.lk-faint{fill:#56626e}.lk-node{fill:#eef4fc;stroke:#2166c4}
.lk-class{fill:#2166c4;stroke:#174a91}.lk-on{fill:#fff}.lk-hidden{fill:#fff;stroke:#8a96a3;stroke-dasharray:5 4}
.lk-number{fill:#f3f1e7;stroke:#8a7a2f}.lk-arc{fill:none;stroke:#56626e;stroke-width:1.4}.lk-tip{fill:#56626e}
@media (prefers-color-scheme:dark){
.lk-paper{fill:#14191f}.lk-ink{fill:#e8ecf0}.lk-faint{fill:#a3aeb9}.lk-node{fill:#1d2a3a;stroke:#7db3ff}
.lk-class{fill:#7db3ff;stroke:#cfe2ff}.lk-on{fill:#14191f}.lk-hidden{fill:#14191f;stroke:#a3aeb9}
.lk-number{fill:#2b2819;stroke:#d6c469}.lk-arc{stroke:#a3aeb9}.lk-tip{fill:#a3aeb9}
}
"""


@dataclass(frozen=True)
class DrawnNode:
    """A node as it is drawn: its name, a tooltip, and a style ("node", "class", "hidden" or "number")."""

    name: str
    tooltip: str = ""
    look: str = "node"

    @property
    def label(self) -> str:
        """The name, cut to what fits into a box."""
        return self.name if len(self.name) <= LONGEST_NAME else self.name[: LONGEST_NAME - 1] + "…"

    @property
    def width(self) -> float:
        """The width of its box."""
        return max(46.0, len(self.label) * LETTER + 2 * PAD)




class _Layout:
    """Positions of nodes and bends: layers by the longest path from a root, ordered by the mean position of neighbours."""

    def __init__(self, widths: Mapping[str, float], arcs: Sequence[tuple[str, str]]) -> None:
        self.widths = dict(widths)
        self.layer = _layers(list(widths), arcs)
        self.rows: list[list[str]] = [[] for _ in range(max(self.layer.values(), default=0) + 1)]
        for name in widths:
            self.rows[self.layer[name]].append(name)
        self.chains = [self._chain(a, b, i) for i, (a, b) in enumerate(arcs)]
        self.up: dict[str, list[str]] = {name: [] for name in self.widths}
        self.down: dict[str, list[str]] = {name: [] for name in self.widths}
        for chain in self.chains:
            for a, b in pairwise(chain):
                self.down[a].append(b)
                self.up[b].append(a)
        self.x: dict[str, float] = {}
        self._arrange()

    def _chain(self, a: str, b: str, number: int) -> list[str]:
        """An arc with a bend in every layer that it crosses."""
        bends = []
        for layer in range(self.layer[a] + 1, self.layer[b]):
            name = f"\0{number}.{layer}"
            self.widths[name] = 4.0
            self.layer[name] = layer
            self.rows[layer].append(name)
            bends.append(name)
        return [a, *bends, b]

    def _arrange(self) -> None:
        for row in self.rows:
            self._without_overlap(row, {name: float(i) for i, name in enumerate(row)})
        for sweep in range(SWEEPS):
            near = self.up if sweep % 2 == 0 else self.down
            rows = self.rows if sweep % 2 == 0 else self.rows[::-1]
            for row in rows:
                wish = {n: sum(self.x[m] for m in near[n]) / len(near[n]) if near[n] else self.x[n] for n in row}
                row.sort(key=lambda n: wish[n])
                self._without_overlap(row, wish)
        left = min((self.x[n] - self.widths[n] / 2 for n in self.x), default=0.0)
        self.x = {n: x - left + EDGE for n, x in self.x.items()}

    def _without_overlap(self, row: Sequence[str], wish: Mapping[str, float]) -> None:
        """Place the nodes of a row near their desired positions without overlap: touching nodes are moved as one block."""
        blocks: list[tuple[list[str], list[float], float]] = []  # names, their distance from the block's start, its start
        for name in row:
            names, offsets, start = [name], [0.0], wish[name]
            while blocks:
                before, shifts, at = blocks[-1]
                gap = (self.widths[before[-1]] + self.widths[names[0]]) / 2 + BESIDE
                if at + shifts[-1] + gap <= start:
                    break
                blocks.pop()
                offsets = [*shifts, *(shifts[-1] + gap + o for o in offsets)]
                names = [*before, *names]
                start = sum(wish[n] - o for n, o in zip(names, offsets, strict=True)) / len(names)
            blocks.append((names, offsets, start))
        for names, offsets, start in blocks:
            self.x.update({n: start + o for n, o in zip(names, offsets, strict=True)})


def _layers(names: Sequence[str], arcs: Sequence[tuple[str, str]]) -> dict[str, int]:
    layer = dict.fromkeys(names, 0)
    for _ in names:
        moved = False
        for a, b in arcs:
            if layer[b] <= layer[a]:
                layer[b], moved = layer[a] + 1, True
        if not moved:
            return layer
    raise ValueError("the arcs form a cycle")


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 arc, 2 arcs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def network_svg(nodes: Sequence[DrawnNode], arcs: Sequence[tuple[str, str]], title: str, subtitle: str = "") -> str:
    """The picture of a graph as SVG text."""
    layout = _Layout({node.name: node.width for node in nodes}, arcs)
    right = max((layout.x[n] + w / 2 for n, w in layout.widths.items()), default=0.0) + EDGE
    wide = max(right, 240.0, len(title) * 10.4 + 2 * EDGE, len(subtitle) * 6.6 + 2 * EDGE)
    shift = (wide - right) / 2
    high = HEAD + EDGE + len(layout.rows) * HEIGHT + (len(layout.rows) - 1) * BETWEEN + EDGE
    top = HEAD + EDGE + HEIGHT / 2
    centre = {name: (x + shift, top + layout.layer[name] * (HEIGHT + BETWEEN)) for name, x in layout.x.items()}
    described = f"{len(nodes)} nodes, {len(arcs)} arcs: " + "; ".join(f"{a} to {b}" for a, b in arcs[:60])
    size = f'width="{wide:.0f}" height="{high:.0f}"'
    accessible = f'role="img" aria-label="{_quoted(title)}" font-family="{FONTS}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" {size} {accessible}>',
        f"<title>{escape(title)}</title><desc>{escape(described)}</desc><style>{STYLE}</style>",
        f'<rect class="lk-paper" width="{wide:.0f}" height="{high:.0f}"/>',
        f'<text class="lk-ink" x="{EDGE}" y="26" font-size="16" font-weight="600">{escape(title)}</text>',
        f'<text class="lk-faint" x="{EDGE}" y="44" font-size="12">{escape(subtitle)}</text>' if subtitle else "",
    ]
    parts += [_arc(chain, centre) for chain in layout.chains]
    parts += [_box(node, *centre[node.name]) for node in nodes]
    return "\n".join([part for part in parts if part] + ["</svg>\n"])


def stacked(pictures: Sequence[str], title: str, columns: int = 2) -> str:
    """Several pictures of graphs as one, in lines of so many."""
    sizes = [tuple(map(int, SIZE.findall(picture)[0])) for picture in pictures]
    wide = max(width for width, _ in sizes)
    parts, top = [], 0
    for first in range(0, len(pictures), columns):
        line = pictures[first : first + columns]
        parts += [p.replace("<svg ", f'<svg x="{i * wide}" y="{top}" ', 1).rstrip() for i, p in enumerate(line)]
        top += max(height for _, height in sizes[first : first + columns])
    size = f'width="{columns * wide}" height="{top}"'
    accessible = f'role="img" aria-label="{_quoted(title)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {columns * wide} {top}" {size} {accessible}>'
    described = "; ".join(f"{name}: {arcs}" for picture in pictures for name, arcs in DESCRIBED.findall(picture))
    told = f"<title>{escape(title)}</title><desc>{described}</desc><style>{STYLE}</style>"
    return "\n".join([head, told, f'<rect class="lk-paper" {size}/>', *parts, "</svg>\n"])


def _quoted(text: str) -> str:
    return escape_attribute(text)


def _arc(chain: Sequence[str], centre: Mapping[str, tuple[float, float]]) -> str:
    """A curve from parent to child through its bends, with a tip."""
    points = [centre[name] for name in chain]
    points[0] = (points[0][0], points[0][1] + HEIGHT / 2)
    points[-1] = (points[-1][0], points[-1][1] - HEIGHT / 2 - 7)
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y1 - y0) * 0.45
        path += f"C{x0:.1f} {y0 + middle:.1f} {x1:.1f} {y1 - middle:.1f} {x1:.1f} {y1:.1f}"
    x, y = points[-1]
    tip = f"M{x - 4.5:.1f} {y - 1:.1f}L{x + 4.5:.1f} {y - 1:.1f}L{x:.1f} {y + 7:.1f}Z"
    return f'<path class="lk-arc" d="{path}"/><path class="lk-tip" d="{tip}"/>'


def _box(node: DrawnNode, x: float, y: float) -> str:
    round_ = 6 if node.look == "number" else HEIGHT / 2
    ink = "lk-on" if node.look == "class" else "lk-ink"
    tip = f"<title>{escape(node.tooltip or node.name)}</title>"
    return (
        f'<g tabindex="0">{tip}<rect class="lk-{node.look}" x="{x - node.width / 2:.1f}" y="{y - HEIGHT / 2:.1f}" '
        f'width="{node.width:.1f}" height="{HEIGHT:.0f}" rx="{round_:.0f}"/>'
        f'<text class="{ink}" x="{x:.1f}" y="{y + 4.5:.1f}" font-size="13" text-anchor="middle">{escape(node.label)}</text></g>'
    )
