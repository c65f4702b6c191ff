"""Laws of trust: copies and weights change nothing, noise is recognised, directions are found, explanations stay sums."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import likely
from likely import threads
from likely.calibration import directions, tables
from likely.families import evidence
from likely.families.evidence import nested, weigh

SMALL = 2e-3  # the largest change of a probability by constant weights: what smoothing of the class prior leaves
NOISE = 0.02


def quietly(call, *args, **settings):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **settings)


def table(x, y):
    return {f"x{j}": x[:, j] for j in range(x.shape[1])} | {"y": [f"c{v}" for v in y]}


@pytest.fixture(scope="module")
def medical():
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.data))
    x, y = data.data[order][:, :8], data.target[order]
    return table(x[:350], y[:350]), table(x[350:], y[350:])


def probabilities(model, rows):
    return model.posterior({name: column for name, column in rows.items() if name != "y"}).probabilities


@pytest.mark.parametrize("weight", [0.5, 2.0, 10.0])
def test_constant_weights_change_no_probability(medical, weight):
    train, test = medical
    plain = probabilities(quietly(likely.learn, train, "y"), test)
    weighted = probabilities(quietly(likely.learn, train, "y", weights=[weight] * 350), test)
    assert np.abs(plain - weighted).max() < SMALL


def test_a_table_learned_twice_changes_no_probability(medical):
    train, test = medical
    once = quietly(likely.learn, train, "y")
    twice = quietly(likely.learn, {name: [*column, *column] for name, column in train.items()}, "y")
    assert np.abs(probabilities(once, test) - probabilities(twice, test)).max() < SMALL
    assert np.abs(probabilities(once, test) - probabilities(quietly(lambda: once + once), test)).max() < SMALL


def test_an_oversampled_class_is_a_changed_prior(medical):
    train, test = medical
    plain = probabilities(quietly(likely.learn, train, "y"), test)
    weights = [3.0 if label == "c0" else 1.0 for label in train["y"]]
    heavy = probabilities(quietly(likely.learn, train, "y", weights=weights), test)
    changed = plain * [3.0, 1.0]
    changed /= changed.sum(1, keepdims=True)
    assert np.abs(heavy - changed).max() < 0.05  # the quantile bins move with the weights


def test_rows_that_repeat_by_nature_are_no_copies():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 600)
    a, b = rng.random(600) < 0.2 + 0.6 * y, rng.integers(0, 3, 600).astype(str)
    data = {"a": a.tolist(), "b": b.tolist(), "y": y.tolist()}
    model = quietly(likely.learn, data, "y")
    assert model.calibration.copies.max() < 1.5


@pytest.mark.parametrize(
    ("rows", "columns", "kind"),
    [(12, 3, "numbers"), (60, 40, "numbers"), (60, 40, "values"), (200, 20, "values"), (100, 150, "skewed")],
)
def test_of_noise_the_default_knows_no_more_than_the_class_frequencies(rows, columns, kind):
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
    assert np.mean(excess) <= 4 * NOISE  # noise that looks like a signal by chance cannot be told from one


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


def test_nested_choices_end_in_the_choice_of_all_rows():
    rng = np.random.default_rng(3)
    seen = rng.poisson(4, (40, 3)).astype(float)
    folds = np.stack([rng.binomial(seen.astype(int), 0.25) for _ in range(4)]).astype(float)
    plain = weigh(seen, np.arange(40.0))
    made = nested(plain, folds)
    assert len(made) == 5
    assert made[-1] is plain
    for f, each in enumerate(made[:-1]):
        alone = weigh(seen - folds[f], np.arange(40.0))
        assert each.gain == pytest.approx(alone.gain, abs=0.5)  # ranks are those of all rows


def test_iris_gains_from_the_direction():
    data = load_iris()
    order = np.random.default_rng(0).permutation(150)
    x, y = data.data[order], data.target[order]
    model = quietly(likely.learn, table(x[:100], y[:100]), "y")
    own = probabilities(model, table(x[100:], y[100:]))[np.arange(50), y[100:]]
    assert -np.log(own).mean() < 0.12


@pytest.mark.parametrize("seed", range(20))
def test_compiled_loops_score_bandwidths_and_pseudocounts_like_arrays(seed):
    rng = np.random.default_rng(seed)
    values, classes = int(rng.integers(2, 130)), int(rng.integers(2, 6))
    seen = rng.poisson(rng.uniform(0.3, 5), (values, classes)) * rng.choice([1.0, 0.7])
    seen[0] += 1.0
    sets = seen * (1.0 - rng.dirichlet(np.ones(4)))[:, None, None]
    centres = np.sort(rng.normal(size=values))
    rest = rng.dirichlet(np.ones(classes), size=4)
    plain, fast = (how(sets, seen, centres, rest) for how in (evidence._scores, evidence._compiled_scores))
    assert plain.shape == fast.shape
    np.testing.assert_allclose(fast, plain, atol=2e-6 * np.abs(plain).max())
    for at in range(len(plain)):
        some, same = (evidence._shape(seen, centres, at, compiled) for compiled in (False, True))
        np.testing.assert_allclose(same.often, some.often, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 5])
def test_compiled_gains_of_a_table_are_those_of_arrays(classes):
    rng = np.random.default_rng(classes)
    n, cells = 300, rng.integers(0, 12, 300).astype(np.int32)
    rows = tables.Rows(
        rng.integers(0, classes, n), rng.uniform(0.5, 2, n), np.ones(n), rng.dirichlet(np.ones(classes), n)
    )
    counted = tables.count_cells(cells, rows, 12)
    some, same = (how(*counted, cells, rows, tables.SHRINKS) for how in (tables._gains, tables._compiled_gains))
    np.testing.assert_allclose(same, some, rtol=1e-9)


def test_linear_algebra_has_its_threads_back_after_the_second_stage():
    before = [each.num_threads for each in threads._blas()]
    with threads.one_blas_thread(), threads.one_blas_thread():
        assert {each.num_threads for each in threads._blas()} <= {1}
    assert [each.num_threads for each in threads._blas()] == before


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
    assert _parity(3, 2, 2) < 0.06  # bins of equal weight: 0.118


def test_a_parity_of_three_columns_is_found_though_no_pair_shows_it():
    assert _parity(2, 3, 10) < 0.1  # the class frequencies: 0.69


def test_moments_of_the_discriminant_are_those_of_repeated_rows():
    rng = np.random.default_rng(2)
    x, labels, weights = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), rng.integers(1, 4, 40)
    some = directions._count(x, labels, weights.astype(float), 4)
    same = directions._count(np.repeat(x, weights, axis=0), np.repeat(labels, weights), np.ones(weights.sum()), 4)
    for name in ("n", "sums", "squares"):
        np.testing.assert_allclose(getattr(some, name), getattr(same, name), rtol=1e-12, atol=1e-12)
