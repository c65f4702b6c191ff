"""Learning curve: accuracy and log loss on held-out rows against the number of training rows.

For each seed a part of the rows is held out, and the others are ordered so that every prefix is stratified by class. Training
sets are such prefixes, so each contains all smaller ones: only the added rows are counted, and the tallies add up. All sets
together cost one pass of counting for each seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError
from likely.evaluation._folds import Progress, Split
from likely.evaluation._training_sets import CurveRows, TrainingOrder
from likely.evaluation.cross_validation import model_of, prepare, require_classes, score, tally_separately
from likely.evaluation.drawable import Drawable
from likely.evaluation.metrics import Metrics, finite
from likely.kernels.parallel import cached_property
from likely.kernels.progress import announce
from likely.model.model_keywords import LearnSettings
from likely.plots import charts
from likely.plots.shown import Shown, ShownTable
from likely.sources.row_access import take
from likely.tally import Tally

Array = NDArray[np.float64]
FIRST_SIZE, ROWS_A_CLASS = 50, 2
METRICS = {"accuracy": "accuracy on held-out rows", "log_loss": "log loss on held-out rows (nats)"}


def curve(
    data: Any,
    target: str | None = None,
    *,
    sizes: Sequence[int] | None = None,
    seeds: int | Sequence[int] = 5,
    holdout: float = 1 / 3,
    progress: Progress = None,
    **settings: Unpack[LearnSettings],
) -> LearningCurve:
    """Learning curve: accuracy and log loss on held-out rows against the number of rows learned from.

    Parameters
    ----------
    data : path, frame, dict of columns or any other source
        The table, as for `learn`.
    target : str or None, default=None
        The column to predict.
    sizes : sequence of int or None, default=None
        Numbers of rows to learn from; by default they double up to all.
    seeds : int or sequence of int, default=5
        Number of random splits, or their seeds.
    holdout : float, default=1/3
        Part of the rows that is held out in each split.
    progress : callable or None, default=None
        Called with the number of rows after each batch.
    **settings
        Settings of `learn`.

    Returns
    -------
    LearningCurve
        Metrics of every split at every size; it prints as a table.
    """
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not chosen:
        raise UsageError("seeds must be a number of one or more, or a list of seeds")
    if settings.get("select"):
        raise UsageError("a learning curve does not select columns: omit select, or name the others in ignore=")
    splits = [Split.of(None, holdout, seed) for seed in chosen]
    source, plan = prepare(data, target, settings)
    rows = CurveRows.of(source, plan, progress)
    require_classes(len(rows.classes), plan.target, source.label)
    orders = [TrainingOrder.of(rows.labels, split) for split in splits]
    steps = _steps(sizes, orders, len(rows.classes))
    evaluated = []
    for i, order in enumerate(orders):
        announce(f"seed {chosen[i]}", i, len(orders))
        evaluated.append(_evaluated(rows, order, order.sizes(steps), settings, progress))
    trained = tuple(order.sizes(steps) for order in orders)
    share, known = Fraction(splits[0].tested, splits[0].parts), int((rows.labels >= 0).sum())
    return LearningCurve(plan.target, source.label, known, share, chosen, steps, trained, tuple(evaluated))


@dataclass(frozen=True, eq=False)
class LearningCurve(Drawable, Shown):
    """Metrics of every seed at every size, from `curve`; prints as a table, and draws itself as SVG.

    Attributes
    ----------
    target : str
        The column that was predicted.
    source : str
        Where the rows came from.
    rows : int
        Number of rows.
    holdout : Fraction
        Part of the rows that was held out.
    seeds : tuple of int
        Seeds of the splits.
    sizes : tuple of int
        Numbers of rows learned from.
    trained : tuple of tuple of int
        The same, seeds × sizes: where all rows are meant, seeds may differ by a few.
    metrics : tuple of tuple
        The metrics, seeds × sizes.
    """

    target: str
    source: str
    rows: int
    holdout: Fraction
    seeds: tuple[int, ...]
    sizes: tuple[int, ...]
    trained: tuple[tuple[int, ...], ...]  # seeds × sizes: where all rows are used, seeds may differ by a few
    metrics: tuple[tuple[Metrics, ...], ...]  # seeds × sizes

    @cached_property
    def accuracy(self) -> Array:
        """Seeds × sizes: the share of held-out rows whose most probable class is the true one."""
        return np.array([[each.accuracy for each in row] for row in self.metrics])

    @cached_property
    def log_loss(self) -> Array:
        """Seeds × sizes: the mean of -log P(true class) over the held-out rows, in nats."""
        return np.array([[each.log_loss for each in row] for row in self.metrics])

    def band(self, metric: str = "accuracy") -> tuple[Array, Array, Array]:
        """Mean, lowest and highest value of a metric over the seeds, at every size.

        Parameters
        ----------
        metric : str, default="accuracy"
            The metric: "accuracy" or "log_loss".

        Returns
        -------
        mean, low, high : arrays
            One value a size.
        """
        if metric not in METRICS:
            raise UsageError(f"metric={metric!r} is not known: choose one of {', '.join(METRICS)}")
        values: Array = getattr(self, metric)
        return values.mean(0), values.min(0), values.max(0)

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain data; what has no finite value is null."""
        return {
            "target": self.target, "data": self.source, "rows": self.rows, "holdout": float(self.holdout),
            "seeds": list(self.seeds), "sizes": list(self.sizes), "points": [self._point(i) for i in range(len(self.sizes))],
        }  # fmt: skip

    def _point(self, i: int) -> dict[str, Any]:
        point: dict[str, Any] = {"size": self.sizes[i], "rows": [trained[i] for trained in self.trained],
                                 "tested": [row[i].rows for row in self.metrics]}  # fmt: skip
        for metric in METRICS:
            values: Array = getattr(self, metric)[:, i]
            mean, low, high = (finite(float(part[i])) for part in self.band(metric))
            point[metric] = {"mean": mean, "low": low, "high": high, "seeds": [finite(v) for v in values.tolist()]}
        return point

    @property
    def _protocol(self) -> str:
        many = f"mean of {len(self.seeds)} seeds, band from the lowest to the highest"
        return f"{self.rows:,} rows, {self.holdout} of them held out; {many if len(self.seeds) > 1 else '1 seed'}"

    def __str__(self) -> str:
        head = f"{'rows':>10}  {'accuracy':>8}  {'from':>6}  {'to':>6}  {'log loss':>8}  {'from':>6}  {'to':>6}"
        columns = [self.sizes, *self.band("accuracy"), *self.band("log_loss")]
        lines = [
            f"{size:>10,}  {a:>8.4f}  {a0:>6.4f}  {a1:>6.4f}  {b:>8.4f}  {b0:>6.4f}  {b1:>6.4f}"
            for size, a, a0, a1, b, b0, b1 in zip(*columns, strict=True)
        ]
        return "\n".join([f"Learning curve of {self.target!r}: {self._protocol}", "", head, "-" * len(head), *lines])

    def line(self, metric: str = "accuracy", title: str | None = None) -> charts.Line:
        """The drawn line of one metric.

        Parameters
        ----------
        metric : str, default="accuracy"
            The metric: "accuracy" or "log_loss".
        title : str or None, default=None
            Title of the picture.

        Returns
        -------
        Line
            Plain numbers for `likely.plots`.
        """
        mean, low, high = (part.tolist() for part in self.band(metric))
        return charts.Line(
            self.sizes, mean, low, high,
            title or f"Learning curve of {self.target}", self._protocol, "rows learned from (logarithmic scale)",
            METRICS[metric], percent=metric == "accuracy",
        )  # fmt: skip

    def svg(self, metric: str = "accuracy", title: str | None = None) -> str:
        """Picture of the curve.

        Parameters
        ----------
        metric : str, default="accuracy"
            The metric: "accuracy" or "log_loss".
        title : str or None, default=None
            Title of the picture.

        Returns
        -------
        str
            SVG.
        """
        return charts.svg(self.line(metric, title))

    def __repr__(self) -> str:
        return f"<LearningCurve of {self.target!r}: {len(self.sizes)} sizes up to {self.sizes[-1]:,} rows>"

    def _shown_tables(self) -> list[ShownTable]:
        """The table that is printed."""
        rows = []
        for i, size in enumerate(self.sizes):
            point: dict[str, Any] = {"rows": size}
            for metric in METRICS:
                mean, low, high = (float(part[i]) for part in self.band(metric))
                point |= {metric: mean, f"{metric} from": low, f"{metric} to": high}
            rows.append(point)
        return [ShownTable(f"Learning curve of {self.target!r}: {self._protocol}", rows)]

    def _repr_html_(self) -> str:
        return self.svg() + super()._repr_html_()

    def save(self, path: str | Path, *, metric: str = "accuracy", title: str | None = None) -> None:
        """Write the curve to a file.

        Parameters
        ----------
        path : str or Path
            A name that ends in .svg, .png, .pdf or .json; .png and .pdf need the extra `images`.
        metric : str, default="accuracy"
            The metric: "accuracy" or "log_loss".
        title : str or None, default=None
            Title of the picture.
        """
        Path(path).write_bytes(self.drawn(Path(path).suffix.lower(), metric, title))


def _steps(sizes: Sequence[int] | None, orders: Sequence[TrainingOrder], classes: int) -> tuple[int, ...]:
    """The given sizes, checked; or doubling sizes up to all rows."""
    least, most = (choose(len(order.learned) for order in orders) for choose in (min, max))
    if not least or not all(len(order.held_out) for order in orders):
        raise DataError("there are too few rows to hold some out and learn from the others")
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
        raise UsageError(f"sizes={list(sizes)}: {least:,} rows can be learned from, the others are held out")
    return tuple(asked)


def _evaluated(
    rows: CurveRows, order: TrainingOrder, sizes: Sequence[int], given: Mapping[str, Any], progress: Progress
) -> tuple[Metrics, ...]:
    """Metrics at every size: the rows that it adds are counted, and the model of the sum is evaluated."""
    parts = order.parts(sizes)
    added: list[Tally | None] = [None] * len(sizes)
    for batch, part in rows.batches(parts):
        for size, counted in tally_separately(batch, rows.plan, part):
            before = added[size]
            added[size] = counted if before is None else before + counted
        if progress:
            progress(batch.rows)
    found: list[Metrics] = []
    total: Tally | None = None
    for i, new in enumerate(added):
        announce(f"{sizes[i]:,} rows")
        total = new if total is None or new is None else total + new
        added[i] = None  # the sum takes over its table
        assert total is not None
        model = model_of(total, given, rows.classes)
        tests = (take(batch, np.flatnonzero(part == -2)) for batch, part in rows.batches(parts))
        found.append(reduce(Metrics.__add__, (score(model, test, rows.plan) for test in tests if test.rows)))
        if progress:
            progress(len(order.held_out))
    return tuple(found)
