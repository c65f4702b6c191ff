"""Explanation of one row by a model: prior, contribution of each column to each class, and their sum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes import Posterior
from likely.engines.row_scorer import RowTerms
from likely.engines.scorer import Scorer
from likely.families import Parameters
from likely.model.ledger import (
    ALL_NUMBERS,
    CALIBRATION,
    FAR,
    MISSING,
    UNSEEN,
    ZERO,
    Entry,
    Ledger,
    Word,
    merged_flags,
)
from likely.schema import CATEGORY, Column

Array = NDArray[np.float64]


def account(
    scorer: Scorer,
    row: RowTerms,
    curves: Sequence[Parameters],
    matters: Mapping[str, float | None],
    *,
    generative: bool = True,
) -> Ledger:
    """The ledger of one row; `curves` are the blocks before calibration, `matters` the probabilities of their arcs.

    Only a generative model has a log evidence.
    """
    classes, joint = scorer.schema.classes, row.joint
    posterior = Posterior(classes, joint[None], scorer.log_prior)
    entries = [] if scorer.bias is None else [Entry((CALIBRATION,), ("",), tuple(scorer.bias.tolist()))]
    entries += [_entry(scorer, row, i, curves, matters) for i in scorer.order]
    notes = []
    if np.isneginf(joint).all():
        notes.append("every class has probability 0 for this row: only the class prior remains")
    zero = [str(c) for c, v in zip(classes, joint, strict=True) if v == -math.inf]
    if zero and len(zero) < len(classes):
        notes.append(f"without smoothing, a count of zero rules out: {', '.join(zero)}")
    evidence = float(posterior.log_evidence[0]) if generative else None
    return Ledger(
        scorer.schema.target.name, classes, tuple(scorer.log_prior.tolist()), tuple(entries), tuple(joint.tolist()),
        evidence, tuple(posterior.probabilities[0].tolist()), tuple(notes),
    )  # fmt: skip


def _entry(
    scorer: Scorer, row: RowTerms, i: int, curves: Sequence[Parameters], matters: Mapping[str, float | None]
) -> Entry:
    columns, term = scorer.parameters[i].columns, row.terms[i]
    form: Any = scorer.parameters[i].likelihood
    if form.all_numbers:
        return Entry((ALL_NUMBERS,), ("",), tuple(term.tolist()))
    values = [row.cells[name] for name in columns]
    flags = {
        MISSING: any(value is None for value in values),
        UNSEEN: any(_unseen(scorer.schema.by_name[name], value) for name, value in zip(columns, values, strict=True)),
        ZERO: bool(np.isneginf(term).any()),
    }
    if values[0] is not None:
        # Interactions come after the blocks.
        flags[FAR] = (curves[i].likelihood if i < len(curves) else form).far(values[0])
    words = tuple(Word(word, count, tuple(terms.tolist())) for word, count, terms in row.words.get(i, ()))
    if i in row.words:
        flags[UNSEEN] = values[0] is not None and not words
    arc = matters.get(" with ".join(columns))
    return Entry(columns, tuple(values), tuple(term.tolist()), merged_flags(flags), words, arc)


def _unseen(column: Column, value: Any) -> bool:
    """Whether a category has a value that was never counted."""
    return column.kind == CATEGORY and value is not None and column.canonical(value) not in column.code
