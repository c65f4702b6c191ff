"""Likely beside other learners: the same rows, the same folds, the same figures."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes import Posterior
from likely.comparison import OURS, Comparison, Result
from likely.engines import Plan
from likely.engines.memory import tally_batch
from likely.errors import UsageError
from likely.evaluate import Groups, Split, deal, model_of, prepare, require_classes, score
from likely.figures import Figures, figures
from likely.schema import CATEGORY, NUMBER, TEXT, ordered
from likely.selecting import select
from likely.sources import Batch, Source
from likely.sources.rows import take
from likely.threads import cached_property

if TYPE_CHECKING:
    from likely.rivals import Rival, Table

Array = NDArray[np.float64]
Progress = Callable[[str], None] | None
FLOOR = 1e-15  # a rival that says 0 for what happened would have lost for good


def compare(
    data: Any,
    target: str | None = None,
    *,
    rivals: Sequence[str] | None = None,
    quick: bool = False,
    folds: int = 5,
    seed: int = 0,
    limit: float | None = 600.0,
    progress: Progress = None,
    **settings: Any,
) -> Comparison:
    """Likely, plain and as it comes, beside scikit-learn's learners on the same stratified folds.

    `rivals` names some of them (`likely.compare_rivals()` lists all); `quick` leaves the slow ones out. One that fails, or
    takes more than `limit` seconds, is reported as such. `settings` are those of `learn`, for Likely alone, but for
    `ignore`, `missing` and how a file is read (`encoding`, `table`, ...), which decide what everybody sees.
    """
    if settings.get("weights") is not None:
        raise UsageError("compare counts every row once: leave weights out")
    wanted = _wanted(rivals, quick)
    plain = {"plain": True, "average": False, "select": False}
    ours = {"likely-plain": settings | plain, "likely": settings | {"plain": False}}
    prepared = {name: _Ours.of(data, target, given) for name, given in ours.items()}
    rows = _Rows.of(prepared["likely-plain"], Split.of(folds, None, seed))
    require_classes(len(rows.classes), rows.plan.target, rows.source.label)
    entrants: list[tuple[str, str, Fold]] = [(name, title, prepared[name].fold) for name, title in OURS.items()]
    entrants += [(rival.name, rival.title, _entrant(rival)) for rival in wanted]
    results = [_race(name, title, rows, fold, limit, progress) for name, title, fold in entrants]
    return Comparison(rows.plan.target, rows.source.label, int((rows.piles >= 0).sum()), folds, seed, tuple(results))


def compare_rivals() -> dict[str, str]:
    """What `compare` can set beside Likely: names and titles."""
    return {name: rival.title for name, rival in _all_rivals().items()}


def _all_rivals() -> dict[str, Rival]:
    try:
        from likely.rivals import RIVALS
    except ImportError as error:
        raise UsageError(
            f"compare needs scikit-learn, which is not installed ({error}): pip install 'likely[sklearn]'"
        ) from None
    return RIVALS


def _wanted(names: Sequence[str] | None, quick: bool) -> list[Rival]:
    known = _all_rivals()
    if names is None:
        return [rival for rival in known.values() if rival.quick or not quick]
    odd = [name for name in names if name not in known]
    if odd:
        raise UsageError(f"there is no rival {odd[0]!r}: choose from {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


Fold = Callable[["_Rows", int], tuple[Figures, float, float, str]]


def _race(name: str, title: str, rows: _Rows, fold: Fold, limit: float | None, progress: Progress) -> Result:
    """One learner over all folds; whatever goes wrong is its own affair."""
    done: list[tuple[Figures, float, float, str]] = []
    empty = Result(name, title, (), (), (), failed=True)
    for i in range(rows.folds):
        if progress:
            progress(f"{title}: fold {i + 1} of {rows.folds}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of other people's code, about other people's settings
                done.append(fold(rows, i))
        except Exception as error:
            if name in OURS:
                raise
            said = " ".join(f"{type(error).__name__}: {error}".split())
            return replace(empty, note=f"failed: {said[:160]}")
        spent = sum(fit + predict for _, fit, predict, _ in done)
        if limit is not None and spent > limit and i + 1 < rows.folds and name not in OURS:
            return replace(empty, note=f"too slow: {spent:.0f} s for {i + 1} of {rows.folds} folds")
    judged, fits, predicts, notes = zip(*done, strict=True)
    return Result(name, title, judged, fits, predicts, notes[0])


@dataclass(frozen=True)
class _Ours:
    """Likely with its settings, and the rows as it reads them."""

    source: Source
    plan: Plan
    batches: tuple[Batch, ...]
    given: Mapping[str, Any]

    @staticmethod
    def of(data: Any, target: str | None, given: Mapping[str, Any]) -> _Ours:
        source, plan = prepare(data, target, given)
        return _Ours(source, plan, tuple(source.batches(plan.kinds())), given)

    def fold(self, rows: _Rows, fold: int) -> tuple[Figures, float, float, str]:
        """Count what is in the other folds, and judge the model on this one; just what `evaluate` does."""
        start = time.perf_counter()
        seen = list(self._part((rows.piles >= 0) & (rows.piles != fold)))
        total = reduce(lambda a, b: a + b, (tally_batch(batch, self.plan) for batch in seen))
        model = model_of(total, self.given, rows.classes)
        if self.given.get("select"):
            model = select(model, seen, self.given["select"])
        middle = time.perf_counter()
        found = reduce(Figures.__add__, (score(model, batch, self.plan) for batch in self._part(rows.piles == fold)))
        return found, middle - start, time.perf_counter() - middle, ""

    def _part(self, wanted: NDArray[np.bool_]) -> Iterator[Batch]:
        at = 0
        for batch in self.batches:
            places = np.flatnonzero(wanted[at : at + batch.rows])
            at += batch.rows
            if len(places):
                yield take(batch, places)


@dataclass(frozen=True)
class _Rows:
    """All rows: their folds, their classes as numbers, and the matrix that rivals want."""

    source: Source
    plan: Plan
    folds: int
    classes: tuple[Any, ...]
    labels: Groups  # place among the classes, -1 where there is none
    piles: Groups  # the fold of each row, -1 where it has no class
    batches: tuple[Batch, ...]

    @staticmethod
    def of(plain: _Ours, split: Split) -> _Rows:
        """The rows as the plain model reads them, dealt as `evaluate` deals them."""
        seen: dict[Any, int] = {}
        coded = [batch.coded(plain.plan.target) for batch in plain.batches]
        piles = np.concatenate([deal(each, seen, split) for each in coded] or [np.zeros(0, np.int64)])
        classes = ordered(label for label, rows in seen.items() if rows)
        place = {label: i for i, label in enumerate(classes)}
        labels = [
            np.array([*(place.get(v, -1) for v in c.values), -1])[c.codes.astype(np.int64) - c.low] for c in coded
        ]
        numbers = np.concatenate(labels or [np.zeros(0, np.int64)])
        return _Rows(plain.source, plain.plan, split.piles, classes, numbers, piles, plain.batches)

    @cached_property
    def table(self) -> Table:
        """The columns as floats, NaN where missing; categories and texts as places in lists."""
        from likely.rivals import Table

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
        return Table(
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


def _entrant(rival: Rival) -> Fold:
    """A rival on the same folds, learning from no more rows than it can bear."""

    def fold(rows: _Rows, fold: int) -> tuple[Figures, float, float, str]:
        train = np.flatnonzero((rows.piles >= 0) & (rows.piles != fold))
        test = np.flatnonzero(rows.piles == fold)
        few = thinned(rows.labels, train, rival.most_rows)
        note = f"learned from {len(few):,} of {len(train):,} rows" if len(few) < len(train) else ""
        X, y = rows.table.X, rows.labels
        start = time.perf_counter()
        learner = rival.make(rows.table, y[few]).fit(X[few], y[few])
        middle = time.perf_counter()
        shares = np.asarray(learner.predict_proba(X[test]), dtype=np.float64)
        end = time.perf_counter()
        return judged(shares, learner.classes_, y[test], rows.classes), middle - start, end - middle, note

    return fold


def judged(shares: Array, known: NDArray[Any], truth: Groups, classes: Sequence[Any]) -> Figures:
    """The figures of probabilities that somebody else gave, those of zero taken as tiny."""
    logs = np.log(np.clip(shares, FLOOR, None))
    place = np.full(len(classes), len(known))
    place[known] = np.arange(len(known))
    labels = [classes[i] for i in known]
    return figures(Posterior(labels, logs, np.zeros(len(known))), place[truth], np.ones(len(truth)))


def thinned(labels: Groups, rows: Groups, most: int | None) -> Groups:
    """As many rows as are allowed, each class in proportion, evenly over the table."""
    if most is None or len(rows) <= most:
        return rows
    order = rows[np.argsort(labels[rows], kind="stable")]
    return np.sort(order[(np.arange(most) * len(order)) // most])
