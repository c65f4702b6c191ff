"""A lesson as HTML: a fragment for any page, or a page of its own."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from likely.errors import UsageError
from likely.latent.clusters import Clusters
from likely.model.ledger_page import by_digest, page_head
from likely.plots.charts import STYLE
from likely.plots.svg import printable
from likely.teaching.lesson import _captions as captions
from likely.teaching.lesson import _drawing as drawing
from likely.teaching.lesson._em_frames import Lesson, lesson

TITLE = "EM, step by step"
NARROW = 4  # components whose table is beside the picture; a wider one is below it


def fragment(model: Clusters, data: Any, columns: Sequence[str] = (), *, title: str = TITLE, prefix: str = "em") -> str:
    """The lesson as a piece of HTML with its own style and script.

    Parameters
    ----------
    model : Clusters
        A mixture that kept its steps: `likely.cluster(data, k, steps=True)`.
    data : path, frame, dict of columns or any other source
        The rows.
    columns : sequence of str, default=()
        One or two numeric columns to draw; by default the first two.
    title : str, default="EM, step by step"
        Title of the page.
    prefix : str, default="em"
        Beginning of all ids, another one for each lesson on a page.

    Returns
    -------
    str
        HTML.
    """
    if not prefix.isidentifier() or not prefix.isascii():
        raise UsageError(f"prefix={prefix!r} cannot start an id: use letters, digits and _, such as 'em'")
    return _section(lesson(model, data, columns), title, prefix, "")


def page(model: Clusters, data: Any, columns: Sequence[str] = (), *, title: str = TITLE) -> str:
    """The lesson as a self-contained HTML page, which fetches nothing.

    Parameters
    ----------
    model : Clusters
        A mixture that kept its steps: `likely.cluster(data, k, steps=True)`.
    data : path, frame, dict of columns or any other source
        The rows.
    columns : sequence of str, default=()
        One or two numeric columns to draw; by default the first two.
    title : str, default="EM, step by step"
        Title of the page.

    Returns
    -------
    str
        HTML.
    """
    body = _section(lesson(model, data, columns), title, "em", " data-page")
    head = page_head(printable(title), f"style-src 'unsafe-inline'; script-src {by_digest(_part('lesson.js'))}")
    scheme = '<meta name="color-scheme" content="light dark">\n</head>\n'
    return f'{head}{scheme}<body class="lk-page">\n<main>\n{body}</main>\n</body>\n</html>\n'


def write(path: str | Path, model: Clusters, data: Any, columns: Sequence[str] = (), *, title: str = TITLE) -> None:
    """Write the lesson to a file, in UTF-8.

    Parameters
    ----------
    path : str or Path
        The file.
    model : Clusters
        A mixture that kept its steps: `likely.cluster(data, k, steps=True)`.
    data : path, frame, dict of columns or any other source
        The rows.
    columns : sequence of str, default=()
        One or two numeric columns to draw; by default the first two.
    title : str, default="EM, step by step"
        Title of the page.
    """
    made = page(model, data, columns, title=title)
    Path(path).write_text(made, encoding="utf-8")


@cache
def _part(name: str) -> str:
    """The style or the script of every lesson."""
    return files("likely.teaching.lesson").joinpath(name).read_text(encoding="utf-8")


def _text(text: str) -> str:
    """Text escaped for HTML, in a paragraph or in an attribute."""
    return html.escape(printable(text))


def _section(made: Lesson, title: str, prefix: str, more: str) -> str:
    """Heading, controls, pictures, tables and notes at the last step, then the script that changes them."""
    drawn, (still, walked, reached) = drawing.drawing(made), drawing.trace_plot(made)
    k, end = len(made.components), len(made.frames) - 1
    frames: list[dict[str, Any]] = [
        {
            "step": frame.step, "caption": printable(captions.caption(made, i)), "fill": drawing.fills(frame.responsibilities),
            "paths": drawn.paths[i], "names": [[round(a, 1), round(b, 1)] for a, b in drawn.labels[i]],
            "walked": reached[i], "cells": captions.cells(made, frame),
            "responsibilities": captions.responsibility_cells(made, frame) if captions.writes_responsibilities(made) else [],
        }
        for i, frame in enumerate(made.frames)
    ]  # fmt: skip
    known = _json({"frames": frames, "way": walked})
    heads = ["component", *made.components]
    components = _table("lk-cells", f"The {k} components", heads, captions.names(made), frames[-1]["cells"], across=True)
    responsibilities = _responsibilities(made, frames[-1]["responsibilities"])
    return "\n".join([
        f'<section class="lk-lesson" id="{prefix}" aria-labelledby="{prefix}-head"{more}>',
        f"<style>{STYLE}{_part('lesson.css')}</style>",
        f'<h2 id="{prefix}-head">{_text(title)}</h2>',
        f'<p class="lk-caption" role="status">{_text(captions.caption(made, end))}</p>',
        _controls(prefix, end),
        '<div class="lk-two"><div class="lk-side">',
        _picture(prefix, made, drawn, frames[-1]),
        '</div><div class="lk-side">',
        _trace(prefix, made.objective, still, walked),
        components if k <= NARROW else "",
        "</div></div>",
        components if k > NARROW else "",
        responsibilities,
        *(f'<p class="lk-note">{_text(note)}</p>' for note in captions.notes(made)),
        '<noscript><p class="lk-note">This is the last step. The others need scripts, which are turned off.</p></noscript>',
        f'<script type="application/json">{known}</script>',
        f"<script>{_part('lesson.js')}</script>",
        "</section>\n",
    ])  # fmt: skip


def _responsibilities(made: Lesson, cells: captions.Cells) -> str:
    """The table of responsibilities, where there are few enough rows for one."""
    if not captions.writes_responsibilities(made):
        return ""
    title, labels = "E-step: responsibility of each component for every row", [f"E[z] of {c}" for c in made.components]
    return _table("lk-responsibilities", title, captions.responsibility_heads(made), labels, cells, across=False)


def _json(known: Any) -> str:
    """JSON that cannot end the element that contains it."""
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
    shown = captions.described(made)
    return _svg(f"{prefix}-rows", drawing.WIDTH, drawing.HEIGHT, title=title, description=shown, inside=inside)


def _trace(prefix: str, objective: str, still: str, walked: Sequence[str]) -> str:
    """Plot of the log-likelihood by iteration, with a mark at the present step."""
    x, y = walked[-1].split()
    inside = (
        f'{still}<path class="lk-walked lk-line" fill="none" d="M{"L".join(walked)}"/>'
        f'<circle class="lk-mark lk-dot" r="6" style="transform:translate({x}px,{y}px)"/>'
    )
    description = f"The {objective} of every step; it never decreases. A mark shows the present step."
    size, title = (drawing.TRACE_WIDTH, drawing.TRACE_HEIGHT), "Progress of EM"
    return _svg(f"{prefix}-way", *size, title=title, description=description, inside=inside)


def _svg(name: str, width: int, height: int, *, title: str, description: str, inside: str) -> str:
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="{name}-title {name}-desc">'
    titles = f'<title id="{name}-title">{_text(title)}</title><desc id="{name}-desc">{_text(description)}</desc>'
    return f'{head}{titles}<rect class="lk-paper" width="{width}" height="{height}"/>{inside}</svg>'


def _table(
    kind: str, title: str, heads: Sequence[str], names: Sequence[str], cells: captions.Cells, *, across: bool
) -> str:
    """A table whose cells the script fills at every step, with the components as columns (`across`) or rows."""
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
