"""Worked numbers of THEORY: outcomes a prior names, coefficients, averages under a Dirichlet prior, and P(x)."""

from itertools import product
from math import exp, lgamma, log

import numpy as np
import pytest

import likely
from commands import TENNIS
from likely.errors import UsageError

DAY = {"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"}
VALUES = {
    "Outlook": ("Overcast", "Rain", "Sunny"),
    "Temperature": ("Cool", "Hot", "Mild"),
    "Humidity": ("High", "Normal"),
    "Wind": ("Strong", "Weak"),
}
DAYS = [dict(zip(VALUES, day, strict=True)) for day in product(*VALUES.values())]


def test_a_die_keeps_the_faces_that_its_prior_names():
    found = likely.estimate([1, 2, 6, 6, 3], prior=likely.Dirichlet(dict.fromkeys(range(1, 7), 2)))
    assert found.map == pytest.approx({1: 2 / 11, 2: 2 / 11, 3: 2 / 11, 4: 1 / 11, 5: 1 / 11, 6: 3 / 11}, rel=1e-12)
    assert found.ml[4] == 0
    assert found.log_likelihood == pytest.approx(3 * log(1 / 5) + 2 * log(2 / 5), rel=1e-12)


def test_a_word_that_only_the_prior_names_is_estimated():
    spread = {"cat": 0.5, "dog": 0.25, "aardvark": 0.25}
    found = likely.estimate(["cat", "dog", "cat"], prior=likely.MEstimate(4, spread))
    assert found.map == pytest.approx({"cat": 4 / 7, "dog": 2 / 7, "aardvark": 1 / 7}, rel=1e-12)
    counted = likely.estimate({"cat": [2], "dog": [1]}, "multinomial", likely.MEstimate(4, spread))
    assert counted.map == pytest.approx(found.map, rel=1e-12)


def test_a_value_that_the_prior_writes_otherwise_is_the_same_outcome():
    found = likely.estimate([1, 2, 1], prior=likely.Dirichlet({"1": 2, "2": 2, "3": 2}))
    assert list(found.map.values()) == pytest.approx([3 / 6, 2 / 6, 1 / 6])


def test_the_multinomial_likelihood_has_its_coefficient():
    found = likely.estimate({"a": [2], "b": [1], "c": [3]}, "multinomial")
    assert found.log_likelihood == pytest.approx(-1.97408, abs=5e-6)
    assert found.log_likelihood == pytest.approx(log(60) + 2 * log(1 / 3) + log(1 / 6) + 3 * log(1 / 2), rel=1e-12)
    in_order = likely.estimate(["a", "a", "b", "c", "c", "c"], "categorical")
    assert in_order.log_likelihood == pytest.approx(-6.06843, abs=5e-6)


def test_two_columns_of_counts_are_a_binomial():
    pairs = likely.estimate([[3, 5], [1, 4]], likely.Binomial("n"))
    counts = likely.estimate({"k": [3, 1], "rest": [2, 3]}, "multinomial")
    assert pairs.log_likelihood == pytest.approx(counts.log_likelihood, rel=1e-12)


@pytest.mark.parametrize("smoothing", [likely.Dirichlet({"aardvark": 2.0, "cat": 2.0})])
def test_a_prior_of_single_words_is_refused_for_a_text_instead_of_being_ignored(smoothing):
    data = {"t": ["the cat sat", "a dog ran"] * 3, "y": ["p", "q"] * 3}
    with pytest.raises(UsageError, match=r"'t' is text.*'aardvark'"):
        likely.learn(data, "y", families={"t": "text:multinomial"}, smoothing={"t": smoothing})
    counts = {"cat": [2, 0] * 3, "dog": [0, 1] * 3, "y": ["p", "q"] * 3}
    block = {("cat", "dog"): likely.Multinomial()}
    with pytest.raises(UsageError, match="'aardvark', which is none of the counted columns"):
        likely.learn(counts, "y", families=block, smoothing={("cat", "dog"): smoothing})


def _marginal(seen, beta):
    """log probability of counts with the shares averaged out under Dirichlet(beta)."""
    n, q = sum(seen), len(seen)
    return lgamma(q * beta) - lgamma(q * beta + n) + sum(lgamma(beta + k) - lgamma(beta) for k in seen)


@pytest.mark.parametrize(("beta", "wanted"), [(1, 0.6753), (2, 0.6486)])
def test_averaging_under_a_dirichlet_uses_its_own_parameters(beta, wanted):
    counts = {"No": (0, 2, 3), "Yes": (4, 3, 2)}  # Overcast, Rain, Sunny
    own = sum(_marginal(seen, beta) for seen in counts.values())
    shared = _marginal([sum(pair) for pair in zip(*counts.values(), strict=True)], beta)
    arc = 1 / (1 + exp(shared - own))
    model = likely.learn(TENNIS, "PlayTennis", average=True, smoothing=likely.Dirichlet(beta))
    assert model.arc_probability["Outlook"] == pytest.approx(arc, rel=1e-12)
    assert arc == pytest.approx(wanted, abs=5e-5)
    shown = {(r["class"], r["value"]): r["probability"] for r in model.parameters["Outlook"]}
    mixed = arc * (3 + beta) / (5 + 3 * beta) + (1 - arc) * (5 + beta) / (14 + 3 * beta)
    assert shown["No", "Sunny"] == pytest.approx(mixed, rel=1e-12)


def test_imagined_rows_are_the_parameters_where_no_dirichlet_is_given():
    one = likely.learn(TENNIS, "PlayTennis", average=True, smoothing=1)
    flat = likely.learn(TENNIS, "PlayTennis", average=True, smoothing=likely.Dirichlet(1))
    np.testing.assert_array_equal(one.posterior(DAYS).log_joint, flat.posterior(DAYS).log_joint)


def test_the_average_is_of_joint_probabilities_and_not_of_predictions():
    """THEORY: averaging joints gives .61027, averaging conditionals .60288; docs/columns.md has both."""
    model = likely.learn(TENNIS, "PlayTennis", average=True)
    plain = model.relearn(average=False)
    arcs, prior = model.arc_probability, dict(zip(plain.classes, plain.class_prior, strict=True))
    own = {name: {(r["class"], r["value"]): r["probability"] for r in plain.parameters[name]} for name in VALUES}
    seen = {
        name: {v: sum(r["count"] for r in plain.parameters[name] if r["value"] == v) for v in VALUES[name]}
        for name in VALUES
    }
    joints, conditionals = 0.0, {"No": 0.0, "Yes": 0.0}
    total = {"No": 0.0, "Yes": 0.0}
    for choice in product((True, False), repeat=4):
        weight, joint = 1.0, dict(prior)
        for name, depends in zip(VALUES, choice, strict=True):
            weight *= arcs[name] if depends else 1 - arcs[name]
            same = (seen[name][DAY[name]] + 1) / (14 + len(VALUES[name]))
            joint = {c: p * (own[name][c, DAY[name]] if depends else same) for c, p in joint.items()}
        for c in joint:
            total[c] += weight * joint[c]
            conditionals[c] += weight * joint[c] / sum(joint.values())
    joints = total["No"] / sum(total.values())
    assert joints == pytest.approx(0.61027, abs=5e-6)
    assert conditionals["No"] == pytest.approx(0.60288, abs=5e-6)
    assert model.posterior(DAY).probabilities[0, 0] == pytest.approx(joints, rel=1e-12)


@pytest.mark.parametrize("settings", [{"plain": True}, {"average": True}, {"smoothing": 0.5}])
def test_the_evidence_of_all_days_sums_to_one(settings):
    model = likely.learn(TENNIS, "PlayTennis", **settings)
    assert np.exp(model.posterior(DAYS).log_evidence).sum() == pytest.approx(1.0, rel=1e-12)


def test_a_calibrated_model_refuses_the_probability_of_a_row():
    model = likely.learn(TENNIS, "PlayTennis")
    found = model.posterior(DAYS)
    with pytest.raises(UsageError, match=r"no P\(x\).*plain=True"):
        found.log_evidence  # noqa: B018
    assert found.probabilities.sum() == pytest.approx(len(DAYS))
    assert model.explain(DAY).log_evidence is None
    assert model.explain(DAY).to_dict()["log_evidence"] is None


@pytest.mark.parametrize(
    ("column", "family"),
    [([0.1, 0.4, 2.0, 3.0] * 3, "binned"), (["a b", "c d", "a c", "d b"] * 3, "text:complement")],
)
def test_a_plain_model_whose_column_has_no_density_refuses_it_too(column, family):
    model = likely.learn({"x": column, "y": ["p", "q"] * 6}, "y", families={"x": family}, plain=True)
    with pytest.raises(UsageError, match=r"no log_evidence.*'x'"):
        model.posterior({"x": column[:1]}).log_evidence  # noqa: B018


def test_numbers_have_a_density_that_integrates_to_one():
    data = {"x": [0.0, 1.0, 3.0, 5.0, 4.0, 6.0], "y": ["p", "p", "p", "q", "q", "q"]}
    model = likely.learn(data, "y", plain=True)
    grid = np.linspace(-60, 60, 40_001)
    density = np.exp(model.posterior({"x": grid}).log_evidence)
    assert float(((density[1:] + density[:-1]) / 2 * np.diff(grid)).sum()) == pytest.approx(1.0, rel=1e-6)


def test_the_mode_of_a_normal_inverse_gamma_is_that_of_its_docstring():
    mean, shape, scale = 2.0, 3.0, 4.0
    prior = likely.NormalInverseGamma(mean, 1e9, shape, scale)
    found = likely.estimate(
        [mean], "gaussian", prior
    )  # one row at the mean adds half a row to the shape, and no spread
    assert found.map["variance"] == pytest.approx(scale / (shape + 0.5 + 1.5), rel=1e-9)
    assert "scale / (shape + 3/2)" in " ".join(likely.NormalInverseGamma.__doc__.split())
