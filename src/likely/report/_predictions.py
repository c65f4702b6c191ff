"""Single predictions of a report: a waterfall from prior to posterior, and the changes that would alter them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from likely.engines.row_scorer import RowTerms
from likely.model.effects import Effect
from likely.model.ledger import Entry, Ledger, marked, shown, word_weight
from likely.model.model import Model
from likely.report._scored_rows import JudgedRows
from likely.sources import Batch, open_source
from likely.sources.row_access import cell, complete

MOST_EXAMPLES = 6
MOST_STEPS = 12  # of a waterfall; the others are summed
MOST_CHANGES = 5
VALUES_TRIED = 14  # for each column
COLUMNS_TRIED = 40  # those with the most evidence
MOST_TEXT = 1_500  # characters of a highlighted document


def chosen_rows(scored: JudgedRows) -> list[tuple[int, str]]:
    """Example rows: the most and the least certain, and the worst errors, each with the reason for its choice."""
    p, known = scored.probabilities, scored.known
    if not len(p):
        return []
    top = p.max(1)
    found: dict[int, str] = {}
    wrong = np.flatnonzero(known & (scored.predicted != scored.truth))
    for c in np.argsort(-np.bincount(scored.predicted, minlength=p.shape[1]), kind="stable").tolist()[:3]:
        mine = np.flatnonzero((scored.predicted == c) & (~known | (scored.predicted == scored.truth)))
        if len(mine):
            typical = mine[np.argsort(top[mine], kind="stable")[len(mine) // 2]]
            found.setdefault(int(typical), f"typical of {scored.model.classes[c]}")
    if len(wrong):
        found.setdefault(int(wrong[top[wrong].argmax()]), "the most confident error")
    found.setdefault(int(top.argmin()), "the least certain")
    found.setdefault(int(top.argmax()), "the most certain")
    return list(found.items())[:MOST_EXAMPLES]


def prediction(
    model: Model, number: int, one: Batch, effects: Mapping[str, Effect], *, why: str, truth: int | None
) -> dict[str, Any]:
    """One row: its cells, the steps from prior to posterior, and what would change the prediction."""
    terms = RowTerms.of(model.scorer, one)
    ledger = model.explained(terms)
    order = sorted(range(len(model.classes)), key=lambda c: -ledger.probabilities[c])
    best, second = order[0], order[1] if len(order) > 1 else order[0]
    steps = [_step(entry, best, second) for entry in ledger.entries]
    ranked = sorted(steps, key=lambda step: -abs(step["weight"] or 0.0))
    kept, rest = ranked[:MOST_STEPS], ranked[MOST_STEPS:]
    if rest:
        kept.append({"columns": [f"{len(rest)} more"], "value": "", "flags": [],
                     "weight": math.fsum(step["weight"] or 0.0 for step in rest)})  # fmt: skip
    return {
        "row": number + 1, "why": why, "label": str(ledger.label),
        "truth": None if truth is None else str(model.classes[truth]),
        "probabilities": {str(label): p for label, p in ledger.posterior.items()},
        "for": str(model.classes[best]), "against": str(model.classes[second]),
        "prior": ledger.log_prior[best] - ledger.log_prior[second], "steps": kept,
        "log_odds": ledger.log_joint[best] - ledger.log_joint[second],
        "terms": {entry.name: list(entry.evidence) for entry in ledger.entries},
        "values": {name: None if value is None else shown(value) for name, value in terms.cells.items()},
        "notes": list(ledger.notes), "changes": changes(model, terms.cells, best, effects), "texts": _texts(ledger),
    }  # fmt: skip


def _step(entry: Entry, best: int, second: int) -> dict[str, Any]:
    a, b = entry.evidence[best], entry.evidence[second]
    weight = a - b if math.isfinite(a) and math.isfinite(b) else (30.0 if a > b else -30.0 if a < b else 0.0)
    value = shown(entry.value).replace("\ufffd", " ")  # a text may have line breaks
    return {"columns": list(entry.columns), "value": value, "weight": weight, "flags": list(entry.flags)}


def changes(model: Model, cells: Mapping[str, Any], best: int, effects: Mapping[str, Effect]) -> list[dict[str, Any]]:
    """Changes of one cell that lower the probability of the predicted class most, one for each column.

    A part of a date is changed like a cell: the same month and hour on another weekday.
    """
    tried: list[tuple[str, Any, str]] = []
    for name, effect in sorted(effects.items(), key=lambda item: -item[1].span)[:COLUMNS_TRIED]:
        step = max(1, len(effect.values) // VALUES_TRIED)
        tried += [(name, effect.values[j], effect.labels[j]) for j in range(0, len(effect.values), step)]
        tried.append((name, None, "missing"))
    if not tried:
        return []
    table: dict[str, list[Any]] = {name: [value] * len(tried) for name, value in cells.items()}
    for i, (name, value, _) in enumerate(tried):
        table[name][i] = value
    source = open_source(table)  # not as the model reads: that would derive parts from a date that is not there
    kinds = {column.name: column.kind for column in model.schema.columns}
    batches = (complete(batch, model.schema.columns, source, "missing") for batch in source.batches(kinds))
    p = np.concatenate([model.posterior_of(batch).probabilities for batch in batches])
    found: dict[str, dict[str, Any]] = {}
    for i in np.argsort(p[:, best], kind="stable").tolist():
        name, _, label = tried[i]
        if name not in found:
            found[name] = {"column": name, "to": label, "label": str(model.classes[int(p[i].argmax())]),
                           "probability": float(p[i, best])}  # fmt: skip
    return list(found.values())[:MOST_CHANGES]


def _texts(ledger: Ledger) -> list[dict[str, Any]]:
    """The texts of a row, cut into pieces; each counted word has the class that it supports and the strength of it."""
    found = []
    for entry in ledger.entries:
        if not entry.words:
            continue
        strongest = max((word_weight(word)[1] for word in entry.words), default=0.0) or 1.0
        pieces: list[dict[str, Any]] = []
        length = 0
        for piece, word in marked(entry):
            if length > MOST_TEXT:
                break
            length += len(piece)
            best, weight = word_weight(word) if word else (-1, 0.0)
            pieces.append({"text": piece[:MOST_TEXT]} if word is None else {
                "text": piece, "class": best, "weight": weight, "strength": max(weight, 0.0) / strongest})  # fmt: skip
        found.append({"column": entry.name, "pieces": pieces, "cut": length > MOST_TEXT})
    return found


def rows_behind(
    scored: JudgedRows, cells: Mapping[tuple[int, int], Sequence[int]], rows: Mapping[int, Batch]
) -> list[dict[str, Any]]:
    """The rows behind the cells of the confusion matrix, with their values."""
    model = scored.model
    found = []
    for (truth, predicted), numbers in cells.items():
        shown_rows = [
            {"row": n + 1, "probability": float(scored.probabilities[n].max()),
             "values": {c.name: None if (v := cell(rows[n], c)) is None else shown(v) for c in model.schema.columns}}
            for n in numbers if n in rows
        ]  # fmt: skip
        found.append(
            {"truth": str(model.classes[truth]), "predicted": str(model.classes[predicted]), "rows": shown_rows}
        )
    return found
