"""Numeric nodes: linear Gaussians given categories and numbers."""

import numpy as np
import pytest

import likely
from likely.networks._batch_inference import BatchInference
from likely.networks.network_parameters import log_likelihood_of
from likely.networks.rows import Wanted, read_rows
from likely.schema import CATEGORY, NUMBER, Column
from strategies import quietly


def mixed(n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    k = rng.integers(0, 2, n)
    x = 2.0 * k + rng.normal(size=n)
    y = 3 * x - k + 0.5 * rng.normal(size=n)
    z = y - x + rng.normal(size=n)
    return {"k": np.where(k, "b", "a").tolist(), "x": x, "y": y, "z": z}


ARCS = "k -> x, k -> y, x -> y, y -> z, x -> z"


def log_normal(x, mean, variance):
    return -0.5 * (x - mean) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)


def density(net, k, x, y, z):
    """The joint density, multiplied out node by node."""
    g = net.parameters.gaussians
    at = {"a": 0, "b": 1}[k]
    return (
        np.log(net.parameters.tables["k"][at]) + log_normal(x, g["x"].intercept[at], g["x"].variance[at])
        + log_normal(y, g["y"].intercept[at] + g["y"].slopes[at, 0] * x, g["y"].variance[at])
        + log_normal(z, g["z"].intercept + g["z"].slopes @ np.array([y, x]), g["z"].variance)
    )  # fmt: skip


def test_regressions_are_least_squares_in_each_configuration():
    data = mixed()
    net = likely.Network(ARCS, smoothing=0).fit(data)
    for at, k in enumerate("ab"):
        some = np.array(data["k"]) == k
        design = np.column_stack([np.ones(some.sum()), data["x"][some]])
        (intercept, slope), (rest,) = np.linalg.lstsq(design, data["y"][some])[:2]
        found = net.parameters.gaussians["y"]
        assert found.intercept[at] == pytest.approx(intercept, rel=1e-5, abs=1e-6)
        assert found.slopes[at, 0] == pytest.approx(slope, rel=1e-5)
        assert found.variance[at] == pytest.approx(rest / some.sum(), rel=1e-5)


def test_rows_have_the_density_of_the_product():
    data = mixed(50)
    net = likely.Network(ARCS).fit(data)
    expected = [float(density(net, *row)) for row in zip(*data.values(), strict=True)]
    np.testing.assert_allclose(net.log_likelihoods(data), expected, atol=1e-9)


def test_queries_equal_numerical_integration():
    net = likely.Network(ARCS).fit(mixed())
    grid = np.linspace(-12, 16, 2_001)
    step = grid[1] - grid[0]
    weights = {}
    for k in "ab":  # y observed, x integrated out, z not asked for
        g = net.parameters.gaussians
        at = "ab".index(k)
        inner = log_normal(grid, g["x"].intercept[at], g["x"].variance[at])
        inner = inner + log_normal(4.0, g["y"].intercept[at] + g["y"].slopes[at, 0] * grid, g["y"].variance[at])
        weights[k] = net.parameters.tables["k"][at] * np.exp(inner)
    total = sum(w.sum() for w in weights.values()) * step
    posterior = net.query("k", {"y": 4.0})
    assert posterior["a"] == pytest.approx(weights["a"].sum() * step / total, abs=1e-9)
    assert net.log_evidence({"y": 4.0}) == pytest.approx(np.log(total), abs=1e-9)
    mean = sum((w * grid).sum() for w in weights.values()) * step / total
    square = sum((w * grid**2).sum() for w in weights.values()) * step / total
    x = net.query("x", {"y": 4.0})
    assert x.mean == pytest.approx(mean, abs=1e-8)
    assert x.variance == pytest.approx(square - mean**2, abs=1e-8)
    assert x.cdf(x.quantile(0.3)) == pytest.approx(0.3, abs=1e-9)


def test_em_with_missing_numbers_climbs_and_recovers_the_regressions():
    data = mixed(6_000)
    rng = np.random.default_rng(1)
    holes = {n: np.where(rng.random(6_000) < 0.2, np.nan, data[n]) for n in "xyz"}
    holes["k"] = [None if rng.random() < 0.2 else v for v in data["k"]]
    net = likely.Network(ARCS).fit(holes)
    assert all(b >= a - 1e-3 for a, b in zip(net.trace, net.trace[1:], strict=False))
    np.testing.assert_allclose(net.parameters.gaussians["y"].slopes[:, 0], [3, 3], atol=0.08)
    np.testing.assert_allclose(net.parameters.gaussians["z"].slopes, [1, -1], atol=0.1)
    np.testing.assert_allclose(net.parameters.gaussians["x"].intercept, [0, 2], atol=0.12)


def test_missing_numbers_are_completed_by_their_mean():
    net = likely.Network(ARCS).fit(mixed())
    done = net.complete({"k": ["a", None], "x": [1.0, 2.5], "y": [None, 6.5], "z": [None, 4.0]})
    g = net.parameters.gaussians["y"]
    assert done["y"][0] == pytest.approx(float(g.intercept[0] + g.slopes[0, 0]), abs=1e-9)
    assert done["k"][1] == "b"


def test_samples_have_the_moments_of_the_network():
    net = likely.Network(ARCS).fit(mixed())
    drawn = net.sample(40_000, seed=3)
    assert np.mean(drawn["y"]) == pytest.approx(net.query("y").mean, abs=0.1)
    given = net.sample(40_000, {"y": 4.0}, seed=3)
    exact = net.query("x", {"y": 4.0})
    assert np.mean(given["x"]) == pytest.approx(exact.mean, abs=0.02)
    assert np.var(given["x"]) == pytest.approx(exact.variance, rel=0.05)


def test_doing_sets_a_number():
    net = likely.Network(ARCS).fit(mixed())
    g = net.parameters.gaussians["y"]
    expected = sum(net.query("k")[k] * (g.intercept[i] + 5 * g.slopes[i, 0]) for i, k in enumerate("ab"))
    assert net.do(x=5.0).query("y").mean == pytest.approx(float(expected), abs=1e-6)
    assert net.do(x=5.0).query("k") == pytest.approx(net.query("k"))


def test_numbers_that_are_few_and_whole_are_categories():
    net = likely.Network("a -> b").fit({"a": [0, 1, 1, 0], "b": [1.0, 2.0, 2.0, None]})
    assert net.columns["a"] == Column("a", CATEGORY, (0, 1))
    assert net.columns["b"] == Column("b", CATEGORY, (1, 2))
    asked = likely.Network("a -> b", kinds={"b": "gaussian"}).fit({"a": [0, 1, 1, 0], "b": [1.0, 2.0, 2.0, 3.0]})
    assert asked.columns["b"].kind == NUMBER


def test_numbers_without_discrete_parents_are_saved_and_loaded(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    data = {"x": x, "y": 2.0 * x + rng.normal(size=60), "apart": rng.normal(size=60), "c": rng.choice(["u", "v"], 60)}
    for net in (likely.Network("x -> y, apart, c").fit(data), likely.Network.learn_structure(data)):
        net.save(tmp_path / "n.likely")
        again = likely.load(tmp_path / "n.likely")
        assert again.arcs == net.arcs
        assert again.query("y", {"x": 1.0}) == net.query("y", {"x": 1.0})
        assert (again + net).query("x") == (net + net).query("x")


def test_the_search_ends_where_cells_are_missing():
    """A row is left out of the families in which it lacks a cell, so that turning an arc round changes the score."""
    rng = np.random.default_rng(1)
    time = rng.choice([0.0, 0.5, 1.0, 1.5, 2.0, 4.0, 6.0], 300)
    level = 5.0 + np.sin(time) + rng.normal(size=300) * 0.3
    level[[7, 70]] = np.nan
    net = quietly(likely.Network.learn_structure, {"time": time, "level": level, "meal": rng.choice(list("abcdef"), 300)})
    assert {"time", "level"} <= {node for arc in net.arcs for node in arc}


def with_gaps(n=300, share=0.15):
    data, rng = mixed(n), np.random.default_rng(2)
    holes = {name: np.where(rng.random(n) < share, np.nan, data[name]) for name in "xyz"}
    return holes | {"k": [None if rng.random() < share else v for v in data["k"]]}


def test_expected_counts_and_evidence_are_those_of_each_row_alone():
    net = likely.Network(ARCS).fit(mixed())
    columns = dict(net.columns)
    rows = read_rows(with_gaps(), Wanted(net.nodes, columns))
    tally, evidence = BatchInference(net.inference, rows).expected()
    alone = [BatchInference(net.inference, rows.take(np.array([i]))).expected() for i in range(rows.n)]
    np.testing.assert_allclose(evidence, [float(each[1][0]) for each in alone], rtol=1e-10)
    np.testing.assert_allclose(tally.tables["k"], sum(each[0].tables["k"] for each in alone), rtol=1e-9)
    for node in "xyz":
        one, *more = (each[0].moments[node] for each in alone)
        for each in more:
            one = one + each
        for part in ("n", "mean", "scatter"):
            np.testing.assert_allclose(getattr(tally.moments[node], part), getattr(one, part), rtol=1e-7)


def test_rows_without_a_gap_are_counted_once_and_no_likelihoods_of_cells_are_made_where_the_categories_are_known(monkeypatch):
    net, made, rounds = likely.Network(ARCS).fit(mixed()), [], []
    soft, expected = BatchInference._number_likelihoods, BatchInference.expected
    monkeypatch.setattr(BatchInference, "_number_likelihoods", lambda *given: made.append(soft(*given)[0]) or soft(*given))
    monkeypatch.setattr(BatchInference, "expected", lambda self: rounds.append(self.rows.n) or expected(self))
    holes = with_gaps()
    gaps = np.isnan([holes[name] for name in "xyz"]).any(0) | np.array([v is None for v in holes["k"]])
    quietly(likely.Network(ARCS).fit, holes, max_iter=2)
    assert rounds == [gaps.sum()] * 2
    made.clear()
    net.log_likelihoods(holes | {"k": mixed(300)["k"]})
    assert made
    assert all(each is None for each in made)


def test_the_log_likelihood_of_counts_is_that_of_the_rows():
    net = likely.Network(ARCS, smoothing=2).fit(mixed(500))
    assert log_likelihood_of(net.tally, net.parameters) == pytest.approx(net.log_likelihood(mixed(500)), rel=1e-12)


def test_the_posterior_of_a_node_with_numeric_children_ignores_what_its_column_holds():
    net = likely.Network(ARCS).fit(mixed())
    data = {name: column[:20] for name, column in mixed(200, seed=5).items()}
    found = net.posterior(data, "k")
    np.testing.assert_allclose(found, net.posterior({n: c for n, c in data.items() if n != "k"}, "k"))
    assert found[0, 0] == pytest.approx(net.query("k", {n: float(data[n][0]) for n in "xyz"})["a"])
