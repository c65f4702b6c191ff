"""THEORY section 5: Gaussian columns, their four tyings and their priors, by hand."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

import likely
from likely.errors import LikelyWarning

INSURANCE = {
    "age": [23, 17, 43, 68, 32, 20],
    "car": ["Family", "Sports", "Sports", "Family", "Truck", "Family"],
    "risk": ["High", "High", "High", "Low", "Low", "High"],
}
WIDE = {
    "a": [1.0, 2.0, 4.0, 9.0, 3.0, 8.0, 10.0],
    "b": [0.5, -1.0, 2.5, 7.0, 6.0, 4.5, None],
    "y": ["p", "p", "p", "q", "q", "q", "q"],
}


def density(x, mean, deviation):
    return math.exp(-(((x - mean) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))


def insurance(smoothing):
    return likely.learn(INSURANCE, "risk", smoothing=smoothing, families={"age": likely.Gaussian()})


def odds(model, row):
    high, low = model.posterior(row).log_joint[0]
    return math.exp(high - low)


def test_age_has_the_means_and_deviations_with_divisor_n():
    high, low = insurance(0).parameters["age"]
    assert (high["class"], low["class"]) == ("High", "Low")
    assert (high["mean"], low["mean"]) == (25.75, 50.0)
    assert high["deviation"] == pytest.approx(10.182706, abs=5e-7)
    assert high["deviation"] == pytest.approx(math.sqrt((2.75**2 + 8.75**2 + 17.25**2 + 5.75**2) / 4), rel=1e-12)
    assert low["deviation"] == pytest.approx(18.0, rel=1e-12)


def test_the_densities_at_thirty_are_the_published_ones():
    entry = next(e for e in insurance(0).explain({"age": 30, "car": "Family"}).entries if e.name == "age")
    np.testing.assert_allclose(np.exp(entry.evidence), [0.0359103, 0.0119551], rtol=1e-5)
    deviation = math.sqrt((2.75**2 + 8.75**2 + 17.25**2 + 5.75**2) / 4)
    exact = [density(30, 25.75, deviation), density(30, 50, 18)]
    np.testing.assert_allclose(np.exp(entry.evidence), exact, rtol=1e-12)


def test_a_thirty_year_old_with_a_family_car_is_six_to_one_a_high_risk():
    assert odds(insurance(0), {"age": 30, "car": "Family"}) == pytest.approx(6.007517, abs=5e-7)


def test_a_truck_rules_out_high_risk_unless_laplace_imagines_one():
    truck = {"age": 30, "car": "Truck"}
    assert odds(insurance(0), truck) == 0.0
    assert odds(insurance(1), truck) == pytest.approx(2.145542, abs=5e-7)


def tied(tie):
    """Variances by hand: squared deviations from each cell's own class mean, over the cells that share."""
    cells = {
        (name, label): [x for x, y in zip(WIDE[name], WIDE["y"], strict=True) if y == label and x is not None]
        for name in "ab"
        for label in "pq"
    }
    mean = {key: sum(xs) / len(xs) for key, xs in cells.items()}
    spread = {key: sum((x - mean[key]) ** 2 for x in xs) for key, xs in cells.items()}

    def shared(key):
        same = {None: (0, 1), "class": (0,), "column": (1,), "both": ()}[tie]
        group = [k for k in cells if all(k[i] == key[i] for i in same)]
        return sum(spread[k] for k in group) / sum(len(cells[k]) for k in group)

    return {key: (mean[key], shared(key)) for key in cells}


@pytest.mark.parametrize("tie", [None, "class", "column", "both"])
def test_the_four_tyings_pool_the_squared_deviations_of_the_cells_that_share(tie):
    model = likely.learn(WIDE, "y", families=likely.Gaussian(tie=tie))
    expected = tied(tie)
    for name in "ab":
        for row in model.parameters[name]:
            mean, variance = expected[name, row["class"]]
            assert row["mean"] == pytest.approx(mean, rel=1e-12)
            assert row["deviation"] ** 2 == pytest.approx(variance, rel=1e-12)
    row = {"a": 5.0, "b": 1.0}
    joint = [
        math.log(n / 7) + sum(math.log(density(row[c], expected[c, k][0], math.sqrt(expected[c, k][1]))) for c in "ab")
        for k, n in (("p", 3), ("q", 4))
    ]
    np.testing.assert_allclose(model.posterior(row).log_joint[0], joint, rtol=1e-12)


@pytest.mark.parametrize("tie", [None, "class", "column", "both"])
@pytest.mark.parametrize(("columns", "classes"), [(1, 2), (3, 2), (2, 4), (5, 3)])
def test_gaussian_parameters_are_counted_for_every_tying(tie, columns, classes):
    rng = np.random.default_rng(columns * 10 + classes)
    data = {f"x{j}": rng.normal(size=6 * classes) for j in range(columns)} | {"y": list(range(classes)) * 6}
    variances = {None: columns * classes, "class": columns, "column": classes, "both": 1}[tie]
    count = likely.learn(data, "y", families=likely.Gaussian(tie=tie)).parameter_count
    assert count.free == columns * classes + variances + (classes - 1)
    if tie is None:
        assert count.free == 2 * columns * classes + (classes - 1)


def test_a_table_of_mixed_columns_counts_the_parameters_of_each():
    count = insurance(1).parameter_count
    assert count.free == 2 * (3 - 1) + 2 * 2 + 1
    assert count.table_entries == 2 * 3 + 2 * 2 + 2
    assert count.free_without_independence is None


def test_timestamps_keep_a_variance_of_1_09_where_raw_sums_of_squares_leave_nothing():
    offsets = [2, 0, 1, 1, -1, -1, -1, -1, -1, 0]
    stamps = [1.7e9 + d for d in offsets]
    assert sum(t * t for t in stamps) / 10 - (sum(stamps) / 10) ** 2 == 0.0

    def learned(part):
        settings = {"families": "gaussian", "classes": ["late", "never"]}
        return likely.learn({"t": part, "y": ["late"] * len(part)}, "y", **settings)

    assert learned(stamps).parameters["t"][0]["deviation"] ** 2 == pytest.approx(1.09, rel=1e-9)
    for cut in range(1, 10):  # in two parts as well, whatever the cut
        merged = learned(stamps[:cut]) + learned(stamps[cut:])
        assert merged.parameters["t"][0]["deviation"] ** 2 == pytest.approx(1.09, rel=1e-6)


@pytest.mark.parametrize("rows", [300, 60_000])  # counted by an interpreted and by a compiled loop
def test_a_small_deviation_beside_a_large_mean_keeps_its_digits(rows):
    rng = np.random.default_rng(rows)
    stamps, y = 1.7e15 + rng.normal(0, 11.5, rows).round(), rng.permutation(rows) % 2
    other = stamps + 8.0 * y + rng.normal(0, 3.0, rows).round()
    apart = np.vstack([stamps, other]) - 1.7e15
    alone = likely.learn({"t": stamps, "u": other, "y": y}, "y", families="gaussian")
    together = likely.learn({"t": stamps, "u": other, "y": y}, "y", joint=[("t", "u")])
    for label in (0, 1):
        wanted = np.cov(apart[:, y == label], bias=True)
        found = [alone.parameters[name][label]["deviation"] ** 2 for name in "tu"]
        np.testing.assert_allclose(found, np.diag(wanted), rtol=2e-3)  # a mean is known to a quarter of a unit
        np.testing.assert_allclose(together.parameters["t with u"][label]["covariance"], wanted, rtol=1e-6)
    parts = [{"t": stamps[a::3], "u": other[a::3], "y": y[a::3]} for a in range(3)]
    one, two, three = (likely.learn(part, "y", families="gaussian") for part in parts)
    merged = (one + two + three).parameters["t"]
    assert merged[0]["deviation"] == pytest.approx(np.std(apart[0, y == 0]), rel=2e-3)


@pytest.mark.parametrize("rows", [700, 60_000])
def test_a_constant_has_a_spread_of_exactly_zero_however_it_is_counted(rows):
    y, gap = np.arange(rows) % 3, np.where(np.arange(rows) % 5, 0.0, np.nan)
    table = {f"c{j}": 0.1 + j + gap for j in range(5)} | {"own": 1e15 / 3 + y / 10, "z": np.arange(rows) % 7.0, "y": y}
    table["w"] = 0.1 + np.arange(rows) % 4
    with pytest.warns(LikelyWarning, match="does not vary"):
        model = likely.learn(table, "y", families="gaussian", weights="w")
    for block, moments in zip(model.tally.blocks, model.tally.statistics, strict=True):
        assert (moments.spread == 0).all() == (block.name != "z")
    with pytest.warns(LikelyWarning, match="borrowed"):
        joint = likely.learn(table, "y", joint=[("c1", "own", "z")], ignore=["c0", "c2", "c3", "c4"])
    cloud = joint.tally.statistics[0]
    assert (np.einsum("kii->ki", cloud.scatter)[:, :2] == 0).all()


PRIORS = [
    likely.NormalInverseGamma(mean=1.0, strength=2.0, shape=1.5, scale=3.0),
    likely.NormalInverseGamma(mean=-4.0, strength=0.25, shape=0.5, scale=0.1),
    likely.NormalInverseGamma(mean=0.0, strength=30.0, shape=12.0, scale=40.0),
]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("values", [[2.0], [1.0, 4.0], [0.3, 0.1, 5.0, -2.0, 7.5]])
def test_the_normal_inverse_gamma_mode_is_the_top_of_the_posterior_density(prior, values):
    """The posterior density is written down from its definition and climbed by a general optimiser."""
    data = {"x": [*values, 10.0, 12.0], "y": ["a"] * len(values) + ["b"] * 2}
    row = likely.learn(data, "y", families="gaussian", smoothing=prior).parameters["x"][0]

    def minus_log_posterior(point):
        mean, variance = point[0], math.exp(point[1])
        log_prior = stats.invgamma.logpdf(variance, prior.shape, scale=prior.scale) + stats.norm.logpdf(
            mean, prior.mean, math.sqrt(variance / prior.strength)
        )
        return -(log_prior + stats.norm.logpdf(values, mean, math.sqrt(variance)).sum())

    start = [float(np.mean(values)), 0.0]
    top = optimize.minimize(minus_log_posterior, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    assert row["mean"] == pytest.approx(top.x[0], abs=1e-6)
    assert row["deviation"] ** 2 == pytest.approx(math.exp(top.x[1]), rel=1e-6)


def test_a_class_without_numbers_has_the_gaussian_of_its_prior():
    prior = likely.NormalInverseGamma(mean=5.0, strength=3.0, shape=2.0, scale=14.0)
    data = {"x": [1.0, 2.0, None, None], "y": ["a", "a", "b", "b"]}
    row = likely.learn(data, "y", families="gaussian", smoothing=prior).parameters["x"][1]
    assert row["mean"] == 5.0
    assert row["deviation"] ** 2 == pytest.approx(14.0 / (2.0 + 1.5), rel=1e-12)


def test_a_row_too_far_for_the_compiled_loop_is_scored_the_same_beside_others():
    model = likely.learn({"x": [0.0, 1.0, 4.0, 6.0], "y": ["u", "u", "v", "v"]}, "y", plain=True)
    alone = model.posterior({"x": [1e160]}).log_joint
    beside = model.posterior({"x": [0.5, 1e160, 5.0]}).log_joint
    assert np.isneginf(alone).sum() < 2
    assert np.array_equal(beside[1:2], alone)
