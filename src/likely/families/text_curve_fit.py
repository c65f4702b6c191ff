"""Fit of the text calibration: penalised conditional likelihood of the labels, each document left out of the counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import log_losses, paired_gain
from likely.families._text import PAIR_CLASSES, Text
from likely.families._text_saturation import fit_saturation
from likely.families._word_pairs import sampled_pairs
from likely.families.base import log
from likely.families.document_sample import DocumentSample
from likely.families.statistics import Array
from likely.families.text_calibration import BITS, OCTAVES, PSEUDOCOUNT, LeftOutDocuments, TextCalibration
from likely.families.word_counts import Words
from likely.kernels.kernel import LARGE
from likely.kernels.lbfgs import minimise
from likely.kernels.parallel import workers
from likely.kernels.thread_count import threads
from likely.tokenizer import Bags, Vocabulary, word_loops

EXPONENT, EXPONENT_STRENGTH = 2.0 / 3.0, 10.0  # centre and strength of the penalty of the exponent of length
STRENGTH = 1.0  # of the penalty towards log ratios as weights, and class frequencies as biases
ITERATIONS = 40
PRECISION = 1e-7  # of the loss, whose sums are of single precision
HEAVIEST = 1e15  # weight of a document: the features are float32, and would overflow far above it
LARGEST = 8_000_000  # entries of features: fewer documents are used where classes are many
LN2 = float(np.log(2.0))


def fit_text_calibration(family: Any, words: Words) -> tuple[TextCalibration, LeftOutDocuments] | None:
    """Text calibration of maximum penalised leave-one-out likelihood, and its scores; None without documents.

    Pairs of words are added where the leave-one-out log loss falls by more than its standard error.
    """
    alone = _fitted(family, words)
    found = sampled_pairs(words) if alone is not None and family.tries_pairs and words.classes <= PAIR_CLASSES else None
    both = None if found is None else _fitted(family, found[1])
    if alone is None or found is None or both is None or not _lower(both[1], alone[1]):
        return alone
    return replace(both[0], pairs=found[0]), both[1]


def _lower(one: LeftOutDocuments, other: LeftOutDocuments) -> bool:
    """Whether one has the lower log loss, by more than the standard error of the difference."""
    rows = min(len(one.scores), len(other.scores))
    after, before = (log_losses(d.scores[:rows].astype(np.float64), d.labels[:rows]) for d in (one, other))
    gain, error = paired_gain(before, after, np.ones(rows))
    return gain > error


def _fitted(family: Any, words: Words) -> tuple[TextCalibration, LeftOutDocuments] | None:
    """Text calibration of these words, and its leave-one-out scores; None without documents."""
    if words.classes < 2 or words.sample is None or len(words.sample) < 2 or not (words.total > 0).any():
        return None
    counted = EffectiveCounts.of(words, words.sample)
    documents, total = float(counted.documents.sum()), counted.total
    share = np.clip(total / max(float(total.sum()), 1e-300), 1e-9, 1 - 1e-9)
    low = float(np.log2(PSEUDOCOUNT / (1 + PSEUDOCOUNT)))
    high = float(np.log2((1 / share[total > 0].min() + PSEUDOCOUNT) / PSEUDOCOUNT))
    wide = int(np.ceil((high - low) / BITS)) + 1
    tall = int(np.ceil(np.log2(max(documents, 2.0)) / OCTAVES)) + 1
    counted = counted.first(max(50, LARGEST // (words.classes * wide * tall)))
    sample = counted.sample
    features, length = _features(family, counted, low, (tall, wide))
    log_prior = np.maximum(log(counted.documents / documents), -20.0)
    start = CurveCoefficients(np.full(tall * (wide - 1), BITS * LN2), log_prior, EXPONENT)
    first = _fit_coefficients(features, length, sample, start, log_prior)
    residuals, more = _residual_features(family, counted, first.residuals(features, length, sample), tall)
    both = np.concatenate([features, more], axis=2)
    last = _fit_coefficients(both, length, sample, replace(first, weights=np.append(first.weights, np.zeros(tall))), log_prior)
    rises, steps = np.split(last.weights, [tall * (wide - 1)])
    heights = np.concatenate([np.zeros((tall, 1)), rises.reshape(tall, -1).cumsum(1)], axis=1)
    sums, bias, saturation = last.sums(both, length), last.bias, None
    if found := fit_saturation(sums, bias, sample.labels, sample.weights):
        saturation, bias = found
        sums = sums * saturation.scale(sums)[:, None]
    fitted = TextCalibration(
        heights, bias, last.exponent, low, documents=float(words.documents.sum()), residual_weights=steps,
        residuals=residuals, vocabulary=words.vocabulary, copies=counted.copies, saturation=saturation,
    )  # fmt: skip
    scores, complete = (sums + bias).astype(np.float32), len(sample) == len(words.sample)
    return fitted, LeftOutDocuments(sample.keys, sample.labels, scores, length <= 0, complete, counted.copies)


@dataclass(frozen=True)
class EffectiveCounts:
    """Counts of words and documents in units of independent documents: divided by the copies of their class."""

    vocabulary: Vocabulary
    seen: Array
    holders: Array  # document frequency of each word, in all classes
    total: Array
    documents: Array
    sample: DocumentSample
    left: Array  # weight of each document of the sample that is left out, with its copies
    copies: Array | None

    @staticmethod
    def of(words: Words, sample: DocumentSample) -> EffectiveCounts:
        """Effective counts, and the sample of documents."""
        found = sample.copies(words.classes)
        if found is None:
            return EffectiveCounts(
                words.vocabulary, words.seen, holders=words.holders.sum(1), total=words.total, documents=words.documents,
                sample=sample, left=np.ones(len(sample)), copies=None,
            )  # fmt: skip
        left, mean = found
        own = mean[sample.labels]
        return EffectiveCounts(
            words.vocabulary, words.seen / mean, holders=(words.holders / mean).sum(1), total=words.total / mean,
            documents=words.documents / mean, sample=replace(sample, weights=sample.weights / own), left=left / own,
            copies=mean,
        )  # fmt: skip

    def first(self, documents: int) -> EffectiveCounts:
        """With at most so many documents in the sample."""
        if documents >= len(self.sample):
            return self
        return replace(self, sample=self.sample.take(np.arange(documents)), left=self.left[:documents])

    @property
    def bags(self) -> Bags:
        """Documents of the sample."""
        some = self.sample
        return Bags(some.indptr, some.ids, some.counts, np.zeros(len(some), np.int64), self.vocabulary)


@dataclass(frozen=True)
class CurveCoefficients:
    """Coefficients: score = (features · weights) / length^exponent + bias."""

    weights: Array
    bias: Array
    exponent: float

    def sums(self, features: NDArray[np.float32], length: Array) -> Array:
        """Score of every document and class without the bias."""
        n, classes, knots = features.shape
        summed = (features.reshape(n * classes, knots) @ self.weights.astype(np.float32)).reshape(n, classes)
        return np.asarray(summed * self._scale(length)[:, None])

    def _scale(self, length: Array) -> Array:
        return np.where(length > 0, np.maximum(length, 1e-9) ** -self.exponent, 0.0)

    def residuals(self, features: NDArray[np.float32], length: Array, sample: DocumentSample) -> Array:
        """Residuals of every document (label indicator minus probability), scaled by its length."""
        score = self.sums(features, length) + self.bias
        grown = np.exp(score - score.max(1, keepdims=True))
        residual = -grown / grown.sum(1, keepdims=True)
        residual[np.arange(len(score)), sample.labels] += 1.0
        return np.asarray(residual * self._scale(length)[:, None])


def _residual_features(
    family: Text, counted: EffectiveCounts, residuals: Array, tall: int
) -> tuple[Array, NDArray[np.float32]]:
    """Sums of the residuals by word and class, and their leave-one-out features of each document."""
    sample, classes = counted.sample, len(counted.documents)
    values = family.values(counted.bags)
    summed = np.zeros((len(counted.vocabulary), classes))
    scale = min(1.0, HEAVIEST / float(sample.weights.max()))
    word_loops.count_shares(sample.ids, sample.indptr, values, residuals * (sample.weights * scale)[:, None], summed)
    features = np.zeros((len(sample), classes, tall), dtype=np.float32)
    word_loops.surprise_left_out(
        sample.ids, sample.indptr, values, counted.left, residuals * scale, summed, counted.holders, OCTAVES, features
    )
    return summed, features


def _features(family: Text, counted: EffectiveCounts, low: float, knots: tuple[int, int]) -> tuple[Any, Array]:
    """Leave-one-out features: the weight of each document at each knot for each class, by threads."""
    sample, classes = counted.sample, len(counted.documents)
    if len(sample.ids) * classes >= LARGE:  # work grows with words × classes
        for kernel in (word_loops.left_out, word_loops.count_shares, word_loops.surprise_left_out):
            kernel.prepare()
    documents = len(sample)
    features = np.zeros((documents, classes, *knots), dtype=np.float32)
    length = np.zeros(documents)
    values = family.values(counted.bags)

    def work(part: tuple[int, int]) -> None:
        a, b = part
        i, j = sample.indptr[a], sample.indptr[b]
        word_loops.left_out(
            sample.ids[i:j], sample.indptr[a : b + 1] - i, values[i:j], sample.labels[a:b],
            counted.left[a:b], counted.seen, counted.holders, counted.total, np.empty(classes), low, BITS, OCTAVES,
            PSEUDOCOUNT, features[a:b], length[a:b],
        )  # fmt: skip

    parts = [(a, min(a + 256, documents)) for a in range(0, documents, 256)]
    with workers(threads()) as pool:
        list(pool.map(work, parts))
    return np.ascontiguousarray(features[..., 1:]).reshape(documents, classes, -1), length


def _fit_coefficients(
    features: NDArray[np.float32], length: Array, sample: DocumentSample, start: CurveCoefficients, log_prior: Array
) -> CurveCoefficients:
    """Coefficients by penalised conditional likelihood; the start is also the centre of the penalty."""
    classes, knots = features.shape[1:]
    logs = np.where(length > 0, np.log(np.maximum(length, 1e-9)), 0.0)
    spread = _spread(features, np.exp(-start.exponent * logs), sample.weights)
    middle = float(np.average(logs, weights=sample.weights))
    loss = _Loss(features, logs - middle, sample, spread, start.weights * spread, log_prior, start.exponent * middle)
    lower = np.concatenate([np.zeros(knots), np.full(classes, -np.inf), [0.0]])
    upper = np.concatenate([np.full(knots + classes, np.inf), [1.0]])
    begin = np.concatenate([loss.centre, start.bias, [start.exponent]])
    found, _ = minimise(loss, begin, lower, upper, iterations=ITERATIONS, precision=PRECISION)
    exponent = float(found[-1])
    return CurveCoefficients(found[:knots] / spread * np.exp((exponent - start.exponent) * middle), found[knots:-1], exponent)


@dataclass(frozen=True)
class _Loss:
    """Penalised log loss of the labels as a function of the coefficients, and its gradient."""

    features: NDArray[np.float32]
    logs: Array  # of length, centred
    sample: DocumentSample
    spread: Array
    centre: Array
    log_prior: Array
    level: float  # log scale at the mean log length

    def __call__(self, q: Array) -> tuple[float, Array]:
        """Mean loss and gradient."""
        n, classes, knots = self.features.shape
        flat, labels = self.features.reshape(n * classes, knots), self.sample.labels
        total = self.sample.weights.sum()
        weights, strength, length_strength = self.sample.weights / total, STRENGTH / total, EXPONENT_STRENGTH / total
        u, bias, exponent = q[:knots], q[knots:-1], q[-1]
        scale = np.exp(-exponent * self.logs - self.level)
        summed = (flat @ (u / self.spread).astype(np.float32)).reshape(n, classes).astype(np.float64) * scale[:, None]
        score = summed + bias
        top = score.max(1, keepdims=True)
        residual = np.exp(score - top)
        whole = residual.sum(1, keepdims=True)
        residual /= whole
        loss = weights @ (top[:, 0] + np.log(whole[:, 0]) - score[np.arange(n), labels])
        residual[np.arange(n), labels] -= 1.0
        residual *= weights[:, None]
        away, shift, deviation = u - self.centre, bias - self.log_prior, exponent - EXPONENT
        back = flat.T @ (residual * scale[:, None]).astype(np.float32).reshape(-1)
        last = -(residual * summed).sum(1) @ self.logs + 2 * length_strength * deviation
        gradient = [back / self.spread + 2 * strength * away, residual.sum(0) + 2 * strength * shift, [last]]
        loss += strength * (away @ away + shift @ shift) + length_strength * deviation * deviation
        return float(loss), np.concatenate(gradient)


def _spread(features: NDArray[np.float32], scale: Array, weights: Array) -> Array:
    """Standard deviation of every feature, so that one strength of the penalty suits all of them."""
    weights, cells = weights / weights.sum(), features.shape[1]
    square = np.einsum("nck,nck,n->k", features, features, scale * scale * weights, optimize=True)
    mean = np.einsum("nck,n->k", features, scale * weights, optimize=True)
    spread = np.sqrt(np.maximum(square / cells - (mean / cells) ** 2, 0.0))
    # A knot with hardly any word near it has no scale of its own: the penalty keeps its centre.
    least = 0.2 * float(np.median(spread[spread > 0])) if (spread > 0).any() else 1.0
    return np.asarray(np.maximum(spread, least), dtype=np.float64)
