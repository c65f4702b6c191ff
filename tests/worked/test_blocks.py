"""Columns modelled together: joint tables, joint Gaussians, and a Gaussian for every value of a category."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import likely
from likely.errors import UsageError
from strategies import quietly, same

PAIRS = {
    "a": ["x", "x", "z", "z", "x", None],
    "b": ["u", "v", "u", "u", "u", "v"],
    "y": [1, 1, 1, 2, 2, 2],
}


def pair_shares(smoothing=1.0):
    """P(a, b | class) by hand; the row (?, v) is shared out between x and z, which in class 2 are alike."""
    counts = {
        1: {("x", "u"): 1, ("x", "v"): 1, ("z", "u"): 1},
        2: {("z", "u"): 1, ("x", "u"): 1, ("x", "v"): 0.5, ("z", "v"): 0.5},
    }
    whole = {k: sum(c.values()) + 4 * smoothing for k, c in counts.items()}
    return {k: {(a, b): (counts[k].get((a, b), 0) + smoothing) / whole[k] for a in "xz" for b in "uv"} for k in (1, 2)}


def test_a_joint_table_marginalises_missing_coordinates():
    model = quietly(likely.learn, PAIRS, "y", joint=[("a", "b")])
    share = pair_shares()
    rows = [{"a": "x", "b": "u"}, {"a": "x", "b": None}, {"a": None, "b": "v"}, {"a": None, "b": None}]
    expected = [[0.5 * math.fsum(p for (a, b), p in share[k].items() if row["a"] in (a, None) and row["b"] in (b, None))
                 for k in (1, 2)] for row in rows]  # fmt: skip
    np.testing.assert_allclose(np.exp(model.posterior(rows).log_joint), expected, rtol=1e-12)


def test_an_unseen_coordinate_has_its_imagined_rows_whichever_column_it_is_in():
    model = quietly(likely.learn, PAIRS, "y", joint=[("a", "b")])
    rows = [{"a": "new", "b": "u"}, {"a": "x", "b": "new"}, {"a": "new", "b": None}, {"a": None, "b": "new"}]
    one, two = 1 / 7, 1 / 7  # a cell that no row shows, in class 1 and class 2
    expected = 0.5 * np.array([[one, two], [one, two], [2 * one, 2 * two], [2 * one, 2 * two]])
    np.testing.assert_allclose(np.exp(model.posterior(rows).log_joint), expected, rtol=1e-12)


def test_the_order_of_the_columns_of_a_block_does_not_matter_and_such_models_merge():
    one = likely.learn(PAIRS, "y", joint=[("a", "b")])
    two = likely.learn(PAIRS, "y", joint=[("b", "a")])
    rows = [{"a": a, "b": b} for a in ("x", "z", None, "new") for b in ("u", "v", None, "new")]
    np.testing.assert_allclose(one.posterior(rows).log_joint, two.posterior(rows).log_joint, rtol=1e-12)
    assert (one + two).tally == (one + one).tally
    assert (two + one).tally == (two + two).tally


def test_blocks_of_numbers_in_another_order_merge_as_well():
    rng = np.random.default_rng(3)
    data = {n: rng.normal(size=30) for n in "abc"} | {"c0": ["p", "q", "r"] * 10, "y": [0, 1] * 15}
    other = {n: data[n] for n in ("c", "y", "c0", "b", "a")}
    for family in (likely.Joint(), likely.Joint(tie="class")):
        once = likely.learn(data, "y", families=family)
        merged = once + likely.learn(other, "y", families=family)
        same(merged.tally, (once + once).tally)
    counts = {"a": [1, 2, 3, 4], "b": [0, 0, 5, 1], "y": [0, 0, 1, 1]}
    words = likely.learn(counts, "y", families={("a", "b"): "multinomial"})
    swapped = likely.learn(counts, "y", families={("b", "a"): "multinomial"})
    assert (words + swapped).tally == (words + words).tally


def test_blocks_in_another_order_merge():
    data = {"a": ["x", "z", "x", "z"], "n": [1.0, 2.0, 4.0, 8.0], "b": ["u", "v", "v", "u"], "y": [0, 0, 1, 1]}
    one, two = likely.learn(data, "y"), likely.learn({n: data[n] for n in ("y", "b", "n", "a")}, "y")
    assert (one + two).tally == (one + one).tally


def test_a_joint_gaussian_marginalises_missing_numbers():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3))
    y = np.array([0, 1] * 20)
    model = likely.learn({f"x{j}": X[:, j] for j in range(3)} | {"y": y}, "y", families=likely.Joint())
    for seen in ([0], [1], [2], [0, 2], [1, 2], [0, 1, 2]):
        row = {f"x{j}": (0.3 * j if j in seen else None) for j in range(3)}
        x = [0.3 * j for j in seen]
        expected = [
            math.log(0.5)
            + multivariate_normal(X[y == k].mean(0)[seen], np.cov(X[y == k].T, bias=True)[np.ix_(seen, seen)]).logpdf(x)
            for k in (0, 1)
        ]
        np.testing.assert_allclose(model.posterior(row).log_joint[0], expected, rtol=1e-9)


MIXED = {
    "c": ["p", "p", "p", "q", "q", "q", "p", "p", "p", "p"],
    "x": [1.0, 2.0, 4.0, 10.0, 11.0, 15.0, 3.0, 5.0, 6.0, 9.0],
    "y": ["a"] * 6 + ["b"] * 4,
}


def mixed_by_hand(row, smoothing=1.0):
    """P(class) P(c | class) N(x | class, c), with the class's own Gaussian over all values where c was never seen."""
    joint = []
    for label, share in (("a", 0.6), ("b", 0.4)):
        xs = {v: [x for c, x, y in zip(*MIXED.values(), strict=True) if y == label and c == v] for v in "pq"}
        every = [x for part in xs.values() for x in part]
        pooled = {v: _pooled(v) for v in "pq"}
        term = 0.0
        for v in ("p", "q") if row["c"] is None else (row["c"],):
            n = len(xs.get(v, []))
            own = xs.get(v) or every
            variance = np.var(xs[v]) if n > 1 else (pooled[v] if v in pooled else np.var(every))
            density = 1.0 if row["x"] is None else norm(np.mean(own), math.sqrt(variance)).pdf(row["x"])
            term += (n + smoothing) / (len(every) + 2 * smoothing) * density
        joint.append(share * term)
    return joint


def _pooled(v):
    parts = [[x for c, x, y in zip(*MIXED.values(), strict=True) if y == k and c == v] for k in "ab"]
    spread = sum(sum((x - np.mean(part)) ** 2 for x in part) for part in parts if part)
    return spread / sum(map(len, parts))


@pytest.mark.parametrize("c", ["p", "q", None, "never"])
@pytest.mark.parametrize("x", [3.5, 12.0, None])
def test_a_gaussian_for_each_value_sums_out_a_missing_or_an_unseen_category(c, x):
    model = likely.learn(MIXED, "y", joint=[("c", "x")])
    row = {"c": c, "x": x}
    np.testing.assert_allclose(np.exp(model.posterior(row).log_joint[0]), mixed_by_hand(row), rtol=1e-9)
    flags = model.explain(row).entries[0].flags
    assert ("missing" in flags) == (None in row.values())
    assert ("unseen" in flags) == (c == "never")


def test_a_value_that_one_class_never_shows_has_that_classs_own_gaussian():
    """Class b has no q: with imagined rows its mean there is that of its rows, not zero."""
    rows = likely.learn(MIXED, "y", joint=[("c", "x")]).parameters["c with x"]
    empty = next(r for r in rows if r["class"] == "b" and r["value"] == ("q",))
    assert empty["count"] == 0
    assert empty["mean"] == pytest.approx([np.mean([3, 5, 6, 9])])


def test_a_class_without_a_complete_row_of_a_block_is_filled_in_or_takes_the_estimate_of_all_rows():
    """Of class m each column was seen once, of class n only one: nothing says where the other lies."""
    data = {
        "a": [1.0, 3.0, 2.0, None, 5.0, None],
        "b": [2.0, 1.0, 7.0, 4.0, None, 9.0],
        "y": ["k", "k", "k", "m", "m", "n"],
    }
    model = quietly(likely.learn, data, "y", families=likely.Joint())
    rows = {r["class"]: r for r in model.parameters["a with b"]}
    assert rows["m"]["count"] == pytest.approx(2.0)
    assert rows["m"]["mean"] == pytest.approx([5.0, 4.0], abs=1e-3)
    assert rows["n"]["count"] == 0


def test_a_block_whose_rows_all_miss_a_cell_contributes_nothing():
    model = quietly(likely.learn, {"a": ["x", None], "b": [None, "u"], "y": [0, 1]}, "y", joint=[("a", "b")])
    for row in ({"a": "x", "b": "u"}, {"a": None, "b": "u"}, {"a": None, "b": None}):
        np.testing.assert_allclose(model.posterior(row).probabilities, [[0.5, 0.5]])


GAPPY = {
    "c": ["p", "q", "p", "q", "p", "q", "p", "q", "p", "q", "q", "p"],
    "d": ["u", "u", "v", "v", "u", "v", "v", "u", "u", "v", "u", "v"],
    "x": [1.0, 2.5, 4.0, 8.0, 3.0, 5.5, 7.0, 6.0, 2.0, 9.0, 1.5, 3.5],
    "z": [2.0, 1.0, 4.5, 3.0, 9.0, 5.0, 6.5, 7.0, 8.0, 1.5, 2.5, 4.0],
    "y": ["a", "b"] * 6,
}


@pytest.mark.parametrize("block", [("c", "d"), ("x", "z"), ("c", "x"), ("x", "c", "z")])
@pytest.mark.parametrize("gap", [0, 1])
def test_a_part_that_misses_a_whole_column_of_a_block_counts_nothing_there(block, gap):
    """Whichever kind the column turns out to be, and in whichever order the parts are added; whole rows are counted."""
    lacking = {name: column[6:] for name, column in GAPPY.items()} | {block[gap]: [None] * 6}
    full = {name: column[:6] for name, column in GAPPY.items()}
    both = {name: [*full[name], *lacking[name]] for name in GAPPY}
    settings = {"joint": [block], "families": {n: "categorical" for n in "cd" if n not in block}}
    part, gone = (quietly(likely.learn, data, "y", **settings) for data in (full, lacking))
    whole = quietly(part.count, both)
    for model in (part + gone, gone + part, quietly(part.update, lacking)):
        same(model.tally, whole)
    same((whole - gone.tally).pruned(), part.tally)
    assert np.isfinite(gone.posterior(lacking).log_joint).all()


def test_a_value_that_only_incomplete_rows_of_a_block_show_stays_in_the_row_sample():
    """Nothing is counted of it, but it is a cell of a kept row: parts and whole keep the same rows."""
    whole = GAPPY | {"c": [*GAPPY["c"][:6], *[None] * 6], "d": [*GAPPY["d"][:6], *"uvwuvw"]}
    parts = [{name: column[a : a + 6] for name, column in whole.items()} for a in (0, 6)]
    one, two, both = (quietly(likely.learn, data, "y", joint=[("c", "d")]) for data in (*parts, whole))
    assert (one + two).tally.sample == both.tally.sample
    assert (both.tally - two.tally).pruned().sample == one.tally.sample


@pytest.mark.parametrize("joint", [("a", "b"), [("a", "a")], [("a", "b"), ("b", "c")]])
def test_blocks_that_make_no_sense_are_refused(joint):
    data = {n: ["x", "z"] for n in "abc"} | {"y": [0, 1]}
    with pytest.raises(UsageError):
        likely.learn(data, "y", joint=joint)


def test_a_column_cannot_be_counted_twice():
    with pytest.raises(UsageError, match="'a' is asked to be joint and categorical at once"):
        likely.learn(PAIRS, "y", families={("a", "b"): "joint", "a": "categorical"})


TIES = {None: None, "column": None, "class": "class", "both": "class"}  # of a column: of the covariance of its block


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("tie", TIES)
def test_the_tie_of_a_gaussian_in_a_joint_block_is_that_of_its_covariance(tie, plain):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 300)
    age = 40 + 5 * y + (2 + y) * rng.normal(size=300)
    data = {"age": age, "hours": age / 2 + rng.normal(size=300), "x": rng.normal(size=300), "risk": y}
    asked = {"families": {"age": likely.Gaussian(tie=tie)}, "joint": [("age", "hours")], "plain": plain}
    model = likely.learn(data, target="risk", **asked)
    expected = likely.learn(data, target="risk", families={("age", "hours"): likely.Joint(TIES[tie])}, plain=plain)
    assert model.blocks == expected.blocks
    np.testing.assert_array_equal(model.posterior(data).log_joint, expected.posterior(data).log_joint)
    assert "gaussian in a joint block as asked for" in str(model.schema)


@pytest.mark.parametrize(
    ("families", "said"),
    [
        ({"a": "gaussian:class", "b": "gaussian"}, "give all of them the same tie"),
        ({("a", "b"): likely.Joint("class"), "a": likely.Gaussian(variance=1.0)}, "'a' is asked to be joint and gaussian"),
        ({"a": likely.Gaussian(unbiased=True)}, "'a' is asked to be gaussian and joint at once"),
        ({"a": "poisson"}, "'a' is asked to be poisson and joint at once"),
        ({"c": "gaussian"}, "column 'c' has 'u' in row 1, which is not a number"),
    ],
)
def test_families_that_contradict_their_joint_block_are_refused(families, said):
    data = {"a": [1.0, 2.0, 4.0, 3.0], "b": [1.5, 2.0, 4.0, 3.0], "c": ["u", "v", "u", "w"], "y": [0, 1, 0, 1]}
    joint = [] if ("a", "b") in families else [("a", "b", "c")]
    with pytest.raises((UsageError, likely.errors.DataError), match=said):
        likely.learn(data, "y", families=families, joint=joint)


@pytest.mark.parametrize(
    "families", [{("a", "b"): "joint", ("b", "c"): "joint"}, {("a", "b"): "joint", ("b", "a"): likely.Joint("class")}]
)
def test_blocks_that_overlap_are_refused_by_name(families):
    data = {n: [1.0, 2.0, 4.0, 3.0] for n in "abc"} | {"y": [0, 1, 0, 1]}
    one, other = families
    reported = rf"column '[ab]' is asked to be in two blocks at once, \['{one[0]}', '{one[1]}'\] and \['{other[0]}', "
    with pytest.raises(UsageError, match=reported):
        likely.learn(data, "y", families=families)


@pytest.mark.parametrize("settings", [{}, {"plain": True}])
def test_parts_that_each_lack_another_column_of_a_block_add_up_to_the_whole(settings, tmp_path):
    whole = {"c": ["p", "q", "p", None], "x": [None, None, 4.5, 5.5], "y": ["a", "b", "a", "b"]}
    parts = [{name: column[i : i + 2] for name, column in whole.items()} for i in (0, 2)]
    parts[1]["c"] = [None, None]
    whole["c"] = ["p", "q", None, None]  # no row shows both: nothing is counted, but the kinds are known
    settings = settings | {"joint": [("c", "x")], "classes": ["a", "b"]}
    one, two = (quietly(likely.learn, part, "y", **settings) for part in parts)
    expected = quietly(one.count, whole)
    one.save(tmp_path / "one.likely")
    for made in (one + two, two + one, likely.load(tmp_path / "one.likely") + two, one.update(parts[1])):
        assert [(c.name, c.kind) for c in made.schema.columns] == [("c", "category"), ("x", "number")]
        assert made.schema == expected.schema
        np.testing.assert_array_equal(made.tally.classes, expected.classes)
        full = quietly(made.update, {"c": ["p", "q"], "x": [4.0, 5.0], "y": ["a", "b"]})
        assert full.tally.statistics[0].weight().sum() == 2
