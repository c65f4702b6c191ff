"""Counting, merging, forgetting, saving and EM."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likely
from likely.errors import DataError, ForgetError, LikelyWarning, ModelFileError, UsageError
from likely.kernels.progress import listening
from likely.learning.load import load_model
from likely.networks import _em_fit as em_fit
from likely.networks import _junction_tree as junction_tree
from likely.networks import _table_em as table_em
from likely.networks import network_file
from likely.networks._batch_inference import BatchInference
from likely.networks._sampling import sample_rows
from likely.networks.family_counts import count_rows
from likely.networks.fitting import reading_of, rows_for
from likely.networks.rows import Wanted, read_rows
from networks_help import SPRINKLER, random_network, sprinkler
from strategies import quietly

ARCS = "A -> B, A -> X, B -> Y, X -> Y"
VALUES = {"A": ["p", "q"], "B": ["u", "v", "w"]}


@st.composite
def tables(draw, least=1):
    n = draw(st.integers(least, 12))
    numbers = st.floats(-100, 100).map(lambda x: round(x, 3))
    return {
        "A": draw(st.lists(st.sampled_from("pq"), min_size=n, max_size=n)),
        "B": draw(st.lists(st.sampled_from("uvw"), min_size=n, max_size=n)),
        "X": draw(st.lists(numbers, min_size=n, max_size=n)),
        "Y": draw(st.lists(numbers, min_size=n, max_size=n)),
    }


def declared():
    return likely.Network(ARCS, values=VALUES, kinds={"X": "gaussian", "Y": "gaussian"})


def same(one, other, to=1e-9):
    assert one.tally.rows == other.tally.rows
    for name, table in one.tally.tables.items():
        np.testing.assert_allclose(table, other.tally.tables[name], atol=to)
    for name, moments in one.tally.moments.items():
        some = moments.n > 0
        np.testing.assert_allclose(moments.n, other.tally.moments[name].n, atol=to)
        np.testing.assert_allclose(moments.mean[some], other.tally.moments[name].mean[some], atol=1e-7)
        np.testing.assert_allclose(moments.scatter[some], other.tally.moments[name].scatter[some], rtol=1e-6, atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(one=tables(), two=tables())
def test_adding_two_networks_equals_fitting_both_tables_at_once(one, two):
    both = {name: one[name] + two[name] for name in one}
    a, b, whole = declared().fit(one), declared().fit(two), declared().fit(both)
    same(a + b, whole)
    same(b + a, whole)
    same(a.update(two), whole)
    same(whole.forget(two), a)


@settings(max_examples=20, deadline=None)
@given(table=tables())
def test_a_network_is_the_same_after_saving_and_loading(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("nets") / "n.likely"
    net = declared().fit(table, smoothing=0.5)
    net.save(path)
    other = likely.Network.load(path)
    same(net, other, 0)
    assert other.arcs == net.arcs
    assert other.query("A", {"X": 1.0}) == net.query("A", {"X": 1.0})
    assert other.relearn(2.0).query("B") == net.relearn(2.0).query("B")


def test_values_that_only_one_side_has_are_kept():
    one = likely.Network("A -> B").fit({"A": ["x", "y"], "B": [0, 1]})
    two = likely.Network("A -> B").fit({"A": ["z", "y"], "B": [2, 1]})
    both = one + two
    assert both.columns["A"].values == ("x", "y", "z")
    assert both.columns["B"].values == (0, 1, 2)
    whole = likely.Network("A -> B").fit({"A": ["x", "y", "z", "y"], "B": [0, 1, 2, 1]})
    np.testing.assert_array_equal(both.tally.tables["B"], whole.tally.tables["B"])
    assert one.update({"A": ["z", "y"], "B": [2, 1]}).query("B") == whole.query("B")


def test_smoothing_zero_gives_shares_and_a_pseudocount_is_added_to_each_cell():
    data = {"A": ["x", "x", "y", "y", "y"], "B": ["u", "v", "u", "u", "u"]}
    net = likely.Network("A -> B", smoothing=0).fit(data)
    assert net.table("B") == {("x",): {"u": 0.5, "v": 0.5}, ("y",): {"u": 1.0, "v": 0.0}}
    assert net.relearn(1).table("B")["y",] == {"u": 4 / 5, "v": 1 / 5}
    assert net.relearn(likely.Pseudocount(1)).table("B") == net.relearn(1).table("B")
    assert net.relearn("auto").table("B")["y",]["v"] == pytest.approx(0.25 / 3.5)  # one row over the four cells
    assert net.relearn({"A": 1, "*": 0}).query("A")["x"] == pytest.approx(3 / 7)


def test_weights_count_rows_several_times():
    twice = {"A": ["x", "x", "y"], "B": ["u", "u", "v"]}
    once = {"A": ["x", "y"], "B": ["u", "v"], "w": [2.0, 1.0]}
    same(likely.Network("A -> B").fit(once, weights="w"), likely.Network("A -> B").fit(twice))


def test_forgetting_what_was_not_counted_is_refused():
    net = likely.Network("A -> B").fit({"A": ["x", "y"], "B": ["u", "v"]})
    with pytest.raises(ForgetError, match="never counted"):
        net.forget({"A": ["x"], "B": ["v"]})


def test_a_damaged_or_foreign_file_is_refused(tmp_path):
    path = tmp_path / "n.likely"
    sprinkler().save(path)
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    (tmp_path / "bad.likely").write_bytes(raw)
    with pytest.raises(ModelFileError, match="damaged"):
        likely.Network.load(tmp_path / "bad.likely")
    with pytest.raises(UsageError, match=r"Network\.load"):
        load_model(path)
    assert likely.load(path).query("S", {"W": "t"}) == sprinkler().query("S", {"W": "t"})
    model = likely.learn({"a": ["x", "y"] * 4, "b": ["p", "q"] * 4}, target="b", plain=True)
    model.save(tmp_path / "m.likely")
    with pytest.raises(ModelFileError, match=r"likely\.load"):
        likely.Network.load(tmp_path / "m.likely")


@pytest.mark.parametrize(("part", "number", "reported"), [("mean2", 1e300, "too large"), ("n2", -1.0, "negative weight")])
def test_numbers_that_no_data_lead_to_are_refused_though_the_checksum_is_right(part, number, reported):
    net = likely.Network("A -> B, A -> X").fit({"A": ["p", "q"] * 4, "B": ["u", "v"] * 4, "X": [0.1 * i for i in range(8)]})
    header, arrays = network_file.to_file(net)
    crafted = arrays | {part: np.where(np.arange(arrays[part].size).reshape(arrays[part].shape) == 0, number, arrays[part])}
    assert network_file.from_file(header, arrays).arcs == net.arcs
    with pytest.raises(ValueError, match=reported):
        network_file.from_file(header, crafted)


def test_families_counted_together_equal_families_counted_alone():
    net = random_network(8, nodes=12, density=0.6)
    rows = sample_rows(net, 30_000, seed=1)
    place = {c.name: i for i, c in enumerate(rows.columns)}
    for holes in (0.0, 0.001):
        codes = np.where(np.random.default_rng(2).random(rows.codes.shape) < holes, -1, rows.codes).astype(np.int8)
        tally = count_rows(replace(rows, codes=codes), net.graph)
        for node in net.nodes:
            lines = codes[[place[n] for n in (*net.graph.parents[node], node)]]
            table = np.zeros(tally.tables[node].shape)
            np.add.at(table, tuple(lines[:, (lines >= 0).all(0)].astype(np.int64)), 1.0)
            assert np.array_equal(tally.tables[node], table)


@pytest.mark.parametrize("values", [126, 127, 128, 129, 300])
def test_codes_are_wide_enough_for_all_values(values):
    a = [f"v{i:03d}" for i in range(values)] * 2
    b = ["x"] * values + ["y"] * values
    for data in ({"A": a, "B": b}, pd.DataFrame({"A": pd.Categorical(a), "B": pd.Categorical(b)})):
        net = likely.Network("B -> A").fit(data)
        assert net.tally.tables["A"].tolist() == [[1.0] * values] * 2
    labels = likely.NetworkClassifier("naive-bayes", smoothing=0.01).fit([[v] for v in a], a)
    assert labels.predict([[v] for v in a]).tolist() == a


def test_bif_is_written_and_read_with_all_digits(tmp_path):
    net = random_network(3)
    net.to_bif(tmp_path / "n.bif")
    other = likely.Network.from_bif(tmp_path / "n.bif")
    assert set(other.arcs) == set(net.arcs)
    for name in net.nodes:
        np.testing.assert_array_equal(other.parameters.tables[name], net.parameters.tables[name])


# ---------------------------------------------------------------- EM


def gaps(data, share, seed):
    rng = np.random.default_rng(seed)
    return {name: [None if rng.random() < share else v for v in column] for name, column in data.items()}


def test_em_climbs_and_recovers_the_tables_with_a_fifth_of_the_cells_missing():
    net = sprinkler()
    fitted = likely.Network(SPRINKLER).fit(gaps(net.sample(20_000, seed=1), 0.2, 2))
    assert fitted.converged
    assert len(fitted.trace) > 2
    assert all(b >= a - 1e-6 for a, b in zip(fitted.trace, fitted.trace[1:], strict=False))
    for name, table in net.parameters.tables.items():
        np.testing.assert_allclose(fitted.parameters.tables[name], table, atol=0.03)


def test_em_finds_a_hidden_node_up_to_the_names_of_its_values():
    truth = likely.Network.from_tables(
        "H -> A, H -> B, H -> D", {"H": [0, 1]} | dict.fromkeys("ABD", "yn"),
        {"H": [0.3, 0.7]} | {n: [[0.9, 0.1], [0.2, 0.8]] for n in "ABD"},
    )  # fmt: skip
    data = {n: column for n, column in truth.sample(20_000, seed=4).items() if n != "H"}
    found = likely.Network("H -> A, H -> B, H -> D", hidden={"H": 2}).fit(data, tol=1e-4)
    share = sorted(found.query("H").values())
    assert share == pytest.approx([0.3, 0.7], abs=0.03)
    high = max(found.table("A").values(), key=lambda row: row["y"])
    assert high["y"] == pytest.approx(0.9, abs=0.03)
    assert found.log_likelihood(data) == pytest.approx(truth.log_likelihood({**data, "H": [None] * 20_000}), abs=15)


@pytest.mark.parametrize("limits", [{"MOST_OF_GROUP": 8}, {"MOST_OF_ALL": 60}, {"MOST_OF_GROUP": 0}])
def test_em_is_the_same_where_rows_have_groups_too_large_to_be_listed(limits, monkeypatch):
    net = random_network(5, nodes=9)
    data = gaps(net.sample(300, seed=9), 0.4, 10)
    weights = np.random.default_rng(1).integers(1, 4, 300).astype(float)
    values = {name: column.values for name, column in net.columns.items()}
    listed = likely.Network(net.graph, values=values).fit(data, weights=weights)
    for name, most in limits.items():
        monkeypatch.setattr(table_em, name, most)
    assert table_em.MissingGroups(read_rows(data, Wanted(net.nodes, net.columns)),
                                  table_em.FlatTables(net.graph, listed.tally.sizes)).rest.n > 0  # fmt: skip
    other = likely.Network(net.graph, values=values).fit(data, weights=weights)
    np.testing.assert_allclose(listed.trace, other.trace, atol=1e-8)
    same(listed, other, 1e-8)


def test_a_frame_of_categories_is_read_in_the_values_of_the_network():
    values = {"A": ["p", "q", "r"], "B": [0, 1]}
    frame = pd.DataFrame({"A": pd.Categorical(["q", "p", None, "q"]), "B": pd.Categorical([1, 0, 1, None])})
    lists = {"A": ["q", "p", None, "q"], "B": [1, 0, 1, None]}
    same(likely.Network("A -> B", values=values).fit(frame), likely.Network("A -> B", values=values).fit(lists), 0)
    with pytest.raises(DataError, match="does not have"):
        likely.Network("A -> B", values={"A": ["q", "z"], "B": [0, 1]}).fit(frame)


def test_em_at_a_maximum_stays_there():
    """Fitted again from its own expected counts, the parameters do not move: a fixed point."""
    data = gaps(sprinkler().sample(3_000, seed=5), 0.3, 6)
    net = likely.Network(SPRINKLER).fit(data, tol=1e-9, max_iter=3_000)
    from likely.networks._batch_inference import BatchInference
    from likely.networks.fitting import reading_of, rows_for

    tally, _ = BatchInference(net.inference, rows_for(net, data, reading_of(None, {}))).expected()
    for name in net.nodes:
        np.testing.assert_allclose(tally.tables[name], net.tally.tables[name], atol=0.02)


def test_expected_counts_are_added_up_with_a_warning():
    data = gaps(sprinkler().sample(200, seed=7), 0.2, 8)
    net = likely.Network(SPRINKLER).fit(data)
    with pytest.warns(LikelyWarning, match="expected counts"):
        both = net + net
    assert both.tally.rows == 400
    with pytest.raises(ForgetError):
        net.forget({name: column[:1] for name, column in sprinkler().sample(5, seed=1).items()})


def test_each_iteration_of_em_is_reported_with_the_log_likelihood():
    data = gaps(sprinkler().sample(300, seed=5), 0.3, 6)
    told = []
    net = likely.Network(SPRINKLER).fit(data, progress=lambda number, value: told.append((number, value)))
    assert told == list(enumerate(net.trace, 1))
    steps = []
    with listening(steps.append):
        likely.Network("H -> S, H -> R", hidden={"H": 2}).fit(data, n_init=2, max_iter=12, tol=-1.0)
    assert steps[0].what.startswith("start 1 of 2, EM iteration 1, log-likelihood with prior -")
    assert steps[10].what.startswith("start 2 of 2, EM iteration 11, ")
    assert steps[-1].what.startswith("EM iteration 22, ")


def test_the_progress_of_structure_learning_is_reported_climb_by_climb():
    steps = []
    with listening(steps.append):
        likely.Network.learn_structure(sprinkler().sample(300, seed=5))
    assert [s.what.split(",")[1] for s in steps][:2] == [" climb 1", " climb 2"]


def test_work_on_many_cells_is_done_in_parts_with_the_same_result(monkeypatch):
    data = gaps(sprinkler().sample(200, seed=5), 0.5, 6)
    net = sprinkler()
    rows = rows_for(net, data, reading_of(None, {}))
    tally, whole = BatchInference(net.inference, rows).expected()
    monkeypatch.setattr(junction_tree, "SLAB_CELLS", 20)
    monkeypatch.setattr(junction_tree, "HELD_CELLS", 0)
    codes = BatchInference(net.inference, rows).codes
    parts = net.inference.tree._slabs(codes)
    assert (parts[0].start, parts[-1].stop) == (0, 200)
    assert all(a.stop == b.start for a, b in itertools.pairwise(parts))
    assert len(parts) > 20
    again, evidence = BatchInference(net.inference, rows).expected()
    assert np.array_equal(evidence, whole)
    for name, table in tally.tables.items():
        assert again.tables[name] == pytest.approx(table, rel=1e-12)


def test_more_starts_are_tried_where_they_take_little_work(monkeypatch):
    rng = np.random.default_rng(2)
    group = rng.integers(0, 4, 1_000)
    data = {f"x{i}": np.array(list("abc"))[[rng.choice(3, p=p) for p in rng.dirichlet([1, 1, 1], size=4)[group]]]
            for i in range(6)}  # fmt: skip
    net = likely.Network({f"x{i}": ["H"] for i in range(6)} | {"H": []}, hidden={"H": 4})

    def best(**settings):
        return quietly(net.fit, data, **settings).trace[-1]

    many = best()
    assert many == best(n_init=60) > best(n_init=5) + 0.1
    monkeypatch.setattr(em_fit, "STARTING", 1)
    assert best() == best(n_init=5)
