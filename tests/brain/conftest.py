"""Made volumes: a few voxels tell the classes apart, the others are noise."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def made():
    """X, labels, runs and places of 60 voxels with a hole in the mask; runs of different lengths, one without a class."""
    rng = np.random.default_rng(7)
    places = np.argwhere(np.ones((5, 4, 3), bool))
    places = places[rng.random(len(places)) < 0.9]
    y = np.concatenate([np.repeat(["cat", "dog", "owl"], 4), np.repeat(["owl", "cat"], 5), np.repeat(["dog", "cat", "owl"], 3)])
    runs = np.repeat([3, 1, 7], [12, 10, 9])
    X = rng.normal(100, 3, (len(y), len(places)))
    X[:, :20] += 4.0 * (y == "cat")[:, None]
    X[:, 10:25] -= 3.0 * (y == "owl")[:, None]
    return X, y, runs, places


@pytest.fixture(scope="session")
def haxby(shared_data):
    """The published slice: detrended and standardised by rest within each run, without rest."""
    pytest.importorskip("nibabel", reason="NOT TESTED: nibabel is not installed")
    from likely import brain

    paths = [shared_data(f"haxby2001_{name}") for name in ("bold.nii.gz", "attributes.txt", "mask.nii.gz")]
    return brain.load(paths[0], paths[1], mask=paths[2], detrend=True, standardize="rest").without("rest")
