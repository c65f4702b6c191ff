"""Comparison with baselines: the same rows, the same folds, the same metrics."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from likely.bayes import Posterior
from likely.engines import Plan
from likely.engines.memory import tally_batch
from likely.errors import UsageError, import_optional
from likely.evaluation.comparison_table import OWN_LEARNERS, Comparison, Result
from likely.evaluation.cross_validation import Groups, Split, assign_folds, model_of, prepare, require_classes, score
from likely.evaluation.metrics import Metrics, metrics_of
from likely.kernels.parallel import cached_property
from likely.kernels.progress import announce
from likely.model.model_keywords import LearnSettings
from likely.model.selection import select
from likely.schema import CATEGORY, NUMBER, TEXT, ordered
from likely.sources import Batch, Source
from likely.sources.row_access import take

if TYPE_CHECKING:
    from likely.evaluation._baselines import Baseline, FeatureTable

Array = NDArray[np.float64]
Progress = Callable[[str], None] | None
FLOOR = 1e-15  # a probability of 0 for the true class would make the log loss infinite


def compare(
    data: Any,
    target: str | None = None,
    *,
    baselines: Sequence[str] | None = None,
    quick: bool = False,
    folds: int = 5,
    seed: int = 0,
    limit: float | None = 600.0,
    progress: Progress = None,
    **settings: Unpack[LearnSettings],
) -> Comparison:
    """Compare Likely, plain and default, with scikit-learn's classifiers on the same stratified folds.

    Parameters
    ----------
    data : path, frame, dict of columns or any other source
        The table, as for `learn`.
    target : str or None, default=None
        The column to predict.
    baselines : sequence of str or None, default=None
        Names of the baselines; `likely.compare_baselines()` lists all, which is the default.
    quick : bool, default=False
        Whether to leave out the slow ones.
    folds : int, default=5
        Number of folds.
    seed : int, default=0
        Seed of the folds.
    limit : float or None, default=600.0
        Seconds that a baseline may take; one that takes longer, or fails, is reported as such.
    progress : callable or None, default=None
        Called with a message when a classifier starts.
    **settings
        Settings of `learn`, for Likely alone; `ignore`, `missing` and how a file is read are for all.

    Returns
    -------
    Comparison
        Metrics of every classifier; it prints as a table.
    """
    if settings.get("weights") is not None:
        raise UsageError("compare counts every row once: leave weights out")
    wanted = _wanted(baselines, quick)
    plain = {"plain": True, "average": False, "select": False}
    own = {"likely-plain": settings | plain, "likely": settings | {"plain": False}}
    prepared = {name: _OwnModel.of(data, target, given) for name, given in own.items()}
    rows = _ComparedRows.of(prepared["likely-plain"], Split.of(folds, None, seed))
    require_classes(len(rows.classes), rows.plan.target, rows.source.label)
    learners: list[tuple[str, str, Fold]] = [(name, title, prepared[name].fold) for name, title in OWN_LEARNERS.items()]
    learners += [(baseline.name, baseline.title, _baseline_fold(baseline)) for baseline in wanted]
    results = []
    for i, (name, title, fold) in enumerate(learners):
        announce(title, i * rows.folds, len(learners) * rows.folds)
        results.append(_cross_validate(name, title, rows, fold, limit=limit, progress=progress))
    return Comparison(rows.plan.target, rows.source.label, int((rows.fold_of >= 0).sum()), folds, seed, tuple(results))


def compare_baselines() -> dict[str, str]:
    """Names and titles of the baselines of `compare`."""
    return {name: baseline.title for name, baseline in _all_baselines().items()}


def _all_baselines() -> dict[str, Baseline]:
    baselines = import_optional("likely.evaluation._baselines", "compare", library="sklearn")
    found: dict[str, Baseline] = baselines.BASELINES
    return found


def _wanted(names: Sequence[str] | None, quick: bool) -> list[Baseline]:
    known = _all_baselines()
    if names is None:
        return [baseline for baseline in known.values() if baseline.quick or not quick]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"there is no baseline {unknown[0]!r}: choose from {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


Fold = Callable[["_ComparedRows", int], tuple[Metrics, float, float, str]]


def _cross_validate(
    name: str, title: str, rows: _ComparedRows, fold: Fold, *, limit: float | None, progress: Progress
) -> Result:
    """One classifier over all folds; an error of a baseline is reported in its result."""
    done: list[tuple[Metrics, float, float, str]] = []
    empty = Result(name, title, (), (), (), failed=True)
    for i in range(rows.folds):
        announce(f"{title}, fold {i + 1} of {rows.folds}")
        if progress:
            progress(f"{title}: fold {i + 1} of {rows.folds}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings of baselines about their own settings
                done.append(fold(rows, i))
        except Exception as error:
            if name in OWN_LEARNERS:
                raise
            message = " ".join(f"{type(error).__name__}: {error}".split())
            return replace(empty, note=f"failed: {message[:160]}")
        spent = sum(fit + predict for _, fit, predict, _ in done)
        if limit is not None and spent > limit and i + 1 < rows.folds and name not in OWN_LEARNERS:
            return replace(empty, note=f"too slow: {spent:.0f} s for {i + 1} of {rows.folds} folds")
    metrics, fits, predicts, notes = zip(*done, strict=True)
    return Result(name, title, metrics, fits, predicts, notes[0])


@dataclass(frozen=True)
class _OwnModel:
    """Likely with its settings, and the rows as it reads them."""

    source: Source
    plan: Plan
    batches: tuple[Batch, ...]
    given: Mapping[str, Any]

    @staticmethod
    def of(data: Any, target: str | None, given: Mapping[str, Any]) -> _OwnModel:
        source, plan = prepare(data, target, given)
        return _OwnModel(source, plan, tuple(source.batches(plan.kinds())), given)

    def fold(self, rows: _ComparedRows, fold: int) -> tuple[Metrics, float, float, str]:
        """Learn from the other folds and evaluate on this one, as `evaluate` does."""
        start = time.perf_counter()
        seen = list(self._part((rows.fold_of >= 0) & (rows.fold_of != fold)))
        total = reduce(lambda a, b: a + b, (tally_batch(batch, self.plan) for batch in seen))
        model = model_of(total, self.given, rows.classes)
        if self.given.get("select"):
            model = select(model, seen, self.given["select"])
        middle = time.perf_counter()
        found = reduce(Metrics.__add__, (score(model, batch, self.plan) for batch in self._part(rows.fold_of == fold)))
        return found, middle - start, time.perf_counter() - middle, ""

    def _part(self, wanted: NDArray[np.bool_]) -> Iterator[Batch]:
        at = 0
        for batch in self.batches:
            places = np.flatnonzero(wanted[at : at + batch.rows])
            at += batch.rows
            if len(places):
                yield take(batch, places)


@dataclass(frozen=True)
class _ComparedRows:
    """All rows: the fold and class code of each, and the feature matrix for baselines."""

    source: Source
    plan: Plan
    folds: int
    classes: tuple[Any, ...]
    labels: Groups  # place among the classes, -1 where there is none
    fold_of: Groups  # the fold of each row, -1 where it has no class
    batches: tuple[Batch, ...]

    @staticmethod
    def of(plain: _OwnModel, split: Split) -> _ComparedRows:
        """The rows as the plain model reads them, in the folds of `evaluate`."""
        seen: dict[Any, int] = {}
        coded = [batch.coded(plain.plan.target) for batch in plain.batches]
        fold_of = np.concatenate([assign_folds(each, seen, split) for each in coded] or [np.zeros(0, np.int64)])
        classes = ordered(label for label, rows in seen.items() if rows)
        place = {label: i for i, label in enumerate(classes)}
        labels = [
            np.array([*(place.get(v, -1) for v in c.values), -1])[c.codes.astype(np.int64) - c.low] for c in coded
        ]
        numbers = np.concatenate(labels or [np.zeros(0, np.int64)])
        return _ComparedRows(plain.source, plain.plan, split.fold_count, classes, numbers, fold_of, plain.batches)

    @cached_property
    def table(self) -> FeatureTable:
        """The columns as floats, NaN where missing; categories and texts as codes."""
        from likely.evaluation._baselines import FeatureTable

        columns, kinds = [], {column.name: column.kind for column in self.plan.columns}
        sizes, documents = [], []
        for name, kind in kinds.items():
            if kind == NUMBER:
                parts = [batch.numbers([name], 0, batch.rows)[:, 0] for batch in self.batches]
                x = np.concatenate(parts)
                x[np.isinf(x)] = np.nan
            else:
                x, values = self._coded(name)
                if kind == CATEGORY:
                    sizes.append(len(values))
                else:
                    documents.append(np.array([*map(str, values), ""], dtype=object))
                    x = np.where(np.isnan(x), len(values), x)
            columns.append(x)
        of_kind = {k: tuple(j for j, kind in enumerate(kinds.values()) if kind == k) for k in (NUMBER, CATEGORY, TEXT)}
        return FeatureTable(
            np.column_stack(columns), of_kind[NUMBER], of_kind[CATEGORY], tuple(sizes), of_kind[TEXT], tuple(documents)
        )

    def _coded(self, name: str) -> tuple[Array, list[Any]]:
        known: dict[Any, int] = {}
        parts = []
        for batch in self.batches:
            coded = batch.coded(name)
            codes = coded.codes.astype(np.int64) - coded.low
            codes[(codes < 0) | (codes >= len(coded.values))] = -1
            present = np.zeros(len(coded.values) + 1, bool)
            present[codes[codes >= 0]] = True
            move = np.full(len(coded.values) + 1, np.nan)
            for code in np.flatnonzero(present).tolist():
                move[code] = known.setdefault(coded.values[code], len(known))
            parts.append(move[codes])
        return np.concatenate(parts), list(known)


def _baseline_fold(baseline: Baseline) -> Fold:
    """Fit and evaluate a baseline on one fold, on no more training rows than its limit."""

    def fold(rows: _ComparedRows, fold: int) -> tuple[Metrics, float, float, str]:
        train = np.flatnonzero((rows.fold_of >= 0) & (rows.fold_of != fold))
        test = np.flatnonzero(rows.fold_of == fold)
        few = thinned(rows.labels, train, baseline.most_rows)
        note = f"learned from {len(few):,} of {len(train):,} rows" if len(few) < len(train) else ""
        X, y = rows.table.X, rows.labels
        start = time.perf_counter()
        learner = baseline.make(rows.table, y[few]).fit(X[few], y[few])
        middle = time.perf_counter()
        probabilities = np.asarray(learner.predict_proba(X[test]), dtype=np.float64)
        end = time.perf_counter()
        return metrics_from(probabilities, learner.classes_, y[test], rows.classes), middle - start, end - middle, note

    return fold


def metrics_from(probabilities: Array, known: NDArray[Any], truth: Groups, classes: Sequence[Any]) -> Metrics:
    """Metrics of a baseline's probabilities, clipped at `FLOOR`."""
    logs = np.log(np.clip(probabilities, FLOOR, None))
    place = np.full(len(classes), len(known))
    place[known] = np.arange(len(known))
    labels = [classes[i] for i in known]
    return metrics_of(Posterior(labels, logs, np.zeros(len(known))), place[truth], np.ones(len(truth)))


def thinned(labels: Groups, rows: Groups, most: int | None) -> Groups:
    """An even sample of at most `most` rows, with the classes in proportion."""
    if most is None or len(rows) <= most:
        return rows
    order = rows[np.argsort(labels[rows], kind="stable")]
    return np.sort(order[(np.arange(most) * len(order)) // most])
