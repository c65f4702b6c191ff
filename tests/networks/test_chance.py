"""What falls together by chance makes no arc: single rows, identifiers, constants; what depends is found."""

import numpy as np
import pytest

import likely
from likely.errors import DataError, LikelyWarning
from likely.networks._chance_gain import chance_gain
from likely.networks._gaussian_scores import GaussianScores
from likely.networks._scores import FamilyScores
from likely.networks.rows import Wanted, read_rows

N = 1_000


def learned(data, **settings):
    return likely.Network.learn_structure(data, **settings).arcs


def levels(rng, number):
    return [f"s{v}" for v in rng.integers(0, number, N)]


@pytest.mark.parametrize("score", ["qnml", "bic", "bdeu", "aic", "k2"])
@pytest.mark.parametrize("seed", range(3))
def test_values_of_single_rows_explain_no_number(score, seed):
    rng = np.random.default_rng(seed)
    shop = [f"s{min(v, 10**6)}" for v in rng.zipf(1.5, N)]
    assert learned({"shop": shop, "price": rng.normal(size=N)}, score=score) == []
    many_zeros = np.where(rng.random(N) < 0.9, 0.0, np.round(rng.lognormal(size=N), 2))
    assert learned({"shop": shop, "price": many_zeros}, score=score) == []


def test_numbers_of_single_rows_alone_score_as_without_their_parents():
    rng = np.random.default_rng(0)
    x = rng.normal(size=50)
    rows = read_rows({"id": [f"i{i}" for i in range(50)], "x": x}, Wanted())
    plain = -25 * (np.log(2 * np.pi * x.var()) + 1)
    assert FamilyScores(rows, "loglik")([(1, ()), (1, (0,))]) == pytest.approx([plain, plain])


@pytest.mark.parametrize("rows_a_level", [1.5, 2, 3, 5, 8, 20])
@pytest.mark.parametrize("seed", range(2))
def test_levels_of_a_few_rows_get_no_arcs(rows_a_level, seed):
    rng = np.random.default_rng(seed)
    number = int(N / rows_a_level)
    data = {"a": rng.choice(["x", "y"], N, p=[0.7, 0.3]), "c": rng.choice(list("pqrst"), N), "shop": levels(rng, number),
            "other": levels(rng, number), "x": rng.normal(size=N)}  # fmt: skip
    keep = dict.fromkeys(["shop", "other"], "categorical")
    assert learned(data, kinds=keep) == []


def test_what_levels_of_a_few_rows_decide_is_found():
    rng = np.random.default_rng(9)
    level = rng.integers(0, 333, N)
    names, of_level, number = [f"z{v}" for v in level], rng.choice(["u", "v"], 333)[level], rng.normal(size=333)[level]
    assert len(learned({"zip": names, "kind": of_level})) == 1
    assert learned({"zip": names, "height": number}) == [("zip", "height")]
    few = level % 50
    noisy = rng.normal(size=50)[few] + 0.5 * rng.normal(size=N)
    assert learned({"zip": [f"z{v}" for v in few], "height": noisy}) == [("zip", "height")]


def test_dependences_between_exact_numbers_are_found():
    rng = np.random.default_rng(4)
    x = rng.normal(size=N)
    arcs = learned({"x": x, "y": 3 * x, "z": 3 * x + 0.01 * rng.normal(size=N), "apart": rng.normal(size=N)})
    assert {frozenset(arc) for arc in arcs} >= {frozenset("xy")}
    assert not any("apart" in arc for arc in arcs)


def test_the_gain_by_chance_is_that_of_shuffled_rows():
    rng = np.random.default_rng(0)
    for number, values in ((600, 2), (300, 3), (150, 20), (12, 5)):
        one, other = rng.integers(0, number, N), rng.integers(0, values, N)
        counts = [np.bincount(each).astype(float) for each in (one, other)]
        found = []
        for _ in range(200):
            table = np.zeros((number, values))
            np.add.at(table, (one, rng.permutation(other)), 1)
            whole = sum(float(c[c > 0] @ np.log(c[c > 0])) for c in (table.sum(0), table.sum(1)))
            found.append(table[table > 0] @ np.log(table[table > 0]) - whole + N * np.log(N))
        most = chance_gain(*counts)
        assert np.mean(found) < np.max(found) < most < np.mean(found) + 4 * np.sqrt(N / 2) + 0.02 * np.mean(found)


def test_shared_scatter_matrices_give_the_least_squares_of_each_family():
    rng = np.random.default_rng(1)
    data = {"k": rng.choice(["u", "v"], 80), "x": rng.normal(size=80), "y": rng.normal(size=80), "z": rng.normal(size=80)}
    data["z"] = data["z"] + data["x"] * np.where(data["k"] == "u", 2, -1)
    rows = read_rows(data, Wanted())
    scores = GaussianScores(rows)
    design = np.column_stack([np.ones(80), data["y"], data["x"]])
    rest = np.linalg.lstsq(design, data["z"], rcond=None)[1][0] / 80
    assert scores.log_likelihoods((), [(1, 0, 2)])[0] == pytest.approx(-40 * (np.log(2 * np.pi * rest) + 1), rel=1e-7)
    together = scores.log_likelihoods((0,), [(0, 2), (1, 2), (0, 1)])
    apart = [GaussianScores(rows).log_likelihoods((0,), [each])[0] for each in ((0, 2), (1, 2), (0, 1))]
    assert together == pytest.approx(apart, rel=1e-12)
    scores._gaps = True  # as where numbers are missing: each family from its own rows
    assert scores.log_likelihoods((0,), [(0, 2), (1, 2), (0, 1)]) == pytest.approx(apart, rel=1e-9)
    assert together[0] > together[1] + 20


def test_columns_that_name_rows_are_left_out_with_a_warning_that_names_them_and_the_remedy():
    rng = np.random.default_rng(0)
    a = rng.choice(["x", "y"], N)
    data = {"a": a, "b": np.where(rng.random(N) < 0.1, "x", a), "id": [f"i{i}" for i in range(N)], "number": np.arange(N)}
    with pytest.warns(LikelyWarning, match=r"'id' \(an ID or a name: 1,000 different.*'number' \(an ID.*kinds=\{'id': 'cat"):
        net = likely.Network.learn_structure(data, forbidden="id -> a")
    assert net.nodes == ("a", "b")
    assert len(net.arcs) == 1
    kept = likely.Network.learn_structure(data, kinds={"id": "categorical", "number": "gaussian"}, method="chow-liu")
    assert kept.nodes == tuple(data)


def test_constant_columns_are_left_out_with_a_warning():
    data = {"a": list("xyxy"), "b": list("uvuv"), "c": list("kkkk"), "d": [0.5] * 4}
    with pytest.warns(LikelyWarning, match=r"'c' \(only one value, 'k'\), 'd' \(only one value, 0\.5\).*values="):
        assert likely.Network.learn_structure(data).nodes == ("a", "b")
    assert likely.Network.learn_structure(data | {"d": list("ghgh")}, values={"c": ["k", "l"]}).nodes == tuple("abcd")
    with pytest.raises(DataError, match="'c' has only one value"):
        likely.Network.learn_structure({"a": list("xyxy"), "c": list("kkkk")})


def test_a_classifier_leaves_out_columns_that_name_rows():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    y = rng.choice(["no", "yes"], 200)
    frame = pd.DataFrame({"id": [f"i{i}" for i in range(200)], "x": np.where(rng.random(200) < 0.1, "q", y)})
    with pytest.warns(LikelyWarning, match="'id'"):
        model = likely.NetworkClassifier().fit(frame, y)
    assert model.network_.nodes == ("class", "x")
    assert model.score(frame, y) > 0.85
    assert "id" in likely.NetworkClassifier(kinds={"id": "categorical"}).fit(frame, y).network_.nodes
