"""Second stage of text: calibrated word weights, fitted by leave-one-out.

In plain naive Bayes the weight of a word is its log ratio, the logarithm of its frequency in a class over that in the others.
That is too large: words come in bursts and are redundant. The calibration maps the log ratio to a weight by a monotone
piecewise linear curve, for rare and for frequent words, with an exponent of document length and a bias for each class. The
sum of a document may be scaled by its size (see `text_saturation`). All of it is fitted by the conditional likelihood of the
labels with each document left out of the counts (see `text_curve_fit`), so no data need be held out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families._text import Text
from likely.families._text_saturation import Saturation
from likely.families._word_pairs import joined
from likely.families.bag_of_words import ranked
from likely.families.base import log
from likely.families.likelihood_form import TextForm
from likely.families.statistics import Array
from likely.families.word_counts import Words
from likely.kernels.parallel import cached_property
from likely.tokenizer import Bags, Vocabulary, word_loops

PSEUDOCOUNT = 0.25  # of a word, relative to its overall rate, in the class and in the others
BITS = 1.5  # between knots of the curve, in bits of the log ratio
OCTAVES = 3.0  # between knots of document frequency


@dataclass(frozen=True, eq=False)
class TextCalibration:
    """Calibrated word weights: curve heights at the knots, exponent of length, class biases, and residuals.

    `residuals` has, for every word and class, the sum of the residuals of the documents that have it under the curve alone;
    `residual_weights` are their weights, for rare and for frequent words.
    """

    heights: Array  # document frequencies × log ratios
    bias: Array
    exponent: float
    low: float  # log ratio, in bits, of the first knot
    documents: float  # number at fitting time; if it differs now, the calibration is stale
    residual_weights: Array
    residuals: Array
    vocabulary: Vocabulary  # of the words in `residuals`
    copies: Array | None = None  # mean number of copies of a document by class at fitting time; None: one
    pairs: Words | None = None  # pairs of words that are scored like words, from the sample of documents
    saturation: Saturation | None = None  # scale of the sum of a document by its size; None: one

    def arrays(self, words: Words) -> dict[str, NDArray[Any]]:
        """The arrays by name; the residuals in the order in which the words are written."""
        alive = words.vocabulary.keep(np.flatnonzero(words.table.any(1)))
        residuals = self.residuals_at(alive, np.arange(len(alive))).astype(np.float64)
        scalars = np.array([self.exponent, self.low, self.documents])
        return {
            "heights": self.heights,
            "bias": self.bias,
            "steps": self.residual_weights,
            "surprise": residuals,
            "scalars": scalars,
            **({} if self.copies is None else {"copies": self.copies}),
            **({} if self.saturation is None else {"saturation": self.saturation.array}),
            **({} if self.pairs is None else self._pair_arrays(self.pairs)),
        }

    def _pair_arrays(self, pairs: Words) -> dict[str, NDArray[Any]]:
        own = pairs.arrays()
        residuals = self.residuals_at(pairs.vocabulary, np.arange(len(pairs.vocabulary)))
        return {**{f"pair_{name}": own[name] for name in ("buffer", "offsets", "table")}, "pair_surprise": residuals}

    @classmethod
    def of(cls, arrays: Mapping[str, Array], words: Any) -> TextCalibration:
        """The calibration from its arrays, in the vocabulary it was written with."""
        exponent, low, documents = arrays["scalars"].tolist()
        heights, bias, steps, residuals = (arrays[name] for name in ("heights", "bias", "steps", "surprise"))
        sound = heights.ndim == 2 and min(heights.shape) >= 2 and steps.shape == heights.shape[:1]
        if not sound or bias.shape != (words.classes,) or residuals.shape != (len(words.vocabulary), words.classes):
            raise ValueError("the curve of evidence has the wrong shape")
        vocabulary, pairs = words.vocabulary, None
        if "pair_table" in arrays:
            own = {name: arrays[f"pair_{name}"] for name in ("buffer", "offsets", "table")}
            pairs = Words.of({**own, "documents": words.documents})
            vocabulary = joined(words, pairs).vocabulary
            residuals = np.concatenate([residuals, arrays["pair_surprise"]])
        return cls(
            heights, bias, exponent, low, documents, residual_weights=steps, residuals=residuals,
            vocabulary=vocabulary, copies=arrays.get("copies"), pairs=pairs,
            saturation=Saturation(*arrays["saturation"].tolist()) if "saturation" in arrays else None,
        )  # fmt: skip

    def residuals_at(self, vocabulary: Vocabulary, ids: NDArray[Any]) -> Array:
        """Residuals of some words of a vocabulary; 0 for a word that was learned later."""
        known = len(self.vocabulary)
        if not vocabulary.shares_numbers(self.vocabulary):
            ids = self.vocabulary.find_all(vocabulary.keep(ids))
        there = (ids >= 0) & (ids < known)
        found = np.zeros((len(ids), self.residuals.shape[1]))
        found[there] = self.residuals[ids[there]]
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TextCalibration):
            return NotImplemented
        same = all(np.array_equal(getattr(self, n), getattr(other, n)) for n in ("heights", "bias", "residual_weights"))
        own, others = ((c.exponent, c.low, c.documents, c.saturation) for c in (self, other))
        return same and own == others and np.isclose(np.abs(self.residuals).sum(), np.abs(other.residuals).sum())

    __hash__ = None  # type: ignore[assignment]

    def likelihood(self, family: Any, words: Any, log_prior: Array) -> CalibratedTextTerm:
        """Likelihood term that scores documents by this calibration."""
        if self.pairs is not None:
            family, words = replace(family, ngrams=(1, 2)), joined(words, self.pairs)
        return CalibratedTextTerm(family, words, self, log_prior)


@dataclass(frozen=True, eq=False)
class CalibratedTextTerm(TextForm):
    """Weighted sum over the words of a document, scaled by its length, plus a bias."""

    idf = None
    family: Text
    words: Words
    curve: TextCalibration
    log_prior: Array
    weight: float = 1.0  # of the text beside other columns

    def weights(self, ids: NDArray[Any]) -> Array:
        """Weight of one unit of each of these words for each class, before scaling by the length."""
        seen, held, total = self.words.seen_of(ids), self.words.holders_of(ids), self.words.total
        if self.curve.copies is not None:
            seen, held, total = (counted / self.curve.copies for counted in (seen, held, total))
        held = held.sum(1)
        share = np.clip(total / max(float(total.sum()), 1e-300), 1e-9, 1.0 - 1e-9)
        everywhere = seen.sum(1, keepdims=True)
        rest = np.maximum(everywhere - seen, 0.0) / (1.0 - share)
        prior = PSEUDOCOUNT * np.maximum(everywhere, 1e-300)
        tall, wide = self.curve.heights.shape
        u = (np.log2((seen / share + prior) / (rest + prior)) - self.curve.low) / BITS
        u = np.clip(u, 0.0, wide - 1.0001)
        t = np.clip(np.log2(np.maximum(held, 1.0)) / OCTAVES, 0.0, tall - 1.0001)
        g, h = t.astype(np.int64)[:, None], u.astype(np.int64)
        at_g, at_h = t[:, None] - g, u - h
        heights, steps = self.curve.heights, self.curve.residual_weights
        near = heights[g, h] * (1 - at_h) + heights[g, h + 1] * at_h
        far = heights[g + 1, h] * (1 - at_h) + heights[g + 1, h + 1] * at_h
        residual_weight = steps[g] * (1 - at_g) + steps[g + 1] * at_g
        residuals = residual_weight * self.curve.residuals_at(self.words.vocabulary, ids)
        return np.where(everywhere > 0, near * (1 - at_g) + far * at_g + residuals, 0.0)

    @cached_property
    def table(self) -> Array:
        """Weight of each word for each class."""
        size, step = len(self.words.vocabulary), 1 << 15
        table = np.empty((size, self.words.classes))
        for a in range(0, size, step):
            table[a : a + step] = self.weights(np.arange(a, min(a + step, size)))
        return table

    def _scales(self, bags: Bags, values: Array) -> Array:
        """Scale of the sum over each document's known words; 0 where it has none."""
        few = len(bags.ids) < len(self.words.vocabulary)
        known = self.words.rows(bags.ids).any(1) if few else np.asarray(self.words.table.any(1))[bags.ids]
        owner = np.repeat(np.arange(len(bags)), np.diff(bags.indptr))
        length = np.bincount(owner, values * known, len(bags))
        return np.where(length > 0, np.maximum(length, 1e-300) ** -self.curve.exponent, 0.0)

    def terms(self, bags: Bags, missing: NDArray[np.bool_]) -> Array:
        """Scaled sum over the words of each document; 0 for a missing one or one without known words."""
        out = np.zeros((len(bags), self.words.classes))
        values = self.family.values(bags)
        if len(bags.ids) < len(self.words.vocabulary) // 8 and "table" not in self.__dict__:
            distinct, ids = np.unique(bags.ids, return_inverse=True)
            word_loops.score_words(ids.astype(np.int32), bags.indptr, values, self.weights(distinct), out)
        else:
            word_loops.score_words(bags.ids, bags.indptr, values, self.table, out)
        scale = self._scales(bags, values)[:, None]
        empty = missing[:, None] | (scale == 0)
        out = self._saturated(out * scale)
        # The fitted biases include the class prior without copies, which the posterior adds again.
        fitted = self.curve.bias + (0.0 if self.curve.copies is None else np.log(self.curve.copies))
        return np.where(empty, 0.0, self.weight * (out + fitted - np.maximum(self.log_prior, -1e6)))

    def weighted(self, weight: float) -> CalibratedTextTerm:
        """The same term with this weight beside other columns."""
        return replace(self, weight=weight)

    def _saturated(self, sums: Array) -> Array:
        """Sums of documents × classes, scaled by saturation."""
        return sums if self.curve.saturation is None else sums * self.curve.saturation.scale(sums)[:, None]

    def details(self, bags: Bags) -> list[tuple[str, float, Array]]:
        """Every word of one document with its count and its term for each class, the strongest first."""
        values = self.family.values(bags)
        terms = self.weights(bags.ids) * (values * (self._scales(bags, values)[0] if len(bags) else 0.0))[:, None]
        if self.curve.saturation is not None:
            terms = terms * self.curve.saturation.scale(terms.sum(0)[None])
        return ranked(self.words.vocabulary, bags, self.weight * terms)


@dataclass(frozen=True, eq=False)
class LeftOutDocuments:
    """Leave-one-out scores of the documents of the sample."""

    keys: NDArray[np.int64]  # rising
    labels: NDArray[np.int64]
    scores: NDArray[np.float32]  # documents × classes, with the bias of each class
    empty: NDArray[np.bool_]  # documents without a word that others have
    complete: bool  # whether these are all documents of the sample
    copies: Array | None  # mean number of copies of a document by class

    def evidence(self, places: NDArray[Any], classes: Array) -> NDArray[np.float32]:
        """Evidence of some documents beyond the class frequencies; a place of -1 is a missing one."""
        seen = classes if self.copies is None else classes / self.copies
        log_prior = np.maximum(log(seen / seen.sum()), -20.0)
        evidence: NDArray[np.float32] = self.scores[places] - log_prior.astype(np.float32)
        evidence[(places < 0) | self.empty[places]] = 0.0
        return evidence
