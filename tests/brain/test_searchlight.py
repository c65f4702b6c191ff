"""The searchlight is the slow way, done at once: a classifier per voxel and run gives the same accuracies, bit for bit."""

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.naive_bayes import GaussianNB

import likely
from likely import brain
from likely.brain import Neighbourhoods, _voxel_loops
from likely.brain import _searchlight_map as searchlight_map
from likely.errors import DataError, LikelyWarning, UsageError


def slow(X, y, groups, near):
    """scikit-learn's Gaussian Naive Bayes, fitted for every neighbourhood and fold."""
    found = []
    for voxel in range(X.shape[1]):
        part = X[:, near.around(voxel)]
        found.append(cross_val_score(GaussianNB(var_smoothing=0), part, y, groups=groups, cv=LeaveOneGroupOut()).mean())
    return np.array(found)


def tied(X, y, groups, near, tie):
    """The same with a shared variance, written out."""
    found = []
    for voxel in range(X.shape[1]):
        part, hits = X[:, near.around(voxel)], []
        for run in np.unique(groups):
            train, test = groups != run, groups == run
            names, counts = np.unique(y[train], return_counts=True)
            mean = np.array([part[train & (y == name)].mean(0) for name in names])
            square = np.array([((part[train & (y == name)] - m) ** 2).sum(0) for name, m in zip(names, mean, strict=True)])
            n = np.repeat(counts[:, None], part.shape[1], 1)
            axes = {"class": 0, "column": 1, "both": (0, 1)}[tie]
            variance = np.broadcast_to(square.sum(axes, keepdims=True) / n.sum(axes, keepdims=True), square.shape)
            score = np.log(counts / counts.sum()) - 0.5 * (
                np.log(2 * np.pi * variance).sum(1) + ((part[test][:, None] - mean) ** 2 / variance).sum(2)
            )
            hits.append((names[score.argmax(1)] == y[test]).mean())
        found.append(np.mean(hits))
    return np.array(found)


@pytest.mark.parametrize("radius", [0, 1, 2])
def test_every_cube_has_exactly_the_accuracy_of_gaussian_nb_fitted_on_it(made, radius):
    X, y, runs, places = made
    found = likely.brain.searchlight(X, y, groups=runs, coordinates=places, radius=radius)
    expected = slow(X, y, runs, Neighbourhoods.cubes(places, radius))
    assert np.array_equal(np.asarray(found), expected)
    assert len(set(expected.tolist())) > 5


@pytest.mark.real
def test_every_cube_of_the_published_slice_has_exactly_the_accuracy_of_gaussian_nb(haxby):
    found = brain.searchlight(haxby)
    near = Neighbourhoods.cubes(haxby.coordinates, 1)
    some = np.random.default_rng(0).choice(len(found), 40, replace=False)
    for voxel in some.tolist():
        part = haxby.X[:, near.around(voxel)]
        model = GaussianNB(var_smoothing=0)
        scores = cross_val_score(model, part, haxby.y, groups=haxby.runs, cv=LeaveOneGroupOut())
        assert found[voxel] == scores.mean()
        assert np.array_equal(found.run_accuracy[:, voxel], scores)


@pytest.mark.parametrize("tie", ["class", "column", "both"])
def test_a_shared_variance_is_shared_within_each_cube(made, tie):
    X, y, runs, places = made
    found = brain.searchlight(X, y, groups=runs, coordinates=places, tie=tie)
    assert np.allclose(found, tied(X, y, runs, Neighbourhoods.cubes(places, 1), tie), atol=1e-12)


def test_large_and_small_inputs_agree_whichever_loop_runs(made, monkeypatch):
    X, y, runs, places = made
    compiled = brain.searchlight(X, y, groups=runs, coordinates=places)
    monkeypatch.setattr(searchlight_map, "LARGE", 1e18)
    for name in ("count_correct", "merge_parts", "sum_neighbours"):
        monkeypatch.setattr(_voxel_loops, name, getattr(_voxel_loops, name).plain)
    assert np.array_equal(compiled, brain.searchlight(X, y, groups=runs, coordinates=places))


@pytest.mark.parametrize("kind", [np.float32, np.int16])
def test_the_type_of_the_numbers_changes_nothing(made, kind):
    X, y, runs, places = made
    rounded = X.round().astype(kind)
    found = brain.searchlight(rounded, y, groups=runs, coordinates=places)
    assert np.array_equal(found, brain.searchlight(rounded.astype(float), y, groups=runs, coordinates=places))


def test_a_pair_uses_only_its_own_volumes(made):
    X, y, runs, places = made
    keep = np.isin(y, ["cat", "owl"])
    pair = brain.searchlight(X, y, groups=runs, coordinates=places, classes=("cat", "owl"))
    assert pair.classes == ("cat", "owl")
    assert np.array_equal(pair, slow(X[keep], y[keep], runs[keep], Neighbourhoods.cubes(places, 1)))
    pairs = brain.searchlight_pairs(X, y, groups=runs, coordinates=places)
    assert list(pairs) == [("cat", "dog"), ("cat", "owl"), ("dog", "owl")]
    assert np.array_equal(pairs["cat", "owl"], pair)


def test_a_sphere_holds_the_voxels_within_its_radius_in_millimetres(made):
    places = made[3]
    affine = np.array([[-2.0, 0, 0, 5], [0, 3, 0.5, 1], [0, 0, 4, 2], [0, 0, 0, 1]])
    near = Neighbourhoods.spheres(places, 4.2, affine)
    millimetres = places @ affine[:3, :3].T
    for voxel in range(len(places)):
        inside = np.flatnonzero(np.linalg.norm(millimetres - millimetres[voxel], axis=1) <= 4.2)
        assert sorted(near.around(voxel).tolist()) == inside.tolist()
    assert near.sizes.max() > 1


def test_a_whole_cube_has_27_voxels_and_a_hole_in_the_mask_is_in_none():
    places = np.argwhere(np.ones((3, 3, 3), bool))
    assert Neighbourhoods.cubes(places, 1).sizes.max() == 27
    without = places[(places != [0, 0, 0]).any(1)]
    middle = np.flatnonzero((without == 1).all(1))[0]
    assert len(Neighbourhoods.cubes(without, 1).around(middle)) == 26


def test_the_map_is_an_array_of_one_accuracy_per_voxel(made):
    X, y, runs, places = made
    found = brain.searchlight(X, y, groups=runs, coordinates=places)
    assert found.shape == (X.shape[1],)
    assert len(found) == X.shape[1]
    assert (found >= 0).all()
    assert np.array_equal(found + 1, found.accuracy + 1)
    assert found[3] == found.accuracy[3]
    assert found.chance == pytest.approx(np.mean(y == "owl"), abs=0.1)
    with pytest.raises(UsageError, match="permutations=1000"):
        _ = found.p_value


def test_a_constant_voxel_contributes_nothing_and_a_warning_counts_it(made):
    X, y, runs, places = made
    flat = X.copy()
    flat[:, 5] = 42.0
    near = Neighbourhoods.cubes(places, 1)
    with pytest.warns(LikelyWarning, match=r"1 of \d+ voxels are constant"):
        found = brain.searchlight(flat, y, groups=runs, coordinates=places)
    keep = np.arange(X.shape[1]) != 5
    for voxel in near.around(5).tolist():
        others = [v for v in near.around(voxel).tolist() if keep[v]]
        scores = cross_val_score(GaussianNB(var_smoothing=0), X[:, others], y, groups=runs, cv=LeaveOneGroupOut())
        assert found[voxel] == scores.mean()


def test_a_class_that_only_one_run_has_is_never_predicted_there():
    rng = np.random.default_rng(1)
    y = np.array(["a", "b"] * 6 + ["c"] * 3)
    runs = np.repeat([0, 1, 2], 5)
    X = rng.normal(size=(15, 4)) + 5.0 * (y == "c")[:, None]
    places = np.argwhere(np.ones((4, 1, 1), bool))
    with pytest.warns(LikelyWarning, match="'c'.*run 2"):
        found = brain.searchlight(X, y, groups=runs, coordinates=places)
    expected = slow(X, y, runs, Neighbourhoods.cubes(places, 1))
    assert np.array_equal(found, expected)


def broken(made, **changes):
    X, y, runs, places = made
    given = {"X": X, "y": y, "groups": runs, "coordinates": places} | changes
    return lambda: brain.searchlight(given.pop("X"), given.pop("y"), **given)


def with_nan(X):
    X = X.copy()
    X[17, 4] = np.nan
    return X


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X, y, r, p: {"y": y[:-1]}, DataError, "30 labels for 31 volumes"),
        (lambda X, y, r, p: {"groups": r[:-2]}, DataError, r"29 runs .* for 31 volumes"),
        (lambda X, y, r, p: {"coordinates": p[:-1]}, DataError, "coordinates have shape"),
        (lambda X, y, r, p: {"coordinates": p + 0.5}, DataError, "whole numbers"),
        (lambda X, y, r, p: {"coordinates": np.zeros_like(p)}, DataError, "same coordinates"),
        (lambda X, y, r, p: {"X": with_nan(X)}, DataError, "volume 17 has nan at voxel 4"),
        (lambda X, y, r, p: {"X": np.full_like(X, np.inf)}, DataError, "volume 0 has inf"),
        (lambda X, y, r, p: {"X": X[:, :, None]}, DataError, "shape"),
        (lambda X, y, r, p: {"X": X.astype(str)}, DataError, "numbers of shape"),
        (lambda X, y, r, p: {"X": np.ones_like(X)}, DataError, "no voxel varies"),
        (lambda X, y, r, p: {"y": np.full(len(y), "cat")}, DataError, "two classes are needed"),
        (lambda X, y, r, p: {"y": np.array([None, *y[1:]], object)}, DataError, "volume 0 is without a value in the labels"),
        (lambda X, y, r, p: {"groups": np.zeros(len(r))}, DataError, "two runs are needed"),
        (lambda X, y, r, p: {"groups": None}, UsageError, "y and groups are needed"),
        (lambda X, y, r, p: {"coordinates": None}, UsageError, "coordinates are needed"),
        (lambda X, y, r, p: {"radius": 1.5}, UsageError, "radius=1.5"),
        (lambda X, y, r, p: {"radius": -1}, UsageError, "radius=-1"),
        (lambda X, y, r, p: {"sphere": 4.0}, UsageError, "affine"),
        (lambda X, y, r, p: {"sphere": 4.0, "affine": np.zeros((4, 4))}, DataError, "invertible"),
        (lambda X, y, r, p: {"tie": "voxel"}, UsageError, "tie='voxel'"),
        (lambda X, y, r, p: {"classes": ("cat", "dogs")}, UsageError, "did you mean 'dog'"),
        (lambda X, y, r, p: {"class_prior": "flat"}, UsageError, "class_prior='flat'"),
        (lambda X, y, r, p: {"permutations": 5, "exchange": "rows"}, UsageError, "exchange='rows'"),
        (lambda X, y, r, p: {"permutations": -5}, UsageError, "permutations=-5"),
    ],
)  # fmt: skip
def test_what_cannot_be_mapped_is_refused_with_its_reason(made, change, error, message):
    call = broken(made, **change(*made))
    with pytest.raises(error, match=message):
        call()
