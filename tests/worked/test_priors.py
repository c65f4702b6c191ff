"""Imagined rows: for each column, for the classes, by name; and what is left when every class has probability zero."""

import json
import math

import numpy as np
import pytest

import likely
from likely.errors import DataError, SchemaError, UsageError
from strategies import quietly

PAIRS = {
    "a": ["x", "x", "z", "z", "x", None],
    "b": ["u", "v", "u", "u", "u", "v"],
    "y": [1, 1, 1, 2, 2, 2],
}


BASE = {"c": ["p", "q", "p"], "x": [1.0, 2.0, 4.0], "y": ["a", "b", "b"]}


def test_priors_of_columns_are_named_like_columns_and_blocks():
    by_name = likely.learn(PAIRS, "y", joint=[("a", "b")], smoothing={"a with b": 0, "*": 0.5})
    by_tuple = likely.learn(PAIRS, "y", joint=[("a", "b")], smoothing={("a", "b"): 0, "*": 0.5})
    assert by_name == by_tuple
    assert {r["value"]: r["probability"] for r in by_name.parameters["a with b"]}["z", "v"] == 0.0
    apart = likely.learn(PAIRS, "y", smoothing={"a": 0, "*": 0.5})
    assert apart.parameters["a"] == likely.learn(PAIRS, "y", smoothing=0).parameters["a"]
    assert apart.parameters["b"] == likely.learn(PAIRS, "y", smoothing=0.5).parameters["b"]


@pytest.mark.parametrize(
    "change", [lambda m, s: likely.learn(PAIRS, "y", smoothing=s), lambda m, s: m.relearn(smoothing=s)]
)
def test_a_prior_for_a_column_that_is_not_there_is_refused(change):
    with pytest.raises(SchemaError, match="'colour'"):
        change(likely.learn(PAIRS, "y"), {"colour": 0})


def test_relearning_refuses_columns_and_families_that_were_not_counted():
    model = likely.learn(PAIRS | {"k": [1, 2, 3, 1, 2, 3]}, "y", families={"k": likely.Binomial(5)})
    with pytest.raises(SchemaError, match="'kk'"):
        model.relearn(families={"kk": likely.Binomial(5)})
    with pytest.raises(UsageError, match="learn anew"):
        model.relearn(families={"k": likely.Binomial(9)})
    with pytest.raises(UsageError, match="learn anew"):
        model.relearn(families={"a": "gaussian"})


def test_models_that_count_different_things_do_not_merge():
    data = {"k": [1, 2, 0, 1], "y": [0, 0, 1, 1]}
    families = ["gaussian", "poisson", likely.Binomial(5), likely.Binomial(9), "categorical"]
    models = [likely.learn(data, "y", families={"k": f}) for f in families]
    for i, one in enumerate(models):
        for j, two in enumerate(models):
            if i != j:
                with pytest.raises((UsageError, DataError)):
                    one + two
    tied = likely.learn(data, "y", families={"k": likely.Gaussian(tie="class")})
    assert (models[0] + tied).tally == (models[0] + models[0]).tally


@pytest.mark.parametrize("prior", [None, "estimated", 1.0, "1/2", likely.MEstimate(3), likely.Dirichlet(2)])
def test_the_class_prior_is_estimated_or_smoothed(prior):
    shares = likely.learn(PAIRS | {"y": [1, 1, 1, 1, 1, 2]}, "y", class_prior=prior, plain=True).class_prior
    extra = {None: 0, "estimated": 0, 1.0: 1, "1/2": 0.5}.get(prior if not hasattr(prior, "rows") else "", 1.5)
    extra = 1.0 if isinstance(prior, likely.Dirichlet) else extra
    np.testing.assert_allclose(shares, [(5 + extra) / (6 + 2 * extra), (1 + extra) / (6 + 2 * extra)])


@pytest.mark.parametrize(
    "prior", [{1: 0.9, 2: 0.1}, [0.9, 0.1], (0.9, 0.1), np.array([0.9, 0.1]), {np.int64(1): 0.9, np.int64(2): 0.1}]
)
def test_the_class_prior_may_be_given(prior, tmp_path):
    model = likely.learn(PAIRS, "y", class_prior=prior)
    assert model.class_prior.tolist() == [0.9, 0.1]
    assert likely.learn(PAIRS, "y").relearn(class_prior=prior) == model
    model.save(tmp_path / "m.likely")
    assert likely.load(tmp_path / "m.likely") == model


@pytest.mark.parametrize(
    "prior", [{1: 0.9, 2: 0.2}, [1.0], {1: 0.5, 3: 0.5}, [-0.5, 1.5], [math.nan, 1.0], -1.0, "half"]
)
def test_a_class_prior_that_is_none_is_refused(prior):
    with pytest.raises(UsageError):
        likely.learn(PAIRS, "y", class_prior=prior)


@pytest.mark.parametrize("smoothing", [-1, math.nan, math.inf, "much", None, [1.0], {"a": -1}])
def test_smoothing_that_is_none_is_refused(smoothing):
    with pytest.raises(UsageError):
        likely.learn(PAIRS, "y", smoothing=smoothing)


def test_values_that_a_prior_names_find_the_column_however_it_writes_them():
    data = {"c": [1, 2, 1, 2], "y": [0, 0, 1, 1]}
    texts = likely.MEstimate(4, p={"1": 0.75, "2": 0.25})
    numbers = likely.MEstimate(4, p={1: 0.75, 2: 0.25})
    one, two = (likely.learn(data, "y", families={"c": "categorical"}, smoothing={"c": p}) for p in (texts, numbers))
    assert one.parameters == two.parameters
    assert one.parameters["c"][0]["probability"] == pytest.approx((1 + 3) / (2 + 4))


def test_values_named_by_a_prior_come_and_go_with_it():
    data = {"c": ["p", "q", "p"], "y": [0, 1, 1]}
    named = likely.MEstimate(2, p={"p": 0.5, "q": 0.25, "r": 0.25})
    plain = likely.learn(data, "y", plain=True)
    model = likely.learn(data, "y", smoothing={"c": named}, plain=True)
    assert model.schema.by_name["c"].values == ("p", "q", "r")
    assert plain.relearn(smoothing={"c": named}) == model
    assert model.relearn(smoothing=1.0) == plain
    assert model.update(data).forget(data) == model
    assert model.parameters["c"][2]["probability"] == pytest.approx(0.25 * 2 / (1 + 2))


def test_when_every_class_has_probability_zero_the_prior_is_left_with_a_note_in_the_ledger():
    model = likely.learn({"c": ["p", "q", "q"], "d": ["u", "v", "v"], "y": ["a", "b", "b"]}, "y", smoothing=0)
    row = {"c": "p", "d": "v"}
    posterior = model.posterior(row)
    assert posterior.impossible.tolist() == [True]
    np.testing.assert_allclose(posterior.probabilities, [[1 / 3, 2 / 3]])
    assert posterior.labels.tolist() == ["b"]
    ledger = model.explain(row)
    assert ledger.label == "b"
    assert any("every class has probability 0" in note for note in ledger.notes)
    assert all("zero" in entry.flags for entry in ledger.entries)
    assert json.loads(json.dumps(ledger.to_dict(), allow_nan=False))["log_joint"] == [None, None]


def test_the_ledger_flags_unseen_missing_and_far_cells():
    model = quietly(likely.learn, BASE, "y", plain=True)
    flags = {e.name: e.flags for e in model.explain({"c": "never", "x": 1e6}).entries}
    assert flags == {"c": ("unseen",), "x": ("out of range",)}
    flags = {e.name: e.flags for e in model.explain({"c": None, "x": None}).entries}
    assert flags == {"c": ("missing",), "x": ("missing",)}
    assert all(e.evidence == (0.0, 0.0) for e in model.explain({"c": None, "x": None}).entries)


@pytest.mark.parametrize(
    "smoothing",
    [
        likely.MEstimate(2, p={"x": 0.5, "z": 0.5}),
        {"a": likely.Dirichlet({"x": 2.0, "z": 1.5, "w": 3.0}), "*": 0},
        {"b": likely.NormalInverseGamma(1.0, 2.0, 3.0, 4.0)},
        {"a": "1/3", "b": likely.MEstimate(2, p="background")},
    ],
)
def test_every_prior_survives_the_model_file(smoothing, tmp_path):
    model = likely.learn(PAIRS, "y", smoothing=smoothing)
    model.save(tmp_path / "m.likely")
    loaded = likely.load(tmp_path / "m.likely")
    assert loaded == model
    assert loaded.parameters == model.parameters


def test_k_of_n_may_be_called_by_k_alone():
    data = {"k": [3, 5, 1, 0], "n": [6] * 4, "y": ["a", "a", "b", "b"]}
    model = likely.learn(data, "y", families={"k": likely.Binomial("n")}, smoothing={"k": 0})
    assert model.parameters["k with n"][0]["probability"] == pytest.approx(8 / 12)
    smoothed = model.relearn(smoothing={"k": 1}, families={"k": likely.Binomial("n")})
    assert smoothed.parameters["k with n"][0]["probability"] == pytest.approx(9 / 14)


@pytest.mark.parametrize("trials", [-1, True, math.nan])
def test_a_number_of_trials_that_is_none_is_refused(trials):
    with pytest.raises(UsageError):
        likely.Binomial(trials)


def clouds(rows=30):
    rng = np.random.default_rng(4)
    numbers = rng.normal(size=(rows, 2)) @ [[1.0, 0.7], [0.0, 0.6]] + [5.0, -1.0]
    return {"a": numbers[:, 0], "b": numbers[:, 1], "c": ["p", "q", "p"] * (rows // 3), "y": [0, 1] * (rows // 2)}


def test_a_joint_gaussian_is_read_at_the_mode_of_the_normal_inverse_wishart_posterior():
    data, (m0, k0, a0, b0) = clouds(), (2.0, 3.0, 4.0, 5.0)
    prior = likely.NormalInverseGamma(m0, k0, a0, b0)
    x = np.column_stack([data["a"], data["b"]])[::2]
    n, d = x.shape
    mean = (k0 * m0 + n * x.mean(0)) / (k0 + n)
    nu = 2 * a0 + d - 1  # then every column alone has the inverse gamma of shape a0
    apart = x.mean(0) - m0
    scatter = (n * np.cov(x.T, bias=True)) + k0 * n / (k0 + n) * np.outer(apart, apart) + 2 * b0 * np.eye(d)
    for settings in ({"joint": [("a", "b")]}, {"families": {("a", "b"): likely.Joint()}}):
        model = likely.learn(data, "y", smoothing={("a", "b"): prior}, ignore=["c"], **settings)
        row = model.parameters["a with b"][0]
        np.testing.assert_allclose(row["mean"], mean)
        np.testing.assert_allclose(row["covariance"], scatter / (nu + n + d + 2))


@pytest.mark.parametrize("tie", [None, "class"])
def test_a_joint_gaussian_of_one_column_is_that_column_alone_under_any_prior(tie):
    data, prior = {name: clouds()[name] for name in ("a", "y")}, likely.NormalInverseGamma(2.0, 3.0, 4.0, 5.0)
    alone = likely.learn(data, "y", families={"a": likely.Gaussian(tie)}, smoothing=prior)
    joint = likely.learn(data, "y", families={("a",): likely.Joint(tie)}, smoothing=prior)
    np.testing.assert_allclose(joint.posterior(data).log_joint, alone.posterior(data).log_joint, rtol=1e-12)


def test_an_imagined_row_pulls_every_cell_of_a_joint_block_and_no_rows_leave_it_where_it_is():
    data = clouds()
    seen = likely.learn(data, "y", joint=[("a", "b", "c")])
    firm = likely.learn(data, "y", joint=[("a", "b", "c")], smoothing=likely.NormalInverseGamma(7.0, 1e9, 3.0, 2.0))
    assert [row["value"] for row in firm.parameters["a with b with c"]] == [("p",), ("q",)] * 2
    for row in firm.parameters["a with b with c"]:
        np.testing.assert_allclose(row["mean"], [7.0, 7.0], rtol=1e-6)
    assert seen.relearn(smoothing=firm.prior.default).parameters == firm.parameters
    assert firm.relearn(smoothing=1.0).parameters == seen.parameters
