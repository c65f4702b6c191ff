"""Networks as model files: data only, checked before use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import ModelFileError, UsageError
from likely.model import model_file
from likely.model.serialization.values import check_values
from likely.networks._limits import check_family
from likely.networks.family_counts import LinearMoments, NetworkTally, categorical_parents, numeric_parents
from likely.networks.graph import Graph
from likely.networks.network_parameters import LinearGaussian, NetworkParameters, resolve_smoothing
from likely.schema import CATEGORY, NUMBER, Column

if TYPE_CHECKING:
    from likely.networks.network import Network

Array = NDArray[np.float64]
FORMAT = "network"
LARGEST = 1e75  # of a mean or a slope: the square of one times that of another is still finite
PARTS = {"counts": ("n", "mean", "scatter"), "tables": ("intercept", "slopes", "variance")}


def save(network: Network, path: str | os.PathLike[str]) -> str:
    """Write a network and return the digest of the file."""
    if not network.fitted:
        raise UsageError("the network has no parameters yet: fit it before it is saved")
    header, arrays = to_file(network)
    return model_file.write(os.fspath(path), header, arrays, check=from_file)


def to_file(network: Network) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a network."""
    columns = network.columns
    tally = network.tally
    smoothing = resolve_smoothing(network.smoothing, columns)
    header: dict[str, Any] = {
        "kind": FORMAT, "holds": "counts" if tally is not None else "tables",
        "nodes": [
            {
                "name": name, "kind": columns[name].kind, "parents": list(network.graph.parents[name]),
                "values": [model_file.to_json(v, name) for v in columns[name].values],
                "hidden": name in network.hidden, "smoothing": smoothing[name],
            }
            for name in network.nodes
        ],
        "kinds": dict(network.kinds), "rows": tally.rows if tally else 0.0, "expected": bool(tally and tally.expected),
        "trace": list(network.trace), "converged": network.converged,
    }  # fmt: skip
    arrays: dict[str, Array] = {}
    for i, name in enumerate(network.nodes):
        if columns[name].kind == CATEGORY:
            arrays[f"t{i}"] = (tally.tables if tally is not None else network.parameters.tables)[name]
            continue
        part: Any = tally.moments[name] if tally is not None else network.parameters.gaussians[name]
        for key in PARTS[header["holds"]]:
            arrays[f"{key}{i}"] = getattr(part, key)
    return header, arrays


def load(path: str | os.PathLike[str]) -> Network:
    """Read a network; anything but a whole, untouched file of one is refused."""
    header, arrays, _ = model_file.read(os.fspath(path))
    return from_parts(header, arrays, path)


def from_parts(header: Mapping[str, Any], arrays: Mapping[str, Array], path: str | os.PathLike[str]) -> Network:
    """The network of a header and its arrays, which were read from a file."""
    if header.get("kind") != FORMAT:
        raise ModelFileError(f"{os.fspath(path)!r} holds no network: read it with likely.load")
    try:
        return from_file(header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise ModelFileError(f"{os.fspath(path)!r} is no network: {error}") from None


def from_file(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Network:
    """The network of a header and its arrays; ValueError where they do not fit."""
    from likely.networks.network import Network

    nodes = header["nodes"]
    names = [_text(node["name"]) for node in nodes]
    if len(set(names)) < len(names) or header["holds"] not in PARTS:
        raise ValueError("its nodes or its content are not what a network has")
    columns = {name: _column(name, node) for name, node in zip(names, nodes, strict=True)}
    parents = {name: tuple(_text(p) for p in node["parents"]) for name, node in zip(names, nodes, strict=True)}
    if any(p not in columns for some in parents.values() for p in some):
        raise ValueError("a parent is no node")
    if any(len(set(some)) < len(some) for some in parents.values()):
        raise ValueError("a node has a parent twice")
    graph = Graph(tuple(names), parents)
    graph.order  # noqa: B018 - a cycle is refused
    tables, numeric = _arrays(header, arrays, graph, columns)
    made = Network(graph, smoothing={name: _smoothing(node["smoothing"], columns[name]) for name, node in
                                     zip(names, nodes, strict=True)})  # fmt: skip
    made.kinds = {_text(k): _text(v) for k, v in header["kinds"].items()}
    made.hidden = {name: columns[name] for name, node in zip(names, nodes, strict=True) if node["hidden"] is True}
    made.declared = columns if header["holds"] == "tables" else dict(made.hidden)
    made.trace, made.converged = tuple(float(x) for x in header["trace"]), bool(header["converged"])
    if header["holds"] == "tables":
        made.given = NetworkParameters(tables, {n: LinearGaussian(*each) for n, each in numeric.items()})
    else:
        moments = {name: LinearMoments(*each) for name, each in numeric.items()}
        rows, expected = float(header["rows"]), header["expected"] is True
        made.tally = NetworkTally(graph, columns, tables, moments, rows, expected)
    _check_parameters(made.parameters)
    return made


def _check_parameters(parameters: NetworkParameters) -> None:
    """Refuse parameters that no data lead to: inference would overflow."""
    for name, table in parameters.tables.items():
        if not np.isfinite(table).all():
            raise ValueError(f"the probabilities of node {name!r} are not finite")
    for name, each in parameters.gaussians.items():
        large = max((float(np.abs(part).max(initial=0.0)) for part in (each.intercept, each.slopes)), default=0.0)
        variance = float(each.variance.max(initial=0.0))
        if not (large <= LARGEST and variance <= LARGEST**2 and (each.variance > 0).all()):
            raise ValueError(f"the numbers of node {name!r} are too large, or a variance is zero")


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise ValueError(f"{given!r} is no name")  # noqa: TRY004 - what a file holds is a value
    return given


def _column(name: str, node: Mapping[str, Any]) -> Column:
    check_values(node["values"], name)
    values = tuple(model_file.from_json(value) for value in node["values"])
    if node["kind"] not in (CATEGORY, NUMBER) or len(set(values)) < len(values) or (not values) != (node["kind"] == NUMBER):
        raise ValueError(f"node {name!r} has no kind or no values that a node can have")
    return Column(name, node["kind"], values)


def _smoothing(given: Any, column: Column) -> Any:
    if given == "auto":
        return given
    if isinstance(given, list):
        if len(given) != len(column.values) or not all(isinstance(x, (int, float)) and x >= 0 for x in given):
            raise ValueError(f"the smoothing of node {column.name!r} does not fit")
        return Fixed(tuple(float(x) for x in given))
    return float(given)


class Fixed:
    """Pseudocounts that were given value by value."""

    def __init__(self, counts: tuple[float, ...]) -> None:
        self._counts = counts

    def pseudocounts(self, values: Any) -> tuple[float, ...]:
        """The pseudocount of each value; values that came later have none."""
        return (*self._counts, *(0.0,) * (len(values) - len(self._counts)))


def _arrays(
    header: Mapping[str, Any], arrays: Mapping[str, Array], graph: Graph, columns: Mapping[str, Column]
) -> tuple[dict[str, Array], dict[str, list[Array]]]:
    """Tables, and the parts of each numeric node; shapes and signs are checked."""
    sizes = {name: len(c.values) for name, c in columns.items()}
    tables: dict[str, Array] = {}
    numeric: dict[str, list[Array]] = {}
    for i, name in enumerate(graph.nodes):
        some = categorical_parents(graph, columns, name)
        if columns[name].kind == CATEGORY:
            if len(some) < len(graph.parents[name]):
                raise ValueError(f"node {name!r} has a numeric parent")
            check_family(name, some, sizes)
            tables[name] = _shaped(arrays[f"t{i}"], tuple(sizes[p] for p in (*some, name)), name)
            if (tables[name] < 0).any():
                raise ValueError(f"node {name!r} has counts below zero")
            if header["holds"] == "tables" and (np.abs(tables[name].sum(-1) - 1) > 0.01).any():
                raise ValueError(f"the probabilities of node {name!r} do not sum to one")
            continue
        shape = tuple(sizes[p] for p in some)
        m = 1 + len(numeric_parents(graph, columns, name))
        shapes = {"n": shape, "mean": (*shape, m), "scatter": (*shape, m, m),
                  "intercept": shape, "slopes": (*shape, m - 1), "variance": shape}  # fmt: skip
        numeric[name] = [_shaped(arrays[f"{key}{i}"], shapes[key], name) for key in PARTS[header["holds"]]]
        positive = numeric[name][0] if header["holds"] == "counts" else numeric[name][2]
        if (positive < 0).any():
            raise ValueError(f"node {name!r} has a negative weight or variance")
    return tables, numeric


def _shaped(array: Array, shape: tuple[int, ...], name: str) -> Array:
    if array.shape != shape:
        raise ValueError(f"the array of node {name!r} has the shape {array.shape} instead of {shape}")
    return np.asarray(array, dtype=np.float64)
