"""The document of a Bayesian network: nodes with their distributions, arcs by strength, log-likelihood of rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import LikelyError, UsageError
from likely.networks.arc_strength import arc_strengths
from likely.networks.family_counts import categorical_parents, numeric_parents
from likely.networks.graph import Graph
from likely.networks.network import Network
from likely.networks.network_parameters import LinearGaussian, NetworkParameters
from likely.report._card import file_name, versions
from likely.schema import NUMBER
from likely.sources import open_source

FORMAT = 1
KIND = "likely network report"
MOST_UNUSUAL = 10  # rows
BINS = 24  # of the distribution of log-likelihoods
Step = Callable[[str], None]


def network_document(
    network: Network, data: Any, how: Mapping[str, Any], step: Step, *, title: str | None, rows: bool
) -> dict[str, Any]:
    """The document of a network, as plain data."""
    if not network.fitted:
        raise UsageError("the network has no parameters yet: fit it, then report on it")
    step("arcs")
    strengths = arc_strengths(network)
    step("nodes")
    nodes = [_node(network, name) for name in network.nodes]
    arcs = [{"from": a, "to": b, "information": strengths.get((a, b))} for a, b in network.arcs]
    document: dict[str, Any] = {
        "format": FORMAT, "kind": KIND, "title": title or "Report of a Bayesian network", "warnings": _warnings(network),
        "nodes": nodes, "arcs": sorted(arcs, key=lambda arc: -(arc["information"] or 0.0)),
    }  # fmt: skip
    source = None
    if data is not None:
        step("log-likelihood")
        source = open_source(data)
        document["evaluation"] = _evaluation(network, data, how, rows=rows)
    document["card"] = _card(network, source.label if source else None, nodes, document.get("evaluation"))
    return document


def _node(network: Network, name: str) -> dict[str, Any]:
    """One node: its values, parents and children, marginal distribution, and the distribution given the parents."""
    column, graph = network.columns[name], network.graph
    numeric = column.kind == NUMBER
    found: dict[str, Any] = {
        "name": name, "kind": "number" if numeric else "category", "hidden": name in network.hidden,
        "parents": list(graph.parents[name]), "children": list(graph.children[name]),
        "values": [] if numeric else [str(value) for value in column.values],
    }  # fmt: skip
    try:
        asked = network.query(name)
        found["marginal"] = [asked.mean, asked.variance] if numeric else list(asked.values())
    except LikelyError:  # a clique is too large for exact inference
        found["marginal"] = None
    return found | (_gaussian_rows(network, name) if numeric else _table_rows(network, name))


def _table_rows(network: Network, name: str) -> dict[str, Any]:
    table = network.parameters.tables[name]
    k = table.shape[-1]
    counts = network.tally.tables[name].reshape(-1, k).sum(1).tolist() if network.tally else itertools.repeat(None)
    given = itertools.product(*(network.columns[p].values for p in network.graph.parents[name]))
    rows = [
        {"given": [str(value) for value in key], "count": n, "probabilities": line}
        for key, n, line in zip(given, counts, table.reshape(-1, k).tolist(), strict=False)
    ]
    return {"free_parameters": len(rows) * (k - 1), "table": rows}


def _gaussian_rows(network: Network, name: str) -> dict[str, Any]:
    form: LinearGaussian = network.parameters.gaussians[name]
    categories = categorical_parents(network.graph, network.columns, name)
    numbers = numeric_parents(network.graph, network.columns, name)
    counts = network.tally.moments[name].n.reshape(-1).tolist() if network.tally else itertools.repeat(None)
    slopes = form.slopes.reshape(form.intercept.size, len(numbers)).tolist()
    given = itertools.product(*(network.columns[p].values for p in categories))
    parts = zip(given, counts, form.intercept.reshape(-1).tolist(), slopes, form.variance.reshape(-1).tolist(), strict=False)
    rows = [
        {"given": [str(value) for value in key], "count": n, "intercept": at,
         "slopes": dict(zip(numbers, slope, strict=True)), "variance": spread}
        for key, n, at, slope, spread in parts
    ]  # fmt: skip
    return {"free_parameters": len(rows) * (len(numbers) + 2), "table": rows}


def _warnings(network: Network) -> list[str]:
    found = [] if network.converged else ["EM was stopped before it converged: raise max_iter."]
    if network.tally is None:
        return [*found, "The network has counted nothing: its parameters were given."]
    for name in network.nodes:
        moments = network.tally.moments.get(name)
        seen = moments.n if moments is not None else network.tally.tables[name].sum(-1)
        empty = int((seen <= 0).sum())
        if empty:
            found.append(
                f"Node {name}: {empty:,} of {seen.size:,} configurations of its parents were never seen; their "
                "distribution comes from pseudocounts alone."
            )
    return found


def _evaluation(network: Network, data: Any, how: Mapping[str, Any], *, rows: bool) -> dict[str, Any]:
    """Log-likelihood of the rows, beside that of the same nodes without any arc."""
    each = network.log_likelihoods(data, **how)
    finite = each[np.isfinite(each)]
    alone = _without_arcs(network)
    order = np.argsort(each, kind="stable")[:MOST_UNUSUAL].tolist() if rows else []
    counts, edges = np.histogram(finite, BINS) if len(finite) else (np.zeros(0), np.zeros(0))
    return {
        "rows": len(each), "log_likelihood": float(each.sum()), "impossible_rows": len(each) - len(finite),
        "independent_log_likelihood": None if alone is None else float(alone.log_likelihoods(data, **how).sum()),
        "histogram": {"edges": edges, "counts": counts},
        "unusual_rows": [{"row": i + 1, "log_likelihood": float(each[i])} for i in order],
    }  # fmt: skip


def _without_arcs(network: Network) -> Network | None:
    """The same marginal distributions without arcs; None where they are not known."""
    tables: dict[str, NDArray[np.float64]] = {}
    gaussians = {}
    names = [name for name in network.nodes if name not in network.hidden]  # no table has a column for the others
    for name in names:
        try:
            asked = network.query(name)
        except LikelyError:
            return None
        if network.columns[name].kind == NUMBER:
            gaussians[name] = LinearGaussian(np.array(asked.mean), np.zeros(0), np.array(asked.variance))
        else:
            tables[name] = np.array(list(asked.values()))
    columns = {name: network.columns[name] for name in names}
    return Network.from_parameters(Graph.of((), names), columns, NetworkParameters(tables, gaussians))


def _card(
    network: Network, label: str | None, nodes: list[dict[str, Any]], evaluation: Mapping[str, Any] | None
) -> dict[str, Any]:
    tally = network.tally
    return {
        "nodes": len(nodes), "arcs": len(network.arcs), "hidden_nodes": list(network.hidden),
        "rows_learned_from": None if tally is None else tally.rows,
        "fitted_by": "given" if tally is None else "EM" if tally.expected else "counting",
        "free_parameters": sum(node["free_parameters"] for node in nodes),
        "data": file_name(label) if label else None, "data_rows": evaluation["rows"] if evaluation else None,
        "created": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions(),
    }  # fmt: skip
