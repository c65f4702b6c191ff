"""Fitting of networks: counting, EM, merging, updating, forgetting, interventions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.engines.engine import is_spark_frame
from likely.errors import DataError, ForgetError, LikelyWarning, UsageError
from likely.kernels.contingency_counts import add_table_logs
from likely.networks._batch_inference import BatchInference
from likely.networks._counting import Counting, sums_of
from likely.networks._em_fit import EMSettings, fit_em
from likely.networks._inference import Inference, code_of, finite_number
from likely.networks._limits import check_family
from likely.networks._row_sums import RowSums
from likely.networks.family_counts import NetworkTally, check_graph, strides
from likely.networks.graph import Graph
from likely.networks.network_parameters import LinearGaussian, NetworkParameters, resolve_smoothing
from likely.networks.rows import Rows, Wanted, code_type, read_rows
from likely.schema import CATEGORY, NUMBER, Column, one_of_alike
from likely.sources import ReadOptions

if TYPE_CHECKING:
    from likely.networks._queries import NetworkQueries

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
    network: NetworkQueries, data: Any, reading: ReadOptions, *, unseen: str = "error", absent: bool = False
) -> Rows:
    """The rows of a table in the values of a network; `absent` allows columns to be missing altogether."""
    known = dict(network.columns)
    if isinstance(data, Rows):
        return _arranged(data, network.nodes, known)
    if is_spark_frame(data):
        raise UsageError("the rows of a Spark table are not read in this process: a network is fitted to them, and no more",
                         remedy="pass frame.toArrow() if it fits in the memory of this process")  # fmt: skip
    hidden = network.nodes if absent else tuple(network.hidden)
    return read_rows(data, Wanted(network.nodes, known, hidden, network.kinds, unseen), reading)


def sums_for(network: NetworkQueries, data: Any, weights: Any, reading: ReadOptions, *, engine: Any = "auto",
             fresh: bool = False, unseen: str = "error") -> tuple[RowSums, str]:  # fmt: skip
    """What is counted and kept of the rows of a table, in the values of the network or, where it learns afresh, of the data.

    The second is the engine that has counted them, and why.
    """
    known = dict(network.declared if fresh else network.columns)
    if isinstance(data, Rows):
        return RowSums.of(_arranged(data, network.nodes, known)), ""
    hidden = tuple(network.hidden)
    wanted = Wanted(network.nodes, known, hidden, network.kinds, unseen, weights)
    graph = None if hidden and fresh else network.graph
    try:
        sums, where = sums_of(data, Counting(wanted, reading, engine, graph))
    except DataError as error:
        if fresh and error.column in network.hidden and error.value is not None:
            name = error.column
            raise DataError(
                f"node {name!r} is declared as hidden, but the data have a column {name!r}, with {error.value!r} in it",
                column=name, remedy=f"leave it out of hidden=, or name all its values there: hidden={{{name!r}: [...]}}",
            ) from None  # fmt: skip
        raise
    if fresh:
        refuse_constants(sums.rows)
    return sums, where


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


def counted(sums: RowSums, graph: Graph, hidden: Sequence[str], smoothing: Any, settings: EMSettings) -> dict[str, Any]:
    """The result of fitting: the tally and, if EM was needed, its summary."""
    columns = {c.name: c for c in sums.columns}
    check_graph(graph, columns)
    resolved = resolve_smoothing(smoothing, columns)
    if not hidden and sums.complete:
        return {"tally": sums.tally(graph), "trace": (), "converged": True}
    found = fit_em(sums.rows, graph, hidden, resolved, settings, counted=sums.counted)
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


def updated(network: NetworkQueries, sums: RowSums) -> NetworkTally:
    """The tally with more rows; incomplete ones count by expectation."""
    if network.tally is None:
        raise UsageError("the network has counted nothing that rows could be added to: fit it first")
    if sums.complete:
        return network.tally + sums.tally(network.graph)
    columns = {c.name: c for c in sums.columns}
    wider = network._copy(tally=network.tally.within(columns))  # noqa: SLF001 - fitting is the workshop of Network
    more, _ = BatchInference(wider.inference, sums.rows).expected()
    return network.tally + more if sums.counted is None else network.tally + sums.counted + more


def forgotten(network: NetworkQueries, sums: RowSums) -> NetworkTally:
    """The tally without some complete rows."""
    if network.tally is None:
        raise UsageError("the network has counted nothing that could be forgotten: fit it first")
    if not sums.complete:
        raise ForgetError("rows with missing cells were counted by expectation, and cannot be forgotten: fit anew without them")
    return network.tally - sums.tally(network.graph)


def warn_of_empty_columns(rows: Rows, hidden: Mapping[str, Any]) -> None:
    """Warn of nodes that no row observes, other than hidden ones; refuse a table that observes none at all."""
    numeric = rows.numeric
    empty = [c.name for i, c in enumerate(rows.columns) if c.name not in hidden
             and (np.isnan(rows.numbers[numeric[c.name]]) if c.name in numeric else rows.codes[i] < 0).all()]  # fmt: skip
    if empty and len(empty) == len(rows.columns) - len(hidden):
        raise DataError(f"the table has a value of no node: {', '.join(map(repr, empty[:8]))} are not in it",
                        remedy="name its columns as the nodes")  # fmt: skip
    if empty:
        listed = ", ".join(map(repr, empty))
        warnings.warn(f"the table has no value of {listed}: summed out in every row", LikelyWarning, stacklevel=4)


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
    where = np.flatnonzero(~np.isfinite(evidence))
    if len(where):
        raise DataError(f"{_impossible(where)} under the network", row=int(where[0]) + 1,
                        remedy="fit with smoothing above 0, or leave such rows out")  # fmt: skip
    shares: Array = found / found.sum(1, keepdims=True)
    return shares


def log_posteriors(engine: Inference, rows: Rows, target: str) -> Array:
    """The log posterior of a node in each row, without underflow; uniform in a row that the network excludes."""
    joint = BatchInference(engine, rows).log_joint(target)
    joint = np.where(np.isneginf(joint).all(1, keepdims=True), 0.0, joint)
    made: Array = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    return made


def completed(engine: Inference, rows: Rows, draws: np.random.Generator | None) -> Rows:
    """The rows with missing cells filled in; those of an impossible row stay missing, of which a warning tells."""
    made = BatchInference(engine, rows).complete(draws)
    where = np.flatnonzero((made.codes < 0).any(0) | np.isnan(made.numbers).any(0))
    if len(where):
        warnings.warn(
            f"{_impossible(where)} under the network: missing cells stay missing there; fit with smoothing above 0",
            LikelyWarning, stacklevel=3,
        )  # fmt: skip
    return made


def _impossible(where: NDArray[np.int64]) -> str:
    if len(where) == 1:
        return f"row {where[0] + 1:,} has probability zero"
    listed = ", ".join(f"{row + 1:,}" for row in where[:5]) + (" …" if len(where) > 5 else "")
    return f"{len(where):,} rows ({listed}) have probability zero"


def checked_tables(graph: Graph, columns: Mapping[str, Column], tables: Mapping[str, Any]) -> dict[str, Array]:
    """Tables of the right shape that hold probabilities."""
    found = {}
    sizes = {name: len(column.values) for name, column in columns.items()}
    extra = next((name for name in (*tables, *columns) if name not in graph.nodes), None)
    if extra is not None:
        raise UsageError(f"{extra!r} has {'a table' if extra in tables else 'values'}, but is not in the network: "
                         f"a node without arcs is named too, as in 'A -> B, {extra}'")  # fmt: skip
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
        if table.shape != shape or not (table >= 0).all():
            raise UsageError(f"the table of node {node!r} must hold probabilities in the shape {shape}, an axis for each "
                             "parent and the last for the node")  # fmt: skip
        _check_sums(node, [columns[p] for p in graph.parents[node]], table)
        found[node] = table
    return found


def _check_sums(node: str, parents: Sequence[Column], table: Array) -> None:
    off = np.abs(table.sum(-1) - 1)
    if (off > 0.01).any():
        at = np.unravel_index(int(off.argmax()), off.shape) if parents else ()
        given = ", ".join(f"{p.name}={p.values[int(k)]!r}" for p, k in zip(parents, at, strict=True))
        raise UsageError(f"the probabilities of node {node!r}{' given ' + given if given else ''} sum to "
                         f"{float(table.sum(-1)[at]):g} instead of 1")  # fmt: skip


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
