"""A lesson as HTML: a fragment to stand in any page, or a page of its own."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from likely.charts import STYLE
from likely.errors import UsageError
from likely.ledger import by_digest, page_head
from likely.lesson import drawing, words
from likely.lesson.frames import Lesson, lesson
from likely.model import Model
from likely.pictures import printable

TITLE = "EM, step by step"
NARROW = 4  # components whose numbers stand side by side next to the picture; more stand below it


def fragment(model: Model, data: Any, columns: Sequence[str] = (), *, title: str = TITLE, prefix: str = "em") -> str:
    """The lesson as a piece of HTML with its own style and script; its ids start with `prefix`, one for each lesson."""
    if not prefix.isidentifier() or not prefix.isascii():
        raise UsageError(f"prefix={prefix!r} cannot start an id: use letters, digits and _, such as 'em'")
    return _section(lesson(model, data, columns), title, prefix, "")


def page(model: Model, data: Any, columns: Sequence[str] = (), *, title: str = TITLE) -> str:
    """The lesson as a whole page, which fetches nothing: a browser is told to refuse whatever is not in the file."""
    body = _section(lesson(model, data, columns), title, "em", " data-page")
    head = page_head(printable(title), f"style-src 'unsafe-inline'; script-src {by_digest(_part('lesson.js'))}")
    scheme = '<meta name="color-scheme" content="light dark">\n</head>\n'
    return f'{head}{scheme}<body class="lk-page">\n<main>\n{body}</main>\n</body>\n</html>\n'


def write(path: str | Path, model: Model, data: Any, columns: Sequence[str] = (), *, title: str = TITLE) -> None:
    """The page as a file, in UTF-8."""
    made = page(model, data, columns, title=title)
    Path(path).write_text(made, encoding="utf-8")


@cache
def _part(name: str) -> str:
    """The style or the script of every lesson."""
    return files("likely.lesson").joinpath(name).read_text(encoding="utf-8")


def _text(text: str) -> str:
    """Text as HTML shows it, in a paragraph or in an attribute."""
    return html.escape(printable(text))


def _section(made: Lesson, title: str, prefix: str, more: str) -> str:
    """Heading, controls, pictures, tables and notes as they are at the last step, then the script that moves them."""
    drawn, (still, walked, reached) = drawing.drawing(made), drawing.way(made)
    k, end = len(made.components), len(made.frames) - 1
    frames: list[dict[str, Any]] = [
        {
            "step": frame.step, "said": printable(words.said(made, i)), "fill": drawing.fills(frame.shares),
            "paths": drawn.paths[i], "names": [[round(a, 1), round(b, 1)] for a, b in drawn.labels[i]],
            "walked": reached[i], "cells": words.cells(made, frame),
            "shares": words.share_cells(made, frame) if words.writes_shares(made) else [],
        }
        for i, frame in enumerate(made.frames)
    ]  # fmt: skip
    known = _json({"frames": frames, "way": walked})
    heads = ["component", *made.components]
    components = _table("lk-cells", f"The {k} components", heads, words.names(made), frames[-1]["cells"], across=True)
    shares = ""
    if words.writes_shares(made):
        said, beside = "E-step: what each component gets of every row", [f"E[z] of {c}" for c in made.components]
        shares = _table("lk-shares", said, words.share_heads(made), beside, frames[-1]["shares"], across=False)
    return "\n".join([
        f'<section class="lk-lesson" id="{prefix}" aria-labelledby="{prefix}-head"{more}>',
        f"<style>{STYLE}{_part('lesson.css')}</style>",
        f'<h2 id="{prefix}-head">{_text(title)}</h2>',
        f'<p class="lk-said" role="status">{_text(words.said(made, end))}</p>',
        _controls(prefix, end),
        '<div class="lk-two"><div class="lk-side">',
        _picture(prefix, made, drawn, frames[-1]),
        '</div><div class="lk-side">',
        _way(prefix, made.climbs, still, walked),
        components if k <= NARROW else "",
        "</div></div>",
        components if k > NARROW else "",
        shares,
        *(f'<p class="lk-note">{_text(note)}</p>' for note in words.notes(made)),
        '<noscript><p class="lk-note">This is the last step. The others need scripts, which are turned off.</p></noscript>',
        f'<script type="application/json">{known}</script>',
        f"<script>{_part('lesson.js')}</script>",
        "</section>\n",
    ])  # fmt: skip


def _json(known: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(known, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _controls(prefix: str, end: int) -> str:
    """The buttons and the slider; shown by the script, without which they would do nothing."""
    buttons = [
        ("first", "To the start", "|◀"), ("back", "One step back", "◀"), ("play", "Play", "Play"),
        ("next", "One step on", "▶"), ("last", "To the end", "▶|"),
    ]  # fmt: skip
    made = "".join(
        f'<button type="button" data-do="{what}" aria-label="{label}" title="{label}">{sign}</button>'
        for what, label, sign in buttons
    )
    slider = f'<input type="range" min="0" max="{end}" value="{end}" step="1" aria-label="Step" id="{prefix}-step">'
    keys = '<span class="lk-keys">← → step, Home, End, space plays</span>'
    return f'<div class="lk-controls" role="group" aria-label="Steps" hidden>{made}{slider}{keys}</div>'


def _picture(prefix: str, made: Lesson, drawn: drawing.Drawing, last: dict[str, Any]) -> str:
    """The components over the rows, as they are at the last step."""
    fills = [last["fill"][i : i + 6] for i in range(0, len(last["fill"]), 6)]
    points = "".join(f'{tag} fill="#{fill}"/>' for tag, fill in zip(drawn.points, fills, strict=True))
    moving = "".join(f'{tag} d="{d}"/>' for tag, d in zip(drawn.moving, last["paths"], strict=True))
    middle = ' text-anchor="middle"' if len(made.columns) == 1 else ""
    names = "".join(
        f'<text class="lk-name"{middle} style="transform:translate({x}px,{y}px)">{_text(name)}</text>'
        for name, (x, y) in zip(made.components, last["names"], strict=True)
    )
    title = f"The components over the rows along {' and '.join(made.columns)}"
    few = len(made.points) <= drawing.FEW
    rows = f'<g class="lk-points{" lk-few" if few else ""}">{points}</g>'
    moved = f'<g class="lk-moving">{moving}</g>'
    on_top = few and len(made.columns) == 1  # dots on the axis, where every curve ends
    inside = f"{drawn.still}{moved}{rows}{names}" if on_top else f"{drawn.still}{rows}{moved}{names}"
    return _svg(f"{prefix}-rows", drawing.WIDTH, drawing.HEIGHT, title, words.described(made), inside)


def _way(prefix: str, climbs: str, still: str, walked: Sequence[str]) -> str:
    """What EM climbs as it grew, with a mark where the step is."""
    x, y = walked[-1].split()
    inside = (
        f'{still}<path class="lk-walked lk-line" fill="none" d="M{"L".join(walked)}"/>'
        f'<circle class="lk-mark lk-dot" r="6" style="transform:translate({x}px,{y}px)"/>'
    )
    said = f"The {climbs} of every step; it never falls. A mark shows the present step."
    return _svg(f"{prefix}-way", drawing.WAY_WIDTH, drawing.WAY_HEIGHT, "The way of EM", said, inside)


def _svg(name: str, width: int, height: int, title: str, said: str, inside: str) -> str:
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="{name}-title {name}-desc">'
    titles = f'<title id="{name}-title">{_text(title)}</title><desc id="{name}-desc">{_text(said)}</desc>'
    return f'{head}{titles}<rect class="lk-paper" width="{width}" height="{height}"/>{inside}</svg>'


def _table(
    kind: str, title: str, heads: Sequence[str], names: Sequence[str], cells: words.Cells, *, across: bool
) -> str:
    """A table whose cells the script fills anew at every step; the components stand across, or else one a row."""
    swatches = [
        f'<span class="lk-swatch" style="background:{drawing.hue(c)}"></span>' for c in range(len(heads) + len(names))
    ]
    marks = ["", *swatches] if across else [""] * len(heads)
    head = "".join(f'<th scope="col">{mark}{_text(text)}</th>' for mark, text in zip(marks, heads, strict=False))
    rows = []
    for mark, name, row in zip([""] * len(names) if across else swatches, names, cells, strict=False):
        inside = "".join(f"<td>{_text(cell)}</td>" for cell in row)
        rows.append(f'<tr><th scope="row">{mark}{_text(name)}</th>{inside}</tr>')
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    scroll = f'<div class="lk-scroll" tabindex="0" role="region" aria-label="{_text(title)}">'
    return f'{scroll}<table class="{kind}"><caption>{_text(title)}</caption>{body}</table></div>'
