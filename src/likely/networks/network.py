"""Bayesian networks: `likely.Network`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, Unpack

from likely.engines.engine import Engine
from likely.errors import DataError, UsageError
from likely.networks import fitting, network_file
from likely.networks._bif import bif_text, read_bif, write_bif
from likely.networks._queries import NetworkQueries
from likely.networks._structure_keywords import StructureKeywords
from likely.networks.family_counts import NetworkTally
from likely.networks.graph import Graph
from likely.networks.network_parameters import NetworkParameters, resolve_smoothing
from likely.schema import CATEGORY, NUMBER, Column
from likely.sources import ReadKeywords


class Network(NetworkQueries):
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
        self.engine = ""  # which one has counted the rows, and why

    # ------------------------------------------------------------------ learning

    def fit(self, data: Any, *, weights: Any = None, smoothing: Any = None, missing: Any = None, max_iter: int = 500,
            tol: float = 0.01, n_init: int | None = None, seed: int = 0, engine: str | Engine = "auto",
            progress: Callable[[int, float], object] | None = None, **reading: Unpack[ReadKeywords]) -> Self:  # fmt: skip
        """Count the rows of any table; by EM where cells are missing or nodes are hidden.

        Parameters
        ----------
        data : any source
            Path, frame, dict of columns, list of dicts, array, database or Spark DataFrame, as for `likely.learn`.
        weights : str or array, optional
            How much each row counts: a column that holds it, or the weights themselves.
        smoothing : optional
            As for the network itself, which it replaces.
        missing : list, optional
            Values that stand for a missing cell, as for `likely.learn`.
        max_iter : int, default=500
            The most iterations of EM.
        tol : float, default=0.01
            EM ends when the maximum is estimated to be at most so many nats of log-likelihood away.
        n_init : int, optional
            Starts of EM where nodes are hidden; unless given 5, and up to 60 where they take little time.
        seed : int, default=0
            The seed of these starts.
        engine : "auto", "memory", "spark", "spark-rows", "duckdb", "database" or Engine, default="auto"
            Where the rows are counted, as for `likely.learn`. In memory a large table is counted batch by batch; Spark counts
            in its tasks; a database by GROUP BY. What cannot be counted before EM (rows with missing cells, all rows
            where nodes are hidden) comes to this process as distinct rows with their weights.
        progress : callable, optional
            Called after each iteration of EM with its number, counted over all starts, and the log-likelihood with prior.
        **reading
            How the source is read, as for `likely.learn`.

        Returns
        -------
        Network
            A new network with parameters.

        """
        settings = fitting.EMSettings(max_iter, tol, n_init, seed, progress)
        chosen = self.smoothing if smoothing is None else smoothing
        how = fitting.reading_of(missing, reading)
        sums, where = fitting.sums_for(self, data, weights, how, engine=engine, fresh=True)
        found = fitting.counted(sums, self.graph, tuple(self.hidden), chosen, settings)
        return self._copy(smoothing=chosen, given=None, engine=where, **found)

    @staticmethod
    def learn_structure(data: Any, **settings: Unpack[StructureKeywords]) -> Network:
        """Learn the arcs from data, and fit the network.

        Parameters
        ----------
        data : any source
            As for `likely.learn`; every column becomes a node.
        **settings
            `method` ("hill-climb", "chow-liu", "tan", "k-dependence", "naive-bayes"), `criterion` ("qnml", "bdeu",
            "bic", "aic", "k2"), `required` and `forbidden` arcs, `max_parents`, `target`, `k` and the others of
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

    def update(self, data: Any, *, weights: Any = None, missing: Any = None, engine: str | Engine = "auto",
               **reading: Unpack[ReadKeywords]) -> Self:  # fmt: skip
        """A network that has also seen these rows; rows with missing cells count by expectation under this network.

        Parameters
        ----------
        data : any source
            Path, frame, dict of columns, list of dicts, array, database or Spark DataFrame, as for `likely.learn`.
        weights : str or array, optional
            How much each row counts: a column that holds it, or the weights themselves.
        missing : list, optional
            Values that stand for a missing cell, as for `likely.learn`.
        engine : "auto", "memory", "spark", "spark-rows", "duckdb", "database" or Engine, default="auto"
            Where the rows are counted, as for `fit`.
        **reading
            How the source is read, as for `likely.learn`.

        Returns
        -------
        Network
            A new network; values that a node did not have are added to it.

        """
        how = fitting.reading_of(missing, reading)
        sums, where = fitting.sums_for(self, data, weights, how, engine=engine, unseen="new")
        return self._copy(tally=fitting.updated(self, sums), given=None, engine=where)

    def forget(self, data: Any, *, weights: Any = None, missing: Any = None, engine: str | Engine = "auto",
               **reading: Unpack[ReadKeywords]) -> Self:  # fmt: skip
        """A network that has not seen these rows, which must be complete.

        Parameters
        ----------
        data : any source
            Path, frame, dict of columns, list of dicts, array, database or Spark DataFrame, as for `likely.learn`.
        weights : str or array, optional
            How much each row counts: a column that holds it, or the weights themselves.
        missing : list, optional
            Values that stand for a missing cell, as for `likely.learn`.
        engine : "auto", "memory", "spark", "spark-rows", "duckdb", "database" or Engine, default="auto"
            Where the rows are counted, as for `fit`.
        **reading
            How the source is read, as for `likely.learn`.

        Returns
        -------
        Network
            A new network; rows that were never counted are refused where a count would fall below zero.

        """
        sums, where = fitting.sums_for(self, data, weights, fitting.reading_of(missing, reading), engine=engine)
        return self._copy(tally=fitting.forgotten(self, sums), given=None, engine=where)

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
            raise DataError("holds numbers, which BIF cannot represent", column=numeric, remedy="save() keeps them")
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
        from likely.networks._from_naive_bayes import network_of

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
        from likely.networks._network_pictures import picture

        return picture(self, title, target)

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        counted = f", {self.tally.rows:,.0f} rows counted" if self.tally is not None else ("" if self.given else ", not fitted")
        return f"Network({len(self.nodes)} nodes, {len(self.arcs)} arcs{counted})"
