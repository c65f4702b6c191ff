"""Bad input is refused with the node, the value and the remedy; no table larger than memory is made."""

import numpy as np
import pytest

import likely
from likely.errors import DataError, LikelyWarning, ResourceError, UsageError
from likely.networks import _elimination as elimination
from likely.networks import _em_fit as em_fit
from likely.networks import _limits as limits
from likely.networks import _table_em as table_em
from networks_help import sprinkler

DATA = {"A": ["x", "y", "x"], "B": ["u", "v", "v"]}


@pytest.mark.parametrize("arcs", ["A -> B, B -> A", "A -> A", "A -> B, B -> C, C -> A, X -> A"])
def test_a_cycle_is_named(arcs):
    with pytest.raises(UsageError, match=r"cycle: .*A -> .*"):
        likely.Network(arcs)


@pytest.mark.parametrize("arcs", ["", "A ->", "-> B", "A => B", "A <- B", "A --> B", [("A", "B", "C")], [3], []])
def test_arcs_without_meaning_are_refused(arcs):
    with pytest.raises((UsageError, TypeError)):
        likely.Network(arcs)


def test_unknown_nodes_are_named_with_what_may_have_been_meant():
    net = likely.Network("Rain -> Wet").fit({"Rain": ["y", "n"], "Wet": ["y", "n"]})
    for ask in (
        lambda: net.query("rain"), lambda: net.query("Wet", {"Rian": "y"}), lambda: net.do(Rian="y"),
        lambda: net.d_separated("Wet", "rain"), lambda: net.markov_blanket("Wett"), lambda: net.most_probable({}, ["Wett"]),
        lambda: likely.Network("A -> B", hidden={"C": 2}), lambda: likely.Network("A -> B", values={"Q": [1, 2]}),
    ):  # fmt: skip
        with pytest.raises(UsageError, match="not in the network"):
            ask()
    with pytest.raises(UsageError, match="did you mean 'Rain'"):
        net.query("rain")


def test_evidence_of_probability_zero_names_the_part_that_cannot_be():
    net = sprinkler()
    for _ in range(12):  # by elimination, and by the junction tree
        with pytest.raises(DataError, match=r"probability zero.*'W'|'W'.*probability zero"):
            net.query("C", {"S": "f", "R": "f", "W": "t"})
    with pytest.raises(DataError, match="probability zero"):
        net.sample(3, {"S": "f", "R": "f", "W": "t"})
    with pytest.raises(DataError, match="probability zero"):
        net.most_probable({"S": "f", "R": "f", "W": "t"})
    assert net.log_evidence({"S": "f", "R": "f", "W": "t"}) == -np.inf


def test_values_that_a_node_does_not_have_are_refused():
    with pytest.raises(DataError, match=r"'W' has 'maybe'.*'f', 't'"):
        sprinkler().query("C", {"W": "maybe"})
    with pytest.raises(DataError, match="maybe"):
        sprinkler().log_likelihood({n: ["maybe"] for n in "CSRW"})
    with pytest.raises(DataError, match="likelihoods"):
        sprinkler().query("C", {"W": {"t": 0, "f": 0}})
    with pytest.raises(UsageError, match="dict of nodes"):
        sprinkler().query("C", ["W"])


def test_a_node_with_one_value_is_refused_with_a_remedy():
    with pytest.raises(DataError, match=r"'B' has only one value, 'u'.*values="):
        likely.Network("A -> B").fit({"A": ["x", "y"], "B": ["u", "u"]})
    with pytest.raises(DataError, match="only one value"):
        likely.Network.learn_structure({"A": ["x", "y"], "B": ["u", "u"]})
    net = likely.Network("A -> B", values={"B": ["u", "v"]}).fit({"A": ["x", "y"], "B": ["u", "u"]})
    assert 0 < net.query("B")["v"] < 0.5


def test_a_hidden_node_needs_two_values():
    with pytest.raises(UsageError, match="'H' has 1 value"):
        likely.Network("H -> A", hidden={"H": 1})
    with pytest.raises(UsageError, match="not understood"):
        likely.Network("H -> A", hidden={"H": "two"})


def test_a_node_without_a_column_is_named_with_the_remedy():
    with pytest.raises(DataError, match=r"'H'.*hidden=\{'H'"):
        likely.Network("H -> A, H -> B").fit(DATA)


def test_a_hundred_parents_are_refused_before_any_table_is_made():
    names = [f"p{i}" for i in range(100)]
    net = likely.Network([(p, "child") for p in names])
    data = {name: ["x", "y"] for name in (*names, "child")}
    with pytest.raises(ResourceError, match=r"'child' given its 100 parents.*10\^30 cells.*fewer parents"):
        net.fit(data)


def test_inference_that_would_not_fit_into_memory_is_refused_and_can_be_sampled(monkeypatch):
    rng = np.random.default_rng(0)
    rows, columns = 10, 10
    name = lambda i, j: f"g{i}_{j}"  # noqa: E731
    arcs = [(name(i, j), name(i + 1, j)) for i in range(rows - 1) for j in range(columns)]
    arcs += [(name(i, j), name(i, j + 1)) for i in range(rows) for j in range(columns - 1)]
    graph = likely.Network(arcs).graph
    values = {n: list("abcdefgh") for n in graph.nodes}
    tables = {n: rng.dirichlet(np.ones(8), size=(8,) * len(graph.parents[n]) or None) for n in graph.nodes}
    grid = likely.Network.from_tables(graph, values, tables)
    last = name(rows - 1, columns - 1)
    with monkeypatch.context() as patch:
        patch.setattr(elimination, "product", None)  # it is refused before the first table is computed
        with pytest.raises(ResourceError, match=r"table over \d+ nodes.*samples="):
            grid.query(last)
    assert sum(grid.query(last, samples=500).values()) == pytest.approx(1)


def test_a_category_cannot_have_a_numeric_parent():
    with pytest.raises(DataError, match="'B' holds categories and its parent 'A' numbers"):
        likely.Network("A -> B").fit({"A": [0.5, 1.5, 2.25], "B": ["u", "v", "u"]})


def test_an_unfitted_network_raises_a_clear_error():
    net = likely.Network("A -> B")
    for ask in (lambda: net.query("A"), lambda: net.save("x.likely"), lambda: net.sample(2), lambda: net.update(DATA),
                lambda: net.log_likelihood(DATA), lambda: net + net):  # fmt: skip
        with pytest.raises(UsageError, match="fit"):
            ask()
    net.fit(DATA)
    with pytest.raises(UsageError, match=r"net = net\.fit"):
        net.query("A")


def test_settings_without_meaning_are_refused():
    net = likely.Network("A -> B")
    for settings in ({"smoothing": -1}, {"smoothing": "much"}, {"smoothing": {"Q": 1}}):
        with pytest.raises(UsageError):
            net.fit(DATA, **settings)
    for settings in ({"method": "magic"}, {"criterion": "magic"}, {"method": "tan"}, {"required": "A -> Q"},
                     {"required": "A -> B", "forbidden": "A -> B"}, {"max_parents": -1},
                     {"equivalent_sample_size": 0}):  # fmt: skip
        with pytest.raises(UsageError):
            likely.Network.learn_structure(DATA, **settings)
    with pytest.raises(DataError, match="no rows"):
        net.fit({"A": [], "B": []})
    with pytest.raises(DataError, match="weights"):
        net.fit(DATA, weights=[1, -1, 1])


@pytest.mark.parametrize(
    "text",
    [
        "", "network n {", "variable a { type discrete [ 2 ] { x, y }; }", "probability ( a ) { table 1.0; }",
        "variable a { type discrete [ 2 ] { x, y }; } probability ( a ) { table 0.5; }",
        "variable a { type discrete [ 2 ] { x, y }; } probability ( a ) { table 0.9, 0.9; }",
        "variable a { type discrete [ 2 ] { x, y }; } probability ( a ) { table nan, 1.0; }",
        "variable a { type discrete [ 2 ] { x, y }; } probability ( a | b ) { (x) 0.5, 0.5; }",
        "variable a { type continuous; } probability ( a ) { table 1.0; }",
    ],
)  # fmt: skip
def test_a_bad_bif_file_is_refused(text, tmp_path):
    path = tmp_path / "n.bif"
    path.write_text(text)
    with pytest.raises(DataError):
        likely.Network.from_bif(path)


def test_a_file_that_is_not_there_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        likely.Network.from_bif(tmp_path / "none.bif")


def test_structure_over_numbers_and_categories_never_points_from_a_number_to_a_category():
    rng = np.random.default_rng(0)
    k = rng.integers(0, 2, 500)
    data = {"x": k + rng.normal(size=500) * 0.2, "k": np.where(k, "b", "a").tolist()}
    for method in ("hill-climb", "chow-liu"):
        assert likely.Network.learn_structure(data, method=method).arcs == [("k", "x")]


def test_the_arcs_of_another_structure_cannot_be_added():
    one = likely.Network("A -> B").fit(DATA)
    with pytest.raises(DataError, match="different arcs"):
        one + likely.Network("B -> A").fit(DATA)


@pytest.mark.parametrize("value", ["abc", None, float("nan"), float("inf")])
def test_an_intervention_on_a_number_needs_a_finite_number(value):
    net = likely.Network("A -> x").fit({"A": ["u", "v", "u", "v"], "x": [1.5, 2.5, 1.25, 2.75]})
    with pytest.raises(DataError, match=r"'x'.*no finite number"):
        net.do({"x": value})


def test_an_intervention_at_random_needs_probabilities():
    for shares in ({"t": float("nan"), "f": 1.0}, {"t": "half", "f": 0.5}):
        with pytest.raises(DataError, match="no finite number"):
            sprinkler().do(S=shares)


@pytest.mark.parametrize("number", [-3, 0, 10**9])
def test_a_hidden_node_of_too_few_or_too_many_values_is_refused_with_their_number(number):
    with pytest.raises(UsageError, match=f"'H' has {number:,} values"):
        likely.Network("H -> A", hidden={"H": number})


@pytest.mark.parametrize("settings", [{"max_iter": 0}, {"n_init": 0}, {"tol": float("nan")}])
def test_settings_of_em_without_meaning_are_refused(settings):
    with pytest.raises(UsageError, match=next(iter(settings))):
        likely.Network("A -> B").fit({"A": ["x", None, "y"], "B": ["u", "v", "v"]}, **settings)


def test_a_picture_with_an_unknown_target_is_refused():
    with pytest.raises(UsageError, match="'Wet' is not in the network"):
        sprinkler().svg(target="Wet")


def test_rows_that_allow_many_cells_are_warned_of_before_em_begins(monkeypatch):
    monkeypatch.setattr(table_em, "MOST_OF_GROUP", 1)
    monkeypatch.setattr(em_fit, "MANY_CELLS", 10)
    data = {name: [None if i % 3 == k else v for i, v in enumerate(column)]
            for k, (name, column) in enumerate(sprinkler().sample(60, seed=1).items())}  # fmt: skip
    with pytest.warns(LikelyWarning, match=r"goes through \d+ cells.*rows lack.*largest table, over 3 nodes.*8 cells"):
        likely.Network("C -> S, C -> R, S -> W, R -> W").fit(data)
    monkeypatch.setattr(limits, "MOST_OF_TREE", 4)
    with pytest.raises(ResourceError, match=r"16 cells .* in all"):
        likely.Network("C -> S, C -> R, S -> W, R -> W", smoothing=1).fit(data)


def test_a_junction_tree_whose_tables_do_not_fit_together_is_refused(monkeypatch):
    monkeypatch.setattr(limits, "MOST_OF_TREE", 15)
    with pytest.raises(ResourceError, match=r"16 cells .* in all"):
        sprinkler().log_likelihoods({"C": ["t"], "S": [None], "R": [None], "W": ["t"]})
    assert sprinkler().query("C", {"W": "t"})


def test_a_node_asked_for_twice_is_named():
    with pytest.raises(UsageError, match="'C' is asked for twice"):
        sprinkler().query(["C", "S", "C"])


@pytest.mark.parametrize("table", [[[0.5, 0.5], [0.9]], [["a", "b"], ["c", "d"]], None])
def test_tables_that_are_no_arrays_of_numbers_are_refused_with_their_node(table):
    with pytest.raises(UsageError, match=r"table of node 'B' must hold probabilities in the shape \(2, 2\)"):
        likely.Network.from_tables("A -> B", {"A": "xy", "B": "uv"}, {"A": [0.5, 0.5], "B": table})


def test_a_fraction_is_no_number_of_rows():
    with pytest.raises(UsageError, match=r"n=1\.5 is no number of rows"):
        sprinkler().sample(1.5)


def test_a_quoted_word_of_a_bif_file_may_look_like_a_comment(tmp_path):
    values = ("https://a.b/c", "x /* y */ z")
    net = likely.Network.from_tables("A", {"A": values}, {"A": [0.25, 0.75]})
    net.to_bif(tmp_path / "n.bif")
    assert likely.Network.from_bif(tmp_path / "n.bif").table("A") == {(): {values[0]: 0.25, values[1]: 0.75}}
    text = net.bif().replace("variable", '// "a comment\n/* and another\n" */ variable', 1)
    (tmp_path / "n.bif").write_text(text)
    assert likely.Network.from_bif(tmp_path / "n.bif").columns["A"].values == values


def test_a_column_that_the_table_lacks_is_summed_out_with_a_warning():
    net, data = sprinkler(), sprinkler().sample(50, seed=1)
    with pytest.warns(LikelyWarning, match=r"no value of 'S', 'R': summed out"):
        found = net.log_likelihoods({"C": data["C"], "W": data["W"]})
    assert found[0] == pytest.approx(net.log_evidence({"C": data["C"][0], "W": data["W"][0]}))
    with pytest.raises(DataError, match=r"a value of no node.*name its columns"):
        net.log_likelihood({"cloudy": data["C"]})


def test_probabilities_that_do_not_sum_to_one_are_named_with_their_sum():
    with pytest.raises(UsageError, match=r"node 'B' given A='y' sum to 0\.9 instead of 1"):
        likely.Network.from_tables("A -> B", {"A": "xy", "B": "uv"}, {"A": [0.5, 0.5], "B": [[0.5, 0.5], [0.5, 0.4]]})
    with pytest.raises(UsageError, match=r"node 'A' sum to 2 instead of 1"):
        likely.Network.from_tables("A", {"A": "xy"}, {"A": [1, 1]})


def test_a_table_of_a_node_that_is_not_in_the_network_is_refused():
    with pytest.raises(UsageError, match=r"'B' has a table, but is not in the network.*'A -> B, B'"):
        likely.Network.from_tables("A", {"A": "xy", "B": "uv"}, {"A": [0.5, 0.5], "B": [0.5, 0.5]})
    with pytest.raises(UsageError, match=r"'B' has values, but is not in the network"):
        likely.Network.from_tables("A", {"A": "xy", "B": "uv"}, {"A": [0.5, 0.5]})


def test_a_hidden_node_that_the_data_have_is_named_as_such():
    with pytest.raises(DataError, match=r"'B' is declared as hidden, but the data have a column 'B'.*leave it out of hidden="):
        likely.Network("A -> B", hidden={"B": 2}).fit(DATA)
    some = {"A": ["x", "y", "x"], "B": ["u", "v", None]}  # partly observed: the values are named
    assert likely.Network("A -> B", hidden={"B": ["u", "v"]}).fit(some).query("B")["u"] > 0.3


def test_rows_that_cannot_be_are_named_where_cells_are_filled_in():
    net = sprinkler()
    data = {"C": [None, "t", None], "S": ["f", "f", "f"], "R": ["f", "t", "f"], "W": ["t", "t", "t"]}
    with pytest.warns(LikelyWarning, match=r"2 rows \(1, 3\) have probability zero.*smoothing above 0"):
        assert net.complete(data)["C"] == [None, "t", None]
    with pytest.raises(DataError, match=r"2 rows \(1, 3\) have probability zero.*leave such rows out"):
        net.posterior(data, "C")
    data = {"A": list("uuvv"), "B": list("pppq"), "x": [1.5, 2.5, 3.5, 7.25]}
    mixed = likely.Network("A -> x, B -> A", smoothing=0).fit(data)
    mixed = mixed.do(A="u")
    with pytest.warns(LikelyWarning, match="row 2 has probability zero"):
        done = mixed.complete({"A": ["u", "v"], "B": ["p", None], "x": [None, None]})
    assert done["x"][0] == pytest.approx(2.0)
