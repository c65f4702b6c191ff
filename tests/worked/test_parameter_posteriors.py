"""Posteriors of parameters: the notes' numbers, and SciPy's."""

import numpy as np
import pytest

import likely
from likely.errors import LikelyWarning, UsageError

stats = pytest.importorskip("scipy.stats", reason="SciPy IS NOT INSTALLED: the posteriors are not compared")


def test_a_die_with_six_faces_of_which_two_were_never_rolled() -> None:
    found = likely.estimate([1, 2, 6, 6, 3], prior=likely.Dirichlet(dict.fromkeys(range(1, 7), 2)))
    assert found.map[6] == pytest.approx(3 / 11)
    assert found.map[4] == pytest.approx(1 / 11)
    posterior = found.posterior
    assert posterior.mode[6] == pytest.approx(3 / 11)
    assert posterior.mean[4] == pytest.approx(2 / 17)
    assert posterior.predictive.density(4) == pytest.approx(2 / 17)
    assert posterior.interval(0.9)[6] == pytest.approx(stats.beta(4, 13).interval(0.9), rel=1e-12)
    drawn = posterior.draw(20_000, seed=1)
    assert sum(drawn.values()) == pytest.approx(np.ones(20_000))
    assert drawn[6].mean() == pytest.approx(4 / 17, abs=0.005)


def test_aardvark() -> None:
    found = likely.estimate(["gas", "oil", "gas"], prior=likely.Dirichlet({"aardvark": 2, "gas": 2, "oil": 2}))
    assert found.map == pytest.approx({"aardvark": 1 / 6, "gas": 1 / 2, "oil": 1 / 3})
    assert found.posterior.mean["aardvark"] == pytest.approx(2 / 9)


def test_beta_of_seven_successes_in_ten() -> None:
    found = likely.estimate([True] * 7 + [False] * 3, "bernoulli", prior=likely.Dirichlet({True: 3, False: 2}))
    assert found.map["p"] == pytest.approx(9 / 13)
    posterior = found.posterior
    assert posterior.mode["p"] == pytest.approx(9 / 13)
    assert posterior.mean["p"] == pytest.approx(10 / 15)
    assert posterior.interval()["p"] == pytest.approx(stats.beta(10, 5).interval(0.95), rel=1e-12)
    assert posterior.predictive.density(1) == pytest.approx(10 / 15)
    area = np.trapezoid([y for _, y in posterior.density(points=2001)], [x for x, _ in posterior.density(points=2001)])
    assert area == pytest.approx(1.0, abs=1e-3)
    assert "95 % interval" in str(posterior)


def test_a_pseudocount_s_posterior_mean_is_the_smoothed_estimate() -> None:
    found = likely.estimate(["a", "a", "b"], prior=1)
    assert found.posterior.mean == pytest.approx(found.map)


def test_gaussian_with_a_reference_prior_is_the_t_interval() -> None:
    x = np.array([25.0, 17.0, 43.0, 20.0, 31.0])
    posterior = likely.estimate(x, "gaussian").posterior
    assert posterior.interval()["mean"] == pytest.approx(stats.t(4, x.mean(), x.std(ddof=1) / 5**0.5).interval(0.95), rel=1e-12)
    assert posterior.interval()["variance"] == pytest.approx(
        stats.invgamma(2, scale=((x - x.mean()) ** 2).sum() / 2).interval(0.95), rel=1e-12
    )
    assert posterior.predictive.interval(0.5) == pytest.approx(
        stats.t(4, x.mean(), x.std(ddof=1) * 1.2**0.5).interval(0.5), rel=1e-12
    )


def test_gaussian_with_a_normal_inverse_gamma_prior() -> None:
    prior = likely.NormalInverseGamma(mean=20.0, strength=2.0, shape=3.0, scale=50.0)
    x = np.array([25.0, 17.0, 43.0, 20.0])
    found = likely.estimate(x, "gaussian", prior=prior)
    n, mean, spread = 4, x.mean(), ((x - x.mean()) ** 2).sum()
    scale = 50 + spread / 2 + 2 * n / (2 + n) * (mean - 20) ** 2 / 2
    posterior = found.posterior
    assert posterior.mode["mean"] == pytest.approx((2 * 20 + n * mean) / 6)
    assert posterior.mode["variance"] == pytest.approx(scale / (5 + 1.5))
    assert posterior.mode == pytest.approx(found.map)
    assert posterior.mean["variance"] == pytest.approx(scale / (5 - 1))
    drawn = posterior.draw(200_000, seed=3)
    assert drawn["variance"].mean() == pytest.approx(scale / 4, rel=0.02)
    assert drawn["mean"].std() == pytest.approx(posterior.marginal("mean").deviation, rel=0.02)


def test_poisson_is_gamma_and_predicts_a_negative_binomial() -> None:
    x = [2, 0, 3, 1, 4]
    posterior = likely.estimate(x, "poisson", prior=1).posterior
    assert posterior.mean["rate"] == pytest.approx((10 + 2) / (5 + 1))
    assert posterior.interval()["rate"] == pytest.approx(stats.gamma(12, scale=1 / 6).interval(0.95), rel=1e-12)
    assert posterior.predictive.density(3) == pytest.approx(stats.nbinom(12, 6 / 7).pmf(3), rel=1e-12)


def test_known_variance() -> None:
    posterior = likely.estimate([1.0, 3.0], likely.Gaussian(variance=4.0)).posterior
    assert posterior.interval()["mean"] == pytest.approx(stats.norm(2, 2**0.5).interval(0.95), rel=1e-12)


def test_probabilities_and_quantiles_of_the_fitted_distribution() -> None:
    found = likely.estimate([23.0, 17.0, 43.0, 20.0], "gaussian")
    normal = stats.norm(25.75, 103.6875**0.5)
    assert found.probability(20, 30) == pytest.approx(normal.cdf(30) - normal.cdf(20), rel=1e-12)
    assert found.quantile(0.9) == pytest.approx(normal.ppf(0.9), rel=1e-12)
    assert found.distribution("ml").density(30) == pytest.approx(0.0359103, abs=1e-7)
    counts = likely.estimate([(3, 4), (2, 4)], likely.Binomial("n"))
    with pytest.raises(UsageError, match="number of trials"):
        counts.distribution()
    assert likely.estimate([3, 2], likely.Binomial(4)).distribution().density(3) == pytest.approx(stats.binom(4, 5 / 8).pmf(3))
    with pytest.raises(UsageError, match="'ml', 'map' or 'predictive'"):
        found.distribution("mle")


def test_improper_posteriors_are_refused_with_the_remedy() -> None:
    with pytest.raises(UsageError, match="two different values"):
        _ = likely.estimate([1.0], "gaussian").posterior
    with pytest.raises(UsageError, match="pseudocounts"):
        _ = likely.estimate([0, 0], "poisson").posterior


def test_cells_of_a_joint_table_have_intervals_and_its_columns_name_their_block() -> None:
    table = {"u": list("aabb"), "v": list("abab"), "y": list("ccdd")}
    model = likely.learn(table, "y", joint=[("u", "v")], smoothing=1)
    assert "95 % interval" in str(model.parameters["u with v"])
    with pytest.raises(KeyError, match="'u with v'"):
        model.parameters["u"]
    with pytest.raises(KeyError, match=r"^'z'$"):
        model.parameters["z"]


def test_a_joint_gaussian_is_left_out_of_the_draws_with_a_warning() -> None:
    rng = np.random.default_rng(0)
    table = {"u": rng.normal(size=20).tolist(), "v": rng.normal(size=20).tolist(), "k": list("qrqqr") * 4, "y": list("cd") * 10}
    model = likely.learn(table, "y", joint=[("u", "v")], smoothing=1)
    with pytest.warns(LikelyWarning, match="'u with v' is left out"):
        drawn = model.draw_parameters(3, seed=0)
    assert list(drawn) == ["y", "k"]
    with pytest.raises(UsageError, match="joint Gaussian"):
        _ = model.log_marginal_likelihood
