"""Models of more or fewer rows: count rows as a model counts them, merge two models, replace the tally."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from likely.engines import Plan, tally_source, truncated
from likely.engines.engine import AUTO, DATABASE, DUCKDB, CountedSource, Engine, choose
from likely.engines.row_weights import with_weights
from likely.engines.targets import as_name
from likely.errors import DataError, LikelyWarning, UsageError, no_column
from likely.model.parameters import with_taken
from likely.model.relearning import NO_ROWS
from likely.schema import ordered
from likely.sources import Batch, MissingTokens, ReadOptions, Source, missing_of, open_source
from likely.sources.row_access import complete, with_detected_kinds
from likely.tally import Tally

if TYPE_CHECKING:
    from likely.model.model import Model


def merged(one: Model, other: Model) -> Model:
    """The model of both tables: equals learning from both at once."""
    if one.target_edges != other.target_edges:
        both = f"{list(one.target_edges)} and {list(other.target_edges)}"
        raise DataError(f"the targets are cut into bins at {both}: learn both with the same target_bins=[...]")
    _warn_of_other_tokens(one.reading.gaps(False), other.reading.gaps(False))
    declared = ordered({*one.declared, *other.declared})
    total = replace(one, tally=one.tally + other.tally, declared=declared)
    return _with_older_calibration(total, one, other) if one.frozen or other.frozen else total.recalibrate()


def _with_older_calibration(total: Model, *parts: Model) -> Model:
    """A sum that has no rows to be calibrated on: it keeps the calibration of the part that has counted more rows."""
    fitted = [p for p in parts if p.classes == total.classes and (p.calibration is not None or p.stages)]
    if not fitted:
        raise UsageError(f"the models have other classes, and the calibration has to be fitted again: {NO_ROWS}")
    best = max(fitted, key=lambda part: part.tally.rows)
    message = "one of the models holds no rows: their sum holds none, and keeps the calibration of the one with more rows"
    warnings.warn(message, LikelyWarning, stacklevel=4)
    kept = best.calibration and best.calibration.without_forgotten(total.schema)
    return replace(total, tally=total.tally.without_rows({}), stages=best.stages, calibration=kept)


def count_rows(model: Model, rows: Any, reading: ReadOptions, weights: Any = None, engine: str = AUTO) -> Tally:
    """The tally of other rows, counted as the model counts; `weights` and `engine` as in `learn`."""
    weights = model.weights if weights is None else as_name(weights)
    if engine in (DUCKDB, DATABASE):
        raise UsageError(
            f"engine={engine!r} learns a model and does not change one", remedy="leave it out: the rows are read in batches"
        )
    where, rows = choose(engine, rows)
    if where.supports_parts and len(rows):
        tally, unlabelled = _counted_in_parts(model, where, rows, reading, weights)
    else:
        tally, unlabelled = _counted_here(model, rows, reading, weights)
    _warn_of_incomplete_rows(tally)
    if unlabelled:
        message = f"{unlabelled:,} rows have no {model.schema.target.name!r}: they were not counted"
        warnings.warn(message, LikelyWarning, stacklevel=4)
    return tally


def _plan(model: Model, source: Source, weights: str | None) -> Plan:
    """How other rows are counted; the kinds of columns without any cell so far are those of the rows."""
    target, columns = model.schema.target, with_detected_kinds(model.schema.columns, source)
    keep = model.tally.sample is not None
    return Plan(target.name, model.blocks, columns, weights, target_form=target.form, sample=keep)


def _counted_here(model: Model, rows: Any, reading: ReadOptions, weights: Any) -> tuple[Tally, int]:
    """The tally of rows that this process reads, and the number of those without a label."""
    source, weight_name = with_weights(open_source(rows, reading), weights)
    source = model.with_target(source, model.schema.target.name)
    plan = _plan(model, source, weight_name)
    unlabelled: list[int] = []

    def batches() -> Iterator[Batch]:
        for batch in source.batches(plan.kinds()):
            needed = [plan.target, *([plan.weights] if plan.weights is not None else [])]
            absent = [name for name in needed if name not in batch.names]
            if absent:
                raise no_column(source.label, absent[0], batch.names, "rows to learn from need it")
            hidden = batch.coded(plan.target)
            unlabelled.append(int((hidden.codes < hidden.low).sum()) if hidden.low == 0 else 0)
            yield complete(batch, model.schema.columns, source, "error")

    tally = tally_source(batches(), plan)
    return with_taken(tally, missing_of(source)), sum(unlabelled)


def _counted_in_parts(model: Model, engine: Engine, first: Any, reading: ReadOptions, weights: Any) -> tuple[Tally, int]:
    """The same of rows that the tasks of an engine read; `first` are some of them."""
    from likely.model.parts import PartPlan

    if weights is not None and not isinstance(weights, str):
        raise UsageError("weights= of a Spark table must be the name of one of its columns")
    if odd := next((name for name in ("decimal", "thousands", "dates") if getattr(reading, name) is not None), None):
        raise UsageError(
            f"{odd}= is not taken where Spark counts: cells are read in the formats that the model was learned with",
            remedy="leave it out, or cast the column in Spark",
        )
    source = model.with_target(open_source(first, reading), model.schema.target.name)
    plan = _plan(model, source, weights)
    gaps = MissingTokens(reading.missing or (), reading.missing_labels)
    fields = {"weights": weights, "target_edges": model.target_edges, **gaps.stored()}
    task = PartPlan.of(plan, gaps, fields, refuse_unlabelled=False).task
    found = engine.tally(CountedSource(source, plan), task, None)
    return found.tally, found.without_label


def with_tally(model: Model, tally: Tally) -> Model:
    """The model of another tally; the calibration is kept unless the classes changed or no rows are left to fit it on."""
    other = replace(model, tally=truncated(tally))
    new = tally.schema.classes != model.classes
    fitted = bool(model.stages) or model.calibration is not None
    if model.frozen:
        if new:
            odd = ordered({*model.classes} ^ {*tally.schema.classes})
            raise UsageError(
                f"class {odd[0]!r} was added or removed, and the calibration has to be fitted again: {NO_ROWS}"
            )
    elif (fitted and new) or other.calibrates != (model.calibration is not None):
        return other.recalibrate()
    kept = model.calibration and model.calibration.without_forgotten(tally.schema)
    return replace(other, calibration=kept)


def _warn_of_other_tokens(one: MissingTokens, other: MissingTokens) -> None:
    """Warn that two models have different missing-value tokens: the sum keeps those of the first."""
    if (one.tokens, one.labels) != (other.tokens, other.labels):
        lists = [(list(g.tokens), list(g.tokens if g.labels is None else g.labels)) for g in (one, other)]
        both = " and ".join(f"{tokens} (target: {labels})" for tokens, labels in lists)
        message = f"the models take different texts for missing, {both}: the sum reads rows by the first list"
        warnings.warn(message, LikelyWarning, stacklevel=5)


def _warn_of_incomplete_rows(tally: Tally) -> None:
    """Warn of joint blocks that did not count some rows, because a cell of them is missing."""
    for block, statistic in zip(tally.blocks, tally.statistics, strict=True):
        whole = float(tally.classes.sum()) if block.family.needs_whole_rows else 0.0
        left = whole - float(statistic.weight().sum()) if whole else 0.0
        if left > 0.5:
            message = f"{block.name!r}: {left:,.0f} of these rows miss cells of it and change nothing of it; "
            warnings.warn(f"{message}learn anew from all rows to count them by EM", LikelyWarning, stacklevel=5)
