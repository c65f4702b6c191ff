"""Laws of copies and weights: a table in other units, or with one class repeated, changes no probability noticeably."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import likely
from likely.calibration import copies
from strategies import quietly

SMALL = 2e-3  # the largest change of a probability by constant weights: what smoothing of the class prior leaves
SEGMENTS = (0b1110111, 0b0100100, 0b1011101, 0b1101101, 0b0101110, 0b1101011, 0b1111011, 0b0100101, 0b1111111, 0b1101111)


def table(x, y):
    return {f"x{j}": x[:, j] for j in range(x.shape[1])} | {"y": [f"c{v}" for v in y]}


def medical():
    """Measurements: no two rows are equal."""
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.data))
    x, y = data.data[order][:, :8], data.target[order]
    return table(x[:350], y[:350]), table(x[350:], y[350:])


def digits(rows=800):
    """Seven segments of a display, each wrong once in ten: most rows repeat by chance."""
    rng = np.random.default_rng(7)
    y = rng.integers(0, 10, rows)
    lit = np.array(SEGMENTS)[y][:, None] >> np.arange(7) & 1
    x = (lit ^ (rng.random((rows, 7)) < 0.1)).astype(str)
    return table(x[:350], y[:350]), table(x[350:], y[350:])


def probabilities(model, rows):
    return model.posterior({name: column for name, column in rows.items() if name != "y"}).probabilities


@pytest.fixture(scope="module", params=[medical, digits], ids=lambda made: made.__name__)
def tables(request):
    train, test = request.param()
    return train, test, quietly(likely.learn, train, "y")


@pytest.mark.parametrize("weight", [0.5, 2.0, 10.0])
def test_constant_weights_change_no_probability(tables, weight):
    train, test, plain = tables
    weighted = quietly(likely.learn, train, "y", weights=[weight] * 350)
    assert np.abs(probabilities(plain, test) - probabilities(weighted, test)).max() < SMALL


def test_a_table_learned_twice_changes_no_probability(tables):
    train, test, once = tables
    twice = quietly(likely.learn, {name: [*column, *column] for name, column in train.items()}, "y")
    assert np.abs(probabilities(once, test) - probabilities(twice, test)).max() < SMALL
    assert np.abs(probabilities(once, test) - probabilities(quietly(lambda: once + once), test)).max() < SMALL


@pytest.mark.parametrize(("made", "small"), [(medical, 0.05), (digits, 2 * SMALL)])  # quantile bins move with the weights
def test_an_oversampled_class_is_a_changed_prior(made, small):
    train, test = made()
    plain = quietly(likely.learn, train, "y")
    weights = [3.0 if label == "c0" else 1.0 for label in train["y"]]
    heavy = quietly(likely.learn, train, "y", weights=weights)
    changed = probabilities(plain, test) * [3.0 if label == "c0" else 1.0 for label in plain.classes]
    changed /= changed.sum(1, keepdims=True)
    assert np.abs(probabilities(heavy, test) - changed).max() < small


def test_rows_that_repeat_by_nature_are_no_copies():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 600)
    a, b = rng.random(600) < 0.2 + 0.6 * y, rng.integers(0, 3, 600).astype(str)
    data = {"a": a.tolist(), "b": b.tolist(), "y": y.tolist()}
    model = quietly(likely.learn, data, "y")
    assert model.calibration.copies.max() < 1.5


@pytest.mark.parametrize(
    ("weights", "unit"),
    [
        ([2.0] * 5 + [4.0] * 5, 2.0),
        ([4.0] * 5 + [6.0] * 15, 2.0),  # the lightest row is there twice
        ([0.5] * 5 + [1.5] * 5, 0.5),
        ([0.5] + [1.0] * 99, None),  # one odd row makes no unit
        ([1.0] * 5 + [2.0] * 5, None),
        ([2.0] * 9, None),  # nine rows may be pairs by chance
        ([100.0, 200.0, 300.0, 400.0], None),  # a small table of round counts
        ([1.3, 2.7, 3.1] * 5, None),
    ],
)
def test_the_unit_of_weights_is_what_all_are_multiples_of_unless_by_chance(weights, unit):
    assert copies._unit(np.array(weights)) == unit
