"""Rows drawn from a network: along the arcs, from the posterior given evidence, or weighted by how well they fit it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.networks._answers import NormalMixture
from likely.networks._elimination import DrawOut, eliminate
from likely.networks._inference import Evidence, Inference, impossible
from likely.networks.family_counts import categorical_parents, numeric_parents
from likely.networks.rows import Rows, code_type
from likely.schema import CATEGORY, NUMBER

if TYPE_CHECKING:
    from likely.networks._queries import NetworkQueries

Array = NDArray[np.float64]


def sample_rows(network: NetworkQueries, n: int, evidence: Mapping[str, Any] | None = None, *, seed: int = 0) -> Rows:
    """Rows drawn from a network, or from its posterior given evidence, as codes and numbers."""
    given = Evidence.of(evidence, network.graph, network.columns)
    if not isinstance(n, (int, np.integer)) or n < 0:
        raise UsageError(f"n={n} is no number of rows")
    rng = np.random.default_rng(seed)
    if not (given.nodes or given.likelihoods):
        return ancestral(network.inference, n, rng)
    return conditional(network.inference, given, n, rng)


def _empty(engine: Inference, n: int) -> Rows:
    columns = tuple(engine.columns[name] for name in engine.graph.nodes)
    numeric = sum(c.kind == NUMBER for c in columns)
    codes = np.zeros((len(columns), n), code_type(columns))
    return Rows(columns, codes, np.zeros((numeric, n)), np.zeros(0))


def ancestral(engine: Inference, n: int, rng: np.random.Generator, evidence: Evidence | None = None) -> Rows:
    """Rows drawn node by node, parents first; with evidence, its nodes are set instead of drawn."""
    return _sampled(engine, n, rng, evidence or Evidence())[0]


def _sampled(
    engine: Inference, n: int, rng: np.random.Generator, evidence: Evidence, known: Mapping[str, Any] | None = None
) -> tuple[Rows, Array]:
    """Rows drawn along the arcs, and their log weights; `known` are codes that were drawn already."""
    rows, known = _empty(engine, n), known or {}
    place = {c.name: i for i, c in enumerate(rows.columns)}
    numeric, logs = rows.numeric, np.zeros(n)
    for node in engine.graph.order:
        if node in known:
            rows.codes[place[node]] = known[node]
            continue
        where = np.zeros(n, np.int64)
        for parent in categorical_parents(engine.graph, engine.columns, node):
            where = where * len(engine.columns[parent].values) + rows.codes[place[parent]]
        if engine.columns[node].kind == CATEGORY:
            table = engine.parameters.tables[node].reshape(-1, len(engine.columns[node].values))
            codes = rows.codes[place[node]]
            if node in evidence.values:
                codes[:] = evidence.values[node]
                with np.errstate(divide="ignore"):
                    logs += np.log(table[where, codes])
            else:
                ends = (table / table.sum(-1, keepdims=True)).cumsum(-1)[:, :-1]
                codes[:] = (ends[where] <= rng.random(n)[:, None]).sum(1)
            if node in evidence.likelihoods:
                with np.errstate(divide="ignore"):
                    logs += np.log(evidence.likelihoods[node][codes])
        else:
            mean, variance = _normal(engine, node, rows, where)
            if node in evidence.numbers:
                rows.numbers[numeric[node]] = evidence.numbers[node]
                logs += -0.5 * (evidence.numbers[node] - mean) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
            else:
                rows.numbers[numeric[node]] = mean + np.sqrt(variance) * rng.standard_normal(n)
    return rows, logs


def _normal(engine: Inference, node: str, rows: Rows, where: NDArray[np.int64]) -> tuple[Array, Array]:
    gaussian = engine.parameters.gaussians[node]
    parents = numeric_parents(engine.graph, engine.columns, node)
    mean = gaussian.intercept.reshape(-1)[where]
    if parents:
        slopes = gaussian.slopes.reshape(-1, len(parents))[where]
        mean = mean + np.einsum("np,pn->n", slopes, rows.numbers[[rows.numeric[p] for p in parents]])
    return mean, gaussian.variance.reshape(-1)[where]


def conditional(engine: Inference, evidence: Evidence, n: int, rng: np.random.Generator) -> Rows:
    """Rows drawn exactly from the posterior given the evidence.

    The ancestors of what is observed are eliminated once and drawn backwards for all rows; other categories follow along the
    arcs, and numbers given all categories.
    """
    draws = DrawOut()
    top = eliminate(engine.factors([], evidence), [], engine.sizes, engine.names, draws)
    if float(top.logs) == -np.inf:
        raise impossible(engine, evidence)
    known: dict[str, Any] = {engine.names[v]: codes for v, codes in draws.draw(n, rng).items()}
    rows, _ = _sampled(engine, n, rng, Evidence(), known | dict(evidence.values))
    for name, numbers in _numbers(engine, evidence, rows, rng).items():
        rows.numbers[rows.numeric[name]] = numbers
    return rows


def _numbers(engine: Inference, evidence: Evidence, rows: Rows, rng: np.random.Generator) -> dict[str, Any]:
    """All numbers given the categories of the rows and the numbers that are observed, the same in every row."""
    found: dict[str, Any] = dict(evidence.numbers)
    observed = {name: np.array([number]) for name, number in evidence.numbers.items()}
    place = {c.name: i for i, c in enumerate(rows.columns)}
    for group in engine.numeric.groups(list(observed), [name for name in engine.numeric.nodes if name not in observed]):
        if not group.unobserved:
            continue
        density = engine.numeric.density(group, observed)
        number = np.zeros(rows.n, np.int64)
        for parent in group.scope:
            number = number * len(engine.columns[parent].values) + rows.codes[place[parent]]
        lower = np.linalg.cholesky(density.covariance + 1e-300 * np.eye(len(group.unobserved)))
        noise = rng.standard_normal((rows.n, len(group.unobserved)))
        drawn = density.mean[0, number] + np.einsum("nuv,nv->nu", lower[number], noise)
        found |= {name: drawn[:, i] for i, name in enumerate(group.unobserved)}
    return found


def weighted_query(network: NetworkQueries, targets: list[str], evidence: Evidence, samples: int, seed: int) -> Any:
    """The posterior estimated from samples that are weighted by the probability of the evidence in them."""
    if samples < 1:
        raise UsageError(f"samples={samples} is no number of samples")
    engine = network.inference
    rows, logs = _sampled(engine, samples, np.random.default_rng(seed), evidence)
    peak = logs.max()
    if peak == -np.inf:
        if engine.small and engine.log_evidence(evidence) == -np.inf:
            raise impossible(engine, evidence)
        raise UsageError(f"none of {samples:,} samples agrees with the evidence, which is very improbable: draw more samples")
    weights = np.exp(logs - peak)
    weights /= weights.sum()
    place = {c.name: i for i, c in enumerate(rows.columns)}
    if engine.columns[targets[0]].kind == NUMBER:
        x = rows.numbers[rows.numeric[targets[0]]]
        mean = float(weights @ x)
        return NormalMixture(np.ones(1), np.array([mean]), np.array([float(weights @ (x - mean) ** 2)]))
    where = np.zeros(rows.n, np.int64)
    for name in targets:
        where = where * len(engine.columns[name].values) + rows.codes[place[name]]
    values = [engine.columns[name].values for name in targets]
    shares = np.bincount(where, weights, minlength=int(np.prod([len(v) for v in values])))
    keys = values[0] if len(targets) == 1 else itertools.product(*values)
    return dict(zip(keys, shares.tolist(), strict=True))
