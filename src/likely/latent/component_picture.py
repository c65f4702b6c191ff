"""Plot of mixture components over the rows along one or two numeric columns, and of EM's log-likelihood, as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.latent.clusters import Clusters
from likely.latent.em import objective_name
from likely.model.model import Model
from likely.plots.charts import FONTS, STYLE
from likely.plots.escaping import escape
from likely.plots.panel import HUES, PANEL, RIGHT, WIDTH, Panel, axis_range, svg_path
from likely.plots.svg import printable, svg_text
from likely.schema import CATEGORY, NUMBER
from likely.sources import open_source

Array = NDArray[np.float64]
MOST_POINTS = 2_000
BINS = 40


def picture(clusters: Clusters | Model, data: Any, columns: Sequence[str] = ()) -> str:
    """The components over the rows along one or two numeric columns, and the log-likelihood of EM by iteration."""
    model, trace = (clusters.model, clusters.trace) if isinstance(clusters, Clusters) else (clusters, ())
    names = drawn_columns(model, columns)
    panels: list[list[str]] = []
    if names:
        panels.append(_one_column(model, data, names[0]) if len(names) == 1 else _two_columns(model, data, names))
    if len(trace) > 1:
        panels.append(_trace(trace, objective_name(model), PANEL * len(panels)))
    if not panels:
        raise UsageError("there is nothing to draw: no column holds numbers, and EM made no second iteration")
    height = PANEL * len(panels)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="{FONTS}" role="img" aria-label="{len(model.classes)} clusters">'
    )
    description = (
        f"<title>{len(model.classes)} clusters</title><desc>{escape(printable(_described(model, names, trace)))}</desc>"
    )
    paper = f'<rect class="lk-paper" width="{WIDTH}" height="{height}"/>'
    return "\n".join(
        [head, description, f"<style>{STYLE}</style>", paper, *(p for panel in panels for p in panel), "</svg>\n"]
    )


def drawn_columns(model: Model, wanted: Sequence[str]) -> list[str]:
    """The columns to draw: the given ones, else the first two Gaussian columns."""
    known = gaussian_columns(model)
    odd = [name for name in wanted if name not in known]
    if odd or len(wanted) > 2:
        raise UsageError(f"{list(wanted)} cannot be drawn: name one or two of the columns of numbers {known[:20]}")
    return list(wanted or known[:2])


def gaussian_columns(model: Model) -> list[str]:
    """The columns with a Gaussian likelihood."""
    return [
        name
        for parameters in model.block_parameters
        if parameters.likelihood.moments() is not None
        for name in parameters.columns
        if model.schema.by_name[name].kind == NUMBER
    ]


def gaussians(model: Model, names: Sequence[str]) -> tuple[Array, Array]:
    """Mean and covariance of each class along some columns; in a block with categories, over all of its cells."""
    k = len(model.classes)
    mean, covariance = np.zeros((k, len(names))), np.zeros((k, len(names), len(names)))
    for parameters in model.block_parameters:
        moments = parameters.likelihood.moments()
        numbers = [name for name in parameters.columns if model.schema.by_name[name].kind != CATEGORY]
        at = [names.index(name) for name in numbers if name in names]
        if moments is None or not at:
            continue
        inside = [j for j, name in enumerate(numbers) if name in names]
        mean[:, at] = moments[0][:, inside]
        covariance[np.ix_(range(k), at, at)] = moments[1][:, inside][:, :, inside]
    return mean, covariance


def _rows(model: Model, data: Any, names: Sequence[str]) -> tuple[Array, NDArray[np.int64]]:
    """A sample of rows as numbers, each with the code of its most probable class."""
    source = open_source(data, model.reading)
    found, classes = [], []
    for batch in model.batches(source, "error", None):
        x = batch.numbers(list(names), 0, batch.rows)
        joint = model.posterior_of(batch).log_joint
        complete = ~np.isnan(x).any(1)
        found.append(x[complete])
        classes.append(joint[complete].argmax(1))
        if sum(map(len, found)) > 50 * MOST_POINTS:
            break
    x, c = np.concatenate(found), np.concatenate(classes)
    step = max(1, math.ceil(len(x) / MOST_POINTS)) if len(names) > 1 else 1
    return x[::step], c[::step]


def _one_column(model: Model, data: Any, name: str) -> list[str]:
    """Histogram of the rows, weighted Gaussian density of each component, and their sum."""
    x, _ = _rows(model, data, [name])
    mean, covariance = gaussians(model, [name])
    low, high = axis_range(x)
    edges = np.linspace(low, high, BINS + 1)
    heights = np.histogram(x[:, 0], edges)[0] / max(len(x), 1) / (edges[1] - edges[0])
    line = np.linspace(low, high, 241)
    wide = np.sqrt(covariance[:, 0, 0])[:, None]
    curves = model.class_prior[:, None] * np.exp(-0.5 * ((line - mean) / wide) ** 2) / (wide * math.sqrt(2 * math.pi))
    highest = 1.08 * float(max(heights.max(initial=0.0), min(curves.sum(0).max(), 3 * heights.max(initial=1e-9))))
    panel = Panel((low, high), (0.0, highest or 1.0), 0)
    parts = panel.frame(f"{len(model.classes)} clusters along {name}", name, "density")
    for a, b, height in zip(edges, edges[1:], heights, strict=False):
        (left, top), (right, bottom) = panel.at(a, height), panel.at(b, 0.0)
        parts.append(
            f'<rect class="lk-band" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}"/>'
        )
    for c, curve in enumerate(curves):
        parts.append(svg_path(panel, line, np.minimum(curve, highest), HUES[c % len(HUES)], 2.2))
    return [*parts, svg_path(panel, line, np.minimum(curves.sum(0), highest), "#8a96a3", 1.2), *_legend(model)]


def _two_columns(model: Model, data: Any, names: Sequence[str]) -> list[str]:
    """Scatter plot of the rows coloured by component, with ellipses at one and two standard deviations."""
    x, classes = _rows(model, data, names)
    mean, covariance = gaussians(model, names)
    panel = Panel(axis_range(x[:, 0]), axis_range(x[:, 1]), 0)
    parts = panel.frame(f"{len(model.classes)} clusters", names[0], names[1])
    for (a, b), c in zip(x.tolist(), classes.tolist(), strict=True):
        across, up = panel.at(a, b)
        parts.append(
            f'<circle cx="{across:.1f}" cy="{up:.1f}" r="2.6" fill="{HUES[c % len(HUES)]}" fill-opacity=".55"/>'
        )
    turn = np.linspace(0, 2 * math.pi, 73)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    for c in range(len(model.classes)):
        root = np.linalg.cholesky(covariance[c])
        for deviations in (1, 2):
            ring = mean[c] + deviations * circle @ root.T
            parts.append(svg_path(panel, ring[:, 0], ring[:, 1], HUES[c % len(HUES)], 2.2 if deviations == 1 else 1.2))
    return [*parts, *_legend(model)]


def _trace(trace: Sequence[float], name: str, top: float) -> list[str]:
    """The maximised value of EM by iteration."""
    y = np.array([v for v in trace if math.isfinite(v)])
    panel = Panel((1.0, float(max(len(y), 2))), axis_range(y), top)
    rounds = np.arange(1.0, len(y) + 1)
    parts = panel.frame("Progress of EM", "iteration", name)
    parts.append(svg_path(panel, rounds, y, HUES[0], 2.2))
    at: Callable[[float, float], tuple[float, float]] = panel.at
    for i, value in zip(rounds.tolist(), y.tolist(), strict=True):
        across, up = at(i, value)
        description = f"<title>iteration {i:g}: {value:.6g}</title>"
        parts.append(f'<circle class="lk-dot" cx="{across:.1f}" cy="{up:.1f}" r="3.2">{description}</circle>')
    return parts


def _legend(model: Model) -> list[str]:
    parts = []
    for c, label in enumerate(model.classes[: len(HUES)]):
        place = WIDTH - RIGHT - 74 * (min(len(model.classes), len(HUES)) - c)
        parts.append(f'<circle cx="{place}" cy="44" r="5" fill="{HUES[c % len(HUES)]}"/>')
        parts.append(svg_text(place + 9, 48, f"{label}: {100 * model.class_prior[c]:.0f} %", "faint", 'font-size="12"'))
    return parts


def _described(model: Model, names: Sequence[str], trace: Sequence[float]) -> str:
    """Text alternative of the plot, for screen readers."""
    shares = "; ".join(f"{label}: {100 * p:.1f} %" for label, p in zip(model.classes, model.class_prior, strict=True))
    progress = f" EM rose from {trace[0]:.6g} to {trace[-1]:.6g} in {len(trace)} iterations." if len(trace) > 1 else ""
    return f"Clusters {shares}, drawn along {' and '.join(names) or 'no column'}.{progress}"
