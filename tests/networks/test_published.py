"""The published networks, beside pgmpy: the same log-likelihoods and answers, structures and tables at least as near."""

import functools
import logging
import warnings

import numpy as np
import pytest

import likely
from likely.networks._inference import Evidence
from likely.networks._sampling import sample_rows
from networks_help import published, text_of

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("pgmpy")]  # which is imported once, and reads each network once
NAMES = ["asia", "sachs", "child", "alarm"]


@pytest.fixture(scope="module")
def pgmpy():
    warnings.simplefilter("ignore")
    logging.getLogger("pgmpy").setLevel(logging.CRITICAL)
    return pytest.importorskip("pgmpy", reason="NOT TESTED: pgmpy is not installed (pip install pgmpy)")


@functools.cache
def theirs(name):
    from pgmpy.readwrite import BIFReader

    return BIFReader(string=text_of(name)).get_model()


@pytest.mark.parametrize("name", NAMES)
def test_log_likelihoods_and_queries_equal_pgmpys(name, pgmpy):
    import pandas as pd
    from pgmpy.inference import VariableElimination

    net, model = published(name), theirs(name).copy()
    rows = net.sample(200, seed=1)
    logs = net.log_likelihoods(rows)
    frame = pd.DataFrame(rows)
    for i in range(25):
        world = frame.iloc[i].to_dict()
        total = sum(np.log(cpd.get_value(**{v: world[v] for v in cpd.variables})) for cpd in model.get_cpds())
        assert logs[i] == pytest.approx(total, abs=1e-9)
    engine = VariableElimination(model)
    rng = np.random.default_rng(2)
    for i in range(40):
        names = [str(n) for n in rng.choice(net.nodes, min(5, len(net.nodes)), replace=False)]
        evidence = {n: rows[n][i] for n in names[1 : 1 + i % 5]}
        expected = engine.query([names[0]], evidence, show_progress=False)
        found = net.query(names[0], evidence)
        exact, _ = net.inference.joint([names[0]], Evidence.of(evidence, net.graph, net.columns))
        for k, (value, p) in enumerate(found.items()):
            assert p == pytest.approx(expected.get_value(**{names[0]: value}), abs=1e-9)
            assert exact[k] == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_bif_is_read_as_pgmpy_reads_it(name, pgmpy):
    net, model = published(name), theirs(name)
    assert set(net.arcs) == set(model.edges())
    for cpd in model.get_cpds():
        first = {p: net.columns[p].values[-1] for p in net.graph.parents[cpd.variable]}
        row = net.table(cpd.variable)[tuple(first.values())]
        for value in net.columns[cpd.variable].values:
            assert row[value] == cpd.get_value(**first, **{cpd.variable: value})


@pytest.mark.parametrize("name", ["asia", "sachs", "child"])
@pytest.mark.slow
def test_the_structure_found_is_at_least_as_near_to_the_truth_as_pgmpys(name, pgmpy):
    import pandas as pd
    from pgmpy.estimators import HillClimbSearch

    net = published(name)
    data = net.sample(10_000, seed=3)
    ours = likely.Network.learn_structure(data)
    for score in ("bic-d", "bdeu"):
        found = HillClimbSearch(pd.DataFrame(data).astype("category")).estimate(scoring_method=score, show_progress=False)
        other = likely.Network(list(found.edges()), nodes=net.nodes)
        # Between equivalence classes: the direction of the other arcs is in no data, and pgmpy draws it by the hash of names.
        mine, peer = (g.graph.distance(net.graph, equivalence=True) for g in (ours, other))
        assert mine <= peer, (score, mine, peer)


def test_ten_thousand_rows_of_alarm_give_nearly_all_arcs():
    net = published("alarm")
    found = likely.Network.learn_structure(sample_rows(net, 10_000, seed=1))
    assert found.graph.distance(net.graph, equivalence=True) <= 12  # of 46 arcs; pgmpy's hill climbing is about 24 away


def error(net, tables):
    return float(np.mean([np.abs(tables(name) - net.parameters.tables[name]).mean() for name in net.nodes]))


def test_em_recovers_the_tables_as_well_as_pgmpys_em(pgmpy):
    """pgmpy's EM leaves out every row with a missing cell; ours uses what each row has."""
    import pandas as pd
    from pgmpy.estimators import ExpectationMaximization
    from pgmpy.models import DiscreteBayesianNetwork

    net = published("asia")
    rng = np.random.default_rng(5)
    data = {n: [None if rng.random() < 0.2 else v for v in column] for n, column in net.sample(5_000, seed=5).items()}
    values = {n: c.values for n, c in net.columns.items()}
    ours = likely.Network(net.graph, values=values).fit(data)
    model = DiscreteBayesianNetwork(net.arcs)
    found = ExpectationMaximization(model, pd.DataFrame(data), state_names={n: list(v) for n, v in values.items()})
    cpds = {cpd.variable: cpd for cpd in found.get_parameters(show_progress=False)}

    def tables(name):
        keys = net.table(name)
        parents = net.graph.parents[name]
        given = [dict(zip(parents, key, strict=True)) for key in keys]
        rows = [[cpds[name].get_value(**row, **{name: v}) for v in values[name]] for row in given]
        return np.array(rows).reshape(net.parameters.tables[name].shape)

    assert error(net, lambda n: ours.parameters.tables[n]) <= error(net, tables)


@pytest.mark.parametrize("name", ["sachs", "alarm"])
def test_em_with_a_fifth_missing_is_nearly_as_good_as_all_cells(name):
    from dataclasses import replace

    net = published(name)
    rows = sample_rows(net, 5_000, seed=6)
    holes = rows.codes.copy()
    holes[np.random.default_rng(7).random(holes.shape) < 0.2] = -1
    values = {n: c.values for n, c in net.columns.items()}
    whole = likely.Network(net.graph, values=values).fit(rows)
    part = likely.Network(net.graph, values=values).fit(replace(rows, codes=holes))
    assert part.converged
    assert error(net, lambda n: part.parameters.tables[n]) < 2.5 * error(net, lambda n: whole.parameters.tables[n])
