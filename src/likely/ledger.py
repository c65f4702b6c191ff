"""One row's evidence, column by column: what each cell says for each class, and what it adds up to."""

from __future__ import annotations

import base64
import hashlib
import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UNSEEN, MISSING, FAR, ZERO, UNUSED = "unseen", "missing", "out of range", "zero", "unused"

FLAGS = {
    UNSEEN: "this value was never seen in learning: it has only its imagined rows",
    MISSING: "missing: the cell says nothing, at most its being missing does",
    FAR: "far from everything seen in learning: more than five deviations from every class",
    ZERO: "never seen in a class: without smoothing it rules that class out",
    UNUSED: "not a column of the model",
}


@dataclass(frozen=True)
class Word:
    """What one word of a text says: how often it stands there, and what it adds to each class."""

    word: str
    count: float
    evidence: tuple[float, ...]


STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}h1{font-size:1.25rem}"
    ".likely-ledger{border-collapse:collapse;display:block;overflow-x:auto}"
    ".likely-ledger th,.likely-ledger td{padding:.2rem .7rem;border-bottom:1px solid #ccc;text-align:left}"
    ".likely-ledger td:nth-child(n+3){font-variant-numeric:tabular-nums}.likely-text{white-space:pre-wrap}"
)
MOST_SHOWN = 20_000  # characters of a text that are shown: of a longer one, its beginning and its strongest words
MOST_IN_KEY = 20
WORDS_LISTED = 12
MOST_WORDS = 100
CALIBRATION = "(calibration)"  # stands where a column would: the bias that calibration gives to each class


@dataclass(frozen=True)
class Entry:
    """What one column or block says: log P(cells | class) for every class."""

    columns: tuple[str, ...]
    values: tuple[Any, ...]
    evidence: tuple[float, ...]
    flags: tuple[str, ...] = ()
    words: tuple[Word, ...] = ()  # of a text: those first that speak most for one class and against another
    matters: float | None = None  # when averaged over choices of columns: how probable this one's arc is

    @property
    def name(self) -> str:
        """The columns, joined by 'with'."""
        return " with ".join(self.columns)

    @property
    def value(self) -> Any:
        """The cell, or the cells of a block."""
        return self.values[0] if len(self.values) == 1 else self.values


@dataclass(frozen=True)
class Ledger:
    """The whole account of one row: prior, evidence and posterior. The sum of its lines is the log joint, exactly."""

    target: str
    classes: tuple[Any, ...]
    log_prior: tuple[float, ...]
    entries: tuple[Entry, ...]
    log_joint: tuple[float, ...]
    log_evidence: float | None  # None where the model has no P(row)
    probabilities: tuple[float, ...]
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> Any:
        """The most probable class; of equals the first, and of nothing but zeros the most probable beforehand."""
        scores = self.log_joint if max(self.log_joint) > -math.inf else self.log_prior
        return self.classes[scores.index(max(scores))]

    @property
    def posterior(self) -> dict[Any, float]:
        """The probability of each class."""
        return dict(zip(self.classes, self.probabilities, strict=True))

    def weights(self) -> dict[str, dict[Any, float]]:
        """For every entry and class: how much more the cells are expected there than in the other classes, in nats."""
        return {
            e.name: dict(zip(self.classes, _contrast(e.evidence, self.log_prior), strict=True)) for e in self.entries
        }

    def to_dict(self) -> dict[str, Any]:
        """The ledger as plain data; a log of zero is written as null, which JSON can hold."""
        return {
            "target": self.target,
            "label": _plain(self.label),
            "classes": [_plain(label) for label in self.classes],
            "log_prior": [_finite(v) for v in self.log_prior],
            "evidence": [
                {
                    "columns": list(e.columns), "values": [_plain(v) for v in e.values],
                    "log_likelihood": [_finite(v) for v in e.evidence],
                    "weight": [_finite(v) for v in _contrast(e.evidence, self.log_prior)], "flags": list(e.flags),
                    **({"words": [_word(w) for w in e.words]} if e.words else {}),
                    **({} if e.matters is None else {"arc_probability": e.matters}),
                }
                for e in self.entries
            ],
            "log_joint": [_finite(v) for v in self.log_joint],
            "log_evidence": None if self.log_evidence is None else _finite(self.log_evidence),
            "probabilities": {str(label): p for label, p in self.posterior.items()},
            "notes": list(self.notes),
        }  # fmt: skip

    def head(self) -> list[str]:
        """The heading over `lines`: evidence for a class, or log P(·|class) where the model is of the rows themselves."""
        weighed = self.log_evidence is None
        return [_shown(self.target), "value", *(_headed(label, weighed) for label in self.classes), "flags"]

    def lines(self, top: int | None = None) -> list[list[str]]:
        """The ledger as rows of text: what, its value, what it says for each class, and the flags.

        With `top` only so many of the strongest are named; the others stand in one line, so that it still adds up.
        """
        rows = [["prior", "", *map(_number, self.log_prior), ""]]
        ranked = sorted(self.entries, key=lambda e: -_range(e.evidence))
        named = ranked if top is None else ranked[:top]
        rows += [[_shown(e.name), _shown(e.value), *map(_number, e.evidence), _remarks(e)] for e in named]
        if rest := ranked[len(named) :]:
            summed = [math.fsum(e.evidence[c] for e in rest) for c in range(len(self.classes))]
            rows.append([f"({len(rest):,} more)", "", *map(_number, summed), ""])
        rows.append(["sum", "", *map(_number, self.log_joint), ""])
        rows.append(["probability", "", *(f"{p:.4f}" for p in self.probabilities), ""])
        return rows

    def __str__(self) -> str:
        head = self.head()
        table = [head, *self.lines()]
        widths = [max(len(row[i]) for row in table) for i in range(len(head))]
        numbers = range(2, len(head) - 1)
        text = [
            "  ".join(
                cell.rjust(w) if i in numbers else cell.ljust(w)
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        text.insert(1, "-" * max(map(len, text)))
        words = [line for e in self.entries if e.words for line in word_lines(e, self.classes)]
        return "\n".join([*text, *words, *(f"note: {note}" for note in self.notes)])

    def page(self, title: str) -> str:
        """The account as a page for a browser, that needs nothing but itself; the words of a text are shaded in it."""
        shades: dict[str, str] = {}
        body = self._html(shades)
        style = STYLE + "".join(f".{name}{{background:{shade}}}" for shade, name in shades.items())
        head = page_head(clean(title), f"style-src {by_digest(style)}")
        verdict = f"<h1>{html.escape(clean(title))}</h1>"
        return f"{head}<style>{style}</style>\n</head>\n<body>{verdict}{body}</body>\n</html>\n"

    def _repr_html_(self) -> str:
        return self._html(None)

    def _html(self, shades: dict[str, str] | None) -> str:
        cell = html.escape
        body = "".join("<tr>" + "".join(f"<td>{cell(text)}</td>" for text in row) + "</tr>" for row in self.lines())
        notes = "".join(f"<p>{cell(note)}</p>" for note in self.notes)
        texts = "".join(highlighted_html(e, self.classes, shades) for e in self.entries if e.words)
        texts = texts and _key_html(self.classes, shades) + texts
        top = "".join(f"<th>{cell(text)}</th>" for text in self.head())
        table = f'<table class="likely-ledger"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
        return f"{table}{texts}{notes}"


def by_digest(content: str) -> str:
    """A style or a script as a Content-Security-Policy names it: by what it holds."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def page_head(title: str, allowed: str) -> str:
    """The beginning of a page that fetches nothing: a browser refuses whatever is not `allowed`."""
    policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; {allowed}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n"
    )


def _headed(label: Any, weighed: bool) -> str:
    return f"for {_shown(label)}" if weighed else f"log P(·|{_shown(label)})"


def spoken(word: Word) -> tuple[int, float]:
    """The class a word speaks for most, and by how much more than for the average class."""
    best = max(range(len(word.evidence)), key=lambda c: word.evidence[c])
    finite = [e for e in word.evidence if e > -math.inf]
    return best, word.evidence[best] - (math.fsum(finite) / len(finite) if finite else 0.0)


def word_lines(entry: Entry, classes: Sequence[Any], most: int = WORDS_LISTED) -> list[str]:
    """The strongest words of a text, each with the class it speaks for."""
    lines = []
    for word in entry.words[:most]:
        best, weight = spoken(word)
        lines.append(f"  {clean(word.word):24} x{word.count:<4g} {_number(weight):>9} for {_shown(classes[best])}")
    return [f"{clean(entry.name)}: the words that spoke most", *lines] if lines else []


def marked(entry: Entry) -> list[tuple[str, Word | None]]:
    """The text of an entry, or its beginning, cut into pieces: each word that spoke with what it said."""
    text = _beginning(str(entry.values[0]))
    known = {word.word: word for word in entry.words}
    pieces, at = [], 0
    for found in re.finditer(r"\w\w+", text):
        word = known.get(found.group().lower(), known.get(found.group()))
        if word:
            pieces += [(text[at : found.start()], None), (found.group(), word)]
            at = found.end()
    return [*pieces, (text[at:], None)]


def _beginning(text: str) -> str:
    """The text if it is short, else its beginning, up to the end of a word."""
    if len(text) <= MOST_SHOWN:
        return text
    at = MOST_SHOWN
    while at and text[at - 1].isalnum() and text[at].isalnum():
        at -= 1
    return text[: at or MOST_SHOWN]


def cut_note(entry: Entry) -> str:
    """What of a text is not shown; empty if all of it is."""
    whole = len(str(entry.values[0]))
    shown = len(_beginning(str(entry.values[0])))
    if shown == whole:
        return ""
    return f"{clean(entry.name)}: the first {shown:,} of {whole:,} characters are shown; all of them were counted"


def highlighted_html(entry: Entry, classes: Sequence[Any], shades: dict[str, str] | None = None) -> str:
    """The text with its words shaded: the stronger a word speaks, the darker; its class is its hue and its tooltip.

    The shade stands in a style attribute, or is named in `shades` for a page that allows none. Of a long text, the
    beginning is shown and its strongest words are listed.
    """
    strongest = max((spoken(word)[1] for word in entry.words), default=0.0) or 1.0
    parts = []
    for piece, word in marked(entry):
        if word is None:
            parts.append(html.escape(clean_text(piece)))
            continue
        best, weight = spoken(word)
        look = _look(_shade(best, len(classes), max(weight, 0.0) / strongest), shades)
        title = html.escape(f"{_shown(classes[best])} {_number(weight)}", quote=True)
        parts.append(f'<span {look} title="{title}">{html.escape(clean_text(piece))}</span>')
    wrap = ' style="white-space:pre-wrap"' if shades is None else ""
    note = cut_note(entry)
    cut = f"<p>{html.escape(note)}</p>{_words_html(entry, classes)}" if note else ""
    return f'<p class="likely-text"{wrap}>{"".join(parts)}</p>{cut}'


def _shade(best: int, classes: int, strength: float) -> str:
    """The colour of a class, the darker the stronger."""
    return f"hsla({int(360 * best / max(classes, 1))}, 70%, 50%, {0.6 * strength:.2f})"


def _look(shade: str, shades: dict[str, str] | None) -> str:
    """A shade as a style, or as a class that is named in `shades`."""
    return f'style="background:{shade}"' if shades is None else f'class="{shades.setdefault(shade, f"w{len(shades)}")}"'


def _key_html(classes: Sequence[Any], shades: dict[str, str] | None) -> str:
    """Which colour stands for which class."""
    spans = [
        f"<span {_look(_shade(c, len(classes), 1.0), shades)}>{html.escape(_shown(label))}</span>"
        for c, label in enumerate(classes[:MOST_IN_KEY])
    ]
    more = f" … and {len(classes) - MOST_IN_KEY:,} more" if len(classes) > MOST_IN_KEY else ""
    said = "A word is shaded in the colour of the class it speaks for, the darker the stronger:"
    return f'<p class="likely-key">{said} {" ".join(spans)}{more}</p>'


def _words_html(entry: Entry, classes: Sequence[Any]) -> str:
    """The strongest words of a text as a table."""
    rows = []
    for word in entry.words[:MOST_WORDS]:
        best, weight = spoken(word)
        cells = (clean(word.word), f"{word.count:g}", f"{weight:.4f}", _shown(classes[best]))
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    said = f"the {len(rows)} of {len(entry.words):,} words that spoke most"
    head = "<tr><th>word</th><th>times</th><th>weight</th><th>for</th></tr>"
    return f'<table class="likely-ledger"><caption>{said}</caption>{head}{"".join(rows)}</table>'


def _remarks(entry: Entry) -> str:
    """The flags, and where columns are averaged over, how much this one matters."""
    matters = [] if entry.matters is None else [f"matters {entry.matters:.4f}"]
    return ", ".join([*entry.flags, *matters])


def _word(word: Word) -> dict[str, Any]:
    return {"word": word.word, "count": word.count, "evidence": [_finite(e) for e in word.evidence]}


def _contrast(evidence: Sequence[float], log_prior: Sequence[float]) -> list[float]:
    """Each class against the average of the others, weighed by the prior: zero where the cells say nothing."""
    shares = [math.exp(p) for p in log_prior]
    result = []
    for c, own in enumerate(evidence):
        rest = [(shares[k], evidence[k]) for k in range(len(evidence)) if k != c and shares[k] > 0]
        whole = math.fsum(share for share, _ in rest)
        top = max((e for _, e in rest), default=-math.inf)
        if not rest or whole == 0:
            result.append(0.0)
        elif top == -math.inf:
            result.append(0.0 if own == -math.inf else math.inf)
        else:
            mean = top + math.log(math.fsum(share * math.exp(e - top) for share, e in rest) / whole)
            result.append(own - mean)
    return result


def _range(evidence: Sequence[float]) -> float:
    spread = max(evidence) - min(evidence) if evidence and max(evidence) > -math.inf else 0.0
    return spread if not math.isnan(spread) else 0.0


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return _finite(value)
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


def _number(value: float) -> str:
    return "-inf" if value == -math.inf else f"{round(value, 4) + 0.0:.4f}"  # no minus before nothing


def _plainly(value: Any) -> str:
    """A value as a person writes it: no quotes, brackets or exponents; nothing for a missing cell."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ", ".join("–" if part is None else _plainly(part) for part in value)
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.12g}"
    return clean(str(value)[:41])


def _shown(value: Any) -> str:
    text = _plainly(value)
    return text if len(text) <= 40 else text[:39] + "…"


def clean_text(text: str) -> str:
    """Text of several lines without control characters."""
    return "\n".join(clean(line) for line in text.splitlines()) + ("\n" if text.endswith("\n") else "")


def clean(text: str) -> str:
    """Text without control characters: nothing in the data may drive a terminal."""
    return "".join(ch if ch.isprintable() else "�" for ch in text)


def merged_flags(flags: Mapping[str, Any]) -> tuple[str, ...]:
    """The flags that hold, in a fixed order."""
    return tuple(flag for flag in (UNSEEN, MISSING, FAR, ZERO) if flags.get(flag))
