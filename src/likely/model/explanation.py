"""Explanation of one row by a model: prior, contribution of each column to each class, and their sum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes import Posterior
from likely.engines.scorer import Scorer
from likely.families import Parameters
from likely.families.likelihoods import BinnedGaussian, BinnedTable, GaussianTerm, InteractionTable
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
from likely.schema import CATEGORY
from likely.sources import Batch
from likely.sources.row_access import cell

Array = NDArray[np.float64]
FAR_DEVIATIONS = 5.0


def account(
    scorer: Scorer,
    batch: Batch,
    curves: Sequence[Parameters],
    matters: Mapping[str, float | None],
    *,
    generative: bool = True,
) -> Ledger:
    """The ledger of a batch of one row; `curves` are the blocks before calibration, `matters` the probabilities of their arcs.

    Only a generative model has a log evidence.
    """
    classes, joint = scorer.schema.classes, scorer.log_joint(batch)
    posterior = Posterior(classes, joint, scorer.log_prior)
    entries = [] if scorer.bias is None else [Entry((CALIBRATION,), ("",), tuple(scorer.bias.tolist()))]
    entries += [_entry(scorer, batch, i, curves, matters) for i in scorer.order]
    notes = []
    if np.isneginf(joint).all():
        notes.append("every class has probability 0 for this row: only the class prior remains")
    zero = [str(c) for c, v in zip(classes, joint[0], strict=True) if v == -math.inf]
    if zero and len(zero) < len(classes):
        notes.append(f"without smoothing, a count of zero rules out: {', '.join(zero)}")
    evidence = float(posterior.log_evidence[0]) if generative else None
    return Ledger(
        scorer.schema.target.name, classes, tuple(scorer.log_prior.tolist()), tuple(entries), tuple(joint[0].tolist()),
        evidence, tuple(posterior.probabilities[0].tolist()), tuple(notes),
    )  # fmt: skip


def _entry(
    scorer: Scorer, batch: Batch, i: int, curves: Sequence[Parameters], matters: Mapping[str, float | None]
) -> Entry:
    parameters, term = scorer.parameters[i], scorer.term(batch, i)[0]
    form: Any = parameters.likelihood
    if isinstance(form, BinnedGaussian):
        return Entry((ALL_NUMBERS,), ("",), tuple(term.tolist()))
    values: list[Any] = []
    flags: dict[str, bool] = {}
    for name in parameters.columns:
        column = scorer.schema.by_name[name]
        value = cell(batch, column)
        values.append(value)
        flags[MISSING] = flags.get(MISSING, False) or value is None
        flags[UNSEEN] = flags.get(UNSEEN, False) or (
            column.kind == CATEGORY and value is not None and column.canonical(value) not in column.code
        )
    if values[0] is not None and not isinstance(form, InteractionTable):
        flags[FAR] = _far(curves[i].likelihood if curves else form, values[0])
    flags[ZERO] = bool(np.isneginf(term).any())
    words: tuple[Word, ...] = ()
    if i in scorer.texts:
        bags, missing = scorer.bags(batch, i)
        words = tuple(Word(word, count, tuple(terms.tolist())) for word, count, terms in form.details(bags))
        flags[UNSEEN] = not missing[0] and not words
    arc = matters.get(" with ".join(parameters.columns))
    return Entry(parameters.columns, tuple(values), tuple(term.tolist()), merged_flags(flags), words, arc)


def _far(form: Any, value: Any) -> bool:
    """Whether a number lies far from everything that was seen."""
    if isinstance(form, GaussianTerm):
        with np.errstate(over="ignore"):
            deviations = np.abs(value - form.mean) * np.sqrt(-2 * form.curve)
        return bool((deviations > FAR_DEVIATIONS).all())
    return isinstance(form, BinnedTable) and not form.low <= value <= form.high
