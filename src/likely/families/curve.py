"""What a word is worth: a curve of evidence, learned by leaving each document out of what was counted.

Plain Naive Bayes says that a word is worth the logarithm of how much more often it occurs in a class. That is too much:
words come in bursts and repeat each other. The curve keeps the logarithm as its argument and learns its height, rising,
for rare and for frequent words, together with how much a long document may add up to and a bias for each class. All of
it is fitted by the likelihood of the labels when each document's own words are taken out of the counts, so nothing need
be held back.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.base import log
from likely.families.sample import Sample
from likely.families.statistics import Array
from likely.families.text import Text, ranked
from likely.families.words import Words
from likely.fitting import minimise
from likely.tokens import Bags, weighing

IMAGINED = 0.25  # of a word's own rate, in the class and in the rest
BITS = 1.5  # between knots of the curve, in bits of the ratio
OCTAVES = 3.0  # between knots of document frequency
EXPONENT, EXPONENT_STRENGTH = 2.0 / 3.0, 10.0  # the prior of how documents of different length compare
STRENGTH = 1.0  # of the prior that a word is worth its logarithm, and a class its share
ITERATIONS = 60
LARGEST = 40_000_000  # cells of features: fewer documents are looked at where classes are many
LN2 = float(np.log(2.0))


@dataclass(frozen=True, eq=False)
class Curve:
    """The heights of the curve at its knots, the exponent of length, and the bias of each class."""

    heights: Array  # frequencies × ratios
    bias: Array
    exponent: float
    low: float  # the ratio, in bits, of the first knot
    documents: float  # how many there were when the curve was fitted: more now, and it is stale

    def arrays(self) -> dict[str, Array]:
        """The numbers themselves, by name."""
        scalars = np.array([self.exponent, self.low, self.documents])
        return {"heights": self.heights, "bias": self.bias, "scalars": scalars}

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Curve:
        """The curve that `arrays` was taken from."""
        exponent, low, documents = arrays["scalars"].tolist()
        heights, bias = arrays["heights"], arrays["bias"]
        if heights.ndim != 2 or min(heights.shape) < 2 or bias.ndim != 1:
            raise ValueError("the curve of evidence has the wrong shape")
        return cls(heights, bias, exponent, low, documents)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Curve):
            return NotImplemented
        pairs = zip(self.arrays().values(), other.arrays().values(), strict=True)
        return all(np.array_equal(a, b) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    def form(self, family: Any, words: Any, log_prior: Array) -> Weighed:
        """The form that scores documents by this curve."""
        return Weighed(family, words, self, log_prior)


@dataclass(frozen=True, eq=False)
class Weighed:
    """A line in the words of a document, each worth what the curve says, all together tempered by the length."""

    family: Text
    words: Words
    curve: Curve
    log_prior: Array

    def weights(self, ids: NDArray[Any]) -> Array:
        """What one unit of each of these words adds to each class, before the length is looked at."""
        seen, held = self.words.seen[ids], self.words.holders[ids].sum(1)
        share = np.clip(self.words.total / max(float(self.words.total.sum()), 1e-300), 1e-9, 1.0 - 1e-9)
        everywhere = seen.sum(1, keepdims=True)
        rest = np.maximum(everywhere - seen, 0.0) / (1.0 - share)
        prior = IMAGINED * np.maximum(everywhere, 1e-300)
        tall, wide = self.curve.heights.shape
        u = (np.log2((seen / share + prior) / (rest + prior)) - self.curve.low) / BITS
        u = np.clip(u, 0.0, wide - 1.0001)
        t = np.clip(np.log2(np.maximum(held, 1.0)) / OCTAVES, 0.0, tall - 1.0001)
        g, h = t.astype(np.int64)[:, None], u.astype(np.int64)
        at_g, at_h = t[:, None] - g, u - h
        heights = self.curve.heights
        near = heights[g, h] * (1 - at_h) + heights[g, h + 1] * at_h
        far = heights[g + 1, h] * (1 - at_h) + heights[g + 1, h + 1] * at_h
        return np.where(everywhere > 0, near * (1 - at_g) + far * at_g, 0.0)

    @cached_property
    def table(self) -> Array:
        """What each word adds to each class."""
        size, step = len(self.words.vocabulary), 1 << 15
        table = np.empty((size, self.words.classes))
        for a in range(0, size, step):
            table[a : a + step] = self.weights(np.arange(a, min(a + step, size)))
        return table

    def _tempered(self, bags: Bags, values: Array) -> Array:
        """By how much the sum over each document's known words is scaled; 0 where it knows none."""
        few = len(bags.ids) < len(self.words.vocabulary)
        known = self.words.table[bags.ids].any(1) if few else np.asarray(self.words.table.any(1))[bags.ids]
        owner = np.repeat(np.arange(len(bags)), np.diff(bags.indptr))
        length = np.bincount(owner, values * known, len(bags))
        return np.where(length > 0, np.maximum(length, 1e-300) ** -self.curve.exponent, 0.0)

    def terms(self, bags: Bags, missing: NDArray[np.bool_]) -> Array:
        """The tempered sum over the words of each document; one of unknown words only, or missing, adds nothing."""
        out = np.zeros((len(bags), self.words.classes))
        values = self.family.values(bags)
        if len(bags.ids) < len(self.words.vocabulary) // 8 and "table" not in self.__dict__:
            distinct, ids = np.unique(bags.ids, return_inverse=True)
            weighing.score_words(ids.astype(np.int32), bags.indptr, values, self.weights(distinct), out)
        else:
            weighing.score_words(bags.ids, bags.indptr, values, self.table, out)
        scale = self._tempered(bags, values)[:, None]
        silent = missing[:, None] | (scale == 0)
        # The biases were fitted in the place of the class prior, which the posterior will add.
        return np.where(silent, 0.0, out * scale + self.curve.bias - np.maximum(self.log_prior, -1e6))

    def details(self, bags: Bags) -> list[tuple[str, float, Array]]:
        """Every word of one document with its number and what it adds to each class, the strongest first."""
        values = self.family.values(bags)
        scale = self._tempered(bags, values)[0] if len(bags) else 0.0
        return ranked(self.words.vocabulary, bags, self.weights(bags.ids) * (values * scale)[:, None])


def fit_curve(family: Any, words: Words) -> Curve | None:
    """The curve under which the labels of the sample are most likely, each document left out; None without documents."""
    classes, sample = words.classes, words.sample
    documents = float(words.documents.sum())
    if classes < 2 or sample is None or len(sample) < 2 or not (words.total > 0).any():
        return None
    share = np.clip(words.total / max(float(words.total.sum()), 1e-300), 1e-9, 1 - 1e-9)
    low = float(np.log2(IMAGINED / (1 + IMAGINED)))
    high = float(np.log2((1 / share[words.total > 0].min() + IMAGINED) / IMAGINED))
    wide = int(np.ceil((high - low) / BITS)) + 1
    tall = int(np.ceil(np.log2(max(documents, 2.0)) / OCTAVES)) + 1
    sample = sample.take(np.arange(min(len(sample), max(50, LARGEST // (classes * wide * tall)))))
    features, length = _features(family, words, sample, low, (tall, wide))
    start = np.full((tall, wide - 1), BITS * LN2)
    heights, bias, exponent = _fit(
        features, length, sample.labels, sample.weights, start, log(words.documents / documents)
    )
    heights = np.concatenate([np.zeros((tall, 1)), heights.cumsum(1)], axis=1)
    return Curve(heights, bias, exponent, low, documents)


def _features(family: Text, words: Words, sample: Sample, low: float, knots: tuple[int, int]) -> tuple[Any, Array]:
    """How much of each document lies at each knot for each class, slab by slab on all cores."""
    documents = len(sample)
    features = np.zeros((documents, words.classes, *knots), dtype=np.float32)
    length = np.zeros(documents)
    holders, seen = words.holders.sum(1), words.seen
    bags = Bags(sample.indptr, sample.ids, sample.counts, np.zeros(documents, np.int64), words.vocabulary)
    values = family.values(bags)

    def work(part: tuple[int, int]) -> None:
        a, b = part
        i, j = sample.indptr[a], sample.indptr[b]
        weighing.left_out(
            sample.ids[i:j], sample.indptr[a : b + 1] - i, values[i:j], sample.labels[a:b], seen, holders, words.total,
            low, BITS, OCTAVES, IMAGINED, features[a:b], length[a:b],
        )  # fmt: skip

    parts = [(a, min(a + 256, documents)) for a in range(0, documents, 256)]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(work, parts))
    return np.ascontiguousarray(features[..., 1:]).reshape(documents, words.classes, -1), length


def _fit(
    features: NDArray[np.float32], length: Array, labels: NDArray[Any], weights: Array, start: Array, log_prior: Array
) -> tuple[Array, Array, float]:
    """Heights, biases and exponent by penalised conditional likelihood: s = (F · heights) / length^exponent + bias."""
    n, classes, knots = features.shape
    logs = np.where(length > 0, np.log(np.maximum(length, 1e-9)), 0.0)
    middle = float(np.average(logs, weights=weights))
    flat = features.reshape(n * classes, knots)
    scaled = np.exp(-EXPONENT * logs)
    square = np.einsum("nck,nck,n->k", features, features, scaled * scaled * weights, optimize=True)
    mean = np.einsum("nck,n->k", features, scaled * weights, optimize=True)
    cells = weights.sum() * classes
    spread = np.sqrt(np.maximum(square / cells - (mean / cells) ** 2, 0.0))
    # A knot that hardly any word comes near has no scale of its own: it stays by the prior.
    spread = np.maximum(spread, 0.2 * float(np.median(spread[spread > 0])) if (spread > 0).any() else 1.0)
    centre = start.reshape(-1) * spread
    rows = np.arange(n)
    base = np.maximum(log_prior, -20.0)

    def objective(q: Array) -> tuple[float, Array]:
        u, shift, exponent = q[:knots], q[knots:-1], q[-1]
        temper = np.exp(-exponent * (logs - middle) - EXPONENT * middle)
        summed = (flat @ (u / spread).astype(np.float32)).reshape(n, classes).astype(np.float64) * temper[:, None]
        score = summed + base + shift
        top = score.max(1, keepdims=True)
        grown = np.exp(score - top)
        whole = grown.sum(1, keepdims=True)
        lost = grown / whole
        loss = weights @ (top[:, 0] + np.log(whole[:, 0]) - score[rows, labels])
        lost[rows, labels] -= 1.0
        lost *= weights[:, None]
        back = flat.T @ (lost * temper[:, None]).astype(np.float32).reshape(-1)
        gradient = np.concatenate([
            back / spread + 2 * STRENGTH * (u - centre),
            lost.sum(0) + 2 * STRENGTH * shift,
            [-(lost * summed).sum(1) @ (logs - middle) + 2 * EXPONENT_STRENGTH * (exponent - EXPONENT)],
        ])  # fmt: skip
        loss += (
            STRENGTH * ((u - centre) @ (u - centre) + shift @ shift) + EXPONENT_STRENGTH * (exponent - EXPONENT) ** 2
        )
        return float(loss) / weights.sum(), gradient / weights.sum()

    lower = np.concatenate([np.zeros(knots), np.full(classes, -np.inf), [0.0]])
    upper = np.concatenate([np.full(knots + classes, np.inf), [1.0]])
    found, _ = minimise(
        objective, np.concatenate([centre, np.zeros(classes), [EXPONENT]]), lower, upper, iterations=ITERATIONS
    )
    exponent = float(found[-1])
    heights = found[:knots] / spread * np.exp((exponent - EXPONENT) * middle)
    return heights.reshape(start.shape), found[knots:-1] + base, exponent
