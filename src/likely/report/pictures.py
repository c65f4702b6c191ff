"""Figures of the textbook from hypotheses, estimates and models: each function returns a picture as SVG text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.continuous import Normal
from likely.bayes.grid import GridHypotheses
from likely.errors import UsageError, did_you_mean
from likely.latent.component_picture import gaussian_columns, gaussians
from likely.model.estimate import Estimate
from likely.model.model import Model
from likely.plots.axes import spread
from likely.plots.lines import Chart, Series, lines_svg
from likely.plots.regions import ACROSS, DOWN, Surface, regions_svg
from likely.schema import NUMBER
from likely.sources import open_source

__all__ = [
    "class_densities", "decision_surface", "hypotheses", "likelihood", "naive_bayes", "parameters", "theta",
]  # fmt: skip

Array = NDArray[np.float64]
POINTS = 201
MOST_ROWS = 1_000  # drawn over a decision surface


def hypotheses(space: Any, observations: Any, outcome: Any = None, *, title: str = "") -> str:
    """Posterior of each hypothesis against the number of observations, and the prediction of an outcome below it.

    Parameters
    ----------
    space : Hypotheses or SupervisedHypotheses
        The hypotheses before the data.
    observations : iterable
        The observations in order.
    outcome : object or None, default=None
        For `Hypotheses`: the outcome whose prediction is drawn; None for the posterior alone.
    title : str, default=""
        Title of the first panel.

    Returns
    -------
    str
        SVG.
    """
    steps = list(space.trace(observations))
    draws = list(range(len(steps)))
    series = [Series(str(h), draws, [float(step.posterior[h]) for step in steps]) for h in space.prior]
    axis = "number of observations in d"
    charts = [
        Chart(title or "Posterior of each hypothesis", "P(h | d) after each observation", axis, "P(h | d)", series,
              marks=True, ceiling=1.0),
    ]  # fmt: skip
    if outcome is not None:
        if outcome not in steps[0].predict():
            known = ", ".join(map(repr, steps[0].predict()))
            raise UsageError(f"{outcome!r} is not an outcome: choose one of {known}")
        optimal = [float(step.predict()[outcome]) for step in steps]
        alone = [float(step.predict_map()[outcome]) for step in steps]
        lines = [Series("Bayes-optimal, Σ P(v | h) P(h | d)", draws, optimal), Series("h_MAP alone", draws, alone)]
        charts.append(
            Chart(f"Prediction that the next is {outcome}", "All hypotheses, weighted by their posterior, and the MAP one",
                  axis, f"P({outcome} | d)", lines, marks=True, ceiling=1.0),
        )  # fmt: skip
    return lines_svg(charts)


def theta(grid: GridHypotheses, *, title: str = "") -> str:
    """Prior and posterior density of a continuous parameter.

    Parameters
    ----------
    grid : GridHypotheses
        The grid after the data.
    title : str, default=""
        Title of the picture.

    Returns
    -------
    str
        SVG.
    """
    low, high = grid.interval()
    seen = ", ".join(f"{outcome}: {n}" for outcome, n in grid.seen.items()) or "nothing"
    subtitle = f"seen {seen}; θ_MAP {grid.map:.4g}, mean {grid.mean:.4g}, 95 % from {low:.4g} to {high:.4g}"
    at = grid.theta.tolist()
    lines = [Series("prior p(θ)", at, grid.prior_density.tolist()), Series("posterior p(θ | d)", at, grid.density.tolist())]
    return lines_svg([Chart(title or "A continuous parameter θ", subtitle, "θ", "density", lines)])


def parameters(estimate: Estimate, names: Sequence[Any] | None = None, *, title: str = "") -> str:
    """Posterior density of each parameter of one distribution.

    Parameters
    ----------
    estimate : Estimate
        The estimate, with the prior that it was made with.
    names : sequence or None, default=None
        The parameters to draw; all by default.
    title : str, default=""
        Title of the picture.

    Returns
    -------
    str
        SVG.
    """
    posterior = estimate.posterior
    lines = []
    for name in posterior.marginals if names is None else names:
        points = posterior.density(name)
        lines.append(Series(str(name), [x for x, _ in points], [y for _, y in points]))
    subtitle = f"{estimate.family}, {estimate.n:g} values"
    return lines_svg([Chart(title or "Posterior of the parameters", subtitle, "parameter", "density", lines)])


def likelihood(estimate: Estimate, parameter: Any = None, *, symbol: str = "", title: str = "") -> str:
    """Likelihood curve of one parameter: relative to its maximum, and its logarithm below.

    Parameters
    ----------
    estimate : Estimate
        The estimate.
    parameter : object or None, default=None
        Name of the parameter; the first one by default.
    symbol : str, default=""
        How the parameter is written in the picture; its name by default.
    title : str, default=""
        Title of the first panel.

    Returns
    -------
    str
        SVG.
    """
    name = next(iter(estimate.ml)) if parameter is None else parameter
    best = estimate.log_likelihood
    points = sorted([*estimate.curve(name, POINTS), (estimate.ml[name], best)])  # the maximum is a point of the curve
    x, logs = [p for p, _ in points], np.array([value for _, value in points])
    sign = symbol or str(name)
    subtitle = f"{estimate.family}, {estimate.n:g} values; maximum {best:.4f} at {sign} = {estimate.ml[name]:.4g}"
    relative = Series(f"L({sign}) / L({sign}_ML)", x, np.exp(logs - best).tolist())
    log_line = Series(f"log L({sign})", x, logs.tolist())
    bottom = best - max(12.0, 0.2 * abs(best))
    return lines_svg([
        Chart(title or "Likelihood curve", subtitle, sign, "relative likelihood", [relative]),
        Chart("Log-likelihood", "The same maximum: the logarithm is monotone", sign, "log-likelihood", [log_line],
              from_zero=False, below=bottom),
    ])  # fmt: skip


def class_densities(model: Model, column: str, *, weighted: bool = False, title: str = "") -> str:
    """Gaussian density of a column in each class.

    Parameters
    ----------
    model : Model
        A model in which the column is Gaussian, alone or in a joint block.
    column : str
        The column.
    weighted : bool, default=False
        Whether each density is multiplied by the probability of its class.
    title : str, default=""
        Title of the picture.

    Returns
    -------
    str
        SVG.
    """
    means, deviations = _gaussian(model, column)
    low, high = (means - 3.2 * deviations).min(), (means + 3.2 * deviations).max()
    at = np.linspace(low, high, POINTS)
    shares = np.asarray(model.class_prior) if weighted else np.ones(len(model.classes))
    lines = []
    for label, mean, deviation, share in zip(model.classes, means, deviations, shares, strict=True):
        curve = Normal(float(mean), float(deviation) ** 2)
        name = f"{label}: μ {mean:.4g}, σ {deviation:.4g}"
        lines.append(Series(name, at.tolist(), [float(share) * curve.density(float(x)) for x in at]))
    what = "P(class) · p(x | class)" if weighted else "p(x | class)"
    subtitle = f"{what}, one Gaussian for each class of {model.schema.target.name}"
    return lines_svg([Chart(title or f"Density of {column} in each class", subtitle, column, "density", lines)])


def decision_surface(
    model: Model | Mapping[str, Model], x: str, y: str, data: Any = None, *, title: str = ""
) -> str:
    """Regions of the plane of two columns in which each class is the most probable, with the rows of a table.

    Tied variances give a line between two classes, untied ones a parabola, ellipse or hyperbola. Columns that are
    not drawn are taken as missing.

    Parameters
    ----------
    model : Model or dict of models
        The model; several, by name, are drawn one below the other.
    x, y : str
        Two columns of numbers.
    data : table or None, default=None
        Rows to draw over the regions, with their classes; without them the plane is where the Gaussians are.
    title : str, default=""
        Title of the picture.

    Returns
    -------
    str
        SVG.
    """
    models = dict(model) if isinstance(model, Mapping) else {title: model}
    return regions_svg([_surface(one, x, y, data, name) for name, one in models.items()])


def naive_bayes(model: Model, *, title: str = "") -> str:
    """A plain model drawn as a Bayesian network: the class is the parent of every column.

    Parameters
    ----------
    model : Model
        A plain model of categorical and Gaussian columns.
    title : str, default=""
        Title of the picture.

    Returns
    -------
    str
        SVG; tooltips have the tables.
    """
    from likely.networks.network import Network

    target = model.schema.target.name
    return Network.of_naive_bayes(model).svg(title or f"Naive Bayes: {target}", target)


def _gaussian(model: Model, column: str) -> tuple[Array, Array]:
    """Mean and deviation of a column in each class, whatever its weight in the second stage."""
    if column in gaussian_columns(model):
        means, covariances = gaussians(model, [column])
        return means[:, 0], np.sqrt(covariances[:, 0, 0])
    alone = {p.columns: p.likelihood.moments() for p in model.plain_parameters}
    moments = alone.get((column,))
    if moments is None:
        raise UsageError(
            f"{column!r} is not a Gaussian column of the model{did_you_mean(column, model.schema.by_name)}: "
            f"learn it with families={{{column!r}: 'gaussian'}} (--family {column}=gaussian)"
        )
    return moments[0][:, 0], np.sqrt(moments[1][:, 0, 0])


def _surface(model: Model, x: str, y: str, data: Any, title: str) -> Surface:
    names = {name: column.kind for name, column in model.schema.by_name.items()}
    for name in (x, y):
        if names.get(name) != NUMBER:
            known = [n for n, kind in names.items() if kind == NUMBER]
            raise UsageError(f"{name!r} is not a column of numbers in the model: it has {', '.join(known) or 'none'}")
    if x == y:
        raise UsageError(f"a surface needs two columns: {x!r} is named twice")
    rows = _rows(model, x, y, data) if data is not None else []
    (x_low, x_high), (y_low, y_high) = _ranges(model, x, y, rows)
    across, down = np.linspace(x_low, x_high, ACROSS), np.linspace(y_low, y_high, DOWN)
    plane = {x: np.tile(across, DOWN), y: np.repeat(down, ACROSS)}
    scores = model.posterior(plane, absent="missing").log_joint
    cube = np.ascontiguousarray(scores.T).reshape(len(model.classes), DOWN, ACROSS)
    subtitle = f"where each value of {model.schema.target.name} is the most probable one"
    heading = title or "Decision surface"
    return Surface(heading, subtitle, x, y, [str(c) for c in model.classes], across, down, cube, rows)


def _ranges(model: Model, x: str, y: str, rows: Sequence[tuple[float, float, int]]) -> list[tuple[float, float]]:
    if rows:
        return [spread(min(r[i] for r in rows), max(r[i] for r in rows), 0.08) for i in (0, 1)]
    if not {x, y} <= set(gaussian_columns(model)):
        raise UsageError("the model does not store the range of its numbers: pass data= to draw the surface over")
    means, covariances = gaussians(model, [x, y])
    deviations = np.sqrt(np.stack([covariances[:, i, i] for i in (0, 1)], 1))
    return [
        (float((means[:, i] - 3 * deviations[:, i]).min()), float((means[:, i] + 3 * deviations[:, i]).max())) for i in (0, 1)
    ]


def _rows(model: Model, x: str, y: str, data: Any) -> list[tuple[float, float, int]]:
    """Rows with both numbers and a known class; of many, every n-th."""
    target = model.schema.target.name
    place = {label: k for k, label in enumerate(model.classes)}
    found: list[tuple[float, float, int]] = []
    for batch in open_source(data).batches():
        lacking = [name for name in (x, y, target) if name not in batch.names]
        if lacking:
            raise UsageError(f"the data have no column {lacking[0]!r}{did_you_mean(lacking[0], list(batch.names))}")
        numbers = batch.numbers([x, y], 0, batch.rows)
        coded = batch.coded(target)
        known = [place.get(value, place.get(str(value), -1)) for value in coded.values]
        for (a, b), code in zip(numbers.tolist(), (np.asarray(coded.codes, np.int64) - coded.low).tolist(), strict=True):
            k = known[code] if 0 <= code < len(known) else -1
            if k >= 0 and np.isfinite(a) and np.isfinite(b):
                found.append((a, b, k))
    return found[:: max(1, len(found) // MOST_ROWS)]
