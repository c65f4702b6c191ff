"""Queries of a fitted Bayesian network: posteriors, most probable explanations, samples."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.kernels.parallel import cached_property
from likely.networks import fitting
from likely.networks._answers import NormalMixture
from likely.networks._batch_inference import as_values
from likely.networks._inference import Evidence, Inference
from likely.networks._interval_evidence import without_intervals
from likely.networks.family_counts import NetworkTally
from likely.networks.graph import Graph
from likely.networks.network_parameters import NetworkParameters, derive, resolve_smoothing
from likely.schema import NUMBER, Column
from likely.sources import ReadKeywords, RowKeywords

Array = NDArray[np.float64]
NOT_FITTED = "the network has no parameters yet: fit returns a new network, as in net = net.fit(data)"


class NetworkQueries:
    """Nodes, arcs and parameters of a network, and exact inference with them; the base class of `Network`."""

    graph: Graph
    hidden: dict[str, Column]
    kinds: dict[str, str]
    declared: dict[str, Column]
    smoothing: Any
    tally: NetworkTally | None
    given: NetworkParameters | None
    trace: tuple[float, ...]
    converged: bool

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
        kept = ("graph", "hidden", "kinds", "declared", "smoothing", "tally", "given", "trace", "converged", "engine")
        made.__dict__.update({name: self.__dict__[name] for name in kept} | changes)
        return made

    def query(
        self, target: Any, evidence: Mapping[str, Any] | None = None, *, samples: int | None = None, seed: int = 0
    ) -> Any:
        """The posterior of a node, or of several together, given evidence.

        Parameters
        ----------
        target : str or sequence of str
            A node, or several categorical ones.
        evidence : mapping, optional
            Node to value; a dict of likelihoods is soft evidence, a list the values that are possible. Of a numeric node a
            number, or an interval (low, high).
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
        asked, left = without_intervals(self, evidence, targets)
        if asked is not self:
            return asked.query(target, left, samples=samples, seed=seed)
        twice = next((name for i, name in enumerate(targets) if name in targets[:i]), None)
        if twice is not None:
            raise UsageError(f"node {twice!r} is asked for twice: name each node once")
        given = Evidence.of(evidence, self.graph, self.columns)
        numeric = [name for name in targets if self.columns[name].kind == NUMBER]
        if numeric and several:
            raise UsageError(f"node {numeric[0]!r} holds numbers: ask for it alone")
        if samples is not None:
            from likely.networks._sampling import weighted_query

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
            Node to value; a dict of likelihoods is soft evidence, a list the values that are possible. Of a numeric node a
            number, or an interval (low, high).

        Returns
        -------
        float
            The log probability, in nats.

        """
        asked, left = without_intervals(self, evidence)
        return asked.inference.log_evidence(Evidence.of(left, asked.graph, asked.columns))

    def most_probable(self, evidence: Mapping[str, Any] | None = None, nodes: Sequence[str] | None = None) -> dict[str, Any]:
        """The most probable values of all unobserved categorical nodes (MPE), or of some with the rest summed out (MAP).

        Parameters
        ----------
        evidence : mapping, optional
            Node to value; a dict of likelihoods is soft evidence, a list the values that are possible. Of a numeric node a
            number, or an interval (low, high).
        nodes : sequence of str, optional
            The nodes that are wanted; all that are not observed if None.

        Returns
        -------
        dict
            Node to its value in the most probable configuration.

        """
        every = [name for name in self.nodes if self.columns[name].kind != NUMBER]
        asked, left = without_intervals(self, evidence, every if nodes is None else self.graph.check(nodes))
        if asked is not self:
            return asked.most_probable(left, nodes)
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
        """The Markov blanket of a node: given it, the node is independent of all others.

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

    def log_likelihood(self, data: Any, **reading: Unpack[RowKeywords]) -> float:
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

    def log_likelihoods(self, data: Any, *, missing: Any = None, **reading: Unpack[ReadKeywords]) -> Array:
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
            Of one row each, in nats; missing cells, and with a warning missing columns, are summed out.

        """
        rows = fitting.rows_for(self, data, fitting.reading_of(missing, reading), absent=True)
        fitting.warn_of_empty_columns(rows, self.hidden)
        return fitting.log_likelihoods(self.inference, rows)

    def posterior(self, data: Any, target: str, *, missing: Any = None, **reading: Unpack[ReadKeywords]) -> Array:
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
        rows = fitting.rows_for(self, data, fitting.reading_of(missing, reading), unseen="missing", absent=True)
        return fitting.posteriors(self.inference, rows, target)

    def predict(self, data: Any, target: str, **reading: Unpack[RowKeywords]) -> NDArray[Any]:
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
        self, data: Any, *, draw: bool = False, seed: int = 0, missing: Any = None, **reading: Unpack[ReadKeywords]
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
        rows = fitting.rows_for(self, data, fitting.reading_of(missing, reading), absent=True)
        return as_values(fitting.completed(self.inference, rows, np.random.default_rng(seed) if draw else None))

    def sample(self, n: int, evidence: Mapping[str, Any] | None = None, *, seed: int = 0) -> dict[str, list[Any]]:
        """Rows drawn from the network, or exactly from its posterior given evidence; a dict of columns.

        Parameters
        ----------
        n : int
            How many rows.
        evidence : mapping, optional
            For samples from the posterior: node to value; a dict of likelihoods is soft evidence, a list the possible values.
        seed : int, default=0
            The seed of the draws.

        Returns
        -------
        dict of str to list
            The columns.

        """
        from likely.networks._sampling import sample_rows

        return as_values(sample_rows(self, n, evidence, seed=seed))
