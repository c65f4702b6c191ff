"""Queries equal brute-force enumeration, whichever engine answers them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likely
from likely.networks._batch_inference import BatchInference
from likely.networks._inference import Evidence, Inference
from likely.networks._junction_tree import JunctionTree
from likely.networks._table_em import FlatTables, MissingGroups
from likely.networks.fitting import reading_of, rows_for
from networks_help import SPRINKLER, TABLES, enumerated, random_network, sprinkler, worlds


def close(one, other, to=1e-12):
    assert one.keys() == other.keys()
    assert all(math.isclose(one[k], other[k], rel_tol=0, abs_tol=to) for k in one), (one, other)


def test_the_sprinkler_is_on_with_the_textbooks_probability():
    net = sprinkler()
    assert net.query("S", {"W": "t"})["t"] == pytest.approx(0.2781 / 0.6471, abs=1e-12)
    assert net.query("R", {"W": "t"})["t"] == pytest.approx(0.4581 / 0.6471, abs=1e-12)
    assert net.query("S", {"W": "t", "R": "t"})["t"] == pytest.approx(0.0891 / 0.4581, abs=1e-12)  # explaining away


def test_every_query_of_the_sprinkler_equals_enumeration():
    net = sprinkler()
    for target in net.nodes:
        others = [n for n in net.nodes if n != target]
        for size in range(len(others) + 1):
            for names in itertools.combinations(others, size):
                for values in itertools.product("ft", repeat=size):
                    evidence = dict(zip(names, values, strict=True))
                    found, p = enumerated(net, target, {}) if not evidence else (None, None)
                    if found is None:
                        p = sum(q for world, q in worlds(net) if all(world[n] == v for n, v in evidence.items()))
                        if p == 0:
                            with pytest.raises(likely.errors.DataError, match="probability zero"):
                                net.query(target, evidence)
                            continue
                        found, p = enumerated(net, target, evidence)
                    close(net.query(target, evidence), found)
                    assert net.log_evidence(evidence) == pytest.approx(math.log(p), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), observed=st.integers(0, 4))
def test_elimination_and_junction_tree_equal_enumeration(seed, observed):
    net = random_network(seed)
    rng = np.random.default_rng(seed)
    names = list(rng.permutation(net.nodes))
    target, evidence = names[0], {n: str(rng.choice(net.columns[n].values)) for n in names[1 : 1 + observed]}
    expected, p = enumerated(net, target, evidence)
    close(net.query(target, evidence), expected)
    net.inference._queries = 10**6  # many queries: the junction tree answers
    close(net.query(target, evidence), expected)
    assert net.log_evidence(evidence) == pytest.approx(math.log(p), abs=1e-12)
    pair, _ = enumerated(net, names[-2:], {k: v for k, v in evidence.items() if k not in names[-2:]})
    close(net.query(names[-2:], {k: v for k, v in evidence.items() if k not in names[-2:]}), pair)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_most_probable_explanation_is_the_best_of_all_worlds(seed):
    net = random_network(seed)
    evidence = {"n5": net.columns["n5"].values[0], "n2": net.columns["n2"].values[1]}
    possible = {tuple(w.values()): p for w, p in worlds(net) if all(w[n] == v for n, v in evidence.items())}
    best = net.most_probable(evidence)
    assert possible[tuple({**best, **evidence}[n] for n in net.nodes)] == pytest.approx(max(possible.values()), rel=1e-12)
    marginal, _ = enumerated(net, ["n0", "n3"], evidence)
    chosen = net.most_probable(evidence, ["n0", "n3"])
    assert marginal[chosen["n0"], chosen["n3"]] == pytest.approx(max(marginal.values()), rel=1e-12)
    row = {n: [evidence.get(n)] for n in net.nodes}
    completed = net.complete(row)
    assert possible[tuple(completed[n][0] for n in net.nodes)] == pytest.approx(max(possible.values()), rel=1e-12)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_rows_with_gaps_have_the_probability_and_expected_counts_of_enumeration(seed):
    net = random_network(seed)
    rng = np.random.default_rng(seed)
    data = {n: [v if rng.random() < 0.6 else None for v in column] for n, column in net.sample(12, seed=seed).items()}
    logs, counts = [], {n: np.zeros(net.parameters.tables[n].shape) for n in net.nodes}
    for i in range(12):
        known = {n: data[n][i] for n in net.nodes if data[n][i] is not None}
        fitting = [(w, p) for w, p in worlds(net) if all(w[n] == v for n, v in known.items())]
        total = sum(p for _, p in fitting)
        logs.append(math.log(total))
        for world, p in fitting:
            for n in net.nodes:
                at = tuple(net.columns[m].code[world[m]] for m in (*net.graph.parents[n], n))
                counts[n][at] += p / total
    np.testing.assert_allclose(net.log_likelihoods(data), logs, atol=1e-11)
    rows = rows_for(net, data, reading_of(None, {}))
    tally, evidence = BatchInference(net.inference, rows).expected()
    np.testing.assert_allclose(evidence, logs, atol=1e-11)
    for n in net.nodes:
        np.testing.assert_allclose(tally.tables[n], counts[n], atol=1e-10)
    layout = FlatTables(net.graph, {n: len(net.columns[n].values) for n in net.nodes})
    flat, log_likelihood = MissingGroups(rows, layout).expected(layout.flat(net.parameters.tables))
    assert log_likelihood == pytest.approx(sum(logs), abs=1e-10)
    for n, table in layout.tables(flat).items():
        np.testing.assert_allclose(table, counts[n], atol=1e-10)
    posterior = net.posterior({**data, "n0": [None] * 12}, "n0")
    for i in range(12):
        known = {n: data[n][i] for n in net.nodes if data[n][i] is not None and n != "n0"}
        np.testing.assert_allclose(posterior[i], list(enumerated(net, "n0", known)[0].values()), atol=1e-11)


def expected_by_groups(net, data):
    """Rows of the groups that could not be listed, expected counts and log-likelihood of one E-step."""
    rows = rows_for(net, data, reading_of(None, {}))
    layout = FlatTables(net.graph, {n: len(net.columns[n].values) for n in net.nodes})
    groups = MissingGroups(rows, layout)
    flat, log_likelihood = groups.expected(layout.flat(net.parameters.tables))
    tally, evidence = BatchInference(net.inference, rows).expected()
    return groups.rest.n, (layout.tables(flat), log_likelihood), (tally.tables, evidence.sum())


def test_a_long_chain_of_missing_cells_is_eliminated_step_by_step():
    nodes = [f"v{i}" for i in range(40)]
    rng = np.random.default_rng(4)
    parents = {n: nodes[max(0, i - 2) : i] for i, n in enumerate(nodes)}
    tables = {n: rng.dirichlet(np.ones(3), size=(3,) * len(parents[n]) or None) for n in nodes}
    net = likely.Network.from_tables(parents, dict.fromkeys(nodes, ("a", "b", "c")), tables)
    data = {n: ["abc"[i % 3] if i % 39 == 0 else None, "c"] for i, n in enumerate(nodes)}  # 38 missing: 3^38 states
    left, (found, log_likelihood), (trees, evidence) = expected_by_groups(net, data)
    assert left == 0
    assert log_likelihood == pytest.approx(evidence, abs=1e-9)
    for n in nodes:
        np.testing.assert_allclose(found[n], trees[n], atol=1e-9)


def test_expected_counts_are_right_where_products_of_probabilities_underflow():
    children = [f"c{i}" for i in range(12)]
    tables = {"H": [0.3, 0.7]} | {c: [[1e-40, 1 - 1e-40], [2e-40, 1 - 2e-40]] for c in children}
    net = likely.Network.from_tables({"H": []} | {c: ["H"] for c in children}, dict.fromkeys(tables, ("x", "y")), tables)
    data = {"H": [None, "x"]} | {c: ["x", "y"] for c in children}  # P = 1e-480: 0 as a float
    left, (found, log_likelihood), _ = expected_by_groups(net, data)
    odds = 0.7 / 0.3 * 2.0**12
    assert left == 0
    assert found["H"] == pytest.approx([1 + 1 / (1 + odds), odds / (1 + odds)], rel=1e-12)
    assert log_likelihood == pytest.approx(math.log(0.3) * 2 + 12 * math.log(1e-40) + math.log1p(odds), rel=1e-12)


def test_soft_evidence_weighs_the_worlds():
    net = sprinkler()
    likelihood = {"t": 0.7, "f": 0.2}
    found = {"f": 0.0, "t": 0.0}
    for world, p in worlds(net):
        found[world["C"]] += p * likelihood[world["W"]]
    total = sum(found.values())
    close(net.query("C", {"W": likelihood}), {k: v / total for k, v in found.items()})
    close(net.query("C", {"W": ["t", "f"]}), net.query("C"))  # either value is possible: nothing is learned
    close(net.query("C", {"W": ["t"]}), net.query("C", {"W": "t"}))


def test_seeing_is_not_doing():
    net = sprinkler()
    assert net.query("C", {"S": "t"})["t"] == pytest.approx(1 / 6, abs=1e-12)
    assert net.do(S="t").query("C")["t"] == pytest.approx(0.5, abs=1e-12)  # turned on by hand: no news of the clouds
    wet = sum(0.5 * TABLES["R"][c][r] * TABLES["W"][1][r][1] for c in (0, 1) for r in (0, 1))
    assert net.do({"S": "t"}).query("W")["t"] == pytest.approx(wet, abs=1e-12)
    assert net.do(S={"t": 0.25, "f": 0.75}).query("S")["t"] == pytest.approx(0.25, abs=1e-12)
    assert net.arcs == sprinkler().arcs  # the network itself is as it was


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_d_separated_nodes_are_independent_in_the_tables(seed):
    net = random_network(seed, nodes=5, density=0.45)
    a, b, *rest = (str(n) for n in np.random.default_rng(seed).permutation(net.nodes))
    given_nodes = rest[: seed % 3]
    if not net.d_separated(a, b, given_nodes):
        return
    for values in itertools.product(*(net.columns[n].values for n in given_nodes)):
        evidence = dict(zip(given_nodes, values, strict=True))
        joint = net.query([a, b], evidence)
        left, right = net.query(a, evidence), net.query(b, evidence)
        assert all(math.isclose(p, left[x] * right[y], abs_tol=1e-12) for (x, y), p in joint.items())


def test_colliders_block_until_they_are_observed():
    net = sprinkler()
    assert net.d_separated("S", "R", "C")
    assert not net.d_separated("S", "R", ["C", "W"])
    assert net.markov_blanket("S") == {"C", "W", "R"}
    assert net.markov_blanket("C") == {"S", "R"}


def test_a_disconnected_network_answers_for_each_part():
    net = likely.Network.from_tables({"B": ["A"], "C": [], "A": []}, dict.fromkeys("ABC", "xy"),
                                     {"A": [0.3, 0.7], "B": [[0.9, 0.1], [0.2, 0.8]], "C": [0.6, 0.4]})  # fmt: skip
    for evidence in ({}, {"B": "x"}, {"C": "y", "B": "y"}):
        for target in "ABC":
            if target not in evidence:
                close(net.query(target, evidence), enumerated(net, target, evidence)[0])
    net.inference._queries = 10**6
    assert net.query("C", {"B": "x"})["x"] == pytest.approx(0.6)


def test_samples_follow_the_network_and_its_posterior():
    net = sprinkler()
    n = 40_000
    drawn = net.sample(n, seed=1)
    assert np.mean(np.array(drawn["W"]) == "t") == pytest.approx(0.6471, abs=0.01)
    drawn = net.sample(n, {"W": "t"}, seed=2)
    assert set(drawn["W"]) == {"t"}
    exact = net.query(["C", "S", "R"], {"W": "t"})
    rows = list(zip(drawn["C"], drawn["S"], drawn["R"], strict=True))
    for key, p in exact.items():
        assert rows.count(key) / n == pytest.approx(p, abs=0.012)
    weighted = net.query("S", {"W": "t"}, samples=n, seed=3)
    assert weighted["t"] == pytest.approx(0.42976, abs=0.02)


def test_very_improbable_evidence_is_not_impossible():
    """A chance of 1e-4 in each of 400 children: far below what a float holds, and still an answer."""
    children = [f"x{i}" for i in range(400)]
    tables = {"c": [0.5, 0.5]} | {x: [[1e-4, 1 - 1e-4], [2e-4, 1 - 2e-4]] for x in children}
    net = likely.Network.from_tables({x: ["c"] for x in children} | {"c": []}, dict.fromkeys(tables, ("y", "n")), tables)
    evidence = dict.fromkeys(children, "y")
    assert net.log_evidence(evidence) == pytest.approx(math.log(0.5) + 400 * math.log(2e-4), rel=1e-12)
    for _ in range(12):  # first by elimination, then by the junction tree
        assert net.query("c", evidence)["n"] == pytest.approx(1.0, abs=1e-12)


def test_arcs_are_read_from_text_pairs_and_mappings():
    text = likely.Network(SPRINKLER)
    assert text.arcs == [("C", "S"), ("C", "R"), ("S", "W"), ("R", "W")]
    pairs = likely.Network([("C", "S"), ("C", "R"), ("S", "W"), ("R", "W")])
    assert set(pairs.arcs) == set(text.arcs)
    assert set(likely.Network({"S": "C", "R": ["C"], "W": ["S", "R"]}).arcs) == set(text.arcs)
    assert likely.Network("A -> B -> C, D").nodes == ("A", "B", "C", "D")


@pytest.mark.parametrize("decimals", [None, 3])
def test_many_queries_answer_as_single_ones_do_also_where_tables_are_rounded(decimals):
    """The first queries eliminate, later ones use the tree as it is, and then trees with the node asked for at the root."""
    rng = np.random.default_rng(3)
    nodes = [f"n{i}" for i in range(12)]
    parents = {v: nodes[max(0, i - 2) : i] for i, v in enumerate(nodes)}
    tables = {v: rng.dirichlet([1.0, 1.0, 1.0], size=(3,) * len(parents[v]) or None) for v in nodes}
    if decimals:
        tables = {v: np.round(table, decimals) for v, table in tables.items()}  # rows sum to 0.999, 1 or 1.001
    net = likely.Network.from_tables(parents, dict.fromkeys(nodes, ("a", "b", "c")), tables)
    assert bool(net.inference._rounded) == bool(decimals)
    for i in range(80):
        target, *given = rng.choice(nodes, 3, replace=False).tolist()
        evidence = dict(zip(given, rng.choice(["a", "b", "c"], 2).tolist(), strict=True))
        alone, _ = net.inference.joint([target], Evidence.of(evidence, net.graph, net.columns))
        assert list(net.query(target, evidence).values()) == pytest.approx(alone.tolist(), rel=1e-9), i
    assert net.inference._asked.total() > 60


def test_samples_given_evidence_come_from_one_elimination_whatever_the_size_of_the_junction_tree(monkeypatch):
    monkeypatch.setattr(JunctionTree, "rooted", lambda *_: pytest.fail("no junction tree is needed"))
    net, n = sprinkler(), 40_000
    drawn = net.sample(n, {"W": "t"}, seed=2)
    keys = list(zip(drawn["C"], drawn["S"], drawn["R"], strict=True))
    for key, p in net.query(["C", "S", "R"], {"W": "t"}).items():
        assert keys.count(key) / n == pytest.approx(p, abs=0.01)
    assert set(drawn["W"]) == {"t"}


def test_samples_follow_the_posterior_given_likelihoods_too():
    net, n, soft = sprinkler(), 40_000, {"W": {"t": 0.9, "f": 0.2}, "C": ["t"]}
    drawn = net.sample(n, soft, seed=2)
    assert drawn["S"].count("t") / n == pytest.approx(net.query("S", soft)["t"], abs=0.01)
    assert drawn["W"].count("t") / n == pytest.approx(net.query("W", soft)["t"], abs=0.01)
    assert set(drawn["C"]) == {"t"}


def test_rows_under_rounded_tables_need_no_sums_of_every_cell(monkeypatch):
    net = likely.Network.from_tables(
        "A -> B", {"A": "xy", "B": "uv"}, {"A": [0.333, 0.666], "B": [[0.4, 0.6], [0.299, 0.7]]}
    )
    monkeypatch.setattr(Inference, "_row_sums", lambda *_: pytest.fail("the tables as given are enough"))
    assert np.exp(net.log_likelihoods({"A": ["y", None], "B": [None, "u"]})) == pytest.approx(
        [0.666 * 0.999, 0.333 * 0.4 + 0.666 * 0.299], rel=1e-12
    )


def test_an_answer_by_elimination_sums_to_one_to_the_last_digit():
    data = {"A": ["x", "y"] * 20, "B": ["u", "v", "u", "v"] * 10, "C": ["p", "q", "q", "p"] * 10, "D": [1, 2, 3, 4] * 10}
    net = likely.Network("A -> B, B -> C, A -> C, C -> D").fit(data)
    assert net.query("A", {"D": 3}) == {"x": 0.5, "y": 0.5}
