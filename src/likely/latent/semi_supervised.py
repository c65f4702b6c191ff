"""Semi-supervised learning: unlabelled rows are counted by their responsibilities (EM), where that improves predictions.

Plain learning from the labelled rows comes first. EM then starts from its posteriors, with every unlabelled row weighing λ
of a labelled one (Nigam et al. 2000). The families of EM are simpler than those of the default model of texts. There, labels
are drawn from the posterior, EM's own or together with the plain model's, and the default model is learned from all rows:
drawn labels, other than the most probable ones, are as uncertain as the posterior, so the model does not confirm itself
(stochastic EM, Celeux and Diebolt 1985).

Which use is made of the unlabelled rows is chosen on held-out labels (`unlabelled_choice`). The model is fitted by as many
iterations as were tried: far beyond them, EM may leave the classes for other structure in the rows, which no held-out label
has judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import normalise
from likely.engines import Plan
from likely.engines.e_step import LabelledRows, count_weighted, log_joint
from likely.engines.memory import tally_batch
from likely.families import Block
from likely.kernels.progress import announce
from likely.latent import em
from likely.latent._unlabelled_choice import (
    DRAWN,
    PLAIN,
    TABLE_STRATEGIES,
    TEXT_STRATEGIES,
    HeldOut,
    HeldOutScorer,
    HeldOutScores,
    Strategies,
    Strategy,
    class_proportions,
)
from likely.model.model import Model
from likely.model.relearning import with_named_values
from likely.priors import MEstimate, Priors, Pseudocount
from likely.schema import TEXT
from likely.sources import Coded
from likely.tally import Tally

Array = NDArray[np.float64]
FOLDS, MORE_FOLDS, FEW_LABELS = 3, 5, 100  # with few labels, fewer are held out at a time
TRIAL_ROUNDS = 20  # of a trial, and of the fit with the λ that it chose: after more rounds EM may follow other structure
TOL = 0.1  # nats in all
FEWEST = 2  # labelled rows of every class, so that some can be held out
MORE_ROUNDS = f"{em.MORE_ROUNDS}, label more rows, or leave out rows without a label (unlabelled='ignore')"
BACKGROUND = 300.0  # pseudo-words of a text, with the overall word frequencies
DRAWS = 2  # labels are drawn from EM's posterior, and once more from that of the model which these give
MOST_DRAWN = 2_000  # unlabelled rows with drawn labels in a trial


@dataclass(frozen=True)
class SemiSupervisedFit:
    """A model of partly labelled rows, the weight of an unlabelled one, and the mean held-out score of each strategy tried."""

    model: Model
    unlabelled: float
    tried: Mapping[Strategy, float] = field(default_factory=dict)
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
        """The model of the rows that have a label, known or drawn."""
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
        """The model for a given λ, or for the strategy that is chosen on held-out labels."""
        plain = plain_model(self.counted, self.classes, self.prior) if self.counted else self.plain(self.parts)
        strategy, tried = self._chosen() if unlabelled is None else (Strategy(unlabelled), {})
        if strategy == PLAIN:
            return SemiSupervisedFit(plain, 0.0, tried)
        first = log_posteriors(plain, self.parts)
        if strategy.drawn:
            drawing = LabelDraw(doubt=1 / (int(self._label_counts().sum()) + 2))
            ((_, model, _),) = self._models((strategy,), self.parts, first, drawing)
            return SemiSupervisedFit(model, strategy.unlabelled, tried, rounds=TRIAL_ROUNDS)
        rounds = max_iter if unlabelled is not None else min(max_iter, TRIAL_ROUNDS)
        fit = self.fit_em(self.parts, strategy.em, first, max_iter=rounds, tol=tol)
        ended = fit.converged or tol <= 0 or rounds < max_iter
        return SemiSupervisedFit(fit.model, strategy.unlabelled, tried, ended, len(fit.trace))

    @property
    def strategies(self) -> Strategies:
        """The uses of unlabelled rows that are tried."""
        return TEXT_STRATEGIES if any(is_calibrated_text(block) for block in self.plan.blocks) else TABLE_STRATEGIES

    def _chosen(self) -> tuple[Strategy, dict[Strategy, float]]:
        """The strategy with the best log probability of held-out labels: plain learning, unless another is clearly better."""
        counts = self._label_counts()
        if np.min(counts) < FEWEST:
            return PLAIN, {}
        found: list[HeldOutScores] = []
        hidden = sum(int(np.sum(y < 0)) for _, y, _ in self.parts)
        folds = min(FOLDS if np.sum(counts) >= FEW_LABELS else MORE_FOLDS, int(np.min(counts)))
        for fold in range(folds):
            announce(f"use of unlabelled rows, fold {fold + 1} of {folds}")
            kept = HeldOut(self.parts, fold, len(self.classes), folds)
            plain = self.plain(kept)
            first = log_posteriors(plain, kept)
            shares = self._class_proportions(first, plain.scorer.log_prior)
            scorer = HeldOutScorer(kept, shares if self.strategies.same_prior else None)
            scores = {PLAIN: scorer.score(first, plain)}
            drawing = LabelDraw(MOST_DRAWN / max(hidden, 1))
            for strategy, model, logs in self._models(self.strategies.tried[1:], kept, first, drawing):
                scores[strategy] = scorer.score(logs, model)
            found.append(HeldOutScores(scores, kept.weights(self.strategies.weights(shares / counts))))
        return HeldOutScores.together(found).choice()

    def _label_counts(self) -> NDArray[np.int64]:
        """Number of labelled rows of each class."""
        parts = [np.bincount(y[(y >= 0) & (w > 0)], minlength=len(self.classes)) for _, y, w in self.parts]
        found: NDArray[np.int64] = np.sum(parts, axis=0)
        return found

    def _models(
        self, strategies: Iterable[Strategy], parts: Iterable[LabelledRows], first: list[Array], drawing: LabelDraw
    ) -> Iterable[tuple[Strategy, Model, list[Array]]]:
        """The model of each strategy with its log posteriors."""
        for weight, some in groupby(strategies, key=lambda strategy: strategy.em):
            fit = self.fit_em(parts, weight, first, max_iter=TRIAL_ROUNDS, tol=TOL)
            found = log_posteriors(fit.model, parts, cached=True)
            for strategy in some:
                if strategy.drawn is None:
                    yield strategy, fit.model, found
                    continue
                model, logs = fit.model, _pooled((first, found), strategy.drawn)
                for draw in range(DRAWS):
                    model = self.plain(drawing.labelled(parts, logs, draw))
                    logs = log_posteriors(model, parts)
                yield strategy, model, logs

    def _class_proportions(self, log_posteriors: list[Array], log_prior: Array) -> Array:
        """Class proportions of the unlabelled rows; those that the caller has given, if so."""
        if isinstance(self.prior.classes, Mapping):
            return np.asarray(np.maximum(np.exp(log_prior), 1e-300))
        hidden = [logs[labels < 0] for logs, (_, labels, _) in zip(log_posteriors, self.parts, strict=True)]
        weights = [each[labels < 0] for _, labels, each in self.parts]
        return class_proportions(np.concatenate(hidden), np.concatenate(weights), log_prior)


def _pooled(log_posteriors: Sequence[list[Array]], weights: Sequence[float]) -> list[Array]:
    """Weighted sums of log posteriors, batch by batch; those of weight 0, which may be infinite, are left out."""
    used = [(each, weight) for each, weight in zip(log_posteriors, weights, strict=True) if weight]
    return [np.sum([weight * each[i] for each, weight in used], axis=0) for i in range(len(used[0][0]))]


@dataclass(frozen=True)
class LabelDraw:
    """How labels are drawn: for which share of the unlabelled rows, and with how much doubt about the posterior.

    That n labels agree with the posterior, as far as they are held out, leaves a probability of 1/(n + 2) that the next does
    not (Laplace's rule of succession): so many drawn labels are exchanged at random, and the model is no surer than that.
    """

    share: float = 1.0
    doubt: float = 0.0

    def labelled(self, parts: Iterable[LabelledRows], log_posteriors: list[Array], draw: int) -> Iterator[LabelledRows]:
        """The rows with drawn labels where they have none; the posteriors need not sum to one."""
        for part, ((batch, labels, weights), logs) in enumerate(zip(parts, log_posteriors, strict=True)):
            random = np.random.default_rng((draw, part))
            bounds = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)).cumsum(axis=1)
            drawn = np.minimum((bounds < random.random((len(labels), 1))).sum(axis=1), bounds.shape[1] - 1)
            used, doubted = (random.random(len(labels)) < each for each in (self.share, self.doubt))
            drawn[doubted] = random.permutation(drawn[doubted])
            known = labels >= 0
            yield LabelledRows(batch, np.where(known, labels, drawn), np.where(known, weights, DRAWN * weights * used))


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
