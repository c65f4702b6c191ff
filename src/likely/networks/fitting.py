"""Fitting of networks: counting, EM, merging, updating, forgetting, interventions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, ForgetError, LikelyWarning, UsageError
from likely.kernels.contingency_counts import add_table_logs
from likely.networks.batch_inference import BatchInference
from likely.networks.em_fit import EMSettings, fit_em
from likely.networks.family_counts import NetworkTally, check_graph, count_rows, strides
from likely.networks.graph import Graph
from likely.networks.inference import Inference, code_of, finite_number
from likely.networks.limits import check_family
from likely.networks.network_parameters import LinearGaussian, NetworkParameters, resolve_smoothing
from likely.networks.rows import Rows, Wanted, code_type, read_rows
from likely.schema import CATEGORY, NUMBER, Column, one_of_alike
from likely.sources import ReadOptions

if TYPE_CHECKING:
    from likely.networks.queries import NetworkQueries

__all__ = ["EMSettings"]

Array = NDArray[np.float64]
MOST_HIDDEN_VALUES = 100_000


def hidden_columns(hidden: Mapping[str, Any]) -> dict[str, Column]:
    """Hidden nodes with their values, of which each needs at least two."""
    found: dict[str, Column] = {}
    for name, given in hidden.items():
        number = given if isinstance(given, (int, np.integer)) and not isinstance(given, bool) else None
        if number is not None and not 2 <= number <= MOST_HIDDEN_VALUES:
            why = "with fewer than 2 it has no effect" if number < 2 else "no data can distinguish so many"
            raise UsageError(f"hidden node {name!r} has {number:,} value{'s' * (number != 1)}: {why}; give it 2 or a few more")
        values = given if number is None else range(number)
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
            raise UsageError(f"hidden={{{name!r}: {given!r}}} is not understood: give the number of its values, or a list")
        if len(values) < 2:
            listed = f"{len(values)} values: with fewer than 2 it has no effect; name 2 or more"
            raise UsageError(f"hidden node {name!r} has {listed}")
        found |= declared_columns({name: values})
    return found


def declared_columns(values: Mapping[str, Sequence[Any]]) -> dict[str, Column]:
    """Nodes whose values are given."""
    found = {}
    for name, given in values.items():
        listed = tuple(given)
        if len(one_of_alike(listed)) < len(listed) or len(listed) < 2:
            raise UsageError(f"the values of node {name!r} must be two or more that all differ, not {list(listed)!r}")
        found[name] = Column(name, CATEGORY, listed)
    return found


def reading_of(missing: Any, how: Mapping[str, Any]) -> ReadOptions:
    """How a source is read."""
    return ReadOptions.of(missing, how)


def rows_for(
    network: NetworkQueries,
    data: Any,
    weights: Any,
    reading: ReadOptions,
    *,
    fresh: bool = False,
    unseen: str = "error",
    absent: bool = False,
) -> Rows:
    """The rows of a table for a network: in the network's values, or in those of the data where it learns afresh.

    `absent` allows columns to be missing altogether.
    """
    known = dict(network.declared if fresh else network.columns)
    if isinstance(data, Rows):
        return _arranged(data, network.nodes, known)
    hidden = network.nodes if absent else tuple(network.hidden)
    rows = read_rows(data, Wanted(network.nodes, known, hidden, network.kinds, unseen, weights), reading)
    if fresh:
        refuse_constants(rows)
    return rows


def _arranged(rows: Rows, nodes: Sequence[str], known: Mapping[str, Column]) -> Rows:
    """Rows of codes in the order of the nodes and, where these are known, in their values."""
    place = {c.name: i for i, c in enumerate(rows.columns)}
    lacking = next((node for node in nodes if node not in place), None)
    if lacking is not None:
        raise UsageError(f"the rows have no column {lacking!r}")
    order = [place[node] for node in nodes]
    columns = tuple(known.get(node, rows.columns[place[node]]) for node in nodes)
    codes = np.ascontiguousarray(rows.codes[order], np.promote_types(rows.codes.dtype, code_type(columns)))
    for i, (column, old) in enumerate(zip(columns, (rows.columns[k] for k in order), strict=True)):
        if column.values != old.values:
            codes[i] = np.array([*(code_of(column, value) for value in old.values), -1])[codes[i]]
    numeric = rows.numeric
    return Rows(columns, codes, rows.numbers[[numeric[c.name] for c in columns if c.kind == NUMBER]], rows.weights)


def refuse_constants(rows: Rows) -> None:
    """Refuse columns with fewer than two values."""
    for column in rows.columns:
        if column.kind == CATEGORY and len(column.values) < 2:
            values = f"only one value, {column.values[0]!r}" if column.values else "no value"
            raise DataError(
                f"column {column.name!r} has {values}: a node needs two", column=column.name,
                remedy=f"leave it out, or name all values it can take: values={{{column.name!r}: [...]}}",
            )  # fmt: skip


def counted(rows: Rows, graph: Graph, hidden: Sequence[str], smoothing: Any, settings: EMSettings) -> dict[str, Any]:
    """The result of fitting: the tally and, if EM was needed, its summary."""
    columns = {c.name: c for c in rows.columns}
    check_graph(graph, columns)
    resolved = resolve_smoothing(smoothing, columns)
    if not hidden and rows.complete:
        return {"tally": count_rows(rows, graph), "trace": (), "converged": True}
    found = fit_em(rows, graph, hidden, resolved, settings)
    return {"tally": found.tally, "trace": found.trace, "converged": found.converged}


def merged(one: NetworkQueries, other: NetworkQueries) -> NetworkTally:
    """The sum of two tallies."""
    if one.tally is None or other.tally is None:
        raise UsageError("only networks that have counted rows can be added up: fit both first")
    if one.tally.expected or other.tally.expected:
        warnings.warn(
            "expected counts (EM) were added up: the sum is near, but not equal to, fitting all rows at once",
            LikelyWarning, stacklevel=3,
        )  # fmt: skip
    return one.tally + other.tally


def updated(network: NetworkQueries, rows: Rows) -> NetworkTally:
    """The tally with more rows; incomplete ones count by expectation."""
    if network.tally is None:
        raise UsageError("the network has counted nothing that rows could be added to: fit it first")
    if rows.complete:
        return network.tally + count_rows(rows, network.graph)
    columns = {c.name: c for c in rows.columns}
    wider = network._copy(tally=network.tally.within(columns))  # noqa: SLF001 - fitting is the workshop of Network
    more, _ = BatchInference(wider.inference, rows).expected()
    return network.tally + more


def forgotten(network: NetworkQueries, rows: Rows) -> NetworkTally:
    """The tally without some complete rows."""
    if network.tally is None:
        raise UsageError("the network has counted nothing that could be forgotten: fit it first")
    if not rows.complete:
        raise ForgetError("rows with missing cells were counted by expectation, and cannot be forgotten: fit anew without them")
    return network.tally - count_rows(rows, network.graph)


def log_likelihoods(engine: Inference, rows: Rows) -> Array:
    """The log probability of each row: from the tables where it is complete, else with missing cells summed out."""
    if not rows.complete or rows.numeric:
        return BatchInference(engine, rows).log_evidence()
    out = np.zeros(rows.n)
    place = {c.name: i for i, c in enumerate(rows.columns)}
    for scope, logs in zip(engine.scopes, engine.logs, strict=True):
        members = np.array([place[engine.names[v]] for v in scope], np.int64)
        add_table_logs(rows.codes, members, strides(logs.shape), np.ascontiguousarray(logs).reshape(-1), out)
    return out


def posteriors(engine: Inference, rows: Rows, target: str) -> Array:
    """The posterior of a node in each row; a row that the network excludes is refused."""
    if target not in engine.place:
        raise UsageError(f"node {target!r} holds numbers: ask for its distribution with query()")
    evidence, found = BatchInference(engine, rows).posterior(target)
    if not np.isfinite(evidence).all():
        row = int((~np.isfinite(evidence)).argmax()) + 1
        raise DataError(f"row {row} has probability zero under the network", row=row, remedy="fit with smoothing above 0")
    shares: Array = found / found.sum(1, keepdims=True)
    return shares


def log_posteriors(engine: Inference, rows: Rows, target: str) -> Array:
    """The log posterior of a node in each row, without underflow; uniform in a row that the network excludes."""
    joint = BatchInference(engine, rows).log_joint(target)
    joint = np.where(np.isneginf(joint).all(1, keepdims=True), 0.0, joint)
    made: Array = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    return made


def completed(engine: Inference, rows: Rows, draws: np.random.Generator | None) -> Rows:
    """The rows with missing cells filled in."""
    return BatchInference(engine, rows).complete(draws)


def checked_tables(graph: Graph, columns: Mapping[str, Column], tables: Mapping[str, Any]) -> dict[str, Array]:
    """Tables of the right shape that hold probabilities."""
    found = {}
    sizes = {name: len(column.values) for name, column in columns.items()}
    for node in graph.nodes:
        if node not in columns or node not in tables:
            raise UsageError(f"node {node!r} has no {'table' if node in columns else 'values'}")
        if len(one_of_alike(columns[node].values)) < sizes[node]:
            raise UsageError(f"the values of node {node!r} must all differ, not {list(columns[node].values)!r}")
        check_family(node, graph.parents[node], sizes)
        shape = tuple(sizes[name] for name in (*graph.parents[node], node))
        try:
            table = np.array(tables[node], dtype=np.float64)
        except (TypeError, ValueError):  # rows of different lengths, or no numbers
            table = np.full((), np.nan)
        if table.shape != shape or not (table >= 0).all() or (np.abs(table.sum(-1) - 1) > 0.01).any():
            raise UsageError(f"the table of node {node!r} must hold probabilities in the shape {shape}, an axis for each "
                             "parent and the last for the node")  # fmt: skip
        found[node] = table
    return found


def intervened(network: NetworkQueries, interventions: Mapping[str, Any]) -> tuple[Graph, dict[str, Column], NetworkParameters]:
    """Graph, nodes and parameters after an intervention: arcs into the nodes that are set are cut."""
    graph = network.graph
    graph.check(interventions, "do(): node")
    tables, gaussians = dict(network.parameters.tables), dict(network.parameters.gaussians)
    for name, value in interventions.items():
        column = network.columns[name]
        if column.kind == NUMBER:
            number = finite_number(name, value)
            gaussians[name] = LinearGaussian(np.array(number), np.zeros(0), np.array(1e-12 * max(1.0, number * number)))
        elif isinstance(value, Mapping):
            shares = np.zeros(len(column.values))
            for each, share in value.items():
                shares[code_of(column, each)] = finite_number(name, share)
            if (shares < 0).any() or abs(shares.sum() - 1) > 1e-9:
                raise UsageError(f"do() sets {name!r} to {dict(value)!r}: the probabilities must sum to one")
            tables[name] = shares
        else:
            tables[name] = np.eye(len(column.values))[code_of(column, value)]
    return graph.without_arcs_into(interventions), dict(network.columns), NetworkParameters(tables, gaussians)
