"""Bayesian networks beside pgmpy: the same tables counted, the same queries asked, structures and EM from the same rows."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PUBLISHED = Path(__file__).resolve().parents[2] / "shared" / "data" / "networks"


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time of one run and what it returns: others may be using the machine."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def best(work: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The least processor time of a few runs: short ones suffer most from a busy machine."""
    return min((cpu(work) for _ in range(times)), key=lambda run: run[0])


def network(name: str) -> Any:
    """A published network; where it is not there, random tables over a grid of as many nodes."""
    import likely

    path = PUBLISHED / f"{name}.bif.gz"
    if path.exists():
        return likely.Network.from_bif(path)
    rng = np.random.default_rng(0)
    nodes = [f"v{i}" for i in range(37)]
    parents = {v: [nodes[j] for j in {max(0, i - 1), max(0, i - 3)} if j < i] for i, v in enumerate(nodes)}
    tables = {v: rng.dirichlet(np.ones(3), size=(3,) * len(parents[v]) or None) for v in nodes}
    return likely.Network.from_tables(parents, dict.fromkeys(nodes, ("a", "b", "c")), tables)


def frame(rows: Any) -> Any:
    """Rows of codes as a frame of categories, as pgmpy likes them best."""
    import pandas as pd

    return pd.DataFrame({c.name: pd.Categorical.from_codes(np.asarray(line, np.int32), list(c.values))
                         for c, line in zip(rows.columns, rows.codes, strict=True)})  # fmt: skip


def pgmpy_model(net: Any) -> Any:
    """The same network in pgmpy."""
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork(net.arcs)
    model.add_nodes_from(net.nodes)
    for name in net.nodes:
        parents, table = list(net.graph.parents[name]), net.parameters.tables[name]
        names = {n: list(net.columns[n].values) for n in (name, *parents)}
        model.add_cpds(TabularCPD(name, table.shape[-1], table.reshape(-1, table.shape[-1]).T, parents or None,
                                  [len(names[p]) for p in parents] or None, names))  # fmt: skip
    return model


def parameters(net: Any, size: int, row: Any) -> None:
    from pgmpy.models import DiscreteBayesianNetwork

    import likely
    from likely.networks._sampling import sample_rows

    table = frame(sample_rows(net, size, seed=1))
    ours = likely.Network(net.graph)
    ours.fit(table)
    mine, _ = cpu(lambda: ours.fit(table))
    model = DiscreteBayesianNetwork(net.arcs)
    theirs, _ = cpu(lambda: model.fit(table))
    row("networks", f"tables of alarm from {size:,} rows, against pgmpy", mine, theirs, ">= 50x")


def queries(net: Any, size: int, row: Any) -> None:
    from pgmpy.inference import VariableElimination

    rng = np.random.default_rng(2)
    seen = net.sample(size, seed=3)
    asked = []
    for i in range(size):
        names = [str(n) for n in rng.choice(net.nodes, 4, replace=False)]
        asked.append((names[0], {n: seen[n][i] for n in names[1:]}))
    for target, evidence in asked[:20]:
        net.query(target, evidence)
    mine, found = best(lambda: [net.query(target, evidence) for target, evidence in asked])
    engine = VariableElimination(pgmpy_model(net))
    some = asked[: max(size // 5, 1)]
    theirs, other = best(lambda: [engine.query([t], e, show_progress=False) for t, e in some])
    apart = max(abs(p - o.get_value(**{t: v})) for f, o, (t, _) in zip(found, other, some, strict=False) for v, p in f.items())
    assert apart < 1e-9, apart
    row("networks", f"{size:,} queries of alarm, three nodes observed", mine, theirs * size / len(some), ">= 20x")


def structure(name: str, size: int, samples: int, row: Any, plain: Any) -> None:
    """Times and distances to the true equivalence class, summed over some samples: in a single one a weak arc is luck."""
    from pgmpy.estimators import HillClimbSearch

    import likely
    from likely.networks._sampling import sample_rows

    net = network(name)
    spent, apart = [0.0, 0.0], [0, 0]
    for sample in range(samples):
        table = frame(sample_rows(net, size, seed=4 + sample))
        if not sample:
            likely.Network.learn_structure(table)
        mine, found = cpu(lambda table=table: likely.Network.learn_structure(table))
        theirs, other = cpu(lambda table=table: HillClimbSearch(table).estimate(scoring_method="bic-d", show_progress=False))
        peers = likely.Network(list(other.edges()), nodes=net.nodes)
        for i, (seconds, graph) in enumerate(((mine, found.graph), (theirs, peers.graph))):
            spent[i] += seconds
            apart[i] += graph.distance(net.graph, equivalence=True)
    row("networks", f"structure of {name}, {samples} x {size:,} rows, against hill climbing", *spent, ">= 20x")
    plain("networks", f"SHD of {name}, summed ({apart[1]} pgmpy's)", apart[0], "arcs", "<= pgmpy's")


def one_round(net: Any, table: Any) -> float:
    """Processor time of an E-step by pgmpy: posteriors of the missing cells of all distinct rows, timed on a hundred."""
    from pgmpy.inference import VariableElimination

    distinct = table.drop_duplicates()
    distinct = distinct[distinct.isna().any(axis=1)]
    some = distinct.sample(min(100, len(distinct)), random_state=0)
    engine = VariableElimination(pgmpy_model(net))
    asked = [(list(one.index[one.isna()]), one.dropna().to_dict()) for _, one in some.iterrows()]
    spent, _ = cpu(lambda: [engine.query(missing, seen, show_progress=False) for missing, seen in asked])
    return spent * len(distinct) / len(some)


def gaps(name: str, size: int, row: Any, plain: Any) -> None:
    """A network's tables with a fifth of the cells missing.

    pgmpy's EM drops every row with a missing cell (`data.dropna()`) and counts the rest: the two do not do the same work, as
    they do where a whole column is hidden (`hidden_node`). It is less work with a worse result: shown beside are
    the time that the same rounds of EM over all rows would take by pgmpy's variable elimination, and the time in which tables
    as near to the true ones as pgmpy's are learned.
    """
    from pgmpy.estimators import ExpectationMaximization
    from pgmpy.models import DiscreteBayesianNetwork

    import likely
    from likely.networks._sampling import sample_rows

    net = network(name)
    values = {n: c.values for n, c in net.columns.items()}
    states = {n: list(v) for n, v in values.items()}
    whole = frame(sample_rows(net, size, seed=5))
    table = whole.mask(np.random.default_rng(5).random(whole.shape) < 0.2)
    model = DiscreteBayesianNetwork(net.arcs)

    def fit(rows: Any) -> Any:
        return likely.Network(net.graph, values=values).fit(rows)

    fit(table)
    mine, found = best(lambda: fit(table))
    theirs, cpds = best(lambda: ExpectationMaximization(model, table, state_names=states).get_parameters(show_progress=False))
    used = len(table.dropna())
    what = f"EM of {name}, {size:,} rows, a fifth missing (other work: pgmpy drops all but {used:,})"
    row("networks", what, mine, theirs, ">= 20x")
    same = len(found.trace) * one_round(net, table)
    row("networks", "the same rounds of EM over all rows, by pgmpy's elimination", mine, same, ">= 20x")
    other = {cpd.variable: cpd for cpd in cpds}
    pgmpys = error(net, lambda node, given, value: other[node].get_value(**given, **{node: value}))
    plain("networks", f"summed error of the tables ({pgmpys:.3f} pgmpy's)", table_error(net, found), "", "<= pgmpy's")
    few = next(n for n in (100 * 2**i for i in range(30)) if n >= size or table_error(net, fit(table.head(n))) <= pgmpys)
    mine, _ = best(lambda: fit(table.head(few)), 5)
    row("networks", f"as near to the true tables as pgmpy's EM, from {min(few, size):,} rows", mine, theirs, ">= 20x")


def error(net: Any, of: Callable[[str, Any, Any], float]) -> float:
    """The absolute errors of all cells of all tables, summed; `of` gives a learned one by node, parents' values and value."""
    total = 0.0
    for node in net.nodes:
        for key, shares in net.table(node).items():
            given = dict(zip(net.graph.parents[node], key, strict=True))
            total += sum(abs(of(node, given, value) - p) for value, p in shares.items())
    return total


def table_error(net: Any, found: Any) -> float:
    """The error of the tables of a network that has been fitted."""
    tables = {node: found.table(node) for node in net.nodes}
    return error(net, lambda node, given, value: tables[node][tuple(given.values())][value])


def hidden_node(size: int, row: Any) -> None:
    """Asia with a hidden node: the same work for both, since no cell of a column that is there is missing."""
    import pandas as pd
    from pgmpy.estimators import ExpectationMaximization
    from pgmpy.models import DiscreteBayesianNetwork

    import likely

    net = network("asia")
    values = {n: c.values for n, c in net.columns.items()}
    top = net.nodes[-3]
    seen = {n: column for n, column in net.sample(size, seed=6).items() if n != top}
    states = {n: list(v) for n, v in values.items() if n != top}
    hidden = likely.Network(net.graph, hidden={top: 2}, values={n: v for n, v in values.items() if n != top})
    hidden.fit(seen, n_init=1)
    mine, _ = cpu(lambda: hidden.fit(seen, n_init=1))
    latent = DiscreteBayesianNetwork(net.arcs, latents={top})
    trial = ExpectationMaximization(latent, pd.DataFrame(seen), state_names=states)
    theirs, _ = cpu(lambda: trial.get_parameters(latent_card={top: 2}, max_iter=10, show_progress=False))
    row("networks", f"EM of asia with {top} hidden, the same rows (pgmpy: 10 rounds at most)", mine, theirs, ">= 20x")


def compare(small: bool, row: Any, plain: Any) -> None:
    """The section of the bench."""
    logging.getLogger("pgmpy").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = network("alarm")
        parameters(net, 100_000 if small else 1_000_000, row)
        queries(net, 200 if small else 1_000, row)
        for name in ("asia", "child") if small else ("asia", "sachs", "child", "alarm"):
            structure(name, 10_000, 5 if name in ("asia", "sachs") else 1, row, plain)
        hidden_node(2_000 if small else 10_000, row)
        for name in ("asia",) if small else ("asia", "sachs", "child", "alarm"):
            gaps(name, 2_000 if small else 10_000, row, plain)
