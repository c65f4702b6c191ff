"""Networks as an estimator, on the command line and as pictures."""

import csv
import itertools
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import likely
from commands import TENNIS, document, refused, run
from likely import NetworkClassifier
from likely.errors import UsageError
from likely.plots.network_drawing import DrawnNode, _Layout, network_svg
from networks_help import random_network, sprinkler


@parametrize_with_checks([NetworkClassifier(), NetworkClassifier("naive-bayes")])
def test_it_passes_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("method", ["tan", "naive-bayes", "k-dependence", "hill-climb"])
def test_every_structure_classifies_iris(method):
    X, y = load_iris(return_X_y=True)
    assert cross_val_score(NetworkClassifier(method), X, y, cv=5).mean() > 0.92


def test_method_and_criterion_are_one_word_in_function_estimator_and_command(table, monkeypatch):
    data = sprinkler().sample(300, seed=2)
    with pytest.raises(UsageError, match="criterion 'magic' is not known"):
        likely.Network.learn_structure(data, criterion="magic")
    made = NetworkClassifier(method="hill-climb", criterion="k2")
    assert clone(made).get_params().items() >= {"method": "hill-climb", "criterion": "k2"}.items()
    seen, true = [], likely.Network.learn_structure
    monkeypatch.setattr(likely.Network, "learn_structure", lambda rows, **given: seen.append(given) or true(rows, **given))
    made.fit(np.array([data["C"], data["S"]], dtype=object).T, data["W"])
    run("network", "learn", table, "--method", "hill-climb", "--criterion", "k2")
    run("network", "learn", table, "--method", "hill-climb", "--score", "k2")  # the former name
    assert [(given["method"], given["criterion"]) for given in seen] == [("hill-climb", "k2")] * 3


def test_former_names_of_method_and_criterion_still_work_with_a_warning():
    data = sprinkler().sample(300, seed=2)
    with pytest.warns(FutureWarning, match="score= is now called criterion=") as said:
        found = likely.Network.learn_structure(data, score="k2")
    assert said[0].filename == __file__
    assert found.arcs == likely.Network.learn_structure(data, criterion="k2").arcs
    with pytest.warns(FutureWarning, match="criterion="), pytest.raises(UsageError, match="criterion 'magic'"):
        likely.Network.learn_structure(data, score="magic")
    with pytest.warns(FutureWarning, match="structure= is now called method="):
        made = NetworkClassifier(structure="naive-bayes")
    assert made.method == "naive-bayes"
    assert "structure" not in made.get_params()
    assert clone(made).method == "naive-bayes"
    assert made.set_params(method="tan").method == "tan"


def test_a_classifier_predicts_what_its_network_answers():
    net = random_network(2, nodes=6, density=0.8)
    data = net.sample(800, seed=1)
    names = [n for n in data if n != "n3"]
    X = np.array([data[n] for n in names], dtype=object).T
    found = NetworkClassifier("k-dependence", k=2).fit(X, data["n3"])
    row = {f"x{j}": X[0, j] for j in range(len(names))}
    expected = found.network_.query("class", row)
    np.testing.assert_allclose(found.predict_proba(X[:1])[0], [expected[c] for c in found.classes_], atol=1e-12)
    missing = X[:1].copy()
    missing[0, 2] = None
    row = {name: value for name, value in row.items() if name != "x2"}
    expected = found.network_.query("class", row)
    np.testing.assert_allclose(found.predict_proba(missing)[0], [expected[c] for c in found.classes_], atol=1e-12)


def test_naive_bayes_as_a_network_predicts_what_the_model_predicts():
    model = likely.learn(TENNIS, target="PlayTennis", plain=True, smoothing=1)
    net = likely.Network.of_naive_bayes(model)
    assert all(arc[0] == "PlayTennis" for arc in net.arcs)
    day = {"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"}
    answer = net.query("PlayTennis", day)
    np.testing.assert_allclose([answer[c] for c in model.classes], model.posterior([day]).probabilities[0], atol=1e-12)
    table = {"x": [1.0, 2.0, 3.5, 4.0], "k": ["a", "b", "a", "a"], "y": ["p", "q", "p", "q"]}
    numbers = likely.learn(table, target="y", plain=True)
    row = {"x": 2.0, "k": "a"}
    answer = likely.Network.of_naive_bayes(numbers).query("y", row)
    np.testing.assert_allclose([answer[c] for c in numbers.classes], numbers.posterior([row]).probabilities[0], atol=1e-12)
    with pytest.raises(likely.errors.UsageError, match="plain=True"):
        likely.Network.of_naive_bayes(likely.learn({"x": list("abab") * 5, "y": list("pqpq") * 5}, target="y"))


# ---------------------------------------------------------------- command line


@pytest.fixture
def table(tmp_path):
    data = sprinkler().sample(2_000, seed=1)
    path = tmp_path / "lawn.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(data)
        writer.writerows(zip(*data.values(), strict=True))
    return str(path)


def test_learn_query_and_draw(table, tmp_path):
    model, picture = str(tmp_path / "lawn.likely"), str(tmp_path / "lawn.svg")
    made = document("network", "learn", table, "--arcs", "C -> S, C -> R, S -> W, R -> W", "-o", model, "--picture", picture)
    assert made["rows"] == 2_000
    assert ["S", "W"] in made["arcs"]
    net = likely.Network.load(model)
    asked = document("network", "query", model, "S", "R", "--given", "W=t")
    assert asked["posterior"]["S"] == pytest.approx(net.query("S", {"W": "t"}))
    assert asked["log_evidence"] == pytest.approx(net.log_evidence({"W": "t"}))
    done = document("network", "query", model, "C", "--do", "S=t")
    assert done["posterior"]["C"] == pytest.approx(net.query("C"))
    best = document("network", "query", model, "--most-probable", "--given", "W=t")
    assert best["most_probable"] == net.most_probable({"W": "t"})
    assert "<svg" in run("network", "draw", model).stdout
    ET.parse(picture)
    assert "0." in run("network", "query", model, "S").stdout


def test_inspect_shows_a_network_file(table, tmp_path):
    path = str(tmp_path / "n.likely")
    run("network", "learn", table, "--arcs", "C -> S, C -> R, S -> W, R -> W", "-o", path)
    shown = document("inspect", path)
    assert shown["rows"] == 2_000
    assert ["S", "W"] in shown["arcs"]
    assert len(shown["digest"]) == 64
    rows = document("inspect", path, "--column", "W")["tables"]["W"]
    assert rows[0].keys() == {"S", "R", "W", "probability"}
    assert sum(row["probability"] for row in rows) == pytest.approx(4)
    assert "4 nodes, 4 arcs" in run("inspect", path).stdout
    assert "Q" in run("inspect", path, "--column", "Q", expect=2).stderr


def test_structure_bif_and_hidden_nodes_on_the_command_line(table, tmp_path):
    bif = str(tmp_path / "lawn.bif")
    made = document("network", "learn", table, "--forbidden", "W -> S, W -> R", "-o", bif)
    assert {frozenset(a) for a in made["arcs"]} == {frozenset(a) for a in ("CS", "CR", "SW", "RW")}
    assert document("network", "query", bif, "W")["posterior"]["W"]["t"] == pytest.approx(0.6471, abs=0.05)
    hidden = document("network", "learn", table, "--arcs", "H -> S, H -> R, S -> W, R -> W", "--hidden", "H=2")
    assert hidden["rounds"] > 1
    tan = document("network", "learn", table, "--method", "tan", "--target", "W")
    assert ["W", "C"] in tan["arcs"]


def test_bad_calls_have_their_exit_codes(table, tmp_path):
    run("network", "learn", table, "--arcs", "C -> S, S -> C", expect=2)
    run("network", "learn", table, "--hidden", "H=2", expect=2)
    run("network", "learn", table, "--arcs", "C -> Q", expect=3)
    run("network", "learn", table, "-o", str(tmp_path / "x.csv"), expect=2)
    run("network", "query", table, "S", expect=4)
    model = str(tmp_path / "n.likely")
    run("network", "learn", table, "-o", model)
    run("network", "query", model, "S", "--given", "W", expect=2)
    run("network", "query", model, "S", "--given", "W=maybe", expect=3)
    run("network", "query", model, expect=2)


def test_a_naive_bayes_model_is_drawn(tmp_path):
    model = str(tmp_path / "m.likely")
    run("learn", TENNIS, "--target", "PlayTennis", "--plain", "-o", model)
    svg = run("network", "draw", model).stdout
    assert 'class="lk-class"' in svg
    assert svg.count('class="lk-arc"') == 4


# ---------------------------------------------------------------- pictures


def test_a_picture_is_sound_accessible_and_escapes_names():
    net = likely.Network([("a<b", 'c"d'), ('c"d', "e&f")]).fit({"a<b": ["x", "y"], 'c"d': ["x", "y"], "e&f": ["x", "y"]})
    root = ET.fromstring(net.svg('A "title" & more'))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == 'A "title" & more'
    tips = [g.find("{*}title").text for g in root.iter("{http://www.w3.org/2000/svg}g")]
    assert any("P(c\"d | a<b)" in tip for tip in tips)
    assert "Network(3 nodes" in repr(net)


@pytest.mark.parametrize("seed", range(6))
def test_no_two_nodes_overlap_and_parents_stand_above(seed):
    net = random_network(seed, nodes=9, density=0.35)
    nodes = [DrawnNode(name * (1 + i % 3)) for i, name in enumerate(net.nodes)]
    names = {old: node.name for old, node in zip(net.nodes, nodes, strict=True)}
    arcs = [(names[a], names[b]) for a, b in net.arcs]
    layout = _Layout({node.name: node.width for node in nodes}, arcs)
    assert all(layout.layer[a] < layout.layer[b] for a, b in arcs)
    for row in layout.rows:
        for left, right in itertools.pairwise(row):
            gap = layout.x[right] - layout.x[left] - (layout.widths[left] + layout.widths[right]) / 2
            assert gap > 5
    ET.fromstring(network_svg(nodes, arcs, "t"))


def test_em_on_the_command_line_is_bounded_and_shows_each_iteration(table, monkeypatch):
    given = ("network", "learn", table, "--arcs", "H -> S, H -> R", "--hidden", "H=2", "--max-iter", "12", "--tol", "-1")
    assert document(*given)["rounds"] == 12
    monkeypatch.setenv("LIKELY_PROGRESS", "json")
    assert "EM iteration 52, log-likelihood with prior" in run(*given).stderr  # five starts of 10, and the best goes on


@pytest.mark.parametrize("more", [
    ["--hidden", "H=2.7"], ["--hidden", "H=1e12"], ["--ignore", "W"], ["--required", "S -> R"], ["--forbidden", "S -> R"],
    ["--max-parents", "1"], ["--method", "tan"], ["--target", "Q"],
])  # fmt: skip
def test_options_without_effect_or_meaning_are_refused(table, more):
    hidden = [] if more[0] == "--hidden" else ["--hidden", "H=2"]
    found = refused("network", "learn", table, "--arcs", "H -> S, H -> R", *hidden, *more, code=2)
    assert more[0].removeprefix("--") in found


def test_an_intervention_without_a_number_is_bad_data(tmp_path):
    path = str(tmp_path / "n.likely")
    likely.Network("A -> x").fit({"A": ["u", "v", "u", "v"], "x": [1.5, 2.5, 1.25, 2.75]}).save(path)
    assert "'abc'" in refused("network", "query", path, "A", "--do", "x=abc", code=3)
    assert "'Q'" in refused("network", "draw", path, "--target", "Q", code=2)
