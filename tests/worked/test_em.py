"""EM by hand: the two Gaussians of the notes, a mixture with gaps, and what is known beforehand."""

import json
import math

import numpy as np
import pytest

import likely
from likely.latent import em, mixtures
from likely.latent.mixture_plan import plan_clusters
from likely.sources import open_source

NOTES = {"variance": 1.0, "weights": "equal"}


def one_round(x, means, variance):
    """E[z] ∝ exp(−(x−μ)²/2σ²), then μ = Σ E[z] x / Σ E[z], as on paper."""
    shares = np.exp(-((x[:, None] - means) ** 2) / (2 * variance))
    shares /= shares.sum(1, keepdims=True)
    return shares, (shares * x[:, None]).sum(0) / shares.sum(0)


def test_two_gaussians_of_known_variance_move_by_the_formula():
    x = np.array([1.0, 2.0, 4.0, 7.0, 8.0, 9.5])
    means = np.array([1.0, 4.0])
    source = open_source(x[:, None])
    plan = plan_clusters(source, fixed={"variance": 2.5, "weights": "equal"})
    mixing = mixtures.opened(source, plan, equal=True, tol=0.0, max_iter=8)
    seen = []
    mixing.fit((1, 2), means, watch=lambda _i, _value, model: seen.append(model.block_parameters[0].likelihood.mean.copy()))
    for found in seen:
        np.testing.assert_allclose(found, means, rtol=1e-13)
        _, means = one_round(x, means, 2.5)


def test_the_fixed_mixture_has_the_fixed_variance_and_weights():
    x = np.concatenate([np.linspace(-1, 1, 20), np.linspace(4, 6, 40)])[:, None]
    made = likely.Mixture(2, fixed=NOTES).fit(x)
    assert made.weights_.tolist() == [0.5, 0.5]
    assert np.allclose(made.covariances_, 1.0, rtol=1e-15)
    assert made.model_.parameter_count.free - 1 == 2  # two means, and nothing else
    shares, means = one_round(x[:, 0], made.means_[:, 0], 1.0)
    np.testing.assert_allclose(made.responsibilities(x), shares, rtol=1e-12)
    assert np.allclose(means, made.means_[:, 0], atol=0.01)


def test_a_mixture_starts_at_the_given_means():
    x = np.array([[0.0], [1.0], [9.0], [10.0]])
    made = likely.Mixture(2, fixed=NOTES, start=[[10.0], [0.0]]).fit(x)
    assert made.means_[:, 0].round(6).tolist() == [9.5, 0.5]
    assert made.labels_.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("tie", [None, "class"])
def test_gaps_in_a_joint_gaussian_lead_to_the_numerical_maximum(tie):
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(7)
    x = rng.multivariate_normal([1.0, -2.0], [[2.0, 1.2], [1.2, 1.5]], 40)
    x[rng.random(x.shape) < 0.3] = np.nan
    x = x[~np.isnan(x).all(1)]

    def log_likelihood(parameters):
        mean, root = parameters[:2], np.array([[np.exp(parameters[2]), 0], [parameters[3], np.exp(parameters[4])]])
        covariance = root @ root.T
        total = 0.0
        for row in x:
            seen = ~np.isnan(row)
            apart, part = row[seen] - mean[seen], covariance[np.ix_(seen, seen)]
            total -= 0.5 * (
                seen.sum() * math.log(2 * math.pi) + np.linalg.slogdet(part)[1] + apart @ np.linalg.solve(part, apart)
            )
        return total

    best = optimize.minimize(lambda p: -log_likelihood(p), np.zeros(5), method="BFGS", options={"gtol": 1e-7})
    made = likely.Mixture(1, families=likely.Joint(tie=tie), smoothing=0, tol=1e-12, max_iter=500).fit(x)
    assert made.model_.log_likelihood == pytest.approx(-best.fun, abs=1e-7)
    np.testing.assert_allclose(made.means_[0], best.x[:2], atol=1e-4)
    root = np.array([[np.exp(best.x[2]), 0], [best.x[3], np.exp(best.x[4])]])
    np.testing.assert_allclose(made.covariances_[0], root @ root.T, atol=1e-3)


def test_gaps_in_two_joint_components_lead_to_a_numerical_maximum():
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal([0, 0], [1, 0.5], (40, 2)), rng.normal([4, 3], [0.7, 1], (40, 2))])
    x[rng.random(x.shape) < 0.2] = np.nan
    x = x[~np.isnan(x).all(1)]
    made = likely.Mixture(2, families="joint", smoothing=0, tol=1e-12, max_iter=1000).fit(x)

    def log_likelihood(p):
        weight = 1 / (1 + math.exp(-p[0]))
        terms = []
        for share, q in ((weight, p[1:6]), (1 - weight, p[6:11])):
            root = np.array([[math.exp(q[2]), 0], [q[3], math.exp(q[4])]])
            covariance = root @ root.T
            each = []
            for row in x:
                seen = ~np.isnan(row)
                apart, part = row[seen] - q[:2][seen], covariance[np.ix_(seen, seen)]
                density = (
                    seen.sum() * math.log(2 * math.pi)
                    + np.linalg.slogdet(part)[1]
                    + apart @ np.linalg.solve(part, apart)
                )
                each.append(math.log(share) - 0.5 * density)
            terms.append(each)
        return float(np.logaddexp(*np.array(terms)).sum())

    start = [math.log(made.weights_[0] / made.weights_[1])]
    for c in range(2):
        root = np.linalg.cholesky(made.covariances_[c])
        start += [*made.means_[c], math.log(root[0, 0]), root[1, 0], math.log(root[1, 1])]
    assert log_likelihood(np.array(start)) == pytest.approx(made.model_.log_likelihood, abs=1e-9)
    best = optimize.minimize(lambda p: -log_likelihood(p), np.array(start), method="BFGS", options={"maxiter": 50})
    assert -best.fun == pytest.approx(made.model_.log_likelihood, abs=1e-6)  # nothing higher is near


def test_latent_classes_of_two_coins_come_apart():
    heads = [
        ["h"] * 5 + ["t"] * 5,
        ["h"] * 9 + ["t"],
        ["h"] * 8 + ["t"] * 2,
        ["h"] * 4 + ["t"] * 6,
        ["h"] * 7 + ["t"] * 3,
    ]
    counts = {"heads": [float(row.count("h")) for row in heads]}
    model = likely.cluster(counts, 2, families=likely.Binomial(10), smoothing=0, fixed={"weights": "equal"}, tol=1e-13,
                           max_iter=2000)  # fmt: skip
    chance = sorted(row["probability"] for row in model.parameters["heads"])
    # The well-known example of two coins (Do and Batzoglou 2008): 0.80 and 0.52 after ten rounds.
    assert chance == pytest.approx([0.52, 0.80], abs=0.005)


def test_semi_open_components_keep_their_labels():
    x = np.array([[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]])
    made = likely.Mixture(2).fit(x, ["low", None, None, "high", None, None])
    assert made.predict(x).tolist() == ["low"] * 3 + ["high"] * 3
    assert list(made.classes_) == ["high", "low"]


def test_given_probabilities_of_the_components_are_no_free_parameters():
    from likely.latent.em import free_parameters

    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(6, 1, (50, 2))])
    found = likely.cluster({"a": x[:, 0], "b": x[:, 1]}, k=2).model
    assert free_parameters(found) == 1 + 2 * (2 + 2)
    given = found.relearn(class_prior=dict.fromkeys(found.classes, 0.5))
    assert free_parameters(given) == 2 * (2 + 2)


def test_bic_icl_and_aic_are_their_formulas():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(6, 1, (50, 2))])
    made = likely.Mixture(2).fit(x)
    free = 1 + 2 * (2 + 2)
    log_likelihood = made.score_samples(x).sum()
    assert made.bic(x) == pytest.approx(-2 * log_likelihood + free * math.log(100))
    assert made.aic(x) == pytest.approx(-2 * log_likelihood + 2 * free)
    shares = made.predict_proba(x)
    entropy = -(shares * np.log(np.maximum(shares, 1e-300))).sum()
    assert made.icl(x) == pytest.approx(made.bic(x) + 2 * entropy, abs=1e-6)
    assert made.model_.bic == pytest.approx(made.bic(x))
    assert made.model_.icl == pytest.approx(made.icl(x), abs=1e-6)


def test_the_number_of_clusters_is_found():
    rng = np.random.default_rng(11)
    x = np.concatenate([rng.normal(m, 1, (80, 2)) for m in (0, 8, 16)])
    model = likely.cluster(x, "auto")
    assert len(model.classes) == 3
    assert min(model.tried, key=model.tried.get) == 3
    assert len(likely.cluster(rng.normal(size=(100, 2)), "auto", criterion="icl").classes) == 1


def test_sampled_rows_come_from_the_mixture():
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(0, 1, 200).tolist() + rng.normal(9, 2, 200).tolist(), "b": ["u"] * 200 + ["v"] * 200}
    import pandas as pd

    made = likely.Mixture(2).fit(pd.DataFrame(table))
    rows, labels = made.sample(4000)
    drawn = rows[:, 0].astype(float)
    for c in (0, 1):
        assert drawn[labels == c].mean() == pytest.approx(made.means_[c, 0], abs=0.3)
    assert 0.4 < np.mean(rows[:, 1] == "u") < 0.6
    full = likely.Mixture(2, families="joint").fit(np.array(table["a"]).reshape(-1, 2))
    assert full.sample(10)[0].shape == (10, 2)


def test_a_cluster_model_is_saved_and_read(tmp_path):
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=50).tolist(), "b": rng.normal(size=50).tolist(), "c": ["u", "v"] * 25}
    model = likely.cluster(table, 2, joint=[("a", "b")])
    model.save(tmp_path / "m.likely")
    again = likely.load(tmp_path / "m.likely")
    np.testing.assert_array_equal(again.posterior(table).log_joint, model.posterior(table).log_joint)
    assert json.dumps(model.explain({"a": 1.0, "b": 0.0, "c": "u"}).to_dict())


def test_penalty_is_what_smoothing_maximises():
    rng = np.random.default_rng(1)
    table = {"a": rng.normal(size=30).tolist(), "c": rng.choice(["u", "v", "w"], 30).tolist()}
    source = open_source(table)
    mixing = mixtures.opened(source, plan_clusters(source))
    fit = mixing.fit((1,))
    mean, variance = np.mean(table["a"]), np.var(table["a"])
    spread = (30 * variance + variance) / 31
    paper = -0.5 * math.log(spread) - 0.5 * variance / spread
    shares = [(table["c"].count(v) + 1) / 33 for v in "uvw"]
    assert em.log_density(fit.model) == pytest.approx(paper + sum(map(math.log, shares)))
    assert fit.model.block_parameters[0].likelihood.mean[0] == pytest.approx(mean)


def test_a_known_variance_is_kept_by_learning_and_by_the_file(tmp_path):
    table = {"a": [1.0, 2.0, 3.0, 7.0, 8.0, 9.0], "y": ["no", "no", "no", "yes", "yes", "yes"]}
    model = likely.learn(table, "y", families={"a": likely.Gaussian(variance=4.0)})
    assert [row["deviation"] for row in model.parameters["a"]] == [2.0, 2.0]
    assert model.parameter_count.free == 1 + 2
    model.save(tmp_path / "m.likely")
    assert likely.load(tmp_path / "m.likely") == model
    with pytest.raises(likely.errors.UsageError, match="above zero"):
        likely.Gaussian(variance=0.0)


def test_imagined_spread_is_added_to_the_seen_one():
    table = {"a": [1.0, 3.0, 10.0, 10.0], "y": ["no", "no", "yes", "yes"]}
    model = likely.learn(table, "y", families={"a": likely.Gaussian()}, smoothing={"a": likely.Spread(2.0, 5.0)})
    assert [row["deviation"] ** 2 for row in model.parameters["a"]] == pytest.approx([(2 + 10) / 4, (0 + 10) / 4])
    assert [row["mean"] for row in model.parameters["a"]] == [2.0, 10.0]


def test_a_value_that_occurs_in_incomplete_rows_of_a_joint_block_only_is_a_value_of_its_column():
    data = {"c": ["u", "v"] * 20 + ["rare"], "x": [float(i % 7) for i in range(40)] + [None]}
    columns = likely.cluster(data, k=2, joint=[("c", "x")]).model.schema.by_name
    assert columns["c"].values == ("rare", "u", "v")
    assert columns["x"].values == ()
