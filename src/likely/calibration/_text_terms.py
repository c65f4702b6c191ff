"""Evidence of text for the rows of the sample, each document left out of the word counts.

The samples of rows and of documents have the lowest keys, and a key is that of the complete row: so the documents that are
kept belong to the first of the rows that are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from likely.calibration._weight_fit import OWN_WEIGHTS, WEIGHT_STRENGTH, Problem
from likely.families.text_calibration import LeftOutDocuments
from likely.families.word_counts import Words
from likely.tally import Tally
from likely.tally.row_sample import Reservoir

Array = NDArray[np.float64]
Single = NDArray[np.float32]
SCALED_STRENGTH = 40.0  # ridge penalty of column weights towards a multiple of their values without text
FEWEST = 500  # rows with documents, or half of all rows: with fewer, text has weight one


def joined(
    sample: Reservoir, tally: Tally, documents: Mapping[str, LeftOutDocuments]
) -> tuple[NDArray[np.intp], dict[str, Single]]:
    """The rows whose documents are kept, and the evidence of these; nothing where they are too few."""
    known = np.ones(len(sample), bool)
    places: dict[str, NDArray[np.intp]] = {}
    for block, statistic in zip(tally.blocks, tally.statistics, strict=True):
        kept = documents.get(block.name)
        if kept is not None and isinstance(statistic, Words):
            at, own = _places(kept, sample, statistic, tally)
            places[block.name], known = at, known & own
    chosen = np.flatnonzero(known)
    if not places or not tally.documents_have_rows or len(chosen) < min(FEWEST, len(known) / 2):
        return chosen, {}
    return chosen, {name: documents[name].evidence(at[chosen], tally.classes) for name, at in places.items()}


def _places(
    kept: LeftOutDocuments, sample: Reservoir, words: Words, tally: Tally
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Index of the document of every row (-1: none), and whether that index is certain."""
    at, there = matched(kept, sample)
    documents, rows = float(words.documents.sum()), float(tally.classes.sum())
    if documents > (1.0 - 1e-9) * rows:  # every row has one: it was not kept
        return at, there
    complete = words.sample is not None and float(words.sample.weights.sum()) > (1.0 - 1e-9) * documents
    return np.where(there, at, -1), there | (complete & kept.complete) | (sample.keys < kept.keys[-1])


def matched(kept: LeftOutDocuments, sample: Reservoir) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Index of the document with the key and the label of each row, and whether there is one.

    Rows of equal cells have one key whatever their labels are, and a document is left out of the counts of its own class.
    """
    keys, number = np.unique(kept.keys, return_inverse=True)
    labels = int(max(kept.labels.max(), sample.labels.max())) + 1
    own = number * labels + kept.labels
    order = np.argsort(own, kind="stable")
    key = np.minimum(np.searchsorted(keys, sample.keys), len(keys) - 1)
    wanted = key * labels + sample.labels
    place = np.minimum(np.searchsorted(own[order], wanted), len(own) - 1)
    at = order[place]
    return at, (keys[key] == sample.keys) & (own[at] == wanted)


def text_weights(
    problem: Callable[[Sequence[Single], Array, Array], Problem],
    evidence: Sequence[Single],
    texts: Sequence[Single],
    *,
    weights: Array,
    bias: Array,
) -> tuple[Array, Array]:
    """Weights of the terms and then of the texts, and biases.

    Text and columns may be redundant. The weights of the columns are penalised towards one multiple of their values without
    text, so that columns and tables keep the information of all rows.

    Parameters
    ----------
    problem : callable
        Problem of some evidence, with the centre and the strength of the ridge penalty of each weight.
    evidence, texts : list of arrays, rows × classes
        Evidence of the terms and of the texts.
    weights, bias : array
        Those of the terms without text.
    """
    summed = np.zeros_like(texts[0])
    for weight, each in zip(weights.tolist(), evidence, strict=True):
        summed += np.float32(weight) * each
    ones, terms = np.ones(1 + len(texts)), len(evidence)
    scale, bias = problem([summed, *texts], ones, WEIGHT_STRENGTH * ones).solve(ones, bias)
    found = np.append(scale[0] * weights, scale[1:])
    if terms <= OWN_WEIGHTS:
        centre = np.append(found[:terms], ones[1:])
        strength = np.append(np.full(terms, SCALED_STRENGTH), WEIGHT_STRENGTH * ones[1:])
        found, bias = problem([*evidence, *texts], centre, strength).solve(found, bias)
    return found, bias
