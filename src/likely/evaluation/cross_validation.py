"""Cross-validation and hold-out evaluation from tallies, with additive metrics.

Each row is counted once, into the tally of its fold. The training tally of a fold is the sum of the others, so ten folds
cost about one pass of counting and one of scoring, and a table larger than memory can be cross-validated too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce, wraps
from typing import Any, ParamSpec, Unpack

import numpy as np
from numpy.typing import NDArray

from likely.engines import Plan
from likely.engines.e_step import CachedBatch, LabelledRows
from likely.engines.engine import is_spark_frame
from likely.engines.memory import in_order, tally_batch
from likely.engines.planning import AUTO, plan_for
from likely.engines.spark.spark_frames import streamed
from likely.engines.targets import as_name, opened, with_labels
from likely.errors import DataError, LikelyWarning, UsageError, did_you_mean, no_column
from likely.evaluation._folded_rows import Assignment, FoldedRows
from likely.evaluation._folds import Groups, Progress, Split, assign_folds, scrambled
from likely.evaluation.evaluation import Evaluation
from likely.evaluation.finished_model import overlap, settings_of
from likely.evaluation.metrics import Metrics, metrics_of
from likely.kernels.progress import announce
from likely.latent.em import weights_of
from likely.latent.missing_cells import filled, has_gaps
from likely.model.model import Model
from likely.model.model_keywords import SETTINGS, LearnSettings
from likely.model.relearning import with_named_values
from likely.model.selection import select, without_idle_parts
from likely.priors import priors, textbook
from likely.schema import TEXT, Schema
from likely.sources import READ_KEYWORDS, Batch, Coded, ReadOptions, Source, open_source
from likely.sources.date_parts import with_parts
from likely.sources.row_access import complete, take
from likely.tally import Tally

__all__ = [
    "SETTINGS", "Groups", "Split", "assign_folds", "evaluate", "model_of", "prepare", "require_classes", "score", "scrambled",
]  # fmt: skip

Array = NDArray[np.float64]
Given = ParamSpec("Given")


def _new_order(function: Callable[Given, Evaluation]) -> Callable[Given, Evaluation]:
    """Accept the former order of arguments as well: `evaluate(model_or_settings, data)`."""

    @wraps(function)
    def either(*args: Given.args, **named: Given.kwargs) -> Evaluation:
        if not _former_order(args, named):
            return function(*args, **named)
        first: Any = args[0]
        warnings.warn("evaluate(data, target=..., model=...) is the order now", FutureWarning, stacklevel=2)
        own: dict[str, Any] = {"model": first} if isinstance(first, Model) else dict(first or {})
        if "model" in own and "model" in named:
            raise UsageError("evaluate takes the data, and a model as model=...")
        call: Callable[..., Evaluation] = function
        return call(args[1], **{**own, **named})

    return either


def _former_order(args: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether the first of two positional arguments is a model, or settings, rather than the data."""
    if len(args) != 2:
        return False
    first, second = args
    if first is None or isinstance(first, Model):
        return True
    if not isinstance(first, Mapping):
        return False
    names_a_column = isinstance(second, str) and second in first
    return "target" in named or (first.keys() <= set(SETTINGS) and not names_a_column)


@_new_order
def evaluate(
    data: Any,
    target: Any = None,
    *,
    model: Model | None = None,
    folds: int | None = None,
    holdout: float | None = None,
    groups: Any = None,
    folds_by: str = "auto",
    seed: int = 0,
    progress: Progress = None,
    costs: Any = None,
    threshold: Any = None,
    **settings: Unpack[LearnSettings],
) -> Evaluation:
    """Evaluate settings by cross-validation, or a finished model on rows that it has not learned from.

    Parameters
    ----------
    data : path, frame, dict of columns or any other source
        The table with the true labels, as for `learn`.
    target : str, int, array or None, default=None
        The column to predict, or one label a row; with a model, its own target by default.
    model : Model or None, default=None
        A finished model to evaluate as it is; the result reports whether it has learned from these rows. With `folds`,
        `holdout` or `groups` its settings are evaluated instead, by learning anew.
    folds : int or None, default=None
        Number of stratified folds; 5 by default.
    holdout : float or None, default=None
        Part of the rows to hold out once, stratified, instead of folds.
    groups : str, array or None, default=None
        A column, or one value a row: all rows of a group stay in one fold.
    folds_by : "auto", "position" or "hash", default="auto"
        How rows are assigned to folds: stratified by class and by their position, or by a hash of the row (of the group, with
        `groups`), which is the same on every engine and in any order of rows; equal rows are then in one fold. "auto" is
        "hash" for Spark tables and PostgreSQL, whose rows have no order, and "position" for everything else.
    seed : int, default=0
        Seed of the split.
    progress : callable or None, default=None
        Called with the number of rows after each batch.
    costs : {true class: {decision: cost}} or None, default=None
        Adds the mean cost of the decisions of lowest expected cost.
    threshold : float, {class: probability} or None, default=None
        Adds the mean cost of decisions by this threshold; without costs, an error costs 1.
    **settings
        Settings of `learn`.

    Returns
    -------
    Evaluation
        Accuracy, log loss, Brier score, calibration error, AUC and confusion matrix; it prints as a table.
        `.mean_cost` and `.decisions` are of costs and thresholds, `.curves(label)` has ROC, precision–recall and cost curve.
    """
    if model is not None and folds is None and holdout is None and groups is None:
        return replace(_evaluate_model(model, data, target, settings, progress), costs=costs, threshold=threshold)
    given: dict[str, Any] = {}
    if model is not None:
        given = settings_of(model)
        target = model.schema.target.name if target is None else target
    given |= settings
    split, assignment = Split.of(folds, holdout, seed), Assignment.of(folds_by, groups)
    found = _cross_validate(data, target, given, split, assignment=assignment, progress=progress)
    return replace(found, costs=costs, threshold=threshold)


def _streamed(frame: Any, given: Mapping[str, Any]) -> Source:
    """The rows of a Spark table, read here: a stream that is as flat in memory as one of files."""
    reading = ReadOptions.of(given.get("missing"), {name: given[name] for name in READ_KEYWORDS if name in given})
    return streamed(frame, reading)


def _evaluate_model(
    model: Model, data: Any, target: Any, settings: Mapping[str, Any], progress: Progress
) -> Evaluation:
    """Evaluate a finished model on given rows."""
    name = model.schema.target.name if target is None else as_name(target)
    how = {key: value for key, value in settings.items() if key != "missing"}
    reading = ReadOptions.of(settings.get("missing"), how, model.reading)
    rows_of = streamed if is_spark_frame(data) else open_source
    source, name = with_labels(rows_of(data, reading), name)
    assert name is not None
    source = model.with_target(source, name)
    kinds = {c.name: c.kind for c in model.schema.columns} | {name: "category"}
    parts = [Metrics.zero(model.classes)]
    seen: Tally | None = None
    for batch in source.batches(kinds):
        if name not in batch.names:
            raise no_column(source.label, name, batch.names, "the true labels are needed to evaluate")
        rows = complete(batch, model.schema.columns, source, "error")
        parts.append(_score(model, rows, batch.coded(name), np.ones(batch.rows)))
        counted = _tally_like_model(model, rows, name)
        seen = counted if seen is None else seen + counted
        if progress:
            progress(batch.rows)
    total = reduce(lambda a, b: a + b, parts)
    if not total.rows:
        raise DataError(f"{source.label} has no labelled rows: nothing can be evaluated")
    return Evaluation(total, (), "hold-out", overlap(model, seen))


def _tally_like_model(model: Model, rows: Batch, target: str) -> Tally:
    """Tally of the rows with the model's own blocks."""
    sample = model.tally.sample is not None
    plan = Plan(target, model.blocks, model.schema.columns, target_form=model.schema.target.form, sample=sample)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        return tally_batch(rows, plan)


def prepare(data: Any, target: Any, given: Mapping[str, Any]) -> tuple[Source, Plan]:
    """The source and the counting plan for the given settings."""
    unknown = sorted(given.keys() - set(SETTINGS))
    if unknown:
        meant = did_you_mean(unknown[0], SETTINGS)
        raise UsageError(f"the setting {unknown[0]!r} is not known{meant}: choose from {', '.join(SETTINGS)}")
    reading = ReadOptions.of(given.get("missing"), {name: given[name] for name in READ_KEYWORDS if name in given})
    bins = given.get("target_bins")
    table = opened(data, target, given.get("weights"), bins, reading)
    families, joint, ignore = given.get("families"), given.get("joint", ()), given.get("ignore", ())
    plain = any(given.get(name, False) is not False for name in ("plain", "average", "select"))
    plain = plain or textbook(given.get("smoothing", "auto"))
    parts = given.get("date_parts", AUTO)
    plan = plan_for(table, families, joint, ignore, plain=plain, few_classes=bins is None, date_parts=parts)
    return with_parts(table.source, plan.parts), plan


def _cross_validate(
    data: Any, target: Any, given: Mapping[str, Any], split: Split, *, assignment: Assignment, progress: Progress
) -> Evaluation:
    """Count every fold, learn from all others, score each fold with the model that has not seen it."""
    groups = assignment.groups
    if is_spark_frame(data):
        data = _streamed(data, given)
    source, plan = prepare(data, target, {**given, "ignore": (*given.get("ignore", ()), *assignment.column)})
    rows = FoldedRows.of(source, plan, split, assignment)
    counted: dict[int, Tally] = {}
    for batch, folds in rows.batches():
        for fold, part in _tally_folds(batch, plan, folds, split.fold_count):
            counted[fold] = counted[fold] + part if fold in counted else part
        if progress:
            progress(batch.rows)
    classes = rows.classes
    require_classes(len(classes), plan.target, source.label)
    nothing = next(iter(counted.values())).zero()
    models = _models([counted.get(fold, nothing) for fold in range(split.fold_count)], split, given, classes)
    if any(m and has_gaps(m.tally) for m in models):
        models = [m and _filled(m, rows, i) for i, m in enumerate(models)]
    if given.get("select"):
        models = [m and _selected(m, rows, i, given["select"]) for i, m in enumerate(models)]
    announce("scoring")
    scored = _score_folds(rows, models, progress)
    note = "hold-out" if split.tested else f"{split.parts}-fold cross-validation"
    note += " by groups" if groups is not None else ""
    return Evaluation(reduce(lambda a, b: a + b, scored), tuple(scored), note)


def require_classes(classes: int, target: str, label: str) -> None:
    """Refuse a target with fewer than two classes: every prediction would be right."""
    if classes < 2:
        raise DataError(
            f"column {target!r} has fewer than two classes in {label}: nothing can be evaluated", column=target
        )


def _tally_folds(batch: Batch, plan: Plan, folds: Groups, number: int) -> Iterator[tuple[int, Tally]]:
    """The tally of each fold: in one pass, unless a row sample is kept.

    A tally may keep a sample of its rows or documents. Counted in one pass, the folds would share one sample, and a model
    of some folds would have fewer rows for its calibration than `learn` gives it.
    """
    if plan.sample or any(block.family.column_kind == TEXT for block in plan.blocks):
        yield from tally_separately(batch, plan, folds)
    else:
        total = tally_batch(batch, plan, labels=_compound(batch.coded(plan.target), folds, number))
        yield from ((fold, _fold_tally(total, fold)) for fold in range(number))


def tally_separately(batch: Batch, plan: Plan, folds: Groups) -> Iterator[tuple[int, Tally]]:
    """The tally of each fold, one after the other; rows with a negative fold are in none."""
    for fold in np.unique(folds[folds >= 0]).tolist():
        yield fold, tally_batch(take(batch, np.flatnonzero(folds == fold)), plan)


def _compound(coded: Coded, folds: Groups, parts: int) -> Coded:
    """Fold and label as one label, so that one pass of counting gives the tallies of all folds."""
    width = len(coded.values)
    codes = np.where(folds >= 0, folds * width + (coded.codes.astype(np.int64) - coded.low), -1)
    return Coded(codes, [(fold, label) for fold in range(parts) for label in coded.values])


def _models(
    parts: Sequence[Tally], split: Split, given: Mapping[str, Any], classes: Sequence[Any]
) -> list[Model | None]:
    """For every tested fold, the model of all others; prefix and suffix sums make that cheap and exact."""
    before, after = [parts[0].zero()], [parts[-1].zero()]
    for part in parts[:-1]:
        before.append(before[-1] + part)
    for part in parts[:0:-1]:
        after.append(after[-1] + part)
    found: list[Model | None] = [None] * split.fold_count
    for i, fold in enumerate(split.tested_folds):
        announce(f"learning fold {i + 1}", i, len(split.tested_folds))
        found[fold] = model_of(before[fold] + after[split.fold_count - 1 - fold], given, classes)
    return found


def _filled(model: Model, rows: FoldedRows, fold: int) -> Model:
    """The model whose joint blocks count rows with missing cells by EM, as `learn` does."""
    plan = rows.plan
    weights = weights_of(plan)

    def parts(schema: Schema) -> list[LabelledRows]:
        found = []
        for batch, folds in rows.batches():
            cached = CachedBatch(batch, schema)
            labels = cached.coded(schema.target.name).codes.astype(np.int64)
            used = np.where((folds >= 0) & (folds != fold), labels, -1)
            found.append(LabelledRows(cached, used, weights(batch)))
        return found

    tally = filled(model.tally, model.prior, parts, lambda: rows.source.batches(plan.kinds()))
    return replace(model, tally=with_named_values(tally, model.prior)).recalibrate()


def _selected(model: Model, rows: FoldedRows, fold: int, how: Any) -> Model:
    """The model with columns selected from its own training rows."""
    seen = (take(batch, np.flatnonzero((folds >= 0) & (folds != fold))) for batch, folds in rows.batches())
    return select(model, seen, how, rows.plan.weights)


def model_of(tally: Tally, given: Mapping[str, Any], classes: Sequence[Any]) -> Model:
    """The model of a tally under the given settings."""
    plain = tally.sample is None
    prior = priors(given.get("smoothing", "auto"), given.get("class_prior"), classes, plain, tally.blocks)
    tally = with_named_values(without_idle_parts(in_order(tally.pruned())), prior)
    average, dependence = given.get("average", False), given.get("dependence", "auto")
    return Model(tally, prior, average=average, dependence=dependence).recalibrate()


def _fold_tally(total: Tally, fold: int) -> Tally:
    """The tally of one fold, with the labels alone."""
    places = [i for i, (p, _) in enumerate(total.schema.classes) if p == fold]
    return total.of_classes(places, [total.schema.classes[i][1] for i in places])


def _score_folds(
    folded: FoldedRows, models: Sequence[Model | None], progress: Progress
) -> list[Metrics]:
    """Metrics of each fold, scored by the model that has not seen it."""
    scored = [Metrics.zero(model.classes) if model else None for model in models]
    for batch, folds in folded.batches():
        for fold, model in enumerate(models):
            rows = np.flatnonzero(folds == fold)
            sofar = scored[fold]
            if model and sofar and len(rows):
                scored[fold] = sofar + score(model, take(batch, rows), folded.plan)
        if progress:
            progress(batch.rows)
    return [each for each in scored if each]


def score(model: Model, batch: Batch, plan: Plan) -> Metrics:
    """Metrics of a model on rows with known labels."""
    w = batch.numbers([plan.weights], 0, batch.rows)[:, 0] if plan.weights is not None else np.ones(batch.rows)
    return _score(model, batch, batch.coded(plan.target), w)


def _score(model: Model, batch: Batch, labels: Coded, weights: Array) -> Metrics:
    posterior = model.posterior_of(batch)
    truth = np.array([*model.schema.target.codes(labels.values), -1], dtype=np.int64)[labels.codes - labels.low]
    return metrics_of(posterior, truth, weights, model.tally.classes)
