"""Marginal likelihoods against the chain rule of predictions, Bayes factors, and refusals."""

import math

import numpy as np
import pytest
import scipy.stats

import likely
from likely.errors import LikelyWarning, UsageError

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


def test_families_of_counts_are_compared_with_all_their_factors() -> None:
    """x is 10 or 20: without 1/x! a Poisson distribution would seem to explain it far better than it does."""
    rng = np.random.default_rng(0)
    table = {"x": rng.choice([10, 20], 60).tolist(), "y": rng.choice(["a", "b"], 60).tolist()}
    poisson = likely.learn(table, "y", families="poisson", smoothing=likely.GammaPrior(15, 1))
    values = likely.learn(table, "y", families="categorical", smoothing=1)
    found = likely.compare_models(poisson, values, names=["poisson", "categorical"])
    assert found.best == "categorical"
    assert max(found.log_marginal) < 0
    assert found.bic[0] > found.bic[1] > 0
    without = likely.learn(table | {"z": [0] * 60}, "y", families={"x": "poisson", "z": "categorical"},
                           smoothing={"x": likely.GammaPrior(15, 1), "z": 1})  # fmt: skip
    fewer = likely.learn(table | {"z": [0] * 60}, "y", families={"z": "categorical"}, ignore=["x"], smoothing=1)
    assert max(likely.compare_models(without, fewer).log_marginal) < -100


def test_the_evidence_of_count_vectors_sums_to_one_over_those_of_one_sum() -> None:
    table = {"u": [1, 2, 0], "v": [2, 1, 3], "w": [1, 0, 0], "y": list("aab")}
    model = likely.learn(table, "y", families={("u", "v", "w"): "multinomial"}, smoothing=1)
    rows = [{"u": u, "v": v, "w": 5 - u - v} for u in range(6) for v in range(6 - u)]
    assert np.exp(model.posterior(rows).log_evidence).sum() == pytest.approx(1.0, abs=1e-12)


def test_expected_counts_of_em_have_no_marginal_likelihood() -> None:
    table = {"x": ["u", "v", "u", "v", "u"], "y": ["a", "b", "a", "b", None]}
    model = likely.learn(table, "y", smoothing=1, unlabelled=1.0)
    with pytest.raises(UsageError, match="without a label"):
        _ = model.log_marginal_likelihood
    with pytest.raises(UsageError, match="without a label"):
        likely.compare_models(model, model, names=["one", "other"])


def test_models_of_other_cells_are_not_compared() -> None:
    y = list("aabb")
    prior = likely.GammaPrior(1, 1)
    one = likely.learn({"x": [1, 2, 3, 4], "y": y}, "y", families="poisson", smoothing=prior)
    for family in ("poisson", "categorical", "gaussian"):
        smoothing = prior if family == "poisson" else 1
        other = likely.learn({"x": [1, 2, 3, 5], "y": y}, "y", families=family, smoothing=smoothing)
        with pytest.raises(UsageError, match="same cells of column 'x'"):
            likely.compare_models(one, other)
    values = likely.learn({"x": ["u", "v", "u", "v"], "y": y}, "y", smoothing=1)
    others = likely.learn({"x": ["u", "v", "u", "w"], "y": y}, "y", smoothing=1)
    with pytest.raises(UsageError, match="same cells"):
        likely.compare_models(values, others)


def test_a_prior_that_is_taken_from_the_rows_is_named() -> None:
    table = {"x": [1, 2, 3, 4], "y": list("aabb")}
    for family, remedy in (("gaussian", "NormalInverseGamma"), ("poisson", "GammaPrior")):
        model = likely.learn(table, "y", families=family, smoothing=1)
        with pytest.warns(LikelyWarning, match=remedy):
            _ = model.log_marginal_likelihood


def test_the_bic_of_an_average_over_structures_is_left_empty() -> None:
    averaged = likely.learn(TENNIS, "PlayTennis", smoothing=1, average=True)
    found = likely.compare_models(averaged, likely.learn(TENNIS, "PlayTennis", smoothing=1), names=["mean", "one"])
    assert {row["model"]: row["bic"] is None for row in found.to_dict()["models"]} == {"mean": True, "one": False}
    assert "nan" not in str(found)


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
