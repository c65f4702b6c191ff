"""Likely's estimator inside nilearn: SearchLight and Decoder take it, and the map is that of likely.brain."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut

from likely import NaiveBayes, brain

nibabel = pytest.importorskip("nibabel", reason="NOT TESTED: nibabel is not installed")
decoding = pytest.importorskip("nilearn.decoding", reason="NOT TESTED: nilearn is not installed")


@pytest.fixture(scope="module")
def images():
    """Three runs of two classes that the corner of a small image tells apart."""
    rng = np.random.default_rng(0)
    affine = np.diag([3.0, 3.0, 3.0, 1.0])
    y, runs = np.tile(np.repeat(["face", "house"], 6), 3), np.repeat([0, 1, 2], 12)
    data = rng.normal(size=(4, 4, 3, 36))
    data[:2, :2, :, y == "house"] += 1.5
    mask = np.ones((4, 4, 3), np.uint8)
    mask[3, 3] = 0
    return nibabel.Nifti1Image(data, affine), nibabel.Nifti1Image(mask, affine), y, runs


def quietly(fit, *given, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*given, **more)


def test_searchlight_with_our_estimator_gives_the_map_of_likely_brain(images):
    data, mask, y, runs = images
    nb = NaiveBayes(families="gaussian", smoothing=0)
    light = decoding.SearchLight(mask, radius=3.5, estimator=nb, cv=LeaveOneGroupOut(), n_jobs=1)
    theirs = quietly(light.fit, data, y, groups=runs).scores_
    dataset = brain.load(data, y, mask=mask, runs=runs)
    ours = brain.searchlight(dataset, sphere=3.5)
    assert np.allclose(theirs[tuple(dataset.coordinates.T)], ours)
    assert ours.accuracy.max() > 0.9
    assert ours.accuracy.min() < 0.7


def decoder(estimator, data, mask, y, runs):
    made = decoding.Decoder(estimator, mask=mask, cv=LeaveOneGroupOut(), standardize=False, screening_percentile=100)
    return quietly(made.fit, data, y, groups=runs)


def test_decoder_takes_the_linear_estimator_and_its_weights(images):
    data, mask, y, runs = images
    made = decoder(NaiveBayes(families="gaussian:class", smoothing=0), data, mask, y, runs)
    assert min(score for scores in made.cv_scores_.values() for score in scores) > 0.9
    assert (quietly(made.predict, data) == y).mean() > 0.9
    weights = np.abs(made.coef_img_["house"].get_fdata())
    assert weights[:2, :2].mean() > 3 * weights[2:, 2:][mask.get_fdata()[2:, 2:] > 0].mean()
    # Which sign nilearn gives to the first of two classes is its own affair: it is the same for every estimator.
    other = decoder(LogisticRegression(), data, mask, y, runs).coef_
    assert np.corrcoef(made.coef_[0], other[0])[0, 1] > 0.5


def test_an_estimator_that_is_not_linear_has_no_weights():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.repeat([0, 1, 2], 10)
    for settings in ({}, {"families": "gaussian", "smoothing": 0}):
        assert not hasattr(quietly(NaiveBayes(**settings).fit, X, y), "coef_")
    assert not hasattr(NaiveBayes(), "coef_")


@pytest.mark.parametrize("classes", [2, 3])
def test_coef_and_intercept_give_the_log_odds(classes):
    rng = np.random.default_rng(1)
    y = rng.integers(0, classes, 60)
    X = rng.normal(size=(60, 4)) + y[:, None] + 10
    model = NaiveBayes(families="gaussian:class", smoothing=0).fit(X, y)
    joint, linear = model.predict_joint_log_proba(X), X @ model.coef_.T + model.intercept_
    if classes == 2:
        assert np.allclose(joint[:, 1] - joint[:, 0], linear[:, 0])
    else:
        assert np.allclose(joint - joint[:, :1], linear - linear[:, :1])
