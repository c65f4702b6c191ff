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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.base import log
from likely.families.sample import Sample
from likely.families.statistics import Array
from likely.families.text import Text, ranked
from likely.families.words import Words
from likely.fitting import minimise
from likely.kernels import LARGE
from likely.threads import cached_property
from likely.tokens import Bags, Vocabulary, weighing

IMAGINED = 0.25  # of a word's own rate, in the class and in the rest
BITS = 1.5  # between knots of the curve, in bits of the ratio
OCTAVES = 3.0  # between knots of document frequency
EXPONENT, EXPONENT_STRENGTH = 2.0 / 3.0, 10.0  # the prior of how documents of different length compare
STRENGTH = 1.0  # of the prior that a word is worth its logarithm, and a class its share
ITERATIONS = 40
HEAVIEST = 1e15  # weight of a document: the features are float32, and would overflow far above it
LARGEST = 8_000_000  # cells of features: fewer documents are looked at where classes are many
LN2 = float(np.log(2.0))


@dataclass(frozen=True, eq=False)
class Curve:
    """The heights of the curve at its knots, the exponent of length, the bias of each class, and what still surprised.

    `surprise` has, for every word and class, how much more (or less) of the word there was than the curve expected;
    `steps` says, for rare and for frequent words, how much of that is believed.
    """

    heights: Array  # frequencies × ratios
    bias: Array
    exponent: float
    low: float  # the ratio, in bits, of the first knot
    documents: float  # how many there were when the curve was fitted: more now, and it is stale
    steps: Array
    surprise: Array
    vocabulary: Vocabulary  # of the words in `surprise`
    copies: Array | None = None  # of a document, in the mean of each class, when this was fitted; None: one

    def arrays(self, words: Words) -> dict[str, NDArray[Any]]:
        """The numbers themselves, by name; the surprise in the order in which the words are written."""
        alive = words.vocabulary.keep(np.flatnonzero(words.table.any(1)))
        surprise = self.surprise_at(alive, np.arange(len(alive))).astype(np.float64)
        scalars = np.array([self.exponent, self.low, self.documents])
        return {
            "heights": self.heights,
            "bias": self.bias,
            "steps": self.steps,
            "surprise": surprise,
            "scalars": scalars,
            **({} if self.copies is None else {"copies": self.copies}),
        }

    @classmethod
    def of(cls, arrays: Mapping[str, Array], words: Any) -> Curve:
        """The curve that `arrays` was taken from, in the vocabulary it was written with."""
        exponent, low, documents = arrays["scalars"].tolist()
        heights, bias, steps, surprise = (arrays[name] for name in ("heights", "bias", "steps", "surprise"))
        sound = heights.ndim == 2 and min(heights.shape) >= 2 and steps.shape == heights.shape[:1]
        if not sound or bias.shape != (words.classes,) or surprise.shape != (len(words.vocabulary), words.classes):
            raise ValueError("the curve of evidence has the wrong shape")
        return cls(heights, bias, exponent, low, documents, steps, surprise, words.vocabulary, arrays.get("copies"))

    def surprise_at(self, vocabulary: Vocabulary, ids: NDArray[Any]) -> Array:
        """The surprise at some words of a vocabulary; a word that came later has surprised nobody yet."""
        known = len(self.vocabulary)
        if not vocabulary.shares_numbers(self.vocabulary):
            ids = self.vocabulary.find_all(vocabulary.keep(ids))
        there = (ids >= 0) & (ids < known)
        found = np.zeros((len(ids), self.surprise.shape[1]))
        found[there] = self.surprise[ids[there]]
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Curve):
            return NotImplemented
        same = all(np.array_equal(getattr(self, n), getattr(other, n)) for n in ("heights", "bias", "steps"))
        numbers = (self.exponent, self.low, self.documents) == (other.exponent, other.low, other.documents)
        return same and numbers and np.isclose(np.abs(self.surprise).sum(), np.abs(other.surprise).sum())

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
    weight: float = 1.0  # with which the text enters beside other columns

    def weights(self, ids: NDArray[Any]) -> Array:
        """What one unit of each of these words adds to each class, before the length is looked at."""
        seen, held, total = self.words.seen_of(ids), self.words.holders_of(ids), self.words.total
        if self.curve.copies is not None:
            seen, held, total = (counted / self.curve.copies for counted in (seen, held, total))
        held = held.sum(1)
        share = np.clip(total / max(float(total.sum()), 1e-300), 1e-9, 1.0 - 1e-9)
        everywhere = seen.sum(1, keepdims=True)
        rest = np.maximum(everywhere - seen, 0.0) / (1.0 - share)
        prior = IMAGINED * np.maximum(everywhere, 1e-300)
        tall, wide = self.curve.heights.shape
        u = (np.log2((seen / share + prior) / (rest + prior)) - self.curve.low) / BITS
        u = np.clip(u, 0.0, wide - 1.0001)
        t = np.clip(np.log2(np.maximum(held, 1.0)) / OCTAVES, 0.0, tall - 1.0001)
        g, h = t.astype(np.int64)[:, None], u.astype(np.int64)
        at_g, at_h = t[:, None] - g, u - h
        heights, steps = self.curve.heights, self.curve.steps
        near = heights[g, h] * (1 - at_h) + heights[g, h + 1] * at_h
        far = heights[g + 1, h] * (1 - at_h) + heights[g + 1, h + 1] * at_h
        believed = steps[g] * (1 - at_g) + steps[g + 1] * at_g
        surprise = believed * self.curve.surprise_at(self.words.vocabulary, ids)
        return np.where(everywhere > 0, near * (1 - at_g) + far * at_g + surprise, 0.0)

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
        known = self.words.rows(bags.ids).any(1) if few else np.asarray(self.words.table.any(1))[bags.ids]
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
        # The biases were fitted in the place of the class prior without copies; the posterior will add the prior.
        fitted = self.curve.bias + (0.0 if self.curve.copies is None else np.log(self.curve.copies))
        return np.where(silent, 0.0, self.weight * (out * scale + fitted - np.maximum(self.log_prior, -1e6)))

    def details(self, bags: Bags) -> list[tuple[str, float, Array]]:
        """Every word of one document with its number and what it adds to each class, the strongest first."""
        values = self.family.values(bags)
        scale = self.weight * self._tempered(bags, values)[0] if len(bags) else 0.0
        return ranked(self.words.vocabulary, bags, self.weights(bags.ids) * (values * scale)[:, None])


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The scores of the documents of the sample under the curve, each left out of what was counted."""

    keys: NDArray[np.int64]  # rising
    scores: NDArray[np.float32]  # documents × classes, with the bias of each class
    silent: NDArray[np.bool_]  # documents without a word that others hold
    whole: bool  # whether these are all documents of the sample
    copies: Array | None  # of a document, in the mean of each class

    def evidence(self, places: NDArray[Any], classes: Array) -> NDArray[np.float32]:
        """What some of the documents say beyond the frequencies of the classes; a place of -1 is of a missing one."""
        seen = classes if self.copies is None else classes / self.copies
        log_prior = np.maximum(log(seen / seen.sum()), -20.0)
        said: NDArray[np.float32] = self.scores[places] - log_prior.astype(np.float32)
        said[(places < 0) | self.silent[places]] = 0.0
        return said


def fit_curve(family: Any, words: Words) -> tuple[Curve, LeftOut] | None:
    """The curve under which the labels of the sample are most likely, each document left out; None without documents."""
    if words.classes < 2 or words.sample is None or len(words.sample) < 2 or not (words.total > 0).any():
        return None
    counted = Counted.of(words, words.sample)
    documents, total = float(counted.documents.sum()), counted.total
    share = np.clip(total / max(float(total.sum()), 1e-300), 1e-9, 1 - 1e-9)
    low = float(np.log2(IMAGINED / (1 + IMAGINED)))
    high = float(np.log2((1 / share[total > 0].min() + IMAGINED) / IMAGINED))
    wide = int(np.ceil((high - low) / BITS)) + 1
    tall = int(np.ceil(np.log2(max(documents, 2.0)) / OCTAVES)) + 1
    counted = counted.first(max(50, LARGEST // (words.classes * wide * tall)))
    sample = counted.sample
    features, length = _features(family, counted, low, (tall, wide))
    log_prior = np.maximum(log(counted.documents / documents), -20.0)
    start = Fit(np.full(tall * (wide - 1), BITS * LN2), log_prior, EXPONENT)
    first = _fit(features, length, sample, start, log_prior)
    surprise, more = _surprise(family, counted, first.residuals(features, length, sample), tall)
    both = np.concatenate([features, more], axis=2)
    last = _fit(both, length, sample, replace(first, weights=np.append(first.weights, np.zeros(tall))), log_prior)
    rises, steps = np.split(last.weights, [tall * (wide - 1)])
    heights = np.concatenate([np.zeros((tall, 1)), rises.reshape(tall, -1).cumsum(1)], axis=1)
    counts = (float(words.documents.sum()), steps, surprise, words.vocabulary, counted.copies)
    scores, whole = last.scores(both, length).astype(np.float32), len(sample) == len(words.sample)
    return (
        Curve(heights, last.bias, last.exponent, low, *counts),
        LeftOut(sample.keys, scores, length <= 0, whole, counted.copies),
    )


@dataclass(frozen=True)
class Counted:
    """What was counted of words and documents, in units of independent documents: divided by the copies of their class."""

    vocabulary: Vocabulary
    seen: Array
    holders: Array  # of each word, in all classes
    total: Array
    documents: Array
    sample: Sample
    left: Array  # how much of each document of the sample is left out, with its copies
    copies: Array | None

    @staticmethod
    def of(words: Words, sample: Sample) -> Counted:
        """What was counted, and the sample of documents."""
        found = sample.copies(words.classes)
        if found is None:
            counts = (words.seen, words.holders.sum(1), words.total, words.documents)
            return Counted(words.vocabulary, *counts, sample, np.ones(len(sample)), None)
        left, mean = found
        counts = (words.seen / mean, (words.holders / mean).sum(1), words.total / mean, words.documents / mean)
        own = mean[sample.labels]
        return Counted(words.vocabulary, *counts, replace(sample, weights=sample.weights / own), left / own, mean)

    def first(self, documents: int) -> Counted:
        """With no more documents in the sample than so many."""
        if documents >= len(self.sample):
            return self
        return replace(self, sample=self.sample.take(np.arange(documents)), left=self.left[:documents])

    @property
    def bags(self) -> Bags:
        """The documents of the sample."""
        some = self.sample
        return Bags(some.indptr, some.ids, some.counts, np.zeros(len(some), np.int64), self.vocabulary)


@dataclass(frozen=True)
class Fit:
    """The weights of the features, the biases and the exponent: score = (features · weights) / length^exponent + bias."""

    weights: Array
    bias: Array
    exponent: float

    def scores(self, features: NDArray[np.float32], length: Array) -> Array:
        """The score of every document and class."""
        n, classes, knots = features.shape
        summed = (features.reshape(n * classes, knots) @ self.weights.astype(np.float32)).reshape(n, classes)
        return np.asarray(summed * self._temper(length)[:, None] + self.bias)

    def _temper(self, length: Array) -> Array:
        return np.where(length > 0, np.maximum(length, 1e-9) ** -self.exponent, 0.0)

    def residuals(self, features: NDArray[np.float32], length: Array, sample: Sample) -> Array:
        """How wrong the score is about every document: the truth less the probability, tempered and weighed as it is."""
        score = self.scores(features, length)
        grown = np.exp(score - score.max(1, keepdims=True))
        wrong = -grown / grown.sum(1, keepdims=True)
        wrong[np.arange(len(score)), sample.labels] += 1.0
        return np.asarray(wrong * self._temper(length)[:, None])


def _surprise(family: Text, counted: Counted, wrong: Array, tall: int) -> tuple[Array, NDArray[np.float32]]:
    """The documents counted once more, by how much they surprised; and what that says of each when it is left out."""
    sample, classes = counted.sample, len(counted.documents)
    values = family.values(counted.bags)
    surprise = np.zeros((len(counted.vocabulary), classes))
    scale = min(1.0, HEAVIEST / float(sample.weights.max()))
    weighing.count_shares(sample.ids, sample.indptr, values, wrong * (sample.weights * scale)[:, None], surprise)
    features = np.zeros((len(sample), classes, tall), dtype=np.float32)
    weighing.surprise_left_out(
        sample.ids, sample.indptr, values, counted.left, wrong * scale, surprise, counted.holders, OCTAVES, features
    )
    return surprise, features


def _features(family: Text, counted: Counted, low: float, knots: tuple[int, int]) -> tuple[Any, Array]:
    """How much of each document lies at each knot for each class, slab by slab on all cores."""
    sample, classes = counted.sample, len(counted.documents)
    if len(sample.ids) * classes >= LARGE:  # every word is looked at for every class
        for kernel in (weighing.left_out, weighing.count_shares, weighing.surprise_left_out):
            kernel.prepare()
    documents = len(sample)
    features = np.zeros((documents, classes, *knots), dtype=np.float32)
    length = np.zeros(documents)
    values = family.values(counted.bags)

    def work(part: tuple[int, int]) -> None:
        a, b = part
        i, j = sample.indptr[a], sample.indptr[b]
        weighing.left_out(
            sample.ids[i:j], sample.indptr[a : b + 1] - i, values[i:j], sample.labels[a:b],
            counted.left[a:b], counted.seen, counted.holders, counted.total, low, BITS, OCTAVES, IMAGINED,
            features[a:b], length[a:b],
        )  # fmt: skip

    parts = [(a, min(a + 256, documents)) for a in range(0, documents, 256)]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(work, parts))
    return np.ascontiguousarray(features[..., 1:]).reshape(documents, classes, -1), length


def _fit(features: NDArray[np.float32], length: Array, sample: Sample, start: Fit, log_prior: Array) -> Fit:
    """Weights, biases and exponent by penalised conditional likelihood, from a start that is also the prior's centre."""
    classes, knots = features.shape[1:]
    logs = np.where(length > 0, np.log(np.maximum(length, 1e-9)), 0.0)
    spread = _spread(features, np.exp(-start.exponent * logs), sample.weights)
    middle = float(np.average(logs, weights=sample.weights))
    loss = _Loss(features, logs - middle, sample, spread, start.weights * spread, log_prior, start.exponent * middle)
    lower = np.concatenate([np.zeros(knots), np.full(classes, -np.inf), [0.0]])
    upper = np.concatenate([np.full(knots + classes, np.inf), [1.0]])
    begin = np.concatenate([loss.centre, start.bias, [start.exponent]])
    found, _ = minimise(loss, begin, lower, upper, iterations=ITERATIONS)
    exponent = float(found[-1])
    return Fit(found[:knots] / spread * np.exp((exponent - start.exponent) * middle), found[knots:-1], exponent)


@dataclass(frozen=True)
class _Loss:
    """What the labels cost under given weights, biases and exponent, with the prior's share, and its slope."""

    features: NDArray[np.float32]
    logs: Array  # of length, about their middle
    sample: Sample
    spread: Array
    centre: Array
    log_prior: Array
    level: float  # of the temper at the middle length

    def __call__(self, q: Array) -> tuple[float, Array]:
        """Loss and slope a document."""
        n, classes, knots = self.features.shape
        flat, labels = self.features.reshape(n * classes, knots), self.sample.labels
        total = self.sample.weights.sum()
        weights, strength, length_strength = self.sample.weights / total, STRENGTH / total, EXPONENT_STRENGTH / total
        u, bias, exponent = q[:knots], q[knots:-1], q[-1]
        temper = np.exp(-exponent * self.logs - self.level)
        summed = (flat @ (u / self.spread).astype(np.float32)).reshape(n, classes).astype(np.float64) * temper[:, None]
        score = summed + bias
        top = score.max(1, keepdims=True)
        wrong = np.exp(score - top)
        whole = wrong.sum(1, keepdims=True)
        wrong /= whole
        loss = weights @ (top[:, 0] + np.log(whole[:, 0]) - score[np.arange(n), labels])
        wrong[np.arange(n), labels] -= 1.0
        wrong *= weights[:, None]
        away, shift, bend = u - self.centre, bias - self.log_prior, exponent - EXPONENT
        back = flat.T @ (wrong * temper[:, None]).astype(np.float32).reshape(-1)
        last = -(wrong * summed).sum(1) @ self.logs + 2 * length_strength * bend
        slope = [back / self.spread + 2 * strength * away, wrong.sum(0) + 2 * strength * shift, [last]]
        loss += strength * (away @ away + shift @ shift) + length_strength * bend * bend
        return float(loss), np.concatenate(slope)


def _spread(features: NDArray[np.float32], temper: Array, weights: Array) -> Array:
    """The deviation of every feature, so that one strength of prior fits all of them."""
    weights, cells = weights / weights.sum(), features.shape[1]
    square = np.einsum("nck,nck,n->k", features, features, temper * temper * weights, optimize=True)
    mean = np.einsum("nck,n->k", features, temper * weights, optimize=True)
    spread = np.sqrt(np.maximum(square / cells - (mean / cells) ** 2, 0.0))
    # A knot that hardly any word comes near has no scale of its own: it stays by the prior.
    least = 0.2 * float(np.median(spread[spread > 0])) if (spread > 0).any() else 1.0
    return np.asarray(np.maximum(spread, least), dtype=np.float64)
