"""THEORY sections 5 and 9: full covariances are LDA and QDA proper, and agree with scikit-learn's."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

import likely


def tables():
    rng = np.random.default_rng(7)
    labels = np.repeat([0, 1, 2], [40, 25, 60])
    mixing = rng.normal(size=(5, 5))
    yield "random", rng.normal(size=(125, 5)) @ mixing + 2.0 * rng.normal(size=(3, 5))[labels], labels
    yield "iris", *load_iris(return_X_y=True)
    yield "wine", *load_wine(return_X_y=True)


TABLES = list(tables())
EACH = pytest.mark.parametrize(("X", "y"), [t[1:] for t in TABLES], ids=[t[0] for t in TABLES])


def frame(X, y=None):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    return columns if y is None else columns | {"y": y}


@EACH
def test_one_joint_gaussian_tied_over_the_classes_is_lda(X, y):
    # "lsqr" keeps the maximum-likelihood covariance; the default solver divides by N - k.
    peer = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    model = likely.learn(frame(X, y), "y", families=likely.Joint(tie="class"))
    ours = model.posterior(frame(X))
    np.testing.assert_allclose(ours.probabilities, peer.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(ours.log_probabilities, peer.predict_log_proba(X), rtol=1e-8, atol=1e-8)
    assert (ours.labels == peer.predict(X)).all()


@EACH
def test_one_joint_gaussian_for_each_class_is_qda(X, y):
    peer = QuadraticDiscriminantAnalysis().fit(X, y)
    for k, label in enumerate(peer.classes_):  # scikit-learn's divisor is n - 1 or n by version; ours is n
        peer.scalings_[k] = peer.scalings_[k] * (X[y == label].var(0).sum() / peer.scalings_[k].sum())
    model = likely.learn(frame(X, y), "y", families=likely.Joint())
    ours = model.posterior(frame(X))
    np.testing.assert_allclose(ours.probabilities, peer.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(ours.log_probabilities, peer.predict_log_proba(X), rtol=1e-8, atol=1e-8)


@EACH
def test_relearning_turns_lda_into_qda_without_the_data(X, y):
    lda = likely.learn(frame(X, y), "y", families=likely.Joint(tie="class"))
    qda = likely.learn(frame(X, y), "y", families=likely.Joint())
    assert lda.relearn(families=likely.Joint()) == qda
    assert qda.relearn(families=likely.Joint(tie="class")) == lda


@EACH
def test_a_diagonal_covariance_shared_by_the_classes_is_lda_on_uncorrelated_columns(X, y):
    """σᵢ is LDA with a diagonal covariance: both agree once each class's columns are made uncorrelated in the pool."""
    residual = np.vstack([X[y == k] - X[y == k].mean(0) for k in np.unique(y)])
    _, axes = np.linalg.eigh(residual.T @ residual)
    Z = X @ axes
    diagonal = likely.learn(frame(Z, y), "y", families=likely.Gaussian(tie="class")).posterior(frame(Z))
    full = likely.learn(frame(Z, y), "y", families=likely.Joint(tie="class")).posterior(frame(Z))
    np.testing.assert_allclose(diagonal.probabilities, full.probabilities, atol=1e-8)


def test_joint_gaussians_count_means_covariances_and_classes():
    X, y = load_iris(return_X_y=True)
    k, p = 3, 4
    assert likely.learn(frame(X, y), "y", families=likely.Joint()).parameter_count.free == k * p + k * 10 + k - 1
    lda = likely.learn(frame(X, y), "y", families=likely.Joint(tie="class"))
    assert lda.parameter_count.free == k * p + 10 + k - 1
