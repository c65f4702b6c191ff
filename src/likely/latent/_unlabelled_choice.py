"""Choice of how unlabelled rows are used, by the log probability of held-out labels.

Labelled rows are often drawn evenly from the classes while the others are not, so the class proportions of the unlabelled rows
are estimated from the plain model (EM over the class prior alone, Saerens et al. 2002), and held-out rows weigh accordingly
(see `Strategies`). Plain learning is kept unless another strategy is better by more than its standard error; then the first is
taken that is clearly better too, and keeps most of the gain of the best. Few held-out labels may all be right by luck: with one
more label, drawn at random, a strategy must still be better than plain learning, which responsibilities near 0 and 1 are only
after many labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines.e_step import LabelledRows
from likely.model.model import Model

Array = NDArray[np.float64]
KEPT = 0.8  # of the best gain: the first strategy that keeps so much is taken
DRAWN = 0.3  # weight of an unlabelled row with a drawn label
FLOOR = -30.0  # lower bound of the log probability of a held-out label: one row must not decide
MOST_ROWS = 20_000  # unlabelled rows from which the class proportions are estimated
SHARE_ROUNDS = 200


@dataclass(frozen=True)
class Strategy:
    """A use of the unlabelled rows: their weight λ in EM, and what labels are drawn from after it, if they are."""

    em: float
    drawn: tuple[float, float] | None = None  # weights of the log posteriors of the plain model and of EM
    least: float = 1.0  # standard errors by which it must be better than plain learning

    @property
    def unlabelled(self) -> float:
        """Weight of an unlabelled row in the model."""
        return DRAWN if self.drawn else self.em


PLAIN = Strategy(0.0)


@dataclass(frozen=True)
class Strategies:
    """The uses of unlabelled rows that are tried, plain learning first, and how held-out rows compare them.

    Where `same_prior`, all are compared with the estimated class proportions as class prior, and a held-out row weighs as much
    as its class has unlabelled rows. Otherwise each has the class prior that it has learned, and a held-out row weighs the
    square root of that: the proportions are estimates, and with the full weight a few rows of large classes would decide.
    """

    tried: tuple[Strategy, ...]
    same_prior: bool

    def weights(self, by_class: Array) -> Array:
        """Weight of a held-out row by class, from the unlabelled rows for each labelled one."""
        return by_class if self.same_prior else np.sqrt(by_class)


TABLE_STRATEGIES = Strategies((PLAIN, Strategy(0.1), Strategy(1.0)), same_prior=True)
# With the plain model's evidence beside it, EM's hurt in none of 95 draws of real texts: half a standard error is enough.
TEXT_STRATEGIES = Strategies(
    (PLAIN, Strategy(0.1, drawn=(0.0, 1.0)), Strategy(0.1, drawn=(1.0, 0.5), least=0.5)), same_prior=False
)


@dataclass(frozen=True)
class HeldOutScorer:
    """Scores of held-out labels, with the class prior of each model or with given class proportions."""

    kept: HeldOut
    shares: Array | None

    def score(self, log_posteriors: list[Array], model: Model) -> Array:
        """Log probability of every held-out label, and of one random label last."""
        if self.shares is None:
            k = len(model.classes)
            return self.kept.score(log_posteriors, np.zeros(k), np.full(k, 1 / k))
        return self.kept.score(log_posteriors, _shift(np.log(self.shares), model.scorer.log_prior), self.shares)


@dataclass(frozen=True)
class HeldOutScores:
    """Log probabilities of held-out labels for every strategy, one random label last; and the weights of the held-out rows."""

    scores: Mapping[Strategy, Array]
    weights: Array

    @staticmethod
    def together(folds: Sequence[HeldOutScores]) -> HeldOutScores:
        """All folds as one; their random labels weigh as much as one held-out row."""
        scores = {
            strategy: np.append(
                np.concatenate([fold.scores[strategy][:-1] for fold in folds]),
                np.mean([fold.scores[strategy][-1] for fold in folds]),
            )
            for strategy in folds[0].scores
        }
        weights = np.concatenate([fold.weights for fold in folds])
        return HeldOutScores(scores, np.append(weights / max(float(weights.mean()), 1e-300), 1.0))

    def choice(self) -> tuple[Strategy, dict[Strategy, float]]:
        """A strategy, and the weighted mean of each that was tried."""
        rows, weights = {strategy: each[:-1] for strategy, each in self.scores.items()}, self.weights[:-1]
        sums = {strategy: float(self.weights @ each) for strategy, each in self.scores.items()}
        safe = {strategy: each for strategy, each in rows.items() if strategy == PLAIN or sums[strategy] > sums[PLAIN]}
        means = {strategy: float(np.average(each, weights=weights)) for strategy, each in rows.items()}
        return first_good(safe, weights), means


def class_proportions(log_posteriors: Array, weights: Array, log_prior: Array) -> Array:
    """Class proportions of rows whose posterior under another class prior is known: EM over the proportions alone.

    One pseudo-row a class keeps every proportion above zero.
    """
    stride = -(-len(log_posteriors) // MOST_ROWS) or 1
    rows, weights = log_posteriors[::stride], weights[::stride]
    shares = np.exp(log_prior)
    for _ in range(SHARE_ROUNDS):
        moved = rows + _shift(np.log(np.maximum(shares, 1e-300)), log_prior)
        moved = np.exp(moved - np.logaddexp.reduce(moved, axis=1, keepdims=True))
        summed = weights @ moved + 1.0
        before, shares = shares, summed / summed.sum()
        if np.abs(shares - before).max() < 1e-6:
            break
    return np.asarray(shares)


def _shift(wanted: Array, own: Array) -> Array:
    """Difference of two log class priors; a class that a prior excludes stays excluded."""
    return np.subtract(wanted, own, out=np.zeros_like(own), where=np.isfinite(own) & np.isfinite(wanted))


def first_good(scores: Mapping[Strategy, Array], weights: Array | None = None) -> Strategy:
    """The first strategy unless the best by these scores of rows is clearly better; else the next with most of its gain."""
    share = np.full(len(next(iter(scores.values()))), 1.0) if weights is None else weights
    share = share / max(float(share.sum()), 1e-300)
    means = {strategy: float(share @ each) for strategy, each in scores.items()}
    plain, *others = scores

    def clearly(one: Strategy, other: Strategy, errors: float) -> bool:
        # By more than so many standard errors of the paired difference.
        gain, mean = scores[one] - scores[other], means[one] - means[other]
        return bool(mean > errors * np.sqrt(float((share * (gain - mean)) @ (share * (gain - mean)))))

    good = [strategy for strategy in others if clearly(strategy, plain, strategy.least)]
    if not good:
        return plain
    best = max(good, key=lambda strategy: means[strategy])
    least = means[plain] + KEPT * (means[best] - means[plain])
    return next(strategy for strategy in good if means[strategy] >= least and not clearly(best, strategy, 1.0))


@dataclass(frozen=True)
class HeldOut:
    """The same rows with one fold of the labelled rows of each class held out."""

    parts: Iterable[LabelledRows]
    fold: int
    classes: int
    folds: int

    def _split(self) -> Iterable[tuple[LabelledRows, NDArray[np.bool_]]]:
        seen = np.zeros(self.classes, np.int64)
        for part in self.parts:
            labels = part[1]
            out = np.zeros(len(labels), bool)
            for c in range(self.classes):
                rows = np.flatnonzero(labels == c)
                out[rows[(np.arange(len(rows)) + seen[c]) % self.folds == self.fold]] = True
                seen[c] += len(rows)
            yield part, out

    def __iter__(self) -> Any:
        for (batch, labels, weights), out in self._split():
            yield batch, np.where(out, -1, labels), np.where(out, 0.0, weights)

    def score(self, log_posteriors: list[Array], shift: Array, shares: Array) -> Array:
        """Log probability of every held-out label, and of one random label last; `shift` changes the class prior."""
        found, random = [], []
        for ((_, labels, _), rows), logs in zip(self._rows(), log_posteriors, strict=True):
            moved = logs[rows] + shift
            moved = np.maximum(moved - np.logaddexp.reduce(moved, axis=1, keepdims=True), FLOOR)
            found.append(moved[np.arange(len(rows)), labels[rows]])
            random.append(moved @ shares)
        return np.append(np.concatenate(found), np.concatenate(random).mean())

    def weights(self, by_class: Array) -> Array:
        """Weight of every held-out row: that of its class."""
        return np.concatenate([by_class[labels[rows]] for (_, labels, _), rows in self._rows()])

    def _rows(self) -> Iterable[tuple[LabelledRows, NDArray[np.intp]]]:
        for part, out in self._split():
            yield part, np.flatnonzero(out & (part[2] > 0))
