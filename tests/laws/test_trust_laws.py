"""Laws of trust: noise is recognised, directions are found, explanations stay sums."""

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from threadpoolctl import threadpool_limits

import likely
from likely.calibration import _discriminant as discriminant
from likely.calibration import _interaction_tables as interaction_tables
from likely.families.smoothing_choice import choose_smoothing, nested
from likely.kernels import parallel

NOISE = 0.02


def quietly(call, *args, **settings):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **settings)


def table(x, y):
    return {f"x{j}": x[:, j] for j in range(x.shape[1])} | {"y": [f"c{v}" for v in y]}


def probabilities(model, rows):
    return model.posterior({name: column for name, column in rows.items() if name != "y"}).probabilities


@pytest.mark.parametrize(
    ("rows", "columns", "kind"),
    [
        (12, 3, "numbers"),
        (10, 30, "numbers"),  # fewer rows than columns: joint Gaussians and directions separate noise
        (10, 100, "numbers"),
        (20, 60, "numbers"),
        (30, 100, "values"),
        (40, 400, "skewed"),
        (60, 40, "numbers"),
        (60, 40, "values"),
        (60, 250, "numbers"),  # more columns than the discriminant can use
        (60, 120, "values"),
        (200, 20, "values"),
        (100, 150, "skewed"),
        (1000, 1, "numbers"),
        (1000, 10, "values"),
    ],
)
def test_on_noise_the_default_is_no_worse_than_the_class_frequencies(rows, columns, kind):
    excess = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(rows + 500, columns))
        x = np.exp(2 * x) if kind == "skewed" else x
        y = rng.integers(0, 2, rows + 500)
        y[:2] = 0, 1
        cells = (
            np.array(["low", "middle", "high"])[np.clip(np.round(x), -1, 1).astype(int) + 1] if kind == "values" else x
        )
        train, test = table(cells[:rows], y[:rows]), table(cells[rows:], y[rows:])
        share = (np.bincount(y[:rows], minlength=2) + 0.5) / (rows + 1)
        own = probabilities(quietly(likely.learn, train, "y"), test)[np.arange(500), y[rows:]]
        excess.append(float(-np.log(own).mean() + np.log(share[y[rows:]]).mean()))
    assert np.median(excess) <= NOISE
    assert np.mean(excess) <= 2 * NOISE  # noise that looks like a signal by chance cannot be told from one


@pytest.mark.parametrize(("rows", "columns"), [(400, 10), (2000, 10), (500, 40)])
def test_the_parity_of_three_columns_is_found_though_no_pair_shows_it(rows, columns):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (rows + 300, columns))  # of ten columns many rows are equal: they are one row of the sample
    y, cells = x[:, :3].sum(1) % 2, np.array(["no", "yes"])[x]
    model = quietly(likely.learn, table(cells[:rows], y[:rows]), "y")
    own = probabilities(model, table(cells[rows:], y[rows:]))[np.arange(300), y[rows:]]
    assert -np.log(own).mean() < 0.01


def test_on_fourteen_days_of_tennis_the_default_is_no_worse_than_the_class_frequencies():
    with (Path(likely.__file__).parent / "data" / "tennis.csv").open() as file:
        head, *rows = csv.reader(file)
    days = {name: list(column) for name, column in zip(head, zip(*rows, strict=True), strict=True)}
    lost, none = [], []
    for i, label in enumerate(days[head[-1]]):
        rest = {name: [*column[:i], *column[i + 1 :]] for name, column in days.items()}
        model = quietly(likely.learn, rest, head[-1])
        asked = model.posterior({name: [column[i]] for name, column in days.items() if name != head[-1]})
        lost.append(-np.log(asked.probabilities[0, list(model.classes).index(label)]))
        none.append(-np.log((rest[head[-1]].count(label) + 0.5) / 14))
    assert np.mean(lost) <= np.mean(none) + NOISE


def test_one_signal_is_found_among_many_columns_of_noise():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 800)
    x = rng.normal(size=(800, 150))
    x[:, 7] += 2.0 * y
    train, test = table(x[:300], y[:300]), table(x[300:], y[300:])
    own = probabilities(quietly(likely.learn, train, "y"), test)[np.arange(500), y[300:]]
    assert -np.log(own).mean() < 0.48  # class frequencies: 0.69


def rotated(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 20))
    x[:, 0] += 2.5 * y
    turn = np.linalg.qr(np.random.default_rng(9).normal(size=(20, 20)))[0]
    return (x * np.linspace(1, 3, 20)) @ turn, y


def test_a_direction_that_no_column_shows_is_found_and_explained():
    x, y = rotated(1500)
    model = quietly(likely.learn, table(x[:700], y[:700]), "y")
    rows = table(x[700:], y[700:])
    own = probabilities(model, rows)[np.arange(800), y[700:]]
    assert -np.log(own).mean() < 0.36  # without the direction about 0.6
    assert len(model.calibration.directions) == 20
    row = {name: column[3] for name, column in rows.items() if name != "y"}
    ledger = model.explain(row)
    found = np.exp(ledger.log_joint - np.logaddexp.reduce(ledger.log_joint))
    np.testing.assert_allclose(found, probabilities(model, rows)[3], rtol=1e-9)


def test_a_direction_is_saved_merged_and_forgotten_like_all_else(tmp_path):
    x, y = rotated(600)
    whole = quietly(likely.learn, table(x, y), "y")
    one, two = (quietly(likely.learn, table(x[part], y[part]), "y") for part in (slice(0, 250), slice(250, None)))
    rows = table(*rotated(60, seed=5))
    expected = probabilities(whole, rows)
    np.testing.assert_allclose(probabilities(quietly(lambda: one + two), rows), expected, atol=1e-9)
    whole.save(tmp_path / "m.likely")
    np.testing.assert_array_equal(probabilities(likely.load(tmp_path / "m.likely"), rows), expected)


def turned(n, seed=0):
    """Two classes with equal means whose covariances are turned against each other, in ten dimensions."""
    rng = np.random.default_rng(seed)
    turns = [np.linalg.qr(np.random.default_rng(k).normal(size=(10, 10)))[0] for k in (3, 4)]
    y = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 10)) * np.linspace(0.4, 2.0, 10)
    return np.where(y[:, None] == 0, x @ turns[0], x @ turns[1]), y


def test_spreads_that_differ_between_classes_are_found_and_explained_in_one_line():
    x, y = turned(1800)
    model = quietly(likely.learn, table(x[:1000], y[:1000]), "y")
    rows = table(x[1000:], y[1000:])
    shares = probabilities(model, rows)
    assert -np.log(shares[np.arange(800), y[1000:]]).mean() < 0.35  # without the joint Gaussians about 0.5
    row = {name: column[3] for name, column in rows.items() if name != "y"}
    ledger = model.explain(row)
    assert [entry.columns for entry in ledger.entries].count(("(all numbers together)",)) == 1
    summed = np.array(ledger.log_prior) + sum(np.array(entry.evidence) for entry in ledger.entries)
    np.testing.assert_allclose(summed, ledger.log_joint, atol=1e-9)
    np.testing.assert_allclose(np.exp(summed - np.logaddexp.reduce(summed)), shares[3], rtol=1e-9)


def test_joint_gaussians_are_saved_merged_and_leave_missing_cells_out(tmp_path):
    x, y = turned(900)
    x[::7, 2] = np.nan
    whole = quietly(likely.learn, table(x, y), "y")
    assert whole.calibration.joint is not None
    one, two = (quietly(likely.learn, table(x[part], y[part]), "y") for part in (slice(0, 400), slice(400, None)))
    rows = table(*turned(60, seed=5))
    expected = probabilities(whole, rows)
    np.testing.assert_allclose(probabilities(quietly(lambda: one + two), rows), expected, atol=1e-9)
    whole.save(tmp_path / "m.likely")
    np.testing.assert_array_equal(probabilities(likely.load(tmp_path / "m.likely"), rows), expected)


def test_where_classes_have_one_covariance_there_are_no_joint_gaussians():
    assert quietly(likely.learn, table(*rotated(700)), "y").calibration.joint is None


def test_nested_choices_end_in_the_choice_of_all_rows():
    rng = np.random.default_rng(3)
    seen = rng.poisson(4, (40, 3)).astype(float)
    folds = np.stack([rng.binomial(seen.astype(int), 0.25) for _ in range(4)]).astype(float)
    plain = choose_smoothing(seen, np.arange(40.0))
    made = nested(plain, folds)
    assert len(made) == 5
    assert made[-1] is plain
    for f, each in enumerate(made[:-1]):
        alone = choose_smoothing(seen - folds[f], np.arange(40.0))
        assert each.gain == pytest.approx(alone.gain, abs=0.5)  # ranks are those of all rows


def test_iris_gains_from_the_direction():
    data = load_iris()
    order = np.random.default_rng(0).permutation(150)
    x, y = data.data[order], data.target[order]
    model = quietly(likely.learn, table(x[:100], y[:100]), "y")
    own = probabilities(model, table(x[100:], y[100:]))[np.arange(50), y[100:]]
    assert -np.log(own).mean() < 0.12


def test_linear_algebra_has_its_threads_back_after_the_second_stage():
    with threadpool_limits(2, user_api="blas"):
        before = [each.num_threads for each in parallel._blas()]
        assert set(before) <= {2}
        with parallel.one_blas_thread(), parallel.one_blas_thread():
            assert {each.num_threads for each in parallel._blas()} <= {1}
        assert [each.num_threads for each in parallel._blas()] == before


def test_few_rows_ask_more_nats_of_an_interaction():
    usual, rare = interaction_tables.Threshold.of(0.05, 0.05), interaction_tables.Threshold.of(5e-6, 0.05)
    assert usual.passed(4.0, 2.0)
    assert not usual.passed(3.0, 2.0)
    assert not rare.passed(9.0, 1.86)  # the best of 2,016 pairs of noise in 60 rows
    assert rare.passed(30.0, 4.0)


def _parity(cells: int, of: int, columns: int) -> float:
    """Log loss on new rows, the class being the parity of the cells that some numbers lie in."""
    rng = np.random.default_rng(5)
    x = rng.uniform(size=(4_000, columns))
    y = np.floor(x[:, :of] * cells).astype(int).sum(1) % 2
    data = {f"x{j}": x[:, j] for j in range(columns)}
    model = likely.learn({name: values[:2_500] for name, values in data.items()} | {"y": y[:2_500]}, "y")
    shares = model.posterior({name: values[2_500:] for name, values in data.items()}).probabilities
    return float(-np.log(shares[np.arange(1_500), y[2_500:]]).mean())


def test_cuts_of_an_interaction_lie_where_the_class_changes():
    assert _parity(3, 2, 2) < 0.03  # bins of equal weight: 0.118


def test_a_pattern_with_edges_is_given_to_a_table_though_components_of_joint_gaussians_fit_it_as_well():
    """Joint Gaussians first: 0.033 and 0.062, and no table afterwards; patterns of clouds keep their Gaussians."""
    assert _parity(2, 2, 2) < 0.012
    assert _parity(3, 2, 2) < 0.03
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 1_500)
    centre = np.array([[-2.0, -2.0], [2.0, 2.0], [-2.0, 2.0], [2.0, -2.0]])[2 * y + rng.integers(0, 2, 1_500)]
    model = quietly(likely.learn, table(centre + rng.normal(size=(1_500, 2)), y), "y")
    assert model.calibration.joint is not None


def test_a_parity_of_three_columns_is_found_though_no_pair_shows_it():
    assert _parity(2, 3, 10) < 0.1  # the class frequencies: 0.69


def test_a_bin_that_holds_the_edge_of_a_pattern_is_a_group_of_its_own_where_that_gains():
    assert _parity(4, 2, 2) < 0.034  # all bins on one side of a cut: 0.042


def test_bins_of_a_table_are_finer_where_leave_one_out_prefers_them():
    """Two spirals of two turns each."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 8_000)
    radius = np.sqrt(rng.random(8_000))
    angle = 4 * np.pi * radius + np.pi * y
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1) + 0.03 * rng.normal(size=(8_000, 2))
    model = quietly(likely.learn, table(x[:4_000], y[:4_000]), "y")
    own = probabilities(model, table(x[4_000:], y[4_000:]))[np.arange(4_000), y[4_000:]]
    assert -np.log(own).mean() < 0.006  # 24 bins, or cuts: 0.0082
    assert max(len(groups) for groups in model.calibration.interactions[0].groups) > 25


def test_a_pattern_of_six_columns_is_found_by_adding_columns_to_smaller_sets():
    """The class is a random function of six columns, with three labels in a hundred wrong."""
    rng, function = np.random.default_rng(2), np.random.default_rng(99).integers(0, 2, 64)
    x = rng.integers(0, 2, (8_000, 6))
    y = np.where(rng.random(8_000) < 0.97, function[x @ 2 ** np.arange(6)], rng.integers(0, 2, 8_000))
    model = quietly(likely.learn, table(x[:4_000].astype(str), y[:4_000]), "y")
    own = probabilities(model, table(x[4_000:].astype(str), y[4_000:]))[np.arange(4_000), y[4_000:]]
    found = max(len(each.columns) for each in model.calibration.interactions)
    assert found == 6
    assert -np.log(own).mean() < 0.093  # four columns at most: 0.097; the function itself: 0.078


def test_moments_of_the_discriminant_are_those_of_repeated_rows():
    rng = np.random.default_rng(2)
    x, labels, weights = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), rng.integers(1, 4, 40)
    some = discriminant._count(x, labels, weights.astype(float), 4)
    same = discriminant._count(np.repeat(x, weights, axis=0), np.repeat(labels, weights), np.ones(weights.sum()), 4)
    for name in ("n", "sums", "squares"):
        np.testing.assert_allclose(getattr(some, name), getattr(same, name), rtol=1e-12, atol=1e-12)


def test_noise_of_thousands_of_columns_gains_nothing_by_the_choice_of_columns_with_weights_of_their_own():
    rng = np.random.default_rng([60, 3000, 1])  # a draw whose common temperature is above zero by chance
    x = rng.normal(size=(1060, 3000))
    y = rng.integers(0, 2, 1060)
    y[:2] = 0, 1
    names = [f"x{j}" for j in range(3000)]
    model = likely.learn(dict(zip(names, x[:60].T, strict=True)) | {"y": y[:60]}, "y")
    shares = model.posterior(dict(zip(names, x[60:].T, strict=True))).probabilities
    usual = np.bincount(y[:60]) / 60
    assert np.log(usual[y[60:]]).mean() - np.log(shares[np.arange(1000), y[60:]]).mean() < 0.02


def _wide(informative: int, shift: float) -> float:
    """Log loss on new rows beyond that of the class frequencies: 60 rows, 1,200 columns, a few of them informative."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 560)
    x = rng.normal(size=(560, 1200))
    x[:, :informative] += shift * y[:, None]
    model = quietly(likely.learn, table(x[:60], y[:60]), "y")
    own = probabilities(model, table(x[60:], y[60:]))[np.arange(500), y[60:]]
    return float(np.log(np.bincount(y[:60])[y[60:]] / 60).mean() - np.log(own).mean())


def test_a_few_informative_columns_are_found_among_a_thousand_columns_of_noise():
    assert _wide(5, 1.5) < -0.43  # a column's whole gain taken for a log Bayes factor: -0.377, as noise seems relevant too


def test_the_best_of_thousands_of_pairs_of_noise_does_not_worsen_the_log_loss():
    """Of 2,016 pairs one gains 15 nats by leave-one-out in this draw: new rows lose what it claims."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2200, 200)), rng.integers(0, 2, 2200)
    columns = {f"x{j}": x[:, j] for j in range(200)}
    model = likely.learn({name: v[:200] for name, v in columns.items()} | {"y": y[:200]}, "y")
    p = model.posterior({name: v[200:] for name, v in columns.items()}).probabilities
    share = np.bincount(y[:200]) / 200
    new = y[200:]
    assert -np.log(p[np.arange(2000), new]).mean() < -np.log(share[new]).mean() + 0.02
