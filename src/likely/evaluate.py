"""How good the answers are: cross-validation and hold-out from tallies, with figures that add up themselves.

Each row is counted once, into the tally of its fold. The training tally of a fold is the sum of the others, so ten folds
cost about one pass of counting and one of scoring, and a table larger than memory can be cross-validated too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.em import Part, weights_of
from likely.engines import Plan
from likely.engines.memory import in_order, tally_batch
from likely.engines.shares import Held
from likely.engines.targets import EACH, as_name, opened, with_labels
from likely.errors import DataError, LikelyWarning, UsageError, did_you_mean, no_column
from likely.families import Text
from likely.figures import Evaluation, Figures, Overlap, figures
from likely.filling import filled, has_gaps
from likely.model import Model, with_room
from likely.planning import AUTO, plan_for
from likely.prior import priors, textbook
from likely.schema import CATEGORY, Schema
from likely.selecting import select, without_idle_parts
from likely.sources import HOW, Batch, Coded, Reading, Source, open_source
from likely.sources.dateparts import parts_of, with_parts
from likely.sources.rows import complete, take
from likely.splitting import Groups, Split, deal, deal_groups, scrambled
from likely.tally import Tally

__all__ = ["Groups", "Split", "deal", "evaluate", "model_of", "prepare", "require_classes", "score", "scrambled"]

Array = NDArray[np.float64]
Progress = Callable[[int], None] | None

MOSTLY = 0.9  # of the rows have a copy among those learned from: then a row that is met again says nothing

SETTINGS = (
    "target_bins",
    "families",
    "date_parts",
    "joint",
    "smoothing",
    "class_prior",
    "weights",
    "ignore",
    "missing",
    "plain",
    "dependence",
    "average",
    "select",
    *HOW,
)


def evaluate(
    data: Any,
    *more: Any,
    target: Any = None,
    model: Model | None = None,
    folds: int | None = None,
    holdout: float | None = None,
    groups: Any = None,
    seed: int = 0,
    progress: Progress = None,
    **settings: Any,
) -> Evaluation:
    """Accuracy, log loss, Brier score, calibration error, AUC and confusion on rows that were not learned from.

    `evaluate(data, target="y", **settings)` learns with these settings (those of `learn`) and judges over `folds`, five if
    nothing is said, or on a `holdout` share of the rows. Both keep the share of every class, or with `groups` (a column, or
    one value a row) all rows of a group together. `evaluate(data, model=m)` judges a finished model, and says if these rows
    were learned from; with `folds` or `groups` its settings are judged. `evaluate(model_or_settings, data)` does the same.
    """
    first: Any = model
    if more:
        first, data, *odd = data, *more
        if odd or model is not None:
            raise UsageError("evaluate takes the data, and a model as model=...")
    if isinstance(first, Model) and folds is None and holdout is None and groups is None:
        return _try_model(first, data, target, settings, progress)
    given = dict(first) if isinstance(first, Mapping) else {}
    if isinstance(first, Model):
        given = _settings_of(first)
        target = first.schema.target.name if target is None else target
    given |= settings
    return _cross_validate(data, target, given, Split.of(folds, holdout, seed), groups, progress)


def _try_model(
    model: Model, data: Any, target: Any, settings: Mapping[str, Any], progress: Progress
) -> Evaluation:
    """A finished model on rows it has not seen."""
    name = model.schema.target.name if target is None else as_name(target)
    how = {key: value for key, value in settings.items() if key != "missing"}
    source, name = with_labels(open_source(data, Reading.of(settings.get("missing"), how, model.reading)), name)
    assert name is not None
    source = model.aimed(source, name)
    kinds = {c.name: c.kind for c in model.schema.columns} | {name: "category"}
    parts = [Figures.zero(model.classes)]
    seen: Tally | None = None
    for batch in source.batches(kinds):
        if name not in batch.names:
            raise no_column(source.label, name, batch.names, "the true labels are needed to evaluate")
        rows = complete(batch, model.schema.columns, source, "error")
        parts.append(_score(model, rows, batch.coded(name), np.ones(batch.rows)))
        counted = _counted_alike(model, rows, name)
        seen = counted if seen is None else seen + counted
        if progress:
            progress(batch.rows)
    total = reduce(lambda a, b: a + b, parts)
    if not total.rows:
        raise DataError(f"{source.label} has no labelled rows: nothing can be evaluated")
    return Evaluation(total, (), "hold-out", _overlap(model, seen))


def _counted_alike(model: Model, rows: Batch, target: str) -> Tally:
    """The rows as the model would have counted them."""
    sample = model.tally.sample is not None
    plan = Plan(target, model.blocks, model.schema.columns, target_form=model.schema.target.form, sample=sample)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        return tally_batch(rows, plan)


def _overlap(model: Model, seen: Tally | None) -> Overlap:
    """How many of the rows were learned from: all, where the model has counted the same; else as its sample tells."""
    if seen is None or model.schema.target.name != seen.schema.target.name:
        return Overlap(0, 0)
    rows = seen.rows
    if model.frozen and model.calibration:  # whose numbers are rounded
        seen = seen.without_rows(model.calibration.edges)
    if model.tally.counted_the_same(seen):
        return Overlap(rows, rows)
    if model.tally.sample is None:
        return Overlap(0, 0)
    common, checked, repeated = model.tally.in_common(seen)
    # Where rows repeat, as many are met again by chance (Good and Turing): only more than that says anything.
    chance = repeated * checked + 3.0 * np.sqrt(repeated * (1.0 - repeated) * checked)
    return Overlap(round(common) if common > chance else 0, round(checked) if repeated < MOSTLY else 0)


def _settings_of(model: Model) -> dict[str, Any]:
    # Of a model that chose for itself, only what was asked for is asked for again.
    chosen = model.tally.sample is not None or model.frozen
    asked = [b for b in model.blocks if not chosen or _asked_for(model, b.columns)]
    families = {b.columns if len(b.columns) > 1 else b.columns[0]: b.family for b in asked}
    smoothing = dict(model.prior.columns) | {"*": model.prior.default}
    ignore = [name for name, _ in model.schema.ignored]
    return {
        "families": families,
        "smoothing": smoothing,
        "class_prior": model.prior.classes,
        "ignore": ignore,
        "weights": model.weights,
        "missing": model.missing,
        "dependence": model.dependence,
        "average": model.average,
        "target_bins": model.target_edges or EACH,
        "date_parts": _date_parts(model),
    }


def _date_parts(model: Model) -> Any:
    """The derived columns that were asked for; otherwise those that tell the class are found anew in every fold."""
    names = list(parts_of(model.schema.columns))
    return names if all(_asked_for(model, [name]) for name in names) else AUTO


def _asked_for(model: Model, columns: Sequence[str]) -> bool:
    return any(model.schema.by_name[name].reason.endswith("as asked for") for name in columns)


def prepare(data: Any, target: Any, given: Mapping[str, Any]) -> tuple[Source, Plan]:
    """The rows that the settings are to be tried on, and what is to be counted of them."""
    unknown = sorted(given.keys() - set(SETTINGS))
    if unknown:
        meant = did_you_mean(unknown[0], SETTINGS)
        raise UsageError(f"the setting {unknown[0]!r} is not known{meant}: choose from {', '.join(SETTINGS)}")
    reading = Reading.of(given.get("missing"), {name: given[name] for name in HOW if name in given})
    bins = given.get("target_bins")
    table = opened(data, target, given.get("weights"), bins, reading)
    families, joint, ignore = given.get("families"), given.get("joint", ()), given.get("ignore", ())
    plain = any(given.get(name, False) is not False for name in ("plain", "average", "select"))
    plain = plain or textbook(given.get("smoothing", "auto"))
    plan = plan_for(table, families, joint, ignore, plain, bins is None, given.get("date_parts", AUTO))
    return with_parts(table.source, plan.parts), plan


def _cross_validate(
    data: Any, target: Any, given: Mapping[str, Any], split: Split, groups: Any, progress: Progress
) -> Evaluation:
    by_column = {groups: CATEGORY} if isinstance(groups, str) else {}
    source, plan = prepare(data, target, {**given, "ignore": (*given.get("ignore", ()), *by_column)})
    dealt: list[Groups] = []
    seen: dict[Any, int] = {}
    counted: dict[int, Tally] = {}
    kinds = plan.kinds() | by_column
    together = deal_groups(source.batches(kinds), groups, plan.target, split) if groups is not None else None
    for batch in source.batches(kinds):
        dealt.append(deal(batch.coded(plan.target), seen, split))
        if together is not None:
            dealt[-1] = together(batch)
        for pile, part in _tally_piles(batch, plan, dealt[-1], split.piles):
            counted[pile] = counted[pile] + part if pile in counted else part
        if progress:
            progress(batch.rows)
    classes = [label for label, rows in seen.items() if rows]
    require_classes(len(classes), plan.target, source.label)
    nothing = next(iter(counted.values())).zero()
    models = _models([counted.get(pile, nothing) for pile in range(split.piles)], split, given, classes)
    if any(m and has_gaps(m.tally) for m in models):
        models = [m and _filled(m, source, plan, dealt, i) for i, m in enumerate(models)]
    if given.get("select"):
        models = [m and _selected(m, source, plan, dealt, i, given["select"]) for i, m in enumerate(models)]
    tried = _score_piles(source.batches(plan.kinds()), dealt, models, plan, progress)
    note = "hold-out" if split.tested else f"{split.parts}-fold cross-validation"
    note += " by groups" if together is not None else ""
    return Evaluation(reduce(lambda a, b: a + b, tried), tuple(tried), note)


def require_classes(classes: int, target: str, label: str) -> None:
    """Where there is one class, every answer is right."""
    if classes < 2:
        raise DataError(
            f"column {target!r} has fewer than two classes in {label}: nothing can be evaluated", column=target
        )


def _tally_piles(batch: Batch, plan: Plan, piles: Groups, number: int) -> Iterator[tuple[int, Tally]]:
    """The tally of each pile of rows: in one sweep, unless a sample is kept.

    A tally may keep a sample of its rows or documents. Counted together, the piles would share one, and a model learned
    from some of them would have fewer rows to be fitted on than `learn` gives it.
    """
    if plan.sample or any(isinstance(block.family, Text) for block in plan.blocks):
        yield from tally_apart(batch, plan, piles)
    else:
        total = tally_batch(batch, plan, labels=_compound(batch.coded(plan.target), piles, number))
        yield from ((pile, _pile(total, pile)) for pile in range(number))


def tally_apart(batch: Batch, plan: Plan, piles: Groups) -> Iterator[tuple[int, Tally]]:
    """The tally of each pile of rows, one after the other; rows in a negative pile are in none."""
    for pile in np.unique(piles[piles >= 0]).tolist():
        yield pile, tally_batch(take(batch, np.flatnonzero(piles == pile)), plan)


def _compound(coded: Coded, piles: Groups, parts: int) -> Coded:
    """Pile and label as one label, so that one pass of counting fills the tallies of all piles."""
    width = len(coded.values)
    codes = np.where(piles >= 0, piles * width + (coded.codes.astype(np.int64) - coded.low), -1)
    return Coded(codes, [(pile, label) for pile in range(parts) for label in coded.values])


def _models(
    parts: Sequence[Tally], split: Split, given: Mapping[str, Any], classes: Sequence[Any]
) -> list[Model | None]:
    """For every pile that is tried, the model of all others; sums from both ends make that cheap and exact."""
    before, after = [parts[0].zero()], [parts[-1].zero()]
    for part in parts[:-1]:
        before.append(before[-1] + part)
    for part in parts[:0:-1]:
        after.append(after[-1] + part)
    found: list[Model | None] = [None] * split.piles
    for pile in split.tries:
        found[pile] = model_of(before[pile] + after[split.piles - 1 - pile], given, classes)
    return found


def _filled(model: Model, source: Source, plan: Plan, dealt: list[Groups], pile: int) -> Model:
    """The model whose joint blocks count rows with missing cells by EM, as `learn` does."""
    weights = weights_of(plan)

    def parts(schema: Schema) -> list[Part]:
        found = []
        for batch, piles in zip(source.batches(plan.kinds()), dealt, strict=True):
            held = Held(batch, schema)
            labels = held.coded(schema.target.name).codes.astype(np.int64)
            found.append((held, np.where((piles >= 0) & (piles != pile), labels, -1), weights(batch)))
        return found

    tally = filled(model.tally, model.prior, parts, lambda: source.batches(plan.kinds()))
    return replace(model, tally=with_room(tally, model.prior)).recalibrate()


def _selected(model: Model, source: Source, plan: Plan, dealt: list[Groups], pile: int, how: Any) -> Model:
    """The model with columns selected anew, from the rows that it has learned from and no others."""
    batches = zip(source.batches(plan.kinds()), dealt, strict=True)
    seen = (take(batch, np.flatnonzero((piles >= 0) & (piles != pile))) for batch, piles in batches)
    return select(model, seen, how, plan.weights)


def model_of(tally: Tally, given: Mapping[str, Any], classes: Sequence[Any]) -> Model:
    """The model of what was counted, under the settings that are tried."""
    plain = tally.sample is None
    prior = priors(given.get("smoothing", "auto"), given.get("class_prior"), classes, plain, tally.blocks)
    tally = with_room(without_idle_parts(in_order(tally.pruned())), prior)
    average, dependence = given.get("average", False), given.get("dependence", "auto")
    return Model(tally, prior, average=average, dependence=dependence).recalibrate()


def _pile(total: Tally, pile: int) -> Tally:
    """The tally of one pile, with plain labels."""
    places = [i for i, (p, _) in enumerate(total.schema.classes) if p == pile]
    return total.of_classes(places, [total.schema.classes[i][1] for i in places])


def _score_piles(
    batches: Iterator[Batch],
    dealt: list[Groups],
    models: Sequence[Model | None],
    plan: Plan,
    progress: Progress,
) -> list[Figures]:
    """Every row scored by the model that has not seen it."""
    tried = [Figures.zero(model.classes) if model else None for model in models]
    for batch, piles in zip(batches, dealt, strict=True):
        for pile, model in enumerate(models):
            rows = np.flatnonzero(piles == pile)
            sofar = tried[pile]
            if model and sofar and len(rows):
                tried[pile] = sofar + score(model, take(batch, rows), plan)
        if progress:
            progress(batch.rows)
    return [each for each in tried if each]


def score(model: Model, batch: Batch, plan: Plan) -> Figures:
    """How well a model does on rows with known labels."""
    w = batch.numbers([plan.weights], 0, batch.rows)[:, 0] if plan.weights is not None else np.ones(batch.rows)
    return _score(model, batch, batch.coded(plan.target), w)


def _score(model: Model, batch: Batch, labels: Coded, weights: Array) -> Figures:
    posterior = model.posterior_of(batch)
    truth = np.array([*model.schema.target.codes(labels.values), -1], dtype=np.int64)[labels.codes - labels.low]
    return figures(posterior, truth, weights, model.tally.classes)
