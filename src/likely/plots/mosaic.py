"""Slices of 3-D maps side by side, as SVG or PNG: a colour for each number, transparent where it is missing."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from likely.plots.charts import FONTS, STYLE, ticks
from likely.plots.svg import svg_text

Array = NDArray[np.float64]
WIDTH, MARGIN, GAP, HEAD, BAR = 720, 20, 14, 62, 62
MOST_SLICES = 24
PIXELS = 4  # of the PNG for each voxel: programs that smooth pictures then smooth little
# Anchors of the colour scales, dark to light and cold to warm; both can be read without telling red from green.
SCALES = {
    "sequential": ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725"),
    "diverging": ("#2166ac", "#67a9cf", "#d1e5f0", "#f7f7f7", "#fddbc7", "#ef8a62", "#b2182b"),
}


@dataclass(frozen=True)
class MapPanel:
    """One map with its title; `marked` voxels are outlined."""

    title: str
    volume: Array  # NaN: nothing is drawn
    marked: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Mosaic:
    """Maps of one shape under one colour scale.

    Slices run along the third axis; the first axis runs to the right and the second upwards, after axes along which
    `flip` is true are reversed. `zooms` are the sizes of a voxel along both.
    """

    panels: Sequence[MapPanel]
    title: str
    subtitle: str
    low: float
    high: float
    scale: str = "sequential"
    label: str = ""
    zooms: tuple[float, float] = (1.0, 1.0)
    flip: tuple[bool, bool] = (False, False)
    note: str = ""  # at the bottom, on the right: which side is left


def svg(mosaic: Mosaic) -> str:
    """The mosaic with titles, outlines and a colour bar, as SVG that holds its pixels itself."""
    box = _box(mosaic)
    columns = _panel_columns(mosaic, box)
    width = (WIDTH - 2 * MARGIN - (columns - 1) * GAP) / columns
    height = width / box.aspect
    rows = math.ceil(len(mosaic.panels) / columns)
    bottom = HEAD + rows * (height + 24 + GAP)
    parts = [_head(mosaic, bottom + BAR)]
    for i, panel in enumerate(mosaic.panels):
        x, y = MARGIN + (i % columns) * (width + GAP), HEAD + (i // columns) * (height + 24 + GAP)
        parts.append(svg_text(x, y + 14, panel.title, "ink", 'font-size="13" font-weight="600"'))
        parts.append(_picture(_png(_raster(panel.volume, mosaic, box)), x, y + 22, width, height))
        if panel.marked is not None and panel.marked.any():
            path = _outline(box.tiles(panel.marked.astype(float), mosaic.flip) == 1.0)
            scale = f"translate({x:.1f} {y + 22:.1f}) scale({width / box.across:.4f} {height / box.down:.4f})"
            parts.append(f'<path d="{path}" transform="{scale}" class="lk-outline"/>')
    return "\n".join([*parts, *_bar(mosaic, bottom + 8), "</svg>\n"])


def png(mosaic: Mosaic, panel: int = 0) -> bytes:
    """The slices of one panel as PNG, transparent where there is nothing."""
    box = _box(mosaic)
    return _png(_raster(mosaic.panels[panel].volume, mosaic, box))


@dataclass(frozen=True)
class _Box:
    """Which part of the maps is drawn, and how its slices are tiled."""

    low: tuple[int, int]
    high: tuple[int, int]
    slices: tuple[int, ...]
    columns: int
    zooms: tuple[float, float]

    @property
    def across(self) -> int:
        return self.columns * (self.high[0] - self.low[0])

    @property
    def down(self) -> int:
        return math.ceil(len(self.slices) / self.columns) * (self.high[1] - self.low[1])

    @property
    def aspect(self) -> float:
        return self.across * self.zooms[0] / (self.down * self.zooms[1])

    def tiles(self, volume: Array, flip: tuple[bool, bool]) -> Array:
        """The slices side by side, the first row at the top."""
        part = volume[self.low[0] : self.high[0], self.low[1] : self.high[1]]
        part = part[:: -1 if flip[0] else 1, :: -1 if flip[1] else 1]
        wide, tall = part.shape[:2]
        out = np.full((self.down, self.across), np.nan)
        for i, k in enumerate(self.slices):
            row, column = divmod(i, self.columns)
            out[row * tall : (row + 1) * tall, column * wide : (column + 1) * wide] = part[:, ::-1, k].T
        return out


def _box(mosaic: Mosaic) -> _Box:
    """The smallest part of the maps that holds all numbers, with a voxel around it; of many slices, some."""
    there = ~np.isnan(mosaic.panels[0].volume)
    if not there.any():
        there = np.ones_like(there)
    edges = [np.flatnonzero(there.any(tuple(a for a in range(3) if a != axis))) for axis in range(3)]
    low = tuple(int(max(e[0] - 1, 0)) for e in edges[:2])
    high = tuple(int(min(e[-1] + 2, size)) for e, size in zip(edges[:2], there.shape, strict=False))
    used = edges[2]
    if len(used) > MOST_SLICES:
        used = used[np.unique(np.linspace(0, len(used) - 1, MOST_SLICES).round().astype(int))]
    tall = (high[1] - low[1]) * mosaic.zooms[1] / ((high[0] - low[0]) * mosaic.zooms[0])
    columns = min(len(used), max(1, math.ceil(math.sqrt(len(used) * 1.6 * tall))))
    return _Box((low[0], low[1]), (high[0], high[1]), tuple(used.tolist()), columns, mosaic.zooms)


def _panel_columns(mosaic: Mosaic, box: _Box) -> int:
    """The number of panels in a row."""
    if len(mosaic.panels) == 1:
        return 1
    most = 4 if len(box.slices) == 1 else 2
    return min(most, len(mosaic.panels))


def colours(share: Array, scale: str) -> NDArray[np.uint8]:
    """The colour of each number from 0 to 1, as bytes of red, green and blue."""
    anchors = np.array([[int(code[i : i + 2], 16) for i in (1, 3, 5)] for code in SCALES[scale]], float)
    place = np.linspace(0, 1, len(anchors))
    channels = [np.interp(np.clip(share, 0, 1), place, anchors[:, c]) for c in range(3)]
    return np.stack(channels, -1).round().astype(np.uint8)


def _raster(volume: Array, mosaic: Mosaic, box: _Box) -> NDArray[np.uint8]:
    tiles = box.tiles(volume, mosaic.flip)
    seen = ~np.isnan(tiles)
    share = (np.where(seen, tiles, mosaic.low) - mosaic.low) / ((mosaic.high - mosaic.low) or 1.0)
    raster = np.zeros((*tiles.shape, 4), np.uint8)
    raster[..., :3] = colours(share, mosaic.scale)
    raster[..., 3] = np.where(seen, 255, 0)
    raster[~seen] = 0
    return raster.repeat(PIXELS, 0).repeat(PIXELS, 1)


def _png(raster: NDArray[np.uint8]) -> bytes:
    """A PNG file of red, green, blue and opacity."""
    tall, wide = raster.shape[:2]
    lines = np.zeros((tall, 1 + 4 * wide), np.uint8)  # each line begins with 0: no filter
    lines[:, 1:] = raster.reshape(tall, -1)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", wide, tall, 8, 6, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def _outline(inside: NDArray[np.bool_]) -> str:
    """The border of some pixels as a path in pixels."""
    padded = np.pad(inside, 1)
    across = np.argwhere(padded[1:, 1:-1] != padded[:-1, 1:-1])
    down = np.argwhere(padded[1:-1, 1:] != padded[1:-1, :-1])
    return "".join([*(f"M{x} {y}h1" for y, x in across), *(f"M{x} {y}v1" for y, x in down)])


def _head(mosaic: Mosaic, height: float) -> str:
    style = STYLE + ".lk-outline{fill:none;stroke:#d7191c;stroke-width:2;vector-effect:non-scaling-stroke}"
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}"'
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONTS}" role="img"',
        f'aria-label="{escape(mosaic.title)}">',
        f"<title>{escape(mosaic.title)}</title><desc>{escape(mosaic.subtitle)}</desc>",
        f"<style>{style}</style>",
        f'<rect class="lk-paper" width="{WIDTH}" height="{height:.0f}"/>',
        svg_text(MARGIN, 28, mosaic.title, "ink", 'font-size="17" font-weight="600"'),
        svg_text(MARGIN, 48, mosaic.subtitle, "faint lk-sub", 'font-size="12"'),
    ])  # fmt: skip


def _bar(mosaic: Mosaic, y: float) -> list[str]:
    """The colour scale with its numbers."""
    width = WIDTH - 2 * MARGIN
    strip = np.zeros((1, 256, 4), np.uint8)
    strip[0, :, :3], strip[0, :, 3] = colours(np.linspace(0, 1, 256), mosaic.scale), 255
    parts = [_picture(_png(strip), MARGIN, y, width, 10)]
    span = (mosaic.high - mosaic.low) or 1.0
    between = [tick for tick in ticks(mosaic.low, mosaic.high) if 0.06 < (tick - mosaic.low) / span < 0.94]
    for tick in (mosaic.low, *between, mosaic.high):
        share = (tick - mosaic.low) / span
        anchor = "start" if share < 0.02 else "end" if share > 0.98 else "middle"
        place = f'font-size="11" text-anchor="{anchor}"'
        parts.append(svg_text(MARGIN + share * width, y + 25, f"{tick:.3g}", "faint", place))
    parts.append(svg_text(MARGIN, y + 42, mosaic.label, "faint lk-sub", 'font-size="12"'))
    return [*parts, svg_text(MARGIN + width, y + 42, mosaic.note, "faint lk-sub", 'font-size="12" text-anchor="end"')]


def _picture(png: bytes, x: float, y: float, width: float, height: float) -> str:
    data = base64.b64encode(png).decode()
    return (
        f'<image x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" preserveAspectRatio="none" '
        f'image-rendering="pixelated" href="data:image/png;base64,{data}"/>'
    )
