"""p-values: uniform where nothing is to be found, small where something is, and corrected for the number of voxels."""

import numpy as np
import pytest

from likely import brain
from likely.brain._dataset import checked
from likely.brain._permutations import false_discovery_rates, permuted_labels
from likely.brain._voxel_tally import tally_blocks
from likely.errors import DataError


def volumes(signal, seed=0, runs=6):
    """Blocks of three volumes of two classes in each run; the first five of 30 voxels tell them apart."""
    rng = np.random.default_rng(seed)
    y = np.tile(np.repeat([0, 1, 0, 1], 3), runs)
    groups = np.repeat(np.arange(runs), 12)
    X = rng.normal(size=(len(y), 30))
    X[:, :5] += signal * y[:, None]
    return X, y, groups, np.argwhere(np.ones((30, 1, 1), bool))


def test_voxels_with_signal_are_significant_and_the_others_are_not():
    X, y, groups, places = volumes(3.0)
    found = brain.searchlight(X, y, groups=groups, coordinates=places, radius=0, permutations=99)
    inside = found.significant(0.05, "fwe")
    assert inside[:5].all()
    assert not inside[5:].any()
    assert found.p_value[:5].max() == 0.01  # as small as 99 permutations can show
    assert (found.p_fwe >= found.p_value).all()
    assert (found.q_fdr >= found.p_value).all()
    assert (found.accuracy[inside] > found.test.threshold(0.05)).all()
    assert (found.accuracy[~inside] <= found.test.threshold(0.05)).all()


def test_p_values_are_counts_of_permuted_maps_that_are_as_good():
    """The same test done slowly: every permutation as a data set of its own."""
    X, y, groups, places = volumes(0.7, seed=3)
    found = brain.searchlight(X, y, groups=groups, coordinates=places, permutations=20, seed=5)
    tally = tally_blocks(checked(X, y, groups))
    maps = []
    for number in range(20):
        label = permuted_labels(tally, np.random.default_rng([5, number]))
        maps.append(np.asarray(brain.searchlight(X, label[tally.part], groups=groups, coordinates=places)))
    maps = np.array(maps)
    observed = np.asarray(found)
    assert np.array_equal(found.p_value, (1 + (maps >= observed - 1e-9).sum(0)) / 21)
    assert np.array_equal(found.p_fwe, (1 + (maps.max(1)[:, None] >= observed - 1e-9).sum(0)) / 21)
    assert np.allclose(found.test.largest, maps.max(1))


def test_without_signal_p_values_are_spread_evenly():
    found = []
    for seed in range(12):
        X, y, groups, places = volumes(0.0, seed)
        found.append(brain.searchlight(X, y, groups=groups, coordinates=places, radius=0, permutations=39, seed=seed))
    p = np.concatenate([each.p_value for each in found])
    assert 0.45 < p.mean() < 0.62  # equal accuracies count as reached, so a little above a half
    assert sum(each.significant(0.05, "fwe").any() for each in found) <= 3  # about half a map is expected


def test_blocks_keep_their_volumes_together_and_labels_stay_in_their_run():
    X, y, groups, _ = volumes(0.0)
    tally = tally_blocks(checked(X, y, groups))
    assert len(tally.weight) == 24
    label = permuted_labels(tally, np.random.default_rng(0))
    assert not np.array_equal(label, tally.label)
    for run in range(6):
        assert sorted(label[tally.run == run]) == sorted(tally.label[tally.run == run])


def test_volumes_may_be_exchanged_one_by_one():
    X, y, groups, places = volumes(3.0)
    found = brain.searchlight(X, y, groups=groups, coordinates=places, radius=0, permutations=19, exchange="volumes")
    assert found.significant(0.05, None)[:5].all()
    assert found.test.exchange == "volumes"


def test_the_seed_decides():
    X, y, groups, places = volumes(0.5)
    maps = [brain.searchlight(X, y, groups=groups, coordinates=places, permutations=10, seed=s) for s in (1, 1, 2)]
    assert np.array_equal(maps[0].test.largest, maps[1].test.largest)
    assert not np.array_equal(maps[0].test.largest, maps[2].test.largest)


def test_runs_of_one_class_cannot_be_permuted():
    X, _, groups, places = volumes(0.0)
    with pytest.raises(DataError, match="nothing to permute"):
        brain.searchlight(X, groups % 2, groups=groups, coordinates=places, permutations=3)


def test_false_discovery_rates_are_those_of_benjamini_and_hochberg():
    p = np.array([0.01, 0.02, 0.03, 0.5, 0.04])
    assert np.allclose(false_discovery_rates(p), [0.05, 0.05, 0.05, 0.5, 0.05])
    assert np.allclose(false_discovery_rates(np.array([0.9, 1.0])), [1.0, 1.0])
