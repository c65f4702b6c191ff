"""Nodes of joint Gaussians, and of numbers that are averaged over whether they depend on the class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likely.export._term_forms import (
    IMPOSSIBLE,
    AveragedTerm,
    CellGaussianTerm,
    GaussianPattern,
    JointTerm,
    SquareTerm,
    StudentDensity,
)

if TYPE_CHECKING:
    from likely.export._onnx_graph import OnnxGraph

LARGE = 1e100  # numbers of a joint Gaussian are bounded, so that no square overflows


def joint(graph: OnnxGraph, term: JointTerm) -> str:
    """Joint Gaussian of the numbers that are present."""
    nothing = np.zeros(len(graph.scored.classes))
    found = _by_pattern(graph, term.columns, term.patterns, nothing)
    return graph.node("Mul", graph.constant(term.weight), found)


def _by_pattern(
    graph: OnnxGraph, columns: tuple[str, ...], patterns: tuple[GaussianPattern, ...], nothing: np.ndarray
) -> str:
    """Log densities of the numbers that are present, rows × components; `nothing` where there is none."""
    gone = [graph.node("IsNaN", graph.cells[name]) for name in columns]
    low, high, zero = graph.constant(-LARGE), graph.constant(LARGE), graph.constant(0.0)
    bounded = [graph.node("Clip", graph.cells[name], low, high) for name in columns]
    filled = [graph.node("Where", g, zero, x) for g, x in zip(gone, bounded, strict=True)]
    found = graph.constant(nothing[None])
    for pattern in reversed(patterns):  # a larger complete pattern replaces a smaller one
        x = graph.node("Concat", *(filled[j] for j in pattern.seen), axis=1)
        density = graph.log_density(x, pattern)
        lacking = gone[pattern.seen[0]]
        for j in pattern.seen[1:]:
            lacking = graph.node("Or", lacking, gone[j])
        found = graph.node("Where", lacking, found, density)
    return found


def cell_gaussians(graph: OnnxGraph, term: CellGaussianTerm) -> str:
    """Joint Gaussian of the cell of a row; of all that are possible where a category is missing."""
    classes, cells = term.log_weight.shape
    density = _by_pattern(graph, term.columns, term.patterns, np.zeros(classes * cells))
    density = graph.node("Reshape", density, graph.constant(np.array([-1, classes, cells])))
    possible = np.full((len(term.lines), 1, cells), IMPOSSIBLE)
    for line, own in enumerate(term.lines):
        possible[line, :, list(own)] = 0.0
    shares = graph.node("Add", graph.node("Gather", graph.constant(possible), graph.line(term.codes)),
                        graph.constant(term.log_weight[None]))  # fmt: skip
    whole = graph.node("ReduceLogSumExp", graph.node("Add", density, shares), axes=[2], keepdims=0)
    return graph.node("Mul", graph.constant(term.weight), whole)


def averaged(graph: OnnxGraph, term: AveragedTerm) -> str:
    """Average of the predictions with and without dependence on the class."""
    x = graph.cells[term.column]
    one = graph.node("Add", graph.constant(term.log_on), _density(graph, x, term.dependent))
    other = graph.node("Add", graph.constant(term.log_off), _density(graph, x, term.independent))
    apart = graph.node("Neg", graph.node("Abs", graph.node("Sub", one, other)))
    grown = graph.node("Log", graph.node("Add", graph.constant(1.0), graph.node("Exp", apart)))
    whole = graph.node("Add", graph.node("Max", one, other), grown)
    return graph.or_nothing(whole, graph.node("IsNaN", x))


def _density(graph: OnnxGraph, x: str, form: StudentDensity | SquareTerm) -> str:
    """Log density of one number by class."""
    if isinstance(form, SquareTerm):
        return graph.gaussian(x, form)
    relative = graph.node("Div", graph.node("Sub", x, graph.constant(form.mean[None])), graph.constant(form.width[None]))
    square = graph.node("Mul", relative, relative)
    far = graph.node("IsInf", square)
    near = graph.node("Where", far, graph.constant(0.0), square)
    half = graph.constant((form.degrees[None] + 1) / 2)
    found = graph.node("Mul", half, _log_of_one_more(graph, near))
    found = graph.node("Sub", graph.constant(form.peak[None]), found)
    return graph.node("Where", far, graph.constant(IMPOSSIBLE), found)


def _log_of_one_more(graph: OnnxGraph, u: str) -> str:
    """ln(1 + u) with all digits of a small u, which is multiplied by half the number of rows."""
    one = graph.constant(1.0)
    more = graph.node("Add", one, u)
    nothing = graph.node("Equal", more, one)
    rounded = graph.node("Where", nothing, one, graph.node("Sub", more, one))
    logarithm = graph.node("Mul", graph.node("Log", more), graph.node("Div", u, rounded))
    return graph.node("Where", nothing, u, logarithm)
