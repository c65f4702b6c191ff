"""Pictures of EM: its progress, shares of components, transitions of states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from likely.plots.bars import Bar, BarChart, bars_svg
from likely.plots.figure import Figure, Trace, figure_svg
from likely.plots.heat_map import HeatMap, heat_map_svg
from likely.plots.svg import Svg

MOST_MARKS = 40


def em_trace(trace: Sequence[float]) -> Svg:
    """The maximised value of EM by iteration."""
    steps = list(range(1, len(trace) + 1))
    line = Trace("", steps, list(trace), marks=len(steps) <= MOST_MARKS)
    return figure_svg(Figure("Progress of EM", "penalised log-likelihood", "iteration", "log-likelihood", [line]))


def shares(names: Sequence[Any], weights: Any) -> Svg:
    """Share of each component."""
    rows = [(str(name), [Bar(float(p), value=f"{100 * float(p):.1f} %")]) for name, p in zip(names, weights, strict=True)]
    return bars_svg(BarChart("Components", "share of the rows", "share", rows, percent=True))


def transitions(states: Sequence[Any], matrix: Any) -> Svg:
    """Transition probabilities as a heat map."""
    names = [str(state) for state in states]
    values = [[float(p) for p in row] for row in matrix]
    shown = [[f"{p:.3f}" for p in row] for row in values]
    tips = [[f"from {a} to {b}: {values[i][j]:.4f}" for j, b in enumerate(names)] for i, a in enumerate(names)]
    titles = ("Transitions", "P(next state | state)", "state", "next state")
    return heat_map_svg(HeatMap(*titles, names, names, values, shown, tips, 1.0))
