"""A plain model says what scikit-learn's says, to the ninth digit, on any table that both can read."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB

from likely import NaiveBayes

SMOOTHING = st.sampled_from([1 / 3, 0.5, 1.0, 2.5])
WEIGHTS = (0.25, 0.5, 1.0, 2.0, 3.0)
# Eighths keep means and squares free of rounding where scikit-learn sums in another order.
EIGHTHS = st.integers(-800, 800).map(lambda n: n / 8)
SMALL = st.integers(0, 5)


@st.composite
def tables(draw, cells, dtype, fewest=1):
    """Rows, labels and weights; every class has at least so many rows."""
    classes = draw(st.integers(2, 4))
    rows = draw(st.integers(classes * fewest, 40))
    X = draw(arrays(dtype, (rows, draw(st.integers(1, 5))), elements=cells))
    free = rows - classes * fewest
    rest = draw(st.lists(st.integers(0, classes - 1), min_size=free, max_size=free))
    y = np.array([*np.repeat(np.arange(classes), fewest), *rest])
    w = draw(st.none() | arrays(np.float64, rows, elements=st.sampled_from(WEIGHTS)))
    labels = draw(st.sampled_from([np.arange(4), np.array([-7, 0, 5, 900]), np.array(["a", "b", "ü", "z"])]))
    return X, labels[y], w


def agree(ours, peer, X):
    """The same classes, the same joint scores and the same probabilities."""
    np.testing.assert_array_equal(ours.classes_, peer.classes_)
    ask = "predict_joint_log_proba"
    np.testing.assert_allclose(getattr(ours, ask)(X), getattr(peer, ask)(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.predict_log_proba(X), peer.predict_log_proba(X), rtol=1e-9, atol=1e-9)


@given(tables(EIGHTHS, np.float64, fewest=2), st.booleans())
def test_gaussian_columns_are_those_of_gaussian_nb(table, uniform):
    X, y, w = table
    assume(all((X[y == label].var(0) > 0).all() for label in np.unique(y)))
    prior = np.full(len(np.unique(y)), 1 / len(np.unique(y))) if uniform else None
    peer = GaussianNB(var_smoothing=0, priors=prior).fit(X, y, w)
    agree(NaiveBayes(class_prior=prior, plain=True).fit(X, y, sample_weight=w), peer, X)


@given(tables(EIGHTHS, np.float64, fewest=2), st.integers(1, 39))
def test_gaussian_columns_in_parts_are_those_of_gaussian_nb(table, cut):
    X, y, w = table
    assume(all((X[y == label].var(0) > 0).all() for label in np.unique(y)))
    assume(cut < len(y))
    ours = NaiveBayes(plain=True).partial_fit(X[:cut], y[:cut], sample_weight=None if w is None else w[:cut])
    ours.partial_fit(X[cut:], y[cut:], sample_weight=None if w is None else w[cut:])
    agree(ours, GaussianNB(var_smoothing=0).fit(X, y, w), X)


@given(tables(SMALL, np.int64), SMOOTHING)
def test_categories_are_those_of_categorical_nb(table, smoothing):
    X, y, w = table
    # CategoricalNB also counts the numbers below the largest that never occur: let there be none.
    X = np.column_stack([np.unique(column, return_inverse=True)[1] for column in X.T])
    peer = CategoricalNB(alpha=smoothing).fit(X, y, w)
    for kind in (np.int64, np.float64):
        ours = NaiveBayes("categorical", smoothing=smoothing).fit(X.astype(kind), y, sample_weight=w)
        agree(ours, peer, X)
    words = np.array(["zero", "one", "two", "three", "four", "five"], dtype=object)[X]
    ours = NaiveBayes(smoothing=smoothing).fit(words, y, sample_weight=w)
    np.testing.assert_allclose(ours.predict_proba(words), peer.predict_proba(X), rtol=0, atol=1e-9)


@given(tables(SMALL, np.int64), SMOOTHING)
def test_yes_and_no_are_those_of_bernoulli_nb(table, smoothing):
    X, y, w = table
    peer = BernoulliNB(alpha=smoothing).fit(X, y, w)
    agree(NaiveBayes("bernoulli", smoothing=smoothing).fit(X, y, sample_weight=w), peer, X)


@given(tables(SMALL, np.int64), SMOOTHING)
def test_a_block_of_counts_is_that_of_multinomial_nb(table, smoothing):
    X, y, w = table
    peer = MultinomialNB(alpha=smoothing).fit(X, y, w)
    agree(NaiveBayes("multinomial", smoothing=smoothing).fit(X, y, sample_weight=w), peer, X)


@st.composite
def clouds(draw):
    """Correlated numbers in several classes, enough of each class for a covariance of its own."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    width, sizes = draw(st.integers(1, 6)), draw(st.lists(st.integers(12, 30), min_size=2, max_size=4))
    y = np.repeat(np.arange(len(sizes)), sizes)
    mixing = rng.normal(size=(width, width)) + 2 * np.eye(width)
    assume(np.linalg.cond(mixing) < 50)
    return rng.normal(size=(len(y), width)) @ mixing + rng.normal(size=(len(sizes), width))[y], y


@given(clouds())
def test_one_joint_gaussian_with_shared_covariance_is_linear_discriminant_analysis(cloud):
    X, y = cloud
    peer = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    ours = NaiveBayes("joint:class").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), rtol=0, atol=1e-8)
    # Logs are compared as distances between classes: scikit-learn takes the log of 1 - p, which has few digits left.
    joint, peers = ours.predict_joint_log_proba(X), peer.decision_function(X)
    apart = peers if peers.ndim == 1 else peers[:, 1] - peers[:, 0]
    np.testing.assert_allclose(joint[:, 1] - joint[:, 0], apart, rtol=1e-8, atol=1e-8)


@given(clouds())
def test_one_joint_gaussian_a_class_is_quadratic_discriminant_analysis(cloud):
    X, y = cloud
    peer = QuadraticDiscriminantAnalysis(tol=1e-12).fit(X, y)  # a narrow cloud is no plane
    for k, label in enumerate(peer.classes_):  # scikit-learn's divisor is n - 1 or n by version; ours is n
        peer.scalings_[k] = peer.scalings_[k] * (X[y == label].var(0).sum() / peer.scalings_[k].sum())
    ours = NaiveBayes("joint").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.predict_log_proba(X), peer.predict_log_proba(X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("families", ["categorical", "bernoulli", "multinomial"])
@given(table=tables(SMALL, np.int64), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_any_parts_count_what_the_whole_counts(families, table, cuts):
    X, y, w = table
    whole, parts = NaiveBayes(families).fit(X, y, sample_weight=w), NaiveBayes(families)
    for part in np.split(np.arange(len(y)), sorted(cuts)):
        if len(part):
            parts.partial_fit(X[part], y[part], sample_weight=None if w is None else w[part])
    assert parts.model_.tally == whole.model_.tally
    np.testing.assert_array_equal(parts.predict_proba(X), whole.predict_proba(X))


@given(arrays(np.float64, (12, 3), elements=EIGHTHS | st.just(np.nan)), st.permutations(range(12)))
def test_gaps_and_the_order_of_rows_leave_finite_probabilities(X, order):
    y = np.arange(12) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = NaiveBayes().fit(X, y), NaiveBayes().fit(X[order], y[order])
    probabilities = one.predict_proba(X)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(1), 1)
    np.testing.assert_allclose(two.predict_proba(X), probabilities, rtol=0, atol=1e-9)
