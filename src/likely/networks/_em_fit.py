"""EM for networks: parameters where nodes are hidden or cells are missing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import ConvergenceWarning, DataError, LikelyWarning, UsageError
from likely.kernels.parallel import cached_property
from likely.kernels.progress import announce
from likely.networks._batch_inference import BatchInference
from likely.networks._inference import Inference
from likely.networks._junction_tree import JunctionTree
from likely.networks._limits import in_words
from likely.networks._table_em import FlatTables, MissingGroups
from likely.networks.family_counts import NetworkTally, count_rows
from likely.networks.graph import Graph
from likely.networks.network_parameters import (
    LinearGaussian,
    NetworkParameters,
    derive,
    log_likelihood_of,
    pseudocounts,
)
from likely.networks.rows import Rows
from likely.schema import Column

Array = NDArray[np.float64]
LEAST = 1e-300  # stands for a probability of 0 in the logs of the prior
MANY_CELLS = 5e7  # that an iteration goes through: from here on, several seconds each
FIRST_ROUNDS = 10  # of each start, before the best one is continued
FEWEST_STARTS, MOST_STARTS = 5, 60
STARTING = 1e8  # numbers that all starts beyond the fewest may go through together: about a second


@dataclass(frozen=True)
class EMSettings:
    """When EM ends, and how it begins.

    Parameters
    ----------
    max_iter : int
        The most rounds.
    tol : float
        EM ends when the maximum is estimated to be at most so many nats of log-likelihood away, in all.
    n_init : int or None
        Starts that are tried where nodes are hidden (None: 5, and up to 60 where they take little time).
    seed : int
        Where the starts come from.
    progress : callable or None
        Called after each iteration with its number, counted over all starts, and the log-likelihood with prior.

    """

    max_iter: int = 500
    tol: float = 0.01
    n_init: int | None = None
    seed: int = 0
    progress: Callable[[int, float], object] | None = None

    def __post_init__(self) -> None:
        if not self.max_iter >= 1:
            raise UsageError(f"max_iter={self.max_iter} is no number of iterations: give at least 1")
        if self.n_init is not None and not self.n_init >= 1:
            raise UsageError(f"n_init={self.n_init} is no number of starts: give at least 1")
        if np.isnan(self.tol):
            raise UsageError("tol=nan is no tolerance: give nats, such as 0.01; below 0 EM always goes on to max_iter")


@dataclass(frozen=True)
class NetworkEMResult:
    """Result of EM: expected counts, the log-likelihood round by round, and whether it converged."""

    tally: NetworkTally
    trace: tuple[float, ...]
    converged: bool


def fit_em(
    rows: Rows, graph: Graph, hidden: Sequence[str], smoothing: Mapping[str, Any], settings: EMSettings,
    *, counted: NetworkTally | None = None,
) -> NetworkEMResult:  # fmt: skip
    """Expected counts at a maximum of the (penalised) likelihood; `counted` are those of complete rows that are not kept."""
    rows = rows.distinct()
    problem = _Problem(rows, graph, smoothing, counted)
    if not rows.numeric:
        _warn_of_many_cells(problem)
    families, shares = _complete(problem, hidden), _relative_frequencies(problem)
    rng = np.random.default_rng(settings.seed)
    starts = (settings.n_init or _starts(problem)) if hidden else 1
    make = _EMRun if rows.numeric else _TablesRun
    runs, monitor = [], _Monitor(settings.progress, starts)
    for _ in range(starts):
        run = make(problem, _start(families, graph, shares, rng), monitor)
        monitor.start += 1
        if starts > 1:
            run.run(min(FIRST_ROUNDS, settings.max_iter), -1.0)
        runs.append(run)
    monitor.start = 0
    best = max(runs, key=lambda each: each.trace[-1] if each.trace else 0.0)
    best.run(settings.max_iter - len(best.trace), settings.tol)
    if not best.converged:
        warnings.warn(
            f"EM was stopped after {len(best.trace)} iterations before it converged: raise max_iter, or tol",
            ConvergenceWarning, stacklevel=3,
        )  # fmt: skip
    return NetworkEMResult(best.tally, tuple(best.trace), best.converged)


def _starts(problem: _Problem) -> int:
    """How many starts are tried: by the work of a round, not by the clock, so that equal data give equal results."""
    if problem.rows.numeric or problem.groups.rest.n:
        return FEWEST_STARTS
    work = FIRST_ROUNDS * (sum(part.size for part in problem.groups.lists) + problem.groups.complete.size)
    return int(np.clip(STARTING // max(work, 1), FEWEST_STARTS, MOST_STARTS))


@dataclass(frozen=True)
class _Problem:
    """The estimation problem: the rows, the arcs and the smoothing of every node."""

    rows: Rows
    graph: Graph
    smoothing: Mapping[str, Any]
    counted: NetworkTally | None = None

    @property
    def total(self) -> float:
        """The weight of all rows, kept or counted before."""
        return self.rows.total + (0.0 if self.counted is None else self.counted.rows)

    @cached_property
    def columns(self) -> dict[str, Column]:
        return {c.name: c for c in self.rows.columns}

    @cached_property
    def layout(self) -> FlatTables:
        return FlatTables(self.graph, {name: len(column.values) for name, column in self.columns.items()})

    @cached_property
    def groups(self) -> MissingGroups:
        found = MissingGroups(self.rows, self.layout)
        if self.counted is not None:
            found.complete += self.layout.flat(self.counted.tables)
        return found

    @cached_property
    def gaps(self) -> Rows:
        """The rows in which a cell is missing."""
        return self.rows.take(np.flatnonzero(~self._full))

    @cached_property
    def full(self) -> NetworkTally:
        """The counts of the other rows, which no parameters change."""
        found = count_rows(self.rows.take(np.flatnonzero(self._full)), self.graph)
        return found if self.counted is None else self.counted + found

    @cached_property
    def _full(self) -> NDArray[np.bool_]:
        return np.asarray((self.rows.codes >= 0).all(0) & ~np.isnan(self.rows.numbers).any(0))

    @cached_property
    def pseudocounts(self) -> Array:
        return self.layout.pseudocounts(self.smoothing)


def _warn_of_many_cells(problem: _Problem) -> None:
    """Warn if each iteration will take long; raise an error if tables would not fit into memory."""
    rest, names = problem.groups.rest, problem.layout.names
    if not rest.n:
        return
    place = {name: i for i, name in enumerate(names)}
    scopes = [tuple(place[v] for v in (*problem.graph.parents[name], name)) for name in names]
    tree = JunctionTree(scopes, [len(problem.columns[name].values) for name in names], names)
    tree.check()
    order = {c.name: i for i, c in enumerate(rest.columns)}
    cells = float(tree.allowed(rest.codes[[order[name] for name in names]].T).sum())
    if cells > MANY_CELLS:
        largest = max(range(len(tree.cells)), key=lambda c: tree.cells[c])
        members = ", ".join(repr(names[v]) for v in tree.cliques[largest][:6])
        warnings.warn(
            f"each iteration of EM goes through {cells:,.0f} cells of tables, which takes several seconds: {rest.n:,} rows "
            f"lack many values of nodes that depend on each other, and the largest table, over {len(tree.cliques[largest])} "
            f"nodes ({members} …), has {in_words(tree.cells[largest])}; merge values, leave out such rows, or limit max_iter",
            LikelyWarning, stacklevel=4,
        )  # fmt: skip


class _Monitor:
    """Report EM progress to the caller's function and to progress listeners."""

    def __init__(self, progress: Callable[[int, float], object] | None, starts: int) -> None:
        self.progress, self.starts = progress, starts
        self.start = self.iterations = 0  # start 0: the best start is continued

    def __call__(self, objective: float) -> None:
        """Report the end of an iteration."""
        self.iterations += 1
        which = f"start {self.start} of {self.starts}, " if self.start and self.starts > 1 else ""
        announce(f"{which}EM iteration {self.iterations:,}, log-likelihood with prior {objective:,.2f}")
        if self.progress is not None:
            self.progress(self.iterations, objective)


class _EMRun:
    """EM from one start."""

    def __init__(self, problem: _Problem, start: NetworkParameters, monitor: Callable[[float], None]) -> None:
        self.monitor = monitor
        self.problem, self.graph, self.smoothing = problem, problem.graph, problem.smoothing
        self.parameters = start
        self.trace: list[float] = []
        self.converged = False
        self._engine: Inference | None = None
        self._batch: BatchInference | None = None
        self._counted: NetworkTally

    @property
    def tally(self) -> NetworkTally:
        """The expected counts of the last round."""
        return self._counted

    def run(self, rounds: int, tol: float) -> None:
        """Run some rounds of EM; fewer if it converges."""
        for _ in range(rounds):
            self.trace.append(self._round())
            if not np.isfinite(self.trace[-1]):
                raise DataError("a row has probability zero under the network", remedy="fit with smoothing above 0")
            self.monitor(self.trace[-1])
            if tol >= 0 and self._distance_left() <= tol:
                self.converged = True
                return

    def _round(self) -> float:
        """One E-step and one M-step; the penalised log-likelihood before them."""
        more, log_likelihood = self._e_step(self.problem.gaps, self.parameters)
        self._counted = self.problem.full + more
        objective = log_likelihood + log_likelihood_of(self.problem.full, self.parameters) + self._log_prior()
        self.parameters = derive(self._counted, self.smoothing)
        return objective

    def _e_step(self, rows: Rows, parameters: NetworkParameters) -> tuple[NetworkTally, float]:
        """Expected counts and log-likelihood by junction trees; their structure stays, the potentials are new."""
        before = self._engine if self._engine is not None and self._engine.names else None
        engine = Inference(self.graph, self.problem.columns, parameters, before.tree if before else None)
        batch = BatchInference(engine, rows)
        if before and self._batch is not None:
            batch.reuse(self._batch)
        self._engine, self._batch = engine, batch
        tally, evidence = batch.expected()
        return tally, float(rows.each_weight() @ evidence)

    def _log_prior(self) -> float:
        """Log prior density of the parameters: EM maximises it together with the log-likelihood."""
        total = 0.0
        for name, table in self.parameters.tables.items():
            alpha = np.broadcast_to(pseudocounts(table, self.smoothing[name]), table.shape)
            some = alpha > 0
            if some.any():
                total += float((alpha[some] * np.log(np.maximum(table[some], LEAST))).sum())
        return total

    def _distance_left(self) -> float:
        """Estimated distance to the maximum, from the rate at which the gains shrink (Aitken)."""
        if len(self.trace) < 3:
            return np.inf
        last, before = self.trace[-1] - self.trace[-2], self.trace[-2] - self.trace[-3]
        if last <= 1e-12 * abs(self.trace[-1]):
            return 0.0
        rate = last / before if before > 0 else 1.0
        return last * rate / (1 - rate) if rate < 1 else np.inf


class _TablesRun(_EMRun):
    """EM from one start where all nodes are categorical: over distinct groups of missing cells, not over rows."""

    def __init__(self, problem: _Problem, start: NetworkParameters, monitor: Callable[[float], None]) -> None:
        super().__init__(problem, start, monitor)
        self.theta, self.counts = problem.layout.flat(start.tables), np.zeros(0)

    @property
    def tally(self) -> NetworkTally:
        """The expected counts of the last round."""
        problem = self.problem
        tables = problem.layout.tables(self.counts)
        return NetworkTally(self.graph, problem.columns, tables, {}, problem.total, expected=True)

    def _round(self) -> float:
        problem, theta = self.problem, self.theta
        counts, log_likelihood = problem.groups.expected(theta)
        if problem.groups.rest.n:
            more, evidence = self._e_step(problem.groups.rest, NetworkParameters(problem.layout.tables(theta), {}))
            counts, log_likelihood = counts + problem.layout.flat(more.tables), log_likelihood + evidence
        prior = problem.pseudocounts
        some = prior > 0
        log_prior = float(prior[some] @ np.log(np.maximum(theta[some], LEAST)))
        self.counts, self.theta = counts, problem.layout.conditional(counts + prior)
        return log_likelihood + log_prior


def _complete(problem: _Problem, hidden: Sequence[str]) -> NetworkTally:
    """The counts of families without a missing cell, those of hidden nodes aside."""
    rows, graph = problem.rows, problem.graph
    if not hidden and not rows.numeric and not problem.groups.rest.n:  # they have been counted
        return NetworkTally(graph, problem.columns, problem.layout.tables(problem.groups.complete), {}, problem.total)
    seen = {n: () if n in hidden else tuple(p for p in graph.parents[n] if p not in hidden) for n in graph.nodes}
    found = count_rows(rows, Graph(graph.nodes, seen))
    return found if problem.counted is None else found + problem.counted  # of which there are none if nodes are hidden


def _start(
    counted: NetworkTally, graph: Graph, shares: Mapping[str, Array], rng: np.random.Generator
) -> NetworkParameters:
    """Parameters to begin with: counts of the complete families, shrunk towards each node's own relative frequencies.

    `counted` knows no arcs from or to hidden nodes. Families with a hidden node begin at random around it; otherwise the
    values of the hidden node would stay alike for ever.
    """
    sizes = counted.sizes
    tables = {}
    for name, counts in counted.tables.items():
        table = counts + shares[name]
        if graph.parents[name] != counted.graph.parents[name] or not counts.any():
            wide = _widened(table, graph, counted, name, 1)
            table = wide * np.exp(rng.normal(size=(*(sizes[p] for p in graph.parents[name]), sizes[name])))
        tables[name] = table / table.sum(-1, keepdims=True)
    gaussians = dict(derive(counted, dict.fromkeys(counted.columns, "auto")).gaussians)
    for name, each in gaussians.items():
        if graph.parents[name] != counted.graph.parents[name]:
            shape = tuple(sizes[p] for p in graph.parents[name] if p in sizes)
            intercept, variance = (_widened(part, graph, counted, name, 0) for part in (each.intercept, each.variance))
            slopes = np.broadcast_to(_widened(each.slopes, graph, counted, name, 1), (*shape, each.slopes.shape[-1]))
            moved = intercept + np.sqrt(variance) * rng.normal(size=shape)
            gaussians[name] = LinearGaussian(moved, slopes, np.broadcast_to(variance, shape))
    return NetworkParameters(tables, gaussians)


def _widened(table: Array, graph: Graph, counted: NetworkTally, name: str, own: int) -> Array:
    """A table with an axis of length one for each hidden parent; the last `own` axes are the node's own."""
    known = counted.graph.parents[name]
    sizes = iter(table.shape)
    shape = [next(sizes) if p in known else 1 for p in graph.parents[name] if p in counted.sizes]
    return table.reshape(*shape, *table.shape[table.ndim - own :])


def _relative_frequencies(problem: _Problem) -> dict[str, Array]:
    """Relative frequency of each value of every categorical node; a pseudocount keeps all of them possible at first."""
    rows, counted = problem.rows, problem.counted
    found, weights = {}, rows.weights if len(rows.weights) else None
    for column, line in zip(rows.columns, rows.codes, strict=True):
        counts = np.bincount(line.astype(np.int64) + 1, weights, len(column.values) + 1)[1:] + 1.0
        if counted is not None and column.name in counted.tables:
            table = counted.tables[column.name]
            counts += table.sum(tuple(range(table.ndim - 1)))
        found[column.name] = counts / counts.sum()
    return found
