"""Bayesian networks: `likely.Network`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError
from likely.kernels.parallel import cached_property
from likely.networks import fitting, network_file
from likely.networks.answers import NormalMixture
from likely.networks.batch import as_values
from likely.networks.bif import bif_text, read_bif, write_bif
from likely.networks.family_counts import NetworkTally
from likely.networks.graph import Graph
from likely.networks.inference import Evidence, Inference
from likely.networks.parameters import NetworkParameters, derive, resolve_smoothing
from likely.schema import CATEGORY, NUMBER, Column

Array = NDArray[np.float64]
NOT_FITTED = "the network has no parameters yet: fit returns a new network, as in net = net.fit(data)"


class Network:
    """A Bayesian network: nodes, arcs, and for each node its distribution given its parents.

    Categorical nodes have conditional tables θ_ijk, the probability of value k of node i under configuration j of its
    parents. Numeric nodes are linear Gaussians: normal around a linear function of their numeric parents, with other
    parameters in each configuration of the categorical ones. A network is a value: `fit` and `update` return new ones.

    Parameters
    ----------
    arcs : str, sequence of pairs, mapping of children to parents, or Graph
        `"C -> S, C -> R, S -> W, R -> W"`; a node alone, `"X"`, has no arcs.
    nodes : sequence of str, optional
        More nodes without arcs.
    values : mapping of str to sequence, optional
        The values of some nodes, where the data may lack one.
    hidden : mapping of str to int or sequence, optional
        Nodes that no table has a column for: how many values each has, or which.
    kinds : mapping of str to {"categorical", "gaussian"}, optional
        What a column of numbers is; else whole numbers of at most 12 different values are categories.
    smoothing : "auto", float, prior, or mapping of nodes to them, default="auto"
        Pseudocount of each cell; "auto" spreads one row over each table (BDeu), 0 is maximum likelihood.

    Examples
    --------
    >>> net = likely.Network("C -> S, C -> R, S -> W, R -> W").fit(data)
    >>> net.query("S", {"W": "t"})

    """

    def __init__(
        self,
        arcs: Any = (),
        *,
        nodes: Sequence[str] = (),
        values: Mapping[str, Sequence[Any]] | None = None,
        hidden: Mapping[str, int | Sequence[Any]] | None = None,
        kinds: Mapping[str, str] | None = None,
        smoothing: Any = "auto",
    ) -> None:
        self.graph = Graph.of(arcs, nodes)
        if not self.graph.nodes:
            raise UsageError("a network needs nodes: name arcs such as 'A -> B', or learn them with learn_structure(data)")
        for named in (values or {}, hidden or {}, kinds or {}):
            self.graph.check(named)
        self.hidden = fitting.hidden_columns(hidden or {})
        self.kinds = dict(kinds or {})
        self.declared = fitting.declared_columns(values or {}) | self.hidden
        self.smoothing = smoothing
        self.tally: NetworkTally | None = None
        self.given: NetworkParameters | None = None
        self.trace: tuple[float, ...] = ()
        self.converged = True

    # ------------------------------------------------------------------ what it is

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes."""
        return self.graph.nodes

    @property
    def arcs(self) -> list[tuple[str, str]]:
        """The arcs, as pairs of parent and child."""
        return self.graph.arcs

    @property
    def fitted(self) -> bool:
        """Whether the network has parameters."""
        return self.tally is not None or self.given is not None

    @property
    def columns(self) -> Mapping[str, Column]:
        """The kind and the values of each node."""
        if not self.fitted:
            raise UsageError(NOT_FITTED)
        return self.declared if self.tally is None else self.tally.columns

    @cached_property
    def parameters(self) -> NetworkParameters:
        """Tables θ_ijk and linear Gaussians, derived from the counts and the prior."""
        if self.given is not None:
            return self.given
        if self.tally is None:
            raise UsageError(NOT_FITTED)
        return derive(self.tally, resolve_smoothing(self.smoothing, self.tally.columns))

    @cached_property
    def inference(self) -> Inference:
        """The engine that answers queries."""
        parameters = self.parameters
        return Inference(self.graph, self.columns, parameters)

    def table(self, node: str) -> dict[tuple[Any, ...], dict[Any, float]]:
        """The conditional table of a categorical node: for each configuration of its parents, value to probability.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        dict
            The values of the parents, in the order of `graph.parents[node]`, to a dict of value and probability.

        """
        self.graph.check(node)
        if self.columns[node].kind == NUMBER:
            raise UsageError(f"node {node!r} holds numbers: see parameters.gaussians[{node!r}]")
        rows = self.parameters.tables[node].reshape(-1, len(self.columns[node].values))
        keys = itertools.product(*(self.columns[p].values for p in self.graph.parents[node]))
        values = self.columns[node].values
        return {key: dict(zip(values, row, strict=True)) for key, row in zip(keys, rows.tolist(), strict=True)}

    def _copy(self, **changes: Any) -> Self:
        made = object.__new__(type(self))
        kept = ("graph", "hidden", "kinds", "declared", "smoothing", "tally", "given", "trace", "converged")
        made.__dict__.update({name: self.__dict__[name] for name in kept} | changes)
        return made

    # ------------------------------------------------------------------ learning

    def fit(self, data: Any, *, weights: Any = None, smoothing: Any = None, missing: Any = None, max_iter: int = 500,
            tol: float = 0.01, n_init: int | None = None, seed: int = 0, **reading: Any) -> Self:  # fmt: skip
        """Count the rows of any table; by EM where cells are missing or nodes are hidden.

        Parameters
        ----------
        data : any source
            Path, frame, dict of columns, list of dicts or array, as for `likely.learn`.
        weights : str or array, optional
            How much each row counts: a column that holds it, or the weights themselves.
        smoothing : optional
            As for the network itself, which it replaces.
        missing : list, optional
            Values that stand for a missing cell, as for `likely.learn`.
        max_iter : int, default=500
            The most rounds of EM.
        tol : float, default=0.01
            EM ends when the maximum is estimated to be at most so many nats of log-likelihood away.
        n_init : int, optional
            Starts of EM where nodes are hidden; 5 unless given.
        seed : int, default=0
            The seed of these starts.
        **reading
            How the source is read, as for `likely.learn`.

        Returns
        -------
        Network
            A new network with parameters.

        """
        settings = fitting.EMSettings(max_iter, tol, n_init, seed)
        chosen = self.smoothing if smoothing is None else smoothing
        rows = fitting.rows_for(self, data, weights, fitting.reading_of(missing, reading), fresh=True)
        found = fitting.counted(rows, self.graph, tuple(self.hidden), chosen, settings)
        return self._copy(smoothing=chosen, given=None, **found)

    @staticmethod
    def learn_structure(data: Any, **settings: Any) -> Network:
        """Learn the arcs from data, and fit the network.

        Parameters
        ----------
        data : any source
            As for `likely.learn`; every column becomes a node.
        **settings
            `method` ("hill-climb", "chow-liu", "tan", "k-dependence", "naive-bayes"), `score` ("qnml", "bdeu", "bic",
            "aic", "k2"), `required` and `forbidden` arcs, `max_parents`, `target`, `k` and the others of
            `likely.networks.structure.StructureSettings`; and how the source is read.

        """
        from likely.networks.structure import learn_structure

        return learn_structure(data, **settings)

    def relearn(self, smoothing: Any) -> Self:
        """The same counts under another prior; no data are needed.

        Parameters
        ----------
        smoothing : "auto", float, prior, or mapping of nodes to them
            As for the network itself, which it replaces.

        Returns
        -------
        Network
            The network with parameters derived anew.

        """
        if self.tally is None:
            raise UsageError("the network has counted nothing: fit it first")
        resolve_smoothing(smoothing, self.tally.columns)
        return self._copy(smoothing=smoothing)

    def __add__(self, other: Network) -> Self:
        """Merge: equals fitting both tables at once, where all rows are complete."""
        if not isinstance(other, Network):
            return NotImplemented
        return self._copy(tally=fitting.merged(self, other), given=None)

    def update(self, data: Any, *, weights: Any = None, missing: Any = None, **reading: Any) -> Self:
        """A network that has also seen these rows; rows with missing cells count by expectation under this network.

        Parameters
        ----------
        data : any source
            Path, frame, dict of columns, list of dicts or array, as for `likely.learn`.
        weights : str or array, optional
            How much each row counts: a column that holds it, or the weights themselves.
        missing : list, optional
            Values that stand for a missing cell, as for `likely.learn`.
        **reading
            How the source is read, as for `likely.learn`.

        Returns
        -------
        Network
            A new network; values that a node did not have are added to it.

        """
        rows = fitting.rows_for(self, data, weights, fitting.reading_of(missing, reading), unseen="new")
        return self._copy(tally=fitting.updated(self, rows), given=None)

    def forget(self, data: Any, *, weights: Any = None, missing: Any = None, **reading: Any) -> Self:
        """A network that has not seen these rows, which must be complete.

        Parameters
        ----------
        data : any source
            Path, frame, dict of columns, list of dicts or array, as for `likely.learn`.
        weights : str or array, optional
            How much each row counts: a column that holds it, or the weights themselves.
        missing : list, optional
            Values that stand for a missing cell, as for `likely.learn`.
        **reading
            How the source is read, as for `likely.learn`.

        Returns
        -------
        Network
            A new network; rows that were never counted are refused where a count would fall below zero.

        """
        rows = fitting.rows_for(self, data, weights, fitting.reading_of(missing, reading))
        return self._copy(tally=fitting.forgotten(self, rows), given=None)

    # ------------------------------------------------------------------ inference

    def query(
        self, target: Any, evidence: Mapping[str, Any] | None = None, *, samples: int | None = None, seed: int = 0
    ) -> Any:
        """The posterior of a node, or of several together, given evidence.

        Parameters
        ----------
        target : str or sequence of str
            A node, or several categorical ones.
        evidence : mapping, optional
            Node to value; a dict of likelihoods is soft evidence, a list the values that are possible.
        samples : int, optional
            Estimate from so many weighted samples instead, where exact inference is out of reach.
        seed : int, default=0
            The seed of the samples.

        Returns
        -------
        dict
            Value to probability; tuples of values for several nodes. A `NormalMixture` for a numeric node.

        """
        several = not isinstance(target, str)
        targets = self.graph.check(target)
        given = Evidence.of(evidence, self.graph, self.columns)
        numeric = [name for name in targets if self.columns[name].kind == NUMBER]
        if numeric and several:
            raise UsageError(f"node {numeric[0]!r} holds numbers: ask for it alone")
        if samples is not None:
            from likely.networks.sampling import weighted_query

            return weighted_query(self, targets, given, samples, seed)
        if numeric:
            return self._numeric(targets[0], given)
        if not several:
            posterior, _ = self.inference.marginal(targets[0], given)
            return dict(zip(self.columns[targets[0]].values, posterior.tolist(), strict=True))
        table, _ = self.inference.joint(targets, given)
        keys = itertools.product(*(self.columns[name].values for name in targets))
        return dict(zip(keys, table.reshape(-1).tolist(), strict=True))

    def _numeric(self, target: str, given: Evidence) -> NormalMixture:
        if target in given.numbers:
            return NormalMixture(np.ones(1), np.array([given.numbers[target]]), np.full(1, 1e-300))
        return NormalMixture(*self.inference.numeric_posterior(target, given))

    def log_evidence(self, evidence: Mapping[str, Any]) -> float:
        """log P(evidence); minus infinity where it cannot occur.

        Parameters
        ----------
        evidence : mapping
            Node to value; a dict of likelihoods is soft evidence, a list the values that are possible.

        Returns
        -------
        float
            The log probability, in nats.

        """
        return self.inference.log_evidence(Evidence.of(evidence, self.graph, self.columns))

    def most_probable(self, evidence: Mapping[str, Any] | None = None, nodes: Sequence[str] | None = None) -> dict[str, Any]:
        """The most probable values of all unobserved categorical nodes (MPE), or of some with the rest summed out (MAP).

        Parameters
        ----------
        evidence : mapping, optional
            Node to value; a dict of likelihoods is soft evidence, a list the values that are possible.
        nodes : sequence of str, optional
            The nodes that are wanted; all that are not observed if None.

        Returns
        -------
        dict
            Node to its value in the most probable configuration.

        """
        given = Evidence.of(evidence, self.graph, self.columns)
        if nodes is not None:
            numeric = next((n for n in self.graph.check(nodes) if self.columns[n].kind == NUMBER), None)
            if numeric is not None:
                raise UsageError(f"node {numeric!r} holds numbers: query it for its distribution")
        found, _ = self.inference.most_probable(given, nodes)
        return {name: self.columns[name].values[code] for name, code in found.items()}

    def do(self, interventions: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        """The network after an intervention: `do(S="t")` or `do({"S": "t"})` sets S, whatever its parents are.

        Parameters
        ----------
        interventions : mapping, optional
            Node to the value it is set to; a dict of values and probabilities sets it at random.
        **more
            The same by name, where the names of the nodes allow it.

        Returns
        -------
        Network
            The network without the arcs into the nodes that are set; it has counted nothing.

        """
        graph, columns, parameters = fitting.intervened(self, {**(interventions or {}), **more})
        return self._copy(graph=graph, declared=columns, given=parameters, tally=None, hidden={}, trace=())

    def d_separated(self, one: Any, other: Any, given: Any = ()) -> bool:
        """Whether two (sets of) nodes are independent given others, by the arcs alone.

        Parameters
        ----------
        one, other : str or sequence of str
            The nodes.
        given : str or sequence of str, default=()
            The nodes that are observed.

        Returns
        -------
        bool
            True where every path is blocked.

        """
        return self.graph.d_separated(one, other, given)

    def markov_blanket(self, node: str) -> set[str]:
        """The nodes that make all others irrelevant to a node.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        set of str
            Its parents, its children and their other parents.

        """
        return self.graph.markov_blanket(node)

    # ------------------------------------------------------------------ tables

    def log_likelihood(self, data: Any, **reading: Any) -> float:
        """The log probability of all rows together; missing cells are summed out.

        Parameters
        ----------
        data : any source
            Path, frame, dict of columns, list of dicts or array, as for `likely.learn`.
        **reading
            How the source is read, `missing` included, as for `likely.learn`.

        Returns
        -------
        float
            The sum over the rows, in nats.

        """
        return float(self.log_likelihoods(data, **reading).sum())

    def log_likelihoods(self, data: Any, *, missing: Any = None, **reading: Any) -> Array:
        """The log probability of each row.

        Parameters
        ----------
        data : any source
            Path, frame, dict of columns, list of dicts or array, as for `likely.learn`.
        missing : list, optional
            Values that stand for a missing cell, as for `likely.learn`.
        **reading
            How the source is read, as for `likely.learn`.

        Returns
        -------
        array
            Of one row each, in nats; missing cells are summed out.

        """
        rows = fitting.rows_for(self, data, None, fitting.reading_of(missing, reading))
        return fitting.log_likelihoods(self.inference, rows)

    def posterior(self, data: Any, target: str, *, missing: Any = None, **reading: Any) -> Array:
        """The posterior of a categorical node in each row (rows × values, in the order of `columns[target].values`).

        Parameters
        ----------
        data : any source
            Path, frame, dict of columns, list of dicts or array, as for `likely.learn`.
        target : str
            The categorical node that is asked for; what its column holds is ignored.
        missing : list, optional
            Values that stand for a missing cell, as for `likely.learn`.
        **reading
            How the source is read, as for `likely.learn`.

        Returns
        -------
        array, rows × values
            Probabilities; each row sums to one. A value that was never seen counts as missing.

        """
        self.graph.check(target)
        rows = fitting.rows_for(self, data, None, fitting.reading_of(missing, reading), unseen="missing", absent=True)
        return fitting.posteriors(self.inference, rows, target)

    def predict(self, data: Any, target: str, **reading: Any) -> NDArray[Any]:
        """The most probable value of a node in each row.

        Parameters
        ----------
        data : any source
            Path, frame, dict of columns, list of dicts or array, as for `likely.learn`.
        target : str
            The categorical node that is asked for; what its column holds is ignored.
        **reading
            How the source is read, `missing` included, as for `likely.learn`.

        Returns
        -------
        array
            A value for each row.

        """
        best = self.posterior(data, target, **reading).argmax(1)
        chosen: NDArray[Any] = np.array(self.columns[target].values)[best]
        return chosen

    def complete(
        self, data: Any, *, draw: bool = False, seed: int = 0, missing: Any = None, **reading: Any
    ) -> dict[str, list[Any]]:
        """The rows with missing cells filled in: together most probable, or drawn from the posterior.

        Numbers are filled in by their mean given the categories (or drawn).

        Parameters
        ----------
        data : any source
            Path, frame, dict of columns, list of dicts or array, as for `likely.learn`.
        draw : bool, default=False
            Draw the missing cells of each row from their posterior, as multiple imputation needs it.
        seed : int, default=0
            The seed of the draws.
        missing : list, optional
            Values that stand for a missing cell, as for `likely.learn`.
        **reading
            How the source is read, as for `likely.learn`.

        Returns
        -------
        dict of str to list
            The columns.

        """
        rows = fitting.rows_for(self, data, None, fitting.reading_of(missing, reading), absent=True)
        return as_values(fitting.completed(self.inference, rows, np.random.default_rng(seed) if draw else None))

    def sample(self, n: int, evidence: Mapping[str, Any] | None = None, *, seed: int = 0) -> dict[str, list[Any]]:
        """Rows drawn from the network, or exactly from its posterior given evidence; a dict of columns.

        Parameters
        ----------
        n : int
            How many rows.
        evidence : mapping, optional
            Node to value, for samples from the posterior.
        seed : int, default=0
            The seed of the draws.

        Returns
        -------
        dict of str to list
            The columns.

        """
        from likely.networks.sampling import sample_rows

        return as_values(sample_rows(self, n, evidence, seed=seed))

    # ------------------------------------------------------------------ files and pictures

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the network as a model file (data only, checksummed, whole or not at all) and return its digest.

        Parameters
        ----------
        path : str or path
            Where to; a file that is there is replaced.

        Returns
        -------
        str
            The SHA-256 digest of the file.

        """
        return network_file.save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Network:
        """Read a network that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file; `likely.load` reads it too.

        Returns
        -------
        Network
            The network; anything but a whole, untouched file of one is refused.

        """
        return network_file.load(path)

    @staticmethod
    def from_bif(path: str | os.PathLike[str]) -> Network:
        """Read a network with its tables from a BIF file (also .bif.gz).

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Network
            The network with the tables of the file; it has counted nothing.

        """
        return Network.from_tables(*read_bif(path))

    @staticmethod
    def from_tables(graph: Any, columns: Mapping[str, Column | Sequence[Any]], tables: Mapping[str, Any]) -> Network:
        """A network with given tables: an axis for each parent, in their order, and the last for the node.

        Parameters
        ----------
        graph : str, sequence of pairs, mapping of children to parents, or Graph
            The arcs, as for the network itself.
        columns : mapping of str to sequence or Column
            The values of every node.
        tables : mapping of str to array
            The probabilities θ_ijk of every node.

        Returns
        -------
        Network
            The network; it has counted nothing.

        """
        made = Network(graph)
        declared = {n: c if isinstance(c, Column) else Column(n, CATEGORY, tuple(c)) for n, c in columns.items()}
        given = fitting.checked_tables(made.graph, declared, tables)
        return Network.from_parameters(made.graph, declared, NetworkParameters(given, {}))

    @staticmethod
    def from_parameters(graph: Graph, columns: Mapping[str, Column], parameters: NetworkParameters) -> Network:
        """A network with given parameters; it has counted nothing.

        Parameters
        ----------
        graph : Graph
            The arcs.
        columns : mapping of str to Column
            The kind and the values of every node.
        parameters : NetworkParameters
            Tables and linear Gaussians, as in `parameters` of another network.

        Returns
        -------
        Network
            The network.

        """
        made = Network(graph)
        made.declared, made.given = dict(columns), parameters
        return made

    def bif(self) -> str:
        """The network as text in the Bayesian Interchange Format."""
        numeric = next((name for name in self.nodes if self.columns[name].kind == NUMBER), None)
        if numeric is not None:
            raise DataError("holds numbers, which BIF has no words for", column=numeric, remedy="save() keeps them")
        return bif_text(self.graph, self.columns, self.parameters.tables)

    def to_bif(self, path: str | os.PathLike[str]) -> None:
        """Write the network as a BIF file.

        Parameters
        ----------
        path : str or path
            Where to; a file that is there is replaced.

        """
        write_bif(path, self.bif())

    @staticmethod
    def of_naive_bayes(model: Any) -> Network:
        """A plain naive Bayes model as a network: the class is the parent of every column.

        Parameters
        ----------
        model : Model
            A model that was learned with `plain=True`.

        Returns
        -------
        Network
            The network with the parameters of the model.

        """
        from likely.networks.naive_bayes import network_of

        return network_of(model)

    def svg(self, title: str = "", target: str | None = None) -> str:
        """A picture of the network as SVG, with its tables as tooltips; a target stands out.

        Parameters
        ----------
        title : str, default=""
            A line above the picture.
        target : str, optional
            A node that is coloured.

        Returns
        -------
        str
            The SVG document.

        """
        from likely.networks.pictures import picture

        return picture(self, title, target)

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        counted = f", {self.tally.rows:,.0f} rows counted" if self.tally is not None else ("" if self.given else ", not fitted")
        return f"Network({len(self.nodes)} nodes, {len(self.arcs)} arcs{counted})"
