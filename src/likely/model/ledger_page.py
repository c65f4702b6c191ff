"""HTML page of an explanation: the table of evidence, and texts with their words shaded by class."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from typing import Any

from likely.model.ledger import Entry, Ledger, clean, clean_text, cut_note, marked, number, shown, word_weight

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}h1{font-size:1.25rem}"
    ".likely-ledger{border-collapse:collapse;display:block;overflow-x:auto}"
    ".likely-ledger th,.likely-ledger td{padding:.2rem .7rem;border-bottom:1px solid #ccc;text-align:left}"
    ".likely-ledger td:nth-child(n+3){font-variant-numeric:tabular-nums}.likely-text{white-space:pre-wrap}"
)
MOST_IN_KEY = 20
MOST_WORDS = 100


def ledger_page(ledger: Ledger, title: str) -> str:
    """The explanation as a self-contained HTML page."""
    shades: dict[str, str] = {}
    body = ledger_html(ledger, shades)
    style = STYLE + "".join(f".{name}{{background:{shade}}}" for shade, name in shades.items())
    head = page_head(clean(title), f"style-src {by_digest(style)}")
    verdict = f"<h1>{html.escape(clean(title))}</h1>"
    return f"{head}<style>{style}</style>\n</head>\n<body>{verdict}{body}</body>\n</html>\n"


def ledger_html(ledger: Ledger, shades: dict[str, str] | None) -> str:
    """The explanation as a table, with its texts below; shades are named in `shades` if it is given."""
    cell = html.escape
    body = "".join("<tr>" + "".join(f"<td>{cell(text)}</td>" for text in row) + "</tr>" for row in ledger.lines())
    notes = "".join(f"<p>{cell(note)}</p>" for note in ledger.notes)
    texts = "".join(_highlighted_html(e, ledger.classes, shades) for e in ledger.entries if e.words)
    texts = texts and _key_html(ledger.classes, shades) + texts
    top = "".join(f"<th>{cell(text)}</th>" for text in ledger.head())
    table = f'<table class="likely-ledger"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
    return f"{table}{texts}{notes}"


def by_digest(content: str) -> str:
    """A style or a script as a Content-Security-Policy names it: by its SHA-256 digest."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def page_head(title: str, allowed: str) -> str:
    """The head of a self-contained page, whose Content-Security-Policy permits only what is `allowed`."""
    policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; {allowed}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n"
    )


def _highlighted_html(entry: Entry, classes: Sequence[Any], shades: dict[str, str] | None = None) -> str:
    """The text with its words shaded: the hue is the class that a word supports, the opacity its weight.

    The shade stands in a style attribute, or is named in `shades` for a page that allows none. Of a long text, the
    beginning is shown and its strongest words are listed.
    """
    strongest = max((word_weight(word)[1] for word in entry.words), default=0.0) or 1.0
    parts = []
    for piece, word in marked(entry):
        if word is None:
            parts.append(html.escape(clean_text(piece)))
            continue
        best, weight = word_weight(word)
        look = _shade_attribute(_shade(best, len(classes), max(weight, 0.0) / strongest), shades)
        title = html.escape(f"{shown(classes[best])} {number(weight)}", quote=True)
        parts.append(f'<span {look} title="{title}">{html.escape(clean_text(piece))}</span>')
    wrap = ' style="white-space:pre-wrap"' if shades is None else ""
    note = cut_note(entry)
    cut = f"<p>{html.escape(note)}</p>{_words_html(entry, classes)}" if note else ""
    return f'<p class="likely-text"{wrap}>{"".join(parts)}</p>{cut}'


def _shade(best: int, classes: int, strength: float) -> str:
    """The colour of a class, with an opacity from 0 to 0.6."""
    return f"hsla({int(360 * best / max(classes, 1))}, 70%, 50%, {0.6 * strength:.2f})"


def _shade_attribute(shade: str, shades: dict[str, str] | None) -> str:
    """A shade as a style, or as a class that is named in `shades`."""
    return f'style="background:{shade}"' if shades is None else f'class="{shades.setdefault(shade, f"w{len(shades)}")}"'


def _key_html(classes: Sequence[Any], shades: dict[str, str] | None) -> str:
    """Legend: the colour of each class."""
    spans = [
        f"<span {_shade_attribute(_shade(c, len(classes), 1.0), shades)}>{html.escape(shown(label))}</span>"
        for c, label in enumerate(classes[:MOST_IN_KEY])
    ]
    more = f" … and {len(classes) - MOST_IN_KEY:,} more" if len(classes) > MOST_IN_KEY else ""
    legend = "A word is shaded in the colour of the class it supports, the darker the larger its weight:"
    return f'<p class="likely-key">{legend} {" ".join(spans)}{more}</p>'


def _words_html(entry: Entry, classes: Sequence[Any]) -> str:
    """The strongest words of a text as a table."""
    rows = []
    for word in entry.words[:MOST_WORDS]:
        best, weight = word_weight(word)
        cells = (clean(word.word), f"{word.count:g}", f"{weight:.4f}", shown(classes[best]))
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    caption = f"the {len(rows)} of {len(entry.words):,} words with the largest weights"
    head = "<tr><th>word</th><th>times</th><th>weight</th><th>for</th></tr>"
    return f'<table class="likely-ledger"><caption>{caption}</caption>{head}{"".join(rows)}</table>'
