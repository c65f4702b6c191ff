"""How much is learned from how many rows: accuracy and log loss of models that have seen ever more of the same rows.

For each seed a share of the rows is withheld, and the others are put into an order in which every beginning has the classes
in proportion. A training set is such a beginning, so each holds all smaller ones: only what a set adds is counted, and the
tallies add up. All sets together cost one pass of counting for each seed.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import charts
from likely.engines import Plan
from likely.errors import DataError, UsageError
from likely.evaluate import (
    Groups,
    Progress,
    Split,
    deal,
    model_of,
    prepare,
    require_classes,
    score,
    scrambled,
    tally_apart,
)
from likely.figures import Figures, finite
from likely.sources import Batch, Coded, Frame, Matrix, Source
from likely.sources.rows import take
from likely.tally import Tally
from likely.threads import cached_property

Array = NDArray[np.float64]
FIRST_SIZE, ROWS_A_CLASS = 50, 2
FIGURES = {"accuracy": "accuracy on withheld rows", "log_loss": "log loss on withheld rows (nats)"}
ENDINGS = (".svg", ".png", ".json")
HELD = 1 << 28  # bytes of rows that are kept between passes; a larger table is read again for every size


def curve(
    data: Any,
    target: str | None = None,
    *,
    sizes: Sequence[int] | None = None,
    seeds: int | Sequence[int] = 5,
    holdout: float = 1 / 3,
    progress: Progress = None,
    **settings: Any,
) -> LearningCurve:
    """Accuracy and log loss on withheld rows against the number of rows learned from.

    Each seed withholds another `holdout` share and learns from growing parts of the rest: `sizes`, or twice as many from
    step to step up to all of them. `settings` are those of `learn`.
    """
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not chosen:
        raise UsageError("seeds must be a number of one or more, or a list of seeds")
    if settings.get("select"):
        raise UsageError("a learning curve selects no columns: leave select out, or name the others in ignore=")
    splits = [Split.of(None, holdout, seed) for seed in chosen]
    source, plan = prepare(data, target, settings)
    rows = _Rows.of(source, plan, progress)
    require_classes(len(rows.classes), plan.target, source.label)
    orders = [_Order.of(rows.labels, split) for split in splits]
    steps = _steps(sizes, orders, len(rows.classes))
    tried = [_tried(rows, order, order.sizes(steps), settings, progress) for order in orders]
    trained = tuple(order.sizes(steps) for order in orders)
    share, known = Fraction(splits[0].tested, splits[0].parts), int((rows.labels >= 0).sum())
    return LearningCurve(plan.target, source.label, known, share, chosen, steps, trained, tuple(tried))


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """The figures of every seed at every size; prints as a table, draws itself as SVG."""

    target: str
    source: str
    rows: int
    holdout: Fraction
    seeds: tuple[int, ...]
    sizes: tuple[int, ...]
    trained: tuple[tuple[int, ...], ...]  # seeds × sizes: when all rows are meant, seeds may differ by a few
    figures: tuple[tuple[Figures, ...], ...]  # seeds × sizes

    @cached_property
    def accuracy(self) -> Array:
        """Seeds × sizes: the share of withheld rows whose most probable class is the true one."""
        return np.array([[each.accuracy for each in row] for row in self.figures])

    @cached_property
    def log_loss(self) -> Array:
        """Seeds × sizes: the mean of -log P(true class) over the withheld rows, in nats."""
        return np.array([[each.log_loss for each in row] for row in self.figures])

    def band(self, figure: str = "accuracy") -> tuple[Array, Array, Array]:
        """Mean, lowest and highest of the seeds at every size."""
        if figure not in FIGURES:
            raise UsageError(f"figure={figure!r} is not known: choose one of {', '.join(FIGURES)}")
        values: Array = getattr(self, figure)
        return values.mean(0), values.min(0), values.max(0)

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain data; what has no finite value is null."""
        return {
            "target": self.target, "data": self.source, "rows": self.rows, "holdout": float(self.holdout),
            "seeds": list(self.seeds), "sizes": list(self.sizes), "points": [self._point(i) for i in range(len(self.sizes))],
        }  # fmt: skip

    def _point(self, i: int) -> dict[str, Any]:
        point: dict[str, Any] = {"size": self.sizes[i], "rows": [trained[i] for trained in self.trained],
                                 "tested": [row[i].rows for row in self.figures]}  # fmt: skip
        for figure in FIGURES:
            values: Array = getattr(self, figure)[:, i]
            mean, low, high = (finite(float(part[i])) for part in self.band(figure))
            point[figure] = {"mean": mean, "low": low, "high": high, "seeds": [finite(v) for v in values.tolist()]}
        return point

    @property
    def _how(self) -> str:
        many = f"mean of {len(self.seeds)} seeds, band from the lowest to the highest"
        return f"{self.rows:,} rows, {self.holdout} of them withheld; {many if len(self.seeds) > 1 else '1 seed'}"

    def __str__(self) -> str:
        head = f"{'rows':>10}  {'accuracy':>8}  {'from':>6}  {'to':>6}  {'log loss':>8}  {'from':>6}  {'to':>6}"
        columns = [self.sizes, *self.band("accuracy"), *self.band("log_loss")]
        lines = [
            f"{size:>10,}  {a:>8.4f}  {a0:>6.4f}  {a1:>6.4f}  {b:>8.4f}  {b0:>6.4f}  {b1:>6.4f}"
            for size, a, a0, a1, b, b0, b1 in zip(*columns, strict=True)
        ]
        return "\n".join([f"Learning curve of {self.target!r}: {self._how}", "", head, "-" * len(head), *lines])

    def line(self, figure: str = "accuracy", title: str | None = None) -> charts.Line:
        """What is drawn of one figure."""
        mean, low, high = (part.tolist() for part in self.band(figure))
        return charts.Line(
            self.sizes, mean, low, high,
            title or f"Learning curve of {self.target}", self._how, "rows learned from (logarithmic scale)",
            FIGURES[figure], percent=figure == "accuracy",
        )  # fmt: skip

    def svg(self, figure: str = "accuracy", title: str | None = None) -> str:
        """The curve as a picture: accuracy, or `figure="log_loss"`."""
        return charts.svg(self.line(figure, title))

    def _repr_svg_(self) -> str:
        return self.svg()

    def drawn(self, ending: str, figure: str = "accuracy", title: str | None = None) -> bytes:
        """The bytes of a file with that ending: .svg, .png or .json."""
        check_ending(ending)
        if ending == ".json":
            return (json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n").encode()
        return self.svg(figure, title).encode() if ending == ".svg" else charts.png(self.line(figure, title))

    def save(self, path: str | Path, *, figure: str = "accuracy", title: str | None = None) -> None:
        """Write the curve to a .svg, .png or .json file."""
        Path(path).write_bytes(self.drawn(Path(path).suffix.lower(), figure, title))


def check_ending(ending: str) -> None:
    """A curve can be written so: said before the work, not after it."""
    if ending not in ENDINGS:
        raise UsageError(f"a curve cannot be written as {ending or 'a file without ending'}: use {', '.join(ENDINGS)}")
    if ending == ".png" and importlib.util.find_spec("matplotlib") is None:
        raise UsageError(
            "a .png is drawn by matplotlib, which is not installed: pip install 'likely[plots]', or write .svg"
        )


@dataclass(frozen=True)
class _Rows:
    """The rows, kept in memory if they are few, and the class of each as a number, -1 where it has none."""

    source: Source
    plan: Plan
    kept: tuple[Batch, ...] | None
    classes: tuple[Any, ...]
    labels: Groups

    @staticmethod
    def of(source: Source, plan: Plan, progress: Progress) -> _Rows:
        """A first look at all rows."""
        known: dict[Any, int] = {}
        labels: list[Groups] = []
        kept: list[Batch] | None = []
        room = HELD
        for batch in source.batches(plan.kinds()):
            labels.append(_numbered(batch.coded(plan.target), known))
            room -= _size(batch)
            if kept is not None and room >= 0:
                kept.append(batch)
            else:
                kept = None
            if progress:
                progress(batch.rows)
        numbers = np.concatenate(labels) if labels else np.zeros(0, np.int64)
        return _Rows(source, plan, None if kept is None else tuple(kept), tuple(known), numbers)

    def batches(self, piles: Groups) -> Iterator[tuple[Batch, Groups]]:
        """The rows once more, each batch with the piles of its rows."""
        start = 0
        for batch in self.source.batches(self.plan.kinds()) if self.kept is None else self.kept:
            yield batch, piles[start : start + batch.rows]
            start += batch.rows


def _numbered(coded: Coded, known: dict[Any, int]) -> Groups:
    """The class of every row by its number, in the order of their first coming: the order in which `evaluate` deals."""
    codes = coded.codes.astype(np.int64) - coded.low
    codes[(codes < 0) | (codes >= len(coded.values))] = -1
    move = np.full(len(coded.values) + 1, -1)
    for code in np.unique(codes[codes >= 0]).tolist():
        move[code] = known.setdefault(coded.values[code], len(known))
    return np.asarray(move[codes])


def _size(batch: Batch) -> int:
    """About how many bytes a batch takes."""
    if isinstance(batch, Matrix):
        return int(batch.array.nbytes)
    assert isinstance(batch, Frame)
    return sum(64 * len(c) if isinstance(c, list) else int(c.nbytes) for c in batch.columns.values())


@dataclass(frozen=True)
class _Order:
    """The rows that are withheld, and the others in the order in which they are learned."""

    rows: int
    withheld: Groups
    learned: Groups

    @staticmethod
    def of(labels: Groups, split: Split) -> _Order:
        """Withheld are the rows that `evaluate` withholds; of the others, each beginning is a fair sample of all.

        The j-th of n rows of a class, shuffled, comes at a random place in the j-th of n equal stretches; only the first
        row of every class is moved to the front, so that no model is without a class.
        """
        piles = deal(Coded(labels, range(int(labels.max(initial=-1)) + 1)), {}, split)
        rows = np.flatnonzero(piles == 1)
        keys = scrambled(rows.astype(np.uint64) + np.uint64((split.seed + 1) % 2**20) * np.uint64(2**43 + 29))
        shuffled = np.lexsort((keys, labels[rows]))  # class by class
        rows, keys = rows[shuffled], keys[shuffled]
        of_class = np.bincount(labels[rows]) if len(rows) else np.zeros(0, np.int64)
        turn = np.arange(len(rows)) - np.repeat(np.cumsum(of_class) - of_class, of_class)
        place = (turn + scrambled(keys) / 2.0**64) / of_class[labels[rows]]
        return _Order(len(labels), np.flatnonzero(piles == 0), rows[np.argsort(np.where(turn == 0, place - 1, place))])

    def sizes(self, steps: Sequence[int]) -> tuple[int, ...]:
        """The steps, the last one cut to the rows that there are."""
        return tuple(min(step, len(self.learned)) for step in steps)

    def piles(self, sizes: Sequence[int]) -> Groups:
        """For every row the training set that it is new in; -1 if in none, -2 if it is withheld."""
        found = np.full(self.rows, -1, np.int64)
        found[self.withheld] = -2
        found[self.learned[: sizes[-1]]] = np.searchsorted(sizes, np.arange(sizes[-1]), side="right")
        return found


def _steps(sizes: Sequence[int] | None, orders: Sequence[_Order], classes: int) -> tuple[int, ...]:
    """The sizes asked for, checked; or twice as many rows from step to step, up to all of them."""
    least, most = (choose(len(order.learned) for order in orders) for choose in (min, max))
    if not least or not all(len(order.withheld) for order in orders):
        raise DataError("there are too few rows to withhold some and learn from the others")
    if sizes is None:
        step = max(ROWS_A_CLASS * classes, min(FIRST_SIZE, most // 8))
        found = []
        while step <= 0.75 * most:
            found.append(step)
            step *= 2
        return (*found, most)
    asked = sorted({int(size) for size in sizes})
    if not asked or asked[0] < min(classes, least):
        raise UsageError(f"sizes={list(sizes)}: the smallest must be {classes} or more, one row for each class")
    if asked[-1] > least:
        raise UsageError(f"sizes={list(sizes)}: {least:,} rows are there to learn from, the others are withheld")
    return tuple(asked)


def _tried(
    rows: _Rows, order: _Order, sizes: Sequence[int], given: Mapping[str, Any], progress: Progress
) -> tuple[Figures, ...]:
    """The figures of every size: what it adds to the one before is counted, and their sum is tried."""
    piles = order.piles(sizes)
    added: list[Tally | None] = [None] * len(sizes)
    for batch, part in rows.batches(piles):
        for size, counted in tally_apart(batch, rows.plan, part):
            before = added[size]
            added[size] = counted if before is None else before + counted
        if progress:
            progress(batch.rows)
    found: list[Figures] = []
    total: Tally | None = None
    for i, new in enumerate(added):
        total = new if total is None or new is None else total + new
        added[i] = None  # the sum takes its table over
        assert total is not None
        model = model_of(total, given, rows.classes)
        tests = (take(batch, np.flatnonzero(part == -2)) for batch, part in rows.batches(piles))
        found.append(reduce(Figures.__add__, (score(model, test, rows.plan) for test in tests if test.rows)))
        if progress:
            progress(len(order.withheld))
    return tuple(found)
