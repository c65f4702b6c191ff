"""Pieces of HTML: escaped text, tables, figures and sections."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

from likely.plots.svg import bare, printable


def text(value: Any) -> str:
    """A value as text of a page: escaped, without control characters."""
    return html.escape(printable(str(value)), quote=True)


def number(value: Any, digits: int = 4) -> str:
    """A number for a table; a dash where there is none."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    whole = isinstance(value, int) or (float(value).is_integer() and abs(value) >= 1)
    return f"{value:,.0f}" if whole else f"{value:.{digits}f}"


def count(value: float) -> str:
    """A number of rows; weights that are no whole numbers with two decimals."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def percent(value: Any, digits: int = 1) -> str:
    """A share as a percentage; a dash where there is none."""
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def figure(picture: str) -> str:
    """A picture in a frame."""
    return f"<figure>{bare(picture)}</figure>"


def wide(picture: str, label: str) -> str:
    """A picture that scrolls sideways on a small screen."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{text(label)}">{bare(picture)}</div>'


def grid(pictures: Sequence[str]) -> str:
    """Pictures side by side where there is room."""
    return f'<div class="grid">{"".join(map(figure, pictures))}</div>' if pictures else ""


def section(name: str, title: str, body: str, lead: str = "") -> str:
    """A section with a heading; nothing where it has no body."""
    if not body:
        return ""
    intro = f'<p class="lead">{lead}</p>' if lead else ""
    heading = f'<h2 id="{name}-title">{text(title)}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">{heading}{intro}{body}</section>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str, right: Sequence[int] = ()) -> str:
    """A table of ready HTML cells with a caption; the first cell of a row is its heading."""

    def cell(i: int, content: str) -> str:
        if content.startswith("<td"):
            return content
        kind = ' class="n"' if i in right else ""
        return f'<th scope="row"{kind}>{content}</th>' if i == 0 else f"<td{kind}>{content}</td>"

    tops = "".join(
        f'<th scope="col"{" class=n" if i in right else ""}>{text(name)}</th>' for i, name in enumerate(head)
    )
    body = "".join(f"<tr>{''.join(cell(i, c) for i, c in enumerate(row))}</tr>" for row in rows)
    inner = f"<table><caption>{text(caption)}</caption><thead><tr>{tops}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}">{inner}</div>'


def select(name: str, label: str, options: Sequence[tuple[Any, str]], chosen: Any = None) -> str:
    """A labelled list of choices."""
    listed = "".join(
        f'<option value="{text(value)}"{" selected" if value == chosen else ""}>{text(shown)}</option>'
        for value, shown in options
    )
    return f'<label for="{name}">{text(label)}<select id="{name}">{listed}</select></label>'


def left_out(sentence: str) -> str:
    """Note on what a view leaves out, and how to get it."""
    return f'<p class="faint">{text(sentence)}</p>'


def size(content: str) -> int:
    """Bytes of a part of the page."""
    return len(content.encode())


def details(summary: str, body: str, *, opened: bool = False) -> str:
    """A part that opens and closes; `summary` is ready HTML."""
    return f"<details{' open' if opened else ''}><summary>{summary}</summary>{body}</details>"
