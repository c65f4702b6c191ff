"""Pictures of hypotheses: prior beside posterior, and the posterior after each observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from likely.plots.bars import Bar, BarChart, bars_svg
from likely.plots.figure import Figure, Trace, figure_svg
from likely.plots.svg import Svg

MOST = 20  # hypotheses in one picture


def prior_and_posterior(prior: Mapping[Any, Any], posterior: Mapping[Any, Any], subtitle: str) -> Svg:
    """Two bars for each hypothesis."""
    rows = []
    for h in list(prior)[:MOST]:
        before, after = float(prior[h]), float(posterior[h])
        tips = (f"prior {before:.4g}", f"posterior {after:.4g}")
        rows.append((str(h), [Bar(before, colour=0, tip=tips[0]), Bar(after, colour=1, tip=tips[1])]))
    chart = BarChart("Hypotheses", subtitle, "probability", rows, ["prior", "posterior"], percent=True, x=(0.0, 1.0))
    return bars_svg(chart)


def step_by_step(names: Sequence[Any], steps: Sequence[Mapping[Any, Any]]) -> Svg:
    """A line for each hypothesis over the number of observations."""
    x = list(range(len(steps)))
    traces = [Trace(str(h), x, [float(step[h]) for step in steps], marks=len(x) <= 40) for h in list(names)[:8]]
    titles = ("Posterior of each hypothesis", "after each observation", "observations", "P(h | d)")
    return figure_svg(Figure(*titles, traces, y=(0.0, 1.02)))
