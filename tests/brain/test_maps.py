"""Means, weights and evidence: what the model holds, voxel by voxel."""

import numpy as np
import pytest

import likely
from likely import brain
from likely.errors import DataError, UsageError
from likely.plots import mosaic


def test_mean_maps_are_the_means_of_the_classes(made):
    X, y, _, _ = made
    maps = brain.mean_maps(X, y)
    assert list(maps) == ["cat", "dog", "owl"]
    for name, found in maps.items():
        assert np.allclose(found, X[y == name].mean(0), rtol=1e-14)


def test_weight_maps_are_the_weights_of_the_linear_classifier(made):
    X, y, _, _ = made
    pair = np.isin(y, ["cat", "owl"])
    model = likely.NaiveBayes(families="gaussian:class", smoothing=0).fit(X[pair], y[pair])
    assert np.allclose(brain.weight_maps(X, y, classes=("cat", "owl"))["owl"], model.coef_[0])
    with pytest.raises(UsageError, match="linear"):
        brain.weight_maps(X, y, tie=None)


def test_the_evidence_of_a_volume_adds_up_to_its_log_odds(made):
    X, y, _, _ = made
    pair = np.isin(y, ["cat", "owl"])
    model = likely.NaiveBayes(families="gaussian", smoothing=0, class_prior=[0.5, 0.5]).fit(X[pair], y[pair])
    joint = model.predict_joint_log_proba(X[:1])[0]
    maps = brain.evidence_maps(X, y, classes=("cat", "owl"), volume=X[0])
    assert maps["cat"].sum() == pytest.approx(joint[0] - joint[1])
    assert np.allclose(maps["cat"], -maps["owl"])


def test_expected_evidence_is_the_mean_evidence_of_many_volumes_of_the_class(made):
    X, y, _, _ = made
    rng = np.random.default_rng(0)
    expected = brain.evidence_maps(X, y, classes=("cat", "owl"))["cat"]
    mean, deviation = X[y == "cat"].mean(0), X[y == "cat"].std(0)
    drawn = [
        brain.evidence_maps(X, y, classes=("cat", "owl"), volume=rng.normal(mean, deviation))["cat"] for _ in range(400)
    ]
    assert (expected >= 0).all()
    error = np.std(drawn, axis=0) / np.sqrt(len(drawn))
    assert (np.abs(np.mean(drawn, axis=0) - expected) < 5 * error).all()


def test_a_volume_of_another_size_is_refused(made):
    X, y, _, _ = made
    with pytest.raises(DataError, match="one value for each of"):
        brain.evidence_maps(X, y, volume=X[0, :-1])


def test_detrending_removes_a_line_within_each_run_and_nothing_else():
    rng = np.random.default_rng(0)
    runs = np.repeat([0, 1], [30, 20])
    noise = rng.normal(size=(50, 3))
    for run in (0, 1):
        time = np.arange((runs == run).sum())
        design = np.column_stack([np.ones(len(time)), time])
        noise[runs == run] -= design @ np.linalg.lstsq(design, noise[runs == run], rcond=None)[0]
    drift = np.concatenate([5 + 0.3 * np.arange(30), -2 - 0.1 * np.arange(20)])
    found = brain.clean(noise + drift[:, None], runs, standardize=False)
    for run in (0, 1):
        part = found[runs == run]
        assert np.allclose(part - part.mean(0), noise[runs == run])


def test_standardising_gives_mean_0_and_deviation_1_in_each_run_by_all_volumes_or_by_the_baseline():
    rng = np.random.default_rng(0)
    runs, rest = np.repeat([0, 1], 20), np.tile([True, False], 20)
    X = rng.normal(50, 4, (40, 3))
    X[:, 2] = 7.0
    whole, by_rest = brain.clean(X, runs, detrend=False), brain.clean(X, runs, detrend=False, baseline=rest)
    for run in (0, 1):
        assert np.allclose(whole[runs == run][:, :2].std(0), 1)
        assert np.allclose(by_rest[(runs == run) & rest][:, :2].mean(0), 0)
        assert np.allclose(by_rest[(runs == run) & rest][:, :2].std(0), 1)
    assert (whole[:, 2] == 0).all()  # constant
    with pytest.raises(DataError, match="baseline volumes"):
        brain.clean(X, runs, baseline=rest & (runs == 0))
    with pytest.raises(DataError, match="volume 3 has nan"):
        brain.clean(np.where(np.arange(40)[:, None] == 3, np.nan, X), runs)


def test_a_mosaic_shows_every_voxel_in_its_colour_and_place():
    volume = np.full((3, 2, 2), np.nan)
    volume[0, 0, 0], volume[2, 1, 1] = 0.0, 1.0
    drawn = mosaic.Mosaic([mosaic.MapPanel("x < y", volume)], "T & t", "subtitle", 0.0, 1.0)
    svg = mosaic.svg(drawn)
    assert "x &lt; y" in svg
    assert "T &amp; t" in svg
    assert svg.count("<image") == 2
    png = pytest.importorskip("matplotlib.image")
    import io

    pixels = png.imread(io.BytesIO(mosaic.png(drawn)))
    assert (pixels[..., 3] > 0).sum() == 2 * mosaic.PIXELS**2
    low, high = mosaic.colours(np.array([0.0, 1.0]), "sequential")
    tall, wide = 2 * mosaic.PIXELS, 3 * mosaic.PIXELS
    assert (pixels[tall - 1, 0, :3] * 255).round().tolist() == low.tolist()  # lowest row, left
    assert (pixels[-tall if pixels.shape[0] > tall else 0, -1, :3] * 255).round().tolist() == high.tolist()
    assert pixels.shape[1] in (wide, 2 * wide)
