"""Explanation of one row: the evidence of each column for each class, and their sum."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likely.plots.shown import frame, ruled, text_lines
from likely.plots.svg import Svg

UNSEEN, MISSING, FAR, ZERO, UNUSED = "unseen", "missing", "out of range", "zero", "unused"


@dataclass(frozen=True)
class Word:
    """Evidence of one word of a text: its count, and its contribution to each class."""

    word: str
    count: float
    evidence: tuple[float, ...]


MOST_SHOWN = 20_000  # characters of a text that are shown: of a longer one, its beginning and its strongest words
WORDS_LISTED = 12
ALL_NUMBERS = "(all numbers together)"  # stands where a column would: the joint Gaussians of all numbers
CALIBRATION = "(calibration)"  # stands where a column would: the bias that calibration gives to each class


@dataclass(frozen=True)
class Entry:
    """Evidence of one column or block: log P(cells | class) for every class."""

    columns: tuple[str, ...]
    values: tuple[Any, ...]
    evidence: tuple[float, ...]
    flags: tuple[str, ...] = ()
    words: tuple[Word, ...] = ()  # of a text, by decreasing range of their evidence
    matters: float | None = None  # posterior probability of its arc, if averaged over choices of columns

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
    """Explanation of one row, from `Model.explain`: prior, evidence and posterior. Its lines sum to the log joint, exactly.

    Attributes
    ----------
    target : str
        The column that is predicted.
    classes : tuple
        The labels.
    log_prior : tuple of float
        Log prior of each class.
    entries : tuple of Entry
        One entry a column, block or interaction, with its contribution to each class.
    log_joint : tuple of float
        Sum of log prior and contributions, for each class.
    log_evidence : float or None
        log P(row); None where the model is not generative.
    probabilities : tuple of float
        Posterior probability of each class.
    notes : tuple of str
        Remarks on the row.
    """

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
        return [shown(self.target), "value", *(_headed(label, weighed) for label in self.classes), "flags"]

    def lines(self, top: int | None = None) -> list[list[str]]:
        """The explanation as rows of text: name, value, contribution to each class, and remarks.

        Parameters
        ----------
        top : int or None, default=None
            Number of the strongest entries to show; the others are summed in one line, so that it still adds up.

        Returns
        -------
        list of list of str
            One list a line.
        """
        rows = [["prior", "", *map(number, self.log_prior), ""]]
        ranked = sorted(self.entries, key=lambda e: -_range(e.evidence))
        named = ranked if top is None else ranked[:top]
        rows += [[shown(e.name), shown(e.value), *map(number, e.evidence), _remarks(e)] for e in named]
        if rest := ranked[len(named) :]:
            summed = [math.fsum(e.evidence[c] for e in rest) for c in range(len(self.classes))]
            rows.append([f"({len(rest):,} more)", "", *map(number, summed), ""])
        rows.append(["sum", "", *map(number, self.log_joint), ""])
        rows.append(["probability", "", *(f"{p:.4f}" for p in self.probabilities), ""])
        return rows

    def __repr__(self) -> str:
        found = f"{shown(self.label)!r} with probability {self.posterior[self.label]:.4f}"
        return f"<Ledger of {shown(self.target)!r}: {found}, {len(self.entries)} entries>"

    def __str__(self) -> str:
        head = self.head()
        text = ruled(text_lines([head, *self.lines()], left=(0, 1, len(head) - 1)))
        words = [line for e in self.entries if e.words for line in word_lines(e, self.classes)]
        return "\n".join([*text, *words, *(f"note: {note}" for note in self.notes)])

    def to_pandas(self) -> Any:
        """One line a column or block, with its contribution to each class, as a pandas data frame; needs the extra `pandas`."""
        first: dict[str, Any] = {"column": "prior", "value": None}
        named = [(first, self.log_prior), *(({"column": e.name, "value": _plain(e.value)}, e.evidence) for e in self.entries)]
        return frame([row | dict(zip(map(str, self.classes), terms, strict=True)) for row, terms in named])

    def plot(self, label: Any = None, top: int = 12) -> Svg:
        """Waterfall from the prior to the posterior log-odds of a class against the most probable other one.

        Parameters
        ----------
        label : class or None, default=None
            The class; the most probable one by default.
        top : int, default=12
            Number of the strongest entries to show; the others are summed.

        Returns
        -------
        Svg
            A picture that notebooks show and `.save("x.svg")` writes; also .png and .pdf.
        """
        from likely.model.ledger_picture import waterfall

        return waterfall(self, label, top)

    def page(self, title: str) -> str:
        """The explanation as a self-contained HTML page; the words of a text are shaded in it.

        Parameters
        ----------
        title : str
            Title of the page.

        Returns
        -------
        str
            HTML.
        """
        from likely.model.ledger_page import ledger_page

        return ledger_page(self, title)

    def _repr_html_(self) -> str:
        from likely.model.ledger_page import ledger_html

        return ledger_html(self, None)


def _headed(label: Any, weighed: bool) -> str:
    return f"for {shown(label)}" if weighed else f"log P(·|{shown(label)})"


def word_weight(word: Word) -> tuple[int, float]:
    """The class that a word supports most, and its evidence for it beyond the average class."""
    best = max(range(len(word.evidence)), key=lambda c: word.evidence[c])
    finite = [e for e in word.evidence if e > -math.inf]
    return best, word.evidence[best] - (math.fsum(finite) / len(finite) if finite else 0.0)


def word_lines(entry: Entry, classes: Sequence[Any], most: int = WORDS_LISTED) -> list[str]:
    """The words of a text with the largest weights, each with the class it supports."""
    lines = []
    for word in entry.words[:most]:
        best, weight = word_weight(word)
        lines.append(f"  {clean(word.word):24} x{word.count:<4g} {number(weight):>9} for {shown(classes[best])}")
    return [f"{clean(entry.name)}: the words with the largest weights", *lines] if lines else []


def marked(entry: Entry) -> list[tuple[str, Word | None]]:
    """The text of an entry, or its beginning, cut into pieces; each word that was counted comes with its evidence."""
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
    """Note on the part of a text that is not shown; empty if all of it is."""
    whole = len(str(entry.values[0]))
    shown = len(_beginning(str(entry.values[0])))
    if shown == whole:
        return ""
    return f"{clean(entry.name)}: the first {shown:,} of {whole:,} characters are shown; all of them were counted"


def _remarks(entry: Entry) -> str:
    """The flags and, where columns are averaged over, the probability that this one depends on the class."""
    matters = [] if entry.matters is None else [f"matters {entry.matters:.4f}"]
    return ", ".join([*entry.flags, *matters])


def _word(word: Word) -> dict[str, Any]:
    return {"word": word.word, "count": word.count, "evidence": [_finite(e) for e in word.evidence]}


def _contrast(evidence: Sequence[float], log_prior: Sequence[float]) -> list[float]:
    """Each class against the average of the others, weighted by the prior; zero where all are equal."""
    shares = [math.exp(p) for p in log_prior]
    result = []
    for c, own in enumerate(evidence):
        rest = [(shares[k], evidence[k]) for k in range(len(evidence)) if k != c and shares[k] > 0]
        whole = math.fsum(share for share, _ in rest)
        top = max((e for _, e in rest), default=-math.inf)
        if not rest:
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


def number(value: float) -> str:
    """A number with four decimals."""
    return "-inf" if value == -math.inf else f"{round(value, 4) + 0.0:.4f}"  # no minus before nothing


def _plain_text(value: Any) -> str:
    """A value as plain text: no quotes, brackets or exponents; empty for a missing cell."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ", ".join("–" if part is None else _plain_text(part) for part in value)
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.12g}"
    return clean(str(value)[:41])


def shown(value: Any) -> str:
    """A value as text of at most 40 characters."""
    text = _plain_text(value)
    return text if len(text) <= 40 else text[:39] + "…"


def clean_text(text: str) -> str:
    """Text of several lines without control characters."""
    return "\n".join(clean(line) for line in text.splitlines()) + ("\n" if text.endswith("\n") else "")


def clean(text: str) -> str:
    """Text without control characters, which could send commands to a terminal."""
    return "".join(ch if ch.isprintable() else "�" for ch in text)


def merged_flags(flags: Mapping[str, Any]) -> tuple[str, ...]:
    """The flags that hold, in a fixed order."""
    return tuple(flag for flag in (UNSEEN, MISSING, FAR, ZERO) if flags.get(flag))
