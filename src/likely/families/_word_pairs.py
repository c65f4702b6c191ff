"""Pairs of neighbouring words for the second stage of text, counted from the documents that the statistic keeps.

The statistic itself counts words alone: it stays small, and it adds. Which pairs there are and what they are worth is derived
from the sample of documents, as interactions of columns are from the sample of rows; so models merge exactly, pairs or not. The
evidence of a pair is a ratio of its frequencies in the classes, and a sample of the documents has the same ratio.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from likely.families.document_sample import DocumentSample
from likely.families.word_counts import Words
from likely.tokenizer import Vocabulary

Ints = NDArray[np.int64]
FEWEST = 2  # different documents that a pair occurs in: most pairs occur in one


def joined(words: Words, pairs: Words, sample: DocumentSample | None = None) -> Words:
    """Words and pairs as the words of one table, the pairs last."""
    alone = words.vocabulary.keep(np.arange(len(words.vocabulary)))  # the pairs must not be added to the words of the tally
    vocabulary, _ = alone.union(pairs.vocabulary)
    return Words(vocabulary, np.concatenate([words.table, pairs.table]), words.documents, sample)


def sampled_pairs(words: Words) -> tuple[Words, Words] | None:
    """Pairs that at least two documents of the sample have, and words and pairs together with their sample; None without any.

    Left out of its own pairs, a document has those that two others have: the bags of the sample hold no other pairs. Copies of
    a document, which are left out together, are one document.
    """
    sample = words.sample
    if sample is None or not sample.ordered:
        return None
    pairs, owner, at, counts = _occurrences(sample, len(words.vocabulary))
    original = np.zeros(len(sample), bool)
    original[np.unique(sample.keys, return_index=True)[1]] = True
    frequency = np.bincount(at[original[owner]], minlength=len(pairs))
    if not (frequency > FEWEST).any():
        return None
    kept = np.flatnonzero(frequency >= FEWEST)
    number = np.full(len(pairs), -1)
    number[kept] = np.arange(len(kept))
    known = number[at] >= 0
    table = _table(sample, owner[known], number[at[known]], counts[known], (len(kept), words.classes))
    found = Words(_names(words.vocabulary, pairs[kept]), table, words.documents)
    others = frequency[at] > FEWEST
    bags = _extended(sample, owner[others], number[at[others]] + len(words.vocabulary), counts[others])
    return found, joined(words, found, bags)


def _occurrences(sample: DocumentSample, words: int) -> tuple[Ints, Ints, Ints, Ints]:
    """All pairs as first * words + second, and the document, pair and count of each occurrence, by document."""
    owner = np.repeat(np.arange(len(sample)), np.diff(sample.order_ends))
    first, second = sample.order[:-1].astype(np.int64), sample.order[1:].astype(np.int64)
    inside = (owner[1:] == owner[:-1]) & (first >= 0) & (second >= 0)
    pairs, place = np.unique(first[inside] * words + second[inside], return_inverse=True)
    cells, counts = np.unique(owner[:-1][inside] * max(len(pairs), 1) + place, return_counts=True)
    return pairs, cells // max(len(pairs), 1), cells % max(len(pairs), 1), counts


def _names(vocabulary: Vocabulary, pairs: Ints) -> Vocabulary:
    """The pairs as the tokenizer writes them: two words and a blank between."""
    ids, places = np.unique(np.concatenate(np.divmod(pairs, len(vocabulary))), return_inverse=True)
    names = vocabulary.keep(ids).words()
    first, second = places[: len(pairs)].tolist(), places[len(pairs) :].tolist()
    return Vocabulary.from_words(f"{names[a]} {names[b]}" for a, b in zip(first, second, strict=True))


def _table(sample: DocumentSample, owner: Ints, at: Ints, counts: Ints, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Sums of the logarithms of counts, and of documents, by pair and class."""
    pairs, classes = shape
    place, weight = at * classes + sample.labels[owner], sample.weights[owner]
    sums = [np.bincount(place, each, pairs * classes).reshape(shape) for each in (weight * np.log1p(counts), weight)]
    return np.concatenate(sums, axis=1)


def _extended(sample: DocumentSample, owner: Ints, ids: Ints, counts: Ints) -> DocumentSample:
    """The documents with these pairs as further words."""
    sizes = np.diff(sample.indptr)
    owners = np.concatenate([np.repeat(np.arange(len(sample)), sizes), owner])
    order = np.argsort(owners, kind="stable")
    ends = np.concatenate([[0], np.cumsum(sizes + np.bincount(owner, minlength=len(sample)))]).astype(np.int64)
    all_ids, all_counts = np.append(sample.ids, ids)[order], np.append(sample.counts, counts)[order]
    return replace(sample, indptr=ends, ids=all_ids.astype(np.int32), counts=all_counts.astype(np.int32))
