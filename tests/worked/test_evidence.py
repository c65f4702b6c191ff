"""Marginal likelihoods against the chain rule of predictions, Bayes factors, and refusals."""

import math

import numpy as np
import pytest
import scipy.stats

import likely
from likely.errors import UsageError

TENNIS = "src/likely/data/tennis.csv"


def test_the_marginal_likelihood_is_the_product_of_predictions_one_after_the_other() -> None:
    """P(x₁, …, xₙ) = Π P(xᵢ | x₁ … xᵢ₋₁): with conjugate priors the averaged model predicts exactly these."""
    rng = np.random.default_rng(0)
    y = ["a" if i % 2 else "b" for i in range(24)]
    table = {"c": rng.choice(["u", "v", "w"], 24).tolist(), "y": y}
    model = likely.learn(table, "y", smoothing=1, class_prior={"a": 0.5, "b": 0.5})
    seen = {label: dict.fromkeys("uvw", 1.0) for label in "ab"}
    total = 0.0
    for value, label in zip(table["c"], y, strict=True):
        counts = seen[label]
        total += math.log(0.5) + math.log(counts[value] / sum(counts.values()))
        counts[value] += 1
    assert model.log_marginal_likelihood == pytest.approx(total, abs=1e-10)


def test_a_gaussian_s_marginal_likelihood_is_the_product_of_student_predictions() -> None:
    stats = pytest.importorskip("scipy.stats", reason="SciPy IS NOT INSTALLED")
    x = [1.0, 3.0, 2.5, -1.0]
    prior = likely.NormalInverseGamma(mean=0.0, strength=1.0, shape=2.0, scale=2.0)
    model = likely.learn({"x": [*x, 0.0], "y": [*"aaaa", "b"]}, "y", families="gaussian", smoothing=prior,
                         class_prior={"a": 0.5, "b": 0.5})  # fmt: skip
    m, k, a, b, total = 0.0, 1.0, 2.0, 2.0, 5 * math.log(0.5)
    for value in x:
        total += stats.t(2 * a, m, (b / a * (k + 1) / k) ** 0.5).logpdf(value)
        m, k, a, b = (k * m + value) / (k + 1), k + 1, a + 0.5, b + k * (value - m) ** 2 / (2 * (k + 1))
    total += stats.t(4.0, 0.0, 2.0**0.5).logpdf(0.0)
    assert model.log_marginal_likelihood == pytest.approx(total, abs=1e-10)


def test_bayes_factors_prefer_the_family_and_the_columns_that_made_the_data() -> None:
    rng = np.random.default_rng(1)
    y = rng.choice(["a", "b"], 400)
    table = {"x": (rng.normal(size=400) * np.where(y == "a", 1.0, 3.0)).tolist(), "noise": rng.normal(size=400).tolist(),
             "y": y.tolist()}  # fmt: skip
    prior = likely.NormalInverseGamma(mean=0.0, strength=0.1, shape=1.0, scale=1.0)
    settings = {"target": "y", "smoothing": prior}
    own = likely.learn(table, families={"x": "gaussian", "noise": "gaussian:class"}, **settings)
    tied = likely.learn(table, families={"x": "gaussian:class", "noise": "gaussian:class"}, **settings)
    without = likely.learn(table, families={"x": "gaussian"}, ignore=["noise"], **settings)
    found = likely.compare_models(own, tied, without, names=["own", "tied", "without noise"])
    assert found.best == "without noise"
    assert found.log_bayes_factor("own", "tied") > 10
    assert sum(found.probabilities.values()) == pytest.approx(1.0)
    assert found.to_dict()["models"][0]["model"] == "without noise"
    assert "log P(data)" in str(found)
    by_bic = min(zip(found.bic[:2], ("own", "tied"), strict=True))[1]
    assert by_bic == "own"


def test_the_arc_probability_is_the_bayes_factor_of_one_column() -> None:
    full = likely.learn(TENNIS, "PlayTennis", smoothing=1)
    without = likely.learn(TENNIS, "PlayTennis", smoothing=1, ignore=["Outlook"])
    factor = likely.compare_models(full, without, names=["with", "without"]).log_bayes_factor("with", "without")
    assert 1 / (1 + math.exp(-factor)) == pytest.approx(full.arc_probability["Outlook"], abs=1e-12)


def test_what_has_no_marginal_likelihood_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no marginal likelihood.*plain=True"):
        _ = likely.learn(TENNIS, "PlayTennis").log_marginal_likelihood
    with pytest.raises(UsageError, match="smoothing above 0"):
        _ = likely.learn(TENNIS, "PlayTennis", smoothing=0).log_marginal_likelihood
    one = likely.learn(TENNIS, "PlayTennis", smoothing=1)
    with pytest.raises(UsageError, match="two or more"):
        likely.compare_models(one)
    other = likely.learn({"Wind": ["a", "b"], "PlayTennis": ["Yes", "No"]}, "PlayTennis", smoothing=1)
    with pytest.raises(UsageError, match="the same rows"):
        likely.compare_models(one, other)


def test_with_a_known_variance_only_the_mean_is_integrated_out() -> None:
    x, y = [1.0, 2.5, 0.3, 4.0, 5.5, 3.0], list("aaabbb")
    family, prior = likely.Gaussian(variance=4.0), likely.NormalInverseGamma(1, 0.5, 2, 3)
    model = likely.learn({"x": x, "y": y}, target="y", plain=True, families={"x": family}, smoothing={"x": prior})
    cells = scipy.stats.multivariate_normal(np.ones(3), 4 * np.eye(3) + 4 / 0.5)
    labels = math.lgamma(2) - math.lgamma(8) + 2 * math.lgamma(4)
    assert model.log_marginal_likelihood == pytest.approx(labels + cells.logpdf(x[:3]) + cells.logpdf(x[3:]), rel=1e-12)
    averaged = likely.learn({"x": x, "y": y}, "y", families={"x": family}, smoothing={"x": prior}, average=True)
    together = scipy.stats.multivariate_normal(np.ones(6), 4 * np.eye(6) + 4 / 0.5).logpdf(x)
    on = 1 / (1 + math.exp(together - cells.logpdf(x[:3]) - cells.logpdf(x[3:])))
    own = [scipy.stats.norm((0.5 + sum(part)) / 3.5, math.sqrt(4 + 4 / 3.5)).pdf(2.0) for part in (x[:3], x[3:])]
    one = scipy.stats.norm((0.5 + sum(x)) / 6.5, math.sqrt(4 + 4 / 6.5)).pdf(2.0)
    a, b = (on * p + (1 - on) * one for p in own)
    assert averaged.posterior([{"x": 2.0}]).probabilities[0] == pytest.approx([a / (a + b), b / (a + b)], rel=1e-9)
