"""Exact inference in a network: evidence of any kind, posteriors, most probable explanations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError
from likely.kernels.parallel import cached_property
from likely.networks._elimination import Factor, MaxOut, eliminate, log_sum, reduced, steps_of, sum_out
from likely.networks._hybrid import NumericPart
from likely.networks._junction_tree import JunctionTree
from likely.networks.graph import Graph
from likely.networks.network_parameters import NetworkParameters
from likely.schema import CATEGORY, NUMBER, Column, is_missing

Array = NDArray[np.float64]
FEW_QUERIES = 8  # single queries before a junction tree is worth its compiled loops
MANY_TABLES = 1_000  # that these queries have multiplied: in a large network fewer of them pay for the tree
CLIQUES_A_QUERY = 4  # a tree with the clique of a node as its root costs as much as a query of it for so many cliques
MOST_TREE_CELLS = 1 << 20  # of all cliques: beyond, each query eliminates what matters to it alone


@dataclass(frozen=True)
class Evidence:
    """Evidence on some nodes: values, numbers, and likelihoods of values (soft evidence)."""

    values: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    likelihoods: Mapping[str, Array] = field(default_factory=dict)

    @property
    def nodes(self) -> set[str]:
        """The nodes that are fully observed."""
        return {*self.values, *self.numbers}

    @staticmethod
    def of(given: Mapping[str, Any] | None, graph: Graph, columns: Mapping[str, Column]) -> Evidence:
        """Evidence from user input: a value, a number, a dict of likelihoods, or a list of values that are possible."""
        values: dict[str, int] = {}
        numbers: dict[str, float] = {}
        likelihoods: dict[str, Array] = {}
        given = {} if given is None else given
        if not isinstance(given, Mapping):
            raise UsageError(f"evidence is a dict of nodes and values, such as {{{graph.nodes[0]!r}: ...}}, not {given!r}")
        graph.check(given, "evidence: node")
        for name, value in given.items():
            column = columns[name]
            if type(value) is str and value in column.code:  # the common case first: queries are many
                values[name] = column.code[value]
            elif isinstance(value, (Mapping, list, tuple, set, frozenset)) and column.kind == CATEGORY:
                likelihoods[name] = _likelihoods(column, value)
            elif is_missing(value):
                continue
            elif column.kind == NUMBER:
                numbers[name] = finite_number(name, value)
            else:
                values[name] = code_of(column, value)
        return Evidence(values, numbers, likelihoods)


def code_of(column: Column, value: Any) -> int:
    """The code of a value of a categorical node; an unknown value is an error."""
    code = column.codes([value])[0]
    if code >= len(column.values):
        raise DataError("which the node does not have", column=column.name, value=value,
                        remedy=f"its values are {list(column.values[:20])}")  # fmt: skip
    return code


def finite_number(name: str, value: Any) -> float:
    """A number that is given for a node, finite or refused."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.inf
    if not np.isfinite(number):
        raise DataError("which is no finite number", column=name, value=value, remedy="the node holds numbers")
    return number


def _likelihoods(column: Column, given: Any) -> Array:
    """The likelihood of each value: as given, or 1 for each of the values that are possible."""
    found = np.zeros(len(column.values))
    pairs = given.items() if isinstance(given, Mapping) else ((value, 1.0) for value in given)
    for value, likelihood in pairs:
        found[code_of(column, value)] = finite_number(column.name, likelihood)
    if (found < 0).any() or not found.any():
        raise DataError(f"soft evidence {given!r} needs likelihoods of at least 0, not all of them 0", column=column.name)
    return found


class Inference:
    """Posteriors of a network with known parameters.

    Parameters
    ----------
    graph, columns, parameters
        The network.
    tree
        The junction tree, where a network of the same graph has made it already.

    """

    def __init__(
        self, graph: Graph, columns: Mapping[str, Column], parameters: NetworkParameters, tree: JunctionTree | None = None
    ) -> None:
        self.graph, self.columns, self.parameters = graph, columns, parameters
        self.names = [node for node in graph.nodes if columns[node].kind == CATEGORY]
        self.place = {name: i for i, name in enumerate(self.names)}
        self.sizes = [len(columns[name].values) for name in self.names]
        self.scopes = [tuple(self.place[v] for v in (*graph.parents[name], name)) for name in self.names]
        self.numeric = NumericPart(graph, columns, parameters.gaussians)
        self._queries, self._tables, self._tree = 0, 0, tree
        self._unobserved = np.full((1, len(self.names)), -1, np.int32)
        self._potentials: dict[int | None, Array] = {}
        self._whole: dict[int | None, Array] = {}
        self._sums: dict[int | None, dict[str, tuple[slice, Array]]] = {}
        self._asked = Counter[int]()

    @cached_property
    def logs(self) -> list[Array]:
        """The logs of the conditional tables."""
        with np.errstate(divide="ignore"):
            return [np.log(self.parameters.tables[name]) for name in self.names]

    @cached_property
    def tree(self) -> JunctionTree:
        """The junction tree of the categorical nodes."""
        return self._tree or JunctionTree(self.scopes, self.sizes, self.names)

    @cached_property
    def _rounded(self) -> dict[str, set[str]]:
        """Nodes whose tables, as published, do not quite sum to one, with their descendants."""
        off = [name for name in self.names if np.abs(self.parameters.tables[name].sum(-1) - 1).max() > 1e-13]
        return {name: self.graph.descendants([name]) for name in off}

    def potentials(self, root: int | None = None, matter: set[str] | None = None) -> Array:
        """The potentials of the junction tree with a given root.

        `matter` are the nodes asked for or observed. Where a table is rounded, nodes that none of them descends from would
        not sum to one as they should: they have been made to, and all others get the sums of their rows back.
        """
        if matter is None and self._rounded:
            if root not in self._whole:
                tables = {i: self.parameters.tables[name] for i, name in enumerate(self.names)}
                self._whole[root] = self.tree.potentials(tables, root)
            return self._whole[root]
        if root not in self._potentials:
            self._potentials[root] = self.tree.arranged(self._products, root)
            self._sums[root] = {name: self._row_sums(name, root) for name in self._rounded}
        phi, sums = self._potentials[root], self._sums[root]
        if matter is None or not sums:
            return phi
        return _scaled(phi, [sums[name] for name, below in self._rounded.items() if not below.isdisjoint(matter)])

    @cached_property
    def _products(self) -> list[Array]:
        """The products of the tables in each clique, those that are rounded made to sum to one."""
        tables = {i: self.parameters.tables[name] for i, name in enumerate(self.names)}
        rounded = {self.place[name] for name in self._rounded}
        return self.tree.products({i: t / t.sum(-1, keepdims=True) if i in rounded else t for i, t in tables.items()})

    def _row_sums(self, name: str, root: int | None) -> tuple[slice, Array]:
        """The cells of the clique that contains a table, and for each the sum of the table's row."""
        cells, configuration = self.tree.configurations(self.place[name], root)
        sums = self.parameters.tables[name].sum(-1).reshape(-1)
        return cells, sums[configuration // self.sizes[self.place[name]]]

    @property
    def small(self) -> bool:
        """Whether a junction tree is quick to go through as a whole."""
        return bool(self.names) and self.tree.total_cells <= MOST_TREE_CELLS

    def factors(self, targets: Sequence[str], evidence: Evidence) -> list[Factor]:
        """The factors relevant to the targets, reduced by the evidence.

        Nodes that are neither asked for nor observed, and have no such descendants, sum to one and are left out.
        """
        relevant = self.graph.ancestors([*targets, *evidence.nodes, *evidence.likelihoods])
        found = [
            Factor(scope, logs) for name, scope, logs in zip(self.names, self.scopes, self.logs, strict=True)
            if name in relevant
        ]  # fmt: skip
        with np.errstate(divide="ignore"):
            found += [Factor((self.place[name],), np.log(each)) for name, each in evidence.likelihoods.items()]
        observed = {name: np.array([number]) for name, number in evidence.numbers.items()}
        for group in self.numeric.groups(list(observed)):
            logs = self.numeric.density(group, observed).log_density.reshape(self.numeric.shape(group))
            found.append(Factor(tuple(self.place[p] for p in group.scope), logs))
        known = {self.place[name]: code for name, code in evidence.values.items()}
        return [factor.reduced(known) for factor in found]

    def joint(self, targets: Sequence[str], evidence: Evidence) -> tuple[Array, float]:
        """The posterior over the configurations of categorical targets, and the log evidence, by variable elimination."""
        keep = [self.place[name] for name in targets if name not in evidence.values]
        factors = self.factors(targets, evidence)
        self._tables += len(factors)
        table = eliminate(factors, keep, self.sizes, self.names, sum_out)
        log_evidence = float(log_sum(table.logs))
        if log_evidence == -np.inf:
            raise impossible(self, evidence)
        posterior = np.exp(table.logs - log_evidence)
        posterior /= posterior.sum()  # the rounding of the logs aside
        whole = np.zeros([self.sizes[self.place[name]] for name in targets])
        whole[tuple(evidence.values.get(name, slice(None)) for name in targets)] = posterior
        return whole, log_evidence

    def marginal(self, target: str, evidence: Evidence) -> tuple[Array, float]:
        """The posterior of one categorical node, and the log evidence: by the junction tree once there are many queries."""
        few = self._queries < FEW_QUERIES and self._tables < MANY_TABLES
        self._queries += 1
        if few or evidence.numbers or evidence.likelihoods or not self.small:
            return self.joint([target], evidence)
        row = self._unobserved.copy()
        for name, code in evidence.values.items():
            row[0, self.place[name]] = code
        v = self.place[target]
        root, matter = self.tree.holders[v], {target, *evidence.values}
        self._asked[root] += 1
        if self._asked[root] > len(self.tree.cliques) // CLIQUES_A_QUERY:
            log_evidence, posterior = self.tree.collect_one(row, self.potentials(root, matter), v)
        else:
            log_evidence, posterior = self.tree.expect_one(row, self.potentials(None, matter), v)
        if log_evidence == -np.inf:  # or too small for the scales: logs decide
            return self.joint([target], evidence)
        return posterior / sum(posterior.tolist()), log_evidence  # of few numbers, sooner than by numpy

    def log_evidence(self, evidence: Evidence) -> float:
        """The log probability of the evidence; -inf where it is impossible."""
        return float(eliminate(self.factors([], evidence), [], self.sizes, self.names, sum_out).logs)

    def most_probable(self, evidence: Evidence, targets: Sequence[str] | None = None) -> tuple[dict[str, int], float]:
        """The most probable values of the unobserved categorical nodes, or of the targets alone (others summed out), as codes.

        Also the log probability of these values together with the evidence.
        """
        asked = self.names if targets is None else list(targets)
        wanted = [name for name in asked if name not in evidence.values]
        keep = [self.place[name] for name in wanted]
        factors = self.factors(wanted, evidence)
        hidden = {v for factor in factors for v in factor.scope} - set(keep)
        if hidden:
            steps = steps_of([f.scope for f in factors], hidden, self.sizes)
            steps.check(self.sizes, self.names)
            steps_of(steps.left, keep, self.sizes).check(self.sizes, self.names, MaxOut.kept)  # before the sums are computed
            factors = reduced(factors, steps.order, sum_out)
        best = MaxOut()
        top = eliminate(factors, [], self.sizes, self.names, best)
        if float(top.logs) == -np.inf:
            raise impossible(self, evidence)
        chosen = best.trace()
        return {name: chosen[self.place[name]] for name in wanted}, float(top.logs)

    def numeric_posterior(self, target: str, evidence: Evidence) -> tuple[Array, Array, Array]:
        """Weights, means and variances of the mixture of normals that a numeric node follows."""
        observed = {name: np.array([number]) for name, number in evidence.numbers.items()}
        group = next(g for g in self.numeric.groups(list(observed), [target]) if target in g.unobserved)
        density = self.numeric.density(group, observed)
        weights, _ = self.joint(list(group.scope), evidence) if group.scope else (np.ones(1), 0.0)
        i = group.unobserved.index(target)
        flat = weights.reshape(-1)
        some = flat > 0
        return flat[some], density.mean[0, some, i], density.covariance[some, i, i]


def _scaled(phi: Array, factors: Sequence[tuple[slice, Array]]) -> Array:
    """The potentials with some cells multiplied."""
    if not factors:
        return phi
    phi = phi.copy()
    for cells, factor in factors:
        phi[cells] *= factor
    return phi


def impossible(engine: Inference, evidence: Evidence) -> DataError:
    """The error for evidence of probability zero; it names the first part that cannot be."""
    values, likelihoods = dict(evidence.values), dict(evidence.likelihoods)
    kept: dict[str, int] = {}
    culprit = next(iter({**values, **likelihoods}), None)
    for name, code in values.items():
        kept[name] = code
        if engine.log_evidence(Evidence(kept)) == -np.inf:
            culprit = name
            break
    shown = {name: engine.columns[name].values[code] for name, code in kept.items()} or sorted(likelihoods)
    return DataError(
        f"the evidence has probability zero: {shown} cannot occur together under this network",
        column=culprit, remedy="check these values, or fit with smoothing above 0",
    )  # fmt: skip
