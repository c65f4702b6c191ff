"""Labels known for some rows only: the others are counted by their shares, as far as that helps.

Plain learning from the labelled rows comes first. EM then goes on from its posteriors, with every hidden row weighing λ
of a labelled one (Nigam et al. 2000). Which λ is good is found out on labelled rows that were set aside; λ = 0, plain
learning, is among the choices and stays unless another is clearly better. So unlabelled rows do not hurt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import em
from likely.bayes.rule import normalise
from likely.engines import Plan
from likely.engines.memory import tally_batch
from likely.engines.shares import count_given, log_joint
from likely.errors import UsageError
from likely.families import Binned, Categorical, Gaussian, Text
from likely.model import Model, with_room
from likely.prior import MEstimate, Priors, Pseudocount
from likely.schema import CATEGORY
from likely.sources import Coded
from likely.tally import Tally

Array = NDArray[np.float64]
CHOICES = (0.0, 0.1, 1.0)
FOLDS, MORE_FOLDS, FEW_LABELS = 3, 5, 100  # of few labels, fewer are set aside at a time
TRIAL_ROUNDS = 5  # a trial need not end at the maximum
TOL = 0.1  # nats in all
FEWEST = 2  # labelled rows of every class, so that some can be set aside
MORE_ROUNDS = f"{em.MORE_ROUNDS}, label more rows, or leave out rows without a label (unlabelled='ignore')"
BACKGROUND = 300.0  # imagined words of a text, drawn as words are drawn overall
FLOOR = -30.0  # a held-out label that was ruled out costs no more: one row must not decide


@dataclass(frozen=True)
class Choice:
    """A model of partly labelled rows: λ, the mean held-out log likelihood of each λ that was tried, and the model."""

    model: Model
    unlabelled: float
    tried: Mapping[float, float] = field(default_factory=dict)
    converged: bool = True
    rounds: int = 0


@dataclass(frozen=True)
class Partly:
    """Rows of which some have a label, how they are counted, and what is imagined."""

    parts: Iterable[em.Part]  # labels are places in `classes`, -1 where hidden
    plan: Plan
    classes: tuple[Any, ...]
    prior: Priors
    whole: Tally

    def plain(self, parts: Iterable[em.Part]) -> Model:
        """What the labelled rows alone say."""
        total: Tally | None = None
        for batch, labels, weights in parts:
            part = tally_batch(batch.batch, self.plan, Coded(labels, self.classes), weights)
            total = part if total is None else total + part
        assert total is not None
        target = total.schema.target
        column = target.union(replace(target, values=self.classes))
        total = total.with_schema(replace(total.schema, target=column))
        order = [total.schema.classes.index(label) for label in self.classes]
        total = total.of_classes(order, self.classes)
        return Model(with_room(total, self.prior), self.prior).recalibrate()

    def climbed(self, parts: Iterable[em.Part], unlabelled: float, first: list[Array], **until: Any) -> em.Fit:
        """What all rows say, hidden ones weighing `unlabelled`, from where the labelled rows led."""
        zero = em.empty_tally(self.whole, self.classes)
        prior = hidden_priors(self.prior, self.plan, zero, em.variances(parts, zero.schema.columns))
        blank = Model(with_room(zero, prior), prior)
        start = blank.tally
        for (batch, labels, weights), logs in zip(parts, first, strict=True):
            known = labels >= 0
            shares = np.where(known[:, None], np.eye(len(self.classes))[labels], np.exp(logs))
            weight = np.where(known, weights, unlabelled * weights)
            start = start + count_given(batch, blank.scorer, blank.blocks, shares * weight[:, None])
        model = replace(blank, tally=start)
        return em.climb(model, parts, unlabelled=unlabelled, **until)

    def learned(self, unlabelled: float | None = None, max_iter: int = em.MAX_ITER, tol: float = TOL) -> Choice:
        """The model for a given λ, or for the one that did best on labels set aside."""
        plain = self.plain(self.parts)
        tried: dict[float, float] = {}
        if unlabelled is None:
            unlabelled, tried = self._chosen()
        if unlabelled == 0.0:
            return Choice(plain, 0.0, tried)
        fit = self.climbed(self.parts, unlabelled, _said(plain, self.parts), max_iter=max_iter, tol=tol)
        return Choice(fit.model, unlabelled, tried, fit.converged or tol <= 0, len(fit.trace))

    def _chosen(self) -> tuple[float, dict[float, float]]:
        """λ by the log probability of labels that were set aside: plain learning, unless another is clearly better."""
        counts = sum(np.bincount(y[(y >= 0) & (w > 0)], minlength=len(self.classes)) for _, y, w in self.parts)
        if np.min(counts) < FEWEST:
            return 0.0, {}
        scores: dict[float, list[Array]] = {choice: [] for choice in CHOICES}
        folds = min(FOLDS if np.sum(counts) >= FEW_LABELS else MORE_FOLDS, int(np.min(counts)))
        for fold in range(folds):
            kept = _SetAside(self.parts, fold, len(self.classes), folds)
            first = _said(self.plain(kept), kept)
            scores[0.0].append(kept.score(first))
            for choice in CHOICES[1:]:
                model = self.climbed(kept, choice, first, max_iter=TRIAL_ROUNDS, tol=TOL).model
                scores[choice].append(kept.score(_said(model, kept, held=True)))
        said = {choice: np.concatenate(found) for choice, found in scores.items()}
        means = {choice: float(found.mean()) for choice, found in said.items()}
        best = max(CHOICES, key=lambda choice: means[choice])
        gain = said[best] - said[0.0]
        # Better by more than chance: the standard error of the difference, row by row.
        clear = gain.mean() > gain.std() / np.sqrt(max(len(gain), 1))
        return (best if clear else 0.0), means


@dataclass(frozen=True)
class _SetAside:
    """The same parts with every so many-th labelled row of each class left out."""

    parts: Iterable[em.Part]
    fold: int
    classes: int
    folds: int

    def _split(self) -> Iterable[tuple[em.Part, NDArray[np.bool_]]]:
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

    def score(self, said: list[Array]) -> Array:
        """The log probability of every label that was set aside, from those of all labels."""
        found = []
        for ((_, labels, weights), out), logs in zip(self._split(), said, strict=True):
            rows = np.flatnonzero(out & (weights > 0))
            found.append(np.maximum(logs[rows, labels[rows]], FLOOR))
        return np.concatenate(found)


def _said(model: Model, parts: Iterable[em.Part], held: bool = False) -> list[Array]:
    """The log probability of every label for every row, part by part."""
    joints = (log_joint(batch, model.scorer) if held else model.scorer.log_joint(batch.batch) for batch, _, _ in parts)
    return [normalise(joint, model.scorer.log_prior)[0] for joint in joints]


def hidden_plan(plan: Plan) -> Plan:
    """The plan as EM counts it: families that need labels give way to those that do not."""
    kinds = {column.name: column.kind for column in plan.columns}
    asked = {column.name for column in plan.columns if column.reason.endswith("as asked for")}
    blocks = []
    for block in plan.blocks:
        made: Any = block.family
        if isinstance(made, Text) and made.kind == "auto":
            # Of equal length, a long text is no more certain than a short one: its shares stay soft.
            made = replace(made, kind="multinomial", counts=made.adds, length="l2")
        elif isinstance(made, Text):
            made = em.hidden_text(made)
        elif isinstance(made, Binned) and block.columns[0] in asked:
            refuse_bins_by_label(made, block.name)
        elif not em.countable(made):
            made = Categorical() if kinds[block.columns[0]] == CATEGORY else Gaussian()
        blocks.append(replace(block, family=made))
    return replace(plan, blocks=tuple(blocks))


def refuse_bins_by_label(family: Binned, name: str) -> None:
    """Bins that are cut by the labels move with every round of EM: there is nothing to climb."""
    if family.cut == "mdl":
        raise UsageError(
            f"column {name!r}: bins cut by 'mdl' need a label in every row; choose 'binned', or pass unlabelled='ignore'"
        )


def hidden_priors(prior: Priors, plan: Plan, tally: Tally, spread: Mapping[str, float]) -> Priors:
    """The priors as EM needs them: no variance may vanish, and words are imagined as they occur overall."""
    # What leaving rows out would choose is nothing that EM can climb: there a row belongs to several classes.
    known = {name: each for name, each in prior.columns.items() if not each.chosen}
    prior = replace(prior, default=Pseudocount(1.0) if prior.default.chosen else prior.default, columns=known)
    own = dict(prior.columns)
    if isinstance(prior.default, Pseudocount):
        wide = em.imagined(prior.default.count, tally, spread, None, len(tally.schema.classes))
        own = dict(wide.columns) | own
    for asked, block in zip(plan.blocks, tally.blocks, strict=True):
        if isinstance(asked.family, Text) and asked.family.kind == "auto":
            own[block.name] = MEstimate(BACKGROUND, "background")
    return replace(prior, columns=own)


def partly(
    parts: Callable[[Any], Iterable[em.Part]],
    batches: Callable[[], Iterable[Any]],
    plan: Plan,
    classes: Sequence[Any],
    prior: Priors,
    weights: Callable[[Any], Array],
) -> Partly:
    """Everything that learning from partly labelled rows needs; `parts` makes the rows from the schema of the whole."""
    whole = em.whole_tally(batches(), hidden_plan(plan), weights)
    return Partly(parts(whole.schema), plan, tuple(classes), prior, whole)
