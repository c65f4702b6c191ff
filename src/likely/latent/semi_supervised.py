"""Semi-supervised learning: unlabelled rows are counted by their responsibilities (EM), where that improves predictions.

Plain learning from the labelled rows comes first. EM then starts from its posteriors, with every unlabelled row weighing λ
of a labelled one (Nigam et al. 2000). λ is chosen on held-out labelled rows. Labelled rows are often drawn evenly from the
classes while the others are not, so the class proportions of the unlabelled rows are estimated from the plain model (EM over
the class prior alone, Saerens et al. 2002): every λ is compared with these proportions as class prior, and a held-out row of
a class weighs as much as the class has unlabelled rows. λ = 0, plain learning, is kept unless another is better by more than
its standard error; then the smallest λ is taken that is clearly better too, and keeps most of the gain of the best. Few
held-out labels may all be right by luck: with one more label, drawn at random from the class proportions, λ must still be
better than plain learning, which responsibilities near 0 and 1 are only after many labels. The model is fitted by as many
iterations as were tried: far beyond them, EM may leave the classes for other structure in the rows, which no held-out label
has judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import normalise
from likely.engines import Plan
from likely.engines.e_step import LabelledRows, count_weighted, log_joint
from likely.engines.memory import tally_batch
from likely.families import Block
from likely.latent import em
from likely.model.model import Model
from likely.model.relearning import with_named_values
from likely.priors import MEstimate, Priors, Pseudocount
from likely.schema import TEXT
from likely.sources import Coded
from likely.tally import Tally

Array = NDArray[np.float64]
CHOICES = (0.0, 0.1, 1.0)
FOLDS, MORE_FOLDS, FEW_LABELS = 3, 5, 100  # with few labels, fewer are held out at a time
TRIAL_ROUNDS = 20  # of a trial, and of the fit with the λ that it chose: after more rounds EM may follow other structure
TOL = 0.1  # nats in all
FEWEST = 2  # labelled rows of every class, so that some can be held out
MORE_ROUNDS = f"{em.MORE_ROUNDS}, label more rows, or leave out rows without a label (unlabelled='ignore')"
BACKGROUND = 300.0  # pseudo-words of a text, with the overall word frequencies
KEPT = 0.8  # of the best gain: the smallest λ that keeps so much is taken
FLOOR = -30.0  # lower bound of the log probability of a held-out label: one row must not decide
MOST_ROWS = 20_000  # unlabelled rows from which the class proportions are estimated
SHARE_ROUNDS = 200


@dataclass(frozen=True)
class SemiSupervisedFit:
    """A model of partly labelled rows, λ, and the mean held-out log probability of each λ that was tried."""

    model: Model
    unlabelled: float
    tried: Mapping[float, float] = field(default_factory=dict)
    converged: bool = True
    rounds: int = 0


@dataclass(frozen=True)
class PartlyLabelled:
    """Partly labelled rows, the plan by which they are counted, and the prior."""

    parts: Iterable[LabelledRows]  # labels are positions in `classes`, -1 where hidden
    plan: Plan
    classes: tuple[Any, ...]
    prior: Priors
    pooled: Tally  # all rows as one class
    counted: Tally | None = None  # the labelled rows, where they have been counted before

    def plain(self, parts: Iterable[LabelledRows]) -> Model:
        """The model of the labelled rows alone."""
        total: Tally | None = None
        for batch, labels, weights in parts:
            part = tally_batch(batch.batch, self.plan, Coded(labels, self.classes), weights)
            total = part if total is None else total + part
        assert total is not None
        return plain_model(total, self.classes, self.prior)

    def fit_em(
        self, parts: Iterable[LabelledRows], unlabelled: float, first: list[Array], **until: Any
    ) -> em.EMResult:
        """EM over all rows, unlabelled ones weighing `unlabelled`, from the log posteriors `first`."""
        spread = em.variances(parts, self.pooled.schema.columns)
        blank = blank_model(self.pooled, self.classes, self.prior, self.plan, spread)
        start = blank.tally
        for rows, logs in zip(parts, first, strict=True):
            start = start + count_by_posteriors(LabelledRows(*rows), logs, blank, unlabelled)
        model = replace(blank, tally=start)
        return em.fit_em(model, parts, unlabelled=unlabelled, **until)

    def fit(self, unlabelled: float | None = None, max_iter: int = em.MAX_ITER, tol: float = TOL) -> SemiSupervisedFit:
        """The model for a given λ, or for the one chosen on held-out labels."""
        plain = plain_model(self.counted, self.classes, self.prior) if self.counted else self.plain(self.parts)
        tried: dict[float, float] = {}
        rounds = max_iter
        if unlabelled is None:
            unlabelled, tried = self._chosen()
            rounds = min(max_iter, TRIAL_ROUNDS)
        if unlabelled == 0.0:
            return SemiSupervisedFit(plain, 0.0, tried)
        first = log_posteriors(plain, self.parts)
        fit = self.fit_em(self.parts, unlabelled, first, max_iter=rounds, tol=tol)
        ended = fit.converged or tol <= 0 or rounds < max_iter
        return SemiSupervisedFit(fit.model, unlabelled, tried, ended, len(fit.trace))

    def _chosen(self) -> tuple[float, dict[float, float]]:
        """λ by the log probability of held-out labels: 0, plain learning, unless another is clearly better."""
        counts = sum(np.bincount(y[(y >= 0) & (w > 0)], minlength=len(self.classes)) for _, y, w in self.parts)
        if np.min(counts) < FEWEST:
            return 0.0, {}
        found: list[_Judged] = []
        folds = min(FOLDS if np.sum(counts) >= FEW_LABELS else MORE_FOLDS, int(np.min(counts)))
        for fold in range(folds):
            kept = _HeldOut(self.parts, fold, len(self.classes), folds)
            plain = self.plain(kept)
            first, prior = log_posteriors(plain, kept), plain.scorer.log_prior
            shares = self._shares(first, prior)
            judged = {0.0: kept.score(first, _shift(np.log(shares), prior), shares)}
            for choice in CHOICES[1:]:
                model = self.fit_em(kept, choice, first, max_iter=TRIAL_ROUNDS, tol=TOL).model
                logs = log_posteriors(model, kept, cached=True)
                judged[choice] = kept.score(logs, _shift(np.log(shares), model.scorer.log_prior), shares)
            found.append(_Judged(judged, kept.weights(shares / counts)))
        return _Judged.together(found).choice()

    def _shares(self, log_posteriors: list[Array], log_prior: Array) -> Array:
        """Class proportions of the unlabelled rows; those that the caller has given, if so."""
        if isinstance(self.prior.classes, Mapping):
            return np.asarray(np.maximum(np.exp(log_prior), 1e-300))
        hidden = [logs[labels < 0] for logs, (_, labels, _) in zip(log_posteriors, self.parts, strict=True)]
        weights = [each[labels < 0] for _, labels, each in self.parts]
        return class_proportions(np.concatenate(hidden), np.concatenate(weights), log_prior)


@dataclass(frozen=True)
class _Judged:
    """Log probabilities of held-out labels for every λ, one random label last; and the weights of the held-out rows."""

    scores: Mapping[float, Array]
    weights: Array

    @staticmethod
    def together(folds: Sequence[_Judged]) -> _Judged:
        """All folds as one; their random labels weigh as much as one held-out row."""
        scores = {
            choice: np.append(
                np.concatenate([fold.scores[choice][:-1] for fold in folds]),
                np.mean([fold.scores[choice][-1] for fold in folds]),
            )
            for choice in CHOICES
        }
        weights = np.concatenate([fold.weights for fold in folds])
        return _Judged(scores, np.append(weights / max(float(weights.mean()), 1e-300), 1.0))

    def choice(self) -> tuple[float, dict[float, float]]:
        """λ, and the weighted mean of each that was tried."""
        rows, weights = {choice: each[:-1] for choice, each in self.scores.items()}, self.weights[:-1]
        sums = {choice: float(self.weights @ each) for choice, each in self.scores.items()}
        safe = {choice: each for choice, each in rows.items() if choice == 0.0 or sums[choice] > sums[0.0]}
        means = {choice: float(np.average(each, weights=weights)) for choice, each in rows.items()}
        return smallest_good(safe, weights), means


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


def smallest_good(scores: Mapping[float, Array], weights: Array | None = None) -> float:
    """λ by the scores of the same rows: 0 unless the best is clearly better, else the smallest with most of its gain."""
    share = np.full(len(scores[0.0]), 1.0) if weights is None else weights
    share = share / max(float(share.sum()), 1e-300)
    means = {choice: float(share @ each) for choice, each in scores.items()}

    def clearly(one: float, other: float) -> bool:
        # By more than the standard error of the paired difference.
        gain, mean = scores[one] - scores[other], means[one] - means[other]
        return bool(mean > np.sqrt(float((share * (gain - mean)) @ (share * (gain - mean)))))

    best = max(sorted(scores), key=lambda choice: means[choice])
    if not clearly(best, 0.0):
        return 0.0
    least = KEPT * (means[best] - means[0.0])
    good = [c for c in sorted(scores) if means[c] - means[0.0] >= least and clearly(c, 0.0)]
    return next(choice for choice in good if not clearly(best, choice))


@dataclass(frozen=True)
class _HeldOut:
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


def log_posteriors(model: Model, parts: Iterable[LabelledRows], cached: bool = False) -> list[Array]:
    """Log posterior of every class for every row, batch by batch."""
    joints = (log_joint(batch, model.scorer) if cached else model.scorer.log_joint(batch.batch) for batch, _, _ in parts)
    return [normalise(joint, model.scorer.log_prior)[0] for joint in joints]


def plain_model(counted: Tally, classes: Sequence[Any], prior: Priors) -> Model:
    """The calibrated model of the labelled rows, with all classes in their order."""
    target = counted.schema.target
    column = target.union(replace(target, values=tuple(classes)))
    total = counted.with_schema(replace(counted.schema, target=column))
    total = total.of_classes([total.schema.classes.index(label) for label in classes], tuple(classes))
    return Model(with_named_values(total, prior), prior).recalibrate()


def blank_model(pooled: Tally, classes: Sequence[Any], prior: Priors, plan: Plan, spread: Mapping[str, float]) -> Model:
    """The model of no rows from which EM starts: all values and words of the table, and the priors that EM needs."""
    zero = em.empty_tally(pooled, tuple(classes))
    own = hidden_priors(prior, plan, zero, spread)
    return Model(with_named_values(zero, own), own)


def count_by_posteriors(rows: LabelledRows, logs: Array, blank: Model, unlabelled: float) -> Tally:
    """Rows counted by their label or else by given log posteriors, unlabelled ones weighing `unlabelled`."""
    batch, labels, weights = rows
    known = labels >= 0
    responsibilities = np.where(known[:, None], np.eye(len(blank.classes))[labels], np.exp(logs))
    weight = np.where(known, weights, unlabelled * weights)
    return count_weighted(batch, blank.scorer, blank.blocks, responsibilities * weight[:, None])


def hidden_plan(plan: Plan) -> Plan:
    """The plan as EM counts it: families that need labels are replaced by families that do not."""
    asked = {column.name for column in plan.columns if column.asked_for}
    blocks = []
    for block in plan.blocks:
        made: Any = em.counted_by_em(block, plan, asked=block.columns[0] in asked)
        if is_calibrated_text(block):
            # Of equal length, a long text is no more certain than a short one: its responsibilities stay soft.
            made = replace(made, length="l2")
        blocks.append(replace(block, family=made))
    return replace(plan, blocks=tuple(blocks))


def is_calibrated_text(block: Block) -> bool:
    """Whether a block is a text whose words are weighted by leave-one-out, which needs labels."""
    return block.family.column_kind == TEXT and block.family.settings()["kind"] == "auto"


def hidden_priors(prior: Priors, plan: Plan, tally: Tally, spread: Mapping[str, float]) -> Priors:
    """The priors as EM needs them: no variance may vanish, and words have the overall frequencies as pseudocounts."""
    # A prior chosen by leave-one-out is no objective for EM, in which a row belongs to several classes.
    known = {name: each for name, each in prior.columns.items() if not each.chosen}
    prior = replace(prior, default=Pseudocount(1.0) if prior.default.chosen else prior.default, columns=known)
    own = dict(prior.columns)
    if isinstance(prior.default, Pseudocount):
        wide = em.mixture_priors(prior.default.count, tally, spread, None)
        own = dict(wide.columns) | own
    for asked, block in zip(plan.blocks, tally.blocks, strict=True):
        if is_calibrated_text(asked):
            own[block.name] = MEstimate(BACKGROUND, "background")
    return replace(prior, columns=own)


def partly_labelled(
    plan: Plan,
    classes: Sequence[Any],
    prior: Priors,
    *,
    parts: Callable[[Any], Iterable[LabelledRows]],
    batches: Callable[[], Iterable[Any]],
    weights: Callable[[Any], Array],
    counted: Tally | None = None,
) -> PartlyLabelled:
    """Partly labelled rows, ready to be learned from; `parts` makes them from the schema of all rows."""
    pooled = em.pooled_tally(batches(), hidden_plan(plan), weights)
    return PartlyLabelled(parts(pooled.schema), plan, tuple(classes), prior, pooled, counted)
