"""Result of a comparison: metrics, differences with confidence intervals, as table, data and picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.evaluation.drawable import Drawable
from likely.evaluation.metrics import Metrics, finite
from likely.kernels.parallel import cached_property
from likely.plots import charts
from likely.plots.shown import Shown, ShownTable, ruled, text_lines

Array = NDArray[np.float64]
METRICS = ("accuracy", "log_loss", "brier", "calibration_error")
OWN_LEARNERS = {"likely": "Likely", "likely-plain": "Likely, plain"}


@dataclass(frozen=True, eq=False)
class Result:
    """Result of one classifier: metrics, fit and predict seconds by fold; or why there are none."""

    name: str
    title: str
    folds: tuple[Metrics, ...]
    fit_seconds: tuple[float, ...]
    predict_seconds: tuple[float, ...]
    note: str = ""
    failed: bool = False

    @cached_property
    def total(self) -> Metrics:
        """Metrics over all rows, each predicted by the model that was not fitted on it."""
        return reduce(Metrics.__add__, self.folds)

    def of(self, metric: str) -> Array:
        """One metric by fold."""
        return np.array([getattr(fold, metric) for fold in self.folds])


@dataclass(frozen=True)
class Difference:
    """Difference of a metric to that of Likely, paired by folds.

    Attributes
    ----------
    mean : float
        Mean over the folds.
    error : float
        Corrected standard error of the mean.
    low : float
        Lower end of the 95 % confidence interval.
    high : float
        Upper end of the 95 % confidence interval.
    """

    mean: float
    error: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Comparison(Drawable, Shown):
    """Results of all classifiers on the same folds, from `compare`; prints as a table, and draws itself as SVG.

    Attributes
    ----------
    target : str
        The column that was predicted.
    source : str
        Where the rows came from.
    rows : int
        Number of rows.
    folds : int
        Number of folds.
    seed : int
        Seed of the folds.
    results : tuple
        One result a classifier; `comparison["logistic"]` is one of them.
    """

    target: str
    source: str
    rows: int
    folds: int
    seed: int
    results: tuple[Result, ...]

    def __getitem__(self, name: str) -> Result:
        """The result of one learner."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(name)

    @property
    def ranked(self) -> list[Result]:
        """The results by log loss, those that failed last."""
        done = [result for result in self.results if not result.failed]
        done.sort(key=lambda r: (math.isnan(r.total.log_loss), r.total.log_loss))
        return [*done, *(result for result in self.results if result.failed)]

    def difference(self, name: str, metric: str = "log_loss") -> Difference:
        """Difference of a metric between a classifier and Likely, paired by folds.

        The folds share training rows, so the variance of their mean is more than a fold's over their number: the corrected
        resampled t of Nadeau and Bengio (2003) adds the ratio of tested to trained rows.

        Parameters
        ----------
        name : str
            The classifier.
        metric : str, default="log_loss"
            The metric: "accuracy", "log_loss", "brier" or "calibration_error".

        Returns
        -------
        Difference
            Mean, standard error and 95 % interval.
        """
        if metric not in METRICS:
            raise UsageError(f"metric={metric!r} is not known: choose one of {', '.join(METRICS)}")
        apart = self[name].of(metric) - self["likely"].of(metric)
        return paired(apart, self.folds)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data; values that are not finite are null."""
        return {
            "target": self.target, "data": self.source, "rows": self.rows, "folds": self.folds, "seed": self.seed,
            "reference": "likely", "results": [self._described(result) for result in self.ranked],
        }  # fmt: skip

    def _described(self, result: Result) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": result.name,
            "title": result.title,
            "failed": result.failed,
            "note": result.note,
        }
        if result.failed:
            return found
        found |= {metric: finite(getattr(result.total, metric)) for metric in METRICS}
        found |= {
            "fit_seconds": float(np.mean(result.fit_seconds)),
            "predict_seconds": float(np.mean(result.predict_seconds)),
        }
        found["by_fold"] = {metric: [finite(v) for v in result.of(metric).tolist()] for metric in METRICS}
        found["difference"] = {
            metric: {part: finite(value) for part, value in vars(self.difference(result.name, metric)).items()}
            for metric in METRICS
        }
        return found

    @property
    def how(self) -> str:
        """The protocol in one line."""
        return f"{self.rows:,} rows, {self.folds} stratified folds, the same for all"

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Head and rows of the table, best log loss first."""
        head = ["model", "accuracy", "log loss", "Brier", "calib. error", "fit s", "predict s",
                "accuracy − Likely's", "log loss − Likely's", "note"]  # fmt: skip
        return head, [self._line(result) for result in self.ranked]

    def _line(self, result: Result) -> list[Any]:
        if result.failed:
            return [result.title, *[""] * 8, result.note]
        total = result.total
        cells = [f"{getattr(total, metric):.4f}" for metric in METRICS]
        times = [_seconds(float(np.mean(t))) for t in (result.fit_seconds, result.predict_seconds)]
        apart = ["" if result.name == "likely" else _signed(self.difference(result.name, f)) for f in METRICS[:2]]
        return [result.title, *cells, *times, *apart, result.note]

    def __str__(self) -> str:
        head, rows = self.table()
        lines = ruled(text_lines([head, *rows], left=(0, len(head) - 1)))
        return "\n".join([f"Comparison on {self.target!r}: {self.how}", "", *lines, "", LEGEND])

    def svg(self, title: str | None = None) -> str:
        """Picture of accuracy and log loss of every classifier, with the standard error of the mean over the folds.

        Parameters
        ----------
        title : str or None, default=None
            Title of the picture.

        Returns
        -------
        str
            SVG.
        """
        done = [result for result in self.ranked if not result.failed]
        panels = []
        for metric, label in (("accuracy", "accuracy"), ("log_loss", "log loss (nats)")):
            spread = [paired(result.of(metric), self.folds) for result in done]
            points = [
                charts.Dot(result.title, getattr(result.total, metric), each.error, result.name in OWN_LEARNERS)
                for result, each in zip(done, spread, strict=True)
            ]
            panels.append(charts.Dots(label, points, percent=metric == "accuracy"))
        return charts.dots_svg(title or f"Learners compared on {self.target}", self.how, panels)

    def __repr__(self) -> str:
        return f"<Comparison on {self.target!r}: {len(self.results)} classifiers, {self.how}>"

    def _shown_tables(self) -> list[ShownTable]:
        """The table that is printed."""
        head, lines = self.table()
        rows = [dict(zip(head, line, strict=True)) for line in lines]
        return [ShownTable(f"Comparison on {self.target!r}: {self.how}", rows)]

    def _repr_html_(self) -> str:
        return self.svg() + super()._repr_html_()

    def save(self, path: str | Path, *, title: str | None = None) -> None:
        """Write the comparison to a file.

        Parameters
        ----------
        path : str or Path
            A name that ends in .svg, .png, .pdf or .json; .png and .pdf need the extra `images`.
        title : str or None, default=None
            Title of the picture.
        """
        Path(path).write_bytes(self.drawn(Path(path).suffix.lower(), title))


LEGEND = (
    "Differences are means over the folds ± the half width of their 95 % interval (corrected resampled t); "
    "* marks those that exclude 0.\nSeconds are a mean fold's. Support vector machines are calibrated (Platt, 3 folds)."
)


def paired(apart: Array, folds: int) -> Difference:
    """Mean, corrected standard error and 95 % interval of one number per fold."""
    mean = float(apart.mean()) if len(apart) else math.nan
    if len(apart) < 2 or not np.isfinite(apart).all():
        return Difference(mean, math.nan, math.nan, math.nan)
    from scipy.special import stdtrit  # scikit-learn brings it along

    error = math.sqrt((1 / folds + 1 / (folds - 1)) * float(apart.var(ddof=1)))
    reach = float(stdtrit(folds - 1, 0.975)) * error
    return Difference(mean, error, mean - reach, mean + reach)


def _signed(apart: Difference) -> str:
    if not math.isfinite(apart.mean):
        return ""
    reach = f" ± {apart.high - apart.mean:.4f}" if math.isfinite(apart.high) else ""
    return f"{apart.mean:+.4f}{reach}{'*' if apart.low > 0 or apart.high < 0 else ' '}"


def _seconds(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"
